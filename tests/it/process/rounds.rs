//! Servers that come and go in one gateway, over and over: it has afterwards what it had before.
//!
//! `IT_ROUNDS=1000` makes as many rounds of it, which takes minutes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::unistd::Pid;
use serde_json::{Value, json};

use super::traces::{Mark, children};
use crate::binary::Gateway;
use crate::fixture::{Home, eventually, script};
use crate::session::{Session, code, text};
use crate::web::Web;

/// How many rounds are made where nobody says so.
const ROUNDS: usize = 40;
/// After so many everything is there that is made once and kept.
const WARM: usize = 5;
/// Workers for what blocks come and go by themselves.
const THREADS: usize = 4;

fn rounds() -> usize {
    std::env::var("IT_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().expect("a number"))
}

/// What a process has of what can leak.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holdings {
    /// How many descriptors of each kind.
    descriptors: BTreeMap<String, usize>,
    threads: usize,
    children: usize,
    kilobytes: usize,
}

impl Holdings {
    fn of(pid: Pid) -> Self {
        let mut descriptors = BTreeMap::new();
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).expect("running").flatten() {
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            let target = target.display().to_string();
            let kind = target.split_once(":[").map_or(target.as_str(), |(kind, _)| kind);
            *descriptors.entry(kind.to_owned()).or_default() += 1;
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("running");
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("there");
            line.trim().trim_end_matches(" kB").parse().expect("a number")
        };
        Self {
            descriptors,
            threads: number("Threads:"),
            children: children(pid).len(),
            kilobytes: number("VmRSS:"),
        }
    }

    /// Reports whether it is no more than there was.
    fn fits(&self, before: &Self) -> bool {
        let (ours, theirs) = (&self.descriptors, &before.descriptors);
        ours.iter().all(|(kind, count)| *count <= theirs.get(kind).copied().unwrap_or(0))
            && self.threads <= before.threads + THREADS
            && self.children <= before.children
    }
}

/// Returns every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(|entry| below(entry.path())).collect()
}

/// Makes the folders that a program may leave something in, and returns their variables.
fn folders(home: &Home) -> Vec<(&'static str, PathBuf)> {
    ["TMPDIR", "HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"]
        .map(|name| {
            let path = home.file("left").join(name);
            fs::create_dir_all(&path).expect("a new folder");
            (name, path)
        })
        .to_vec()
}

fn of(name: &str) -> Value {
    json!({"name": name, "arguments": {}})
}

/// One that crashes at each call, one that each client has for itself, and one whose list changes.
fn round(shared: &mut Web, gateway: &Gateway) {
    let lost = shared.request("tools/call", &of("mcp__crash__crash"));
    assert_eq!(code(&lost["result"]), "TOOL_OUTCOME_UNKNOWN", "{lost}");
    let mut own = Web::new(&gateway.url);
    own.initialize();
    let counted = own.request("tools/call", &of("mcp__own__count"));
    assert_eq!(text(&counted["result"]), "1", "{counted}");
    assert_eq!(own.open("DELETE", "").status, 202);
    let flipped = shared.request("tools/call", &of("mcp__list__flip"));
    assert_eq!(text(&flipped["result"]), r#"["rough", "flip"]"#, "{flipped}");
}

#[test]
fn servers_that_come_and_go_leave_no_process_descriptor_thread_or_file() {
    let (home, mark) = (Home::new(), Mark::new());
    let mut servers = json!({
        "crash": home.server(json!({"tools": ["crash", "echo"]})),
        "own": home.server(json!({"tools": ["count"]})),
        "list": {"command": "python3", "args": [script("rough.py"), r#"{"tools": ["flip"]}"#]},
    });
    for server in servers.as_object_mut().expect("an object").values_mut() {
        server["env"] = json!({"MARK": mark.to_string()});
    }
    home.serve(servers);
    let config = home.write("server.toml", "[upstream.own]\nscope = 'per_client'\n");
    let mut arguments = home.arguments();
    arguments.extend(["--config".to_owned(), config]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let folders = folders(&home);
    let gateway = Gateway::start_with(&arguments, |command| {
        command.envs(folders.iter().map(|(name, path)| (name, path)));
    });
    let mut shared = Web::new(&gateway.url);
    shared.initialize();
    for _ in 0..WARM {
        round(&mut shared, &gateway);
    }
    // By itself the one that crashes comes back ever later.
    let back = |shared: &mut Web| {
        let echo = json!({"name": "mcp__crash__echo", "arguments": {"text": "back"}});
        assert_eq!(text(&shared.request("tools/call", &echo)["result"]), "back");
    };
    back(&mut shared);
    // The one that crashes is there again, and those of clients are gone.
    let settled = || children(gateway.pid()).len() == 3 && mark.bearers().len() == 6;
    eventually("three guards and three servers are left", settled);
    let (before, began, rounds) = (Holdings::of(gateway.pid()), Instant::now(), rounds());
    for _ in 0..rounds {
        round(&mut shared, &gateway);
    }
    let took = began.elapsed();
    back(&mut shared);
    eventually("three guards and three servers are left", settled);
    eventually("it has what it had before", || Holdings::of(gateway.pid()).fits(&before));
    let after = Holdings::of(gateway.pid());
    println!("{rounds} rounds in {took:.1?}:\nbefore {before:?}\nafter  {after:?}");
    assert_eq!(files(&home.file("left")), [""; 0].map(PathBuf::from), "files");
    drop(gateway);
    mark.vanishes();
}

#[test]
fn fifty_runs_leave_no_process_socket_or_file() {
    let (home, mark) = (Home::new(), Mark::new());
    let folders = folders(&home);
    let mut up = home.server(json!({"tools": ["echo"]}));
    up["env"] = json!({"MARK": mark.to_string()});
    home.serve(json!({ "up": up }));
    let arguments = home.arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let echo = json!({"name": "mcp__up__echo", "arguments": {"text": "heard"}});
    let with = |command: &mut std::process::Command| {
        command.envs(folders.iter().map(|(name, path)| (name, path)));
    };
    let mut ports = Vec::new();
    for round in 0..25 {
        let mut session = Session::start_with(&arguments, with);
        session.initialize();
        assert_eq!(text(&session.request("tools/call", &echo)["result"]), "heard");
        session.close();
        assert_eq!(session.end().0, Some(0), "round {round}");
        let mut gateway = Gateway::start_with(&arguments, with);
        let mut web = Web::new(&gateway.url);
        web.initialize();
        assert_eq!(text(&web.request("tools/call", &echo)["result"]), "heard");
        ports.push(web.address().to_owned());
        // Every second one is killed.
        if round % 2 == 0 {
            assert_eq!(gateway.terminate().0, Some(0), "round {round}");
        }
    }
    mark.vanishes();
    for port in ports {
        assert!(std::net::TcpStream::connect(&port).is_err(), "{port} is still listened on");
    }
    assert_eq!(files(&home.file("left")), [""; 0].map(PathBuf::from), "files");
}
