//! What a person is told of each source.

use crate::registry::{Catalogue, State};

/// One source, as a person is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The source's name.
    pub source: String,
    /// How many tools it offers.
    pub tools: usize,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// What went wrong with parts of it.
    pub diagnostics: Vec<String>,
}

/// Reports on every source of a catalogue that counts, in order.
pub fn of(catalogue: &Catalogue) -> Vec<Report> {
    let sources = catalogue.sources().iter().filter(|source| source.counts());
    let reports = sources.map(|source| Report {
        source: source.source.clone(),
        tools: source.tools,
        failure: match &source.state {
            State::Failed(cause) => Some(cause.to_string()),
            State::Starting | State::Ready => None,
        },
        diagnostics: source.diagnostics.iter().map(ToString::to_string).collect(),
    });
    reports.collect()
}
