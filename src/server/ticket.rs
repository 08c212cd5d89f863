//! What a client hands back when it retries a call that a person was asked about.
//!
//! The state is signed and holds for one call, one set of arguments and one principal, for a
//! while, and once: whatever was handed out is crossed off when it comes back (MCP 2026-07-28
//! §basic/patterns/mrtr). A restart makes a new key, so nothing old is ever taken.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};

use super::caller::random_id;
use crate::permission::fingerprint::{Parts, fingerprint};
use crate::tool::{Arguments, CallId, Principal};

/// The most states that may be out at once; beyond it the oldest are void.
const MOST: usize = 10_000;

/// Hands out states and takes each back once.
pub(super) struct Tickets {
    codec: RequestStateCodec,
    /// How long a state holds.
    lifetime: Duration,
    /// The nonces that are out, and until when.
    out: Mutex<HashMap<String, Instant>>,
}

/// What a state holds for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding<'a> {
    pub(super) principal: &'a Principal,
    /// The tool's own name; of another request, its method and what it is about.
    pub(super) tool: &'a str,
    /// The arguments as they came.
    pub(super) arguments: &'a Arguments,
}

/// A state that is out: what the client is given, and what it is known by here.
#[derive(Debug)]
pub(super) struct Issued {
    pub(super) state: String,
    pub(super) nonce: String,
}

/// A state that came back in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redeemed {
    /// The call it was handed out for.
    pub(super) call_id: CallId,
    pub(super) nonce: String,
}

/// A state that was not handed out for this, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Void;

#[derive(Serialize, Deserialize)]
struct Claims {
    call_id: String,
    nonce: String,
}

impl Tickets {
    pub(super) fn new(lifetime: Duration) -> Self {
        let key: [u8; 32] = rand::random();
        let codec = RequestStateCodec::try_new(key)
            .unwrap_or_else(|error| unreachable!("32 bytes are enough of a key: {error}"));
        Self { codec, lifetime, out: Mutex::default() }
    }

    /// Makes the state for a call that waits for a person.
    pub(super) fn issue(&self, call_id: &CallId, binding: Binding<'_>) -> Issued {
        let claims = Claims { call_id: call_id.as_str().to_owned(), nonce: random_id() };
        let payload = serde_json::to_vec(&claims).unwrap_or_default();
        let now = Instant::now();
        {
            let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
            if out.len() >= MOST {
                out.retain(|_, until| *until > now);
            }
            if out.len() >= MOST
                && let Some(oldest) =
                    out.iter().min_by_key(|(_, until)| **until).map(|(nonce, _)| nonce.clone())
            {
                out.remove(&oldest);
            }
            out.insert(claims.nonce.clone(), now + self.lifetime);
        }
        let bound = binding.digest();
        let options = SealOptions::new().associated_data(bound.as_bytes()).ttl(self.lifetime);
        Issued { state: self.codec.seal_with(&payload, &options), nonce: claims.nonce }
    }

    /// Takes a state back and returns the call it was handed out for.
    pub(super) fn redeem(&self, state: &str, binding: Binding<'_>) -> Result<Redeemed, Void> {
        let payload = self.codec.open_with(state, binding.digest().as_bytes()).map_err(|_| Void)?;
        let claims: Claims = serde_json::from_slice(&payload).map_err(|_| Void)?;
        let until = self.out.lock().unwrap_or_else(PoisonError::into_inner).remove(&claims.nonce);
        match until {
            Some(until) if until > Instant::now() => {
                Ok(Redeemed { call_id: CallId::new(claims.call_id), nonce: claims.nonce })
            }
            _ => Err(Void),
        }
    }
}

impl Binding<'_> {
    fn digest(&self) -> String {
        let Self { principal, tool, arguments } = self;
        fingerprint(Parts {
            arguments,
            run_id: "",
            session_id: principal.as_str(),
            tool_call_id: "",
            tool_name: tool,
            workspace_root: std::path::Path::new(""),
        })
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    struct Owned(Principal, &'static str, Arguments);

    impl Owned {
        fn new(principal: &str, tool: &'static str, arguments: Value) -> Self {
            Self(Principal::new(principal), tool, arguments.as_object().unwrap().clone())
        }

        fn binding(&self) -> Binding<'_> {
            Binding { principal: &self.0, tool: self.1, arguments: &self.2 }
        }
    }

    #[test]
    fn a_state_is_taken_once_and_by_its_own_call_only() {
        let tickets = Tickets::new(Duration::from_mins(1));
        let own = Owned::new("alice", "t", json!({"a": 1}));
        let id = CallId::new("c");
        let Issued { state, nonce } = tickets.issue(&id, own.binding());
        for other in [
            Owned::new("bob", "t", json!({"a": 1})),
            Owned::new("alice", "u", json!({"a": 1})),
            Owned::new("alice", "t", json!({"a": 2})),
        ] {
            assert_eq!(tickets.redeem(&state, other.binding()), Err(Void));
        }
        assert_eq!(tickets.redeem(&format!("{state}x"), own.binding()), Err(Void));
        assert_eq!(tickets.redeem("", own.binding()), Err(Void));
        assert_eq!(tickets.redeem(&state, own.binding()), Ok(Redeemed { call_id: id, nonce }));
        assert_eq!(tickets.redeem(&state, own.binding()), Err(Void));
    }

    #[test]
    fn a_state_does_not_outlive_its_time_or_its_process() {
        let own = Owned::new("alice", "t", json!({}));
        let tickets = Tickets::new(Duration::ZERO);
        let state = tickets.issue(&CallId::new("c"), own.binding()).state;
        assert_eq!(tickets.redeem(&state, own.binding()), Err(Void));
        let other = Tickets::new(Duration::from_mins(1));
        let state = other.issue(&CallId::new("c"), own.binding()).state;
        assert_eq!(Tickets::new(Duration::from_mins(1)).redeem(&state, own.binding()), Err(Void));
    }

    #[test]
    fn the_number_of_states_is_bounded() {
        let tickets = Tickets::new(Duration::from_mins(1));
        let own = Owned::new("alice", "t", json!({}));
        for _ in 0..=MOST {
            tickets.issue(&CallId::new("c"), own.binding());
        }
        assert_eq!(tickets.out.lock().unwrap().len(), MOST);
    }
}
