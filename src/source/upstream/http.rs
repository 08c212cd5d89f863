//! Upstream servers that are reached by URL: what is sent to them, and how.
//!
//! Nothing is followed that the file does not name, but for a proxy of the environment: no
//! redirect, no cookie. Nothing is sent twice. What is read is bounded, and what a server says of
//! a refusal is shown, shortened.

mod events;
mod headers;
mod mirror;
mod older;
mod proxy;
mod reply;
mod streamable;
mod trust;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder};
use url::Url;

use self::proxy::Proxy;
use self::trust::Trust;
use super::env::Endpoint;

pub(super) use self::headers::is_ours;
pub(super) use self::mirror::{Mirrors, learn};
pub(super) use self::older::Older;
pub(super) use self::streamable::Streamable;

/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept; common servers close theirs after five seconds, and a
/// request on a connection that is being closed is one whose outcome is not known.
const IDLE: Duration = Duration::from_secs(4);
/// How long a message may take that has no answer.
const TELLING: Duration = Duration::from_secs(10);

/// What all servers that are reached by URL have in common.
#[derive(Debug)]
pub(super) struct Network {
    trust: Trust,
    /// Where proxies and certificates are named.
    environment: BTreeMap<String, String>,
    /// The longest message that is read.
    limit: usize,
}

/// A server and the way to it.
#[derive(Clone)]
pub(super) struct Remote {
    /// What messages in the log call the server.
    server: String,
    client: Client,
    url: Url,
    proxy: Option<Proxy>,
    /// The headers of every request.
    headers: HeaderMap,
    /// The longest message that is read.
    limit: usize,
}

impl Network {
    /// Makes it of the environment, from which what is needed is read later.
    pub(super) fn new(environment: BTreeMap<String, String>, limit: usize) -> Self {
        Self { trust: Trust::default(), environment, limit }
    }

    /// Returns the proxy that a URL is reached through, as it may be shown.
    pub(super) fn proxy_of(&self, url: &Url) -> Option<String> {
        proxy::of(url, &self.environment).ok()?.map(|proxy| proxy.shown())
    }

    /// Makes what sends requests to a URL, through a proxy or not.
    fn client(&self, url: &Url, proxy: Option<&Proxy>) -> Result<Client, String> {
        // Reading whom to trust takes time, and most servers are near.
        let is_secure = url.scheme() == "https" || proxy.is_some_and(Proxy::is_secure);
        let tls = if is_secure { self.trust.config(&self.environment)? } else { trust::nobody()? };
        let builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            // None but ours below.
            .no_proxy()
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE)
            .http1_only();
        let builder = match proxy {
            Some(proxy) => {
                let all = reqwest::Proxy::all(proxy.uri.to_string()).map_err(reply::broken)?;
                builder.proxy(match proxy.authorization.clone() {
                    Some(authorization) => all.custom_http_auth(authorization),
                    None => all,
                })
            }
            None => builder,
        };
        builder.build().map_err(reply::broken)
    }
}

impl Remote {
    /// Prepares what every request to a server has.
    pub(super) fn new(
        server: &str,
        endpoint: &Endpoint,
        network: &Network,
    ) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &endpoint.headers {
            let named = HeaderName::from_bytes(name.as_bytes());
            let valued = HeaderValue::from_bytes(value.expose().as_bytes());
            let (Ok(name), Ok(mut value)) = (named, valued) else {
                return Err(format!("{name} cannot be a header"));
            };
            if is_ours(&name) {
                return Err(format!("the header {name} cannot be set, it belongs to the protocol"));
            }
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let agent = concat!("iris-mcp/", env!("CARGO_PKG_VERSION"));
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(agent));
        let proxy = proxy::of(&endpoint.url, &network.environment)?;
        let client = network.client(&endpoint.url, proxy.as_ref())?;
        let (server, url) = (server.to_owned(), endpoint.url.clone());
        Ok(Self { server, client, url, proxy, headers, limit: network.limit })
    }

    /// Begins a request; `url` is the server's own or one it named.
    fn request(&self, method: Method, url: &Url, accept: &'static str) -> RequestBuilder {
        let accept = HeaderValue::from_static(accept);
        let request = self.client.request(method, url.clone()).headers(self.headers.clone());
        request.header(header::ACCEPT, accept)
    }

    /// Returns a text of the server's without the secrets that it was told.
    fn redacted(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for value in self.headers.values().filter(|value| value.is_sensitive()) {
            let Ok(value) = std::str::from_utf8(value.as_bytes()) else { continue };
            let secret = value.split_once(' ').map_or(value, |(_, secret)| secret);
            // A shorter one may be any word.
            if secret.len() >= 8 {
                text = text.replace(secret, "[redacted]");
            }
        }
        text
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The rest of a URL may hold a key.
        let origin = self.url.origin().ascii_serialization();
        f.debug_struct("Remote")
            .field("server", &self.server)
            .field("origin", &origin)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::upstream::secret::Secret;

    fn remote(headers: &[(&str, &str)]) -> Result<Remote, String> {
        let url = Url::parse("http://127.0.0.1:1/path-key?query-key").unwrap();
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| ((*name).to_owned(), Secret::new(*value)));
        let network = Network::new(BTreeMap::new(), 9);
        Remote::new("s", &Endpoint { url, headers: headers.collect() }, &network)
    }

    #[test]
    fn secrets_are_neither_debugged_nor_repeated() {
        let headers = [("authorization", "Bearer secret-1"), ("x-key", "secret-2"), ("x-a", "a")];
        let remote = remote(&headers).unwrap();
        let shown = format!("{remote:?}");
        assert!(shown.contains("http://127.0.0.1:1") && shown.contains("x-key"), "{shown}");
        assert!(!shown.contains("secret") && !shown.contains("path-key"), "{shown}");
        let said = remote.redacted("a Bearer secret-1, secret-2");
        assert_eq!(said, "a Bearer [redacted], [redacted]");
    }

    #[test]
    fn headers_of_the_protocol_cannot_be_set() {
        for name in ["accept", "mcp-session-id", "content-length", "last-event-id"] {
            let error = remote(&[(name, "x")]).unwrap_err();
            assert_eq!(
                error,
                format!("the header {name} cannot be set, it belongs to the protocol")
            );
        }
        assert!(remote(&[("host", "elsewhere"), ("user-agent", "me")]).is_ok());
    }
}
