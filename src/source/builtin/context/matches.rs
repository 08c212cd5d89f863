//! The places of a text that match a pattern, found window by window.
//!
//! A text may be one line of many megabytes. So lines are searched as they are where they are
//! short, and in overlapping windows where they are long; a match longer than the overlap may be
//! missed at a window's edge, and `^` and `$` stand there for the edges too.

use super::source::{Reader, Source};
use crate::artifact::Page;
use crate::source::builtin::python_regex::{Pattern, TooManySteps};
use crate::tool::result::EXECUTION_ERROR;
use crate::tool::{Failure, ToolError};

/// How many characters are read at once.
const WINDOW: usize = 64 * 1024;
/// The same for a pattern that has to backtrack.
const WINDOW_BACKTRACKED: usize = 8 * 1024;
/// How many characters of a window that ends within a line are seen again in the next one.
const OVERLAP: usize = 1024;
/// How many characters one call looks through.
const MOST: u64 = 4 << 20;
/// How many characters around a match are shown.
const SNIPPET: usize = 240;
/// How many of them stand before it.
const BEFORE: usize = 40;

/// A text, and what to look for in it.
pub(super) struct Search<'a> {
    pub(super) source: &'a Source,
    pub(super) reader: &'a Reader,
    pub(super) pattern: &'a Pattern,
}

impl Search<'_> {
    /// Finds matches from an offset on, until their lines would have more than `limit` characters.
    ///
    /// The page's content has a line `OFFSET: TEXT` for each; its next offset is where to go on.
    pub(super) fn find(
        &self,
        offset: u64,
        limit: usize,
        unless_stopped: impl Fn() -> Result<(), ToolError>,
    ) -> Result<Page, ToolError> {
        let window = if self.pattern.backtracks() { WINDOW_BACKTRACKED } else { WINDOW };
        let mut found = Found { content: String::new(), left: limit };
        let mut at = offset;
        loop {
            unless_stopped()?;
            let page = self.source.page(self.reader, at, window)?;
            let ends = if page.has_more { Ends::of(&page.content) } else { Ends::End };
            let (searched, passed) = ends.cut(&page.content);
            if let Some(stopped) = found.search(searched, passed, at, self.pattern)? {
                return Ok(Page { content: found.content, next_offset: stopped, has_more: true });
            }
            at += match ends {
                Ends::End => searched.chars().count() as u64,
                Ends::Line | Ends::Within => searched[..passed].chars().count() as u64,
            };
            if !page.has_more || at - offset >= MOST {
                let has_more = page.has_more;
                return Ok(Page { content: found.content, next_offset: at, has_more });
            }
        }
    }
}

/// How a window ends.
#[derive(Clone, Copy, Debug)]
enum Ends {
    /// With the text.
    End,
    /// With a line.
    Line,
    /// Within a line that is longer than the window.
    Within,
}

impl Ends {
    fn of(window: &str) -> Self {
        if window.contains('\n') { Self::Line } else { Self::Within }
    }

    /// Returns what is searched of a window, and up to which byte a match may begin.
    fn cut(self, window: &str) -> (&str, usize) {
        match self {
            Self::End => (window, window.len() + 1),
            Self::Line => {
                let end = window.rfind('\n').map_or(window.len(), |end| end + 1);
                (&window[..end], end)
            }
            Self::Within => {
                let again = window.char_indices().rev().nth(OVERLAP - 1);
                (window, again.map_or(window.len(), |(start, _)| start))
            }
        }
    }
}

struct Found {
    content: String,
    left: usize,
}

impl Found {
    /// Adds the matches of a window; returns where to go on if there is no room for one.
    fn search(
        &mut self,
        window: &str,
        passed: usize,
        at: u64,
        pattern: &Pattern,
    ) -> Result<Option<u64>, ToolError> {
        let (mut start, mut chars) = (0, at);
        for line in window.split_inclusive('\n') {
            let text = line.trim_end_matches(['\n', '\r']);
            let mut from = 0;
            while let Some(matched) = pattern.find_from(text, from).map_err(too_many)? {
                if start + matched.start >= passed {
                    break;
                }
                let place = chars + text[..matched.start].chars().count() as u64;
                if !self.add(place, text, matched.start) {
                    return Ok(Some(place));
                }
                // One entry shows as much of a line as a snippet; the next is looked for behind it.
                let shown = text[matched.start..].char_indices().nth(SNIPPET - BEFORE);
                let Some((next, _)) = shown else { break };
                from = (matched.start + next).max(matched.end);
            }
            start += line.len();
            chars += line.chars().count() as u64;
        }
        Ok(None)
    }

    fn add(&mut self, place: u64, line: &str, start: usize) -> bool {
        let before = line[..start].chars().count().min(BEFORE);
        let from = line[..start].char_indices().rev().nth(before.saturating_sub(1));
        let from = if before == 0 { start } else { from.map_or(0, |(from, _)| from) };
        let snippet: String = line[from..].chars().take(SNIPPET).collect();
        let separator = if self.content.is_empty() { "" } else { "\n" };
        let entry = format!("{separator}{place}: {snippet}");
        let length = entry.chars().count();
        // The first one is shown in any case: without it there would be no way on.
        if length > self.left && !self.content.is_empty() {
            return false;
        }
        self.left = self.left.saturating_sub(length);
        self.content.push_str(&entry);
        true
    }
}

fn too_many(error: TooManySteps) -> ToolError {
    Failure::new(EXECUTION_ERROR, format!("{error}; make the pattern simpler")).into()
}
