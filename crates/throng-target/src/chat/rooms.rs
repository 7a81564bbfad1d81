//! The chat rooms and their users, over all workers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::address::Address;
use crate::faults::Faults;
use crate::stats::{ChatStats, DeliveryStats};
use crate::sums::{Shards, Sums as _, lock};

/// Maximum number of rooms.
const ROOMS_MAX: u64 = 1_000_000;

#[derive(Default)]
pub(crate) struct Rooms {
    rooms: Shards<HashMap<u64, Arc<Room>>>,
    users: Shards<HashMap<u64, Presence>>,
    rooms_open: AtomicU64,
}

/// The room and connection of a user.
struct Presence {
    address: Address,
    room: Arc<Room>,
}

/// A room stays after all users have left, so that its statistics can be queried.
#[derive(Debug, Default)]
pub(crate) struct Room {
    pub(crate) id: u64,
    online: AtomicU64,
    pub(crate) messages: Count,
    pub(crate) likes: Count,
    pub(crate) gifts: Count,
    pub(crate) lights: Count,
    deliveries: Mutex<DeliveryStats>,
    /// The workers with connections in the room, and their number of connections.
    workers: Mutex<Vec<(u16, u64)>>,
}

/// A count that any worker may increment.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

/// The result of a join.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) room: Arc<Room>,
    /// Current number of users in the room.
    pub(crate) online: u64,
    /// The previous connection of the same user.
    pub(crate) before: Option<Address>,
}

impl Count {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Rooms {
    /// The room with this ID, opened if necessary; `None` if there are too many.
    pub(crate) fn open(&self, id: u64) -> Option<Arc<Room>> {
        let mut part = self.rooms.of(id);
        if let Some(room) = part.get(&id) {
            return Some(Arc::clone(room));
        }
        if self.rooms_open.fetch_add(1, Ordering::Relaxed) >= ROOMS_MAX {
            self.rooms_open.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let room = Arc::new(Room { id, ..Room::default() });
        part.insert(id, Arc::clone(&room));
        Some(room)
    }

    fn room(&self, id: u64) -> Option<Arc<Room>> {
        self.rooms.of(id).get(&id).cloned()
    }

    /// Adds a user to a room. An earlier connection of the same user is no longer online, although
    /// it has not been notified yet.
    pub(crate) fn join(&self, user: u64, room: &Arc<Room>, address: Address) -> Joined {
        let presence = Presence { address, room: Arc::clone(room) };
        let before = self.users.of(user).insert(user, presence);
        if let Some(before) = &before {
            before.room.online.fetch_sub(1, Ordering::Relaxed);
        }
        let online = room.online.fetch_add(1, Ordering::Relaxed) + 1;
        room.take_in(address.worker);
        Joined { room: Arc::clone(room), online, before: before.map(|before| before.address) }
    }

    /// Removes a connection from a room, and its user unless it has another connection by now.
    pub(crate) fn leave(&self, user: u64, room: &Room, address: Address) {
        room.let_go(address.worker);
        let mut part = self.users.of(user);
        if part.get(&user).is_some_and(|presence| presence.address == address) {
            part.remove(&user);
            room.online.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// How many users are in a room now.
    pub(crate) fn online(&self) -> u64 {
        self.users.each().map(|part| part.len() as u64).sum()
    }

    /// Tells what the workers do not count.
    pub(crate) fn fill_in(&self, stats: &mut ChatStats, faults: &Faults) {
        stats.rooms = self.rooms_open.load(Ordering::Relaxed);
        stats.online = self.online();
        stats.joins_forgotten = faults.forgotten();
    }

    /// Statistics of a room that a user has joined.
    pub(crate) fn tell(&self, id: u64) -> Option<Value> {
        let room = self.room(id)?;
        let deliveries = lock(&room.deliveries).clone();
        Some(json!({
            "room": id,
            "online": room.online.load(Ordering::Relaxed),
            "messages": room.messages.get(),
            "likes": room.likes.get(),
            "gifts": room.gifts.get(),
            "lights": room.lights.get(),
            "deliveries": deliveries,
        }))
    }

    /// Resets all counts; users stay in their rooms.
    pub(crate) fn reset(&self) {
        for part in self.rooms.each() {
            for room in part.values() {
                let all = [&room.messages, &room.likes, &room.gifts, &room.lights];
                all.iter().for_each(|count| count.reset());
                *lock(&room.deliveries) = DeliveryStats::default();
            }
        }
    }
}

impl Room {
    pub(crate) fn online(&self) -> u64 {
        self.online.load(Ordering::Relaxed)
    }

    /// Calls `action` with each worker that has connections in the room, and their number.
    pub(crate) fn workers(&self, mut action: impl FnMut(u16, u64)) {
        lock(&self.workers).iter().for_each(|(worker, count)| action(*worker, *count));
    }

    pub(crate) fn delivered(&self, done: &DeliveryStats) {
        lock(&self.deliveries).add(done);
    }

    fn take_in(&self, worker: u16) {
        let workers = &mut *lock(&self.workers);
        match workers.iter_mut().find(|(known, _)| *known == worker) {
            Some((_, count)) => *count += 1,
            None => workers.push((worker, 1)),
        }
    }

    fn let_go(&self, worker: u16) {
        let workers = &mut *lock(&self.workers);
        let found = workers.iter().position(|(known, _)| *known == worker);
        if let Some(index) = found {
            workers[index].1 -= 1;
            if workers[index].1 == 0 {
                workers.swap_remove(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(worker: u16, place: u32) -> Address {
        Address { worker, generation: 0, place }
    }

    #[test]
    fn a_user_is_in_one_room_on_one_connection() {
        let rooms = Rooms::default();
        let (one, two) = (rooms.open(1).unwrap(), rooms.open(2).unwrap());
        assert_eq!(rooms.join(7, &one, at(0, 1)).before, None);
        assert_eq!(rooms.join(8, &one, at(1, 1)).online, 2);
        let again = rooms.join(7, &two, at(1, 2));
        assert_eq!((again.online, again.before), (1, Some(at(0, 1))));
        assert_eq!((one.online(), two.online()), (1, 1));
        // The first connection is notified and leaves; the user stays.
        rooms.leave(7, &one, at(0, 1));
        assert_eq!((one.online(), two.online()), (1, 1));
        rooms.leave(7, &two, at(1, 2));
        assert_eq!((one.online(), two.online()), (1, 0));
        let mut workers = Vec::new();
        one.workers(|worker, count| workers.push((worker, count)));
        two.workers(|worker, count| workers.push((worker, count)));
        assert_eq!(workers, [(1, 1)]);
        assert_eq!(rooms.online(), 1);
    }

    #[test]
    fn only_rooms_with_joins_have_statistics() {
        let rooms = Rooms::default();
        rooms.open(5).unwrap().messages.add(3);
        assert_eq!(rooms.tell(5).unwrap()["messages"], 3);
        assert!(rooms.tell(6).is_none());
        rooms.reset();
        assert_eq!(rooms.tell(5).unwrap()["messages"], 0);
    }
}
