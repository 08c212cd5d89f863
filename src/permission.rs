//! May this call run: a pure decision, and the traits of those who can answer for a person.

pub mod fingerprint;
pub mod rules;

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::tool::ErrorCode;
use crate::tool::{
    Arguments, AutoAllow, CallId, CallTraits, Capability, Failure, Principal, SessionId, Tool,
    ToolDefinition,
};

pub use self::rules::{FORBID, Idle, Known, Rules, Written};

/// The policy, or a person, refused.
pub const PERMISSION_ERROR: ErrorCode = ErrorCode::new("PERMISSION_ERROR");
/// A person was asked and said no.
pub const USER_REJECTED: ErrorCode = ErrorCode::new("USER_REJECTED");

/// What the operator allows without asking.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// What becomes of calls that write files.
    pub writes: Mode,
    /// What becomes of calls that run programs.
    pub execute: Mode,
    /// What the operator says of single tools, or of all with a capability.
    pub rules: Rules,
    /// Where the first two are written.
    pub places: Places,
}

/// Where modes are written, as a refusal names it; nothing where nobody wrote them.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Of calls that write files.
    pub writes: Option<String>,
    /// Of calls that run programs.
    pub execute: Option<String>,
}

/// What becomes of calls with one capability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A person is asked.
    #[default]
    Confirm,
    /// They run.
    Allow,
    /// They are refused.
    Deny,
}

/// The default policy, under the operator's rules.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    config: Config,
}

/// What the policy says of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What becomes of the call.
    pub effect: Effect,
    /// The rule that decided, for the record.
    pub rule: &'static str,
    /// Why, for whoever is refused or asked; empty when allowed.
    pub reason: Cow<'static, str>,
}

/// What becomes of a call; the stricter, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It runs.
    Allow,
    /// It runs if a person says so.
    RequireHuman,
    /// It does not run, whoever says so.
    Deny,
}

/// A call that needs a person's answer.
#[derive(Clone, Debug)]
pub struct Request {
    /// The call.
    pub call_id: CallId,
    /// The tool's own name.
    pub tool: String,
    /// The name that clients see.
    pub wire: String,
    /// The tool itself, so that an answer can be bound to what it is now.
    pub handle: Arc<dyn Tool>,
    /// The arguments after validation.
    pub arguments: Arguments,
    /// Who is calling.
    pub principal: Principal,
    /// The session it belongs to.
    pub session: SessionId,
    /// The rule that wants a person.
    pub rule: &'static str,
    /// Why a person is asked.
    pub reason: String,
    /// What the answer is bound to: this call with these arguments, here.
    pub fingerprint: String,
}

/// What has been granted already.
pub trait Grants: Send + Sync {
    /// Returns whether a lasting grant covers the request.
    fn covers(&self, request: &Request) -> bool;

    /// Uses up a grant for exactly this request; true at most once.
    fn use_once(&self, request: &Request) -> bool;
}

/// Whoever can answer for a person.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Returns what has been granted already.
    fn grants(&self) -> &dyn Grants;

    /// Asks, before anything has run. Whatever goes wrong is no approval.
    async fn approve(&self, request: &Request) -> Approval;
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Yes; by whom, for the record.
    Granted(&'static str),
    /// A person said no.
    Rejected,
    /// Nobody can be asked; says what would allow the call.
    Unavailable(String),
    /// The answer comes with a later request; the call must be given back unrun.
    Later,
}

/// Grants nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGrants;

// === impl Policy ===

impl Policy {
    /// Makes the policy of a configuration.
    pub fn new(config: Config) -> Self {
        Self { config }
    }

    /// Decides about one call of a tool, which clients know by its second name.
    ///
    /// What the operator forbids is refused; what he wants asked for is asked for; and what would
    /// be asked for runs if he permits it. No rule of his lifts a refusal of the policy.
    pub fn decide(&self, tool: Known<'_>, traits: CallTraits, auto: Option<AutoAllow>) -> Decision {
        let rules = &self.config.rules;
        if let Some(rule) = rules.forbids(tool) {
            return Decision::deny(FORBID, format!("the operator forbids this tool ({rule})"));
        }
        let decision = self.by_capability(tool.0, traits, auto);
        if decision.effect == Effect::Deny {
            return decision;
        }
        if let Some(rule) = rules.asks(tool) {
            let reason = format!("the operator wants this tool to be asked for ({rule})");
            return Decision::ask(rules::ASK, reason);
        }
        if decision.effect == Effect::RequireHuman && rules.permits(tool) {
            return Decision::allow(rules::PERMIT);
        }
        decision
    }

    /// The first rule that speaks wins; what no rule allows needs a person.
    fn by_capability(
        &self,
        definition: &ToolDefinition,
        traits: CallTraits,
        auto: Option<AutoAllow>,
    ) -> Decision {
        let capabilities = &definition.capabilities;
        if capabilities.has(Capability::Execute) {
            match self.config.execute {
                Mode::Deny => {
                    let place = named("permissions.execute", self.config.places.execute.as_ref());
                    return Decision::deny(
                        "execute: deny",
                        format!("running programs is denied by the policy ({place})"),
                    );
                }
                Mode::Confirm => {
                    return Decision::ask(
                        "execute: confirm",
                        "running programs needs a person's approval",
                    );
                }
                Mode::Allow if capabilities.within(&[Capability::Read, Capability::Execute]) => {
                    return Decision::allow("execute: allow");
                }
                Mode::Allow => {}
            }
        }
        if auto.is_some() {
            return Decision::allow("built-in");
        }
        if capabilities.has(Capability::Mcp) && traits.read_only {
            return Decision::allow("trusted read-only");
        }
        if capabilities.read_only() {
            return Decision::allow("read-only");
        }
        if capabilities.within(&[Capability::Read, Capability::Write]) {
            match self.config.writes {
                Mode::Allow => return Decision::allow("writes: allow"),
                Mode::Deny => {
                    let place = named("permissions.writes", self.config.places.writes.as_ref());
                    return Decision::deny(
                        "writes: deny",
                        format!("writing is denied by the policy ({place})"),
                    );
                }
                Mode::Confirm => {}
            }
        }
        Decision::ask("default", "this call needs a person's approval")
    }
}

/// Names a key, and the place where it is written if anybody wrote it.
fn named(key: &str, place: Option<&String>) -> String {
    match place {
        Some(place) => format!("{key} in {place}"),
        None => key.to_owned(),
    }
}

// === impl Decision ===

impl Decision {
    fn allow(rule: &'static str) -> Self {
        Self { effect: Effect::Allow, rule, reason: Cow::default() }
    }

    fn ask(rule: &'static str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { effect: Effect::RequireHuman, rule, reason: reason.into() }
    }

    fn deny(rule: &'static str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { effect: Effect::Deny, rule, reason: reason.into() }
    }

    /// Returns the stricter of two decisions; of two equally strict ones, the parent's.
    #[must_use]
    pub fn stricter(parent: Self, child: Self) -> Self {
        if child.effect > parent.effect { child } else { parent }
    }

    /// Makes the failure of a call that this decision, as it stands, does not let run.
    pub fn refusal(&self, tool: &str, arguments: &Arguments, message: String) -> Failure {
        let asks = self.effect == Effect::RequireHuman;
        Failure::new(PERMISSION_ERROR, message)
            .with_detail("require_confirmation", asks)
            .with_detail("effect", if asks { "require_human" } else { "deny" })
            .with_detail("rule", self.rule)
            .with_detail("tool", tool)
            .with_detail("params", Value::Object(arguments.clone()))
    }
}

impl Effect {
    /// Returns the effect's name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::RequireHuman => "require_human",
            Self::Deny => "deny",
        }
    }
}

impl Grants for NoGrants {
    fn covers(&self, _request: &Request) -> bool {
        false
    }

    fn use_once(&self, _request: &Request) -> bool {
        false
    }
}

impl Request {
    /// Says whether a rule of the operator's own wants the call to be asked for.
    pub fn is_asked_for(&self) -> bool {
        self.rule == rules::ASK
    }

    /// Says which setting would let the call run unasked.
    pub fn way_out(&self) -> String {
        let tool = &self.wire;
        if self.is_asked_for() {
            return format!("without that rule {tool} is not asked for");
        }
        format!("`--permit {tool}` allows it")
    }

    /// Returns a digest of what the tool says of itself; a changed tool has another one.
    pub fn definition_digest(&self) -> String {
        let definition = self.handle.definition();
        let said = json!([definition.description(), definition.input_schema.document()]);
        fingerprint::digest(&said)
    }
}

#[cfg(test)]
mod tests;
