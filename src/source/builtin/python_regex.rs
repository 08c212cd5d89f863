//! Python's `re` for single lines: what a pattern means there is what it means here.
//!
//! A pattern is read by Python's own grammar and written again in the syntax of the engine, so
//! that a construct is either the same, or refused by name; nothing is quietly something else.
//! The engine runs in linear time where the pattern allows it. Where it has to backtrack it counts
//! its steps and gives up; since a single step may look at the whole line, fewer are allowed on a
//! long one. What hard lines cost is counted over all lines that one pattern is used on, too: many
//! of them, each within its limit, would take hours otherwise.
//!
//! A text is one line without its end. That settles `$` and `\Z`: they are both the end of it.
//!
//! What is left of differences lies outside ASCII. Where case is ignored, a reference to a group
//! compares by case folding and only texts of equal length in bytes, and within a set `\w` has
//! U+0345. In lines longer than [`SHORT_LINE`] a word boundary is the engine's, to which marks
//! belong to a word and numbers like `²` do not.

mod set;
mod translate;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fancy_regex::{CompileError, Error, ParseError, Regex, RegexBuilder};

use self::translate::{Boundary, Translation, translate};

/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 32 * 1024;
/// The longest line that gets the most steps, in bytes.
const SHORT_LINE: usize = 2 * 1024;
/// How often a search of a short line may go back and try another way.
const MAX_STEPS: usize = 200_000;
/// The same for any longer line.
const MAX_STEPS_LONG: usize = 20_000;
/// How often a search may go back without being counted; nearly every line of nearly every pattern
/// is done with fewer.
const EASY_STEPS: usize = 5_000;
/// How often searches with one pattern may go back on all lines that are not easy.
///
/// Tests are built without optimization and wait for fewer.
const ALL_STEPS: usize = if cfg!(test) { 2_000_000 } else { 100_000_000 };
/// How large the engine's program for a pattern may be, in instructions.
const MAX_PROGRAM: usize = 100_000;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    /// With the engine's word boundaries, which are Python's where the text is ASCII.
    plain: Engine,
    /// The same for long lines; only if the pattern backtracks.
    long: Option<Engine>,
    /// With Python's word boundaries spelled out, which is slow; only if the pattern has any.
    exact: Option<Engine>,
    /// How many steps are left for lines that are not easy.
    left: AtomicUsize,
    /// How long the pattern is as the engine has it, in bytes.
    size: usize,
}

/// One way to search, and how far it goes.
#[derive(Debug)]
struct Engine {
    /// Gives up soon; only where the other one counts its steps.
    easy: Option<Arc<Regex>>,
    regex: Regex,
    steps: usize,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PatternError {
    /// Python would not take it either.
    #[error("{reason} at position {at}")]
    Invalid {
        /// What is wrong.
        reason: String,
        /// Where, in characters.
        at: usize,
    },
    /// Python would take it, but it cannot be had here.
    #[error("not supported: {construct}")]
    Unsupported {
        /// What it is, to follow "cannot have".
        construct: String,
    },
}

/// A search that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooManySteps {
    /// One line took too many.
    #[error("the search takes too many steps")]
    Line,
    /// All lines together did.
    #[error("the search takes too many steps over all lines together")]
    All,
}

impl Pattern {
    /// Compiles a pattern as Python's `re.compile` would, without flags.
    pub(super) fn compile(pattern: &str) -> Result<Self, PatternError> {
        if pattern.len() > MAX_PATTERN {
            return Err(PatternError::unsupported(format!("more than {MAX_PATTERN} bytes")));
        }
        let plain = translate(pattern, Boundary::Engine)?;
        let easy = |pattern: &str| Ok(Some(Arc::new(build(pattern, EASY_STEPS)?)));
        let soon = if plain.backtracks { easy(&plain.pattern)? } else { None };
        let long =
            plain.backtracks.then(|| Engine::new(&plain.pattern, MAX_STEPS_LONG, soon.as_ref()));
        let exact = if plain.has_boundaries {
            let Translation { pattern, .. } = translate(pattern, Boundary::Spelled)?;
            Some(Engine::new(&pattern, MAX_STEPS, easy(&pattern)?.as_ref())?)
        } else {
            None
        };
        let left = AtomicUsize::new(ALL_STEPS);
        let size = plain.pattern.len();
        let plain = Engine::new(&plain.pattern, MAX_STEPS, soon.as_ref())?;
        Ok(Self { plain, long: long.transpose()?, exact, left, size })
    }

    /// Returns whether a line has a match anywhere, as `re.search` would find it.
    pub(super) fn is_match(&self, line: &str) -> Result<bool, TooManySteps> {
        let search = |engine: &Engine| self.run(engine, |regex| regex.is_match(line));
        if line.len() > SHORT_LINE {
            return search(self.long.as_ref().unwrap_or(&self.plain));
        }
        let same = line.is_ascii() && !line.is_empty();
        match self.exact.as_ref().filter(|_| !same) {
            // If only the boundaries take so many steps, the engine's own will do.
            Some(exact) => search(exact).or_else(|error| match &self.long {
                Some(_) => Err(error),
                None => search(&self.plain),
            }),
            None => search(&self.plain),
        }
    }

    /// Returns where the first match is that begins at a byte of a line or after it.
    ///
    /// In a line that has more than ASCII, word boundaries are the engine's.
    pub(super) fn find_from(
        &self,
        line: &str,
        start: usize,
    ) -> Result<Option<Range<usize>>, TooManySteps> {
        if start > line.len() {
            return Ok(None);
        }
        let short = line.len() <= SHORT_LINE;
        let regex = self.long.as_ref().filter(|_| !short).unwrap_or(&self.plain);
        self.run(regex, |regex| Ok(regex.find_from_pos(line, start)?.map(|found| found.range())))
    }

    /// Searches, first as if it were easy; what is not is counted.
    fn run<T>(
        &self,
        engine: &Engine,
        search: impl Fn(&Regex) -> Result<T, Error>,
    ) -> Result<T, TooManySteps> {
        // Running fails in no other way than by exceeding a limit.
        if let Some(easy) = &engine.easy {
            if let Ok(found) = search(easy) {
                return Ok(found);
            }
            let spent = |left: usize| left.checked_sub(engine.steps);
            let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent);
            left.map_err(|_| TooManySteps::All)?;
        }
        search(&engine.regex).map_err(|_| TooManySteps::Line)
    }

    /// Returns how long the pattern is: a step for each byte of a line may cost as much.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns whether searching may take more than linear time.
    pub(super) fn backtracks(&self) -> bool {
        self.long.is_some()
    }
}

impl Engine {
    fn new(pattern: &str, steps: usize, easy: Option<&Arc<Regex>>) -> Result<Self, PatternError> {
        Ok(Self { easy: easy.cloned(), regex: build(pattern, steps)?, steps })
    }
}

impl PatternError {
    fn unsupported(construct: impl Into<String>) -> Self {
        Self::Unsupported { construct: construct.into() }
    }
}

fn build(pattern: &str, max_steps: usize) -> Result<Regex, PatternError> {
    RegexBuilder::new(pattern)
        .backtrack_limit(max_steps)
        .max_prog_size(MAX_PROGRAM)
        .build()
        .map_err(|error| PatternError::unsupported(obstacle(error)))
}

/// Names what the engine could not do; the pattern is known to be one of Python's.
fn obstacle(error: Error) -> String {
    match error {
        Error::ParseError(_, ParseError::RecursionExceeded) => "groups nested so deeply".to_owned(),
        Error::CompileError(error) => match *error {
            CompileError::InnerError(_) | CompileError::PatternTooComplex => {
                "repetitions that large".to_owned()
            }
            error => format!("this combination ({error})"),
        },
        error => format!("this combination ({error})"),
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
