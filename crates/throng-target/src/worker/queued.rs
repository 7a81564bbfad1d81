//! Requests of one worker that wait in the server's queue, and what is notified when they depart.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use throng_base::Time;

use super::{Due, Worker};
use crate::queue::{Entry, Orders, Refused};

/// Waits for a request to depart: an HTTP/1.1 connection whose queued response carries the
/// request's number, or the task of an HTTP/2 stream.
pub(super) trait Waits {
    /// The request departed at the time `at`, which is noticed now.
    fn departed(self: Rc<Self>, number: u64, at: Time, now: Time);
}

/// The requests of a worker, by number. A request whose client disconnected does not wait.
pub(super) type Queued = RefCell<HashMap<u64, Weak<dyn Waits>>>;

impl Worker {
    /// The request of a stream arrives; returns its place in the queue if it has to wait.
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

    /// Registers a waiter for the departure of a request.
    pub(super) fn wait_for_queue(&self, number: u64, waits: Weak<dyn Waits>) {
        self.queued.borrow_mut().insert(number, waits);
    }

    /// The client of a request disconnected.
    pub(super) fn leave_queue(&self, number: u64) {
        let Some(capacity) = &self.setup.capacity else { return };
        self.queued.borrow_mut().remove(&number);
        self.obey(&capacity.leave(self.index as u16, number, self.clock.now()));
    }

    /// Notifies the waiters of departed requests.
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

/// Notifies a stream of the departure of its request.
#[derive(Default)]
struct Pass {
    departed: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

/// A stream's request in the queue. If it is dropped before departure, it leaves the queue.
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
