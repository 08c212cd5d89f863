//! Why a tool that could be there is not.

use crate::registry::{Catalogue, State};
use crate::tool::suffix::worded;

/// A tool that could be there and is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The source that would have it.
    pub server: String,
    /// Why it is not there.
    pub why: Why,
}

/// Why a tool is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its source has not come up yet.
    Starting,
    /// Its source failed, for this reason in short.
    Failed(String),
    /// It alone cannot be used, for this reason.
    LeftOut(String),
}

impl Why {
    pub(super) fn of(&self, server: &str) -> String {
        match self {
            Self::Starting => format!("; the server {server} is still starting; try again later"),
            Self::Failed(reason) => {
                format!("; the server {server} failed, so its tools are not there: {reason}")
            }
            Self::LeftOut(reason) => format!("; {server} has it, but {reason}"),
        }
    }
}

/// Returns what the canonical names of a server's tools begin with. (N1, N2, N5)
pub(super) fn prefix(server: &str) -> String {
    format!("mcp__{}__", worded(server))
}

/// Finds out why a tool is not there: its server is not, or it alone was left out.
pub(super) fn missing(catalogue: &Catalogue, name: &str) -> Option<Missing> {
    // Some write the server's name as it is in the file.
    let worded_name = worded(name);
    let mut absent: Vec<Missing> = Vec::new();
    for source in catalogue.sources() {
        let its = worded_name.strip_prefix(&prefix(&source.source));
        let of = |why| Missing { server: source.source.clone(), why };
        let left_out = source.diagnostics.iter().find(|diagnostic| {
            let tool = diagnostic.left_out();
            tool.is_some_and(|tool| tool == name || its == Some(worded(tool).as_str()))
        });
        absent.extend(match (&source.state, left_out, its) {
            (_, Some(diagnostic), _) => {
                let reason = diagnostic.message.lines().next().unwrap_or_default();
                Some(of(Why::LeftOut(reason.to_owned())))
            }
            (State::Starting, _, Some(_)) => Some(of(Why::Starting)),
            (State::Failed(cause), _, Some(_)) => Some(of(Why::Failed(cause.brief()))),
            _ => None,
        });
    }
    // The name of one server may begin as another's.
    absent.into_iter().max_by_key(|missing| missing.server.len())
}
