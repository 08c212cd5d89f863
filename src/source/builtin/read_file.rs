//! `read_file`: a page of a text file, with the way to the next one; or an image.

mod page;
mod picture;

use std::io::{Cursor, Read as _};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::page::{Page, PageError};
use super::Parts;
use super::on_thread::on_thread;
use super::reach::Reach;
use super::text_reader::{TextError, TextReader};
use crate::artifact::image::Kind;
use crate::tool::result::EXECUTION_ERROR;
use crate::tool::{
    CallContext, ErrorCode, Failure, Interrupt, ToolDefinition, ToolError, ToolResult, TypedTool,
};
use crate::workspace::{Observation, OpenFile, ResolvedPath, one_line};

/// A column beyond the end of the line it counts in.
pub const COLUMN_OUT_OF_RANGE: ErrorCode = ErrorCode::new("COLUMN_OUT_OF_RANGE");
/// A result limit that cannot hold one character and the footer.
pub const READ_BUDGET_TOO_SMALL: ErrorCode = ErrorCode::new("READ_BUDGET_TOO_SMALL");

const DESCRIPTION: &str = "\
Reads a text file of the workspace, up to 1,000 lines and 50,000 characters at a time, or a PNG, \
JPEG or WebP image, which is shown. \
Every answer ends with a footer: `[read_file: offset=…, column=…; next_offset=…, next_column=…; has_more=…]`. \
While has_more is true, call again with offset=next_offset and column=next_column to read on. \
offset counts lines to skip, so offset=99 starts at line 100; column counts characters to skip in \
that line and is only needed inside very long lines. With limit=0 nothing is read, but the file \
counts as read. with_line_numbers=true puts `L0001 | ` before each line, to find the offset of a \
line again; the prefix is not part of the file. A file must have been read before it is edited or \
overwritten.";

/// How many bytes tell an image from a text.
const HEAD_BYTES: usize = 12;
/// How many images are decoded at once.
const IMAGES_AT_ONCE: usize = 1;

/// Reads text files page by page.
#[derive(Debug)]
pub struct ReadFile {
    definition: ToolDefinition,
    parts: Parts,
    images: Arc<Semaphore>,
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
    pub fn new(parts: &Parts) -> Self {
        let definition = super::reading("read_file", "Read a file", DESCRIPTION, schema());
        let images = Arc::new(Semaphore::new(IMAGES_AT_ONCE));
        Self { definition, parts: parts.clone(), images }
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
        let reach = Reach::of(&self.parts, cx);
        let file_path = input.file_path.clone();
        let read = on_thread(cx, move |stop| read(&reach, &file_path, &page, stop)).await?;
        match read {
            Read::Text(text, path, observation) => {
                self.parts.sessions.get(&cx.session).read_state().record(&path, observation);
                Ok(ToolResult::text(text))
            }
            Read::Image(head, file, path) => {
                // Decoding takes far more room than the file does.
                let _turn = tokio::select! {
                    turn = self.images.acquire() => turn,
                    () = cx.cancelled.cancelled() => return Err(Interrupt::Cancelled.into()),
                };
                let (artifacts, session) = (Arc::clone(&self.parts.artifacts), cx.session.clone());
                on_thread(cx, move |_| Ok(picture::read(&head, file, &path, &artifacts, &session)?))
                    .await
            }
        }
    }
}

/// What is at a path.
enum Read {
    Text(String, ResolvedPath, Observation),
    /// The beginning of an image, and the file behind it.
    Image(Vec<u8>, OpenFile, ResolvedPath),
}

fn read(
    reach: &Reach,
    file_path: &str,
    page: &Page,
    stop: &CancellationToken,
) -> Result<Read, ToolError> {
    let path = reach.resolve(file_path)?;
    let mut file = reach.workspace.open_file(&path).map_err(Failure::from)?;
    let observation = file.observation();
    let head = head(&mut file).map_err(|error| failure(TextError::Io(error), &path))?;
    if Kind::sniff(&head).is_some() {
        return Ok(Read::Image(head, file, path));
    }
    let mut text = TextReader::new(Cursor::new(head).chain(file), stop);
    let text = page.read(&mut text).map_err(|error| match error {
        PageError::Text(error) => failure(error, &path),
        PageError::ColumnOutOfRange => Failure::new(COLUMN_OUT_OF_RANGE, error.to_string()).into(),
        PageError::BudgetTooSmall => Failure::new(READ_BUDGET_TOO_SMALL, error.to_string()).into(),
    })?;
    Ok(Read::Text(text, path, observation))
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
