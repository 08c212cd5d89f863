//! What a server lists, as tools that can be published.
//!
//! Each tool stands for itself: one that cannot be used is left out with a diagnostic that names
//! it and the reason, and the others stay. What is safe to put right is put right. A schema of an
//! older dialect is published as the equivalent 2020-12 schema. Nothing is ever fetched.

mod convert;
mod cost;
mod dialect;
mod fields;
mod pointer;
mod scan;
mod schema;

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::document::hint;
use crate::source::upstream::config::Filter;
use crate::source::upstream::diagnostic::{Diagnostic, MCP_TOOL_INVALID, Severity, Stage};
use crate::source::upstream::name::public_name;
use crate::tool::InputSchema;

use self::schema::{Reason, cut};

pub use self::schema::OutputSchema;

/// How many notes on one schema are told.
const SHOWN_NOTES: usize = 5;

/// How many tools that the operator does not want are named.
const SHOWN_HIDDEN: usize = 20;

/// The tools of a server.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Those that can be published, in the server's order.
    pub tools: Vec<Entry>,
    /// What was left out or changed, in the same order.
    pub diagnostics: Vec<Diagnostic>,
}

/// A tool of a server.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name the server gives it.
    pub wire_name: String,
    /// The name it has here, unless that is taken.
    pub public_name: String,
    /// The tool as its server lists it, but for what had to be put right.
    pub raw: Arc<Map<String, Value>>,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Its description, or one made of its name.
    pub description: String,
    /// The shape of its arguments.
    pub input_schema: InputSchema,
    /// The shape of its structured result, if it promises one.
    pub output_schema: Option<OutputSchema>,
    /// Whether the server says that the tool changes nothing.
    pub read_only_hint: bool,
}

/// Makes the catalog of a server from the results of `tools/list`, page by page.
pub fn build(server: &str, filter: &Filter, pages: &[Value]) -> Catalog {
    let mut builder = Builder {
        server,
        filter,
        seen: HashSet::new(),
        hidden: Vec::new(),
        number: 0,
        catalog: Catalog::default(),
    };
    for page in pages {
        match page.get("tools") {
            Some(Value::Array(tools)) => tools.iter().for_each(|tool| builder.add(tool)),
            _ => builder.report(Severity::Error, None, None, "a page of the list has no tools"),
        }
    }
    builder.tell_of_filter();
    builder.catalog
}

/// Returns whether two catalogs have the same tools, as their server lists them.
pub(super) fn is_same(some: &[Entry], others: &[Entry]) -> bool {
    let equal = |(one, other): (&Entry, &Entry)| one.raw == other.raw;
    some.len() == others.len() && some.iter().zip(others).all(equal)
}

struct Builder<'a> {
    server: &'a str,
    filter: &'a Filter,
    seen: HashSet<String>,
    hidden: Vec<String>,
    number: usize,
    catalog: Catalog,
}

impl Builder<'_> {
    fn add(&mut self, tool: &Value) {
        self.number += 1;
        let Value::Object(tool) = tool else {
            let message = format!("entry {} of the list is no object, so no tool", self.number);
            return self.report(Severity::Error, None, None, message);
        };
        let wire_name = match tool.get("name") {
            Some(Value::String(name)) if !name.is_empty() => name.clone(),
            _ => {
                let message = format!("entry {} of the list has no name", self.number);
                return self.report(Severity::Error, None, Some("name"), message);
            }
        };
        // What is not wanted is not looked at, so it cannot be complained about.
        if !self.filter.admits(&wire_name) {
            return self.hidden.push(wire_name);
        }
        if !self.seen.insert(wire_name.clone()) {
            let message = "the tool is listed twice; the first one counts";
            return self.report(Severity::Warning, Some(&wire_name), Some("name"), message);
        }
        if let Some(entry) = self.entry(&wire_name, tool.clone()) {
            self.catalog.tools.push(entry);
        }
    }

    /// Says which tools the operator's filter hides, and which of its names are no tool's.
    fn tell_of_filter(&mut self) {
        if !self.hidden.is_empty() {
            let shown = self.hidden.iter().take(SHOWN_HIDDEN).map(|name| cut(name));
            let shown = shown.collect::<Vec<_>>().join(", ");
            let rest = self.hidden.len().saturating_sub(SHOWN_HIDDEN);
            let more = if rest == 0 { String::new() } else { format!(" and {rest} more") };
            let message = format!("not wanted by enabled_tools or disabled_tools: {shown}{more}");
            self.report(Severity::Info, None, None, message);
        }
        let Filter { enabled, disabled } = self.filter;
        let named = [
            ("enabled_tools", enabled.as_deref().unwrap_or_default()),
            ("disabled_tools", disabled),
        ];
        for (field, names) in named {
            for name in names {
                let listed = || self.seen.iter().chain(&self.hidden).map(String::as_str);
                if listed().any(|listed| listed == name) {
                    continue;
                }
                let near = hint::nearest(name, listed());
                let hint = near.map(|near| format!("; did you mean `{}`?", cut(near)));
                let message = format!(
                    "{field} names `{}`, which is no tool of this server{}",
                    cut(name),
                    hint.unwrap_or_default()
                );
                self.report(Severity::Warning, None, Some(field), message);
            }
        }
    }

    fn entry(&mut self, wire_name: &str, mut raw: Map<String, Value>) -> Option<Entry> {
        let input = match schema::input(raw.get("inputSchema")) {
            Ok(input) => input,
            Err(reason) => {
                let message = format!("the tool is left out: {reason}");
                self.report(Severity::Error, Some(wire_name), Some("input_schema"), message);
                return None;
            }
        };
        if !input.notes.is_empty() {
            let message = told(&input.notes);
            self.report(Severity::Info, Some(wire_name), Some("input_schema"), message);
        }
        if input.changed {
            raw.insert("inputSchema".to_owned(), Value::Object(input.document));
        }
        let output_schema = self.output_schema(wire_name, &mut raw);
        for (field, message) in fields::tidy(&mut raw) {
            self.report(Severity::Warning, Some(wire_name), Some(field), message);
        }
        let text = |value: Option<&Value>| {
            value.and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
        };
        let annotation = |name: &str| raw.get("annotations").and_then(|hints| hints.get(name));
        let fallback = || format!("MCP tool {wire_name} from {}", self.server);
        Some(Entry {
            wire_name: wire_name.to_owned(),
            public_name: public_name(self.server, wire_name),
            title: text(raw.get("title")).or_else(|| text(annotation("title"))),
            description: text(raw.get("description")).unwrap_or_else(fallback),
            input_schema: input.compiled,
            output_schema,
            read_only_hint: annotation("readOnlyHint") == Some(&Value::Bool(true)),
            raw: Arc::new(raw),
        })
    }

    /// Prepares the schema of the result; one that cannot be used is dropped, the tool stays.
    fn output_schema(
        &mut self,
        wire_name: &str,
        raw: &mut Map<String, Value>,
    ) -> Option<OutputSchema> {
        let schema = raw.get("outputSchema")?;
        if schema.is_null() {
            raw.shift_remove("outputSchema");
            return None;
        }
        let output = match schema::output(schema) {
            Ok(output) => output,
            Err(reason) => {
                raw.shift_remove("outputSchema");
                let message = format!("the output schema is dropped: {reason}");
                self.report(Severity::Warning, Some(wire_name), Some("output_schema"), message);
                return None;
            }
        };
        if output.changed {
            raw.insert("outputSchema".to_owned(), Value::Object(output.document));
        }
        if !output.notes.is_empty() {
            let message = told(&output.notes);
            self.report(Severity::Info, Some(wire_name), Some("output_schema"), message);
        }
        Some(output.compiled)
    }

    fn report(
        &mut self,
        severity: Severity,
        wire_name: Option<&str>,
        field: Option<&str>,
        message: impl Into<String>,
    ) {
        self.catalog.diagnostics.push(Diagnostic {
            server: self.server.to_owned(),
            stage: Stage::Catalog,
            code: MCP_TOOL_INVALID,
            severity,
            wire_name: wire_name.map(cut),
            field: field.map(str::to_owned),
            message: message.into(),
            place: None,
        });
    }
}

/// Joins notes to a message that stays readable.
fn told(notes: &[String]) -> String {
    let shown = &notes[..notes.len().min(SHOWN_NOTES)];
    let rest = notes.len() - shown.len();
    let more = if rest == 0 { String::new() } else { format!("; and {rest} more like it") };
    format!("{}{more}", shown.join("; "))
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
