//! What goes wrong between clients and servers elsewhere, each kind of it whole.
//!
//! Servers that lie, die, stall and repeat themselves; for each a table of the ways it can happen.

mod environment;
mod eras;
mod failing;
mod large;
mod leftovers;
mod lists;
mod once;

use serde_json::{Value, json};

use crate::fixture::{Home, script};

/// Describes a server that treats its callers roughly, and writes to the ledger of a folder.
fn rough(home: &Home, mut options: Value) -> Value {
    options["ledger"] = home.path("ledger").into();
    json!({"command": "python3", "args": [script("rough.py"), options.to_string()]})
}

/// Makes a home with one of them, called `up`.
fn with_rough(options: Value) -> Home {
    let home = Home::new();
    let up = rough(&home, options);
    home.serve(json!({ "up": up }));
    home
}

/// Counts the lines of the ledger that begin so.
fn begin_with(home: &Home, words: &str) -> usize {
    home.ledger().iter().filter(|line| line.starts_with(words)).count()
}
