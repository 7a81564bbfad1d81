//! The place of a stream in the server's queue, and how it hears that its request departs.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::Worker;

/// How a stream hears that its request departs.
#[derive(Default)]
pub(super) struct Pass {
    departed: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

/// A stream's request in the queue. Dropped before it departs, it leaves the queue.
pub(crate) struct Place {
    worker: Rc<Worker>,
    number: u64,
    pass: Rc<Pass>,
}

impl Pass {
    /// The request has departed.
    pub(super) fn depart(&self) {
        self.departed.set(true);
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

impl Place {
    pub(super) fn new(worker: &Rc<Worker>, number: u64, pass: Rc<Pass>) -> Place {
        Place { worker: Rc::clone(worker), number, pass }
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

impl Drop for Place {
    fn drop(&mut self) {
        if !self.pass.departed.get() {
            self.worker.leave_queue(self.number);
        }
    }
}
