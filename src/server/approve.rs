//! Who answers when a call needs a person.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::ask::{self, Answer};
use crate::permission::{Approval, Approver, Grants, Request};
use crate::session::Session;
use crate::tool::{AskError, Client, ClientPort, Era};

/// The operator's choice of who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The person at the client is asked, by elicitation.
    Ask,
    /// The MCP client asks its own person, as clients do; every such call counts as answered.
    Client,
    /// The same, but for the calls that a rule of the operator's own wants to be asked for.
    ClientUnlessAsked,
    /// Nobody is asked, so the call is refused.
    Deny,
}

/// Answers for one call of one session.
#[derive(Debug)]
pub(super) struct Approve {
    pub(super) mode: Mode,
    pub(super) session: Arc<Session>,
    pub(super) client: Client,
    pub(super) port: Arc<dyn ClientPort>,
    /// What a person has answered already, when the call is made again with it.
    pub(super) answer: Option<Answer>,
    /// Whether the session is this client's own, so that an answer can be for all of it.
    pub(super) offers_session: bool,
    /// How long a person may take.
    pub(super) patience: Duration,
}

impl Approve {
    async fn ask(&self, request: &Request) -> Approval {
        let way_out = way_out(request);
        if let Some(answer) = self.answer {
            return self.taken(answer, request);
        }
        if !ask::can_show_form(&self.client.capabilities) {
            return Approval::Unavailable(format!("this client cannot be asked; {way_out}"));
        }
        if self.client.era == Era::Modern {
            return Approval::Later;
        }
        let form = ask::form(request, self.offers_session);
        match tokio::time::timeout(self.patience, self.port.ask("elicitation/create", form)).await {
            Ok(Ok(result)) => self.taken(ask::answer(&result, self.offers_session), request),
            Ok(Err(AskError::Refused { message, .. })) => {
                Approval::Unavailable(format!("the client could not ask ({message}); {way_out}"))
            }
            Ok(Err(AskError::Unsupported { .. } | AskError::Gone)) => {
                Approval::Unavailable(format!("the client could not ask; {way_out}"))
            }
            Err(_) => Approval::Unavailable(format!(
                "nobody answered within {} s (approval.timeout_seconds); {way_out}",
                self.patience.as_secs_f64()
            )),
        }
    }

    fn taken(&self, answer: Answer, request: &Request) -> Approval {
        match answer {
            Answer::Once => Approval::Granted("person"),
            Answer::Session => {
                self.session.grant_tool(request);
                Approval::Granted("person, for the session")
            }
            Answer::Refuse => Approval::Rejected,
        }
    }
}

/// Says what would allow a refused call, for whoever may change it.
fn way_out(request: &Request) -> String {
    format!("{}, and `--approval client` leaves the asking to the client", request.way_out())
}

#[async_trait]
impl Approver for Approve {
    fn grants(&self) -> &dyn Grants {
        &*self.session
    }

    async fn approve(&self, request: &Request) -> Approval {
        match self.mode {
            Mode::Ask => self.ask(request).await,
            Mode::ClientUnlessAsked if request.is_asked_for() => self.ask(request).await,
            Mode::Client | Mode::ClientUnlessAsked => Approval::Granted("client"),
            Mode::Deny => {
                Approval::Unavailable(format!("nobody is asked here; {}", way_out(request)))
            }
        }
    }
}
