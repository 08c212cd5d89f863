//! Input schemas that are known to compile, and the one place where arguments are checked.

pub mod lax;

use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Map, Value, json};

use crate::tool::Arguments;

/// A JSON Schema 2020-12 for an object, compiled.
///
/// No reference in it leaves the document: nothing is ever fetched (MCP 2026-07-28
/// §server/tools, "MUST NOT auto-dereference"). Patterns run on a linear engine, or with a limit on
/// the steps they take back, so an argument cannot stall a call.
#[derive(Clone)]
pub struct InputSchema {
    document: Arc<Map<String, Value>>,
    validator: Arc<Validator>,
}

/// Why a document is no input schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is not about an object.
    #[error("the root of a tool's input schema must have type \"object\"")]
    RootType,
    /// It does not compile.
    #[error("the schema does not compile: {0}")]
    Invalid(String),
}

impl InputSchema {
    /// Compiles a schema, adding `properties` and `required` where they are missing.
    pub fn compile(mut document: Map<String, Value>) -> Result<Self, SchemaError> {
        if document.get("type").and_then(Value::as_str) != Some("object") {
            return Err(SchemaError::RootType);
        }
        document.entry("properties").or_insert_with(|| json!({}));
        document.entry("required").or_insert_with(|| json!([]));
        let document = Value::Object(document);
        let validator = compile(&document)?;
        let Value::Object(document) = document else {
            return Err(SchemaError::RootType);
        };
        Ok(Self { document: Arc::new(document), validator: Arc::new(validator) })
    }

    /// Returns the schema of a tool that takes any object.
    pub fn object() -> Self {
        Self::compile(Map::from_iter([("type".to_owned(), json!("object"))]))
            .unwrap_or_else(|error| unreachable!("a constant schema compiles: {error}"))
    }

    /// Returns the document.
    pub fn document(&self) -> &Map<String, Value> {
        &self.document
    }

    /// Returns the document, shared.
    pub fn shared(&self) -> Arc<Map<String, Value>> {
        Arc::clone(&self.document)
    }

    /// Checks arguments as they are, without coercion.
    ///
    /// The error names every offending argument, at most five of them, and what is wrong with it.
    pub fn check(&self, arguments: Arguments) -> Result<Arguments, String> {
        // The validator wants a `Value`.
        let instance = Value::Object(arguments);
        if self.validator.is_valid(&instance)
            && let Value::Object(arguments) = instance
        {
            return Ok(arguments);
        }
        let errors: Vec<String> = self
            .validator
            .iter_errors(&instance)
            .take(5)
            .map(|error| {
                let path = error.instance_path().to_string();
                let path = path.trim_start_matches('/').replace('/', ".");
                if path.is_empty() { error.to_string() } else { format!("{path}: {error}") }
            })
            .collect();
        Err(errors.join("; "))
    }
}

impl std::fmt::Debug for InputSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("InputSchema").field(&self.document).finish()
    }
}

/// How many steps a pattern with look-around or back-references may take back.
const BACKTRACK_LIMIT: usize = 100_000;

/// Compiles any 2020-12 schema under the rules of [`InputSchema`].
pub fn compile(document: &Value) -> Result<Validator, SchemaError> {
    compile_draft(document, Draft::Draft202012)
}

/// Compiles a schema of some draft under the rules of [`InputSchema`].
pub fn compile_draft(document: &Value, draft: Draft) -> Result<Validator, SchemaError> {
    jsonschema::options()
        .with_draft(draft)
        // It hands plain patterns to the linear engine; the limit is for the others.
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT))
        .build(document)
        .map_err(|error| {
            let path = error.instance_path().to_string();
            let at = if path.is_empty() { String::new() } else { format!("{path}: ") };
            SchemaError::Invalid(format!("{at}{error}"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn t2_the_root_is_an_object_and_gains_properties_and_required() {
        let error = InputSchema::compile(object(json!({"type": "array"}))).unwrap_err();
        assert_eq!(error, SchemaError::RootType);
        let schema = InputSchema::compile(object(json!({"type": "object"}))).unwrap();
        let expected = object(json!({"type": "object", "properties": {}, "required": []}));
        assert_eq!(schema.document(), &expected);
    }

    #[test]
    fn a_remote_reference_is_refused_and_never_fetched() {
        for reference in ["https://example.com/s.json", "file:///etc/passwd", "#/$defs/Missing"] {
            let schema = json!({"type": "object", "properties": {"a": {"$ref": reference}}});
            let error = InputSchema::compile(object(schema)).unwrap_err();
            assert!(matches!(error, SchemaError::Invalid(_)), "{reference}: {error}");
        }
    }

    #[test]
    fn an_error_names_the_argument() {
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 3}}});
        let schema = InputSchema::compile(object(schema)).unwrap();
        let three = object(json!({"n": 3}));
        assert_eq!(schema.check(three.clone()), Ok(three));
        assert_eq!(
            schema.check(object(json!({"n": 4}))),
            Err("n: 4 is greater than the maximum of 3".to_owned())
        );
    }

    #[test]
    fn a_hostile_pattern_does_not_stall() {
        let schema = json!({"type": "object", "properties": {"s": {"type": "string", "pattern": "^(a+)+$"}}});
        let schema = InputSchema::compile(object(schema)).unwrap();
        let text = format!("{}!", "a".repeat(5_000));
        assert!(schema.check(object(json!({"s": text}))).is_err());
    }

    #[test]
    fn patterns_may_look_around_but_not_for_ever() {
        let schema = |pattern: &str| {
            let property = json!({"type": "string", "pattern": pattern});
            let schema = json!({"type": "object", "properties": {"s": property}});
            InputSchema::compile(object(schema)).unwrap()
        };
        let not_blank = schema(r"^(?!\s*$).+");
        assert!(not_blank.check(object(json!({"s": "a"}))).is_ok());
        assert!(not_blank.check(object(json!({"s": "  "}))).is_err());
        let text = format!("{}!", "a".repeat(5_000));
        assert!(schema("^(?=(a+)+$)a").check(object(json!({"s": text}))).is_err());
    }
}
