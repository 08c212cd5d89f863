//! The `iris-mcp` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    // As the guard of a child we are a small, quiet process: nothing else may have begun.
    match iris_mcp::process::guard_if_asked() {
        Some(code) => code,
        None => iris_mcp::cli::run(),
    }
}
