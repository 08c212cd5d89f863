//! Who may use whom, lowest first: a module names only what stands in its row.

/// The modules, in an order in which each uses only those above it.
pub(crate) const MODULES: &[(&str, Uses)] = &[
    ("tool", Uses::Only(&[])),
    ("telemetry", Uses::Only(&[])),
    ("shutdown", Uses::Only(&[])),
    ("document", Uses::Only(&[])),
    ("lines", Uses::Only(&[])),
    ("workspace", Uses::Only(&["tool"])),
    ("permission", Uses::Only(&["tool"])),
    ("decision", Uses::Only(&["tool"])),
    ("activity", Uses::Only(&["tool", "telemetry"])),
    ("process", Uses::Only(&["shutdown"])),
    ("artifact", Uses::Only(&["tool", "workspace"])),
    ("relay", Uses::Only(&["tool"])),
    ("registry", Uses::Only(&["tool", "relay"])),
    ("middleware", Uses::Only(&["tool"])),
    ("command", Uses::Only(&["tool", "workspace", "process", "shutdown"])),
    ("session", Uses::Only(&["tool", "workspace", "permission", "relay"])),
    ("memory", Uses::Only(&["tool", "decision"])),
    ("hook", Uses::Only(&["tool", "command"])),
    ("discovery", Uses::Only(&["tool", "registry", "decision"])),
    (
        "executor",
        Uses::Only(&[
            "tool",
            "permission",
            "activity",
            "middleware",
            "hook",
            "artifact",
            "registry",
        ]),
    ),
    ("exposure", Uses::Only(&["tool", "shutdown", "registry", "session", "discovery"])),
    (
        "source",
        Uses::Only(&[
            "tool",
            "document",
            "lines",
            "registry",
            "workspace",
            "artifact",
            "command",
            "process",
            "hook",
            "middleware",
            "relay",
            "session",
            "memory",
            "shutdown",
        ]),
    ),
    (
        "subagent",
        Uses::Only(&[
            "tool",
            "permission",
            "activity",
            "registry",
            "session",
            "executor",
            "exposure",
            "shutdown",
        ]),
    ),
    (
        "server",
        Uses::Only(&[
            "tool",
            "lines",
            "permission",
            "activity",
            "registry",
            "relay",
            "session",
            "artifact",
            "hook",
            "executor",
            "exposure",
            "shutdown",
        ]),
    ),
    ("config", Uses::AllAbove),
    ("app", Uses::AllAbove),
    (
        "cli",
        Uses::Only(&[
            "app",
            "config",
            "document",
            "process",
            "tool",
            "permission",
            "exposure",
            "telemetry",
            "shutdown",
        ]),
    ),
];

/// The crates from outside that only their owners name: a file, or a folder and what is in it.
pub(crate) const OWNERS: &[(&str, &[&str])] = &[
    ("rmcp", &["server", "source/upstream"]),
    ("axum", &["server/http"]),
    ("tower_http", &["server/http"]),
    ("clap", &["cli", "main"]),
    ("clap_complete", &["cli", "main"]),
    ("clap_mangen", &["cli"]),
    ("jsonschema", &["tool/schema", "source/upstream/catalog"]),
    ("cap_std", &["workspace"]),
    ("image", &["artifact/image"]),
    ("nix", &["process", "workspace", "cli/call"]),
    (
        "reqwest",
        &[
            "decision",
            "source/builtin/web_search",
            "source/builtin/web_fetch",
            "source/upstream/http",
        ],
    ),
    ("rustls", &["source/upstream/http"]),
    ("rustls_native_certs", &["source/upstream/http"]),
    ("hyper_util", &["source/upstream/http"]),
    ("webpki_roots", &["source/upstream/http"]),
    ("bollard", &["command/docker"]),
];

/// Crates that tests may name anywhere: for pictures, FIFOs, owners and signals.
pub(crate) const FREE_IN_TESTS: &[&str] = &["image", "nix"];

/// What a module may name besides itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Uses {
    Only(&'static [&'static str]),
    AllAbove,
}

/// Returns whether a module may name another.
pub(crate) fn allowed(module: &str, named: &str) -> bool {
    let row = MODULES.iter().position(|(name, _)| *name == module);
    let Some(row) = row else { return false };
    match MODULES[row].1 {
        _ if module == named => true,
        Uses::Only(row) => row.contains(&named),
        Uses::AllAbove => MODULES[..row].iter().any(|(name, _)| *name == named),
    }
}
