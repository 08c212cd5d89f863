//! Commands run once: their end, their deadline, what they print, and what is left of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use iris_mcp::command::capture::BUDGET;
use iris_mcp::command::{CommandError, Native, Outcome, Payload, Request, Status, Truncation};
use iris_mcp::process::{Config, Processes, SpawnError};
use iris_mcp::shutdown::{Drained, Shutdown};
use tokio_util::sync::CancellationToken;

use crate::process::traces::Mark;

const SECOND: Duration = Duration::from_secs(1);

fn native(shutdown: &Shutdown) -> Native {
    let config = Config { exe: Some(env!("CARGO_BIN_EXE_iris-mcp").into()) };
    Native::new(Processes::new(config, shutdown.clone()), shutdown.clone())
}

fn shell(line: &str) -> Request {
    shell_with(line, &[])
}

/// A line of shell with further variables.
fn shell_with(line: &str, variables: &[(&str, &str)]) -> Request {
    let variables = [&[("PATH", "/usr/bin:/bin")], variables].concat();
    let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    Request {
        name: "test".to_owned(),
        payload: Payload::Shell(line.to_owned()),
        cwd: "/".into(),
        environment: variables.collect::<BTreeMap<_, _>>().into(),
        limit: 30 * SECOND,
        stdin: bytes::Bytes::new(),
        cancelled: CancellationToken::new(),
    }
}

fn marked(mark: &Mark, line: &str) -> Request {
    shell_with(line, &[("MARK", &mark.to_string())])
}

async fn ran(request: Request) -> Outcome {
    native(&Shutdown::new()).run(request).await.unwrap()
}

/// Waits until a condition holds.
async fn eventually(mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + 5 * SECOND;
    while !condition() {
        assert!(Instant::now() < until, "it does not come to hold");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn ends(outcome: &Outcome) -> (Status, Option<i32>) {
    (outcome.status, outcome.exit_code)
}

#[tokio::test]
async fn c1_a_command_is_a_line_of_shell_with_its_own_folder_environment_and_input() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mut request = shell_with("pwd; env; cat; echo late >&2; exit 3", &[("ONLY", "this")]);
    assert!(!format!("{request:?}").contains("this"), "a value may be a secret");
    request.cwd.clone_from(&root);
    request.stdin = "read me".into();
    let outcome = ran(request).await;
    assert_eq!(ends(&outcome), (Status::Exited, Some(3)));
    let text = outcome.stdout.text();
    let shown: Vec<&str> =
        text.lines().filter(|line| !line.starts_with("PWD=") && !line.starts_with("_=")).collect();
    let root = root.to_str().unwrap();
    assert_eq!(shown[0], root, "{text}");
    assert_eq!(*shown.last().unwrap(), "read me", "{text}");
    assert!(shown.contains(&"ONLY=this") && !text.contains("HOME="), "{text}");
    assert_eq!(outcome.stderr.text(), "late\n");
    assert_eq!(outcome.truncation, []);
}

#[tokio::test]
async fn c2_an_exit_code_is_the_shells_and_a_signal_is_below_zero() {
    for (line, code) in [("true", 0), ("exit 137", 137), ("kill -9 $$", -9), ("nonesuch", 127)] {
        assert_eq!(ends(&ran(shell(line)).await), (Status::Exited, Some(code)), "{line}");
    }
}

#[tokio::test]
async fn c3_a_command_that_takes_too_long_is_stopped_with_all_that_descends_from_it() {
    let mark = Mark::new();
    let stubborn =
        "trap '' TERM HUP; (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &) ;
                    echo begun; while :; do sleep 1; done";
    let mut request = marked(&mark, stubborn);
    request.limit = SECOND;
    let outcome = ran(request).await;
    assert_eq!(ends(&outcome), (Status::TimedOut, None));
    assert_eq!(outcome.stdout.text(), "begun\n");
    assert!(outcome.duration >= SECOND && outcome.duration < 6 * SECOND, "{:?}", outcome.duration);
    assert!(mark.bearers().is_empty(), "{:?}", mark.bearers());
}

#[tokio::test]
async fn c3_a_command_is_asked_to_end_before_it_is_killed() {
    let mut request =
        shell("trap 'echo bye; exit 5' TERM; echo begun; while :; do sleep 0.1; done");
    request.limit = SECOND;
    let outcome = ran(request).await;
    assert_eq!(ends(&outcome), (Status::TimedOut, None));
    assert_eq!(outcome.stdout.text(), "begun\nbye\n");
}

#[tokio::test]
async fn c3_a_command_that_nobody_waits_for_is_stopped() {
    let mark = Mark::new();
    let shutdown = Shutdown::new();
    let native = native(&shutdown);
    let request = marked(&mark, "while :; do sleep 1; done");
    let cancelled = request.cancelled.clone();
    let running = native.run(request);
    let stopping = async {
        eventually(|| !mark.bearers().is_empty()).await;
        cancelled.cancel();
    };
    let (outcome, ()) = tokio::join!(running, stopping);
    assert_eq!(ends(&outcome.unwrap()), (Status::Cancelled, None));
    assert!(mark.bearers().is_empty());

    // One that is given up before it has begun does not begin.
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    for _ in 0..5 {
        let request = shell(&format!("echo > {}; sleep 10", begun.display()));
        request.cancelled.cancel();
        let outcome = native.run(request).await.unwrap();
        assert_eq!(ends(&outcome), (Status::Cancelled, None));
    }
    assert!(!begun.exists());

    // And so is one whose future is dropped.
    {
        let running = native.run(marked(&mark, "while :; do sleep 1; done"));
        tokio::select! {
            _ = running => panic!("it does not end"),
            () = eventually(|| !mark.bearers().is_empty()) => {}
        }
    }
    eventually(|| mark.bearers().is_empty()).await;
    assert_eq!(shutdown.drain(5 * SECOND).await, Drained::All);
}

#[tokio::test]
async fn c4_input_that_is_not_read_holds_nothing_up() {
    let much = bytes::Bytes::from(vec![b'x'; 4 << 20]);
    for line in ["true", "exec <&-; sleep 0.2", "head -c 10 >/dev/null", "cat >/dev/null"] {
        let mut request = shell(line);
        request.stdin = much.clone();
        let outcome = ran(request).await;
        assert_eq!(ends(&outcome), (Status::Exited, Some(0)), "{line}");
    }
    let mut request = shell("sleep 60");
    (request.stdin, request.limit) = (much, SECOND);
    assert_eq!(ends(&ran(request).await), (Status::TimedOut, None));
}

#[tokio::test]
async fn c5_of_a_long_output_the_beginning_and_the_end_are_kept() {
    let lines = 1_000_000;
    let outcome = ran(shell(&format!("seq 1 {lines}; echo no >&2"))).await;
    let mut expected = String::new();
    for number in 1..=lines {
        writeln!(expected, "{number}").unwrap();
    }
    assert_eq!(outcome.stdout.total, expected.len() as u64);
    assert_eq!(outcome.stdout.retained(), BUDGET);
    let text = outcome.stdout.text();
    assert!(text.starts_with(&expected[..BUDGET / 2]));
    assert!(text.ends_with(&expected[expected.len() - BUDGET / 2..]));
    assert_eq!(outcome.stderr.text(), "no\n");
    assert_eq!(outcome.truncation, [Truncation::ByteLimit]);
}

#[tokio::test]
async fn c5_output_without_end_takes_no_memory_and_no_longer_than_the_limit() {
    let resident = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    // The first one brings in code, too.
    ran(shell("head -c 4000000 /dev/zero")).await;
    let before = resident();
    let mut request = shell("exec cat /dev/zero");
    request.limit = 2 * SECOND;
    let outcome = ran(request).await;
    assert_eq!(ends(&outcome), (Status::TimedOut, None));
    assert!(outcome.stdout.total > 16 << 20, "{}", outcome.stdout.total);
    assert_eq!(outcome.stdout.retained(), BUDGET);
    let grown = resident().saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB");
}

#[tokio::test]
async fn c6_a_process_in_the_background_is_not_waited_for_and_ends_with_us() {
    let mark = Mark::new();
    let shutdown = Shutdown::new();
    let started = Instant::now();
    let outcome = native(&shutdown).run(marked(&mark, "sleep 1000 & echo done")).await.unwrap();
    assert_eq!(ends(&outcome), (Status::Exited, Some(0)));
    assert_eq!(outcome.truncation, [Truncation::DrainTimeout]);
    assert_eq!(outcome.stdout.text(), "done\n");
    let took = started.elapsed();
    assert!(took >= SECOND && took < 4 * SECOND, "{took:?}");
    assert!(!mark.bearers().is_empty(), "it goes on");
    shutdown.cancel();
    assert_eq!(shutdown.drain(5 * SECOND).await, Drained::All);
    assert!(mark.bearers().is_empty());

    let quiet = ran(marked(&mark, "sleep 1000 >/dev/null 2>&1 & echo done")).await;
    assert_eq!(quiet.truncation, [], "it holds no stream open");
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let mut request = shell("true");
    request.cwd = Path::new("/nonesuch").into();
    let error = native(&Shutdown::new()).run(request).await.unwrap_err();
    assert!(matches!(error, CommandError::NotStarted(SpawnError::BadCwd { .. })), "{error}");
    assert_eq!(
        error.to_string(),
        "the command was not started: the working directory `/nonesuch` cannot be used: No such file or directory (os error 2)"
    );
}
