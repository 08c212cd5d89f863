//! `memory`: what an agent keeps over sessions.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::Deserialize;

use super::text::{Share, Text};
use super::within;
use crate::document::{Document, DocumentError};

/// Long-term memory.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Memory {
    /// Whether there is a memory, with `memory_search` and `memory_fetch`.
    pub(super) enabled: bool,
    /// The folder of its files, relative to the workspace and inside it.
    root: Text,
    /// Its database, relative to the workspace and inside it.
    path: Text,
    /// What of it can be read.
    read_namespaces: Vec<Text>,
    /// What of it is written.
    write_namespace: Text,
    /// The overview that a model is given.
    overview: Overview,
    /// What is remembered unasked.
    generation: Generation,
}

/// The overview that a model is given.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Overview {
    /// How much it is made from, in tokens.
    input_budget_tokens: NonZeroU64,
    /// How long it may be, in tokens.
    max_tokens: NonZeroU64,
    /// How much of the model's input it may take.
    system_budget_ratio: Share,
}

/// What is remembered unasked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Generation {
    /// Whether anything is.
    enabled: bool,
    /// How much is read at once, in tokens.
    flush_input_budget_tokens: NonZeroU64,
    /// How much is written at once, in tokens.
    flush_output_budget_tokens: NonZeroU64,
    /// How much is put in order at once, in tokens.
    dream_input_budget_tokens: NonZeroU64,
    /// How much comes of that, in tokens.
    dream_output_budget_tokens: NonZeroU64,
}

impl Memory {
    pub(super) fn check(&self, document: &Document) -> Vec<DocumentError> {
        if !self.enabled {
            return Vec::new();
        }
        let paths = [("memory.root", &self.root), ("memory.path", &self.path)];
        let wrong = paths.into_iter().map(|(key, path)| within::check(document, key, path));
        wrong.filter_map(Result::err).collect()
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            enabled: false,
            root: Text::of(".iris/memory"),
            path: Text::of(".iris/memory/memory.db"),
            read_namespaces: vec![Text::of("project")],
            write_namespace: Text::of("project"),
            overview: Overview::default(),
            generation: Generation::default(),
        }
    }
}

impl Default for Overview {
    fn default() -> Self {
        Self {
            input_budget_tokens: tokens(96_000),
            max_tokens: tokens(4096),
            system_budget_ratio: Share::of(0.02),
        }
    }
}

impl Default for Generation {
    fn default() -> Self {
        Self {
            enabled: false,
            flush_input_budget_tokens: tokens(32_000),
            flush_output_budget_tokens: tokens(4000),
            dream_input_budget_tokens: tokens(32_000),
            dream_output_budget_tokens: tokens(4000),
        }
    }
}

fn tokens(count: u64) -> NonZeroU64 {
    NonZeroU64::new(count).unwrap_or(NonZeroU64::MIN)
}
