//! What hooks outside of this process are told of an event: one JSON object, its keys in order.
//!
//! A command reads it on standard input and a Python hook as a dictionary; both are the same.

use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Event, Finished, Run, RunFinished, RunStarted};
use crate::tool::{Artifact, Block, Call, Image, ImageFile, ToolResult};

/// Where the time comes from.
pub type Clock = fn() -> SystemTime;

/// An event as it is told. Its fields are the keys of the object.
#[derive(Debug, Serialize)]
pub struct Told<'a> {
    event: &'static str,
    agent_id: &'a str,
    session_id: &'a str,
    run_id: Option<&'a str>,
    activation_id: Option<&'a str>,
    workspace: String,
    occurred_at: String,
    #[serde(flatten)]
    own: Own<'a>,
}

/// The keys that only one event has.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Own<'a> {
    Started { run: Value, input: &'a str },
    Finished { result: Value },
    Before(Called<'a>),
    After(After<'a>),
}

#[derive(Debug, Serialize)]
struct Called<'a> {
    call_id: &'a str,
    tool_name: &'a str,
    arguments: &'a Map<String, Value>,
}

#[derive(Debug, Serialize)]
struct After<'a> {
    #[serde(flatten)]
    called: Called<'a>,
    result: Dump<'a>,
    body_status: &'static str,
}

/// The result of a call, with all that is in it.
#[derive(Debug, Serialize)]
pub struct Dump<'a> {
    tool_use_id: &'a str,
    tool_name: &'a str,
    content: Vec<Piece<'a>>,
    is_error: bool,
    error: Option<Problem<'a>>,
    data: &'a Map<String, Value>,
    artifact: Option<Kept<'a>>,
    stats: &'a Map<String, Value>,
    metadata: &'a Map<String, Value>,
    hook_feedback: &'a [String],
}

/// An image is told by where it is: its bytes are for models.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Piece<'a> {
    Text {
        text: &'a str,
    },
    Image {
        original: Option<Picture<'a>>,
        model: Option<Picture<'a>>,
        name: Option<&'a str>,
        mime_type: &'a str,
    },
}

#[derive(Debug, Serialize)]
struct Picture<'a> {
    path: &'a str,
    mime_type: &'a str,
    width: u32,
    height: u32,
}

#[derive(Debug, Serialize)]
struct Problem<'a> {
    code: &'a str,
    message: &'a str,
    retryable: bool,
    details: &'a Map<String, Value>,
}

#[derive(Debug, Serialize)]
struct Kept<'a> {
    path: &'a str,
    mime_type: &'a str,
    size_bytes: u64,
    preview: &'a str,
    text_path: Option<&'a str>,
}

impl<'a> Told<'a> {
    /// Tells of a call before it runs.
    pub fn before(call: &'a Call, at: SystemTime) -> Self {
        Self::of_call(Event::Before, call, at, Own::Before(Called::of(call)))
    }

    /// Tells of a call that ran.
    pub fn after(finished: &'a Finished, at: SystemTime) -> Self {
        let Finished { call, result, body_failed } = finished;
        let own = After {
            called: Called::of(call),
            result: Dump::of(call, result),
            body_status: if *body_failed { "error" } else { "success" },
        };
        Self::of_call(Event::After, call, at, Own::After(own))
    }

    /// Tells of a run that begins.
    pub fn started(started: &'a RunStarted, at: SystemTime) -> Self {
        let RunStarted { run, activation_id } = started;
        let activation = activation_id.as_deref();
        // Nobody talks to a model here: what a run begins with is a call, not a text.
        let own = Own::Started { run: snapshot(run, activation, None), input: "" };
        Self::of_run(Event::RunStarted, (run, activation), at, own)
    }

    /// Tells of a run that has ended.
    pub fn finished(finished: &'a RunFinished, at: SystemTime) -> Self {
        let run = &finished.run;
        let result = json!({
            "run": snapshot(run, None, Some(finished)),
            "assistant_message": null,
            "pending_interaction": null,
            "error": null,
        });
        Self::of_run(Event::RunFinished, (run, None), at, Own::Finished { result })
    }

    fn of_call(event: Event, call: &'a Call, at: SystemTime, own: Own<'a>) -> Self {
        Self {
            event: event.name(),
            agent_id: &call.agent_id,
            session_id: call.session.as_str(),
            run_id: call.run_id.as_deref(),
            activation_id: call.activation_id.as_deref(),
            workspace: shown(&call.workspace),
            occurred_at: instant(at, "+00:00"),
            own,
        }
    }

    fn of_run(
        event: Event,
        (run, activation_id): (&'a Run, Option<&'a str>),
        at: SystemTime,
        own: Own<'a>,
    ) -> Self {
        Self {
            event: event.name(),
            agent_id: &run.agent_id,
            session_id: run.session.as_str(),
            run_id: Some(run.id()),
            activation_id,
            workspace: shown(&run.workspace),
            occurred_at: instant(at, "+00:00"),
            own,
        }
    }
}

impl<'a> Called<'a> {
    fn of(call: &'a Call) -> Self {
        Self { call_id: call.id.as_str(), tool_name: &call.told_as, arguments: &call.arguments }
    }
}

impl<'a> Dump<'a> {
    /// The identity of a result is that of its call, whatever stands in it yet.
    pub fn of(call: &'a Call, result: &'a ToolResult) -> Self {
        Self {
            tool_use_id: call.id.as_str(),
            tool_name: &call.told_as,
            content: result.content.iter().map(Piece::of).collect(),
            is_error: result.is_error(),
            error: result.error.as_ref().map(|failure| Problem {
                code: failure.code.as_str(),
                message: &failure.message,
                retryable: failure.retryable,
                details: &failure.details,
            }),
            data: &result.data,
            artifact: result.artifact.as_ref().map(Kept::of),
            stats: &result.stats,
            metadata: &result.metadata,
            hook_feedback: &result.hook_feedback,
        }
    }
}

impl<'a> Piece<'a> {
    fn of(block: &'a Block) -> Self {
        match block {
            Block::Text(text) => Self::Text { text },
            Block::Image(Image { mime_type, name, files, .. }) => {
                let files = files.as_deref();
                Self::Image {
                    original: files.map(|(original, _)| Picture::of(original)),
                    model: files.map(|(_, model)| Picture::of(model)),
                    name: name.as_deref(),
                    mime_type,
                }
            }
        }
    }
}

impl<'a> Picture<'a> {
    fn of(file: &'a ImageFile) -> Self {
        let ImageFile { place, mime_type, width, height } = file;
        Self { path: place, mime_type, width: *width, height: *height }
    }
}

impl<'a> Kept<'a> {
    fn of(artifact: &'a Artifact) -> Self {
        Self {
            path: &artifact.path,
            mime_type: &artifact.mime_type,
            size_bytes: artifact.size_bytes,
            preview: &artifact.preview,
            text_path: artifact.text_path.as_deref(),
        }
    }
}

/// Tells how a run stands; what only a model's conversation has is empty.
fn snapshot(run: &Run, activation: Option<&str>, finished: Option<&RunFinished>) -> Value {
    let begun = instant(run.started_at, "Z");
    let ended = finished.map(|finished| instant(finished.finished_at, "Z"));
    json!({
        "run_id": run.id(),
        "session_id": run.session.as_str(),
        "agent_id": run.agent_id,
        "phase": if finished.is_some() { "finished" } else { "running" },
        "stop_reason": finished.map(|finished| finished.stop_reason.name()),
        "revision": 0,
        "current_activation_id": activation,
        "pending_interaction_id": null,
        "cancellation_requested_at": null,
        "cancellation_reason": null,
        "limits": {},
        "usage": {},
        "environment_fingerprint": null,
        "checkpoint_sequence": 0,
        "last_event_sequence": 0,
        "created_at": begun,
        "started_at": begun,
        "updated_at": ended.as_ref().unwrap_or(&begun),
        "finished_at": ended,
    })
}

/// Writes a moment with microseconds, if it has any.
fn instant(at: SystemTime, zone: &str) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let text = if since.subsec_micros() == 0 {
        humantime::format_rfc3339_seconds(at).to_string()
    } else {
        humantime::format_rfc3339_micros(at).to_string()
    };
    text.trim_end_matches('Z').to_owned() + zone
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
