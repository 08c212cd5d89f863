//! `read_file`: a page of a text file, with the way to the next one.

mod page;

use std::io::{Cursor, Read as _};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::page::{Page, PageError};
use super::on_thread::on_thread;
use super::text_reader::{TextError, TextReader};
use crate::session::Sessions;
use crate::tool::result::EXECUTION_ERROR;
use crate::tool::{
    CallContext, ErrorCode, Failure, Interrupt, ToolDefinition, ToolError, ToolResult, TypedTool,
};
use crate::workspace::{Observation, OpenFile, ResolvedPath, Workspace, one_line};

/// A column beyond the end of the line it counts in.
pub const COLUMN_OUT_OF_RANGE: ErrorCode = ErrorCode::new("COLUMN_OUT_OF_RANGE");
/// A result limit that cannot hold one character and the footer.
pub const READ_BUDGET_TOO_SMALL: ErrorCode = ErrorCode::new("READ_BUDGET_TOO_SMALL");

const DESCRIPTION: &str = "\
Reads a text file of the workspace, up to 1,000 lines and 50,000 characters at a time. \
Every answer ends with a footer: `[read_file: offset=…, column=…; next_offset=…, next_column=…; has_more=…]`. \
While has_more is true, call again with offset=next_offset and column=next_column to read on. \
offset counts lines to skip, so offset=99 starts at line 100; column counts characters to skip in \
that line and is only needed inside very long lines. With limit=0 nothing is read, but the file \
counts as read. with_line_numbers=true puts `L0001 | ` before each line, to find the offset of a \
line again; the prefix is not part of the file. A file must have been read before it is edited or \
overwritten.";

/// How many bytes tell an image from a text.
const HEAD_BYTES: usize = 12;

/// Reads text files page by page.
#[derive(Debug)]
pub struct ReadFile {
    definition: ToolDefinition,
    workspace: Arc<Workspace>,
    sessions: Arc<Sessions>,
}

/// The arguments of `read_file`.
#[derive(Clone, Debug, Deserialize)]
pub struct Input {
    file_path: String,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    column: usize,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    with_line_numbers: bool,
}

impl ReadFile {
    /// Makes the tool over a workspace.
    pub fn new(workspace: Arc<Workspace>, sessions: Arc<Sessions>) -> Self {
        let definition = super::reading("read_file", "Read a file", DESCRIPTION, schema());
        Self { definition, workspace, sessions }
    }
}

#[async_trait]
impl TypedTool for ReadFile {
    type Input = Input;

    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn run(&self, input: &Input, cx: &CallContext) -> Result<ToolResult, ToolError> {
        let page = Page {
            offset: input.offset.unwrap_or(0),
            column: input.column,
            limit: input.limit.unwrap_or(page::MAX_LINES),
            numbered: input.with_line_numbers,
            budget: self.definition.max_result_chars,
        };
        let workspace = Arc::clone(&self.workspace);
        let file_path = input.file_path.clone();
        let (text, path, observation) =
            on_thread(cx, move |stop| read(&workspace, &file_path, &page, stop)).await?;
        self.sessions.get(&cx.session).read_state().record(&path, observation);
        Ok(ToolResult::text(text))
    }
}

fn read(
    workspace: &Workspace,
    file_path: &str,
    page: &Page,
    stop: &CancellationToken,
) -> Result<(String, ResolvedPath, Observation), ToolError> {
    let path = workspace.resolve(file_path).map_err(Failure::from)?;
    let mut file = workspace.open_file(&path).map_err(Failure::from)?;
    let observation = file.observation();
    let head = head(&mut file).map_err(|error| failure(TextError::Io(error), &path))?;
    if let Some(kind) = image(&head) {
        let name = one_line(path.given());
        return Err(Failure::new(
            EXECUTION_ERROR,
            format!("this is a {kind} image; read_file serves text only, no images yet: {name}"),
        )
        .into());
    }
    let mut text = TextReader::new(Cursor::new(head).chain(file), stop);
    let text = page.read(&mut text).map_err(|error| match error {
        PageError::Text(error) => failure(error, &path),
        PageError::ColumnOutOfRange => Failure::new(COLUMN_OUT_OF_RANGE, error.to_string()).into(),
        PageError::BudgetTooSmall => Failure::new(READ_BUDGET_TOO_SMALL, error.to_string()).into(),
    })?;
    Ok((text, path, observation))
}

fn failure(error: TextError, path: &ResolvedPath) -> ToolError {
    match error {
        TextError::Stopped => Interrupt::Cancelled.into(),
        TextError::Invalid { .. } | TextError::Io(_) => {
            let name = one_line(path.given());
            Failure::new(EXECUTION_ERROR, format!("cannot read {name}: {error}")).into()
        }
    }
}

fn head(file: &mut OpenFile) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    file.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn image(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("PNG")
    } else if head.starts_with(b"\xff\xd8\xff") {
        Some("JPEG")
    } else if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        Some("WebP")
    } else {
        None
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "title": "ReadFileInput",
        "required": ["file_path"],
        "properties": {
            "file_path": {"title": "File Path", "type": "string"},
            "offset": {
                "anyOf": [{"minimum": 0, "type": "integer"}, {"type": "null"}],
                "default": null,
                "title": "Offset",
            },
            "column": {"default": 0, "minimum": 0, "title": "Column", "type": "integer"},
            "limit": {
                "anyOf": [{"maximum": 1000, "minimum": 0, "type": "integer"}, {"type": "null"}],
                "default": null,
                "title": "Limit",
            },
            "with_line_numbers": {
                "default": false,
                "title": "With Line Numbers",
                "type": "boolean",
            },
        },
    })
}

#[cfg(test)]
mod tests;
