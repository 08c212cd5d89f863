//! An MCP server and gateway: one registry of tools, one gate for every call.

pub mod activity;
pub mod artifact;
pub mod document;
pub mod executor;
pub mod exposure;
pub mod hook;
pub mod lines;
pub mod middleware;
pub mod permission;
pub mod process;
pub mod registry;
pub mod relay;
pub mod server;
pub mod session;
pub mod shutdown;
pub mod source;
pub mod telemetry;
pub mod tool;
pub mod workspace;
