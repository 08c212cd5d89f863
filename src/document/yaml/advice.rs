//! What to do about a text that is no YAML, by what the parser says of it.

/// What the parser's messages have in them, and what helps; the first one counts.
const ADVICE: [(&str, &str); 10] = [
    ("unprintable", "remove it; some editors show it as `^@`"),
    ("tab", "indent with spaces, not with tabs"),
    (
        "unknown anchor",
        "`*name` repeats what stands after an earlier `&name`, and a text that begins with `*` stands in quotes",
    ),
    ("anchor or alias", "a text that begins with `*` or `&` stands in quotes"),
    ("quoted scalar", "close the quotes, and double a quote of the same kind inside"),
    ("mapping values", "a key has a space after its colon, and a text with `: ` stands in quotes"),
    ("flow", "close the bracket, and put a comma between its items"),
    ("indent", "lines that belong together begin in the same column"),
    ("expected key", "lines that belong together begin in the same column"),
    ("unexpected character", "a text that begins so stands in quotes"),
];

/// Returns what helps against what a message says.
pub(super) fn on(message: &str) -> Option<String> {
    let advice = ADVICE.iter().find(|(words, _)| message.contains(words));
    advice.map(|(_, advice)| (*advice).to_owned())
}
