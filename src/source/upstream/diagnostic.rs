//! The codes of what can be wrong with an upstream server.

use crate::tool::ErrorCode;

pub use crate::registry::diagnostic::{Diagnostic, Severity, Stage};

/// The configuration of a server cannot be used.
pub const MCP_CONFIG_INVALID: ErrorCode = ErrorCode::new("MCP_CONFIG_INVALID");
/// A tool of a server cannot be published, or not as the server lists it.
pub const MCP_TOOL_INVALID: ErrorCode = ErrorCode::new("MCP_TOOL_INVALID");
/// Something else that a server offers cannot be published, or not as the server lists it.
pub const MCP_OFFER_INVALID: ErrorCode = ErrorCode::new("MCP_OFFER_INVALID");
