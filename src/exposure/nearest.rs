//! Which names may have been meant by one that nothing has.

use crate::tool::ToolDefinition;

/// The longest name that others are looked for, in bytes; no more of it is shown.
pub(super) const LONGEST: usize = 256;

/// How alike a name must be to be offered instead, between 0 and 1.
const NEAR: f64 = 0.75;

/// Returns the names most like one, best first, of tools with the names that clients see.
pub(super) fn nearest<'a>(
    name: &str,
    tools: impl Iterator<Item = (&'a ToolDefinition, &'a str)>,
) -> Vec<String> {
    // A comparison takes time for each letter of the one with each of the other.
    if name.len() > LONGEST {
        return Vec::new();
    }
    let scored = tools.flat_map(|(definition, wire)| {
        // Whoever means another spelling is shown the one that is listed.
        let spelt = definition.spellings().skip(1 + definition.aliases.len());
        let own = [wire, definition.name.as_str()].map(|own| likeness(name, own));
        let score = spelt.map(|spelling| likeness(name, &spelling)).chain(own).fold(0.0, f64::max);
        let aliases = definition.aliases.iter();
        let aliases = aliases.map(|alias| (likeness(name, alias), alias.clone()));
        std::iter::once((score, wire.to_owned())).chain(aliases).collect::<Vec<_>>()
    });
    let mut scored: Vec<(f64, String)> = scored.filter(|(score, _)| *score >= NEAR).collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
    scored.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

/// How alike two names are; the last part of a qualified name counts as the whole.
fn likeness(name: &str, candidate: &str) -> f64 {
    let last = candidate.rsplit("__").next().unwrap_or(candidate);
    let [name, candidate, last] = [name, candidate, last].map(str::to_lowercase);
    strsim::jaro_winkler(&name, &candidate).max(strsim::jaro_winkler(&name, &last))
}
