//! What is in parentheses, and the flags that stand there.

use super::{Element, Flags, Translator, Width};
use crate::source::builtin::python_regex::PatternError;

/// A group of flags, `(?i)` or the beginning of `(?i:…)`.
struct FlagGroup {
    add: Flags,
    remove: Flags,
    /// Whether a type of text is among those to add: `a` or `u`.
    kind: bool,
    scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// The whole pattern.
    Pattern,
    /// What follows the colon.
    Group,
}

impl Translator {
    /// Reads the flags that a pattern may start with; they hold for all of it.
    pub(super) fn leading_flags(&mut self) -> Result<Flags, PatternError> {
        let mut flags = Flags::default();
        let mut unicode = false;
        loop {
            let start = self.at;
            if flags.has(Flags::VERBOSE)
                && let Some(character) = self.next()
                && self.insignificant(character)?
            {
                continue;
            }
            self.at = start;
            if !(self.eat('(') && self.eat('?')) {
                self.at = start;
                return Ok(flags);
            }
            match self.next() {
                Some('#') => self.comment(start)?,
                Some(letter) if flag(letter).is_some() => {
                    let group = self.flag_group(letter)?;
                    if group.scope == Scope::Group {
                        self.at = start;
                        return Ok(flags);
                    }
                    flags = flags.with(group.add);
                    unicode |= group.kind && !group.add.has(Flags::ASCII);
                    if unicode && flags.has(Flags::ASCII) {
                        return Err(self.invalid("the flags 'a' and 'u' are incompatible"));
                    }
                }
                _ => {
                    self.at = start;
                    return Ok(flags);
                }
            }
        }
    }

    /// Reads a group after its `(`; a comment is nothing.
    pub(super) fn group(
        &mut self,
        flags: Flags,
        depth: usize,
    ) -> Result<Option<Element>, PatternError> {
        let at = self.at - 1;
        if !self.eat('?') {
            return self.capture(flags, depth).map(Some);
        }
        let element = match self.next() {
            None => return Err(self.invalid("unexpected end of pattern")),
            Some('#') => {
                self.comment(at)?;
                return Ok(None);
            }
            Some(':') => Element::ordinary(self.enclosed("(?:", flags, depth)?),
            Some('>') => {
                self.backtracks = true;
                Element::ordinary(self.enclosed("(?>", flags, depth)?)
            }
            Some('=') => self.look("(?=", flags, depth)?,
            Some('!') => self.look("(?!", flags, depth)?,
            Some('<') => self.look_behind(flags, depth)?,
            Some('(') => self.conditional(flags, depth)?,
            Some('P') => self.named(flags, depth)?,
            Some(letter) if letter == '-' || flag(letter).is_some() => {
                let group = self.flag_group(letter)?;
                if group.scope == Scope::Pattern {
                    return Err(self.invalid("global flags not at the start of the expression"));
                }
                let base = if group.kind { flags.without(Flags::ASCII) } else { flags };
                let inner = base.with(group.add).without(group.remove);
                let opening = match (flags.folds(), inner.folds()) {
                    (false, true) => "(?i:",
                    (true, false) => "(?-i:",
                    _ => "(?:",
                };
                Element::ordinary(self.enclosed(opening, inner, depth)?)
            }
            Some(other) => return Err(self.invalid(format!("unknown extension ?{other}"))),
        };
        Ok(Some(element))
    }

    /// Reads the rest of a group and writes it whole.
    fn enclosed(
        &mut self,
        opening: &str,
        flags: Flags,
        depth: usize,
    ) -> Result<Width, PatternError> {
        self.written.push_str(opening);
        let width = self.alternatives(flags, depth + 1)?;
        self.close()?;
        Ok(width)
    }

    fn close(&mut self) -> Result<(), PatternError> {
        if !self.eat(')') {
            return Err(self.invalid("missing ), unterminated subpattern"));
        }
        self.written.push(')');
        Ok(())
    }

    fn capture(&mut self, flags: Flags, depth: usize) -> Result<Element, PatternError> {
        let group = self.groups.len();
        self.groups.push(None);
        let width = self.enclosed("(", flags, depth)?;
        self.groups[group] = Some(width);
        Ok(Element::ordinary(width))
    }

    fn look(&mut self, opening: &str, flags: Flags, depth: usize) -> Result<Element, PatternError> {
        self.backtracks = true;
        self.enclosed(opening, flags, depth)?;
        Ok(Element::ordinary(Width::ZERO))
    }

    fn look_behind(&mut self, flags: Flags, depth: usize) -> Result<Element, PatternError> {
        let opening = match self.next() {
            Some('=') => "(?<=",
            Some('!') => "(?<!",
            Some(other) => return Err(self.invalid(format!("unknown extension ?<{other}"))),
            None => return Err(self.invalid("unexpected end of pattern")),
        };
        self.backtracks = true;
        let outer = self.behind;
        self.behind = outer.or(Some(self.groups.len()));
        let width = self.enclosed(opening, flags, depth)?;
        self.behind = outer;
        if width.least != width.most {
            return Err(self.invalid("look-behind requires fixed-width pattern"));
        }
        Ok(Element::ordinary(Width::ZERO))
    }

    /// Reads `(?P<name>…)` or `(?P=name)` after its `P`.
    fn named(&mut self, flags: Flags, depth: usize) -> Result<Element, PatternError> {
        match self.next() {
            Some('<') => {
                let name = self.name('>')?;
                if self.names.contains_key(&name) {
                    return Err(self.invalid(format!("redefinition of group name '{name}'")));
                }
                self.names.insert(name, self.groups.len());
                self.capture(flags, depth)
            }
            Some('=') => {
                let at = self.at;
                let name = self.name(')')?;
                let Some(&group) = self.names.get(&name) else {
                    return Err(self.invalid(format!("unknown group name '{name}'")));
                };
                self.reference(group, at)
            }
            Some(other) => Err(self.invalid(format!("unknown extension ?P{other}"))),
            None => Err(self.invalid("unexpected end of pattern")),
        }
    }

    fn name(&mut self, end: char) -> Result<String, PatternError> {
        let name = self.until(end)?;
        let mut characters = name.chars();
        let valid = characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && characters.all(|character| character.is_alphanumeric() || character == '_');
        if valid { Ok(name) } else { Err(self.invalid("bad character in group name")) }
    }

    fn until(&mut self, end: char) -> Result<String, PatternError> {
        let rest = &self.source[self.at..];
        match rest.iter().position(|&character| character == end) {
            Some(0) => Err(self.invalid("missing group name")),
            Some(length) => {
                let text = rest[..length].iter().collect();
                self.at += length + 1;
                Ok(text)
            }
            None => Err(self.invalid(format!("missing {end}, unterminated name"))),
        }
    }

    /// Reads `(?(1)yes|no)` after its second parenthesis.
    fn conditional(&mut self, flags: Flags, depth: usize) -> Result<Element, PatternError> {
        let at = self.at;
        let group = self.condition()?;
        self.check_behind(group, at)?;
        self.asked.push((group, at));
        self.backtracks = true;
        let start = self.written.len();
        self.write(format_args!("(?({group})"));
        let empty = self.written.len();
        let mut width = self.branch(flags, depth + 1)?;
        if self.eat('|') {
            self.written.push('|');
            width = width.or(self.branch(flags, depth + 1)?);
            if self.peek() == Some('|') {
                return Err(self.invalid("conditional backref with more than two branches"));
            }
        } else {
            width = width.or(Width::ZERO);
        }
        if self.written[empty..].chars().all(|character| character == '|') {
            // Nothing either way; to the engine that would be the bare question.
            self.written.truncate(start);
            self.written.push_str("(?:");
        }
        self.close()?;
        Ok(Element::ordinary(width))
    }

    /// Reads which group a condition asks for.
    fn condition(&mut self) -> Result<usize, PatternError> {
        let digits = self.digits();
        if digits.is_empty() {
            let name = self.name(')')?;
            return match self.names.get(&name) {
                Some(&group) => Ok(group),
                None => Err(self.invalid(format!("unknown group name '{name}'"))),
            };
        }
        if !self.eat(')') {
            return Err(self.invalid("bad character in group name"));
        }
        match digits.parse() {
            Ok(0) => Err(self.invalid("bad group number")),
            Ok(group) => Ok(group),
            Err(_) => Err(self.invalid(format!("invalid group reference {digits}"))),
        }
    }

    fn comment(&mut self, at: usize) -> Result<(), PatternError> {
        loop {
            match self.commented()? {
                Some(')') => return Ok(()),
                Some(_) => {}
                None => {
                    let reason = "missing ), unterminated comment".to_owned();
                    return Err(PatternError::Invalid { reason, at });
                }
            }
        }
    }

    /// Reads flags up to their `)` or `:`; `first` was just read.
    fn flag_group(&mut self, first: char) -> Result<FlagGroup, PatternError> {
        let mut group = FlagGroup {
            add: Flags::default(),
            remove: Flags::default(),
            kind: false,
            scope: Scope::Group,
        };
        let mut unicode = false;
        let mut next = Some(first);
        while let Some(letter) = next.filter(|next| !matches!(next, '-' | ')' | ':')) {
            let Some(flag) = flag(letter) else { return Err(self.invalid("unknown flag")) };
            if letter == 'L' {
                return Err(self.invalid("the flag 'L' is for bytes patterns only"));
            }
            group.kind |= matches!(letter, 'a' | 'u');
            unicode |= letter == 'u';
            group.add = group.add.with(flag);
            if unicode && group.add.has(Flags::ASCII) {
                return Err(self.invalid("the flags 'a' and 'u' are incompatible"));
            }
            next = self.next();
        }
        match next {
            Some(')') => group.scope = Scope::Pattern,
            Some('-') => group.remove = self.removed_flags()?,
            Some(_) => {}
            None => return Err(self.invalid("missing -, : or )")),
        }
        if group.add.0 & group.remove.0 != 0 {
            return Err(self.invalid("a flag is turned on and off"));
        }
        Ok(group)
    }

    /// Reads the flags after a `-`, up to their `:`.
    fn removed_flags(&mut self) -> Result<Flags, PatternError> {
        let mut removed = Flags::default();
        loop {
            match self.next() {
                Some(':') if removed != Flags::default() => return Ok(removed),
                Some('a' | 'u' | 'L') => {
                    return Err(self.invalid("the flags 'a', 'u' and 'L' cannot be turned off"));
                }
                Some(letter) => match flag(letter) {
                    Some(flag) => removed = removed.with(flag),
                    None => return Err(self.invalid("unknown flag")),
                },
                None => return Err(self.invalid("missing flag")),
            }
        }
    }
}

/// Returns what a letter among the flags stands for; `u` and `L` change nothing by themselves.
fn flag(letter: char) -> Option<Flags> {
    Some(match letter {
        'i' => Flags::IGNORE_CASE,
        'm' => Flags::MULTILINE,
        's' => Flags::DOT_ALL,
        'x' => Flags::VERBOSE,
        'a' => Flags::ASCII,
        'u' | 'L' => Flags::default(),
        _ => return None,
    })
}
