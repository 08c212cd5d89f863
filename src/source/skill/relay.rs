//! Skills as resources: the methods of the skills extension, and reading (SEP-2640).

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::files::{self, SkillFile, Unpublished};
use super::scan::Skill;
use super::stock::Stock;
use crate::relay::{Relay, RelayError, Watch, no_completions};
use crate::tool::CallContext;

const INVALID_PARAMS: i64 = -32_602;
const NO_RESOURCE: i64 = -32_002;
const NO_METHOD: i64 = -32_601;
const INTERNAL: i64 = -32_603;

/// Answers about an address from what is on disk.
type Answer = fn(&Stock, &str, &CancellationToken) -> Result<Value, RelayError>;

/// How many requests look at the disk at once.
const AT_ONCE: usize = 4;

/// Answers what is asked about the skills of a stock.
#[derive(Debug)]
pub(super) struct SkillRelay {
    stock: Arc<Stock>,
    turns: Arc<Semaphore>,
}

impl SkillRelay {
    pub(super) fn new(stock: Arc<Stock>) -> Self {
        Self { stock, turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Answers from what is on disk, on a thread that may wait for it.
    async fn on_disk<T: Send + 'static>(
        &self,
        cx: &CallContext,
        answer: impl FnOnce(&Stock, &CancellationToken) -> Result<T, RelayError> + Send + 'static,
    ) -> Result<T, RelayError> {
        let stock = Arc::clone(&self.stock);
        let turns = Arc::clone(&self.turns);
        // It stops, too, when nobody waits for it any more.
        let stop = cx.cancelled.child_token();
        let _guard = stop.clone().drop_guard();
        let answered = async move {
            let turn = turns.acquire_owned().await;
            let looking = move || {
                let answer = answer(&stock, &stop);
                drop(turn);
                answer
            };
            tokio::task::spawn_blocking(looking).await
        };
        let answered = tokio::select! {
            answered = answered => answered,
            () = cx.cancelled.cancelled() => {
                return Err(error(INTERNAL, "the request was cancelled", ""));
            }
        };
        answered.unwrap_or_else(|_| Err(error(INTERNAL, "looking at the skills failed", "")))
    }
}

#[async_trait]
impl Relay for SkillRelay {
    async fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
        cx: &CallContext,
    ) -> Result<Value, RelayError> {
        let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default().to_owned();
        let answer: Answer = match method {
            "skills/list" => |stock, _, stop| Ok(list(stock, stop)),
            "skills/get" => |stock, uri, _| get(stock, uri),
            "resources/directory/read" => |stock, uri, _| directory(stock, uri),
            "resources/read" => |stock, uri, _| read(stock, uri),
            "completion/complete" => {
                return Ok(no_completions());
            }
            "logging/setLevel" => return Ok(json!({})),
            _ => return Err(error(NO_METHOD, &format!("skills have no {method}"), &uri)),
        };
        self.on_disk(cx, move |stock, stop| answer(stock, &uri, stop)).await
    }

    async fn watch(&self, uri: &str, cx: &CallContext) -> Result<Watch, RelayError> {
        let uri = uri.to_owned();
        self.on_disk(cx, move |stock, _| watch(stock, &uri)).await
    }
}

/// Lists all skills that can be published.
fn list(stock: &Stock, stop: &CancellationToken) -> Value {
    let mut skills = Vec::new();
    for skill in stock.found().skills.iter().take_while(|_| !stop.is_cancelled()) {
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
    let file = file(stock, uri)?;
    files::contents(stock, &file).map_err(|_| no_file(uri))
}

fn watch(stock: &Stock, uri: &str) -> Result<Watch, RelayError> {
    let file = file(stock, uri)?;
    if known(stock, uri).is_some_and(|skill| files::uri(&skill.name) == uri) {
        // Changes of the texts of all skills are told, whoever wants to hear of them.
        return Ok(Watch::new(|| {}));
    }
    let reckoned = files::reckon(stock, &file).map_err(|_| no_file(uri))?;
    Ok(stock.watched().watch(uri, reckoned.digest))
}

/// Finds the file of a published skill that has an address.
fn file(stock: &Stock, uri: &str) -> Result<SkillFile, RelayError> {
    let none = || no_file(uri);
    let skill = known(stock, uri).ok_or_else(none)?;
    let files = files::of(stock, &skill).map_err(|_| none())?;
    files.into_iter().find(|file| file.uri == uri).ok_or_else(none)
}

fn no_file(uri: &str) -> RelayError {
    error(NO_RESOURCE, "there is no such file of a skill", uri)
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
