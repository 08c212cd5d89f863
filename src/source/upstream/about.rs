//! What the operator is told of a server, beyond what clients may know.

use std::path::PathBuf;

use super::clients::Scope;
use super::config::{Http, Server, Stdio, Transport};
use crate::process::command_shown;

/// A server as its operator is told of it; no value of a header or the environment is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub server: String,
    /// Whether its failure is everybody's.
    pub required: bool,
    /// How it is reached.
    pub reached: Reached,
    /// Who shares the connections to it.
    pub scope: Scope,
    /// Whether it is of the newer era, and which version it speaks, once that is known.
    pub protocol: Option<(bool, String)>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// What it wrote before it failed, to standard error or else to standard output.
    pub last_words: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    /// By starting a program.
    Command {
        /// The command as it is written; arguments may hold a key, and are not told, be they in it.
        command: String,
        /// The file that it means, where there is one.
        program: Option<PathBuf>,
    },
    /// By URL.
    Url {
        /// `streamable-http` or `sse`.
        transport: &'static str,
        /// The URL as it is written, without user and query, which may hold a key.
        url: String,
        /// The proxy in between, without user and password.
        proxy: Option<String>,
    },
}

impl About {
    pub(super) fn new(
        (server, scope): (&Server, Scope),
        (program, proxy): (Option<PathBuf>, Option<String>),
        protocol: Option<(bool, String)>,
        failure: Option<(Vec<String>, String)>,
    ) -> Self {
        let by_url = |transport, Http { url, .. }: &Http| {
            let (url, proxy) = (shown(url), proxy.clone());
            Reached::Url { transport, url, proxy }
        };
        let reached = match &server.transport {
            Transport::Stdio(Stdio { command, .. }) => {
                // One that is no file may be a whole command line.
                let command = match program {
                    Some(_) => command.clone(),
                    None => command_shown(command),
                };
                Reached::Command { command, program }
            }
            Transport::Http(http) => by_url("streamable-http", http),
            Transport::Sse(http) => by_url("sse", http),
        };
        let (last_words, failure) = failure.unzip();
        Self {
            server: server.name.clone(),
            required: server.required,
            reached,
            scope,
            protocol,
            failure,
            last_words: last_words.unwrap_or_default(),
        }
    }
}

/// Returns a URL without what may be a secret in it; expressions stay as they are written.
pub(super) fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_what_may_be_a_key() {
        for (written, expected) in [
            ("https://example.com/mcp", "https://example.com/mcp"),
            ("https://me:pass@example.com:1/a@b?key=1#c", "https://example.com:1/a@b"),
            ("https://${HOST}/${KEY}/mcp", "https://${HOST}/${KEY}/mcp"),
            ("http://h?k=//x@y", "http://h"),
            ("${URL}", "${URL}"),
        ] {
            assert_eq!(shown(written), expected);
        }
    }
}
