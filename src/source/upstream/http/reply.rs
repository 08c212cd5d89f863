//! What a server's response is, and in plain words what is wrong with one that is none.

use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use reqwest::Response;
use serde::de::IgnoredAny;
use serde_json::Value;
use url::Url;

use super::Remote;
use super::events::Events;
use crate::source::upstream::pending::Fate;

/// The most characters of a response that a message shows.
const SHOWN: usize = 200;
/// How much of a response that says no is read.
const READ: usize = 64 * 1024;

/// A response that is as it should be.
#[derive(Debug)]
pub(super) enum Reply {
    /// One message, or several, as they came.
    Json(Vec<u8>),
    /// A stream of them.
    Events(Box<Events>),
    /// Nothing.
    Empty,
}

/// A response that is not.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    /// What is to be said of it.
    pub(super) text: String,
    /// The body, if it is an error of JSON-RPC.
    pub(super) error: Option<Value>,
    /// Whether its text is about a session.
    pub(super) about_session: bool,
    /// What it means for the request.
    pub(super) fate: Fate,
}

impl Remote {
    /// Looks at a response and reads what it has to.
    pub(super) async fn sort(&self, response: Response) -> Result<Reply, Box<Refusal>> {
        if !response.status().is_success() {
            return Err(Box::new(self.refusal(response).await));
        }
        let kind = media_type(response.headers());
        match kind.as_deref() {
            Some("text/event-stream") => {
                return Ok(Reply::Events(Box::new(Events::new(response, self.limit))));
            }
            Some("application/json") => {}
            _ if response.content_length() == Some(0)
                || matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) =>
            {
                return Ok(Reply::Empty);
            }
            _ => return Err(Box::new(self.foreign(response, kind).await)),
        }
        let status = response.status();
        let unknown = |text: String| {
            let fate = Fate::Unknown(text.clone());
            Box::new(Refusal { status, text, error: None, about_session: false, fate })
        };
        let body = match read(response, self.limit).await {
            Ok(Some(body)) => body,
            Ok(None) => return Err(unknown(Fate::too_long(self.limit).text().to_owned())),
            Err(error) => {
                return Err(unknown(format!("its answer broke off: {}", broken(error))));
            }
        };
        match serde_json::from_slice::<IgnoredAny>(&body) {
            Ok(_) => Ok(Reply::Json(body)),
            Err(_) if body.trim_ascii().is_empty() => Ok(Reply::Empty),
            Err(_) => Err(unknown(format!("its answer is no JSON{}", self.excerpt(&body)))),
        }
    }

    /// Reads a response that says no.
    async fn refusal(&self, response: Response) -> Refusal {
        let (status, headers) = (response.status(), response.headers().clone());
        let kind = media_type(&headers);
        let body = head(response).await;
        let error = serde_json::from_slice::<Value>(&body).ok();
        let error = error.filter(|value| value.get("error").is_some_and(Value::is_object));
        let said = error.as_ref().and_then(|value| value["error"]["message"].as_str());
        let said = match (said, kind.as_deref()) {
            (Some(said), _) => self.excerpt(said.as_bytes()),
            // What a browser is shown says nothing to anybody else.
            (None, Some("text/html")) => String::new(),
            (None, _) => self.excerpt(&body),
        };
        let text =
            format!("HTTP {}: {}{said}", status.as_u16(), advice(status, &headers, &self.url));
        let about_session = String::from_utf8_lossy(&body).to_lowercase().contains("session");
        let fate = if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT {
            Fate::Unknown(text.clone())
        } else {
            Fate::NotRun(text.clone())
        };
        Refusal { status, text, error, about_session, fate }
    }

    /// Reads a response that is neither JSON nor events.
    async fn foreign(&self, response: Response, kind: Option<String>) -> Refusal {
        let status = response.status();
        let kind = kind.unwrap_or_else(|| "something without a content type".to_owned());
        let page = if kind == "text/html" {
            "; `url` seems to be that of a web page, perhaps one to log in at"
        } else {
            "; check `url`"
        };
        let body = head(response).await;
        let text = format!(
            "it answered with {} instead of JSON or events{page}{}",
            clean(&kind),
            self.excerpt(&body)
        );
        let fate = Fate::Unknown(text.clone());
        Refusal { status, text, error: None, about_session: false, fate }
    }

    /// Shows the beginning of a body, on one line and without our secrets.
    fn excerpt(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        let shown = clean(self.redacted(text.trim()).as_str());
        if shown.is_empty() { shown } else { format!("; it says: {shown}") }
    }
}

/// Returns at most so many characters of a text, none of them a control character.
pub(super) fn clean(text: &str) -> String {
    let mut clean = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == SHOWN {
            clean.push('…');
            break;
        }
        match c {
            '"' | '\'' => clean.push(c),
            c => clean.extend(c.escape_debug()),
        }
    }
    clean
}

/// Says what a refusal means, and what to check.
fn advice(status: StatusCode, headers: &HeaderMap, url: &Url) -> String {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match status.as_u16() {
        300..=399 => {
            let target = header(LOCATION).and_then(|target| url.join(target).ok());
            let target = match target {
                Some(target) if target.host_str() == url.host_str() => {
                    // What follows a path may hold a key.
                    let origin = target.origin().ascii_serialization();
                    format!(" (it points to {})", clean(&format!("{origin}{}", target.path())))
                }
                Some(_) => " (it points to another host)".to_owned(),
                None => String::new(),
            };
            format!("it redirects, and redirects are not followed; put the final URL in `url`{target}")
        }
        401 if header(WWW_AUTHENTICATE).is_some_and(|value| value.contains("resource_metadata")) => {
            "it wants a token; check `bearer_token_env_var` and `headers` (it offers an OAuth login, which is not available in this version)".to_owned()
        }
        401 => "it wants a token, or does not know this one; check `bearer_token_env_var` and `headers`".to_owned(),
        403 => "it refuses; check what the token may do, and whether the server allows this host".to_owned(),
        404 => "there is nothing; check the path of `url`, or set `type` to `sse` for a server of the old transport".to_owned(),
        405 => "it takes no messages there; check the path of `url`, or set `type` to `sse` for a server of the old transport".to_owned(),
        406 => "it answers neither in JSON nor in events; check `url`".to_owned(),
        415 => "it does not take JSON; check `url`".to_owned(),
        413 => "the message is too long for it".to_owned(),
        407 => "a proxy wants to know who asks; put user and password into the URL in HTTP_PROXY".to_owned(),
        429 => format!("it is asked too often{}", later(headers)),
        400..=499 => "it does not accept the request".to_owned(),
        503 => format!("it, or a server behind it, is not there for now{}", later(headers)),
        502 | 504 => "a server behind it is not there".to_owned(),
        _ => "it failed".to_owned(),
    }
}

/// Says when a server wants to be asked again, if it does (RFC 9110 §10.2.3).
fn later(headers: &HeaderMap) -> String {
    let said = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::trim);
    match said {
        None | Some("") => String::new(),
        Some(seconds) if seconds.bytes().all(|digit| digit.is_ascii_digit()) => {
            format!("; try again in {} s", clean(seconds))
        }
        Some(date) => format!("; try again after {}", clean(date)),
    }
}

fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// Reads a body, unless it is longer than the limit.
async fn read(mut response: Response, limit: usize) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// Reads the beginning of a body; what breaks off is shorter.
async fn head(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk[..chunk.len().min(READ - body.len())]);
            if body.len() == READ {
                break;
            }
        }
    };
    // Whoever drips it has said enough by then.
    drop(tokio::time::timeout(super::TELLING, reading).await);
    body
}

/// Says what is wrong with a connection; a URL may hold a key and is not shown.
pub(super) fn broken(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut source: &dyn std::error::Error = &error;
    while let Some(cause) = source.source() {
        source = cause;
    }
    source.to_string()
}

impl Remote {
    /// Says what becomes of a request that got no response.
    pub(super) fn lost(&self, error: reqwest::Error) -> Fate {
        let was_made = !error.is_connect() && !error.is_builder();
        let mut why = broken(error);
        // The library has no other way to say so.
        if why.contains("UnknownIssuer") {
            why.push_str("; if its certificate is from an authority of your own, add that to the system's, or name its file in SSL_CERT_FILE");
        }
        let through = self.proxy.as_ref().map(|proxy| format!(" {}", proxy.told()));
        let through = through.unwrap_or_default();
        if was_made {
            Fate::Unknown(format!("the connection{through} broke: {why}"))
        } else {
            Fate::NotRun(format!("it cannot be reached{through}: {why}"))
        }
    }
}
