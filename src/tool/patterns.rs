//! Globs over the names of tools, as operators write them.

use std::borrow::Borrow;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Globs, in the order in which they were written; a plain name is one that matches itself.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    set: GlobSet,
    written: Vec<String>,
}

/// Something that is no glob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{glob}` is no glob: {problem}")]
pub struct BadPattern {
    /// The glob as it was written.
    pub glob: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Patterns {
    /// Compiles globs.
    pub fn new<S: AsRef<str>>(globs: impl IntoIterator<Item = S>) -> Result<Self, BadPattern> {
        let written: Vec<String> = globs.into_iter().map(|glob| glob.as_ref().to_owned()).collect();
        let mut builder = GlobSetBuilder::new();
        for glob in &written {
            let bad = |error: globset::Error| BadPattern {
                glob: glob.clone(),
                problem: error.kind().to_string(),
            };
            builder.add(GlobBuilder::new(glob).build().map_err(bad)?);
        }
        let all = |error: globset::Error| BadPattern {
            glob: written.join(", "),
            problem: error.to_string(),
        };
        Ok(Self { set: builder.build().map_err(all)?, written })
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// Returns the first glob, in the order of writing, that fits one of these words.
    pub fn find<S: Borrow<str>>(&self, words: impl IntoIterator<Item = S>) -> Option<&str> {
        let fits = |word: S| self.set.matches(word.borrow()).into_iter().min();
        let first = words.into_iter().filter_map(fits).min()?;
        self.written.get(first).map(String::as_str)
    }

    /// Returns whether one of the globs fits one of these words.
    pub fn fit<S: Borrow<str>>(&self, words: impl IntoIterator<Item = S>) -> bool {
        words.into_iter().any(|word| self.set.is_match(word.borrow()))
    }

    /// Returns the globs that fit none of these words.
    pub fn unused<S: Borrow<str>>(&self, words: impl IntoIterator<Item = S>) -> Vec<&str> {
        let mut used = vec![false; self.written.len()];
        for word in words {
            for index in self.set.matches(word.borrow()) {
                used[index] = true;
            }
        }
        let unused = self.written.iter().zip(used).filter(|(_, used)| !used);
        unused.map(|(glob, _)| glob.as_str()).collect()
    }
}

impl PartialEq for Patterns {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for Patterns {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_was_written_is_found() {
        let patterns = Patterns::new(["b*", "*c", "abc"]).unwrap();
        assert_eq!(patterns.find(["abc"]), Some("*c"));
        assert_eq!(patterns.find(["abc", "b"]), Some("b*"));
        assert_eq!(patterns.find(["d"]), None);
        assert!(patterns.fit(["d", "xc"]) && !patterns.fit(["d"]));
        assert_eq!(patterns.unused(["abc"]), ["b*"]);
        assert_eq!(patterns.unused::<&str>([]), ["b*", "*c", "abc"]);
    }

    #[test]
    fn none_fits_nothing_and_a_bad_one_is_named() {
        let none = Patterns::new::<&str>([]).unwrap();
        assert!(none.is_empty() && !none.fit(["a"]) && none.find(["a"]).is_none());
        assert_eq!(Patterns::new(["a", "["]).unwrap_err().glob, "[");
    }
}
