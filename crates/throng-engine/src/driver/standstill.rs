//! Detects stuck users: nothing is due for them, and nothing that may arrive would wake them. That
//! is a bug of throng; without this check, such a run would report only the users that are left.
//! The run ends instead, and the user reports what it waits for.

use std::time::Duration;

use throng_base::Time;

use crate::shard::Lane;
use crate::shard::due::DueQueue;
use crate::shard::seats::Seats;

/// How long a user may be stuck before the run ends.
const STANDSTILL_MAX: Duration = Duration::from_secs(5);
/// Checks that must find a user stuck. Between two of them, every user that can continue has had
/// its turn, so that a process that was suspended does not report stuck users.
const LOOKS_MIN: u32 = 3;
/// Slots per check: some 50 microseconds.
const SEATS_MAX: usize = 16_384;
/// Suspects at a time; one of them is enough.
const SUSPECTS_MAX: usize = 16;

/// Suspects among the users of one lane.
#[derive(Default)]
pub(super) struct Standstill {
    suspects: Vec<Suspect>,
    /// The first slot of the next check.
    next: usize,
    is_told: bool,
}

struct Suspect {
    slot: u32,
    since: Time,
    looks: u32,
}

impl Standstill {
    /// Checks some slots, and those of suspects again. A stuck user reports what it waits for, and
    /// ends the run.
    pub(super) fn look(&mut self, lane: &Lane, now: Time) {
        if self.is_told {
            return;
        }
        let found = self.find(&lane.seats.borrow(), &lane.due.borrow(), now);
        if let Some(slot) = found {
            self.is_told = true;
            lane.asks.set(true);
            lane.seats.borrow_mut().ask(slot);
        }
    }

    fn find(&mut self, seats: &Seats, due: &DueQueue, now: Time) -> Option<u32> {
        let stands = |slot: u32| seats.needs_alarm(slot) && !due.is_armed(slot);
        self.suspects.retain_mut(|one| {
            one.looks += 1;
            stands(one.slot)
        });
        let all = seats.all();
        let (from, to) = (self.next.min(all), all.min(self.next + SEATS_MAX));
        self.next = if to == all { 0 } else { to };
        for slot in (from as u32..to as u32).filter(|slot| stands(*slot)) {
            let is_known = self.suspects.iter().any(|one| one.slot == slot);
            if !is_known && self.suspects.len() < SUSPECTS_MAX {
                self.suspects.push(Suspect { slot, since: now, looks: 1 });
            }
        }
        let is_over = |one: &&Suspect| one.looks >= LOOKS_MIN && now - one.since >= STANDSTILL_MAX;
        self.suspects.iter().find(is_over).map(|one| one.slot)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Checks once a second; returns the second in which a user was found, of at most 20.
    fn found(seats: &Seats, due: &DueQueue) -> Option<(u64, u32)> {
        let mut standstill = Standstill::default();
        (1..=20).find_map(|second| {
            Some((second, standstill.find(seats, due, Time::from_secs(second))?))
        })
    }

    #[test]
    fn a_user_that_nothing_will_wake_is_detected() {
        let (mut seats, mut due) = (Seats::default(), DueQueue::default());
        let slots: Vec<u32> = (0..40_000).map(|_| seats.take(true)).collect();
        for slot in &slots {
            seats.know(*slot, Waker::noop());
            due.arm(*slot, Time::from_secs(1000));
        }
        assert_eq!(found(&seats, &due), None);
        due.remove(30_000);
        // Not all slots are checked in one second.
        assert_eq!(found(&seats, &due), Some((7, 30_000)));
        due.remove(3);
        assert_eq!(found(&seats, &due), Some((6, 3)));
    }

    #[test]
    fn users_with_a_valid_wait_are_not_stuck() {
        let (mut seats, due) = (Seats::new(true), DueQueue::default());
        let mut user = || {
            let slot = seats.take(true);
            seats.know(slot, Waker::noop());
            slot
        };
        let (idle, stays, fired, begins, parts) = (user(), user(), user(), user(), user());
        // A user that has not had its first turn, and an empty slot.
        let (_, gone) = (seats.take(true), seats.take(true));
        seats.release(gone);
        seats.idle(begins);
        assert!(seats.begin(Time(1)));
        seats.idle(idle);
        seats.stands_by(stays, true);
        seats.fire(fired);
        seats.connected(parts, true);
        assert!(seats.part_one(throng_program::Parting::Fin));
        assert_eq!(found(&seats, &due), None);
        // It has continued, and waits for something else.
        seats.stands_by(stays, false);
        assert_eq!(found(&seats, &due), Some((6, stays)));
        // Found several times, but not long enough.
        let mut standstill = Standstill::default();
        for second in 1..40 {
            seats.stands_by(stays, second % 5 == 0);
            assert_eq!(standstill.find(&seats, &due, Time::from_secs(second)), None);
        }
        // Long enough, but without a turn in between: the process was suspended.
        let mut standstill = Standstill::default();
        for second in [100, 200] {
            assert_eq!(standstill.find(&seats, &due, Time::from_secs(second)), None);
        }
        assert_eq!(standstill.find(&seats, &due, Time::from_secs(201)), Some(stays));
    }
}
