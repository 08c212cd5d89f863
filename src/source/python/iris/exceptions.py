"""What tools raise and what is raised at them."""


class IrisError(Exception):
    """The base of all errors here; keyword arguments say what it is about."""

    def __init__(self, message: str = "", **context: object) -> None:
        super().__init__(message)
        self.message = message
        self.context = context

    def __str__(self) -> str:
        if not self.context:
            return self.message
        about = ", ".join(f"{key}={value}" for key, value in self.context.items())
        return f"{self.message} (Context: {about})"


class IrisToolError(IrisError):
    """Something is wrong with a tool."""


class IrisToolValidationError(IrisToolError):
    """A tool cannot accept its arguments, or cannot be defined like this."""


class IrisToolExecutionError(IrisToolError):
    """A tool has failed."""


class IrisToolNotFoundError(IrisToolError):
    """There is no tool of this name."""


class IrisToolRegistrationError(IrisToolError):
    """A tool cannot be registered."""
