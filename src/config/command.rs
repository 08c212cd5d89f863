//! The settings of the commands that an agent file names.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Host;
use crate::command;
use crate::process::base_environment;

/// The settings under `command`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CommandSettings {
    /// Variables of our environment that commands also get.
    pub inherit_env: Option<Vec<String>>,
}

impl CommandSettings {
    pub(super) fn over(self, below: Self) -> Self {
        Self { inherit_env: self.inherit_env.or(below.inherit_env) }
    }

    pub(super) fn config(&self, host: &Host) -> command::Config {
        let inherited = self.inherit_env.as_deref().unwrap_or_default();
        let environment = base_environment(&host.environment, inherited).into();
        command::Config { environment }
    }
}
