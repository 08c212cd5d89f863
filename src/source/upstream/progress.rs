//! Reports of progress and logs, on their way from an upstream server to the client that waits.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ProgressNotificationParam, ProgressToken, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::notices::{Notices, Of};
use super::pending::Pending;
use crate::tool::{CallContext, ClientPort, Level, SessionId};

/// How many reports of progress are kept for calls that are not known yet.
const EARLY: usize = 64;

/// A transport whose reports of progress are delivered as they come, and whose end is told.
///
/// The library hands each notification to a task of its own, so that an answer could overtake
/// the reports before it; then nobody would wait for them any more.
pub(super) struct Reporting<T> {
    pub(super) transport: T,
    pub(super) progress: Arc<Progress>,
    pub(super) pending: Arc<Pending>,
    pub(super) notices: Arc<Notices>,
}

/// Who gets reports of progress.
#[derive(Debug, Default)]
pub(super) struct Progress(Mutex<Routes>);

#[derive(Debug, Default)]
struct Routes {
    calls: Vec<Call>,
    /// How many calls there have been.
    begun: u64,
    /// Reports that came before the token of their call was known; the oldest go first.
    early: VecDeque<ProgressNotificationParam>,
    /// The same with log messages.
    early_logs: VecDeque<(ProgressToken, Level, Map<String, Value>)>,
}

/// The client of a call.
#[derive(Debug)]
struct Call {
    number: u64,
    /// None until the call was sent.
    token: Option<ProgressToken>,
    port: Arc<dyn ClientPort>,
    level: Option<Level>,
    /// The session, where it is this client's own.
    session: Option<SessionId>,
    /// Told of each report.
    reported: Arc<Notify>,
}

/// Ends the routing of what belongs to one call when it is dropped.
pub(super) struct Route<'a> {
    progress: &'a Progress,
    number: u64,
    reported: Arc<Notify>,
}

impl Progress {
    /// Notes a call that is about to be sent: what it says may come before we hear by which token
    /// it went.
    pub(super) fn begin(&self, cx: &CallContext) -> Route<'_> {
        let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        routes.begun += 1;
        let (number, port) = (routes.begun, Arc::clone(&cx.port));
        let session = cx.client.alone.then(|| cx.session.clone());
        let (level, reported) = (cx.client.log_level, Arc::<Notify>::default());
        let told = Arc::clone(&reported);
        routes.calls.push(Call { number, token: None, port, level, session, reported: told });
        Route { progress: self, number, reported }
    }

    fn deliver(&self, report: ProgressNotificationParam) {
        let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = routes.of(&report.progress_token) {
            call.reported.notify_one();
            call.port.progress(report_of(report));
            return;
        }
        if routes.early.len() == EARLY {
            routes.early.pop_front();
        }
        routes.early.push_back(report);
    }

    /// Hands a log message to the call it belongs to, or where none is named to all calls that
    /// want to hear it; each client is told once.
    ///
    /// Returns whether its call is known, and the sessions that have the message now.
    pub(super) fn log(
        &self,
        params: &Map<String, Value>,
        level: Level,
        of: Option<&Of>,
    ) -> (bool, Vec<SessionId>) {
        let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Of(token)) = of {
            let Some(call) = routes.of(token) else {
                if routes.early_logs.len() == EARLY {
                    routes.early_logs.pop_front();
                }
                routes.early_logs.push_back((token.clone(), level, params.clone()));
                return (false, Vec::new());
            };
            call.log(level, params);
            return (true, Vec::new());
        }
        let mut told = Vec::new();
        for call in &routes.calls {
            match &call.session {
                Some(session) if told.contains(session) => {}
                session => {
                    if call.log(level, params) {
                        told.extend(session.clone());
                    }
                }
            }
        }
        (false, told)
    }
}

impl Routes {
    fn of(&self, token: &ProgressToken) -> Option<&Call> {
        self.calls.iter().find(|call| call.token.as_ref() == Some(token))
    }
}

impl Route<'_> {
    /// Waits until the server reports progress of the call.
    pub(super) async fn reported(&self) {
        self.reported.notified().await;
    }

    /// Notes by which token the call was sent, and hands on what came of it already.
    pub(super) fn sent(&self, token: &ProgressToken) {
        let mut routes = self.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Routes { calls, early, early_logs, .. } = &mut *routes;
        let Some(call) = calls.iter_mut().find(|call| call.number == self.number) else { return };
        call.token = Some(token.clone());
        early.retain(|report| {
            let is_own = report.progress_token == *token;
            if is_own {
                call.reported.notify_one();
                call.port.progress(report_of(report.clone()));
            }
            !is_own
        });
        early_logs.retain(|(of, level, params)| {
            let is_own = of == token;
            if is_own {
                call.log(*level, params);
            }
            !is_own
        });
    }
}

impl Call {
    fn log(&self, level: Level, params: &Map<String, Value>) -> bool {
        let is_wanted = self.level.is_some_and(|least| least <= level);
        if is_wanted {
            self.port.log(params.clone());
        }
        is_wanted
    }
}

impl Drop for Route<'_> {
    fn drop(&mut self) {
        let mut routes = self.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        routes.calls.retain(|call| call.number != self.number);
    }
}

fn report_of(report: ProgressNotificationParam) -> Map<String, Value> {
    match serde_json::to_value(report) {
        Ok(Value::Object(mut params)) => {
            params.shift_remove("progressToken");
            params
        }
        _ => Map::new(),
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Reporting<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Some(message) = self.transport.receive().await else {
                self.pending.leave();
                return None;
            };
            match message {
                JsonRpcMessage::Notification(notification) => match notification.notification {
                    ServerNotification::ProgressNotification(report) => {
                        self.progress.deliver(report.params);
                    }
                    other => {
                        if let Some(other) = self.notices.take(other, &self.progress) {
                            return Some(JsonRpcMessage::notification(other));
                        }
                    }
                },
                message => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.pending.leave();
        self.transport.close().await
    }
}

impl<T> Drop for Reporting<T> {
    fn drop(&mut self) {
        self.pending.leave();
        self.pending.finish();
    }
}
