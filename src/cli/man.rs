//! `man`: the manual pages, made from what the commands say of themselves.

use clap::{Args, CommandFactory};

use super::terminal::print;
use super::{CliError, Exit};

#[derive(Debug, Args)]
pub(super) struct Man {
    /// The page of this command; the page of the program without one.
    command: Option<String>,
}

impl Man {
    pub(super) fn run<C: CommandFactory>(&self) -> Result<Exit, CliError> {
        let mut program = C::command();
        program.build();
        let page = match &self.command {
            None => program,
            Some(name) => {
                let commands: Vec<&str> = visible(&program).collect();
                let Some(page) = program.find_subcommand(name).filter(|page| !page.is_hide_set())
                else {
                    let message =
                        format!("there is no command `{name}`; there are {}", commands.join(", "));
                    return Err(CliError::Usage(message));
                };
                let title = format!("iris-mcp-{name}");
                page.clone().display_name(title)
            }
        };
        let mut text = Vec::new();
        clap_mangen::Man::new(page).render(&mut text)?;
        print(text)?;
        Ok(Exit::Ok)
    }
}

fn visible(program: &clap::Command) -> impl Iterator<Item = &str> {
    program.get_subcommands().filter(|page| !page.is_hide_set()).map(clap::Command::get_name)
}
