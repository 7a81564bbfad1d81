//! The schedule of one worker: a sorted map, and a timerfd that expires for its first entry.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use throng_base::{Clock, Time};

use super::Due;
use crate::system;

pub(crate) struct Timer {
    kernel: system::Timer,
    clock: Clock,
    /// Entries of the same time are handled in the order of insertion, by their number.
    entries: RefCell<BTreeMap<(Time, u64), Due>>,
    /// When the timerfd expires; zero while due entries are handled.
    armed: Cell<Time>,
    entries_made: Cell<u64>,
}

impl Timer {
    /// Must be called inside the worker's runtime.
    pub(crate) fn new(clock: Clock) -> io::Result<Timer> {
        Ok(Timer {
            kernel: system::Timer::new()?,
            clock,
            entries: RefCell::default(),
            armed: Cell::new(Time::NEVER),
            entries_made: Cell::new(0),
        })
    }

    pub(crate) fn at(&self, at: Time, due: Due) {
        let number = self.entries_made.get();
        self.entries_made.set(number + 1);
        self.entries.borrow_mut().insert((at, number), due);
        self.arm(at);
    }

    /// Waits until `duration` has passed.
    pub(crate) async fn sleep(&self, duration: Duration) {
        let until = self.clock.now() + duration;
        poll_fn(|cx| {
            if self.clock.now() >= until {
                return Poll::Ready(());
            }
            self.at(until, Due::Wake(cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    /// Calls `action` with each due entry, without end. Errors are system errors.
    pub(crate) async fn run(&self, mut action: impl FnMut(Due, Time)) -> io::Result<()> {
        loop {
            // Setting the timer again clears its expiry, so it need not be read.
            self.kernel.expired().await?;
            let now = self.clock.now();
            // All due entries are handled before the timer is set again.
            self.armed.set(Time::ZERO);
            while let Some(due) = self.take(now) {
                action(due, now);
            }
            self.armed.set(Time::NEVER);
            let next = self.entries.borrow().keys().next().map(|(at, _)| *at);
            if let Some(next) = next {
                self.arm(next);
            }
        }
    }

    fn take(&self, now: Time) -> Option<Due> {
        let mut entries = self.entries.borrow_mut();
        let first = entries.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }

    fn arm(&self, at: Time) {
        // If the timer could not be armed, responses would not be sent; the arguments are in range,
        // so the kernel has no reason to refuse.
        if at < self.armed.get() && self.kernel.arm(at - self.clock.now()).is_ok() {
            self.armed.set(at);
        }
    }
}
