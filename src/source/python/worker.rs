//! One running interpreter: requests by number, and what becomes of them when it ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::wire::{Alive, Ask, Described, Failed, Said, Unreadable};
use crate::lines::{Line, Lines};

/// How long an interpreter that is not busy takes to answer at most.
const PONG: Duration = Duration::from_secs(2);

/// How often in a row one may be silent before it is ended, whoever may be at work in it.
const SILENCES: usize = 5;

/// How many lines may wait to be written.
const LINES: usize = 64;

/// A running interpreter.
#[derive(Debug)]
pub(super) struct Worker {
    /// Whole lines, so that whoever gives up writing leaves no half of one.
    input: mpsc::Sender<Vec<u8>>,
    waiting: Mutex<Waiting>,
    /// What it loads, until everything is.
    loading: Mutex<String>,
    next: AtomicU64,
    /// Cancelled when nothing more comes from it.
    ended: CancellationToken,
    /// Cancelled when it is to be ended.
    condemned: CancellationToken,
    /// Cancelled when it has said what nobody knows, and what was wrong with that.
    lost: (CancellationToken, Mutex<String>),
}

/// The requests that have no answer yet.
#[derive(Debug, Default)]
struct Waiting {
    requests: BTreeMap<u64, Request>,
    /// In which order bodies have begun.
    begun: u64,
    over: bool,
}

#[derive(Debug)]
struct Request {
    answer: oneshot::Sender<Answer>,
    /// Since when its body runs, as a number.
    begun: Option<u64>,
    /// Told when it wants the rest of its chain to run.
    next: Arc<Notify>,
    /// Of a ping: that it was read.
    read: Option<Alive>,
    /// Nobody waits for it any more.
    given_up: bool,
}

/// How an interpreter is.
enum Pulse {
    /// What it is asked gets on.
    Goes,
    /// It reads and does not get on, since this request is at work.
    Blocked { by: Option<u64> },
    /// Nothing of it runs but one body.
    Silent,
}

/// What became of a request.
#[derive(Debug)]
pub(super) enum Answer {
    Said(Box<Said>),
    /// The interpreter ended first; whether the body had begun.
    Lost {
        begun: bool,
    },
}

/// A request under way; given up when it is dropped.
#[derive(Debug)]
pub(super) struct Asked {
    id: u64,
    worker: Arc<Worker>,
    answer: oneshot::Receiver<Answer>,
    next: Arc<Notify>,
    done: bool,
    tasks: TaskTracker,
}

impl Worker {
    pub(super) fn new(input: ChildStdin, tasks: &TaskTracker) -> Arc<Self> {
        let (sender, lines) = mpsc::channel(LINES);
        let (ended, condemned) = (CancellationToken::new(), CancellationToken::new());
        drop(tasks.spawn(write_all(input, lines, (ended.clone(), condemned.clone()))));
        Arc::new(Self {
            input: sender,
            waiting: Mutex::default(),
            loading: Mutex::default(),
            next: AtomicU64::new(1),
            ended,
            condemned,
            lost: Default::default(),
        })
    }

    /// Writes one line.
    ///
    /// One that has ended takes none; whoever waits for an answer is told so.
    pub(super) async fn write(&self, message: &impl serde::Serialize) {
        match serde_json::to_vec(message) {
            Ok(mut line) => {
                line.push(b'\n');
                // Closed is ended.
                drop(self.input.send(line).await);
            }
            Err(error) => tracing::error!(%error, "a message cannot be written"),
        }
    }

    /// Reads what it says until it ends; the first thing is what it has loaded.
    pub(super) async fn read(
        self: Arc<Self>,
        output: ChildStdout,
        limit: usize,
        loaded: oneshot::Sender<Described>,
    ) {
        let (mut lines, mut loaded) = (Lines::new(output, limit), Some(loaded));
        while let Ok(Some(line)) = lines.next().await {
            let Line::Whole(line) = line else {
                self.lost_track(&"a line has more bytes than limits.max_message_bytes allows");
                continue;
            };
            match serde_json::from_slice::<Said>(&line) {
                Ok(Said { described: Some(described), .. }) => {
                    if let Some(loaded) = loaded.take() {
                        // Whoever waited may have given up.
                        drop(loaded.send(*described));
                    }
                }
                Ok(Said { loading: Some(loading), .. }) => {
                    *self.loading.lock().unwrap_or_else(PoisonError::into_inner) = loading;
                }
                Ok(said) => self.heard(said),
                Err(error) => self.unreadable(&line, &error),
            }
        }
        let requests = {
            let mut waiting = self.waiting();
            waiting.over = true;
            std::mem::take(&mut waiting.requests)
        };
        self.ended.cancel();
        for request in requests.into_values() {
            drop(request.answer.send(Answer::Lost { begun: request.begun.is_some() }));
        }
    }

    /// Answers the request whose answer cannot be read, as what a body returns may make it.
    fn unreadable(&self, line: &[u8], error: &serde_json::Error) {
        let Ok(Unreadable { id }) = serde_json::from_slice(line) else {
            return self.lost_track(error);
        };
        let message = format!("what came of it cannot be handed on: {error}");
        self.heard(Said {
            id: Some(id),
            failure: Some(Box::new(Failed::of(message))),
            ..Said::default()
        });
    }

    /// Ends it: nobody knows which request would wait for its answer for ever.
    fn lost_track(&self, why: &dyn std::fmt::Display) {
        tracing::error!(error = %why, "the Python interpreter said what nobody knows and is ended");
        *self.lost.1.lock().unwrap_or_else(PoisonError::into_inner) = why.to_string();
        self.lost.0.cancel();
        self.condemned.cancel();
    }

    fn heard(&self, said: Said) {
        let Some(id) = said.id else { return };
        let mut waiting = self.waiting();
        if said.started {
            waiting.begun += 1;
            let begun = waiting.begun;
            if let Some(request) = waiting.requests.get_mut(&id) {
                request.begun = Some(begun);
            }
            return;
        }
        if said.alive.is_some() {
            if let Some(request) = waiting.requests.get_mut(&id) {
                request.read = said.alive;
            }
            return;
        }
        if said.next {
            if let Some(request) = waiting.requests.get(&id) {
                request.next.notify_one();
            }
            return;
        }
        if let Some(request) = waiting.requests.remove(&id) {
            // Whoever asked may have gone.
            drop(request.answer.send(Answer::Said(Box::new(said))));
        }
    }

    /// Asks it for something; nothing if it has ended.
    pub(super) async fn ask(self: &Arc<Self>, ask: Ask<'_>, tasks: &TaskTracker) -> Option<Asked> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (request, answer, next) = Request::new();
        {
            let mut waiting = self.waiting();
            if waiting.over {
                return None;
            }
            waiting.requests.insert(id, request);
        }
        let (worker, tasks) = (Arc::clone(self), tasks.clone());
        let asked = Asked { id, worker, answer, next, done: false, tasks };
        self.write(&Numbered { id, ask }).await;
        Some(asked)
    }

    /// Gives a request up, and ends the interpreter if one that was given up is what blocks it.
    async fn give_up(self: Arc<Self>, id: u64) {
        if let Some(request) = self.waiting().requests.get_mut(&id) {
            request.given_up = true;
        }
        if self.blocks_while_given_up(id).await {
            tracing::warn!("a Python tool does not let go; its interpreter is ended");
            self.condemned.cancel();
        }
    }

    async fn blocks_while_given_up(self: &Arc<Self>, id: u64) -> bool {
        let (mut told, mut silences) = (false, 0);
        while self.is_waiting(id) && !self.ended.is_cancelled() {
            if !told {
                // One that is blocked reads nothing, and then there may be no room for a line.
                let cancel = Numbered { id, ask: Ask::Cancel };
                told = tokio::time::timeout(PONG, self.write(&cancel)).await.is_ok();
            }
            match if told { self.pulse().await } else { Pulse::Silent } {
                Pulse::Goes => {
                    silences = 0;
                    tokio::time::sleep(PONG).await;
                }
                Pulse::Blocked { by: Some(by) } if self.is_given_up(by) => return true,
                // It is at a call that somebody waits for.
                Pulse::Blocked { by: Some(_) } => silences = 0,
                Pulse::Blocked { by: None } if self.is_newest(id) => return true,
                Pulse::Blocked { by: None } => {}
                Pulse::Silent => {
                    silences += 1;
                    if self.is_newest(id) || silences >= SILENCES {
                        return true;
                    }
                }
            }
        }
        false
    }

    async fn pulse(self: &Arc<Self>) -> Pulse {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (request, answer, _) = Request::new();
        self.waiting().requests.insert(id, request);
        let ping = async {
            self.write(&Numbered { id, ask: Ask::Ping }).await;
            answer.await.is_ok()
        };
        let goes = tokio::time::timeout(PONG, ping).await.is_ok();
        let request = self.waiting().requests.remove(&id);
        match request.and_then(|request| request.read) {
            _ if goes => Pulse::Goes,
            Some(Alive { runs }) => Pulse::Blocked { by: runs },
            None => Pulse::Silent,
        }
    }

    fn is_given_up(&self, id: u64) -> bool {
        self.waiting().requests.get(&id).is_some_and(|request| request.given_up)
    }

    fn is_waiting(&self, id: u64) -> bool {
        self.waiting().requests.contains_key(&id)
    }

    /// Returns whether no body has begun after that of this request: then it is what runs.
    fn is_newest(&self, id: u64) -> bool {
        let waiting = self.waiting();
        let newest = waiting.requests.values().filter_map(|request| request.begun).max();
        newest.is_some() && waiting.requests.get(&id).is_some_and(|request| request.begun == newest)
    }

    /// Returns what it loads, or loaded last.
    pub(super) fn loading(&self) -> String {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it has said what nobody knows, and returns what was wrong with that.
    pub(super) async fn lost(&self) -> String {
        self.lost.0.cancelled().await;
        self.lost.1.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    pub(super) fn condemned(&self) -> &CancellationToken {
        &self.condemned
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes lines until it ends, or nobody is there to write any.
async fn write_all(
    mut input: ChildStdin,
    mut lines: mpsc::Receiver<Vec<u8>>,
    (ended, condemned): (CancellationToken, CancellationToken),
) {
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            () = ended.cancelled() => return,
        };
        let Some(line) = line else { return };
        if input.write_all(&line).await.is_err() || input.flush().await.is_err() {
            // One that takes nothing more in answers nothing more.
            return condemned.cancel();
        }
    }
}

#[derive(serde::Serialize)]
struct Numbered<'a> {
    id: u64,
    #[serde(flatten)]
    ask: Ask<'a>,
}

impl Request {
    fn new() -> (Self, oneshot::Receiver<Answer>, Arc<Notify>) {
        let (answer, receiver) = oneshot::channel();
        let next = Arc::new(Notify::new());
        (
            Self { answer, begun: None, next: Arc::clone(&next), read: None, given_up: false },
            receiver,
            next,
        )
    }
}

impl Asked {
    /// Waits for the answer.
    pub(super) async fn answer(&mut self) -> Answer {
        let answer = (&mut self.answer).await;
        self.done = true;
        answer.unwrap_or(Answer::Lost { begun: false })
    }

    /// Waits until it wants the rest of its chain to run, or has its answer.
    pub(super) async fn next(&mut self) -> Result<(), Answer> {
        let next = Arc::clone(&self.next);
        tokio::select! {
            biased;
            () = next.notified() => Ok(()),
            answer = self.answer() => Err(answer),
        }
    }

    /// Says what the rest of its chain came to.
    pub(super) async fn resume(&self, ask: Ask<'_>) {
        self.worker.write(&Numbered { id: self.id, ask }).await;
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.done {
            drop(self.tasks.spawn(Arc::clone(&self.worker).give_up(self.id)));
        }
    }
}
