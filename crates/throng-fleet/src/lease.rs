//! Which controller commands: one at a time. The lease is a register on the bus that is written by
//! compare-and-set; who holds it writes it again and again, and another takes it when it has not
//! changed for a while. A holder counts its time from when it *sent* the write that was accepted,
//! another counts from when it *saw* the change, which is later, and waits for longer: so two never
//! hold it at once, whatever is lost, late or frozen between them, as long as their clocks run
//! equally fast within a quarter (Gray and Cheriton, "Leases", 1989).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::Time;

/// A holder writes so often.
pub const RENEW_EVERY: Duration = Duration::from_secs(1);
/// A holder holds for so long after it sent the last write that was accepted.
pub const HOLDS_FOR: Duration = Duration::from_secs(3);
/// Another takes a lease that it has not seen changing for so long.
pub const TAKEN_AFTER: Duration = Duration::from_secs(4);

/// Who writes: a controller's process. Each has its own, chosen at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Controller(pub u64);

/// What stands in the register. Without a holder it is free for anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub holder: Option<Controller>,
    /// Which of the holder's writes this is.
    pub attempt: u64,
}

/// A register's value with its revision; revision 0 is a register that was never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterValue {
    pub revision: u64,
    pub held: Option<Held>,
}

/// To be written, if the register still has this revision.
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
    /// The last write, when it was sent, and whether its outcome is still to come.
    last: Option<(Held, Time, bool)>,
    /// When the write was sent by which it is ours.
    ours: Option<Time>,
    /// The revision at which it became ours. It only grows from holder to holder, so what an
    /// earlier holder still says can be told from what this one says.
    epoch: u64,
}

impl Lease {
    pub fn new(own: Controller) -> Lease {
        Lease { own, seen: None, last: None, ours: None, epoch: 0 }
    }

    /// Whether this controller may give orders now, and its epoch. To be asked before each order:
    /// one that was frozen does not hold what it held before.
    pub fn epoch(&self, now: Time) -> Option<u64> {
        let holds = self.ours.is_some_and(|sent| now.since(sent) < HOLDS_FOR);
        holds.then_some(self.epoch)
    }

    /// Whether somebody else holds it.
    pub fn is_of_another(&self) -> bool {
        let holder = self.seen.and_then(|(seen, _)| seen.held?.holder);
        holder.is_some_and(|holder| holder != self.own)
    }

    /// What stands in the register, as it was read or told.
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

    /// Our write was accepted, and gave this revision.
    pub fn written(&mut self, attempt: u64, revision: u64, now: Time) {
        if let Some((held, ..)) = self.last.filter(|(held, ..)| held.attempt == attempt) {
            self.saw(RegisterValue { revision, held: Some(held) }, now);
        }
    }

    /// Our write came too late: the register has another revision, which is to be read.
    pub fn refused(&mut self, attempt: u64) {
        if let Some(last) = self.last.as_mut().filter(|(held, ..)| held.attempt == attempt) {
            last.2 = false;
        }
    }

    /// What is to be written now. A write whose outcome does not come is not waited for longer than
    /// it takes to renew; if it was accepted nevertheless, the register shows it.
    pub fn write(&mut self, now: Time) -> Option<Write> {
        let (seen, since) = self.seen?;
        let waits = self.last.is_some_and(|(_, sent, open)| open && now.since(sent) < RENEW_EVERY);
        let holder = seen.held.and_then(|held| held.holder);
        let is_due = match holder {
            None => true,
            // Where it became ours by a write whose outcome did not come, it is written again.
            Some(holder) if holder == self.own => {
                let is_old = |sent| now.since(sent) >= RENEW_EVERY;
                self.ours.is_none_or(is_old) && self.last.is_none_or(|(_, sent, _)| is_old(sent))
            }
            Some(_) => now.since(since) >= TAKEN_AFTER,
        };
        (is_due && !waits).then(|| self.send(Some(self.own), seen.revision, now))
    }

    /// Gives it away, so that another need not wait. Nothing where it is not ours.
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
