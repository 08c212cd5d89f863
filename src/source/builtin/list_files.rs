//! `list_files`: the files below a folder.

use std::path::Path;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Parts;
use super::notes::Notes;
use super::on_thread::unless_stopped;
use super::reach::Reach;
use super::wildcard::PathPattern;
use crate::tool::{CallContext, Failure, ToolDefinition, ToolError, ToolResult, TypedTool};
use crate::workspace::{FILE_NOT_FOUND, Found, Kind, ResolvedPath, Workspace, one_line};

const DESCRIPTION: &str = "\
Lists files of the workspace, one path per line, relative to the workspace root and ready for \
read_file. Hidden files are included; the order is the file system's. `path` is the folder to \
start in (default: the root). `pattern` filters by shell wildcards: `*.py` finds Python files at \
any depth, `tests/*.py` those directly in a folder named tests, `src/**/*.rs` those anywhere below \
src; `*`, `?`, `[abc]` and `[!abc]` stay within one name. At most max_results paths are returned \
(default 200, at most 1000); if you get exactly that many there may be more, so narrow path or \
pattern.";

/// Lists the files below a folder.
#[derive(Debug)]
pub struct ListFiles {
    definition: ToolDefinition,
    parts: Parts,
}

/// The arguments of `list_files`.
#[derive(Clone, Debug, Deserialize)]
pub struct Input {
    path: String,
    #[serde(default)]
    pattern: Option<String>,
    max_results: usize,
}

impl ListFiles {
    /// Makes the tool over a workspace.
    pub fn new(parts: &Parts) -> Self {
        let definition = super::reading("list_files", "List files", DESCRIPTION, schema());
        Self { definition, parts: parts.clone() }
    }
}

#[async_trait]
impl TypedTool for ListFiles {
    type Input = Input;

    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn run(&self, input: &Input, cx: &CallContext) -> Result<ToolResult, ToolError> {
        let (max_results, input) = (input.max_results, input.clone());
        let work = move |reach: &Reach, stop: &_| list(reach, &input, stop);
        Reach::search(&self.parts, max_results, cx, work).await
    }
}

fn list(reach: &Reach, input: &Input, stop: &CancellationToken) -> Result<String, ToolError> {
    let (root, workspace) = (reach.resolve(&input.path)?, &*reach.workspace);
    if existing(workspace, &root)? == Kind::File {
        return Ok(printed(root.relative()));
    }
    let mut notes = Notes::default();
    let mut files = Vec::new();
    let Some(pattern) = PathPattern::parse(input.pattern.as_deref().unwrap_or_default()) else {
        return Ok(String::new());
    };
    let mut walk = workspace.walk(&root);
    while files.len() < input.max_results
        && let Some(found) = walk.next()
    {
        unless_stopped(stop)?;
        match found {
            Found::File(candidate) => {
                if pattern.matches(&components(candidate.relative()))
                    && let Some(path) = walk.resolve(&candidate)
                    && reach.may_see(&path)
                {
                    files.push(printed(path.relative()));
                }
            }
            Found::Unreadable(unreadable) => {
                notes.add(format!("cannot read: {}", unreadable.source), printed(&unreadable.path));
            }
            Found::Other => {}
        }
    }
    Ok(notes.after(files.join("\n"), "list_files"))
}

/// Returns what stands at a path where a search is to begin.
pub(super) fn existing(workspace: &Workspace, root: &ResolvedPath) -> Result<Kind, Failure> {
    let missing =
        |what: &str| Failure::new(FILE_NOT_FOUND, format!("{what}: {}", one_line(root.given())));
    match workspace.kind(root)? {
        Some(Kind::Other) => Err(missing("the path is neither a file nor a folder")),
        Some(kind) => Ok(kind),
        None => Err(missing("the path does not exist")),
    }
}

/// Returns a path as it is shown; a name that is no UTF-8 is shown as well as it can be.
pub(super) fn printed(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
}

fn components(path: &Path) -> Vec<Vec<char>> {
    path.components().map(|name| name.as_os_str().to_string_lossy().chars().collect()).collect()
}

fn schema() -> Value {
    json!({
        "type": "object",
        "title": "ListFilesInput",
        "properties": {
            "path": {"default": ".", "title": "Path", "type": "string"},
            "pattern": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "default": null,
                "title": "Pattern",
            },
            "max_results": {
                "default": 200,
                "maximum": 1000,
                "minimum": 0,
                "title": "Max Results",
                "type": "integer",
            },
        },
    })
}

#[cfg(test)]
mod tests;
