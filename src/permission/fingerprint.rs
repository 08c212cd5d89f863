//! What an approval is bound to.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::tool::Arguments;

/// The parts of a call that an approval holds for.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The arguments after validation.
    pub arguments: &'a Arguments,
    /// The run.
    pub run_id: &'a str,
    /// The session.
    pub session_id: &'a str,
    /// The call.
    pub tool_call_id: &'a str,
    /// The tool's own name.
    pub tool_name: &'a str,
    /// The resolved workspace.
    pub workspace_root: &'a Path,
}

/// Returns the SHA-256, in hex, of the parts as compact JSON with sorted keys.
pub fn fingerprint(parts: Parts<'_>) -> String {
    let Parts { arguments, run_id, session_id, tool_call_id, tool_name, workspace_root } = parts;
    let document = json!({
        "arguments": arguments,
        "run_id": run_id,
        "session_id": session_id,
        "tool_call_id": tool_call_id,
        "tool_name": tool_name,
        "workspace_root": workspace_root.to_string_lossy(),
    });
    digest(&document)
}

/// Returns the SHA-256, in hex, of a document as compact JSON with sorted keys.
pub fn digest(document: &Value) -> String {
    hex(&Sha256::digest(sorted(document).to_string().as_bytes()))
}

/// Returns bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut keys: Vec<&String> = members.keys().collect();
            keys.sort();
            keys.into_iter().map(|key| (key.clone(), sorted(&members[key]))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ex_5_1_the_digest_is_of_sorted_compact_json() {
        let arguments = json!({"content": "hello"}).as_object().unwrap().clone();
        let digest = fingerprint(Parts {
            arguments: &arguments,
            run_id: "run_1",
            session_id: "session_1",
            tool_call_id: "call_1",
            tool_name: "write_note",
            workspace_root: Path::new("/ws"),
        });
        assert_eq!(digest, "b5f3388e411e792e531bee21dbed2380430772a5a90d5af641c0a769a244ea1e");
    }

    #[test]
    fn key_order_does_not_matter_and_values_do() {
        let digest = |arguments: Value| {
            fingerprint(Parts {
                arguments: arguments.as_object().unwrap(),
                run_id: "",
                session_id: "",
                tool_call_id: "",
                tool_name: "",
                workspace_root: Path::new("/"),
            })
        };
        assert_eq!(
            digest(json!({"a": 1, "b": {"c": 2, "d": 3}})),
            digest(json!({"b": {"d": 3, "c": 2}, "a": 1}))
        );
        assert_ne!(digest(json!({"a": 1})), digest(json!({"a": "1"})));
    }
}
