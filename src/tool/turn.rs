//! A call's place in the record of its session.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The place of one call: the next one free, taken when the call comes to its end.
///
/// It is taken before the result is finished, since a long result says where it can be read again.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    next: Arc<AtomicU64>,
    taken: Arc<OnceLock<u64>>,
}

impl Turn {
    /// Makes the turn of a call that counts on with the others of its record.
    pub fn new(next: Arc<AtomicU64>) -> Self {
        Self { next, taken: Arc::default() }
    }

    /// Returns the place, the same from the first time on.
    pub fn take(&self) -> u64 {
        *self.taken.get_or_init(|| self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns what the result of the call is called in the record.
    ///
    /// Call k is message 2k, its result the only block of message 2k + 1.
    pub fn reference(&self) -> String {
        format!("result:{}:0", self.take() * 2 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_taken_once_and_in_the_order_of_ends() {
        let next = Arc::default();
        let (first, second) = (Turn::new(Arc::clone(&next)), Turn::new(next));
        assert_eq!(second.reference(), "result:1:0");
        assert_eq!(first.reference(), "result:3:0");
        assert_eq!(second.clone().take(), 0);
    }
}
