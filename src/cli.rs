//! The command line: what can be asked of the program, and how it answers people.

mod call;
mod check;
mod completions;
mod flags;
mod init;
mod man;
mod package;
mod scaffold;
mod schema;
mod search;
mod serve;
mod terminal;
mod tools;
mod waiting;

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::app::StartError;
use crate::config::{self, Config, ConfigError, Host};
use crate::process;
use crate::shutdown::signals;
use crate::telemetry;

use self::flags::{Flags, Serving};
use self::terminal::{has_colours, is_capable, say};

/// Serves the tools of an Iris agent, and of any number of MCP servers, as one MCP server.
#[derive(Debug, Parser)]
#[command(name = "iris-mcp", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve clients over standard input and output, over HTTP, or both.
    Serve(serve::Serve),
    /// Start everything, and say what works and what does not.
    Check(check::Check),
    /// List the tools, with every upstream server started.
    Tools(tools::Tools),
    /// Say which tools a search finds.
    Search(search::Search),
    /// Call one tool, through everything a client's call goes through.
    Call(call::Call),
    /// Make a folder with an agent to begin with: tools, hooks, a middleware and a skill.
    Init(init::Init),
    /// Write the Python package `iris` that tools import, for editors and unit tests.
    Package(package::Package),
    /// Print the JSON schema of a file, for editors.
    Schema(schema::Schema),
    /// Print completions for a shell.
    Completions(completions::Completions),
    /// Print a manual page; `iris-mcp man | man -l -` shows it.
    Man(man::Man),
}

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Ok,
    /// The tool failed, or serving did.
    Failed,
    /// The command line or a file is wrong.
    Configuration,
    /// The call was refused.
    Refused,
    /// A signal came.
    Cancelled,
}

/// What a person is told about a command that could not do its work.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("{0}")]
    Usage(String),
    #[error("cannot write: {0}")]
    Output(#[from] std::io::Error),
}

/// Runs the program and returns its exit code.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let printed = error.print();
            // Help and the version are what was asked for.
            if !error.use_stderr() {
                return finish(printed.map(|()| Exit::Ok).map_err(CliError::from));
            }
            return Exit::Configuration.into();
        }
    };
    // What needs nothing of a run.
    match &cli.command {
        Command::Completions(completions) => return finish(completions.run::<Cli>()),
        Command::Man(man) => return finish(man.run::<Cli>()),
        Command::Init(init) => return finish(init.run()),
        Command::Package(package) => return finish(package.run()),
        Command::Schema(schema) => return finish(schema.run()),
        Command::Serve(_)
        | Command::Check(_)
        | Command::Tools(_)
        | Command::Search(_)
        | Command::Call(_) => {}
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return finish(Err(error.into())),
    };
    let result = runtime.block_on(async {
        let command = async {
            match cli.command {
                Command::Serve(serve) => Box::pin(serve.run()).await,
                Command::Check(check) => Box::pin(check.run()).await,
                Command::Tools(tools) => Box::pin(tools.run()).await,
                Command::Search(search) => Box::pin(search.run()).await,
                Command::Call(call) => Box::pin(call.run()).await,
                Command::Completions(_)
                | Command::Man(_)
                | Command::Init(_)
                | Command::Package(_)
                | Command::Schema(_) => Ok(Exit::Ok),
            }
        };
        tokio::select! {
            // First: until the command catches signals, they end us as they end any program.
            biased;
            result = command => result,
            result = insisted() => result,
        }
    });
    // A read of standard input may never end; nothing else is left by now.
    runtime.shutdown_background();
    finish(result)
}

/// Waits for a second signal; then nothing is waited for any more, and guards end the children.
async fn insisted() -> Result<Exit, CliError> {
    let signal = signals()?.second().await;
    tracing::warn!(%signal, "a second signal: ending at once");
    Ok(Exit::Cancelled)
}

fn finish(result: Result<Exit, CliError>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        // Whoever reads our output has enough.
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Exit::Ok.into()
        }
        Err(error) => {
            match &error {
                CliError::Config(error) | CliError::Start(StartError::Setting(error)) => {
                    say(format!("error: {}", error.render()));
                }
                error => say(format!("error: {error}")),
            }
            error.exit().into()
        }
    }
}

/// Begins to log and reads the configuration.
fn prepare(flags: Flags, serving: Option<Serving>) -> Result<(Config, process::Config), CliError> {
    let host = host()?;
    let mut settings = flags.settings(&host);
    let serves = serving.is_some();
    let filter = if serves { telemetry::SERVER_FILTER } else { telemetry::COMMAND_FILTER };
    if let Some(serving) = serving {
        serving.add_to(&mut settings, &host);
    }
    let settings = config::complete(settings, &host)?;
    let color = has_colours(&std::io::stderr());
    let mut log = config::telemetry(&settings, filter, color);
    log.clears = is_capable(&std::io::stderr());
    telemetry::start(log).map_err(|error| settings.places.error(error.setting(), &error))?;
    let processes = process::Config { exe: host.exe.clone() };
    let mut config = Config::build(settings, &host)?;
    if !serves {
        // Nobody is served, so a gateway with the same settings may be running.
        config.http = None;
    }
    Ok((config, processes))
}

fn host() -> Result<Host, CliError> {
    let mut environment = BTreeMap::new();
    for (name, value) in std::env::vars_os() {
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => {
                environment.insert(name, value);
            }
            (Ok(name), Err(_)) if name.starts_with("IRIS_MCP_") => {
                return Err(CliError::Usage(format!("{name}: the value is not UTF-8")));
            }
            // What is not UTF-8 cannot stand in a file of ours.
            _ => {}
        }
    }
    let directory = std::env::current_dir()
        .map_err(|error| CliError::Usage(format!("the current folder cannot be used: {error}")))?;
    Ok(Host { environment, directory, exe: std::env::current_exe().ok() })
}

impl CliError {
    fn exit(&self) -> Exit {
        match self {
            Self::Start(
                StartError::Required { .. }
                | StartError::Python(_)
                | StartError::Skills(_)
                | StartError::Serve(_),
            )
            | Self::Output(_) => Exit::Failed,
            Self::Config(_) | Self::Start(_) | Self::Usage(_) => Exit::Configuration,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Configuration => 2,
            Exit::Refused => 3,
            Exit::Cancelled => 130,
        })
    }
}
