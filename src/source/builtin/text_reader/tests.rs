//! Text comes out the same however it is cut.

use proptest::prelude::{any, prop, prop_oneof};
use proptest::strategy::{Just, Strategy as _};
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// Gives at most `step` bytes at a time.
struct Slowly<'a> {
    bytes: &'a [u8],
    step: usize,
}

impl Read for Slowly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let step = self.step.min(buffer.len());
        self.bytes.by_ref().take(step as u64).read(buffer)
    }
}

/// Reads everything; returns the text and how it ended.
fn read_all(bytes: &[u8], step: usize, max_chars: usize) -> (String, Option<u64>) {
    let token = CancellationToken::new();
    let mut reader = TextReader::new(Slowly { bytes, step }, &token);
    let mut text = String::new();
    loop {
        let more = reader.more().unwrap();
        match reader.piece(max_chars) {
            Ok(Piece::Text(piece)) => {
                assert!(!piece.is_empty() && piece.chars().count() <= max_chars);
                text.push_str(piece);
            }
            Ok(Piece::LineEnd) => text.push('\n'),
            Ok(Piece::End) => {
                assert!(!more);
                return (text, None);
            }
            Err(TextError::Invalid { offset }) => {
                assert!(more);
                return (text, Some(offset));
            }
            Err(error) => panic!("{error:?}"),
        }
        assert!(more);
    }
}

#[track_caller]
fn check(bytes: &[u8], expected: &str, invalid: Option<u64>) {
    for step in [1, 2, 3, usize::MAX] {
        for max_chars in [1, 2, usize::MAX] {
            let (text, offset) = read_all(bytes, step, max_chars);
            assert_eq!((text.as_str(), offset), (expected, invalid), "{step} {max_chars}");
        }
    }
}

#[test]
fn line_ends_are_universal_and_invalid_bytes_have_an_offset() {
    check(b"", "", None);
    check(b"a\nb\r\nc\rd\r\r\ne\n\r", "a\nb\nc\nd\n\ne\n\n", None);
    check(b"\r\n", "\n", None);
    check(b"\xef\xbb\xbfa", "\u{feff}a", None);
    check("é中😀\r\n".as_bytes(), "é中😀\n", None);
    check(b"ab\xffcd", "ab", Some(2));
    check(b"a\n\xe4\xb8", "a\n", Some(2));
    check(b"\r\xe4\xb8\nx", "\n", Some(1));
    check(b"\0", "\0", None);
}

#[test]
fn a_cancelled_reader_stops() {
    let stop = CancellationToken::new();
    stop.cancel();
    let mut reader = TextReader::new(&b"a"[..], &stop);
    assert!(matches!(reader.piece(1), Err(TextError::Stopped)));
}

#[test]
fn any_bytes_come_out_as_python_would_decode_them() {
    let byte =
        prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'a'), Just(0xe4), Just(0xb8), any::<u8>()];
    let bytes = prop::collection::vec(byte, 0..40);
    let text = any::<String>().prop_map(String::into_bytes);
    let input = (prop_oneof![bytes, text], 1..6_usize, 1..4_usize);
    let config = Config { cases: 500, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&input, |(bytes, step, max_chars)| {
        let (valid, offset) = match str::from_utf8(&bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let (valid, _) = bytes.split_at(error.valid_up_to());
                (str::from_utf8(valid).unwrap(), Some(error.valid_up_to() as u64))
            }
        };
        let expected = valid.replace("\r\n", "\n").replace('\r', "\n");
        assert_eq!(read_all(&bytes, step, max_chars), (expected, offset));
        Ok(())
    });
    outcome.unwrap();
}
