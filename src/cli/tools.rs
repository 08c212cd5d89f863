//! `tools`: what a client would see.

use std::io::Write as _;

use clap::Args;
use serde_json::{Value, json};

use super::flags::Flags;
use super::{CliError, Exit, prepare, say};
use crate::app::App;
use crate::app::report::Report;
use crate::exposure::names::Names;
use crate::process;
use crate::tool::{Capability, ToolDefinition};

/// How much of a description is shown.
const SUMMARY_CHARS: usize = 96;

#[derive(Debug, Args)]
pub(super) struct Tools {
    #[command(flatten)]
    flags: Flags,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Tools {
    pub(super) async fn run(self) -> Result<Exit, CliError> {
        let _subreaper = process::become_subreaper();
        let (config, processes) = prepare(self.flags, None)?;
        let app = App::start(config, processes).await?;
        let settled = app.settled().await;
        let listed = settled.as_ref().map(|catalogue| {
            let tools = app.visible(catalogue);
            let names = app.names(catalogue);
            let definitions = tools.iter().map(|tool| tool.definition());
            if self.json { as_json(definitions, &names) } else { as_text(definitions, &names) }
        });
        let written = match &listed {
            Ok(text) => std::io::stdout().write_all(text.as_bytes()),
            Err(_) => Ok(()),
        };
        report_failures(&app.reports().await);
        if let Ok(catalogue) = &settled {
            for idle in app.idle_rules(catalogue) {
                say(idle);
            }
        }
        app.end().await;
        settled?;
        written?;
        Ok(Exit::Ok)
    }
}

fn as_text<'a>(definitions: impl Iterator<Item = &'a ToolDefinition>, names: &Names) -> String {
    let mut text = String::new();
    for definition in definitions {
        let line = definition.description().trim().lines().next().unwrap_or_default();
        let end = line.char_indices().nth(SUMMARY_CHARS).map_or(line.len(), |(end, _)| end);
        let summary = &line[..end];
        let cut = if summary.len() < line.len() { "…" } else { "" };
        text.extend([names.wire(definition), "\n    ", summary, cut, "\n"]);
    }
    text
}

fn as_json<'a>(definitions: impl Iterator<Item = &'a ToolDefinition>, names: &Names) -> String {
    let tools: Vec<Value> = definitions
        .map(|definition| {
            let capabilities: Vec<&str> =
                definition.capabilities.iter().map(Capability::as_str).collect();
            json!({
                "name": names.wire(definition),
                "canonical": definition.name.as_str(),
                "description": definition.description(),
                "group": definition.group,
                "capabilities": capabilities,
                "aliases": definition.aliases,
                "input_schema": definition.input_schema.document(),
            })
        })
        .collect();
    format!("{:#}\n", Value::Array(tools))
}

/// Says on standard error what is missing from the list, and why.
pub(super) fn report_failures(reports: &[Report]) {
    for Report { source, failure, diagnostics, .. } in reports {
        if let Some(reason) = failure {
            say(format!("{source}: failed: {reason}"));
        }
        for diagnostic in diagnostics {
            say(diagnostic);
        }
    }
}
