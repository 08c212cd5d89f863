//! Calls and other requests of the newer era that wait for their client's answer in the middle of
//! their work.
//!
//! Nothing may be asked there but by ending the request with a question (MCP 2026-07-28
//! §basic/patterns/mrtr). So the running call is put aside, and goes on when the client comes
//! again with the answer: hooks, wrappers and the body run once. One that nobody comes back for
//! is cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::port::Running;
use crate::shutdown::Shutdown;

/// How many calls may be put aside at once.
const MOST: usize = 1_000;

/// The calls that are put aside, by the nonce of the state that their client was given.
#[derive(Debug)]
pub(super) struct Parked<T> {
    calls: Arc<Mutex<HashMap<String, Running<T>>>>,
    /// How long each is kept.
    lifetime: Duration,
}

impl<T: Send + 'static> Parked<T> {
    pub(super) fn new(lifetime: Duration) -> Self {
        Self { calls: Arc::default(), lifetime }
    }

    /// Puts a call aside; gives it back if there are too many.
    pub(super) fn put(
        &self,
        nonce: String,
        call: Running<T>,
        shutdown: &Shutdown,
    ) -> Result<(), Running<T>> {
        {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            if calls.len() >= MOST {
                return Err(call);
            }
            calls.insert(nonce.clone(), call);
        }
        let (calls, lifetime, ended) = (Arc::clone(&self.calls), self.lifetime, shutdown.child());
        drop(shutdown.spawn("parked", async move {
            tokio::select! {
                () = tokio::time::sleep(lifetime) => {}
                () = ended.cancelled() => {}
            }
            let call = calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&nonce);
            if let Some(call) = call {
                // Its being dropped cancels it.
                call.end().await;
            }
        }));
        Ok(())
    }

    /// Takes a call that was put aside.
    pub(super) fn take(&self, nonce: &str) -> Option<Running<T>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(nonce)
    }
}
