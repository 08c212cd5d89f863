//! How much work a schema can make.
//!
//! A validator follows `allOf`, `$ref` and the like without going deeper into the value. A few
//! lines of them can stand for billions of steps, or for a recursion that ends the process; a
//! schema from outside must not be able to do either.

use std::collections::HashMap;

use serde_json::Value;

use super::scan::{Scan, children, references};
use super::schema::Reason;

/// How many schemas may lead to one another for one and the same value.
const MAX_CHAIN: usize = 32;

/// How many schemas one and the same value may be checked against.
const MAX_STEPS: u64 = 50_000;

/// How deep a value may be; `serde_json` reads none that is deeper.
const MAX_LEVELS: usize = 128;

/// How many schemas deep the validator may be while it is checking the deepest value.
///
/// On a stack of 2 MiB, an unoptimised build manages 1,200 of the worst kind, `oneOf`.
const MAX_FRAMES: usize = 1_000;

/// The keywords whose schemas are about the same value as their own.
const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// Fails for a document whose schemas make too much work.
pub(super) fn check(scan: &Scan<'_>) -> Result<(), Reason> {
    let graph = Graph::of(scan)?;
    let order = Order::of(&graph)?;
    if graph.steps(&order).into_iter().max() > Some(MAX_STEPS) || graph.frames(&order) > MAX_FRAMES
    {
        return Err(Reason::TooInvolved);
    }
    Ok(())
}

/// Which schemas lead to which.
struct Graph {
    /// For the same value.
    in_place: Vec<Vec<usize>>,
    /// For a part of the value.
    below: Vec<Vec<usize>>,
}

impl Graph {
    fn of(scan: &Scan<'_>) -> Result<Self, Reason> {
        let numbers: HashMap<&str, usize> =
            scan.places().enumerate().map(|(number, at)| (at, number)).collect();
        let mut graph = Self { in_place: Vec::new(), below: Vec::new() };
        for at in scan.places() {
            let (mut in_place, mut below) = (Vec::new(), Vec::new());
            if let (Some(place), Some(Value::Object(schema))) =
                (scan.place(at), scan.root.pointer(at))
            {
                for reference in references(schema, place.dialect) {
                    let target = scan.target(place, reference)?;
                    in_place.extend(numbers.get(target.at.as_str()));
                }
                for (keyword, value) in schema {
                    let list = match keyword.as_str() {
                        "$defs" | "definitions" => continue,
                        name if IN_PLACE.contains(&name) => &mut in_place,
                        _ => &mut below,
                    };
                    for (child, _) in children(place.dialect, schema, keyword, value) {
                        list.extend(numbers.get(format!("{at}{child}").as_str()));
                    }
                }
            }
            graph.in_place.push(in_place);
            graph.below.push(below);
        }
        Ok(graph)
    }

    /// Counts for each schema how many there are for the same value, itself included.
    fn steps(&self, order: &Order) -> Vec<u64> {
        let mut steps = vec![1_u64; self.in_place.len()];
        for &schema in &order.schemas {
            for &next in &self.in_place[schema] {
                steps[schema] = steps[schema].saturating_add(steps[next]);
            }
        }
        steps
    }

    /// Counts how many schemas the deepest value can bring about within one another.
    fn frames(&self, order: &Order) -> usize {
        let mut frames = vec![0; self.in_place.len()];
        for _ in 0..MAX_LEVELS {
            let deeper = frames.clone();
            for &schema in &order.schemas {
                let same = self.in_place[schema].iter().map(|&next| frames[next]);
                let below = self.below[schema].iter().map(|&next| deeper[next]);
                frames[schema] = 1 + same.chain(below).max().unwrap_or(0);
            }
            if frames == deeper {
                break;
            }
        }
        frames.into_iter().max().unwrap_or(0)
    }
}

/// The schemas in an order where each comes after all it leads to for the same value.
#[derive(Default)]
struct Order {
    schemas: Vec<usize>,
    /// The length of the chain that each begins; none yet for one that is being followed.
    chains: HashMap<usize, Option<usize>>,
}

impl Order {
    fn of(graph: &Graph) -> Result<Self, Reason> {
        let mut order = Self::default();
        for schema in 0..graph.in_place.len() {
            order.follow(graph, schema, 0)?;
        }
        Ok(order)
    }

    /// Follows a schema to which `above` others have led; returns the length of its chain.
    fn follow(&mut self, graph: &Graph, schema: usize, above: usize) -> Result<usize, Reason> {
        if above >= MAX_CHAIN {
            return Err(Reason::TooInvolved);
        }
        if let Some(known) = self.chains.get(&schema) {
            return known.ok_or(Reason::Endless);
        }
        self.chains.insert(schema, None);
        let mut chain = 1;
        for &next in &graph.in_place[schema] {
            chain = chain.max(1 + self.follow(graph, next, above + 1)?);
        }
        if above + chain > MAX_CHAIN {
            return Err(Reason::TooInvolved);
        }
        self.chains.insert(schema, Some(chain));
        self.schemas.push(schema);
        Ok(chain)
    }
}
