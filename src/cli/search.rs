//! `search`: which tools a search finds, for whoever wants to know before a model does.

use std::num::NonZeroUsize;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::flags::Flags;
use super::terminal::{print, say};
use super::tools::{report_failures, summary};
use super::{CliError, Exit, prepare, waiting};
use crate::app::App;
use crate::config::settings;
use crate::exposure::names::Names;
use crate::process;
use crate::shutdown::signals;
use crate::tool::Tool;

#[derive(Debug, Args)]
pub(super) struct Search {
    #[command(flatten)]
    flags: Flags,
    /// What to look for; one query an argument.
    #[arg(required = true, value_name = "QUERY")]
    queries: Vec<String>,
    /// How many tools to show for each query; a model gets the first one.
    #[arg(
        long,
        value_name = "COUNT",
        default_value = "5",
        value_parser = settings::count,
        allow_negative_numbers = true
    )]
    limit: NonZeroUsize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Search {
    pub(super) async fn run(self) -> Result<Exit, CliError> {
        if let Some(blank) = self.queries.iter().find(|query| query.trim().is_empty()) {
            return Err(CliError::Usage(format!("a query must not be blank: {blank:?}")));
        }
        let mut signals = signals()?;
        let _subreaper = process::become_subreaper();
        let (config, processes) = prepare(self.flags.clone(), None)?;
        let app = App::start(config, processes).await?;
        if waiting::settled(&app, &mut signals).await.is_none() {
            app.end().await;
            return Ok(Exit::Cancelled);
        }
        let settled = app.settled().await;
        let mut is_empty = false;
        let written = match &settled {
            Ok(catalogue) => {
                is_empty = app.exposure().all(catalogue).is_empty();
                // All there are, whether they have to be searched for or not.
                let found = app.found(catalogue, &self.queries, self.limit.get());
                let text = self.text(&found, &app.names(catalogue));
                print(text)
            }
            Err(_) => Ok(()),
        };
        let failed = report_failures(&app.reports().await);
        app.end().await;
        settled?;
        written?;
        Ok(if failed && is_empty { Exit::Failed } else { Exit::Ok })
    }

    fn text(&self, found: &[Vec<Arc<dyn Tool>>], names: &Names) -> String {
        let found = self.queries.iter().zip(found);
        if self.json {
            let found = found.map(|(query, tools)| {
                let tools = tools.iter().map(|tool| {
                    let tool = tool.definition();
                    json!({
                        "name": names.wire(tool),
                        "canonical": tool.name.as_str(),
                        "description": tool.description(),
                        "group": tool.group,
                    })
                });
                json!({"query": query, "tools": tools.collect::<Vec<_>>()})
            });
            return format!("{:#}\n", found.collect::<Value>());
        }
        let mut text = String::new();
        for (query, tools) in found {
            if self.queries.len() > 1 {
                text.extend([query, ":\n"]);
            }
            if tools.is_empty() {
                say(format!("no tool fits {query:?}"));
            }
            for tool in tools {
                let (summary, cut) = summary(tool.definition());
                text.extend([names.wire(tool.definition()), "\n    ", summary, cut, "\n"]);
            }
        }
        text
    }
}
