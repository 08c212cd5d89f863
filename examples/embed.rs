//! The gateway in a program of one's own: a tool, a middleware, and a server over standard streams.
//!
//! `cargo run --example embed` speaks MCP on standard input and output.

#![expect(clippy::print_stderr, reason = "this is what a person at a terminal reads")]

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use iris_mcp::app::App;
use iris_mcp::config::settings::Settings;
use iris_mcp::config::{Config, Host};
use iris_mcp::middleware::{Middleware, MiddlewareError, Next};
use iris_mcp::process;
use iris_mcp::tool::{
    Call, CallContext, InputSchema, ToolDefinition, ToolError, ToolName, ToolResult, Typed,
    TypedTool,
};
use serde_json::json;

/// A tool: what it is called, what it takes, and what it does.
#[derive(Debug)]
struct Shout(ToolDefinition);

#[derive(serde::Deserialize)]
struct Input {
    text: String,
}

impl Shout {
    fn new() -> Result<Self, Box<dyn Error>> {
        let schema = json!({
            "type": "object",
            "properties": {"text": {"type": "string", "description": "What to shout."}},
            "required": ["text"],
        });
        let schema = schema.as_object().cloned().unwrap_or_default();
        let schema = InputSchema::compile(schema)?;
        Ok(Self(ToolDefinition::new(ToolName::parse("shout")?, "Says it louder.", schema)?))
    }
}

#[async_trait::async_trait]
impl TypedTool for Shout {
    type Input = Input;

    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    async fn run(&self, input: &Input, _cx: &CallContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(input.text.to_uppercase()))
    }
}

/// A middleware: it sees every call before its body runs, and the result after.
#[derive(Debug)]
struct Count;

#[async_trait::async_trait]
impl Middleware for Count {
    async fn wrap(&self, _call: &Call, next: Next) -> Result<ToolResult, MiddlewareError> {
        let mut result = next.run().await?;
        let length = result.model_content().chars().count();
        result.stats.insert("characters".to_owned(), length.into());
        Ok(result)
    }
}

/// Puts the program together: what settings say, and what is ours.
pub(crate) fn config() -> Result<Config, Box<dyn Error>> {
    let host = Host {
        environment: std::env::vars().collect::<BTreeMap<_, _>>(),
        directory: std::env::current_dir()?,
        exe: std::env::current_exe().ok(),
    };
    // As on a command line; here everything stays at its default but the folder.
    let settings = Settings { workspace: Some(host.directory.clone()), ..Settings::default() };
    let mut config = Config::build(settings, &host)?;
    config.tools.push(Arc::new(Typed(Shout::new()?)));
    config.middleware.push(Arc::new(Count));
    Ok(config)
}

/// Serves the client at standard input and output until it is gone.
pub(crate) async fn serve() -> Result<(), Box<dyn Error>> {
    let app = App::start(config()?, process::Config::default()).await?;
    app.serve(std::future::pending()).await?;
    Ok(())
}

fn main() -> ExitCode {
    // Upstream servers are started under a guard, which is this same program.
    if let Some(code) = process::guard_if_asked() {
        return code;
    }
    let runtime = tokio::runtime::Runtime::new().map_err(Box::<dyn Error>::from);
    match runtime.and_then(|runtime| runtime.block_on(serve())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
