//! Children start, talk, end, and leave nothing behind, whoever is killed.

mod host;
pub(crate) mod traces;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use iris_mcp::process::{Config, Exit, Grace, Leftovers, Processes, SpawnError, Spec, Stderr};
use iris_mcp::shutdown::{Drained, Shutdown};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use self::host::Host;
use self::traces::{Mark, eventually};

/// A child that ignores its input's end and `SIGTERM`, with a chain of shells below it, and a
/// grandchild that is forked twice, has a session of its own and ignores signals, too.
const STUBBORN: &str = r#"
    trap "" TERM HUP INT
    ( ( exec setsid sh -c 'trap "" TERM HUP; echo background; while :; do sleep 1; done' ) & )
    sh -c 'sh -c "sleep 1000; true"; true' &
    echo foreground
    while :; do sleep 1; done
"#;

fn config() -> Config {
    Config { exe: Some(env!("CARGO_BIN_EXE_iris-mcp").into()) }
}

fn processes() -> Processes {
    Processes::new(config(), Shutdown::new())
}

fn spec(program: &str, args: &[&str]) -> Spec {
    let path = std::env::var("PATH").unwrap();
    Spec {
        name: "test".to_owned(),
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        env: BTreeMap::from([("PATH".to_owned(), path)]),
        ..Spec::default()
    }
}

fn marked(mark: &Mark, program: &str, args: &[&str]) -> Spec {
    let mut spec = spec(program, args);
    spec.env.insert("MARK".to_owned(), mark.to_string());
    spec
}

/// Runs a program to its end and returns what it wrote.
async fn output(spec: Spec) -> (Exit, String) {
    let mut child = processes().spawn(spec).await.unwrap();
    child.stdin = None;
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    (child.stop(Grace::default()).await, text)
}

// ---- Who is killed --------------------------------------------------------------------------

#[test]
fn a_killed_host_leaves_nothing() {
    let mark = Mark::new();
    let mut host = Host::start("family", &mark);
    host.family();
    assert!(mark.bearers().len() >= 5, "guard, child, background, chain");
    host.kill();
    mark.vanishes();
}

#[test]
fn a_panicking_host_leaves_nothing() {
    let mark = Mark::new();
    let mut host = Host::start("family", &mark);
    host.family();
    host.tell("panic");
    mark.vanishes();
    assert!(!host.wait().success());
}

#[test]
fn a_host_that_stops_its_child_leaves_nothing() {
    let mark = Mark::new();
    let mut host = Host::start("family", &mark);
    host.family();
    host.tell("stop");
    assert_eq!(host.line(), "stopped SIGKILL");
    mark.has_vanished();
    assert!(host.children().is_empty());
}

#[test]
fn a_killed_guard_leaves_nothing_because_the_host_adopts() {
    let mark = Mark::new();
    let mut host = Host::start("family", &mark);
    let (guard, _) = host.family();
    kill(guard, Signal::SIGKILL).unwrap();
    mark.vanishes();
    eventually("the host has reaped all", || host.children().is_empty());
    host.tell("stop");
    assert_eq!(host.line(), "stopped killed together with its guard");
}

#[test]
fn a_guard_that_does_not_answer_is_killed() {
    let mark = Mark::new();
    let mut host = Host::start("family", &mark);
    let (guard, _) = host.family();
    kill(guard, Signal::SIGSTOP).unwrap();
    host.tell("stop");
    assert_eq!(host.line(), "stopped killed together with its guard");
    mark.has_vanished();
    assert!(host.children().is_empty());
}

#[test]
fn a_guard_ignores_the_signals_that_everybody_gets() {
    let mark = Mark::new();
    let mut host = Host::start("family", &mark);
    let (guard, child) = host.family();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        kill(guard, signal).unwrap();
    }
    host.tell("stop");
    assert_eq!(host.line(), "stopped SIGKILL", "guard {guard} ended its child {child} in order");
}

#[test]
fn with_host_and_guard_killed_at_once_the_child_dies() {
    let mark = Mark::new();
    let mut host = Host::start("family", &mark);
    let (guard, child) = host.family();
    // Stopped, the host cannot clean up after the guard.
    kill(host.pid(), Signal::SIGSTOP).unwrap();
    kill(guard, Signal::SIGKILL).unwrap();
    host.kill();
    eventually("the child is dead", || !mark.bearers().contains(&child.as_raw()));
    // What the child had put into the background is the documented limit.
    mark.kill();
}

#[test]
fn two_hundred_rounds_leave_no_process_file_or_descriptor() {
    let mark = Mark::new();
    let temporary = tempfile::TempDir::new().unwrap();
    let mut host = Host::start_with("rounds", &mark, &[("TMPDIR", temporary.path())]);
    assert_eq!(host.line(), "descriptors +0, children 0");
    mark.has_vanished();
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

// ---- How it ends ----------------------------------------------------------------------------

#[tokio::test]
async fn a_child_that_ends_with_its_input_is_never_signalled() {
    let begun = Instant::now();
    let mut child = processes().spawn(spec("cat", &[])).await.unwrap();
    assert_eq!(child.stop(Grace::default()).await, Exit::Code(0));
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn the_ladder_asks_before_it_kills() {
    let short = Grace { stdin: Duration::from_millis(20), ..Grace::default() };
    let mut child = processes().spawn(spec("sleep", &["1000"])).await.unwrap();
    assert_eq!(child.stop(short).await, Exit::Signal(15));

    let script = "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done";
    let mut child = processes().spawn(spec("sh", &["-c", script])).await.unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 3]).await.unwrap();
    assert_eq!(child.stop(short).await, Exit::Code(7));
    assert_eq!(child.stop(short).await, Exit::Code(7), "again");
}

#[tokio::test]
async fn a_dropped_child_ends_in_the_background() {
    let mark = Mark::new();
    let shutdown = Shutdown::new();
    let processes = Processes::new(config(), shutdown.clone());
    let child = processes.spawn(marked(&mark, "sh", &["-c", "sleep 1000 & cat"])).await.unwrap();
    drop(child);
    assert_eq!(shutdown.drain(Duration::from_secs(5)).await, Drained::All);
    mark.has_vanished();
}

#[tokio::test]
async fn the_shutdown_ends_even_the_stubborn_within_three_seconds() {
    let mark = Mark::new();
    let shutdown = Shutdown::new();
    let processes = Processes::new(config(), shutdown.clone());
    let mut child = processes.spawn(marked(&mark, "sh", &["-c", STUBBORN])).await.unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 22]).await.unwrap();
    shutdown.cancel();
    assert_eq!(shutdown.drain(Duration::from_secs(3)).await, Drained::All);
    mark.has_vanished();
    assert_eq!(child.wait().await, Exit::Signal(9));
    assert!(matches!(processes.spawn(spec("true", &[])).await, Err(SpawnError::ShuttingDown)));
}

#[tokio::test]
async fn a_child_that_ends_by_itself_tells_how() {
    for (script, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 255", Exit::Code(255)),
        ("kill -9 $$", Exit::Signal(9)),
        ("kill -34 $$", Exit::Signal(34)),
        ("kill 0", Exit::Signal(15)),
    ] {
        let child = processes().spawn(spec("sh", &["-c", script])).await.unwrap();
        assert_eq!(child.wait().await, exit, "{script}");
    }
}

#[tokio::test]
async fn what_an_ended_child_left_behind_is_ended() {
    let mark = Mark::new();
    let script = "(setsid sh -c 'trap \"\" TERM; echo up; sleep 1000; true' &); read line; exit 3";
    let mut child = processes().spawn(marked(&mark, "sh", &["-c", script])).await.unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 3]).await.unwrap();
    child.stdin = None;
    assert_eq!(child.wait().await, Exit::Code(3));
    mark.vanishes();
    assert_eq!(child.stop(Grace::NONE).await, Exit::Code(3));
}

#[tokio::test]
async fn leftovers_may_be_kept_until_the_shutdown() {
    let mark = Mark::new();
    let shutdown = Shutdown::new();
    let processes = Processes::new(config(), shutdown.clone());
    let mut keep = marked(&mark, "sh", &["-c", "sleep 1000 & exit 3"]);
    keep.leftovers = Leftovers::Keep;
    let child = processes.spawn(keep).await.unwrap();
    assert_eq!(child.wait().await, Exit::Code(3));
    child.release().await;
    assert_eq!(shutdown.drain(Duration::from_millis(100)).await, Drained::Left(2));
    assert_eq!(mark.bearers().len(), 2, "guard and sleep");
    shutdown.cancel();
    assert_eq!(shutdown.drain(Duration::from_secs(3)).await, Drained::All);
    mark.has_vanished();
}

// ---- What it inherits -----------------------------------------------------------------------

#[tokio::test]
async fn the_environment_is_exactly_what_was_given() {
    let mut spec = spec("/usr/bin/env", &[]);
    spec.env.insert("LD_PRELOAD".to_owned(), String::new());
    let (_, text) = output(spec).await;
    let path = std::env::var("PATH").unwrap();
    assert_eq!(text, format!("LD_PRELOAD=\nPATH={path}\n"));
}

#[tokio::test]
async fn only_the_three_streams_are_inherited() {
    let stray = tempfile::tempfile().unwrap();
    fcntl(&stray, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    let (_, text) = output(spec("ls", &["/proc/self/fd"])).await;
    assert_eq!(text, "0\n1\n2\n3\n", "3 is the folder itself");
}

#[tokio::test]
async fn signals_are_as_a_program_expects_them() {
    let (_, text) = output(spec("cat", &["/proc/self/status"])).await;
    let mask = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    let bit = |signal: Signal| 1_u64 << (signal as i32 - 1);
    assert_eq!(mask("SigBlk:"), 0);
    assert_eq!(mask("SigIgn:") & (bit(Signal::SIGPIPE) | bit(Signal::SIGCHLD)), 0);
}

#[tokio::test]
async fn a_child_leads_its_own_session_in_its_own_folder() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut spec = spec("sh", &["-c", "pwd -P; cut -d' ' -f1,5-7 /proc/$$/stat"]);
    spec.cwd = Some(folder.path().into());
    let mut child = processes().spawn(spec).await.unwrap();
    let pid = child.pid();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    assert_eq!(text, format!("{}\n{pid} {pid} {pid} 0\n", cwd.display()));
}

// ---- What it says ---------------------------------------------------------------------------

#[tokio::test]
async fn bytes_pass_intact_both_ways() {
    let mut child = processes().spawn(spec("cat", &[])).await.unwrap();
    let sent: Vec<u8> = (0..=u8::MAX).chain(3..200).cycle().take(1 << 20).collect();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut received = Vec::new();
    let writing = async {
        stdin.write_all(&sent).await.unwrap();
        drop(stdin);
    };
    tokio::join!(writing, async { stdout.read_to_end(&mut received).await.unwrap() });
    assert!(received == sent);
    assert_eq!(child.wait().await, Exit::Code(0));
}

#[tokio::test]
async fn the_last_words_are_there_when_the_child_has_ended() {
    let script = "i=0; while [ $i -lt 60 ]; do echo line $i >&2; i=$((i+1)); done; exit 1";
    let child = processes().spawn(spec("sh", &["-c", script])).await.unwrap();
    assert_eq!(child.wait().await, Exit::Code(1));
    let lines = child.last_stderr();
    assert_eq!((lines.len(), lines.last().unwrap().as_str()), (50, "line 59"));
}

#[tokio::test]
async fn standard_error_can_be_had_untouched() {
    let mut spec = spec("sh", &["-c", "printf 'a\\nb' >&2"]);
    spec.stderr = Stderr::Piped;
    let mut child = processes().spawn(spec).await.unwrap();
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "a\nb");
    assert!(child.last_stderr().is_empty());
}

// ---- Why it does not start ------------------------------------------------------------------

/// Returns the message of a start that must fail, and at once.
async fn refusal(spec: Spec) -> String {
    let begun = Instant::now();
    let error = processes().spawn(spec).await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(1), "{error}");
    error.to_string()
}

fn script(folder: &Path, name: &str, text: &[u8], mode: u32) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn a_wrong_command_is_named_at_once() {
    let folder = tempfile::TempDir::new().unwrap();
    let plain = script(folder.path(), "plain", b"#!/bin/sh\n", 0o644);
    let bare = script(folder.path(), "bare", b"echo no shebang\n", 0o755);
    let orphan = script(folder.path(), "orphan", b"#!/nonexistent/interpreter\n", 0o755);
    for (program, message) in [
        ("/nonexistent/cmd", "`/nonexistent/cmd` does not exist".to_owned()),
        ("no-such-cmd", "`no-such-cmd` was not found in PATH".to_owned()),
        (&plain, format!("`{plain}` is not an executable file")),
        (
            &bare,
            format!("`{bare}` is neither a program for this machine nor a script with a `#!` line"),
        ),
        (
            &orphan,
            format!(
                "the interpreter that `{orphan}` names (its `#!` line, or its loader) does not exist"
            ),
        ),
    ] {
        assert_eq!(refusal(spec(program, &[])).await, message);
    }
    let cwd = Spec { cwd: Some("/nonexistent/folder".into()), ..spec("true", &[]) };
    let message = "the working directory `/nonexistent/folder` cannot be used";
    assert_eq!(refusal(cwd).await, message);
    let mut env = spec("true", &[]);
    env.env.insert("A=B".to_owned(), "secret".to_owned());
    let message = "the environment variable \"A=B\" has a name or a value that cannot be passed on";
    assert_eq!(refusal(env).await, message);
    let long = spec("true", &["x".repeat(1 << 20).as_str()]);
    assert!(refusal(long).await.ends_with("/true` could not be started"));
}

#[tokio::test]
async fn without_our_own_binary_nothing_starts() {
    let processes = Processes::new(Config::default(), Shutdown::new());
    let error = processes.spawn(spec("true", &[])).await.unwrap_err();
    assert!(error.to_string().contains("call `process::guard_if_asked()`"), "{error}");

    for wrong in ["/bin/false", "/nonexistent/iris-mcp"] {
        let processes = Processes::new(Config { exe: Some(wrong.into()) }, Shutdown::new());
        let error = processes.spawn(spec("true", &[])).await.unwrap_err();
        assert!(matches!(error, SpawnError::NoGuard { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_dropped_start_leaves_nothing() {
    let mark = Mark::new();
    let shutdown = Shutdown::new();
    let processes = Processes::new(config(), shutdown.clone());
    let mut start = Box::pin(processes.spawn(marked(&mark, "sleep", &["1000"])));
    // Once: the guard is started, and has not answered yet.
    std::future::poll_fn(|cx| {
        assert!(start.as_mut().poll(cx).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    drop(start);
    assert_eq!(shutdown.drain(Duration::from_secs(5)).await, Drained::All);
    mark.has_vanished();
}

/// What the host of a family does; not a test unless a test has started it.
#[test]
fn fixture_host() {
    host::act();
}

fn pid(text: &str) -> Pid {
    Pid::from_raw(text.parse().unwrap())
}
