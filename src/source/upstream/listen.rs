//! Keeping up what a server is to tell us by itself, as each era has it.

use std::collections::BTreeSet;

use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::service::Subscription;
use serde_json::json;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::client::Connection;
use super::wanted::Wanted;
use crate::relay::RelayError;
use crate::tool::Level;

/// Why a stream of changes is to be opened anew.
enum Over {
    /// It ended.
    Ended,
    /// Something else is wanted.
    Outdated,
}

impl Connection {
    /// Listens for changes for as long as it is waited for, and tells the server what is wanted.
    pub(super) async fn listen(&self, wanted: &Wanted) {
        if self.is_newer() {
            self.subscribe(wanted).await;
        } else {
            let mut changes = wanted.changes();
            loop {
                self.tell(wanted).await;
                if changes.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
        }
    }

    /// Tells a server of the older era what is wanted and what is not any more.
    pub(super) async fn tell(&self, wanted: &Wanted) {
        let mut told = self.told.lock().await;
        let level = wanted.level();
        if level != told.level && self.offers().logs {
            told.level = level;
            self.set_level(level).await;
        }
        let uris = wanted.uris();
        let (new, old): (Vec<_>, Vec<_>) = (
            uris.difference(&told.uris).cloned().collect(),
            told.uris.difference(&uris).cloned().collect(),
        );
        for uri in old {
            told.uris.remove(&uri);
            self.try_tell("resources/unsubscribe", &uri).await;
        }
        for uri in new {
            if self.try_tell("resources/subscribe", &uri).await {
                told.uris.insert(uri);
            }
        }
    }

    /// Asks a server of the older era to tell of a resource, unless it does already.
    pub(super) async fn follow(&self, uri: &str) -> Result<(), RelayError> {
        let mut told = self.told.lock().await;
        if !told.uris.contains(uri) {
            self.bare("resources/subscribe", json!({"uri": uri})).await?;
            told.uris.insert(uri.to_owned());
        }
        Ok(())
    }

    async fn set_level(&self, level: Option<Level>) {
        let Some(level) = level else { return };
        let params = json!({"level": level.as_str()});
        if let Err(error) = self.bare("logging/setLevel", params).await {
            tracing::debug!(upstream = self.server, %error, "the level of logs could not be set");
        }
    }

    async fn try_tell(&self, method: &str, uri: &str) -> bool {
        let told = self.bare(method, json!({"uri": uri})).await;
        if let Err(error) = &told {
            tracing::debug!(upstream = self.server, %error, method, "a server did not agree");
        }
        told.is_ok()
    }

    /// Keeps a stream of changes open with a server of the newer era.
    async fn subscribe(&self, wanted: &Wanted) {
        let mut changes = wanted.changes();
        let (mut backoff, mut listened) = (Backoff::default(), false);
        // Kept until the next one is there, so that nothing is lost in between.
        let mut before: Option<Subscription> = None;
        loop {
            changes.mark_unchanged();
            let uris = if self.offers().subscriptions { wanted.uris() } else { BTreeSet::new() };
            let Some(filter) = self.filter(&uris) else {
                before = None;
                wanted.heard(uris);
                drop(changes.changed().await);
                continue;
            };
            let began = Instant::now();
            let opened = self.running.listen(filter).await;
            let outdated = before.take().is_some();
            match opened {
                Ok(mut subscription) => {
                    if std::mem::replace(&mut listened, true) && !outdated {
                        // What it said in between is lost.
                        self.say_changed();
                    }
                    wanted.heard(uris);
                    let over = tokio::select! {
                        over = self.heed(&mut subscription) => over,
                        _ = changes.changed() => Over::Outdated,
                    };
                    if matches!(over, Over::Outdated) {
                        before = Some(subscription);
                        continue;
                    }
                }
                Err(error) => {
                    tracing::debug!(upstream = self.server, %error, "changes cannot be listened for");
                }
            }
            tokio::time::sleep(backoff.after(began)).await;
        }
    }

    /// Reads a stream to its end; most of it was taken on its way here already.
    async fn heed(&self, subscription: &mut Subscription) -> Over {
        while let Ok(Some(notification)) = subscription.next().await {
            if matches!(notification, ServerNotification::ToolListChangedNotification(_)) {
                self.say_changed();
            }
        }
        Over::Ended
    }

    /// Returns what to listen for, if it is anything.
    fn filter(&self, uris: &BTreeSet<String>) -> Option<SubscriptionFilter> {
        let offers = self.offers();
        let mut filter = SubscriptionFilter::default();
        filter.tools_list_changed = offers.tools_change.then_some(true);
        filter.prompts_list_changed = offers.prompts_change.then_some(true);
        filter.resources_list_changed = offers.resources_change.then_some(true);
        filter.resource_subscriptions = (!uris.is_empty()).then(|| uris.iter().cloned().collect());
        (filter != SubscriptionFilter::default()).then_some(filter)
    }
}
