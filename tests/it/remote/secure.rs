//! Servers behind TLS with a certificate authority of one's own, and behind a proxy.

use std::process::Command;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};

use super::Served;
use crate::binary::{Ended, command, exe, run};
use crate::fixture::Home;
use crate::session::{Session, text};

const LIMIT: Duration = Duration::from_secs(30);

/// The name that a server has behind the proxy; it is nowhere else.
const NAME: &str = "up.test";

/// Makes a certificate authority and a certificate of it, as `ca.pem` and `server.pem`.
fn certificates(home: &Home) {
    let mut authority = CertificateParams::new([]).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("signed");
    home.write("ca.pem", &authority.pem());
    let names = [NAME.to_owned(), "127.0.0.1".to_owned()];
    let key = KeyPair::generate().expect("a key");
    let server = CertificateParams::new(names).expect("two names");
    let server = server.signed_by(&key, &authority).expect("signed");
    home.write("server.pem", &(server.pem() + &key.serialize_pem()));
}

/// Starts a server of an era that is spoken to over TLS.
fn secure(home: &Home, era: &str) -> Served {
    certificates(home);
    Served::start(home, json!({"era": era, "tls": home.path("server.pem")}))
}

/// Starts a proxy for a server.
fn proxy(home: &Home, served: &Served, mut options: Value) -> Served {
    options["port"] = served.port.into();
    Served::run("proxy.py", home, options)
}

/// The variables that this machine may have for itself.
const OURS: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

fn bare(command: &mut Command) -> &mut Command {
    OURS.iter().fold(command, |command, name| command.env_remove(name))
}

fn session(home: &Home, variables: &[(&str, &str)]) -> Session {
    let mut session = Session::start_with(&home.arguments(), |command| {
        bare(command).envs(variables.iter().copied());
    });
    session.initialize();
    session
}

fn check(home: &Home, variables: &[(&str, &str)], more: &[&str]) -> Ended {
    let mut command = command(exe());
    command.arg("check").args(home.arguments()).args(more);
    bare(&mut command).envs(variables.iter().copied());
    run(command, LIMIT)
}

#[track_caller]
fn hears(session: &mut Session) {
    let result = session.call("mcp__up__echo", &json!({"text": "heard"}));
    assert_eq!(text(&result), "heard", "{result}");
}

#[test]
fn an_authority_of_ones_own_is_trusted_where_it_is_named() {
    for era in super::ERAS {
        let home = Home::new();
        let served = secure(&home, era);
        let url = served.url("/mcp").replace("http:", "https:");
        home.serve(json!({"up": {"url": url}}));
        hears(&mut session(&home, &[("SSL_CERT_FILE", &home.path("ca.pem"))]));
        let folder = home.path("authorities");
        std::fs::create_dir(&folder).expect("a new folder");
        std::fs::copy(home.file("ca.pem"), home.file("authorities/ca.pem")).expect("copied");
        hears(&mut session(&home, &[("SSL_CERT_DIR", &format!("/none:{folder}"))]));
    }
}

#[test]
fn an_authority_that_nobody_knows_is_refused_and_told_how_to_be_trusted() {
    let home = Home::new();
    let served = secure(&home, "legacy");
    home.serve(json!({"up": {"url": served.url("/mcp").replace("http:", "https:")}}));
    let found = check(&home, &[], &[]);
    assert_eq!(found.code, Some(1), "{found:?}");
    let why = "it cannot be reached: invalid peer certificate: UnknownIssuer; if its certificate is from an authority of your own, add that to the system's, or name its file in SSL_CERT_FILE";
    assert!(found.stdout.contains(why), "{found:?}");
}

#[test]
fn a_server_is_reached_through_the_proxy_of_its_scheme() {
    for (scheme, variable) in [("http", "HTTP_PROXY"), ("https", "HTTPS_PROXY")] {
        for era in super::ERAS {
            let home = Home::new();
            let authority = home.path("ca.pem");
            let served = match scheme {
                "http" => Served::start(&home, json!({"era": era})),
                _ => secure(&home, era),
            };
            let proxy = proxy(&home, &served, json!({"password": "Basic bWU6czNjcmV0LXZhbHVl"}));
            home.serve(json!({"up": {"url": format!("{scheme}://{NAME}/mcp")}}));
            let through = format!("http://me:s3cret-value@127.0.0.1:{}", proxy.port);
            let variables = [(variable, &*through), ("SSL_CERT_FILE", &authority)];
            hears(&mut session(&home, &variables));
            let asked = match scheme {
                "http" => format!("POST http://{NAME}/mcp"),
                _ => format!("CONNECT {NAME}:443"),
            };
            assert!(home.noted(&asked) > 0, "{:?}", home.ledger());
        }
    }
}

#[test]
fn check_says_that_there_is_a_proxy_and_keeps_its_password() {
    let home = Home::new();
    let served = Served::start(&home, json!({}));
    let proxy = proxy(&home, &served, json!({"password": "Basic bWU6czNjcmV0LXZhbHVl"}));
    home.serve(json!({"up": {"url": format!("http://{NAME}/mcp")}}));
    let shown = format!("http://127.0.0.1:{}", proxy.port);
    let good = format!("http://me:s3cret-value@127.0.0.1:{}", proxy.port);
    let bad = format!("http://me:s3cret-wrong@127.0.0.1:{}", proxy.port);
    let found = check(&home, &[("HTTP_PROXY", &good)], &[]);
    let place = format!("http://{NAME}/mcp through the proxy {shown}\n");
    assert!(found.code == Some(0) && found.stdout.contains(&place), "{found:?}");
    let found = check(&home, &[("HTTP_PROXY", &bad)], &["--json"]);
    assert!(found.code == Some(1) && !found.stdout.contains("s3cret"), "{found:?}");
    let json: Value = serde_json::from_str(&found.stdout).expect("JSON");
    let told = &json["servers"][0];
    assert_eq!(told["proxy"], shown);
    let error = told["error"].as_str().expect("an error");
    assert!(error.contains("HTTP 407: a proxy wants to know who asks"), "{error}");
    let found = check(&home, &[("HTTP_PROXY", "socks5://me:s3cret-value@h:1")], &[]);
    let error = "HTTP_PROXY is no address of a proxy, such as http://proxy:3128";
    assert!(found.stdout.contains(error) && !found.stdout.contains("s3cret"), "{found:?}");
}

#[test]
fn a_proxy_that_is_not_there_is_told_of_by_its_variable() {
    let home = Home::new();
    home.serve(json!({"up": {"url": format!("https://{NAME}/mcp")}}));
    let found = check(&home, &[("https_proxy", "127.0.0.1:9")], &[]);
    let why = "it cannot be reached through the proxy http://127.0.0.1:9 of HTTPS_PROXY: Connection refused";
    assert!(found.stdout.contains(why), "{found:?}");
}

#[test]
fn this_machine_and_what_is_excepted_is_reached_without_a_proxy() {
    let home = Home::new();
    let served = Served::start(&home, json!({}));
    home.serve(json!({"up": {"url": served.url("/mcp")}}));
    hears(&mut session(&home, &[("HTTP_PROXY", "http://127.0.0.1:9")]));
    home.serve(json!({"up": {"url": format!("http://{NAME}:9/mcp")}}));
    let variables = [("HTTP_PROXY", "http://127.0.0.1:9"), ("NO_PROXY", "other, .test")];
    let found = check(&home, &variables, &[]);
    assert!(!found.stdout.contains("proxy"), "{found:?}");
}
