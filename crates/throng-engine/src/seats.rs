//! Who is there: a seat per user with what the shard has to tell it. Nothing here knows what a
//! user does.

use std::collections::VecDeque;
use std::task::Waker;

use throng_base::Time;

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
}

/// A million of them are there at once: small, with [`Told`] spread out.
#[derive(Debug)]
struct Seat {
    waker: Option<Waker>,
    /// [`Time::NEVER`] when no iteration begins.
    begin: Time,
    leave: bool,
    abort: bool,
    fired: bool,
    taken: bool,
    /// Stays until it is told to leave.
    stays: bool,
    /// Waits for an iteration.
    idle: bool,
}

const _: () = assert!(size_of::<Seat>() <= 32);

impl Seat {
    const FREE: Seat = Seat {
        waker: None,
        begin: Time::NEVER,
        leave: false,
        abort: false,
        fired: false,
        taken: false,
        stays: false,
        idle: false,
    };
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
    idle_count: u64,
    taken: u64,
}

impl Seats {
    pub(crate) fn take(&mut self, stays: bool) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.seats.push(Seat::FREE);
            (self.seats.len() - 1) as u32
        });
        self.seats[slot as usize] = Seat { taken: true, stays, ..Seat::FREE };
        self.taken += 1;
        if stays {
            self.staying.push(slot);
        }
        slot
    }

    /// The user at this seat is gone.
    pub(crate) fn release(&mut self, slot: u32) {
        self.not_idle(slot);
        self.seats[slot as usize] = Seat::FREE;
        self.taken -= 1;
        self.free.push(slot);
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    pub(crate) fn know(&mut self, slot: u32, waker: &Waker) {
        self.seats[slot as usize].waker = Some(waker.clone());
    }

    /// What the user is told; a moment that came and an iteration are told once.
    #[inline]
    pub(crate) fn told(&mut self, slot: u32) -> Told {
        let seat = &mut self.seats[slot as usize];
        Told {
            leave: seat.leave,
            abort: seat.abort,
            fired: std::mem::take(&mut seat.fired),
            begin: Some(std::mem::replace(&mut seat.begin, Time::NEVER))
                .filter(|begin| *begin != Time::NEVER),
        }
    }

    /// Whether the user has been told to leave; keeps everything else for later.
    pub(crate) fn must_leave(&self, slot: u32) -> bool {
        self.seats[slot as usize].leave
    }

    pub(crate) fn fire(&mut self, slot: u32) {
        self.tell(slot, |seat| seat.fired = true);
    }

    /// The user waits for an iteration.
    pub(crate) fn idle(&mut self, slot: u32) {
        self.seats[slot as usize].idle = true;
        self.idle_count += 1;
        self.idle.push_back(slot);
    }

    pub(crate) fn has_idle(&self) -> bool {
        self.idle_count > 0
    }

    /// False when it was not idle.
    fn not_idle(&mut self, slot: u32) -> bool {
        let was = std::mem::take(&mut self.seats[slot as usize].idle);
        self.idle_count -= u64::from(was);
        was
    }

    /// Lets the user begin who waits longest. False when nobody waits.
    pub(crate) fn begin(&mut self, due: Time) -> bool {
        while let Some(slot) = self.idle.pop_front() {
            if self.not_idle(slot) {
                self.tell(slot, |seat| seat.begin = due);
                return true;
            }
        }
        false
    }

    /// The user who came last of those who stay leaves.
    pub(crate) fn leave_one(&mut self) {
        while let Some(slot) = self.staying.pop() {
            if std::mem::take(&mut self.seats[slot as usize].stays) {
                self.not_idle(slot);
                self.tell(slot, |seat| seat.leave = true);
                return;
            }
        }
    }

    pub(crate) fn leave_all(&mut self) {
        self.staying.clear();
        self.idle.clear();
        (0..self.seats.len() as u32).for_each(|slot| {
            self.not_idle(slot);
        });
        self.tell_all(|seat| seat.leave = true);
    }

    pub(crate) fn abort_all(&mut self) {
        self.tell_all(|seat| seat.abort = true);
    }

    fn tell_all(&mut self, tell: impl Fn(&mut Seat)) {
        for slot in 0..self.seats.len() as u32 {
            if self.seats[slot as usize].taken {
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
}
