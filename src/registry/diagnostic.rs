//! What was wrong with a source or one of its tools, when that did not stop the rest.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::tool::ErrorCode;

/// Something a person should know about a server.
///
/// It never holds a value from a file or the environment, so it may be shown to any client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The server.
    #[serde(rename = "server_id")]
    pub server: String,
    /// When it was noticed.
    pub stage: Stage,
    /// What kind of thing it is.
    #[serde(serialize_with = "code")]
    pub code: ErrorCode,
    /// How bad it is.
    pub severity: Severity,
    /// The tool, by the name its server gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire_name: Option<String>,
    /// The part of the configuration or of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What is wrong, and what became of it.
    pub message: String,
    /// Where it stands, as file, line and column; for the operator alone.
    #[serde(skip)]
    pub place: Option<String>,
}

/// When something was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// While the configuration was read or resolved.
    Config,
    /// While the server was started or reached.
    Connect,
    /// While its tools were taken over.
    Catalog,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something was put right, and nothing is lost.
    Info,
    /// Something is served in another way than its server meant.
    Warning,
    /// A tool or a server is left out.
    Error,
}

impl Diagnostic {
    /// Returns the tool that is not there because of this, by the name its server gives it.
    pub fn left_out(&self) -> Option<&str> {
        // Prompts and resources have names of their own, which are no tool's.
        let of_a_tool = self.code.as_str().ends_with("_TOOL_INVALID");
        self.wire_name.as_deref().filter(|_| of_a_tool && self.severity == Severity::Error)
    }
}

impl Stage {
    /// Returns the stage's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Connect => "connect",
            Self::Catalog => "catalog",
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.server)?;
        if let Some(wire_name) = &self.wire_name {
            write!(f, ": {wire_name}")?;
        }
        write!(f, ": {}", self.message)?;
        match &self.place {
            Some(place) => write!(f, " ({place})"),
            None => Ok(()),
        }
    }
}

fn code<S: Serializer>(code: &ErrorCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}
