//! `edit_file`: one place of a file that was read, found by its text.

mod patch;

use std::io::Read as _;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Parts;
use super::list_files::printed;
use super::on_thread::to_the_end;
use super::text_reader::{Piece, TextError, TextReader};
use super::write_file::lock;
use crate::session::Session;
use crate::tool::result::{EXECUTION_ERROR, VALIDATION_ERROR};
use crate::tool::{
    CallContext, ErrorCode, Failure, ToolDefinition, ToolError, ToolResult, TypedTool,
};
use crate::workspace::mutate::cancelled;
use crate::workspace::{LockedFile, OpenFile, ResolvedPath, Workspace, one_line};

/// A text to replace that the file does not have.
pub const MATCH_NOT_FOUND: ErrorCode = ErrorCode::new("MATCH_NOT_FOUND");
/// A text to replace that the file has more than once.
pub const AMBIGUOUS_MATCH: ErrorCode = ErrorCode::new("AMBIGUOUS_MATCH");

/// The largest file that can be edited, in bytes: it is held in memory whole, more than once.
pub const LARGEST_EDITED: u64 = 16 << 20;

const DESCRIPTION: &str = "\
Replaces one piece of text in a file of the workspace. The file must have been read with read_file \
before, and again if it has changed since; after a write or edit of yours it counts as read. \
old_string must occur exactly once: copy it from the file, with its indentation but without \
`L0001 | ` prefixes, and with enough lines around it to be unique. new_string takes its place as \
given, and may be empty. Line ends count as line feeds and are written as such, so a file with \
Windows line ends loses them. The file is replaced at once or not at all, and keeps its \
permissions.";

/// Edits text files.
#[derive(Debug)]
pub struct EditFile {
    definition: ToolDefinition,
    parts: Parts,
}

/// The arguments of `edit_file`.
#[derive(Clone, Debug, Deserialize)]
pub struct Input {
    file_path: String,
    old_string: String,
    new_string: String,
}

impl EditFile {
    /// Makes the tool over a workspace.
    pub fn new(parts: &Parts) -> Self {
        let definition = super::writing("edit_file", "Edit a file", DESCRIPTION, schema());
        Self { definition, parts: parts.clone() }
    }
}

#[async_trait]
impl TypedTool for EditFile {
    type Input = Input;

    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn check(&self, input: &Input) -> Result<(), Failure> {
        if input.old_string.is_empty() {
            let message = "invalid arguments for edit_file: old_string must not be empty";
            return Err(Failure::new(VALIDATION_ERROR, message));
        }
        Ok(())
    }

    async fn run(&self, input: &Input, cx: &CallContext) -> Result<ToolResult, ToolError> {
        let file = lock(&self.parts, &input.file_path, cx).await?;
        let workspace = Arc::clone(&self.parts.workspace);
        let session = self.parts.sessions.get(&cx.session);
        let input = input.clone();
        to_the_end(cx, move |stop| Ok(edit(&workspace, &session, &file, &input, stop)?)).await
    }
}

fn edit(
    workspace: &Workspace,
    session: &Session,
    file: &LockedFile,
    input: &Input,
    stop: &CancellationToken,
) -> Result<ToolResult, Failure> {
    let path = file.path();
    let name = printed(path.relative());
    let mut diff = String::new();
    let edit = |current: &mut OpenFile| {
        let before = read(current, path, stop)?;
        let after = replaced(&before, input, path)?;
        diff = patch::unified(&one_line(&name), &before, &after);
        Ok(after)
    };
    workspace.edit_file(file, session.read_state(), edit, stop)?;
    let mut result = ToolResult::text(format!("EDITED: {}", one_line(&name)));
    result.data.insert("file_change".to_owned(), json!({"file_path": name, "patch": diff}));
    Ok(result)
}

/// Reads a whole file, with line feeds for line ends.
fn read(
    file: &mut OpenFile,
    path: &ResolvedPath,
    stop: &CancellationToken,
) -> Result<String, Failure> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(EXECUTION_ERROR, format!("cannot edit {}: {why}", one_line(path.given())))
    };
    let size = file.observation().size_bytes;
    if size > LARGEST_EDITED {
        return Err(failed(&format!("it has {size} bytes; at most {LARGEST_EDITED} are edited")));
    }
    let mut reader = TextReader::new(file.take(LARGEST_EDITED), stop);
    let mut text = String::new();
    loop {
        match reader.piece(usize::MAX) {
            Ok(Piece::Text(piece)) => text.push_str(piece),
            Ok(Piece::LineEnd) => text.push('\n'),
            Ok(Piece::End) => return Ok(text),
            Err(TextError::Stopped) => return Err(cancelled()),
            Err(error) => return Err(failed(&error)),
        }
    }
}

fn replaced(before: &str, input: &Input, path: &ResolvedPath) -> Result<String, Failure> {
    let Input { old_string, new_string, .. } = input;
    let name = one_line(path.given());
    match before.matches(old_string.as_str()).count() {
        0 => Err(Failure::new(
            MATCH_NOT_FOUND,
            format!("old_string does not occur in the file; read it again: {name}"),
        )),
        1 => Ok(before.replacen(old_string.as_str(), new_string, 1)),
        count => Err(Failure::new(
            AMBIGUOUS_MATCH,
            format!("old_string occurs {count} times; give more of what is around it: {name}"),
        )),
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "title": "EditFileInput",
        "required": ["file_path", "old_string", "new_string"],
        "properties": {
            "file_path": {"title": "File Path", "type": "string"},
            "old_string": {"title": "Old String", "type": "string"},
            "new_string": {"title": "New String", "type": "string"},
        },
    })
}

#[cfg(test)]
mod tests;
