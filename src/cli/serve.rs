//! `serve`: the server itself.

use clap::Args;
use serde_json::json;

use super::flags::{Flags, Serving};
use super::terminal::{is_capable, say};
use super::{CliError, Exit, prepare, waiting};
use crate::app::App;
use crate::app::report::Report;
use crate::process;
use crate::shutdown::signals;

#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    serving: Serving,
}

impl Serve {
    pub(super) async fn run(self) -> Result<Exit, CliError> {
        let mut signals = signals()?;
        if let Err(error) = process::become_subreaper() {
            tracing::warn!(%error, "orphans of upstream servers cannot be adopted");
        }
        let (config, processes) = prepare(self.flags, Some(self.serving))?;
        let wants_token = config.http.as_ref().is_some_and(|http| http.tokens.is_some());
        if config.http.is_none() && !config.stdio {
            let message = "there is nothing to serve: standard input and output are switched off, and --http is not given";
            return Err(CliError::Usage(message.to_owned()));
        }
        let app = App::start(config, processes).await?;
        let endpoint = app.endpoint();
        if let Some(endpoint) = &endpoint {
            say(endpoint);
        }
        let hooks = app.hooks();
        if !hooks.is_empty() {
            tracing::info!(count = hooks.len(), hooks = hooks.join(", "), "calls pass hooks");
        }
        let (shown, reports) = (waiting::shown(&app), app.reports());
        let announce = async move {
            shown.await;
            let reports = reports.await;
            match endpoint {
                Some(endpoint) => introduce((&reports, &hooks), &endpoint, wants_token),
                // A client over stdio has what we say in its log, which has it already.
                None if is_capable(&std::io::stderr()) => tell_failures(&reports),
                None => {}
            }
        };
        let ended = app.gateway().parts().shutdown.child();
        let announce = async move {
            tokio::select! {
                () = announce => {}
                () = ended.cancelled() => {}
            }
        };
        drop(app.gateway().parts().shutdown.spawn("announce", announce));
        app.serve(async move { signals.next().await.to_string() }).await?;
        Ok(Exit::Ok)
    }
}

/// Says what is served, and how to plug a client in.
fn introduce((reports, hooks): (&[Report], &[String]), endpoint: &str, wants_token: bool) {
    for Report { source, tools, failure, .. } in reports {
        match failure {
            Some(reason) => say(format!("  {source}: failed: {reason}")),
            None if *tools == 1 => say(format!("  {source}: 1 tool")),
            None => say(format!("  {source}: {tools} tools")),
        }
    }
    if !hooks.is_empty() {
        say(format!("  hooks: {}", hooks.join(", ")));
    }
    let mut server = json!({"type": "http", "url": endpoint});
    if wants_token {
        // We know no token, only their digests; and no token belongs into a file.
        server["headers"] = json!({"Authorization": "Bearer ${IRIS_TOKEN}"});
    }
    let snippet = json!({"mcpServers": {"iris": server}});
    say(format!("for a client's configuration:\n{snippet:#}"));
}

fn tell_failures(reports: &[Report]) {
    for Report { source, failure, .. } in reports {
        if let Some(reason) = failure {
            say(format!("{source}: failed: {reason}"));
        }
    }
}
