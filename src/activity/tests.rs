//! L1 to L5: records, their file, and calls that end in every way.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

fn record<'a>() -> Record<'a> {
    Record {
        time: UNIX_EPOCH + Duration::from_millis(1_785_196_800_042),
        call_id: "c",
        tool: "read_file",
        principal: "alice",
        session: "s",
        client: "probe",
        decided: Decided { effect: "require_human", rule: Some("default"), by: Some("person") },
        outcome: "OK",
        took: Duration::from_nanos(1_234_567),
    }
}

fn who(client: &str) -> Who {
    Who {
        principal: Principal::new("alice"),
        session: SessionId::new("s"),
        client: client.to_owned(),
    }
}

/// A folder with an activity log in it.
fn bench() -> (TempDir, PathBuf, Arc<Activity>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls");
    let activity = Activity::open(&Config { file: Some(file.clone()) }).unwrap();
    (folder, file, Arc::new(activity))
}

fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_record_is_one_line_with_the_same_keys_always() {
    assert_eq!(
        record().line(),
        "{\"time\":\"2026-07-28T00:00:00.042Z\",\"call_id\":\"c\",\"tool\":\"read_file\",\
         \"principal\":\"alice\",\"session\":\"s\",\"client\":\"probe\",\
         \"decision\":\"require_human\",\"rule\":\"default\",\"approved_by\":\"person\",\
         \"outcome\":\"OK\",\"duration_ms\":1.235}\n"
    );
    let undecided = Record { decided: Decided::NOT, ..record() }.line();
    assert!(
        undecided.contains("\"decision\":\"none\",\"rule\":null,\"approved_by\":null"),
        "{undecided}"
    );
}

#[test]
fn no_name_can_forge_a_line_or_move_a_cursor() {
    let forged =
        "x\",\"outcome\":\"OK\"}\n{\"time\":\"\r\u{1b}[2J\u{9b}2J\u{85}\u{2028}\u{202e}\0é";
    let line = Record { tool: forged, client: forged, ..record() }.line();
    let plain = |character: char| character.is_ascii_graphic() || character == ' ';
    assert!(line.trim_end_matches('\n').chars().all(|c| plain(c) || c == 'é'), "{line:?}");
    let read: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&read["tool"], &read["client"]), (&json!(forged), &json!(forged)));
}

#[test]
fn a_name_of_somebody_elses_choice_is_cut() {
    let (_folder, file, activity) = bench();
    activity.turn_away(&"é".repeat(100), CallId::new("c"), who(&"k".repeat(100)), "NOT_FOUND");
    let [line] = &lines(&file)[..] else { panic!() };
    assert_eq!(line["tool"], "é".repeat(64));
    assert_eq!(line["client"], "k".repeat(64));
}

#[test]
fn a_call_is_recorded_once_however_it_ends() {
    let (_folder, file, activity) = bench();
    let begin = |id: &str| activity.begin("t", CallId::new(id), who(""));
    let ended = begin("ended");
    ended.end("OK");
    ended.end("LATE");
    drop(ended);
    drop(begin("dropped"));
    let panicking = begin("panicked");
    thread::scope(|scope| {
        let broken = scope.spawn(move || {
            let _held = panicking;
            panic!("on purpose");
        });
        assert!(broken.join().is_err());
    });
    let seen: Vec<(Value, Value)> = lines(&file)
        .iter()
        .map(|line| (line["call_id"].clone(), line["outcome"].clone()))
        .collect();
    let expected = [("ended", "OK"), ("dropped", "CANCELLED"), ("panicked", "INTERNAL_ERROR")];
    assert_eq!(seen, expected.map(|(id, outcome)| (json!(id), json!(outcome))));
}

#[test]
fn the_file_is_its_owners_alone_and_is_appended_to() {
    let (_folder, file, activity) = bench();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    activity.turn_away("one", CallId::new("c"), who(""), "NOT_FOUND");
    drop(activity);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let again = Arc::new(Activity::open(&Config { file: Some(file.clone()) }).unwrap());
    again.turn_away("two", CallId::new("c"), who(""), "NOT_FOUND");
    assert_eq!(lines(&file).len(), 2);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640, "left as it was");
}

#[test]
fn what_cannot_be_written_to_is_refused_with_the_name_of_the_setting() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (path, part) in [
        (folder.path().join("none/calls"), "No such file"),
        (folder.path().to_owned(), "it is no file"),
        (pipe, "it is no file"),
    ] {
        let error = Activity::open(&Config { file: Some(path.clone()) }).unwrap_err().to_string();
        assert!(error.starts_with("the record of calls "), "{error}");
        assert!(error.contains(part) && error.contains(path.to_str().unwrap()), "{error}");
    }
}

#[test]
fn a_renamed_file_is_left_for_a_new_one() {
    let (folder, file, _) = bench();
    let journal = Journal::open(&file).unwrap();
    let start = Instant::now();
    let at = |milliseconds| start + Duration::from_millis(milliseconds);
    journal.append("1\n", start);
    let old = folder.path().join("calls.1");
    fs::rename(&file, &old).unwrap();
    journal.append("2\n", at(500));
    assert_eq!(fs::read_to_string(&old).unwrap(), "1\n2\n", "not looked for yet");
    journal.append("3\n", at(2_000));
    assert_eq!(fs::read_to_string(&file).unwrap(), "3\n");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // Somebody else was faster with the new one.
    fs::rename(&file, folder.path().join("calls.2")).unwrap();
    fs::write(&file, "theirs\n").unwrap();
    journal.append("4\n", at(4_000));
    assert_eq!(fs::read_to_string(&file).unwrap(), "theirs\n4\n");
    // Emptied in place, it is written from its beginning.
    fs::write(&file, "").unwrap();
    journal.append("5\n", at(4_100));
    assert_eq!(fs::read_to_string(&file).unwrap(), "5\n");
}

#[test]
fn where_no_new_file_can_be_made_the_old_one_is_kept() {
    let (folder, _, _) = bench();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let journal = Journal::open(&inner.join("calls")).unwrap();
    let moved = folder.path().join("moved");
    fs::rename(&inner, &moved).unwrap();
    let start = Instant::now();
    for round in 1..=3 {
        journal.append("kept\n", start + Duration::from_secs(2 * round));
    }
    assert_eq!(fs::read_to_string(moved.join("calls")).unwrap(), "kept\n".repeat(3));
    fs::create_dir(&inner).unwrap();
    journal.append("new\n", start + Duration::from_secs(20));
    assert_eq!(fs::read_to_string(inner.join("calls")).unwrap(), "new\n");
}

#[test]
fn many_writers_tear_no_line() {
    const EACH: usize = 200;
    let (_folder, file, _) = bench();
    let all = Barrier::new(8);
    thread::scope(|scope| {
        for writer in 0..8 {
            let (file, all) = (&file, &all);
            scope.spawn(move || {
                // Each opens it for itself, as gateways do.
                let activity = Activity::open(&Config { file: Some(file.clone()) }).unwrap();
                let activity = Arc::new(activity);
                all.wait();
                for number in 0..EACH {
                    let id = CallId::new(format!("{writer}-{number}"));
                    activity.turn_away(&"n".repeat(64), id, who("x"), "NOT_FOUND");
                }
            });
        }
    });
    let mut ids: Vec<String> =
        lines(&file).iter().map(|line| line["call_id"].to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8 * EACH);
}

#[test]
fn a_full_disk_loses_records_and_nothing_else() {
    let full = Arc::new(Activity::open(&Config { file: Some("/dev/full".into()) }).unwrap());
    for _ in 0..3 {
        full.turn_away("t", CallId::new("c"), who(""), "NOT_FOUND");
    }
    assert_eq!(full.journal.as_ref().unwrap().lost(), 3);
}
