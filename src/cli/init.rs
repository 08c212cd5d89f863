//! `init`: a folder with an agent in it, to begin with.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;

use super::terminal::say;
use super::{CliError, Exit, host};

/// What is written, by the name of its file.
const FILES: [(&str, &str); 2] =
    [("agent.yaml", include_str!("init/agent.yaml")), ("mcp.json", include_str!("init/mcp.json"))];

#[derive(Debug, Args)]
pub(super) struct Init {
    /// The folder; it is made if it is not there.
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
}

impl Init {
    pub(super) fn run(&self) -> Result<Exit, CliError> {
        let Self { folder } = self;
        let wrong = |path: &Path, error: &io::Error| {
            CliError::Usage(format!("{} cannot be written: {error}", path.display()))
        };
        if let Ok(whole) = folder.canonicalize()
            && host()?.is_too_much(&whole)
        {
            let message = format!(
                "an agent in {} would work on all of that folder; name one of its own, such as `iris-mcp init my-agent`",
                whole.display()
            );
            return Err(CliError::Usage(message));
        }
        std::fs::create_dir_all(folder).map_err(|error| wrong(folder, &error))?;
        // All of them or none, as far as that can be known before.
        if let Some((name, _)) = FILES.iter().find(|(name, _)| is_there(&folder.join(name))) {
            let path = folder.join(name);
            let message = format!("{} is there already; name another folder", path.display());
            return Err(CliError::Usage(message));
        }
        for (name, text) in FILES {
            let path = folder.join(name);
            // Somebody may have been faster; nothing of theirs is overwritten.
            let file = OpenOptions::new().write(true).create_new(true).open(&path);
            file.and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(|error| wrong(&path, &error))?;
            say(format!("wrote {}", path.display()));
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

/// Says whether something has this name, be it a link that leads nowhere.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
