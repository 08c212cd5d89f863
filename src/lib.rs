//! An MCP server and gateway: one registry of tools, one gate for every call.

pub mod document;
pub mod lines;
pub mod shutdown;
pub mod telemetry;
pub mod tool;
pub mod workspace;
