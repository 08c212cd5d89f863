//! The JSON schemas of the files that people write, for editors and for those who check files.
//!
//! They say what a file looks like; what one part says of another is checked by reading it.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::agent;
use super::settings::Settings;

/// The schema of MCP files, whose reader is no type.
const MCP: &str = include_str!("schema/mcp.json");

/// Returns the schema of agent files.
pub fn agent() -> Value {
    plain(agent::schema().to_value())
}

/// Returns the schema of MCP files.
pub fn mcp() -> Value {
    serde_json::from_str(MCP).unwrap_or_else(|error| unreachable!("a constant is JSON: {error}"))
}

/// Returns the schema of settings files.
pub fn server() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    plain(generator.into_root_schema_for::<Settings>().to_value())
}

/// Removes what is Rust's: widths of numbers, defaults that say nothing, breaks of lines.
fn plain(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(members) => {
            // Under these stand names of keys, not words of a schema.
            for names in ["properties", "$defs", "dependentSchemas"] {
                if let Some(Value::Object(named)) = members.get_mut(names) {
                    named.values_mut().for_each(|schema| *schema = plain(schema.take()));
                }
            }
            for words in ["items", "additionalProperties", "anyOf", "oneOf", "allOf"] {
                if let Some(schema) = members.get_mut(words) {
                    *schema = plain(schema.take());
                }
            }
            members.remove("format");
            if members.get("default") == Some(&Value::Null) {
                members.remove("default");
            }
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text.replace('\n', " ");
            }
        }
        Value::Array(schemas) => {
            for schema in schemas {
                *schema = plain(schema.take());
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    schema
}

/// The schema of `discovery.disclosure`.
pub(super) fn disclosure(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["both", "meta", "session"], "default": "both" })
}

/// The schema of `names`.
pub(super) fn style(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["iris", "plain", "bare"], "default": "iris" })
}

/// The schema of `max_name`.
pub(super) fn max_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 16, "maximum": 128, "default": 64 })
}
