//! A tool with a name and nothing behind it, and the context of a call, for tests.

use std::sync::Arc;

use async_trait::async_trait;

use tokio_util::sync::CancellationToken;

use crate::tool::{
    Arguments, CallContext, CallId, Client, Closed, Failure, InputSchema, Interrupt, Principal,
    SessionId, Tool, ToolDefinition, ToolName, ToolResult, Valid,
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
    described(name, "does nothing", change)
}

/// Makes a tool with a description.
pub(crate) fn described(
    name: &str,
    description: &str,
    change: impl FnOnce(&mut ToolDefinition),
) -> Arc<dyn Tool> {
    let name = ToolName::parse(name).unwrap();
    let mut definition = ToolDefinition::new(name, description, InputSchema::object()).unwrap();
    change(&mut definition);
    Arc::new(Named(definition))
}

/// Makes the context of a call that nobody can be asked during.
pub(crate) fn context() -> CallContext {
    CallContext {
        call_id: CallId::new("call-1"),
        session: SessionId::new("session-1"),
        principal: Principal::new("tester"),
        run_id: None,
        activation_id: None,
        agent_id: String::new(),
        workspace: Arc::new("/ws".into()),
        client: Client::default(),
        port: Arc::new(Closed),
        cancelled: CancellationToken::new(),
        turn: None,
        time_limit: None,
    }
}
