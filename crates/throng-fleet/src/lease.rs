//! Elects one controller at a time. The lease is a register on the bus, written by compare-and-set;
//! the holder renews it regularly, and another controller takes it if it has not changed for a
//! while. A holder counts its time from when it *sent* the accepted write; another counts from when
//! it *saw* the change, which is later, and waits longer. So two never hold it at the same time,
//! whatever is lost, late or frozen between them, if the rates of their clocks differ by less than
//! a quarter (Gray and Cheriton, "Leases", 1989).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::Time;

/// How often a holder renews.
pub const RENEW_EVERY: Duration = Duration::from_secs(1);
/// How long the lease is valid after sending the last accepted write.
pub const HOLDS_FOR: Duration = Duration::from_secs(3);
/// How long another waits without seeing a change.
pub const TAKEN_AFTER: Duration = Duration::from_secs(4);

/// A controller's process, identified by a random number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Controller(pub u64);

/// The value of the register. Without a holder it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub holder: Option<Controller>,
    /// The number of the holder's write.
    pub attempt: u64,
}

/// A register's value with its revision; revision 0 means never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterValue {
    pub revision: u64,
    pub held: Option<Held>,
}

/// A write that requires this revision of the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    pub expected: u64,
    pub held: Held,
}

/// A controller's view of the lease.
#[derive(Clone, Debug)]
pub struct Lease {
    own: Controller,
    seen: Option<(RegisterValue, Time)>,
    /// The last write, when it was sent, and whether its outcome is pending.
    last: Option<(Held, Time, bool)>,
    /// When the write was sent that acquired it.
    ours: Option<Time>,
    /// The revision at which it was acquired. It only grows from holder to holder, so that messages
    /// of an earlier holder can be recognized.
    epoch: u64,
}

impl Lease {
    pub fn new(own: Controller) -> Lease {
        Lease { own, seen: None, last: None, ours: None, epoch: 0 }
    }

    /// The epoch if this controller may give orders now. Must be checked before each order, because
    /// the lease of a frozen controller expires.
    pub fn epoch(&self, now: Time) -> Option<u64> {
        let holds = self.ours.is_some_and(|sent| now.since(sent) < HOLDS_FOR);
        holds.then_some(self.epoch)
    }

    /// True if another controller holds it.
    pub fn is_of_another(&self) -> bool {
        let holder = self.seen.and_then(|(seen, _)| seen.held?.holder);
        holder.is_some_and(|holder| holder != self.own)
    }

    /// Handles the value of the register, read or received.
    pub fn saw(&mut self, seen: RegisterValue, now: Time) {
        if self.seen.is_some_and(|(old, _)| seen.revision <= old.revision) {
            return;
        }
        self.seen = Some((seen, now));
        let own_write = self.last.filter(|(held, ..)| seen.held == Some(*held));
        match own_write {
            Some((held, sent, _)) => {
                self.last = Some((held, sent, false));
                self.accepted(held, sent, seen.revision);
            }
            None => self.ours = None,
        }
    }

    /// Our write was accepted with this revision.
    pub fn written(&mut self, attempt: u64, revision: u64, now: Time) {
        if let Some((held, ..)) = self.last.filter(|(held, ..)| held.attempt == attempt) {
            self.saw(RegisterValue { revision, held: Some(held) }, now);
        }
    }

    /// Our write failed: the register has another revision, which must be read.
    pub fn refused(&mut self, attempt: u64) {
        if let Some(last) = self.last.as_mut().filter(|(held, ..)| held.attempt == attempt) {
            last.2 = false;
        }
    }

    /// The next write, if any. A write without an outcome is abandoned after the renewal interval;
    /// if it was accepted nevertheless, the register shows it.
    pub fn write(&mut self, now: Time) -> Option<Write> {
        let (seen, since) = self.seen?;
        let waits = self.last.is_some_and(|(_, sent, open)| open && now.since(sent) < RENEW_EVERY);
        let holder = seen.held.and_then(|held| held.holder);
        let is_due = match holder {
            None => true,
            // If it was acquired by a write without a known outcome, it is written again.
            Some(holder) if holder == self.own => {
                let is_old = |sent| now.since(sent) >= RENEW_EVERY;
                self.ours.is_none_or(is_old) && self.last.is_none_or(|(_, sent, _)| is_old(sent))
            }
            Some(_) => now.since(since) >= TAKEN_AFTER,
        };
        (is_due && !waits).then(|| self.send(Some(self.own), seen.revision, now))
    }

    /// Releases it, so that another need not wait. None if it is not ours.
    pub fn release(&mut self, now: Time) -> Option<Write> {
        let (seen, _) = self.seen.filter(|_| self.epoch(now).is_some())?;
        self.ours = None;
        Some(self.send(None, seen.revision, now))
    }

    fn send(&mut self, holder: Option<Controller>, expected: u64, now: Time) -> Write {
        let attempt = self.last.map_or(0, |(held, ..)| held.attempt + 1);
        let held = Held { holder, attempt };
        self.last = Some((held, now, true));
        Write { expected, held }
    }

    fn accepted(&mut self, held: Held, sent: Time, revision: u64) {
        if held.holder.is_none() {
            self.ours = None;
            return;
        }
        if self.ours.is_none() {
            self.epoch = revision;
        }
        self.ours = Some(sent);
    }
}

#[cfg(test)]
mod tests;
