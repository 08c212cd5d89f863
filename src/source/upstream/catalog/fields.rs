//! The small fields of a listed tool, made to fit what strict clients demand.
//!
//! A client that checks the whole list drops all of it for one field of a wrong type. None of
//! these fields is worth that, so what is wrong goes.

use serde_json::{Map, Value};

/// A name and whether a value is what may stand under it.
type Field = (&'static str, fn(&Value) -> bool);

/// Removes from a tool what is not of its type, and tells what; null is as good as absent.
pub(super) fn tidy(tool: &mut Map<String, Value>) -> Vec<(&'static str, String)> {
    let fields: [Field; 6] = [
        ("title", Value::is_string),
        ("description", Value::is_string),
        ("annotations", Value::is_object),
        ("icons", Value::is_array),
        ("execution", is_execution),
        ("_meta", Value::is_object),
    ];
    let mut notes = Vec::new();
    for (field, fits) in fields {
        if remove_unless(tool, field, fits) {
            notes.push((field, format!("`{field}` is not what it should be and is dropped")));
        }
    }
    if let Some(Value::Object(annotations)) = tool.get_mut("annotations") {
        tidy_annotations(annotations, &mut notes);
    }
    if let Some(Value::Array(icons)) = tool.get_mut("icons") {
        let listed = icons.len();
        icons.retain(is_icon);
        if icons.len() < listed {
            notes.push(("icons", "an icon is not what it should be and is dropped".to_owned()));
        }
    }
    notes
}

fn tidy_annotations(annotations: &mut Map<String, Value>, notes: &mut Vec<(&'static str, String)>) {
    let hints: [Field; 5] = [
        ("title", Value::is_string),
        ("readOnlyHint", Value::is_boolean),
        ("destructiveHint", Value::is_boolean),
        ("idempotentHint", Value::is_boolean),
        ("openWorldHint", Value::is_boolean),
    ];
    for (hint, fits) in hints {
        if remove_unless(annotations, hint, fits) {
            let message = format!("the hint `{hint}` is not what it should be and is dropped");
            notes.push(("annotations", message));
        }
    }
}

/// Removes a member that does not fit; returns whether that is worth telling.
fn remove_unless(members: &mut Map<String, Value>, name: &str, fits: fn(&Value) -> bool) -> bool {
    match members.get(name) {
        Some(value) if !fits(value) => {
            let told = !value.is_null();
            members.shift_remove(name);
            told
        }
        _ => false,
    }
}

fn is_execution(value: &Value) -> bool {
    let support = value.get("taskSupport");
    value.is_object()
        && support.is_none_or(|support| {
            matches!(support.as_str(), Some("forbidden" | "optional" | "required"))
        })
}

fn is_icon(icon: &Value) -> bool {
    let absent_or = |name: &str, fits: fn(&Value) -> bool| icon.get(name).is_none_or(fits);
    let strings =
        |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
    icon.get("src").is_some_and(Value::is_string)
        && absent_or("mimeType", Value::is_string)
        && absent_or("sizes", strings)
        && absent_or("theme", |theme| matches!(theme.as_str(), Some("light" | "dark")))
}
