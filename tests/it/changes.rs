//! Files changed through the real program: with permission only, and by two of it at once.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{geteuid, mkfifo};
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
fn an_edit_by_one_program_makes_the_other_ones_stale() {
    let bench = Bench::new("{writes: allow}");
    fs::write(bench.path("a"), "one two").unwrap();
    let mut servers = [Server::start(&bench), Server::start(&bench)];
    for server in &mut servers {
        server.call("read_file", &json!({"file_path": "a"}));
    }
    let edit =
        |old: &str| json!({"file_path": "a", "old_string": old, "new_string": old.to_uppercase()});
    let [first, second] = &mut servers;
    assert_eq!(first.call("edit_file", &edit("one")), "EDITED: a");
    let write = json!({"file_path": "a", "content": "mine"});
    for (tool, arguments) in [("edit_file", &edit("two")), ("write_file", &write)] {
        let refused = second.call(tool, arguments);
        assert!(refused.starts_with("Error[STALE_FILE_STATE]"), "{refused}");
    }
    second.call("read_file", &json!({"file_path": "a", "limit": 0}));
    assert_eq!(second.call("edit_file", &edit("two")), "EDITED: a");
    assert!(first.call("edit_file", &edit("ONE")).starts_with("Error[STALE_FILE_STATE]"));
    assert_eq!(fs::read_to_string(bench.path("a")).unwrap(), "ONE TWO");
}

/// Fills a workspace with everything that a path can lead to and should not.
fn odd_paths(bench: &Bench) -> UnixListener {
    let outside = bench.folder.path().join("out");
    fs::create_dir_all(outside.join("deep")).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    fs::create_dir(bench.path("d")).unwrap();
    for (link, target) in [
        ("link", "../out/secret"),
        ("folder", "../out"),
        ("chain", "folder"),
        ("d/up", "../.."),
        ("loop", "loop"),
        ("null", "/dev/null"),
    ] {
        symlink(target, bench.path(link)).unwrap();
    }
    symlink(outside.join("secret"), bench.path("absolute")).unwrap();
    mkfifo(&bench.path("pipe"), Mode::S_IRWXU).unwrap();
    // A device can only be made by root.
    if geteuid().is_root() {
        _ = mknod(&bench.path("device"), SFlag::S_IFCHR, Mode::S_IRWXU, makedev(1, 3));
    }
    UnixListener::bind(bench.path("socket")).unwrap()
}

#[test]
fn no_tool_is_led_out_or_kept_waiting_by_a_path() {
    let bench = Bench::new("{writes: allow}");
    let _listener = odd_paths(&bench);
    let secret = bench.folder.path().join("out/secret");
    let secret = secret.to_str().unwrap();
    let mut server = Server::start(&bench);
    let began = Instant::now();
    let outside = "PATH_OUTSIDE_WORKSPACE";
    let table = [
        ("../out/secret", "VALIDATION_ERROR", outside),
        ("d/../../out/secret", "VALIDATION_ERROR", outside),
        (secret, "VALIDATION_ERROR", outside),
        ("/dev/null", "VALIDATION_ERROR", outside),
        ("link", "VALIDATION_ERROR", outside),
        ("absolute", "VALIDATION_ERROR", outside),
        ("folder/secret", "VALIDATION_ERROR", outside),
        ("folder/deep/new", "VALIDATION_ERROR", outside),
        ("chain/secret", "VALIDATION_ERROR", outside),
        ("d/up/out/secret", "VALIDATION_ERROR", outside),
        ("null", "VALIDATION_ERROR", outside),
        ("a\0b", "VALIDATION_ERROR", "NUL"),
        ("loop/x", "EXECUTION_ERROR", "too many symbolic links"),
        ("d", "FILE_NOT_FOUND", "d"),
        ("", "FILE_NOT_FOUND", ""),
        ("pipe", "FILE_NOT_FOUND", "pipe"),
        ("socket", "FILE_NOT_FOUND", "socket"),
        ("device", "FILE_NOT_FOUND", "device"),
    ];
    for (path, code, part) in table {
        if path == "device" && !bench.path(path).exists() {
            continue;
        }
        for (tool, arguments) in [
            ("read_file", json!({"file_path": path})),
            ("edit_file", json!({"file_path": path, "old_string": "secret", "new_string": "x"})),
            ("write_file", json!({"file_path": path, "content": "x"})),
        ] {
            let text = server.call(tool, &arguments);
            let refused = text.starts_with(&format!("Error[{code}]: ")) && text.contains(part);
            assert!(refused, "{tool} {path:?}: {text}");
        }
    }
    assert!(began.elapsed() < LIMIT);
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
    assert_eq!(names(&bench.folder.path().join("out/deep")), [] as [&str; 0]);
}

#[test]
fn what_is_written_is_what_was_given() {
    let bench = Bench::new("{writes: allow}");
    let mut server = Server::start(&bench);
    for (content, shown) in [
        ("", ""),
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("\u{feff}a", "\u{feff}a"),
        ("no end", "no end"),
        ("\0\u{1b}", "\0\u{1b}"),
    ] {
        server.call("write_file", &json!({"file_path": "a", "content": content}));
        assert_eq!(fs::read(bench.path("a")).unwrap(), content.as_bytes());
        let read = server.call("read_file", &json!({"file_path": "a"}));
        assert!(read.starts_with(&format!("{shown}\n\n[read_file: ")), "{read:?}");
    }
    // What is outside and has two names keeps its content under the other.
    let other = bench.folder.path().join("other");
    fs::hard_link(bench.path("a"), &other).unwrap();
    server.call("write_file", &json!({"file_path": "a", "content": "new"}));
    assert_eq!(fs::read_to_string(other).unwrap(), "\0\u{1b}");
    fs::write(bench.path("bytes"), b"a\xff").unwrap();
    let read = server.call("read_file", &json!({"file_path": "bytes"}));
    assert!(read.contains("not UTF-8"), "{read}");
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
        let writes = ["write_file", "edit_file"].contains(&tool["name"].as_str().unwrap());
        assert_eq!(tool["annotations"]["readOnlyHint"], !writes, "{tool}");
        assert_eq!(tool["annotations"]["destructiveHint"] == true, writes, "{tool}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
