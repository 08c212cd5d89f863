//! The command line of the MCP Inspector, which is pickier than most clients.

use std::fs;

use serde_json::Value;

use super::{LIMIT, root};
use crate::binary::{Ended, Gateway, command, exe, peer, run};
use crate::fixture::{Home, eventually};

const ERAS: [&str; 2] = ["legacy", "modern"];
const AGENT: &str = "permissions: {writes: allow}\n\
                     tools: {builtin: [file.read, file.list, file.grep, file.write, file.edit, file.publish]}\n\
                     mcp: {path: mcp.json}\n";

/// Makes a home with all of our own tools, and one upstream whose tools are deferred.
fn home() -> Home {
    let home = Home::with_up(serde_json::json!({"tools": ["echo"]}));
    home.write("agent.yaml", AGENT);
    home.write("workspace/a.txt", "alpha\n");
    home
}

/// Returns the line that serves everything in a home.
fn serve(home: &Home) -> Vec<String> {
    let [agent, workspace] = [home.path("agent.yaml"), home.path("workspace")];
    let line = ["serve", "--agent", &agent, "--workspace", &workspace, "--defer", "always"];
    line.map(str::to_owned).into()
}

/// Runs the inspector in a home of its own.
#[track_caller]
fn inspect(home: &Home, arguments: &[impl AsRef<str>]) -> Ended {
    let mut inspector = command(peer("npm/node"));
    inspector.arg(peer("npm/node_modules/.bin/mcp-inspector")).arg("--cli");
    inspector.args(arguments.iter().map(AsRef::as_ref));
    inspector.env("HOME", home.path("")).env("MCP_INSPECTOR_SECRET_STORE", "memory");
    inspector.current_dir(home.file(""));
    run(inspector, LIMIT)
}

/// Runs it with a gateway of its own over standard streams.
#[track_caller]
fn inspect_ours(home: &Home, arguments: &[&str]) -> Ended {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    let line: Vec<String> =
        arguments.chain(["--".to_owned(), exe().to_owned()]).chain(serve(home)).collect();
    inspect(home, &line)
}

#[track_caller]
fn answer(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[track_caller]
fn names(ended: &Ended) -> Vec<String> {
    let listed = answer(ended);
    let tools = listed["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_inspector_has_nothing_to_say_against_any_tool_of_ours() {
    let home = home();
    for era in ERAS {
        let strict = ["--method", "tools/list", "--strict", "--protocol-era", era];
        let ended = inspect_ours(&home, &strict);
        let ours = [
            "read_file",
            "list_files",
            "grep_search",
            "write_file",
            "edit_file",
            "publish_artifact",
            "context_read",
            "context_search",
            "tool_search",
            "call_tool",
        ];
        assert_eq!(names(&ended), ours, "{era}");
        for said in ["Warning", "Error", "error"] {
            assert!(!ended.stderr.contains(said), "{era}: {}", ended.stderr);
        }
    }
}

#[test]
fn the_inspector_calls_a_tool_and_is_told_of_a_failure() {
    let home = home();
    for era in ERAS {
        let call = |file: &str| {
            let path = format!("file_path={file}");
            let name = ["--method", "tools/call", "--tool-name", "read_file"];
            let more = ["--tool-arg", &path, "--protocol-era", era];
            inspect_ours(&home, &[&name[..], &more].concat())
        };
        let read = answer(&call("a.txt"));
        let text = read["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("alpha\n"), "{read}");
        let missing = call("missing.txt");
        assert_eq!(missing.code, Some(5), "{missing:?}");
        assert!(missing.stdout.contains("Error[FILE_NOT_FOUND]"), "{missing:?}");
    }
}

#[test]
fn the_inspector_calls_many_times_at_once_without_an_error() {
    let home = home();
    let call = ["--method", "tools/call", "--tool-name", "read_file", "--tool-arg"];
    let load = ["file_path=a.txt", "--load", "--load-requests", "100", "--format", "json"];
    let summary = answer(&inspect_ours(&home, &[&call[..], &load].concat()));
    let summary = &summary["result"];
    for (key, count) in [("requests", 100), ("ok", 100), ("toolErrors", 0), ("errors", 0)] {
        assert_eq!(summary[key], count, "{key}: {summary}");
    }
}

/// Returns the JSON blocks of the guide that start us, for clients of this file's form.
fn snippets() -> Vec<String> {
    let guide = fs::read_to_string(root().join("docs/clients.md")).expect("the guide");
    let blocks = guide.split("```json\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned());
    let ours = blocks.filter(|block| {
        let json: Value = serde_json::from_str(block).expect("JSON");
        json["mcpServers"]["iris"]["command"].is_string()
    });
    ours.collect()
}

/// Lists the tools of the one server in a file.
#[track_caller]
fn listed_by(home: &Home, config: &str) -> Vec<String> {
    let config = home.write("client.json", config);
    let line = ["--config", &config, "--server", "iris", "--method", "tools/list"];
    names(&inspect(home, &line))
}

#[test]
fn the_inspector_takes_the_entries_of_the_guide() {
    let home = home();
    let snippets = snippets();
    assert!(snippets.len() >= 3, "{snippets:?}");
    for snippet in snippets {
        let entry = snippet
            .replace("\"/path/to/iris-mcp\"", &format!("{:?}", exe()))
            .replace("\"iris-mcp\"", &format!("{:?}", exe()))
            .replace("/path/to/mcp.json", &home.path("mcp.json"));
        let names = listed_by(&home, &entry);
        let tool = if entry.contains("agent.yaml") { "read_file" } else { "mcp__up__echo" };
        assert!(names.iter().any(|name| name == tool), "{entry}: {names:?}");
    }
}

#[test]
fn the_inspector_takes_the_entry_that_a_gateway_prints() {
    let home = home();
    let line = serve(&home);
    let gateway = Gateway::start(&line[1..].iter().map(String::as_str).collect::<Vec<_>>());
    let entry = || {
        let said = gateway.said();
        let (_, entry) = said.split_once("for a client's configuration:\n")?;
        let (entry, _) = entry.split_once("\n}\n")?;
        Some(format!("{entry}\n}}"))
    };
    eventually("it says how it is plugged in", || entry().is_some());
    let names = listed_by(&home, &entry().unwrap());
    assert!(names.contains(&"read_file".to_owned()), "{names:?}");
}

#[test]
fn the_inspector_lists_the_tools_over_http() {
    let home = super::Home::new();
    let gateway = home.http();
    let arguments = ["--transport", "http", "--method", "tools/list"];
    let ended = inspect(&Home::new(), &[&[&*gateway.url][..], &arguments].concat());
    assert!(names(&ended).contains(&"mcp__everything__echo".to_owned()), "{ended:?}");
}
