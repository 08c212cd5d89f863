//! The requests under way on one connection, and what became of those that were not answered.
//!
//! Results of the requests that we pass on are kept as raw JSON: the library would read them into
//! its own types, and a single field it does not know how to read would cost the whole message.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use rmcp::model::{
    ClientRequest, CustomRequest, CustomResult, JsonRpcMessage, JsonRpcResponse, JsonRpcVersion2_0,
    RequestId, ServerJsonRpcMessage, ServerRequest, ServerResult,
};
use rmcp::service::TxJsonRpcMessage;
use rmcp::{ErrorData, RoleClient};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::asks::ASKED;
use super::http::Mirrors;
use super::notices;

/// What a transport and the connection on top of it know together.
#[derive(Debug, Default)]
pub(super) struct Pending {
    state: Mutex<State>,
    /// Which arguments go into headers as well, on all connections to the server.
    mirrors: Arc<ArcSwap<Mirrors>>,
    /// Whether no more requests should be made on the connection.
    left: CancellationToken,
    /// Whether the transport is closed and everything said.
    finished: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    /// Ids of open requests whose results stay raw, and how.
    raw: HashMap<RequestId, Kept>,
    /// The id of the question for the era.
    discover: Option<RequestId>,
    /// Why requests whose results stay raw were not answered.
    fates: HashMap<RequestId, Fate>,
    /// Why the connection could not be used.
    reason: Option<String>,
}

/// How a result stays raw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// As a tree.
    Tree,
    /// As the text that it came as, in the place of a tree: that of a call may be large.
    Text,
}

/// A message, as far as it is an answer.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: Option<IgnoredAny>,
    #[serde(borrow)]
    result: &'a RawValue,
}

/// What became of a request that the server did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The server certainly did not carry it out.
    NotRun(String),
    /// The server has forgotten the session, and so it did nothing.
    Forgotten,
    /// Nobody knows.
    Unknown(String),
}

/// Keeps what a server asks of a client as it came.
fn question(mut value: Value) -> Result<ServerJsonRpcMessage, Value> {
    let method = value.get("method").and_then(Value::as_str);
    let Some(method) = method.filter(|method| ASKED.contains(method)).map(str::to_owned) else {
        return Err(value);
    };
    let id = value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    let Some(id) = id else { return Err(value) };
    let params = value.get_mut("params").map(Value::take);
    let request = ServerRequest::CustomRequest(CustomRequest::new(method, params));
    Ok(JsonRpcMessage::request(request, id))
}

impl Pending {
    pub(super) fn new(mirrors: Arc<ArcSwap<Mirrors>>) -> Self {
        Self { mirrors, ..Self::default() }
    }

    /// Notes a request that is about to be sent.
    pub(super) fn note(&self, message: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(request) = message else { return };
        match request.request {
            ClientRequest::CallToolRequest(_) => {
                self.state().raw.insert(request.id.clone(), Kept::Text);
            }
            ClientRequest::ListToolsRequest(_) | ClientRequest::CustomRequest(_) => {
                self.state().raw.insert(request.id.clone(), Kept::Tree);
            }
            ClientRequest::DiscoverRequest(_) => self.state().discover = Some(request.id.clone()),
            _ => {}
        }
    }

    /// Takes the result out of the answer to a call; anything else is given back.
    ///
    /// `asked` is the request that the answer belongs to by where it came, if that is known; then
    /// its id may be a text where ours is a number.
    pub(super) fn result(
        &self,
        mut message: Vec<u8>,
        asked: Option<&RequestId>,
    ) -> Result<ServerJsonRpcMessage, Vec<u8>> {
        let Some((id, found)) = result_in(&message) else { return Err(message) };
        let id = match asked.filter(|asked| asked.to_string() == id.to_string()) {
            Some(asked) => asked.clone(),
            None => id,
        };
        let mut state = self.state();
        if state.raw.get(&id) != Some(&Kept::Text)
            || std::str::from_utf8(&message[found.clone()]).is_err()
        {
            return Err(message);
        }
        state.raw.remove(&id);
        drop(state);
        // In place, since it may be large.
        message.truncate(found.end);
        drop(message.drain(..found.start));
        let text = String::from_utf8(message).unwrap_or_default();
        Ok(raw(id, Value::String(text)))
    }

    /// Reads a message; one that is none is given back.
    pub(super) fn read(&self, value: Value) -> Result<ServerJsonRpcMessage, Value> {
        let value = match self.raw_response(value) {
            Ok(response) => return Ok(response),
            Err(value) => value,
        };
        let mut value = match question(value) {
            Ok(question) => return Ok(question),
            Err(value) => value,
        };
        if let Some(notification) = notices::raw(&mut value) {
            return Ok(notification);
        }
        serde_json::from_value(value.clone()).map_err(|_| value)
    }

    /// Takes the result out of a response to a request that we pass on.
    fn raw_response(&self, mut value: Value) -> Result<ServerJsonRpcMessage, Value> {
        let id =
            value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
        let Some(id) = id.filter(|_| value.get("method").is_none()) else {
            return Err(value);
        };
        if self.state().discover.take_if(|asked| *asked == id).is_some() {
            return undiscovered(&value, id).ok_or(value);
        }
        let Some(kept) = self.state().raw.remove(&id) else { return Err(value) };
        if let Some(result) = value.get_mut("result").map(Value::take) {
            return Ok(match kept {
                Kept::Tree => raw(id, result),
                Kept::Text => raw(id, Value::String(result.to_string())),
            });
        }
        // An answer it is, whatever stands in it: whoever asked must not wait for another one.
        let error = value.get("error").map(ErrorData::deserialize).and_then(Result::ok);
        let error = error
            .unwrap_or_else(|| ErrorData::internal_error("(an answer that cannot be read)", None));
        Ok(JsonRpcMessage::error(error, Some(id)))
    }

    /// Makes the answer that ends the wait for a request.
    pub(super) fn fail(&self, id: RequestId, fate: Fate) -> ServerJsonRpcMessage {
        let message = fate.text().to_owned();
        let mut state = self.state();
        if state.raw.remove(&id).is_some() {
            state.fates.insert(id.clone(), fate);
        }
        JsonRpcMessage::error(ErrorData::internal_error(message, None), Some(id))
    }

    /// Makes the answer to a request whose real one was too long, if it can be told from its ends.
    pub(super) fn too_long(
        &self,
        (head, tail): (&[u8], &[u8]),
        limit: usize,
    ) -> Option<ServerJsonRpcMessage> {
        let id = id_between(head, tail)?;
        self.is_open(&id).then(|| self.fail(id, Fate::too_long(limit)))
    }

    /// Makes the answer to a request whose real one cannot be read, if it can be told whose it is.
    pub(super) fn unread(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let line = line.trim_ascii();
        // A batch of one is none of this protocol, but somebody's answer.
        let line = line.strip_prefix(b"[").unwrap_or(line);
        let line = line.strip_suffix(b"]").unwrap_or(line).trim_ascii();
        if !(line.starts_with(b"{") && line.ends_with(b"}")) {
            return None;
        }
        let id = id_between(line, line)?;
        let why = Fate::Unknown("its answer cannot be read".to_owned());
        self.is_open(&id).then(|| self.fail(id, why))
    }

    fn is_open(&self, id: &RequestId) -> bool {
        self.state().raw.contains_key(id)
    }

    /// Takes what became of a request.
    pub(super) fn fate(&self, id: &RequestId) -> Option<Fate> {
        self.state().fates.remove(id)
    }

    /// Forgets a request whose answer nobody waits for any more.
    pub(super) fn forget(&self, id: &RequestId) {
        let mut state = self.state();
        state.raw.remove(id);
        state.fates.remove(id);
    }

    /// Says why the connection cannot be used; the first reason counts.
    pub(super) fn explain(&self, reason: String) {
        self.state().reason.get_or_insert(reason);
    }

    /// Returns why the connection could not be used, if anybody said so.
    pub(super) fn reason(&self) -> Option<String> {
        self.state().reason.clone()
    }

    /// Returns which arguments go into headers as well.
    pub(super) fn mirrors(&self) -> Arc<Mirrors> {
        self.mirrors.load_full()
    }

    /// Says that no more requests should be made on the connection.
    pub(super) fn leave(&self) {
        self.left.cancel();
    }

    /// Returns the token that says so.
    pub(super) fn left(&self) -> &CancellationToken {
        &self.left
    }

    /// Says that the transport is closed.
    pub(super) fn finish(&self) {
        self.finished.cancel();
    }

    /// Returns the token that says so.
    pub(super) fn finished(&self) -> &CancellationToken {
        &self.finished
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fate {
    /// Says that the answer was longer than what is read.
    pub(super) fn too_long(limit: usize) -> Self {
        Self::Unknown(format!(
            "its answer is longer than the {limit} bytes of limits.max_message_bytes"
        ))
    }

    /// Returns what is to be said of it.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::NotRun(text) | Self::Unknown(text) => text,
            Self::Forgotten => "it has forgotten the session (HTTP 404)",
        }
    }
}

/// Makes the answer whose result stays as it is.
fn raw(id: RequestId, result: Value) -> ServerJsonRpcMessage {
    let result = ServerResult::CustomResult(CustomResult(result));
    JsonRpcMessage::Response(JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id, result })
}

/// Finds the id and the place of the result in an answer that has one.
fn result_in(message: &[u8]) -> Option<(RequestId, Range<usize>)> {
    message.trim_ascii_start().strip_prefix(b"{")?;
    let Answer { id, method, result } = serde_json::from_slice(message).ok()?;
    if method.is_some() {
        return None;
    }
    let id = serde_json::from_str(id.get()).ok()?;
    let start = result.get().as_ptr().addr().checked_sub(message.as_ptr().addr())?;
    Some((id, start..start + result.get().len()))
}

/// Returns what to make of an answer to the question for the era that is no answer to it.
///
/// Some servers of the older era have a result for everything.
fn undiscovered(value: &Value, id: RequestId) -> Option<ServerJsonRpcMessage> {
    let result = value.get("result")?;
    let is_answer = result.get("supportedVersions").is_some_and(Value::is_array);
    let error = ErrorData::invalid_request("it answers server/discover with something else", None);
    (!is_answer).then(|| JsonRpcMessage::error(error, Some(id)))
}

/// Finds the id of a response of which only both ends are known.
///
/// It is looked for where libraries write it: before the result, or as the last field but one.
fn id_between(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let id = id_in_head(head).or_else(|| id_in_tail(tail))?;
    serde_json::from_value(id).ok()
}

/// Reads the plain fields that a message begins with.
fn id_in_head(head: &[u8]) -> Option<Value> {
    let mut rest = head.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        let (key, after) = value_of(rest)?;
        rest = after.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        if matches!(rest.first()?, b'{' | b'[') {
            return None;
        }
        let (value, after) = value_of(rest)?;
        match key.as_str()? {
            "id" => return Some(value),
            "method" => return None,
            _ => rest = after.trim_ascii_start().strip_prefix(b",")?,
        }
    }
}

fn value_of(bytes: &[u8]) -> Option<(Value, &[u8])> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, &bytes[values.byte_offset()..]))
}

/// Reads the plain fields that a message ends with.
fn id_in_tail(tail: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(tail);
    let (_, rest) = text.rsplit_once("\"id\"")?;
    // Of a field that is not the message's own, more than one brace is left.
    let mut last: Map<String, Value> = serde_json::from_str(&format!("{{\"id\"{rest}")).ok()?;
    if last.contains_key("method") { None } else { last.shift_remove("id") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_cannot_be_read_is_one_all_the_same() {
        let pending = Pending::default();
        pending.state().raw.insert(RequestId::Number(5), Kept::Tree);
        let ends = |line: &str| pending.unread(line.as_bytes()).is_some();
        assert!(!ends(r#"{"jsonrpc":"2.0","id":6,"result":{"n":1E999}}"#), "nobody asked");
        assert!(!ends("a banner with \"id\":5}"), "no message");
        assert!(ends(r#"{"jsonrpc":"2.0","id":5,"result":{"n":1E999}}"#));
        pending.state().raw.insert(RequestId::Number(5), Kept::Tree);
        assert!(ends(r#"{"jsonrpc":"2.0","id":5,"result":{"text":"\ud800"}}"#));
        pending.state().raw.insert(RequestId::Number(5), Kept::Tree);
        assert!(ends(r#" [{"jsonrpc":"2.0","id":5,"result":{}}] "#));
        assert_eq!(
            pending.fate(&RequestId::Number(5)).map(|fate| fate.text().to_owned()),
            Some("its answer cannot be read".to_owned())
        );
    }

    #[test]
    fn the_id_of_a_long_answer_is_found_at_either_end() {
        let found = |head: &str, tail: &str| {
            id_between(head.as_bytes(), tail.as_bytes()).map(|id| id.to_string())
        };
        let five = Some("5".to_owned());
        assert_eq!(found(r#"{"jsonrpc":"2.0","id":5,"result":{"con"#, "xxx"), five);
        assert_eq!(found(r#" { "id" : 5 , "result":{"con"#, "xxx"), five);
        assert_eq!(found(r#"{"result":{"id":6,"x"#, r#"xx"}]},"jsonrpc":"2.0","id":5}"#), five);
        assert_eq!(found(r#"{"result":{"id":6,"x"#, r#"xx"}]},"id":5,"jsonrpc":"2.0"} "#), five);
        assert_eq!(found(r#"{"result":"#, r#""id":5}}"#), None);
        assert_eq!(found(r#"{"jsonrpc":"2.0","method":"x","id":5,"params":{"#, "xxx"), None);
        assert_eq!(found("xxxx", "xxxx"), None);
        assert_eq!(found(r#"{"jsonrpc":"2.0","result":"xxxx"#, r#"xx\"id\":5}"#), None);
    }
}
