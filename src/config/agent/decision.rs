//! `decision`: the file that says what a decision service is asked.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::text::{Positive, Text};
use crate::document::{Document, DocumentError};

/// Where it stands what a decision service is asked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Decision {
    /// The file, relative to this one.
    path: Text,
}

/// The file: which service, and what it is asked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Service {
    provider: Provider,
    model: Text,
    timeout_seconds: Positive,
    tools: Tools,
    memory: Memory,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Provider {
    #[default]
    Typesafe,
}

/// What it is asked about tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tools {
    discovery: bool,
}

/// What it is asked about memories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Memory {
    recall: bool,
}

impl Decision {
    /// Returns the file, relative to the agent file's folder.
    pub(super) fn path(&self) -> &Path {
        Path::new(self.path.as_str())
    }
}

impl Service {
    /// Takes it from its file; `deferred` says whether there are tools to be searched for.
    pub(super) fn read(document: &Document, deferred: bool) -> Result<Self, DocumentError> {
        let service: Self =
            if document.root.is_null() { Self::default() } else { document.decode()? };
        if service.tools.discovery && !deferred {
            let message = "it needs the agent file's `context_policy.deferred_tools`";
            let error = document.error_in("tools.discovery", message);
            return Err(error.with_hint("set that to true, or this to false".to_owned()));
        }
        Ok(service)
    }

    /// Says whether it is asked anything.
    pub(super) fn is_on(&self) -> bool {
        self.tools.discovery || self.memory.recall
    }
}

impl Default for Service {
    fn default() -> Self {
        Self {
            provider: Provider::default(),
            model: Text::of("jev-1.13.0"),
            timeout_seconds: Positive::of(5.0),
            tools: Tools::default(),
            memory: Memory::default(),
        }
    }
}
