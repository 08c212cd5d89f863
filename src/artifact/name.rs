//! How artifacts are called: their files, and the addresses that clients read them by.

use std::fmt;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// What the address of an artifact begins with.
pub const SCHEME: &str = "iris-artifact://";

/// The longest name of a session's folder, in hexadecimal digits.
const LONGEST: usize = 128;
/// How many random digits end a name.
const RANDOM: usize = 32;

/// Where an artifact of a session is: kind and file name, nothing of the server's own paths.
///
/// The session is not part of it. Whoever asks only ever gets to see the files of their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    area: Area,
    file: String,
}

/// What kind of artifact it is; each has a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Area {
    /// Texts, native results and published files.
    Results,
    /// Images as they came, and as a model gets them.
    Images,
}

impl Area {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Results, Self::Images];

    /// Returns the name of its folder.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Results => "tool-results",
            Self::Images => "image-cache",
        }
    }

    fn host(self) -> &'static str {
        match self {
            Self::Results => "results",
            Self::Images => "images",
        }
    }
}

impl Key {
    /// Names a new artifact of a call; never the same twice. (EX-7.1)
    pub(super) fn result(call_id: &str, suffix: &str) -> Self {
        let file = format!("{}-{}{suffix}", segment(call_id), random());
        Self { area: Area::Results, file }
    }

    /// Names a new image: as it came and, under the same id, as a model gets it.
    pub(super) fn image(extension: &str) -> Self {
        Self { area: Area::Images, file: format!("{}.original.{extension}", random()) }
    }

    /// Names the form for a model of an image.
    #[must_use]
    pub(super) fn model(&self, extension: &str) -> Self {
        let id = self.file.split('.').next().unwrap_or_default();
        Self { area: Area::Images, file: format!("{id}.model.{extension}") }
    }

    /// Returns the key of a file in a folder, unless the file is none of ours.
    pub fn of_file(area: Area, file: &str) -> Option<Self> {
        let ours = !file.is_empty()
            && !file.starts_with('.')
            && file.len() <= 255
            && file.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        ours.then(|| Self { area, file: file.to_owned() })
    }

    /// Reads an address, without what follows a `?`.
    pub fn parse(uri: &str) -> Option<Self> {
        let (host, file) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let area = Area::ALL.into_iter().find(|area| area.host() == host)?;
        Self::of_file(area, file)
    }

    /// Returns its kind.
    pub fn area(&self) -> Area {
        self.area
    }

    /// Returns its file's name.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the address of the artifact.
    pub fn uri(&self) -> String {
        format!("{SCHEME}{}/{}", self.area.host(), self.file)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.uri())
    }
}

/// Makes a name of anything: `id_` and its bytes in hexadecimal digits. (EX-7.1)
pub fn segment(id: &str) -> String {
    hex("id_", id.as_bytes())
}

/// Makes the name of a session's folder; a long id is hashed, since a name has an end.
pub(super) fn session_folder(session: &str) -> String {
    if session.len() * 2 > LONGEST {
        hex("id_", &Sha256::digest(session.as_bytes()))
    } else {
        segment(session)
    }
}

fn hex(prefix: &str, bytes: &[u8]) -> String {
    bytes.iter().fold(prefix.to_owned(), |mut hex, byte| {
        // Writing to a string cannot fail.
        _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn random() -> String {
    format!("{:0RANDOM$x}", rand::random::<u128>())
}

/// The most characters of a file name's ending that a copy keeps.
const LONGEST_ENDING: usize = 32;

/// Returns the ending of a file name with its dot, if it is one that an address can have.
pub fn ending(name: &str) -> String {
    let Some((_, ending)) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) else {
        return String::new();
    };
    let is_plain = ending.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if is_plain && ending.len() <= LONGEST_ENDING { format!(".{ending}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ex_7_1_names_are_hexadecimal() {
        for (id, expected) in [
            ("call_1", "id_63616c6c5f31"),
            ("session_1", "id_73657373696f6e5f31"),
            ("../owned", "id_2e2e2f6f776e6564"),
            ("session/图片", "id_73657373696f6e2fe59bbee78987"),
            ("", "id_"),
        ] {
            assert_eq!(segment(id), expected);
            assert_eq!(session_folder(id), expected);
        }
        let long = "s".repeat(65);
        assert_eq!(session_folder(&long).len(), "id_".len() + 64);
        assert_eq!(session_folder(&long[1..]), segment(&long[1..]));
    }

    #[test]
    fn t19_the_same_call_never_gets_the_same_name_twice() {
        let (one, other) = (Key::result("call_1", ".txt"), Key::result("call_1", ".txt"));
        assert_ne!(one, other);
        for key in [&one, &other] {
            let random = key.file().strip_prefix("id_63616c6c5f31-").unwrap();
            let random = random.strip_suffix(".txt").unwrap();
            assert_eq!(random.len(), 32);
            assert!(random.chars().all(|c| c.is_ascii_hexdigit()));
        }
    }

    #[test]
    fn an_address_comes_back_as_its_key() {
        let image = Key::image("png");
        for key in [Key::result("c", ".mcp.json"), image.model("jpg"), image] {
            assert_eq!(Key::parse(&key.uri()), Some(key));
        }
        for bad in [
            "iris-artifact://results/../x",
            "iris-artifact://results/a/b",
            "iris-artifact://results/.hidden",
            "iris-artifact://results/",
            "iris-artifact://other/a",
            "iris-artifact://results",
            "file:///etc/passwd",
            "iris-artifact://results/a%2e",
            "",
        ] {
            assert_eq!(Key::parse(bad), None, "{bad}");
        }
    }
}
