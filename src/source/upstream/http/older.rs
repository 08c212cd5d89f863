//! HTTP with server-sent events, as it was before streamable HTTP (MCP 2024-11-05): one stream
//! that everything comes on, and an address that the server names on it for everything we say.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use http::{HeaderValue, Method, header};
use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::events::{Events, Item};
use super::reply::{Reply, clean};
use super::{Remote, TELLING};
use crate::source::upstream::pending::{Fate, Pending};

const ANY: &str = "*/*";
const EVENTS: &str = "text/event-stream";

/// The transport to one server.
#[derive(Debug)]
pub(in super::super) struct Older {
    remote: Arc<Remote>,
    pending: Arc<Pending>,
    events: Events,
    /// Where to post messages.
    target: Url,
    /// Answers to requests that the server did not take.
    failed: (
        mpsc::UnboundedSender<ServerJsonRpcMessage>,
        mpsc::UnboundedReceiver<ServerJsonRpcMessage>,
    ),
    ended: CancellationToken,
}

impl Older {
    /// Opens the stream and waits until the server names the address.
    pub(in super::super) async fn open(
        remote: Remote,
        pending: Arc<Pending>,
        ended: CancellationToken,
    ) -> Result<Self, String> {
        let response = remote.request(Method::GET, &remote.url, EVENTS).send().await;
        let response = response.map_err(|error| remote.lost(error).text().to_owned())?;
        let mut events = match remote.sort(response).await {
            Ok(Reply::Events(events)) => *events,
            Ok(_) => return Err("it answered with something else than events; check `url`, and that `type` is not `http`".to_owned()),
            Err(refusal) => return Err(refusal.text),
        };
        let target = loop {
            match events.next().await {
                Some(Item::Event(event)) if event.kind == "endpoint" => break event.data,
                Some(_) => {}
                None => return Err("its stream ended before it named an endpoint".to_owned()),
            }
        };
        let target = endpoint(&remote.url, &target)?;
        let failed = mpsc::unbounded_channel();
        Ok(Self { remote: Arc::new(remote), pending, events, target, failed, ended })
    }
}

/// Resolves the address that a server names; one of another origin would get our secrets.
fn endpoint(url: &Url, named: &str) -> Result<Url, String> {
    let target = url.join(named.trim());
    let target =
        target.map_err(|_| format!("it named an endpoint that is none: {}", clean(named)))?;
    if target.origin() == url.origin() {
        Ok(target)
    } else {
        let origin = clean(&target.origin().ascii_serialization());
        Err(format!("it named an endpoint of another origin, {origin}, which is not followed"))
    }
}

impl Transport<RoleClient> for Older {
    type Error = Infallible;

    /// What the library's messages call it.
    fn name() -> Cow<'static, str> {
        "HTTP with server-sent events".into()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.pending.note(&item);
        let asked: Option<RequestId> = match &item {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        // A message of the library's own is JSON.
        let body = serde_json::to_vec(&item).unwrap_or_default();
        let json = HeaderValue::from_static("application/json");
        let post = self.remote.request(Method::POST, &self.target, ANY);
        let post = post.header(header::CONTENT_TYPE, json).body(body);
        let (remote, pending) = (Arc::clone(&self.remote), Arc::clone(&self.pending));
        let (failed, ended) = (self.failed.0.clone(), self.ended.clone());
        async move {
            let sent = tokio::select! {
                sent = tokio::time::timeout(TELLING, taken(&remote, post)) => sent,
                () = ended.cancelled() => return Ok(()),
            };
            let fate = match sent {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(fate)) => fate,
                Err(_) => Fate::Unknown("it did not take the message in time".to_owned()),
            };
            match asked {
                // Nobody listens any more where this fails.
                Some(id) => drop(failed.send(pending.fail(id, fate))),
                None => tracing::debug!(
                    upstream = remote.server,
                    problem = fate.text(),
                    "the server could not be told something"
                ),
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let item = tokio::select! {
                Some(answer) = self.failed.1.recv() => return Some(answer),
                item = self.events.next() => item?,
                () = self.ended.cancelled() => return None,
            };
            match item {
                Item::Event(event) if matches!(event.kind.as_str(), "" | "message") => {
                    let data = match self.pending.result(event.data.into_bytes(), None) {
                        Ok(result) => return Some(result),
                        Err(data) => data,
                    };
                    let message = serde_json::from_slice::<Value>(&data).ok();
                    match message.and_then(|message| self.pending.read(message).ok()) {
                        Some(message) => return Some(message),
                        None => tracing::warn!(
                            upstream = self.remote.server,
                            text = clean(&String::from_utf8_lossy(&data)),
                            "the server sent something that is no message; it is skipped"
                        ),
                    }
                }
                Item::Event(_) => {}
                Item::TooLong => {
                    tracing::error!(
                        upstream = self.remote.server,
                        "a message was longer than limits.max_message_bytes and was skipped"
                    );
                    let limit = self.remote.limit;
                    if let Some(answer) = self.pending.too_long(self.events.ends(), limit) {
                        return Some(answer);
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.ended.cancel();
        Ok(())
    }
}

/// Posts a message; the answer comes on the stream, or is a refusal.
async fn taken(remote: &Remote, post: reqwest::RequestBuilder) -> Result<(), Fate> {
    let response = post.send().await.map_err(|error| remote.lost(error))?;
    if response.status().is_success() {
        return Ok(());
    }
    match remote.sort(response).await {
        Ok(_) => Ok(()),
        Err(refusal) => Err(refusal.fate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_of_the_same_origin() {
        let url = Url::parse("http://127.0.0.1:9/a/sse?key=1").unwrap();
        let named = |text: &str| endpoint(&url, text).map(String::from);
        assert_eq!(named("/messages?s=1").unwrap(), "http://127.0.0.1:9/messages?s=1");
        assert_eq!(named(" messages ").unwrap(), "http://127.0.0.1:9/a/messages");
        assert_eq!(named("?s=1").unwrap(), "http://127.0.0.1:9/a/sse?s=1");
        assert_eq!(named("http://127.0.0.1:9/m").unwrap(), "http://127.0.0.1:9/m");
        for text in ["http://127.0.0.1:10/m", "https://127.0.0.1:9/m", "//evil.example/m", "data:x"]
        {
            let error = named(text).unwrap_err();
            assert!(error.contains("another origin"), "{text}: {error}");
        }
        assert!(named("http://[").unwrap_err().contains("is none"));
    }
}
