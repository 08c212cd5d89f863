//! Results too long for a model: what stays of them in the answer.

pub mod preview;
