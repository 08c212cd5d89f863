//! Reads a pattern by Python's grammar and writes it in the engine's.

mod escape;
mod group;

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use super::PatternError;
use super::set::{self, Set};

/// How deep groups may be nested.
const MAX_DEPTH: usize = 100;
/// Python's own limit for the count of a repetition.
const MAX_REPEAT: u64 = 4_294_967_295;

/// A pattern in the engine's syntax.
#[derive(Debug)]
pub(super) struct Translation {
    pub(super) pattern: String,
    /// Whether it has something the engine has to backtrack for, other than word boundaries.
    pub(super) backtracks: bool,
    /// Whether it has word boundaries.
    pub(super) has_boundaries: bool,
}

/// How a word boundary is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boundary {
    /// As the engine's own, which is fast and the same for ASCII text.
    Engine,
    /// As what Python means by it.
    Spelled,
}

/// The flags in force at one place of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(u8);

/// The least and most characters something can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Width {
    least: u64,
    most: u64,
}

/// What an element is, for the repetition that may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nothing that could be repeated.
    Anchor,
    /// A repetition already.
    Repetition,
    /// Anything else.
    Ordinary,
}

struct Element {
    kind: Kind,
    width: Width,
}

struct Repetition {
    least: u64,
    most: Option<u64>,
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Greedy,
    Lazy,
    Possessive,
}

struct Translator {
    source: Vec<char>,
    at: usize,
    written: String,
    boundary: Boundary,
    /// The width of each group, the whole pattern being the first; none while it is open.
    groups: Vec<Option<Width>>,
    names: HashMap<String, usize>,
    /// How many groups there were when the outermost look-behind began.
    behind: Option<usize>,
    /// Groups that a condition asked for, and where.
    asked: Vec<(usize, usize)>,
    backtracks: bool,
    has_boundaries: bool,
}

/// Translates a pattern.
pub(super) fn translate(pattern: &str, boundary: Boundary) -> Result<Translation, PatternError> {
    let mut translator = Translator {
        source: pattern.chars().collect(),
        at: 0,
        written: String::new(),
        boundary,
        groups: vec![None],
        names: HashMap::new(),
        behind: None,
        asked: Vec::new(),
        backtracks: false,
        has_boundaries: false,
    };
    let flags = translator.leading_flags()?;
    if flags.folds() {
        translator.written.push_str("(?i)");
    }
    translator.alternatives(flags, 0)?;
    if translator.peek().is_some() {
        return Err(translator.invalid("unbalanced parenthesis"));
    }
    let count = translator.groups.len();
    if let Some(&(group, at)) = translator.asked.iter().find(|(group, _)| *group >= count) {
        return Err(PatternError::Invalid {
            reason: format!("invalid group reference {group}"),
            at,
        });
    }
    let Translator { written, backtracks, has_boundaries, .. } = translator;
    Ok(Translation { pattern: written, backtracks, has_boundaries })
}

impl Translator {
    /// Reads alternatives up to a closing parenthesis or the end.
    fn alternatives(&mut self, flags: Flags, depth: usize) -> Result<Width, PatternError> {
        let mut width = self.branch(flags, depth)?;
        while self.eat('|') {
            self.written.push('|');
            let other = self.branch(flags, depth)?;
            width = width.or(other);
        }
        Ok(width)
    }

    /// Reads one alternative.
    fn branch(&mut self, flags: Flags, depth: usize) -> Result<Width, PatternError> {
        if depth > MAX_DEPTH {
            return Err(PatternError::unsupported("groups nested so deeply"));
        }
        let mut width = Width::ZERO;
        let mut last: Option<Element> = None;
        let mut start = self.written.len();
        while let Some(character) = self.peek()
            && !matches!(character, '|' | ')')
        {
            let at = self.at;
            self.at += 1;
            if flags.has(Flags::VERBOSE) && self.insignificant(character)? {
                continue;
            }
            if let Some(repetition) = self.repetition(character)? {
                let element = last.take();
                let element = self.repeat(start, element, &repetition, at)?;
                last = Some(element);
                continue;
            }
            let next = self.written.len();
            if let Some(element) = self.element(character, flags, depth)? {
                width = width.and(last.map_or(Width::ZERO, |last| last.width));
                last = Some(element);
                start = next;
            }
        }
        Ok(width.and(last.map_or(Width::ZERO, |last| last.width)))
    }

    /// Reads what starts with `character`; a comment is nothing.
    fn element(
        &mut self,
        character: char,
        flags: Flags,
        depth: usize,
    ) -> Result<Option<Element>, PatternError> {
        let element = match character {
            '(' => return self.group(flags, depth),
            '\\' => self.escape(flags)?,
            '[' => self.set(flags)?,
            '.' => {
                self.written.push_str(if flags.has(Flags::DOT_ALL) { "(?s:.)" } else { "." });
                Element::ordinary(Width::ONE)
            }
            '^' | '$' => {
                let multiline = flags.has(Flags::MULTILINE);
                self.written.push_str(match (character, multiline) {
                    ('^', false) => r"\A",
                    ('^', true) => "(?m:^)",
                    (_, false) => r"\z",
                    (_, true) => "(?m:$)",
                });
                Element::anchor()
            }
            character => {
                self.written.push_str(&set::literal(character, flags));
                Element::ordinary(Width::ONE)
            }
        };
        Ok(Some(element))
    }

    /// Reads a repetition that starts with `character`, if one does; a lone `{` is a character.
    fn repetition(&mut self, character: char) -> Result<Option<Repetition>, PatternError> {
        let (least, most) = match character {
            '*' => (0, None),
            '+' => (1, None),
            '?' => (0, Some(1)),
            '{' => match self.counts()? {
                Some(counts) => counts,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let mode = if self.eat('?') {
            Mode::Lazy
        } else if self.eat('+') {
            Mode::Possessive
        } else {
            Mode::Greedy
        };
        Ok(Some(Repetition { least, most, mode }))
    }

    /// Reads `n}`, `n,}`, `,m}` or `n,m}`; anything else is left where it is.
    fn counts(&mut self) -> Result<Option<(u64, Option<u64>)>, PatternError> {
        let start = self.at;
        if self.peek() == Some('}') {
            return Ok(None);
        }
        let low = self.digits();
        let high = if self.eat(',') { self.digits() } else { low.clone() };
        if !self.eat('}') {
            self.at = start;
            return Ok(None);
        }
        let least = self.count(&low)?.unwrap_or(0);
        let most = self.count(&high)?;
        if most.is_some_and(|most| most < least) {
            return Err(self.invalid("min repeat greater than max repeat"));
        }
        Ok(Some((least, most)))
    }

    fn count(&self, digits: &str) -> Result<Option<u64>, PatternError> {
        if digits.is_empty() {
            return Ok(None);
        }
        match digits.parse() {
            Ok(count) if count < MAX_REPEAT => Ok(Some(count)),
            _ => Err(self.invalid("the repetition number is too large")),
        }
    }

    fn digits(&mut self) -> String {
        let mut digits = String::new();
        while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
            self.at += 1;
            digits.push(digit);
        }
        digits
    }

    /// Puts a repetition to the element that was written from `start` on.
    fn repeat(
        &mut self,
        start: usize,
        element: Option<Element>,
        repetition: &Repetition,
        at: usize,
    ) -> Result<Element, PatternError> {
        let invalid = |reason: &str| PatternError::Invalid { reason: reason.to_owned(), at };
        let width = match element {
            None | Some(Element { kind: Kind::Anchor, .. }) => {
                return Err(invalid("nothing to repeat"));
            }
            Some(Element { kind: Kind::Repetition, .. }) => {
                return Err(invalid("multiple repeat"));
            }
            Some(Element { kind: Kind::Ordinary, width }) => width,
        };
        let inner = self.written.split_off(start);
        let Repetition { least, most, mode } = *repetition;
        if most == Some(0) {
            // Its groups stay, so that the later ones keep their numbers; nothing ever sets them.
            self.write(format_args!("(?:{}{inner}|)", set::NOTHING));
        } else if width.most == 0 {
            // Once is as good as often, and the engine does not repeat what has no width.
            match (least, mode) {
                (1.., _) => self.written.push_str(&inner),
                (0, Mode::Greedy) => self.write(format_args!("(?:{inner}|)")),
                (0, Mode::Lazy) => self.write(format_args!("(?:|{inner})")),
                (0, Mode::Possessive) => self.write(format_args!("(?>{inner}|)")),
            }
        } else {
            let counts = match (least, most) {
                (0, None) => "*".to_owned(),
                (1, None) => "+".to_owned(),
                (0, Some(1)) => "?".to_owned(),
                (least, None) => format!("{{{least},}}"),
                (least, Some(most)) => format!("{{{least},{most}}}"),
            };
            match mode {
                Mode::Greedy => self.write(format_args!("{inner}{counts}")),
                Mode::Lazy => self.write(format_args!("{inner}{counts}?")),
                // Python does not go back into a single round either.
                Mode::Possessive if inner.starts_with('(') => {
                    self.write(format_args!("(?>(?>{inner}){counts})"));
                }
                Mode::Possessive => self.write(format_args!("(?>{inner}{counts})")),
            }
        }
        self.backtracks |= mode == Mode::Possessive;
        Ok(Element { kind: Kind::Repetition, width: width.times(least, most) })
    }

    /// Reads a set after its `[`.
    fn set(&mut self, flags: Flags) -> Result<Element, PatternError> {
        let open = self.at - 1;
        let unterminated =
            || PatternError::Invalid { reason: "unterminated character set".to_owned(), at: open };
        let negated = self.eat('^');
        let mut set = Set::default();
        let first = self.at;
        loop {
            let at = self.at;
            let character = self.next().ok_or_else(unterminated)?;
            if character == ']' && at != first {
                break;
            }
            let low = self.member(character)?;
            if !self.eat('-') {
                low.add_to(&mut set);
                continue;
            }
            let character = self.next().ok_or_else(unterminated)?;
            if character == ']' {
                low.add_to(&mut set);
                set.add_range('-'.into(), '-'.into());
                break;
            }
            match (low, self.member(character)?) {
                (escape::Member::One(low), escape::Member::One(high)) if low <= high => {
                    set.add_range(low, high);
                }
                _ => {
                    let reason = "bad character range".to_owned();
                    return Err(PatternError::Invalid { reason, at });
                }
            }
        }
        self.written.push_str(&set.written(negated, flags));
        Ok(Element::ordinary(Width::ONE))
    }

    /// Skips what does not count in a verbose pattern; `character` was just read.
    fn insignificant(&mut self, character: char) -> Result<bool, PatternError> {
        if character == '#' {
            while self.commented()?.is_some_and(|character| character != '\n') {}
            return Ok(true);
        }
        Ok(matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c'))
    }

    /// Reads on in a comment, where a backslash still takes what follows it along.
    fn commented(&mut self) -> Result<Option<char>, PatternError> {
        let character = self.next();
        if character == Some('\\') && self.next().is_none() {
            return Err(self.invalid("bad escape (end of pattern)"));
        }
        Ok(character)
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        _ = self.written.write_fmt(text);
    }

    fn peek(&self) -> Option<char> {
        self.source.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += 1;
        Some(character)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn invalid(&self, reason: impl Into<String>) -> PatternError {
        PatternError::Invalid { reason: reason.into(), at: self.at }
    }
}

impl Flags {
    pub(super) const IGNORE_CASE: Self = Self(1);
    pub(super) const MULTILINE: Self = Self(2);
    pub(super) const DOT_ALL: Self = Self(4);
    pub(super) const VERBOSE: Self = Self(8);
    pub(super) const ASCII: Self = Self(16);

    pub(super) fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }

    /// Returns whether the engine is to ignore case; for ASCII alone that is written out.
    fn folds(self) -> bool {
        self.has(Self::IGNORE_CASE) && !self.has(Self::ASCII)
    }
}

impl Width {
    const ZERO: Self = Self { least: 0, most: 0 };
    const ONE: Self = Self { least: 1, most: 1 };

    fn and(self, next: Self) -> Self {
        Self {
            least: self.least.saturating_add(next.least).min(MAX_REPEAT - 1),
            most: self.most.saturating_add(next.most).min(MAX_REPEAT),
        }
    }

    fn or(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    fn times(self, least: u64, most: Option<u64>) -> Self {
        let most = most.unwrap_or(MAX_REPEAT);
        Self {
            least: self.least.saturating_mul(least).min(MAX_REPEAT - 1),
            most: self.most.saturating_mul(most).min(MAX_REPEAT),
        }
    }
}

impl Element {
    fn ordinary(width: Width) -> Self {
        Self { kind: Kind::Ordinary, width }
    }

    fn anchor() -> Self {
        Self { kind: Kind::Anchor, width: Width::ZERO }
    }
}
