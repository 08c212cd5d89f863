//! One message of a client: what it is, or what is wrong with it (JSON-RPC 2.0 §5.1).
//!
//! The library says of bytes only that it cannot read them. Whoever wrote them gets to know why,
//! under the id of the request where there is one, over every transport in the same words.

use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, RequestId};
use serde_json::{Map, Value};

/// What bytes are.
pub(super) enum Read {
    /// A message.
    Message(Box<ClientJsonRpcMessage>),
    /// None, and the error that answers them.
    Bad(Option<RequestId>, ErrorData),
    /// None that anybody waits for an answer to.
    Nothing,
}

/// Reads one message.
pub(super) fn read(bytes: &[u8]) -> Read {
    if let Some((id, error)) = misread(bytes) {
        return Read::Bad(Some(id), error);
    }
    match serde_json::from_slice::<ClientJsonRpcMessage>(bytes) {
        Ok(message) => Read::Message(Box::new(message)),
        Err(error) => unread(bytes, &error.to_string()),
    }
}

/// Finds what the library would take for something else than it is.
///
/// It drops the parameters of a list that it cannot read, and would answer the first page again
/// and again to a client whose cursor is of the wrong type.
pub(super) fn misread(bytes: &[u8]) -> Option<(RequestId, ErrorData)> {
    memchr::memmem::find(bytes, b"\"cursor\"")?;
    let message: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
    message.get("method")?.as_str().filter(|method| method.ends_with("/list"))?;
    let cursor = message.get("params")?.get("cursor")?;
    let is_bad = !cursor.is_string() && !cursor.is_null();
    let id = serde_json::from_value(message.get("id")?.clone()).ok().filter(|_| is_bad)?;
    Some((id, ErrorData::invalid_params("a cursor is a text that a list has given", None)))
}

/// Says what is wrong with bytes that the library cannot read.
pub(super) fn unread(bytes: &[u8], error: &str) -> Read {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return Read::Bad(None, ErrorData::parse_error(format!("this is not JSON: {error}"), None));
    };
    let id = value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    let refused =
        |message: &str| Read::Bad(id.clone(), ErrorData::invalid_request(message.to_owned(), None));
    let members = match &value {
        Value::Array(_) => {
            return refused("batches are not part of this protocol; send one message at a time");
        }
        Value::Object(members) => members,
        _ => return refused("this is not a message of this protocol"),
    };
    match (members.get("method"), members.get("id")) {
        (None, None) => refused("this is neither a request nor a notification nor a response"),
        _ if members.get("jsonrpc") != Some(&Value::from("2.0")) => {
            refused("a message has \"jsonrpc\": \"2.0\"")
        }
        (Some(_), Some(_)) if id.is_none() => {
            refused("the id of a request is a string or an integer")
        }
        // A bad notification has nobody who waits for an answer.
        (Some(_), None) => {
            tracing::debug!(%error, "a notification that cannot be read was dropped");
            Read::Nothing
        }
        (Some(Value::String(_)), _) if members.get("params").is_some_and(Value::is_array) => {
            let message = "the parameters of a request are an object here, and no list";
            Read::Bad(id, ErrorData::invalid_params(message, None))
        }
        _ => refused("this is not a message of this protocol"),
    }
}

#[cfg(test)]
mod fuzz;
