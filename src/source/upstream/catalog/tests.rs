//! What is left out, what is put right, and that the others stay.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn catalog(tools: Value) -> Catalog {
    build("srv", &Filter::default(), &[json!({"tools": tools})])
}

/// Builds the catalog of one tool with an input schema.
fn with_input(schema: Value) -> Catalog {
    catalog(json!([{"name": "t", "description": "d", "inputSchema": schema}]))
}

fn messages(catalog: &Catalog) -> Vec<String> {
    let shown = |diagnostic: &Diagnostic| format!("{:?} {diagnostic}", diagnostic.severity);
    catalog.diagnostics.iter().map(shown).collect()
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.tools.iter().map(|tool| tool.wire_name.as_str()).collect()
}

/// The tool is left out, for a reason.
#[track_caller]
fn check_excluded(schema: Value, reason: &str) {
    let catalog = with_input(schema.clone());
    assert_eq!(names(&catalog), Vec::<&str>::new(), "{schema}");
    let expected = format!("Error srv: t: the tool is left out: {reason}");
    assert_eq!(messages(&catalog), [expected], "{schema}");
    let diagnostic = serde_json::to_value(&catalog.diagnostics[0]).unwrap();
    for (field, value) in [
        ("code", "MCP_TOOL_INVALID"),
        ("stage", "catalog"),
        ("field", "input_schema"),
        ("wire_name", "t"),
    ] {
        assert_eq!(diagnostic[field], value);
    }
}

/// The tool is published with a schema of its own, and what is told of it.
#[track_caller]
fn check_published(schema: Value, expected: Value, notes: &[&str]) {
    let catalog = with_input(schema.clone());
    assert_eq!(messages(&catalog), notes, "{schema}");
    assert_eq!(names(&catalog), ["t"], "{schema}");
    assert_eq!(catalog.tools[0].raw["inputSchema"], expected, "{schema}");
}

#[test]
fn a_plain_tool_goes_through_untouched() {
    let tool = json!({
        "name": "read-file", "title": "Read", "description": "Reads.", "_meta": {"x": {"y": 1}}, "annotations": {"readOnlyHint": true, "x": 1},
        "inputSchema": {"type": "object", "x-own": 1, "properties": {"p": {"type": "string"}}},
        "outputSchema": {"type": "object"}, "icons": [{"src": "https://x.example/i.png", "sizes": ["16x16"]}], "new-in-2030": [1]
    });
    let catalog = catalog(json!([tool]));
    assert_eq!(messages(&catalog), Vec::<String>::new());
    let [entry] = catalog.tools.as_slice() else { panic!("{catalog:?}") };
    assert_eq!(Value::Object(Map::clone(&entry.raw)), tool);
    assert_eq!(entry.public_name, public_name("srv", "read-file"));
    assert_eq!((entry.title.as_deref(), entry.description.as_str()), (Some("Read"), "Reads."));
    assert!(entry.read_only_hint);
    assert!(entry.input_schema.document().contains_key("required"));
    let output = entry.output_schema.as_ref().unwrap();
    assert_eq!(output.check(&json!({})), Ok(()));
    assert!(output.check(&json!(1)).is_err());
}

#[test]
fn t21_filters_come_before_schemas() {
    let tools = json!({"tools": [
        {"name": "bad", "inputSchema": {"type": "string"}},
        {"name": "good", "inputSchema": {"type": "object"}},
        {"name": "other", "inputSchema": {"type": "object"}}
    ]});
    let build_with = |enabled: Option<&[&str]>, disabled: &[&str]| {
        let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let filter = Filter { enabled: enabled.map(own), disabled: own(disabled) };
        build("srv", &filter, std::slice::from_ref(&tools))
    };
    // What is said is that they are hidden, and nothing of their schemas.
    let of_schemas = |catalog: &Catalog| {
        let diagnostics = catalog.diagnostics.iter();
        diagnostics.filter(|diagnostic| diagnostic.wire_name.is_some()).count()
    };
    let none = build_with(Some(&[]), &[]);
    assert_eq!((names(&none), of_schemas(&none)), (vec![], 0));
    let some = build_with(None, &["bad", "other"]);
    assert_eq!((names(&some), of_schemas(&some)), (vec!["good"], 0));
    let both = build_with(Some(&["good", "other", "absent"]), &["other"]);
    assert_eq!((names(&both), of_schemas(&both)), (vec!["good"], 0));
}

#[test]
fn t21_a_reference_must_stay_within_the_schema() {
    let property = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    check_excluded(
        property(json!({"$ref": "#/$defs/Missing"})),
        "the reference `#/$defs/Missing` leads nowhere",
    );
    check_excluded(
        property(json!({"$ref": "https://example.com/s.json"})),
        "the reference `https://example.com/s.json` leads out of the schema, and nothing is fetched",
    );
    check_excluded(
        property(json!({"$dynamicRef": "#meta"})),
        "the reference `#meta` leads nowhere",
    );
    check_excluded(
        json!({"type": "object", "$defs": {"unused": {"$ref": "file:///etc/passwd"}}}),
        "the reference `file:///etc/passwd` leads out of the schema, and nothing is fetched",
    );
    let reference = json!({"$ref": "https://example.com/s.json"});
    let schema = property(json!({
        "examples": [reference], "const": reference, "enum": [reference], "default": reference, "x-any": reference
    }));
    check_published(schema.clone(), schema, &[]);
    let schema = json!({
        "type": "object", "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#b"}, "c": {"$dynamicRef": "#c"}, "d": {"$ref": "d.json"}},
        "$defs": {"a": {}, "b": {"$anchor": "b"}, "c": {"$dynamicAnchor": "c"}, "d": {"$id": "d.json"}}
    });
    check_published(schema.clone(), schema, &[]);
}

#[test]
fn t21_an_older_dialect_is_published_as_2020_12() {
    check_published(
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {"a": {"$ref": "#/definitions/pair"}}, "definitions": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}}}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "properties": {"a": {"$ref": "#/$defs/pair"}}, "$defs": {"pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}}}),
        &[],
    );
    let schema =
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema#", "type": "object"});
    check_published(schema.clone(), schema, &[]);
    check_excluded(
        json!({"$schema": "https://example.com/meta", "type": "object"}),
        "the dialect `https://example.com/meta` is not known",
    );
    check_excluded(
        json!({"type": "object", "properties": {"a": {"$schema": "http://json-schema.org/draft-03/schema#"}}}),
        "the dialect `http://json-schema.org/draft-03/schema#` is not known",
    );
    check_excluded(json!({"$schema": 7, "type": "object"}), "the dialect `7` is not known");
}

#[test]
fn the_arguments_of_a_converted_tool_are_checked() {
    let catalog = with_input(json!({
        "$schema": "http://json-schema.org/draft-04/schema#", "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0, "exclusiveMinimum": true}}
    }));
    let schema = &catalog.tools[0].input_schema;
    let arguments = |n: i64| json!({"n": n}).as_object().unwrap().clone();
    assert_eq!(schema.check(arguments(1)), Ok(arguments(1)));
    assert!(schema.check(arguments(0)).is_err());
}

#[test]
fn a_schema_that_forgets_its_dialect_is_read_as_what_it_is() {
    check_published(
        json!({"type": "object", "properties": {"a": {"items": [{}, {}], "type": "array"}}}),
        json!({"type": "object", "properties": {"a": {"prefixItems": [{}, {}], "type": "array"}}}),
        &["Info srv: t: it declares no dialect and was read as draft-07"],
    );
    check_published(
        json!({"type": "object", "properties": {"a": {"minimum": 1, "exclusiveMinimum": true}}}),
        json!({"type": "object", "properties": {"a": {"exclusiveMinimum": 1}}}),
        &["Info srv: t: it declares no dialect and was read as draft-04"],
    );
}

#[test]
fn what_the_declared_dialect_forbids_but_2020_12_allows_is_told_and_served() {
    check_published(
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "required": []}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "required": []}),
        &[
            "Info srv: t: it is not valid draft-04: the schema does not compile: /required: [] has less than 1 item",
        ],
    );
}

#[test]
fn what_is_safe_is_put_right() {
    let added = &["Info srv: t: `type: object` was added"];
    check_published(
        json!({"properties": {"a": {}}}),
        json!({"properties": {"a": {}}, "type": "object"}),
        added,
    );
    check_published(json!({}), json!({"type": "object"}), added);
    check_published(json!({"type": ["object", "null"]}), json!({"type": "object"}), added);
    check_published(json!({"type": null}), json!({"type": "object"}), added);
    check_published(
        json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"}),
        added,
    );
    check_published(
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/A", "definitions": {"A": {"type": "object"}}}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}, "type": "object"}),
        added,
    );
    check_published(
        json!(null),
        json!({"type": "object", "properties": {}}),
        &["Info srv: t: there was none, so any arguments are taken"],
    );
    let missing = catalog(json!([{"name": "t"}]));
    assert_eq!(missing.tools[0].raw["inputSchema"], json!({"type": "object", "properties": {}}));
    check_published(
        json!({"type": "object", "properties": {"a": {"pattern": "(["}, "b": {"anyOf": [{"pattern": "\\p{Nope}"}, {"pattern": "^a"}]}}}),
        json!({"type": "object", "properties": {"a": {}, "b": {"anyOf": [{}, {"pattern": "^a"}]}}}),
        &[
            "Info srv: t: the pattern at /properties/a is not understood and was dropped; the pattern at /properties/b/anyOf/0 is not understood and was dropped",
        ],
    );
}

#[test]
fn what_is_no_schema_of_an_object_is_left_out() {
    check_excluded(json!({"type": "string"}), "the schema must be about an object");
    check_excluded(json!({"type": ["string", "null"]}), "the schema must be about an object");
    check_excluded(json!(true), "the schema is a boolean, not an object");
    check_excluded(json!([]), "the schema is an array, not an object");
    check_excluded(
        json!({"type": "object", "properties": {"required": ["a"]}}),
        "the schema is not valid: /properties/required: [\"a\"] is not of types \"boolean\", \"object\"",
    );
    check_excluded(
        json!({"type": "object", "properties": {"a": {"type": "objekt"}}}),
        "the schema is not valid: /properties/a/type: \"objekt\" is not valid under any of the schemas listed in the 'anyOf' keyword",
    );
}

#[test]
fn a_schema_has_bounds() {
    let nested = |levels| {
        (0..levels)
            .fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}))
    };
    let schema = json!({"type": "object", "properties": {"a": nested(60)}});
    check_published(schema.clone(), schema, &[]);
    let deep = json!({"type": "object", "properties": {"a": nested(100)}});
    check_excluded(deep, "the schema nests more than 100 levels deep");
    let large = json!({"type": "object", "description": "x".repeat(1024 * 1024)});
    check_excluded(large, "the schema is larger than 1048576 bytes");
    let key = "k".repeat(5_000);
    check_excluded(
        json!({"type": "object", "properties": {key: {}}}),
        "the schema is too involved: checking one value could take too long",
    );
    let long = format!("#{}", "/a".repeat(400_000));
    let shown = format!("the reference `{}…` leads nowhere", &long[..200]);
    check_excluded(json!({"type": "object", "not": {"$ref": long}}), &shown);
}

/// A schema whose property `a` leads through so many definitions, each made of the next.
fn chain(length: usize, link: impl Fn(Value) -> Value, end: Value) -> Value {
    let links = (0..length).map(|number| {
        (format!("a{number}"), link(json!({"$ref": format!("#/$defs/a{}", number + 1)})))
    });
    let end = std::iter::once((format!("a{length}"), end));
    let definitions: Map<String, Value> = links.chain(end).collect();
    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a0"}}, "$defs": definitions})
}

#[test]
fn a_schema_cannot_stand_for_endless_work() {
    let double = |next: Value| json!({"allOf": [next, next]});
    let involved = "the schema is too involved: checking one value could take too long";
    check_excluded(chain(14, double, json!({})), involved);
    check_excluded(chain(90, double, json!({})), involved);
    let schema = chain(13, double, json!({}));
    check_published(schema.clone(), schema.clone(), &[]);
    let arguments = json!({"a": {}}).as_object().unwrap().clone();
    assert!(with_input(schema).tools[0].input_schema.check(arguments).is_ok());

    check_excluded(chain(9_000, |next| next, json!({})), involved);
    check_excluded(chain(12_000, |next| json!({"items": next}), json!({})), involved);
    check_excluded(
        chain(1, |next| json!({"anyOf": [next]}), json!({"not": {"$ref": "#/$defs/a0"}})),
        "the schema refers to itself without end",
    );
    check_excluded(json!({"$ref": "#"}), "the schema refers to itself without end");
}

#[test]
fn the_most_involved_schema_fits_the_stack_for_the_deepest_arguments() {
    let end = json!({"properties": {"a": {"$ref": "#/$defs/a0"}}, "required": ["b"]});
    let one_of = |next: Value| json!({"oneOf": [next, {"type": "null"}]});
    let schema = chain(2, one_of, end.clone());
    let catalog = with_input(schema);
    assert_eq!(messages(&catalog), Vec::<String>::new());
    let deepest = (0..126).fold(json!({}), |inner, _| json!({"a": inner}));
    let arguments = deepest.as_object().unwrap().clone();
    assert!(catalog.tools[0].input_schema.check(arguments).is_err());
    let involved = "the schema is too involved: checking one value could take too long";
    check_excluded(chain(4, one_of, end), involved);
    // Where nothing comes back to itself, the same length is no matter.
    let schema = chain(12, one_of, json!({}));
    check_published(schema.clone(), schema, &[]);
}

#[test]
fn many_changes_are_told_in_a_few_words() {
    let properties: Map<String, Value> =
        (0..8).map(|number| (format!("p{number}"), json!({"pattern": "(["}))).collect();
    let catalog = with_input(json!({"type": "object", "properties": properties}));
    let message = &catalog.diagnostics[0].message;
    assert!(
        message
            .ends_with("at /properties/p4 is not understood and was dropped; and 3 more like it"),
        "{message}"
    );
}

#[test]
fn a_message_repeats_little_of_what_an_upstream_says() {
    let reference = format!("https://x.example/\u{1b}[31m{}", "y".repeat(10_000));
    let catalog = with_input(json!({"type": "object", "not": {"$ref": reference}}));
    let message = &catalog.diagnostics[0].message;
    assert!(message.len() < 400 && !message.contains('\u{1b}'), "{message}");
}

#[test]
fn a_bad_output_schema_is_dropped_and_the_tool_stays() {
    let with_output = |schema: Value| {
        let catalog = catalog(
            json!([{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}]),
        );
        let raw = catalog.tools[0].raw.get("outputSchema").cloned();
        assert_eq!(catalog.tools[0].output_schema.is_some(), raw.is_some());
        (raw, messages(&catalog))
    };
    let dropped = |schema: Value, reason: &str| {
        let message = format!("Warning srv: t: the output schema is dropped: {reason}");
        assert_eq!(with_output(schema), (None, vec![message]));
    };
    dropped(json!({"$ref": "#/nowhere"}), "the reference `#/nowhere` leads nowhere");
    dropped(json!(false), "the schema is a boolean, not an object");
    dropped(
        json!({"type": 5}),
        "the schema is not valid: /type: 5 is not valid under any of the schemas listed in the 'anyOf' keyword",
    );
    assert_eq!(with_output(json!(null)), (None, vec![]));
    assert_eq!(
        with_output(json!({"properties": {"a": {}}})),
        (
            Some(json!({"properties": {"a": {}}, "type": "object"})),
            vec!["Info srv: t: `type: object` was added".to_owned()]
        )
    );
    let array = json!({"type": "array", "items": {}});
    assert_eq!(with_output(array.clone()), (Some(array), vec![]));
    assert_eq!(
        with_output(
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "definitions": {}})
        ),
        (
            Some(
                json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "$defs": {}})
            ),
            vec![]
        )
    );
}

#[test]
fn what_is_no_tool_is_told_and_the_others_stay() {
    let pages = [
        json!({"tools": ["x", {"inputSchema": {}}, {"name": 5}, {"name": ""}, {"name": "a", "inputSchema": {"type": "object"}}]}),
        json!({"nothing": 1}),
        json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}, {"name": "b", "inputSchema": {"type": "object"}}]}),
    ];
    let catalog = build("srv", &Filter::default(), &pages);
    assert_eq!(names(&catalog), ["a", "b"]);
    assert_eq!(
        messages(&catalog),
        [
            "Error srv: entry 1 of the list is no object, so no tool",
            "Error srv: entry 2 of the list has no name",
            "Error srv: entry 3 of the list has no name",
            "Error srv: entry 4 of the list has no name",
            "Error srv: a page of the list has no tools",
            "Warning srv: a: the tool is listed twice; the first one counts",
        ]
    );
}

#[test]
fn a_tool_without_a_description_gets_one() {
    let schema = json!({"type": "object"});
    let catalog = catalog(json!([
        {"name": "a", "inputSchema": schema}, {"name": "b", "inputSchema": schema, "description": ""},
        {"name": "c", "inputSchema": schema, "description": null, "annotations": {"title": "C"}}
    ]));
    let descriptions: Vec<&str> =
        catalog.tools.iter().map(|tool| tool.description.as_str()).collect();
    assert_eq!(descriptions, ["MCP tool a from srv", "MCP tool b from srv", "MCP tool c from srv"]);
    assert_eq!(catalog.tools[2].title.as_deref(), Some("C"));
    assert!(!catalog.tools[2].raw.contains_key("description"));
    assert!(catalog.diagnostics.is_empty());
}

#[test]
fn a_field_that_a_strict_client_would_choke_on_goes() {
    let tool = json!({
        "name": "t", "inputSchema": {"type": "object"}, "title": 5, "description": ["d"], "_meta": null,
        "annotations": {"readOnlyHint": "yes", "destructiveHint": null, "title": "T", "idempotentHint": true},
        "icons": [{"src": "https://x.example"}, {"sizes": ["1x1"]}, {"src": "x", "sizes": "any"}], "execution": {"taskSupport": "maybe"}
    });
    let catalog = catalog(json!([tool]));
    assert_eq!(
        Value::Object(Map::clone(&catalog.tools[0].raw)),
        json!({
            "name": "t", "inputSchema": {"type": "object"}, "annotations": {"title": "T", "idempotentHint": true},
            "icons": [{"src": "https://x.example"}]
        })
    );
    assert!(!catalog.tools[0].read_only_hint);
    assert_eq!(
        messages(&catalog),
        [
            "Warning srv: t: `title` is not what it should be and is dropped",
            "Warning srv: t: `description` is not what it should be and is dropped",
            "Warning srv: t: `execution` is not what it should be and is dropped",
            "Warning srv: t: the hint `readOnlyHint` is not what it should be and is dropped",
            "Warning srv: t: an icon is not what it should be and is dropped",
        ]
    );
}

#[test]
fn one_bad_tool_costs_no_other() {
    let catalog = catalog(json!([
        {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
        {"name": "string", "inputSchema": {"type": "string"}},
        {"name": "any_of", "inputSchema": {"anyOf": [{"type": "object"}, {"type": "null"}]}},
        {"name": "missing", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/Missing"}}}},
        {"name": "output", "inputSchema": {"type": "object"}, "outputSchema": {"properties": {"a": {"type": "string"}}}},
        {"name": "required", "inputSchema": {"type": "object", "properties": {"required": ["text"]}}}
    ]));
    assert_eq!(names(&catalog), ["echo", "any_of", "output"]);
    let told: Vec<&str> = catalog
        .diagnostics
        .iter()
        .filter_map(|diagnostic| diagnostic.wire_name.as_deref())
        .collect();
    assert_eq!(told, ["string", "any_of", "missing", "output", "required"]);
}

proptest! {
    #[test]
    fn nothing_an_upstream_lists_panics(tools in prop::collection::vec(any_json(), 0..4)) {
        let catalog = build("srv", &Filter::default(), &[json!({"tools": tools})]);
        for tool in catalog.tools {
            prop_assert!(jsonschema::meta::is_valid(&tool.raw["inputSchema"]));
            prop_assert_eq!(&tool.raw["inputSchema"]["type"], "object");
        }
    }
}

fn any_json() -> BoxedStrategy<Value> {
    let words = prop::sample::select(
        &[
            "name",
            "inputSchema",
            "outputSchema",
            "type",
            "object",
            "properties",
            "$ref",
            "#/properties/a",
            "#",
            "$schema",
            "http://json-schema.org/draft-07/schema#",
            "items",
            "definitions",
            "a",
            "annotations",
            "icons",
            "required",
            "pattern",
            "$id",
        ][..],
    );
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        words.clone().prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(5, 30, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((words.clone(), inner), 0..5).prop_map(|members| {
                members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect::<Map<_, _>>()
                    .into()
            }),
        ]
    });
    (tree.clone(), tree)
        .prop_map(|(tool, schema)| match tool {
            Value::Object(mut tool) => {
                tool.insert("name".to_owned(), json!("t"));
                tool.insert("inputSchema".to_owned(), schema);
                Value::Object(tool)
            }
            other => other,
        })
        .boxed()
}

#[test]
fn what_the_operator_does_not_want_is_told_and_a_typing_error_too() {
    let tools = json!([
        {"name": "read_file", "inputSchema": {"type": "object"}},
        {"name": "write_file", "inputSchema": {"type": "object"}},
        {"name": "move_file", "inputSchema": {"type": "object"}}
    ]);
    let filter = Filter {
        enabled: Some(vec!["read_file".into(), "wirte_file".into(), "move_file".into()]),
        disabled: vec!["move_file".into(), "x".into()],
    };
    let catalog = build("srv", &filter, &[json!({"tools": tools})]);
    assert_eq!(names(&catalog), ["read_file"]);
    assert_eq!(
        messages(&catalog),
        [
            "Info srv: not wanted by enabled_tools or disabled_tools: write_file, move_file",
            "Warning srv: enabled_tools names `wirte_file`, which is no tool of this server; did you mean `write_file`?",
            "Warning srv: disabled_tools names `x`, which is no tool of this server",
        ]
    );
    let many: Vec<Value> = (0..30).map(|number| json!({"name": format!("t{number}")})).collect();
    let none = Filter { enabled: Some(vec![]), disabled: vec![] };
    let catalog = build("srv", &none, &[json!({"tools": many})]);
    assert!(messages(&catalog)[0].ends_with(", t18, t19 and 10 more"), "{:?}", messages(&catalog));
}
