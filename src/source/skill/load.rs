//! `load_skill`: the text of one skill, as it is now.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::scan::{self, Skill};
use super::stock::Stock;
use super::text::{self, ReadError};
use super::{LOAD_SKILL, catalog};
use crate::source::builtin::on_thread::on_thread;
use crate::tool::{
    CallContext, Capability, ErrorCode, Failure, InputSchema, ToolDefinition, ToolError, ToolName,
    ToolResult, TypedTool,
};

/// There is no skill of this name.
pub const SKILL_NOT_FOUND: ErrorCode = ErrorCode::new("SKILL_NOT_FOUND");
/// A skill leads out of the folder of skills since it was found.
pub const SKILL_PATH_ERROR: ErrorCode = ErrorCode::new("SKILL_PATH_ERROR");
/// The text of a skill cannot be read.
pub const SKILL_READ_ERROR: ErrorCode = ErrorCode::new("SKILL_READ_ERROR");

/// Loads skills by name.
#[derive(Debug)]
pub(super) struct LoadSkill {
    definition: ToolDefinition,
    stock: Arc<Stock>,
}

/// The arguments of `load_skill`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Input {
    name: String,
}

impl LoadSkill {
    /// Makes the tool as it describes these skills.
    pub(super) fn new(stock: Arc<Stock>, skills: &[Arc<Skill>]) -> Self {
        let description = catalog::description(skills, stock.roots());
        Self { definition: definition(&description), stock }
    }
}

#[async_trait]
impl TypedTool for LoadSkill {
    type Input = Input;

    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn run(&self, input: &Input, cx: &CallContext) -> Result<ToolResult, ToolError> {
        let (stock, name) = (Arc::clone(&self.stock), input.name.clone());
        let session = stock.sessions().get(&cx.session);
        on_thread(cx, move |_| {
            let known = stock.get(&name);
            // One that has just been put there is not known yet.
            let skill = known.or_else(|| scan::find(stock.workspace(), stock.roots(), &name));
            let skill = skill.ok_or_else(|| not_found(&name, &stock))?;
            let file = scan::file_of(stock.workspace(), &skill).ok_or_else(|| moved(&name))?;
            let read = text::read(stock.workspace(), &file);
            let read = read.map_err(|error| unread(&name, &error))?;
            // What was read of a file counts, however it was read.
            session.read_state().record(&file, read.observation);
            Ok(ToolResult::text(read.text))
        })
        .await
    }
}

fn not_found(name: &str, stock: &Stock) -> Failure {
    Failure::new(SKILL_NOT_FOUND, format!("there is no skill called {name}"))
        .with_detail("name", name)
        .with_detail("available", stock.names())
        .retryable()
}

fn moved(name: &str) -> Failure {
    let message = format!(
        "the path of the skill {name} leads out of the folder of skills now, or to something hidden in it"
    );
    Failure::new(SKILL_PATH_ERROR, message).with_detail("name", name)
}

fn unread(name: &str, error: &ReadError) -> Failure {
    Failure::new(SKILL_READ_ERROR, format!("the skill {name} cannot be read: {error}"))
        .with_detail("name", name)
        .with_detail("reason", error.to_string())
        .retryable()
}

/// Makes the tool's definition; what is not the description is always the same.
pub(super) fn definition(description: &str) -> ToolDefinition {
    let Value::Object(schema) = schema() else { unreachable!("a schema is an object") };
    let made = ToolName::parse(LOAD_SKILL).ok().zip(InputSchema::compile(schema).ok());
    let made = made.and_then(|(name, schema)| ToolDefinition::new(name, description, schema).ok());
    let Some(mut definition) = made else { unreachable!("load_skill is defined by literals") };
    definition.title = Some("Load a skill".to_owned());
    "skill".clone_into(&mut definition.group);
    definition.capabilities = [Capability::Read].into();
    definition
}

fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "properties": {"name": {"type": "string", "pattern": "^[a-z0-9]+(?:-[a-z0-9]+)*$"}},
    })
}
