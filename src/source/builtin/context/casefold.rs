//! Finding a text whatever its letters' case, as Unicode folds it, and where it was.

use unicase::UniCase;

/// A text to look for.
#[derive(Debug)]
pub(super) struct Needle(String);

impl Needle {
    pub(super) fn new(query: &str) -> Self {
        let mut folded = String::with_capacity(query.len());
        query.chars().for_each(|character| fold(character, &mut folded));
        Self(folded)
    }

    /// Returns at which character of a text the first place begins that folds to the needle.
    ///
    /// A match may begin within what a single character folds to; then it is the next one.
    /// (EX-L2.10)
    pub(super) fn find(&self, text: &str) -> Option<usize> {
        let mut folded = String::with_capacity(text.len());
        text.chars().for_each(|character| fold(character, &mut folded));
        let at = memchr::memmem::find(folded.as_bytes(), self.0.as_bytes())?;
        let (mut passed, mut one) = (0, String::new());
        let before = text.chars().take_while(|character| {
            let is_before = passed < at;
            one.clear();
            fold(*character, &mut one);
            passed += one.len();
            is_before
        });
        Some(before.count())
    }
}

fn fold(character: char, folded: &mut String) {
    if character.is_ascii() {
        folded.push(character.to_ascii_lowercase());
    } else {
        let mut buffer = [0; 4];
        folded.push_str(&UniCase::unicode(&*character.encode_utf8(&mut buffer)).to_folded_case());
    }
}

#[cfg(test)]
mod tests {
    use super::Needle;

    #[test]
    fn ex_l2_10_letters_are_folded_and_positions_are_the_texts_own() {
        for (text, query, expected) in [
            ("Straße", "STRASSE", Some(0)),
            ("Straße", "se", Some(5)),
            ("ﬁle", "LE", Some(1)),
            ("ßß abc", "s a", Some(2)),
            ("ßß abc", "sabc", None),
            ("ΑΣ", "ας", Some(0)),
            ("x", "X", Some(0)),
            ("端口 8080", "8080", Some(3)),
            ("", "x", None),
        ] {
            assert_eq!(Needle::new(query).find(text), expected, "{query} in {text}");
        }
    }
}
