//! The clients that a source keeps apart from each other.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many clients have something of a source for themselves, now and at most.
#[derive(Debug)]
pub struct Apart {
    most: usize,
    now: AtomicUsize,
}

impl Apart {
    /// Makes it for so many at most; there are none yet.
    pub fn new(most: usize) -> Self {
        Self { most, now: AtomicUsize::new(0) }
    }

    /// Returns how many there may be.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Returns how many there are.
    pub fn now(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }

    /// Notes how many there are.
    pub fn count(&self, now: usize) {
        self.now.store(now, Ordering::Relaxed);
    }
}
