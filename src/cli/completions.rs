//! `completions`: a script that lets a shell complete our commands and flags.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::terminal::print;
use super::{CliError, Exit};

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(super) fn run<C: CommandFactory>(&self) -> Result<Exit, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut C::command(), "iris-mcp", &mut script);
        print(script)?;
        Ok(Exit::Ok)
    }
}
