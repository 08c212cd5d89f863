//! What a YAML scalar means.
//!
//! Plain ones follow YAML 1.1 as `PyYAML`'s safe loader has it, since that is what the files are
//! written for: `yes` is a boolean, `0o17` and `1e3` are texts, `017` is fifteen and `1:30` is
//! ninety. Dates stay texts.

use saphyr_parser::{ScalarStyle, Tag};
use serde_json::Number;

use crate::document::Kind;
use crate::document::node::number;

/// Returns the value of a scalar, or why it has none.
pub(super) fn resolve(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Kind, String> {
    // `!` alone says nothing, as `PyYAML` has it.
    let says = |tag: &&Tag| !(tag.handle.is_empty() && tag.suffix == "!");
    match tag.filter(says) {
        None if style == ScalarStyle::Plain => plain(text),
        None => Ok(Kind::String(text.to_owned())),
        Some(tag) => tagged(text, tag),
    }
}

/// Returns the message about a tag that no safe loader knows.
pub(super) fn unknown_tag(tag: &Tag) -> String {
    format!("the tag `{}` has no meaning here", written(tag))
}

fn tagged(text: &str, tag: &Tag) -> Result<Kind, String> {
    let kind = match tag.suffix.as_str() {
        "str" => Some(Kind::String(text.to_owned())),
        "null" => Some(Kind::Null),
        "bool" => boolean(text).map(Kind::Bool),
        "int" => integer(text).transpose()?.map(Kind::Number),
        "float" => match integer(text).transpose()? {
            Some(number) => Some(Kind::Number(number)),
            None => float(text).transpose()?.map(Kind::Number),
        },
        _ => return Err(unknown_tag(tag)),
    };
    if !tag.is_yaml_core_schema() {
        return Err(unknown_tag(tag));
    }
    kind.ok_or_else(|| format!("the value does not have the form of its tag `{}`", written(tag)))
}

/// Returns a tag as it stands in the file.
fn written(tag: &Tag) -> String {
    let handle = if tag.is_yaml_core_schema() { "!!" } else { &tag.handle };
    format!("{handle}{}", tag.suffix)
}

fn plain(text: &str) -> Result<Kind, String> {
    if matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return Ok(Kind::Null);
    }
    if let Some(flag) = boolean(text) {
        return Ok(Kind::Bool(flag));
    }
    if let Some(number) = integer(text).or_else(|| float(text)) {
        return Ok(Kind::Number(number?));
    }
    Ok(Kind::String(text.to_owned()))
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// Reads an integer; a text of that form may still be too large.
fn integer(text: &str) -> Option<Result<Number, String>> {
    let (sign, digits) = split_sign(text);
    let only = |digits: &str, radix| {
        !digits.is_empty() && digits.chars().all(|c| c == '_' || c.is_digit(radix))
    };
    let parse = |digits: &str, radix| {
        let digits = digits.replace('_', "");
        u64::from_str_radix(&digits, radix).ok().and_then(|value| number(&format!("{sign}{value}")))
    };
    let value = if let Some(digits) = digits.strip_prefix("0b") {
        only(digits, 2).then(|| parse(digits, 2))
    } else if let Some(digits) = digits.strip_prefix("0x") {
        only(digits, 16).then(|| parse(digits, 16))
    } else if digits == "0" {
        Some(number("0"))
    } else if let Some(digits) = digits.strip_prefix('0') {
        only(digits, 8).then(|| parse(digits, 8))
    } else if digits.starts_with(|c: char| c.is_ascii_digit()) {
        match digits.split_once(':') {
            None => only(digits, 10).then(|| parse(digits, 10)),
            Some((first, rest)) => {
                (only(first, 10) && rest.split(':').all(is_sixtieth)).then(|| {
                    sixtieths(first, rest).and_then(|value| number(&format!("{sign}{value}")))
                })
            }
        }
    } else {
        None
    }?;
    Some(value.ok_or_else(|| "the number is too large".to_owned()))
}

/// Reads a number with a point; a text of that form may still be too large, or infinite.
fn float(text: &str) -> Option<Result<Number, String>> {
    let (sign, digits) = split_sign(text);
    if matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(Err(format!("`{text}` is not a finite number")));
    }
    let (whole, rest) = digits.split_once('.')?;
    let minutes = whole.split_once(':').filter(|(first, rest)| {
        first.starts_with(|c: char| c.is_ascii_digit())
            && first.chars().all(|c| c == '_' || c.is_ascii_digit())
            && rest.split(':').all(is_sixtieth)
    });
    let minutes = minutes.map(|(first, rest)| sixtieths(first, rest).unwrap_or(u64::MAX));
    let minutes = minutes.map(|whole| whole.to_string());
    let whole = minutes.as_deref().unwrap_or(whole);
    let (fraction, exponent) = match rest.split_once(['e', 'E']) {
        Some((fraction, exponent)) => (fraction, Some(exponent)),
        None => (rest, None),
    };
    let digits_or_bars = |text: &str| text.chars().all(|c| c == '_' || c.is_ascii_digit());
    let starts = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    // The exponent must have its sign, and without digits before the point no sign may stand.
    let formed = digits_or_bars(whole)
        && digits_or_bars(fraction)
        && (starts(whole) || (whole.is_empty() && sign.is_empty() && starts(fraction)))
        && exponent.is_none_or(|exponent| {
            exponent.strip_prefix(['+', '-']).is_some_and(|digits| {
                !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
            })
        });
    if !formed {
        return None;
    }
    let exponent = exponent.map(|exponent| format!("e{exponent}")).unwrap_or_default();
    let value = number(&format!("{sign}{whole}.{fraction}{exponent}").replace('_', ""));
    Some(value.ok_or_else(|| "the number is too large".to_owned()))
}

fn split_sign(text: &str) -> (&'static str, &str) {
    match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Returns whether a text is 0 to 59 in one or two digits.
fn is_sixtieth(text: &str) -> bool {
    match text.as_bytes() {
        [last] => last.is_ascii_digit(),
        [first, last] => matches!(first, b'0'..=b'5') && last.is_ascii_digit(),
        _ => false,
    }
}

fn sixtieths(first: &str, rest: &str) -> Option<u64> {
    rest.split(':').try_fold(first.replace('_', "").parse().ok()?, |value: u64, part| {
        value.checked_mul(60)?.checked_add(part.parse().ok()?)
    })
}
