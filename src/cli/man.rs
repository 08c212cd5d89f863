//! `man`: the manual pages, made from what the commands say of themselves.

use clap::{Args, CommandFactory};
use clap_mangen::roff::{Roff, bold, roman};

use super::terminal::print;
use super::{CliError, Exit};

/// How a command ends, as `docs/settings.md` has it.
const EXITS: [(&str, &str); 5] = [
    ("0", "All is well. With `tools` and `search`: something is there, even if a server failed."),
    (
        "1",
        "A tool, a server or serving failed. With `tools` and `search`: nothing is there, since servers failed. With `check`: there is a problem.",
    ),
    ("2", "A mistake in flags or files."),
    ("3", "The call was refused, by a rule or a person."),
    ("130", "Interrupted by a signal."),
];

/// The files there are, and where.
const FILES: [(&str, &str); 5] = [
    (
        "agent.yaml",
        "An agent file, for --agent: permissions, built-in tools, and the MCP file. `iris-mcp init` writes one.",
    ),
    (
        "mcp.json",
        "An MCP file, for --mcp: the servers, as most clients write them, in JSON, JSONC or TOML.",
    ),
    ("server.toml", "Settings, for --config; each has a flag or a variable IRIS_MCP_* as well."),
    (
        ".iris/",
        "In the workspace: long results, images and published files. The setting artifacts.dir names another folder.",
    ),
    (
        "$XDG_STATE_HOME/iris-mcp/, ~/.local/state/iris-mcp/",
        "The same, where the workspace cannot be written, or is / or the home folder and nobody named it.",
    ),
];

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
        let (has_commands, has_version) = (page.has_subcommands(), page.get_version().is_some());
        let man = clap_mangen::Man::new(page);
        let mut text = Vec::new();
        man.render_title(&mut text)?;
        man.render_name_section(&mut text)?;
        man.render_synopsis_section(&mut text)?;
        man.render_description_section(&mut text)?;
        man.render_options_section(&mut text)?;
        if has_commands {
            man.render_subcommands_section(&mut text)?;
        }
        section("EXIT STATUS", &EXITS).to_writer(&mut text)?;
        section("FILES", &FILES).to_writer(&mut text)?;
        if has_version {
            man.render_version_section(&mut text)?;
        }
        print(text)?;
        Ok(Exit::Ok)
    }
}

fn visible(program: &clap::Command) -> impl Iterator<Item = &str> {
    program.get_subcommands().filter(|page| !page.is_hide_set()).map(clap::Command::get_name)
}

/// Makes a section of a manual page that is a list of terms.
fn section(title: &str, terms: &[(&str, &str)]) -> Roff {
    let mut section = Roff::new();
    section.control("SH", [title]);
    for (term, meaning) in terms {
        section.control("TP", []);
        section.text([bold(*term)]);
        section.text([roman(*meaning)]);
    }
    section
}
