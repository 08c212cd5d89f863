//! Small upstream servers that behave well or badly, and the folders their tests work in.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::session::Session;

/// How long something that must happen may take; generous, since it ends with the first look.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder with an MCP file, a workspace, and a ledger of what upstreams did.
#[derive(Debug)]
pub(crate) struct Home {
    folder: TempDir,
}

impl Home {
    /// Makes an empty one.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("workspace")).expect("a new folder");
        Self { folder }
    }

    /// Makes the MCP file of these servers.
    pub(crate) fn serve(&self, servers: Value) {
        self.write("mcp.json", &json!({ "mcpServers": servers }).to_string());
    }

    /// Makes one whose MCP file has the server `up`, with a ledger.
    pub(crate) fn with_up(options: Value) -> Self {
        let home = Self::new();
        let up = home.server(options);
        home.serve(json!({ "up": up }));
        home
    }

    /// Describes a server that writes to the ledger of this folder.
    pub(crate) fn server(&self, mut options: Value) -> Value {
        options["ledger"] = self.path("ledger").into();
        server(&options)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.file(name).to_string_lossy().into_owned()
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.file(name), text).expect("written");
        self.path(name)
    }

    /// Returns the arguments that serve the MCP file.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let paths = [self.path("mcp.json"), self.path("workspace")];
        let [mcp, workspace] = paths;
        vec!["--mcp".to_owned(), mcp, "--workspace".to_owned(), workspace]
    }

    /// Returns what upstreams have written down.
    pub(crate) fn ledger(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file("ledger")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns how often a line is in the ledger.
    pub(crate) fn noted(&self, line: &str) -> usize {
        self.ledger().iter().filter(|noted| *noted == line).count()
    }

    /// Waits until a line is in the ledger.
    #[track_caller]
    pub(crate) fn wait_for(&self, line: &str) {
        eventually(line, || self.noted(line) > 0);
    }
}

/// Starts the program between a client of the older era and what a home serves.
pub(crate) fn session(home: &Home, more: &[&str]) -> Session {
    let mut arguments = home.arguments();
    arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
    let mut session = Session::start(&arguments);
    session.initialize();
    session
}

/// Describes a server for an MCP file.
pub(crate) fn server(options: &Value) -> Value {
    json!({ "command": "python3", "args": [script("upstream.py"), options.to_string()] })
}

/// Returns the path of a fixture.
pub(crate) fn script(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
    folder.join(name).to_string_lossy().into_owned()
}

/// Waits until `condition` holds.
#[track_caller]
pub(crate) fn eventually(what: &str, condition: impl FnMut() -> bool) {
    within(PATIENCE, what, condition);
}

/// Waits until `condition` holds, but no longer than `limit`.
#[track_caller]
pub(crate) fn within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < until, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
