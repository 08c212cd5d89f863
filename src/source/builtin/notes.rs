//! What a search has to add to its results: the places it could not look at.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How many places are named for each reason.
const NAMED: usize = 5;

/// Remarks that go after the results, each with the places it is about.
#[derive(Debug, Default)]
pub(super) struct Notes {
    remarks: BTreeMap<String, Places>,
}

#[derive(Debug, Default)]
struct Places {
    named: Vec<String>,
    count: usize,
}

impl Notes {
    /// Adds a place to a remark.
    pub(super) fn add(&mut self, remark: impl Into<String>, place: impl Into<String>) {
        let places = self.remarks.entry(remark.into()).or_default();
        places.count += 1;
        if places.named.len() < NAMED {
            places.named.push(place.into());
        }
    }

    /// Returns the results with the remarks behind them, each on a line of its own.
    pub(super) fn after(&self, mut results: String, tool: &str) -> String {
        for (remark, places) in &self.remarks {
            if !results.is_empty() {
                results.push('\n');
            }
            let named = places.named.join(", ");
            let others = match places.count - places.named.len() {
                0 => String::new(),
                others => format!(" and {others} more"),
            };
            // Writing to a string cannot fail.
            _ = write!(results, "[{tool}: {remark}: {named}{others}]");
        }
        results
    }
}

#[cfg(test)]
mod tests {
    use super::Notes;

    #[test]
    fn a_few_places_are_named_and_the_others_counted() {
        let mut notes = Notes::default();
        assert_eq!(notes.after("found".to_owned(), "tool"), "found");
        for place in 1..=7 {
            notes.add("unreadable", place.to_string());
        }
        notes.add("long", "x");
        assert_eq!(
            notes.after("found".to_owned(), "tool"),
            "found\n[tool: long: x]\n[tool: unreadable: 1, 2, 3, 4, 5 and 2 more]"
        );
        assert_eq!(
            Notes::default().after(String::new(), "tool"),
            "",
            "nothing to say is nothing said"
        );
    }
}
