import json, sys
hello = json.loads(sys.stdin.buffer.readline())
scope = {"__name__": "iris_mcp_worker", "__file__": "<iris-mcp>"}
exec(compile(hello.pop("source"), "<iris-mcp>", "exec"), scope)
scope["main"](hello)
