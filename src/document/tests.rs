//! The three languages, decoding, and what the messages say.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(format: Format, text: &str, expected: Value) {
    match Document::parse("f", format, text) {
        Ok(document) => assert_eq!(document.root.to_json(), expected, "{text}"),
        Err(error) => panic!("{text}: {error}"),
    }
}

#[track_caller]
fn check_error(format: Format, text: &str, expected: &str) {
    let error = Document::parse("f", format, text).expect_err(text);
    assert_eq!(error.to_string(), expected, "{text}");
}

/// Renders each value with its place, top down.
fn places(document: &Document) -> String {
    fn walk(node: &Node, path: &str, out: &mut Vec<String>) {
        out.push(format!("{} {path}", node.position));
        if let Some(entries) = node.as_mapping() {
            for (key, value) in entries {
                let path = path::key(path, &key.text);
                out.push(format!("{} {path}:", key.position));
                walk(value, &path, out);
            }
        }
        for (number, item) in node.as_sequence().unwrap_or_default().iter().enumerate() {
            walk(item, &path::index(path, number), out);
        }
    }
    let mut out = Vec::new();
    walk(&document.root, "", &mut out);
    out.join("\n")
}

mod json5 {
    use super::*;

    #[track_caller]
    fn reads(text: &str, expected: Value) {
        check(Format::Json5, text, expected);
    }

    #[track_caller]
    fn refuses(text: &str, expected: &str) {
        check_error(Format::Json5, text, expected);
    }

    #[test]
    fn all_of_json5_is_read() {
        reads(
            "{\"a\": [1, 2.5, -3, true, false, null, \"x\"]}",
            json!({"a": [1, 2.5, -3, true, false, null, "x"]}),
        );
        reads("\u{feff}{}", json!({}));
        reads("// one\n{/* two */ a: 1, // three\n}\n", json!({"a": 1}));
        reads("{a: 1, b: [1, 2,],}", json!({"a": 1, "b": [1, 2]}));
        reads("{'a': 'it\\'s \"x\"', \"b\": \"it's\"}", json!({"a": "it's \"x\"", "b": "it's"}));
        reads(
            "{$a_1: 1, ünï: 2, null: 3, true: 4}",
            json!({"$a_1": 1, "ünï": 2, "null": 3, "true": 4}),
        );
        reads(
            "[0x1F, -0xf, +1, .5, 5., -.5, 1e3, 0]",
            json!([31, -15, 1, 0.5, 5.0, -0.5, 1000.0, 0]),
        );
        reads(
            "['a\\\nb', '\\x41\\u00e9\\v\\0', '\\ud83d\\ude00']",
            json!(["ab", "Aé\u{b}\0", "😀"]),
        );
        reads("[18446744073709551615, -9223372036854775808]", json!([u64::MAX, i64::MIN]));
    }

    #[test]
    fn names_that_begin_like_a_keyword_are_names() {
        reads(
            "{nullable: 1, trueish: 2, Infinity_: 3, $true: 5, false1: 6}",
            json!({"nullable": 1, "trueish": 2, "Infinity_": 3, "$true": 5, "false1": 6}),
        );
    }

    #[test]
    fn mistakes_are_placed() {
        refuses("", "f:1:1: the file is empty");
        refuses("// nothing\n", "f:1:1: the file is empty");
        refuses(
            "{\n  a: 1\n  b: 2\n}",
            "f:2:7: expected comma; put a comma here, or close the bracket",
        );
        refuses("{a: 1", "f:1:1: unterminated object; close the `{` that opens here with a `}`");
        refuses("{} {}", "f:1:4: text cannot contain more than one JSON value");
        refuses("{a: b}", "f:1:5: unexpected token; a text stands in quotes");
        refuses(
            "{null_x: 1}",
            "f:1:6: expected colon after the string or word in object property; put the key in quotes, or a colon after it",
        );
        refuses("[1,,2]", "f:1:4: unexpected comma; one comma is enough");
        refuses("{a: 'x}", "f:1:5: unterminated string literal; close the quote that opens here");
        refuses("{a: Infinity}", "f:1:5: `Infinity` is not a finite number");
        refuses("{a: -NaN}", "f:1:5: `NaN` is not a finite number");
        refuses("[1e999]", "f:1:2: the number is too large");
        refuses("[0xFFFFFFFFFFFFFFFFF]", "f:1:2: the number is too large");
        refuses(
            "{\n  a: 1,\n  'a': 2\n}",
            "f:3:3: a: the key is given twice; first at line 2, column 3",
        );
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        refuses(&deep, "f:1:1: the document nests more than 128 levels deep");
        let deeper = "[".repeat(100_000);
        assert!(Document::parse("f", Format::Json5, deeper).is_err());
    }

    #[test]
    fn bytes_that_are_no_text_are_placed() {
        let error = Document::parse_bytes("f", Format::Json5, b"{\n  a: \"\xff\"}".to_vec());
        assert_eq!(error.unwrap_err().to_string(), "f:2:7: the file is not UTF-8");
    }

    #[test]
    fn a_long_text_that_aliases_repeat_does_not_fill_the_memory() {
        let text = |times: usize| {
            let (long, items) = ("x".repeat(40_000), vec!["*a0"; times].join(", "));
            format!("a0: &a0 {{{long}: {long}}}\nb: [{items}]\n")
        };
        Document::parse("f", Format::Yaml, text(50)).unwrap();
        let error = Document::parse("f", Format::Yaml, text(900)).unwrap_err();
        assert_eq!(error.message(), "aliases repeat over 4194304 bytes of text");
    }

    #[test]
    fn every_value_and_key_has_its_place() {
        let text = "{\n  'é': {x: [1,\n   2]},\n\ty: \"z\"\n}";
        let document = Document::parse("f", Format::Json5, text).unwrap();
        assert_eq!(
            places(&document),
            "1:1 \n2:3 é:\n2:8 é\n2:9 é.x:\n2:12 é.x\n2:13 é.x[0]\n3:4 é.x[1]\n4:2 y:\n4:5 y"
        );
    }
}

mod toml {
    use super::*;

    #[test]
    fn tables_keep_the_order_of_the_file() {
        let text = "z = 1\na.b = [1.5, true]\n\n[t.'x y']\nk = '''\nv'''\nd = 2024-01-02\n[[list]]\nn = 0x10\n[[list]]\n";
        let expected = json!({
            "z": 1, "a": {"b": [1.5, true]},
            "t": {"x y": {"k": "v", "d": "2024-01-02"}}, "list": [{"n": 16}, {}]
        });
        check(Format::Toml, text, expected.clone());
        let document = Document::parse("f", Format::Toml, text).unwrap();
        assert_eq!(document.root.to_json().to_string(), expected.to_string());
    }

    #[test]
    fn mistakes_are_placed() {
        let refuses = |text, expected| check_error(Format::Toml, text, expected);
        refuses("a = inf", "f:1:5: `inf` and `nan` are not finite numbers");
        refuses("a = 99999999999999999999", "f:1:5: the number is too large");
        refuses("a = 1\na = 2", "f:2:1: duplicate key");
        refuses("\n  a = = 1", "f:2:7: extra `=`, expected nothing");
    }

    #[test]
    fn every_value_and_key_has_its_place() {
        let document = Document::parse("f", Format::Toml, "a.b = [1]\n[t]\nk = {x = 2}\n").unwrap();
        assert_eq!(
            places(&document),
            "1:1 \n1:1 a:\n1:1 a\n1:3 a.b:\n1:7 a.b\n1:8 a.b[0]\n2:2 t:\n2:1 t\n3:1 t.k:\n3:5 t.k\n3:6 t.k.x:\n3:10 t.k.x"
        );
    }
}

mod yaml {
    use super::*;

    #[track_caller]
    fn reads(text: &str, expected: Value) {
        check(Format::Yaml, text, expected);
    }

    #[track_caller]
    fn refuses(text: &str, expected: &str) {
        check_error(Format::Yaml, text, expected);
    }

    #[test]
    fn plain_scalars_mean_what_pyyaml_says() {
        let table: [(&str, Value); 50] = [
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("TRUE", json!(true)),
            ("y", json!("y")),
            ("tRue", json!("tRue")),
            ("~", json!(null)),
            ("Null", json!(null)),
            ("nULL", json!("nULL")),
            ("12", json!(12)),
            ("-12", json!(-12)),
            ("+1_000", json!(1000)),
            ("0", json!(0)),
            ("017", json!(15)),
            ("08", json!("08")),
            ("0o17", json!("0o17")),
            ("0x_1F", json!(31)),
            ("-0b101", json!(-5)),
            ("1:30", json!(90)),
            ("190:20:30", json!(685_230)),
            ("1:60", json!("1:60")),
            ("8080:80", json!("8080:80")),
            ("1.5", json!(1.5)),
            ("1.", json!(1.0)),
            (".5", json!(0.5)),
            ("-.5", json!("-.5")),
            ("1e3", json!("1e3")),
            ("1.5e3", json!("1.5e3")),
            ("1.5e+3", json!(1500.0)),
            ("6.02E-2", json!(0.0602)),
            ("1.2.3", json!("1.2.3")),
            (".", json!(".")),
            ("_", json!("_")),
            ("-", json!([null])),
            ("2024-01-02", json!("2024-01-02")),
            ("'yes'", json!("yes")),
            ("\"12\"", json!("12")),
            ("!!str 12", json!("12")),
            ("!!int '12'", json!(12)),
            ("!!float 1", json!(1)),
            ("! yes", json!(true)),
            ("0:30", json!("0:30")),
            ("-1:30", json!(-90)),
            ("1:2.5", json!(62.5)),
            ("0_7", json!(7)),
            ("0x", json!("0x")),
            ("_1", json!("_1")),
            ("!!bool 'on'", json!(true)),
            ("18446744073709551615", json!(u64::MAX)),
            ("|\n a\n b\n", json!("a\nb\n")),
            ("", json!(null)),
        ];
        for (text, expected) in table {
            reads(text, expected);
        }
    }

    #[test]
    fn collections_anchors_and_merges() {
        reads(
            "a: [1, {b: 2}]\nc:\n- x\n- y: z\n",
            json!({"a": [1, {"b": 2}], "c": ["x", {"y": "z"}]}),
        );
        reads("a: &x {k: 1}\nb: *x\n", json!({"a": {"k": 1}, "b": {"k": 1}}));
        reads("%YAML 1.1\n---\na: 1\n...\n", json!({"a": 1}));
        reads(
            "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\none: {<<: *b, x: 0}\ntwo:\n  <<: [*b, *m]\n  w: 5\n",
            json!({
                "base": {"x": 1, "y": 2}, "more": {"y": 3, "z": 4},
                "one": {"y": 2, "x": 0}, "two": {"x": 1, "y": 2, "z": 4, "w": 5}
            }),
        );
        reads("'<<': 1\n", json!({"<<": 1}));
        reads("on: 1\n2: x\n", json!({"on": 1, "2": "x"}));
        reads("&k key: *k\n", json!({"key": "key"}));
    }

    #[test]
    fn mistakes_are_placed() {
        refuses(
            "a: 1\nb: 2\na: 3\n",
            "f:3:1: a: the key is given twice; first at line 1, column 1",
        );
        refuses("a: 1\n---\nb: 2\n", "f:2:1: the file holds more than one document");
        refuses("a: .inf\n", "f:1:4: a: `.inf` is not a finite number");
        refuses("a: 99999999999999999999999999999\n", "f:1:4: a: the number is too large");
        refuses(
            "a: !!python/object:os.system x\n",
            "f:1:4: a: the tag `!!python/object:os.system` has no meaning here",
        );
        refuses("a: !mine {}\n", "f:1:4: a: the tag `!mine` has no meaning here");
        refuses("a: !!int x\n", "f:1:4: a: the value does not have the form of its tag `!!int`");
        refuses("<<: 1\n", "f:1:5: `<<` merges a mapping or a list of mappings");
        refuses("a: &x [*x]\n", "f:1:8: a[0]: an alias cannot stand within what it refers to");
        refuses("? [a]\n: 1\n", "f:1:3: a key is a text");
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let place = "[0]".repeat(128);
        refuses(&deep, &format!("f:1:129: {place}: the document nests more than 128 levels deep"));
    }

    #[test]
    fn a_mistake_inside_is_told_with_its_path_and_a_way_out() {
        refuses(
            "a:\n  b: 1\n  b: 2\n",
            "f:3:3: a.b: the key is given twice; first at line 2, column 3",
        );
        refuses("a: [x, {b c: .nan}]\n", "f:1:14: a[1].\"b c\": `.nan` is not a finite number");
        refuses(
            "a:\n\tb: 1\n",
            "f:2:2: a: tabs disallowed within this context (block indentation); indent with spaces, not with tabs",
        );
        refuses(
            "a: * x\n",
            "f:1:4: a: while scanning an anchor or alias, did not find expected alphabetic or numeric character; a text that begins with `*` or `&` stands in quotes",
        );
        refuses(
            "a: *b\n",
            "f:1:4: a: while parsing node, found unknown anchor; `*name` repeats what stands after an earlier `&name`, and a text that begins with `*` stands in quotes",
        );
    }

    #[test]
    fn a_few_aliases_do_not_fill_the_memory() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let items = vec![format!("*a{}", level - 1); 10].join(", ");
            text = format!("{text}a{level}: &a{level} [{items}]\n");
        }
        let error = Document::parse("f", Format::Yaml, text).unwrap_err();
        assert_eq!(error.message(), "the document has over 200000 values");
    }

    #[test]
    fn anchors_within_anchors_do_not_fill_the_memory() {
        // Each keeps a copy of all that is in it.
        let text = |levels: usize| {
            let open: Vec<String> = (0..levels).map(|level| format!("&n{level} [")).collect();
            format!("{}{}{}", open.concat(), "1, ".repeat(5_000), "]".repeat(levels))
        };
        Document::parse("f", Format::Yaml, text(10)).unwrap();
        let error = Document::parse("f", Format::Yaml, text(100)).unwrap_err();
        assert_eq!(error.message(), "the document has over 200000 values");
    }

    #[test]
    fn every_value_and_key_has_its_place() {
        let text = "# c\nname: x\ntools:\n  builtin: [a, b]\n  list:\n  - é: 1\n";
        let document = Document::parse("f", Format::Yaml, text).unwrap();
        assert_eq!(
            places(&document),
            "2:1 \n2:1 name:\n2:7 name\n3:1 tools:\n4:3 tools\n4:3 tools.builtin:\n4:12 tools.builtin\n\
             4:13 tools.builtin[0]\n4:16 tools.builtin[1]\n5:3 tools.list:\n6:5 tools.list\n\
             6:5 tools.list[0]\n6:5 tools.list[0].é:\n6:8 tools.list[0].é"
        );
    }
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Config {
    name: String,
    #[serde(default)]
    port: Option<NonZeroU16>,
    #[serde(default)]
    ratio: Option<f64>,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    servers: BTreeMap<String, Server>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Server {
    command: String,
    #[serde(default)]
    args: Vec<String>,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Mode {
    #[default]
    Native,
    Docker {
        image: String,
    },
}

#[track_caller]
fn check_decode(text: &str, expected: &str) {
    let document = Document::parse("f", Format::Yaml, text).unwrap();
    let error = document.decode::<Config>().expect_err(text);
    assert_eq!(error.to_string(), expected, "{text}");
}

#[test]
fn a_document_decodes_into_plain_structs() {
    let text = "name: n\nport: 80\nratio: 2\ndry_run: on\nmode: {docker: {image: i}}\nservers: {a.b: {command: c, args: [x]}}\n";
    let config: Config = Document::parse("f", Format::Yaml, text).unwrap().decode().unwrap();
    let server = Server { command: "c".into(), args: vec!["x".into()] };
    assert_eq!(
        config,
        Config {
            name: "n".into(),
            port: NonZeroU16::new(80),
            ratio: Some(2.0),
            dry_run: true,
            mode: Mode::Docker { image: "i".into() },
            servers: BTreeMap::from([("a.b".into(), server)]),
        }
    );
}

#[test]
fn a_mistake_in_decoding_has_place_path_and_hint() {
    check_decode("{name: a, nmae: b}", "f:1:11: nmae: unknown key; did you mean `name`?");
    check_decode(
        "{name: a, colour: b}",
        "f:1:11: colour: unknown key; known are `name`, `port`, `ratio`, `dry_run`, `mode` and `servers`",
    );
    check_decode(
        "{name: a, dry-run: true}",
        "f:1:11: dry-run: unknown key; did you mean `dry_run`?",
    );
    check_decode("port: 1", "f:1:1: the key `name` is missing");
    check_decode("name: 5", "f:1:7: name: expected a string, found an integer; put it in quotes");
    check_decode(
        "{name: a, dry_run: 'true'}",
        "f:1:20: dry_run: expected a boolean, found a string; write `true` or `false`, without quotes",
    );
    check_decode(
        "{name: a, dry_run: 1}",
        "f:1:20: dry_run: expected a boolean, found an integer; write `true` or `false`, without quotes",
    );
    check_decode(
        "{name: a, ratio: '2'}",
        "f:1:18: ratio: expected a number, found a string; write it without quotes",
    );
    check_decode(
        "{name: a, servers: {x: {command: c, args: y}}}",
        "f:1:43: servers.x.args: expected a list, found a string; put it in square brackets",
    );
    check_decode(
        "{name: a, dry_run: }",
        "f:1:18: dry_run: expected a boolean, found null; give it a value, or remove the key",
    );
    check_decode(
        "{name: a, port: 2.0}",
        "f:1:17: port: expected a whole number above 0, found a number with a fraction",
    );
    check_decode("{name: a, port: 0}", "f:1:17: port: expected a whole number above 0");
    check_decode(
        "{name: a, servers: {x y: {command: c, args: [1]}}}",
        "f:1:46: servers.\"x y\".args[0]: expected a string, found an integer; put it in quotes",
    );
    check_decode("{name: a, servers: {x: {}}}", "f:1:24: servers.x: the key `command` is missing");
    check_decode(
        "{name: a, mode: dokcer}",
        "f:1:17: mode: the choices are `native` and `docker`; did you mean `docker`?",
    );
    check_decode("{name: a, mode: docker}", "f:1:17: mode: this choice needs a value");
    check_decode(
        "{name: a, mode: {docker: {imgae: i}}}",
        "f:1:27: mode.docker.imgae: unknown key; did you mean `image`?",
    );
    check_decode(
        "{name: a, mode: 5}",
        "f:1:17: mode: the choices are `native` and `docker`, found a number",
    );
}

#[test]
fn who_writes_something_else_for_a_mapping_hears_its_keys() {
    let keys = "its keys are `name`, `port`, `ratio`, `dry_run`, `mode` and `servers`";
    check_decode("[a]", &format!("f:1:1: expected a mapping, found a list; {keys}"));
    check_decode("a", &format!("f:1:1: expected a mapping, found a string; {keys}"));
    check_decode(
        "{name: a, servers: {x: 1}}",
        "f:1:24: servers.x: expected a mapping, found an integer; its keys are `command` and `args`",
    );
}

#[test]
fn an_error_can_be_made_of_a_path_alone() {
    let text = "tools:\n  builtin: [a, b]\n  'x.y': {z: 1}\n";
    let document = Document::parse("f", Format::Yaml, text).unwrap();
    let place = |path: &str| document.error_in(path, "m").position().unwrap().to_string();
    assert_eq!(place(""), "1:1");
    assert_eq!(place("tools"), "1:1");
    assert_eq!(place("tools.builtin[1]"), "2:16");
    assert_eq!(place("tools.builtin[7]"), "2:3");
    assert_eq!(place("tools.\"x.y\".z"), "3:11");
    assert_eq!(place("tools.missing.more"), "1:1");
    assert_eq!(place("other"), "1:1");
}

#[test]
fn a_rendered_error_shows_the_line_and_no_secret() {
    let text = "{\n  \"env\": {'KEY': \"top secret\", x\ty: 1, args: [\"s1\", 's2']}\n}";
    let error = Document::parse("dir/mcp.json", Format::Json5, text).unwrap_err();
    assert_eq!(
        error.render(),
        "dir/mcp.json:2:34: expected colon after the string or word in object property; put the key in quotes, or a colon after it\n  \
         |\n2 |   \"env\": {'KEY': \"**********\", * y: *, args: [\"**\", '**']}\n  |                                  ^"
    );
    assert!(!format!("{error:?}").contains("secret"));
    let error = DocumentError::of_file("gone.json", "the file cannot be read");
    assert_eq!(error.render(), "gone.json: the file cannot be read");
}

#[test]
fn no_name_in_a_message_addresses_the_terminal() {
    let document = Document::parse("\u{1b}[2J.json", Format::Json5, "{}").unwrap();
    let error = document.error_at(document.root.position, "a\u{7}", "b\nc\u{9b}");
    let shown = error.with_hint("d\u{1b}".to_owned()).to_string();
    assert_eq!(shown, r"\u{1b}[2J.json:1:1: a\u{7}: b\nc\u{9b}; d\u{1b}");
}

#[test]
fn a_mistake_at_the_end_of_a_file_is_in_the_file() {
    let error = Document::parse("f", Format::Yaml, "a: b\nindent").unwrap_err();
    let expected = "\
f:2:7: simple key expected
  |
2 | indent
  |       ^";
    assert_eq!(error.render(), expected);
    // The parser counts more columns in a directive than it has.
    let error = Document::parse("f", Format::Yaml, "%a éééé: e\u{0}\n").unwrap_err();
    assert!(error.position().unwrap().column <= 12, "{error}");
    let error = Document::parse("f", Format::Yaml, "a: 1\n\u{0}").unwrap_err();
    let expected = "f:2:1: found unprintable character; remove it; some editors show it as `^@`";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_file_of_one_long_line_is_read_once() {
    let text = format!("[{}]", "'é',".repeat(200_000));
    let document = Document::parse("f", Format::Json5, text).unwrap();
    let last = document.root.as_sequence().unwrap().last().unwrap();
    assert_eq!(last.position, Position { line: 1, column: 4 * 199_999 + 2 });
}

#[test]
fn a_mistake_in_one_long_line_is_shown_after_one_reading() {
    for piece in ["\"", "'' ", " ", "\t\"", "a ", "{", "- ", "a: "] {
        let text = format!("\0{}", piece.repeat(150_000));
        for format in [Format::Json5, Format::Toml, Format::Yaml] {
            let error = Document::parse("f", format, text.clone()).unwrap_err();
            assert!(error.render().starts_with("f:1:"), "{piece:?} {format:?}");
        }
    }
}

#[test]
fn a_line_ends_where_the_parsers_say() {
    for end in ["\n", "\r\n", "\r"] {
        let text = ["a: 1", "b: 2", "a: 3"].join(end);
        let error = Document::parse("f", Format::Yaml, text.as_str()).unwrap_err().render();
        assert!(error.ends_with("\n3 | a: 3\n  | ^"), "{error}");
        let document =
            Document::parse("f", Format::Json5, format!("{{{end}a: 1,{end}b: 2}}")).unwrap();
        let (key, _) = document.root.entry("b").unwrap();
        assert_eq!(key.position, Position { line: 3, column: 1 });
        let error = document.error_in("b", "m").render();
        assert!(error.ends_with("\n3 | b: 2}\n  | ^"), "{error}");
    }
}

#[test]
fn a_long_line_is_shown_around_the_caret() {
    let text = format!("{{a: [{}], b: x}}", "1, ".repeat(1000));
    let error = Document::parse("f", Format::Json5, text).unwrap_err();
    let lines: Vec<String> = error.render().lines().map(str::to_owned).collect();
    assert!(lines[2].len() < 120, "{lines:?}");
    let caret = lines[3].find('^').unwrap();
    assert_eq!(&lines[2][caret..=caret], "x");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = Document::open(Path::new("/nowhere/mcp.json"), Format::Json5).unwrap_err();
    assert!(
        error.to_string().starts_with("/nowhere/mcp.json: the file cannot be read: "),
        "{error}"
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("big.json");
    File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
    let error = Document::open(&path, Format::Json5).unwrap_err();
    assert_eq!(error.message(), "the file cannot be read: it is larger than 8388608 bytes");
}

#[test]
fn a_name_is_suggested_only_when_it_is_near() {
    let known = ["command", "args", "env", "url"];
    assert_eq!(hint::nearest("comand", known), Some("command"));
    assert_eq!(hint::nearest("Commnad", known), Some("command"));
    assert_eq!(hint::nearest("arg", known), Some("args"));
    assert_eq!(hint::nearest("uri", known), Some("url"));
    assert_eq!(hint::nearest("x", known), None);
    assert_eq!(hint::nearest("description", known), None);
}

proptest! {
    #[test]
    fn no_parser_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in [Format::Json5, Format::Toml, Format::Yaml] {
            let _unused = Document::parse_bytes("f", format, bytes.clone()).map_err(|error| error.render());
        }
    }

    #[test]
    fn no_parser_panics_on_what_looks_like_its_language(
        parts in prop::collection::vec(prop::sample::select(PARTS), 0..40),
    ) {
        let text = parts.concat();
        for format in [Format::Json5, Format::Toml, Format::Yaml] {
            match Document::parse("f", format, text.clone()) {
                Ok(document) => drop(document.decode::<Config>().map_err(|error| error.render())),
                Err(error) => drop(error.render()),
            }
        }
    }

    #[test]
    fn json_is_read_as_json(value in json_values()) {
        let text = serde_json::to_string_pretty(&value).unwrap();
        let document = Document::parse("f", Format::Json5, text).unwrap();
        prop_assert_eq!(document.root.to_json(), value);
    }
}

const PARTS: &[&str] = &[
    "{", "}", "[", "]", ":", ",", "=", "'", "\"", "\\", "\n", "  ", "\t", "a", "é", "name", "- ",
    "? ", "&x ", "*x", "<<: ", "|", ">", "#", "//", "/*", "*/", "0x", "1", ".", "e", "+", "-",
    "!!int ", "!a", "---\n", "...\n", "%", "[[", "]]", "\u{feff}", "\r", "\0", "\u{2028}", "true",
    "null", "Infinity", "\"\"\"", "''",
];

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"\\\\ é]{0,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

// ---- Every mistake at once ------------------------------------------------------------------

/// A file with a part of every kind that mistakes can be in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    #[serde(default)]
    _part: Option<Part>,
    #[serde(default)]
    _parts: Vec<Part>,
    #[serde(default)]
    _numbers: Vec<u8>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "count")]
    _count: Option<u8>,
}

#[track_caller]
fn check_all(text: &str, expected: &[&str]) {
    let document = Document::parse("f", Format::Yaml, text).unwrap();
    let told: Vec<String> = match document.decode_all::<Whole>() {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    };
    assert_eq!(told, expected, "{text}");
}

#[test]
fn every_mistake_is_told_once_with_the_place_it_has_in_the_file() {
    check_all("_part: {name: a}\n", &[]);
    check_all(
        "_part: {name: 1, count: x, more: 2}\nother: 1\n",
        &[
            "f:1:15: _part.name: expected a string, found an integer; put it in quotes",
            "f:1:25: _part.count: expected a whole number, not negative, found a string",
            "f:1:28: _part.more: unknown key; known are `name` and `count`",
            "f:2:1: other: unknown key; known are `_part`, `_parts` and `_numbers`",
        ],
    );
    // What went takes nothing with it, and nobody else's number.
    check_all(
        "_parts: [{count: 1}, {name: a}, x, {name: b, count: -1}, {count: 2}]\n_numbers: [1, x, 2, y]\n",
        &[
            "f:1:10: _parts[0]: the key `name` is missing",
            "f:1:33: _parts[2]: expected a mapping, found a string; its keys are `name` and `count`",
            "f:1:53: _parts[3].count: expected a whole number, not negative",
            "f:1:58: _parts[4]: the key `name` is missing",
            "f:2:15: _numbers[1]: expected a whole number, not negative, found a string",
            "f:2:21: _numbers[3]: expected a whole number, not negative, found a string",
        ],
    );
    // What was meant for a key is not missing as well; what is missing beside it is.
    check_all("_part: {nam: a}\n", &["f:1:9: _part.nam: unknown key; did you mean `name`?"]);
    check_all(
        "_part: {coun: 1}\n",
        &[
            "f:1:8: _part: the key `name` is missing",
            "f:1:9: _part.coun: unknown key; did you mean `count`?",
        ],
    );
    check_all(
        "_part: &part {name: 1}\n_parts: [*part]\n",
        &["f:1:21: _part.name: expected a string, found an integer; put it in quotes"],
    );
}

#[test]
fn a_file_of_another_kind_is_not_told_of_without_end() {
    let keys = (0..1000).map(|number| format!("key{number}: 1")).collect::<Vec<_>>().join("\n");
    let document = Document::parse("f", Format::Yaml, keys).unwrap();
    assert_eq!(document.decode_all::<Whole>().unwrap_err().len(), 20);
}
