//! JSON pointers, as text and within URI fragments (RFC 6901).

/// Returns the pointer of the member `token` of what `parent` points to.
pub(super) fn child(parent: &str, token: &str) -> String {
    format!("{parent}/{}", escape(token))
}

/// Writes a token as it stands in a pointer.
pub(super) fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

/// Reads a token as it stands in a fragment: percent-encoded, then escaped.
pub(super) fn decode(token: &str) -> String {
    percent_decode(token).replace("~1", "/").replace("~0", "~")
}

/// Reads percent-encoded text; a `%` that encodes nothing is itself.
pub(super) fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let encoded = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match encoded.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
