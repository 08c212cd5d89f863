//! Telling clients what has changed, and what is logged, as each era has it told.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::{CustomNotification, ServerNotification};
use rmcp::service::{Peer, ServiceError, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};
use tokio::sync::broadcast::error::RecvError;

use super::{Gateway, caller, port};
use crate::registry::Revision;
use crate::relay::{Event, Watch};
use crate::session::Session;

/// What a client is to be told.
enum News {
    /// The lists may be others.
    Lists,
    Event(Arc<Event>),
    /// Something was lost, or it is time to look whether the client is there.
    Nothing,
}

/// Tells a legacy client of every change, until it is gone.
pub(super) fn announce(gateway: &Gateway, peer: Peer<RoleServer>) {
    let shutdown = &gateway.shared.parts.shutdown;
    let registry = gateway.shared.parts.exposure.registry();
    let (mut changed, mut events) = (registry.changed(), registry.events().listen());
    let (gateway, ended) = (gateway.clone(), shutdown.child());
    // Bounded by the connection: it ends when the peer's transport does.
    let watch = async move {
        let registry = gateway.shared.parts.exposure.registry();
        let mut seen = registry.snapshot().revision();
        let mut check = tokio::time::interval(port::PEER_CHECK);
        loop {
            let news = tokio::select! {
                change = changed.changed() => if change.is_err() { return } else { News::Lists },
                event = events.recv() => match event {
                    Ok(event) => News::Event(event),
                    Err(RecvError::Lagged(_)) => News::Nothing,
                    Err(RecvError::Closed) => return,
                },
                () = ended.cancelled() => return,
                _ = check.tick() => News::Nothing,
            };
            let told = match news {
                News::Lists => {
                    let before = std::mem::replace(&mut seen, registry.snapshot().revision());
                    lists(&peer, before, seen).await
                }
                News::Event(event) => match gateway.known_session() {
                    Some(session) => heard(&peer, &session, &event).await,
                    None => Ok(()),
                },
                News::Nothing if peer.is_transport_closed() => return,
                News::Nothing => Ok(()),
            };
            if told.is_err() {
                return;
            }
        }
    };
    drop(shutdown.spawn("list_changed", watch));
}

async fn lists(
    peer: &Peer<RoleServer>,
    before: Revision,
    now: Revision,
) -> Result<(), ServiceError> {
    if now.tools != before.tools {
        peer.notify_tool_list_changed().await?;
    }
    if now.prompts != before.prompts {
        peer.notify_prompt_list_changed().await?;
    }
    if now.resources != before.resources {
        peer.notify_resource_list_changed().await?;
    }
    Ok(())
}

/// Tells a legacy client what a source says, if it wants to hear that.
async fn heard(
    peer: &Peer<RoleServer>,
    session: &Session,
    event: &Event,
) -> Result<(), ServiceError> {
    if !event.concerns(session.id()) {
        return Ok(());
    }
    let (method, params) = match event {
        Event::Updated { source, uri, params, only: _ } if session.watches(uri, source) => {
            ("notifications/resources/updated", params)
        }
        Event::Log { level, params, told, only: _ }
            if session.log_level().is_some_and(|least| least <= *level)
                && !told.contains(session.id()) =>
        {
            ("notifications/message", params)
        }
        _ => return Ok(()),
    };
    let params: Map<String, Value> = params.clone();
    let notification = CustomNotification::new(method, Some(Value::Object(params)));
    peer.send_notification(ServerNotification::CustomNotification(notification)).await
}

/// Tells a modern client of every change that it asked for, for as long as it listens.
pub(super) async fn listen(
    gateway: &Gateway,
    context: SubscriptionContext,
) -> Result<(), ErrorData> {
    let registry = gateway.shared.parts.exposure.registry();
    let (mut changed, mut events) = (registry.changed(), registry.events().listen());
    let mut seen = registry.snapshot().revision();
    let ended = gateway.shared.parts.shutdown.child();
    let session = caller::identify(context.request_context(), &gateway.connection).session;
    // A session lasts as long as its client listens.
    let _in_use = gateway.shared.parts.sessions.get(&session);
    // Whose each watched resource is; it is watched as long as this is here.
    let mut watched = HashMap::new();
    let mut watching = std::pin::pin!(watch(gateway, &context));
    let mut is_watching = true;
    loop {
        let news = tokio::select! {
            found = &mut watching, if is_watching => {
                is_watching = false;
                watched = found;
                continue;
            }
            change = changed.changed() => if change.is_err() { return Ok(()) } else { News::Lists },
            event = events.recv(), if !is_watching => match event {
                Ok(event) => News::Event(event),
                Err(RecvError::Lagged(_)) => News::Nothing,
                Err(RecvError::Closed) => return Ok(()),
            },
            () = context.cancelled() => return Ok(()),
            () = ended.cancelled() => return Ok(()),
        };
        // Boxed, since the library moves the future of a request around.
        let told = match news {
            News::Lists => {
                let before = std::mem::replace(&mut seen, registry.snapshot().revision());
                Box::pin(listed(&context, before, seen)).await
            }
            News::Event(event) => match event.as_ref() {
                Event::Updated { source, uri, .. }
                    if event.concerns(&session) && is_of(&watched, uri, source) =>
                {
                    Box::pin(context.sink().notify_resource_updated(uri.clone())).await.is_ok()
                }
                _ => true,
            },
            News::Nothing => true,
        };
        if !told {
            return Ok(());
        }
    }
}

fn is_of(watched: &HashMap<String, (String, Watch)>, uri: &str, source: &str) -> bool {
    watched.get(uri).is_some_and(|(of, _)| of == source)
}

/// Asks the owners of all resources that a client listens for.
async fn watch(
    gateway: &Gateway,
    context: &SubscriptionContext,
) -> HashMap<String, (String, Watch)> {
    let mut watched = HashMap::new();
    let uris = context.accepted().resource_subscriptions.as_deref().unwrap_or_default();
    if uris.is_empty() {
        return watched;
    }
    let request = context.request_context();
    if gateway.settled(request).await.is_err() {
        return watched;
    }
    let caller = caller::identify(request, &gateway.connection);
    for uri in uris {
        match Box::pin(gateway.watched(uri, &caller, request)).await {
            Ok(Some(watch)) => drop(watched.insert(uri.clone(), watch)),
            Ok(None) => {}
            Err(error) => tracing::debug!(uri, %error, "a resource cannot be watched"),
        }
    }
    watched
}

async fn listed(context: &SubscriptionContext, before: Revision, now: Revision) -> bool {
    let (wanted, sink) = (context.accepted(), context.sink());
    let is_new =
        |wanted: Option<bool>, now: u64, before: u64| wanted == Some(true) && now != before;
    if is_new(wanted.tools_list_changed, now.tools, before.tools)
        && sink.notify_tool_list_changed().await.is_err()
    {
        return false;
    }
    if is_new(wanted.prompts_list_changed, now.prompts, before.prompts)
        && sink.notify_prompt_list_changed().await.is_err()
    {
        return false;
    }
    let resources = is_new(wanted.resources_list_changed, now.resources, before.resources);
    !resources || sink.notify_resource_list_changed().await.is_ok()
}
