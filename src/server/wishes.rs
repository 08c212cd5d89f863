//! What a client wants to hear without asking: levels of logs, and changes of resources.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Serialize;
use serde_json::{Map, Value};

use super::caller::{Caller, random_id};
use super::{Gateway, relays};
use crate::artifact::name::SCHEME;
use crate::relay::{RelayError, Watch};
use crate::tool::{CallContext, CallId, Closed, Level};

/// How long sources may take to take notice of a level.
const NOTICE: Duration = Duration::from_secs(2);

impl Gateway {
    /// Answers `logging/setLevel`: each source is told the least that anybody wants.
    pub(super) async fn level(
        &self,
        level: impl Serialize + Send,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut caller = self.caller("logging/setLevel", context);
        let level = serde_json::to_value(level).ok();
        let level = level.as_ref().and_then(Value::as_str).and_then(Level::parse);
        let Some(level) = level else {
            return Err(ErrorData::invalid_params("there is no such level", None));
        };
        let sessions = &self.shared.parts.sessions;
        sessions.get(&caller.session).set_log_level(level);
        caller.client.log_level = Some(level);
        let least = sessions.least_level().unwrap_or(level);
        let cx = self.aside(&caller, context);
        let catalogue = self.shared.parts.exposure.registry().snapshot();
        let told = catalogue.sources().iter().filter_map(|source| source.relay.clone()).map(|of| {
            let (cx, params) = (&cx, Map::from_iter([("level".into(), least.as_str().into())]));
            async move { of.request("logging/setLevel", params, cx).await.is_ok() }
        });
        // One that takes longer is told none the less.
        drop(tokio::time::timeout(NOTICE, join_all(told)).await);
        Ok(())
    }

    /// Answers `resources/subscribe`.
    pub(super) async fn watch(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller("resources/subscribe", context);
        self.settled(context).await?;
        let session = self.shared.parts.sessions.get(&caller.session);
        if !session.may_watch() {
            let message = "this client watches too many resources; end some of that first";
            return Err(ErrorData::invalid_params(message, None));
        }
        if let Some((source, watch)) = self.watched(uri, &caller, context).await? {
            session.watch(uri, &source, watch);
        }
        Ok(())
    }

    /// Answers `resources/unsubscribe`.
    pub(super) fn unwatch(&self, uri: &str, context: &RequestContext<RoleServer>) {
        let caller = self.caller("resources/unsubscribe", context);
        self.shared.parts.sessions.get(&caller.session).unwatch(uri);
    }

    /// Asks the owner of a resource to tell of its changes; what is ours never changes.
    pub(super) async fn watched(
        &self,
        uri: &str,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<(String, Watch)>, ErrorData> {
        if uri.starts_with(SCHEME) {
            return Ok(None);
        }
        let catalogue = self.shared.parts.exposure.registry().snapshot();
        let offered = catalogue.offered();
        let sources = offered.owner(uri).map_or_else(|| offered.askable(uri), |owner| vec![owner]);
        let cx = self.aside(caller, context);
        let mut trouble: Option<RelayError> = None;
        for (source, relay) in
            sources.into_iter().filter_map(|source| relays::relay_of(&catalogue, source))
        {
            match relay.watch(uri, &cx).await {
                Ok(watch) => return Ok(Some((source, watch))),
                Err(error) => {
                    trouble.get_or_insert(error);
                }
            }
        }
        Err(trouble.map_or_else(|| relays::no_resource(uri), relays::error))
    }

    /// Makes the context of a request during which the client is told nothing.
    fn aside(&self, caller: &Caller, context: &RequestContext<RoleServer>) -> CallContext {
        caller.clone().into_context(
            &self.shared.config,
            context,
            Arc::new(Closed),
            CallId::new(random_id()),
        )
    }
}
