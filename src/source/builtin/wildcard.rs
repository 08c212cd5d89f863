//! Shell wildcards over paths: `*`, `?`, `[…]` in a name, `**` for any number of folders.

/// A pattern for a path, matched against its last components.
#[derive(Clone, Debug)]
pub(super) struct PathPattern {
    segments: Vec<Item<Vec<Item<One>>>>,
}

/// An element of a pattern.
#[derive(Clone, Debug)]
enum Item<T> {
    /// Any number of elements, also none.
    Any,
    /// One element like this.
    One(T),
}

/// What one character of a name must be.
#[derive(Clone, Debug)]
enum One {
    Anything,
    Character(char),
    Set { negated: bool, ranges: Vec<(char, char)> },
}

impl PathPattern {
    /// Reads a pattern; every text is one. `None` is the pattern that nothing can match.
    ///
    /// It may match anywhere below the folder it is used in: `*.py` finds `a/b.py` too. An empty
    /// pattern is `*`.
    pub(super) fn parse(pattern: &str) -> Option<Self> {
        if pattern.ends_with('/') {
            return None;
        }
        let mut segments = vec![Item::Any];
        segments.extend(pattern.split('/').filter(|name| !matches!(*name, "" | ".")).map(|name| {
            match name {
                "**" => Item::Any,
                name => Item::One(name_pattern(name)),
            }
        }));
        if segments.len() == 1 {
            segments.push(Item::One(vec![Item::Any]));
        }
        Some(Self { segments })
    }

    /// Returns whether a path, given as its components, matches.
    pub(super) fn matches(&self, path: &[Vec<char>]) -> bool {
        matches(&self.segments, path, |pattern, name| {
            matches(pattern, name, |one, character| one.is(*character))
        })
    }
}

impl One {
    fn is(&self, character: char) -> bool {
        match self {
            Self::Anything => true,
            Self::Character(wanted) => *wanted == character,
            Self::Set { negated, ranges } => {
                let inside = ranges.iter().any(|(low, high)| (*low..=*high).contains(&character));
                inside != *negated
            }
        }
    }
}

/// Matches a sequence; only the last [`Item::Any`] ever needs another try, so this is quick.
fn matches<P, T>(pattern: &[Item<P>], text: &[T], is: impl Fn(&P, &T) -> bool) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on when the present try fails: after the last `Any`, one element further.
    let mut retry = None;
    loop {
        match (pattern.get(p), text.get(t)) {
            (None, None) => return true,
            (Some(Item::Any), _) => {
                retry = Some((p + 1, t));
                p += 1;
            }
            (Some(Item::One(wanted)), Some(found)) if is(wanted, found) => {
                p += 1;
                t += 1;
            }
            (Some(Item::One(_)) | None, _) => match retry {
                Some((after, from)) if from < text.len() => {
                    retry = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                _ => return false,
            },
        }
    }
}

fn name_pattern(name: &str) -> Vec<Item<One>> {
    let characters: Vec<char> = name.chars().collect();
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        at += 1;
        items.push(match character {
            '*' => Item::Any,
            '?' => Item::One(One::Anything),
            '[' => match set(&characters[at..]) {
                Some((set, length)) => {
                    at += length;
                    Item::One(set)
                }
                None => Item::One(One::Character('[')),
            },
            other => Item::One(One::Character(other)),
        });
    }
    items
}

/// Reads a set after its `[`; returns it and its length, or nothing if it has no end.
fn set(rest: &[char]) -> Option<(One, usize)> {
    let negated = rest.first() == Some(&'!');
    let start = usize::from(negated);
    // A `]` right at the beginning is a member.
    let end = start + 1 + rest.get(start + 1..)?.iter().position(|&character| character == ']')?;
    let members = &rest[start..end];
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(&low) = members.get(at) {
        match (members.get(at + 1), members.get(at + 2)) {
            (Some('-'), Some(&high)) => {
                ranges.push((low, high));
                at += 3;
            }
            _ => {
                ranges.push((low, low));
                at += 1;
            }
        }
    }
    Some((One::Set { negated, ranges }, end + 1))
}

#[cfg(test)]
mod tests;
