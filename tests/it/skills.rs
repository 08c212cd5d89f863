//! Skills of a workspace, as clients of both eras get them over both transports.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::binary::{Ended, Gateway, command, exe, peer, run};
use crate::conformance::failed;
use crate::fixture::{Home, eventually};
use crate::relays::{Client, listening_for, wait_for};
use crate::session::{Session, code, names, text};
use crate::web::Web;

const LIMIT: Duration = Duration::from_mins(1);
const TOOLS: &str = "notifications/tools/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const UPDATED: &str = "notifications/resources/updated";

/// Makes a workspace with skills and an agent that has them; `more` is said of skills in its file.
fn home(more: &str) -> Home {
    let home = Home::new();
    let skills = format!("skills: {{enabled: true, root: skills{more}}}\n");
    let agent = "permissions: {workspace: workspace}\ntools: {builtin: [file.read]}\n";
    home.write("agent.yaml", &format!("{agent}{skills}"));
    fs::create_dir(home.file("workspace/skills")).unwrap();
    home
}

/// Makes a home with two skills, of which one has more files.
fn filled() -> Home {
    let home = home("");
    skill(&home, "review-python", "Reviews Python");
    skill(&home, "pdf", "Takes PDFs apart");
    put(&home, "pdf/ref/forms.md", "# Forms\n");
    fs::write(home.file("workspace/skills/pdf/logo.png"), [0x89, b'P', b'N', b'G']).unwrap();
    home
}

/// Makes a skill, or another one of its name.
fn skill(home: &Home, name: &str, description: &str) {
    let text = format!("---\nname: {name}\ndescription: {description}\n---\nHow to {name}.\n");
    put(home, &format!("{name}/SKILL.md"), &text);
}

fn put(home: &Home, file: &str, text: &str) {
    let path = home.file("workspace/skills").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn arguments(home: &Home, more: &[&str]) -> Vec<String> {
    let mut arguments = vec!["--agent".to_owned(), home.path("agent.yaml")];
    arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
    arguments
}

fn gateway(home: &Home, more: &[&str]) -> Gateway {
    let arguments = arguments(home, more);
    Gateway::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Does something as each kind of client.
fn everywhere(home: &Home, more: &[&str], test: impl Fn(&mut Client)) {
    let gateway = gateway(home, more);
    for mut client in Client::all(&arguments(home, more), &gateway) {
        test(&mut client);
    }
}

fn load(client: &mut Client, name: &str) -> Value {
    client.get("tools/call", &json!({"name": "load_skill", "arguments": {"name": name}}))
}

fn described(listed: &Value) -> String {
    let tools = listed["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "load_skill");
    tool.map(|tool| tool["description"].as_str().unwrap().to_owned()).unwrap_or_default()
}

fn uris(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["uri"].as_str().unwrap()).collect()
}

#[test]
fn a_skill_is_had_by_tool_by_resource_and_by_the_extension() {
    let home = filled();
    everywhere(&home, &[], |client| {
        let listed = client.get("tools/list", &json!({}));
        let description = described(&listed);
        assert!(
            description.ends_with("\n- pdf: Takes PDFs apart\n- review-python: Reviews Python")
        );
        let result = load(client, "pdf");
        assert_eq!(
            text(&result),
            fs::read_to_string(home.file("workspace/skills/pdf/SKILL.md")).unwrap()
        );

        let resources = client.get("resources/list", &json!({}));
        let ours = uris(&resources["resources"]);
        assert_eq!(ours, ["skill://pdf/SKILL.md", "skill://review-python/SKILL.md"]);
        let skills = client.get("skills/list", &json!({}));
        assert_eq!(uris(&skills["skills"]), ours);
        assert_eq!(skills.get("ttlMs").is_some(), client.is_modern(), "{skills}");
        let pdf = &skills["skills"][0];
        assert_eq!(pdf["frontmatter"], json!({"name": "pdf", "description": "Takes PDFs apart"}));
        let one = client.get("skills/get", &json!({"uri": "skill://pdf/SKILL.md"}));
        assert_eq!(&one["skill"], pdf);
        assert_eq!(one.get("cacheScope").is_some(), client.is_modern(), "{one}");

        let files = pdf["resources"].as_array().unwrap();
        assert_eq!(files.len(), 3);
        for file in files {
            let read = client.get("resources/read", &json!({"uri": file["uri"]}));
            let contents = &read["contents"][0];
            let bytes = match contents["text"].as_str() {
                Some(text) => text.as_bytes().to_vec(),
                None => b"\x89PNG".to_vec(),
            };
            let hex: String = Sha256::digest(&bytes)
                .iter()
                .flat_map(|byte| format!("{byte:02x}").into_bytes())
                .map(char::from)
                .collect();
            assert_eq!(file["digest"], format!("sha256:{hex}"), "{read}");
            assert_eq!(file["size"], bytes.len());
        }
        let logo = client.get("resources/read", &json!({"uri": "skill://pdf/logo.png"}));
        let expected =
            json!({"uri": "skill://pdf/logo.png", "mimeType": "image/png", "blob": "iVBORw=="});
        assert_eq!(logo["contents"][0], expected);

        let read = json!({"uri": "skill://pdf"});
        let children = client.get("resources/directory/read", &read)["resources"].take();
        assert_eq!(
            uris(&children),
            ["skill://pdf/SKILL.md", "skill://pdf/logo.png", "skill://pdf/ref"]
        );
        assert_eq!(children[2]["mimeType"], "inode/directory");
    });
}

#[test]
fn a_long_list_of_skills_has_pages() {
    let home = home("");
    let long = "x".repeat(60_000);
    for number in 0..80 {
        let text = format!("---\nname: s{number}\ndescription: d\nmore: {long}\n---\n");
        put(&home, &format!("s{number}/SKILL.md"), &text);
    }
    let gateway = gateway(&home, &[]);
    let mut older = Web::new(&gateway.url);
    older.initialize();
    for mut client in [Client::Http(older, false), Client::Http(Web::new(&gateway.url), true)] {
        let first = client.get("skills/list", &json!({}));
        let second = client.get("skills/list", &json!({"cursor": first["nextCursor"]}));
        assert!(second.get("nextCursor").is_none());
        let pages = [&first, &second].map(|page| uris(&page["skills"]));
        assert_eq!(pages.concat().into_iter().collect::<BTreeSet<_>>().len(), 80);
        let refused = client.ask("skills/list", &json!({"cursor": "1:50"}));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

#[test]
fn a_handshake_tells_of_skills_and_of_the_extension() {
    let home = filled();
    let mut session = Session::start(&arguments(&home, &[]));
    let settings = json!({"directoryRead": true});
    let hello = session.initialize();
    let mut modern = Session::start(&arguments(&home, &[]));
    let discovered = modern.modern("server/discover", &json!({}))["result"].take();
    for said in [&hello, &discovered] {
        assert_eq!(said["capabilities"]["extensions"]["io.modelcontextprotocol/skills"], settings);
        let instructions = said["instructions"].as_str().unwrap();
        assert!(instructions.contains("load_skill"), "{instructions}");
        assert!(
            instructions.ends_with("\n- pdf: Takes PDFs apart\n- review-python: Reviews Python")
        );
    }
}

#[test]
fn what_is_not_there_is_refused() {
    let home = filled();
    everywhere(&home, &[], |client| {
        let result = load(client, "none");
        assert_eq!(code(&result), "SKILL_NOT_FOUND");
        let details = &result["_meta"]["iris/result"]["details"];
        assert_eq!(details, &json!({"name": "none", "available": ["pdf", "review-python"]}));
        assert_eq!(code(&load(client, "No-Name")), "VALIDATION_ERROR");
        for (method, uri) in [
            ("skills/get", "skill://none/SKILL.md"),
            ("skills/get", "skill://pdf/logo.png"),
            ("resources/directory/read", "skill://pdf/SKILL.md"),
            ("resources/directory/read", "skill://pdf/none"),
            ("resources/directory/read", "file:///"),
        ] {
            let refused = client.ask(method, &json!({"uri": uri}));
            assert_eq!(refused["error"]["code"], -32602, "{method} {uri}: {refused}");
        }
        for uri in ["skill://pdf/none", "skill://pdf/../../agent.yaml", "skill://pdf/%2e%2e/x"] {
            let refused = client.ask("resources/read", &json!({"uri": uri}));
            assert!(refused["error"]["code"].is_i64(), "{uri}: {refused}");
        }
        // What cannot be read is not the same as what is not served.
        for method in ["skills/get", "resources/directory/read"] {
            assert_eq!(client.ask(method, &json!({}))["error"]["code"], -32602, "{method}");
        }
    });
}

#[test]
fn a_skill_that_is_gone_before_it_is_loaded_is_told() {
    let home = filled();
    let mut session = Session::start(&arguments(&home, &[]));
    session.initialize();
    assert!(session.tools().contains(&"load_skill".to_owned()));
    fs::remove_dir_all(home.file("workspace/skills/pdf")).unwrap();
    let result = session.call("load_skill", &json!({"name": "pdf"}));
    // Whichever is first, the call or the look that notices.
    assert!(["SKILL_READ_ERROR", "SKILL_NOT_FOUND"].contains(&code(&result)), "{result}");
    eventually("it is not known any more", || {
        code(&session.call("load_skill", &json!({"name": "pdf"}))) == "SKILL_NOT_FOUND"
    });
}

#[test]
fn what_changes_on_disk_is_told_and_seen_in_both_eras() {
    let home = home("");
    let mut older = Session::start(&arguments(&home, &[]));
    older.initialize();
    let wanted = json!({"toolsListChanged": true, "resourcesListChanged": true});
    let mut newer = listening_for(Session::start(&arguments(&home, &[])), &wanted);
    assert_eq!(older.tools(), ["read_file", "context_read", "context_search"]);

    // The first one.
    skill(&home, "pdf", "Takes PDFs apart");
    for session in [&mut older, &mut newer] {
        wait_for(session, RESOURCES);
    }
    assert!(older.changes > 0, "{TOOLS}");
    assert!(older.tools().contains(&"load_skill".to_owned()));
    let listed = newer.modern("tools/list", &json!({}))["result"].take();
    assert!(names(&listed).contains(&"load_skill".to_owned()));
    let listed = newer.modern("resources/list", &json!({}))["result"].take();
    assert_eq!(uris(&listed["resources"]), ["skill://pdf/SKILL.md"]);

    // Another description, and then another text.
    let changes = older.changes;
    skill(&home, "pdf", "Makes PDFs");
    for session in [&mut older, &mut newer] {
        wait_for(session, RESOURCES);
    }
    assert!(older.changes > changes);
    let listed = older.request("tools/list", &json!({}))["result"].take();
    assert!(described(&listed).ends_with("- pdf: Makes PDFs"));
    older.request("resources/subscribe", &json!({"uri": "skill://pdf/SKILL.md"}));
    put(&home, "pdf/SKILL.md", "---\nname: pdf\ndescription: Makes PDFs\n---\nOtherwise.\n");
    let told = wait_for(&mut older, UPDATED);
    assert_eq!(told["params"]["uri"], "skill://pdf/SKILL.md");
    let result = older.call("load_skill", &json!({"name": "pdf"}));
    assert!(text(&result).ends_with("Otherwise.\n"));

    // The last one.
    fs::remove_dir_all(home.file("workspace/skills/pdf")).unwrap();
    for session in [&mut older, &mut newer] {
        wait_for(session, RESOURCES);
    }
    assert!(!older.tools().contains(&"load_skill".to_owned()));
}

#[test]
fn every_file_of_a_skill_can_be_watched_in_both_eras() {
    let home = filled();
    let uri = "skill://pdf/ref/forms.md";
    let mut older = Session::start(&arguments(&home, &[]));
    older.initialize();
    for none in ["skill://pdf/ref/none.md", "skill://pdf/ref", "skill://none/SKILL.md"] {
        let refused = older.request("resources/subscribe", &json!({"uri": none}));
        assert_eq!(refused["error"]["code"], -32002, "{refused}");
    }
    let watched = older.request("resources/subscribe", &json!({"uri": uri}));
    assert_eq!(watched["result"], json!({}), "{watched}");
    let wanted = json!({"resourceSubscriptions": [uri]});
    let mut newer = listening_for(Session::start(&arguments(&home, &[])), &wanted);
    put(&home, "pdf/ref/forms.md", "# Other forms\n");
    let told = wait_for(&mut older, UPDATED);
    assert_eq!(told["params"]["uri"], uri);
    // Whether it watched already when that was written is not known.
    eventually("the other one is told", || {
        put(&home, "pdf/ref/forms.md", &format!("{:?}", std::time::Instant::now()));
        newer.modern("tools/list", &json!({}));
        newer.aside.iter().any(|message| message["method"] == UPDATED)
    });
}

#[test]
fn a_skill_that_grows_too_large_is_in_no_list_any_more() {
    let home = filled();
    let mut session = Session::start(&arguments(&home, &[]));
    session.initialize();
    let both = ["skill://pdf/SKILL.md", "skill://review-python/SKILL.md"];
    let listed = session.request("resources/list", &json!({}))["result"].take();
    assert_eq!(uris(&listed["resources"]), both);
    for number in 0..520 {
        put(&home, &format!("pdf/ref/{number}"), "");
    }
    // That something is in the log is known before a client is told.
    eventually("it is noticed", || session.said().contains("more than 512 files"));
    wait_for(&mut session, RESOURCES);
    let listed = session.request("resources/list", &json!({}))["result"].take();
    assert_eq!(uris(&listed["resources"]), both[1..]);
    let listed = session.request("skills/list", &json!({}))["result"].take();
    assert_eq!(uris(&listed["skills"]), both[1..]);
    assert!(text(&session.call("load_skill", &json!({"name": "pdf"}))).contains("How to pdf."));
    fs::remove_dir_all(home.file("workspace/skills/pdf/ref")).unwrap();
    wait_for(&mut session, RESOURCES);
    let listed = session.request("resources/list", &json!({}))["result"].take();
    assert_eq!(uris(&listed["resources"]), both);
}

#[test]
fn skills_that_are_off_are_nowhere() {
    let home = filled();
    let agent = "permissions: {workspace: workspace}\nskills: {root: skills}\n";
    home.write("agent.yaml", agent);
    nowhere(&home, &[]);
}

#[test]
fn where_the_tool_is_hidden_or_refused_nothing_leads_around_it() {
    let home = filled();
    let config = home.write("server.toml", "[view]\ndeny = [\"load_skill\"]\n");
    nowhere(&home, &["--config", &config]);
    let tools = iris(&home, &["tools", "--config", &config]);
    assert!(!tools.stderr.contains("pdf"), "{tools:?}");
    for flag in ["--forbid", "--ask"] {
        everywhere(&home, &[flag, "load_skill"], |client| {
            assert_eq!(code(&load(client, "pdf")), "PERMISSION_ERROR");
            nothing_but_the_tool(client);
        });
    }
}

/// Nothing tells of the skills of a home.
fn nowhere(home: &Home, more: &[&str]) {
    let hello = Session::start(&arguments(home, more)).initialize();
    assert!(!hello.to_string().contains("skill"), "{hello}");
    everywhere(home, more, |client| {
        let listed = client.get("tools/list", &json!({}));
        assert!(!listed.to_string().contains("skill"), "{listed}");
        let call = json!({"name": "load_skill", "arguments": {"name": "pdf"}});
        assert_eq!(client.ask("tools/call", &call)["error"]["code"], -32602);
        nothing_but_the_tool(client);
    });
}

/// Skills are no resources, and there is no extension.
#[track_caller]
fn nothing_but_the_tool(client: &mut Client) {
    let resources = client.get("resources/list", &json!({}));
    assert_eq!(resources["resources"], json!([]));
    for (method, uri) in [
        ("skills/list", ""),
        ("skills/get", "skill://pdf/SKILL.md"),
        ("resources/directory/read", "skill://pdf"),
        ("skills/get", ""),
    ] {
        let refused = client.ask(method, &json!({"uri": uri}));
        assert_eq!(refused["error"]["code"], -32601, "{method} {uri}: {refused}");
    }
    let refused = client.ask("resources/read", &json!({"uri": "skill://pdf/SKILL.md"}));
    assert!(refused["error"]["code"].is_i64(), "{refused}");
}

/// Runs the program with an agent file.
fn iris(home: &Home, line: &[&str]) -> Ended {
    let mut command = command(exe());
    command.args(line).args(arguments(home, &[]));
    run(command, LIMIT)
}

#[test]
fn a_required_skill_that_is_missing_ends_the_start_and_is_told() {
    let home = home(", require: [pdf, audit]");
    skill(&home, "pdf", "d");
    put(&home, "audit/README.md", "");
    let reason = "the required skill `audit` is not in skills (left out: the folder has no file called exactly SKILL.md); there are pdf";
    let place = format!("{}:3:54", home.path("agent.yaml"));
    for line in [&["serve", "--http", "127.0.0.1:0"][..], &["tools"]] {
        let ended = iris(&home, line);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains(&format!("{reason} ({place})")), "{ended:?}");
    }
    let check = iris(&home, &["check"]);
    assert_eq!(check.code, Some(1), "{check:?}");
    assert!(check.stdout.contains(&format!("failed skills: {reason} ({place})")), "{check:?}");
    assert!(check.stdout.contains("own tools: read_file"), "{check:?}");
    assert!(gateway(&home, &["--keep-going"]).url.starts_with("http"));
}

#[test]
fn check_and_tools_list_skills_and_what_is_wrong_with_others() {
    let home = filled();
    put(&home, "broken/SKILL.md", "---\nname: broken\ndescription: a: b\n---\n");
    let check = iris(&home, &["check"]);
    assert_eq!(check.code, Some(0), "{check:?}");
    assert!(check.stdout.contains("ready  skills: pdf, review-python\n"), "{check:?}");
    let place = format!("({}:3:15)", home.file("workspace/skills/broken/SKILL.md").display());
    let broken = "broken: left out: the front matter is no YAML";
    assert!(check.stdout.contains(broken) && check.stdout.contains(&place), "{check:?}");
    let found: Value = serde_json::from_str(&iris(&home, &["check", "--json"]).stdout).unwrap();
    let skills = &found["skills"];
    assert_eq!(skills["there"][0]["name"], "pdf");
    assert_eq!(skills["there"][0]["description"], "Takes PDFs apart");
    assert_eq!(skills["error"], Value::Null);
    assert_eq!(skills["diagnostics"][0]["code"], "INVALID_SKILL");
    assert_eq!(format!("({})", skills["diagnostics"][0]["place"].as_str().unwrap()), place);
    let tools = iris(&home, &["tools"]);
    assert!(tools.stdout.contains("load_skill\n"), "{tools:?}");
    assert!(
        tools.stderr.contains("skills that load_skill loads: pdf, review-python\n"),
        "{tools:?}"
    );
    assert!(tools.stderr.contains(broken) && !tools.stderr.contains("WARN"), "{tools:?}");
}

#[test]
fn a_root_that_leads_out_is_a_mistake_in_the_file() {
    let home = filled();
    std::os::unix::fs::symlink("/etc", home.file("workspace/out")).unwrap();
    for root in ["out", "/etc"] {
        let agent = format!(
            "permissions: {{workspace: workspace}}\nskills:\n  enabled: true\n  root: {root}\n"
        );
        home.write("agent.yaml", &agent);
        let ended = iris(&home, &["check"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(
            ended
                .stderr
                .contains("agent.yaml:4:3: skills.root: the folder is outside the workspace "),
            "{ended:?}"
        );
        assert!(ended.stderr.contains("name a folder inside the workspace"), "{ended:?}");
    }
}

#[test]
fn hostile_texts_are_left_out_and_hold_nothing_up() {
    let home = filled();
    put(&home, "large/SKILL.md", &format!("---\ndescription: d\n---\n{}", "x".repeat(10 << 20)));
    let mut bomb = "---\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        bomb.extend([format!("a{level}: &a{level} [{before}]\n")]);
    }
    put(&home, "bomb/SKILL.md", &format!("{bomb}description: d\n---\n"));
    fs::create_dir(home.file("workspace/skills/pipe")).unwrap();
    let mode = nix::sys::stat::Mode::S_IRWXU;
    nix::unistd::mkfifo(&home.file("workspace/skills/pipe/SKILL.md"), mode).unwrap();
    let mut session = Session::start(&arguments(&home, &[]));
    session.initialize();
    let listed = session.request("tools/list", &json!({}))["result"].take();
    assert!(
        described(&listed)
            .ends_with("Skills:\n- pdf: Takes PDFs apart\n- review-python: Reviews Python")
    );
    for name in ["large", "bomb", "pipe"] {
        let result = session.call("load_skill", &json!({"name": name}));
        assert_eq!(code(&result), "SKILL_NOT_FOUND", "{name}");
        assert!(session.said().contains(&format!("skills: {name}: left out: ")), "{name}");
    }
}

#[test]
fn all_checks_of_the_skills_extension_pass() {
    let home = filled();
    let gateway = gateway(&home, &[]);
    for scenario in ["enumeration", "directory", "manifest"] {
        let results = home.file(&format!("results-{scenario}"));
        let mut suite = command(peer("npm/node"));
        suite.arg(peer("npm/node_modules/@modelcontextprotocol/conformance/dist/index.js"));
        suite.args(["server", "--url", &gateway.url, "--scenario"]);
        suite.arg(format!("sep-2640-skills-{scenario}")).arg("-o").arg(&results);
        let ended = run(suite, LIMIT);
        let failed = failed(&results);
        assert!(failed.is_empty(), "{failed:#?}");
        let folder = fs::read_dir(&results).unwrap().next().unwrap().unwrap().path();
        let checks = fs::read_to_string(folder.join("checks.json")).unwrap();
        let checks: Vec<Value> = serde_json::from_str(&checks).unwrap();
        let states: BTreeSet<&str> =
            checks.iter().map(|check| check["status"].as_str().unwrap()).collect();
        assert_eq!(states, BTreeSet::from(["SUCCESS"]), "{ended:?}");
        assert!(checks.len() > 5, "{checks:#?}");
    }
}

#[test]
fn the_inspector_verifies_every_digest() {
    let home = filled();
    for era in ["legacy", "modern"] {
        let mut inspector = command(peer("npm/node"));
        inspector.arg(peer("npm/node_modules/.bin/mcp-inspector")).arg("--cli");
        inspector.args(["--method", "skills/list", "--verify", "--require-digests"]);
        inspector.args(["--protocol-era", era, "--", exe(), "serve"]).args(arguments(&home, &[]));
        inspector.env("HOME", home.path("")).env("MCP_INSPECTOR_SECRET_STORE", "memory");
        inspector.current_dir(home.file(""));
        let ended = run(inspector, LIMIT);
        assert_eq!(ended.code, Some(0), "{era}: {ended:?}");
        let reports = ended.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let outcomes: Vec<Value> = reports.map(|report| report["outcome"].clone()).collect();
        assert_eq!(outcomes, ["verified", "verified"], "{era}: {ended:?}");
    }
}
