//! What is said over the line to the interpreter, as `worker.py` has it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::hook::event::Told;
use crate::tool::result::EXECUTION_ERROR;
use crate::tool::{
    Arguments, Artifact, Block, Call, CallContext, CallTraits, ErrorCode, Failure, Image,
    TimeoutOwner, ToolResult,
};

/// The first line, which the interpreter is made of.
#[derive(Debug, Serialize)]
pub(super) struct Hello<'a> {
    pub(super) source: &'static str,
    pub(super) modules: BTreeMap<String, &'static str>,
    pub(super) path: &'a [PathBuf],
    pub(super) functions: &'a [String],
    pub(super) registrars: &'a [String],
    pub(super) hooks: &'a [Factory],
    pub(super) middleware: &'a [Factory],
    pub(super) limit: usize,
}

/// What makes a hook or a middleware.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Factory {
    /// Where it stands in the agent file: its path there.
    pub place: String,
    /// Where it is in Python: `module:factory`.
    pub factory: String,
    /// What it is called with.
    pub options: Map<String, Value>,
}

/// A message to it.
#[derive(Debug, Serialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub(super) enum Ask<'a> {
    Validate { tool: &'a str, arguments: &'a Arguments },
    Run { tool: &'a str, arguments: &'a Arguments, checked: Option<&'a str>, context: Context<'a> },
    Hook { hook: usize, event: &'a Told<'a> },
    Wrap { middleware: usize, call: Called<'a> },
    Resume { result: Value, raised: bool },
    Ping,
    Cancel,
}

/// What a body may know of its call.
#[derive(Debug, Serialize)]
pub(super) struct Context<'a> {
    call_id: &'a str,
    tool_name: &'a str,
    session_id: &'a str,
    agent_id: &'a str,
    workspace_root: &'a std::path::Path,
    tool_timeout_seconds: Option<f64>,
    metadata: Metadata<'a>,
}

/// What Iris keeps beside it.
#[derive(Debug, Serialize)]
struct Metadata<'a> {
    run_id: Option<&'a str>,
    activation_id: Option<&'a str>,
}

/// A call as middleware sees it.
#[derive(Debug, Serialize)]
pub(super) struct Called<'a> {
    tool_use_id: &'a str,
    tool_name: &'a str,
    arguments: &'a Arguments,
    agent_id: &'a str,
    session_id: &'a str,
    run_id: Option<&'a str>,
    activation_id: Option<&'a str>,
    workspace_root: &'a std::path::Path,
}

/// A message from it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    pub(super) id: Option<u64>,
    pub(super) started: bool,
    /// A middleware wants the rest of the chain to run.
    pub(super) next: bool,
    /// What the rest of the chain came to stands.
    pub(super) kept: bool,
    pub(super) verdict: Option<Map<String, Value>>,
    /// What is added to it, in the place of what it had.
    pub(super) metadata: Option<Map<String, Value>>,
    pub(super) stats: Option<Map<String, Value>>,
    /// What it begins to load.
    pub(super) loading: Option<String>,
    pub(super) arguments: Option<Arguments>,
    /// By what a call has what was made of its arguments.
    pub(super) checked: Option<String>,
    pub(super) alive: Option<Alive>,
    pub(super) traits: Option<Traits>,
    pub(super) result: Option<Box<Result>>,
    pub(super) failure: Option<Box<Failed>>,
    pub(super) described: Option<Box<Described>>,
}

/// That its requests are read, whether or not they get on.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Alive {
    /// The request that it is at.
    pub(super) runs: Option<u64>,
}

/// What can be read of an answer that cannot be read.
#[derive(Debug, Deserialize)]
pub(super) struct Unreadable {
    pub(super) id: u64,
}

/// What it has loaded.
#[derive(Debug, Deserialize)]
pub(super) struct Described {
    /// Each an [`About`], to be read by itself: one that is none costs no other.
    pub(super) tools: Vec<Value>,
    pub(super) problems: Vec<Problem>,
    pub(super) python: String,
    pub(super) iris: String,
}

/// One tool.
#[derive(Debug, Deserialize)]
pub(super) struct About {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input_schema: Map<String, Value>,
    pub(super) capabilities: Vec<String>,
    pub(super) group: String,
    pub(super) aliases: Vec<String>,
    pub(super) deferred: bool,
    pub(super) max_result_chars: usize,
    pub(super) preview_chars: usize,
    pub(super) preview_mode: String,
    pub(super) context_retention: String,
    pub(super) metadata: Map<String, Value>,
}

/// Something that could not be loaded.
#[derive(Debug, Deserialize)]
pub(super) struct Problem {
    /// Where it stands in the agent file: its path there.
    pub(super) place: String,
    reference: String,
    /// The user's own frames, and the exception last.
    lines: Vec<String>,
}

/// What one call does.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Traits {
    read_only: bool,
    destructive: bool,
    parallel: bool,
    timeout_owner: Owner,
}

/// Who ends a call when its time is up.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Owner {
    Runtime,
    Tool,
}

/// Why a call failed.
#[derive(Debug, Deserialize)]
pub(super) struct Failed {
    pub(super) code: String,
    message: String,
    #[serde(default)]
    retryable: bool,
    #[serde(default)]
    details: Map<String, Value>,
}

impl Failed {
    /// Makes one that only says something.
    pub(super) fn of(message: String) -> Self {
        Self { code: String::new(), message, retryable: false, details: Map::new() }
    }
}

/// What a call came to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Result {
    content: Vec<Value>,
    is_error: bool,
    error: Option<Failed>,
    data: Map<String, Value>,
    artifact: Option<Map<String, Value>>,
    stats: Map<String, Value>,
    metadata: Map<String, Value>,
}

impl<'a> Context<'a> {
    pub(super) fn of(cx: &'a CallContext, tool_name: &'a str) -> Self {
        Self {
            call_id: cx.call_id.as_str(),
            tool_name,
            session_id: cx.session.as_str(),
            agent_id: &cx.agent_id,
            workspace_root: cx.workspace.as_path(),
            tool_timeout_seconds: cx.time_limit.map(|limit| limit.as_secs_f64()),
            metadata: Metadata {
                run_id: cx.run_id.as_deref(),
                activation_id: cx.activation_id.as_deref(),
            },
        }
    }
}

impl<'a> Called<'a> {
    pub(super) fn of(call: &'a Call) -> Self {
        let Call {
            id,
            tool_name: _,
            canonical: _,
            told_as,
            arguments,
            agent_id,
            session,
            run_id,
            activation_id,
            workspace,
        } = call;
        Self {
            tool_use_id: id.as_str(),
            tool_name: told_as,
            arguments,
            agent_id,
            session_id: session.as_str(),
            run_id: run_id.as_deref(),
            activation_id: activation_id.as_deref(),
            workspace_root: workspace.as_path(),
        }
    }
}

impl From<Traits> for CallTraits {
    fn from(traits: Traits) -> Self {
        let Traits { read_only, destructive, parallel, timeout_owner } = traits;
        let timeout_owner = match timeout_owner {
            Owner::Runtime => TimeoutOwner::Runtime,
            Owner::Tool => TimeoutOwner::Tool,
        };
        Self { read_only, destructive, parallel, timeout_owner }
    }
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        let Failed { code, message, retryable, details } = failed;
        let code = if code.is_empty() { EXECUTION_ERROR } else { ErrorCode::named(code) };
        let message = if message.is_empty() {
            "the tool failed without saying why".to_owned()
        } else {
            message
        };
        let mut failure = Self::new(code, message);
        failure.retryable = retryable;
        failure.details = details;
        failure
    }
}

impl From<Result> for ToolResult {
    fn from(result: Result) -> Self {
        let Result { content, is_error, error, data, artifact, stats, metadata } = result;
        let failed = error.map(Failure::from);
        let content: Vec<Block> = content.iter().filter_map(block).collect();
        let unsaid = || Failure::new(EXECUTION_ERROR, said_in(&content));
        Self {
            error: if is_error { Some(failed.unwrap_or_else(unsaid)) } else { None },
            content,
            data,
            artifact: artifact.as_ref().and_then(file),
            stats,
            metadata,
            ..Self::default()
        }
    }
}

/// Returns what the content of a failure says, where nothing else does.
fn said_in(content: &[Block]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Block::Text(text) if !text.trim().is_empty() => Some(text.as_str()),
        Block::Text(_) | Block::Image(_) => None,
    });
    let said = texts.collect::<Vec<_>>().join("\n");
    if said.is_empty() { "the tool failed without saying why".to_owned() } else { said }
}

/// Reads a block; images are as Iris has them, or as the protocol does.
fn block(block: &Value) -> Option<Block> {
    let of = |object: &Value, keys: &[&str]| {
        keys.iter().find_map(|key| object.get(key)?.as_str().map(str::to_owned))
    };
    if let Some(text) = block.as_str().map(str::to_owned).or_else(|| of(block, &["text"])) {
        return Some(Block::Text(text));
    }
    if let Some(kind) = of(block, &["type"]).filter(|kind| kind != "image") {
        return Some(Block::Text(format!("a block of type `{kind}`, which no tool here can give")));
    }
    let source = block.get("source").unwrap_or(block);
    let data = of(source, &["data"])?;
    if STANDARD.decode(&data).is_err() {
        // Clients refuse the whole result for it.
        return Some(Block::Text("an image whose data is not base64".to_owned()));
    }
    let mime_type = of(source, &["mime_type", "media_type", "mimeType"]);
    let mut image = Image::new(mime_type.unwrap_or_else(|| "image/png".to_owned()), data);
    image.name = of(block, &["name"]);
    Some(Block::Image(image))
}

fn file(artifact: &Map<String, Value>) -> Option<Artifact> {
    let text = |key: &str| artifact.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(Artifact {
        path: text("path")?,
        uri: None,
        name: None,
        mime_type: text("mime_type").unwrap_or_else(|| "text/plain".to_owned()),
        size_bytes: artifact.get("size_bytes").and_then(Value::as_u64).unwrap_or_default(),
        preview: text("preview").unwrap_or_default(),
        text_path: text("text_path"),
        text_uri: None,
        note: None,
        hold: Vec::new(),
    })
}

impl Problem {
    /// Returns the name of what cannot be loaded: mostly that of a tool.
    pub(super) fn function(&self) -> &str {
        self.reference.rsplit_once(':').map_or(&self.reference, |(_, name)| name)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, reference, lines } = self;
        write!(f, "{place}: `{reference}` cannot be loaded: ")?;
        match lines.split_last() {
            None => f.write_str("it does not say why"),
            Some((error, [])) => f.write_str(error),
            Some((error, frames)) => write!(f, "{error}\n{}", frames.join("\n")),
        }
    }
}
