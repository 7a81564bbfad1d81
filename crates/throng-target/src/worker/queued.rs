//! Requests of one worker that wait for the queue of the server, and who hears when they depart.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use throng_base::Time;

use super::connection::Connection;
use super::pass::{Pass, Place};
use super::{Due, Worker};
use crate::queue::{Entry, Orders, Refused};

/// Who waits for a request to depart.
pub(super) enum Waits {
    /// The answer of a connection of HTTP/1.1 that has the number of the request.
    Answer(Weak<Connection>),
    /// The task of a stream of HTTP/2.
    Stream(Rc<Pass>),
}

/// The requests of a worker, by their numbers.
pub(super) type Queued = RefCell<HashMap<u64, Waits>>;

impl Worker {
    /// A stream's request arrives; its place in the queue, if it has to wait there.
    pub(super) fn enter_queue(self: &Rc<Self>, arrived: Time) -> Result<Option<Place>, Refused> {
        let Some(capacity) = &self.setup.capacity else { return Ok(None) };
        let (entry, orders) = capacity.enter(self.index as u16, arrived);
        let entered = match entry {
            Entry::Through => Ok(None),
            Entry::Refused(refused) => Err(refused),
            Entry::Queued(ticket) => {
                let pass = Rc::new(Pass::default());
                let waits = Waits::Stream(Rc::clone(&pass));
                self.queued.borrow_mut().insert(ticket.number, waits);
                Ok(Some(Place::new(self, ticket.number, pass)))
            }
        };
        self.obey(&orders);
        entered
    }

    /// An answer of HTTP/1.1 waits for its request to depart.
    pub(super) fn wait_for_queue(&self, number: u64, connection: &Rc<Connection>) {
        self.queued.borrow_mut().insert(number, Waits::Answer(Rc::downgrade(connection)));
    }

    /// The client of a request has gone.
    pub(super) fn leave_queue(&self, number: u64) {
        let Some(capacity) = &self.setup.capacity else { return };
        self.queued.borrow_mut().remove(&number);
        self.obey(&capacity.leave(self.index as u16, number, self.clock.now()));
    }

    /// Lets those go that have departed.
    pub(super) fn look_at_queue(&self) {
        let Some(capacity) = &self.setup.capacity else { return };
        let now = self.clock.now();
        let (departed, orders) = capacity.look(self.index as u16, now);
        self.obey(&orders);
        for (number, at) in departed {
            let waits = self.queued.borrow_mut().remove(&number);
            match waits {
                Some(Waits::Answer(connection)) => {
                    connection.upgrade().iter().for_each(|it| it.departed(number, at, now));
                }
                Some(Waits::Stream(pass)) => pass.depart(),
                // Its client has gone.
                None => {}
            }
        }
    }

    pub(super) fn obey(&self, orders: &Orders) {
        if let Some(at) = orders.look_at {
            self.timer.at(at, Due::Queue);
        }
        orders.wake.iter().for_each(|worker| self.setup.post.bell(usize::from(*worker)).ring());
    }
}
