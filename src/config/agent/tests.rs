//! The files under `tests/agent-files`, and files that no folder can hold.
//!
//! A file there is a case: beside it stands what it comes to, or the message it is refused with.

use std::fs;

use expect_test::{expect, expect_file};

use super::*;
use crate::config::settings::Settings;
use crate::config::{Config, Host};
use crate::exposure::Defer;

fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent-files").join(folder);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|suffix| suffix == "yaml"));
    files.sort();
    files
}

/// Builds a configuration from an agent file, as if the current folder were its own.
fn build(file: &Path, workspace: Option<&Path>) -> Result<Config, String> {
    let folder = file.parent().unwrap();
    let settings = Settings {
        agent: Some(file.to_owned()),
        workspace: workspace.map(Path::to_owned),
        ..Settings::default()
    };
    let host = Host {
        environment: std::collections::BTreeMap::new(),
        directory: folder.to_owned(),
        exe: None,
    };
    let shown = |error: ConfigError| error.render().replace(&format!("{}/", folder.display()), "");
    Config::build(settings, &host).map_err(shown)
}

fn expected(file: &Path) -> PathBuf {
    file.with_extension("yaml.txt")
}

fn render(config: &Config, folder: &Path) -> String {
    let list = |names: &[String]| names.join(", ");
    let defer = match config.exposure.defer {
        Defer::Always => "always",
        Defer::Never => "never",
        Defer::Auto { .. } => "auto",
    };
    let mut lines = vec![
        format!("name: {}", config.server.agent_id),
        format!("built-in tools: {}", list(&config.builtin)),
        format!("writes: {:?}, execute: {:?}", config.permission.writes, config.permission.execute),
        format!("context tools: {}, deferred: {defer}", config.context.is_some()),
    ];
    for server in &config.upstream.loaded.servers {
        let (name, limit) = (&server.name, server.tool_timeout);
        lines.push(format!(
            "server: {name}, trusted: {}, call: {limit:?}",
            server.trust_annotations
        ));
    }
    lines.push(format!("not used: {}", list(&config.not_used)));
    lines.extend(config.not_built.iter().map(DocumentError::render));
    lines.join("\n").replace(&format!("{}/", folder.display()), "") + "\n"
}

#[test]
fn every_invalid_file_is_refused_with_the_message_beside_it() {
    let files = cases("invalid");
    assert!(files.len() >= 40);
    for file in files {
        let error = build(&file, None).map(|_| ()).expect_err(&file.display().to_string());
        expect_file![expected(&file)].assert_eq(&format!("{error}\n"));
    }
}

#[test]
fn every_valid_file_comes_to_what_stands_beside_it() {
    for file in cases("valid") {
        let folder = file.parent().unwrap();
        let config = build(&file, Some(folder)).unwrap_or_else(|error| panic!("{error}"));
        expect_file![expected(&file)].assert_eq(&render(&config, folder));
    }
}

#[test]
fn every_message_has_a_place() {
    for file in cases("invalid") {
        let error = fs::read_to_string(expected(&file)).unwrap();
        let place: Vec<&str> = error.lines().next().unwrap().splitn(4, ':').collect();
        let [name, line, column, message] = place[..] else { panic!("{error}") };
        assert!(file.parent().unwrap().join(name).is_file(), "{error}");
        assert!(line.parse::<u32>().is_ok() && column.parse::<u32>().is_ok(), "{error}");
        assert!(!message.trim().is_empty(), "{error}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_told_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large.yaml");
    fs::write(&large, format!("system: {}\n", "x".repeat(10 << 20))).unwrap();
    let message = |file: PathBuf| build(&file, None).map(|_| ()).unwrap_err();
    expect!["large.yaml: the file cannot be read: it is larger than 8388608 bytes"]
        .assert_eq(&message(large));
    expect!["none.yaml: the file cannot be read: No such file or directory (os error 2)"]
        .assert_eq(&message(folder.path().join("none.yaml")));
    fs::create_dir(folder.path().join("folder.yaml")).unwrap();
    expect!["folder.yaml: this is a folder; --agent takes a file: name one"]
        .assert_eq(&message(folder.path().join("folder.yaml")));
    let locked = folder.path().join("locked.yaml");
    let file = PathBuf::from(format!("{}/file", locked.display()));
    fs::write(&locked, "").unwrap();
    expect!["file: the file cannot be read: Not a directory (os error 20)"]
        .assert_eq(&message(file));
}

#[test]
fn many_aliases_do_not_fill_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.yaml");
    let line = |level: usize| match level {
        0 => "compaction:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(),
        _ => {
            format!("  a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", "))
        }
    };
    let text: String = (0..9).map(line).collect();
    fs::write(&file, text).unwrap();
    let error = build(&file, None).map(|_| ()).unwrap_err();
    assert!(error.contains("the document has over 200000 values"), "{error}");
}

#[test]
fn the_workspace_comes_from_beside_the_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("repo")).unwrap();
    let file = folder.path().join("agent.yaml");
    fs::write(&file, "permissions: {workspace: ./repo}\n").unwrap();
    let config = build(&file, None).unwrap();
    assert_eq!(config.workspace, folder.path().join("repo").canonicalize().unwrap());
}

#[test]
fn a_part_of_another_form_is_told_with_what_to_write_instead() {
    let schema = schema().to_value();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.yaml");
    let parts = schema["properties"].as_object().unwrap().keys();
    let mut told = 0;
    for part in parts.filter(|part| !["name", "system", "model"].contains(&part.as_str())) {
        for other in ["word", "5", "true", "[a]", "{}"] {
            fs::write(&file, format!("{part}: {other}\n")).unwrap();
            let Err(error) = build(&file, None).map(|_| ()) else { continue };
            let first = error.lines().next().unwrap();
            if first.contains(": expected ") {
                assert!(first.contains("; "), "{first}");
                told += 1;
            }
        }
    }
    assert!(told > 40, "{told}");
}
