//! Requests of one worker that wait for the queue of the server, and who hears when they depart.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use throng_base::Time;

use super::{Due, Worker};
use crate::queue::{Entry, Orders, Refused};

/// Waits for a request to depart: a connection of HTTP/1.1 that has an answer with the number of
/// the request, or the task of a stream of HTTP/2.
pub(super) trait Waits {
    /// The request has departed at a time, as is seen now.
    fn departed(self: Rc<Self>, number: u64, at: Time, now: Time);
}

/// The requests of a worker, by their numbers. Those whose client has gone wait no more.
pub(super) type Queued = RefCell<HashMap<u64, Weak<dyn Waits>>>;

impl Worker {
    /// A stream's request arrives; its place in the queue, if it has to wait there.
    pub(super) fn enter_queue(
        self: &Rc<Self>,
        arrived: Time,
    ) -> Result<Option<QueuePlace>, Refused> {
        let Some(capacity) = &self.setup.capacity else { return Ok(None) };
        let (entry, orders) = capacity.enter(self.index as u16, arrived);
        let entered = match entry {
            Entry::Through => Ok(None),
            Entry::Refused(refused) => Err(refused),
            Entry::Queued(ticket) => {
                let pass = Rc::new(Pass::default());
                self.wait_for_queue(ticket.number, Rc::<Pass>::downgrade(&pass));
                Ok(Some(QueuePlace::new(self, ticket.number, pass)))
            }
        };
        self.obey(&orders);
        entered
    }

    /// Somebody waits for a request to depart.
    pub(super) fn wait_for_queue(&self, number: u64, waits: Weak<dyn Waits>) {
        self.queued.borrow_mut().insert(number, waits);
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
            waits
                .and_then(|it| it.upgrade())
                .into_iter()
                .for_each(|it| it.departed(number, at, now));
        }
    }

    pub(super) fn obey(&self, orders: &Orders) {
        if let Some(at) = orders.look_at {
            self.timer.at(at, Due::Queue);
        }
        orders
            .wake
            .iter()
            .for_each(|worker| self.setup.mailboxes.bell(usize::from(*worker)).ring());
    }
}

/// How a stream hears that its request departs.
#[derive(Default)]
struct Pass {
    departed: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

/// A stream's request in the queue. Dropped before it departs, it leaves the queue.
pub(crate) struct QueuePlace {
    worker: Rc<Worker>,
    number: u64,
    pass: Rc<Pass>,
}

impl Waits for Pass {
    fn departed(self: Rc<Self>, _: u64, _: Time, _: Time) {
        self.departed.set(true);
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

impl QueuePlace {
    fn new(worker: &Rc<Worker>, number: u64, pass: Rc<Pass>) -> QueuePlace {
        QueuePlace { worker: Rc::clone(worker), number, pass }
    }

    /// Ready when the request has departed.
    pub(crate) fn poll_departed(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.pass.departed.get() {
            return Poll::Ready(());
        }
        self.pass.waker.set(Some(cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        if !self.pass.departed.get() {
            self.worker.leave_queue(self.number);
        }
    }
}
