//! Any JSON as the list of a server's tools.

use jsonschema::{PatternOptions, Validator};
use serde_json::json;

use super::dialect::Dialect;
use super::*;
use crate::fuzz::target;

const WORDS: &[&str] = &[
    "a",
    "b",
    "",
    "type",
    "properties",
    "required",
    "items",
    "additionalItems",
    "additionalProperties",
    "definitions",
    "$defs",
    "$ref",
    "$id",
    "id",
    "$schema",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependencies",
    "dependentSchemas",
    "dependentRequired",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "propertyNames",
    "patternProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "const",
    "enum",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "default",
    "examples",
    "$comment",
    "$vocabulary",
    "contentSchema",
    "contentMediaType",
    "contentEncoding",
    "object",
    "array",
    "string",
    "integer",
    "number",
    "boolean",
    "null",
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
    "#",
    "#a",
    "http://x.example/s",
    "http://x.example/s#/$defs/a",
    "s#a",
    "^a",
    "(?!a)",
    "(a+)+$",
    "[",
    "\\p{L}",
    "é",
    "a/b",
    "~0",
    "%25",
    "date",
    "$data",
    "title",
    "description",
];

#[test]
fn schemas() {
    target("schemas", 4 * 1024, |mut bytes| check(&mut bytes));
}

fn check(bytes: &mut &[u8]) {
    let [input, output, mut tool] = [json(bytes, 0), json(bytes, 0), json(bytes, 0)];
    if !tool.is_object() {
        tool = json!({});
    }
    tool["name"] = json!("t");
    tool["inputSchema"] = input.clone();
    tool["outputSchema"] = output;
    let catalog = build("s", &Filter::default(), &[json!({"tools": [tool]})]);
    let told: Vec<&str> = catalog.diagnostics.iter().map(|told| told.message.as_str()).collect();
    for told in &told {
        assert!(!told.chars().any(char::is_control) && told.chars().count() < 4_000, "{told:?}");
    }
    let Some(entry) = catalog.tools.first() else {
        assert!(told.iter().any(|told| told.starts_with("the tool is left out")), "{told:?}");
        return;
    };
    for schema in ["inputSchema", "outputSchema"] {
        let published = entry.raw.get(schema);
        assert!(published.is_none_or(jsonschema::meta::is_valid), "{published:?}");
    }
    assert_eq!(entry.raw["inputSchema"]["type"], "object");
    // What is published would be published as it is.
    let listed = Value::Object(entry.raw.as_ref().clone());
    let again = build("s", &Filter::default(), &[json!({"tools": [listed]})]);
    assert_eq!(again.diagnostics, []);
    assert_eq!(again.tools[0].raw, entry.raw);
    // It accepts what it accepted, unless a person was told that it does not.
    let lenient = |told: &&&str| told.contains("was dropped") || told.contains("is not valid");
    if input.is_object() && !told.iter().any(|told| lenient(&told)) {
        let of_input = |told: &&Diagnostic| told.field.as_deref() == Some("input_schema");
        let told = catalog.diagnostics.iter().filter(of_input);
        let told: Vec<&str> = told.map(|told| told.message.as_str()).collect();
        check_equivalent(&input, &told, entry);
    }
}

fn check_equivalent(input: &Value, told: &[&str], entry: &Entry) {
    let read_as = |dialect: &Dialect| {
        told.iter().any(|told| told.contains(&format!("was read as {}", dialect.name())))
    };
    let guessed = [Dialect::Draft04, Dialect::Draft07].into_iter().find(read_as);
    let declared = input.as_object().and_then(|input| Dialect::declared(input).ok()?);
    let dialect = declared.or(guessed).unwrap_or(Dialect::Draft202012);
    // As for what is published; the library takes some schemas for others without a type.
    let mut typed = input.clone();
    if typed["type"].is_null() {
        typed["type"] = json!("object");
    }
    let Ok(old) = validator(dialect, &typed) else { return };
    let new = validator(Dialect::Draft202012, &entry.raw["inputSchema"]).unwrap();
    for value in arguments().as_array().unwrap() {
        let was = old.is_valid(value);
        assert_eq!(new.is_valid(value), was, "{input}\n{}\n{value}", entry.raw["inputSchema"]);
        let checked = entry.input_schema.check(value.as_object().unwrap().clone());
        assert_eq!(checked.is_ok(), was, "{input}\n{value}");
    }
}

fn validator(dialect: Dialect, schema: &Value) -> Result<Validator, ()> {
    let patterns = PatternOptions::fancy_regex().backtrack_limit(100_000);
    let options = jsonschema::options().with_draft(dialect.draft()).with_pattern_options(patterns);
    options.should_validate_formats(false).build(schema).map_err(|_| ())
}

fn arguments() -> Value {
    json!([
        {}, {"a": 1}, {"a": "a"}, {"a": null, "b": 1.5}, {"b": [1, "a", null]}, {"a": {"a": 1, "b": "a"}}, {"a": {"b": {"a": []}}},
        {"a": [[], ["a", 1], {}], "type": "object"}, {"b": {"properties": [1, 1]}, "": true}
    ])
}

/// Builds JSON of bytes, such that most bytes make a difference.
fn json(bytes: &mut &[u8], depth: usize) -> Value {
    let first = next(bytes);
    let count = usize::from(first >> 4) % 5;
    if depth > 130 {
        return Value::Null;
    }
    match first % 12 {
        0..=4 => {
            let members = (0..count).map(|_| (word(bytes).to_owned(), json(bytes, depth + 1)));
            Value::Object(members.collect())
        }
        5 => (0..count).map(|_| json(bytes, depth + 1)).collect(),
        6 => json!({"type": word(bytes)}),
        7 => {
            let way: Vec<&str> = (0..count).map(|_| word(bytes)).collect();
            json!({"$ref": format!("#/{}", way.join("/"))})
        }
        8 => Value::from(word(bytes)),
        9 => Value::from(next(bytes).cast_signed()),
        10 => Value::from(f64::from(next(bytes)) / 4.0),
        _ => [json!(true), json!(false), json!({}), json!([]), Value::Null][count].clone(),
    }
}

fn word<'a>(bytes: &mut &[u8]) -> &'a str {
    WORDS[usize::from(next(bytes)) % WORDS.len()]
}

fn next(bytes: &mut &[u8]) -> u8 {
    let Some((first, rest)) = bytes.split_first() else { return 0 };
    *bytes = rest;
    *first
}
