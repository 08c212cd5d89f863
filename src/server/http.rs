//! Serving clients over streamable HTTP: `/mcp` and `/healthz`, both eras on one endpoint.
//!
//! Without tokens only loopback addresses are bound, and a request must name a loopback host and
//! come from no foreign origin, since any page in a browser could reach the port otherwise.

pub mod auth;
mod origin;
mod reading;
mod seats;
pub mod session;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use axum::serve::ListenerExt as _;
use axum::{Json, Router};
use http_body_util::BodyExt as _;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use self::auth::Tokens;
use self::session::{Bindings, Managed};
use super::caller::{Connection, random_id};
use super::{Gateway, envelope};
use crate::registry::State as SourceState;
use crate::tool::SessionId;

/// How long a legacy session may be silent before it is ended.
const SESSION_IDLE: Duration = Duration::from_hours(12);

/// How long responses that are nearly there are waited for at the end.
const LAST_RESPONSES: Duration = Duration::from_millis(500);

/// What the operator decides about HTTP.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen.
    pub address: SocketAddr,
    /// Who may come; none means everybody on this machine.
    pub tokens: Option<Tokens>,
}

/// Why HTTP cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Others could reach us, and nobody would be asked for a token.
    #[error(
        "{0} can be reached from other machines, which needs tokens: give --token-file, or listen on 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {error}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

/// A bound listener, so that the address is known before the first client comes.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    tokens: Option<Tokens>,
    address: SocketAddr,
}

/// Binds the address; port 0 takes a free one.
pub async fn bind(config: Config) -> Result<Bound, ServeError> {
    let Config { address, tokens } = config;
    if tokens.is_none() && !address.ip().is_loopback() {
        return Err(ServeError::Exposed(address));
    }
    let listener =
        TcpListener::bind(address).await.map_err(|error| ServeError::Bind { address, error })?;
    let address = listener.local_addr().map_err(|error| ServeError::Bind { address, error })?;
    Ok(Bound { listener, tokens, address })
}

impl Bound {
    /// Returns the URL of the MCP endpoint.
    pub fn endpoint(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Serves until the program ends.
    pub async fn serve(self, gateway: Gateway) -> io::Result<()> {
        let Self { listener, tokens, address } = self;
        let (shutdown, streams) = (gateway.parts().shutdown.clone(), CancellationToken::new());
        let router = router(gateway.clone(), (tokens, address), &streams);
        // Without it a small reply waits for the acknowledgement of the one before, some 40 ms.
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY could not be set");
            }
        });
        let ended = shutdown.child();
        let served =
            axum::serve(listener, router).with_graceful_shutdown(ended.clone().cancelled_owned());
        let _ended = streams.clone().drop_guard();
        tokio::select! {
            served = served => served,
            // Those who say nothing, or never come to an end, are not waited for.
            () = async {
                ended.cancelled().await;
                if gateway.is_calling() {
                    tokio::time::sleep(LAST_RESPONSES).await;
                }
                streams.cancel();
                tokio::time::sleep(LAST_RESPONSES).await;
            } => Ok(()),
        }
    }
}

/// What the routes share.
#[derive(Clone, Debug)]
struct Shared {
    gateway: Gateway,
    tokens: Option<Tokens>,
    /// Whether a request must name this machine and come from no page of another.
    loopback_only: bool,
    bindings: Arc<Bindings>,
    manager: Arc<Managed>,
}

/// Makes the routes; what they stream ends with `streams`.
fn router(
    gateway: Gateway,
    (tokens, address): (Option<Tokens>, SocketAddr),
    streams: &CancellationToken,
) -> Router {
    let process = SessionId::new(random_id());
    let mut config = StreamableHttpServerConfig::default()
        .with_json_response(true)
        .with_max_request_body_bytes(gateway.config().max_message_bytes)
        .with_cancellation_token(streams.child_token());
    let loopback_only = tokens.is_none() || address.ip().is_loopback();
    if loopback_only {
        config = config
            .with_allowed_hosts(origin::LOOPBACK)
            .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
            .enforce_origin_validation();
    } else {
        // A token is what keeps strangers out here; the names we are reached by are not ours to know.
        config = config.disable_allowed_hosts().disable_allowed_origins();
    }
    let bindings = Arc::new(Bindings::default());
    let most = gateway.config().max_sessions;
    let sessions = Arc::clone(&gateway.parts().sessions);
    let manager = Arc::new(Managed::new((SESSION_IDLE, most), sessions, Arc::clone(&bindings)));
    let shared = Shared {
        gateway: gateway.clone(),
        tokens,
        loopback_only,
        bindings,
        manager: Arc::clone(&manager),
    };
    let service = StreamableHttpService::new(
        move || Ok(gateway.on(Connection::http(process.clone()))),
        manager,
        config,
    );
    // As a service it would be cloned for each layer of each request, with all its lists of names.
    let service = Arc::new(service);
    let answer = move |request: Request| {
        let service = Arc::clone(&service);
        async move { service.handle(request).await }
    };
    let mcp = Router::new()
        .route("/mcp", any(answer.clone()))
        .route("/mcp/", any(answer))
        .layer(middleware::map_response(open_reply))
        .layer(middleware::from_fn_with_state(shared.clone(), reading::explain))
        .layer(middleware::from_fn_with_state(shared.clone(), session::bind))
        .layer(middleware::from_fn_with_state(shared.clone(), auth::require));
    Router::new()
        .merge(mcp)
        .route("/healthz", get(health))
        .route_layer(middleware::from_fn_with_state(shared.clone(), origin::require))
        .with_state(shared)
        .layer(CatchPanicLayer::new())
}

/// Unpacks the replies in a response that the library has written.
async fn open_reply(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let content_type =
        parts.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if content_type.starts_with(b"application/json") {
        let Ok(bytes) = body.collect().await else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        parts.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(parts, Body::from(envelope::open_bytes(bytes.to_bytes())));
    }
    // An event is one frame here: the library encodes them one by one.
    let body = body.map_frame(|frame| frame.map_data(envelope::open_bytes));
    Response::from_parts(parts, Body::new(body))
}

/// Says how every source is; details only to those who may call.
async fn health(State(shared): State<Shared>, request: Request) -> Response {
    let catalogue = shared.gateway.parts().exposure.registry().snapshot();
    let failed =
        catalogue.sources().iter().any(|source| matches!(source.state, SourceState::Failed(_)));
    let status = match (catalogue.is_settled(), failed) {
        (false, _) => "starting",
        (true, true) => "degraded",
        (true, false) => "ok",
    };
    let mut report = json!({"status": status, "version": env!("CARGO_PKG_VERSION")});
    let known = match &shared.tokens {
        Some(tokens) => tokens.principal_of(request.headers()).is_some(),
        None => true,
    };
    if known {
        let sources: Vec<Value> = catalogue
            .sources()
            .iter()
            .filter(|source| source.counts())
            .map(|source| {
                let (state, error) = match &source.state {
                    SourceState::Starting => ("starting", None),
                    SourceState::Ready => ("ready", None),
                    SourceState::Failed(cause) => ("failed", Some(&cause.reason)),
                };
                let mut report = json!({"name": source.source, "state": state, "error": error, "tools": source.tools});
                if let Some(apart) = &source.apart {
                    report["clients"] = apart.now().into();
                    report["max_clients"] = apart.most().into();
                }
                report
            })
            .collect();
        report["sources"] = sources.into();
    }
    Json(report).into_response()
}

/// Ends a request without handling it.
fn refuse(status: StatusCode, message: &'static str) -> Response {
    (status, message).into_response()
}

/// Runs the rest of the stack; named so that the two guards read alike.
async fn admit(request: Request, next: Next) -> Response {
    next.run(request).await
}
