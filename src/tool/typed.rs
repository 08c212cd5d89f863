//! Tools for people to write: a typed input, an ordinary async function.

use async_trait::async_trait;
use serde::de::DeserializeOwned;

use crate::tool::result::VALIDATION_ERROR;
use crate::tool::schema::lax;
use crate::tool::{
    Arguments, AutoAllow, CallContext, CallTraits, Failure, Interrupt, Route, Tool, ToolDefinition,
    ToolResult, Valid,
};

/// A tool whose arguments are a type; wrap it in [`Typed`] to register it.
///
/// ```
/// use iris_mcp::tool::{CallContext, InputSchema, ToolDefinition, ToolError, ToolName, ToolResult, TypedTool};
///
/// #[derive(Debug)]
/// struct Shout(ToolDefinition);
///
/// #[derive(serde::Deserialize)]
/// struct Input {
///     text: String,
/// }
///
/// #[async_trait::async_trait]
/// impl TypedTool for Shout {
///     type Input = Input;
///
///     fn definition(&self) -> &ToolDefinition {
///         &self.0
///     }
///
///     async fn run(&self, input: &Input, _cx: &CallContext) -> Result<ToolResult, ToolError> {
///         Ok(ToolResult::text(input.text.to_uppercase()))
///     }
/// }
///
/// let schema = serde_json::json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}});
/// let schema = InputSchema::compile(schema.as_object().unwrap().clone())?;
/// let shout = Shout(ToolDefinition::new(ToolName::parse("shout")?, "Says it louder.", schema)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[async_trait]
pub trait TypedTool: Send + Sync + std::fmt::Debug {
    /// The arguments, after coercion by the schema.
    type Input: DeserializeOwned + Send + Sync + 'static;

    /// Returns what clients and policies may know of the tool.
    fn definition(&self) -> &ToolDefinition;

    /// Returns which way a call takes through the executor.
    fn route(&self) -> Route {
        Route::Ordinary
    }

    /// Returns the mark of the built-ins that are allowed by what they are.
    fn auto_allow(&self) -> Option<AutoAllow> {
        None
    }

    /// Returns what this call does; by default, what the capabilities imply.
    fn traits(&self, _input: &Self::Input) -> CallTraits {
        self.definition().traits()
    }

    /// Checks what a schema cannot say.
    fn check(&self, _input: &Self::Input) -> Result<(), Failure> {
        Ok(())
    }

    /// Runs the body.
    async fn run(&self, input: &Self::Input, cx: &CallContext) -> Result<ToolResult, ToolError>;
}

/// How the body of a [`TypedTool`] ends without a result of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolError {
    /// An ordinary failure, for the model to read.
    Failed(Failure),
    /// A control condition.
    Interrupted(Interrupt),
}

/// Makes a [`Tool`] of a [`TypedTool`].
///
/// Arguments are coerced by the schema, checked against it, and only then parsed.
#[derive(Debug)]
pub struct Typed<T>(pub T);

#[async_trait]
impl<T: TypedTool> Tool for Typed<T> {
    fn definition(&self) -> &ToolDefinition {
        self.0.definition()
    }

    fn route(&self) -> Route {
        self.0.route()
    }

    fn auto_allow(&self) -> Option<AutoAllow> {
        self.0.auto_allow()
    }

    async fn validate(&self, raw: Arguments, _cx: &CallContext) -> Result<Valid, Failure> {
        let definition = self.definition();
        let refused = |problem: String| {
            Failure::new(
                VALIDATION_ERROR,
                format!("invalid arguments for {}: {problem}", definition.name),
            )
        };
        let arguments = lax::coerce(definition.input_schema.document(), raw);
        let arguments = definition.input_schema.check(arguments).map_err(refused)?;
        let input: T::Input = serde_path_to_error::deserialize(&arguments)
            .map_err(|error| refused(error.to_string()))?;
        self.0.check(&input)?;
        let traits = self.0.traits(&input);
        Ok(Valid::new(arguments, traits).with_payload(input))
    }

    async fn run(&self, call: &Valid, cx: &CallContext) -> Result<ToolResult, Interrupt> {
        let Some(input) = call.payload::<T::Input>() else {
            unreachable!("validate is the only maker of this tool's arguments")
        };
        match self.0.run(input, cx).await {
            Ok(result) => Ok(result),
            Err(ToolError::Failed(failure)) => Ok(failure.into()),
            Err(ToolError::Interrupted(interrupt)) => Err(interrupt),
        }
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Interrupt> for ToolError {
    fn from(interrupt: Interrupt) -> Self {
        Self::Interrupted(interrupt)
    }
}
