//! Texts and numbers of an agent file that are not any text or number.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::settings::Expected;

/// A text that says something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(extend("pattern" = r"\S"))]
pub(super) struct Text(String);

/// Where something is in Python: `module:name`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(extend("pattern" = r"^[^\s:]+:[^\s:]+$"))]
pub(super) struct Reference(String);

impl Reference {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A name such as `review-python`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(extend("pattern" = "^[a-z0-9]+(-[a-z0-9]+)*$"))]
pub(super) struct Kebab(String);

/// A number above 0.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "f64")]
#[schemars(extend("exclusiveMinimum" = 0))]
pub(super) struct Positive(f64);

/// A part of a whole: above 0, and 1 at most.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "f64")]
#[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
pub(super) struct Share(f64);

impl Text {
    /// Makes one of a constant.
    pub(super) fn of(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Kebab {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Positive {
    /// Makes one of a constant above 0.
    pub(super) const fn of(number: f64) -> Self {
        Self(number)
    }

    /// Returns it as seconds; what is too long for that is the longest.
    pub(super) fn duration(self) -> Duration {
        Duration::try_from_secs_f64(self.0).unwrap_or(Duration::MAX)
    }
}

impl Share {
    /// Makes one of a constant above 0.
    pub(super) const fn of(number: f64) -> Self {
        Self(number)
    }
}

impl TryFrom<String> for Text {
    type Error = Expected;

    fn try_from(text: String) -> Result<Self, Expected> {
        if text.trim().is_empty() {
            Err(Expected("a text that is not blank"))
        } else {
            Ok(Self(text))
        }
    }
}

impl TryFrom<String> for Reference {
    type Error = Expected;

    fn try_from(text: String) -> Result<Self, Expected> {
        let is_name = |name: &str| {
            !name.is_empty() && !name.contains(|c: char| c == ':' || c.is_whitespace())
        };
        match text.split_once(':') {
            Some((module, name)) if is_name(module) && is_name(name) => Ok(Self(text)),
            _ => Err(Expected("`module:name`, such as `shop.tools:lookup_order`")),
        }
    }
}

impl TryFrom<String> for Kebab {
    type Error = Expected;

    fn try_from(text: String) -> Result<Self, Expected> {
        let is_word = |word: &str| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        if text.split('-').all(is_word) {
            Ok(Self(text))
        } else {
            Err(Expected("lower-case words joined by hyphens, such as `review-python`"))
        }
    }
}

impl TryFrom<f64> for Positive {
    type Error = Expected;

    fn try_from(number: f64) -> Result<Self, Expected> {
        if number > 0.0 { Ok(Self(number)) } else { Err(Expected("a number above 0")) }
    }
}

impl TryFrom<f64> for Share {
    type Error = Expected;

    fn try_from(number: f64) -> Result<Self, Expected> {
        if number > 0.0 && number <= 1.0 {
            Ok(Self(number))
        } else {
            Err(Expected("a number above 0 and not above 1"))
        }
    }
}
