//! The names that are shipped do what Iris's own do, as far as its behaviour is on record, and work
//! without a gateway.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{agent, interpreter, session};
use crate::binary::{Ended, command, exe, run};
use crate::fixture::Home;

/// Runs a program in Python, with what `iris-mcp package` writes.
fn python(home: &Home, arguments: &[&str]) -> Ended {
    if !home.file("lib").exists() {
        let mut package = command(exe());
        package.args(["package", &home.path("lib")]);
        let package = run(package, Duration::from_secs(10));
        assert_eq!(package.code, Some(0), "{package:?}");
    }
    let mut python = command(interpreter());
    python.args(arguments).env("PYTHONPATH", home.path("lib")).env("PYTHONDONTWRITEBYTECODE", "1");
    run(python, Duration::from_secs(30))
}

#[test]
fn functions_become_what_iris_makes_of_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let recorded = fs::read_to_string(folder.join("expected.json")).expect("readable");
    let recorded: Vec<Value> = serde_json::from_str(&recorded).expect("JSON");
    let script = folder.join("record.py");
    let ours = python(&Home::new(), &[script.to_str().expect("a text")]);
    assert_eq!(ours.code, Some(0), "{ours:?}");
    let ours: Vec<Value> = serde_json::from_str(&ours.stdout).expect("JSON");
    for (ours, recorded) in ours.iter().zip(&recorded) {
        assert_eq!(ours, recorded);
    }
    assert_eq!((ours.len(), recorded.len()), (22, 22));
}

#[test]
fn tools_and_hooks_can_be_tested_without_a_gateway() {
    let home = Home::new();
    let test = r#"
import asyncio, pathlib, sys
from iris.exceptions import IrisToolNotFoundError, IrisToolRegistrationError
from iris.hooks import HookRegistration, ToolBeforeEvent, ToolBeforeResult, event_to_dict
from iris.tools import ToolExecutionContext, ToolExecutor, ToolRegistry, tool

registry = ToolRegistry()

@tool(registry=registry)
def half(number: int) -> float:
    if number == 3:
        raise ValueError("odd")
    return number / 2

executor = ToolExecutor(registry)
context = ToolExecutionContext(workspace_root=pathlib.Path("."))
def call(**arguments):
    return asyncio.run(executor.execute_one({"id": "1", "name": "half", "input": arguments}, context))
assert call(number="4").model_content == "2.0"
assert call(number=3).model_content == "Error[EXECUTION_ERROR]: odd"
assert call(number="x").error.code == "VALIDATION_ERROR"
try:
    registry.register_function(half)
    raise SystemExit("twice")
except IrisToolRegistrationError:
    pass
try:
    registry.get("third")
    raise SystemExit("it is not there")
except IrisToolNotFoundError:
    pass

async def before(event):
    return ToolBeforeResult(deny_reason="no")
event = ToolBeforeEvent(agent_id="a", session_id="s", workspace="/ws", call_id="c", tool_name="t", arguments={})
assert asyncio.run(before(event)).deny_reason == "no"
keys = ["event", "agent_id", "session_id", "run_id", "activation_id", "workspace", "occurred_at"]
assert list(event_to_dict(event)) == [*keys, "call_id", "tool_name", "arguments"], event_to_dict(event)
for wrong in ({"event": "run.started", "tool_names": ("t",)}, {"event": "tool.before", "tool_names": ()}, {"name": " "}):
    try:
        HookRegistration(**{"event": "tool.before", "name": "n", "handler": before, **wrong})
        raise SystemExit(wrong)
    except ValueError:
        pass
print("all well")
"#;
    let tested = python(&home, &["-c", test]);
    assert_eq!((tested.code, tested.stdout.trim()), (Some(0), "all well"), "{tested:?}");
    let again = {
        let mut package = command(exe());
        package.args(["package", &home.path("lib")]);
        run(package, Duration::from_secs(10))
    };
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("iris/__init__.py is there already"), "{again:?}");
}

/// Annotations, a default of each, and the schema that comes of it.
fn annotations() -> [(&'static str, &'static str, Value); 16] {
    [
        ("int", "", json!({"type": "integer"})),
        ("float", "", json!({"type": "number"})),
        ("str", "", json!({"type": "string"})),
        ("bool", "", json!({"type": "boolean"})),
        (
            "int | None",
            "None",
            json!({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null}),
        ),
        ("int | str", "", json!({"anyOf": [{"type": "integer"}, {"type": "string"}]})),
        ("Literal['x', 'y']", "", json!({"enum": ["x", "y"], "type": "string"})),
        ("list[int]", "", json!({"type": "array", "items": {"type": "integer"}})),
        ("list", "", json!({"type": "array", "items": {}})),
        (
            "set[str]",
            "",
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
        ),
        (
            "tuple[int, str]",
            "",
            json!({
                "type": "array", "minItems": 2, "maxItems": 2,
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
            }),
        ),
        (
            "dict[str, int]",
            "",
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        ),
        ("dict", "", json!({"type": "object", "additionalProperties": true})),
        ("Any", "", json!({})),
        ("Nested", "", json!({"$ref": "#/$defs/Nested"})),
        (
            "Annotated[int, Field(ge=1)]",
            "2",
            json!({"type": "integer", "minimum": 1, "default": 2}),
        ),
    ]
}

#[test]
fn t5_annotations_become_schemas() {
    let table = annotations();
    let mut parameters: Vec<String> = Vec::new();
    for (index, (annotation, default, _)) in table.iter().enumerate() {
        let default = if default.is_empty() { String::new() } else { format!(" = {default}") };
        parameters.push(format!("p{index}: {annotation}{default}"));
    }
    let code = format!(
        "from typing import *\nfrom pydantic import BaseModel, Field\nclass Nested(BaseModel):\n    x: int\ndef vector_lookup(*, {}): pass\n",
        parameters.join(", ")
    );
    let (_home, arguments) = agent(
        &code,
        "permissions: { workspace: . }\ntools: { python: { functions: [\"mine:vector_lookup\"] } }",
    );
    let mut session = session(&arguments, &[]);
    let listed = session.request("tools/list", &json!({}))["result"].take();
    let tools = listed["tools"].as_array().expect("a list");
    let tool = tools.iter().find(|tool| tool["name"] == "vector_lookup").expect("the tool");
    let schema = &tool["inputSchema"];
    assert_eq!(schema["title"], "VectorLookupToolInput");
    assert_eq!(schema["$defs"]["Nested"]["type"], "object");
    for (index, (annotation, _, expected)) in table.iter().enumerate() {
        let mut found = schema["properties"][format!("p{index}")].clone();
        // One of a type of its own has the title of that.
        if let Some(title) = found.as_object_mut().and_then(|found| found.remove("title")) {
            assert_eq!(title, format!("P{index}"), "{annotation}");
        }
        assert_eq!(found, *expected, "{annotation}");
    }
}
