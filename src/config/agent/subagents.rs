//! The file of `tools.subagent`: other agents that can be asked.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::text::{Kebab, Text};
use crate::document::{Document, DocumentError, hint};

/// The agents that can be asked; their own files are not read before they are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Subagents {
    default: Kebab,
    agents: BTreeMap<Kebab, Route>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Route {
    path: Text,
    description: Text,
}

impl Subagents {
    /// Takes them from their file.
    pub(super) fn read(document: &Document) -> Result<Self, DocumentError> {
        let catalog: Self = document.decode()?;
        if catalog.agents.contains_key(&catalog.default) {
            return Ok(catalog);
        }
        let known: Vec<&str> = catalog.agents.keys().map(Kebab::as_str).collect();
        let error = document.error_in("default", "none of `agents` is called so");
        let hint = hint::for_unknown(catalog.default.as_str(), &known);
        Err(error.with_hint(hint.or_else(|| Some("name one there".to_owned()))))
    }
}
