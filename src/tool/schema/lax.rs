//! Lax coercion: what a model plainly meant is accepted, guided by the schema.
//!
//! Models send `"2"` for 2 and `2.0` for 2. A property's declared type decides what becomes of
//! such a value; whatever cannot be made to fit is left for the schema check to refuse. Unknown
//! arguments are dropped and defaults filled in, so the arguments that permission and hooks see
//! are the ones the body gets.

use serde_json::{Map, Number, Value};

use crate::tool::Arguments;

/// Coerces `raw` by the schema's properties, in their order, and fills in defaults.
///
/// Arguments that the schema does not know are dropped, unless it forbids them: then they stay,
/// for the check to name.
pub fn coerce(schema: &Map<String, Value>, mut raw: Arguments) -> Arguments {
    let mut arguments = Arguments::new();
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return arguments;
    };
    for (name, property) in properties {
        match raw.shift_remove(name) {
            Some(value) => {
                arguments.insert(name.clone(), coerce_value(property, value));
            }
            None => {
                if let Some(default) = property.get("default") {
                    arguments.insert(name.clone(), default.clone());
                }
            }
        }
    }
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        arguments.extend(raw);
    }
    arguments
}

/// Makes values fit the declared types of arguments, and leaves everything else as it is.
///
/// For schemas of others: nothing is dropped, and nothing is filled in that they did not ask for.
pub fn mend(schema: &Map<String, Value>, raw: &Arguments) -> Arguments {
    let declared = |name: &str| schema.get("properties")?.get(name);
    let mended = raw.iter().map(|(name, value)| {
        let value = value.clone();
        let value = match declared(name) {
            Some(property) => coerce_value(property, value),
            None => value,
        };
        (name.clone(), value)
    });
    mended.collect()
}

fn coerce_value(schema: &Value, value: Value) -> Value {
    if let Some(Value::Array(branches)) = schema.get("anyOf") {
        let exact = branches.iter().any(|branch| has_type(branch, &value));
        if exact {
            return value;
        }
        return branches
            .iter()
            .find_map(|branch| {
                let coerced = coerce_value(branch, value.clone());
                has_type(branch, &coerced).then_some(coerced)
            })
            .unwrap_or(value);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer") => integer(value),
        Some("number") => number(value),
        Some("boolean") => boolean(value),
        Some("array") => array(schema, value),
        Some("object") => object(value),
        _ => value,
    }
}

fn has_type(schema: &Value, value: &Value) -> bool {
    match schema.get("type").and_then(Value::as_str) {
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("null") => value.is_null(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => true,
    }
}

fn integer(value: Value) -> Value {
    match &value {
        Value::Bool(flag) => i64::from(*flag).into(),
        Value::Number(number) => whole(number).map_or(value, Value::Number),
        Value::String(text) => {
            let text = text.trim();
            if let Ok(number) = text.parse::<i64>() {
                return number.into();
            }
            text.parse::<f64>()
                .ok()
                .and_then(Number::from_f64)
                .and_then(|number| whole(&number))
                .map_or(value, Value::Number)
        }
        Value::Null | Value::Array(_) | Value::Object(_) => value,
    }
}

/// Returns a number as an integer, if it is one in value.
fn whole(number: &Number) -> Option<Number> {
    if number.is_i64() || number.is_u64() {
        return Some(number.clone());
    }
    let float = number.as_f64()?;
    // 2^53: beyond it a float no longer names one integer.
    let exact = float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within range")]
    exact.then(|| Number::from(float as i64))
}

fn number(value: Value) -> Value {
    match &value {
        Value::Bool(flag) => i64::from(*flag).into(),
        Value::String(text) => {
            let text = text.trim();
            if let Ok(number) = text.parse::<i64>() {
                return number.into();
            }
            text.parse::<f64>().ok().and_then(Number::from_f64).map_or(value, Value::Number)
        }
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => value,
    }
}

fn boolean(value: Value) -> Value {
    let flag = match &value {
        Value::Number(number) => match number.as_f64() {
            Some(0.0) => Some(false),
            Some(1.0) => Some(true),
            _ => None,
        },
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
            "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    flag.map_or(value, Value::Bool)
}

fn array(schema: &Value, value: Value) -> Value {
    let items = match value {
        Value::Array(items) => items,
        // Some models wrap a whole argument in a JSON string.
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Array(items)) => items,
            _ => return Value::String(text),
        },
        other => return other,
    };
    match schema.get("items") {
        Some(item) => items.into_iter().map(|value| coerce_value(item, value)).collect(),
        None => Value::Array(items),
    }
}

fn object(value: Value) -> Value {
    match value {
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(members)) => Value::Object(members),
            _ => Value::String(text),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Value, value: Value, expected: Value) {
        assert_eq!(coerce_value(&schema, value.clone()), expected, "{schema} {value}");
    }

    #[test]
    fn a_value_is_made_to_fit_its_declared_type() {
        let integer = json!({"type": "integer"});
        check(integer.clone(), json!("2"), json!(2));
        check(integer.clone(), json!(2.0), json!(2));
        check(integer.clone(), json!("2.0"), json!(2));
        check(integer.clone(), json!(true), json!(1));
        check(integer.clone(), json!(2.5), json!(2.5));
        check(integer.clone(), json!("two"), json!("two"));
        check(integer.clone(), json!(1e300), json!(1e300));
        check(integer.clone(), json!(u64::MAX), json!(u64::MAX));
        check(integer, json!(null), json!(null));
        check(json!({"type": "number"}), json!("2.5"), json!(2.5));
        check(json!({"type": "boolean"}), json!("yes"), json!(true));
        check(json!({"type": "boolean"}), json!(0), json!(false));
        check(json!({"type": "boolean"}), json!(2), json!(2));
        check(json!({"type": "string"}), json!(2), json!(2));
        let optional = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
        check(optional.clone(), json!(null), json!(null));
        check(optional.clone(), json!("7"), json!(7));
        check(optional, json!("x"), json!("x"));
        let union = json!({"anyOf": [{"type": "integer"}, {"type": "string"}]});
        check(union, json!("7"), json!("7"));
        let list = json!({"type": "array", "items": {"type": "integer"}});
        check(list.clone(), json!(["1", 2]), json!([1, 2]));
        check(list, json!("[1, \"2\"]"), json!([1, 2]));
        check(json!({"type": "object"}), json!("{\"a\": 1}"), json!({"a": 1}));
    }

    #[test]
    fn ex_2_4_unknown_arguments_are_dropped_and_defaults_filled_in() {
        let schema = json!({"properties": {
            "left": {"type": "integer"}, "right": {"type": "integer"}, "limit": {"type": "integer", "default": 5}
        }});
        let raw = json!({"right": 3, "zzz": 1, "left": "2"}).as_object().unwrap().clone();
        let arguments = coerce(schema.as_object().unwrap(), raw);
        assert_eq!(Value::Object(arguments), json!({"left": 2, "right": 3, "limit": 5}));
    }

    #[test]
    fn mending_drops_and_adds_nothing() {
        let schema = json!({"properties": {
            "list": {"type": "array"}, "count": {"type": "integer", "default": 1}, "text": {"type": "string"}
        }});
        let raw = json!({"list": "[1, {\"a\": 2}]", "other": "[1]", "text": "[1]"});
        let mended = mend(schema.as_object().unwrap(), raw.as_object().unwrap());
        let expected = json!({"list": [1, {"a": 2}], "other": "[1]", "text": "[1]"});
        assert_eq!(Value::Object(mended), expected);
        assert_eq!(mend(&Map::new(), raw.as_object().unwrap()), *raw.as_object().unwrap());
    }

    #[test]
    fn forbidden_arguments_are_left_for_the_check() {
        let schema = json!({"properties": {"a": {}}, "additionalProperties": false});
        let raw = json!({"b": 1}).as_object().unwrap().clone();
        let arguments = coerce(schema.as_object().unwrap(), raw);
        assert_eq!(Value::Object(arguments), json!({"b": 1}));
    }
}
