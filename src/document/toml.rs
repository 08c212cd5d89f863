//! TOML, by the `toml` crate.

use serde_json::Number;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::source::Source;
use super::{DocumentError, Key, Kind, Node};

pub(super) fn parse(source: &Source) -> Result<Node, DocumentError> {
    let table = DeTable::parse(source.text()).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        source.error(source.position(start), error.message().to_owned())
    })?;
    // A table's span is where its header stands; the document itself begins at the top.
    let position = source.position(0);
    source.check_depth(Node::new(position, mapping(source, table.into_inner())?))
}

fn node(source: &Source, value: Spanned<DeValue<'_>>) -> Result<Node, DocumentError> {
    let span = value.span();
    let position = source.position(span.start);
    let kind = match value.into_inner() {
        DeValue::Boolean(flag) => Kind::Bool(flag),
        DeValue::String(text) => Kind::String(text.into_owned()),
        DeValue::Integer(integer) => {
            let value = i64::from_str_radix(integer.as_str(), integer.radix());
            let value = value.map_err(|_| source.error(position, "the number is too large"))?;
            Kind::Number(Number::from(value))
        }
        DeValue::Float(float) => {
            let finite = float.as_str().parse().ok().and_then(Number::from_f64);
            let finite = finite
                .ok_or_else(|| source.error(position, "`inf` and `nan` are not finite numbers"))?;
            Kind::Number(finite)
        }
        // Nothing we read is a date; as text it is at least not lost.
        DeValue::Datetime(datetime) => Kind::String(datetime.to_string()),
        DeValue::Array(array) => {
            let items = array.into_iter().map(|item| node(source, item));
            Kind::Sequence(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => mapping(source, table)?,
    };
    Ok(Node::new(position, kind))
}

fn mapping(source: &Source, table: DeTable<'_>) -> Result<Kind, DocumentError> {
    let mut entries: Vec<_> = table.into_iter().collect();
    // The crate's tables are sorted by name.
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries.into_iter().map(|(key, value)| {
        let position = source.position(key.span().start);
        let key = Key { text: key.into_inner().into_owned(), position };
        Ok((key, node(source, value)?))
    });
    Ok(Kind::Mapping(entries.collect::<Result<_, _>>()?))
}
