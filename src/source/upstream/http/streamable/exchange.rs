//! One request and what comes of it, and the stream that stands beside them.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use rmcp::model::{
    GetExtensions as _, JsonRpcMessage, RequestId, ServerNotification, ToolListChangedNotification,
};
use serde_json::Value;
use tokio::time::Instant;

use super::super::events::{Events, Item};
use super::super::reply::{Refusal, Reply, broken, clean};
use super::super::{TELLING, headers};
use super::{BOTH, EVENTS, Inner, Session};
use crate::source::upstream::asks::Origin;
use crate::source::upstream::backoff::{Backoff, LONGEST};
use crate::source::upstream::client::MISSING_CAPABILITY;
use crate::source::upstream::notices;
use crate::source::upstream::pending::Fate;

/// How often a stream that broke off before the answer is taken up again without anything new.
const TRIES: usize = 3;
/// How long to wait before that, unless the server says otherwise.
const PAUSE: Duration = Duration::from_millis(500);

/// A request to be made.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: RequestId,
    pub(super) initializes: bool,
    pub(super) discovers: bool,
    pub(super) listens: bool,
    /// The version it is of, in the newer era.
    pub(super) version: Option<String>,
    pub(super) message: Value,
}

/// Where a stream can be taken up again.
#[derive(Clone, Debug, Default)]
struct Mark {
    id: Option<String>,
    retry: Option<Duration>,
}

/// Why there is no stream.
enum NoStream {
    /// Asking again would not change it.
    Refused(String),
    /// The server has forgotten the session.
    Forgotten,
    /// It may be there later.
    Later(String),
}

impl Inner {
    /// Makes a request and sees to it that whoever asked gets an answer.
    pub(super) async fn exchange(&self, request: &Request) {
        if let Err(fate) = self.answered(request).await {
            if request.initializes {
                self.pending.explain(fate.text().to_owned());
            }
            self.hand_on(self.pending.fail(request.id.clone(), fate)).await;
        }
    }

    async fn answered(&self, request: &Request) -> Result<(), Fate> {
        let session = if request.version.is_some() { Session::default() } else { self.session() };
        let mut post = self.post(&request.message, &session);
        if let Some(version) = &request.version {
            let mirrors = self.pending.mirrors();
            post = post.headers(headers::newer(&request.message, version, &mirrors));
        }
        let response = match post.send().await {
            Ok(response) => response,
            Err(error) => {
                let fate = self.remote.lost(error);
                if matches!(fate, Fate::NotRun(_)) {
                    self.give_up(request, &fate);
                }
                return Err(fate);
            }
        };
        if request.initializes {
            let id = response.headers().get(headers::SESSION).cloned();
            self.change(|session| session.id = id);
        }
        match self.remote.sort(response).await {
            Ok(Reply::Json(body)) => {
                if self.take(body, Some(request)).await.map_err(|_| unread())? {
                    Ok(())
                } else {
                    Err(stranger())
                }
            }
            Ok(Reply::Events(events)) => self.follow(request, &session, *events).await,
            Ok(Reply::Empty) => {
                Err(Fate::Unknown("it took the request and did not answer it".to_owned()))
            }
            Err(refusal) => self.refused(request, &session, *refusal).await,
        }
    }

    /// Sorts a refusal by what it says of the request, and of the connection.
    async fn refused(
        &self,
        request: &Request,
        session: &Session,
        refusal: Refusal,
    ) -> Result<(), Fate> {
        let Refusal { status, text: _, error, about_session, fate } = refusal;
        let code = error.as_ref().and_then(|error| error["error"]["code"].as_i64());
        let is_wrong = code.is_some_and(|code| {
            (-32700..=-32600).contains(&code) && code != -32603
                || code == i64::from(MISSING_CAPABILITY)
        });
        let forgotten = status == StatusCode::NOT_FOUND
            || status == StatusCode::BAD_REQUEST && about_session && !is_wrong;
        if session.id.is_some() && forgotten {
            self.forgotten();
            return Err(Fate::Forgotten);
        }
        // These are answers: of the handshake, or to say that the request itself was wrong.
        let is_answer = request.discovers || request.initializes || is_wrong;
        if let (true, Some(mut error)) = (is_answer, error) {
            error["id"] = serde_json::to_value(&request.id).unwrap_or_default();
            if self.deliver(error, Some(request)).await {
                return Ok(());
            }
        }
        let whoever_asks = [
            StatusCode::UNAUTHORIZED,
            StatusCode::FORBIDDEN,
            StatusCode::PROXY_AUTHENTICATION_REQUIRED,
            StatusCode::TOO_MANY_REQUESTS,
        ];
        if whoever_asks.contains(&status) || status.is_redirection() {
            self.give_up(request, &fate);
        }
        Err(fate)
    }

    /// Ends the handshake where another question would be answered no better.
    ///
    /// A server of the older era may answer any question but `initialize` with whatever it likes.
    fn give_up(&self, request: &Request, fate: &Fate) {
        if request.discovers {
            self.pending.explain(fate.text().to_owned());
            self.ended.cancel();
        }
    }

    /// Reads a stream until the answer; in the older era one that breaks off is taken up again.
    async fn follow(
        &self,
        request: &Request,
        session: &Session,
        mut events: Events,
    ) -> Result<(), Fate> {
        let mut mark = Mark::default();
        loop {
            let mut tries = 0;
            match self.read(&mut events, Some(request), &mut mark).await {
                Some(end) => return end,
                None if request.version.is_some() || mark.id.is_none() => {
                    let text = "the stream broke off before its answer";
                    return Err(Fate::Unknown(text.to_owned()));
                }
                None => {}
            }
            let mut backoff = Backoff::from(mark.retry.unwrap_or(PAUSE));
            events = loop {
                if tries == TRIES {
                    let text =
                        "the stream broke off before its answer and could not be taken up again";
                    return Err(Fate::Unknown(text.to_owned()));
                }
                tries += 1;
                tokio::time::sleep(backoff.wait()).await;
                match self.stream(session, mark.id.as_deref()).await {
                    Ok(mut again) => {
                        // A stream that has nothing new counts as a try.
                        let before = mark.id.clone();
                        match self.read(&mut again, Some(request), &mut mark).await {
                            Some(end) => return end,
                            None if mark.id == before => {}
                            None => break again,
                        }
                    }
                    Err(NoStream::Later(_)) => {}
                    Err(NoStream::Refused(why)) => {
                        let text = format!("the stream broke off before its answer: {why}");
                        return Err(Fate::Unknown(text));
                    }
                    Err(NoStream::Forgotten) => {
                        self.forgotten();
                        let text = "the stream broke off before its answer, and then the server had forgotten the session";
                        return Err(Fate::Unknown(text.to_owned()));
                    }
                }
            };
        }
    }

    /// Reads a stream to its end, or to the answer.
    async fn read(
        &self,
        events: &mut Events,
        request: Option<&Request>,
        mark: &mut Mark,
    ) -> Option<Result<(), Fate>> {
        while let Some(item) = events.next().await {
            let event = match item {
                Item::Event(event) => event,
                Item::TooLong => {
                    if let Some(end) = self.too_long(events.ends(), request).await {
                        return Some(end);
                    }
                    continue;
                }
            };
            if event.id.is_some() {
                mark.id = event.id;
            }
            mark.retry = event.retry.or(mark.retry);
            if event.data.is_empty() || !matches!(event.kind.as_str(), "" | "message") {
                continue;
            }
            match self.take(event.data.into_bytes(), request).await {
                Ok(true) => return Some(Ok(())),
                Ok(false) => {}
                Err(data) => self.skip(&String::from_utf8_lossy(&data)),
            }
        }
        None
    }

    /// Hands on what came, one message or several, and returns whether the answer to the request
    /// is among it; what is no JSON is given back.
    async fn take(&self, data: Vec<u8>, request: Option<&Request>) -> Result<bool, Vec<u8>> {
        let asked = request.map(|request| &request.id);
        let data = match self.pending.result(data, asked) {
            Ok(result) => {
                let is_answer = matches!(&result, JsonRpcMessage::Response(response)
                    if Some(&response.id) == asked);
                self.hand_on(result).await;
                return Ok(is_answer);
            }
            Err(data) => data,
        };
        Ok(match serde_json::from_slice(&data) {
            Ok(Value::Array(messages)) => {
                let mut answered = false;
                for message in messages {
                    answered |= self.deliver(message, request).await;
                }
                answered
            }
            Ok(message) => self.deliver(message, request).await,
            Err(_) => return Err(data),
        })
    }

    /// Ends the request whose answer was too long, if that can be told.
    async fn too_long(
        &self,
        ends: (&[u8], &[u8]),
        request: Option<&Request>,
    ) -> Option<Result<(), Fate>> {
        let limit = self.remote.limit;
        tracing::error!(
            upstream = self.remote.server,
            "a message was longer than limits.max_message_bytes and was skipped"
        );
        if let Some(answer) = self.pending.too_long(ends, limit) {
            let ours = matches!((&answer, request), (JsonRpcMessage::Error(error), Some(request))
                if error.id.as_ref() == Some(&request.id));
            self.hand_on(answer).await;
            return ours.then_some(Ok(()));
        }
        // On its own stream it can hardly be anything but the answer.
        request.filter(|request| !request.listens).map(|_| Err(Fate::too_long(limit)))
    }

    /// Hands a message on, and returns whether it is the answer to the request.
    async fn deliver(&self, mut message: Value, request: Option<&Request>) -> bool {
        let mut is_answer = false;
        if let Some(request) = request
            && message.get("method").is_none()
            && let Some(id) = message.get_mut("id")
        {
            is_answer = is_same(id, &request.id);
            if is_answer {
                *id = serde_json::to_value(&request.id).unwrap_or_default();
                if request.initializes {
                    let version = message["result"]["protocolVersion"].as_str().map(str::to_owned);
                    self.change(|session| session.version = version);
                }
            }
        }
        match self.pending.read(message) {
            Ok(mut message) => {
                // What is asked on a request's own stream is about that request.
                if let (JsonRpcMessage::Request(asked), Some(request)) = (&mut message, request) {
                    asked.request.extensions_mut().insert(Origin(request.id.clone()));
                }
                if let Some(request) = request {
                    notices::mark(&mut message, &request.message);
                }
                self.hand_on(message).await;
            }
            Err(message) if is_answer => {
                let text = format!("its answer cannot be read: {}", clean(&message.to_string()));
                let id = request.map(|request| request.id.clone());
                if let Some(id) = id {
                    self.hand_on(self.pending.fail(id, Fate::Unknown(text))).await;
                }
            }
            Err(message) => self.skip(&message.to_string()),
        }
        is_answer
    }

    /// Sends a message that has no answer.
    pub(super) async fn tell(&self, message: &Value) {
        let post = self.post(message, &self.session());
        let told = tokio::time::timeout(TELLING, post.send()).await;
        let problem = match told {
            Ok(Ok(response)) if response.status().is_success() => return,
            Ok(Ok(response)) => format!("HTTP {}", response.status().as_u16()),
            Ok(Err(error)) => broken(error),
            Err(_) => "no response in time".to_owned(),
        };
        let method = message.get("method").and_then(Value::as_str);
        tracing::debug!(
            upstream = self.remote.server,
            method,
            problem,
            "the server could not be told something"
        );
    }

    fn post(&self, message: &Value, session: &Session) -> reqwest::RequestBuilder {
        let json = HeaderValue::from_static("application/json");
        let request = self.request(Method::POST, BOTH, session).header(CONTENT_TYPE, json);
        request.body(message.to_string())
    }

    /// Keeps open the stream on which a server of the older era speaks for itself.
    pub(super) async fn stand(&self) {
        let session = self.session();
        let (mut backoff, mut mark, mut stood) = (Backoff::default(), Mark::default(), false);
        loop {
            let began = Instant::now();
            match self.stream(&session, mark.id.as_deref()).await {
                Ok(mut events) => {
                    if stood && mark.id.is_none() {
                        // What it said in between is lost.
                        let changed = ToolListChangedNotification::default();
                        let changed = ServerNotification::ToolListChangedNotification(changed);
                        // All lists are read anew by it.
                        self.hand_on(JsonRpcMessage::notification(changed)).await;
                    }
                    stood = true;
                    // Without a request there is no answer to end it.
                    drop(self.read(&mut events, None, &mut mark).await);
                }
                Err(NoStream::Later(why)) => {
                    tracing::debug!(upstream = self.remote.server, why, "no stream for now");
                }
                Err(NoStream::Refused(why)) => {
                    tracing::debug!(upstream = self.remote.server, why, "no stream");
                    return;
                }
                Err(NoStream::Forgotten) => {
                    self.forgotten();
                    return;
                }
            }
            let asked = mark.retry.unwrap_or_default().min(LONGEST);
            tokio::time::sleep(backoff.after(began).max(asked)).await;
        }
    }

    /// Opens a stream, from an event on.
    async fn stream(&self, session: &Session, from: Option<&str>) -> Result<Events, NoStream> {
        let mut more = HeaderMap::new();
        if let Some(id) = from.and_then(|id| HeaderValue::from_str(id).ok()) {
            more.insert(headers::LAST_EVENT, id);
        }
        let response = self.request(Method::GET, EVENTS, session).headers(more).send().await;
        let response = response.map_err(|error| NoStream::Later(broken(error)))?;
        match self.remote.sort(response).await {
            Ok(Reply::Events(events)) => Ok(*events),
            Ok(_) => Err(NoStream::Refused("it has no stream".to_owned())),
            Err(refusal) if refusal.status == StatusCode::NOT_FOUND && session.id.is_some() => {
                Err(NoStream::Forgotten)
            }
            Err(refusal)
                if refusal.status.is_server_error()
                    || refusal.status == StatusCode::TOO_MANY_REQUESTS =>
            {
                Err(NoStream::Later(refusal.text))
            }
            Err(refusal) => Err(NoStream::Refused(refusal.text)),
        }
    }

    /// Notes that the session is no more: it needs no end, and calls need a new one.
    fn forgotten(&self) {
        self.change(|session| session.id = None);
        self.pending.leave();
    }

    fn skip(&self, text: &str) {
        tracing::warn!(
            upstream = self.remote.server,
            text = clean(text),
            "the server sent something that is no message; it is skipped"
        );
    }
}

fn unread() -> Fate {
    Fate::Unknown("its answer cannot be read".to_owned())
}

fn stranger() -> Fate {
    Fate::Unknown("it answered something else than what it was asked".to_owned())
}

/// Returns whether an id is ours, as a number or as text.
fn is_same(id: &Value, ours: &RequestId) -> bool {
    match id {
        Value::String(text) => *text == ours.to_string(),
        Value::Number(number) => number.to_string() == ours.to_string(),
        _ => false,
    }
}
