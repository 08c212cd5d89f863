//! Which skills are resources: those that the protocol lets be ones (SEP-2640).
//!
//! That depends on all files of a skill, which takes longer to look at than its text. So it is
//! found out once for each that is new or another, and then again for some of them at each look,
//! in turn: with many skills it takes longer until a change is noticed, but a look does not.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::files::{self, Unpublished};
use super::scan::Skill;
use super::stock::Stock;

/// How long a look goes on to files of one more skill.
const LOOKS: Duration = Duration::from_millis(10);

/// What was found out of each skill, by name.
#[derive(Debug, Default)]
pub(super) struct Published {
    known: BTreeMap<String, Known>,
    /// The one that was looked at last.
    last: String,
}

#[derive(Debug)]
struct Known {
    skill: Arc<Skill>,
    found: Result<(), Unpublished>,
}

impl Published {
    /// Looks at the skills that are new or another, and forgets those that are gone.
    pub(super) fn renew(&mut self, stock: &Stock, skills: &[Arc<Skill>]) {
        let mut before = std::mem::take(&mut self.known);
        for skill in skills {
            let known = before.remove(&skill.name).filter(|known| known.skill == *skill);
            let known = known
                .unwrap_or_else(|| Known { skill: Arc::clone(skill), found: judged(stock, skill) });
            self.known.insert(skill.name.clone(), known);
        }
    }

    /// Looks at some skills anew, and says whether anything is otherwise now.
    pub(super) fn look(&mut self, stock: &Stock) -> bool {
        let began = Instant::now();
        let mut is_other = false;
        for name in self.turns() {
            let Some(known) = self.known.get_mut(&name) else { continue };
            let now = judged(stock, &known.skill);
            is_other |= now != known.found;
            known.found = now;
            self.last = name;
            if began.elapsed() >= LOOKS {
                break;
            }
        }
        is_other
    }

    /// Says why a skill is no resource, if it is none.
    pub(super) fn refused(&self, skill: &Skill) -> Option<&Unpublished> {
        self.known.get(&skill.name)?.found.as_ref().err()
    }

    /// Returns all names, beginning after that which came last.
    fn turns(&self) -> Vec<String> {
        let after = (Bound::Excluded(self.last.as_str()), Bound::Unbounded);
        let until = (Bound::Unbounded, Bound::Included(self.last.as_str()));
        let turns = self.known.range::<str, _>(after).chain(self.known.range::<str, _>(until));
        turns.map(|(name, _)| name.clone()).collect()
    }
}

fn judged(stock: &Stock, skill: &Skill) -> Result<(), Unpublished> {
    files::of(stock, skill).map(|_| ())
}
