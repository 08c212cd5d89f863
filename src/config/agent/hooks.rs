//! `hooks` and `middleware`: what has a say before and after calls, and what is wrapped around them.

use schemars::JsonSchema;
use serde::Deserialize;

use super::options::Options;
use super::text::{Positive, Reference, Text};
use crate::document::{Document, DocumentError, path};
use crate::hook;
use crate::source::python;

/// What has a say before or after calls, or hears of runs.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend(
    "if" = {"properties": {"event": {"enum": ["run.started", "run.finished"]}}},
    "then" = {"properties": {"tools": {"type": "null"}}}
))]
pub(super) struct Hook {
    /// What messages call it.
    name: Text,
    /// When it is run.
    event: Event,
    /// What is run.
    handler: Handler,
    /// The tools it is for, by the names they are called by; all, unless said otherwise. Only for
    /// `tool.before` and `tool.after`.
    #[schemars(extend("minItems" = 1))]
    tools: Option<Vec<Text>>,
    /// How long it may take, in seconds; 10 unless said otherwise.
    timeout_seconds: Option<Positive>,
}

/// When a hook is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
enum Event {
    #[serde(rename = "run.started")]
    RunStarted,
    #[serde(rename = "run.finished")]
    RunFinished,
    #[serde(rename = "tool.before")]
    ToolBefore,
    #[serde(rename = "tool.after")]
    ToolAfter,
}

/// What a hook runs.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("allOf" = [
    {
        "if": {"properties": {"type": {"const": "python"}}},
        "then": {
            "required": ["factory"],
            "properties": {"factory": {"type": "string"}, "command": {"type": "null"}}
        }
    },
    {
        "if": {"properties": {"type": {"const": "command"}}},
        "then": {
            "required": ["command"],
            "properties": {
                "command": {"type": "string"},
                "factory": {"type": "null"},
                "options": {"type": "null"}
            }
        }
    }
]))]
struct Handler {
    /// Python or a command.
    r#type: HandlerType,
    /// What makes the handler, for `type: python`.
    factory: Option<Reference>,
    /// What the factory is called with.
    options: Option<Options>,
    /// The command, for `type: command`.
    command: Option<Text>,
}

/// What a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum HandlerType {
    /// What a factory of Python's makes.
    Python,
    /// A command.
    Command,
}

/// What is wrapped around the bodies of tools.
#[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Middleware {
    /// The factories, the outermost first.
    pub(super) tools: Vec<Factory>,
}

/// What makes a middleware.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Factory {
    /// Where it is in Python.
    factory: Reference,
    /// What it is called with.
    options: Option<Options>,
}

impl Middleware {
    /// Returns the factories, the outermost first.
    pub(super) fn factories(&self) -> Vec<python::Factory> {
        let factories = self.tools.iter().enumerate();
        let of = |(number, Factory { factory, options }): (usize, &Factory)| python::Factory {
            place: path::index("middleware.tools", number),
            factory: factory.as_str().to_owned(),
            options: options.clone().unwrap_or_default().0,
        };
        factories.map(of).collect()
    }
}

impl Hook {
    pub(super) fn check(&self, document: &Document, index: usize) -> Result<(), DocumentError> {
        let wrong = |key: &str, message: &str, hint: &str| {
            let path = format!("hooks[{index}].{key}");
            Err(document.error_in(&path, message).with_hint(hint.to_owned()))
        };
        let is_of_tools = matches!(self.event, Event::ToolBefore | Event::ToolAfter);
        match &self.tools {
            Some(_) if !is_of_tools => {
                let message = "only `tool.before` and `tool.after` are about tools";
                return wrong("tools", message, "remove it, or change the event");
            }
            Some(tools) if tools.is_empty() => {
                return wrong("tools", "the list is empty", "name tools, or remove it for all");
            }
            _ => {}
        }
        let Handler { r#type, factory, options, command } = &self.handler;
        match r#type {
            HandlerType::Python if command.is_some() => {
                wrong("handler.command", "with `type: python` there is none", "remove it")
            }
            HandlerType::Python if factory.is_none() => {
                wrong("handler", "the key `factory` is missing", "give it as `module:factory`")
            }
            HandlerType::Command if factory.is_some() => {
                wrong("handler.factory", "with `type: command` there is none", "remove it")
            }
            HandlerType::Command if options.is_some() => {
                wrong("handler.options", "with `type: command` there are none", "remove it")
            }
            HandlerType::Command if command.is_none() => {
                wrong("handler", "the key `command` is missing", "say what to run")
            }
            HandlerType::Python | HandlerType::Command => Ok(()),
        }
    }

    /// Returns what is declared.
    pub(super) fn declared(&self) -> hook::Declared {
        let command = self.handler.command.as_ref();
        let command = command.map(|line| hook::Handler::Command(line.as_str().to_owned()));
        let names = |tools: &Vec<Text>| tools.iter().map(|name| name.as_str().to_owned()).collect();
        hook::Declared {
            name: self.name.as_str().to_owned(),
            event: match self.event {
                Event::RunStarted => hook::Event::RunStarted,
                Event::RunFinished => hook::Event::RunFinished,
                Event::ToolBefore => hook::Event::Before,
                Event::ToolAfter => hook::Event::After,
            },
            tools: self.tools.as_ref().map(names),
            timeout: self.timeout_seconds.map_or(hook::DEFAULT_TIMEOUT, Positive::duration),
            handler: command.unwrap_or(hook::Handler::Python),
        }
    }

    /// Returns what makes the hook of this number, if it is in Python.
    pub(super) fn factory(&self, number: usize) -> Option<python::Factory> {
        let Handler { r#type, factory, options, command: _ } = &self.handler;
        if *r#type == HandlerType::Command {
            return None;
        }
        Some(python::Factory {
            place: format!("{}.handler", path::index("hooks", number)),
            factory: factory.as_ref()?.as_str().to_owned(),
            options: options.clone().unwrap_or_default().0,
        })
    }

    /// Says whether the hook runs a command.
    pub(super) fn is_command(&self) -> bool {
        self.handler.r#type == HandlerType::Command
    }
}
