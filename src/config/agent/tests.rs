//! Agent files: what is used, what is accepted, and what is refused by name.

use super::*;

fn read(text: &str) -> Result<Agent, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.yaml");
    std::fs::write(&file, text).unwrap();
    let prefix = format!("{}/", folder.path().display());
    Agent::read(&file).map_err(|error| error.to_string().replace(&prefix, ""))
}

fn builtin(text: &str) -> Result<Vec<String>, String> {
    read(text)?.builtin().map_err(|error| {
        let text = error.to_string();
        text[text.find("agent.yaml").unwrap_or_default()..].to_owned()
    })
}

#[test]
fn a_reviewer_that_only_reads() {
    let agent = read(
        "name: reviewer\nmodel: acme/small-1\nsystem: Review files and cite line numbers.\n\
         permissions: {workspace: ./repo, writes: deny}\ntools:\n  builtin: [file.read, file.list, file.grep]\n",
    )
    .unwrap();
    assert_eq!(agent.name.as_deref(), Some("reviewer"));
    assert_eq!(agent.builtin().unwrap(), ["file.read", "file.list", "file.grep"]);
    let permissions = agent.permissions();
    assert_eq!((permissions.writes, permissions.execute), (Mode::Deny, Mode::Confirm));
    assert!(agent.workspace().ends_with("repo"));
    assert!(agent.mcp().is_none());
}

#[test]
fn upstreams_come_from_beside_the_file() {
    let agent = read(
        "mcp:\n  path: servers.jsonc\n  overrides:\n    clock: {trust_annotations: true, tool_timeout_sec: 5}\n",
    );
    let (file, overrides) = agent.unwrap().mcp().unwrap();
    assert!(file.is_absolute() && file.ends_with("servers.jsonc"));
    assert_eq!(overrides["clock"].trust_annotations, Some(true));
}

#[test]
fn an_empty_part_is_like_none() {
    let agent = read("name:\ntools:\nmcp:\npermissions:\n").unwrap();
    assert_eq!(agent.builtin().unwrap(), Vec::<String>::new());
    let permissions = agent.permissions();
    assert_eq!((permissions.writes, permissions.execute), (Mode::Confirm, Mode::Confirm));
}

#[test]
fn what_is_not_built_yet_is_refused_by_name() {
    let missing =
        "this part of an agent file is not available in this version; remove it to go on without";
    for key in NOT_BUILT {
        assert_eq!(
            read(&format!("name: a\n{key}: {{}}\n")).unwrap_err(),
            format!("agent.yaml:2:1: {key}: {missing}")
        );
    }
    let tools = "these tools are not available in this version; remove them to go on without";
    for key in ["python", "subagent"] {
        let error = read(&format!("tools:\n  {key}: x\n")).unwrap_err();
        assert_eq!(error, format!("agent.yaml:2:3: tools.{key}: {tools}"));
    }
}

#[test]
fn a_mistake_has_its_place_and_a_way_out() {
    let check = |text: &str, expected: &str| {
        let error = read(text).err().or_else(|| builtin(text).err()).unwrap_or_default();
        assert_eq!(error, expected, "{text}");
    };
    check(
        "permisions: {}\n",
        "agent.yaml:1:1: permisions: unknown key; did you mean `permissions`?",
    );
    check(
        "permissions: {writes: maybe}\n",
        "agent.yaml:1:23: permissions.writes: the choices are `confirm`, `allow` and `deny`",
    );
    check(
        "tools: {builtin: [file.red]}\n",
        "agent.yaml:1:19: tools.builtin[0]: unknown built-in tool `file.red`; did you mean `file.read`?",
    );
    check(
        "tools: {builtin: [file.read, file.read]}\n",
        "agent.yaml:1:30: tools.builtin[1]: `file.read` is there twice",
    );
    check(
        "tools: {builtin: [web.fetch]}\n",
        "agent.yaml:1:19: tools.builtin[0]: the built-in tool `web.fetch` is not available in this version",
    );
    check("- a\n", "agent.yaml:1:1: an agent file is a mapping");
    check("mcp: {overrides: {}}\n", "agent.yaml:1:6: mcp: the key `path` is missing");
}
