//! `init`: a folder with an agent in it, to begin with.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use clap::Args;

use super::scaffold::{self, File};
use super::terminal::say;
use super::{CliError, Exit, host};

/// The example that is run by the tests, as it is.
const AGENT: [File; 9] = [
    ("agent.yaml", include_str!("../../examples/agent/agent.yaml")),
    ("mcp.json", include_str!("../../examples/agent/mcp.json")),
    ("text_tools.py", include_str!("../../examples/agent/text_tools.py")),
    ("note_tools.py", include_str!("../../examples/agent/note_tools.py")),
    ("guard.py", include_str!("../../examples/agent/guard.py")),
    ("timing.py", include_str!("../../examples/agent/timing.py")),
    ("notes/today.md", include_str!("../../examples/agent/notes/today.md")),
    (
        "notes/.agents/skills/meeting-notes/SKILL.md",
        include_str!("../../examples/agent/notes/.agents/skills/meeting-notes/SKILL.md"),
    ),
    (".gitignore", include_str!("init/gitignore")),
];

/// Without anything that needs Python.
const BARE: [File; 2] =
    [("agent.yaml", include_str!("init/agent.yaml")), ("mcp.json", include_str!("init/mcp.json"))];

#[derive(Debug, Args)]
pub(super) struct Init {
    /// The folder; it is made if it is not there.
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// Only an agent file with file tools, and an MCP file: nothing that needs Python.
    #[arg(long)]
    bare: bool,
}

impl Init {
    pub(super) fn run(&self) -> Result<Exit, CliError> {
        let Self { folder, bare } = self;
        if let Ok(whole) = folder.canonicalize()
            && host()?.is_too_much(&whole)
        {
            let message = format!(
                "an agent in {} would work on all of that folder; name one of its own, such as `iris-mcp init my-agent`",
                whole.display()
            );
            return Err(CliError::Usage(message));
        }
        scaffold::write(folder, if *bare { &BARE[..] } else { &AGENT })?;
        if !bare {
            let venv = pasted(&folder.join(".venv"));
            say(format!(
                "its Python needs:  python3 -m venv {venv} && {venv}/bin/pip install 'pydantic>=2'"
            ));
        }
        let agent = pasted(&folder.join("agent.yaml"));
        say(format!("see what it has:  iris-mcp check --agent {agent}"));
        say(format!("serve it:         iris-mcp serve --agent {agent}"));
        Ok(Exit::Ok)
    }
}

/// Returns a path as a word of a shell's command line that is no flag.
fn pasted(path: &Path) -> String {
    let text = path.display().to_string();
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    shlex::try_quote(&text).map_or_else(|_| text.clone(), Cow::into_owned)
}
