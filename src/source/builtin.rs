//! The built-in tools: which key of an agent file stands for which, and how they are made.

pub mod context;
mod edit_file;
mod grep_search;
mod list_files;
mod notes;
pub(super) mod on_thread;
mod publish_artifact;
mod python_regex;
mod reach;
mod read_file;
mod text_reader;
mod wildcard;
mod write_file;

#[cfg(test)]
mod bench;

use std::sync::Arc;

use serde_json::Value;

pub use self::edit_file::{AMBIGUOUS_MATCH, EditFile, LARGEST_EDITED, MATCH_NOT_FOUND};
pub use self::grep_search::{GrepSearch, LONGEST_BACKTRACKED, LONGEST_LINE, LONGEST_RESULT};
pub use self::list_files::ListFiles;
pub use self::publish_artifact::PublishArtifact;
pub use self::read_file::{COLUMN_OUT_OF_RANGE, READ_BUDGET_TOO_SMALL, ReadFile};
pub use self::write_file::WriteFile;

use crate::artifact::ArtifactStore;
use crate::session::Sessions;
use crate::tool::{
    Capability, InputSchema, Presence, Retention, Tool, ToolDefinition, ToolName, Typed,
};
use crate::workspace::Workspace;

/// What built-in tools are made of.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The folder that file tools work in.
    pub workspace: Arc<Workspace>,
    /// What is remembered for each client.
    pub sessions: Arc<Sessions>,
    /// Where images, published files and long results are kept.
    pub artifacts: Arc<ArtifactStore>,
}

/// Why a key makes no tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuiltinError {
    /// There is no such key.
    #[error("unknown built-in tool `{key}`{}", hint(*nearest))]
    Unknown {
        /// The key as it was written.
        key: String,
        /// The key that was probably meant.
        nearest: Option<&'static str>,
    },
    /// The key is right, but this version does not have the tool.
    #[error("the built-in tool `{key}` is not available in this version")]
    NotBuilt {
        /// The key.
        key: &'static str,
    },
}

/// A row of the table.
struct Builtin {
    key: &'static str,
    name: &'static str,
    make: Make,
}

/// Makes a tool.
type Constructor = fn(&Parts) -> Arc<dyn Tool>;

enum Make {
    With(Constructor),
    NotYet,
}

/// Every key there is, and the name of its tool.
const TABLE: [Builtin; 14] = [
    row("file.read", "read_file", Make::With(read_file)),
    row("file.list", "list_files", Make::With(list_files)),
    row("file.grep", "grep_search", Make::With(grep_search)),
    row("file.write", "write_file", Make::With(write_file)),
    row("file.edit", "edit_file", Make::With(edit_file)),
    row("file.publish", "publish_artifact", Make::With(publish_artifact)),
    row("exec.command", "exec_command", Make::NotYet),
    row("exec.python", "run_python", Make::NotYet),
    row("human.ask", "ask_question", Make::NotYet),
    row("web.search", "web_search", Make::NotYet),
    row("web.fetch", "web_fetch", Make::NotYet),
    row("memory.remember", "memory_remember", Make::NotYet),
    row("memory.update", "memory_update", Make::NotYet),
    row("memory.forget", "memory_forget", Make::NotYet),
];

/// How alike two keys must be for one to be suggested for the other; 1 is the same.
const ALIKE: f64 = 0.6;

/// Makes the tool a key stands for.
pub fn make(key: &str, parts: &Parts) -> Result<Arc<dyn Tool>, BuiltinError> {
    find(key).map(|make| make(parts))
}

fn find(key: &str) -> Result<Constructor, BuiltinError> {
    let Some(builtin) = TABLE.iter().find(|builtin| builtin.key == key) else {
        return Err(BuiltinError::Unknown { key: key.to_owned(), nearest: nearest(key) });
    };
    match builtin.make {
        Make::With(make) => Ok(make),
        Make::NotYet => Err(BuiltinError::NotBuilt { key: builtin.key }),
    }
}

/// Says whether a key stands for a tool that can be made.
pub fn check(key: &str) -> Result<(), BuiltinError> {
    find(key).map(drop)
}

/// Makes the tools that read again what was called in a session.
pub fn context_tools(parts: &Parts, presence: Presence) -> [Arc<dyn Tool>; 2] {
    context::tools(parts, presence)
}

/// Returns every key, in the order of the documentation.
pub fn keys() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|builtin| builtin.key)
}

const fn row(key: &'static str, name: &'static str, make: Make) -> Builtin {
    Builtin { key, name, make }
}

fn read_file(parts: &Parts) -> Arc<dyn Tool> {
    Arc::new(Typed(ReadFile::new(parts)))
}

fn publish_artifact(parts: &Parts) -> Arc<dyn Tool> {
    Arc::new(Typed(PublishArtifact::new(parts)))
}

fn list_files(parts: &Parts) -> Arc<dyn Tool> {
    Arc::new(Typed(ListFiles::new(parts)))
}

fn grep_search(parts: &Parts) -> Arc<dyn Tool> {
    Arc::new(Typed(GrepSearch::new(parts)))
}

fn write_file(parts: &Parts) -> Arc<dyn Tool> {
    Arc::new(Typed(WriteFile::new(parts)))
}

fn edit_file(parts: &Parts) -> Arc<dyn Tool> {
    Arc::new(Typed(EditFile::new(parts)))
}

/// Returns the key that was probably meant; a tool's own name means its key.
fn nearest(key: &str) -> Option<&'static str> {
    let alike = |builtin: &Builtin| {
        let key_like = strsim::normalized_damerau_levenshtein(key, builtin.key);
        key_like.max(strsim::normalized_damerau_levenshtein(key, builtin.name))
    };
    let best = TABLE.iter().max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
    (alike(best) >= ALIKE).then_some(best.key)
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|key| format!("; did you mean `{key}`?")).unwrap_or_default()
}

/// Makes the definition of a file tool that only reads, whose results can be got again.
fn reading(name: &str, title: &str, description: &str, schema: Value) -> ToolDefinition {
    let mut definition = file_tool(name, title, description, schema);
    definition.capabilities = [Capability::Read].into();
    definition.retention = Retention::Observation;
    definition
}

/// Makes the definition of a file tool that changes files; its results tell what was done.
fn writing(name: &str, title: &str, description: &str, schema: Value) -> ToolDefinition {
    let mut definition = file_tool(name, title, description, schema);
    definition.capabilities = [Capability::Write].into();
    definition.retention = Retention::Keep;
    definition
}

/// Makes the definition of a file tool, whose parts are constants.
fn file_tool(name: &str, title: &str, description: &str, schema: Value) -> ToolDefinition {
    let Value::Object(schema) = schema else { unreachable!("a schema is an object") };
    let schema = InputSchema::compile(schema)
        .unwrap_or_else(|error| unreachable!("a constant schema compiles: {error}"));
    let name = ToolName::parse(name)
        .unwrap_or_else(|error| unreachable!("a constant name is valid: {error}"));
    let mut definition = ToolDefinition::new(name, description, schema)
        .unwrap_or_else(|error| unreachable!("a constant description is not blank: {error}"));
    definition.title = Some(title.to_owned());
    "file".clone_into(&mut definition.group);
    definition
}

#[cfg(test)]
mod tests;
