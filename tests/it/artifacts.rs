//! Results too long for a model: what is left of them, and every way to the rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::binary::{Gateway, command, exe, run};
use crate::fixture::{Home, session};
use crate::session::{Session, code, text};
use crate::web::Web;

/// As many lines of the fixture as make twenty megabytes.
const TWENTY_MB: usize = 780_000;
/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(30);
const LARGE: &str = "mcp__up__large";

fn home() -> Home {
    Home::with_up(json!({"tools": ["large", "promised", "echo"]}))
}

fn lines(count: usize) -> String {
    let lines: Vec<String> =
        (0..count).map(|number| format!("line {number:07} é☃ of many")).collect();
    lines.join("\n")
}

fn remarks(result: &Value) -> &Value {
    &result["_meta"]["iris/result"]
}

/// Reads a resource to its end, by the addresses that its parts name.
pub(crate) fn pages(mut read: impl FnMut(&str) -> Value, uri: &str, limit: usize) -> Vec<u8> {
    let (mut whole, mut at) = (Vec::new(), format!("{uri}?limit={limit}"));
    loop {
        let answer = read(&at);
        let contents = &answer["result"]["contents"][0];
        assert_eq!(contents["uri"], at.as_str(), "{answer}");
        match (contents["text"].as_str(), contents["blob"].as_str()) {
            (Some(text), None) => whole.extend_from_slice(text.as_bytes()),
            (None, Some(blob)) => whole.extend(STANDARD.decode(blob).unwrap()),
            _ => panic!("a text or a blob: {answer}"),
        }
        match contents["_meta"]["iris/page"]["next"].as_str() {
            Some(next) => next.clone_into(&mut at),
            None => return whole,
        }
    }
}

fn resource(session: &mut Session, uri: &str) -> Value {
    session.request("resources/read", &json!({"uri": uri}))
}

/// Reads a reference to its end.
fn context(session: &mut Session, reference: &str, representation: &str) -> String {
    let (mut whole, mut offset) = (String::new(), 0);
    loop {
        let arguments = json!({"ref": reference, "offset": offset, "limit": 8000, "representation": representation});
        let result = session.call("context_read", &arguments);
        let page = &remarks(&result)["data"];
        whole.push_str(page["content"].as_str().unwrap_or_else(|| panic!("{result}")));
        offset = page["next_offset"].as_u64().unwrap();
        if page["has_more"] == false {
            return whole;
        }
    }
}

/// The link in a result to all of its text.
fn link(result: &Value) -> &Value {
    let links = result["content"].as_array().unwrap();
    links
        .iter()
        .find(|block| block["type"] == "resource_link" && block["name"] == "all of the text")
        .unwrap_or_else(|| panic!("no link: {result}"))
}

fn texts(result: &Value) -> usize {
    let blocks = result["content"].as_array().unwrap();
    blocks.iter().filter_map(|block| block["text"].as_str()).map(|text| text.chars().count()).sum()
}

#[test]
fn t17_twenty_megabytes_of_text_are_a_preview_and_pages() {
    let home = home();
    let mut session = session(&home, &["--context", "on"]);
    let result = session.call(LARGE, &json!({"lines": TWENTY_MB}));
    let expected = lines(TWENTY_MB);
    assert!(expected.len() > 20_000_000);
    assert!(texts(&result) <= 50_000, "{}", texts(&result));
    let shown = text(&result);
    assert!(expected.starts_with(&shown[..1_000]));
    assert!(shown.contains("[The result of mcp__up__large was cut. All of its text: context_read result:1:0, or resource iris-artifact://results/"), "{}", &shown[shown.len() - 600..]);
    let uri = link(&result)["uri"].as_str().unwrap().to_owned();
    assert!(shown.contains(&uri));
    let whole = pages(|uri| resource(&mut session, uri), &uri, 1_000_000);
    let whole = String::from_utf8(whole).unwrap();
    assert!(whole == expected);
    assert!(context(&mut session, "result:1:0", "text") == whole);
    // The first page is as long as a result may be, and says where the next one is.
    let first = resource(&mut session, &uri);
    let page = &first["result"]["contents"][0]["_meta"]["iris/page"];
    assert_eq!(page["next"], format!("{uri}?offset=50000"));
    // A pattern finds a line in the middle of it.
    let found =
        session.call("context_read", &json!({"ref": "result:1:0", "pattern": "line 0000777"}));
    assert!(text(&found).contains(": line 0000777 é☃ of many"), "{}", text(&found));
    let found = session.call("context_search", &json!({"query": "LINE 0000007"}));
    assert!(text(&found).contains("\nresult:1:0 user mcp__up__large\n"), "{}", text(&found));
}

#[test]
fn twenty_megabytes_of_json_are_a_preview_and_the_whole_native_result() {
    let home = home();
    let mut session = session(&home, &["--context", "on"]);
    let arguments = json!({"lines": TWENTY_MB / 2, "structured": true});
    let result = session.call(LARGE, &arguments);
    assert!(texts(&result) <= 50_000);
    assert!(result.get("structuredContent").is_none(), "nobody promised it");
    let artifact = &remarks(&result)["artifact"];
    assert_eq!(artifact["mime_type"], "application/json");
    let uri = artifact["uri"].as_str().unwrap();
    let native = pages(|uri| resource(&mut session, uri), uri, 1_000_000);
    assert!(native.len() > 20_000_000);
    let native: Value = serde_json::from_slice(&native).unwrap();
    let rows = &native["structuredContent"]["rows"];
    assert_eq!(rows.as_array().unwrap().len(), TWENTY_MB / 2);
    assert_eq!(native["content"][0]["type"], "text");
    assert!(
        fs::read_to_string(artifact["path"].as_str().unwrap())
            .unwrap()
            .starts_with("{\"content\": [{")
    );
    let arguments = json!({"ref": "result:1:0", "representation": "raw", "pointer": "/structuredContent/rows/777"});
    let taken = session.call("context_read", &arguments);
    assert!(text(&taken).ends_with("\nline 0000777 é☃ of many"), "{}", text(&taken));
}

#[test]
fn structured_content_that_a_tool_promises_stays_whole() {
    let home = home();
    let mut session = session(&home, &[]);
    let result = session.call("mcp__up__promised", &json!({"lines": 9_000, "structured": true}));
    assert!(texts(&result) <= 50_000);
    assert_eq!(result["structuredContent"]["rows"].as_array().unwrap().len(), 9_000);
    // Of a failure nothing is promised, and its text keeps the upstream's words.
    let failed = session.call(LARGE, &json!({"lines": 9_000, "fails": true}));
    assert_eq!(failed["isError"], true);
    assert!(text(&failed).starts_with("line 0000000"));
    assert_eq!(remarks(&failed)["code"], "MCP_TOOL_ERROR");
    assert!(texts(&failed) <= 50_000);
}

fn png(home: &Home) -> (String, Vec<u8>) {
    // Any bytes behind a header will do: what is passed on is not decoded.
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0\0\0\x01\0\x08\x02\0\0\0".to_vec();
    bytes.extend_from_slice(&[0x0c, 0x10, 0x3d, 0x83]);
    bytes.extend((0..300_000u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[1]));
    let path = home.file("shot.png");
    fs::write(&path, &bytes).unwrap();
    (path.to_string_lossy().into_owned(), bytes)
}

#[test]
fn an_image_goes_out_as_it_came_and_is_kept_byte_for_byte() {
    let home = home();
    let mut session = session(&home, &["--context", "on"]);
    let (path, bytes) = real_png(&home);
    let result = session.call(LARGE, &json!({"image": path}));
    let blocks = result["content"].as_array().unwrap();
    assert_eq!(blocks.len(), 1, "nothing is added to what an upstream sent");
    assert_eq!(blocks[0]["data"], STANDARD.encode(&bytes));
    let listed = session.request("resources/list", &json!({}));
    let listed = listed["result"]["resources"].as_array().unwrap().clone();
    let image = listed.iter().find(|resource| resource["mimeType"] == "image/png").unwrap();
    assert_eq!(image["size"], bytes.len());
    let uri = image["uri"].as_str().unwrap();
    let whole = resource(&mut session, uri);
    assert_eq!(whole["result"]["contents"][0]["mimeType"], "image/png");
    assert_eq!(whole["result"]["contents"][0]["blob"], STANDARD.encode(&bytes));
    assert_eq!(pages(|uri| resource(&mut session, uri), uri, 100_000), bytes);
    let seen = session.call("context_read", &json!({"ref": "result:1:0"}));
    assert!(text(&seen).contains("[image unnamed] original=.iris/image-cache/"), "{}", text(&seen));
    assert!(text(&seen).contains("(image/png, 640x480)"), "{}", text(&seen));
}

/// A picture that is one, with noise so that it has some size.
fn real_png(home: &Home) -> (String, Vec<u8>) {
    let mut state = 1u32;
    let noise = image::RgbImage::from_fn(640, 480, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [a, b, c, _] = state.to_be_bytes();
        image::Rgb([a, b, c])
    });
    let path = home.file("noise.png");
    noise.save(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    (path.to_string_lossy().into_owned(), bytes)
}

#[test]
fn an_image_that_is_broken_goes_out_all_the_same() {
    let home = home();
    let mut session = session(&home, &[]);
    let (path, bytes) = png(&home);
    let result = session.call(LARGE, &json!({"image": path}));
    assert_eq!(result["content"][0]["data"], STANDARD.encode(&bytes));
    assert_ne!(result["isError"], true);
}

fn kept(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(kept(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn t8_nothing_is_kept_that_nobody_needs() {
    let home = home();
    let iris = home.file("workspace").join(".iris");
    {
        let mut session = session(&home, &[]);
        session.call("mcp__up__echo", &json!({"text": "short"}));
        assert_eq!(code(&session.call("mcp__up__echo", &json!({}))), "VALIDATION_ERROR");
        assert!(!iris.exists(), "a short plain result is kept only with an agent file");
    }
    let mut refused = session(&home, &["--forbid", "mcp__up__large"]);
    assert_eq!(code(&refused.call(LARGE, &json!({"lines": 9_000}))), "PERMISSION_ERROR");
    assert!(!iris.exists());
    // The agent file's rule is that every native result is kept.
    let agent = home.write(
        "agent.yaml",
        "name: a\npermissions: {workspace: workspace}\nmcp: {path: mcp.json}\n",
    );
    let mut all = Session::start(&["--agent", &agent, "--approval", "client"]);
    all.initialize();
    let result = all.call("mcp__up__echo", &json!({"text": "short"}));
    assert_eq!(result["content"].as_array().unwrap().len(), 1);
    let mut files = kept(&iris);
    files.retain(|file| !file.ends_with(".gitignore"));
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(
        fs::read_to_string(&files[0]).unwrap(),
        "{\"content\": [{\"type\": \"text\", \"text\": \"short\"}]}"
    );
    assert_eq!(remarks(&result)["artifact"]["path"], files[0].to_str().unwrap());
}

#[test]
fn the_quota_lets_the_oldest_go() {
    let home = home();
    let config = home.write("server.toml", "[artifacts]\nmax_bytes = 3_000_000\ndir = \"kept\"\n");
    let mut session = session(&home, &["--config", &config]);
    let mut links = Vec::new();
    for _ in 0..6 {
        let result = session.call(LARGE, &json!({"lines": 15_000}));
        links.push(link(&result)["uri"].as_str().unwrap().to_owned());
        let size: u64 =
            kept(&home.file("kept")).iter().map(|file| file.metadata().unwrap().len()).sum();
        assert!(size <= 3_000_000, "{size}");
    }
    let gone = resource(&mut session, &links[0]);
    assert_eq!(gone["error"]["code"], -32002, "{gone}");
    assert_eq!(gone["error"]["data"]["uri"], links[0]);
    let whole = pages(|uri| resource(&mut session, uri), &links[5], 1_000_000);
    assert!(String::from_utf8(whole).unwrap().starts_with(&lines(15_000)));
    // What is more than all of them may be together is an error, and nothing of it stays.
    let before = kept(&home.file("kept")).len();
    let result = session.call(LARGE, &json!({"lines": 150_000}));
    assert_eq!(code(&result), "ARTIFACT_ERROR");
    assert!(text(&result).contains("artifacts.max_bytes is 3000000"), "{}", text(&result));
    assert_eq!(kept(&home.file("kept")).len(), before);
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing_half_written() {
    let home = home();
    fs::create_dir(home.file("small")).unwrap();
    let config = home.write("server.toml", "[artifacts]\ndir = \"small\"\n");
    let mut arguments = home.arguments();
    arguments.extend(["--config".to_owned(), config]);
    // In a mount namespace of its own: no matter who runs it, nobody else sees the small disk.
    let script = format!(
        "mount -t tmpfs -o size=1m none '{}' && exec '{}' serve --stdio \"$@\"",
        home.path("small"),
        exe()
    );
    let mut session = Session::start_with(&[] as &[&str], |command| {
        let mut other = std::process::Command::new("unshare");
        other.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"]);
        other.args(&arguments);
        other.stdin(std::process::Stdio::piped());
        other.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        *command = other;
    });
    session.initialize();
    let full = session.call(LARGE, &json!({"lines": 60_000}));
    assert_eq!(code(&full), "ARTIFACT_ERROR", "{full}");
    assert!(text(&full).contains("No space left on device"), "{}", text(&full));
    let listed = session.request("resources/list", &json!({}));
    assert_eq!(listed["result"]["resources"], json!([]), "{listed}");
    // What fits is kept as before.
    let result = session.call(LARGE, &json!({"lines": 5_000}));
    let uri = link(&result)["uri"].as_str().unwrap().to_owned();
    assert!(!pages(|uri| resource(&mut session, uri), &uri, 1_000_000).is_empty());
}

#[test]
fn over_http_there_are_addresses_and_no_paths() {
    let home = home();
    let mut arguments = home.arguments();
    arguments.extend(["--context", "on"].map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let gateway = Gateway::start(&arguments);
    let mut one = Web::new(&gateway.url);
    one.initialize();
    let arguments = json!({"name": LARGE, "arguments": {"lines": 9_000}});
    let answer = one.request("tools/call", &arguments);
    let result = &answer["result"];
    assert!(!answer.to_string().contains(&home.path("")), "a path of the server's is shown");
    let artifact = &remarks(result)["artifact"];
    assert_eq!(artifact["text_path"], artifact["text_uri"]);
    assert_eq!(artifact["path"], artifact["uri"]);
    let uri = link(result)["uri"].as_str().unwrap();
    let whole = pages(|uri| one.request("resources/read", &json!({"uri": uri})), uri, 300_000);
    assert!(String::from_utf8(whole).unwrap().starts_with(&lines(9_000)));
    // Another session reads nothing of it, by whatever name.
    let mut other = Web::new(&gateway.url);
    other.initialize();
    let missing = other.request("resources/read", &json!({"uri": uri}));
    assert_eq!(missing["error"]["code"], -32002, "{missing}");
    let asked = json!({"name": "context_read", "arguments": {"ref": "result:1:0"}});
    let missing = other.request("tools/call", &asked);
    assert_eq!(code(&missing["result"]), "CONTEXT_SOURCE_UNAVAILABLE");
    let listed = other.request("resources/list", &json!({}));
    assert_eq!(listed["result"]["resources"], json!([]));
}

#[test]
fn file_tools_reach_nothing_that_is_kept_for_others_and_change_nothing_that_is_kept() {
    let home = home();
    let agent = home.write(
        "agent.yaml",
        "permissions: {workspace: workspace, writes: allow}\nmcp: {path: mcp.json}\n\
         tools: {builtin: [file.read, file.list, file.grep, file.write, file.edit, file.publish]}\n",
    );
    let gateway = Gateway::start(&["--agent", &agent, "--permit", "mcp"]);
    let session = || {
        let mut web = Web::new(&gateway.url);
        web.initialize();
        web
    };
    let (mut owner, mut other) = (session(), session());
    let call = |web: &mut Web, name: &str, arguments: Value| {
        web.request("tools/call", &json!({"name": name, "arguments": arguments}))["result"].take()
    };
    let result = call(&mut owner, LARGE, json!({"lines": 9_000}));
    let uri = link(&result)["uri"].as_str().unwrap().to_owned();
    let files = kept(&home.file("workspace").join(".iris"));
    let file = files.iter().find(|file| file.to_str().unwrap().ends_with(".model.txt")).unwrap();
    let path = file.to_str().unwrap();
    let list = json!({"pattern": ".iris/**/id_*"});
    assert!(text(&call(&mut owner, "list_files", list.clone())).contains(".model.txt"));
    assert_eq!(call(&mut other, "list_files", list)["content"], json!([]));
    let grep = json!({"pattern": "line 0000007", "path": ".iris"});
    assert!(text(&call(&mut owner, "grep_search", grep.clone())).contains("line 0000007"));
    assert_eq!(call(&mut other, "grep_search", grep)["content"], json!([]));
    let page = json!({"file_path": path, "limit": 1});
    assert!(text(&call(&mut owner, "read_file", page.clone())).starts_with("line 0000000"));
    for (name, arguments) in [
        ("read_file", page),
        ("publish_artifact", json!({"file_path": path})),
        ("grep_search", json!({"pattern": "x", "path": path})),
    ] {
        assert_eq!(code(&call(&mut other, name, arguments)), "VALIDATION_ERROR", "{name}");
    }
    for web in [&mut owner, &mut other] {
        let written = call(web, "write_file", json!({"file_path": path, "content": "forged"}));
        assert_eq!(code(&written), "VALIDATION_ERROR");
        let edit = json!({"file_path": path, "old_string": "line 0000001", "new_string": ""});
        assert_eq!(code(&call(web, "edit_file", edit)), "VALIDATION_ERROR");
        let new = json!({"file_path": ".iris/tool-results/new.txt", "content": "forged"});
        assert_eq!(code(&call(web, "write_file", new)), "VALIDATION_ERROR");
    }
    let whole = pages(|uri| owner.request("resources/read", &json!({"uri": uri})), &uri, 300_000);
    assert_eq!(String::from_utf8(whole).unwrap(), lines(9_000));
}

#[test]
fn a_pointer_leads_into_the_json_of_a_text_that_was_cut() {
    let home = home();
    let mut session = session(&home, &["--context", "on"]);
    session.call(LARGE, &json!({"lines": 9_000, "structured": true}));
    let native =
        json!({"ref": "result:1:0", "representation": "raw", "pointer": "/content/0/type"});
    assert!(text(&session.call("context_read", &native)).ends_with("\ntext"));
    let search = session.call("context_search", &json!({"query": "whole MCP result"}));
    assert!(text(&search).ends_with("has_more=false\n"), "{}", text(&search));
}

#[test]
fn a_folder_that_cannot_be_used_is_known_at_the_start() {
    let home = home();
    let config = home.write("server.toml", "[artifacts]\ndir = \"mcp.json\"\n");
    let mut command = command(exe());
    command.arg("tools").args(home.arguments()).args(["--config", &config]);
    let ended = run(command, LIMIT);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("artifacts.dir says where else"), "{}", ended.stderr);
}

#[test]
fn the_newer_era_reads_artifacts_too() {
    let home = home();
    let mut arguments = home.arguments();
    arguments.extend(["--context", "on"].map(str::to_owned));
    let mut session = Session::start(&arguments);
    let asked = json!({"name": LARGE, "arguments": {"lines": 9_000}});
    let answer = session.modern("tools/call", &asked);
    let uri = link(&answer["result"])["uri"].as_str().unwrap().to_owned();
    let whole = pages(|uri| session.modern("resources/read", &json!({"uri": uri})), &uri, 100_000);
    assert!(String::from_utf8(whole).unwrap().starts_with(&lines(9_000)));
    let read = session.modern("resources/read", &json!({"uri": uri}));
    assert_eq!(read["result"]["resultType"], "complete");
    assert_eq!(read["result"]["cacheScope"], "private");
    for (uri, expected) in [
        ("iris-artifact://results/id_00-00.txt".to_owned(), -32602),
        (format!("{uri}?limit=none"), -32602),
        ("file:///etc/passwd".to_owned(), -32602),
    ] {
        let answer = session.modern("resources/read", &json!({"uri": uri}));
        assert_eq!(answer["error"]["code"], expected, "{answer}");
        assert_eq!(answer["error"]["data"]["uri"], uri);
    }
    let templates = session.modern("resources/templates/list", &json!({}));
    assert_eq!(
        templates["result"]["resourceTemplates"][0]["uriTemplate"],
        "iris-artifact://{kind}/{file}{?offset,limit}"
    );
}

#[test]
fn a_published_file_is_a_link() {
    let home = Home::new();
    let agent = home.write(
        "agent.yaml",
        "name: a\npermissions: {workspace: workspace}\ntools: {builtin: [file.publish]}\n",
    );
    fs::write(home.file("workspace").join("Bericht ü.md"), "# yes\n").unwrap();
    let mut session = Session::start(&["--agent", &agent]);
    session.initialize();
    assert_eq!(session.tools(), ["publish_artifact", "context_read", "context_search"]);
    let result = session.call("publish_artifact", &json!({"file_path": "Bericht ü.md"}));
    assert_eq!(text(&result), "Published: Bericht ü.md (text/markdown, 6 bytes)");
    let link = &result["content"][1];
    assert_eq!(link["type"], "resource_link");
    assert_eq!(link["name"], "Bericht ü.md");
    assert_eq!((&link["mimeType"], &link["size"]), (&json!("text/markdown"), &json!(6)));
    let read = resource(&mut session, link["uri"].as_str().unwrap());
    assert_eq!(read["result"]["contents"][0]["text"], "# yes\n");
    // The oldest clients do not know links.
    let mut old = Session::start(&["--agent", &agent]);
    old.request("initialize", &crate::session::hello("2025-03-26"));
    old.notify("notifications/initialized", &json!({}));
    let result = old.call("publish_artifact", &json!({"file_path": "Bericht ü.md"}));
    assert_eq!(result["content"].as_array().unwrap().len(), 1);
}

#[test]
fn the_command_line_says_where_the_file_is() {
    let home = home();
    let mut arguments = vec![
        "call".to_owned(),
        LARGE.to_owned(),
        json!({"lines": 9_000}).to_string(),
        "--yes".to_owned(),
    ];
    arguments.extend(home.arguments());
    let mut command = command(exe());
    command.args(&arguments);
    let output = run(command, LIMIT);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let path = output.stderr.lines().find_map(|line| line.strip_prefix("all of the result is in "));
    let whole = fs::read_to_string(path.unwrap_or_else(|| panic!("{}", output.stderr))).unwrap();
    assert!(whole.starts_with(&lines(9_000)));
    assert!(output.stdout.chars().count() < 50_002);
}

#[test]
fn the_context_tools_can_be_switched_off_and_hidden() {
    let home = Home::new();
    let agent = |more: &str| {
        home.write(
            "agent.yaml",
            &format!(
                "permissions: {{workspace: workspace}}\ntools: {{builtin: [file.read]}}\n{more}"
            ),
        )
    };
    let tools = |more: &str, flags: &[&str]| {
        let agent = agent(more);
        let arguments: Vec<&str> =
            ["--agent", &agent].into_iter().chain(flags.iter().copied()).collect();
        let mut session = Session::start(&arguments);
        session.initialize();
        session.tools()
    };
    let both = ["read_file", "context_read", "context_search"];
    assert_eq!(tools("", &[]), both);
    assert_eq!(tools("context_policy: {enabled: true}", &[]), both);
    assert_eq!(tools("context_policy: {enabled: false}", &[]), ["read_file"]);
    assert_eq!(tools("", &["--context", "off"]), ["read_file"]);
    assert_eq!(tools("context_policy: {enabled: false}", &["--context", "on"]), both);
}
