//! Why a run could not start, or had to end.

use std::io;

use crate::activity::JournalError;
use crate::artifact::StoreError;
use crate::config::ConfigError;
use crate::config::places::Places;
use crate::document::DocumentError;
use crate::registry::NameConflict;
use crate::server::http;
use crate::source::builtin;
use crate::workspace::PathError;

/// Why a run could not start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting turned out not to be usable.
    #[error(transparent)]
    Setting(#[from] ConfigError),
    /// Calls cannot be recorded.
    #[error(transparent)]
    Activity(#[from] JournalError),
    /// The workspace cannot be used.
    #[error(transparent)]
    Workspace(#[from] PathError),
    /// The agent file turns on what this version does not have.
    #[error("{}", all(.0))]
    NotBuilt(Vec<DocumentError>),
    /// A built-in tool cannot be made.
    #[error(transparent)]
    Builtin(#[from] builtin::BuiltinError),
    /// The folder that was named for artifacts cannot be used.
    #[error(transparent)]
    Artifacts(#[from] StoreError),
    /// Two tools want one name.
    #[error(transparent)]
    Name(#[from] NameConflict),
    /// HTTP cannot be served.
    #[error(transparent)]
    Http(#[from] http::ServeError),
    /// A required upstream server failed.
    #[error(
        "the upstream server {server} failed: {reason}\nmake it optional with `required: false`, or serve the rest with --keep-going"
    )]
    Required {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// The Python tools cannot be loaded.
    #[error("the Python tools failed: {0}\nput them right, or serve the rest with --keep-going")]
    Python(String),
    /// A skill is not there that must be.
    #[error("{0}\nadd it, or take it out of skills.require, or serve the rest with --keep-going")]
    Skills(String),
    /// A stream broke.
    #[error("serving ended: {0}")]
    Serve(io::Error),
}

impl StartError {
    /// Says where the setting is written that cannot be used, if it is one.
    pub(super) fn placed(self, places: &Places) -> Self {
        let key = match &self {
            Self::Activity(_) => "activity.file",
            Self::Artifacts(_) => "artifacts.dir",
            Self::Http(_) => "http",
            _ => return self,
        };
        places.error(key, &self).into()
    }
}

/// Returns errors as lines, each with the line of its file and a caret.
fn all(errors: &[DocumentError]) -> String {
    errors.iter().map(DocumentError::render).collect::<Vec<_>>().join("\n")
}
