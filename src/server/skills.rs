//! The skills extension (SEP-2640): which skills there are, one of them, and the folders of their files.
//!
//! Whoever has skills answers; here they are put in pages and in the form of an era. What is there is
//! looked at for each request, so a cursor holds for a list of the same content.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};

use super::Gateway;
use super::caller::Caller;
use super::page::Page;
use super::relayed::{Passed, Retry};
use super::relays::{owner, shaped};
use crate::shutdown::beside_others;

impl Gateway {
    /// Answers `skills/list`.
    pub(super) async fn skills(
        &self,
        cursor: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let caller = self.caller("skills/list", context);
        let mut skills = Vec::new();
        for source in self.skilled() {
            let answer = self.ask("skills/list", (source, Map::new()), &caller, context).await?;
            skills.extend(entries(answer, "skills"));
        }
        beside_others(|| page("skills", &skills, cursor, &caller))
    }

    /// Answers `skills/get`.
    pub(super) async fn skill(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let caller = self.caller("skills/get", context);
        let answer = self.first("skills/get", uri, &caller, context).await?;
        shaped(answer, true, caller.client.era)
    }

    /// Answers `resources/directory/read`.
    pub(super) async fn directory(
        &self,
        uri: &str,
        cursor: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let caller = self.caller("resources/directory/read", context);
        let answer = self.first("resources/directory/read", uri, &caller, context).await?;
        let children = entries(answer, "resources");
        beside_others(|| page("resources", &children, cursor, &caller))
    }

    fn skilled(&self) -> Vec<usize> {
        self.shared.parts.exposure.registry().snapshot().offered().skilled().to_vec()
    }

    /// Asks one source after the other about an address, until one knows it.
    async fn first(
        &self,
        method: &'static str,
        uri: &str,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let mut refused = None;
        for source in self.skilled() {
            let params = Map::from_iter([("uri".to_owned(), uri.into())]);
            match self.ask(method, (source, params), caller, context).await {
                Ok(answer) => return Ok(answer),
                Err(error) => _ = refused.get_or_insert(error),
            }
        }
        let unknown = || ErrorData::invalid_params("there is none", Some(json!({"uri": uri})));
        Err(refused.unwrap_or_else(unknown))
    }

    async fn ask(
        &self,
        method: &'static str,
        (source, params): (usize, Map<String, Value>),
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let catalogue = self.shared.parts.exposure.registry().snapshot();
        let to = owner(&catalogue, source)?;
        let passed = Passed { to, method, about: String::new(), params, retry: Retry::default() };
        self.relay(passed, caller, context).await
    }
}

fn entries(mut answer: Value, key: &str) -> Vec<Value> {
    match answer.get_mut(key).map(Value::take) {
        Some(Value::Array(entries)) => entries,
        _ => Vec::new(),
    }
}

fn page(
    key: &'static str,
    entries: &[Value],
    cursor: Option<&str>,
    caller: &Caller,
) -> Result<Value, ErrorData> {
    let mut content = DefaultHasher::new();
    entries.hash(&mut content);
    let page = Page { key, version: content.finish(), cursor, era: caller.client.era };
    page.of(entries.len(), |index| entries[index].clone())
}
