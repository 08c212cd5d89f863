//! Telling clients that the list of tools has changed, as each era has it told.

use rmcp::service::{Peer, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};

use super::port;
use crate::registry::Registry;
use crate::shutdown::Shutdown;

/// Tells a legacy client of every change, until it is gone.
pub(super) fn announce(registry: &Registry, shutdown: &Shutdown, peer: Peer<RoleServer>) {
    let mut changed = registry.changed();
    let ended = shutdown.child();
    // Bounded by the connection: it ends when the peer's transport does.
    let watch = async move {
        loop {
            tokio::select! {
                change = changed.changed() => if change.is_err() { return },
                () = ended.cancelled() => return,
                () = tokio::time::sleep(port::PEER_CHECK) => {
                    if peer.is_transport_closed() { return }
                    continue;
                }
            }
            if peer.notify_tool_list_changed().await.is_err() {
                return;
            }
        }
    };
    drop(shutdown.spawn("list_changed", watch));
}

/// Tells a modern client of every change, for as long as it listens.
pub(super) async fn listen(
    registry: &Registry,
    shutdown: &Shutdown,
    context: SubscriptionContext,
) -> Result<(), ErrorData> {
    let mut changed = registry.changed();
    let ended = shutdown.child();
    let wanted = context.accepted().tools_list_changed == Some(true);
    loop {
        tokio::select! {
            change = changed.changed() => if change.is_err() { return Ok(()) },
            () = context.cancelled() => return Ok(()),
            () = ended.cancelled() => return Ok(()),
        }
        // Boxed, since the library moves the future of a request around.
        if wanted && Box::pin(context.sink().notify_tool_list_changed()).await.is_err() {
            return Ok(());
        }
    }
}
