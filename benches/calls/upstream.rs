//! The smallest MCP server there is: one tool, answered at once. Called directly it is what the
//! gateway is compared with.

use std::io::{self, BufRead as _, Write as _};

use serde_json::{Value, json};

/// How long the large result is.
const LARGE_BYTES: usize = 1 << 20;

/// The first argument that makes this program the server.
pub(crate) const ROLE: &str = "__upstream";

/// Serves over standard input and output until the input ends.
pub(crate) fn run() -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let message: Value = serde_json::from_slice(&line)?;
        line.clear();
        let Some(id) = message.get("id") else { continue };
        let reply = match answer(&message) {
            Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            None => {
                let error = json!({"code": -32601, "message": "there is no such method"});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        };
        let mut bytes = serde_json::to_vec(&reply)?;
        bytes.push(b'\n');
        output.write_all(&bytes)?;
        output.flush()?;
    }
    Ok(())
}

fn answer(message: &Value) -> Option<Value> {
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"},
        }),
        "ping" => json!({}),
        "tools/list" => {
            let text = json!({"type": "string"});
            let schema =
                json!({"type": "object", "properties": {"text": text}, "required": ["text"]});
            let any = json!({"type": "object"});
            json!({"tools": [
                {"name": "echo", "description": "Says it again.", "inputSchema": schema},
                {"name": "large", "description": "Has much to say.", "inputSchema": any},
            ]})
        }
        "tools/call" if message["params"]["name"] == "large" => {
            let blob = "A".repeat(LARGE_BYTES);
            let resource = json!({"uri": "bench://large", "blob": blob});
            json!({"content": [{"type": "resource", "resource": resource}]})
        }
        "tools/call" => {
            let text = &message["params"]["arguments"]["text"];
            json!({"content": [{"type": "text", "text": text}]})
        }
        _ => return None,
    };
    Some(result)
}
