//! `tools`: what a client would see.

use clap::Args;
use serde_json::{Value, json};

use super::flags::Flags;
use super::terminal::{print, say};
use super::{CliError, Exit, prepare, waiting};
use crate::app::App;
use crate::app::report::Report;
use crate::exposure::names::Names;
use crate::process;
use crate::shutdown::signals;
use crate::tool::{Capability, ToolDefinition};

/// How much of a description is shown.
const SUMMARY_CHARS: usize = 96;

#[derive(Debug, Args)]
pub(super) struct Tools {
    #[command(flatten)]
    flags: Flags,
    /// List those too that clients have to search for.
    #[arg(long)]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Tools {
    pub(super) async fn run(self) -> Result<Exit, CliError> {
        let mut signals = signals()?;
        let _subreaper = process::become_subreaper();
        let (config, processes) = prepare(self.flags, None)?;
        let app = App::start(config, processes).await?;
        if waiting::settled(&app, &mut signals).await.is_none() {
            app.end().await;
            return Ok(Exit::Cancelled);
        }
        let settled = app.settled().await;
        let (mut more, mut is_empty) = (0, false);
        let listed = settled.as_ref().map(|catalogue| {
            let (visible, all) = (app.visible(catalogue), app.exposure().all(catalogue));
            more = all.len() - visible.len();
            is_empty = all.is_empty();
            let names = app.names(catalogue);
            let tools = if self.all { all } else { visible };
            let definitions = tools.iter().map(|tool| tool.definition());
            let is_deferred =
                |definition: &ToolDefinition| app.exposure().is_deferred(catalogue, definition);
            if self.json {
                as_json(definitions, &names, is_deferred)
            } else {
                as_text(definitions, &names, is_deferred)
            }
        });
        let written = match &listed {
            Ok(text) => print(text),
            Err(_) => Ok(()),
        };
        let failed = report_failures(&app.reports().await);
        let skills: Vec<String> = app.skills().into_iter().map(|skill| skill.name).collect();
        if !skills.is_empty() {
            say(format!("skills that load_skill loads: {}", skills.join(", ")));
        }
        if more > 0 && !self.all {
            say(format!(
                "{more} more tools are not listed but found by tool_search; --all lists them"
            ));
        }
        if let Ok(catalogue) = &settled {
            for idle in app.idle_rules(catalogue) {
                say(idle);
            }
        }
        app.end().await;
        settled?;
        written?;
        Ok(if failed && is_empty { Exit::Failed } else { Exit::Ok })
    }
}

fn as_text<'a>(
    definitions: impl Iterator<Item = &'a ToolDefinition>,
    names: &Names,
    is_deferred: impl Fn(&ToolDefinition) -> bool,
) -> String {
    let mut text = String::new();
    for definition in definitions {
        let mark = if is_deferred(definition) { " (not listed)" } else { "" };
        let (summary, cut) = summary(definition);
        text.extend([names.wire(definition), mark, "\n    ", summary, cut, "\n"]);
    }
    text
}

/// Returns the beginning of a description, and a mark if there is more of it.
pub(super) fn summary(definition: &ToolDefinition) -> (&str, &'static str) {
    let line = definition.description().trim().lines().next().unwrap_or_default();
    let end = line.char_indices().nth(SUMMARY_CHARS).map_or(line.len(), |(end, _)| end);
    (&line[..end], if end < line.len() { "…" } else { "" })
}

fn as_json<'a>(
    definitions: impl Iterator<Item = &'a ToolDefinition>,
    names: &Names,
    is_deferred: impl Fn(&ToolDefinition) -> bool,
) -> String {
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
                "deferred": is_deferred(definition),
                "input_schema": definition.input_schema.document(),
            })
        })
        .collect();
    format!("{:#}\n", Value::Array(tools))
}

/// Says on standard error what is missing from the list, and why; returns whether a source failed.
pub(super) fn report_failures(reports: &[Report]) -> bool {
    for Report { source, failure, diagnostics, .. } in reports {
        if let Some(reason) = failure {
            say(format!("{source}: failed: {reason}"));
        }
        for diagnostic in diagnostics {
            say(diagnostic);
        }
    }
    reports.iter().any(|report| report.failure.is_some())
}
