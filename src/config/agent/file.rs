//! The agent file as it is written: every part it can have, each by its own strict type.

use schemars::JsonSchema;
use serde::Deserialize;

use super::command::Command;
use super::conversation::{ContextFile, Goal, Prompts, Session, Todo};
use super::cures;
use super::decision::Decision;
use super::hooks::{Hook, Middleware};
use super::memory::Memory;
use super::model::Model;
use super::permissions::Permissions;
use super::policy::ContextPolicy;
use super::servers::Servers;
use super::skills::Skills;
use super::text::Text;
use super::tools::Tools;
use super::untouched::Untouched;
use crate::document::{Document, DocumentError};

/// An Iris agent: what it may do, and which tools it has.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "Iris agent file", extend("not" = {
    "required": ["system", "context"],
    "properties": {"system": {"type": "string"}, "context": {"type": "object"}}
}))]
pub(super) struct AgentFile {
    /// The agent's name, which hooks are told.
    pub(super) name: Option<Text>,
    /// The model; not used by iris-mcp, since a tool server needs none.
    pub(super) model: Option<Model>,
    /// The system prompt; not used by iris-mcp. It and `context` exclude each other.
    pub(super) system: Option<Text>,
    /// The file that a structured prompt is made from; not used by iris-mcp.
    pub(super) context: Option<ContextFile>,
    /// The tools.
    pub(super) tools: Option<Tools>,
    /// What may be done without asking, and where.
    pub(super) permissions: Option<Permissions>,
    /// Where commands run; it adds no tools by itself.
    pub(super) command: Option<Command>,
    /// The upstream MCP servers.
    pub(super) mcp: Option<Servers>,
    /// What a session can read again, and which tools have to be searched for.
    pub(super) context_policy: Option<ContextPolicy>,
    /// Skills of the workspace; off unless enabled.
    pub(super) skills: Option<Skills>,
    /// What has a say before and after calls, in order.
    pub(super) hooks: Option<Vec<Hook>>,
    /// What is wrapped around the bodies of tools.
    pub(super) middleware: Option<Middleware>,
    /// The file that says what a decision service is asked.
    pub(super) decision: Option<Decision>,
    /// Long-term memory; off unless enabled.
    pub(super) memory: Option<Memory>,
    /// Goals over several runs; off unless enabled.
    pub(super) goal: Option<Goal>,
    /// The session's list of things to do; not used by iris-mcp.
    pub(super) todo: Option<Todo>,
    /// Where conversations are kept; not used by iris-mcp.
    pub(super) session: Option<Session>,
    /// Where named prompts are kept; not used by iris-mcp.
    pub(super) prompts: Option<Prompts>,
    /// How long conversations are shortened; not used by iris-mcp.
    pub(super) compaction: Option<Untouched>,
    /// Work between conversations; not used by iris-mcp.
    pub(super) maintenance: Option<Untouched>,
    /// Speech; not used by iris-mcp.
    pub(super) speech: Option<Untouched>,
    /// What is measured of conversations; not used by iris-mcp.
    pub(super) observability: Option<Untouched>,
    /// What is learnt from conversations; not used by iris-mcp.
    pub(super) evolution: Option<Untouched>,
}

impl AgentFile {
    /// Reads all parts, and checks what each says by itself and of the others.
    pub(super) fn read(document: &Document) -> Result<Self, Vec<DocumentError>> {
        let root = &document.root;
        if root.is_null() {
            let error = document.error_at(root.position, "", "the file is empty");
            return Err(vec![error.with_hint("an agent file has keys such as `tools`".to_owned())]);
        }
        if root.as_mapping().is_none() {
            let message = format!("an agent file is a mapping, found {}", root.describe());
            return Err(vec![document.error_at(root.position, "", message)]);
        }
        let cured = |error| cures::with_cure(error, document);
        let file: Self = document
            .decode_all()
            .map_err(|errors| errors.into_iter().map(cured).collect::<Vec<_>>())?;
        let mut errors = file.check(document);
        errors.sort_by_key(DocumentError::position);
        if errors.is_empty() { Ok(file) } else { Err(errors) }
    }

    /// Returns what is wrong with the parts beside one another, and with what they say.
    fn check(&self, document: &Document) -> Vec<DocumentError> {
        let mut errors = Vec::new();
        if self.system.is_some() && self.context.is_some() {
            let line = |key| document.root.entry(key).map(|(key, _)| key.position);
            let later = if line("system") > line("context") { "system" } else { "context" };
            let error = document.error_in(later, "`system` and `context` exclude each other");
            errors.push(error.with_hint("remove one of them".to_owned()));
        }
        let policy = self.context_policy();
        errors.extend(policy.check(document).err());
        for (key, on) in [
            ("goal", self.goal.as_ref().is_some_and(|goal| goal.enabled)),
            ("todo", self.todo.as_ref().is_some_and(|todo| todo.enabled)),
        ] {
            if on && !policy.enabled {
                let path = format!("{key}.enabled");
                let error = document.error_in(&path, "it needs `context_policy.enabled`");
                errors.push(error.with_hint("set that to true, or remove this".to_owned()));
            }
        }
        let remembers = self.memory.as_ref().is_some_and(|memory| memory.enabled);
        errors.extend(self.tools().check(document, remembers));
        errors.extend(self.command().check(document).err());
        errors.extend(self.check_commands(document).err());
        let hooks = self.hooks.iter().flatten().enumerate();
        errors.extend(hooks.filter_map(|(index, hook)| hook.check(document, index).err()));
        errors.extend(self.skills.as_ref().and_then(|skills| skills.check(document).err()));
        errors.extend(self.memory.iter().flat_map(|memory| memory.check(document)));
        errors
    }

    /// Refuses tools that run commands beside the files that they must not write.
    fn check_commands(&self, document: &Document) -> Result<(), DocumentError> {
        let refused = self.permissions().refuses_writes() && self.command().is_native();
        let index = self.tools().builtin.iter().position(|key| key.starts_with("exec."));
        match index.filter(|_| refused) {
            None => Ok(()),
            Some(index) => {
                let path = format!("tools.builtin[{index}]");
                let message = "with `permissions.writes: deny`, commands cannot run natively";
                let hint = "set `command.mode: docker`, or remove the tool".to_owned();
                Err(document.error_in(&path, message).with_hint(hint))
            }
        }
    }

    pub(super) fn tools(&self) -> Tools {
        self.tools.clone().unwrap_or_default()
    }

    pub(super) fn permissions(&self) -> Permissions {
        self.permissions.clone().unwrap_or_default()
    }

    pub(super) fn command(&self) -> Command {
        self.command.clone().unwrap_or_default()
    }

    pub(super) fn context_policy(&self) -> ContextPolicy {
        self.context_policy.unwrap_or_default()
    }
}
