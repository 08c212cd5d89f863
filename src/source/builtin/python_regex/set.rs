//! Sets of characters, `[…]`, and the letters that are the same when case is ignored.

use std::fmt::Write as _;

use super::translate::Flags;

/// The members of a set as they are read.
#[derive(Debug, Default)]
pub(super) struct Set {
    ranges: Vec<(u32, u32)>,
    classes: Vec<Class>,
}

/// A class of characters: `\d`, `\s`, `\w` and their opposites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    kind: Kind,
    negated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Digit,
    Space,
    Word,
}

/// What matches nothing at all.
pub(super) const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";
/// What matches any one character.
const ANYTHING: &str = r"[\x{0}-\x{10FFFF}]";

/// The letters that Python takes as one when it ignores case, and the engine does not.
const ALL_I: [char; 4] = ['i', 'I', '\u{130}', '\u{131}'];

impl Class {
    /// Returns the class an escape stands for.
    pub(super) fn of(escape: char) -> Option<Self> {
        let kind = match escape {
            'd' | 'D' => Kind::Digit,
            's' | 'S' => Kind::Space,
            'w' | 'W' => Kind::Word,
            _ => return None,
        };
        Some(Self { kind, negated: escape.is_ascii_uppercase() })
    }

    /// Returns the class as a set of its own, which may also stand within another one.
    pub(super) fn written(self, flags: Flags) -> String {
        let negation = if self.negated { "^" } else { "" };
        format!("[{negation}{}]", self.kind.members(flags))
    }
}

impl Kind {
    fn members(self, flags: Flags) -> &'static str {
        match (self, flags.has(Flags::ASCII)) {
            (Self::Digit, true) => "0-9",
            (Self::Space, true) => r"\x{9}-\x{D} ",
            (Self::Word, true) => "0-9A-Za-z_",
            (Self::Digit, false) => r"\p{Nd}",
            (Self::Space, false) => r"\s\x{1C}-\x{1F}",
            // Marks and joiners are no part of a word in Python, numbers of every kind are.
            (Self::Word, false) => r"\p{L}\p{N}_",
        }
    }
}

impl Set {
    pub(super) fn add_range(&mut self, low: u32, high: u32) {
        self.ranges.push((low, high));
    }

    pub(super) fn add_class(&mut self, class: Class) {
        self.classes.push(class);
    }

    /// Returns the set in the engine's syntax.
    pub(super) fn written(mut self, negated: bool, flags: Flags) -> String {
        self.ignore_case(flags);
        let mut members: String = self.classes.iter().map(|class| class.written(flags)).collect();
        for (low, high) in self.ranges {
            // The gap of the surrogates, which no text has.
            let low = char::from_u32(low).unwrap_or('\u{E000}');
            let high = char::from_u32(high).unwrap_or('\u{D7FF}');
            if low <= high {
                // Writing to a string cannot fail.
                _ = write!(members, r"\x{{{:X}}}", u32::from(low));
            }
            if low < high {
                _ = write!(members, r"-\x{{{:X}}}", u32::from(high));
            }
        }
        match (members.is_empty(), negated) {
            (true, false) => NOTHING.to_owned(),
            (true, true) => ANYTHING.to_owned(),
            (false, false) => format!("[{members}]"),
            (false, true) => format!("[^{members}]"),
        }
    }

    /// Adds what the engine would not find by itself when case is ignored.
    fn ignore_case(&mut self, flags: Flags) {
        if !flags.has(Flags::IGNORE_CASE) {
            return;
        }
        if !flags.has(Flags::ASCII) {
            if ALL_I.iter().any(|&letter| self.has(letter)) {
                self.ranges.extend(ALL_I.map(|letter| (letter.into(), letter.into())));
            }
            return;
        }
        // The engine is not told to ignore case here, since it would not stop at ASCII.
        for index in 0..self.ranges.len() {
            let (low, high) = self.ranges[index];
            for (first, last) in [('A', 'Z'), ('a', 'z')] {
                let (low, high) = (low.max(first.into()), high.min(last.into()));
                if low <= high {
                    self.ranges.push((low ^ 0x20, high ^ 0x20));
                }
            }
        }
    }

    fn has(&self, character: char) -> bool {
        self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&character.into()))
    }
}

/// Returns one character in the engine's syntax.
pub(super) fn literal(character: char, flags: Flags) -> String {
    if flags.has(Flags::IGNORE_CASE) {
        let every_i = !flags.has(Flags::ASCII) && ALL_I.contains(&character);
        let ascii_letter = flags.has(Flags::ASCII) && character.is_ascii_alphabetic();
        if every_i || ascii_letter {
            let mut set = Set::default();
            set.add_range(character.into(), character.into());
            return set.written(false, flags);
        }
    }
    match character {
        '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' => {
            format!("\\{character}")
        }
        other => other.to_string(),
    }
}
