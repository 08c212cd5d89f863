//! `package`: the names that Python tools import, as files, for editors and unit tests.

use std::path::PathBuf;

use clap::Args;

use super::terminal::say;
use super::{CliError, Exit, scaffold};
use crate::app::PYTHON_PACKAGE;

#[derive(Debug, Args)]
pub(super) struct Package {
    /// The folder that gets a folder `iris`; it is made if it is not there.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Package {
    pub(super) fn run(&self) -> Result<Exit, CliError> {
        scaffold::write(&self.folder, &PYTHON_PACKAGE)?;
        say(format!(
            "it needs pydantic 2; PYTHONPATH={} lets tests import it",
            self.folder.display()
        ));
        Ok(Exit::Ok)
    }
}
