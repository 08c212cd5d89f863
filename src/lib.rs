//! An MCP server and gateway: one registry of tools, one gate for every call.

pub mod activity;
pub mod document;
pub mod lines;
pub mod permission;
pub mod process;
pub mod shutdown;
pub mod telemetry;
pub mod tool;
pub mod workspace;
