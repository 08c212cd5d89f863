//! The `iris-mcp` command.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// What is freed goes back to the system, where the usual allocator keeps what large results took.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // As the guard of a child we are a small, quiet process: nothing else may have begun.
    match iris_mcp::process::guard_if_asked() {
        Some(code) => code,
        None => iris_mcp::cli::run(),
    }
}
