//! The log: to standard error or a file, never to standard output.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

/// What a server logs unless said otherwise: what we decide, and of libraries only what failed.
///
/// The protocol library logs whole messages from `info` on, which may hold secrets.
pub const SERVER_FILTER: &str = "info,rmcp=error";
/// What any other command logs unless said otherwise: what went wrong.
///
/// What is wrong with upstream servers they report themselves.
pub const COMMAND_FILTER: &str = "warn,rmcp=error,iris_mcp::source::upstream=off";

/// What is logged, how and where.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file; standard error without one. It is appended to.
    pub file: Option<PathBuf>,
    /// The form of a line.
    pub format: Format,
    /// A level, or levels by module.
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
}

/// Begins to log, for the rest of the process.
pub fn start(config: Config) -> Result<(), TelemetryError> {
    let Config { file, format, filter, color, clears } = config;
    let filter = EnvFilter::try_new(&filter)
        .map_err(|error| TelemetryError::Filter { filter: filter.clone(), error })?;
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

/// Says whether a file is what our standard output goes to; a device such as `/dev/null` never is.
pub(crate) fn is_standard_output(file: &std::fs::File) -> io::Result<bool> {
    let file = file.metadata()?;
    let output = std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?).metadata()?;
    let device = output.file_type().is_char_device();
    Ok(!device && (file.dev(), file.ino()) == (output.dev(), output.ino()))
}
