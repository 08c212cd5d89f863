//! What a call comes to: blocks for the model, or a failure with a code.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::native::Native;

/// Arguments that a tool cannot accept.
pub const VALIDATION_ERROR: ErrorCode = ErrorCode::new("VALIDATION_ERROR");
/// A failure of the body that has no code of its own.
pub const EXECUTION_ERROR: ErrorCode = ErrorCode::new("EXECUTION_ERROR");
/// The call took longer than the operator allows.
pub const TOOL_TIMEOUT: ErrorCode = ErrorCode::new("TOOL_TIMEOUT");

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
    pub native: Option<Arc<Native>>,
}

/// One piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Text for the model.
    Text(String),
    /// An image for the model.
    Image(Image),
}

/// An image, and the files that hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The media type of what the model gets.
    pub mime_type: String,
    /// What the model gets, in base64.
    pub data: Arc<str>,
    /// What people call it.
    pub name: Option<String>,
    /// The file as it came, and the one the model gets, which may be the same; where they are kept.
    pub files: Option<Arc<(ImageFile, ImageFile)>>,
}

/// A file with an image in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFile {
    /// Where it is: from the workspace, where file tools can read it, else its address.
    pub place: String,
    /// Its media type, by content.
    pub mime_type: String,
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
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
    /// Where the native or published file is, on this machine.
    pub path: String,
    /// The address that clients of the session read it by.
    pub uri: Option<String>,
    /// What people call it.
    pub name: Option<String>,
    /// Its media type.
    pub mime_type: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// A short part of it.
    pub preview: String,
    /// Where the whole model text is, when that was saved.
    pub text_path: Option<String>,
    /// The address of that.
    pub text_uri: Option<String>,
    /// The words in the result's text that say where this is; not the tool's own.
    pub note: Option<String>,
    /// Keeps the files while the result is on its way.
    pub hold: Vec<Hold>,
}

/// Keeps a file from being removed to make room for others, as long as this lives.
#[derive(Clone, Debug)]
pub struct Hold(#[expect(dead_code, reason = "being open is all it is for")] Arc<File>);

impl Hold {
    /// Holds on to an open file, whose lock says that it is in use.
    pub fn new(file: File) -> Self {
        Self(Arc::new(file))
    }
}

/// What is held changes nothing about what is said.
impl PartialEq for Hold {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Hold {}

impl Image {
    /// Makes an image that is kept in no file.
    pub fn new(mime_type: impl Into<String>, data: impl Into<Arc<str>>) -> Self {
        Self { mime_type: mime_type.into(), data: data.into(), name: None, files: None }
    }

    /// Returns the line that stands for the image where only text is. (EX-L9.1)
    pub fn entry(&self) -> String {
        let name = self.name.as_deref().unwrap_or("unnamed");
        match self.files.as_deref() {
            Some((original, model)) => format!("[image {name}] original={original}; model={model}"),
            None => format!("[image {name}] ({})", self.mime_type),
        }
    }
}

impl fmt::Display for ImageFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, mime_type, width, height } = self;
        write!(f, "{place} ({mime_type}, {width}x{height})")
    }
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
                let images = self.content.iter().filter(|block| matches!(block, Block::Image(_)));
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
        self.texts(|_| None).join("\n")
    }

    /// Returns the texts of [`model_blocks`](Self::model_blocks), none of them copied where it is
    /// there already; `of_image` says what stands for an image.
    pub fn texts(&self, of_image: impl Fn(&Image) -> Option<String>) -> Vec<Cow<'_, str>> {
        let mut texts: Vec<Cow<'_, str>> = Vec::new();
        texts.extend(self.error.as_ref().map(|failure| failure.to_string().into()));
        texts.extend(self.content.iter().filter_map(|block| match block {
            Block::Text(text) => self.error.is_none().then(|| text.as_str().into()),
            Block::Image(image) => of_image(image).map(Cow::from),
        }));
        let feedback = self.hook_feedback.iter();
        texts.extend(feedback.map(|text| Cow::from(format!("[Hook feedback]\n{text}"))));
        texts
    }

    /// Takes the text of [`model_content`](Self::model_content) out, leaving empty texts behind:
    /// a long one is not to be there twice.
    pub fn take_model_content(&mut self) -> String {
        if self.is_error() {
            return self.model_content();
        }
        let mut whole: Option<String> = None;
        for block in &mut self.content {
            let Block::Text(text) = block else { continue };
            let text = std::mem::take(text);
            match &mut whole {
                Some(whole) => whole.extend(["\n", &text]),
                None => whole = Some(text),
            }
        }
        let feedback = self.hook_feedback.iter().map(|text| format!("[Hook feedback]\n{text}"));
        feedback
            .fold(whole, |whole, text| match whole {
                Some(whole) => Some(whole + "\n" + &text),
                None => Some(text),
            })
            .unwrap_or_default()
    }

    /// Takes away the words that say where the native result is; the rest is the tool's own.
    #[must_use]
    pub fn without_note(mut self) -> Self {
        let Some(note) = self.artifact.as_mut().and_then(|artifact| artifact.note.take()) else {
            return self;
        };
        let is_note = |block: &Block| matches!(block, Block::Text(text) if text.strip_prefix('\n').unwrap_or(text) == note);
        if let Some(at) = self.content.iter().rposition(is_note) {
            self.content.remove(at);
        }
        if let Some(failure) = &mut self.error
            && let Some(message) = failure.message.strip_suffix(&format!("\n\n{note}"))
        {
            failure.message = message.to_owned();
        }
        self
    }

    /// Returns how many characters [`model_content`](Self::model_content) has.
    pub fn model_chars(&self) -> usize {
        let chars = |text: &str| text.chars().count();
        let (texts, count) = match &self.error {
            Some(failure) => {
                (1, chars("Error[]: ") + chars(failure.code.as_str()) + chars(&failure.message))
            }
            None => self.content.iter().fold((0, 0), |(texts, count), block| match block {
                Block::Text(text) => (texts + 1, count + chars(text)),
                Block::Image(_) => (texts, count),
            }),
        };
        let feedback = self.hook_feedback.iter();
        let (texts, count) = feedback.fold((texts, count), |(texts, count), text| {
            (texts + 1, count + chars("[Hook feedback]\n") + chars(text))
        });
        count + usize::saturating_sub(texts, 1)
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
        Block::Image(Image::new("image/png", "AA=="))
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

    #[test]
    fn ex_l9_1_an_image_is_named_with_its_files() {
        let file = |place: &str, mime_type: &str, width, height| ImageFile {
            place: place.into(),
            mime_type: mime_type.into(),
            width,
            height,
        };
        let mut image = Image::new("image/jpeg", "AA==");
        assert_eq!(image.entry(), "[image unnamed] (image/jpeg)");
        image.name = Some("shot.png".into());
        image.files = Some(Arc::new((
            file("/ws/.iris/image-cache/id_73/ab.original.png", "image/png", 3000, 1500),
            file("/ws/.iris/image-cache/id_73/ab.model.jpg", "image/jpeg", 2000, 1000),
        )));
        assert_eq!(
            image.entry(),
            "[image shot.png] original=/ws/.iris/image-cache/id_73/ab.original.png (image/png, 3000x1500); model=/ws/.iris/image-cache/id_73/ab.model.jpg (image/jpeg, 2000x1000)"
        );
    }

    #[test]
    fn characters_are_counted_as_they_are_joined() {
        let mut result = ToolResult::text("añ");
        result.content.extend([image(), Block::Text(String::new()), Block::Text("☃".into())]);
        result.hook_feedback.push("why".into());
        assert_eq!(result.model_chars(), result.model_content().chars().count());
        assert_eq!(ToolResult::default().model_chars(), 0);
        let failed = ToolResult::from(Failure::new(ErrorCode::new("E1"), "né"));
        assert_eq!(failed.model_chars(), failed.model_content().chars().count());
    }
}
