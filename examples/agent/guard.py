"""A hook before calls: it lets files be changed by their endings only."""

from iris.hooks import HookResult, ToolBeforeEvent, ToolBeforeResult


def only_endings(endings: list[str]):
    """Makes the hook; the arguments are the options in the agent file."""

    async def before(event: ToolBeforeEvent) -> HookResult:
        path = str(event.arguments.get("file_path", ""))
        if path.endswith(tuple(endings)):
            return None
        return ToolBeforeResult(deny_reason=f"only files that end with {' or '.join(endings)} are changed here")

    return before
