//! `grep_search`: the lines of the workspace's files that match a pattern.
//!
//! Files are searched line by line, with line ends as `read_file` counts them. A file that is no
//! UTF-8 ends at its first invalid byte; what was found before that stays. Two bounds keep memory
//! flat and are told in the result when they are met: a line longer than [`LONGEST_LINE`] bytes
//! (less for a long pattern, [`LONGEST_BACKTRACKED`] for one that has to backtrack) is not
//! searched, though it counts, and the search ends once its results have [`LONGEST_RESULT`] bytes.

use std::fmt::Write as _;
use std::path::Path;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Parts;
use super::list_files::{existing, printed};
use super::notes::Notes;
use super::on_thread::unless_stopped;
use super::python_regex::{Pattern, PatternError, TooManySteps};
use super::reach::Reach;
use super::text_reader::{Piece, TextError, TextReader};
use crate::tool::printed::printed as error_text;
use crate::tool::result::{EXECUTION_ERROR, VALIDATION_ERROR};
use crate::tool::{
    CallContext, Failure, Interrupt, ToolDefinition, ToolError, ToolResult, TypedTool,
};
use crate::workspace::{FileError, Found, Kind, ResolvedPath, Workspace, one_line};

/// The longest line that is searched, in bytes.
pub const LONGEST_LINE: usize = 8 * 1024 * 1024;
/// The longest line that is searched with a pattern that has to backtrack, in bytes.
pub const LONGEST_BACKTRACKED: usize = 16 * 1024;
/// How much a line may cost where all goes badly: its bytes times those of the pattern.
///
/// That is some ten seconds, during which the search cannot be stopped.
const MOST_COSTLY: usize = 1024 * 1024 * 1024;
/// The length of results after which a search ends, in bytes.
pub const LONGEST_RESULT: usize = 16 * 1024 * 1024;

/// The folder of our own files; searched only when the search begins in it.
const OWN_FOLDER: &str = ".iris";

const DESCRIPTION: &str = "\
Searches files of the workspace line by line for a regular expression in Python's syntax and \
returns each matching line as `path:line: text`. The pattern may match anywhere in a line and is \
case-sensitive; start it with (?i) to ignore case, and escape characters such as ( [ . * with a \
backslash to search for them literally. `path` is the folder or file to search (default: the \
whole workspace). At most max_results lines are returned (default 200, at most 1000); if you get \
exactly that many there may be more, so narrow path or pattern. To see what is around a match at \
line N, call read_file with offset=N-1 or a little less. Binary files are skipped.";

/// Searches the contents of files.
#[derive(Debug)]
pub struct GrepSearch {
    definition: ToolDefinition,
    parts: Parts,
}

/// The arguments of `grep_search`.
#[derive(Clone, Debug, Deserialize)]
pub struct Input {
    pattern: String,
    path: String,
    max_results: usize,
}

impl GrepSearch {
    /// Makes the tool over a workspace.
    pub fn new(parts: &Parts) -> Self {
        let definition = super::reading("grep_search", "Search in files", DESCRIPTION, schema());
        Self { definition, parts: parts.clone() }
    }
}

#[async_trait]
impl TypedTool for GrepSearch {
    type Input = Input;

    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn run(&self, input: &Input, cx: &CallContext) -> Result<ToolResult, ToolError> {
        let (max_results, input) = (input.max_results, input.clone());
        let work = move |reach: &Reach, stop: &_| grep(reach, &input, stop);
        Reach::search(&self.parts, max_results, cx, work).await
    }
}

fn grep(reach: &Reach, input: &Input, stop: &CancellationToken) -> Result<String, ToolError> {
    let (root, workspace) = (reach.resolve(&input.path)?, &*reach.workspace);
    let pattern = Pattern::compile(&input.pattern)
        .map_err(|error| pattern_failure(&error, &input.pattern))?;
    let kind = existing(workspace, &root)?;
    let mut search = Search {
        reach,
        workspace,
        pattern: &pattern,
        text: &input.pattern,
        left: input.max_results,
        stop,
        results: String::new(),
        notes: Notes::default(),
    };
    if kind == Kind::File {
        search.file(&root)?;
    } else {
        search.below(&root)?;
    }
    Ok(search.notes.after(search.results, "grep_search"))
}

/// Makes the failure of a text that is no pattern.
pub(super) fn pattern_failure(error: &PatternError, pattern: &str) -> Failure {
    let message = match error {
        PatternError::Invalid { .. } => "invalid regex pattern".to_owned(),
        PatternError::Unsupported { construct } => {
            format!("regex patterns here cannot have {construct}")
        }
    };
    Failure::new(VALIDATION_ERROR, error_text(&message, &[("pattern", pattern)]))
        .with_detail("reason", error.to_string())
}

/// A search under way.
struct Search<'a> {
    reach: &'a Reach,
    workspace: &'a Workspace,
    pattern: &'a Pattern,
    /// The pattern as it was given.
    text: &'a str,
    /// How many more lines may be found.
    left: usize,
    stop: &'a CancellationToken,
    results: String,
    notes: Notes,
}

impl Search<'_> {
    fn below(&mut self, root: &ResolvedPath) -> Result<(), ToolError> {
        let mut walk = self.workspace.walk(root);
        if !within_own_folder(root.relative()) {
            walk = walk.without(|name| name == OWN_FOLDER);
        }
        while !self.full()
            && let Some(found) = walk.next()
        {
            unless_stopped(self.stop)?;
            match found {
                Found::File(candidate) => {
                    if let Some(path) = walk.resolve(&candidate)
                        && self.reach.may_see(&path)
                    {
                        self.file(&path)?;
                    }
                }
                Found::Unreadable(unreadable) => self
                    .notes
                    .add(format!("cannot read: {}", unreadable.source), printed(&unreadable.path)),
                Found::Other => {}
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &ResolvedPath) -> Result<(), ToolError> {
        let file = match self.workspace.open_file(path) {
            Ok(file) => file,
            Err(FileError::Unreadable { source, .. }) => {
                self.unreadable(path, &source);
                return Ok(());
            }
            // It was there a moment ago, and what is there now is no file of the workspace.
            Err(
                FileError::NotFound { .. } | FileError::NotAFile { .. } | FileError::Outside(_),
            ) => {
                return Ok(());
            }
        };
        let mut text = TextReader::new(file, self.stop);
        match self.lines(path, &mut text) {
            Ok(()) | Err(Ended::Text(TextError::Invalid { .. })) => Ok(()),
            Err(Ended::Text(TextError::Io(source))) => {
                self.unreadable(path, &source);
                Ok(())
            }
            Err(Ended::Text(TextError::Stopped)) => Err(Interrupt::Cancelled.into()),
            Err(Ended::Call(error)) => Err(error),
        }
    }

    fn lines<R: std::io::Read>(
        &mut self,
        path: &ResolvedPath,
        text: &mut TextReader<'_, R>,
    ) -> Result<(), Ended> {
        let longest = longest_line(self.pattern);
        let mut line = String::new();
        let mut number = 1_usize;
        let mut started = false;
        let mut too_long = false;
        while !self.full() {
            let ended = match text.piece(usize::MAX)? {
                Piece::Text(piece) => {
                    started = true;
                    too_long = too_long || line.len() + piece.len() > longest;
                    if !too_long {
                        line.push_str(piece);
                    }
                    continue;
                }
                Piece::LineEnd => false,
                Piece::End if !started => return Ok(()),
                Piece::End => true,
            };
            if too_long {
                let place = format!("{}:{number}", printed(path.relative()));
                self.notes.add(format!("not searched, longer than {longest} bytes"), place);
            } else {
                self.line(path, number, &line)?;
            }
            if ended {
                return Ok(());
            }
            line.clear();
            number += 1;
            started = false;
            too_long = false;
        }
        Ok(())
    }

    fn line(&mut self, path: &ResolvedPath, number: usize, line: &str) -> Result<(), ToolError> {
        unless_stopped(self.stop)?;
        let found = self.pattern.is_match(line).map_err(|error| {
            let name = one_line(&printed(path.relative()));
            let message = match error {
                TooManySteps::Line => format!(
                    "the pattern takes too many steps on {name}:{number}; \
                     use a simpler pattern, or a path without that file"
                ),
                TooManySteps::All => format!(
                    "the search was given up at {name}:{number}, since the pattern takes too many \
                     steps on too many lines; use a simpler pattern, or a path with fewer files"
                ),
            };
            let message = error_text(&message, &[("pattern", self.text)]);
            Failure::new(EXECUTION_ERROR, message)
        })?;
        if found {
            if !self.results.is_empty() {
                self.results.push('\n');
            }
            // Writing to a string cannot fail.
            _ = write!(self.results, "{}:{number}: {line}", printed(path.relative()));
            self.left -= 1;
            if self.results.len() >= LONGEST_RESULT && self.left > 0 {
                let place = format!("{}:{number}", printed(path.relative()));
                let remark = format!("ended early, the results have {LONGEST_RESULT} bytes");
                self.notes.add(remark, place);
            }
        }
        Ok(())
    }

    fn unreadable(&mut self, path: &ResolvedPath, source: &std::io::Error) {
        self.notes.add(format!("cannot read: {source}"), printed(path.relative()));
    }

    fn full(&self) -> bool {
        self.left == 0 || self.results.len() >= LONGEST_RESULT
    }
}

/// Why the search of a file ended before its end.
enum Ended {
    /// The rest of this file cannot be read.
    Text(TextError),
    /// The whole search is over.
    Call(ToolError),
}

impl From<TextError> for Ended {
    fn from(error: TextError) -> Self {
        Self::Text(error)
    }
}

impl From<ToolError> for Ended {
    fn from(error: ToolError) -> Self {
        Self::Call(error)
    }
}

fn within_own_folder(relative: &Path) -> bool {
    relative.components().any(|name| name.as_os_str() == OWN_FOLDER)
}

fn schema() -> Value {
    json!({
        "type": "object",
        "title": "GrepSearchInput",
        "required": ["pattern"],
        "properties": {
            "pattern": {"title": "Pattern", "type": "string"},
            "path": {"default": ".", "title": "Path", "type": "string"},
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

/// Returns the longest line that a pattern is searched for in, in bytes.
fn longest_line(pattern: &Pattern) -> usize {
    if pattern.backtracks() {
        return LONGEST_BACKTRACKED;
    }
    LONGEST_LINE.min(MOST_COSTLY / pattern.size().max(1))
}

#[cfg(test)]
mod tests;
