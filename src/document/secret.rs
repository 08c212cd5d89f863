//! What tells that a text is a secret: the name it is given under, or what it looks like.

/// Mappings whose every value may be a secret.
const MAPPINGS: [&str; 4] = ["env", "environment", "headers", "http_headers"];
/// Words in a key that say that its value is a secret.
const WORDS: [&str; 13] = [
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "secret",
    "secrets",
    "token",
];
/// Two words that say so together, as in `api_key`.
const PAIRS: [&str; 4] = ["api", "access", "private", "signing"];
/// Last words of keys whose values are names of variables or files.
const NAMES: [&str; 5] = ["var", "vars", "file", "folder", "path"];

/// How keys of well-known services begin, and how many more characters they have at least.
const PREFIXES: [(&str, usize); 20] = [
    ("AIza", 12),
    ("AKIA", 12),
    ("ASIA", 12),
    ("eyJ", 12),
    ("ghp_", 4),
    ("gho_", 4),
    ("ghr_", 4),
    ("ghs_", 4),
    ("ghu_", 4),
    ("github_pat_", 4),
    ("glpat-", 4),
    ("pypi-", 40),
    ("rk_live_", 4),
    ("sk-", 6),
    ("sk_live_", 4),
    ("sk_test_", 4),
    ("xoxa-", 4),
    ("xoxb-", 4),
    ("xoxp-", 4),
    ("xoxs-", 4),
];
/// The shortest run of letters and digits that is taken for a key.
const RUN_CHARS: usize = 24;

/// Says whether the value of a key is a secret.
pub fn is_secret(key: &str) -> bool {
    let mut folded = String::new();
    let mut after_small = false;
    for sign in key.chars() {
        if !sign.is_alphanumeric() || (sign.is_uppercase() && after_small) {
            folded.push('_');
        }
        folded.extend(sign.to_lowercase().filter(|sign| sign.is_alphanumeric()));
        after_small = sign.is_lowercase();
    }
    let words: Vec<&str> = folded.split('_').filter(|word| !word.is_empty()).collect();
    let folded = words.join("_");
    let is_name = words.last().is_some_and(|last| NAMES.contains(last));
    // A limit of tokens is another kind of token.
    if is_name || folded == "env_http_headers" || words.first() == Some(&"max") {
        return false;
    }
    let pairs = words.windows(2).any(|two| PAIRS.contains(&two[0]) && two[1] == "key");
    MAPPINGS.contains(&folded.as_str()) || pairs || words.iter().any(|word| WORDS.contains(word))
}

/// Says whether a value is one that holds a secret, whatever its key.
pub fn holds_secret(value: &str) -> bool {
    let is_url = value.contains("://") && value.contains(['@', '?']);
    // An option with its value: `--token=x`, `API_KEY=x`, `Authorization: Bearer x`.
    let named = value.split_once(['=', ':']).is_some_and(|(name, rest)| {
        !rest.is_empty() && !name.contains(['/', '$', '{']) && is_secret(name)
    });
    is_url || named
}

/// Returns a text with stars for whatever looks like a secret in it.
pub fn without_secrets(text: &str) -> String {
    let mut shown: Vec<char> = text.chars().collect();
    let shaped = shaped(&shown);
    if shaped.is_empty() {
        return text.to_owned();
    }
    for (from, to) in shaped {
        shown[from..to].fill('*');
    }
    shown.into_iter().collect()
}

/// Returns where in a line something looks like a secret.
pub(super) fn shaped(line: &[char]) -> Vec<(usize, usize)> {
    let is_word = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+');
    let mut found = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let end = at + line[at..].iter().take_while(|c| is_word(c)).count();
        if end == at {
            at += 1;
            continue;
        }
        if is_shaped(&line[at..end]) {
            // The other parts of a token, and the padding of Base64.
            let more = line[end..].iter().take_while(|c| is_word(c) || matches!(c, '.' | '='));
            found.push((at, end + more.count()));
        }
        at = found.last().map_or(end, |(_, to)| end.max(*to));
    }
    found
}

/// Says whether a word looks like a secret: by how it begins, or as nobody would write it.
fn is_shaped(word: &[char]) -> bool {
    let text: String = word.iter().collect();
    let is_known = PREFIXES
        .iter()
        .any(|(prefix, least)| text.strip_prefix(prefix).is_some_and(|rest| rest.len() >= *least));
    let has = |text: &str, kind: fn(&char) -> bool| text.chars().any(|c| kind(&c));
    let mixes = |text: &str| {
        has(text, char::is_ascii_digit)
            && has(text, char::is_ascii_uppercase)
            && has(text, char::is_ascii_lowercase)
    };
    // Names are joined by `-` and `_`, too, but are seldom written in both cases.
    let is_run = |part: &str| {
        part.len() >= RUN_CHARS
            && has(part, char::is_ascii_digit)
            && has(part, char::is_ascii_alphabetic)
    };
    is_known || (text.len() >= RUN_CHARS && mixes(&text)) || text.split(['-', '_']).any(is_run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_key_is_starred_wherever_it_stands() {
        for key in [
            "ghp_abcd1234",
            "github_pat_11ABC",
            "sk-ant-api03-abc",
            "sk-live-whatever",
            "xoxb-1234-abcd",
            "AKIAIOSFODNN7EXAMPLE",
            "AIzaSyA1234567890abc",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
            "0123456789abcdef0123456789abcdef",
            "dGhpc0lzQVZlcnlTZWNyZXRLZXkx==",
            "aB3-dE6_gH9-jK2_mN5-pQ8_",
        ] {
            let stars = "*".repeat(key.len());
            assert_eq!(
                without_secrets(&format!("found `{key}` here")),
                format!("found `{stars}` here")
            );
            assert_eq!(without_secrets(&format!("x={key}")), format!("x={stars}"));
        }
    }

    #[test]
    fn what_people_write_is_shown() {
        for text in [
            "claude-sonnet-4-5-20250929",
            "@modelcontextprotocol/server-filesystem@2025.8.21",
            "/home/me/projects2/iris-agent/src/main.rs",
            "GITHUB_PERSONAL_ACCESS_TOKEN_2",
            "internationalizationsettings",
            "https://example.com:8080/mcp",
            "task-and-risk-based",
            "127.0.0.1:8808",
        ] {
            assert_eq!(without_secrets(text), text);
        }
    }
}
