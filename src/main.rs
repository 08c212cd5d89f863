//! The `iris-mcp` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    iris_mcp::process::guard_if_asked().unwrap_or(ExitCode::from(2))
}
