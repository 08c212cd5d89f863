//! Prompts, resources and completions: lists of all sources, and whose each of them is.

use std::sync::Arc;

use rmcp::model::{
    CompleteRequestParams, ErrorCode, GetPromptRequestParams, ReadResourceRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::page::Page;
use super::project::{self, for_era};
use super::relayed::{Passed, Retry, To};
use super::{Gateway, resources};
use crate::artifact::name::SCHEME;
use crate::exposure::NOT_FOUND;
use crate::exposure::names::Names;
use crate::registry::Catalogue;
use crate::relay::{Kind, Prompt, Relay, RelayError, no_completions};
use crate::tool::Era;

/// The upstream asks for what this client cannot be asked for here.
const UNSUPPORTED: &str = "MCP_INTERACTION_UNSUPPORTED";

impl Gateway {
    /// Answers a request for a list besides that of tools.
    pub(super) async fn offered(
        &self,
        kind: Kind,
        cursor: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let caller = self.caller(kind.method(), context);
        let catalogue = self.settled(context).await?;
        let (offered, revision) = (catalogue.offered(), catalogue.revision());
        let (ours, version) = match kind {
            Kind::Prompts => (Vec::new(), revision.prompts),
            Kind::Resources => {
                let artifacts = &self.shared.parts.artifacts;
                (resources::list(artifacts, &caller.session).await?, revision.resources)
            }
            Kind::ResourceTemplates => (resources::templates(), revision.resources),
        };
        let page = Page { key: kind.key(), version, cursor, era: caller.client.era };
        let entries = match kind {
            Kind::Prompts => {
                let prompts = offered.prompts();
                let names = self.shared.parts.exposure.prompt_names(&catalogue);
                return page.of(prompts.len(), |index| wire_prompt(&prompts[index].1, &names));
            }
            Kind::Resources => offered.resources(),
            Kind::ResourceTemplates => offered.templates(),
        };
        page.of(ours.len() + entries.len(), |index| match ours.get(index) {
            Some(entry) => entry.clone(),
            None => Value::Object(entries[index - ours.len()].as_ref().clone()),
        })
    }

    /// Answers `prompts/get`.
    pub(super) async fn prompt(
        &self,
        mut params: GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let caller = self.caller("prompts/get", context);
        let catalogue = self.settled(context).await?;
        let found = self.prompt_of(&catalogue, &params.name);
        let (source, prompt) = found.inspect_err(|_| {
            let named = format!("prompts/get {}", params.name);
            self.turn_away(&caller, &named, NOT_FOUND.as_str());
        })?;
        let retry =
            Retry { answers: params.input_responses.take(), state: params.request_state.take() };
        let mut params = raw(&params)?;
        params.insert("name".to_owned(), prompt.wire_name.clone().into());
        let (to, about) = (owner(&catalogue, source)?, prompt.name.clone());
        let passed = Passed { to, method: "prompts/get", about, params, retry };
        shaped(self.relay(passed, &caller, context).await?, false, caller.client.era)
    }

    /// Answers `resources/read` for what is not ours.
    pub(super) async fn read(
        &self,
        mut params: ReadResourceRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let caller = self.caller("resources/read", context);
        let catalogue = self.settled(context).await?;
        let retry =
            Retry { answers: params.input_responses.take(), state: params.request_state.take() };
        let offered = catalogue.offered();
        let found = offered.owner(&params.uri);
        let to = match found {
            Some(source) => owner(&catalogue, source)?,
            None => {
                let askable = offered.askable(&params.uri).into_iter();
                let relays = askable.filter_map(|source| relay_of(&catalogue, source));
                To::Each(relays.map(|(_, relay)| relay).collect())
            }
        };
        let owner = found.and_then(|source| relay_of(&catalogue, source));
        let about = owner.map(|(name, _)| name).unwrap_or_default();
        let params = raw(&params)?;
        let passed = Passed { to, method: "resources/read", about, params, retry };
        shaped(self.relay(passed, &caller, context).await?, true, caller.client.era)
    }

    /// Answers `completion/complete`.
    pub(super) async fn completion(
        &self,
        params: CompleteRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let caller = self.caller("completion/complete", context);
        let catalogue = self.settled(context).await?;
        let offered = catalogue.offered();
        let mut params = raw(&params)?;
        let reference = params.get_mut("ref").and_then(Value::as_object_mut);
        let source = match reference {
            Some(reference) if reference.contains_key("name") => {
                let name = reference.get("name").and_then(Value::as_str).unwrap_or_default();
                let (source, prompt) = self.prompt_of(&catalogue, name)?;
                reference.insert("name".to_owned(), prompt.wire_name.clone().into());
                Some(source)
            }
            Some(reference) => {
                let uri = reference.get("uri").and_then(Value::as_str).unwrap_or_default();
                if uri.starts_with(SCHEME) {
                    None
                } else {
                    Some(offered.owner(uri).ok_or_else(|| no_resource(uri))?)
                }
            }
            None => None,
        };
        let result = match source {
            Some(source) => {
                let (to, about, retry) =
                    (owner(&catalogue, source)?, String::new(), Retry::default());
                let passed = Passed { to, method: "completion/complete", about, params, retry };
                self.relay(passed, &caller, context).await?
            }
            None => no_completions(),
        };
        shaped(result, false, caller.client.era)
    }

    /// Finds a prompt and its source; names of prompts come in only here.
    fn prompt_of<'a>(
        &self,
        catalogue: &'a Catalogue,
        name: &str,
    ) -> Result<(usize, &'a Prompt), ErrorData> {
        let offered = catalogue.offered();
        let names = self.shared.parts.exposure.prompt_names(catalogue);
        let found = offered.prompt(name).or_else(|| offered.prompt(names.canonical(name)?));
        match found {
            Some((source, prompt)) => Ok((source, prompt)),
            None => {
                let message = format!("there is no prompt {name}");
                let data = json!({"code": "NOT_FOUND", "name": name});
                Err(ErrorData::invalid_params(message, Some(data)))
            }
        }
    }
}

/// Returns a source's name and the way to what it offers.
pub(super) fn relay_of(catalogue: &Catalogue, source: usize) -> Option<(String, Arc<dyn Relay>)> {
    let source = catalogue.sources().get(source)?;
    Some((source.source.clone(), Arc::clone(source.relay.as_ref()?)))
}

/// Returns the way to the source whose something is.
pub(super) fn owner(catalogue: &Catalogue, source: usize) -> Result<To, ErrorData> {
    let relay = relay_of(catalogue, source).map(|(_, relay)| To::Owner(relay));
    relay.ok_or_else(project::cancelled)
}

/// Makes the error of a source the answer to a client.
pub(super) fn error(error: RelayError) -> ErrorData {
    let RelayError { code, message, data } = error;
    // A code that does not fit is none of the protocol's.
    let code = i32::try_from(code).map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    ErrorData::new(code, message, data)
}

pub(super) fn no_resource(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("nobody has such a resource", Some(json!({"uri": uri})))
}

/// Makes the listed form of a prompt; names of prompts go out only here.
fn wire_prompt(prompt: &Prompt, names: &Names) -> Value {
    let mut entry = prompt.raw.as_ref().clone();
    entry.insert("name".to_owned(), names.wire_of(&prompt.name).into());
    Value::Object(entry)
}

/// Returns the parameters of a request without what is between the client and us.
fn raw(params: &impl Serialize) -> Result<Map<String, Value>, ErrorData> {
    match serde_json::to_value(params) {
        Ok(Value::Object(mut params)) => {
            params.shift_remove("_meta");
            Ok(params)
        }
        _ => Err(ErrorData::invalid_params("the parameters are no object", None)),
    }
}

/// Gives a source's result the form of an era, and takes nothing from it.
pub(super) fn shaped(result: Value, is_cacheable: bool, era: Era) -> Result<Value, ErrorData> {
    let Value::Object(mut result) = result else {
        return Err(ErrorData::internal_error("the answer is no result", None));
    };
    let is_complete = result.get("resultType").is_none_or(|kind| kind == "complete");
    let had_meta = result.contains_key("_meta");
    if era == Era::Legacy && !is_complete {
        let message = "the server asks for what a client of this era cannot be asked for here";
        let data = json!({"code": UNSUPPORTED});
        return Err(ErrorData::internal_error(message, Some(data)));
    }
    if era == Era::Modern && is_cacheable && is_complete {
        // Who asks next may not be the one who may see it.
        result.insert("cacheScope".to_owned(), "private".into());
        result.entry("ttlMs").or_insert_with(|| 0.into());
    }
    for_era(&mut result, era);
    if era == Era::Legacy && !had_meta {
        result.shift_remove("_meta");
    }
    Ok(Value::Object(result))
}
