//! Keeps a server: prepares it, again when its lists have changed, and again later when it failed.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Board;
use super::backoff::Backoff;
use super::server::Upstream;

/// How long after a change the next one is waited for, so that both cost one new list.
const SETTLING: Duration = Duration::from_millis(100);
/// How long that may become with a server that changes all the time, and how long one must be
/// quiet to be no such server.
const RESTLESS: Duration = Duration::from_secs(10);

/// Keeps a server for as long as it is waited for.
pub(super) async fn keep(board: Arc<Board>, index: usize, server: Arc<Upstream>) {
    let mut backoff = Backoff::default();
    loop {
        let began = Instant::now();
        let prepared = server.prepare().await;
        let is_up = prepared.is_ok();
        board.settle(index, prepared);
        if !server.is_resolved() {
            // What it lacks is looked up once; it will not be there later.
            return;
        }
        if is_up {
            // Boxed: it is large and lasts.
            Box::pin(watch(&board, index, &server)).await;
        }
        let wait = backoff.after(began);
        tracing::debug!(upstream = server.name(), seconds = wait.as_secs_f64(), "is tried again");
        tokio::time::sleep(wait).await;
    }
}

/// Lists everything anew when something has changed, until the connection ends.
async fn watch(board: &Board, index: usize, server: &Upstream) {
    let Some(connection) = server.current().await else { return };
    let mut listening = std::pin::pin!(connection.listen(server.wanted()));
    let (mut wait, mut listed) = (SETTLING, Instant::now());
    loop {
        tokio::select! {
            () = connection.changed() => {}
            () = connection.left() => return,
            () = &mut listening => {}
        }
        wait = if listed.elapsed() > RESTLESS { SETTLING } else { (wait * 2).min(RESTLESS) };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = connection.left() => return,
            () = &mut listening => {}
        }
        listed = Instant::now();
        board.settle(index, server.prepare().await);
    }
}
