//! What a call comes to: blocks for the model, or a failure with a code.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

/// Arguments that a tool cannot accept.
pub const VALIDATION_ERROR: ErrorCode = ErrorCode::new("VALIDATION_ERROR");
/// A failure of the body that has no code of its own.
pub const EXECUTION_ERROR: ErrorCode = ErrorCode::new("EXECUTION_ERROR");

/// The result of a call, successful or not.
#[derive(Clone, Debug, Default)]
pub struct ToolResult {
    /// The call it answers; the executor sets it.
    pub call_id: String,
    /// The name the caller used; the executor sets it.
    pub tool_name: String,
    /// What the model gets when there is no error, in order.
    pub content: Vec<Block>,
    /// Why the call failed, if it did.
    pub error: Option<Failure>,
    /// Structured data for a host; not shown to the model.
    pub data: Map<String, Value>,
    /// A file that holds the result, or more of it.
    pub artifact: Option<Artifact>,
    /// Measurements.
    pub stats: Map<String, Value>,
    /// Anything else a host may want to know.
    pub metadata: Map<String, Value>,
    /// What after-hooks had to say, in order; only the executor's may stand here.
    pub hook_feedback: Vec<String>,
    /// The upstream's own result, while nothing has replaced it; it goes out as it came.
    pub native: Option<Arc<Map<String, Value>>>,
}

/// One piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Text for the model.
    Text(String),
    /// An image for the model.
    Image {
        /// The media type, by content.
        mime_type: String,
        /// The image, in base64.
        data: Arc<str>,
    },
}

/// Why a call failed, as the model reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code; part of the contract.
    pub code: ErrorCode,
    /// What happened and what to do.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Facts for a program.
    pub details: Map<String, Value>,
}

/// The code of a failure: upper-case words joined by `_`; the set is open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(Cow<'static, str>);

/// A file kept beside a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Where the native or published file is.
    pub path: String,
    /// Its media type.
    pub mime_type: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// A short part of it.
    pub preview: String,
    /// Where the whole model text is, when that was saved.
    pub text_path: Option<String>,
}

impl ToolResult {
    /// Makes a successful result of one text block; an empty text makes no block.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        let content = if text.is_empty() { Vec::new() } else { vec![Block::Text(text)] };
        Self { content, ..Self::default() }
    }

    /// Returns whether the call failed.
    pub fn is_error(&self) -> bool {
        self.error.is_some()
    }

    /// Returns the blocks the model gets.
    ///
    /// For a failure that is `Error[CODE]: message` and the images of the content; then every
    /// piece of hook feedback.
    pub fn model_blocks(&self) -> Vec<Block> {
        let mut blocks = match &self.error {
            Some(failure) => {
                let images =
                    self.content.iter().filter(|block| matches!(block, Block::Image { .. }));
                std::iter::once(Block::Text(failure.to_string())).chain(images.cloned()).collect()
            }
            None => self.content.clone(),
        };
        blocks.extend(
            self.hook_feedback.iter().map(|text| Block::Text(format!("[Hook feedback]\n{text}"))),
        );
        blocks
    }

    /// Returns the text of [`model_blocks`](Self::model_blocks), joined by line feeds.
    pub fn model_content(&self) -> String {
        let blocks = self.model_blocks();
        let texts: Vec<&str> = blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text(text) => Some(text.as_str()),
                Block::Image { .. } => None,
            })
            .collect();
        texts.join("\n")
    }
}

impl Failure {
    /// Makes a failure that will not go away by itself.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: false, details: Map::new() }
    }

    /// Adds a fact for programs.
    #[must_use]
    pub fn with_detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Says that the same call may succeed later.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }
}

impl From<Failure> for ToolResult {
    fn from(failure: Failure) -> Self {
        Self { error: Some(failure), ..Self::default() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error[{}]: {}", self.code, self.message)
    }
}

impl ErrorCode {
    /// Names a code that is known when the program is built.
    pub const fn new(code: &'static str) -> Self {
        Self(Cow::Borrowed(code))
    }

    /// Takes a code that somebody else made.
    pub fn named(code: impl Into<String>) -> Self {
        Self(Cow::Owned(code.into()))
    }

    /// Returns the code as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Block {
        Block::Image { mime_type: "image/png".into(), data: "AA==".into() }
    }

    #[test]
    fn ex_1_1_an_error_is_its_code_and_message() {
        let result = ToolResult::from(Failure::new(ErrorCode::new("NOT_FOUND"), "unknown tool: x"));
        assert_eq!(result.model_content(), "Error[NOT_FOUND]: unknown tool: x");
    }

    #[test]
    fn ex_1_2_feedback_follows_the_content() {
        let mut result = ToolResult::text("16");
        result.hook_feedback.push("explain".into());
        assert_eq!(result.model_content(), "16\n[Hook feedback]\nexplain");
    }

    #[test]
    fn ex_1_3_an_error_keeps_images_and_drops_texts() {
        let mut result = ToolResult::from(Failure::new(ErrorCode::new("E1"), "no"));
        result.content = vec![Block::Text("a".into()), image(), Block::Text("b".into())];
        assert_eq!(result.model_blocks(), [Block::Text("Error[E1]: no".into()), image()]);
    }
}
