//! What is read of a request before the library reads it: what it accepts, and whether its body is
//! a message at all.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use rmcp::ErrorData;
use rmcp::model::{RequestId, ServerJsonRpcMessage};

use super::Shared;
use crate::server::caller::SESSION_HEADER;
use crate::server::message::{self, Read};

/// What a client of ours has to accept, as the library compares it.
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Answers a body that is no message with what is wrong with it.
///
/// The library calls it an unsupported media type, which it is not if it was said to be JSON.
pub(super) async fn explain(
    State(shared): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    widen(request.headers_mut());
    let content_type = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_json = content_type.is_some_and(|kind| kind.starts_with(b"application/json"));
    if request.method() != Method::POST || !is_json {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let limit = shared.gateway.config().max_message_bytes;
    let bytes = match Limited::new(body, limit).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return too_long(limit),
        // Nobody is there any more to be answered.
        Err(_) => return StatusCode::BAD_REQUEST.into_response(),
    };
    if let Some((id, error)) = message::misread(&bytes) {
        return refused(StatusCode::OK, error, Some(id));
    }
    // The library would call it an error of its own.
    if !parts.headers.contains_key(SESSION_HEADER)
        && memchr::memmem::find(&bytes, b"\"initialize\"").is_some()
        && let Some(full) = shared.manager.full()
    {
        let error = ErrorData::internal_error(full.to_string(), None);
        return refused(StatusCode::SERVICE_UNAVAILABLE, error, None);
    }
    let response = next.run(Request::from_parts(parts, Body::from(bytes.clone()))).await;
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE { unread(&bytes) } else { response }
}

fn unread(bytes: &Bytes) -> Response {
    match message::read(bytes) {
        Read::Bad(id, error) => refused(StatusCode::BAD_REQUEST, error, id),
        Read::Message(_) | Read::Nothing => {
            let error = ErrorData::invalid_request("this is not a message of this protocol", None);
            refused(StatusCode::BAD_REQUEST, error, None)
        }
    }
}

fn too_long(limit: usize) -> Response {
    let message = format!("a message has at most {limit} bytes (limits.max_message_bytes)");
    refused(StatusCode::PAYLOAD_TOO_LARGE, ErrorData::invalid_request(message, None), None)
}

fn refused(status: StatusCode, error: ErrorData, id: Option<RequestId>) -> Response {
    (status, Json(ServerJsonRpcMessage::error(error, id))).into_response()
}

/// Takes a client that accepts anything at its word (RFC 9110 §12.5.1), where the library looks for
/// the names of both types only.
fn widen(headers: &mut HeaderMap) {
    let accepted = headers.get_all(header::ACCEPT).into_iter();
    let accepted: Vec<&str> = accepted.filter_map(|value| value.to_str().ok()).collect();
    let ranges = || {
        let ranges = accepted.iter().flat_map(|value| value.split(','));
        ranges.map(|range| range.split(';').next().unwrap_or_default().trim())
    };
    let accepts =
        |kind: &str, range: &str| ranges().any(|it| it == kind || it == range || it == "*/*");
    if accepts("application/json", "application/*") && accepts("text/event-stream", "text/*") {
        headers.insert(header::ACCEPT, BOTH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_as_good_as_a_name() {
        let widened = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::ACCEPT, HeaderValue::from_static(value));
            }
            widen(&mut headers);
            headers.get(header::ACCEPT) == Some(&BOTH)
        };
        assert!(widened(&["*/*"]));
        assert!(widened(&["application/*;q=0.5, text/*"]));
        assert!(widened(&["text/event-stream", "application/json"]));
        assert!(!widened(&["application/json"]) && !widened(&["text/*"]) && !widened(&[]));
        assert!(!widened(&["text/html, image/*"]));
    }
}
