//! The part of a long text that stays in an answer; lengths are in characters.

use crate::tool::PreviewMode;

/// Stands where the middle of a text was left out.
pub const OMITTED: &str = "\n[omitted]\n";

/// Returns at most `limit` characters of `text`.
///
/// With [`PreviewMode::HeadTail`] the beginning and the end stay, with [`OMITTED`] between them;
/// the odd character goes to the beginning.
pub fn preview(text: &str, limit: usize, mode: PreviewMode) -> String {
    let length = text.chars().count();
    if length <= limit {
        return text.to_owned();
    }
    match mode {
        PreviewMode::Head => head(text, limit).to_owned(),
        PreviewMode::HeadTail => {
            let marker = OMITTED.chars().count();
            let Some(available) = limit.checked_sub(marker).filter(|available| *available > 0)
            else {
                return head(OMITTED, limit).to_owned();
            };
            let front = available.div_ceil(2);
            let back = available - front;
            format!("{}{OMITTED}{}", head(text, front), skip(text, length - back))
        }
    }
}

/// Returns the first `count` characters.
pub fn head(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

fn skip(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((start, _)) => &text[start..],
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ex_7_2_the_middle_goes_first() {
        let text = "abcdefghijklmnopqrstuvwxyz";
        let table = [
            (5, "\n[omi".to_owned()),
            (12, format!("a{OMITTED}")),
            (13, format!("a{OMITTED}z")),
            (16, format!("abc{OMITTED}yz")),
            (20, format!("abcde{OMITTED}wxyz")),
            (25, format!("abcdefg{OMITTED}tuvwxyz")),
            (26, text.to_owned()),
        ];
        assert_eq!(OMITTED.chars().count(), 11);
        for (limit, expected) in table {
            assert_eq!(preview(text, limit, PreviewMode::HeadTail), expected, "{limit}");
        }
        assert_eq!(preview(text, 5, PreviewMode::Head), "abcde");
    }

    proptest! {
        #[test]
        fn a_preview_never_exceeds_its_limit(text: String, limit in 0usize..64, tail: bool) {
            let mode = if tail { PreviewMode::HeadTail } else { PreviewMode::Head };
            let shown = preview(&text, limit, mode).chars().count();
            prop_assert!(shown <= limit.max(text.chars().count().min(limit)));
            prop_assert!(text.chars().count() > limit || shown == text.chars().count());
        }
    }
}
