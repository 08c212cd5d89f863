//! Where settings are written, for what is found wrong with one after all are put together.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::ConfigError;
use super::settings::Settings;
use crate::document::Document;

/// What says of a place whether it gives the setting.
type Says = fn(&Settings) -> bool;

/// Settings whose values only show later whether they can be used: each with its flag, if it has
/// one, and its variable.
const LATE: [(&str, Option<&str>, &str, Says); 9] = [
    ("activity.file", Some("--activity-log"), "IRIS_MCP_ACTIVITY_LOG", |it| {
        it.activity.file.is_some()
    }),
    ("agent", Some("--agent"), "IRIS_MCP_AGENT", |it| it.agent.is_some()),
    ("artifacts.dir", None, "IRIS_MCP_ARTIFACTS_DIR", |it| it.artifacts.dir.is_some()),
    ("http", Some("--http"), "IRIS_MCP_HTTP", |it| it.http.is_some()),
    ("log.file", Some("--log-file"), "IRIS_MCP_LOG_FILE", |it| it.log.file.is_some()),
    ("log.filter", Some("--log"), "IRIS_MCP_LOG", |it| it.log.filter.is_some()),
    ("mcp", Some("--mcp"), "IRIS_MCP_MCP", |it| it.mcp.is_some()),
    ("token_file", Some("--token-file"), "IRIS_MCP_TOKEN_FILE", |it| it.token_file.is_some()),
    ("workspace", Some("--workspace"), "IRIS_MCP_WORKSPACE", |it| it.workspace.is_some()),
];

/// Where each of some settings is written; clones share the file.
#[derive(Clone, Default)]
pub struct Places {
    places: BTreeMap<&'static str, Place>,
    file: Option<Arc<Document>>,
}

#[derive(Clone, Copy)]
enum Place {
    /// A flag or a variable.
    Named(&'static str),
    File,
}

impl Places {
    /// Notes where settings are written; what comes first counts.
    pub(super) fn of(
        flags: &Settings,
        variables: &Settings,
        file: Option<(&Settings, Document)>,
    ) -> Self {
        let mut places = BTreeMap::new();
        for (key, flag, variable, says) in LATE {
            let by_flag = flag.filter(|_| says(flags)).map(Place::Named);
            let by_variable = says(variables).then_some(Place::Named(variable));
            let by_file = file.as_ref().filter(|(below, _)| says(below)).map(|_| Place::File);
            if let Some(place) = by_flag.or(by_variable).or(by_file) {
                places.insert(key, place);
            }
        }
        Self { places, file: file.map(|(_, document)| Arc::new(document)) }
    }

    /// Makes the error about a setting that cannot be used; `key` may go on to an item of it.
    pub fn error(&self, key: &str, message: impl fmt::Display) -> ConfigError {
        let name = key.split('[').next().unwrap_or_default();
        match (self.places.get(name), &self.file) {
            (Some(Place::Named(place)), _) => {
                ConfigError::Setting { place: Some(place), message: message.to_string() }
            }
            (Some(Place::File), Some(file)) => file.error_in(key, message.to_string()).into(),
            // Whoever embeds us has said so.
            _ => ConfigError::Setting { place: None, message: message.to_string() },
        }
    }

    /// Says whether a setting was given by somebody who sees it before his eyes: by a flag.
    pub(super) fn is_flag(&self, key: &str) -> bool {
        matches!(self.places.get(key), Some(Place::Named(name)) if name.starts_with("--"))
    }
}

// Where something is written is no part of what is said.
impl PartialEq for Places {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("known", &self.places.len()).finish_non_exhaustive()
    }
}
