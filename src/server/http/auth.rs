//! Who may come: named bearer tokens, of which only hashes are kept.

use std::fmt;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{Shared, admit, refuse};
use crate::tool::Principal;

/// The tokens of a token file.
///
/// A line is a name, white space and `sha256:` with the token's SHA-256 in hex; `#` begins a
/// comment. The name is the principal of whoever brings the token.
#[derive(Clone)]
pub struct Tokens(Arc<[Token]>);

struct Token {
    name: Principal,
    hash: [u8; 32],
}

/// Why a token file cannot be used; never shows a hash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokensError {
    /// A line has another form.
    #[error(
        "line {line}: expected `NAME sha256:HASH`, where HASH is what `printf %s TOKEN | sha256sum` prints"
    )]
    Line {
        /// The line's number.
        line: usize,
    },
    /// Two lines have one name.
    #[error("line {line}: the name `{name}` is there twice")]
    Twice {
        /// The second line's number.
        line: usize,
        /// The name.
        name: String,
    },
    /// There is no token, so nobody could come.
    #[error("there is no token in it")]
    Empty,
}

impl Tokens {
    /// Reads the text of a token file.
    pub fn parse(text: &str) -> Result<Self, TokensError> {
        let mut tokens: Vec<Token> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let mut words = line.split_whitespace();
            let (Some(name), Some(hash), None) = (words.next(), words.next(), words.next()) else {
                return Err(TokensError::Line { line: line_number });
            };
            let hash = hash.strip_prefix("sha256:").and_then(unhex);
            let hash = hash.ok_or(TokensError::Line { line: line_number })?;
            if tokens.iter().any(|token| token.name.as_str() == name) {
                return Err(TokensError::Twice { line: line_number, name: name.to_owned() });
            }
            tokens.push(Token { name: Principal::new(name), hash });
        }
        if tokens.is_empty() { Err(TokensError::Empty) } else { Ok(Self(tokens.into())) }
    }

    /// Returns who brings these headers.
    pub(super) fn principal_of(&self, headers: &HeaderMap) -> Option<Principal> {
        let header = headers.get(header::AUTHORIZATION)?.as_bytes();
        let (scheme, token) = header.split_at_checked(7)?;
        if !scheme.eq_ignore_ascii_case(b"bearer ") {
            return None;
        }
        let hash: [u8; 32] = Sha256::digest(token.trim_ascii()).into();
        // Every token is compared, and each in constant time, so that timing tells nothing.
        let mut found = None;
        for token in self.0.iter() {
            if bool::from(token.hash.ct_eq(&hash)) {
                found = Some(token.name.clone());
            }
        }
        found
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|token| token.name.as_str())).finish()
    }
}

/// Lets a request through with its principal, or answers 401 (RFC 6750 §3).
pub(super) async fn require(
    State(shared): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(tokens) = &shared.tokens else {
        return admit(request, next).await;
    };
    let Some(principal) = tokens.principal_of(request.headers()) else {
        let mut response = refuse(StatusCode::UNAUTHORIZED, "a known bearer token is needed");
        let challenge = HeaderValue::from_static("Bearer realm=\"iris-mcp\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        return response;
    };
    request.extensions_mut().insert(principal);
    admit(request, next).await
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok()))
        .collect();
    let digits = digits?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    if digits.len() == 64 { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: &str = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90";

    fn headers(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn a_token_is_known_by_its_hash() {
        let tokens =
            Tokens::parse(&format!("# people\nalice sha256:{ALICE} # her laptop\n\n")).unwrap();
        let of =
            |value: &str| tokens.principal_of(&headers(value)).map(|name| name.as_str().to_owned());
        assert_eq!(of("Bearer alice"), Some("alice".into()));
        assert_eq!(of("bearer  alice "), Some("alice".into()));
        for value in [
            "Bearer bob",
            "Bearer ",
            "Basic alice",
            "alice",
            "",
            "Bearer",
            &format!("Bearer {ALICE}"),
        ] {
            assert_eq!(of(value), None, "{value}");
        }
        assert_eq!(tokens.principal_of(&HeaderMap::new()), None);
        assert_eq!(format!("{tokens:?}"), "[\"alice\"]");
    }

    #[test]
    fn a_bad_line_is_named_and_its_hash_is_not_shown() {
        let line = |line| Err(TokensError::Line { line });
        let of = |text: &str| Tokens::parse(text).map(|_| ());
        assert_eq!(of(""), Err(TokensError::Empty));
        assert_eq!(of("# nobody"), Err(TokensError::Empty));
        assert_eq!(of("alice"), line(1));
        assert_eq!(of("\nalice secret"), line(2));
        assert_eq!(of("alice sha256:12"), line(1));
        assert_eq!(of(&format!("alice sha256:{ALICE} more")), line(1));
        let twice = format!("alice sha256:{ALICE}\nalice sha256:{ALICE}");
        assert_eq!(of(&twice), Err(TokensError::Twice { line: 2, name: "alice".into() }));
    }
}
