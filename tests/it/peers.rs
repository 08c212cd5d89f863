//! Real clients on one side, real servers on the other, the gateway between them.

mod deferred;
mod inspector;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{Gateway, command, exe, peer, run};

/// How long a driver may take for all its steps; it gives up by itself a little earlier.
const LIMIT: Duration = Duration::from_secs(150);
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
/// The public name of a tool whose own name has hyphens ends in a digest.
const SLOW: &str = "mcp__everything__trigger_long_running_operation__1f47f299a6";

/// A client SDK and the era it is told to speak.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Client {
    Python(Mode),
    FastMcp(Mode),
    TypeScript(Mode),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    Legacy,
    Auto,
}

impl Client {
    fn mode(self) -> Mode {
        match self {
            Self::Python(mode) | Self::FastMcp(mode) | Self::TypeScript(mode) => mode,
        }
    }

    /// Returns whether it speaks the newer era to a server that has it.
    pub(crate) fn is_modern(self) -> bool {
        matches!(self.mode(), Mode::Auto)
    }

    /// Lets the client connect, take the steps, and tell what it saw.
    #[track_caller]
    fn drive(self, transport: &Value, steps: &Value) -> Value {
        self.answering(transport, steps, None)
    }

    /// Does the same with a person behind the client, who gives these answers in order, and the
    /// last one again and again; null is none, ever.
    #[track_caller]
    pub(crate) fn answering(
        self,
        transport: &Value,
        steps: &Value,
        elicit: Option<&[Value]>,
    ) -> Value {
        let mut description = json!({"transport": transport, "steps": steps});
        if let Some(elicit) = elicit {
            description["elicit"] = elicit.into();
        }
        self.run(description)
    }

    /// Does the same with a person who answers each kind of question, and wants to see the log.
    #[track_caller]
    pub(crate) fn before_a_person(self, transport: &Value, steps: &Value, person: &Value) -> Value {
        self.run(json!({
            "transport": transport, "steps": steps, "person": person, "log_level": "info",
        }))
    }

    #[track_caller]
    fn run(self, mut description: Value) -> Value {
        let (program, script) = match self {
            Self::Python(_) => ("client/bin/python", "py_client.py"),
            Self::FastMcp(_) => ("fastmcp/bin/python", "fastmcp_client.py"),
            Self::TypeScript(_) => ("npm/node", "ts_client.mjs"),
        };
        let script = root().join("tests/peers/clients").join(script);
        description["mode"] = match self.mode() {
            Mode::Legacy => "legacy".into(),
            Mode::Auto => "auto".into(),
        };
        let mut driver = command(peer(program));
        driver.arg(script).arg(description.to_string());
        driver.env("IRIS_PEERS", peer(""));
        let ended = run(driver, LIMIT);
        assert_eq!(ended.code, Some(0), "{self:?}: {}\n{}", ended.stdout, ended.stderr);
        serde_json::from_str(&ended.stdout).expect("one line of JSON")
    }

    /// Runs the whole tour and checks each stop.
    #[track_caller]
    fn tour(self, transport: &Value) {
        let seen = self.drive(transport, &tour());
        let protocol = match self.mode() {
            Mode::Legacy => LEGACY,
            Mode::Auto => MODERN,
        };
        assert_eq!(seen["protocol"], protocol, "{self:?}");
        check_tour(&seen["steps"]);
    }
}

/// A folder with an agent file, its upstreams, and a workspace.
#[derive(Debug)]
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let agent = "name: peers\n\
                     tools:\n  builtin: [file.read, file.list, file.grep]\n\
                     mcp:\n  path: mcp.json\n";
        fs::write(folder.path().join("agent.yaml"), agent).expect("written");
        fs::write(folder.path().join("mcp.json"), upstreams().to_string()).expect("written");
        copy_folder(&root().join("src"), &folder.path().join("workspace/src"));
        let manifest = folder.path().join("workspace/Cargo.toml");
        fs::copy(root().join("Cargo.toml"), manifest).expect("copied");
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    fn arguments(&self) -> [String; 6] {
        let [agent, workspace] = [self.path("agent.yaml"), self.path("workspace")];
        [
            "--agent".into(),
            agent,
            "--workspace".into(),
            workspace,
            "--approval".into(),
            "client".into(),
        ]
    }

    fn stdio(&self) -> Value {
        let mut line = vec![exe().to_owned(), "serve".to_owned(), "--stdio".to_owned()];
        line.extend(self.arguments());
        json!({ "command": line })
    }

    #[track_caller]
    fn http(&self) -> Gateway {
        Gateway::start(&self.arguments().each_ref().map(String::as_str))
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn upstreams() -> Value {
    json!({"mcpServers": {
        "time": {
            "command": peer("servers/bin/mcp-server-time"),
            "args": ["--local-timezone", "UTC"],
        },
        "everything": { "command": peer("npm/node"), "args": [everything(), "stdio"] },
    }})
}

fn everything() -> String {
    let package = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    peer(package).to_string_lossy().into_owned()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a new folder");
    for entry in fs::read_dir(from).expect("readable") {
        let path = entry.expect("readable").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copied");
        }
    }
}

fn tour() -> Value {
    json!([
        {"op": "list"},
        {"op": "call", "name": "read_file", "arguments": {"file_path": "Cargo.toml"}},
        {"op": "call", "name": "grep_search", "arguments": {"pattern": "pub trait Tool\\b", "path": "src"}},
        {"op": "call", "name": "mcp__time__get_current_time", "arguments": {"timezone": "UTC"}},
        {"op": "call", "name": "mcp__everything__echo", "arguments": {"message": "through the gate"}},
        {"op": "cancel_call", "name": SLOW, "arguments": {"duration": 30, "steps": 30}, "after_progress": 1},
        {"op": "call", "name": "mcp__everything__echo", "arguments": {"message": "still here"}},
    ])
}

#[track_caller]
fn check_tour(steps: &Value) {
    let tools = steps[0]["tools"].as_array().expect("a list of names");
    for name in ["read_file", "mcp__time__get_current_time", "mcp__everything__echo"] {
        assert!(tools.iter().any(|tool| tool == name), "{name} is not in {tools:?}");
    }
    let manifest = text(&steps[1]);
    assert!(manifest.contains("name = \"iris-mcp\""), "{manifest}");
    assert!(manifest.contains("[read_file: offset=0, column=0; "), "{manifest}");
    let found = text(&steps[2]);
    assert!(found.starts_with("src/tool.rs:") && found.contains("pub trait Tool:"), "{found}");
    let time: Value = serde_json::from_str(&text(&steps[3])).expect("the server's own JSON");
    assert_eq!(time["timezone"], "UTC");
    assert_eq!(steps[3]["result"]["structuredContent"]["timezone"], "UTC");
    assert_eq!(text(&steps[4]), "Echo: through the gate");
    let cancelled = &steps[5];
    assert_eq!(cancelled["cancelled"], true, "{cancelled}");
    assert!(cancelled["elapsed_ms"].as_u64().expect("a time") < 10_000, "{cancelled}");
    assert_eq!(text(&steps[6]), "Echo: still here");
}

/// Returns the first text of a successful result.
#[track_caller]
fn text(step: &Value) -> String {
    let result = &step["result"];
    assert_ne!(result["isError"], true, "{step}");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {step}")).to_owned()
}

#[track_caller]
fn tour_over_stdio(client: Client) {
    client.tour(&Home::new().stdio());
}

#[track_caller]
fn tour_over_http(client: Client) {
    let home = Home::new();
    let gateway = home.http();
    client.tour(&json!({ "url": gateway.url }));
}

#[test]
fn python_over_stdio() {
    tour_over_stdio(Client::Python(Mode::Auto));
}

#[test]
fn python_of_the_older_era_over_stdio() {
    tour_over_stdio(Client::Python(Mode::Legacy));
}

#[test]
fn typescript_over_stdio() {
    tour_over_stdio(Client::TypeScript(Mode::Auto));
}

#[test]
fn typescript_of_the_older_era_over_stdio() {
    tour_over_stdio(Client::TypeScript(Mode::Legacy));
}

#[test]
fn fastmcp_over_stdio() {
    tour_over_stdio(Client::FastMcp(Mode::Auto));
}

#[test]
fn python_over_http() {
    tour_over_http(Client::Python(Mode::Auto));
}

#[test]
fn python_of_the_older_era_over_http() {
    tour_over_http(Client::Python(Mode::Legacy));
}

#[test]
fn typescript_over_http() {
    tour_over_http(Client::TypeScript(Mode::Auto));
}

#[test]
fn typescript_of_the_older_era_over_http() {
    tour_over_http(Client::TypeScript(Mode::Legacy));
}

#[test]
fn fastmcp_over_http() {
    tour_over_http(Client::FastMcp(Mode::Auto));
}

#[test]
fn both_eras_share_one_endpoint_at_once() {
    let home = Home::new();
    let gateway = home.http();
    let transport = json!({ "url": gateway.url });
    thread::scope(|scope| {
        let older = scope.spawn(|| Client::Python(Mode::Legacy).tour(&transport));
        let newer = scope.spawn(|| Client::TypeScript(Mode::Auto).tour(&transport));
        older.join().expect("the older era");
        newer.join().expect("the newer era");
    });
}

/// If this one fails, the peers are at fault, not the gateway.
#[test]
fn the_clients_reach_a_server_without_us() {
    let transport = json!({"command": [peer("npm/node"), everything(), "stdio"]});
    let steps = json!([
        {"op": "call", "name": "echo", "arguments": {"message": "hello"}},
        {"op": "cancel_call", "name": "trigger-long-running-operation",
         "arguments": {"duration": 30, "steps": 30}, "after_progress": 1},
    ]);
    for client in
        [Client::Python(Mode::Auto), Client::FastMcp(Mode::Auto), Client::TypeScript(Mode::Auto)]
    {
        let seen = client.drive(&transport, &steps);
        assert_eq!(text(&seen["steps"][0]), "Echo: hello", "{client:?}");
        assert_eq!(seen["steps"][1]["cancelled"], true, "{client:?}");
    }
}
