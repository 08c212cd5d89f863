//! Who sees what, and what a name comes to.

mod discovery;

use super::*;
use crate::discovery::Local;
use crate::registry::diagnostic::{Severity, Stage};
use crate::registry::{Cause, Diagnostic, Publication};
use crate::session::Sessions;
use crate::tool::fixture::named;
use crate::tool::{ErrorCode, Patterns, SessionId};

fn tool(name: &str, deferred: bool) -> Arc<dyn Tool> {
    named(name, |definition| definition.deferred = deferred)
}

fn exposure(view: View) -> (Arc<Exposure>, Arc<Catalogue>, Arc<Session>) {
    let registry = Registry::new();
    let tools = vec![
        tool("read_file", false),
        tool("hidden", false),
        tool("mcp__time__get_current_time", false),
        tool("deferred_tool", true),
    ];
    let publication = Publication { state: State::Ready, tools, ..Publication::default() };
    registry.publisher("s").publish(publication).unwrap();
    let catalogue = registry.snapshot();
    let config = Config {
        view,
        naming: Naming::default(),
        defer: Defer::Never,
        disclosure: Disclosure::Both,
    };
    (
        Exposure::new(registry, config, Arc::new(Local)),
        catalogue,
        Sessions::default().get(&SessionId::new("s")),
    )
}

fn resolve(
    exposure: &Exposure,
    catalogue: &Catalogue,
    session: &Session,
    name: &str,
) -> Result<Resolved, Unresolved> {
    exposure.resolve(catalogue, session, name, Arguments::new())
}

fn hiding() -> View {
    View { deny: Patterns::new(["hidden"]).unwrap(), ..View::default() }
}

#[test]
fn what_is_hidden_can_not_be_told_from_what_does_not_exist() {
    let (exposure, catalogue, session) = exposure(hiding());
    let of = |name: &str| resolve(&exposure, &catalogue, &session, name).err();
    assert_eq!(of("hidden"), Some(Unresolved::Unknown { nearest: vec![], missing: None }));
    assert_eq!(of("hiddenx"), Some(Unresolved::Unknown { nearest: vec![], missing: None }));
    assert!(of("read_file").is_none());
}

#[test]
fn an_unknown_name_brings_similar_ones() {
    let (exposure, catalogue, session) = exposure(hiding());
    let check = |name: &str, expected: &[&str]| {
        let error = resolve(&exposure, &catalogue, &session, name).unwrap_err();
        let nearest = expected.iter().map(ToString::to_string).collect();
        assert_eq!(error, Unresolved::Unknown { nearest, missing: None }, "{name}");
    };
    check("readfile", &["read_file"]);
    check("Read_File", &["read_file"]);
    check("get_current_time", &["mcp__time__get_current_time"]);
    check("zzz", &[]);
    check("deferred_tol", &[]);
}

#[test]
fn a_deferred_tool_is_callable_once_disclosed_and_listed_for_legacy_sessions_only() {
    let (exposure, catalogue, session) = exposure(hiding());
    let listed = |era| {
        let tools = exposure.listed(&catalogue, &session, era);
        tools.iter().map(|tool| tool.definition().name.to_string()).collect::<Vec<_>>()
    };
    let Unresolved::Refused(failure) =
        resolve(&exposure, &catalogue, &session, "deferred_tool").unwrap_err()
    else {
        panic!("it exists");
    };
    assert_eq!(failure.code, TOOL_NOT_ALLOWED);
    assert!(failure.message.contains("\"deferred tool\""), "{failure}");
    let always = ["read_file", "mcp__time__get_current_time"];
    assert_eq!(listed(Era::Legacy), always);
    session.reveal("deferred_tool");
    assert!(resolve(&exposure, &catalogue, &session, "deferred_tool").is_ok());
    assert_eq!(listed(Era::Legacy), ["read_file", "mcp__time__get_current_time", "deferred_tool"]);
    assert_eq!(listed(Era::Modern), always);
    session.reveal("hidden");
    assert!(resolve(&exposure, &catalogue, &session, "hidden").is_err());
}

#[test]
fn t7_an_unknown_tool_is_a_failure_for_whoever_has_no_protocol() {
    let (exposure, catalogue, session) = exposure(hiding());
    let text = |name: &str| {
        let error = resolve(&exposure, &catalogue, &session, name).unwrap_err();
        error.into_failure(name).to_string()
    };
    assert_eq!(text("nope"), "Error[NOT_FOUND]: unknown tool: nope");
    assert_eq!(text("hidden"), "Error[NOT_FOUND]: unknown tool: hidden");
    assert_eq!(
        text("read_fil"),
        "Error[NOT_FOUND]: unknown tool: read_fil; did you mean read_file?"
    );
}

#[test]
fn t7_a_tool_of_a_server_that_is_not_there_is_unknown_and_the_reason_is_told() {
    let (exposure, _, session) = exposure(View::default());
    let registry = exposure.registry();
    let failed = |reason: &str| Publication {
        state: State::Failed(Cause::from(reason.to_owned()).with_detail("PATH is /x".to_owned())),
        ..Publication::default()
    };
    registry.publisher("my-db").publish(failed("`db` was not found\nmore")).unwrap();
    registry.publisher("my").publish(failed("of another")).unwrap();
    let _starting = registry.publisher("slow");
    let catalogue = registry.snapshot();
    let told = |name: &str| {
        let error = resolve(&exposure, &catalogue, &session, name).unwrap_err();
        let failure = error.into_failure(name);
        assert_eq!(failure.code, NOT_FOUND);
        (failure.message.clone(), failure.details.get("upstream").cloned())
    };
    let of_db = "; the server my-db failed, so its tools are not there: `db` was not found";
    for name in ["mcp__my_db__query", "mcp__my-db__query"] {
        assert_eq!(told(name), (format!("unknown tool: {name}{of_db}"), Some("my-db".into())));
    }
    let (message, server) = told("mcp__slow__x");
    assert!(message.ends_with("; the server slow is still starting; try again later"), "{message}");
    assert_eq!(server, Some("slow".into()));
    assert_eq!(told("mcp__none__x"), ("unknown tool: mcp__none__x".to_owned(), None));
}

#[test]
fn t7_a_tool_that_was_left_out_is_unknown_and_the_reason_is_told() {
    let (exposure, _, session) = exposure(View::default());
    let registry = exposure.registry();
    let diagnostic = |code: &'static str, severity, message: &str| Diagnostic {
        server: "my-db".to_owned(),
        stage: Stage::Catalog,
        code: ErrorCode::new(code),
        severity,
        wire_name: Some("run-it".to_owned()),
        field: None,
        message: message.to_owned(),
        place: None,
    };
    let diagnostics = vec![
        diagnostic("MCP_OFFER_INVALID", Severity::Error, "a prompt"),
        diagnostic("MCP_TOOL_INVALID", Severity::Warning, "it is there"),
        diagnostic("MCP_TOOL_INVALID", Severity::Error, "the tool is left out: no schema\nmore"),
    ];
    let state = State::Ready;
    let publication = Publication { state, diagnostics, ..Publication::default() };
    registry.publisher("my-db").publish(publication).unwrap();
    let catalogue = registry.snapshot();
    let told = |name: &str| {
        let error = resolve(&exposure, &catalogue, &session, name).unwrap_err();
        error.into_failure(name).message
    };
    for name in ["mcp__my_db__run_it", "mcp__my-db__run-it", "run-it"] {
        let reason = "my-db has it, but the tool is left out: no schema";
        assert_eq!(told(name), format!("unknown tool: {name}; {reason}"));
    }
    assert!(told("mcp__my_db__run").contains("did you mean"), "nothing was left out by that name");
}
