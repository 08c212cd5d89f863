//! Arguments that a tool wants repeated in headers (`x-mcp-header`).

use std::collections::{HashMap, HashSet};

use http::HeaderName;
use serde_json::{Map, Value};

/// What stands before the name that a schema gives a header.
const PREFIX: &str = "mcp-param-";
/// The keyword that asks for it.
const KEYWORD: &str = "x-mcp-header";

/// Which arguments of which tools go into which headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Mirrors(HashMap<String, Vec<Mirror>>);

/// One argument, by the names that lead to it, and its header.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mirror {
    path: Vec<String>,
    header: HeaderName,
}

impl Mirrors {
    /// Returns the headers of one call.
    pub(super) fn of(&self, tool: &str, arguments: &Value) -> Vec<(HeaderName, String)> {
        let mirrors = self.0.get(tool).map(Vec::as_slice).unwrap_or_default();
        let text = |mirror: &Mirror| {
            let at = |value, key: &String| Value::get(value, key);
            match mirror.path.iter().try_fold(arguments, at)? {
                Value::String(text) => Some(text.clone()),
                Value::Bool(value) => Some(value.to_string()),
                Value::Number(number) => Some(number.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => None,
            }
        };
        mirrors.iter().filter_map(|mirror| Some((mirror.header.clone(), text(mirror)?))).collect()
    }
}

/// Learns from pages of `tools/list` what is to be mirrored, and takes out the tools that ask for
/// it in a way that cannot be met; they are returned with the reason.
pub(in super::super) fn learn(pages: &mut [Value]) -> (Mirrors, Vec<(String, String)>) {
    let mut mirrors = Mirrors::default();
    let mut refused = Vec::new();
    for page in pages {
        let Some(Value::Array(tools)) = page.get_mut("tools") else { continue };
        tools.retain(|tool| {
            let name = tool.get("name").and_then(Value::as_str);
            let schema = tool.get("inputSchema").and_then(Value::as_object);
            let (Some(name), Some(schema)) = (name, schema) else { return true };
            match read(schema) {
                Ok(found) => {
                    if !found.is_empty() {
                        mirrors.0.insert(name.to_owned(), found);
                    }
                    true
                }
                Err(reason) => {
                    refused.push((name.to_owned(), reason));
                    false
                }
            }
        });
    }
    (mirrors, refused)
}

fn read(schema: &Map<String, Value>) -> Result<Vec<Mirror>, String> {
    let mut reader = Reader { found: Vec::new(), names: HashSet::new() };
    reader.schema(schema, Some(&mut Vec::new()))?;
    Ok(reader.found)
}

struct Reader {
    found: Vec<Mirror>,
    names: HashSet<HeaderName>,
}

impl Reader {
    /// Reads a schema; `path` is there if only `properties` lead to it.
    fn schema(
        &mut self,
        schema: &Map<String, Value>,
        mut path: Option<&mut Vec<String>>,
    ) -> Result<(), String> {
        for (key, value) in schema {
            match key.as_str() {
                KEYWORD => self.keyword(schema, value, path.as_deref())?,
                "properties" => {
                    for (name, value) in value.as_object().into_iter().flatten() {
                        let Value::Object(inner) = value else { continue };
                        if let Some(path) = path.as_deref_mut() {
                            path.push(name.clone());
                            self.schema(inner, Some(path))?;
                            path.pop();
                        } else {
                            self.schema(inner, None)?;
                        }
                    }
                }
                "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                    for inner in value.as_object().into_iter().flat_map(Map::values) {
                        self.other(inner)?;
                    }
                }
                // Data, not schemas.
                "default" | "const" | "enum" | "examples" | "dependentRequired" => {}
                _ => self.other(value)?,
            }
        }
        Ok(())
    }

    fn other(&mut self, value: &Value) -> Result<(), String> {
        match value {
            Value::Object(schema) => self.schema(schema, None),
            Value::Array(items) => items.iter().try_for_each(|item| self.other(item)),
            _ => Ok(()),
        }
    }

    fn keyword(
        &mut self,
        schema: &Map<String, Value>,
        value: &Value,
        path: Option<&Vec<String>>,
    ) -> Result<(), String> {
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            return Err(format!("{KEYWORD} stands where no argument is"));
        };
        let at = path.join(".");
        let named = value.as_str().filter(|name| !name.is_empty());
        let named = named
            .and_then(|name| HeaderName::from_bytes(format!("{PREFIX}{name}").as_bytes()).ok());
        let header = named.ok_or_else(|| format!("{KEYWORD} of {at} is no name of a header"))?;
        let kind = schema.get("type").and_then(Value::as_str);
        if !matches!(kind, Some("string" | "integer" | "boolean")) {
            return Err(format!("{KEYWORD} of {at} is for no text, integer or boolean"));
        }
        if !self.names.insert(header.clone()) {
            return Err(format!("{KEYWORD} of {at} is there twice"));
        }
        self.found.push(Mirror { path: path.clone(), header });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_go_into_the_headers_that_the_schema_names() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "data": {"type": "string", "default": {"x-mcp-header": 5}},
        }});
        let mut pages = [json!({"tools": [{"name": "t", "inputSchema": schema}, {"name": "u"}]})];
        let (mirrors, refused) = learn(&mut pages);
        assert!(refused.is_empty(), "{refused:?}");
        let headers = mirrors.of("t", &json!({"region": "eu", "deep": {"n": 5}, "data": "x"}));
        let headers: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(headers, ["mcp-param-region: eu", "mcp-param-n: 5"]);
        assert!(mirrors.of("t", &json!({"region": null})).is_empty());
        assert!(mirrors.of("u", &json!({"region": "eu"})).is_empty());
    }

    #[test]
    fn a_tool_that_asks_for_it_wrongly_is_taken_out() {
        let with = |property: Value| json!({"properties": {"a": property}});
        let schemas = [
            with(json!({"type": "string", "x-mcp-header": ""})),
            with(json!({"type": "string", "x-mcp-header": "a b"})),
            with(json!({"type": "string", "x-mcp-header": 5})),
            with(json!({"type": "number", "x-mcp-header": "A"})),
            with(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}})),
            json!({"x-mcp-header": "A"}),
            json!({"properties": {
                "a": {"type": "string", "x-mcp-header": "A"},
                "b": {"type": "string", "x-mcp-header": "a"},
            }}),
        ];
        for schema in schemas {
            let mut pages = [json!({"tools": [{"name": "t", "inputSchema": schema}]})];
            let (_, refused) = learn(&mut pages);
            assert_eq!(refused.len(), 1, "{schema}");
            assert_eq!(pages[0]["tools"], json!([]), "{schema}");
        }
    }
}
