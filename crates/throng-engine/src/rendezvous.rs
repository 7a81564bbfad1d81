//! Places where users of all shards wait for each other. The only thing that shards share while
//! they run: a few atomics per place, looked at by the users who come and go, and by the drivers
//! of shards on which somebody waits. Nobody is ever woken from another shard.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use throng_base::Time;

/// From the moment the last one came to the moment all go on: every shard looks once in between,
/// so that all users are set to exactly that moment.
const RELEASE_AFTER: Duration = Duration::from_millis(20);
/// Moments of release that are remembered per place. Who finds that so many groups have gone on
/// since his own did goes on at once.
const RELEASES: u32 = 64;
/// A moment of release and the lowest bits of the number of its group, in one word.
const MOMENT_BITS: u32 = 48;

/// All places of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    places: Arc<[Place]>,
}

#[derive(Debug)]
struct Place {
    /// The number of the group that gathers, in the upper half, and how many of it are there.
    state: AtomicU64,
    /// By group: when it goes on, in microseconds, with the number of the group.
    releases: [AtomicU64; RELEASES as usize],
}

/// What somebody who waits has to know: where, and with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) place: u16,
    group: u32,
}

/// How it stands with somebody's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is not complete.
    Gathers,
    /// It is complete and goes on at this moment.
    GoesOn(Time),
}

impl Places {
    pub(crate) fn new(count: u16) -> Places {
        let place = || Place {
            state: AtomicU64::new(0),
            releases: std::array::from_fn(|_| AtomicU64::new(u64::MAX)),
        };
        Places { places: (0..count).map(|_| place()).collect() }
    }

    /// Somebody comes to a place where `users` go on together.
    pub(crate) fn arrive(&self, place: u16, users: u64, now: Time) -> Waiting {
        let Some(here) = self.places.get(usize::from(place)) else {
            return Waiting { place, group: 0 };
        };
        let wanted = u32::try_from(users).unwrap_or(u32::MAX);
        let mut state = here.state.load(Ordering::Acquire);
        loop {
            let (group, there) = parts(state);
            let complete = there.saturating_add(1) >= wanted;
            let next = match complete {
                true => packed(group.wrapping_add(1), 0),
                false => packed(group, there + 1),
            };
            match here.state.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Err(found) => state = found,
                Ok(_) => {
                    if complete {
                        here.release(group, now + RELEASE_AFTER);
                    }
                    return Waiting { place, group };
                }
            }
        }
    }

    /// The group that gathers at a place.
    fn gathering(&self, place: u16) -> u32 {
        let here = self.places.get(usize::from(place));
        here.map_or(0, |here| parts(here.state.load(Ordering::Acquire)).0)
    }

    pub(crate) fn standing(&self, waiting: Waiting) -> Standing {
        let Some(here) = self.places.get(usize::from(waiting.place)) else {
            return Standing::GoesOn(Time::ZERO);
        };
        let (gathering, _) = parts(here.state.load(Ordering::Acquire));
        let since = gathering.wrapping_sub(waiting.group);
        if since == 0 {
            return Standing::Gathers;
        }
        let word = here.releases[slot(waiting.group)].load(Ordering::Acquire);
        match word >> MOMENT_BITS == u64::from(waiting.group as u16) && word != u64::MAX {
            true => {
                let micros = word & ((1 << MOMENT_BITS) - 1);
                Standing::GoesOn(Time(micros.saturating_mul(1000)))
            }
            // The last one is there but has not written yet when they all go on.
            false if since < RELEASES => Standing::Gathers,
            false => Standing::GoesOn(Time::ZERO),
        }
    }

    /// Who waited goes away alone: he is no more counted. False when the group is complete, with
    /// him in it.
    pub(crate) fn withdraw(&self, waiting: Waiting) -> bool {
        let Some(here) = self.places.get(usize::from(waiting.place)) else { return true };
        let mut state = here.state.load(Ordering::Acquire);
        loop {
            let (group, there) = parts(state);
            if group != waiting.group {
                return false;
            }
            let next = packed(group, there.saturating_sub(1));
            match here.state.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return true,
                Err(found) => state = found,
            }
        }
    }
}

impl Place {
    fn release(&self, group: u32, at: Time) {
        let micros = at.as_nanos().div_ceil(1000) & ((1 << MOMENT_BITS) - 1);
        let word = u64::from(group as u16) << MOMENT_BITS | micros;
        self.releases[slot(group)].store(word, Ordering::Release);
    }
}

fn parts(state: u64) -> (u32, u32) {
    ((state >> 32) as u32, state as u32)
}

fn packed(group: u32, there: u32) -> u64 {
    u64::from(group) << 32 | u64::from(there)
}

fn slot(group: u32) -> usize {
    (group % RELEASES) as usize
}

/// Who of one shard waits, so that its driver can look for them.
#[derive(Debug, Default)]
pub(crate) struct Meeting {
    places: RefCell<Vec<Here>>,
}

/// Who of one shard waits at one place.
#[derive(Debug, Default)]
struct Here {
    /// The group of each seat; in order, so that a simulation replays.
    groups: BTreeMap<u32, u32>,
    /// Nobody waits who came before this group gathered: as long as it does there is nothing to
    /// look for, however many wait.
    settled: u32,
}

impl Meeting {
    pub(crate) fn is_empty(&self) -> bool {
        self.places.borrow().iter().all(|here| here.groups.is_empty())
    }

    pub(crate) fn come(&self, seat: u32, waiting: Waiting) {
        let mut places = self.places.borrow_mut();
        let index = usize::from(waiting.place);
        if places.len() <= index {
            places.resize_with(index + 1, Here::default);
        }
        let here = &mut places[index];
        if here.groups.is_empty() {
            here.settled = waiting.group;
        }
        here.groups.insert(seat, waiting.group);
    }

    pub(crate) fn go(&self, seat: u32, place: u16) {
        if let Some(here) = self.places.borrow_mut().get_mut(usize::from(place)) {
            here.groups.remove(&seat);
        }
    }

    /// Tells the seats whose group goes on, and when. They are not looked at again.
    pub(crate) fn release(&self, all: &Places, mut tell: impl FnMut(u32, Time)) {
        for (place, here) in self.places.borrow_mut().iter_mut().enumerate() {
            let place = place as u16;
            let gathering = all.gathering(place);
            if here.groups.is_empty() || here.settled == gathering {
                continue;
            }
            let mut settled = true;
            here.groups.retain(|seat, group| {
                match all.standing(Waiting { place, group: *group }) {
                    Standing::Gathers => {
                        settled &= *group == gathering;
                        return true;
                    }
                    Standing::GoesOn(moment) => tell(*seat, moment),
                }
                false
            });
            if settled {
                here.settled = gathering;
            }
        }
    }
}

#[cfg(test)]
mod tests;
