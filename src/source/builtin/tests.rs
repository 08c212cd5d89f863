//! Keys and the tools they stand for.

use super::bench::Bench;
use super::*;

#[test]
fn a_key_makes_its_tool() {
    let bench = Bench::new();
    for builtin in TABLE {
        match make(builtin.key, &bench.parts) {
            Ok(tool) => assert_eq!(tool.definition().name.as_str(), builtin.name),
            Err(error) => assert_eq!(error, BuiltinError::NotBuilt { key: builtin.key }),
        }
    }
    let made: Vec<&str> = keys().filter(|key| make(key, &bench.parts).is_ok()).collect();
    assert_eq!(
        made,
        ["file.read", "file.list", "file.grep", "file.write", "file.edit", "file.publish"]
    );
}

#[track_caller]
fn check(key: &str, expected: &str) {
    let bench = Bench::new();
    assert_eq!(make(key, &bench.parts).unwrap_err().to_string(), expected);
}

#[test]
fn an_unknown_key_names_the_nearest() {
    check("file.raed", "unknown built-in tool `file.raed`; did you mean `file.read`?");
    check("read_file", "unknown built-in tool `read_file`; did you mean `file.read`?");
    check("exec.cmd", "unknown built-in tool `exec.cmd`; did you mean `exec.command`?");
    check("load_skill", "unknown built-in tool `load_skill`");
    check("tool_search", "unknown built-in tool `tool_search`; did you mean `web.search`?");
    check("", "unknown built-in tool ``");
    check("web.search", "the built-in tool `web.search` is not available in this version");
}
