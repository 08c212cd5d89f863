//! The words of a text, as they are compared: identifiers taken apart, endings taken off.

use rust_stemmers::{Algorithm, Stemmer};

/// Words that say nothing about a tool.
const EMPTY: [&str; 48] = [
    "a", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "do", "does", "for",
    "from", "have", "how", "i", "if", "in", "is", "it", "its", "me", "my", "need", "of", "on",
    "or", "our", "please", "should", "some", "that", "the", "their", "this", "to", "tool", "use",
    "want", "was", "what", "will", "with", "would", "you", "your",
];

/// Returns the words of a text, in its order.
///
/// Scripts without spaces give every pair of neighbours, and a character that stands alone.
pub(super) fn words(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut words = Vec::new();
    let mut add = |word: &str| {
        if word.is_empty() {
            return;
        }
        let word = word.to_lowercase();
        if !EMPTY.contains(&word.as_str()) {
            words.push(stemmer.stem(&word).into_owned());
        }
    };
    let mut word = String::new();
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if is_unspaced(c) {
            add(&std::mem::take(&mut word));
            let mut run = vec![c];
            while let Some(next) = characters.next_if(|next| is_unspaced(*next)) {
                run.push(next);
            }
            add_pairs(&run, &mut add);
            continue;
        }
        // `getUserName` and `HTTPServer` are words written together.
        let begins = c.is_uppercase()
            && (word.chars().next_back().is_some_and(|before| !before.is_uppercase())
                || characters.peek().is_some_and(|next| next.is_lowercase()));
        if begins || !c.is_alphanumeric() {
            add(&std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.push(c);
        }
    }
    add(&word);
    words
}

fn add_pairs(run: &[char], add: &mut impl FnMut(&str)) {
    for pair in run.windows(2) {
        add(&pair.iter().collect::<String>());
    }
    for c in run {
        add(c.encode_utf8(&mut [0; 4]));
    }
}

/// Says whether a character belongs to a script that does not part its words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{e00}'..='\u{e7f}' | '\u{20000}'..='\u{3134f}')
}
