//! JSON5, by `jsonc-parser`.

use std::collections::HashMap;

use jsonc_parser::ast::{Object, ObjectPropName, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, parse_to_ast};
use serde_json::Number;

use super::source::Source;
use super::{DocumentError, Key, Kind, Node};

/// JSON5 has all the parser's liberties but the one of leaving out commas.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: true,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: true,
    allow_hexadecimal_numbers: true,
    allow_unary_plus_numbers: true,
    allow_bare_decimal_point_numbers: true,
    allow_non_finite_numbers: true,
    allow_extended_string_escapes: true,
};

pub(super) fn parse(source: &Source) -> Result<Node, DocumentError> {
    let parsed = parse_to_ast(source.text(), &CollectOptions::default(), &OPTIONS);
    let parsed = parsed.map_err(|error| {
        let message = error.kind().to_string();
        let position = source.position(error.range().start);
        source.error(position, lower_first(&message)).with_hint(hint(error.kind()))
    })?;
    match parsed.value {
        Some(value) => source.check_depth(node(source, value)?),
        None => Err(source.error(source.position(0), "the file is empty")),
    }
}

fn node(source: &Source, value: Value<'_>) -> Result<Node, DocumentError> {
    let position = source.position(value.start());
    let kind = match value {
        Value::NullKeyword(_) => Kind::Null,
        Value::BooleanLit(literal) => Kind::Bool(literal.value),
        Value::StringLit(literal) => Kind::String(literal.value.into_owned()),
        Value::NumberLit(literal) => {
            let number = number(literal.value);
            Kind::Number(number.map_err(|message| source.error(position, message))?)
        }
        Value::Array(array) => {
            let items = array.elements.into_iter().map(|item| node(source, item));
            Kind::Sequence(items.collect::<Result<_, _>>()?)
        }
        Value::Object(object) => mapping(source, object)?,
    };
    Ok(Node::new(position, kind))
}

fn mapping(source: &Source, object: Object<'_>) -> Result<Kind, DocumentError> {
    let mut seen = HashMap::new();
    let mut entries = Vec::with_capacity(object.properties.len());
    for property in object.properties {
        let position = source.position(property.name.start());
        let text = match property.name {
            ObjectPropName::String(literal) => literal.value.into_owned(),
            ObjectPropName::Word(literal) => literal.value.to_owned(),
        };
        if let Some(first) = seen.insert(text.clone(), position) {
            return Err(source.duplicate(position, &text, first));
        }
        entries.push((Key { text, position }, node(source, property.value)?));
    }
    Ok(Kind::Mapping(entries))
}

fn number(literal: &str) -> Result<Number, String> {
    let (negative, digits) = match literal.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, literal.strip_prefix('+').unwrap_or(literal)),
    };
    if matches!(digits, "Infinity" | "NaN") {
        return Err(format!("`{digits}` is not a finite number"));
    }
    let sign = if negative { "-" } else { "" };
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let text = match hexadecimal {
        Some(digits) => match u64::from_str_radix(digits, 16) {
            Ok(value) => format!("{sign}{value}"),
            Err(_) => return Err("the number is too large".to_owned()),
        },
        None => format!("{sign}{digits}"),
    };
    super::node::number(&text).ok_or_else(|| "the number is too large".to_owned())
}

fn hint(kind: &ParseErrorKind) -> Option<String> {
    // The parser takes `null_x` for a keyword and a rest, so quotes are the way out there too.
    let hint = match kind {
        ParseErrorKind::ExpectedColonAfterObjectKey => "put the key in quotes, or a colon after it",
        ParseErrorKind::UnexpectedWord | ParseErrorKind::UnexpectedToken => {
            "a text stands in quotes"
        }
        ParseErrorKind::ExpectedComma => "put a comma here, or close the bracket",
        ParseErrorKind::UnexpectedComma => "one comma is enough",
        ParseErrorKind::UnterminatedObject => "close the `{` that opens here with a `}`",
        ParseErrorKind::UnterminatedArray => "close the `[` that opens here with a `]`",
        ParseErrorKind::UnterminatedCommentBlock => "close the `/*` that opens here with a `*/`",
        ParseErrorKind::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            "close the quote that opens here"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

fn lower_first(message: &str) -> String {
    let mut characters = message.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}
