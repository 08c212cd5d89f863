//! Where a request comes from: nothing but this machine, where no token keeps strangers out.
//!
//! The library holds the endpoint of MCP to the same rule; this is for our own routes.

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;

use super::{Shared, admit, refuse};

/// The names by which this machine calls itself.
pub(super) const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Refuses what a page in a browser could be made to send (DNS rebinding).
pub(super) async fn require(
    State(shared): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    if shared.loopback_only && !is_local(request.headers()) {
        return refuse(StatusCode::FORBIDDEN, "Forbidden: this Host or Origin is not allowed");
    }
    admit(request, next).await
}

/// Says whether a request names this machine and comes from no page of another one.
fn is_local(headers: &HeaderMap) -> bool {
    let of = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = of(header::HOST).and_then(|host| host.parse::<Authority>().ok());
    let origin = of(header::ORIGIN).map(|origin| origin.parse::<Uri>().ok());
    host.is_some_and(|host| is_loopback(host.host()))
        && origin.is_none_or(|origin| {
            origin.is_some_and(|origin| {
                origin.scheme_str() == Some("http") && origin.host().is_some_and(is_loopback)
            })
        })
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    LOOPBACK.iter().any(|name| host.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_local() {
        let table: [(&[(&str, &str)], bool); 12] = [
            (&[("host", "localhost")], true),
            (&[("host", "LocalHost:8808")], true),
            (&[("host", "[::1]:8808")], true),
            (&[("host", "127.0.0.1:1"), ("origin", "http://localhost:6274")], true),
            (&[("host", "127.0.0.1:1"), ("origin", "http://[::1]")], true),
            (&[], false),
            (&[("host", "evil.example:8808")], false),
            (&[("host", "127.0.0.1.evil.example")], false),
            (&[("host", "localhost"), ("origin", "http://evil.example")], false),
            (&[("host", "localhost"), ("origin", "https://localhost")], false),
            (&[("host", "localhost"), ("origin", "null")], false),
            (&[("host", "localhost"), ("origin", "")], false),
        ];
        for (headers, expected) in table {
            let headers = headers.iter().map(|(name, value)| {
                (name.parse::<header::HeaderName>().unwrap(), value.parse().unwrap())
            });
            let headers: HeaderMap = headers.collect();
            assert_eq!(is_local(&headers), expected, "{headers:?}");
        }
    }
}
