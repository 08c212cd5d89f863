//! Which skills there are: the folders directly below a root that have a good `SKILL.md`.
//!
//! Every folder that is none is told with its reason. A link may stand in the place of a folder or
//! file as long as what it leads to is below the same root and not hidden there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::front_matter::{DESCRIPTION_CHARS, FrontMatter, FrontMatterError};
use super::text::{self, ReadError};
use super::{Code, SKILL_FILE, diagnostic};
use crate::registry::Diagnostic;
use crate::workspace::{Is, Kind, PathError, ResolvedPath, Seen, Stamp, Workspace, one_line};

/// The most skills below one root.
pub(super) const MOST_SKILLS: usize = 1_000;
/// The most entries of a root that are looked at.
const MOST_ENTRIES: usize = 10_000;
/// The most characters that are repeated of a name that is none.
const SHOWN_CHARS: usize = 64;

/// A skill as it was found.
#[derive(Clone, Debug)]
pub(super) struct Skill {
    /// The name of its folder.
    pub(super) name: String,
    /// What its front matter says it is for, cut to what is shown.
    pub(super) description: String,
    /// All that its front matter says.
    pub(super) front_matter: FrontMatter,
    /// The digest of all of its text; another one is another text.
    pub(super) digest: String,
    /// Which of the roots it is below, and where that is.
    pub(super) root: (usize, ResolvedPath),
    /// Where its text is.
    pub(super) file: ResolvedPath,
}

/// All skills by root and name, and what is wrong with what is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    pub(super) skills: Vec<Arc<Skill>>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Looks for skills, and again without reading what has not changed.
#[derive(Debug)]
pub(super) struct Scanner {
    workspace: Arc<Workspace>,
    roots: Vec<String>,
    known: BTreeMap<(usize, OsString), Known>,
}

/// What is known of one folder.
#[derive(Debug)]
struct Known {
    sign: Sign,
    /// Whether the sign was the same twice: a file that was written at this very moment may be
    /// written again without another time.
    is_settled: bool,
    judged: Judged,
}

/// What changes with every change of a folder or of its `SKILL.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sign {
    folder: Option<(PathBuf, Option<Stamp>)>,
    file: Option<(PathBuf, Option<Stamp>)>,
}

/// What a folder turned out to be.
#[derive(Clone, Debug, Default)]
struct Judged {
    skill: Option<Arc<Skill>>,
    diagnostics: Vec<Diagnostic>,
}

impl PartialEq for Skill {
    fn eq(&self, other: &Self) -> bool {
        let file = |skill: &Self| skill.file.absolute().to_owned();
        self.name == other.name && self.digest == other.digest && file(self) == file(other)
    }
}

impl Known {
    /// Says whether a skill has the very text that it was found with.
    fn has_same_text(&self, workspace: &Workspace) -> bool {
        self.judged.skill.as_ref().is_some_and(|skill| {
            text::read(workspace, &skill.file).is_ok_and(|read| read.digest == skill.digest)
        })
    }
}

impl Scanner {
    pub(super) fn new(workspace: Arc<Workspace>, roots: Vec<String>) -> Self {
        Self { workspace, roots, known: BTreeMap::new() }
    }

    /// Looks at every folder, and reads those that are new or changed.
    pub(super) fn scan(&mut self) -> Found {
        let (mut found, mut known) = (Found::default(), BTreeMap::new());
        for (number, text) in self.roots.iter().enumerate() {
            let root = match root(&self.workspace, text) {
                Ok(root) => root,
                Err(missing) => {
                    found.diagnostics.push(missing);
                    continue;
                }
            };
            let (names, more) = children(&self.workspace, &root);
            found.diagnostics.extend(more);
            for name in names {
                let key = (number, name);
                let before = self.known.remove(&key);
                let now = look(&self.workspace, (number, &root), &key.1, before);
                found.skills.extend(now.judged.skill.clone());
                found.diagnostics.extend(now.judged.diagnostics.iter().cloned());
                known.insert(key, now);
            }
        }
        self.known = known;
        let later = without_duplicates(&mut found.skills, &self.roots);
        found.diagnostics.extend(later);
        found
    }
}

/// Finds the skill of one name, as it is now.
pub(super) fn find(workspace: &Workspace, roots: &[String], name: &str) -> Option<Arc<Skill>> {
    roots.iter().enumerate().find_map(|(number, text)| {
        let root = root(workspace, text).ok()?;
        judge(workspace, (number, &root), OsStr::new(name)).skill
    })
}

/// Returns where the text of a known skill is now, if that is still below its root.
pub(super) fn file_of(workspace: &Workspace, skill: &Skill) -> Option<ResolvedPath> {
    let folder = folder_of(workspace, skill)?;
    let file = workspace.resolve_in(&folder, OsStr::new(SKILL_FILE)).ok()?;
    is_in(&skill.root.1, &file).then_some(file)
}

/// Returns where a known skill is now, if that is still below its root.
pub(super) fn folder_of(workspace: &Workspace, skill: &Skill) -> Option<ResolvedPath> {
    below(workspace, &skill.root.1, OsStr::new(&skill.name)).ok()
}

/// Returns the folder that a root is.
fn root(workspace: &Workspace, text: &str) -> Result<ResolvedPath, Diagnostic> {
    let missing = || {
        let message =
            format!("there is no folder of skills at {}, or it cannot be read", one_line(text));
        Diagnostic { field: Some("root".to_owned()), ..diagnostic(Code::RootMissing, message) }
    };
    let root = workspace.resolve(text).map_err(|_| missing())?;
    match workspace.kind(&root) {
        Ok(Some(Kind::Directory)) => Ok(root),
        _ => Err(missing()),
    }
}

/// Returns the names below a root that may be skills, and what is wrong with the root.
fn children(workspace: &Workspace, root: &ResolvedPath) -> (Vec<OsString>, Option<Diagnostic>) {
    let place = root.absolute().display().to_string();
    let (seen, mut is_more) = match workspace.seen(root, MOST_ENTRIES) {
        Ok(seen) => seen,
        Err(error) => {
            let message = format!("the folder of skills cannot be listed: {error}");
            let missing = Diagnostic {
                field: Some("root".to_owned()),
                place: Some(place),
                ..diagnostic(Code::RootMissing, message)
            };
            return (Vec::new(), Some(missing));
        }
    };
    let may_be = |seen: &Seen| seen.is != Is::Other && !is_hidden(&seen.name);
    let mut names: Vec<OsString> = seen.into_iter().filter(may_be).map(|seen| seen.name).collect();
    is_more |= names.len() > MOST_SKILLS;
    names.truncate(MOST_SKILLS);
    let more = is_more.then(|| {
        let message = format!("there are more than {MOST_SKILLS} folders; the rest is left out");
        Diagnostic { place: Some(place), ..diagnostic(Code::Invalid, message) }
    });
    (names, more)
}

/// Looks at one folder; what is known of it counts as long as it has not changed.
fn look(
    workspace: &Workspace,
    root: (usize, &ResolvedPath),
    name: &OsStr,
    before: Option<Known>,
) -> Known {
    let sign = sign(workspace, root.1, name);
    let is_same = before.as_ref().is_some_and(|known| known.sign == sign);
    let judged = match before {
        Some(known) if is_same && (known.is_settled || known.has_same_text(workspace)) => {
            return Known { is_settled: true, ..known };
        }
        before => {
            let now = judge(workspace, root, name);
            let was = before.map(|known| known.judged).filter(|was| was.skill.is_some());
            // Somebody may be in the middle of writing it: it is bad once it stays so.
            was.filter(|_| !is_same && now.skill.is_none()).unwrap_or(now)
        }
    };
    Known { sign, is_settled: is_same, judged }
}

fn sign(workspace: &Workspace, root: &ResolvedPath, name: &OsStr) -> Sign {
    let stamped =
        |path: &ResolvedPath| (path.absolute().to_owned(), workspace.stamp(path).ok().flatten());
    let folder = workspace.resolve_in(root, name).ok();
    let file = folder.as_ref().and_then(|it| workspace.resolve_in(it, OsStr::new(SKILL_FILE)).ok());
    Sign { folder: folder.as_ref().map(stamped), file: file.as_ref().map(stamped) }
}

/// Decides what the thing of this name below a root is.
fn judge(workspace: &Workspace, root: (usize, &ResolvedPath), name: &OsStr) -> Judged {
    let place = root.1.absolute().join(name);
    let shown: String = one_line(&name.to_string_lossy()).chars().take(SHOWN_CHARS).collect();
    let told = |code, message: String, place: &Path| Diagnostic {
        wire_name: Some(shown.clone()),
        place: Some(place.display().to_string()),
        ..diagnostic(code, message)
    };
    let folder = below(workspace, root.1, name);
    match folder.as_ref().map(|folder| workspace.kind(folder)) {
        // What a link leads to is not looked at outside; it may well be a folder.
        Ok(Ok(Some(Kind::Directory))) | Err(_) => {}
        Ok(Ok(_)) => return Judged::default(),
        Ok(Err(error)) => {
            let message = format!("left out: the folder cannot be reached: {error}");
            return told(Code::Invalid, message, &place).into();
        }
    }
    let Some(name) = name.to_str().filter(|name| is_kebab(name)) else {
        let message = "left out: a skill's folder is called by lower-case words joined by hyphens, such as `review-python`";
        return told(Code::InvalidName, message.to_owned(), &place).into();
    };
    let skill = folder.map_err(Bad::of).and_then(|folder| read(workspace, root, name, &folder));
    match skill {
        Ok((skill, remarks)) => {
            let place = skill.file.absolute().to_owned();
            let diagnostics = remarks.into_iter().map(|(code, remark)| told(code, remark, &place));
            Judged { diagnostics: diagnostics.collect(), skill: Some(Arc::new(skill)) }
        }
        Err(Bad { code, reason, about }) => {
            let file = place.join(SKILL_FILE);
            let message = format!("left out: {reason}");
            let bad = match about {
                About::Folder => told(code, message, &place),
                About::Text => told(code, message, &file),
                About::Place(at) => {
                    let place = Some(format!("{}:{at}", file.display()));
                    Diagnostic { place, ..told(code, message, &file) }
                }
            };
            bad.into()
        }
    }
}

/// Why a folder is no skill.
struct Bad {
    code: Code,
    reason: String,
    about: About,
}

/// What of a folder is wrong.
enum About {
    Folder,
    Text,
    /// At a line and column of its text.
    Place(String),
}

impl Bad {
    fn of(error: PathError) -> Self {
        let reason = match error {
            PathError::Outside { .. } => {
                "it leads out of the folder of skills, or to something hidden in it".to_owned()
            }
            error => error.to_string(),
        };
        Self { code: Code::Invalid, reason, about: About::Folder }
    }

    fn in_file(reason: impl Into<String>, at: Option<String>) -> Self {
        Self {
            code: Code::Invalid,
            reason: reason.into(),
            about: at.map_or(About::Text, About::Place),
        }
    }
}

/// Reads the skill that is in a folder, and says what about it is odd.
fn read(
    workspace: &Workspace,
    (number, root): (usize, &ResolvedPath),
    name: &str,
    folder: &ResolvedPath,
) -> Result<(Skill, Vec<(Code, String)>), Bad> {
    let unlisted = |error: std::io::Error| {
        let reason = format!("the folder cannot be listed: {error}");
        Bad { code: Code::Invalid, reason, about: About::Folder }
    };
    if !workspace.has_entry(folder, SKILL_FILE).map_err(unlisted)? {
        let reason = format!("the folder has no file called exactly {SKILL_FILE}");
        return Err(Bad { code: Code::MissingFile, reason, about: About::Folder });
    }
    let outside = || Bad::in_file(ReadError::Outside.to_string(), None);
    let file = workspace.resolve_in(folder, OsStr::new(SKILL_FILE)).map_err(|_| outside())?;
    if !is_in(root, &file) {
        return Err(outside());
    }
    let text::Read { text, digest, .. } =
        text::read(workspace, &file).map_err(|error| Bad::in_file(error.to_string(), None))?;
    let front_matter = FrontMatter::read(file.absolute(), &text).map_err(bad_front_matter)?;
    let Some(description) = front_matter.description() else {
        return Err(Bad::in_file(undescribed(&text), None));
    };
    let mut remarks = Vec::new();
    if description.is_cut {
        let remark = format!(
            "its description has more than {DESCRIPTION_CHARS} characters and was cut to that"
        );
        remarks.push((Code::DescriptionTruncated, remark));
    }
    let declared = front_matter.fields.get("name").filter(|declared| *declared != name);
    if let Some(declared) = declared {
        let declared: String = one_line(&declared.to_string()).chars().take(SHOWN_CHARS).collect();
        let remark =
            format!("its front matter has the name {declared}; the folder's name `{name}` counts");
        remarks.push((Code::NameMismatch, remark));
    }
    let skill = Skill {
        name: name.to_owned(),
        description: description.text,
        front_matter,
        digest,
        root: (number, root.clone()),
        file,
    };
    Ok((skill, remarks))
}

fn bad_front_matter(error: FrontMatterError) -> Bad {
    let at = error.place();
    Bad::in_file(error.to_string(), at)
}

/// Says why a text has no description.
fn undescribed(text: &str) -> &'static str {
    if text.starts_with('\u{feff}') {
        "the file begins with a byte order mark, so that its first line is not `---`; save it without one"
    } else if text.starts_with("---") {
        "its front matter has no `description` that is a text and not blank"
    } else {
        "it has no front matter: the first line is not `---`, so there is no `description`"
    }
}

/// Resolves a name below a root; what it leads to must be below the root as well.
fn below(
    workspace: &Workspace,
    root: &ResolvedPath,
    name: &OsStr,
) -> Result<ResolvedPath, PathError> {
    let folder = workspace.resolve_in(root, name)?;
    if is_in(root, &folder) && folder.absolute() != root.absolute() {
        return Ok(folder);
    }
    let path = name.to_string_lossy().into_owned();
    Err(PathError::Outside { path, root: root.absolute().display().to_string() })
}

/// Says whether a path is in a folder, and not hidden there.
///
/// What is hidden stays so if a link gives it another name. Two dots are another matter: so a
/// mounted volume of Kubernetes calls the folders that all of its visible names are links into.
pub(super) fn is_in(folder: &ResolvedPath, path: &ResolvedPath) -> bool {
    let inside = path.absolute().strip_prefix(folder.absolute());
    let leads_to_hidden = |path: &Path| {
        path.iter().any(|name| is_hidden(name) && !name.as_bytes().starts_with(b".."))
    };
    inside.is_ok_and(|inside| !leads_to_hidden(inside))
}

/// Says whether a name is a hidden one.
pub(super) fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".")
}

/// Says whether a name is lower-case words of letters and digits, joined by hyphens.
fn is_kebab(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit())
    };
    name.split('-').all(is_word)
}

/// Takes out the skills whose name one of an earlier root has.
fn without_duplicates(skills: &mut Vec<Arc<Skill>>, roots: &[String]) -> Vec<Diagnostic> {
    let mut winners: BTreeMap<String, Arc<Skill>> = BTreeMap::new();
    let mut losers = Vec::new();
    skills.retain(|skill| match winners.get(&skill.name) {
        None => {
            winners.insert(skill.name.clone(), Arc::clone(skill));
            true
        }
        Some(winner) => {
            let root = roots.get(winner.root.0).map_or("", String::as_str);
            let message = format!("left out: the skill of the same name in {root} comes first");
            losers.push(Diagnostic {
                wire_name: Some(skill.name.clone()),
                place: Some(skill.file.absolute().display().to_string()),
                ..diagnostic(Code::Duplicate, message)
            });
            false
        }
    });
    losers
}

impl From<Diagnostic> for Judged {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { skill: None, diagnostics: vec![diagnostic] }
    }
}

#[cfg(test)]
mod tests;
