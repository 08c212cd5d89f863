//! A tool of an upstream server, as one of ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::Value;

use super::catalog::Entry;
use super::client::{CallError, MCP_CALL_FAILED};
use super::convert;
use super::server::Upstream;
use crate::tool::result::VALIDATION_ERROR;
use crate::tool::schema::lax;
use crate::tool::{
    Arguments, CallContext, CallTraits, Capability, DefinitionError, ErrorCode, Failure, Interrupt,
    Native, Origin, TimeoutOwner, Tool, ToolDefinition, ToolName, ToolResult, Valid,
};

/// The result is none that a client could read, or breaks the schema that its own tool promises.
pub(super) const MCP_RESULT_INVALID: ErrorCode = ErrorCode::new("MCP_RESULT_INVALID");

/// The longest structured content, in bytes, that is held against a schema for a remark in the log
/// only: that needs a tree of it, which takes ten times the room.
const LONGEST_REMARKED: usize = 1 << 20;

/// One tool of one server, under the name it got here.
#[derive(Debug)]
pub(super) struct UpstreamTool {
    definition: ToolDefinition,
    entry: Entry,
    upstream: Arc<Upstream>,
    /// Whether it was said already that results break the promised schema.
    warned: AtomicBool,
}

impl UpstreamTool {
    pub(super) fn new(
        name: &str,
        entry: Entry,
        upstream: Arc<Upstream>,
    ) -> Result<Self, DefinitionError> {
        let name = ToolName::parse(name)?;
        let mut definition =
            ToolDefinition::new(name, entry.description.clone(), entry.input_schema.clone())?;
        definition.title.clone_from(&entry.title);
        definition.capabilities = [Capability::Mcp].into();
        "mcp".clone_into(&mut definition.group);
        definition.native = Some(Arc::clone(&entry.raw));
        let (server, tool) = (upstream.name().to_owned(), entry.wire_name.clone());
        definition.origin = Some(Origin { server, tool });
        Ok(Self { definition, entry, upstream, warned: AtomicBool::new(false) })
    }

    /// Checks arguments; those that break the schema once more with what a model plainly meant.
    ///
    /// Models send a list as the text of one, and `"2"` for 2. What fits as it came stays so.
    fn checked(&self, raw: Arguments) -> Result<Arguments, String> {
        let schema = &self.definition.input_schema;
        let mended = lax::mend(schema.document(), &raw);
        if mended == raw {
            return schema.check(raw);
        }
        schema.check(raw).or_else(|problem| {
            let mended = schema.check(mended).map_err(|_| problem)?;
            tracing::debug!(tool.name = self.definition.name.as_str(), "arguments were mended");
            Ok(mended)
        })
    }

    /// Makes the failure of a call that is known to change nothing, however far it came.
    fn unread(&self, reason: &str) -> Failure {
        let name = self.upstream.name();
        let message = format!(
            "{name} gave no answer that can be used: {reason}; the tool changes nothing, so it can be called again"
        );
        Failure::new(MCP_CALL_FAILED, message).retryable().with_detail("upstream", name)
    }

    /// Makes the failure of a call whose result is none that a client could read.
    fn malformed(&self, problem: &str) -> Failure {
        let name = self.upstream.name();
        let message = format!("{name} has run the tool, but its result is none: {problem}");
        Failure::new(MCP_RESULT_INVALID, message).with_detail("upstream", name)
    }

    /// Holds a result against the schema that the tool promises.
    ///
    /// Clients are not kept from a result that is good enough for them, unless the operator wants
    /// it so.
    fn check_output(&self, native: &Native) -> Option<Failure> {
        let failed = native.members().get("isError") == Some(&Value::Bool(true));
        let schema = self.entry.output_schema.as_ref().filter(|_| !failed)?;
        let strict = self.upstream.is_strict();
        if !strict && native.structured_bytes() > LONGEST_REMARKED {
            return None;
        }
        let problem = schema.check(&native.structured()).err()?;
        if strict {
            let message = format!("the result breaks the tool's own output schema: {problem}");
            return Some(Failure::new(MCP_RESULT_INVALID, message));
        }
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                tool.name = self.definition.name.as_str(),
                problem,
                "results break the tool's own output schema; they are passed on as they are"
            );
        }
        None
    }
}

#[async_trait]
impl Tool for UpstreamTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn validate(&self, raw: Arguments, _cx: &CallContext) -> Result<Valid, Failure> {
        let arguments = self.checked(raw).map_err(|problem| {
            let message = format!("invalid arguments for {}: {problem}", self.definition.name);
            Failure::new(VALIDATION_ERROR, message)
        })?;
        let read_only = self.upstream.is_trusted() && self.entry.read_only_hint;
        let traits = CallTraits {
            read_only,
            destructive: !read_only,
            parallel: false,
            timeout_owner: TimeoutOwner::Tool,
        };
        Ok(Valid::new(arguments, traits))
    }

    async fn run(&self, call: &Valid, cx: &CallContext) -> Result<ToolResult, Interrupt> {
        match self.upstream.call(&self.entry.wire_name, &call.arguments, cx).await {
            Ok(mut native) => match convert::put_right(native.members_mut()) {
                Err(problem) => Ok(self.malformed(&problem).into()),
                Ok(()) => match self.check_output(&native) {
                    Some(failure) => Ok(failure.into()),
                    None => Ok(self.upstream.natives().result(native, &self.definition, cx).await),
                },
            },
            Err(CallError::Failed(failure)) => Ok(failure.into()),
            Err(CallError::Broken(reason)) if call.traits.read_only => {
                Ok(self.unread(&reason).into())
            }
            Err(CallError::Broken(reason)) => {
                let target = self.upstream.name().to_owned();
                Err(Interrupt::OutcomeUnknown { target, reason })
            }
            Err(CallError::Interrupted(interrupt)) => Err(interrupt),
        }
    }
}
