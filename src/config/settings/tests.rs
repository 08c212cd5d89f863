//! The settings file, and which place wins.

use super::*;
use crate::source::upstream::client::Protocol;
use crate::source::upstream::clients::Scope;

fn parse(text: &str) -> Result<Settings, String> {
    let document =
        Document::parse("server.toml", Format::Toml, text).map_err(|error| error.to_string())?;
    document.decode().map_err(|error: DocumentError| error.to_string())
}

#[test]
fn a_file_can_say_everything() {
    let settings = parse(
        "agent = 'a.yaml'\nmcp = ['m.json']\nworkspace = '.'\nstdio = true\nhttp = '127.0.0.1:1'\ntoken_file = 't'\nkeep_going = true\n\
         [approval]\nmode = 'client'\n[limits]\ntool_timeout_seconds = 2\nmax_message_bytes = 10\nconcurrent_calls = 4\n\
         [breaker]\nfailure_threshold = 5\ncooldown_seconds = 0.5\n[view]\ninclude_groups = ['file']\nallow = ['x']\ndeny = ['y']\n\
         [log]\nfile = 'l'\nformat = 'json'\nfilter = 'debug'\n[activity]\nfile = 'c'\n\
         [upstream.time]\nprotocol = 'legacy'\ntrust_annotations = true\nmax_concurrency = 1\nrequired = false\ninherit_env = ['A']\nstrict_output = true\nscope = 'per_client'\nmax_clients = 3\nclient_idle_seconds = 0.5\n",
    )
    .unwrap();
    assert_eq!(settings.activity.file, Some("c".into()));
    assert_eq!(settings.approval.mode, Some(Approval::Client));
    assert_eq!(settings.limits.tool_timeout_seconds.unwrap().duration(), Duration::from_secs(2));
    let breaker = settings.breaker.unwrap().config();
    assert_eq!((breaker.failure_threshold, breaker.cooldown), (5, Duration::from_millis(500)));
    assert!(settings.view.view().unwrap().deny.fit(["y"]));
    let operator = settings.upstream["time"].operator();
    assert_eq!((operator.protocol, operator.max_concurrency), (Protocol::Legacy, 1));
    let idle = Duration::from_millis(500);
    assert_eq!(operator.scope, Scope::PerClient { most: 3, idle });
    let plain = parse("[upstream.time]\nmax_clients = 3").unwrap().upstream["time"].operator();
    assert_eq!(plain.scope, Scope::Shared);
    assert!(parse("[upstream.time]\nscope = 'client'").unwrap_err().contains("per_client"));
    assert_eq!(settings.upstream["time"].trust_annotations, Some(true));
    assert_eq!(settings.upstream["time"].required, Some(false));
}

#[test]
fn a_mistake_has_its_place() {
    let check =
        |text: &str, expected: &str| assert_eq!(parse(text).unwrap_err(), expected, "{text}");
    check(
        "[approval]\nmod = 'ask'\n",
        "server.toml:2:1: approval.mod: unknown key; did you mean `mode`?",
    );
    let address = "server.toml:1:8: http: expected an address and a port, such as 127.0.0.1:8808";
    check("http = 'nowhere'\n", address);
    check(
        "http = 3\n",
        "server.toml:1:8: http: expected a string, found an integer; put it in quotes",
    );
    check(
        "[approval]\nmode = 'perhaps'\n",
        "server.toml:2:8: approval.mode: the choices are `ask`, `client` and `deny`",
    );
}

#[test]
fn no_mistake_is_told_in_the_words_of_rust() {
    let check = |key: &str, value: &str, expected: &str| {
        let (section, name) = key.rsplit_once('.').unwrap();
        let error = parse(&format!("[{section}]\n{name} = {value}\n")).unwrap_err();
        assert!(error.ends_with(&format!(": {key}: {expected}")), "{error}");
    };
    for key in ["limits.concurrent_calls", "limits.max_message_bytes", "upstream.a.max_concurrency"]
    {
        check(key, "0", "expected a whole number above 0");
        check(key, "-1", "expected a whole number above 0");
        check(key, "'x'", "expected a whole number above 0, found a string");
        check(key, "1.5", "expected a whole number above 0, found a number with a fraction");
    }
    check("breaker.failure_threshold", "0", "expected a whole number above 0");
    check("breaker.failure_threshold", "-1", "expected a whole number above 0");
    check("breaker.failure_threshold", "5_000_000_000", "the number is too large");
    check(
        "breaker.cooldown_seconds",
        "'x'",
        "expected a number, found a string; write it without quotes",
    );
    check("limits.tool_timeout_seconds", "0", "expected a number of seconds above 0");
    check("limits.tool_timeout_seconds", "[]", "expected a number, found a list");
    check("log.file", "3", "expected a path, found an integer; put it in quotes");
    check("activity.file", "[]", "expected a path, found a list");
}

#[test]
fn paths_start_from_the_folder_of_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.toml");
    std::fs::write(
        &file,
        "agent = 'a.yaml'\nmcp = ['/abs.json', 'rel.json']\n[log]\nfile = 'log'\n[activity]\nfile = 'calls'\n",
    )
    .unwrap();
    let settings = read(&file).unwrap();
    assert_eq!(settings.agent, Some(folder.path().join("a.yaml")));
    assert_eq!(settings.mcp, Some(vec!["/abs.json".into(), folder.path().join("rel.json")]));
    assert_eq!(settings.log.file, Some(folder.path().join("log")));
    assert_eq!(settings.activity.file, Some(folder.path().join("calls")));
}

#[test]
fn the_nearer_place_wins_setting_by_setting() {
    let near = parse(
        "keep_going = false\n[limits]\nconcurrent_calls = 1\n[upstream.a]\nrequired = true\n",
    )
    .unwrap();
    let far = parse(
        "keep_going = true\nstdio = true\n[limits]\nconcurrent_calls = 2\nmax_message_bytes = 3\n[breaker]\nfailure_threshold = 1\n\
         [upstream.a]\nrequired = false\nmax_concurrency = 2\n[upstream.b]\nrequired = true\n",
    )
    .unwrap();
    let both = near.over(far);
    assert_eq!((both.keep_going, both.stdio), (Some(false), Some(true)));
    assert_eq!(both.limits.concurrent_calls.unwrap().get(), 1);
    assert_eq!(both.limits.max_message_bytes.unwrap().get(), 3);
    assert_eq!(both.breaker.unwrap().failure_threshold, NonZeroU32::new(1));
    assert_eq!(both.upstream["a"].required, Some(true));
    assert_eq!(both.upstream["a"].max_concurrency.unwrap().get(), 2);
    assert_eq!(both.upstream["b"].required, Some(true));
}
