//! Names of a bounded length for what has no room, or no place, under its own.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// How many digits of the hash a suffix has.
const DIGITS: usize = 10;
/// How many characters a suffix has.
const SUFFIX_CHARS: usize = DIGITS + 2;

/// Returns a name with `_` for every character that is no ASCII letter or digit, as the canonical
/// names of a server's tools have it.
pub fn worded(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Returns the suffix form of a name: its beginning, `__`, and a hash of what it stands for.
///
/// It has at most `max` characters; every one of `base` must be ASCII.
pub fn suffixed(base: &str, max: usize, identity: &Value) -> String {
    let mut name = base.to_owned();
    name.truncate(max.saturating_sub(SUFFIX_CHARS));
    name.push_str("__");
    for byte in Sha256::digest(identity.to_string()).iter().take(DIGITS / 2) {
        // Writing to a string cannot fail.
        let _infallible = write!(name, "{byte:02x}");
    }
    name
}
