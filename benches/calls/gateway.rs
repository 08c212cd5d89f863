//! The gateway as a process: how it is started, and how much memory it has.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};

use crate::upstream;

/// A folder with what a gateway is given; it is removed in the end.
#[derive(Debug)]
pub(crate) struct Setup {
    folder: tempfile::TempDir,
    exe: PathBuf,
}

/// A gateway that serves HTTP.
#[derive(Debug)]
pub(crate) struct Served {
    /// The address without a path.
    pub(crate) address: String,
    child: Child,
    /// Kept, since the gateway may still have something to say.
    _stderr: BufReader<ChildStderr>,
}

/// The memory of a process, in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// All of it that is in memory, files that it shares with others included.
    pub(crate) resident: u64,
    /// What would be free if it ended.
    pub(crate) private: u64,
}

impl Setup {
    /// Writes the files for gateways that are started from `exe`.
    pub(crate) fn new(exe: PathBuf) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let echo = json!({"command": std::env::current_exe()?, "args": [upstream::ROLE]});
        let servers = json!({"mcpServers": {"bench": echo}});
        fs::write(folder.path().join("mcp.json"), servers.to_string())?;
        let agent = "tools: {builtin: [file.list]}\nmcp: {path: mcp.json}\n";
        fs::write(folder.path().join("agent.yaml"), agent)?;
        fs::create_dir(folder.path().join("workspace"))?;
        Ok(Self { folder, exe })
    }

    /// A gateway over stdio with nothing behind it.
    pub(crate) fn alone(&self) -> Command {
        let mut command = self.serve();
        command.stderr(Stdio::null());
        command
    }

    /// A gateway over stdio with the upstream behind it.
    pub(crate) fn with_upstream(&self) -> Command {
        let mut command = self.serve();
        command.arg("--agent").arg(self.path("agent.yaml")).args(["--approval", "client"]);
        command.stderr(Stdio::null());
        command
    }

    /// Starts a gateway over HTTP with the upstream behind it, and waits until both are ready.
    pub(crate) async fn over_http(&self) -> io::Result<Served> {
        let mut command = self.with_upstream();
        command.args(["--http", "127.0.0.1:0"]).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stderr =
            child.stderr.take().ok_or_else(|| io::Error::other("a child without pipes"))?;
        let mut stderr = BufReader::new(stderr);
        let mut address = None;
        let mut line = String::new();
        // It names its address first and its sources when all of them are ready.
        while stderr.read_line(&mut line).await? > 0 {
            let url = line.trim().strip_prefix("http://").and_then(|url| url.strip_suffix("/mcp"));
            address = address.or_else(|| url.map(str::to_owned));
            if let Some(address) = address.take_if(|_| line.contains("bench: 2 tools")) {
                return Ok(Served { address, child, _stderr: stderr });
            }
            line.clear();
        }
        Err(io::Error::other("the gateway ended before it was ready"))
    }

    fn serve(&self) -> Command {
        let mut command = command(&self.exe);
        command.args(["serve", "--workspace"]).arg(self.path("workspace"));
        command.arg("--log-file").arg(self.path("log"));
        // Otherwise every result of the upstream would also be written to a file.
        command.env("IRIS_MCP_ARTIFACTS_MCP_NATIVE", "rich");
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Served {
    /// Returns the process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }
}

/// The upstream without a gateway before it.
pub(crate) fn direct() -> io::Result<Command> {
    let mut command = command(&std::env::current_exe()?);
    command.arg(upstream::ROLE).stderr(Stdio::null());
    Ok(command)
}

#[expect(clippy::disallowed_methods, reason = "the benchmark starts what it measures")]
fn command(program: &Path) -> Command {
    Command::new(program)
}

/// Returns the memory of a process.
pub(crate) fn memory(pid: u32) -> io::Result<Memory> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let mut memory = Memory::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(number)) = (words.next(), words.next()) else { continue };
        let kib: u64 = number.parse().unwrap_or_default();
        match name {
            "Rss:" => memory.resident = kib,
            "Private_Clean:" | "Private_Dirty:" => memory.private += kib,
            _ => {}
        }
    }
    Ok(memory)
}

/// Returns the time that a process has had on any core, in all threads that it still has.
pub(crate) fn cpu_time(pid: u32) -> io::Result<Duration> {
    let mut total = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let times = fs::read_to_string(entry?.path().join("schedstat"))?;
        let on_core: u64 = times.split(' ').next().unwrap_or_default().parse().unwrap_or_default();
        total += on_core;
    }
    Ok(Duration::from_nanos(total))
}

/// Returns the process id of the guard that a gateway has started.
pub(crate) fn guard_of(pid: u32) -> io::Result<u32> {
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let children = fs::read_to_string(entry?.path().join("children"))?;
        for child in children.split_whitespace() {
            let name = fs::read_to_string(format!("/proc/{child}/comm"))?;
            if name.trim() == "iris-mcp-guard" {
                return child.parse().map_err(io::Error::other);
            }
        }
    }
    Err(io::Error::other("the gateway has no guard"))
}
