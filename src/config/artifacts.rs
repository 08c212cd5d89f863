//! The settings of what is kept in files: where, which results, how much, and for how long.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::Host;
use super::settings::Expected;
use crate::artifact::{self, Place, Quota};
use crate::source::upstream::native::Keep;

/// How much is kept, unless said otherwise: 1 GiB.
const MAX_BYTES: u64 = 1 << 30;
/// For how long after it was last read, unless said otherwise.
const MAX_AGE: Duration = Duration::from_hours(30 * 24);

/// The settings under `artifacts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArtifactSettings {
    /// The folder.
    pub dir: Option<PathBuf>,
    /// Which results of upstreams are kept as they came.
    pub mcp_native: Option<Natives>,
    /// How much is kept, in bytes.
    pub max_bytes: Option<Bytes>,
    /// How long a file is kept after it was last read.
    pub max_age: Option<Age>,
}

/// Which results of upstreams are kept as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Natives {
    /// Every one.
    Always,
    /// Those that hold more than a model gets of them.
    Rich,
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "i64")]
pub struct Bytes(u64);

/// A time such as `12h` or `30days`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct Age(Duration);

impl ArtifactSettings {
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            dir: self.dir.or(below.dir),
            mcp_native: self.mcp_native.or(below.mcp_native),
            max_bytes: self.max_bytes.or(below.max_bytes),
            max_age: self.max_age.or(below.max_age),
        }
    }

    /// Returns where artifacts go.
    ///
    /// A folder nobody named, such as `/` where a client happened to start us, gets none of them.
    pub(super) fn config(&self, workspace: &Path, is_said: bool, host: &Host) -> artifact::Config {
        let state = state(workspace, host);
        let usual = if is_said { None } else { state.clone() };
        artifact::Config {
            folder: self.dir.clone().map(Place::Named).or(usual.map(Place::Usual)),
            fallback: state,
            quota: Quota {
                max_bytes: self.max_bytes.map_or(MAX_BYTES, |Bytes(bytes)| bytes),
                max_age: self.max_age.map_or(MAX_AGE, |Age(age)| age),
            },
        }
    }

    /// Returns which results of upstreams are kept as they came.
    pub(super) fn keep(&self, has_agent: bool) -> Keep {
        match self.mcp_native {
            Some(Natives::Always) => Keep::Always,
            None if has_agent => Keep::Always,
            Some(Natives::Rich) | None => Keep::Rich,
        }
    }
}

/// Returns the user's folder for what programs leave behind, with a place for each workspace.
fn state(workspace: &Path, host: &Host) -> Option<PathBuf> {
    let of = |variable: &str| {
        host.environment.get(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    };
    let state = of("XDG_STATE_HOME").or_else(|| Some(of("HOME")?.join(".local/state")))?;
    let digest = Sha256::digest(workspace.as_os_str().as_encoded_bytes());
    let place = digest.iter().take(8).fold(0u64, |place, byte| place << 8 | u64::from(*byte));
    Some(state.join("iris-mcp").join(format!("{place:016x}")))
}

impl TryFrom<i64> for Bytes {
    type Error = Expected;

    fn try_from(bytes: i64) -> Result<Self, Self::Error> {
        match u64::try_from(bytes) {
            Ok(bytes) if bytes > 0 => Ok(Self(bytes)),
            _ => Err(Expected("a number of bytes above 0")),
        }
    }
}

impl TryFrom<String> for Age {
    type Error = Expected;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for Bytes {
    type Err = Expected;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes: i64 = text.parse().map_err(|_| Expected("a number of bytes above 0"))?;
        Self::try_from(bytes)
    }
}

impl FromStr for Age {
    type Err = Expected;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match humantime::parse_duration(text) {
            Ok(age) if !age.is_zero() => Ok(Self(age)),
            _ => Err(Expected("a time above 0, such as `12h` or `30days`")),
        }
    }
}

impl FromStr for Natives {
    type Err = Expected;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "always" => Ok(Self::Always),
            "rich" => Ok(Self::Rich),
            _ => Err(Expected("`always` or `rich`")),
        }
    }
}
