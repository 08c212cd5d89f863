//! Which proxy a server is reached through, by the variables that everybody knows; pure.

use std::collections::BTreeMap;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use url::{Host, Url};

/// The variable for each scheme, and what is excepted from both.
const HTTP: &str = "http_proxy";
const HTTPS: &str = "https_proxy";
const EXCEPT: &str = "no_proxy";

/// A proxy.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    /// Where it is, without user and password.
    pub(super) uri: Uri,
    /// What it wants to know of us; marked as secret.
    pub(super) authorization: Option<HeaderValue>,
    /// The variable that names it, in upper case.
    variable: String,
}

impl Proxy {
    /// Returns whether it is itself spoken to over TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// Returns its address as it may be shown.
    pub(super) fn shown(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        format!("{scheme}://{authority}")
    }

    /// Says that it is in between.
    pub(super) fn told(&self) -> String {
        format!("through the proxy {} of {}", self.shown(), self.variable)
    }
}

/// Returns the proxy for a URL, if there is to be one; this machine itself needs none.
pub(super) fn of(
    url: &Url,
    environment: &BTreeMap<String, String>,
) -> Result<Option<Proxy>, String> {
    let name = if url.scheme() == "https" { HTTPS } else { HTTP };
    let (Some(written), false) = (variable(environment, name), is_loopback(url)) else {
        return Ok(None);
    };
    let variable_name = name.to_ascii_uppercase();
    let wrong = || format!("{variable_name} is no address of a proxy, such as http://proxy:3128");
    let with_scheme =
        if written.contains("://") { written.to_owned() } else { format!("http://{written}") };
    let parsed = Url::parse(&with_scheme).map_err(|_| wrong())?;
    if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
        return Err(wrong());
    }
    let except = variable(environment, EXCEPT).unwrap_or_default();
    let matcher = Matcher::builder().all(with_scheme).no(except).build();
    let target: Uri = url.as_str().parse().map_err(|_| wrong())?;
    let proxy = matcher.intercept(&target).map(|found| Proxy {
        uri: found.uri().clone(),
        authorization: found.basic_auth().cloned().map(|mut value| {
            value.set_sensitive(true);
            value
        }),
        variable: variable_name,
    });
    Ok(proxy)
}

/// Returns what a variable says; the name in lower case wins, as with curl, and empty is not set.
fn variable<'a>(environment: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    [name.to_owned(), name.to_ascii_uppercase()]
        .iter()
        .filter_map(|name| environment.get(name).map(|value| value.trim()))
        .find(|value| !value.is_empty())
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the proxy that is shown for a URL where these variables are set.
    fn proxy(url: &str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let pairs = variables.iter();
        let environment =
            pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let found = of(&Url::parse(url).unwrap(), &environment)?;
        Ok(found.map(|proxy| proxy.shown()))
    }

    #[test]
    fn each_scheme_has_its_proxy() {
        let both = [("HTTP_PROXY", "http://one:1"), ("HTTPS_PROXY", "two:2")];
        let check = |url: &str, variables: &[(&str, &str)], expected: Option<&str>| {
            let expected = Ok(expected.map(str::to_owned));
            assert_eq!(proxy(url, variables), expected, "{url} {variables:?}");
        };
        check("http://a.example/mcp", &both, Some("http://one:1"));
        check("https://a.example/mcp", &both, Some("http://two:2"));
        check("https://a.example/mcp", &both[..1], None);
        check("http://a.example/", &[("HTTP_PROXY", "https://one")], Some("https://one"));
        check(
            "http://a.example/",
            &[("http_proxy", "b:1"), ("HTTP_PROXY", "c:1")],
            Some("http://b:1"),
        );
        check(
            "http://a.example/",
            &[("http_proxy", ""), ("HTTP_PROXY", "c:1")],
            Some("http://c:1"),
        );
        check("http://a.example/", &[("HTTP_PROXY", " ")], None);
        let except = |hosts| [("HTTP_PROXY", "one:1"), ("NO_PROXY", hosts)];
        check("http://a.example/", &except("b.example, example"), None);
        check("http://a.example/", &except(".a.example"), None);
        check("http://ba.example/", &except("a.example"), Some("http://one:1"));
        check("http://10.1.2.3/", &except("10.0.0.0/8"), None);
        check("http://a.example/", &except("*"), None);
    }

    #[test]
    fn this_machine_needs_none() {
        for host in ["localhost:1", "a.localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "[::1]"]
            .into_iter()
            .chain(["[::ffff:127.0.0.1]"])
        {
            let url = format!("http://{host}/");
            assert_eq!(proxy(&url, &[("HTTP_PROXY", "one:1")]), Ok(None), "{host}");
        }
        let other = proxy("http://localhost.example/", &[("HTTP_PROXY", "one:1")]);
        assert!(other.unwrap().is_some());
    }

    #[test]
    fn a_password_is_sent_and_not_shown() {
        let environment = [("HTTPS_PROXY".to_owned(), "http://me:s%40cret@proxy:1/x?y".to_owned())];
        let url = Url::parse("https://a.example/").unwrap();
        let found = of(&url, &environment.into()).unwrap().unwrap();
        assert_eq!(found.authorization.clone().unwrap(), "Basic bWU6c0BjcmV0");
        assert_eq!(found.told(), "through the proxy http://proxy:1 of HTTPS_PROXY");
        let debugged = format!("{found:?}");
        assert!(!debugged.contains("cret") && !debugged.contains("bWU6"), "{debugged}");
    }

    #[test]
    fn what_is_no_proxy_is_an_error_without_what_it_says() {
        for wrong in ["socks5://me:s3cret@h:1", "http://", "http://me:s3cret@h:port", "a b"] {
            let error = proxy("https://a.example/", &[("HTTPS_PROXY", wrong)]).unwrap_err();
            assert!(error.starts_with("HTTPS_PROXY is no address") && !error.contains("s3cret"));
        }
    }
}
