//! Variables, good and bad; no message shows a value.

use super::*;
use crate::config::log::LogFormat;
use crate::config::settings::Approval;

fn of(pairs: &[(&str, &str)]) -> Result<Settings, EnvironmentError> {
    let environment =
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    read(&environment, Path::new("/cwd"))
}

#[test]
fn every_variable_is_read() {
    let settings = of(&[
        ("IRIS_MCP_ACTIVITY_LOG", "calls"),
        ("IRIS_MCP_AGENT", "agent.yaml"),
        ("IRIS_MCP_MCP", "a.json, /b.toml"),
        ("IRIS_MCP_WORKSPACE", "/ws"),
        ("IRIS_MCP_HTTP", "127.0.0.1:0"),
        ("IRIS_MCP_STDIO", "yes"),
        ("IRIS_MCP_KEEP_GOING", "0"),
        ("IRIS_MCP_APPROVAL", "deny"),
        ("IRIS_MCP_TOOL_TIMEOUT_SECONDS", "1.5"),
        ("IRIS_MCP_MAX_MESSAGE_BYTES", "1000"),
        ("IRIS_MCP_CONCURRENT_CALLS", "3"),
        ("IRIS_MCP_BREAKER_FAILURE_THRESHOLD", "2"),
        ("IRIS_MCP_LOG_FORMAT", "json"),
        ("IRIS_MCP_LOG_FILE", "log"),
        ("IRIS_MCP_LOG", "debug"),
        ("IRIS_MCP_CONFIG", "server.toml"),
        ("IRIS_MCP_TOKEN_FILE", "tokens"),
        ("IRIS_MCP_VIEW_DENY", "a, b"),
        ("IRIS_MCP_EXE", "/bin/iris-mcp"),
        ("OTHER", "x"),
    ])
    .unwrap();
    assert_eq!(settings.activity.file, Some("/cwd/calls".into()));
    assert_eq!(settings.agent, Some("/cwd/agent.yaml".into()));
    assert_eq!(settings.mcp, Some(vec!["/cwd/a.json".into(), "/b.toml".into()]));
    assert_eq!(settings.workspace, Some("/ws".into()));
    assert_eq!(settings.http, Some("127.0.0.1:0".parse().unwrap()));
    assert_eq!((settings.stdio, settings.keep_going), (Some(true), Some(false)));
    assert_eq!(settings.approval.mode, Some(Approval::Deny));
    assert_eq!(settings.limits.tool_timeout_seconds.unwrap().duration().as_millis(), 1500);
    assert_eq!(settings.limits.max_message_bytes.unwrap().get(), 1000);
    assert_eq!(settings.limits.concurrent_calls.unwrap().get(), 3);
    assert_eq!(settings.breaker.unwrap().failure_threshold, std::num::NonZeroU32::new(2));
    assert_eq!(settings.log.format, Some(LogFormat::Json));
    assert_eq!(settings.log.file, Some("/cwd/log".into()));
    assert_eq!(settings.config, Some("/cwd/server.toml".into()));
    assert_eq!(settings.token_file, Some("/cwd/tokens".into()));
    assert_eq!(
        settings.view.deny,
        Some(Globs::new(
            ["a", "b"].map(|glob| glob.parse().unwrap()).into(),
            Some("IRIS_MCP_VIEW_DENY".to_owned())
        ))
    );
}

#[test]
fn nothing_set_says_nothing_and_empty_counts_as_not_set() {
    assert_eq!(of(&[]), Ok(Settings::default()));
    assert_eq!(of(&[("IRIS_MCP_HTTP", ""), ("IRIS_MCP_APPROVAL", "")]), Ok(Settings::default()));
}

#[test]
fn a_bad_variable_is_named_and_its_value_is_not_shown() {
    let table = [
        ("IRIS_MCP_HTTP", "IRIS_MCP_HTTP: expected an address and a port, such as 127.0.0.1:8808"),
        ("IRIS_MCP_APPROVAL", "IRIS_MCP_APPROVAL: expected `ask`, `client` or `deny`"),
        ("IRIS_MCP_STDIO", "IRIS_MCP_STDIO: expected `on` or `off`"),
        ("IRIS_MCP_CONCURRENT_CALLS", "IRIS_MCP_CONCURRENT_CALLS: expected a whole number above 0"),
        (
            "IRIS_MCP_TOOL_TIMEOUT_SECONDS",
            "IRIS_MCP_TOOL_TIMEOUT_SECONDS: expected a number of seconds above 0",
        ),
        ("IRIS_MCP_AGNT", "IRIS_MCP_AGNT: there is no such setting; did you mean IRIS_MCP_AGENT?"),
    ];
    for (variable, expected) in table {
        for value in ["s3cret", "0.0", "-1"] {
            if variable == "IRIS_MCP_STDIO" || value != "0.0" || variable.contains("TIMEOUT") {
                let error = of(&[(variable, value)]).unwrap_err().to_string();
                assert_eq!(error, expected, "{variable}={value}");
            }
        }
    }
}
