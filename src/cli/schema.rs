//! `schema`: what the files look like, as JSON schemas for editors.

use std::io::Write as _;

use clap::{Args, ValueEnum};

use super::{CliError, Exit};
use crate::config::schema;

#[derive(Debug, Args)]
pub(super) struct Schema {
    /// The file.
    file: File,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum File {
    /// An agent file, for `--agent`.
    Agent,
    /// A file of upstream servers, for `--mcp`.
    Mcp,
    /// A file of settings, for `--config`.
    Server,
}

impl Schema {
    pub(super) fn run(&self) -> Result<Exit, CliError> {
        let schema = match self.file {
            File::Agent => schema::agent(),
            File::Mcp => schema::mcp(),
            File::Server => schema::server(),
        };
        std::io::stdout().write_all(format!("{schema:#}\n").as_bytes())?;
        Ok(Exit::Ok)
    }
}
