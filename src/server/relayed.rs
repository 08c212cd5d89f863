//! One request that goes on to a source: begun, or taken up again where it waited for its client.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rmcp::model::ErrorCode;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::Gateway;
use super::caller::{Caller, random_id};
use super::port::{self, Port, Running, Served};
use super::project;
use super::relays::{error, no_resource};
use super::ticket::Binding;
use crate::activity::CANCELLED;
use crate::relay::{Relay, RelayError};
use crate::tool::{CallContext, CallId, ClientPort, Era, Interrupt};

/// Errors that say no more than that there is no such resource, or that nothing is known of any.
const UNKNOWN: [i64; 4] = [-32_002, -32_602, -32_601, 0];

/// A request to be passed on.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) to: To,
    pub(super) method: &'static str,
    /// What it is about: the name of a prompt here, or a source.
    pub(super) about: String,
    pub(super) params: Map<String, Value>,
    pub(super) retry: Retry,
}

/// Who is asked.
#[derive(Debug)]
pub(super) enum To {
    /// The source whose it is.
    Owner(Arc<dyn Relay>),
    /// One after the other, until a source has something.
    Each(Vec<Arc<dyn Relay>>),
}

/// What a request carries that is made again with a person's answers, in the newer era.
#[derive(Debug, Default)]
pub(super) struct Retry {
    pub(super) answers: Option<BTreeMap<String, Value>>,
    pub(super) state: Option<String>,
}

/// What a request comes to.
pub(super) type Answered = Result<Value, ErrorData>;

impl Gateway {
    /// Passes a request on, on a task that outlives whoever waits for it.
    ///
    /// Boxed, since the library moves the future of a request around.
    pub(super) fn relay<'a>(
        &'a self,
        passed: Passed,
        caller: &'a Caller,
        context: &'a RequestContext<RoleServer>,
    ) -> BoxFuture<'a, Answered> {
        async move {
            let Passed { to, method, about, params, retry } = passed;
            let era = caller.client.era;
            let named = format!("{method} {about}").trim_end().to_owned();
            let bound = params.clone();
            let binding = Binding { principal: &caller.principal, tool: &named, arguments: &bound };
            let state = retry.state.as_deref().filter(|_| era == Era::Modern);
            let redeemed = state.map(|state| self.redeem(caller, state, binding)).transpose()?;
            // Completions come with every key that is pressed.
            let slot = if is_counted(method) {
                Some(self.slot(caller, &named, context).await?)
            } else {
                None
            };
            let (call_id, running) = match redeemed {
                Some(redeemed) => {
                    let parked = self.shared.relayed.take(&redeemed.nonce);
                    let mut running = parked.ok_or_else(project::void_state)?;
                    running.answer(retry.answers.unwrap_or_default());
                    (redeemed.call_id, running)
                }
                None => {
                    let call_id = CallId::new(random_id());
                    let request = (method, named.clone(), params);
                    let begun = self.pass(to, request, (caller, call_id.clone()), context);
                    (call_id, begun)
                }
            };
            let served = port::serve(running, era, context).await;
            drop(slot);
            match served {
                Served::Ended(Ok(answer)) => answer,
                Served::Ended(Err(_)) => Err(project::cancelled()),
                Served::Asks(running) => self.put_aside(running, &call_id, binding),
            }
        }
        .boxed()
    }

    fn pass(
        &self,
        to: To,
        (method, named, params): (&'static str, String, Map<String, Value>),
        (caller, call_id): (&Caller, CallId),
        context: &RequestContext<RoleServer>,
    ) -> Running<Answered> {
        let (port, requests) = Port::new(&caller.client);
        let port: Arc<dyn ClientPort> = Arc::new(port);
        // In the modern era it may outlive the request that began it.
        let cancelled = match caller.client.era {
            Era::Legacy => context.ct.child_token(),
            Era::Modern => CancellationToken::new(),
        };
        let cx = caller.clone().into_context(&self.shared.config, context, port, call_id);
        let cx = CallContext { cancelled: cancelled.clone(), ..cx };
        let activity = Arc::clone(self.shared.parts.executor.activity());
        // Boxed: it is large, and a task is moved several times.
        let request = Box::pin(async move {
            let record = is_counted(method).then(|| activity.start(&named, &cx));
            let answer = to.ask(method, params, &cx).await;
            if let Some(record) = record {
                record.end(if cx.cancelled.is_cancelled() { CANCELLED } else { outcome(&answer) });
            }
            Ok::<_, Interrupt>(answer)
        });
        let task = self.shared.parts.shutdown.tasks().spawn(request);
        Running::new(requests, task, cancelled)
    }

    /// Puts a request aside until its client comes back with answers.
    fn put_aside(
        &self,
        running: Running<Answered>,
        call_id: &CallId,
        binding: Binding<'_>,
    ) -> Answered {
        let questions = running.questions();
        let issued = self.shared.tickets.issue(call_id, binding);
        match self.shared.relayed.put(issued.nonce, running, &self.shared.parts.shutdown) {
            Ok(()) => Ok(project::input_required(questions, issued.state)),
            // Its being dropped cancels it.
            Err(_) => {
                let message = "too many requests wait for their clients";
                Err(ErrorData::internal_error(message, None))
            }
        }
    }
}

impl To {
    async fn ask(
        self,
        method: &'static str,
        params: Map<String, Value>,
        cx: &CallContext,
    ) -> Answered {
        let relays = match self {
            Self::Owner(relay) => return relay.request(method, params, cx).await.map_err(error),
            Self::Each(relays) => relays,
        };
        let mut trouble: Option<RelayError> = None;
        for relay in relays {
            match relay.request(method, params.clone(), cx).await {
                Ok(result) if is_empty(&result) => {}
                Ok(result) => return Ok(result),
                Err(why) if cx.cancelled.is_cancelled() => return Err(error(why)),
                Err(why) if UNKNOWN.contains(&why.code) => {}
                Err(why) => {
                    trouble.get_or_insert(why);
                }
            }
        }
        let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default();
        Err(trouble.map_or_else(|| no_resource(uri), error))
    }
}

/// Returns whether a request is one of those at once, and has a record, as a call is: not what only
/// says what there is.
fn is_counted(method: &str) -> bool {
    let lists = ["completion/complete", "resources/directory/read", "skills/get", "skills/list"];
    !lists.contains(&method)
}

/// Returns what a record says of an answer; what a source says itself is its business.
fn outcome(answer: &Answered) -> &'static str {
    let Err(error) = answer else { return "OK" };
    let code = error.data.as_ref().and_then(|data| data.get("code")).and_then(Value::as_str);
    match code {
        Some("MCP_INTERACTION_UNSUPPORTED") => "MCP_INTERACTION_UNSUPPORTED",
        Some("MCP_CONTINUATION_LIMIT") => "MCP_CONTINUATION_LIMIT",
        _ if error.code == ErrorCode::RESOURCE_NOT_FOUND => "NOT_FOUND",
        _ => "MCP_CALL_FAILED",
    }
}

fn is_empty(result: &Value) -> bool {
    result.get("contents").and_then(Value::as_array).is_some_and(Vec::is_empty)
}
