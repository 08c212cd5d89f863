//! What is kept for one client between its calls, and nothing else is.

mod hearing;
pub mod record;

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use tokio_util::sync::CancellationToken;

use self::hearing::Hearing;
use self::record::Record;
use crate::permission::{Grants, Request};
use crate::tool::{Client, SessionId};
use crate::workspace::read_state::ReadState;

/// All sessions, by id.
#[derive(Debug, Default)]
pub struct Sessions {
    all: Mutex<HashMap<SessionId, Arc<Session>>>,
    /// Cancelled when all of them end with us.
    ending: CancellationToken,
}

/// One client's state.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    /// Canonical names of deferred tools that a search has disclosed.
    revealed: Mutex<HashSet<String>>,
    /// Approvals: for one fingerprint each, or for a tool until the session ends.
    grants: Mutex<Granted>,
    /// What was read of the workspace, and in which state.
    read_state: ReadState,
    /// What was called and what came of it: one where the session is one client's, else one for
    /// each name that a client gives itself.
    records: Mutex<LruCache<String, Arc<Record>>>,
    /// What it wants to hear without asking.
    hearing: Mutex<Hearing>,
    /// When somebody last asked for it.
    used: Mutex<Instant>,
    /// Whether its connection says when it ends.
    kept: AtomicBool,
    ended: CancellationToken,
    /// Whether its run has begun, which its first call does.
    begun: OnceLock<CancellationToken>,
}

/// How many clients that share a session have records; the one that is silent longest loses its.
const MOST_RECORDS: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");

#[derive(Debug, Default)]
struct Granted {
    once: HashSet<String>,
    /// Principal, tool, and what the tool said of itself when it was granted.
    lasting: HashSet<(String, String, String)>,
}

impl Sessions {
    /// Makes the sessions of a run of ours, which ends when `ending` is cancelled.
    pub fn until(ending: CancellationToken) -> Self {
        Self { all: Mutex::default(), ending }
    }

    /// Returns a session, making it when it is new.
    pub fn get(&self, id: &SessionId) -> Arc<Session> {
        let mut sessions = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        match sessions.get(id) {
            Some(session) => {
                session.touch();
                Arc::clone(session)
            }
            None => {
                let session = Arc::new(Session::new(id.clone()));
                sessions.insert(id.clone(), Arc::clone(&session));
                session
            }
        }
    }

    /// Returns a session, if there is one.
    pub fn find(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Returns all sessions.
    fn all(&self) -> Vec<Arc<Session>> {
        let sessions = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.values().map(Arc::clone).collect()
    }

    /// Forgets a session.
    ///
    /// One that is there when we end has not ended by itself, whatever its connection says then.
    pub fn end(&self, id: &SessionId) {
        if self.ending.is_cancelled() {
            return;
        }
        let ended = self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(session) = ended {
            session.ended.cancel();
        }
    }

    /// Ends the sessions that nobody has or has asked for in this time, but for those that are
    /// kept; returns which.
    ///
    /// A call has its session for as long as it runs.
    pub fn end_idle(&self, idle: Duration) -> Vec<SessionId> {
        let mut sessions = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |session: &Arc<Session>| {
            if Arc::strong_count(session) > 1 {
                session.touch();
            }
            !session.kept.load(Ordering::Relaxed) && session.idles_since() >= idle
        };
        let over: Vec<Arc<Session>> = sessions
            .extract_if(|_, session| is_over(session))
            .map(|(_, session)| session)
            .collect();
        drop(sessions);
        for session in &over {
            session.ended.cancel();
        }
        over.iter().map(|session| session.id.clone()).collect()
    }

    /// Returns how many sessions there are.
    pub fn len(&self) -> usize {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns whether there is no session.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Session {
    fn new(id: SessionId) -> Self {
        Self {
            id,
            revealed: Mutex::default(),
            grants: Mutex::default(),
            read_state: ReadState::default(),
            records: Mutex::new(LruCache::new(MOST_RECORDS)),
            hearing: Mutex::default(),
            used: Mutex::new(Instant::now()),
            kept: AtomicBool::new(false),
            ended: CancellationToken::new(),
            begun: OnceLock::new(),
        }
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the token that is cancelled when the session ends, for what others keep for it.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Begins the session's run, unless it has begun; `begin` gets the token of the session's end,
    /// and returns the one that is cancelled when the run has begun.
    pub fn begin_run(
        &self,
        begin: impl FnOnce(CancellationToken) -> CancellationToken,
    ) -> CancellationToken {
        self.begun.get_or_init(|| begin(self.ended.clone())).clone()
    }

    /// Keeps the session until its connection ends, however little it is used.
    pub fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn idles_since(&self) -> Duration {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Returns what was read of the workspace, and in which state.
    pub fn read_state(&self) -> &ReadState {
        &self.read_state
    }

    /// Returns the record of a client, making it when it is new.
    pub fn record(&self, client: &Client) -> Arc<Record> {
        let name = if client.alone { String::new() } else { client.name.clone() };
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(records.get_or_insert_mut(name, Arc::default))
    }

    /// Notes that a search has disclosed a tool; true if it was not disclosed before.
    pub fn reveal(&self, canonical: &str) -> bool {
        let mut revealed = self.revealed.lock().unwrap_or_else(PoisonError::into_inner);
        // Most are known: nothing is copied for those.
        !revealed.contains(canonical) && revealed.insert(canonical.to_owned())
    }

    /// Returns whether a search has disclosed a tool.
    pub fn is_revealed(&self, canonical: &str) -> bool {
        self.revealed.lock().unwrap_or_else(PoisonError::into_inner).contains(canonical)
    }

    /// Grants one call, by its fingerprint.
    pub fn grant_once(&self, fingerprint: &str) {
        let mut grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        grants.once.insert(fingerprint.to_owned());
    }

    /// Grants the tool of a request to its principal until the session ends or the tool changes.
    pub fn grant_tool(&self, request: &Request) {
        let mut grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        grants.lasting.insert(lasting(request));
    }
}

fn lasting(request: &Request) -> (String, String, String) {
    (request.principal.as_str().to_owned(), request.tool.clone(), request.definition_digest())
}

impl Grants for Session {
    fn covers(&self, request: &Request) -> bool {
        let grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        !grants.lasting.is_empty() && grants.lasting.contains(&lasting(request))
    }

    fn use_once(&self, request: &Request) -> bool {
        let mut grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        grants.once.remove(&request.fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::fixture::named;
    use crate::tool::{Arguments, CallId, Principal};

    fn request(principal: &str, tool: &str, fingerprint: &str) -> Request {
        Request {
            handle: named(tool, |_| ()),
            call_id: CallId::new("c"),
            rule: "default",
            tool: tool.to_owned(),
            wire: tool.to_owned(),
            arguments: Arguments::new(),
            principal: Principal::new(principal),
            session: SessionId::new("s"),
            reason: String::new(),
            fingerprint: fingerprint.to_owned(),
        }
    }

    fn other_schema() -> crate::tool::InputSchema {
        let schema = serde_json::json!({"type": "object", "title": "other"});
        crate::tool::InputSchema::compile(schema.as_object().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_grant_for_one_call_is_used_up() {
        let session = Sessions::default().get(&SessionId::new("s"));
        session.grant_once("f");
        assert!(!session.use_once(&request("p", "t", "other")));
        assert!(session.use_once(&request("p", "t", "f")));
        assert!(!session.use_once(&request("p", "t", "f")));
    }

    #[test]
    fn a_grant_for_a_tool_holds_for_its_principal() {
        let session = Sessions::default().get(&SessionId::new("s"));
        session.grant_tool(&request("p", "t", "f"));
        assert!(session.covers(&request("p", "t", "f")));
        assert!(session.covers(&request("p", "t", "g")));
        assert!(!session.covers(&request("q", "t", "f")));
        assert!(!session.covers(&request("p", "u", "f")));
        let changed = named("t", |definition| definition.input_schema = other_schema());
        assert!(!session.covers(&Request { handle: changed, ..request("p", "t", "f") }));
    }

    #[test]
    fn a_session_that_nobody_uses_ends_and_one_that_is_kept_or_in_use_does_not() {
        let sessions = Sessions::default();
        let id = |name: &str| SessionId::new(name);
        let idle = sessions.get(&id("idle")).ended().clone();
        sessions.get(&id("kept")).keep();
        let used = sessions.get(&id("used"));
        assert!(sessions.end_idle(Duration::from_mins(1)).is_empty());
        assert_eq!(sessions.end_idle(Duration::ZERO).len(), 2, "in use is for this moment only");
        assert!(idle.is_cancelled());

        let used_again = sessions.get(&id("used"));
        let wait = Duration::from_millis(20);
        std::thread::sleep(wait * 2);
        assert!(sessions.end_idle(wait).is_empty(), "it has just been seen in use");
        drop((used, used_again));
        std::thread::sleep(wait * 2);
        assert_eq!(sessions.end_idle(wait), [id("used")]);
        assert_eq!(sessions.len(), 1);
        assert!(sessions.find(&id("kept")).is_some());
    }

    #[test]
    fn a_run_begins_once_and_a_session_that_ends_with_us_has_not_ended_by_itself() {
        let ending = CancellationToken::new();
        let sessions = Sessions::until(ending.clone());
        let id = SessionId::new("s");
        let session = sessions.get(&id);
        let begun = session.begin_run(|ended| {
            assert!(!ended.is_cancelled());
            CancellationToken::new()
        });
        let again = session.begin_run(|_| panic!("it has begun"));
        begun.cancel();
        assert!(again.is_cancelled());
        ending.cancel();
        sessions.end(&id);
        assert!(!session.ended().is_cancelled());
    }

    #[test]
    fn sessions_are_kept_apart_and_end() {
        let sessions = Sessions::default();
        let (a, b) = (SessionId::new("a"), SessionId::new("b"));
        assert!(sessions.get(&a).reveal("t"));
        assert!(!sessions.get(&a).reveal("t"));
        assert!(sessions.get(&a).is_revealed("t"));
        assert!(!sessions.get(&b).is_revealed("t"));
        let ended = sessions.get(&a).ended().clone();
        sessions.end(&a);
        assert!(ended.is_cancelled() && !sessions.get(&b).ended().is_cancelled());
        assert!(!sessions.get(&a).is_revealed("t"));
        assert_eq!(sessions.len(), 2);
    }
}
