"""Writes down what Iris makes of the functions in `cases.py`, as JSON.

    PYTHONPATH=<a checkout of github.com/Tsubaki-01/Iris>/src python3.12 tests/python/record.py > tests/python/expected.json

A test runs the same with the names that the gateway ships and compares. What people read is left out: it is Chinese
there, and ours is not. `expected.json` was written by a version from July 2026, which had no schemas by pydantic yet: of
a schema it has the names, the texts and what is required; and it refuses types that later versions know.
"""

import asyncio
import importlib.util
import json
import pathlib
import sys
import tempfile


def told(definition):
    about = definition.model_dump(mode="json")
    about["capabilities"] = sorted(about["capabilities"])
    about["description"] = about["description"].split("\n\n弃用：")[0].split("\n\nDeprecated: ")[0]
    about["deprecation is told"] = about["description"] != definition.description
    schema = about.pop("input_schema")
    about["required"] = sorted(schema["required"])
    about["parameters"] = {name: one.get("description") for name, one in schema["properties"].items()}
    for key in ("preview_mode", "context_retention"):
        about.pop(key, None)
    return about


def called(tool, arguments, context):
    try:
        params = tool.validate_input(arguments)
    except Exception as error:
        return {"refused": "validation" if "Validation" in type(error).__name__ else type(error).__name__}
    seen = params.model_dump(mode="json") if hasattr(params, "model_dump") else params
    try:
        result = asyncio.run(tool.arun(params, context))
    except Exception as error:
        return {"arguments": seen, "raised": "execution" if "Execution" in type(error).__name__ else type(error).__name__}
    content = [block.text for block in result.content]
    return {"arguments": seen, "content": content, "is_error": result.is_error}


def main():
    folder = pathlib.Path(__file__).parent
    spec = importlib.util.spec_from_file_location("cases", folder / "cases.py")
    cases = importlib.util.module_from_spec(spec)
    sys.modules["cases"] = cases
    spec.loader.exec_module(cases)
    from iris.tools import CallableTool, ToolExecutionContext

    found = []
    with tempfile.TemporaryDirectory() as workspace:
        context = ToolExecutionContext(workspace_root=pathlib.Path(workspace), call_id="c", tool_name="t")
        for function, said, calls in cases.CASES:
            try:
                tool = CallableTool(function, **said)
            except Exception as error:
                found.append({"function": function.__name__, "refused": "Validation" in type(error).__name__})
                continue
            outcomes = [called(tool, arguments, context) for arguments in calls]
            found.append({"function": function.__name__, "definition": told(tool.definition), "calls": outcomes})
    json.dump(found, sys.stdout, ensure_ascii=False, indent=1, sort_keys=True)
    print()


main()
