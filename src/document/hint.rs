//! What a person may have meant by a name that is not known.

/// The longest name that others are looked for, in bytes.
const LONGEST: usize = 256;

/// Returns the known name nearest to `unknown`, if one is near enough to suggest.
pub fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = fold(unknown);
    // A comparison takes time for each letter of the one with each of the other.
    if wanted.len() > LONGEST {
        return None;
    }
    // A third of the letters may differ, so short names suggest only what is nearly the same.
    let budget = (wanted.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(&wanted, &fold(name)), name))
        .filter(|(distance, name)| *distance <= budget && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Returns the hint for an unknown name: the nearest known one, or all of them.
pub fn for_unknown(unknown: &str, known: &[&str]) -> Option<String> {
    if let Some(name) = nearest(unknown, known.iter().copied()) {
        return Some(format!("did you mean `{name}`?"));
    }
    if known.is_empty() {
        return None;
    }
    let are = if known.len() == 1 { "known is" } else { "known are" };
    Some(format!("{are} {}", list(known)))
}

/// Returns names as a list in a sentence: `` `a`, `b` and `c` ``.
pub fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// Makes `envFile`, `env_file` and `ENV-FILE` one word.
fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}
