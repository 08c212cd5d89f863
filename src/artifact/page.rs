//! Reading a text file in pages of characters, from anywhere, without reading it from the start.
//!
//! Where every so many characters begin is noted while a file is read. So a page costs what it
//! holds, and all pages of a file together cost one reading of it.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::sync::{Mutex, PoisonError};

/// How many characters lie between two notes.
const STEP: u64 = 16 * 1024;
/// How many bytes are read at once.
const CHUNK: usize = 64 * 1024;

/// Where every [`STEP`] characters of a file begin, as far as it was read.
#[derive(Debug)]
pub struct Marks(Mutex<Vec<u64>>);

/// A part of a text, in characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The characters.
    pub content: String,
    /// Where the next page begins.
    pub next_offset: u64,
    /// Whether there is a next page.
    pub has_more: bool,
}

impl Default for Marks {
    fn default() -> Self {
        Self(Mutex::new(vec![0]))
    }
}

impl Marks {
    /// Reads at most `limit` characters, after the first `offset` ones.
    ///
    /// An offset beyond the end is an empty page. What is not UTF-8 is an error, as soon as it is
    /// met; line ends stay as they are.
    pub fn page(
        &self,
        file: &mut (impl Read + Seek),
        offset: u64,
        limit: usize,
    ) -> io::Result<Page> {
        let mut reader = self.reader(file, offset)?;
        let skipped = reader.skip(offset, Some(self))?;
        let mut content = String::new();
        let taken = if skipped { reader.take(limit, &mut content)? } else { 0 };
        let has_more = skipped && reader.fill()?;
        Ok(Page { content, next_offset: offset + taken, has_more })
    }

    /// Starts at the last note before an offset.
    fn reader<'a, R: Read + Seek>(
        &self,
        file: &'a mut R,
        offset: u64,
    ) -> io::Result<Characters<'a, R>> {
        let marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = u64::try_from(marks.len() - 1).unwrap_or(u64::MAX);
        let note = (offset / STEP).min(known);
        let start = usize::try_from(note).ok().and_then(|note| marks.get(note).copied());
        let start = start.unwrap_or_default();
        drop(marks);
        file.seek(SeekFrom::Start(start))?;
        Ok(Characters {
            file,
            at: note * STEP,
            begins: start,
            buffer: Vec::new(),
            used: 0,
            ended: false,
        })
    }

    fn note(&self, at: u64, begins: u64) {
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if u64::try_from(marks.len()).is_ok_and(|next| next * STEP == at) {
            marks.push(begins);
        }
    }
}

/// The characters of a file from somewhere on.
struct Characters<'a, R> {
    file: &'a mut R,
    /// How many characters come before the next one.
    at: u64,
    /// How many bytes come before the next character.
    begins: u64,
    /// Valid up to its end, but for a character that is not complete yet.
    buffer: Vec<u8>,
    /// How many bytes of the buffer are used up.
    used: usize,
    ended: bool,
}

impl<R: Read> Characters<'_, R> {
    /// Skips up to an offset; false if the text ends before.
    fn skip(&mut self, offset: u64, marks: Option<&Marks>) -> io::Result<bool> {
        while self.at < offset {
            if !self.fill()? {
                return Ok(false);
            }
            let to_note = STEP - self.at % STEP;
            let wanted = usize::try_from((offset - self.at).min(to_note)).unwrap_or(usize::MAX);
            self.advance(wanted)?;
            if let Some(marks) = marks
                && self.at.is_multiple_of(STEP)
            {
                marks.note(self.at, self.begins);
            }
        }
        Ok(true)
    }

    /// Appends at most `limit` characters and returns how many there were.
    fn take(&mut self, limit: usize, content: &mut String) -> io::Result<u64> {
        let mut left = limit;
        let start = self.at;
        while left > 0 && self.fill()? {
            let text = self.advance(left)?;
            left -= text.chars().count();
            content.push_str(text);
        }
        Ok(self.at - start)
    }

    /// Uses at most `wanted` characters of the buffer.
    fn advance(&mut self, wanted: usize) -> io::Result<&str> {
        let text = valid(&self.buffer[self.used..])?;
        let end = text.char_indices().nth(wanted).map_or(text.len(), |(end, _)| end);
        let text = &text[..end];
        let count = text.chars().count();
        self.used += end;
        self.begins += end as u64;
        self.at += count as u64;
        // Borrowed again, since the one above came of the part before the end.
        valid(&self.buffer[self.used - end..self.used])
    }

    /// Makes sure that there is a character in the buffer; false at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        loop {
            if !valid(&self.buffer[self.used..])?.is_empty() {
                return Ok(true);
            }
            if self.ended {
                let whole = self.used == self.buffer.len();
                return if whole { Ok(false) } else { Err(invalid()) };
            }
            self.buffer.drain(..self.used);
            self.used = 0;
            let kept = self.buffer.len();
            self.buffer.resize(kept + CHUNK, 0);
            let read = loop {
                match self.file.read(&mut self.buffer[kept..]) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    read => break read?,
                }
            };
            self.buffer.truncate(kept + read);
            self.ended = read == 0;
        }
    }
}

/// Returns the text of bytes, without a last character that is not complete.
fn valid(bytes: &[u8]) -> io::Result<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).map_err(|_| invalid())
        }
        Err(error) if error.valid_up_to() > 0 => {
            // Fine so far; the error comes when what is wrong is reached.
            std::str::from_utf8(&bytes[..error.valid_up_to()]).map_err(|_| invalid())
        }
        Err(_) => Err(invalid()),
    }
}

fn invalid() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    /// Counts what is read of it.
    struct Counted(Cursor<Vec<u8>>, usize);

    impl Read for Counted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(buffer)?;
            self.1 += read;
            Ok(read)
        }
    }

    impl Seek for Counted {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    fn all_pages(text: &str, limit: usize) -> (String, usize) {
        let mut file = Counted(Cursor::new(text.as_bytes().to_vec()), 0);
        let (marks, mut offset, mut whole) = (Marks::default(), 0, String::new());
        loop {
            let page = marks.page(&mut file, offset, limit).unwrap();
            assert_eq!(page.next_offset, offset + page.content.chars().count() as u64);
            whole.push_str(&page.content);
            offset = page.next_offset;
            if !page.has_more {
                return (whole, file.1);
            }
        }
    }

    #[test]
    fn all_pages_together_cost_one_reading() {
        let text = "añ☃𝄞b\r\n".repeat(60_000);
        let (whole, read) = all_pages(&text, 4_000);
        assert!(whole == text);
        let pages = text.chars().count() / 4_000 + 1;
        let most = text.len() + pages * 2 * CHUNK;
        assert!(read <= most, "{read} of {} in {pages} pages", text.len());
        // Twice the text is twice the cost, not four times.
        let (_, twice) = all_pages(&text.repeat(2), 4_000);
        assert!(twice < read * 3, "{read} then {twice}");
    }

    #[test]
    fn a_page_far_in_is_found_again_at_once() {
        let text = "0123456789".repeat(50_000);
        let mut file = Counted(Cursor::new(text.into_bytes()), 0);
        let marks = Marks::default();
        let page = marks.page(&mut file, 499_995, 10).unwrap();
        assert_eq!((page.content.as_str(), page.has_more), ("56789", false));
        let first = file.1;
        assert_eq!(marks.page(&mut file, 400_003, 4).unwrap().content, "3456");
        assert!(file.1 - first <= 2 * CHUNK);
        assert_eq!(
            marks.page(&mut file, 500_001, 4).unwrap(),
            Page { content: String::new(), next_offset: 500_001, has_more: false }
        );
    }

    #[test]
    fn what_is_no_text_is_an_error_where_it_is_met() {
        let mut file = Cursor::new(b"ab\xff".to_vec());
        let marks = Marks::default();
        assert_eq!(marks.page(&mut file, 0, 1).unwrap().content, "a");
        for (offset, limit) in [(0, 2), (0, 3), (2, 1), (5, 1)] {
            let error = marks.page(&mut file, offset, limit).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{offset} {limit}");
        }
        // A character that is cut off at the end.
        let error = marks.page(&mut Cursor::new("é".as_bytes()[..1].to_vec()), 0, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn a_page_is_the_characters_it_says(text: String, offset in 0usize..80, limit in 0usize..40) {
            let mut file = Cursor::new(text.clone().into_bytes());
            let page = Marks::default().page(&mut file, offset as u64, limit).unwrap();
            let expected: String = text.chars().skip(offset).take(limit).collect();
            prop_assert_eq!(page.has_more, text.chars().count() > offset + limit);
            prop_assert_eq!(page.next_offset, (offset + expected.chars().count()) as u64);
            prop_assert_eq!(page.content, expected);
        }
    }
}
