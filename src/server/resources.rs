//! Artifacts as resources: listed, and read in pages.
//!
//! The protocol reads a resource whole (MCP 2026-07-28 §server/resources). So a long one is read
//! by addresses of its parts: an address with `?offset=` and `&limit=`, and each part names the
//! next one. A client only ever reaches what its own session has kept.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::model::{MetaObject, ReadResourceResult, ResourceContents};
use serde_json::{Value, json};

use crate::artifact::name::SCHEME;
use crate::artifact::{Area, ArtifactStore, Key, Listed};
use crate::tool::SessionId;

/// How many characters of a text are read, unless the client says otherwise.
const TEXT_PAGE: u64 = 50_000;
/// How many characters of a text are read at most.
const TEXT_MOST: u64 = 1_000_000;
/// How many bytes of anything else are read at most.
const BLOB_PAGE: u64 = 16 << 20;
/// The `_meta` key that says which part of a resource this is, and what the next one is called.
const PAGE_KEY: &str = "iris/page";

/// A part of an artifact that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    key: Key,
    offset: u64,
    limit: Option<u64>,
}

/// Lists what a session has kept, the youngest first.
pub(super) async fn list(
    artifacts: &Arc<ArtifactStore>,
    session: &SessionId,
) -> Result<Vec<Value>, ErrorData> {
    let (store, of) = (Arc::clone(artifacts), session.clone());
    let all = on_thread(move || store.list(of.as_str())).await.map_err(|error| {
        ErrorData::internal_error(format!("the artifacts cannot be listed: {error}"), None)
    })?;
    Ok(all.iter().map(resource).collect())
}

/// Says what addresses of artifacts look like.
pub(super) fn templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": format!("{SCHEME}{{kind}}/{{file}}{{?offset,limit}}"),
        "name": "artifact",
        "title": "Artifact",
        "description": "A result, image or file kept by this server. Long ones are read in parts: offset and limit count characters of texts and bytes of anything else, and `_meta[\"iris/page\"]` of a part has the address of the next one.",
    })]
}

/// Reads a part of an artifact of a session.
pub(super) async fn read(
    artifacts: &Arc<ArtifactStore>,
    session: &SessionId,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let part = Part::parse(uri).map_err(|problem| problem.of(uri))?;
    let (store, of, asked) = (Arc::clone(artifacts), session.clone(), uri.to_owned());
    let contents = on_thread(move || part.read(&store, of.as_str(), &asked)).await;
    match contents {
        Ok(contents) => Ok(ReadResourceResult::new(vec![contents])),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Problem::Missing.of(uri)),
        Err(error) => {
            let message = format!("the resource cannot be read: {error}");
            Err(ErrorData::internal_error(message, Some(json!({"uri": uri}))))
        }
    }
}

/// Why an address leads to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    Missing,
    Query,
}

impl Problem {
    fn of(self, uri: &str) -> ErrorData {
        let data = Some(json!({"uri": uri}));
        match self {
            Self::Missing => ErrorData::resource_not_found(
                "there is no such resource in this session; it may have been removed to make room for newer ones",
                data,
            ),
            Self::Query => ErrorData::invalid_params(
                "after the `?` of this resource only offset=NUMBER and limit=NUMBER can stand, the limit not 0",
                data,
            ),
        }
    }
}

impl Part {
    fn parse(uri: &str) -> Result<Self, Problem> {
        let (address, query) = match uri.split_once('?') {
            Some((address, query)) => (address, query),
            None => (uri, ""),
        };
        let key = Key::parse(address).ok_or(Problem::Missing)?;
        let mut part = Self { key, offset: 0, limit: None };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(Problem::Query)?;
            let value: u64 = value.parse().map_err(|_| Problem::Query)?;
            match name {
                "offset" => part.offset = value,
                "limit" if value > 0 => part.limit = Some(value),
                _ => return Err(Problem::Query),
            }
        }
        Ok(part)
    }

    fn read(
        &self,
        artifacts: &ArtifactStore,
        session: &str,
        uri: &str,
    ) -> io::Result<ResourceContents> {
        let mime_type = mime_type(&self.key);
        if is_text(&mime_type) {
            match self.read_text(artifacts, session, uri, &mime_type) {
                // A published file may be called what it likes.
                Err(error) if error.kind() == ErrorKind::InvalidData => {}
                read => return read,
            }
        }
        let limit = self.limit.unwrap_or(BLOB_PAGE).min(BLOB_PAGE);
        let (bytes, size) = artifacts.bytes(session, &self.key, self.offset, limit)?;
        let next_offset = self.offset.saturating_add(bytes.len() as u64);
        let meta = self.meta(next_offset, next_offset < size, Some(size));
        Ok(ResourceContents::blob(STANDARD.encode(bytes), uri)
            .with_mime_type(mime_type)
            .with_meta(meta))
    }

    fn read_text(
        &self,
        artifacts: &ArtifactStore,
        session: &str,
        uri: &str,
        mime_type: &str,
    ) -> io::Result<ResourceContents> {
        let limit = self.limit.unwrap_or(TEXT_PAGE).min(TEXT_MOST);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let page = artifacts.page(session, &self.key, self.offset, limit)?;
        let meta = self.meta(page.next_offset, page.has_more, None);
        Ok(ResourceContents::text(page.content, uri).with_mime_type(mime_type).with_meta(meta))
    }

    /// Says which part this is; nothing of one that is all there is.
    fn meta(&self, next_offset: u64, has_more: bool, size: Option<u64>) -> MetaObject {
        let mut page = json!({
            "unit": if size.is_some() { "bytes" } else { "characters" },
            "offset": self.offset,
            "next_offset": next_offset,
            "has_more": has_more,
        });
        if let Some(size) = size {
            page["size"] = size.into();
        }
        if has_more {
            let limit = self.limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
            page["next"] = format!("{}?offset={next_offset}{limit}", self.key).into();
        }
        let mut meta = MetaObject::new();
        meta.0.insert(PAGE_KEY.to_owned(), page);
        meta
    }
}

fn resource(listed: &Listed) -> Value {
    let Listed { key, size_bytes, used: _ } = listed;
    let title = match key.area() {
        Area::Images => "An image",
        Area::Results => match key.file().split_once('.').map(|(_, ending)| ending) {
            Some("mcp.json") => "The whole result of an upstream server",
            Some("txt" | "model.txt") => "The text of a result",
            _ => "A published file",
        },
    };
    json!({
        "uri": key.uri(),
        "name": key.file(),
        "title": title,
        "mimeType": mime_type(key),
        "size": size_bytes,
    })
}

/// Returns the media type of an artifact, by its name.
pub(super) fn mime_type(key: &Key) -> String {
    mime_guess::from_path(key.file()).first_or_octet_stream().essence_str().to_owned()
}

fn is_text(mime_type: &str) -> bool {
    let (kind, form) = mime_type.split_once('/').unwrap_or((mime_type, ""));
    kind == "text"
        || ["json", "xml", "yaml", "x-yaml", "toml", "javascript", "sql"].contains(&form)
        || ["+json", "+xml", "+yaml"].iter().any(|suffix| form.ends_with(suffix))
}

async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_name_a_part() {
        let key = Key::parse("iris-artifact://results/id_63-ab.txt").unwrap();
        let part = |offset, limit| Ok(Part { key: key.clone(), offset, limit });
        for (query, expected) in [
            ("", part(0, None)),
            ("?", part(0, None)),
            ("?offset=7", part(7, None)),
            ("?offset=7&limit=9", part(7, Some(9))),
            ("?limit=9", part(0, Some(9))),
            ("?limit=0", Err(Problem::Query)),
            ("?offset=-1", Err(Problem::Query)),
            ("?offset", Err(Problem::Query)),
            ("?other=1", Err(Problem::Query)),
            ("?offset=99999999999999999999", Err(Problem::Query)),
        ] {
            assert_eq!(Part::parse(&format!("{key}{query}")), expected, "{query}");
        }
        assert_eq!(Part::parse("iris-artifact://results/../x"), Err(Problem::Missing));
        assert_eq!(Part::parse("file:///etc/passwd"), Err(Problem::Missing));
    }

    #[test]
    fn texts_are_known_by_their_type() {
        for text in ["text/plain", "text/markdown", "application/json", "image/svg+xml"] {
            assert!(is_text(text), "{text}");
        }
        for other in ["image/png", "application/pdf", "application/octet-stream"] {
            assert!(!is_text(other), "{other}");
        }
    }
}
