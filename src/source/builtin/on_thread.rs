//! File work on a thread of its own, stopped when nobody waits for it any more.

use std::panic::resume_unwind;

use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use crate::tool::{CallContext, Interrupt, ToolError};

/// Runs blocking work and answers as soon as it is done or the call is cancelled.
///
/// The work is given a token that it must look at often. It is cancelled with the call, and also
/// when the call's future is dropped, so that no thread goes on for a caller who has left.
pub(in crate::source) async fn on_thread<T, F>(cx: &CallContext, work: F) -> Result<T, ToolError>
where
    T: Send + 'static,
    F: FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
{
    let stop = cx.cancelled.child_token();
    let _guard = stop.clone().drop_guard();
    let thread = tokio::task::spawn_blocking(move || work(&stop));
    tokio::select! {
        biased;
        joined = thread => outcome(joined),
        () = cx.cancelled.cancelled() => Err(Interrupt::Cancelled.into()),
    }
}

/// Runs blocking work that changes something, and waits until it has ended even when the call is
/// cancelled: only then it is known whether there was a change.
pub(super) async fn to_the_end<T, F>(cx: &CallContext, work: F) -> Result<T, ToolError>
where
    T: Send + 'static,
    F: FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
{
    let stop = cx.cancelled.child_token();
    let _guard = stop.clone().drop_guard();
    outcome(tokio::task::spawn_blocking(move || work(&stop)).await)
}

fn outcome<T>(joined: Result<Result<T, ToolError>, JoinError>) -> Result<T, ToolError> {
    match joined {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(Interrupt::Cancelled.into()),
        },
    }
}

/// Ends the work if it was told to stop.
pub(super) fn unless_stopped(stop: &CancellationToken) -> Result<(), ToolError> {
    if stop.is_cancelled() { Err(Interrupt::Cancelled.into()) } else { Ok(()) }
}
