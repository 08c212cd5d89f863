//! How well tools fit a query: words in common, the rarer the better, by BM25 over fields.
//!
//! A tool whose words make up too little of the query does not fit at all, however well it does
//! next to the others: "send gmail email" is not answered by whatever else sends something.

mod words;

use std::collections::HashMap;

use self::words::words;
use crate::tool::ToolDefinition;

/// How soon more of the same word counts for less.
const SATURATION: f64 = 1.2;
/// How much a long text is discounted, between 0 and 1.
const LENGTH: f64 = 0.5;
/// How much of a query, by the rarity of its words, a tool must have.
const LEAST_COVERED: f64 = 0.4;
/// What a tool gets whose name has every word of the query.
const ALL_IN_NAME: f64 = 1.5;

/// What a word counts for by where it stands.
mod weight {
    pub(super) const NAME: f64 = 3.0;
    pub(super) const TAGS: f64 = 2.0;
    pub(super) const GROUP: f64 = 1.5;
    pub(super) const DESCRIPTION: f64 = 1.0;
    pub(super) const PARAMETER: f64 = 0.5;
}

/// The words of a list of tools.
#[derive(Debug, Default)]
pub struct Index {
    documents: Vec<Document>,
    /// For each word the tools that have it, and its weight there.
    postings: HashMap<String, Vec<(usize, f64)>>,
}

#[derive(Debug, Default)]
struct Document {
    name: Vec<String>,
    length: f64,
}

impl Index {
    /// Indexes tools by their place in the list.
    pub fn of<'a>(tools: impl Iterator<Item = &'a ToolDefinition>) -> Self {
        let mut index = Self::default();
        for (at, tool) in tools.enumerate() {
            let mut weights: HashMap<String, f64> = HashMap::new();
            let mut length = 0.0;
            for (text, weight) in fields(tool) {
                for word in words(&text) {
                    *weights.entry(word).or_default() += weight;
                    length += weight;
                }
            }
            for (word, weight) in weights {
                index.postings.entry(word).or_default().push((at, weight));
            }
            index.documents.push(Document { name: words(tool.name.as_str()), length });
        }
        index
    }

    /// Returns the places of the tools that fit a query, best first, of those that are wanted.
    pub fn rank(&self, query: &str, is_wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut query = words(query);
        query.sort_unstable();
        query.dedup();
        #[expect(clippy::cast_precision_loss, reason = "no catalogue comes near 2^52 tools")]
        let float = |count: usize| count as f64;
        let count = float(self.documents.len());
        let total: f64 = self.documents.iter().map(|document| document.length).sum();
        let average = (total / count).max(1.0);
        let rarity =
            |known: usize| (1.0 + (count - float(known) + 0.5) / (float(known) + 0.5)).ln();
        let mut whole = 0.0;
        // Score, and how much of the query is there.
        let mut scores: HashMap<usize, (f64, f64)> = HashMap::new();
        for word in &query {
            let postings = self.postings.get(word).map(Vec::as_slice).unwrap_or_default();
            let rarity = rarity(postings.len());
            whole += rarity;
            for (at, weight) in postings.iter().filter(|(at, _)| is_wanted(*at)) {
                let length = self.documents[*at].length / average;
                let discount = SATURATION * (1.0 - LENGTH + LENGTH * length);
                let score = rarity * weight * (SATURATION + 1.0) / (weight + discount);
                let entry = scores.entry(*at).or_default();
                *entry = (entry.0 + score, entry.1 + rarity);
            }
        }
        let fits = scores.into_iter().filter(|(_, (_, covered))| *covered >= LEAST_COVERED * whole);
        let mut ranked: Vec<(usize, f64)> = fits
            .map(|(at, (score, _))| {
                let name = &self.documents[at].name;
                let all = query.iter().all(|word| name.contains(word));
                (at, if all { score * ALL_IN_NAME } else { score })
            })
            .collect();
        ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        ranked.into_iter().map(|(at, _)| at).collect()
    }
}

/// Returns the texts by which a tool is found.
fn fields(tool: &ToolDefinition) -> Vec<(String, f64)> {
    let tags = tool.metadata.get("tags").and_then(|tags| tags.as_array());
    let tags = tags.into_iter().flatten().filter_map(|tag| tag.as_str());
    let mut fields = vec![
        (tool.name.as_str().to_owned(), weight::NAME),
        (tags.collect::<Vec<_>>().join(" "), weight::TAGS),
        (tool.group.clone(), weight::GROUP),
        (tool.description().to_owned(), weight::DESCRIPTION),
    ];
    fields.extend(tool.title.iter().map(|title| (title.clone(), weight::DESCRIPTION)));
    let properties = tool.input_schema.document().get("properties");
    for (name, schema) in properties.and_then(|it| it.as_object()).into_iter().flatten() {
        fields.push((name.clone(), weight::PARAMETER));
        let description = schema.get("description").and_then(|it| it.as_str());
        fields.extend(description.map(|text| (text.to_owned(), weight::PARAMETER)));
    }
    fields
}

#[cfg(test)]
mod tests;
