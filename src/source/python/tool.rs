//! A Python tool, as one of ours.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::host::{self, Host};
use super::shelf::Shelf;
use super::wire::{About, Ask, Context};
use super::worker::Answer;
use crate::tool::result::{EXECUTION_ERROR, TOOL_TIMEOUT};
use crate::tool::{
    Arguments, CallContext, Capability, Failure, InputSchema, Interrupt, PreviewMode, Retention,
    Tool, ToolDefinition, ToolName, ToolResult, Valid,
};

/// One tool of the agent's Python modules.
#[derive(Debug)]
pub(super) struct PythonTool {
    definition: ToolDefinition,
    host: Arc<Host>,
    shelf: Shelf,
}

/// Arguments that were checked.
#[derive(Debug)]
struct Checked {
    /// As the caller gave them.
    as_it_came: Arguments,
    /// By what the interpreter has what it made of them.
    by: Option<String>,
}

impl PythonTool {
    pub(super) fn new(about: About, host: Arc<Host>, shelf: Shelf) -> Result<Self, String> {
        let name = ToolName::parse(&about.name).map_err(|error| error.to_string())?;
        let schema = InputSchema::compile(about.input_schema).map_err(|error| error.to_string())?;
        let mut definition = ToolDefinition::new(name, about.description, schema)
            .map_err(|error| error.to_string())?;
        let capability = |word: &String| {
            let known = Capability::ALL.into_iter().find(|one| one.as_str() == word);
            known.ok_or_else(|| format!("there is no capability `{word}`"))
        };
        definition.capabilities =
            about.capabilities.iter().map(capability).collect::<Result<_, _>>()?;
        definition.group = about.group;
        definition.aliases = about.aliases;
        definition.deferred = about.deferred;
        definition.max_result_chars = about.max_result_chars;
        definition.preview_chars = about.preview_chars;
        definition.preview_mode = match about.preview_mode.as_str() {
            "head" => PreviewMode::Head,
            "head_tail" => PreviewMode::HeadTail,
            other => return Err(format!("`preview_mode` is head or head_tail, and not `{other}`")),
        };
        definition.retention = match about.context_retention.as_str() {
            "keep" => Retention::Keep,
            "observation" => Retention::Observation,
            other => {
                return Err(format!(
                    "`context_retention` is keep or observation, and not `{other}`"
                ));
            }
        };
        definition.metadata = said(about.metadata);
        Ok(Self { definition, host, shelf })
    }
}

/// Drops what says nothing.
fn said(mut metadata: Map<String, Value>) -> Map<String, Value> {
    metadata.retain(|_, value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Object(_) => true,
    });
    metadata
}

impl PythonTool {
    async fn checked(&self, raw: Arguments) -> Result<Valid, Failure> {
        let tool = self.definition.name.as_str();
        // Checking has no effect, so it never counts as begun.
        let answer = self.host.ask_again(|| Ask::Validate { tool, arguments: &raw }).await?;
        match answer {
            Answer::Said(said) => match (said.arguments, said.traits, said.failure) {
                (seen, Some(traits), None) => {
                    let shown = seen.unwrap_or_else(|| raw.clone());
                    let checked = Checked { as_it_came: raw, by: said.checked };
                    Ok(Valid::new(shown, traits.into()).with_payload(checked))
                }
                (_, _, Some(failed)) => Err((*failed).into()),
                _ => Err(unknown()),
            },
            Answer::Lost { .. } => Err(host::lost()),
        }
    }
}

#[async_trait]
impl Tool for PythonTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn validate(&self, raw: Arguments, cx: &CallContext) -> Result<Valid, Failure> {
        let checked = self.checked(raw);
        match cx.time_limit {
            None => checked.await,
            Some(limit) => tokio::time::timeout(limit, checked).await.unwrap_or_else(|_| {
                let seconds = limit.as_secs_f64();
                let message = format!("checking the arguments took longer than {seconds} s");
                Err(Failure::new(TOOL_TIMEOUT, message).retryable())
            }),
        }
    }
    async fn run(&self, call: &Valid, cx: &CallContext) -> Result<ToolResult, Interrupt> {
        let tool = self.definition.name.as_str();
        // What was made of arguments cannot be made of what is shown of them.
        let (arguments, checked) = match call.payload::<Checked>() {
            Some(Checked { as_it_came, by }) => (as_it_came, by.as_deref()),
            None => (&call.arguments, None),
        };
        let ask = Ask::Run { tool, arguments, checked, context: Context::of(cx, tool) };
        let answer = tokio::select! {
            answer = self.host.ask(ask) => answer,
            // Dropping the question gives it up.
            () = cx.cancelled.cancelled() => return Err(Interrupt::Cancelled),
        };
        match answer {
            Ok(Answer::Said(said)) => Ok(match (said.result, said.failure) {
                (Some(result), None) => self.shelf.keep((*result).into(), cx).await,
                (_, Some(failed)) => Failure::from(*failed).into(),
                _ => unknown().into(),
            }),
            Ok(Answer::Lost { begun: true }) => {
                let reason = "the Python interpreter ended in the middle of the call".to_owned();
                Err(Interrupt::OutcomeUnknown { target: tool.to_owned(), reason })
            }
            Ok(Answer::Lost { begun: false }) => Ok(host::lost().into()),
            Err(failure) => Ok(failure.into()),
        }
    }
}

fn unknown() -> Failure {
    Failure::new(EXECUTION_ERROR, "the Python interpreter gave an answer that nobody knows")
}
