//! How grave a log message is.

/// A level of the protocol's, the least grave first (MCP 2025-11-25 §server/utilities/logging).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// What helps to find a fault.
    Debug,
    /// What went as it should.
    Info,
    /// What went as it should and is worth a look.
    Notice,
    /// What may become a fault.
    Warning,
    /// What failed.
    Error,
    /// A part that failed.
    Critical,
    /// What needs somebody now.
    Alert,
    /// What makes everything unusable.
    Emergency,
}

const NAMES: [(Level, &str); 8] = [
    (Level::Debug, "debug"),
    (Level::Info, "info"),
    (Level::Notice, "notice"),
    (Level::Warning, "warning"),
    (Level::Error, "error"),
    (Level::Critical, "critical"),
    (Level::Alert, "alert"),
    (Level::Emergency, "emergency"),
];

impl Level {
    /// Reads a level as it stands in messages.
    pub fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(level, _)| *level)
    }

    /// Returns the level as it stands in messages.
    pub fn as_str(self) -> &'static str {
        NAMES[self as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_read_as_it_is_written() {
        for (level, name) in NAMES {
            assert_eq!((level.as_str(), Level::parse(name)), (name, Some(level)));
        }
        assert_eq!(Level::parse("Debug"), None);
        assert!(Level::Debug < Level::Info && Level::Alert < Level::Emergency);
    }
}
