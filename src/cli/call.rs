//! `call`: one call, through everything a client's call goes through.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clap::Args;
use nix::sys::termios::{FlushArg, tcflush};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::flags::Flags;
use super::terminal::{print_verdict, say};
use super::tools::report_failures;
use super::{CliError, Exit, prepare, waiting};
use crate::app::App;
use crate::exposure::NOT_FOUND;
use crate::permission::{
    Approval, Approver, Grants, NoGrants, PERMISSION_ERROR, Request, USER_REJECTED,
};
use crate::process;
use crate::shutdown::signals;
use crate::tool::printed::unmasked;
use crate::tool::{
    Arguments, Artifact, CallContext, CallId, Client, Closed, Interrupt, Principal, SessionId,
    ToolResult,
};

#[derive(Debug, Args)]
pub(super) struct Call {
    #[command(flatten)]
    flags: Flags,
    /// The tool's name.
    name: String,
    /// Its arguments, as a JSON object; `-` reads them from standard input.
    #[arg(default_value = "{}")]
    arguments: String,
    /// Print the whole result as JSON, as a client gets it.
    #[arg(long)]
    json: bool,
    /// Approve the call if it needs a person's approval.
    #[arg(long)]
    yes: bool,
}

/// Answers for the person at the terminal.
struct Terminal {
    yes: bool,
    /// Whether the operator wants nobody asked.
    refuses: bool,
    /// Whether he leaves it to the client, which is whoever calls.
    leaves: bool,
    /// How long a person may take.
    patience: Duration,
}

#[async_trait]
impl Approver for Terminal {
    fn grants(&self) -> &dyn Grants {
        &NoGrants
    }

    async fn approve(&self, request: &Request) -> Approval {
        if self.refuses {
            return Approval::Unavailable(format!(
                "--approval deny has nobody asked; {}",
                request.way_out()
            ));
        }
        if self.yes {
            return Approval::Granted("--yes");
        }
        if self.leaves {
            return Approval::Granted("client");
        }
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            return Approval::Unavailable(format!(
                "there is no terminal to ask at; give --yes to approve it, or {}",
                request.way_out()
            ));
        }
        let arguments = format!("{:#}", Value::Object(request.arguments.clone()));
        say(format!("{}: {}\n{}", request.tool, request.reason, unmasked(&arguments)));
        // What was typed before the question is no answer to it.
        _ = tcflush(std::io::stdin(), FlushArg::TCIFLUSH);
        say("allow this call? [y/N]");
        // Nothing else reads the terminal, and a signal ends the wait with the process.
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|_| line)
        });
        let Ok(line) = tokio::time::timeout(self.patience, line).await else {
            let seconds = self.patience.as_secs_f64();
            return Approval::Unavailable(format!(
                "nobody answered within {seconds} s (approval.timeout_seconds)"
            ));
        };
        match line {
            Ok(Ok(line)) if ["y", "yes"].contains(&line.trim().to_lowercase().as_str()) => {
                Approval::Granted("terminal")
            }
            _ => Approval::Rejected,
        }
    }
}

impl Call {
    pub(super) async fn run(self) -> Result<Exit, CliError> {
        let arguments = match self.arguments.as_str() {
            "-" => parse(&read_standard_input()?)?,
            arguments => parse(arguments)?,
        };
        let mut signals = signals()?;
        let _subreaper = process::become_subreaper();
        let (config, processes) = prepare(self.flags, None)?;
        let workspace = Arc::new(config.workspace.clone());
        let time_limit = config.server.tool_timeout;
        let (refuses, patience) = (config.asks_nobody(), config.server.approval_timeout);
        let leaves = config.leaves_asking();
        let agent_id = config.server.agent_id.clone();
        let app = App::start(config, processes).await?;
        if waiting::settled(&app, &mut signals).await.is_none() {
            app.end().await;
            return Ok(Exit::Cancelled);
        }
        let cancelled = CancellationToken::new();
        let cx = CallContext {
            call_id: CallId::new(format!("{:032x}", rand::random::<u128>())),
            session: SessionId::new("cli"),
            principal: Principal::new("local"),
            run_id: Some("cli".to_owned()),
            activation_id: Some("cli".to_owned()),
            agent_id,
            workspace,
            client: Client { name: "iris-mcp call".to_owned(), ..Client::default() },
            port: Arc::new(Closed),
            cancelled: cancelled.clone(),
            turn: None,
            time_limit,
        };
        let approver = Terminal { yes: self.yes, refuses, leaves, patience };
        let call = async {
            app.settled().await?;
            Ok::<_, CliError>(app.call(&self.name, arguments, &cx, &approver).await)
        };
        let called = {
            let mut call = std::pin::pin!(call);
            tokio::select! {
                called = &mut call => called,
                _ = signals.next() => {
                    cancelled.cancel();
                    call.await
                }
            }
        };
        if let Ok(Ok(ToolResult { error: Some(failure), .. })) = &called
            && failure.code == NOT_FOUND
        {
            say("`iris-mcp tools` lists the tools there are");
            report_failures(&app.reports().await);
        }
        if !cancelled.is_cancelled() {
            app.end_session(&cx.session);
        }
        app.end().await;
        answer(called?, self.json)
    }
}

fn parse(text: &str) -> Result<Arguments, CliError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(CliError::Usage(
            "the arguments are not a JSON object, such as '{\"path\": \".\"}'".to_owned(),
        )),
        Err(error) => Err(CliError::Usage(format!("the arguments are not JSON: {error}"))),
    }
}

fn read_standard_input() -> Result<String, CliError> {
    std::io::read_to_string(std::io::stdin()).map_err(|error| {
        CliError::Usage(format!("standard input, named by `-`, cannot be read: {error}"))
    })
}

/// Writes what a model would read, or all there is as JSON, and says how it went.
fn answer(called: Result<ToolResult, Interrupt>, json: bool) -> Result<Exit, CliError> {
    let result = match called {
        Ok(result) => result,
        Err(Interrupt::Cancelled) => return Ok(Exit::Cancelled),
        Err(interrupt) => {
            say(format!("error: {interrupt}"));
            return Ok(Exit::Failed);
        }
    };
    let failed = result.error.clone();
    if json {
        print_verdict(format!("{:#}\n", App::wire(result)))?;
    } else {
        write(result)?;
    }
    Ok(match &failed {
        None => Exit::Ok,
        Some(failure) if failure.code == PERMISSION_ERROR || failure.code == USER_REJECTED => {
            Exit::Refused
        }
        Some(_) => Exit::Failed,
    })
}

/// Writes what a model would read, and says where the rest is.
fn write(result: ToolResult) -> Result<(), CliError> {
    let artifact = result.artifact.clone();
    let is_native = result.native.is_some();
    let mut text = result.without_note().model_content();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    print_verdict(text)?;
    // Who sits at the terminal has the file.
    if let Some(Artifact { path, text_path, .. }) = &artifact {
        if let Some(text_path) = text_path {
            say(format!("all of the result is in {text_path}"));
        }
        if is_native {
            say(format!("the whole MCP result is in {path}"));
        }
    }
    Ok(())
}
