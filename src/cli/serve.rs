//! `serve`: the server itself.

use clap::Args;
use serde_json::json;

use super::flags::{Flags, Serving};
use super::terminal::say;
use super::{CliError, Exit, prepare};
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
        if config.http.is_none() && !config.stdio {
            let message = "there is nothing to serve: standard input and output are switched off, and --http is not given";
            return Err(CliError::Usage(message.to_owned()));
        }
        let app = App::start(config, processes).await?;
        let endpoint = app.endpoint();
        if let Some(endpoint) = &endpoint {
            say(endpoint);
            let (reports, endpoint) = (app.reports(), endpoint.clone());
            let announce = async move { introduce(&reports.await, &endpoint) };
            let ended = app.gateway().parts().shutdown.child();
            let announce = async move {
                tokio::select! {
                    () = announce => {}
                    () = ended.cancelled() => {}
                }
            };
            drop(app.gateway().parts().shutdown.spawn("announce", announce));
        }
        app.serve(async move { signals.next().await.to_string() }).await?;
        Ok(Exit::Ok)
    }
}

/// Says what is served, and how to plug a client in.
fn introduce(reports: &[Report], endpoint: &str) {
    for Report { source, tools, failure, .. } in reports {
        match failure {
            Some(reason) => say(format!("  {source}: failed: {reason}")),
            None if *tools == 1 => say(format!("  {source}: 1 tool")),
            None => say(format!("  {source}: {tools} tools")),
        }
    }
    let snippet = json!({"mcpServers": {"iris": {"type": "http", "url": endpoint}}});
    say(format!("for a client's configuration:\n{snippet:#}"));
}
