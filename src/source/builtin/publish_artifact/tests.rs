//! EX-8.17, and what cannot be published.

use std::fs;

use super::*;
use crate::artifact::name::ending;
use crate::source::builtin::bench::Bench;
use crate::tool::Typed;

fn tool(bench: &Bench) -> Typed<PublishArtifact> {
    Typed(PublishArtifact::new(&bench.parts))
}

#[tokio::test]
async fn ex_8_17_a_published_file_is_a_copy() {
    let bench = Bench::new();
    let content = b"{\"answer\": 42, \"ok\": true}\n";
    bench.write("out/report.json", content);
    let result = bench.call(&tool(&bench), json!({"file_path": "out/report.json"})).await.unwrap();
    assert_eq!(result.model_content(), "Published: report.json (application/json, 27 bytes)");
    let artifact = result.artifact.unwrap();
    assert_eq!(
        (artifact.mime_type.as_str(), artifact.size_bytes, artifact.preview.as_str()),
        ("application/json", 27, "Published: report.json")
    );
    assert!(artifact.uri.is_some() && artifact.text_path.is_none());
    bench.write("out/report.json", "changed");
    assert_eq!(fs::read(&artifact.path).unwrap(), content);
    // Publishing is no reading: the file may not be edited because of it.
    let state = bench.parts.sessions.get(&bench.cx.session);
    let path = bench.parts.workspace.resolve("out/report.json").unwrap();
    let observation = bench.parts.workspace.open_file(&path).unwrap().observation();
    state.read_state().check_fresh(&path, observation).unwrap_err();
}

#[tokio::test]
async fn only_a_file_of_the_workspace_is_published() {
    let bench = Bench::new();
    fs::create_dir(bench.path("folder")).unwrap();
    for (path, expected) in [
        ("none.txt", "Error[FILE_NOT_FOUND]: only a file that is there can be published: none.txt"),
        ("folder", "Error[FILE_NOT_FOUND]: only a file that is there can be published: folder"),
        ("", "Error[FILE_NOT_FOUND]: only a file that is there can be published: "),
    ] {
        assert_eq!(bench.text(&tool(&bench), json!({"file_path": path})).await, expected);
    }
    let outside = bench.text(&tool(&bench), json!({"file_path": "../x"})).await;
    assert!(outside.starts_with("Error[VALIDATION_ERROR]: PATH_OUTSIDE_WORKSPACE"), "{outside}");
    assert!(!bench.path(".iris").exists());
}

#[test]
fn a_copy_keeps_an_ending_that_an_address_can_have() {
    for (name, expected) in [
        ("report.json", ".json"),
        ("archive.tar.gz", ".gz"),
        (".hidden", ""),
        ("none", ""),
        ("odd.a b", ""),
        ("odd.é", ""),
        ("long.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ""),
    ] {
        assert_eq!(ending(name), expected, "{name}");
    }
}

#[tokio::test]
async fn types_are_known_by_the_ending() {
    let bench = Bench::new();
    for (name, expected) in [
        ("a.json", "application/json"),
        ("a.md", "text/markdown"),
        ("a.csv", "text/csv"),
        ("a.pdf", "application/pdf"),
        ("a.png", "image/png"),
        ("a.html", "text/html"),
        ("a.txt", "text/plain"),
        ("a", "application/octet-stream"),
        ("a.unknownending", "application/octet-stream"),
    ] {
        bench.write(name, "x");
        let text = bench.text(&tool(&bench), json!({"file_path": name})).await;
        assert_eq!(text, format!("Published: {name} ({expected}, 1 bytes)"));
    }
}
