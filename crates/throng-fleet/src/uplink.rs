//! How the lines of an agent come to the log of the bus. The spool is the run directory on the
//! agent's disk; a line is sent again until the log has acknowledged it, so nothing is lost while
//! one of both is there. Lines may arrive twice and out of order: [`crate::receipt`] knows them by
//! number. What is on its way is bounded; what waits lies on the disk, not in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use throng_base::Time;

/// Lines that are on their way at a time.
pub const WINDOW: usize = 256;
/// A line that was not acknowledged for so long is sent again.
pub const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// A line that the log did not take, as it was full or away, is sent again after so long.
pub const REFUSED_PAUSE: Duration = Duration::from_millis(500);

/// Which lines of one incarnation are to be sent.
#[derive(Clone, Debug, Default)]
pub struct Uplink {
    /// Lines in the spool.
    spooled: u64,
    /// The first that was never sent.
    next: u64,
    /// On their way, with the time when they are sent again.
    open: BTreeMap<u64, Time>,
    /// All before it are acknowledged.
    done: u64,
    /// Acknowledged ones behind it; no more than a window.
    done_beyond: BTreeSet<u64>,
}

impl Uplink {
    /// So many lines are in the spool.
    pub fn spooled(&mut self, lines: u64) {
        self.spooled = self.spooled.max(lines);
    }

    /// The next line to send now: one that waited in vain, or a new one.
    pub fn send(&mut self, now: Time) -> Option<u64> {
        let again = self.open.iter().find(|&(_, &at)| at <= now).map(|(&line, _)| line);
        let line = again.or_else(|| {
            // The oldest of all bounds the window, so that what is kept of the others is bounded.
            let is_open = self.next < self.done + WINDOW as u64 && self.next < self.spooled;
            let line = is_open.then_some(self.next)?;
            self.next += 1;
            Some(line)
        })?;
        self.open.insert(line, now + AGAIN_AFTER);
        Some(line)
    }

    /// The log has it for good.
    pub fn acknowledged(&mut self, line: u64) {
        if self.open.remove(&line).is_none() {
            return;
        }
        self.done_beyond.insert(line);
        while self.done_beyond.remove(&self.done) {
            self.done += 1;
        }
    }

    /// The log said that it did not take it.
    pub fn refused(&mut self, line: u64, now: Time) {
        if let Some(at) = self.open.get_mut(&line) {
            *at = now + REFUSED_PAUSE;
        }
    }

    /// There is a connection again: what was on its way may be lost.
    pub fn reconnected(&mut self) {
        self.open.values_mut().for_each(|at| *at = Time::ZERO);
    }

    /// Lines that the log has not acknowledged yet.
    pub fn waiting(&self) -> u64 {
        self.spooled - self.done - self.done_beyond.len() as u64
    }

    /// When a line is to be sent again, if nothing else happens.
    pub fn next_at(&self) -> Time {
        self.open.values().min().copied().unwrap_or(Time::NEVER)
    }
}

#[cfg(test)]
mod tests;
