//! The MCP server: every request of a client, in both protocol eras, to the gate and back.
//!
//! Each era is terminated here. A handler is a function of the current catalogue, the caller's
//! session and the request; what differs between eras and transports is decided in
//! [`caller`] (who is asking), [`project`] (what the answer looks like) and [`port`] (how a
//! running call reaches back), so that nothing behind them has to know.

pub mod approve;
mod ask;
mod call;
pub mod caller;
mod changes;
pub mod envelope;
pub mod http;
pub mod list;
mod parked;
pub mod port;
pub mod project;
mod resources;
pub mod stdio;
mod ticket;
mod turned_away;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerConfig, SubscriptionFilter,
    Tool as WireTool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::Semaphore;

use self::call::Ended;
use self::caller::{Caller, Connection};
use self::parked::Parked;
use self::ticket::Tickets;
use crate::artifact::ArtifactStore;
use crate::executor::Executor;
use crate::exposure::Exposure;
use crate::registry::Catalogue;
use crate::session::Sessions;
use crate::shutdown::Shutdown;
use crate::tool::Era;

pub use self::approve::Mode as ApprovalMode;

/// Methods of both eras that are served.
const SERVED: [&str; 5] =
    ["resources/list", "resources/read", "resources/templates/list", "tools/call", "tools/list"];
/// Methods that only the older era has.
const SERVED_LEGACY: [&str; 2] = ["initialize", "ping"];
/// Methods that only the modern era has.
const SERVED_MODERN: [&str; 2] = ["server/discover", "subscriptions/listen"];

/// How many clients are remembered for the log.
const KNOWN_CLIENTS: usize = 1_000;

/// What the operator decides about serving.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who answers when a call needs a person.
    pub approval: ApprovalMode,
    /// How long a person may take to answer.
    pub approval_timeout: std::time::Duration,
    /// How many calls may run at once, over all clients.
    pub concurrent_calls: usize,
    /// The longest message in bytes that is read or written.
    pub max_message_bytes: usize,
    /// How long a call may take; none means no limit.
    pub tool_timeout: Option<std::time::Duration>,
    /// The agent on whose behalf calls are made; empty without an agent file.
    pub agent_id: String,
    /// The workspace of every call; absolute and resolved.
    pub workspace: Arc<std::path::PathBuf>,
    /// Whether it is recorded what was called and what came of it.
    pub context: bool,
}

/// The parts of the program that a gateway answers from.
#[derive(Debug)]
pub struct Parts {
    /// What each session sees and may call.
    pub exposure: Exposure,
    /// What runs a call.
    pub executor: Executor,
    /// What is kept for each client.
    pub sessions: Arc<Sessions>,
    /// What is kept in files.
    pub artifacts: Arc<ArtifactStore>,
    /// What ends everything.
    pub shutdown: Shutdown,
}

/// The server for one connection; clones of one program share everything but the connection.
#[derive(Clone, Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    /// Whether the first message of this connection was logged.
    greeted: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Shared {
    config: Config,
    parts: Parts,
    /// Bounds the calls that run at once.
    calls: Semaphore,
    /// The modern clients over HTTP that were logged: session, name and version.
    known: Mutex<HashSet<(String, String, String)>>,
    /// The calls that wait for a person's answer, in the modern era.
    tickets: Tickets,
    /// The calls that wait for their client in the middle of their work, in the modern era.
    parked: Parked<Ended>,
    /// What `initialize` and `server/discover` say, made once a catalogue.
    about: ArcSwap<(u64, ServerConfig)>,
}

impl Gateway {
    /// Makes the gateway of a program; each connection gets it by [`Gateway::on`].
    pub fn new(config: Config, parts: Parts) -> Self {
        let calls = Semaphore::new(config.concurrent_calls);
        let about = list::about(&Catalogue::default());
        let tickets = Tickets::new(config.approval_timeout);
        let parked = Parked::new(config.approval_timeout);
        let about = ArcSwap::from_pointee((0, about));
        let shared =
            Shared { config, parts, calls, known: Mutex::default(), tickets, parked, about };
        let connection = Arc::new(Connection::stdio());
        Self { shared: Arc::new(shared), connection, greeted: Arc::default() }
    }

    /// Returns the gateway as it serves another connection.
    #[must_use]
    pub fn on(&self, connection: Connection) -> Self {
        let shared = Arc::clone(&self.shared);
        Self { shared, connection: Arc::new(connection), greeted: Arc::default() }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Returns what the gateway answers from.
    pub fn parts(&self) -> &Parts {
        &self.shared.parts
    }

    /// Says who is asking, and logs the first message of a connection.
    fn caller(&self, method: &str, context: &RequestContext<RoleServer>) -> Caller {
        let caller = caller::identify(context, &self.connection);
        if self.is_first(&caller) {
            let version = context.protocol_version().map(|version| version.to_string());
            tracing::info!(
                transport = self.connection.transport(),
                method,
                client.name = caller.client.name,
                client.version = caller.client_version,
                protocol = version,
                principal = caller.principal.as_str(),
                "a client connected"
            );
        }
        caller
    }

    /// Says whether a client was not heard of yet.
    fn is_first(&self, caller: &Caller) -> bool {
        if self.greeted.swap(true, Ordering::Relaxed) {
            return false;
        }
        if self.connection.transport() == "stdio" || caller.client.era == Era::Legacy {
            return true;
        }
        // Each request is a connection of its own here; a client is known by what it calls itself.
        let session = caller.session.as_str().to_owned();
        let client = (session, caller.client.name.clone(), caller.client_version.clone());
        let mut known = self.shared.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_CLIENTS {
            known.clear();
        }
        known.insert(client)
    }

    /// Waits until every source is ready or has failed.
    async fn settled(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Catalogue>, ErrorData> {
        let registry = self.shared.parts.exposure.registry();
        let catalogue = registry.snapshot();
        if catalogue.is_settled() {
            return Ok(catalogue);
        }
        tokio::select! {
            catalogue = registry.settled() => Ok(catalogue),
            () = context.ct.cancelled() => Err(project::cancelled()),
        }
    }

    async fn tools(
        &self,
        cursor: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let caller = self.caller("tools/list", context);
        let catalogue = self.settled(context).await?;
        let session = self.shared.parts.sessions.get(&caller.session);
        let Parts { exposure, .. } = &self.shared.parts;
        let tools = exposure.listed(&catalogue, &session, caller.client.era);
        let names = exposure.names(&catalogue);
        list::tools(&tools, &names, catalogue.version(), cursor, caller.client.era)
    }
}

/// Answers a panic of ours: the client hears of it instead of waiting for ever.
///
/// Boxed, since the library moves the future of a request around, and that has room for any of them.
fn guarded<T>(
    answer: impl Future<Output = Result<T, ErrorData>>,
) -> impl Future<Output = Result<T, ErrorData>> {
    let answer = Box::pin(std::panic::AssertUnwindSafe(answer).catch_unwind());
    async {
        answer.await.unwrap_or_else(|_| {
            tracing::error!("a request handler panicked");
            Err(ErrorData::internal_error("the server has a bug; its log has the details", None))
        })
    }
}

impl ServerHandler for Gateway {
    fn get_info(&self) -> ServerConfig {
        let catalogue = self.shared.parts.exposure.registry().snapshot();
        let about = self.shared.about.load();
        if about.0 == catalogue.version() {
            return about.1.clone();
        }
        let config = list::about(&catalogue);
        self.shared.about.store(Arc::new((catalogue.version(), config.clone())));
        config
    }

    fn get_tool(&self, name: &str) -> Option<WireTool> {
        let exposure = &self.shared.parts.exposure;
        let catalogue = exposure.registry().snapshot();
        let definition = exposure.find(&catalogue, name)?.definition();
        let schema = definition.input_schema.shared();
        Some(WireTool::new(name.to_owned(), "", schema))
    }

    async fn initialize(
        &self,
        request: rmcp::model::InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<rmcp::model::InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        self.caller("initialize", &context);
        self.negotiate_initialize(&request)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<rmcp::model::DiscoverResult, ErrorData> {
        self.caller("server/discover", &context);
        let versions = self.supported_protocol_versions().into_owned();
        Ok(rmcp::model::DiscoverResult::from_server_info(versions, self.get_info()))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let page = guarded(self.tools(cursor.as_deref(), &context)).await?;
        Ok(envelope::tools(page))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let reply = guarded(self.call(request, &context)).await?;
        Ok(envelope::call(reply))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = self.caller("resources/list", &context);
        let cursor = request.and_then(|request| request.cursor);
        let artifacts = &self.shared.parts.artifacts;
        guarded(resources::list(artifacts, &caller.session, cursor.as_deref())).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller("resources/read", &context);
        let artifacts = &self.shared.parts.artifacts;
        let read = guarded(resources::read(artifacts, &caller.session, &request.uri)).await?;
        Ok(read.into())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::default();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let Parts { exposure, shutdown, .. } = &self.shared.parts;
        changes::listen(exposure.registry(), shutdown, context).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Parts { exposure, shutdown, .. } = &self.shared.parts;
        changes::announce(exposure.registry(), shutdown, context.peer);
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        let of_era = match caller::era(&context) {
            Era::Legacy => SERVED_LEGACY,
            Era::Modern => SERVED_MODERN,
        };
        // A method that is served comes here when its parameters cannot be read.
        if SERVED.contains(&method.as_str()) || of_era.contains(&method.as_str()) {
            let message = format!("the parameters of {method} are missing or of the wrong type");
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("there is no method {method}"),
            None,
        ))
    }
}
