//! What reaches a person: on standard output what was asked for, on standard error everything else.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write as _};

/// Writes what was asked for to standard output.
pub(super) fn print(text: impl AsRef<[u8]>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref())?;
    out.flush()
}

/// Does the same where the exit code says something by itself: whoever reads may have enough, the
/// verdict stands.
pub(super) fn print_verdict(text: impl AsRef<[u8]>) -> io::Result<()> {
    match print(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Tells a person something on standard error; that nobody reads it is no reason to stop.
pub(super) fn say(line: impl Display) {
    drop(io::stderr().write_all(format!("{line}\n").as_bytes()));
}

/// Says whether a stream leads to a terminal that acts on escape sequences.
pub(super) fn is_capable(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Says whether what goes to a stream may have colours.
pub(super) fn has_colours(stream: &impl IsTerminal) -> bool {
    is_capable(stream) && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty())
}

/// Returns a text of others as one line, without what a terminal would act on.
pub(super) fn printable(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    text.chars().map(escaped).collect()
}
