//! Any text as an agent file.

use super::*;
use crate::fuzz::{check_error, spell, target};

const WORDS: &[&str] = &[
    "\n",
    "\n  ",
    "\n    ",
    "\n- ",
    "\n  - ",
    ": ",
    ": {",
    ": [",
    "&a ",
    "*a",
    "<<: *a",
    "!!str ",
    "|\n  ",
    ">-\n  ",
    "\"",
    "'",
    "\\u00e9",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "? ",
    "# ",
    "null",
    "true",
    "off",
    "yes",
    "1.5",
    "0x1F",
    "0o17",
    "1_000",
    "1:30",
    ".inf",
    "2024-01-01",
    "é",
    "\u{feff}",
    "\u{2028}",
    "\t",
    "name",
    "model",
    "system",
    "context",
    "tools",
    "permissions",
    "command",
    "mcp",
    "context_policy",
    "skills",
    "hooks",
    "middleware",
    "decision",
    "memory",
    "goal",
    "todo",
    "session",
    "prompts",
    "compaction",
    "builtin",
    "subagent",
    "python",
    "file.read",
    "file.edit",
    "exec.run",
    "memory.search",
    "workspace",
    "writes",
    "execute",
    "deny",
    "confirm",
    "allow",
    "path",
    "overrides",
    "required",
    "trust_annotations",
    "tool_timeout_sec",
    "enabled",
    "deferred_tools",
    "mode",
    "docker",
    "native",
    "image",
    "timeout",
    "event",
    "handler",
    "type",
    "before_tool",
    "provider",
    "temperature",
    "max_tokens",
];

#[test]
fn agent_file() {
    target("agent_file", 16 * 1024, check);
}

fn check(input: &[u8]) {
    let text = spell(input, WORDS);
    let parsed = Document::parse_bytes("agent.yaml", Format::Yaml, text.clone().into_bytes());
    let document = match parsed {
        Ok(document) => document,
        Err(error) => return check_error(&text, &error),
    };
    let file = AgentFile::read(&document);
    match &file {
        Ok(file) => {
            for error in unbuilt::find(file, None, &document) {
                check_error(&text, &error);
            }
            for key in not_used(file, None, &document) {
                assert!(
                    document.root.get(key.split('.').next().unwrap_or_default()).is_some(),
                    "{key}"
                );
            }
        }
        Err(errors) => errors.iter().for_each(|error| check_error(&text, error)),
    }
    // What a file says is what it says in another language.
    let json = document.root.to_json();
    let again = Document::parse("agent.json", Format::Json5, json.to_string()).unwrap();
    assert_eq!(again.root.to_json(), json);
    assert_eq!(AgentFile::read(&again).is_ok(), file.is_ok(), "{json}");
}
