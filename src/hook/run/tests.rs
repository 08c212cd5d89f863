//! Runs begin once and end once, for the right reason.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{First, Runs};
use crate::hook::{Event, Hook, HookError, Hooks, Registration, RunFinished, RunStarted};
use crate::tool::SessionId;

/// Writes down what it hears, and may take its time.
#[derive(Clone, Debug, Default)]
struct Ear {
    heard: Arc<Mutex<Vec<String>>>,
    takes: Duration,
    fails: bool,
}

#[async_trait]
impl Hook for Ear {
    async fn run_started(&self, started: &RunStarted) -> Result<(), HookError> {
        tokio::time::sleep(self.takes).await;
        self.note(format!("started {}", started.run.id()))
    }

    async fn run_finished(&self, finished: &RunFinished) -> Result<(), HookError> {
        self.note(format!("{} {}", finished.stop_reason.name(), finished.run.id()))
    }
}

impl Ear {
    fn note(&self, what: String) -> Result<(), HookError> {
        self.heard.lock().unwrap().push(what);
        if self.fails { Err(HookError::Failed("broken".to_owned())) } else { Ok(()) }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn runs(ears: &[&Ear], ending: &CancellationToken) -> Runs {
    let registrations = ears.iter().flat_map(|ear| {
        [Event::RunStarted, Event::RunFinished].map(|event| Registration {
            event,
            name: "ear".to_owned(),
            tools: None,
            timeout: Duration::from_secs(10),
            hook: Arc::new((*ear).clone()),
        })
    });
    let hooks = Hooks::new(registrations.collect(), TaskTracker::new());
    Runs::new(hooks, || SystemTime::UNIX_EPOCH, ending.clone())
}

fn first(session: &str) -> First {
    First {
        agent_id: String::new(),
        session: SessionId::new(session),
        activation_id: None,
        workspace: Arc::new(PathBuf::from("/ws")),
    }
}

#[tokio::test]
async fn j6_a_run_ends_as_its_session_or_as_we_do() {
    let (ear, ending) = (Ear::default(), CancellationToken::new());
    let runs = runs(&[&ear], &ending);
    let (one, two) = (CancellationToken::new(), CancellationToken::new());
    runs.begin(first("one"), one.clone()).cancelled().await;
    runs.begin(first("two"), two.clone()).cancelled().await;
    assert_eq!(ear.heard(), ["started one", "started two"]);
    one.cancel();
    while ear.heard().len() < 3 {
        tokio::task::yield_now().await;
    }
    ending.cancel();
    two.cancel();
    runs.finished().await;
    assert_eq!(ear.heard()[2..], ["completed one", "completed two"], "it had ended before we did");
}

#[tokio::test]
async fn j6_our_end_cancels_runs() {
    let (ear, ending) = (Ear::default(), CancellationToken::new());
    let runs = runs(&[&ear], &ending);
    runs.begin(first("one"), CancellationToken::new()).cancelled().await;
    ending.cancel();
    runs.finished().await;
    assert_eq!(ear.heard(), ["started one", "cancelled one"]);
}

#[tokio::test(start_paused = true)]
async fn j6_a_hook_that_takes_its_time_holds_up_the_beginning_and_not_our_end() {
    let slow = Ear { takes: Duration::from_secs(5), ..Ear::default() };
    let ending = CancellationToken::new();
    let runs = runs(&[&slow], &ending);
    let begun = runs.begin(first("one"), CancellationToken::new());
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(!begun.is_cancelled());
    begun.cancelled().await;
    assert_eq!(slow.heard(), ["started one"]);

    let begun = runs.begin(first("two"), CancellationToken::new());
    tokio::time::sleep(Duration::from_secs(1)).await;
    ending.cancel();
    tokio::time::timeout(Duration::from_secs(1), runs.finished()).await.unwrap();
    assert!(begun.is_cancelled());
    assert_eq!(slow.heard()[1..], ["cancelled one", "cancelled two"]);
}

#[tokio::test]
async fn j6_a_hook_that_fails_keeps_no_other_from_hearing() {
    let (bad, good) = (Ear { fails: true, ..Ear::default() }, Ear::default());
    let ending = CancellationToken::new();
    let runs = runs(&[&bad, &good], &ending);
    assert!(runs.are_heard());
    let ended = CancellationToken::new();
    runs.begin(first("one"), ended.clone()).cancelled().await;
    ended.cancel();
    runs.finished().await;
    assert_eq!(good.heard(), ["started one", "completed one"]);
    assert_eq!(bad.heard(), good.heard());
}
