//! Which artifacts have to go: the oldest, until the rest is not too much.

use std::time::{Duration, SystemTime};

use super::name::Area;

/// How much is left in an eighth of the room, so that not every new file has to look for some.
const SPARE: u64 = 8;

/// A file that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) area: Area,
    /// The folder of its session.
    pub(super) folder: String,
    pub(super) file: String,
    pub(super) size: u64,
    /// When it was written or last read.
    pub(super) used: SystemTime,
}

/// How much may be kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// All artifacts together, in bytes.
    pub max_bytes: u64,
    /// Since a file was written or last read.
    pub max_age: Duration,
}

/// Removes what has to go, and returns how many bytes are left.
///
/// What is too old goes; and of the rest the oldest, until `new` bytes more find room and some
/// is left over. `remove` says whether it did: what is in use stays, and the next one goes instead.
pub(super) fn evict(
    mut kept: Vec<Kept>,
    new: u64,
    quota: Quota,
    now: SystemTime,
    mut remove: impl FnMut(&Kept) -> bool,
) -> u64 {
    kept.sort_by(|one, other| one.used.cmp(&other.used).then_with(|| one.file.cmp(&other.file)));
    let mut left: u64 = kept.iter().map(|kept| kept.size).sum();
    let full = left.saturating_add(new) > quota.max_bytes;
    let room = if full { quota.max_bytes - quota.max_bytes / SPARE } else { quota.max_bytes };
    for kept in &kept {
        let too_old = now.duration_since(kept.used).is_ok_and(|age| age > quota.max_age);
        if !too_old && left.saturating_add(new) <= room {
            break;
        }
        if remove(kept) {
            left -= kept.size;
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(file: &str, size: u64, age: u64, now: SystemTime) -> Kept {
        Kept {
            area: Area::Results,
            folder: "id_".to_owned(),
            file: file.to_owned(),
            size,
            used: now - Duration::from_secs(age),
        }
    }

    #[track_caller]
    fn check(files: &[(&str, u64, u64)], new: u64, max_bytes: u64, expected: &[&str]) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let files = files.iter().map(|(file, size, age)| kept(file, *size, *age, now)).collect();
        let quota = Quota { max_bytes, max_age: Duration::from_secs(100) };
        let mut going = Vec::new();
        evict(files, new, quota, now, |kept| {
            let in_use = kept.file.starts_with("used");
            if !in_use {
                going.push(kept.file.clone());
            }
            !in_use
        });
        assert_eq!(going, expected);
    }

    #[test]
    fn the_oldest_go_first_and_no_more_than_needed() {
        let files = [("young", 10, 1), ("old", 10, 3), ("middle", 10, 2)];
        check(&files, 0, 30, &[]);
        check(&files, 1, 32, &[]);
        check(&files, 10, 32, &["old", "middle"]);
        check(&files, 5, 32, &["old"]);
        check(&files, 100, 32, &["old", "middle", "young"]);
        check(&files, 0, 0, &["old", "middle", "young"]);
        check(&[], 5, 1, &[]);
    }

    #[test]
    fn what_is_in_use_stays_and_the_next_goes_instead() {
        let files = [("young", 10, 1), ("used", 10, 3), ("middle", 10, 2)];
        check(&files, 5, 32, &["middle"]);
        check(&files, 25, 32, &["middle", "young"]);
        check(&[("used", 10, 500), ("old", 1, 400)], 0, 1_000, &["old"]);
    }

    #[test]
    fn what_is_too_old_goes_however_much_room_there_is() {
        let files = [("young", 1, 99), ("older", 1, 101), ("oldest", 1, 1_000)];
        check(&files, 0, 1_000, &["oldest", "older"]);
    }
}
