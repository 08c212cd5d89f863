//! The settings of what has to be searched for, and how it is called then.

use std::num::NonZeroUsize;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

use super::settings::Expected;
use crate::exposure::{Defer, Disclosure};
use crate::server::list;

/// How many tokens a list may have, unless said otherwise.
const BUDGET_TOKENS: usize = 10_000;

/// The settings under `discovery`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DiscoverySettings {
    /// Whether the tools of upstreams have to be searched for.
    pub defer: Option<DeferName>,
    /// How a tool that was found can be called.
    #[schemars(schema_with = "super::schema::disclosure")]
    pub disclosure: Option<Disclosure>,
    /// How many tokens a list may have before its tools are deferred.
    pub budget_tokens: Option<NonZeroUsize>,
}

/// Whether the tools of upstreams have to be searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeferName {
    /// When there are too many to list.
    Auto,
    /// In any case.
    Always,
    /// In no case.
    Never,
}

impl DiscoverySettings {
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            defer: self.defer.or(below.defer),
            disclosure: self.disclosure.or(below.disclosure),
            budget_tokens: self.budget_tokens.or(below.budget_tokens),
        }
    }

    /// Returns whether tools are deferred; `agent` is what an agent file says of it, if there is
    /// one.
    pub(super) fn defer(&self, agent: Option<bool>) -> Defer {
        match (self.defer, agent) {
            (Some(DeferName::Always), _) | (None, Some(true)) => Defer::Always,
            (Some(DeferName::Never), _) | (None, Some(false)) => Defer::Never,
            (Some(DeferName::Auto) | None, _) => {
                let budget_tokens = self.budget_tokens.map_or(BUDGET_TOKENS, NonZeroUsize::get);
                Defer::Auto { budget_tokens, measure: list::bytes }
            }
        }
    }
}

impl FromStr for DeferName {
    type Err = Expected;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(Expected("`auto`, `always` or `never`")),
        }
    }
}
