//! Every mistake of a file at once, so that nobody mends it one by one.

use serde::de::DeserializeOwned;

use super::{Document, DocumentError, Node, decode, path};

/// How many mistakes are told; who has more has another kind of file.
const MOST: usize = 20;

impl Document {
    /// Decodes the whole document, or says of every mistake where it is, in the order of the file.
    ///
    /// Where a mistake was found it is taken out, and the rest decoded again: serde itself stops
    /// at the first one.
    pub fn decode_all<T: DeserializeOwned>(&self) -> Result<T, Vec<DocumentError>> {
        let mut rest = self.clone();
        let mut found = Found::default();
        loop {
            let error = match rest.decode() {
                Ok(value) if found.errors.is_empty() => return Ok(value),
                Ok(_) => break,
                Err(error) => error,
            };
            let place = error.path().to_owned();
            found.add(self, error);
            match path::prune(&mut rest.root, &place) {
                Some(gone) if found.errors.len() < MOST => found.gone(gone),
                _ => break,
            }
        }
        found.errors.sort_by_key(DocumentError::position);
        Err(found.errors)
    }

    /// Returns the value that `path` names.
    pub fn find(&self, path: &str) -> Option<&Node> {
        path::exact(&self.root, path)
    }
}

/// What was found so far.
#[derive(Default)]
struct Found {
    errors: Vec<DocumentError>,
    /// What was taken out of mappings.
    gone: Vec<String>,
    /// Whether items of lists have other numbers than in the file.
    moved: bool,
}

impl Found {
    fn add(&mut self, document: &Document, error: DocumentError) {
        // An anchor's mistake is one, wherever it is referred to.
        let is_it = |told: &DocumentError| {
            (told.position(), told.message()) == (error.position(), error.message())
        };
        if self.follows(&error) || self.errors.iter().any(is_it) {
            return;
        }
        let place = match error.position() {
            Some(position) if self.moved => {
                path::renumbered(&document.root, position, error.path())
            }
            _ => None,
        };
        self.errors.push(match place {
            Some(place) => error.with_path(place),
            None => error,
        });
    }

    /// Says whether a key is missing only since it, or what was meant for it, was taken out.
    fn follows(&self, error: &DocumentError) -> bool {
        let Some(key) = decode::missing_key(error.message()) else { return false };
        let meant = [format!("did you mean `{key}`?"), format!("known is `{key}`")];
        let was_meant = |told: &DocumentError| {
            meant.iter().any(|meant| told.hint() == Some(meant))
                && self.gone_from(error.path(), told)
        };
        self.gone.contains(&path::key(error.path(), key)) || self.errors.iter().any(was_meant)
    }

    /// Says whether what an error is about was taken out of the mapping at `place`.
    fn gone_from(&self, place: &str, told: &DocumentError) -> bool {
        let key = told.path().rsplit_once('.').map_or(told.path(), |(_, key)| key);
        self.gone.contains(&path::key(place, key))
    }

    fn gone(&mut self, path: String) {
        match path.rfind('[').filter(|_| path.ends_with(']')) {
            // What followed from what went in this list has been told.
            Some(list) => {
                self.moved = true;
                self.gone.retain(|gone| !gone.starts_with(&path[..=list]));
            }
            None => self.gone.push(path),
        }
    }
}
