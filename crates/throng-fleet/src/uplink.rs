//! Sends the lines of an agent to the log of the bus. The spool is the run directory on the agent's
//! disk; a line is resent until the log has acknowledged it, so nothing is lost while either of
//! them exists. Lines can arrive twice and out of order: [`crate::receipt`] tracks them by number.
//! Lines in flight are bounded; waiting lines are on disk, not in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use throng_base::Time;

/// Maximum number of lines in flight.
pub const WINDOW: usize = 256;
/// A line without an acknowledgment is resent after this time.
pub const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// A line that the log refused, because it was full or unavailable, is resent after this time.
pub const REFUSED_PAUSE: Duration = Duration::from_millis(500);

/// Which lines of one incarnation must be sent.
#[derive(Clone, Debug, Default)]
pub struct Uplink {
    /// Lines in the spool.
    spooled: u64,
    /// The first that was never sent.
    next: u64,
    /// In flight, with the time of the next attempt.
    open: BTreeMap<u64, Time>,
    /// All earlier lines are acknowledged.
    done: u64,
    /// Acknowledged lines after it; at most a window.
    done_beyond: BTreeSet<u64>,
}

impl Uplink {
    /// Sets the number of lines in the spool.
    pub fn spooled(&mut self, lines: u64) {
        self.spooled = self.spooled.max(lines);
    }

    /// The next line to send now: one to be resent, or a new one.
    pub fn send(&mut self, now: Time) -> Option<u64> {
        let again = self.open.iter().find(|&(_, &at)| at <= now).map(|(&line, _)| line);
        let line = again.or_else(|| {
            // The oldest line bounds the window, and so the memory for later ones.
            let is_open = self.next < self.done + WINDOW as u64 && self.next < self.spooled;
            let line = is_open.then_some(self.next)?;
            self.next += 1;
            Some(line)
        })?;
        self.open.insert(line, now + AGAIN_AFTER);
        Some(line)
    }

    /// The log has stored it.
    pub fn acknowledged(&mut self, line: u64) {
        if self.open.remove(&line).is_none() {
            return;
        }
        self.done_beyond.insert(line);
        while self.done_beyond.remove(&self.done) {
            self.done += 1;
        }
    }

    /// The log has refused it.
    pub fn refused(&mut self, line: u64, now: Time) {
        if let Some(at) = self.open.get_mut(&line) {
            *at = now + REFUSED_PAUSE;
        }
    }

    /// The connection is back: lines in flight may be lost.
    pub fn reconnected(&mut self) {
        self.open.values_mut().for_each(|at| *at = Time::ZERO);
    }

    /// The number of lines that are not acknowledged yet.
    pub fn waiting(&self) -> u64 {
        self.spooled - self.done - self.done_beyond.len() as u64
    }

    /// When a line must be resent, if nothing else happens.
    pub fn next_at(&self) -> Time {
        self.open.values().min().copied().unwrap_or(Time::NEVER)
    }
}

#[cfg(test)]
mod tests;
