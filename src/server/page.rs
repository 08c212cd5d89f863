//! Pages of lists, and the cursors between them.

use rmcp::ErrorData;
use serde_json::{Map, Value, json};

use super::project::for_era;
use crate::tool::Era;

/// The most entries on one page; many clients read only the first.
const PAGE_ENTRIES: usize = 2_000;
/// The most bytes of entries on one page.
const PAGE_BYTES: usize = 4_000_000;

/// Which page of which list a client asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page<'a> {
    /// The key of the list in its result.
    pub(super) key: &'static str,
    /// The version of the list.
    pub(super) version: u64,
    pub(super) cursor: Option<&'a str>,
    pub(super) era: Era,
}

impl Page<'_> {
    /// Makes the page of a list of so many entries.
    pub(super) fn of(
        self,
        length: usize,
        entry: impl Fn(usize) -> Value,
    ) -> Result<Value, ErrorData> {
        let Self { key, version, cursor, era } = self;
        let start = match cursor {
            Some(cursor) => offset(cursor, version, length)?,
            None => 0,
        };
        let mut page = Vec::new();
        let mut bytes = 0;
        for index in (start..length).take(PAGE_ENTRIES) {
            let entry = entry(index);
            bytes += entry.to_string().len();
            if bytes > PAGE_BYTES && !page.is_empty() {
                break;
            }
            page.push(entry);
        }
        let end = start + page.len();
        let mut reply = Map::from_iter([(key.to_owned(), Value::Array(page))]);
        if end < length {
            reply.insert("nextCursor".to_owned(), format!("{version}:{end}").into());
        }
        if era == Era::Modern {
            // What a client may see depends on who it is, and changes without notice.
            reply.insert("ttlMs".to_owned(), 0.into());
            reply.insert("cacheScope".to_owned(), "private".into());
        }
        for_era(&mut reply, era);
        if era == Era::Legacy {
            reply.shift_remove("_meta");
        }
        Ok(Value::Object(reply))
    }
}

/// Reads a cursor of ours; one for another snapshot of the list is refused, not misread.
fn offset(cursor: &str, version: u64, length: usize) -> Result<usize, ErrorData> {
    let refused = |message: &str| {
        let message = format!("{message}; start again without a cursor");
        Err(ErrorData::invalid_params(message, Some(json!({"cursor": cursor}))))
    };
    let Some((made_for, offset)) = cursor.split_once(':') else {
        return refused("this cursor is not one of ours");
    };
    match (made_for.parse::<u64>(), offset.parse::<usize>()) {
        (Ok(made_for), Ok(offset)) if made_for == version && offset <= length => Ok(offset),
        (Ok(_), Ok(_)) => refused("the list has changed since this cursor was given"),
        _ => refused("this cursor is not one of ours"),
    }
}
