//! Places where users of all shards wait for each other. Each place is a queue behind a lock. The
//! lock is taken when a user arrives or gives up, and by the drivers of shards with waiting users
//! when a group is released. A shard never wakes a user of another shard. With several machines, a
//! [`Bridge`] decides which users go on, as the users of a group may be on any of them.

mod bridge;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throng_base::Time;

pub(crate) use bridge::{Announced, Bridge};

/// Time between the arrival of the last user and the release: every shard polls once in between, so
/// that all users continue at exactly that time.
const RELEASE_AFTER: Duration = Duration::from_millis(20);
/// Releases that are remembered per place. A user that asks later gets the oldest of them.
const RELEASES_MAX: usize = 64;

/// All places of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    places: Arc<[Place]>,
    /// Only the bridge knows whether a group is complete.
    is_bridged: bool,
}

#[derive(Debug, Default)]
struct Place {
    queue: Mutex<Queue>,
    /// Releases so far: tells drivers, without the lock, that there is nothing new.
    released: AtomicU64,
}

/// The users waiting at a place, in order of arrival. Each has a ticket; tickets count up and wrap
/// around.
#[derive(Debug, Default)]
struct Queue {
    /// The ticket at the front.
    first: u32,
    /// By ticket: false if the user has given up.
    waits: VecDeque<bool>,
    count: Count,
    /// Tickets below each number continue at the time beside it, or earlier.
    releases: VecDeque<(u32, Time)>,
}

/// The users of one place on one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Count {
    /// The size of a group.
    wanted: u64,
    waiting: u64,
    /// Users released since the start of the run.
    gone: u64,
}

/// A waiting user's place, and its position in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) place: u16,
    ticket: u32,
}

/// The state of a user's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is not complete.
    Gathers,
    /// It is complete and goes on at this moment.
    GoesOn(Time),
}

impl Places {
    pub(crate) fn new(count: u16) -> Places {
        let places = (0..count).map(|_| Place::default()).collect();
        Places { places, is_bridged: false }
    }

    /// Places whose users also meet users of other machines.
    pub(crate) fn bridged(count: u16) -> Places {
        Places { is_bridged: true, ..Places::new(count) }
    }

    fn queue(&self, place: u16) -> Option<MutexGuard<'_, Queue>> {
        Some(self.places.get(usize::from(place))?.queue())
    }

    /// A user arrives at a place where `users` go on together.
    pub(crate) fn arrive(&self, place: u16, users: u64, now: Time) -> Waiting {
        let Some(here) = self.places.get(usize::from(place)) else {
            return Waiting { place, ticket: 0 };
        };
        let mut queue = here.queue();
        let ticket = queue.come(users);
        if !self.is_bridged && queue.count.waiting >= users {
            here.release(&mut queue, users, now + RELEASE_AFTER);
        }
        Waiting { place, ticket }
    }

    pub(crate) fn standing(&self, waiting: Waiting) -> Standing {
        let queue = self.queue(waiting.place);
        queue.map_or(Standing::GoesOn(Time::ZERO), |queue| queue.standing(waiting.ticket))
    }

    /// A waiting user gives up and is no longer counted. False if its group is complete already.
    pub(crate) fn withdraw(&self, waiting: Waiting) -> bool {
        self.queue(waiting.place).is_none_or(|mut queue| queue.withdraw(waiting.ticket))
    }

    /// The places at which a user has ever waited.
    fn counts(&self) -> BTreeMap<u16, Count> {
        let counts = (0..).zip(&*self.places).map(|(number, place)| (number, place.queue().count));
        counts.filter(|(_, count)| count.wanted > 0).collect()
    }

    /// Releases users until `gone` have been released in all. Users that gave up in the meantime
    /// leave their group smaller.
    fn release_up_to(&self, place: u16, gone: u64, at: Time) {
        let Some(here) = self.places.get(usize::from(place)) else { return };
        let mut queue = here.queue();
        let more = gone.saturating_sub(queue.count.gone);
        if more > 0 {
            here.release(&mut queue, more, at);
        }
    }
}

impl Place {
    /// A queue is consistent after each change, even if a thread has panicked.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, queue: &mut Queue, users: u64, at: Time) {
        queue.release(users, at);
        self.released.fetch_add(1, Ordering::Release);
    }
}

impl Queue {
    fn come(&mut self, users: u64) -> u32 {
        let ticket = self.first.wrapping_add(self.waits.len() as u32);
        self.waits.push_back(true);
        self.count.wanted = users;
        self.count.waiting += 1;
        ticket
    }

    /// The index of a ticket in the queue; None if it was released.
    fn place_of(&self, ticket: u32) -> Option<usize> {
        (!is_below(ticket, self.first)).then(|| ticket.wrapping_sub(self.first) as usize)
    }

    fn standing(&self, ticket: u32) -> Standing {
        if self.place_of(ticket).is_some() {
            return Standing::Gathers;
        }
        let release = self.releases.iter().find(|(below, _)| is_below(ticket, *below));
        Standing::GoesOn(release.map_or(Time::ZERO, |(_, at)| *at))
    }

    fn withdraw(&mut self, ticket: u32) -> bool {
        let Some(place) = self.place_of(ticket) else { return false };
        if let Some(waits) = self.waits.get_mut(place)
            && std::mem::replace(waits, false)
        {
            self.count.waiting -= 1;
        }
        while self.waits.front() == Some(&false) {
            self.next();
        }
        true
    }

    /// Releases the users that have waited longest.
    fn release(&mut self, users: u64, at: Time) {
        let mut left = users.min(self.count.waiting);
        self.count.waiting -= left;
        while left > 0
            && let Some(waits) = self.next()
        {
            left -= u64::from(waits);
        }
        self.count.gone = self.count.gone.saturating_add(users);
        if self.releases.len() == RELEASES_MAX {
            self.releases.pop_front();
        }
        self.releases.push_back((self.first, at));
    }

    fn next(&mut self) -> Option<bool> {
        let waits = self.waits.pop_front()?;
        self.first = self.first.wrapping_add(1);
        Some(waits)
    }
}

/// Tickets that are compared are less than half of the number range apart.
fn is_below(ticket: u32, other: u32) -> bool {
    (ticket.wrapping_sub(other) as i32) < 0
}

/// The waiting users of one shard, for its driver.
#[derive(Debug, Default)]
pub(crate) struct Meeting {
    places: RefCell<Vec<Here>>,
}

/// The waiting users of one shard at one place.
#[derive(Debug, Default)]
struct Here {
    /// The ticket of each seat; in order, so that a simulation replays.
    tickets: BTreeMap<u32, u32>,
    /// Releases looked at so far: until there are more, there is nothing to do.
    seen: u64,
}

impl Meeting {
    pub(crate) fn is_empty(&self) -> bool {
        self.places.borrow().iter().all(|here| here.tickets.is_empty())
    }

    pub(crate) fn come(&self, seat: u32, waiting: Waiting) {
        let mut places = self.places.borrow_mut();
        let index = usize::from(waiting.place);
        if places.len() <= index {
            places.resize_with(index + 1, Here::default);
        }
        places[index].tickets.insert(seat, waiting.ticket);
    }

    pub(crate) fn go(&self, seat: u32, place: u16) {
        if let Some(here) = self.places.borrow_mut().get_mut(usize::from(place)) {
            here.tickets.remove(&seat);
        }
    }

    /// Tells which seats go on, and when. They are not looked at again.
    pub(crate) fn release(&self, all: &Places, mut tell: impl FnMut(u32, Time)) {
        for (here, place) in self.places.borrow_mut().iter_mut().zip(&*all.places) {
            let released = place.released.load(Ordering::Acquire);
            if here.tickets.is_empty() || here.seen == released {
                continue;
            }
            here.seen = released;
            let queue = place.queue();
            here.tickets.retain(|seat, ticket| match queue.standing(*ticket) {
                Standing::Gathers => true,
                Standing::GoesOn(moment) => {
                    tell(*seat, moment);
                    false
                }
            });
        }
    }
}

#[cfg(test)]
mod tests;
