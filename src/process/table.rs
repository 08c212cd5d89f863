//! The process table: who descends from whom.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A process, as `/proc/<pid>/stat` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
}

impl Entry {
    /// Reads the line of `/proc/<pid>/stat`.
    ///
    /// The name stands in brackets and may itself hold brackets and spaces, hence the last one.
    fn parse(stat: &str) -> Option<Self> {
        let pid = stat.split_once(' ')?.0.parse().ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let _state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let _group = fields.next()?;
        let session = fields.next()?.parse().ok()?;
        Some(Self { pid, parent, session })
    }
}

/// Reads every process that we may see; one that ends meanwhile is left out.
pub(super) fn read() -> Vec<Entry> {
    let Ok(folder) = fs::read_dir("/proc") else { return Vec::new() };
    folder
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        .filter_map(|entry| fs::read(entry.path().join("stat")).ok())
        .filter_map(|stat| Entry::parse(&String::from_utf8_lossy(&stat)))
        .collect()
}

/// Returns everything below `roots`, parents before their children, without the roots.
pub(super) fn descendants(table: &[Entry], roots: &[i32]) -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in table {
        children.entry(entry.parent).or_default().push(entry.pid);
    }
    // A table read while processes come and go may hold a cycle: a number that was used twice.
    let mut seen: BTreeSet<i32> = roots.iter().copied().collect();
    let mut found = Vec::new();
    let mut level = roots.to_vec();
    while !level.is_empty() {
        level = level
            .iter()
            .flat_map(|pid| children.get(pid).into_iter().flatten().copied())
            .filter(|pid| seen.insert(*pid))
            .collect();
        found.extend(&level);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Entry, descendants, read};

    fn entry(pid: i32, parent: i32) -> Entry {
        Entry { pid, parent, session: 1 }
    }

    #[test]
    fn a_name_may_hold_brackets_and_spaces() {
        let stat = "42 (a) R 1 1 1) S 7 8 9 0 -1 4194304";
        assert_eq!(Entry::parse(stat), Some(Entry { pid: 42, parent: 7, session: 9 }));
        assert_eq!(Entry::parse("42"), None);
    }

    #[test]
    fn descendants_come_parents_first() {
        let table = [entry(9, 5), entry(5, 2), entry(2, 1), entry(3, 1), entry(4, 3)];
        assert_eq!(descendants(&table, &[2]), [5, 9]);
        assert_eq!(descendants(&table, &[1]), [2, 3, 5, 4, 9]);
        assert!(descendants(&table, &[9]).is_empty());
    }

    #[test]
    fn a_cycle_ends() {
        assert_eq!(descendants(&[entry(1, 2), entry(2, 1)], &[1]), [2]);
    }

    #[test]
    fn we_are_in_the_table() {
        let me = std::process::id().cast_signed();
        let parent = std::os::unix::process::parent_id().cast_signed();
        assert!(read().iter().any(|entry| entry.pid == me && entry.parent == parent));
    }
}
