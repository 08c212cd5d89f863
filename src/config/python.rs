//! The settings of the interpreter that runs an agent's Python tools.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::Host;
use super::agent::Agent;
use crate::source::python;

/// The settings under `python`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PythonSettings {
    /// The interpreter.
    pub interpreter: Option<PathBuf>,
    /// Folders in which modules are looked for first.
    pub path: Option<Vec<PathBuf>>,
    /// Variables of our environment that tools also get.
    pub inherit_env: Option<Vec<String>>,
}

impl PythonSettings {
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            interpreter: self.interpreter.or(below.interpreter),
            path: self.path.or(below.path),
            inherit_env: self.inherit_env.or(below.inherit_env),
        }
    }

    /// Lets relative paths start from `folder`; a bare name is looked for in `PATH`.
    pub(super) fn rebase(&mut self, folder: &Path) {
        if let Some(interpreter) = &mut self.interpreter
            && interpreter.components().count() > 1
        {
            *interpreter = folder.join(&interpreter);
        }
        for path in self.path.iter_mut().flatten() {
            *path = folder.join(&path);
        }
    }

    /// Puts together what runs the tools of an agent; nothing runs without one.
    pub(super) fn config(
        &self,
        agent: Option<&Agent>,
        host: &Host,
        max_message_bytes: usize,
    ) -> python::Config {
        let Some(agent) = agent else { return python::Config::default() };
        let folder = host.directory.join(agent.folder());
        let mut path = self.path.clone().unwrap_or_default();
        path.extend([folder.clone(), host.directory.clone()]);
        python::Config {
            interpreter: self.interpreter.clone(),
            path,
            folder,
            inherit_env: self.inherit_env.clone().unwrap_or_default(),
            environment: host.environment.clone(),
            max_message_bytes,
            ..agent.python()
        }
    }
}
