//! What a person is told of each source.

use crate::registry::{Catalogue, SourceStatus, State};

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
    sources.map(report).collect()
}

fn report(source: &SourceStatus) -> Report {
    let diagnostics = source.diagnostics.iter().map(ToString::to_string);
    let mut diagnostics: Vec<String> = diagnostics.collect();
    let failure = match &source.state {
        State::Failed(cause) => {
            // A wrong entry is the reason and a diagnostic; it is told once, without its name.
            let told = format!("{}: {cause}", source.source);
            diagnostics.retain(|diagnostic| *diagnostic != told);
            Some(cause.to_string())
        }
        State::Starting | State::Ready => None,
    };
    Report { source: source.source.clone(), tools: source.tools, failure, diagnostics }
}
