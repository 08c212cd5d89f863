//! Skills as resources: the methods of the skills extension, and reading (SEP-2640).

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::files::{self, SkillFile, Unpublished};
use super::scan::Skill;
use super::stock::Stock;
use crate::relay::{Relay, RelayError, Watch};
use crate::tool::CallContext;

const INVALID_PARAMS: i64 = -32_602;
const NO_RESOURCE: i64 = -32_002;
const NO_METHOD: i64 = -32_601;
const INTERNAL: i64 = -32_603;

/// Answers what is asked about the skills of a stock.
#[derive(Debug)]
pub(super) struct SkillRelay(pub(super) Arc<Stock>);

#[async_trait]
impl Relay for SkillRelay {
    async fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
        cx: &CallContext,
    ) -> Result<Value, RelayError> {
        let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default().to_owned();
        let answer: fn(&Stock, &str) -> Result<Value, RelayError> = match method {
            "skills/list" => |stock, _| Ok(list(stock)),
            "skills/get" => get,
            "resources/directory/read" => directory,
            "resources/read" => read,
            "completion/complete" => {
                return Ok(json!({"completion": {"values": [], "hasMore": false}}));
            }
            "logging/setLevel" => return Ok(json!({})),
            _ => return Err(error(NO_METHOD, &format!("skills have no {method}"), &uri)),
        };
        let stock = Arc::clone(&self.0);
        let answered = tokio::task::spawn_blocking(move || answer(&stock, &uri));
        let answered = tokio::select! {
            answered = answered => answered,
            () = cx.cancelled.cancelled() => {
                return Err(error(INTERNAL, "the request was cancelled", ""));
            }
        };
        answered.unwrap_or_else(|_| Err(error(INTERNAL, "looking at the skills failed", "")))
    }

    async fn watch(&self, uri: &str, _cx: &CallContext) -> Result<Watch, RelayError> {
        match known(&self.0, uri) {
            // Changes of all are told, whoever wants to hear of them.
            Some(_) => Ok(Watch::new(|| {})),
            None => Err(error(NO_RESOURCE, "there is no such skill", uri)),
        }
    }
}

/// Lists all skills that can be published.
fn list(stock: &Stock) -> Value {
    let mut skills = Vec::new();
    for skill in &stock.found().skills {
        match files::entry(stock, skill) {
            Ok(entry) => skills.push(entry),
            Err(why) => tracing::debug!(skill = skill.name, %why, "a skill is not listed"),
        }
    }
    json!({"skills": skills})
}

fn get(stock: &Stock, uri: &str) -> Result<Value, RelayError> {
    let skill = known(stock, uri).filter(|skill| files::uri(&skill.name) == uri);
    let skill =
        skill.ok_or_else(|| error(INVALID_PARAMS, "there is no skill at this address", uri))?;
    let entry = files::entry(stock, &skill).map_err(|why| unpublished(&why, uri))?;
    Ok(json!({"skill": entry}))
}

fn directory(stock: &Stock, uri: &str) -> Result<Value, RelayError> {
    let none = || error(INVALID_PARAMS, "there is no folder at this address", uri);
    let skill = known(stock, uri).ok_or_else(none)?;
    let files = files::of(stock, &skill).map_err(|why| unpublished(&why, uri))?;
    let children = files::directory(&files, &skill, uri).ok_or_else(none)?;
    Ok(json!({"resources": children}))
}

fn read(stock: &Stock, uri: &str) -> Result<Value, RelayError> {
    let none = || error(NO_RESOURCE, "there is no such file of a skill", uri);
    let skill = known(stock, uri).ok_or_else(none)?;
    let files = files::of(stock, &skill).map_err(|_| none())?;
    let file: &SkillFile = files.iter().find(|file| file.uri == uri).ok_or_else(none)?;
    files::contents(stock, file).map_err(|_| none())
}

/// Finds the skill that an address is in.
fn known(stock: &Stock, uri: &str) -> Option<Arc<Skill>> {
    stock.get(files::name_in(uri)?)
}

fn unpublished(why: &Unpublished, uri: &str) -> RelayError {
    error(INVALID_PARAMS, &format!("the skill is not published: {why}"), uri)
}

fn error(code: i64, message: &str, uri: &str) -> RelayError {
    RelayError { code, message: message.to_owned(), data: Some(json!({"uri": uri})) }
}
