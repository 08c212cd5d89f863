//! An MCP server and gateway: one registry of tools, one gate for every call.
//!
//! The modules, in the order to read them: what a tool is ([`tool`]), who may call it
//! ([`permission`]), where it is found ([`registry`]), the one way every call takes
//! ([`executor`]), what each client sees ([`exposure`]), where tools come from ([`source`]), the
//! server that all of it is for ([`server`]), and how a run is put together ([`config`], [`app`]).

pub mod activity;
pub mod app;
pub mod artifact;
pub mod cli;
pub mod command;
pub mod config;
pub mod discovery;
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

#[cfg(test)]
#[path = "../tests/fuzz/target.rs"]
mod fuzz;
