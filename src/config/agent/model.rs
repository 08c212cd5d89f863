//! `model`: which model leads the conversation, as a word or with its options.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::text::Text;
use super::untouched::{Untouched, WordOrMapping};

/// A model; checked, and not used by a tool server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Model;

/// A model with options for its requests.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModelObject {
    /// Who runs it.
    provider: Text,
    /// What its provider calls it.
    name: Text,
    /// The form of requests.
    api_style: Option<ApiStyle>,
    /// The address of the provider.
    base_url: Option<String>,
    /// How varied answers are.
    temperature: Option<f64>,
    /// How varied answers are.
    top_p: Option<f64>,
    /// The longest answer.
    max_tokens: Option<u64>,
    /// How long a request may take, in seconds.
    timeout: Option<f64>,
    /// Which tools the model must use: `auto`, `none`, `required`, or a mapping.
    tool_choice: Option<WordOrMapping>,
    /// The form of answers: `text`, `json_object`, or a mapping.
    response_format: Option<WordOrMapping>,
    /// Options of this provider alone.
    provider_options: Option<Untouched>,
    /// Notes that are not sent.
    metadata: Option<Untouched>,
}

/// The form of requests.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ApiStyle {
    /// The responses API.
    Responses,
    /// The chat completions API.
    ChatCompletions,
}

impl<'de> Deserialize<'de> for Model {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Model;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`provider/name` or a mapping")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Model, E> {
                match text.split_once('/') {
                    Some((provider, name))
                        if !provider.trim().is_empty() && !name.trim().is_empty() =>
                    {
                        Ok(Model)
                    }
                    _ => Err(E::custom("expected `provider/name`, such as `openai/gpt-4o-mini`")),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Model, A::Error> {
                ModelObject::deserialize(MapAccessDeserializer::new(map)).map(|_| Model)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Model {
    fn schema_name() -> Cow<'static, str> {
        "Model".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "pattern": r"^[^/]*[^\s/][^/]*/[\s\S]*\S" },
                generator.subschema_for::<ModelObject>(),
            ]
        })
    }
}
