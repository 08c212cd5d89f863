//! Files changed through the real program: with permission only, and by two of it at once.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{Ended, command, exe, run};

const LIMIT: Duration = Duration::from_secs(30);

/// A workspace with a file in it, and an agent beside it that may do this.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(permissions: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("ws")).unwrap();
        let agent = format!(
            "permissions: {permissions}\ntools: {{builtin: [file.read, file.write, file.edit]}}\n"
        );
        fs::write(folder.path().join("agent.yaml"), agent).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("ws").join(name)
    }

    /// Returns the flags that choose the agent and the workspace.
    fn flags(&self) -> [String; 4] {
        let path = |name: &str| self.folder.path().join(name).to_str().unwrap().to_owned();
        ["--agent".to_owned(), path("agent.yaml"), "--workspace".to_owned(), path("ws")]
    }

    fn call(&self, tool: &str, arguments: &Value, more: &[&str]) -> Ended {
        let mut command = command(exe());
        command.args(["call", tool, &arguments.to_string()]).args(self.flags()).args(more);
        run(command, LIMIT)
    }
}

#[test]
fn a_file_is_written_only_with_permission() {
    let arguments = json!({"file_path": "d/a.txt", "content": "new"});
    for (permissions, more, code) in [
        ("{writes: allow}", [].as_slice(), 0),
        ("{writes: confirm}", &[], 3),
        ("{}", &[], 3),
        ("{}", &["--yes"], 0),
        ("{writes: deny}", &[], 3),
        ("{writes: deny}", &["--yes"], 3),
    ] {
        let bench = Bench::new(permissions);
        let ended = bench.call("write_file", &arguments, more);
        assert_eq!(ended.code, Some(code), "{permissions} {more:?}: {ended:?}");
        if code == 0 {
            assert_eq!(ended.stdout.trim_end(), "WROTE: d/a.txt");
            assert_eq!(fs::read_to_string(bench.path("d/a.txt")).unwrap(), "new");
        } else {
            // T8: nothing is kept of a refused call.
            assert!(names(&bench.path("")).is_empty());
        }
    }
}

#[test]
fn a_program_that_has_read_nothing_changes_nothing() {
    let bench = Bench::new("{writes: allow}");
    fs::write(bench.path("a"), "old").unwrap();
    for (tool, arguments) in [
        ("write_file", json!({"file_path": "a", "content": "new"})),
        ("edit_file", json!({"file_path": "a", "old_string": "old", "new_string": "new"})),
    ] {
        let ended = bench.call(tool, &arguments, &[]);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.code, Some(1), "{said}");
        assert!(said.contains("Error[FILE_NOT_READ]"), "{said}");
    }
    assert_eq!(fs::read_to_string(bench.path("a")).unwrap(), "old");
}

/// A gateway over standard input and output, spoken to by hand; it ends with the test.
struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    last: u64,
}

impl Server {
    fn start(bench: &Bench) -> Self {
        let mut command = command(exe());
        command.arg("serve").args(bench.flags()).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, stdin, stdout, last: 0 };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        server.request("initialize", hello);
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the gateway has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    /// Calls a tool and returns its text.
    fn call(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    }

    /// Reads a file and edits it, again and again until nobody comes between.
    fn replace(&mut self, old: &str, new: &str) {
        loop {
            let read = self.call("read_file", &json!({"file_path": "a", "limit": 0}));
            assert!(!read.starts_with("Error"), "{read}");
            let edit = json!({"file_path": "a", "old_string": old, "new_string": new});
            let text = self.call("edit_file", &edit);
            if text == "EDITED: a" {
                return;
            }
            assert!(text.starts_with("Error[STALE_FILE_STATE]"), "{text}");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn two_programs_editing_one_file_lose_no_edit() {
    const EACH: usize = 100;
    let bench = Bench::new("{writes: allow}");
    let lines: Vec<String> = (0..2 * EACH).map(|number| format!("<{number}>\n")).collect();
    let before = lines.concat();
    fs::write(bench.path("a"), &before).unwrap();
    thread::scope(|scope| {
        for first in [0, EACH] {
            let bench = &bench;
            scope.spawn(move || {
                let mut server = Server::start(bench);
                for number in first..first + EACH {
                    server.replace(&format!("<{number}>"), &format!("[{number}]"));
                }
            });
        }
    });
    let after = before.replace('<', "[").replace('>', "]");
    assert_eq!(fs::read_to_string(bench.path("a")).unwrap(), after);
    assert_eq!(names(&bench.path("")), ["a"]);
}

#[test]
fn the_answer_of_an_edit_has_the_change_for_a_host() {
    let bench = Bench::new("{writes: allow}");
    fs::write(bench.path("a"), "hello old\n").unwrap();
    let mut server = Server::start(&bench);
    server.call("read_file", &json!({"file_path": "a"}));
    let arguments = json!({"file_path": "a", "old_string": "old", "new_string": "new"});
    let result = server.request("tools/call", json!({"name": "edit_file", "arguments": arguments}));
    assert_eq!(result["content"], json!([{"type": "text", "text": "EDITED: a"}]));
    assert_eq!(
        result["_meta"]["iris/result"]["data"],
        json!({"file_change": {
            "file_path": "a",
            "patch": "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-hello old\n+hello new\n",
        }})
    );
    let listed = server.request("tools/list", json!({}));
    for tool in listed["tools"].as_array().unwrap() {
        let writes = tool["name"] != "read_file";
        assert_eq!(tool["annotations"]["readOnlyHint"], !writes, "{tool}");
        assert_eq!(tool["annotations"]["destructiveHint"] == true, writes, "{tool}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
