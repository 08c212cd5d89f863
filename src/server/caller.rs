//! Who is asking: the principal, the session and the client of a request.
//!
//! This is the one place that decides what keys a session. In the legacy era it is the
//! transport's session, which over stdio is the process. The modern era has no transport
//! sessions (MCP 2026-07-28 §basic/transports), so there it is the principal of the token, and
//! without tokens the process.

use std::sync::Arc;

use http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;
use serde_json::{Map, Value};

use super::Config;
use crate::activity::Who;
use crate::tool::{CallContext, CallId, Client, ClientPort, Era, Level, Principal, SessionId};

/// The header that names a legacy session (MCP 2025-11-25 §basic/transports).
pub(super) const SESSION_HEADER: &str = "mcp-session-id";

/// The `_meta` key of a modern request's client capabilities.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The `_meta` key of the log level a modern request asks for.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// One transport's connection, as far as it identifies callers.
#[derive(Debug)]
pub struct Connection {
    transport: &'static str,
    /// The session of callers that nothing else tells apart.
    process: SessionId,
}

/// Who is asking.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) principal: Principal,
    pub(super) session: SessionId,
    pub(super) client: Client,
    pub(super) client_version: String,
}

impl Connection {
    /// Makes the connection over our standard streams.
    pub fn stdio() -> Self {
        Self { transport: "stdio", process: SessionId::new(random_id()) }
    }

    /// Makes the connection of everything that comes over HTTP.
    pub fn http(process: SessionId) -> Self {
        Self { transport: "http", process }
    }

    /// Returns whether all that comes over it comes from one client.
    pub fn is_one_client(&self) -> bool {
        self.transport == "stdio"
    }

    /// Returns the session of callers that nothing else tells apart.
    pub(super) fn process(&self) -> &SessionId {
        &self.process
    }

    /// Returns the transport's name, for the log.
    pub fn transport(&self) -> &'static str {
        self.transport
    }
}

/// Says who makes a request.
pub(super) fn identify(context: &RequestContext<RoleServer>, connection: &Connection) -> Caller {
    let parts = context.extensions.get::<Parts>();
    let token = parts.and_then(|parts| parts.extensions.get::<Principal>());
    let era = era(context);
    let header = parts.and_then(|parts| parts.headers.get(SESSION_HEADER)?.to_str().ok());
    let session = match (era, header, token) {
        (Era::Legacy, Some(id), _) => SessionId::new(id),
        (_, _, Some(principal)) => SessionId::new(format!("principal:{principal}")),
        (_, _, None) => connection.process.clone(),
    };
    let principal = token.cloned().unwrap_or_else(|| Principal::new("local"));
    let info = context.client_info();
    let (name, client_version) = info.map(|info| (info.name, info.version)).unwrap_or_default();
    let client = Client {
        era,
        capabilities: capabilities(context),
        log_level: context.meta.get(LOG_LEVEL).and_then(Value::as_str).and_then(Level::parse),
        meta: context.meta.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        name,
        alone: era == Era::Legacy || connection.is_one_client(),
    };
    Caller { principal, session, client, client_version }
}

/// Says which era a request is made in.
pub(super) fn era(context: &RequestContext<RoleServer>) -> Era {
    let modern =
        context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    if modern { Era::Modern } else { Era::Legacy }
}

fn capabilities(context: &RequestContext<RoleServer>) -> Map<String, Value> {
    // The modern form is read as it came; the legacy handshake is known to rmcp only.
    if let Some(Value::Object(capabilities)) = context.meta.get(CAPABILITIES) {
        return capabilities.clone();
    }
    let typed = context.client_capabilities().and_then(|typed| serde_json::to_value(typed).ok());
    match typed {
        Some(Value::Object(capabilities)) => capabilities,
        _ => Map::new(),
    }
}

impl Caller {
    /// Returns who is asking, for a record.
    pub(super) fn who(&self) -> Who {
        Who {
            principal: self.principal.clone(),
            session: self.session.clone(),
            client: self.client.name.clone(),
        }
    }

    /// Makes the context of one call.
    pub(super) fn into_context(
        self,
        config: &Config,
        context: &RequestContext<RoleServer>,
        port: Arc<dyn ClientPort>,
        call_id: CallId,
    ) -> CallContext {
        tracing::debug!(call.id = %call_id, request.id = %context.id, "a call came in");
        CallContext {
            run_id: Some(self.session.as_str().to_owned()),
            activation_id: Some(call_id.as_str().to_owned()),
            call_id,
            session: self.session,
            principal: self.principal,
            agent_id: config.agent_id.clone(),
            workspace: Arc::clone(&config.workspace),
            client: self.client,
            port,
            cancelled: context.ct.clone(),
            turn: None,
            time_limit: config.tool_timeout,
        }
    }
}

/// Returns 128 random bits as hex: unguessable, and never twice.
pub(super) fn random_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}
