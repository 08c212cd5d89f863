//! The files of one skill as resources: their addresses, digests and contents (SEP-2640).
//!
//! Everything is looked at when it is asked for, so that an address, a digest and the bytes that
//! are read belong together unless somebody changes the file in between. Hidden files and what is in
//! hidden folders are not part of a skill, by whatever name, and a link counts only if it leads to a
//! file that is. What is part of it can be read, or else none of it is published.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use serde_json::{Map, Value, json};

use super::SKILL_FILE;
use super::front_matter::FrontMatter;
use super::scan::{self, Skill};
use super::stock::{Reckoned, Stock};
use super::text;
use crate::workspace::{Candidate, FileError, Found, ResolvedPath, Stamp, Walk, one_line};

/// How addresses of skills begin.
pub(super) const SCHEME: &str = "skill://";
/// The most files of a skill that is published (SEP-2640).
pub(super) const MOST_FILES: usize = 512;
/// The most bytes of all files of a skill that is published (SEP-2640).
pub(super) const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// The longest name of a skill that is published (SEP-2640).
pub(super) const MOST_NAME: usize = 64;
/// How many steps a walk through a skill may take.
const MOST_STEPS: usize = 20_000;
/// What a folder is said to be.
const FOLDER_TYPE: &str = "inode/directory";

/// A file of a skill.
#[derive(Clone, Debug)]
pub(super) struct SkillFile {
    /// Its address.
    pub(super) uri: String,
    /// The address, after that of the skill.
    tail: String,
    pub(super) path: ResolvedPath,
    stamp: Stamp,
}

/// Why a skill is not published, though it can be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unpublished {
    #[error("its front matter does not say `name: {0}`")]
    Unnamed(String),
    #[error("its name has more than {MOST_NAME} characters")]
    LongName,
    #[error("it has more than {MOST_FILES} files")]
    Files,
    #[error("its files have more than {MOST_BYTES} bytes")]
    Bytes,
    #[error("{} cannot be read", one_line(.0))]
    Unreadable(String),
    #[error("its {SKILL_FILE} is gone, or a link to what is no part of the skill")]
    NoText,
}

impl Unpublished {
    fn unreadable(path: &Path) -> Self {
        let path = path.display().to_string();
        Self::Unreadable(if path.is_empty() { "its folder".to_owned() } else { path })
    }
}

/// Returns the address of a skill's text.
pub(super) fn uri(name: &str) -> String {
    format!("{SCHEME}{name}/{SKILL_FILE}")
}

/// Returns the name of the skill that an address is in.
pub(super) fn name_in(uri: &str) -> Option<&str> {
    let rest = uri.strip_prefix(SCHEME)?;
    Some(rest.split_once('/').map_or(rest, |(name, _)| name))
}

/// Returns what `resources/list` says of a skill.
pub(super) fn listed(skill: &Skill) -> Map<String, Value> {
    let uri = uri(&skill.name);
    let entry = json!({
        "uri": uri,
        "name": skill.name,
        "description": skill.description,
        "mimeType": "text/markdown",
    });
    match entry {
        Value::Object(entry) => entry,
        _ => Map::new(),
    }
}

/// Says whether a skill's name is one to be published under.
pub(super) fn named(skill: &Skill) -> Result<(), Unpublished> {
    if skill.front_matter.name() != Some(&skill.name) {
        return Err(Unpublished::Unnamed(skill.name.clone()));
    }
    if skill.name.len() > MOST_NAME { Err(Unpublished::LongName) } else { Ok(()) }
}

/// Finds all files of a skill, by address.
pub(super) fn of(stock: &Stock, skill: &Skill) -> Result<Vec<SkillFile>, Unpublished> {
    named(skill)?;
    let workspace = stock.workspace();
    let gone = || Unpublished::unreadable(Path::new(""));
    let top = scan::folder_of(workspace, skill).ok_or_else(gone)?;
    let (mut files, mut bytes) = (Vec::new(), 0_u64);
    let mut walk = workspace.walk(&top).without(scan::is_hidden);
    for _ in 0..MOST_STEPS {
        let candidate = match walk.next() {
            None => {
                files.sort_by(|one: &SkillFile, other| one.uri.cmp(&other.uri));
                let has_text = files.iter().any(|file| file.tail == SKILL_FILE);
                return if has_text { Ok(files) } else { Err(Unpublished::NoText) };
            }
            Some(Found::File(candidate)) => candidate,
            Some(Found::Other) => continue,
            Some(Found::Unreadable(folder)) => {
                let path = folder.path.strip_prefix(top.relative()).unwrap_or(&folder.path);
                return Err(Unpublished::unreadable(path));
            }
        };
        let Some(file) = part(skill, &top, &walk, &candidate)? else { continue };
        bytes = bytes.saturating_add(file.stamp.size());
        files.push(file);
        if files.len() > MOST_FILES {
            return Err(Unpublished::Files);
        }
        if bytes > MOST_BYTES {
            return Err(Unpublished::Bytes);
        }
    }
    Err(Unpublished::Files)
}

/// Returns what the walk met, if it is part of the skill.
fn part(
    skill: &Skill,
    top: &ResolvedPath,
    walk: &Walk<'_>,
    candidate: &Candidate,
) -> Result<Option<SkillFile>, Unpublished> {
    if candidate.relative().file_name().is_none_or(scan::is_hidden) {
        return Ok(None);
    }
    let Some(path) = walk.resolve(candidate) else { return Ok(None) };
    if !scan::is_in(top, &path) {
        return Ok(None);
    }
    // Opened, since nothing else tells whether it can be.
    let stamp = match walk.workspace().open_unlinked(&path) {
        Ok(opened) => opened.stamp().ok(),
        Err(FileError::Unreadable { .. }) => None,
        // It is gone, or no file any more.
        Err(_) => return Ok(None),
    };
    let stamp = stamp.ok_or_else(|| Unpublished::unreadable(candidate.relative()))?;
    let tail = encoded(candidate.relative());
    let uri = format!("{SCHEME}{}/{tail}", skill.name);
    Ok(Some(SkillFile { uri, tail, path, stamp }))
}

/// Makes the entry of a skill in `skills/list`: what it says of itself, and all of its files.
pub(super) fn entry(stock: &Stock, skill: &Skill) -> Result<Value, Unpublished> {
    let files = of(stock, skill)?;
    let (mut resources, mut front_matter, mut total) = (Vec::new(), None, 0);
    for file in &files {
        let reckoned = if file.tail == SKILL_FILE {
            let read = text::read(stock.workspace(), &file.path);
            let read = read.map_err(|_| unreadable(file))?;
            front_matter = Some(said(skill, file, &read)?);
            Reckoned { digest: read.digest, size: read.text.len() as u64 }
        } else {
            reckon(stock, file)?
        };
        total += reckoned.size;
        resources.push(json!({"uri": file.uri, "digest": reckoned.digest, "size": reckoned.size}));
    }
    if total > MOST_BYTES {
        return Err(Unpublished::Bytes);
    }
    let front_matter = front_matter.ok_or(Unpublished::NoText)?;
    Ok(json!({
        "uri": uri(&skill.name),
        "frontmatter": front_matter.fields,
        "resources": resources,
    }))
}

/// Returns what a text says of its skill: as it was found, unless the text is another one by now.
fn said(skill: &Skill, file: &SkillFile, read: &text::Read) -> Result<FrontMatter, Unpublished> {
    if read.digest == skill.digest {
        return Ok(skill.front_matter.clone());
    }
    let now = FrontMatter::read(file.path.absolute(), &read.text).ok();
    let now = now.filter(|now| now.name() == Some(&skill.name) && now.description().is_some());
    now.ok_or_else(|| Unpublished::Unnamed(skill.name.clone()))
}

/// Returns the digest and size of a file; those that are known hold while its stamp does.
pub(super) fn reckon(stock: &Stock, file: &SkillFile) -> Result<Reckoned, Unpublished> {
    let path = file.path.absolute().to_owned();
    if let Some(known) = stock.reckoned(&path, file.stamp) {
        return Ok(known);
    }
    let bytes = text::bytes(stock.workspace(), &file.path, MOST_BYTES);
    let (bytes, _) = bytes.map_err(|_| unreadable(file))?;
    let of = Reckoned { digest: text::digest(&bytes), size: bytes.len() as u64 };
    stock.remember(path, file.stamp, of.clone());
    Ok(of)
}

/// Lists what is directly in a folder of a skill; nothing where the address is no folder's.
pub(super) fn directory(files: &[SkillFile], skill: &Skill, uri: &str) -> Option<Vec<Value>> {
    let top = format!("{SCHEME}{}", skill.name);
    let uri = uri.strip_suffix('/').unwrap_or(uri);
    let inside = format!("{uri}/");
    let is_top = uri == top;
    if !is_top && !inside.starts_with(&format!("{top}/")) {
        return None;
    }
    let (mut children, mut last) = (Vec::new(), None);
    for file in files {
        let Some(rest) = file.uri.strip_prefix(&inside) else { continue };
        let Some((folder, _)) = rest.split_once('/') else {
            children.push(child(skill, file, rest));
            continue;
        };
        // They are sorted, so that all of one folder come together.
        if last != Some(folder) {
            last = Some(folder);
            children.push(json!({
                "uri": format!("{inside}{folder}"),
                "name": decoded(folder),
                "mimeType": FOLDER_TYPE,
            }));
        }
    }
    (!children.is_empty()).then_some(children)
}

fn child(skill: &Skill, file: &SkillFile, name: &str) -> Value {
    if file.tail == SKILL_FILE {
        return Value::Object(listed(skill));
    }
    json!({"uri": file.uri, "name": decoded(name), "mimeType": mime_type(file), "size": file.stamp.size()})
}

/// Reads a file: as text where it is one, and else as base64.
pub(super) fn contents(stock: &Stock, file: &SkillFile) -> Result<Value, Unpublished> {
    let bytes = text::bytes(stock.workspace(), &file.path, MOST_BYTES);
    let (bytes, _) = bytes.map_err(|_| unreadable(file))?;
    let mut contents = json!({"uri": file.uri, "mimeType": mime_type(file)});
    match String::from_utf8(bytes) {
        Ok(text) => contents["text"] = text.into(),
        Err(error) => contents["blob"] = base64(error.as_bytes()).into(),
    }
    Ok(json!({"contents": [contents]}))
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn mime_type(file: &SkillFile) -> String {
    let name = file.path.absolute().file_name().unwrap_or_default();
    let known = mime_guess::from_path(Path::new(name)).first_or_octet_stream();
    known.essence_str().to_owned()
}

fn unreadable(file: &SkillFile) -> Unpublished {
    Unpublished::Unreadable(decoded(&file.tail))
}

/// Writes a path as the tail of an address (RFC 3986).
fn encoded(path: &Path) -> String {
    let mut text = String::new();
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        if !text.is_empty() {
            text.push('/');
        }
        for byte in name.as_bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(byte) {
                text.push(char::from(*byte));
            } else {
                // Writing to a string cannot fail.
                let _infallible = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

/// Returns what a part of an address stands for, to be shown.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = part.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let escaped =
            hex.filter(|_| *byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
