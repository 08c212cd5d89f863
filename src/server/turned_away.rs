//! Calls that never come to a tool; each leaves a record.

use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use tokio::sync::SemaphorePermit;

use super::Gateway;
use super::caller::{self, Caller};
use super::project::{self, REQUEST_STATE_INVALID};
use super::ticket::{Binding, Redeemed};
use crate::activity::CANCELLED;
use crate::tool::CallId;

impl Gateway {
    /// Takes back the state of a retry, and returns the call it was handed out for.
    pub(super) fn redeem(
        &self,
        caller: &Caller,
        state: &str,
        binding: Binding<'_>,
    ) -> Result<Redeemed, ErrorData> {
        self.shared.tickets.redeem(state, binding).map_err(|_| {
            self.turn_away(caller, binding.tool, REQUEST_STATE_INVALID);
            project::void_state()
        })
    }

    /// Waits for the call's turn.
    pub(super) async fn slot(
        &self,
        caller: &Caller,
        name: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<SemaphorePermit<'_>, ErrorData> {
        tokio::select! {
            Ok(slot) = self.shared.calls.acquire() => Ok(slot),
            () = context.ct.cancelled() => {
                self.turn_away(caller, name, CANCELLED);
                Err(project::cancelled())
            }
        }
    }

    /// Writes the record of a call that never came to a tool, and returns its id.
    pub(super) fn turn_away(&self, caller: &Caller, name: &str, outcome: &str) -> CallId {
        let call_id = CallId::new(caller::random_id());
        let activity = self.shared.parts.executor.activity();
        activity.turn_away(name, call_id.clone(), caller.who(), outcome);
        call_id
    }
}
