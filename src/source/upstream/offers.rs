//! What a server lists besides tools.
//!
//! An entry is taken over as it is; what is needed of it is only what tells it from the others. A
//! list that cannot be read costs no other list, and leaves what was there before.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::client::Connection;
use super::diagnostic::{Diagnostic, MCP_OFFER_INVALID, Severity, Stage};
use crate::artifact::name::SCHEME;
use crate::relay::{Entry, Kind};

/// The most pages of a list that are read.
const PAGES: usize = 1_000;
/// How long all lists may take together.
const LIMIT: Duration = Duration::from_secs(10);

/// What a server says that it can do.
#[expect(clippy::struct_excessive_bools, reason = "so the protocol has it")]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Abilities {
    pub(super) tools: bool,
    pub(super) tools_change: bool,
    pub(super) prompts: bool,
    pub(super) prompts_change: bool,
    pub(super) resources: bool,
    pub(super) resources_change: bool,
    pub(super) subscriptions: bool,
    pub(super) completions: bool,
    pub(super) logs: bool,
}

impl Abilities {
    /// Returns whether there is anything to be had.
    pub(super) fn is_any(self) -> bool {
        self.tools || self.prompts || self.resources
    }
}

/// The lists of a server, each as it came or with why it did not.
#[derive(Debug)]
pub(super) struct Lists {
    prompts: Listed,
    resources: Listed,
    templates: Listed,
    reads: bool,
}

type Listed = Result<Vec<Value>, String>;

/// The entries of a server that can be published, by what tells them apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Taken {
    pub(super) prompts: Vec<(String, Entry)>,
    pub(super) resources: Vec<(String, Entry)>,
    pub(super) templates: Vec<(String, Entry)>,
    pub(super) reads: bool,
}

impl Connection {
    /// Reads the list of the tools, which a server with something else need not have.
    pub(super) async fn tools(&self) -> Result<Vec<Value>, String> {
        if !self.offers().tools {
            return Ok(Vec::new());
        }
        let (pages, cut) = self.list_tools().await?;
        if let Some(cut) = cut {
            tracing::warn!(upstream = self.server, "{cut}");
        }
        Ok(pages)
    }

    /// Reads all lists besides that of the tools.
    pub(super) async fn lists(&self) -> Lists {
        let offers = self.offers();
        let until = Instant::now() + LIMIT;
        let (prompts, resources, templates) = tokio::join!(
            self.list(Kind::Prompts, offers.prompts, until),
            self.list(Kind::Resources, offers.resources, until),
            self.list(Kind::ResourceTemplates, offers.resources, until),
        );
        Lists { prompts, resources, templates, reads: offers.resources }
    }

    async fn list(&self, kind: Kind, is_offered: bool, until: Instant) -> Listed {
        if !is_offered {
            return Ok(Vec::new());
        }
        let listed = tokio::time::timeout_at(until, self.pages(kind)).await;
        listed.unwrap_or_else(|_| Err(format!("it did not answer within {} s", LIMIT.as_secs())))
    }

    async fn pages(&self, kind: Kind) -> Listed {
        let (mut entries, mut seen) = (Vec::new(), HashSet::new());
        let mut params = json!({});
        for _ in 0..PAGES {
            let mut page = match self.bare(kind.method(), params).await {
                Ok(page) => page,
                // Servers have resources without knowing of templates.
                Err(error) if error.code == -32601 && kind == Kind::ResourceTemplates => break,
                Err(error) => return Err(error.to_string()),
            };
            match page.get_mut(kind.key()).map(Value::take) {
                Some(Value::Array(listed)) => entries.extend(listed),
                _ => return Err(format!("a page of the list has no {}", kind.key())),
            }
            let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            let Some(next) = next.filter(|next| seen.insert(next.clone())) else { break };
            params = json!({"cursor": next});
        }
        Ok(entries)
    }
}

impl Lists {
    /// Takes over what can be published; a list that could not be read stays as it was.
    pub(super) fn take(self, server: &str, before: &Taken) -> (Taken, Vec<Diagnostic>) {
        let mut lists = Taker { server, diagnostics: Vec::new() };
        let taken = Taken {
            prompts: lists.list(Kind::Prompts, self.prompts, &before.prompts),
            resources: lists.list(Kind::Resources, self.resources, &before.resources),
            templates: lists.list(Kind::ResourceTemplates, self.templates, &before.templates),
            reads: self.reads,
        };
        (taken, lists.diagnostics)
    }
}

struct Taker<'a> {
    server: &'a str,
    diagnostics: Vec<Diagnostic>,
}

impl Taker<'_> {
    fn list(
        &mut self,
        kind: Kind,
        listed: Listed,
        before: &[(String, Entry)],
    ) -> Vec<(String, Entry)> {
        let listed = match listed {
            Ok(listed) => listed,
            Err(reason) => {
                self.report(None, format!("{} failed: {reason}", kind.method()), Severity::Error);
                return before.to_vec();
            }
        };
        let (mut entries, mut seen) = (Vec::new(), HashSet::new());
        for entry in listed {
            match named(kind, entry) {
                // What another gateway of ours keeps: an address like that is asked of us only.
                Some((id, _)) if kind != Kind::Prompts && id.starts_with(SCHEME) => {}
                Some((id, entry)) if seen.insert(id.clone()) => entries.push((id, Arc::new(entry))),
                Some((id, _)) => {
                    let text = format!("{} has it twice; the first one counts", kind.method());
                    self.report(Some(id), text, Severity::Warning);
                }
                None => {
                    let text = format!("an entry of {} has no {}", kind.method(), kind.id());
                    self.report(None, text, Severity::Error);
                }
            }
        }
        entries
    }

    fn report(&mut self, wire_name: Option<String>, message: String, severity: Severity) {
        self.diagnostics.push(invalid(self.server, wire_name, message, severity));
    }
}

fn named(kind: Kind, entry: Value) -> Option<(String, Map<String, Value>)> {
    let Value::Object(entry) = entry else { return None };
    let id = entry.get(kind.id()).and_then(Value::as_str).filter(|id| !id.is_empty())?.to_owned();
    Some((id, entry))
}

/// Says that something besides a tool is left out, or not as its server lists it.
pub(super) fn invalid(
    server: &str,
    wire_name: Option<String>,
    message: String,
    severity: Severity,
) -> Diagnostic {
    Diagnostic {
        server: server.to_owned(),
        stage: Stage::Catalog,
        code: MCP_OFFER_INVALID,
        severity,
        wire_name,
        field: None,
        message,
        place: None,
    }
}

/// Says which addresses several servers list; the first one has them.
pub(super) fn clashes<'a>(servers: impl Iterator<Item = (&'a str, &'a Taken)>) -> Vec<Diagnostic> {
    let mut owners = std::collections::HashMap::new();
    let mut diagnostics = Vec::new();
    for (server, taken) in servers {
        for (uri, _) in taken.resources.iter().chain(&taken.templates) {
            let owner = *owners.entry(uri.as_str()).or_insert(server);
            if owner != server {
                let text = format!("{owner} lists this address too, and is before it");
                diagnostics.push(invalid(server, Some(uri.clone()), text, Severity::Warning));
            }
        }
    }
    diagnostics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(prompts: Listed, resources: Listed) -> Lists {
        Lists { prompts, resources, templates: Ok(Vec::new()), reads: true }
    }

    #[test]
    fn what_cannot_be_used_is_left_out_and_said() {
        let prompts = vec![json!({"name": "a", "x": 1}), json!({"name": "a"}), json!({}), json!(7)];
        let (taken, said) = lists(Ok(prompts), Ok(Vec::new())).take("s", &Taken::default());
        assert_eq!(taken.prompts.len(), 1);
        assert_eq!(taken.prompts[0].1["x"], 1);
        assert_eq!(said.len(), 3);
        assert_eq!(said[0].to_string(), "s: a: prompts/list has it twice; the first one counts");
    }

    #[test]
    fn a_list_that_fails_stays_as_it_was() {
        let first = lists(Ok(vec![json!({"name": "a"})]), Ok(vec![json!({"uri": "u"})]));
        let (before, _) = first.take("s", &Taken::default());
        let (after, said) = lists(Err("no".into()), Ok(Vec::new())).take("s", &before);
        assert_eq!((after.prompts, after.resources), (before.prompts, Vec::new()));
        assert_eq!(said[0].to_string(), "s: prompts/list failed: no");
    }

    #[test]
    fn an_address_of_two_servers_is_said() {
        let (taken, _) =
            lists(Ok(Vec::new()), Ok(vec![json!({"uri": "u"})])).take("s", &Taken::default());
        let said = clashes([("a", &taken), ("b", &taken)].into_iter());
        assert_eq!(said.len(), 1);
        assert_eq!(said[0].to_string(), "b: u: a lists this address too, and is before it");
    }
}
