//! Where tools come from: each source publishes what it has to the registry.

pub mod builtin;
pub mod python;
pub mod skill;
pub mod upstream;
