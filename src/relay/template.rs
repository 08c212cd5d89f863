//! Templates of addresses (RFC 6570), as far as to say which addresses fit one.

/// A template, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// Text without separators, at least a character of it.
    Segment,
    /// Any text, or none.
    Rest,
    /// None, or any text after this character.
    After(char),
}

impl Template {
    /// Takes a template apart; what is no expression is literal.
    pub fn parse(template: &str) -> Self {
        let (mut parts, mut rest) = (Vec::new(), template);
        while let Some((literal, expression, after)) = split(rest) {
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            parts.push(match expression.chars().next() {
                Some('+' | '#') => Part::Rest,
                Some(first @ ('?' | '&' | '/' | '.' | ';')) => Part::After(first),
                _ => Part::Segment,
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Self(parts)
    }

    /// Returns whether an address may have been made of the template.
    ///
    /// The cost is the product of both lengths, whatever they are.
    pub fn fits(&self, uri: &str) -> bool {
        let chars: Vec<char> = uri.chars().collect();
        let mut ends = vec![false; chars.len() + 1];
        ends[0] = true;
        for part in &self.0 {
            ends = part.ends(&chars, &ends);
        }
        ends[chars.len()]
    }
}

/// Returns what is before the next expression, the expression, and what is after it.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let (literal, rest) = text.split_once('{')?;
    let (expression, after) = rest.split_once('}')?;
    Some((literal, expression, after))
}

impl Part {
    /// Returns where the part may end, by where it may begin.
    fn ends(&self, chars: &[char], begins: &[bool]) -> Vec<bool> {
        let mut ends = vec![false; begins.len()];
        match self {
            Self::Literal(literal) => {
                let literal: Vec<char> = literal.chars().collect();
                for begin in (0..begins.len()).filter(|begin| begins[*begin]) {
                    if chars[begin..].starts_with(&literal) {
                        ends[begin + literal.len()] = true;
                    }
                }
            }
            Self::Segment => {
                let mut inside = false;
                for (at, char) in chars.iter().enumerate() {
                    inside = (inside || begins[at]) && !matches!(char, '/' | '?' | '#');
                    ends[at + 1] = inside;
                }
            }
            Self::Rest => {
                let mut inside = false;
                for at in 0..begins.len() {
                    inside |= begins[at];
                    ends[at] = inside;
                }
            }
            Self::After(first) => {
                let mut inside = false;
                for at in 0..begins.len() {
                    ends[at] = inside || begins[at];
                    inside |= begins[at] && chars.get(at) == Some(first);
                }
            }
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_fits_or_does_not() {
        for (template, uri, fits) in [
            ("demo://text/{id}", "demo://text/1", true),
            ("demo://text/{id}", "demo://text/1/2", false),
            ("demo://text/{id}", "demo://text/", false),
            ("demo://text/{id}/data", "demo://text/é x/data", true),
            ("demo://{a}-{b}", "demo://1-2-3", true),
            ("file:///{+path}", "file:///a/b?c", true),
            ("file://{/path*}", "file:///a/b", true),
            ("x://y{?a,b}", "x://y", true),
            ("x://y{?a,b}", "x://y?a=1&b=/", true),
            ("x://y{?a,b}", "x://yz", false),
            ("x://plain", "x://plain", true),
            ("x://plain", "x://plainer", false),
            ("x://{", "x://{", true),
            ("{+any}", "", true),
        ] {
            assert_eq!(Template::parse(template).fits(uri), fits, "{template} {uri}");
        }
    }
}
