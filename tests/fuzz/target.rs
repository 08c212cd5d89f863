//! What all fuzz targets are run by: as ordinary tests, and by a fuzzer (`tests/fuzz/run`).
//!
//! A target takes any bytes and asserts what must hold for all of them. As an ordinary test it gets
//! its seeds and some random bytes.

use std::fs;
use std::path::Path;

use crate::document::DocumentError;

/// Runs a target: `check` must come to its end for all bytes, and soon.
///
/// Some inputs are made large first, up to `large` bytes, to find what takes more than its time.
pub(crate) fn target(name: &str, large: usize, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds").join(name);
    for file in fs::read_dir(folder).into_iter().flatten() {
        check(&fs::read(file.expect("a seed").path()).expect("readable"));
    }
    let check = move |bytes: &[u8]| match grown(bytes, large) {
        Some(bytes) => check(&bytes),
        None => check(bytes),
    };
    run(check);
}

#[cfg(fuzzing)]
fn run(check: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    bolero::check!().for_each(check);
}

#[cfg(not(fuzzing))]
fn run(check: impl Fn(&[u8])) {
    use proptest::prelude::*;
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) };
    proptest!(config, |(bytes in prop::collection::vec(any::<u8>(), 0..200))| check(&bytes));
}

/// Repeats the second of three parts where an input begins with 255, which parts them as well.
fn grown(bytes: &[u8], large: usize) -> Option<Vec<u8>> {
    let mut parts = bytes.strip_prefix(&[255])?.split(|byte| *byte == 255);
    let (before, again, after) = (parts.next()?, parts.next()?, parts.next().unwrap_or_default());
    let count = large.checked_div(again.len())?;
    Some([before, &again.repeat(count), after].concat())
}

/// Makes a text of bytes: those beyond ASCII stand for words.
pub(crate) fn spell(bytes: &[u8], words: &[&str]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte.checked_sub(128) {
            None => text.push(char::from(*byte)),
            Some(word) => text.push_str(words[usize::from(word) % words.len()]),
        }
    }
    text
}

/// Asserts that an error of a text can be shown, and leads to a place in it.
#[track_caller]
pub(crate) fn check_error(text: &str, error: &DocumentError) {
    let shown = error.to_string();
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
    let rendered = error.render();
    assert!(!rendered.chars().any(|c| c.is_control() && c != '\n'), "{rendered:?}");
    assert!(rendered.starts_with(&shown), "{rendered:?}");
    let Some(position) = error.position() else { return };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // The two characters of a line end are both in the line.
    let text = text.replace("\r\n", " \n");
    let line = text.split(['\n', '\r']).nth(position.line as usize - 1);
    let line = line.unwrap_or_else(|| panic!("{shown}: there is no such line"));
    assert!((1..=line.chars().count() + 1).contains(&(position.column as usize)), "{shown}");
}

/// Runs to its end what waits for nothing outside.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime without drivers").block_on(work)
}
