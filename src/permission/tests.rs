//! The whole table of the default policy.

use super::*;
use crate::tool::fixture::named;
use crate::tool::{Capabilities, InputSchema, Origin, TimeoutOwner, ToolName};
use Capability::{Agent, Execute, Mcp, Network, Read, Write};
use Effect::{Allow, Deny, RequireHuman};

struct Row {
    what: &'static str,
    capabilities: Capabilities,
    auto: bool,
    trusted: bool,
    /// Effects for (writes, execute) = confirm/confirm, allow/confirm, deny/allow, allow/allow.
    effects: [Effect; 4],
}

fn row(what: &'static str, capabilities: impl Into<Capabilities>, effects: [Effect; 4]) -> Row {
    Row { what, capabilities: capabilities.into(), auto: false, trusted: false, effects }
}

fn decide(row: &Row, config: Config) -> Decision {
    let name = ToolName::parse("t").unwrap();
    let mut definition = ToolDefinition::new(name, "t", InputSchema::object()).unwrap();
    definition.capabilities = row.capabilities.clone();
    let read_only = row.trusted || row.capabilities.read_only();
    let traits = CallTraits {
        read_only,
        destructive: false,
        parallel: true,
        timeout_owner: TimeoutOwner::Runtime,
    };
    Policy::new(config).decide((&definition, "t"), traits, row.auto.then(AutoAllow::new))
}

#[test]
fn the_permission_table_holds() {
    let rows = [
        row("reading", [Read], [Allow; 4]),
        row("no capabilities", [], [Allow; 4]),
        row("writing", [Write], [RequireHuman, Allow, Deny, Allow]),
        row("reading and writing", [Read, Write], [RequireHuman, Allow, Deny, Allow]),
        row("running", [Execute], [RequireHuman, RequireHuman, Allow, Allow]),
        row("reading and running", [Read, Execute], [RequireHuman, RequireHuman, Allow, Allow]),
        row("writing and running", [Write, Execute], [RequireHuman; 4]),
        row("network", [Network], [RequireHuman; 4]),
        row("agent", [Agent], [RequireHuman; 4]),
        row("mcp", [Mcp], [RequireHuman; 4]),
        Row { trusted: true, ..row("mcp, trusted read-only", [Mcp], [Allow; 4]) },
        Row { auto: true, ..row("web search", [Network], [Allow; 4]) },
        Row { auto: true, ..row("sub-agent", [Agent], [Allow; 4]) },
        Row {
            trusted: true,
            ..row(
                "mcp that runs, trusted",
                [Mcp, Execute],
                [RequireHuman, RequireHuman, Allow, Allow],
            )
        },
        Row {
            auto: true,
            ..row(
                "built-in that runs",
                [Execute, Network],
                [RequireHuman, RequireHuman, Allow, Allow],
            )
        },
    ];
    let configs = [
        (Mode::Confirm, Mode::Confirm),
        (Mode::Allow, Mode::Confirm),
        (Mode::Deny, Mode::Allow),
        (Mode::Allow, Mode::Allow),
    ];
    for row in rows {
        for ((writes, execute), expected) in configs.iter().copied().zip(row.effects) {
            let decision = decide(&row, Config { writes, execute, ..Config::default() });
            assert_eq!(decision.effect, expected, "{}: {writes:?} {execute:?}", row.what);
            assert_eq!(decision.reason.is_empty(), decision.effect == Allow, "{decision:?}");
        }
    }
}

#[test]
fn denied_execution_comes_before_everything() {
    let config = Config { writes: Mode::Allow, execute: Mode::Deny, ..Config::default() };
    for capabilities in
        [Capabilities::from([Execute]), [Execute, Mcp].into(), [Execute, Network].into()]
    {
        let row = Row { auto: true, trusted: true, ..row("x", capabilities, [Deny; 4]) };
        assert_eq!(decide(&row, config.clone()).rule, "execute: deny");
    }
}

#[test]
fn of_two_decisions_the_stricter_wins_and_the_parent_on_a_tie() {
    let allow = Decision::allow("a");
    let ask = Decision::ask("b", "b");
    let deny = Decision::deny("c", "c");
    let other = Decision::deny("d", "d");
    assert_eq!(Decision::stricter(allow.clone(), ask.clone()), ask);
    assert_eq!(Decision::stricter(deny.clone(), ask.clone()), deny);
    assert_eq!(Decision::stricter(ask, deny.clone()), deny);
    assert_eq!(Decision::stricter(other.clone(), deny), other);
    assert_eq!(Decision::stricter(allow.clone(), Decision::allow("e")), allow);
}

#[test]
fn a_refusal_says_what_would_have_been_needed() {
    let arguments = json!({"a": 1}).as_object().unwrap().clone();
    let refusal = Decision::ask("default", "why").refusal("t", &arguments, "why".into());
    assert_eq!(refusal.code, PERMISSION_ERROR);
    assert_eq!(
        Value::Object(refusal.details),
        json!({"require_confirmation": true, "effect": "require_human", "rule": "default", "tool": "t", "params": {"a": 1}})
    );
    let refusal = Decision::deny("writes: deny", "no").refusal("t", &arguments, "no".into());
    assert_eq!(refusal.details["effect"], "deny");
    assert_eq!(refusal.details["require_confirmation"], false);
}

fn rules_of(permit: &[String], ask: &[String], forbid: &[String]) -> Rules {
    let written = |globs| Written::new(globs, None).unwrap();
    Rules::new(written(permit), written(ask), written(forbid))
}

#[test]
fn the_operators_rules_come_around_the_policy() {
    let check = |rules: [&[&str]; 3],
                 capabilities: Capabilities,
                 execute: Mode,
                 expected: (Effect, &str)| {
        let [permit, ask, forbid] =
            rules.map(|globs| globs.iter().map(ToString::to_string).collect::<Vec<_>>());
        let rules = rules_of(&permit, &ask, &forbid);
        let row = row("x", capabilities, [Allow; 4]);
        let decision = decide(&row, Config { execute, rules, ..Config::default() });
        assert_eq!((decision.effect, decision.rule), expected, "{permit:?} {ask:?} {forbid:?}");
    };
    let confirm = Mode::Confirm;
    check([&["t"], &[], &[]], [Mcp].into(), confirm, (Allow, "--permit"));
    check([&["mcp"], &[], &[]], [Mcp].into(), confirm, (Allow, "--permit"));
    check([&["other*"], &[], &[]], [Mcp].into(), confirm, (RequireHuman, "default"));
    check([&["*"], &[], &[]], [Execute].into(), Mode::Deny, (Deny, "execute: deny"));
    check([&["*"], &["t"], &[]], [Mcp].into(), confirm, (RequireHuman, "--ask"));
    check([&[], &["t"], &[]], [Read].into(), confirm, (RequireHuman, "--ask"));
    check([&["*"], &["*"], &["[st]"]], [Read].into(), confirm, (Deny, "--forbid"));
    check([&[], &[], &["read"]], [Read].into(), confirm, (Deny, "--forbid"));
    assert_eq!(Written::new(&["[".to_owned()], None).unwrap_err().glob, "[");
}

#[test]
fn a_rule_that_concerns_no_tool_is_found() {
    let definition = |name: &str, capabilities: Capabilities| {
        let mut definition = named(name, |_| ()).definition().clone();
        definition.capabilities = capabilities;
        definition.aliases = vec![format!("{name}_alias")];
        definition.origin =
            Some(Origin { server: "its-server".to_owned(), tool: format!("its-{name}") });
        definition
    };
    let tools = [definition("one", [Mcp].into()), definition("two", [Read].into())];
    let rules = |globs: &[&str]| globs.iter().map(ToString::to_string).collect::<Vec<_>>();
    let check = |globs: &[&str], expected: &[&str]| {
        let known = tools.iter().map(|tool| (tool, "seen"));
        let idle = rules_of(&rules(globs), &[], &rules(globs)).idle(known);
        let of = |flag: &'static str| {
            let idle =
                move |glob: &&str| Idle { flag, glob: (*glob).to_owned(), place: flag.to_owned() };
            expected.iter().map(idle)
        };
        let expected: Vec<Idle> = of("--permit").chain(of("--forbid")).collect();
        assert_eq!(idle, expected, "{globs:?}");
    };
    check(&[], &[]);
    check(&["one", "t*", "its-one", "two_alias", "mcp", "*", "seen"], &[]);
    check(&["its-server__its-one", "mcp__its-server__its-two"], &[]);
    check(&["onee", "one", "two?"], &["onee", "two?"]);
    // What a capability is called is a rule for tools to come.
    check(&["execute", "network", "exec*"], &["exec*"]);
    assert_eq!(
        Idle { flag: "--ask", glob: "x".to_owned(), place: "IRIS_MCP_ASK".to_owned() }.to_string(),
        "IRIS_MCP_ASK: `x` matches no tool, neither by a name nor by a capability"
    );
}
