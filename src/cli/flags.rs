//! The flags that say what a run is made of; every command that starts one has them.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use crate::config::Host;
use crate::config::discovery::{DeferName, DiscoverySettings};
use crate::config::log::{Log, LogFormat};
use crate::config::settings::{
    self, ActivitySettings, Approval, ApprovalSettings, Glob, Globs, Limits, Seconds, Settings,
};
use crate::exposure::Disclosure;
use crate::exposure::names::{MaxName, Style};

#[derive(Clone, Debug, Args)]
pub(super) struct Flags {
    /// The agent file: permissions, built-in tools and upstream servers.
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// A file with upstream MCP servers (JSON, JSONC or TOML); can be given more than once.
    #[arg(long, value_name = "FILE")]
    mcp: Vec<PathBuf>,
    /// The folder that the file tools work in.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Serve the rest when a required upstream server fails.
    #[arg(long)]
    keep_going: bool,
    /// Who answers when a call needs a person's approval: the person at the client, the client
    /// by itself, or nobody.
    #[arg(long, value_name = "ask|client|deny")]
    approval: Option<Approval>,
    /// Tools that need nobody's approval: a glob over names and capabilities; can be repeated.
    #[arg(long, value_name = "GLOB")]
    permit: Vec<Glob>,
    /// Tools that always need a person's approval; can be repeated.
    #[arg(long, value_name = "GLOB")]
    ask: Vec<Glob>,
    /// Tools that are always refused; can be repeated, and wins over the other two.
    #[arg(long, value_name = "GLOB")]
    forbid: Vec<Glob>,
    /// Whether clients get the tools that read again what was called and what came of it.
    #[arg(long, value_name = "on|off", value_parser = settings::switch)]
    context: Option<bool>,
    /// Whether tools of upstream servers are left out of the list and found by a search: when the
    /// list would be long, always, or never.
    #[arg(long, value_name = "auto|always|never")]
    defer: Option<DeferName>,
    /// How a tool that was found is called: by its own name, which then is in the list of older
    /// clients, through `call_tool`, or both.
    #[arg(long, value_name = "both|meta|session")]
    disclosure: Option<Disclosure>,
    /// What clients call the tools of upstream servers: `mcp__server__tool`, `server__tool`, or
    /// as the server does.
    #[arg(long, value_name = "iris|plain|bare")]
    names: Option<Style>,
    /// The longest name that a client is shown, from 16 to 128 characters.
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    max_name: Option<MaxName>,
    /// How long a call may take, in seconds.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    tool_timeout: Option<Seconds>,
    /// The longest message, in bytes.
    #[arg(long, value_name = "BYTES", value_parser = settings::count, allow_negative_numbers = true)]
    max_message_bytes: Option<NonZeroUsize>,
    /// How many calls may run at once.
    #[arg(long, value_name = "COUNT", value_parser = settings::count, allow_negative_numbers = true)]
    concurrent_calls: Option<NonZeroUsize>,
    /// A file with more settings (TOML).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write the log to this file instead of standard error.
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// The form of the log's lines.
    #[arg(long, value_name = "text|json")]
    log_format: Option<LogFormat>,
    /// What is logged: a level, or levels by module.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// Append a record of each call to this file, as a line of JSON.
    #[arg(long, value_name = "FILE")]
    activity_log: Option<PathBuf>,
}

/// The flags of serving alone.
#[derive(Debug, Args)]
pub(super) struct Serving {
    /// Serve the client at standard input and output; the default without --http.
    #[arg(long)]
    stdio: bool,
    /// Serve clients over streamable HTTP at this address; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = settings::address)]
    http: Option<SocketAddr>,
    /// The file with the bearer tokens of HTTP clients; needed to be reached from other machines.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Flags {
    pub(super) fn settings(self, host: &Host) -> Settings {
        let Self {
            agent,
            mcp,
            workspace,
            keep_going,
            approval,
            permit,
            ask,
            forbid,
            context,
            defer,
            disclosure,
            names,
            max_name,
            tool_timeout,
            max_message_bytes,
            concurrent_calls,
            config,
            log_file,
            log_format,
            log,
            activity_log,
        } = self;
        let mut settings = Settings {
            config: config.map(|path| host.directory.join(path)),
            agent,
            mcp: (!mcp.is_empty()).then_some(mcp),
            workspace,
            keep_going: keep_going.then_some(true),
            approval: ApprovalSettings {
                mode: approval,
                timeout_seconds: None,
                permit: given(permit),
                ask: given(ask),
                forbid: given(forbid),
            },
            context,
            discovery: DiscoverySettings { defer, disclosure, budget_tokens: None },
            names,
            max_name,
            limits: Limits {
                tool_timeout_seconds: tool_timeout,
                max_message_bytes,
                concurrent_calls,
                session_idle_seconds: None,
                max_sessions: None,
            },
            log: Log { file: log_file, format: log_format, filter: log },
            activity: ActivitySettings { file: activity_log },
            ..Settings::default()
        };
        settings.rebase(&host.directory);
        settings
    }
}

/// A list that was given at all.
fn given(list: Vec<Glob>) -> Option<Globs> {
    (!list.is_empty()).then(|| Globs::new(list, None))
}

impl Serving {
    pub(super) fn add_to(self, settings: &mut Settings, host: &Host) {
        let Self { stdio, http, token_file } = self;
        settings.stdio = stdio.then_some(true);
        settings.http = http;
        settings.token_file = token_file.map(|path| host.directory.join(path));
    }
}
