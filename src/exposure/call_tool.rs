//! `call_tool`: another tool's call in the clothes of one that every client lists.
//!
//! It has no body: a call of it becomes the call of the tool that it names before anything else
//! looks at it, so rules, hooks, records and results are that tool's.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::tool::result::VALIDATION_ERROR;
use crate::tool::{
    Arguments, CallContext, Capability, Failure, Interrupt, Tool, ToolDefinition, ToolResult, Valid,
};

const DESCRIPTION: &str = "\
Calls a tool that tool_search has found, as if it were called by its own name.";

/// The tool that is listed.
#[derive(Debug)]
pub(super) struct CallTool(ToolDefinition);

/// Which tool is meant, and with which arguments.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) name: String,
    pub(super) arguments: Arguments,
}

impl CallTool {
    pub(super) fn tool() -> Arc<dyn Tool> {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "description": "The tool's name."},
                "arguments": {"type": "object", "description": "By its input_schema."},
            },
        });
        let mut definition = super::own("call_tool", "Call a found tool", DESCRIPTION, schema);
        // What is called may do anything; what it does is in what the search says of it.
        definition.capabilities = [Capability::Mcp, Capability::Write].into();
        Arc::new(Self(definition))
    }
}

/// Reads the arguments of `call_tool`.
pub(super) fn unwrapped(definition: &ToolDefinition, mut raw: Arguments) -> Result<Inner, Failure> {
    // Many models write an object as the text of one.
    if let Some(Value::String(text)) = raw.get("arguments") {
        let parsed = serde_json::from_str::<Map<String, Value>>(text).map_err(|error| {
            refused(&format!("arguments: expected an object, got a text that is none: {error}"))
        })?;
        tracing::debug!("the arguments of call_tool came as text");
        raw.insert("arguments".to_owned(), parsed.into());
    }
    let mut checked = definition.input_schema.check(raw).map_err(|problem| refused(&problem))?;
    let name = match checked.get("name").and_then(Value::as_str) {
        Some(name) if name != definition.name.as_str() => name.to_owned(),
        _ => return Err(refused("name: call_tool cannot call itself")),
    };
    let arguments = match checked.remove("arguments") {
        Some(Value::Object(arguments)) => arguments,
        _ => Arguments::new(),
    };
    Ok(Inner { name, arguments })
}

fn refused(problem: &str) -> Failure {
    Failure::new(VALIDATION_ERROR, format!("invalid arguments for call_tool: {problem}"))
}

#[async_trait]
impl Tool for CallTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    async fn validate(&self, _raw: Arguments, _cx: &CallContext) -> Result<Valid, Failure> {
        Err(refused("it was not resolved to a tool"))
    }

    async fn run(&self, _call: &Valid, _cx: &CallContext) -> Result<ToolResult, Interrupt> {
        Ok(refused("it was not resolved to a tool").into())
    }
}
