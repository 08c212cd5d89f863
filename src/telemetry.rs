//! The log: to standard error or a file, never to standard output.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

/// What a server logs unless said otherwise: what we decide.
pub const SERVER_FILTER: &str = "info";
/// What any other command logs unless said otherwise: what went wrong.
///
/// What is wrong with upstream servers, Python tools and skills they report themselves.
pub const COMMAND_FILTER: &str =
    "warn,iris_mcp::source::upstream=off,iris_mcp::source::python=off,iris_mcp::source::skill=off";

/// What our own lines are logged under.
const OURS: &str = "iris_mcp";
/// The modules that people ask for; others can be named, but are not suggested.
const MODULES: [&str; 7] = [OURS, "axum", "hyper", "hyper_util", "reqwest", "rmcp", "rustls"];
/// The levels, as a filter has them.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// What is logged, how and where.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file; standard error without one. It is appended to.
    pub file: Option<PathBuf>,
    /// The form of a line.
    pub format: Format,
    /// A level for what we say, or levels by module; a library that is not named says its errors.
    pub filter: String,
    /// Whether lines on standard error are coloured.
    pub color: bool,
    /// Whether what stands on the last line of standard error goes before each of our lines.
    pub clears: bool,
}

/// The form of a line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Why nothing can be logged.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The file cannot be written.
    #[error("the log file {} cannot be written: {error}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file is our standard output, which belongs to the protocol.
    #[error("the log file {} is standard output, which belongs to the protocol; name another one", .0.display())]
    StandardOutput(PathBuf),
    /// The filter is none.
    #[error(
        "the log filter `{filter}` is none: {error}; use a level such as `debug`, or `info,iris_mcp=trace`"
    )]
    Filter {
        /// The filter.
        filter: String,
        /// What is wrong with it.
        error: tracing_subscriber::filter::ParseError,
    },
    /// A part of the filter is neither a level nor a module with one.
    #[error(
        "the log filter has `{part}`, which {problem}; the levels are `off`, `error`, `warn`, `info`, \
         `debug` and `trace`, for one module as in `info,iris_mcp=trace`{}",
        nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
    )]
    Part {
        /// The part.
        part: String,
        /// What is wrong with it.
        problem: &'static str,
        /// What may have been meant.
        nearest: Option<&'static str>,
    },
}

impl TelemetryError {
    /// Returns the setting that cannot be used.
    pub fn setting(&self) -> &'static str {
        match self {
            Self::File { .. } | Self::StandardOutput(_) => "log.file",
            Self::Filter { .. } | Self::Part { .. } => "log.filter",
        }
    }
}

/// Begins to log, for the rest of the process.
pub fn start(config: Config) -> Result<(), TelemetryError> {
    let Config { file, format, filter, color, clears } = config;
    let filter = EnvFilter::try_new(directives(&filter)?)
        .map_err(|error| TelemetryError::Filter { filter, error })?;
    let ansi = color && file.is_none();
    let writer = match file {
        Some(file) => {
            let opened = std::fs::OpenOptions::new().create(true).append(true).open(&file);
            let opened =
                opened.map_err(|error| TelemetryError::File { file: file.clone(), error })?;
            if is_standard_output(&opened).unwrap_or(false) {
                return Err(TelemetryError::StandardOutput(file));
            }
            BoxMakeWriter::new(Mutex::new(opened))
        }
        None if clears => BoxMakeWriter::new(|| Clearing),
        None => BoxMakeWriter::new(io::stderr),
    };
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(ansi);
    // A line that cannot be written is lost. To say so on standard error would be a panic where
    // nobody reads that any more.
    let builder = builder.log_internal_errors(false);
    // A second subscriber is an embedder's own, and stays.
    let started = match format {
        Format::Text => builder.try_init(),
        Format::Json => builder.json().flatten_event(true).try_init(),
    };
    if let Err(error) = started {
        tracing::debug!(%error, "there is a log already");
    }
    Ok(())
}

/// A terminal on whose last line something may stand for a while.
struct Clearing;

impl io::Write for Clearing {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // In one piece, so that nothing comes between.
        io::stderr().write_all(&[b"\r\x1b[2K", line].concat())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Returns the directives that a filter of ours stands for.
///
/// A level alone is one for what we say. The protocol library logs whole messages from `info` on,
/// which may hold secrets, and others log each request: of libraries that are not named, only
/// errors are logged.
fn directives(filter: &str) -> Result<String, TelemetryError> {
    let (mut ours, mut named) = (None, Vec::new());
    for part in filter.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once(['=', '[']) {
            // A number is a level, too.
            None => match part.parse::<LevelFilter>() {
                Ok(level) => ours = Some(level),
                Err(_) => return Err(refused(part, "is no level", nearest(part, &LEVELS))),
            },
            Some((target, _)) => {
                let module = target.split("::").next().unwrap_or_default();
                let meant = nearest(module, &MODULES).filter(|_| !MODULES.contains(&module));
                if meant.is_some() {
                    return Err(refused(part, "names no module", meant));
                }
                named.push(part.to_owned());
            }
        }
    }
    let all = ours.map(|level| match level {
        LevelFilter::OFF => vec!["off".to_owned()],
        level => vec!["error".to_owned(), format!("{OURS}={level}")],
    });
    // Of two for one module the later wins, so those that name it come last.
    Ok(all.into_iter().flatten().chain(named).collect::<Vec<_>>().join(","))
}

fn refused(part: &str, problem: &'static str, nearest: Option<&'static str>) -> TelemetryError {
    TelemetryError::Part { part: part.to_owned(), problem, nearest }
}

/// Returns the name that may have been meant, with a letter in four wrong.
fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let word = word.to_lowercase().replace('-', "_");
    let near = |name: &&str| strsim::osa_distance(&word, name) <= (name.len() / 4).max(1);
    known.iter().copied().filter(near).min_by_key(|name| strsim::osa_distance(&word, name))
}

/// Says whether a file is what our standard output goes to; a device such as `/dev/null` never is.
pub(crate) fn is_standard_output(file: &std::fs::File) -> io::Result<bool> {
    let file = file.metadata()?;
    let output = std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?).metadata()?;
    let device = output.file_type().is_char_device();
    Ok(!device && (file.dev(), file.ino()) == (output.dev(), output.ino()))
}

#[cfg(test)]
mod tests {
    use super::{COMMAND_FILTER, EnvFilter, SERVER_FILTER, directives};

    #[test]
    fn a_level_is_one_for_what_we_say_and_of_libraries_errors_are_logged() {
        for (filter, expected) in [
            (SERVER_FILTER, "error,iris_mcp=info"),
            (
                COMMAND_FILTER,
                "error,iris_mcp=warn,iris_mcp::source::upstream=off,iris_mcp::source::python=off,iris_mcp::source::skill=off",
            ),
            ("info", "error,iris_mcp=info"),
            ("TRACE", "error,iris_mcp=trace"),
            ("2", "error,iris_mcp=warn"),
            ("off", "off"),
            ("iris_mcp=trace, info", "error,iris_mcp=info,iris_mcp=trace"),
            ("warn,rmcp=debug", "error,iris_mcp=warn,rmcp=debug"),
            ("my_crate=debug", "my_crate=debug"),
            ("iris_mcp[call{id=1}]=debug", "iris_mcp[call{id=1}]=debug"),
            ("", ""),
        ] {
            let made = directives(filter).unwrap();
            assert_eq!(made, expected, "{filter}");
            assert!(EnvFilter::try_new(made).is_ok(), "{filter}");
        }
    }

    #[test]
    fn a_word_that_is_no_level_is_refused_with_the_one_that_was_meant() {
        for (filter, problem, nearest) in [
            ("wran", "`wran`, which is no level", "did you mean `warn`?"),
            ("info,debgu", "`debgu`, which is no level", "did you mean `debug`?"),
            ("iris_mcp", "`iris_mcp`, which is no level", "`info,iris_mcp=trace`"),
            ("rcmp=info", "`rcmp=info`, which names no module", "did you mean `rmcp`?"),
            ("iris-mcp=info", "`iris-mcp=info`, which", "did you mean `iris_mcp`?"),
        ] {
            let error = directives(filter).unwrap_err().to_string();
            assert!(error.contains(problem) && error.ends_with(nearest), "{filter}: {error}");
            assert!(error.contains("`off`, `error`, `warn`, `info`, `debug` and `trace`"));
        }
    }
}
