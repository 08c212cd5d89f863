//! The `iris-mcp` command.

fn main() {}
