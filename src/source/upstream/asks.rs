//! What a server asks of a client in the middle of a call: whose call it is, and the answer.
//!
//! A server of the older era asks by requests of its own. Over HTTP such a request comes on the
//! stream of the call it belongs to; over standard streams nothing says so, and then it is asked
//! of the client whose calls are under way, if they are all of one session. A server of the newer
//! era answers the call with its questions (MCP 2026-07-28 §basic/patterns/mrtr). Either way the
//! time that a person takes does not count as the server's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{CustomResult, ErrorCode, RequestId};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::client::{CallError, MCP_INTERACTION_UNSUPPORTED};
use crate::tool::{AskError, CallContext, ClientPort, Failure, SessionId};

/// What servers may ask.
pub(super) const ASKED: [&str; 3] = ["elicitation/create", "roots/list", "sampling/createMessage"];

/// The request on whose stream a message came.
#[derive(Clone, Debug)]
pub(super) struct Origin(pub(super) RequestId);

/// The calls under way on one connection, from before they are sent: a server may ask before we
/// hear by which id its call went.
#[derive(Debug, Default)]
pub(super) struct Underway {
    calls: Mutex<Vec<Arc<Call>>>,
    /// Notified when the id of a call is known, and when a call has ended.
    changed: Notify,
}

/// A call under way, as far as questions are about it.
#[derive(Debug)]
struct Call {
    id: OnceLock<RequestId>,
    session: SessionId,
    port: Arc<dyn ClientPort>,
    pause: Arc<Pause>,
}

/// Ends a call's being under way when it is dropped.
pub(super) struct Entry<'a> {
    underway: &'a Underway,
    call: Arc<Call>,
}

/// How long a call has waited for a person, and its place among those that the server works on.
///
/// While a person is waited for, the place is another call's.
#[derive(Debug)]
pub(super) struct Pause {
    state: Mutex<Paused>,
    resumed: Notify,
    calls: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Paused {
    waiting: usize,
    since: Option<Instant>,
    waited: Duration,
    /// The place; none while a person is waited for.
    place: Option<OwnedSemaphorePermit>,
}

/// Counts as waiting until it is dropped.
struct Waiting<'a>(&'a Pause);

/// What a retry of a call carries: answers, and the server's own state.
pub(super) type Answers = (Option<BTreeMap<String, Value>>, Option<String>);

impl Underway {
    /// Notes a call that is about to be sent.
    pub(super) fn begin(&self, cx: &CallContext, pause: &Arc<Pause>) -> Entry<'_> {
        let (session, port) = (cx.session.clone(), Arc::clone(&cx.port));
        let call = Call { id: OnceLock::new(), session, port, pause: Arc::clone(pause) };
        let call = Arc::new(call);
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&call));
        Entry { underway: self, call }
    }

    /// Asks the client whose call a question belongs to.
    pub(super) async fn ask(
        &self,
        method: &str,
        params: Map<String, Value>,
        origin: Option<&Origin>,
    ) -> Result<CustomResult, ErrorData> {
        let call = self.of(origin).await.map_err(|why| ErrorData::internal_error(why, None))?;
        let waiting = call.pause.wait();
        let answer = call.port.ask(method, params).await;
        drop(waiting);
        call.pause.resume().await;
        match answer {
            Ok(result) => Ok(CustomResult(result)),
            Err(AskError::Refused { code, message }) => {
                let code = i32::try_from(code).unwrap_or(ErrorCode::INTERNAL_ERROR.0);
                Err(ErrorData::new(ErrorCode(code), message, None))
            }
            Err(error) => match for_the_client(method, &error) {
                Some(answer) => Ok(CustomResult(answer)),
                None => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, error.to_string(), None)),
            },
        }
    }

    async fn of(&self, origin: Option<&Origin>) -> Result<Arc<Call>, &'static str> {
        loop {
            let changed = self.changed.notified();
            if let Some(found) = self.find(origin) {
                return found;
            }
            changed.await;
        }
    }

    /// Finds the call that a question is about; none while that may be one whose id is not known.
    fn find(&self, origin: Option<&Origin>) -> Option<Result<Arc<Call>, &'static str>> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Origin(id)) = origin {
            if let Some(call) = calls.iter().find(|call| call.id.get() == Some(id)) {
                return Some(Ok(Arc::clone(call)));
            }
            if calls.iter().any(|call| call.id.get().is_none()) {
                return None;
            }
        }
        Some(Self::only(&calls))
    }

    /// Finds the call that a question must be about where nothing says which it is.
    fn only(calls: &[Arc<Call>]) -> Result<Arc<Call>, &'static str> {
        // A call that waits for an answer already is hardly the one that asks.
        let works = calls.iter().any(|call| !call.pause.is_waiting());
        let mut calls = calls.iter().filter(|call| !works || !call.pause.is_waiting());
        let Some(first) = calls.next() else {
            return Err("there is nobody to ask: no client's call is under way");
        };
        if calls.any(|call| call.session != first.session) {
            return Err(
                "nobody can tell whose call this is about: calls of several clients are under way",
            );
        }
        Ok(Arc::clone(first))
    }
}

impl Entry<'_> {
    /// Notes by which id the call was sent.
    pub(super) fn sent(&self, id: RequestId) {
        self.call.id.get_or_init(|| id);
        self.underway.changed.notify_waiters();
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let mut calls = self.underway.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|call| !Arc::ptr_eq(call, &self.call));
        self.underway.changed.notify_waiters();
    }
}

impl Pause {
    pub(super) fn new(calls: Arc<Semaphore>, place: OwnedSemaphorePermit) -> Self {
        let state = Mutex::new(Paused { place: Some(place), ..Paused::default() });
        Self { state, resumed: Notify::new(), calls }
    }

    /// Takes a place again, once nobody is waited for.
    async fn resume(&self) {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&self.calls).acquire_owned().await else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.waiting == 0 {
            state.place.get_or_insert(place);
        }
    }

    fn wait(&self) -> Waiting<'_> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        state.place = None;
        state.since.get_or_insert_with(Instant::now);
        Waiting(self)
    }

    /// Waits until a deadline, which moves by as long as a person is waited for.
    pub(super) async fn expired(&self, deadline: Instant) {
        loop {
            let (waiting, until) = self.until(deadline);
            if waiting {
                self.resumed.notified().await;
            } else if until <= Instant::now() {
                return;
            } else {
                tokio::time::sleep_until(until).await;
            }
        }
    }

    fn is_waiting(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).waiting > 0
    }

    fn until(&self, deadline: Instant) -> (bool, Instant) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.waiting > 0, deadline + state.waited)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        if state.waiting == 0 {
            let since = state.since.take();
            state.waited += since.map_or(Duration::ZERO, |since| since.elapsed());
            self.0.resumed.notify_one();
        }
    }
}

/// Returns whether a server of the newer era wants to know something before it answers.
pub(super) fn is_asking(result: &Map<String, Value>) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("input_required")
}

/// Asks a call's client everything that a server of the newer era wants to know, all at once.
pub(super) async fn answers(
    result: &Map<String, Value>,
    cx: &CallContext,
    pause: &Pause,
) -> Result<Answers, CallError> {
    let state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
    let Some(Value::Object(requests)) = result.get("inputRequests") else {
        return Ok((None, state));
    };
    let waiting = pause.wait();
    let answered = requests.iter().map(|(key, request)| async move {
        answer(key, request, cx).await.map(|answer| (key.clone(), answer))
    });
    let answered = futures_util::future::try_join_all(answered).await?;
    drop(waiting);
    pause.resume().await;
    Ok((Some(answered.into_iter().collect()), state))
}

async fn answer(key: &str, request: &Value, cx: &CallContext) -> Result<Value, CallError> {
    let method = request.get("method").and_then(Value::as_str).unwrap_or("nothing known");
    let failed = |why: String| {
        CallError::Failed(
            Failure::new(MCP_INTERACTION_UNSUPPORTED, why).with_detail("method", method),
        )
    };
    if !ASKED.contains(&method) {
        return Err(failed(format!("the server asked for {method}, which nobody here can give")));
    }
    let params = match request.get("params") {
        Some(Value::Object(params)) => params.clone(),
        _ => Map::new(),
    };
    let asked = tokio::select! {
        asked = cx.port.ask_as(key, method, params) => asked,
        () = cx.cancelled.cancelled() => {
            return Err(CallError::Interrupted(crate::tool::Interrupt::Cancelled));
        }
    };
    match asked {
        Ok(answer) => Ok(answer),
        Err(error) => for_the_client(method, &error)
            .ok_or_else(|| failed(format!("the server asked for {method}: {error}"))),
    }
}

/// Answers an elicitation for a client that cannot be asked, or is gone; nothing else has an
/// answer that is none.
fn for_the_client(method: &str, error: &AskError) -> Option<Value> {
    let action = match error {
        AskError::Unsupported { .. } => "decline",
        AskError::Gone => "cancel",
        AskError::Refused { .. } => return None,
    };
    (method == "elicitation/create").then(|| json!({"action": action}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_a_person_takes_does_not_count() {
        let calls = Arc::new(Semaphore::new(1));
        let place = Arc::clone(&calls).try_acquire_owned().unwrap();
        let pause = Pause::new(Arc::clone(&calls), place);
        let began = Instant::now();
        let deadline = began + Duration::from_secs(10);
        let person = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let first = pause.wait();
            tokio::time::sleep(Duration::from_mins(1)).await;
            assert_eq!(calls.available_permits(), 1, "another call may have its place");
            let second = pause.wait();
            drop(first);
            tokio::time::sleep(Duration::from_secs(40)).await;
            drop(second);
            pause.resume().await;
            assert_eq!(calls.available_permits(), 0);
        };
        tokio::join!(pause.expired(deadline), person);
        assert_eq!(began.elapsed(), Duration::from_secs(110));
    }
    fn cx(session: &str) -> CallContext {
        CallContext {
            call_id: crate::tool::CallId::new("call"),
            session: SessionId::new(session),
            principal: crate::tool::Principal::new("test"),
            run_id: None,
            activation_id: None,
            agent_id: String::new(),
            workspace: Arc::new("/ws".into()),
            client: crate::tool::Client::default(),
            port: Arc::new(crate::tool::Closed),
            cancelled: tokio_util::sync::CancellationToken::new(),
            turn: None,
            time_limit: None,
        }
    }

    #[tokio::test]
    async fn a_call_that_is_just_being_sent_may_be_asked_about() {
        let calls = Arc::new(Semaphore::new(2));
        let pause =
            || Pause::new(Arc::clone(&calls), Arc::clone(&calls).try_acquire_owned().unwrap());
        let (one, other) = (Arc::new(pause()), Arc::new(pause()));
        let underway = Underway::default();
        let sending = underway.begin(&cx("one"), &one);
        assert_eq!(underway.of(None).await.unwrap().session, SessionId::new("one"));
        let sent = underway.begin(&cx("other"), &other);
        sent.sent(RequestId::Number(2));
        assert!(underway.of(None).await.is_err(), "nobody can tell whose it is");
        let origin = Origin(RequestId::Number(2));
        assert_eq!(underway.of(Some(&origin)).await.unwrap().session, SessionId::new("other"));
        // Its id is told by what comes, and only then known here.
        let origin = Origin(RequestId::Number(1));
        let mut asked = Box::pin(underway.of(Some(&origin)));
        tokio::select! {
            biased;
            _ = &mut asked => panic!("it is not known yet"),
            () = tokio::task::yield_now() => {}
        }
        sending.sent(RequestId::Number(1));
        assert_eq!(asked.await.unwrap().session, SessionId::new("one"));
        // A call that was never sent is waited for no longer than it is there.
        let third = underway.begin(&cx("third"), &one);
        drop((sending, sent));
        let mut asked = Box::pin(underway.of(Some(&origin)));
        tokio::select! {
            biased;
            _ = &mut asked => panic!("it may be the one"),
            () = tokio::task::yield_now() => {}
        }
        drop(third);
        assert!(asked.await.is_err());
    }
}
