//! The arithmetic of a page: what fits, where it ends, and where the next one starts.

use std::io::Read;

use crate::source::builtin::text_reader::{Piece, TextError, TextReader};

/// The most lines one page has, and how many it has unless it is told otherwise.
pub(super) const MAX_LINES: usize = 1000;

/// Which page is wanted, and how large it may be.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// How many lines to skip.
    pub(super) offset: usize,
    /// How many characters to skip in the line after those.
    pub(super) column: usize,
    /// How many lines the page may have.
    pub(super) limit: usize,
    /// Whether each line starts with its number.
    pub(super) numbered: bool,
    /// How many characters the page may have, the footer included.
    pub(super) budget: usize,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    #[error("the result limit cannot hold any text together with the footer for reading on")]
    BudgetTooSmall,
    #[error("the column is beyond the last character of the first line")]
    ColumnOutOfRange,
    #[error(transparent)]
    Text(#[from] TextError),
}

/// Where the next page starts.
struct Position {
    offset: usize,
    column: usize,
}

impl Page {
    /// Reads the page from the beginning of a text.
    pub(super) fn read<R: Read>(&self, text: &mut TextReader<'_, R>) -> Result<String, PageError> {
        let mut room = self.room()?;
        self.skip(text)?;
        let mut next = Position { offset: self.offset, column: self.column };
        let mut page = String::new();
        for _ in 0..self.limit {
            let prefix =
                if self.numbered { number(next.offset.saturating_add(1)) } else { String::new() };
            let Some(left) = room.checked_sub(prefix.chars().count()).filter(|left| *left > 0)
            else {
                break;
            };
            let before = page.len();
            page.push_str(&prefix);
            let line = take_line(text, left, &mut page)?;
            if line.chars == 0 {
                page.truncate(before);
                break;
            }
            room = left - line.chars;
            if !line.ended {
                next.column = next.column.saturating_add(line.chars);
                break;
            }
            next = Position { offset: next.offset.saturating_add(1), column: 0 };
        }
        let more = text.more()?;
        page.push_str(&self.footer(&next, more));
        Ok(page)
    }

    /// Returns how many characters of text fit beside the longest footer there could be.
    fn room(&self) -> Result<usize, PageError> {
        let widest = Position {
            offset: self.offset.saturating_add(self.limit),
            column: self.column.saturating_add(self.budget),
        };
        let needed = match (self.limit, self.numbered) {
            (0, _) => 0,
            (_, false) => 1,
            (_, true) => 1 + number(widest.offset.saturating_add(1)).chars().count(),
        };
        self.budget
            .checked_sub(self.footer(&widest, false).chars().count())
            .filter(|room| *room >= needed)
            .ok_or(PageError::BudgetTooSmall)
    }

    fn skip<R: Read>(&self, text: &mut TextReader<'_, R>) -> Result<(), PageError> {
        let mut lines = 0;
        while lines < self.offset {
            match text.piece(usize::MAX)? {
                Piece::Text(_) => {}
                Piece::LineEnd => lines += 1,
                Piece::End => break,
            }
        }
        let mut left = self.column;
        while left > 0 {
            match text.piece(left)? {
                Piece::Text(piece) => left -= piece.chars().count(),
                Piece::LineEnd | Piece::End => return Err(PageError::ColumnOutOfRange),
            }
        }
        Ok(())
    }

    fn footer(&self, next: &Position, more: bool) -> String {
        let Self { offset, column, .. } = self;
        let Position { offset: next_offset, column: next_column } = next;
        format!(
            "\n\n[read_file: offset={offset}, column={column}; \
             next_offset={next_offset}, next_column={next_column}; has_more={more}]"
        )
    }
}

struct Line {
    /// How many characters were taken, the line's end included.
    chars: usize,
    /// Whether the line's end was among them.
    ended: bool,
}

/// Takes what is left of the line, at most `max_chars`, with its end if that fits.
fn take_line<R: Read>(
    text: &mut TextReader<'_, R>,
    max_chars: usize,
    page: &mut String,
) -> Result<Line, TextError> {
    let mut chars = 0;
    while chars < max_chars {
        match text.piece(max_chars - chars)? {
            Piece::Text(piece) => {
                chars += piece.chars().count();
                page.push_str(piece);
            }
            Piece::LineEnd => {
                page.push('\n');
                return Ok(Line { chars: chars + 1, ended: true });
            }
            Piece::End => break,
        }
    }
    Ok(Line { chars, ended: false })
}

fn number(line: usize) -> String {
    format!("L{line:04} | ")
}
