//! What a factory in Python is called with: anything, by name.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Arguments of a factory, which nobody here looks at.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Options(pub(super) Map<String, Value>);
