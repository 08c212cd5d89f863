//! A tool with a name and nothing behind it, for the tests of those who only list tools.

use std::sync::Arc;

use async_trait::async_trait;

use crate::tool::{
    Arguments, CallContext, Failure, InputSchema, Interrupt, Tool, ToolDefinition, ToolName,
    ToolResult, Valid,
};

#[derive(Debug)]
struct Named(ToolDefinition);

#[async_trait]
impl Tool for Named {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    async fn validate(&self, raw: Arguments, _cx: &CallContext) -> Result<Valid, Failure> {
        Ok(Valid::new(raw, self.0.traits()))
    }

    async fn run(&self, _call: &Valid, _cx: &CallContext) -> Result<ToolResult, Interrupt> {
        Ok(ToolResult::default())
    }
}

/// Makes a tool; `change` sets what is not at its default.
pub(crate) fn named(name: &str, change: impl FnOnce(&mut ToolDefinition)) -> Arc<dyn Tool> {
    let name = ToolName::parse(name).unwrap();
    let mut definition = ToolDefinition::new(name, "does nothing", InputSchema::object()).unwrap();
    change(&mut definition);
    Arc::new(Named(definition))
}
