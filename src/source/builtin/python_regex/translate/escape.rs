//! What follows a backslash.

use super::{Boundary, Element, Flags, Translator, Width};
use crate::source::builtin::python_regex::PatternError;
use crate::source::builtin::python_regex::set::{self, Class, Set};

/// A member of a set.
#[derive(Clone, Copy, Debug)]
pub(super) enum Member {
    /// A character, by its code; a surrogate is one too.
    One(u32),
    /// A class of characters.
    Many(Class),
}

impl Member {
    pub(super) fn add_to(self, set: &mut Set) {
        match self {
            Self::One(code) => set.add_range(code, code),
            Self::Many(class) => set.add_class(class),
        }
    }
}

impl Translator {
    /// Reads an escape outside a set, after its backslash.
    pub(super) fn escape(&mut self, flags: Flags) -> Result<Element, PatternError> {
        let Some(character) = self.next() else {
            return Err(self.invalid("bad escape (end of pattern)"));
        };
        if let Some(class) = Class::of(character) {
            // Ignoring case must not draw in what only looks like a letter's other case.
            let written = class.written(flags);
            if flags.folds() {
                self.write(format_args!("(?-i:{written})"));
            } else {
                self.written.push_str(&written);
            }
            return Ok(Element::ordinary(Width::ONE));
        }
        match character {
            'A' => self.written.push_str(r"\A"),
            'Z' => self.written.push_str(r"\z"),
            'b' | 'B' => self.boundary(character, flags),
            '1'..='9' => return self.reference_or_octal(character, flags),
            character => {
                let code = match character {
                    '0' => self.octal(2)?,
                    character => self.code(character)?,
                };
                self.code_point(code, flags);
                return Ok(Element::ordinary(Width::ONE));
            }
        }
        Ok(Element::anchor())
    }

    /// Reads one member of a set that starts with `character`.
    pub(super) fn member(&mut self, character: char) -> Result<Member, PatternError> {
        if character != '\\' {
            return Ok(Member::One(character.into()));
        }
        let Some(character) = self.next() else {
            return Err(self.invalid("bad escape (end of pattern)"));
        };
        if let Some(class) = Class::of(character) {
            return Ok(Member::Many(class));
        }
        let code = match character {
            'b' => 0x08,
            '0'..='7' => {
                self.at -= 1;
                self.octal(3)?
            }
            '8' | '9' => return Err(self.bad_escape(character)),
            character => self.code(character)?,
        };
        Ok(Member::One(code))
    }

    /// Returns the code of a character that is written as an escape.
    fn code(&mut self, character: char) -> Result<u32, PatternError> {
        Ok(match character {
            'a' => 0x07,
            't' => 0x09,
            'n' => 0x0a,
            'v' => 0x0b,
            'f' => 0x0c,
            'r' => 0x0d,
            'x' => self.hex(2)?,
            'u' => self.hex(4)?,
            'U' => {
                let code = self.hex(8)?;
                if code > u32::from(char::MAX) {
                    return Err(self.bad_escape(character));
                }
                code
            }
            'N' if self.peek() == Some('{') => {
                return Err(PatternError::unsupported(
                    r"\N{…}; write the character itself or \u and its code",
                ));
            }
            letter if letter.is_ascii_alphabetic() => return Err(self.bad_escape(letter)),
            other => other.into(),
        })
    }

    fn hex(&mut self, length: usize) -> Result<u32, PatternError> {
        let mut code = 0;
        for _ in 0..length {
            let Some(digit) = self.peek().and_then(|character| character.to_digit(16)) else {
                return Err(self.invalid("incomplete escape"));
            };
            self.at += 1;
            code = code * 16 + digit;
        }
        Ok(code)
    }

    /// Reads up to `length` octal digits.
    fn octal(&mut self, length: usize) -> Result<u32, PatternError> {
        let mut code = 0;
        for _ in 0..length {
            let Some(digit) = self.peek().and_then(|character| character.to_digit(8)) else {
                break;
            };
            self.at += 1;
            code = code * 8 + digit;
        }
        if code > 0o377 {
            return Err(self.invalid("octal escape value outside of range 0-0o377"));
        }
        Ok(code)
    }

    /// Reads what starts like a group's number: three octal digits are a character instead.
    fn reference_or_octal(&mut self, first: char, flags: Flags) -> Result<Element, PatternError> {
        let at = self.at - 1;
        let octal = self.source[at..].iter().take(3).filter(|digit| digit.is_digit(8)).count();
        if octal == 3 {
            self.at = at;
            let code = self.octal(3)?;
            self.code_point(code, flags);
            return Ok(Element::ordinary(Width::ONE));
        }
        let mut group = first.to_digit(10).unwrap_or_default() as usize;
        if let Some(digit) = self.peek().and_then(|character| character.to_digit(10)) {
            self.at += 1;
            group = group * 10 + digit as usize;
        }
        self.reference(group, at)
    }

    /// Writes a reference to what a group matched.
    pub(super) fn reference(&mut self, group: usize, at: usize) -> Result<Element, PatternError> {
        let invalid = |reason: String| PatternError::Invalid { reason, at };
        let width = match self.groups.get(group) {
            None => return Err(invalid(format!("invalid group reference {group}"))),
            Some(None) => return Err(invalid("cannot refer to an open group".to_owned())),
            Some(Some(width)) => *width,
        };
        self.check_behind(group, at)?;
        self.backtracks = true;
        self.write(format_args!("(?:\\{group})"));
        Ok(Element::ordinary(width))
    }

    /// Refuses a look-behind that refers to a group within itself.
    pub(super) fn check_behind(&self, group: usize, at: usize) -> Result<(), PatternError> {
        let reason = match self.behind {
            Some(_) if self.groups.get(group) == Some(&None) => "cannot refer to an open group",
            Some(first) if group >= first => {
                "cannot refer to group defined in the same lookbehind subpattern"
            }
            _ => return Ok(()),
        };
        Err(PatternError::Invalid { reason: reason.to_owned(), at })
    }

    fn boundary(&mut self, escape: char, flags: Flags) {
        self.has_boundaries = true;
        let word = Class::of('w').map(|class| class.written(flags)).unwrap_or_default();
        match (self.boundary, escape) {
            (Boundary::Engine, 'b') => self.written.push_str(r"\b"),
            (Boundary::Engine, _) => self.written.push_str(r"\B"),
            (Boundary::Spelled, 'b') => {
                self.write(format_args!("(?-i:(?<={word})(?!{word})|(?<!{word})(?={word}))"));
            }
            // In an empty text Python sees no boundary and no lack of one either.
            (Boundary::Spelled, _) => self
                .write(format_args!(r"(?-i:(?<={word})(?={word})|(?<!{word})(?!{word})(?!\A\z))")),
        }
    }

    fn code_point(&mut self, code: u32, flags: Flags) {
        match char::from_u32(code) {
            Some(character) => self.written.push_str(&set::literal(character, flags)),
            // Half of a surrogate pair; no text has one.
            None => self.written.push_str(set::NOTHING),
        }
    }

    fn bad_escape(&self, character: char) -> PatternError {
        self.invalid(format!("bad escape \\{character}"))
    }
}
