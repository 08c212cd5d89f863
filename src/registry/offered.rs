//! What all sources offer besides tools, and whose a name or an address is.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use url::Url;

use crate::relay::template::Template;
use crate::relay::{Entry, Kind, Offers, Prompt};

/// The offers of all sources, in the order of sources.
#[derive(Debug, Default)]
pub struct Offered {
    prompts: Vec<(usize, Prompt)>,
    names: HashMap<String, usize>,
    resources: Vec<Entry>,
    /// The source of each listed address; the first one that lists it.
    owners: HashMap<String, usize>,
    templates: Vec<Entry>,
    /// The sources of templates, which are also owned by the first one that lists them.
    patterns: Vec<(usize, String, Template)>,
    /// The sources that can be asked for a resource.
    readers: Vec<usize>,
    /// The sources that have skills.
    skilled: Vec<usize>,
    /// The folders of skills, which are their sources' with all that is in them.
    folders: Vec<(usize, String)>,
}

impl Offered {
    pub(super) fn build<'a>(sources: impl Iterator<Item = &'a Arc<Offers>>) -> Self {
        let mut offered = Self::default();
        let mut templates = HashSet::new();
        for (source, offers) in sources.enumerate() {
            for prompt in &offers.prompts {
                if !offered.names.contains_key(&prompt.name) {
                    offered.names.insert(prompt.name.clone(), offered.prompts.len());
                    offered.prompts.push((source, prompt.clone()));
                }
            }
            for resource in &offers.resources {
                let Some(uri) = id(resource, Kind::Resources) else { continue };
                if !offered.owners.contains_key(uri) {
                    offered.owners.insert(uri.to_owned(), source);
                    offered.resources.push(Arc::clone(resource));
                    let folder = uri.strip_suffix("SKILL.md").filter(|_| offers.skills);
                    offered.folders.extend(folder.map(|folder| (source, folder.to_owned())));
                }
            }
            for template in &offers.templates {
                let Some(text) = id(template, Kind::ResourceTemplates) else { continue };
                if templates.insert(text.to_owned()) {
                    offered.patterns.push((source, text.to_owned(), Template::parse(text)));
                    offered.templates.push(Arc::clone(template));
                }
            }
            if offers.reads {
                offered.readers.push(source);
            }
            if offers.skills {
                offered.skilled.push(source);
            }
        }
        offered
    }

    /// Returns all prompts, with their sources.
    pub fn prompts(&self) -> &[(usize, Prompt)] {
        &self.prompts
    }

    /// Returns all resources.
    pub fn resources(&self) -> &[Entry] {
        &self.resources
    }

    /// Returns all templates of resources.
    pub fn templates(&self) -> &[Entry] {
        &self.templates
    }

    /// Returns the prompt of a name, and its source.
    pub fn prompt(&self, name: &str) -> Option<(usize, &Prompt)> {
        let (source, prompt) = self.prompts.get(*self.names.get(name)?)?;
        Some((*source, prompt))
    }

    /// Returns whose an address or a template is: the first source that lists it, has the skill that
    /// it is in, or has a template that it fits.
    pub fn owner(&self, uri: &str) -> Option<usize> {
        let fitting = || {
            let named = self.patterns.iter().find(|(_, text, _)| text == uri);
            named.or_else(|| self.patterns.iter().find(|(.., template)| template.fits(uri)))
        };
        let within = || self.folders.iter().find(|(_, folder)| uri.starts_with(folder.as_str()));
        let listed = self.owners.get(uri).copied().or_else(|| within().map(|(source, _)| *source));
        listed.or_else(|| fitting().map(|(source, ..)| *source))
    }

    /// Returns whom to ask for an address that nobody lists: those with addresses of the same
    /// scheme and host first, then all others, in the order of sources.
    pub fn askable(&self, uri: &str) -> Vec<usize> {
        let place = place(uri);
        let listed = self.owners.iter().map(|(listed, source)| (listed.as_str(), *source));
        let patterns = self.patterns.iter().map(|(source, text, _)| (text.as_str(), *source));
        let kin: HashSet<usize> = listed
            .chain(patterns)
            .filter(|(listed, _)| place.is_some() && self::place(listed) == place)
            .map(|(_, source)| source)
            .collect();
        let mut sources = self.readers.clone();
        sources.sort_by_key(|source| !kin.contains(source));
        sources
    }

    /// Returns the sources that have skills.
    pub fn skilled(&self) -> &[usize] {
        &self.skilled
    }

    /// Returns whether clients see the same list.
    pub(super) fn is_same(&self, other: &Self, kind: Kind) -> bool {
        match kind {
            Kind::Prompts => self.prompts == other.prompts,
            Kind::Resources => self.resources == other.resources,
            Kind::ResourceTemplates => self.templates == other.templates,
        }
    }
}

fn id(entry: &Entry, kind: Kind) -> Option<&str> {
    entry.get(kind.id()).and_then(Value::as_str)
}

/// Returns the scheme and the host of an address.
fn place(uri: &str) -> Option<(String, String)> {
    let url = Url::parse(uri).ok()?;
    Some((url.scheme().to_owned(), url.host_str().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entries(key: &str, ids: &[&str]) -> Vec<Entry> {
        ids.iter().map(|id| Arc::new(json!({key: id}).as_object().unwrap().clone())).collect()
    }

    fn offers(resources: &[&str], templates: &[&str]) -> Arc<Offers> {
        Arc::new(Offers {
            prompts: Vec::new(),
            resources: entries("uri", resources),
            templates: entries("uriTemplate", templates),
            reads: true,
            skills: false,
        })
    }

    #[test]
    fn an_address_belongs_to_the_first_that_lists_it() {
        let sources = [
            offers(&["a://x/1"], &["b://{id}"]),
            offers(&["a://x/1", "b://2"], &["b://{id}", "c://h/{id}"]),
            Arc::default(),
        ];
        let offered = Offered::build(sources.iter());
        assert_eq!((offered.resources().len(), offered.templates().len()), (2, 2));
        for (uri, owner) in [
            ("a://x/1", Some(0)),
            ("b://2", Some(1)),
            ("b://3", Some(0)),
            ("b://{id}", Some(0)),
            ("c://h/{id}", Some(1)),
            ("a://x/2", None),
        ] {
            assert_eq!(offered.owner(uri), owner, "{uri}");
        }
    }

    #[test]
    fn what_is_in_the_folder_of_a_skill_is_its_sources() {
        let mut skills = (*offers(&["skill://a/SKILL.md"], &[])).clone();
        skills.skills = true;
        let plain = offers(&["skill://b/SKILL.md"], &["skill://{name}/x"]);
        let offered = Offered::build([plain, Arc::new(skills)].iter());
        assert_eq!(offered.skilled(), [1]);
        for (uri, owner) in [
            ("skill://a/SKILL.md", Some(1)),
            ("skill://a/x", Some(1)),
            ("skill://a", None),
            ("skill://b/x", Some(0)),
            ("skill://b/y", None),
        ] {
            assert_eq!(offered.owner(uri), owner, "{uri}");
        }
    }

    #[test]
    fn kin_is_asked_first() {
        let sources = [offers(&["a://x/1"], &[]), offers(&["b://y/1"], &[]), Arc::default()];
        let offered = Offered::build(sources.iter());
        assert_eq!(offered.askable("b://y/2"), [1, 0]);
        assert_eq!(offered.askable("b://z/2"), [0, 1]);
        assert_eq!(offered.askable("no address"), [0, 1]);
    }
}
