//! The settings of the log.

use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

use super::settings::{Expected, Settings};
use crate::telemetry;

/// The settings under `log`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The file; standard error without one.
    pub file: Option<PathBuf>,
    /// The form of a line.
    pub format: Option<LogFormat>,
    /// What is logged: a level, or levels by module.
    pub filter: Option<String>,
}

/// The form of a line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

impl Log {
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            file: self.file.or(below.file),
            format: self.format.or(below.format),
            filter: self.filter.or(below.filter),
        }
    }
}

impl FromStr for LogFormat {
    type Err = Expected;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(Expected("`text` or `json`")),
        }
    }
}

/// Returns what is logged; known before anything else is, so that the rest can be logged.
pub fn telemetry(settings: &Settings, default_filter: &str, color: bool) -> telemetry::Config {
    let Log { file, format, filter } = settings.log.clone();
    let format = match format.unwrap_or_default() {
        LogFormat::Text => telemetry::Format::Text,
        LogFormat::Json => telemetry::Format::Json,
    };
    let filter = filter.unwrap_or_else(|| default_filter.to_owned());
    telemetry::Config { file, format, filter, color, clears: false }
}
