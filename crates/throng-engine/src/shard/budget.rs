//! The memory budget of all users of the process for received and unsent data: bodies, messages,
//! packets, and bytes that a socket has not taken. Each of them has its own limit as well, but
//! there may be many of them.
//!
//! Shards share one counter and take slices of it, so that short-lived use costs only an addition
//! on the shard.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use throng_base::units::format_bytes;
use throng_metrics::Cause;

use crate::failure::Finding;

/// A shard has at most two unused slices, and all shards together an eighth of the budget.
const SLICE_BYTES_MAX: usize = 256 * 1024;
const SLICES_SHARE: usize = 16;

/// The rest for all shards.
pub(crate) struct Budget {
    left: AtomicUsize,
    bytes_max: usize,
    slice: usize,
}

impl Budget {
    /// For this many shards; `None` is unlimited.
    pub(crate) fn new(bytes_max: Option<u64>, shards: usize) -> Arc<Budget> {
        let bytes_max = bytes_max.and_then(|bytes| usize::try_from(bytes).ok());
        let bytes_max = bytes_max.unwrap_or(usize::MAX / 2).min(usize::MAX / 2);
        let slice = (bytes_max / (shards.max(1) * SLICES_SHARE)).min(SLICE_BYTES_MAX);
        Arc::new(Budget { left: AtomicUsize::new(bytes_max), bytes_max, slice })
    }

    // Relaxed: the counter is independent of all other memory.
    fn take(&self, bytes: usize) -> bool {
        let taken = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }

    /// True if nothing is in use.
    #[cfg(test)]
    pub(crate) fn is_whole(&self) -> bool {
        self.left.load(Ordering::Relaxed) == self.bytes_max
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A shard's part of the budget.
pub(crate) struct Purse {
    budget: Arc<Budget>,
    /// Taken, and not used.
    spare: Cell<usize>,
}

impl Purse {
    pub(crate) fn new(budget: Arc<Budget>) -> Rc<Purse> {
        Rc::new(Purse { budget, spare: Cell::new(0) })
    }

    fn take(&self, bytes: usize) -> bool {
        let spare = self.spare.get();
        if let Some(rest) = spare.checked_sub(bytes) {
            self.spare.set(rest);
            return true;
        }
        let missing = bytes - spare;
        let slice = self.budget.slice;
        let rest = match self.budget.take(missing.saturating_add(slice)) {
            true => slice,
            // The rest is less than a slice, and may be enough.
            false if self.budget.take(missing) => 0,
            false => return false,
        };
        self.spare.set(rest);
        true
    }

    fn give_back(&self, bytes: usize) {
        let (spare, slice) = (self.spare.get() + bytes, self.budget.slice);
        let kept = if spare > 2 * slice { slice } else { spare };
        self.budget.give_back(spare - kept);
        self.spare.set(kept);
    }

    /// Why something could not be kept.
    pub(crate) fn refusal(&self) -> Finding {
        let most = format_bytes(self.budget.bytes_max as f64);
        let detail = say!("the bodies and messages of all users are limited to {most} of memory");
        (Cause::MemoryLimit, detail)
    }
}

impl Drop for Purse {
    fn drop(&mut self) {
        self.budget.give_back(self.spare.get());
    }
}

/// The share of a connection or response in the budget; returned when it is dropped. Boxed once it
/// has anything: most of a million connections never do.
#[derive(Default)]
pub(crate) struct Held(Option<Box<Taken>>);

struct Taken {
    bytes: usize,
    purse: Rc<Purse>,
}

impl Held {
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |taken| taken.bytes)
    }

    /// Changes the share to this many bytes; false if they are not available, and the share is
    /// unchanged.
    pub(crate) fn resize(&mut self, bytes: usize, purse: &Rc<Purse>) -> bool {
        let before = self.bytes();
        if bytes > before {
            if !purse.take(bytes - before) {
                return false;
            }
            let new = || Box::new(Taken { bytes: 0, purse: Rc::clone(purse) });
            self.0.get_or_insert_with(new).bytes = bytes;
        } else if let Some(taken) = &mut self.0 {
            purse.give_back(before - bytes);
            taken.bytes = bytes;
        }
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(taken) = &self.0 {
            taken.purse.give_back(taken.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_are_lost_or_given_twice() {
        let budget = Budget::new(Some(1 << 20), 4);
        let purses: Vec<Rc<Purse>> = (0..4).map(|_| Purse::new(Arc::clone(&budget))).collect();
        let mut all: Vec<Held> = (0..64).map(|_| Held::default()).collect();
        let mut random = throng_base::Random::new(7);
        let mut refused = 0;
        for _ in 0..10_000 {
            let number = random.below(64) as usize;
            let wanted = random.below(64 * 1024) as usize;
            refused += u32::from(!all[number].resize(wanted, &purses[number % 4]));
            let used: usize = all.iter().map(Held::bytes).sum();
            let spare: usize = purses.iter().map(|purse| purse.spare.get()).sum();
            let left = budget.left.load(Ordering::Relaxed);
            assert_eq!(used + spare + left, 1 << 20);
            assert!(spare <= (1 << 20) / 8, "{spare}");
        }
        assert!(refused > 100, "{refused}");
        drop(all);
        drop(purses);
        assert!(budget.is_whole());
    }

    #[test]
    fn the_last_byte_can_be_taken() {
        let purse = Purse::new(Budget::new(Some(1000), 1));
        let (mut one, mut other) = (Held::default(), Held::default());
        assert!(one.resize(999, &purse) && other.resize(1, &purse));
        assert!(!other.resize(2, &purse) && other.bytes() == 1);
        assert_eq!(purse.refusal().0, Cause::MemoryLimit);
        drop(one);
        assert!(other.resize(1000, &purse));
        let much = Purse::new(Budget::new(None, 1));
        assert!(Held::default().resize(1 << 40, &much));
    }
}
