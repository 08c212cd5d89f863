"""An MCP server over standard streams for measuring: its tools answer with as much as is asked for."""

import json
import sys

OBJECT = {"type": "object"}
BIG = {}


def big(kind, size):
    """Makes a result of about so many bytes: a text, rows, or rows and their text as well."""
    if (kind, size) not in BIG:
        if kind == "text":
            line = 'line with "quotes" and é, as a log has them\n'
            result = {"content": [{"type": "text", "text": line * (size // len(line.encode()))}]}
        else:
            rows = [
                {"id": number, "name": f"item {number}", "price": number / 8, "tags": ["a", "b"], "sold": number % 3 == 0}
                for number in range(size // 80)
            ]
            content = [{"type": "text", "text": json.dumps({"rows": rows})}] if kind == "both" else []
            result = {"content": content, "structuredContent": {"rows": rows}}
        BIG[kind, size] = json.dumps(result, ensure_ascii=False)
    return BIG[kind, size]


def write(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        params, result = message.get("params") or {}, {}
        if message["method"] == "initialize":
            about = {"name": "load", "version": "1"}
            result = {"protocolVersion": params["protocolVersion"], "serverInfo": about, "capabilities": {"tools": {}}}
        elif message["method"] == "tools/list":
            tools = [{"name": name, "inputSchema": OBJECT} for name in ("echo", "fail", "big")]
            tools.append({"name": "promised", "inputSchema": OBJECT, "outputSchema": OBJECT})
            result = {"tools": tools}
        elif message["method"] == "tools/call":
            arguments = params.get("arguments") or {}
            if params["name"] in ("big", "promised"):
                text = big(arguments["kind"], arguments["size"])
                write(f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},"result":{text}}}')
                continue
            text = {"type": "text", "text": json.dumps(arguments)}
            result = {"content": [text], "isError": params["name"] == "fail"}
        elif message["method"] != "ping":
            write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}))
            continue
        write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))


main()
