//! The slots of a shard: one per user, with the orders of the shard for it. Nothing here knows what
//! a user does.

use std::collections::{HashMap, VecDeque};
use std::task::Waker;

use throng_base::Time;
use throng_metrics::UserState;
use throng_program::Parting;

/// The orders that a user finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Leave gracefully as soon as the running step is done.
    pub(crate) leave: bool,
    /// Leave now.
    pub(crate) abort: bool,
    /// The time that it armed may have come.
    pub(crate) fired: bool,
    /// An iteration starts, due then.
    pub(crate) begin: Option<Time>,
    /// Drop the connection now, with this close mode, and return.
    pub(crate) part: Option<Parting>,
}

/// There are a million of them: small, with [`Told`] spread out.
#[derive(Debug)]
struct Seat {
    waker: Option<Waker>,
    /// [`Time::NEVER`] if no iteration starts.
    begin: Time,
    part: Option<Parting>,
    flags: Flags,
    /// `None` if the slot is free.
    state: Option<UserState>,
}

const _: () = assert!(size_of::<Seat>() <= 32);

/// Memory per user, without the queues that it is in.
pub(crate) const SEAT_BYTES: u64 = size_of::<Seat>() as u64;

/// State of a slot, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flags(u16);

impl Flags {
    const LEAVE: u16 = 1;
    const ABORT: u16 = 1 << 1;
    const FIRED: u16 = 1 << 2;
    const TAKEN: u16 = 1 << 3;
    /// Stays until it is told to leave.
    const STAYS: u16 = 1 << 4;
    /// Waits for an iteration.
    const IDLE: u16 = 1 << 5;
    /// Has a connection that it may drop.
    const CONNECTED: u16 = 1 << 6;
    /// Is in the queue of users that disconnect. This belongs to the slot, whichever user has it.
    const QUEUED: u16 = 1 << 7;
    /// Is in the queue of users that wait for an iteration, although it may not wait anymore.
    const IN_IDLE: u16 = 1 << 8;
    /// Arrived to run its session once.
    const ARRIVED: u16 = 1 << 9;
    /// Needs no wake-up time: it stays as long as it may, or continues by itself.
    const STANDS_BY: u16 = 1 << 10;
    /// Is to report what it waits for.
    const ASKED: u16 = 1 << 11;

    fn has(self, bits: u16) -> bool {
        self.0 & bits == bits
    }

    fn has_any(self, bits: u16) -> bool {
        self.0 & bits != 0
    }

    fn set(&mut self, bits: u16) {
        self.0 |= bits;
    }

    /// Clears the bits; true if one of them was set.
    fn clear(&mut self, bits: u16) -> bool {
        let was = self.has_any(bits);
        self.0 &= !bits;
        was
    }
}

impl Seat {
    const FREE: Seat =
        Seat { waker: None, begin: Time::NEVER, part: None, flags: Flags(0), state: None };
}

#[derive(Debug, Default)]
pub(crate) struct Seats {
    seats: Vec<Seat>,
    free: Vec<u32>,
    /// Users that stay, the latest last; slots whose user no longer stays are skipped.
    staying: Vec<u32>,
    /// Users that wait for an iteration, the longest wait first: so all take turns, and no
    /// connection idles for too long. Slots that are no longer idle are skipped.
    idle: VecDeque<u32>,
    taken: u64,
    /// How many of these arrived to run their session once.
    arrived: u64,
    /// Some user will have to disconnect, so it must be known which can.
    churns: bool,
    /// Users that stay and have a connection, the longest connected first: so no user disconnects
    /// twice before all others did. Those without a connection are skipped.
    parting: VecDeque<u32>,
    /// When users that were online became unreachable. Few users are away at a time, so this is not
    /// stored per user.
    away: HashMap<u32, Time>,
}

impl Seats {
    /// Slots; with `churns`, some of their users will disconnect.
    pub(crate) fn new(churns: bool) -> Seats {
        Seats { churns, ..Seats::default() }
    }

    pub(crate) fn take(&mut self, stays: bool) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.seats.push(Seat::FREE);
            (self.seats.len() - 1) as u32
        });
        let flags = &mut self.seats[slot as usize].flags;
        flags.set(Flags::TAKEN);
        self.taken += 1;
        if stays {
            flags.set(Flags::STAYS);
            self.staying.push(slot);
        } else {
            flags.set(Flags::ARRIVED);
            self.arrived += 1;
        }
        slot
    }

    /// The user enters this state; returns the previous one.
    pub(crate) fn comes_to(&mut self, slot: u32, state: Option<UserState>) -> Option<UserState> {
        std::mem::replace(&mut self.seats[slot as usize].state, state)
    }

    pub(crate) fn state(&self, slot: u32) -> Option<UserState> {
        self.seats[slot as usize].state
    }

    /// The user of this slot is gone.
    pub(crate) fn release(&mut self, slot: u32) {
        self.not_idle(slot);
        self.away.remove(&slot);
        let seat = &mut self.seats[slot as usize];
        self.arrived -= u64::from(seat.flags.has(Flags::ARRIVED));
        let flags = Flags(seat.flags.0 & (Flags::QUEUED | Flags::IN_IDLE));
        *seat = Seat { flags, ..Seat::FREE };
        self.taken -= 1;
        self.free.push(slot);
    }

    /// The user has lost its last connection. False if it was away already.
    pub(crate) fn goes_away(&mut self, slot: u32, now: Time) -> bool {
        let is_new = !self.away.contains_key(&slot);
        self.away.entry(slot).or_insert(now);
        is_new
    }

    /// When the user went away, if it was away.
    pub(crate) fn is_back(&mut self, slot: u32) -> Option<Time> {
        let since = self.away.remove(&slot);
        // The storm is over: releases the memory.
        if self.away.is_empty() && self.away.capacity() > 0 {
            self.away.shrink_to_fit();
        }
        since
    }

    /// The user now has a connection that it may drop, or none.
    #[inline]
    pub(crate) fn connected(&mut self, slot: u32, connected: bool) {
        let flags = &mut self.seats[slot as usize].flags;
        match connected {
            true => {
                flags.set(Flags::CONNECTED);
                self.may_part(slot);
            }
            false => {
                flags.clear(Flags::CONNECTED);
            }
        }
    }

    /// Appends the user to the queue of users that disconnect.
    fn may_part(&mut self, slot: u32) {
        let flags = &mut self.seats[slot as usize].flags;
        if self.churns && flags.has(Flags::STAYS) && !flags.has(Flags::QUEUED) {
            flags.set(Flags::QUEUED);
            self.parting.push_back(slot);
        }
    }

    /// A user that stays drops its connection with this close mode. False if no user has one.
    pub(crate) fn part_one(&mut self, how: Parting) -> bool {
        for _ in 0..self.parting.len() {
            let Some(slot) = self.parting.pop_front() else { break };
            let seat = &mut self.seats[slot as usize];
            seat.flags.clear(Flags::QUEUED);
            let can = seat.flags.has(Flags::STAYS | Flags::CONNECTED)
                && !seat.flags.has_any(Flags::LEAVE | Flags::ABORT);
            if can && seat.begin != Time::NEVER {
                // It was given an iteration and does not know yet.
                self.may_part(slot);
            } else if can {
                // From here on it gets none.
                self.not_idle(slot);
                self.tell(slot, |seat| seat.part = Some(how));
                return true;
            }
        }
        false
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// How many users arrived to run their session once.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived
    }

    pub(crate) fn know(&mut self, slot: u32, waker: &Waker) {
        self.seats[slot as usize].waker = Some(waker.clone());
    }

    /// Takes the orders for the user; a due time, an iteration and a disconnect are returned once.
    #[inline]
    pub(crate) fn told(&mut self, slot: u32) -> Told {
        let seat = &mut self.seats[slot as usize];
        let told = Told {
            leave: seat.flags.has(Flags::LEAVE),
            abort: seat.flags.has(Flags::ABORT),
            fired: seat.flags.clear(Flags::FIRED),
            begin: Some(std::mem::replace(&mut seat.begin, Time::NEVER))
                .filter(|begin| *begin != Time::NEVER),
            part: seat.part.take(),
        };
        if told.part.is_some() {
            self.may_part(slot);
        }
        told
    }

    /// The user waits and needs no wake-up time; or it needs one again.
    pub(crate) fn stands_by(&mut self, slot: u32, stands_by: bool) {
        let flags = &mut self.seats[slot as usize].flags;
        match stands_by {
            true => flags.set(Flags::STANDS_BY),
            false => drop(flags.clear(Flags::STANDS_BY)),
        }
    }

    /// Whether the slot has a user that waits, has no new orders, and continues only at its wake-up
    /// time, or when what it waits for arrives earlier.
    pub(crate) fn needs_alarm(&self, slot: u32) -> bool {
        let Seat { waker, begin, part, flags, .. } = &self.seats[slot as usize];
        let is_told = *begin != Time::NEVER || part.is_some() || flags.has(Flags::FIRED);
        let waits = !flags.has_any(Flags::IDLE | Flags::STANDS_BY | Flags::ABORT);
        waker.is_some() && !is_told && waits
    }

    /// Asks the user to report what it waits for.
    pub(crate) fn ask(&mut self, slot: u32) {
        self.tell(slot, |seat| seat.flags.set(Flags::ASKED));
    }

    pub(crate) fn take_asked(&mut self, slot: u32) -> bool {
        self.seats[slot as usize].flags.clear(Flags::ASKED)
    }

    /// The number of slots, taken or free.
    pub(crate) fn all(&self) -> usize {
        self.seats.len()
    }

    /// Whether the user has been told to leave; keeps all other orders.
    pub(crate) fn must_leave(&self, slot: u32) -> bool {
        self.seats[slot as usize].flags.has(Flags::LEAVE)
    }

    pub(crate) fn fire(&mut self, slot: u32) {
        self.tell(slot, |seat| seat.flags.set(Flags::FIRED));
    }

    /// The user waits for an iteration.
    pub(crate) fn idle(&mut self, slot: u32) {
        let flags = &mut self.seats[slot as usize].flags;
        flags.set(Flags::IDLE);
        if !flags.has(Flags::IN_IDLE) {
            flags.set(Flags::IN_IDLE);
            self.idle.push_back(slot);
        }
    }

    /// Whether a user waits for an iteration. Removes stale entries from the queue first: a
    /// separate counter could disagree with it.
    pub(crate) fn has_idle(&mut self) -> bool {
        while let Some(slot) = self.idle.front().copied() {
            let flags = &mut self.seats[slot as usize].flags;
            if flags.has(Flags::IDLE) {
                return true;
            }
            flags.clear(Flags::IN_IDLE);
            self.idle.pop_front();
        }
        false
    }

    /// False if it was not idle.
    pub(crate) fn not_idle(&mut self, slot: u32) -> bool {
        self.seats[slot as usize].flags.clear(Flags::IDLE)
    }

    /// Starts an iteration of the user that waits longest. False if none waits.
    pub(crate) fn begin(&mut self, due: Time) -> bool {
        if !self.has_idle() {
            return false;
        }
        let Some(slot) = self.idle.pop_front() else { return false };
        self.seats[slot as usize].flags.clear(Flags::IDLE | Flags::IN_IDLE);
        self.tell(slot, |seat| seat.begin = due);
        true
    }

    /// The latest of the users that stay leaves.
    pub(crate) fn leave_one(&mut self) {
        while let Some(slot) = self.staying.pop() {
            if self.seats[slot as usize].flags.clear(Flags::STAYS) {
                self.not_idle(slot);
                self.tell(slot, |seat| seat.flags.set(Flags::LEAVE));
                return;
            }
        }
    }

    /// The user leaves as soon as it can.
    pub(crate) fn leave(&mut self, slot: u32) {
        self.seats[slot as usize].flags.clear(Flags::STAYS);
        self.not_idle(slot);
        self.tell(slot, |seat| seat.flags.set(Flags::LEAVE));
    }

    pub(crate) fn leave_all(&mut self) {
        self.staying.clear();
        self.idle.clear();
        (0..self.seats.len() as u32).for_each(|slot| {
            self.seats[slot as usize].flags.clear(Flags::IN_IDLE);
            self.not_idle(slot);
        });
        self.tell_all(|seat| seat.flags.set(Flags::LEAVE));
    }

    pub(crate) fn abort_all(&mut self) {
        self.tell_all(|seat| seat.flags.set(Flags::ABORT));
    }

    fn tell_all(&mut self, tell: impl Fn(&mut Seat)) {
        for slot in 0..self.seats.len() as u32 {
            if self.seats[slot as usize].flags.has(Flags::TAKEN) {
                self.tell(slot, &tell);
            }
        }
    }

    fn tell(&mut self, slot: u32, tell: impl Fn(&mut Seat)) {
        let seat = &mut self.seats[slot as usize];
        tell(seat);
        if let Some(waker) = &seat.waker {
            waker.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_and_orders_are_returned_once() {
        let mut seats = Seats::default();
        let (a, b) = (seats.take(true), seats.take(true));
        assert_eq!((a, b, seats.taken()), (0, 1, 2));
        seats.idle(a);
        assert!(seats.begin(Time(7)));
        assert!(!seats.begin(Time(8)));
        assert_eq!(seats.told(a).begin, Some(Time(7)));
        assert_eq!(seats.told(a), Told::default());
        seats.leave_one();
        assert!(seats.must_leave(b) && !seats.must_leave(a));
        seats.release(b);
        assert_eq!(seats.take(false), b);
        assert!(!seats.must_leave(b));
        seats.leave_all();
        assert!(seats.must_leave(a) && seats.told(a).leave);
    }

    #[test]
    fn the_longest_waiting_user_starts_first() {
        let mut seats = Seats::default();
        let slots: Vec<u32> = (0..5).map(|_| seats.take(true)).collect();
        slots.iter().for_each(|slot| seats.idle(*slot));
        seats.release(1);
        for slot in [0, 2, 3, 4] {
            assert!(seats.begin(Time(1)));
            assert!(seats.told(slot).begin.is_some(), "{slot}");
            seats.idle(slot);
        }
        assert!(seats.begin(Time(2)) && seats.told(0).begin.is_some());
    }

    #[test]
    fn no_user_is_idle_once_all_have_started_or_left() {
        let mut seats = Seats::default();
        let slots: Vec<u32> = (0..5).map(|_| seats.take(true)).collect();
        assert!(!seats.has_idle());
        slots.iter().for_each(|slot| seats.idle(*slot));
        seats.release(0);
        assert!(seats.not_idle(1) && !seats.not_idle(1));
        for left in (0..3).rev() {
            assert!(seats.begin(Time(1)));
            assert_eq!(seats.has_idle(), left > 0);
        }
        assert!(!seats.begin(Time(1)) && seats.idle.is_empty());
    }

    #[test]
    fn a_released_slot_tells_no_other_user_to_leave() {
        let mut seats = Seats::default();
        let (a, b) = (seats.take(true), seats.take(true));
        seats.release(b);
        assert_eq!(seats.take(false), b);
        seats.leave_one();
        assert!(seats.must_leave(a) && !seats.must_leave(b));
        // No user is left that stays.
        seats.leave_one();
        assert!(!seats.must_leave(b));
    }

    /// The users that are told to disconnect, in order.
    fn parted(seats: &mut Seats, count: usize) -> Vec<u32> {
        let slots = 0..seats.seats.len() as u32;
        let part = |_| {
            assert!(seats.part_one(Parting::Reset));
            let told: Vec<u32> =
                slots.clone().filter(|slot| seats.told(*slot).part.is_some()).collect();
            assert_eq!(told.len(), 1);
            told[0]
        };
        (0..count).map(part).collect()
    }

    #[test]
    fn no_user_disconnects_twice_before_all_others_did() {
        let mut seats = Seats::new(true);
        assert!(!seats.part_one(Parting::Fin));
        let slots: Vec<u32> = (0..5).map(|_| seats.take(true)).collect();
        let passing = seats.take(false);
        slots.iter().chain([&passing]).for_each(|slot| seats.connected(*slot, true));
        assert_eq!(parted(&mut seats, 7), [0, 1, 2, 3, 4, 0, 1]);
        // A user without a connection is skipped, and then counts as the latest connected.
        seats.connected(2, false);
        assert_eq!(parted(&mut seats, 3), [3, 4, 0]);
        seats.connected(2, true);
        seats.connected(2, true);
        assert_eq!(parted(&mut seats, 6), [1, 3, 4, 0, 2, 1]);
        // A slot that is used again is in the queue once.
        seats.release(3);
        assert_eq!(seats.take(true), 3);
        seats.connected(3, true);
        let mut round = parted(&mut seats, 5);
        round.sort_unstable();
        assert_eq!(round, [0, 1, 2, 3, 4]);
        seats.leave_all();
        assert!(!seats.part_one(Parting::Fin));
    }

    #[test]
    fn a_given_iteration_is_not_lost_by_a_disconnect() {
        let mut seats = Seats::new(true);
        let (a, b) = (seats.take(true), seats.take(true));
        [a, b].iter().for_each(|slot| seats.connected(*slot, true));
        seats.idle(a);
        seats.idle(b);
        assert!(seats.begin(Time(5)));
        assert!(seats.part_one(Parting::Vanish));
        let (first, second) = (seats.told(a), seats.told(b));
        assert_eq!((first.begin, first.part), (Some(Time(5)), None));
        assert_eq!((second.begin, second.part), (None, Some(Parting::Vanish)));
        assert!(!seats.begin(Time(6)) && !seats.has_idle());
    }

    #[test]
    fn without_churn_no_user_is_queued_to_disconnect() {
        let mut seats = Seats::default();
        let slot = seats.take(true);
        seats.connected(slot, true);
        assert!(!seats.part_one(Parting::Fin) && seats.parting.capacity() == 0);
    }

    #[test]
    fn a_user_that_disconnects_while_idle_is_queued_once() {
        let mut seats = Seats::new(true);
        let slots: Vec<u32> = (0..5).map(|_| seats.take(true)).collect();
        for _ in 0..1000 {
            for slot in &slots {
                seats.connected(*slot, true);
                seats.idle(*slot);
            }
            (0..5).for_each(|_| assert!(seats.part_one(Parting::Reset)));
            for slot in &slots {
                assert!(seats.told(*slot).part.is_some());
                seats.connected(*slot, false);
            }
        }
        assert!(!seats.has_idle() && !seats.begin(Time(1)));
        assert!(seats.idle.len() <= 5, "{}", seats.idle.len());
    }
}
