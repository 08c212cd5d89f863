//! What a source offers besides tools: prompts, resources, completions, logging.
//!
//! All of it is raw JSON on the way through, because a typed copy would drop what it does not
//! know. A source hands its lists and its relay to the registry with its publication; what it
//! says by itself goes out as an [`Event`].

pub mod template;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::broadcast;

use crate::tool::{CallContext, Level, SessionId};

/// How many events may wait for a slow listener, which then loses the oldest.
const BACKLOG: usize = 1_024;

/// Passes requests other than tool calls on to where they can be answered.
#[async_trait]
pub trait Relay: Send + Sync + fmt::Debug {
    /// Sends one request on and returns its result as it came.
    async fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
        cx: &CallContext,
    ) -> Result<Value, RelayError>;

    /// Asks to be told of changes of a resource, until what comes back is dropped.
    async fn watch(&self, uri: &str, cx: &CallContext) -> Result<Watch, RelayError>;
}

/// Makes the answer to a completion where there is nothing to complete.
pub fn no_completions() -> Value {
    serde_json::json!({"completion": {"values": [], "hasMore": false}})
}

/// Everything that a source lists besides tools, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offers {
    /// What `prompts/list` shows.
    pub prompts: Vec<Prompt>,
    /// What `resources/list` shows.
    pub resources: Vec<Entry>,
    /// What `resources/templates/list` shows.
    pub templates: Vec<Entry>,
    /// Whether it can be asked for resources, listed or not.
    pub reads: bool,
    /// Whether it has skills, and can be asked about them.
    pub skills: bool,
}

/// An entry of a list, as its source has it.
pub type Entry = Arc<Map<String, Value>>;

/// A prompt under the name that it has here.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// The name it has here.
    pub name: String,
    /// The name its source gives it.
    pub wire_name: String,
    /// The entry, under the name that it has at its source.
    pub raw: Entry,
}

/// What can be listed besides tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    ResourceTemplates,
}

/// A JSON-RPC error to hand back.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RelayError {
    /// The JSON-RPC code.
    pub code: i64,
    /// The message for people.
    pub message: String,
    /// Facts for programs.
    pub data: Option<Value>,
}

/// Somebody's wish to be told of changes; it ends when it is dropped.
pub struct Watch(Option<Box<dyn FnOnce() + Send + Sync>>);

/// What a source says by itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A resource has changed.
    Updated {
        /// The source.
        source: String,
        /// The resource's address.
        uri: String,
        /// What else is said of it.
        params: Map<String, Value>,
        /// The only session that it concerns, if it does not concern all.
        only: Option<SessionId>,
    },
    /// A log message for all who want such.
    Log {
        /// How grave it is.
        level: Level,
        /// The message.
        params: Map<String, Value>,
        /// The sessions that have it already.
        told: Vec<SessionId>,
        /// The only session that it concerns, if it does not concern all.
        only: Option<SessionId>,
    },
}

impl Event {
    /// Returns whether it concerns a session.
    pub fn concerns(&self, session: &SessionId) -> bool {
        let (Self::Updated { only, .. } | Self::Log { only, .. }) = self;
        only.as_ref().is_none_or(|only| only == session)
    }
}

/// Where sources say what they say by themselves; clones are one.
#[derive(Clone, Debug)]
pub struct Events(broadcast::Sender<Arc<Event>>);

impl Kind {
    /// Returns the method that lists it.
    pub fn method(self) -> &'static str {
        match self {
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::ResourceTemplates => "resources/templates/list",
        }
    }

    /// Returns the key of the list in its result.
    pub fn key(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
        }
    }

    /// Returns the key of what tells an entry from the others.
    pub fn id(self) -> &'static str {
        match self {
            Self::Prompts => "name",
            Self::Resources => "uri",
            Self::ResourceTemplates => "uriTemplate",
        }
    }
}

impl Watch {
    /// Makes one that does this at its end.
    pub fn new(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(end)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").finish_non_exhaustive()
    }
}

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }
}

impl Events {
    /// Says something to whoever listens.
    pub fn tell(&self, event: Event) {
        // Without a listener it is for nobody.
        drop(self.0.send(Arc::new(event)));
    }

    /// Listens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Event>> {
        self.0.subscribe()
    }
}
