//! Front matter, case by case.

use serde_json::json;

use super::*;

fn read(text: &str) -> Result<Value, String> {
    let read = FrontMatter::read(Path::new("SKILL.md"), text);
    read.map(|read| Value::Object(read.fields)).map_err(|error| error.to_string())
}

#[test]
fn front_matter_is_yaml_between_fences() {
    for (text, expected) in [
        ("---\ndescription: d\n---\nbody", json!({"description": "d"})),
        ("---\r\ndescription: d\r\n---\r\nbody", json!({"description": "d"})),
        ("---\ndescription: d\n---", json!({"description": "d"})),
        (
            "---\nname: a\nother: {list: [1, 2.5, yes]}\n---\n",
            json!({"name": "a", "other": {"list": [1, 2.5, true]}}),
        ),
        ("---\ndescription: |\n  two\n  lines\n---\n", json!({"description": "two\nlines\n"})),
        ("---\n\"1\": quoted\n'yes': quoted\n---\n", json!({"1": "quoted", "yes": "quoted"})),
        (
            "---\nbase: &b {x: 1}\nmore: {<<: *b}\n---\n",
            json!({"base": {"x": 1}, "more": {"x": 1}}),
        ),
        // What begins otherwise has none.
        ("", json!({})),
        ("body", json!({})),
        ("\n---\ndescription: d\n---\n", json!({})),
        ("--- \ndescription: d\n---\n", json!({})),
        ("----\ndescription: d\n----\n", json!({})),
        ("\u{feff}---\ndescription: d\n---\n", json!({})),
    ] {
        assert_eq!(read(text), Ok(expected), "{text:?}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (text, expected, place) in [
        ("---\ndescription: d\n", "no line `---` at its end", None),
        ("---\ndescription: d\n--- \n", "no line `---` at its end", None),
        ("---", "no line `---` at its end", None),
        ("---\nname: a\ndescription: a: b\n---\n", "is no YAML", Some("3:15")),
        ("---\nname: a\nname: b\n---\n", "is no YAML", Some("3:1")),
        ("---\n- a\n---\n", "is a list, and has to be a mapping", None),
        ("---\njust words\n---\n", "is a string, and has to be a mapping", None),
        ("---\n---\n", "is null, and has to be a mapping", None),
        ("---\n1: a\n---\n", "the key `1`, which is no text", Some("2:1")),
        ("---\nname: a\nyes: a\n---\n", "the key `yes`, which is no text", Some("3:1")),
        ("---\nnull: a\n---\n", "the key `null`, which is no text", Some("2:1")),
        ("---\n? [a]\n: b\n---\n", "is no YAML", Some("2:3")),
    ] {
        let error = FrontMatter::read(Path::new("SKILL.md"), text).unwrap_err();
        assert!(error.to_string().contains(expected), "{text:?}: {error}");
        assert_eq!(error.place().as_deref(), place, "{text:?}: {error}");
    }
}

#[test]
fn a_description_is_trimmed_and_cut() {
    let described = |description: Value| {
        let fields = json!({"description": description}).as_object().unwrap().clone();
        FrontMatter { fields }.description().map(|it| (it.text, it.is_cut))
    };
    assert_eq!(described(json!("  d \n")), Some(("d".to_owned(), false)));
    for nothing in [json!(" \n"), json!(""), json!(null), json!(7), json!(["d"])] {
        assert_eq!(described(nothing.clone()), None, "{nothing}");
    }
    let full = "ä".repeat(1024);
    assert_eq!(described(full.clone().into()), Some((full.clone(), false)));
    assert_eq!(described(format!("{full}ä").into()), Some((full.clone(), true)));
    assert_eq!(described(format!("{full} ").into()), Some((full, false)));
    assert_eq!(FrontMatter::default().description(), None);
}

#[test]
fn a_bomb_of_aliases_is_refused() {
    let mut text = "---\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        text.extend([format!("a{level}: &a{level} [{before}]\n")]);
    }
    text += "description: d\n---\n";
    let error = read(&text).unwrap_err();
    assert!(error.contains("values") || error.contains("more than"), "{error}");
    // Within another, each anchor keeps its own copy of what is in it.
    let leaf = "*x, ".repeat(1000);
    let nested: Vec<String> = (0..100).map(|level| format!("&n{level} [")).collect();
    let nested = nested.concat();
    let text = format!(
        "---\nx: &x [{}]\ny: {nested}{leaf}{}\ndescription: d\n---\n",
        "1, ".repeat(100),
        "]".repeat(100)
    );
    let error = read(&text).unwrap_err();
    assert!(error.contains("values"), "{error}");
    let long = format!("---\ndescription: {}\n---\n", "d".repeat(MOST_BYTES));
    assert_eq!(read(&long).unwrap_err(), FrontMatterError::TooLong.to_string());
}
