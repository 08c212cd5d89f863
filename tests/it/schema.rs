//! `schema`: what it prints is true of every file in the tree, and of the documents.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use expect_test::expect;
use iris_mcp::document::{Document, Format};
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::binary::{command, exe, run};
use crate::example::KEYS;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns what the program prints.
fn schema(file: &str) -> Value {
    let mut schema = command(exe());
    schema.args(["schema", file]);
    let ended = run(schema, Duration::from_secs(20));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let schema: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(jsonschema::meta::is_valid(&schema), "{file}");
    schema
}

fn validator(file: &str) -> Validator {
    jsonschema::validator_for(&schema(file)).expect("a schema")
}

/// Returns the files of a folder that are no messages.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.is_file() && file.extension().is_some_and(|suffix| suffix != "txt"));
    files.sort();
    assert!(!files.is_empty(), "{folder}");
    files
}

/// Reads a file; nothing if it is none of its language.
fn read(file: &Path) -> Option<Value> {
    let format = match file.extension()?.to_str()? {
        "yaml" => Format::Yaml,
        "toml" => Format::Toml,
        _ => Format::Json5,
    };
    Some(Document::open(file, format).ok()?.root.to_json())
}

/// Returns the names of the files that a schema accepts, and how many there are in its language.
fn accepted(validator: &Validator, folder: &str) -> (usize, Vec<String>) {
    let read = files(folder).into_iter().filter_map(|file| Some((read(&file)?, file)));
    let read: Vec<_> = read.collect();
    let accepted = read.iter().filter(|(content, _)| validator.is_valid(content));
    let name = |file: &Path| file.file_name().expect("a name").to_string_lossy().into_owned();
    (read.len(), accepted.map(|(_, file)| name(file)).collect())
}

#[test]
fn the_schema_of_agent_files_accepts_every_valid_one() {
    let agent = validator("agent");
    let (all, accepted) = accepted(&agent, "tests/agent-files/valid");
    assert_eq!(accepted.len(), all, "{accepted:?}");
    let text = fs::read_to_string(root().join("docs/settings.md")).expect("readable");
    let shown = text.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let shown = Document::parse("settings.md", Format::Yaml, shown.expect("an example"));
    assert!(agent.is_valid(&shown.expect("YAML").root.to_json()));
}

#[test]
fn the_schema_of_agent_files_refuses_all_but_what_other_parts_and_files_say() {
    let (all, accepted) = accepted(&validator("agent"), "tests/agent-files/invalid");
    assert!(all > 100, "{all}");
    expect![[r"
        decision-discovery.yaml
        decision-file-missing.yaml
        decision-file-unknown.yaml
        decision-provider.yaml
        decision-strict.yaml
        deferred-without-context.yaml
        goal-without-context.yaml
        mcp-file-broken.yaml
        mcp-file-missing.yaml
        mcp-file-suffix.yaml
        memory-path-leaves.yaml
        memory-tool-without-memory.yaml
        native-without-writes.yaml
        override-near-server.yaml
        override-unknown-server.yaml
        skills-root-leaves.yaml
        subagent-default.yaml
        subagent-description.yaml
        subagent-empty.yaml
        subagent-file-missing.yaml
        subagent-selector.yaml
        subagent-unknown.yaml
        todo-without-context.yaml
        workspace-missing.yaml"]]
    .assert_eq(&accepted.join("\n"));
}

#[test]
fn the_schema_of_mcp_files_accepts_every_valid_one() {
    let mcp = validator("mcp");
    let (all, accepted) = accepted(&mcp, "tests/mcp-files/valid");
    // The one has an entry that is wrong and not required.
    assert_eq!(accepted.len(), all - 1, "{accepted:?}");
    assert!(!accepted.contains(&"optional-invalid.json".to_owned()));
    assert!(mcp.is_valid(&read(&root().join("mcp.example.json")).expect("JSON")));
}

#[test]
fn the_schema_of_mcp_files_refuses_all_but_what_keys_say_of_each_other() {
    let (all, accepted) = accepted(&validator("mcp"), "tests/mcp-files/invalid");
    assert!(all > 40, "{all}");
    expect![[r"
        suffix.yaml
        timeouts-differ.json
        urls-differ.json"]]
    .assert_eq(&accepted.join("\n"));
}

#[test]
fn the_schema_of_mcp_files_has_every_key_there_is() {
    let schema = schema("mcp");
    let server = &schema["$defs"]["Server"]["else"]["properties"];
    let known: BTreeSet<&str> =
        server.as_object().expect("keys").keys().map(String::as_str).collect();
    assert_eq!(known, KEYS.iter().copied().collect());
}

/// Returns the paths of all settings in a schema.
fn settings(schema: &Value, node: &Value, path: &str, found: &mut BTreeSet<String>) {
    let of = |node: &Value| match node["$ref"].as_str() {
        Some(name) => schema["$defs"][name.rsplit('/').next().expect("a name")].clone(),
        None => node.clone(),
    };
    let inner = node["anyOf"].as_array().map_or_else(|| of(node), |either| of(&either[0]));
    if let Some(keys) = inner["properties"].as_object() {
        for (key, node) in keys {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            settings(schema, node, &path, found);
        }
    } else if inner["additionalProperties"].is_object() {
        settings(schema, &inner["additionalProperties"], &format!("{path}.NAME"), found);
    } else {
        found.insert(path.to_owned());
    }
}

#[test]
fn the_schema_of_settings_has_the_keys_of_the_documents() {
    let schema = schema("server");
    let mut known = BTreeSet::new();
    settings(&schema, &schema, "", &mut known);
    let text = fs::read_to_string(root().join("docs/settings.md")).expect("readable");
    let rows = text.lines().take_while(|line| *line != "## Files");
    let cells = rows.map(|row| row.split(" | ").map(str::trim).collect::<Vec<_>>());
    let keys = cells.filter_map(|cells| match cells[..] {
        [_, _, key, _, _] => Some(key),
        [key, _, _] => key.strip_prefix("| ").filter(|key| key.starts_with("`upstream.")),
        _ => None,
    });
    let documented: BTreeSet<String> = keys
        .filter_map(|cell| Some(cell.strip_prefix('`')?.split_once('`')?.0.to_owned()))
        .filter(|key| key != "server.toml")
        .collect();
    assert_eq!(known, documented);
}

#[test]
fn the_schema_of_settings_accepts_what_can_be_said_and_nothing_else() {
    let server = validator("server");
    let all = json!({
        "agent": "a.yaml", "mcp": ["m.json"], "workspace": ".", "stdio": true,
        "http": "127.0.0.1:1", "token_file": "t", "keep_going": true, "context": false,
        "names": "bare", "max_name": 16,
        "approval": {"mode": "client", "timeout_seconds": 0.5, "permit": ["x"], "ask": [], "forbid": []},
        "artifacts": {"dir": "a", "mcp_native": "rich", "max_bytes": 1, "max_age": "12h"},
        "discovery": {"defer": "auto", "disclosure": "meta", "budget_tokens": 1},
        "limits": {"tool_timeout_seconds": 2, "max_message_bytes": 10, "concurrent_calls": 4},
        "breaker": {"failure_threshold": 5, "cooldown_seconds": 0.5},
        "view": {"include_groups": ["file"], "allow": ["x"], "deny": ["y"]},
        "log": {"file": "l", "format": "json", "filter": "debug"},
        "activity": {"file": "c"},
        "upstream": {"time": {
            "protocol": "legacy", "trust_annotations": true, "max_concurrency": 1,
            "required": false, "inherit_env": ["A"], "strict_output": true,
            "reset_on_progress": true, "max_timeout_sec": 60,
        }},
    });
    assert!(server.is_valid(&all), "{:?}", server.iter_errors(&all).next());
    assert!(server.is_valid(&json!({})));
    for wrong in [
        json!({"agents": "a.yaml"}),
        json!({"mcp": "m.json"}),
        json!({"http": 80}),
        json!({"max_name": 15}),
        json!({"names": "short"}),
        json!({"discovery": {"disclosure": "none"}}),
        json!({"approval": {"mode": "perhaps"}}),
        json!({"limits": {"concurrent_calls": 0}}),
        json!({"limits": {"tool_timeout_seconds": 0}}),
        json!({"upstream": {"a": {"require": true}}}),
    ] {
        assert!(!server.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn what_has_no_schema_is_named_with_what_has_one() {
    let mut other = command(exe());
    other.args(["schema", "agents"]);
    let ended = run(other, Duration::from_secs(20));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("agent, mcp, server"), "{ended:?}");
}
