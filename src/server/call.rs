//! One request of `tools/call`: a call begun, or one taken up again where it waited for its client.

use std::sync::Arc;

use rmcp::model::CallToolRequestParams;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::approve::Approve;
use super::ask::{self, Answer};
use super::caller::{Caller, random_id};
use super::port::{self, Port, Running, Served};
use super::project::{self, Form};
use super::ticket::Binding;
use super::{Gateway, Parts};
use crate::activity::CANCELLED;
use crate::executor::{Prepared, Requested};
use crate::exposure::{NOT_FOUND, Resolved, Unresolved};
use crate::permission::Request;
use crate::registry::Catalogue;
use crate::session::record::Record;
use crate::tool::{
    Arguments, CallContext, CallId, ClientPort, Era, Failure, Interrupt, Presence, ToolResult,
};

/// What a pipeline comes to.
#[derive(Debug)]
pub(super) enum Ended {
    /// The answer to the call.
    Result(Box<ToolResult>),
    /// A question, which the client answers by making the call again.
    Ask(Box<Request>),
}

/// Why nothing is called.
enum Turned {
    /// The client gets a result that says so.
    Away(CallId, Failure),
    /// There is no such tool.
    Unknown(ErrorData),
}

/// The key of the question whether a call may be made.
const APPROVAL: &str = "approval";

impl Gateway {
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        let caller = self.caller("tools/call", context);
        let era = caller.client.era;
        let form = Form::of(context, era, &self.connection);
        let catalogue = self.with_tool(&params.name, context).await.inspect_err(|_| {
            self.turn_away(&caller, &params.name, CANCELLED);
        })?;
        let resolved = self.resolve(&caller, &catalogue, &params.name, params.arguments);
        let Resolved { tool, name: asked_for, wire, arguments } = match resolved {
            Ok(resolved) => resolved,
            Err(Turned::Away(call_id, failure)) => {
                return project::reply(Ok(failure.into()), &call_id, form);
            }
            Err(Turned::Unknown(error)) => return Err(error),
        };
        let name = tool.definition().name.to_string();
        let binding = Binding { principal: &caller.principal, tool: &name, arguments: &arguments };
        let state = params.request_state.as_deref().filter(|_| era == Era::Modern);
        let retried = state.map(|state| self.redeem(&caller, state, binding)).transpose()?;
        let answers = params.input_responses.unwrap_or_default();
        let slot = self.slot(&caller, &name, context).await?;
        let parked = retried.as_ref().and_then(|retried| self.shared.parked.take(&retried.nonce));
        let retried = retried.map(|retried| retried.call_id);
        // A call keeps its id through all its rounds.
        let call_id = retried.clone().unwrap_or_else(|| CallId::new(random_id()));
        let running = match parked {
            Some(mut running) => {
                running.answer(answers);
                running
            }
            None => {
                let given = answers.get(APPROVAL).filter(|_| retried.is_some());
                let answer = given.map(|given| ask::answer(given, caller.client.alone));
                let arguments = arguments.clone();
                let asked = Requested { tool, name: asked_for, wire, arguments };
                let recorded = self.records(&catalogue);
                self.begin((asked, recorded), &caller, (call_id.clone(), answer), context)
            }
        };
        let served = port::serve(running, era, context).await;
        drop(slot);
        match served {
            Served::Asks(running) => self.park(running, &call_id, binding, form),
            Served::Ended(Ok(Ended::Ask(request))) => {
                let issued = self.shared.tickets.issue(&call_id, binding);
                let question = ask::form(&request, caller.client.alone);
                let question = json!({"method": "elicitation/create", "params": question});
                let questions = Map::from_iter([(APPROVAL.to_owned(), question)]);
                Ok(project::input_required(questions, issued.state).to_string())
            }
            Served::Ended(Ok(Ended::Result(result))) => {
                self.disclose(&caller, &result, context).await;
                project::reply(Ok(*result), &call_id, form)
            }
            Served::Ended(Err(interrupt)) => project::reply(Err(interrupt), &call_id, form),
        }
    }

    /// Looks up what a call means.
    fn resolve(
        &self,
        caller: &Caller,
        catalogue: &Catalogue,
        name: &str,
        arguments: Option<Arguments>,
    ) -> Result<Resolved, Turned> {
        let Parts { exposure, sessions, .. } = &self.shared.parts;
        let session = sessions.get(&caller.session);
        let arguments = arguments.unwrap_or_default();
        exposure.resolve(catalogue, &session, name, arguments).map_err(|why| match why {
            Unresolved::Refused(failure) => {
                Turned::Away(self.turn_away(caller, name, failure.code.as_str()), failure)
            }
            unknown @ Unresolved::Unknown { .. } => {
                self.turn_away(caller, name, NOT_FOUND.as_str());
                Turned::Unknown(project::unknown_tool(name, unknown))
            }
        })
    }

    /// Lets a session call what its search has found, and tells an older client of its longer list.
    async fn disclose(
        &self,
        caller: &Caller,
        result: &ToolResult,
        context: &RequestContext<RoleServer>,
    ) {
        let session = self.shared.parts.sessions.get(&caller.session);
        let is_longer = self.shared.parts.exposure.disclose(&session, result);
        if is_longer
            && caller.client.era == Era::Legacy
            && let Err(error) = context.peer.notify_tool_list_changed().await
        {
            tracing::debug!(%error, "a client was not told of a longer list");
        }
    }

    /// Says whether calls are recorded: not where nobody could read it.
    fn records(&self, catalogue: &Catalogue) -> bool {
        match self.shared.config.context {
            None => false,
            Some(Presence::Always) => true,
            Some(Presence::WhileDeferring) => {
                self.shared.parts.exposure.surface(catalogue).is_searching()
            }
        }
    }

    /// Begins a call, which is recorded or not.
    fn begin(
        &self,
        (asked, recorded): (Requested, bool),
        caller: &Caller,
        (call_id, answer): (CallId, Option<Answer>),
        context: &RequestContext<RoleServer>,
    ) -> Running<Ended> {
        let session = self.shared.parts.sessions.get(&caller.session);
        let (port, requests) = Port::new(&caller.client);
        let port: Arc<dyn ClientPort> = Arc::new(port);
        // In the modern era a call may outlive the request that began it.
        let cancelled = match caller.client.era {
            Era::Legacy => context.ct.child_token(),
            Era::Modern => CancellationToken::new(),
        };
        let config = &self.shared.config;
        let cx = CallContext {
            cancelled: cancelled.clone(),
            ..caller.clone().into_context(config, context, Arc::clone(&port), call_id)
        };
        let approve = Approve {
            mode: config.approval,
            session,
            client: cx.client.clone(),
            port,
            answer,
            offers_session: caller.client.alone,
            patience: config.approval_timeout,
        };
        let record = recorded.then(|| approve.session.record(&cx.client));
        Running::new(requests, self.pipeline(asked, cx, approve, record), cancelled)
    }

    /// Puts a call aside until its client comes back with answers.
    fn park(
        &self,
        running: Running<Ended>,
        call_id: &CallId,
        binding: Binding<'_>,
        form: Form,
    ) -> Result<String, ErrorData> {
        let questions = running.questions();
        let issued = self.shared.tickets.issue(call_id, binding);
        match self.shared.parked.put(issued.nonce, running, &self.shared.parts.shutdown) {
            Ok(()) => Ok(project::input_required(questions, issued.state).to_string()),
            // Its being dropped cancels it.
            Err(_) => {
                let (target, reason) =
                    (binding.tool.to_owned(), "too many calls wait for their clients".to_owned());
                let unknown = Interrupt::OutcomeUnknown { target, reason };
                project::reply(Err(unknown), call_id, form)
            }
        }
    }

    /// Runs a call on a task of its own, so that it outlives whoever waits for it.
    fn pipeline(
        &self,
        asked: Requested,
        mut cx: CallContext,
        approve: Approve,
        record: Option<Arc<Record>>,
    ) -> JoinHandle<Result<Ended, Interrupt>> {
        let shared = Arc::clone(&self.shared);
        cx.turn = record.as_ref().map(|record| record.turn());
        let call = async move {
            shared.parts.begin_run(&approve.session, &cx).await;
            let executor = &shared.parts.executor;
            // What is not recorded is not copied.
            let entry = record.map(|record| (record, asked.name.clone(), asked.arguments.clone()));
            let result = match executor.prepare(asked, &cx, &approve).await {
                Ok(Prepared::Ready(permitted)) => executor.execute(permitted, &cx).await,
                Ok(Prepared::Refused(result)) => Ok(result),
                Ok(Prepared::Ask(ask)) => return Ok(Ended::Ask(Box::new(executor.put_off(&ask)))),
                Err(interrupt) => Err(interrupt),
            };
            if let (Some((record, name, arguments)), Some(turn)) = (entry, &cx.turn) {
                match &result {
                    Ok(result) => record.add(turn, arguments, result),
                    Err(interrupt) => {
                        let result = project::interrupted(interrupt, &cx.call_id, &name);
                        record.add(turn, arguments, &result);
                    }
                }
            }
            result.map(|result| Ended::Result(Box::new(result)))
        };
        // A task is moved several times before and after it runs; in a box it is small.
        self.shared.parts.shutdown.tasks().spawn(Box::pin(call))
    }
}
