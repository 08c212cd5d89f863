//! Results that go out exactly as they are, through a library that knows only its own types.
//!
//! An upstream's result may hold fields, content types and annotations that the library's types
//! would drop. So a reply travels as a typed result that is empty but for one `_meta` entry, and
//! is unpacked again where messages leave: in our transports before they are written, and for
//! modern HTTP replies, which the library writes itself, in the body.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use rmcp::model::{
    CallToolResponse, CallToolResult, CompleteResult, CustomResult, GetPromptResponse,
    GetPromptResult, GetSkillResult, JsonRpcMessage, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListSkillsResult, ListToolsResult,
    MetaObject, ReadResourceResponse, ReadResourceResult, ServerResult, Skill,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The one entry of an envelope's `_meta`.
const KEY: &str = "iris/envelope";

fn sealed(reply: Value) -> MetaObject {
    let mut meta = MetaObject::new();
    meta.0.insert(KEY.to_owned(), reply);
    meta
}

/// Packs the reply to `tools/call`, which is written already: a large one is never a tree here.
pub(super) fn call(reply: String) -> CallToolResponse {
    let mut result = CallToolResult::success(Vec::new());
    result.is_error = None;
    result.meta = Some(sealed(Value::String(veiled(reply))));
    result.into()
}

/// Exchanges the two characters that a text in JSON has to escape for two that it has not, and back.
///
/// A reply in an envelope is JSON inside JSON. Escaped it would be a third longer, and would have
/// to be copied to be read; so it is neither, unless it holds one of those that are exchanged.
fn exchange(byte: u8) -> u8 {
    match byte {
        b'"' => 0x7f,
        0x7f => b'"',
        b'\\' => b'^',
        b'^' => b'\\',
        other => other,
    }
}

/// Exchanges them in a whole text, in its place.
fn veiled(text: String) -> String {
    let mut bytes = text.into_bytes();
    for byte in &mut bytes {
        *byte = exchange(*byte);
    }
    // One byte of ASCII for another: it is a text as it was.
    String::from_utf8(bytes).unwrap_or_default()
}

/// Packs the reply to `tools/list`.
pub(super) fn tools(reply: Value) -> ListToolsResult {
    ListToolsResult { meta: Some(sealed(reply)), ..ListToolsResult::default() }
}

/// Packs the reply to `prompts/list`.
pub(super) fn prompts(reply: Value) -> ListPromptsResult {
    ListPromptsResult { meta: Some(sealed(reply)), ..ListPromptsResult::default() }
}

/// Packs the reply to `prompts/get`.
pub(super) fn prompt(reply: Value) -> GetPromptResponse {
    let mut result = GetPromptResult::new(Vec::new());
    result.meta = Some(sealed(reply));
    result.into()
}

/// Packs the reply to `resources/list`.
pub(super) fn resources(reply: Value) -> ListResourcesResult {
    ListResourcesResult { meta: Some(sealed(reply)), ..ListResourcesResult::default() }
}

/// Packs the reply to `resources/templates/list`.
pub(super) fn templates(reply: Value) -> ListResourceTemplatesResult {
    let meta = Some(sealed(reply));
    ListResourceTemplatesResult { meta, ..ListResourceTemplatesResult::default() }
}

/// Packs the reply to `resources/read`.
pub(super) fn resource(reply: Value) -> ReadResourceResponse {
    let mut result = ReadResourceResult::new(Vec::new());
    result.meta = Some(sealed(reply));
    result.into()
}

/// Packs the reply to `skills/list`.
pub(super) fn skills(reply: Value) -> ListSkillsResult {
    ListSkillsResult { meta: Some(sealed(reply)), ..ListSkillsResult::default() }
}

/// Packs the reply to `skills/get`; the library looks at the skill itself, too.
pub(super) fn skill(reply: Value) -> Result<GetSkillResult, ErrorData> {
    let skill = serde_json::from_value::<Skill>(reply["skill"].clone());
    let skill = skill.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let mut result = GetSkillResult::new(skill);
    result.meta = Some(sealed(reply));
    Ok(result)
}

/// Packs the reply to `completion/complete`.
pub(super) fn completion(reply: Value) -> CompleteResult {
    let mut result = CompleteResult::default();
    result.meta = Some(sealed(reply));
    result
}

/// Unpacks a message that is about to be written, unless its reply is written already.
pub(super) fn open(message: &mut TxJsonRpcMessage<RoleServer>) {
    let JsonRpcMessage::Response(response) = message else {
        return;
    };
    let meta = match &mut response.result {
        ServerResult::CallToolResult(result) => &mut result.meta,
        ServerResult::ListToolsResult(result) => &mut result.meta,
        ServerResult::ListPromptsResult(result) => &mut result.meta,
        ServerResult::GetPromptResult(result) => &mut result.meta,
        ServerResult::ListResourcesResult(result) => &mut result.meta,
        ServerResult::ListResourceTemplatesResult(result) => &mut result.meta,
        ServerResult::ReadResourceResult(result) => &mut result.meta,
        ServerResult::CompleteResult(result) => &mut result.meta,
        ServerResult::ListSkillsResult(result) => &mut result.meta,
        ServerResult::GetSkillResult(result) => &mut result.meta,
        _ => return,
    };
    let Some(meta) = meta else { return };
    if meta.0.get(KEY).is_some_and(|reply| !reply.is_string())
        && let Some(reply) = meta.0.remove(KEY)
    {
        response.result = ServerResult::CustomResult(CustomResult(reply));
    }
}

/// Writes a message as JSON, unpacked.
pub(super) fn written(mut message: TxJsonRpcMessage<RoleServer>) -> serde_json::Result<Vec<u8>> {
    if let JsonRpcMessage::Response(response) = &mut message
        && let ServerResult::CallToolResult(result) = &mut response.result
        && let Some(Value::String(reply)) = result.meta.as_mut().and_then(|meta| meta.0.remove(KEY))
    {
        let mut bytes = head(&serde_json::to_string(&response.id)?).into_bytes();
        bytes.reserve_exact(reply.len() + 2);
        bytes.extend(reply.bytes().map(exchange));
        bytes.push(b'}');
        return Ok(bytes);
    }
    open(&mut message);
    serde_json::to_vec(&message)
}

/// Begins a response.
fn head(id: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":")
}

/// Unpacks a JSON body, or one server-sent event, that is about to be written.
///
/// Anything that is no envelope comes back as it is. A large reply is not copied.
pub(super) fn open_bytes(bytes: Bytes) -> Bytes {
    let opened = contains(&bytes, KEY.as_bytes())
        .then(|| std::str::from_utf8(&bytes).ok().and_then(opened))
        .flatten();
    match opened {
        Some(opened) => opened.put_together(bytes),
        None => bytes,
    }
}

/// A message without its envelope.
struct Opened {
    /// What comes before the reply: of an event, its other lines too.
    before: String,
    reply: Reply,
    after: String,
}

enum Reply {
    /// These bytes of what was written.
    There(Range<usize>),
    /// These bytes, exchanged.
    Veiled(Range<usize>),
    /// This text, exchanged: there it is escaped.
    Escaped(String),
}

impl Opened {
    fn put_together(self, bytes: Bytes) -> Bytes {
        let Self { before, reply, after } = self;
        let (range, veil) = match reply {
            Reply::There(range) => (range, false),
            Reply::Veiled(range) => (range, true),
            Reply::Escaped(reply) => {
                return Bytes::from([before, veiled(reply), after].concat());
            }
        };
        let mut whole = BytesMut::from(bytes);
        if veil {
            for byte in &mut whole[range.clone()] {
                *byte = exchange(*byte);
            }
        }
        // An envelope has more around a reply than what comes there instead.
        let Some(start) = range.start.checked_sub(before.len()) else {
            return Bytes::from([before.as_bytes(), &whole[range], after.as_bytes()].concat());
        };
        whole[start..range.start].copy_from_slice(before.as_bytes());
        whole.truncate(range.end);
        whole.extend_from_slice(after.as_bytes());
        whole.freeze().slice(start..)
    }
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    result: Sealed<'a>,
}

#[derive(Deserialize)]
struct Sealed<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Entry<'a>,
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, rename = "iris/envelope")]
    reply: &'a RawValue,
}

/// Looks into a body, or into the one message that an event carries.
fn opened(text: &str) -> Option<Opened> {
    let (start, end) = if text.starts_with('{') { (0, text.len()) } else { data(text)? };
    let message: Message<'_> = serde_json::from_str(&text[start..end]).ok()?;
    let reply = message.result.meta.reply.get();
    let at = reply.as_ptr().addr() - text.as_ptr().addr();
    let reply = match reply.strip_prefix('"').and_then(|reply| reply.strip_suffix('"')) {
        None => Reply::There(at..at + reply.len()),
        Some(inner) if !contains(inner.as_bytes(), b"\\") => {
            Reply::Veiled(at + 1..at + 1 + inner.len())
        }
        Some(_) => Reply::Escaped(serde_json::from_str(reply).ok()?),
    };
    let before = format!("{}{}", &text[..start], head(message.id.get()));
    Some(Opened { before, reply, after: format!("}}{}", &text[end..]) })
}

/// Finds the data of an event.
fn data(event: &str) -> Option<(usize, usize)> {
    let field = if event.starts_with("data:") { 0 } else { event.find("\ndata:")? + 1 };
    let start = field + "data:".len();
    let end = event[start..].find('\n').map_or(event.len(), |end| start + end);
    let blank = event[start..end].len() - event[start..end].trim_start().len();
    Some((start + blank, end))
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(haystack, needle).is_some()
}

/// A transport that unpacks what it sends.
#[derive(Debug)]
pub(super) struct Opening<T>(pub(super) T);

impl<T: Transport<RoleServer>> Transport<RoleServer> for Opening<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        open(&mut item);
        self.0.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.0.receive().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.0.close().await
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{NumberOrString, ServerJsonRpcMessage};
    use serde_json::json;

    use super::*;

    fn reply() -> Value {
        json!({"content": [{"type": "hologram", "x": 1.50, "é\n\\": "\""}], "isError": false, "unknown": {"b": 1, "a": 2}})
    }

    fn message() -> ServerJsonRpcMessage {
        let CallToolResponse::Complete(result) = call(reply().to_string()) else {
            panic!("a call is complete")
        };
        ServerJsonRpcMessage::response(
            ServerResult::CallToolResult(result),
            NumberOrString::String("7".into()),
        )
    }

    #[test]
    fn a_message_and_a_body_open_to_the_same() {
        let sealed = serde_json::to_vec(&message()).unwrap();
        let body = open_bytes(Bytes::from(sealed));
        assert_eq!(body, written(message()).unwrap());
        let expected = json!({"jsonrpc": "2.0", "id": "7", "result": reply()});
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), expected);
    }

    #[test]
    fn any_text_comes_out_as_it_went_in() {
        for text in ["", "^", "\u{7f}", "\\^\"\u{7f}", "\\\\", "a\u{7f}\"^\\\n\u{1}é\u{1f600}", KEY]
        {
            let expected = json!({"content": [{"type": "text", "text": text}]});
            let message = |id: NumberOrString| {
                let CallToolResponse::Complete(result) = call(expected.to_string()) else {
                    panic!("a call is complete")
                };
                ServerJsonRpcMessage::response(ServerResult::CallToolResult(result), id)
            };
            for id in [NumberOrString::Number(7), NumberOrString::String("\"^\\".into())] {
                let sealed = serde_json::to_string(&message(id.clone())).unwrap();
                let whole = written(message(id)).unwrap();
                assert_eq!(serde_json::from_slice::<Value>(&whole).unwrap()["result"], expected);
                assert_eq!(open_bytes(Bytes::from(sealed.clone())), whole, "{text:?}");
                for (before, after) in [("", "\n\n"), ("id: 3/1\nretry: 3000\n", "\nid: 4\n\n")] {
                    let event = open_bytes(Bytes::from(format!("{before}data: {sealed}{after}")));
                    let expected =
                        [before.as_bytes(), b"data: ", &whole, after.as_bytes()].concat();
                    assert_eq!(event, expected, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn a_large_reply_stays_where_it_was_written() {
        let reply =
            json!({"content": [{"type": "text", "text": "\"\\\n".repeat(100_000)}]}).to_string();
        let CallToolResponse::Complete(result) = call(reply.clone()) else {
            panic!("a call is complete")
        };
        let message = ServerJsonRpcMessage::response(
            ServerResult::CallToolResult(result),
            NumberOrString::Number(7),
        );
        let sealed = serde_json::to_vec(&message).unwrap();
        assert!(sealed.len() < reply.len() + 200, "nothing of it is escaped once more");
        let there = sealed.as_ptr_range();
        let opened = open_bytes(Bytes::from(sealed));
        assert!(there.contains(&opened.as_ptr()));
    }

    #[test]
    fn a_tree_is_opened_in_place() {
        let message = || {
            ServerJsonRpcMessage::response(
                ServerResult::ListToolsResult(tools(reply())),
                NumberOrString::Number(7),
            )
        };
        let mut typed = message();
        open(&mut typed);
        let expected = json!({"jsonrpc": "2.0", "id": 7, "result": reply()});
        assert_eq!(serde_json::to_value(&typed).unwrap(), expected);
        assert_eq!(
            serde_json::from_slice::<Value>(&written(message()).unwrap()).unwrap(),
            expected
        );
    }

    #[test]
    fn an_event_is_opened_and_its_other_lines_stay() {
        let sealed = serde_json::to_string(&message()).unwrap();
        let event = format!("id: 3/1\nretry: 3000\ndata: {sealed}\n\n");
        let opened = open_bytes(Bytes::from(event));
        let opened = std::str::from_utf8(&opened).unwrap();
        let data = opened
            .strip_prefix("id: 3/1\nretry: 3000\ndata: ")
            .unwrap()
            .strip_suffix("\n\n")
            .unwrap();
        assert_eq!(serde_json::from_str::<Value>(data).unwrap()["result"], reply());
    }

    #[test]
    fn what_is_no_envelope_stays_as_it_is() {
        for text in [
            "{\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"iris/envelope\"}]}}",
            "iris/envelope",
            ": keep-alive\n\n",
        ] {
            assert_eq!(open_bytes(Bytes::from(text)), Bytes::from(text));
        }
    }
}
