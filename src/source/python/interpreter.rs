//! Which interpreter runs an agent's tools.

use std::ffi::OsString;
use std::path::Path;

use super::Config;

/// Returns the interpreter: the one that is said, that of an active virtual environment, of the one
/// beside the agent file, or `python3`.
pub(super) fn of(config: &Config) -> OsString {
    if let Some(said) = &config.interpreter {
        return said.into();
    }
    let active = config.environment.get("VIRTUAL_ENV").filter(|folder| !folder.is_empty());
    let active = active.map(|folder| Path::new(folder).join("bin/python"));
    let beside = config.folder.join(".venv/bin/python");
    let found = active.into_iter().chain([beside]).find(|python| python.is_file());
    found.map_or_else(|| "python3".into(), Into::into)
}
