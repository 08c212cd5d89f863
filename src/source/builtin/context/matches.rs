//! The places of a text that match a pattern, line by line.
//!
//! A text may be one line of many megabytes. A pattern that is searched in linear time sees every
//! line whole. One that has to go back sees long lines in windows that overlap; what it says of
//! their edges is left out, and that lines were taken apart is said.

use super::source::{Reader, Source};
use crate::artifact::Page;
use crate::source::builtin::python_regex::{Pattern, TooManySteps};
use crate::tool::result::EXECUTION_ERROR;
use crate::tool::{Failure, ToolError};

/// How many bytes of a line a pattern that has to go back sees at once.
const WINDOW: usize = 4 * 1024;
/// How many bytes of a window the next one sees again.
const OVERLAP: usize = 1024;
/// How many characters one call looks through with such a pattern.
const MOST: u64 = 4 << 20;
/// How many characters around a match are shown.
const SNIPPET: usize = 240;
/// How many of them stand before it.
const BEFORE: usize = 40;
/// Says that the answer may lack something.
const TAKEN_APART: &str = "\n[lines of more than 4,096 bytes were searched in parts; a match longer than 1,024 bytes, or one that depends on what is further away, may be missing]";

/// A text, and what to look for in it.
pub(super) struct Search<'a> {
    pub(super) source: &'a Source,
    pub(super) reader: &'a Reader,
    pub(super) pattern: &'a Pattern,
}

/// What a search has found so far.
struct Found {
    content: String,
    /// How many more characters there is room for.
    left: usize,
    taken_apart: bool,
}

/// A line of the text, and where it is.
struct Line<'a> {
    text: &'a str,
    /// How many characters come before it.
    at: u64,
}

impl Search<'_> {
    /// Finds matches from an offset on, until their lines would have more than `limit` characters.
    ///
    /// The page's content has a line `OFFSET: TEXT` for each place; where two are so near that one
    /// line shows both it is there once. The next offset is where to go on.
    pub(super) fn find(
        &self,
        offset: u64,
        limit: usize,
        unless_stopped: impl Fn() -> Result<(), ToolError>,
    ) -> Result<Page, ToolError> {
        let text = self.source.text(self.reader)?;
        let mut found = Found { content: String::new(), left: limit, taken_apart: false };
        let (mut at, mut has_more) = (0, false);
        for line in text.split_inclusive('\n') {
            let chars = line.chars().count() as u64;
            if at + chars > offset {
                unless_stopped()?;
                let text = line.trim_end_matches(['\n', '\r']);
                if let Some(place) = found.search(&Line { text, at }, offset, self.pattern)? {
                    (at, has_more) = (place, true);
                    break;
                }
            }
            at += chars;
            if self.pattern.backtracks() && at.saturating_sub(offset) >= MOST {
                has_more = true;
                break;
            }
        }
        if found.taken_apart {
            found.content.push_str(TAKEN_APART);
        }
        Ok(Page { content: found.content, next_offset: at.max(offset), has_more })
    }
}

impl Found {
    /// Adds the matches of a line from an offset on; returns where to go on if there is no room.
    fn search(
        &mut self,
        line: &Line<'_>,
        offset: u64,
        pattern: &Pattern,
    ) -> Result<Option<u64>, ToolError> {
        let skipped = usize::try_from(offset.saturating_sub(line.at)).unwrap_or(usize::MAX);
        let from = line.text.char_indices().nth(skipped).map_or(line.text.len(), |(from, _)| from);
        if pattern.backtracks() && line.text.len() > WINDOW {
            self.taken_apart = true;
            return self.search_in_windows(line, from, pattern);
        }
        self.search_from(line, (0, line.text.len()), (from, line.text.len()), pattern)
    }

    fn search_in_windows(
        &mut self,
        line: &Line<'_>,
        from: usize,
        pattern: &Pattern,
    ) -> Result<Option<u64>, ToolError> {
        let whole = line.text.len();
        let (mut next, mut wanted) = (from.saturating_sub(OVERLAP), from);
        loop {
            let start = boundary(line.text, next);
            let end = boundary(line.text, start.saturating_add(WINDOW).min(whole));
            // What begins near an edge is left to the window that sees both sides of it.
            let last = if end == whole { whole } else { end - OVERLAP };
            if let Some(place) = self.search_from(line, (start, end), (wanted, last), pattern)? {
                return Ok(Some(place));
            }
            if end == whole {
                return Ok(None);
            }
            (next, wanted) = (last.saturating_sub(OVERLAP).max(start + 1), wanted.max(last));
        }
    }

    /// Searches a part of a line for matches that begin in another part of it.
    fn search_from(
        &mut self,
        line: &Line<'_>,
        (start, end): (usize, usize),
        (mut from, last): (usize, usize),
        pattern: &Pattern,
    ) -> Result<Option<u64>, ToolError> {
        let part = &line.text[start..end];
        let (mut counted, mut chars) = (0, 0u64);
        while from <= last
            && let Some(matched) =
                pattern.find_from(part, from.saturating_sub(start)).map_err(too_many)?
        {
            let begins = start + matched.start;
            if begins > last || begins == last && last < line.text.len() {
                return Ok(None);
            }
            chars += line.text[counted..begins].chars().count() as u64;
            counted = begins;
            let place = line.at + chars;
            if !self.add(place, line.text, begins) {
                return Ok(Some(place));
            }
            // One entry shows as much of a line as a snippet; the next is looked for behind it.
            let shown = line.text[begins..].char_indices().nth(SNIPPET - BEFORE);
            let Some((shown, _)) = shown else { return Ok(None) };
            from = (begins + shown).max(start + matched.end);
        }
        Ok(None)
    }

    fn add(&mut self, place: u64, line: &str, start: usize) -> bool {
        let before = line[..start].char_indices().rev().take(BEFORE).last();
        let from = before.map_or(start, |(from, _)| from);
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

/// Returns the nearest place at or before a byte where a character begins.
fn boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

fn too_many(error: TooManySteps) -> ToolError {
    Failure::new(EXECUTION_ERROR, format!("{error}; make the pattern simpler")).into()
}
