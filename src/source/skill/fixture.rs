//! A workspace with skills, for tests.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use super::scan::Skill;
use super::stock::Stock;
use crate::session::Sessions;
use crate::workspace::Workspace;

/// A folder that is a workspace.
#[derive(Debug)]
pub(super) struct Home {
    folder: TempDir,
}

impl Home {
    /// Makes one with an empty folder of skills.
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("skills")).unwrap();
        Self { folder }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file with the folders it needs.
    pub(super) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Makes a good skill.
    pub(super) fn skill(&self, name: &str) {
        let text = format!("---\nname: {name}\ndescription: does {name}\n---\nHow to {name}.\n");
        self.write(&format!("skills/{name}/SKILL.md"), text);
    }

    pub(super) fn workspace(&self) -> Arc<Workspace> {
        Arc::new(Workspace::open(self.folder.path()).unwrap())
    }

    pub(super) fn stock(&self) -> Arc<Stock> {
        let roots = vec!["skills".to_owned()];
        let mut scanner = super::Scanner::new(self.workspace(), roots.clone());
        let stock = Stock::new(self.workspace(), Arc::new(Sessions::default()), roots);
        stock.put(Arc::new(scanner.scan()));
        Arc::new(stock)
    }
}

/// Makes a skill that is nowhere.
pub(super) fn skill(name: &str, description: &str) -> Arc<Skill> {
    let path = Home::new().workspace().resolve("skills").unwrap();
    Arc::new(Skill {
        name: name.to_owned(),
        description: description.to_owned(),
        declared: Some(name.to_owned()),
        digest: String::new(),
        root: (0, path.clone()),
        file: path,
    })
}
