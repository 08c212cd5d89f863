//! Which calls of a batch may overlap; pure.

/// What the plan has to know of a prepared call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// It was permitted without a person, and is to run.
    pub runs: bool,
    /// It changes nothing.
    pub read_only: bool,
    /// It may overlap with others.
    pub parallel: bool,
}

/// Groups calls, by index and in order: the calls of a group overlap, groups follow each other.
///
/// Only adjacent calls that read and may overlap share a group; any other stands alone.
pub fn plan(calls: &[Shape]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut open = false;
    for (index, call) in calls.iter().enumerate() {
        let joins = call.runs && call.read_only && call.parallel;
        match groups.last_mut() {
            Some(group) if open && joins => group.push(index),
            _ => groups.push(vec![index]),
        }
        open = joins;
    }
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const READ: Shape = Shape { runs: true, read_only: true, parallel: true };
    const WRITE: Shape = Shape { read_only: false, ..READ };
    const SERIAL: Shape = Shape { parallel: false, ..READ };
    const REFUSED: Shape = Shape { runs: false, ..READ };

    #[test]
    fn ex_4_6_reads_share_a_group_and_everything_else_is_a_barrier() {
        let table: [(&[Shape], &[&[usize]]); 6] = [
            (&[READ, READ, WRITE, READ], &[&[0, 1], &[2], &[3]]),
            (&[], &[]),
            (&[WRITE, WRITE], &[&[0], &[1]]),
            (&[READ, SERIAL, READ, READ], &[&[0], &[1], &[2, 3]]),
            (&[READ, REFUSED, READ], &[&[0], &[1], &[2]]),
            (&[READ, READ, READ], &[&[0, 1, 2]]),
        ];
        for (calls, expected) in table {
            assert_eq!(plan(calls), expected, "{calls:?}");
        }
    }

    proptest! {
        #[test]
        fn every_call_is_planned_once_and_in_order(kinds in proptest::collection::vec(0u8..4, 0..40)) {
            let calls: Vec<Shape> =
                kinds.iter().map(|kind| [READ, WRITE, SERIAL, REFUSED][usize::from(*kind)]).collect();
            let planned: Vec<usize> = plan(&calls).into_iter().flatten().collect();
            prop_assert_eq!(planned, (0..calls.len()).collect::<Vec<_>>());
        }
    }
}
