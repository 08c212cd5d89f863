//! What a schema becomes, and that it accepts the same values afterwards.

use jsonschema::{PatternOptions, Validator};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn converted(schema: &Value) -> Result<Value, Reason> {
    let declared = Dialect::declared(schema.as_object().unwrap()).unwrap();
    let converted = convert(&Scan::new(schema, declared.unwrap_or(Dialect::Draft202012))?)?;
    Scan::new(&converted, Dialect::Draft202012)?;
    Ok(converted)
}

fn uri(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Draft04 => "http://json-schema.org/draft-04/schema#",
        Dialect::Draft06 => "http://json-schema.org/draft-06/schema#",
        Dialect::Draft07 => "http://json-schema.org/draft-07/schema#",
        Dialect::Draft201909 => "https://json-schema.org/draft/2019-09/schema",
        Dialect::Draft202012 => PUBLISHED,
    }
}

/// Declares a dialect at the root, first of all.
fn declare(dialect: Dialect, schema: &Value) -> Value {
    let mut declared = Map::from_iter([("$schema".to_owned(), Value::from(uri(dialect)))]);
    declared.extend(schema.as_object().unwrap().clone());
    Value::Object(declared)
}

#[track_caller]
fn check(dialect: Dialect, schema: Value, expected: Value) {
    let result = converted(&declare(dialect, &schema));
    let expected = declare(Dialect::Draft202012, &expected);
    assert_eq!(result, Ok(expected), "{schema}");
}

#[track_caller]
fn check_error(dialect: Dialect, schema: Value, expected: &str) {
    let error = converted(&declare(dialect, &schema)).expect_err("it cannot be converted");
    assert_eq!(error.to_string(), expected, "{schema}");
}

#[test]
fn definitions_tuples_and_dependencies_have_new_names() {
    use Dialect::{Draft04, Draft07, Draft201909};
    check(
        Draft07,
        json!({"type": "object", "properties": {"a": {"$ref": "#/definitions/A~1%20b"}}, "definitions": {"A/ b": {}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A~1%20b"}}, "$defs": {"A/ b": {}}}),
    );
    for dialect in [Draft04, Draft07, Draft201909] {
        check(
            dialect,
            json!({"items": [{"type": "string"}, {}], "additionalItems": {"type": "null"}}),
            json!({"prefixItems": [{"type": "string"}, {}], "items": {"type": "null"}}),
        );
        check(
            dialect,
            json!({"items": {"type": "string"}, "additionalItems": {"type": "null"}}),
            json!({"items": {"type": "string"}}),
        );
        check(
            dialect,
            json!({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}),
            json!({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}}),
        );
    }
    check(Draft07, json!({"items": [], "additionalItems": false}), json!({"items": false}));
    check(
        Draft07,
        json!({"definitions": {"a": {}}, "$defs": {"b": {}}}),
        json!({"$defs": {"a": {}, "b": {}}}),
    );
    check(
        Draft07,
        json!({"definitions": {"a": {"type": "null"}}, "$defs": {"a": {}}, "not": {"$ref": "#/definitions/a"}}),
        json!({"definitions": {"a": {"type": "null"}}, "$defs": {"a": {}}, "not": {"$ref": "#/definitions/a"}}),
    );
}

#[test]
fn references_follow_what_they_refer_to() {
    let d7 = Dialect::Draft07;
    check(
        d7,
        json!({"items": [{}, {"definitions": {"x": {}}}], "not": {"$ref": "#/items/1/definitions/x"}}),
        json!({"prefixItems": [{}, {"$defs": {"x": {}}}], "not": {"$ref": "#/prefixItems/1/$defs/x"}}),
    );
    check(
        d7,
        json!({"items": [{}], "additionalItems": {"anyOf": [{"$ref": "#/additionalItems"}, true]}}),
        json!({"prefixItems": [{}], "items": {"anyOf": [{"$ref": "#/items"}, true]}}),
    );
    check(
        d7,
        json!({"dependencies": {"a": {"not": {}}}, "not": {"$ref": "#/dependencies/a/not"}}),
        json!({"dependentSchemas": {"a": {"not": {}}}, "not": {"$ref": "#/dependentSchemas/a/not"}}),
    );
    // A property may have the name of a keyword.
    check(
        d7,
        json!({"properties": {"items": {"items": [{}]}, "definitions": {"$ref": "#/properties/items/items/0"}}}),
        json!({"properties": {"items": {"prefixItems": [{}]}, "definitions": {"$ref": "#/properties/items/prefixItems/0"}}}),
    );
    // What a reference leads to is a schema, wherever it stands.
    check(
        d7,
        json!({"components": {"schemas": {"A": {"items": [{}]}}, "x": 1}, "not": {"$ref": "#/components/schemas/A"}}),
        json!({"components": {"schemas": {"A": {"prefixItems": [{}]}}, "x": 1}, "not": {"$ref": "#/components/schemas/A"}}),
    );
    check(
        d7,
        json!({"extra": {"items": [{}]}, "not": {"$ref": "#/extra"}}),
        json!({"extra": {"prefixItems": [{}]}, "not": {"$ref": "#/extra"}}),
    );
    check(
        d7,
        json!({"definitions": {"a": {"$id": "http://x.example/a.json", "definitions": {"b": {}}, "not": {"$ref": "#/definitions/b"}}},
            "not": {"$ref": "http://x.example/a.json#/definitions/b"}}),
        json!({"$defs": {"a": {"$id": "http://x.example/a.json", "$defs": {"b": {}}, "not": {"$ref": "#/$defs/b"}}},
            "not": {"$ref": "http://x.example/a.json#/$defs/b"}}),
    );
}

#[test]
fn a_schema_names_itself_in_the_new_way() {
    check(
        Dialect::Draft04,
        json!({"id": "http://x.example/root#", "properties": {"id": {"type": "string"}}, "definitions": {"a": {"id": "#foo"}}, "not": {"$ref": "#foo"}}),
        json!({"$id": "http://x.example/root", "properties": {"id": {"type": "string"}}, "$defs": {"a": {"$anchor": "foo"}}, "not": {"$ref": "#foo"}}),
    );
    check(
        Dialect::Draft07,
        json!({"$id": "root.json", "definitions": {"a": {"$id": "a.json#bar"}}, "not": {"$ref": "a.json#bar"}}),
        json!({"$id": "root.json", "$defs": {"a": {"$id": "a.json", "$anchor": "bar"}}, "not": {"$ref": "a.json#bar"}}),
    );
    check(Dialect::Draft07, json!({"id": "x"}), json!({"id": "x"}));
}

#[test]
fn beside_a_reference_only_annotations_stay() {
    let schema = json!({
        "properties": {"a": {"$ref": "#/definitions/A", "description": "d", "default": 1, "type": "string", "minLength": 3, "x-y": {}}},
        "definitions": {"A": {}}
    });
    check(
        Dialect::Draft07,
        schema.clone(),
        json!({"properties": {"a": {"$ref": "#/$defs/A", "description": "d", "default": 1, "x-y": {}}}, "$defs": {"A": {}}}),
    );
    check(
        Dialect::Draft201909,
        schema,
        json!({
            "properties": {"a": {"$ref": "#/$defs/A", "description": "d", "default": 1, "type": "string", "minLength": 3, "x-y": {}}},
            "$defs": {"A": {}}
        }),
    );
    check(
        Dialect::Draft07,
        json!({"$ref": "#/definitions/A", "type": "object", "definitions": {"A": {"type": "object"}}}),
        json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}),
    );
    // A property that is called `$ref` is none.
    check(
        Dialect::Draft07,
        json!({"properties": {"$ref": {"type": "string"}, "b": {"items": [{}]}}}),
        json!({"properties": {"$ref": {"type": "string"}, "b": {"prefixItems": [{}]}}}),
    );
}

#[test]
fn the_flags_of_draft_04_become_limits() {
    let d4 = Dialect::Draft04;
    check(d4, json!({"minimum": 1, "exclusiveMinimum": true}), json!({"exclusiveMinimum": 1}));
    check(d4, json!({"exclusiveMaximum": true, "maximum": 1}), json!({"exclusiveMaximum": 1}));
    check(d4, json!({"minimum": 1, "exclusiveMinimum": false}), json!({"minimum": 1}));
    check(d4, json!({"exclusiveMinimum": true}), json!({}));
    check(
        Dialect::Draft06,
        json!({"exclusiveMinimum": 1, "minimum": 2}),
        json!({"exclusiveMinimum": 1, "minimum": 2}),
    );
}

#[test]
fn what_a_dialect_does_not_know_does_not_begin_to_mean_something() {
    check(
        Dialect::Draft04,
        json!({"const": 1, "if": {}, "examples": [1]}),
        json!({"examples": [1]}),
    );
    check(Dialect::Draft06, json!({"const": 1, "then": {}}), json!({"const": 1}));
    check(
        Dialect::Draft07,
        json!({"if": {}, "prefixItems": [{}], "dependentRequired": {}, "unevaluatedProperties": false}),
        json!({"if": {}}),
    );
    check(
        Dialect::Draft201909,
        json!({"prefixItems": [{}], "minContains": 2}),
        json!({"minContains": 2}),
    );
}

#[test]
fn instance_data_is_left_alone() {
    let data =
        json!([{"$ref": "http://x.example", "definitions": {}, "items": [{}], "$schema": "x"}]);
    let schema =
        json!({"enum": data, "const": data, "default": data, "examples": data, "x-any": data});
    check(Dialect::Draft07, schema.clone(), schema);
}

#[test]
fn recursive_references_become_dynamic_ones() {
    let d2019 = Dialect::Draft201909;
    check(
        d2019,
        json!({"$recursiveAnchor": true, "properties": {"a": {"$recursiveRef": "#"}}}),
        json!({"$dynamicAnchor": "__recursive", "properties": {"a": {"$dynamicRef": "#__recursive"}}}),
    );
    check(
        d2019,
        json!({"properties": {"a": {"$recursiveRef": "#"}}}),
        json!({"properties": {"a": {"$ref": "#"}}}),
    );
    check(
        d2019,
        json!({"properties": {"a": {"$recursiveRef": "#", "$ref": "#/$defs/x", "allOf": [{}]}}, "$defs": {"x": {}}}),
        json!({"properties": {"a": {"$ref": "#/$defs/x", "allOf": [{}, {"$ref": "#"}]}}, "$defs": {"x": {}}}),
    );
}

#[test]
fn a_part_may_be_of_another_dialect_than_the_whole() {
    let schema = json!({
        "properties": {"a": {"$schema": uri(Dialect::Draft07), "items": [{"$ref": "#/properties/a/items/0"}]}},
        "prefixItems": [{"items": {}}]
    });
    assert_eq!(
        converted(&schema),
        Ok(json!({
            "properties": {"a": {"prefixItems": [{"$ref": "#/properties/a/prefixItems/0"}]}},
            "prefixItems": [{"items": {}}]
        }))
    );
}

#[test]
fn what_cannot_be_converted_is_told() {
    let d7 = Dialect::Draft07;
    check_error(
        d7,
        json!({"not": {"$ref": "http://json-schema.org/draft-07/schema#"}}),
        "the reference `http://json-schema.org/draft-07/schema#` leads out of the schema, and nothing is fetched",
    );
    check_error(
        d7,
        json!({"not": {"$ref": "#/definitions/A"}}),
        "the reference `#/definitions/A` leads nowhere",
    );
    check_error(d7, json!({"not": {"$ref": "#A"}}), "the reference `#A` leads nowhere");
    check_error(
        d7,
        json!({"additionalItems": {"type": "null"}, "not": {"$ref": "#/additionalItems"}}),
        "the reference `#/additionalItems` leads to what 2020-12 has no place for",
    );
    check_error(
        Dialect::Draft201909,
        json!({"contains": {}, "unevaluatedItems": false}),
        "`unevaluatedItems` together with `contains` cannot be said in 2020-12",
    );
    check_error(
        d7,
        json!({"not": {"$schema": "http://json-schema.org/draft-03/schema#"}}),
        "the dialect `http://json-schema.org/draft-03/schema#` is not known",
    );
}

/// Compiles without `format`, which 2020-12 does not check.
fn validator(dialect: Dialect, schema: &Value) -> Validator {
    jsonschema::options()
        .with_draft(dialect.draft())
        .should_validate_formats(false)
        .with_pattern_options(PatternOptions::fancy_regex())
        .build(schema)
        .unwrap_or_else(|error| panic!("{schema}: {error}"))
}

#[track_caller]
fn check_equivalent(dialect: Dialect, schema: &Value, instances: &[Value]) {
    let old = validator(dialect, schema);
    let published = converted(&declare(dialect, schema)).unwrap();
    let new = validator(Dialect::Draft202012, &published);
    for instance in instances {
        assert_eq!(
            new.is_valid(instance),
            old.is_valid(instance),
            "{dialect:?} {schema}\nbecame {published}\nfor {instance}"
        );
    }
}

fn instances() -> Vec<Value> {
    let values = json!([
        null, true, 0, 1, 2, 3, 1.5, -1, "", "a", "abc", "2024-01-01", [], [1], ["a"], ["a", 1], ["a", 1, null], [1, 1],
        [[1], ["a"]], {}, {"a": 1}, {"a": "x"}, {"b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": "x", "c": null}, {"c": {"a": 1}},
        {"c": {"c": {"c": {}}}}, {"c": {"c": {"c": {"a": "x"}}}}, {"a": ["a", 1, null]}, {"a": {"b": 1}}, {"xa": 1}, {"x": [1]},
        {"a": null, "d": 1}, {"d": 1, "e": 2}, {"kind": "k", "v": 1}, {"kind": "k", "v": "x"}, {"kind": "o", "v": "x"}
    ]);
    values.as_array().unwrap().clone()
}

#[test]
fn a_converted_schema_accepts_the_same_values() {
    let schemas = json!([
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"$ref": "#/definitions/n"}}, "definitions": {"n": {"type": "number", "minimum": 1}}},
        {"properties": {"a": {"$ref": "#/definitions/n", "type": "string"}}, "definitions": {"n": {"type": "number"}}},
        {"$ref": "#/definitions/o", "type": "string", "definitions": {"o": {"type": "object", "maxProperties": 1}}},
        {"properties": {"c": {"$ref": "#"}}, "additionalProperties": {"type": "integer"}},
        {"items": [{"type": "string"}, {"type": "integer"}]},
        {"items": [{"type": "string"}, {"type": "integer"}], "additionalItems": false},
        {"items": [{"type": "string"}], "additionalItems": {"type": "integer"}},
        {"items": {"type": "integer"}, "additionalItems": false},
        {"additionalItems": false},
        {"items": [{"items": [{"type": "integer"}]}], "additionalItems": {"$ref": "#/items/0/items/0"}},
        {"dependencies": {"a": ["b"], "d": {"required": ["e"]}}},
        {"dependencies": {"a": {"properties": {"b": {"type": "string"}}}}},
        {"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": false, "properties": {"a": {}}},
        {"anyOf": [{"type": "string"}, {"$ref": "#/definitions/l"}], "definitions": {"l": {"type": "array", "uniqueItems": true}}},
        {"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]},
        {"not": {"type": "object"}},
        {"allOf": [{"type": "object"}, {"minProperties": 2}]},
        {"enum": [1, "a", {"a": 1}]},
        {"type": ["object", "null"], "properties": {"a": {"enum": [null, 1]}}},
        {"definitions": {"a": {"type": "integer"}, "b": {"$ref": "#/definitions/a"}}, "additionalProperties": {"$ref": "#/definitions/b"}},
        {"extra": {"t": {"items": [{"type": "string"}]}}, "properties": {"a": {"$ref": "#/extra/t"}}},
        {"type": "string", "pattern": "^(?!x).*$", "minLength": 1},
        {"multipleOf": 0.5, "maximum": 2}
    ]);
    for schema in schemas.as_array().unwrap() {
        for dialect in [Dialect::Draft04, Dialect::Draft06, Dialect::Draft07, Dialect::Draft201909]
        {
            check_equivalent(dialect, schema, &instances());
        }
    }
}

#[test]
fn a_converted_draft_04_schema_accepts_the_same_values() {
    let schemas = json!([
        {"minimum": 1, "exclusiveMinimum": true},
        {"maximum": 2, "exclusiveMaximum": true, "minimum": 1, "exclusiveMinimum": false},
        {"id": "http://x.example/s", "properties": {"a": {"$ref": "#n"}}, "definitions": {"n": {"id": "#n", "type": "string"}}},
        {"const": 1, "propertyNames": {"maxLength": 1}, "contains": {"type": "null"}, "if": {"type": "object"}, "then": false},
        {"items": [{}, {}], "additionalItems": false}
    ]);
    for schema in schemas.as_array().unwrap() {
        check_equivalent(Dialect::Draft04, schema, &instances());
    }
}

#[test]
fn a_converted_draft_07_schema_accepts_the_same_values() {
    let schemas = json!([
        {"const": {"a": 1}},
        {"contains": {"type": "string"}, "minContains": 2},
        {"propertyNames": {"maxLength": 1}},
        {"items": true, "properties": {"a": false}},
        {"exclusiveMinimum": 1, "exclusiveMaximum": 3},
        {"if": {"properties": {"kind": {"const": "k"}}, "required": ["kind"]}, "then": {"properties": {"v": {"type": "integer"}}}, "else": {"maxProperties": 2}},
        {"prefixItems": [{"type": "null"}], "dependentRequired": {"a": ["zz"]}, "unevaluatedProperties": false},
        {"$id": "http://x.example/s.json", "properties": {"a": {"$ref": "s.json#/definitions/t"}}, "definitions": {"t": {"type": "integer"}}},
        {"properties": {"c": {"$ref": "#tree"}}, "definitions": {"t": {"$id": "#tree", "properties": {"c": {"$ref": "#tree"}}, "additionalProperties": false}}},
        {"properties": {"c": {"$ref": "http://x.example/t"}}, "definitions": {"t": {"$id": "http://x.example/t", "properties": {"c": {"$ref": "#"}, "a": {"$ref": "#/definitions/i"}}, "definitions": {"i": {"type": "integer"}}}}},
        {"format": "date", "type": "string"},
        {"$comment": "c", "readOnly": true, "title": "t", "default": {"$ref": "#/nowhere"}},
        {"$defs": {"a": {"items": [{"type": "string"}]}}, "properties": {"a": {"$ref": "#/$defs/a"}}}
    ]);
    for schema in schemas.as_array().unwrap() {
        check_equivalent(Dialect::Draft07, schema, &instances());
    }
}

#[test]
fn a_converted_2019_09_schema_accepts_the_same_values() {
    let schemas = json!([
        {"$recursiveAnchor": true, "properties": {"c": {"$recursiveRef": "#"}}, "additionalProperties": {"type": "integer"}},
        {"properties": {"c": {"$recursiveRef": "#"}}, "additionalProperties": {"type": "integer"}},
        {"$recursiveAnchor": true, "$ref": "http://x.example/tree", "unevaluatedProperties": false,
            "$defs": {"tree": {"$id": "http://x.example/tree", "$recursiveAnchor": true, "properties": {"c": {"$recursiveRef": "#"}, "a": {"type": "integer"}}}}},
        {"properties": {"a": {"$ref": "#/$defs/n", "maximum": 1}}, "$defs": {"n": {"type": "integer"}}},
        {"properties": {"a": {"$ref": "#n"}}, "$defs": {"n": {"$anchor": "n", "type": "integer"}}},
        {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"d": {"required": ["e"]}}},
        {"items": [{"type": "string"}], "unevaluatedItems": false},
        {"items": [{"type": "string"}], "additionalItems": {"type": "integer"}, "unevaluatedItems": false},
        {"properties": {"a": {}}, "unevaluatedProperties": false},
        {"contains": {"type": "integer"}, "minContains": 2, "maxContains": 2},
        {"prefixItems": [{"type": "null"}]}
    ]);
    for schema in schemas.as_array().unwrap() {
        check_equivalent(Dialect::Draft201909, schema, &instances());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_converted_schema_accepts_the_same_values(
        dialect in prop::sample::select(&[Dialect::Draft06, Dialect::Draft07, Dialect::Draft201909][..]),
        definitions in prop::collection::vec(schemas(0), 3),
        root in schemas(3),
        values in prop::collection::vec(values(), 12),
    ) {
        let Value::Object(mut schema) = root else {
            return Ok(());
        };
        for (number, definition) in definitions.into_iter().enumerate() {
            insert(&mut schema, "definitions", &format!("d{number}"), definition);
        }
        check_equivalent(dialect, &Value::Object(schema), &values);
    }

    #[test]
    fn no_schema_panics(schema in values()) {
        if schema.is_object() {
            for dialect in [Dialect::Draft04, Dialect::Draft07, Dialect::Draft201909] {
                let _unused = Scan::new(&schema, dialect).and_then(|scan| convert(&scan));
            }
        }
    }
}

/// Schemas of the drafts 06 to 2019-09, which may refer to the first few definitions.
fn schemas(definitions: usize) -> BoxedStrategy<Value> {
    let reference = (0..definitions.max(1), 0..4).prop_map(move |(number, beside)| {
        let mut schema = match definitions {
            0 => json!({"type": "integer"}),
            _ => json!({"$ref": format!("#/definitions/d{number}")}),
        };
        if beside == 0 {
            schema["type"] = json!("string");
        }
        schema
    });
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        prop::sample::select(&["string", "integer", "object", "array", "null"][..])
            .prop_map(|name| json!({"type": name})),
        (-1..3).prop_map(|limit| json!({"minimum": limit, "exclusiveMaximum": limit + 2})),
        (0..3).prop_map(
            |limit| json!({"maxLength": limit, "minItems": limit, "maxProperties": limit})
        ),
        values().prop_map(|value| json!({"const": value})),
        prop::collection::vec("[a-c]", 0..3).prop_map(|names| {
            let names: std::collections::BTreeSet<String> = names.into_iter().collect();
            json!({"required": names})
        }),
        reference,
    ];
    leaf.prop_recursive(3, 20, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3);
        let map = prop::collection::btree_map("[a-c]", inner.clone(), 0..3);
        prop_oneof![
            (list.clone(), inner.clone())
                .prop_map(|(items, more)| json!({"items": items, "additionalItems": more})),
            inner.clone().prop_map(|items| json!({"items": items, "additionalItems": false})),
            (map.clone(), inner.clone()).prop_map(
                |(known, more)| json!({"properties": known, "additionalProperties": more})
            ),
            map.prop_map(|needs| json!({"dependencies": needs})),
            ("[a-c]", "[a-c]").prop_map(|(has, needs)| json!({"dependencies": {has: [needs]}})),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| json!({"if": a, "then": b, "else": c})),
            list.clone().prop_map(|any| json!({"anyOf": any})),
            list.clone().prop_map(|one| json!({"oneOf": one})),
            list.prop_map(|all| json!({"allOf": all})),
            inner.clone().prop_map(|not| json!({"not": not})),
            inner.clone().prop_map(|some| json!({"contains": some})),
            inner.prop_map(|names| json!({"propertyNames": names, "prefixItems": [names]})),
        ]
    })
    .boxed()
}

fn values() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1..4).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(
                prop::sample::select(
                    &[
                        "a",
                        "b",
                        "c",
                        "items",
                        "$ref",
                        "$id",
                        "properties",
                        "definitions",
                        "dependencies"
                    ][..]
                ),
                inner,
                0..4
            )
            .prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<Map<_, _>>()
                .into()),
        ]
    })
    .boxed()
}
