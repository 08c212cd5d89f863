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
mod greet;
pub mod http;
pub mod list;
mod message;
mod page;
mod parked;
pub mod port;
pub mod project;
mod relayed;
mod relays;
mod resources;
mod served;
mod skills;
pub mod stdio;
mod ticket;
mod turned_away;
mod wishes;

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use arc_swap::{ArcSwap, ArcSwapOption};
use futures_util::FutureExt as _;
#[expect(deprecated, reason = "the older era has it")]
use rmcp::model::SetLevelRequestParams;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, GetPromptRequestParams, GetPromptResponse, GetSkillRequestParams, GetSkillResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListSkillsResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceDirectoryRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerConfig, SubscribeRequestParams,
    SubscriptionFilter, Tool as WireTool, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::Semaphore;

use self::call::Ended;
use self::caller::Connection;
use self::parked::Parked;
use self::relayed::Answered;
use self::ticket::Tickets;
use crate::artifact::ArtifactStore;
use crate::artifact::name::SCHEME;
use crate::executor::Executor;
use crate::exposure::Exposure;
use crate::hook::run::{First, Runs};
use crate::registry::Catalogue;
use crate::relay::Kind;
use crate::session::{Session, Sessions};
use crate::shutdown::Shutdown;
use crate::tool::{CallContext, Presence, SessionId};

pub use self::approve::Mode as ApprovalMode;

/// What the operator decides about serving.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who answers when a call needs a person.
    pub approval: ApprovalMode,
    /// How long a person may take to answer.
    pub approval_timeout: std::time::Duration,
    /// How many calls may run at once, over all clients.
    pub concurrent_calls: usize,
    /// How many sessions of the older era there are over HTTP.
    pub max_sessions: NonZeroUsize,
    /// The longest message in bytes that is read or written.
    pub max_message_bytes: usize,
    /// How long a call may take; none means no limit.
    pub tool_timeout: Option<std::time::Duration>,
    /// The agent on whose behalf calls are made; empty without an agent file.
    pub agent_id: String,
    /// The workspace of every call; absolute and resolved.
    pub workspace: Arc<std::path::PathBuf>,
    /// When it is recorded what was called and what came of it; nothing means never.
    pub context: Option<Presence>,
}

/// The parts of the program that a gateway answers from.
#[derive(Debug)]
pub struct Parts {
    /// What each session sees and may call.
    pub exposure: Arc<Exposure>,
    /// What runs a call.
    pub executor: Executor,
    /// What is kept for each client.
    pub sessions: Arc<Sessions>,
    /// What is kept in files.
    pub artifacts: Arc<ArtifactStore>,
    /// What tells hooks of the runs that sessions are.
    pub runs: Runs,
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
    /// The session of a connection of the older era.
    session: Arc<ArcSwapOption<SessionId>>,
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
    /// The same with other requests.
    relayed: Parked<Answered>,
    /// What `initialize` and `server/discover` say, made once a catalogue.
    about: ArcSwap<(u64, ServerConfig)>,
}

impl Parts {
    /// Begins the run of a session with its first call; that call and those that come meanwhile wait
    /// until the hooks have heard of it.
    pub(crate) async fn begin_run(&self, session: &Session, cx: &CallContext) {
        if !self.runs.are_heard() || self.shutdown.token().is_cancelled() {
            return;
        }
        let begun = session.begin_run(|ended| {
            let first = First {
                agent_id: cx.agent_id.clone(),
                session: cx.session.clone(),
                activation_id: cx.activation_id.clone(),
                workspace: Arc::clone(&cx.workspace),
            };
            self.runs.begin(first, ended)
        });
        // A call that is cancelled goes on to its end, and to its record.
        tokio::select! {
            () = begun.cancelled() => {}
            () = cx.cancelled.cancelled() => {}
        }
    }
}

impl Gateway {
    /// Makes the gateway of a program; each connection gets it by [`Gateway::on`].
    pub fn new(config: Config, parts: Parts) -> Self {
        let calls = Semaphore::new(config.concurrent_calls);
        let about = list::about(&Catalogue::default(), None);
        let tickets = Tickets::new(config.approval_timeout);
        let parked = Parked::new(config.approval_timeout);
        let relayed = Parked::new(config.approval_timeout);
        let about = ArcSwap::from_pointee((0, about));
        let known = Mutex::default();
        let shared = Shared { config, parts, calls, known, tickets, parked, relayed, about };
        let connection = Arc::new(Connection::stdio());
        Self {
            shared: Arc::new(shared),
            connection,
            greeted: Arc::default(),
            session: Arc::default(),
        }
    }

    /// Returns the gateway as it serves another connection.
    #[must_use]
    pub fn on(&self, connection: Connection) -> Self {
        let shared = Arc::clone(&self.shared);
        let connection = Arc::new(connection);
        Self { shared, connection, greeted: Arc::default(), session: Arc::default() }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Returns what the gateway answers from.
    pub fn parts(&self) -> &Parts {
        &self.shared.parts
    }

    /// Reports whether a call is under way.
    fn is_calling(&self) -> bool {
        self.shared.calls.available_permits() < self.config().concurrent_calls
    }

    /// Waits until every source is ready or has failed.
    async fn settled(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Catalogue>, ErrorData> {
        self.until(Catalogue::is_settled, context).await
    }

    /// Waits until it is certain what a tool's name means: for a tool that is there, not at all.
    async fn with_tool(
        &self,
        name: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Catalogue>, ErrorData> {
        let is_certain = |catalogue: &Catalogue| {
            catalogue.is_settled() || self.shared.parts.exposure.is_certain(catalogue, name)
        };
        self.until(is_certain, context).await
    }

    async fn until(
        &self,
        is_enough: impl Fn(&Catalogue) -> bool,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Catalogue>, ErrorData> {
        tokio::select! {
            // What is there already is had even by a request that was cancelled.
            biased;
            catalogue = self.shared.parts.exposure.registry().until(is_enough) => Ok(catalogue),
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
        let remark = self.shared.parts.exposure.surface(&catalogue).remark();
        let config = list::about(&catalogue, remark);
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

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let page = guarded(self.offered(Kind::Prompts, cursor.as_deref(), &context)).await?;
        Ok(envelope::prompts(page))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let reply = guarded(self.prompt(request, &context)).await?;
        Ok(envelope::prompt(reply))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let reply = guarded(self.completion(request, &context)).await?;
        Ok(envelope::completion(reply))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let page = guarded(self.offered(Kind::Resources, cursor.as_deref(), &context)).await?;
        Ok(envelope::resources(page))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let kind = Kind::ResourceTemplates;
        let page = guarded(self.offered(kind, cursor.as_deref(), &context)).await?;
        Ok(envelope::templates(page))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if !request.uri.starts_with(SCHEME) {
            let reply = guarded(self.read(request, &context)).await?;
            return Ok(envelope::resource(reply));
        }
        let caller = self.caller("resources/read", &context);
        let artifacts = &self.shared.parts.artifacts;
        let read = guarded(resources::read(artifacts, &caller.session, &request.uri)).await?;
        Ok(read.into())
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let page = guarded(self.skills(cursor.as_deref(), &context)).await?;
        Ok(envelope::skills(page))
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        let reply = guarded(self.skill(&request.uri, &context)).await?;
        envelope::skill(reply)
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let ReadResourceDirectoryRequestParams { uri, cursor, .. } = request;
        let page = guarded(self.directory(&uri, cursor.as_deref(), &context)).await?;
        Ok(envelope::resources(page))
    }

    #[expect(deprecated, reason = "the older era has it")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        guarded(self.level(request.level, &context)).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        guarded(self.watch(&request.uri, &context)).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.unwatch(&request.uri, &context);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        changes::listen(self, context).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        changes::announce(self, context.peer);
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let catalogue = self.shared.parts.exposure.registry().snapshot();
        let has_skills = !catalogue.offered().skilled().is_empty();
        Err(served::unread(&request.method, caller::era(&context), has_skills))
    }
}
