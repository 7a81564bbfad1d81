//! Who is there: a seat per user with what the shard has to tell it. Nothing here knows what a
//! user does.

use std::collections::{HashMap, VecDeque};
use std::task::Waker;

use throng_base::Time;
use throng_metrics::UserState;
use throng_program::Parting;

/// What a user finds when it looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Leave in peace as soon as the running step is done.
    pub(crate) leave: bool,
    /// Leave now.
    pub(crate) abort: bool,
    /// The moment it armed may have come.
    pub(crate) fired: bool,
    /// An iteration begins, due then.
    pub(crate) begin: Option<Time>,
    /// Lose the connection now, in this way, and come back.
    pub(crate) part: Option<Parting>,
}

/// A million of them are there at once: small, with [`Told`] spread out.
#[derive(Debug)]
struct Seat {
    waker: Option<Waker>,
    /// [`Time::NEVER`] when no iteration begins.
    begin: Time,
    part: Option<Parting>,
    flags: Flags,
    /// None where nobody sits.
    state: Option<UserState>,
}

const _: () = assert!(size_of::<Seat>() <= 32);

/// What a user takes here, without the queues that it stands in.
pub(crate) const SEAT_BYTES: u64 = size_of::<Seat>() as u64;

/// What is so of a seat; bits.
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
    /// Has a connection that it may lose.
    const CONNECTED: u16 = 1 << 6;
    /// Stands in the order of those who part. This belongs to the seat, whoever sits there.
    const QUEUED: u16 = 1 << 7;
    /// Stands in the order of those who wait for an iteration, though it may not wait any more.
    const IN_IDLE: u16 = 1 << 8;
    /// Came to do its session once.
    const ARRIVED: u16 = 1 << 9;
    /// Needs no moment at which it is woken: it stays for as long as it may, or goes on by itself.
    const STANDS_BY: u16 = 1 << 10;
    /// Is to say what it waits for.
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

    /// Whether one of them was set.
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
    /// Users who stay, the last comer last; seats of which nobody stays any more are passed over.
    staying: Vec<u32>,
    /// Users who wait for an iteration, who waits longest first: so all take their turn, and no
    /// connection falls asleep. Those whose seat is not idle any more are passed over.
    idle: VecDeque<u32>,
    taken: u64,
    /// Of these those who came to do their session once.
    arrived: u64,
    /// Somebody will have to part, so that it has to be known who can.
    churns: bool,
    /// Users who stay and have a connection, who has it longest first: so nobody parts twice
    /// before all others did. Those who have none any more are passed over.
    parting: VecDeque<u32>,
    /// Since when nobody can reach users that were online. Few users are away
    /// at a time, so a user is no larger for it.
    away: HashMap<u32, Time>,
}

impl Seats {
    /// Seats of which some users will part where `churns`.
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

    /// The user comes to this state; returns the one that it was in.
    pub(crate) fn comes_to(&mut self, slot: u32, state: Option<UserState>) -> Option<UserState> {
        std::mem::replace(&mut self.seats[slot as usize].state, state)
    }

    pub(crate) fn state(&self, slot: u32) -> Option<UserState> {
        self.seats[slot as usize].state
    }

    /// The user at this seat is gone.
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

    /// The user has lost the last of its connections. False if it was away already.
    pub(crate) fn goes_away(&mut self, slot: u32, now: Time) -> bool {
        let is_new = !self.away.contains_key(&slot);
        self.away.entry(slot).or_insert(now);
        is_new
    }

    /// Since when the user was away, if it was.
    pub(crate) fn is_back(&mut self, slot: u32) -> Option<Time> {
        let since = self.away.remove(&slot);
        // A storm is over: what it took is given back.
        if self.away.is_empty() && self.away.capacity() > 0 {
            self.away.shrink_to_fit();
        }
        since
    }

    /// The user has a connection that it may lose, or has none any more.
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

    /// The user gets its place in the order of those who part, behind all others.
    fn may_part(&mut self, slot: u32) {
        let flags = &mut self.seats[slot as usize].flags;
        if self.churns && flags.has(Flags::STAYS) && !flags.has(Flags::QUEUED) {
            flags.set(Flags::QUEUED);
            self.parting.push_back(slot);
        }
    }

    /// A user who stays loses its connection in this way. False when nobody has one.
    pub(crate) fn part_one(&mut self, how: Parting) -> bool {
        for _ in 0..self.parting.len() {
            let Some(slot) = self.parting.pop_front() else { break };
            let seat = &mut self.seats[slot as usize];
            seat.flags.clear(Flags::QUEUED);
            let can = seat.flags.has(Flags::STAYS | Flags::CONNECTED)
                && !seat.flags.has_any(Flags::LEAVE | Flags::ABORT);
            if can && seat.begin != Time::NEVER {
                // It has been given an iteration and does not know it yet.
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

    /// How many are there who came to do their session once.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived
    }

    pub(crate) fn know(&mut self, slot: u32, waker: &Waker) {
        self.seats[slot as usize].waker = Some(waker.clone());
    }

    /// What the user is told; a moment that came, an iteration and a parting are told once.
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

    /// The user waits, and needs no moment at which it is woken; or it needs one again.
    pub(crate) fn stands_by(&mut self, slot: u32, stands_by: bool) {
        let flags = &mut self.seats[slot as usize].flags;
        match stands_by {
            true => flags.set(Flags::STANDS_BY),
            false => drop(flags.clear(Flags::STANDS_BY)),
        }
    }

    /// Whether somebody sits there who waits for something, was told nothing new, and goes on only
    /// when its moment comes, or what it waits for before that.
    pub(crate) fn needs_alarm(&self, slot: u32) -> bool {
        let Seat { waker, begin, part, flags, .. } = &self.seats[slot as usize];
        let is_told = *begin != Time::NEVER || part.is_some() || flags.has(Flags::FIRED);
        let waits = !flags.has_any(Flags::IDLE | Flags::STANDS_BY | Flags::ABORT);
        waker.is_some() && !is_told && waits
    }

    /// The user says what it waits for.
    pub(crate) fn ask(&mut self, slot: u32) {
        self.tell(slot, |seat| seat.flags.set(Flags::ASKED));
    }

    pub(crate) fn take_asked(&mut self, slot: u32) -> bool {
        self.seats[slot as usize].flags.clear(Flags::ASKED)
    }

    /// How many seats there are, taken or free.
    pub(crate) fn all(&self) -> usize {
        self.seats.len()
    }

    /// Whether the user has been told to leave; keeps everything else for later.
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

    /// Whether somebody waits for an iteration. The queue itself says so, once those are out of it
    /// that wait no more: a counter beside it would be a second truth.
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

    /// False when it was not idle.
    pub(crate) fn not_idle(&mut self, slot: u32) -> bool {
        self.seats[slot as usize].flags.clear(Flags::IDLE)
    }

    /// Lets the user begin who waits longest. False when nobody waits.
    pub(crate) fn begin(&mut self, due: Time) -> bool {
        if !self.has_idle() {
            return false;
        }
        let Some(slot) = self.idle.pop_front() else { return false };
        self.seats[slot as usize].flags.clear(Flags::IDLE | Flags::IN_IDLE);
        self.tell(slot, |seat| seat.begin = due);
        true
    }

    /// The user who came last of those who stay leaves.
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
    fn seats_are_used_again_and_words_are_told_once() {
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
    fn who_waits_longest_begins_first() {
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
    fn nobody_is_idle_once_all_have_begun_or_gone() {
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
    fn a_seat_that_was_given_back_tells_nobody_else_to_leave() {
        let mut seats = Seats::default();
        let (a, b) = (seats.take(true), seats.take(true));
        seats.release(b);
        assert_eq!(seats.take(false), b);
        seats.leave_one();
        assert!(seats.must_leave(a) && !seats.must_leave(b));
        // Nobody is left who stays.
        seats.leave_one();
        assert!(!seats.must_leave(b));
    }

    /// Who is told to part, in this order.
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
    fn nobody_parts_twice_before_all_others_did() {
        let mut seats = Seats::new(true);
        assert!(!seats.part_one(Parting::Fin));
        let slots: Vec<u32> = (0..5).map(|_| seats.take(true)).collect();
        let passing = seats.take(false);
        slots.iter().chain([&passing]).for_each(|slot| seats.connected(*slot, true));
        assert_eq!(parted(&mut seats, 7), [0, 1, 2, 3, 4, 0, 1]);
        // Who has no connection is passed over, and then has had it the shortest time.
        seats.connected(2, false);
        assert_eq!(parted(&mut seats, 3), [3, 4, 0]);
        seats.connected(2, true);
        seats.connected(2, true);
        assert_eq!(parted(&mut seats, 6), [1, 3, 4, 0, 2, 1]);
        // A seat that is used again stands in the order once.
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
    fn an_iteration_that_was_given_is_not_lost_by_parting() {
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
    fn where_nobody_ever_parts_nobody_stands_in_line() {
        let mut seats = Seats::default();
        let slot = seats.take(true);
        seats.connected(slot, true);
        assert!(!seats.part_one(Parting::Fin) && seats.parting.capacity() == 0);
    }

    #[test]
    fn who_falls_out_while_idle_stands_in_one_place_only() {
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
