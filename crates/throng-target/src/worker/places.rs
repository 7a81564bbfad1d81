//! The connections of one worker that receive deliveries, by slot, and the rooms that they are in.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::connection::Connection;
use crate::address::Address;

/// Not in a room.
const NOWHERE: u32 = u32::MAX;

#[derive(Default)]
pub(crate) struct Places {
    entries: RefCell<Vec<Entry>>,
    free: RefCell<Vec<u32>>,
    /// The slots of the members of a room, by its number.
    rooms: RefCell<HashMap<u64, Vec<u32>>>,
}

struct Entry {
    connection: Option<Rc<Connection>>,
    room: u64,
    /// The index in the list of the room, or [`NOWHERE`].
    index: u32,
    /// How often the slot was reused.
    generation: u16,
}

impl Places {
    /// Assigns a slot to a new connection of this worker.
    pub(crate) fn enter(&self, worker: u16, connection: &Rc<Connection>) -> Address {
        let entries = &mut *self.entries.borrow_mut();
        let connection = Some(Rc::clone(connection));
        if let Some(place) = self.free.borrow_mut().pop() {
            let entry = &mut entries[place as usize];
            entry.connection = connection;
            return Address { worker, generation: entry.generation, place };
        }
        let place = entries.len() as u32;
        entries.push(Entry { connection, room: 0, index: NOWHERE, generation: 0 });
        Address { worker, generation: 0, place }
    }

    /// Frees the slot, and removes the connection from its room.
    pub(crate) fn leave(&self, address: Address) {
        self.move_to(address, None);
        let entries = &mut *self.entries.borrow_mut();
        let Some(entry) = entries.get_mut(address.place as usize) else { return };
        if entry.generation == address.generation && entry.connection.take().is_some() {
            entry.generation = entry.generation.wrapping_add(1);
            self.free.borrow_mut().push(address.place);
        }
    }

    /// Moves a connection into a room, or out of any.
    pub(crate) fn move_to(&self, address: Address, room: Option<u64>) {
        let entries = &mut *self.entries.borrow_mut();
        let rooms = &mut *self.rooms.borrow_mut();
        let place = address.place as usize;
        let Some(entry) = entries.get(place).filter(|entry| entry.is(address)) else { return };
        let (before, index) = (entry.room, entry.index as usize);
        if entry.index != NOWHERE {
            let mut moved = None;
            if let Some(members) = rooms.get_mut(&before) {
                members.swap_remove(index);
                moved = members.get(index).copied();
                if members.is_empty() {
                    rooms.remove(&before);
                }
            }
            if let Some(moved) = moved {
                entries[moved as usize].index = index as u32;
            }
            entries[place].index = NOWHERE;
        }
        if let Some(room) = room {
            let members = rooms.entry(room).or_default();
            entries[place].room = room;
            entries[place].index = members.len() as u32;
            members.push(address.place);
        }
    }

    pub(crate) fn find(&self, address: Address) -> Option<Rc<Connection>> {
        let entries = self.entries.borrow();
        let entry = entries.get(address.place as usize).filter(|entry| entry.is(address))?;
        entry.connection.clone()
    }

    /// Calls `action` with all members of a room. It must not change the members.
    pub(crate) fn in_room(&self, room: u64, mut action: impl FnMut(&Rc<Connection>)) {
        let (entries, rooms) = (self.entries.borrow(), self.rooms.borrow());
        for place in rooms.get(&room).into_iter().flatten() {
            entries[*place as usize].connection.iter().for_each(&mut action);
        }
    }

    /// Calls `action` with all connections. It must not add or remove any.
    pub(crate) fn all(&self, action: impl FnMut(&Rc<Connection>)) {
        self.entries.borrow().iter().filter_map(|e| e.connection.as_ref()).for_each(action);
    }

    /// Drops all connections.
    pub(crate) fn clear(&self) {
        self.rooms.take();
        drop(self.entries.take());
    }
}

impl Entry {
    fn is(&self, address: Address) -> bool {
        self.connection.is_some() && self.generation == address.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_small() {
        assert!(size_of::<Entry>() <= 24);
        assert_eq!((size_of::<Address>(), size_of::<Option<Address>>()), (8, 12));
    }
}
