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

/// Puts right what the generator for bash makes of a program with a hyphen in its name: it looks
/// for what comes after a subcommand under another label than it writes.
fn mended(shell: Shell, script: Vec<u8>) -> Vec<u8> {
    match (shell, String::from_utf8(script)) {
        (Shell::Bash, Ok(script)) => script.replace("iris__subcmd__mcp", "iris__mcp").into_bytes(),
        (_, Ok(script)) => script.into_bytes(),
        (_, Err(error)) => error.into_bytes(),
    }
}

impl Completions {
    pub(super) fn run<C: CommandFactory>(&self) -> Result<Exit, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut C::command(), "iris-mcp", &mut script);
        print(mended(self.shell, script))?;
        Ok(Exit::Ok)
    }
}
