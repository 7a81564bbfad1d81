//! Wakes a shard's driver at a moment: by timerfd in the real world, by the hand of the clock in
//! a simulated one.

use std::cell::{Cell, RefCell};
use std::io;
use std::task::{Context, Poll, Waker};

use throng_base::{Clock, Time};
use tokio::io::unix::AsyncFd;

use crate::system::TimerFd;

pub(crate) struct Alarm {
    kind: Kind,
    /// The moment it is set to; [`Time::NEVER`] when it is not.
    set: Cell<Time>,
    /// That moment has come already: no timer is armed for it.
    at_once: Cell<AtOnce>,
    /// The driver's.
    waker: RefCell<Option<Waker>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtOnce {
    No,
    /// The driver is to be woken, behind everybody who can go on already.
    Asked,
    /// It was.
    Woken,
}

enum Kind {
    Timer(AsyncFd<TimerFd>),
    #[cfg(test)]
    Simulated(crate::world::Bell),
}

impl Alarm {
    /// An alarm in real time; must be called in the runtime that is to be woken.
    pub(crate) fn timer() -> io::Result<Alarm> {
        Ok(Alarm::new(Kind::Timer(TimerFd::new()?.register()?)))
    }

    #[cfg(test)]
    pub(crate) fn simulated(hand: std::rc::Rc<crate::world::Hand>) -> Alarm {
        Alarm::new(Kind::Simulated(crate::world::Bell::new(hand)))
    }

    fn new(kind: Kind) -> Alarm {
        let at_once = Cell::new(AtOnce::No);
        Alarm { kind, set: Cell::new(Time::NEVER), at_once, waker: RefCell::default() }
    }

    /// Goes off at `time`, or now when that is over, unless it is already set to an earlier
    /// moment. For a moment that is over no timer is armed: the driver has its turn as soon as
    /// all others had theirs, without a system call.
    pub(crate) fn set_at_most(&self, time: Time, clock: &Clock) {
        if time >= self.set.get() {
            return;
        }
        let now = clock.now();
        self.set.set(time.max(now));
        if time <= now {
            self.at_once.set(AtOnce::Asked);
            self.waker.borrow().iter().for_each(Waker::wake_by_ref);
            return;
        }
        match &self.kind {
            // Setting a timer that exists to a valid time does not fail.
            Kind::Timer(timer) => {
                let _ = timer.get_ref().set(time - now);
            }
            #[cfg(test)]
            Kind::Simulated(bell) => bell.ring_at(time),
        }
    }

    /// Ready when the alarm went off, with the moment at which it should have; it is not set any
    /// more then.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Time> {
        self.know(cx.waker());
        match self.at_once.get() {
            AtOnce::No => {}
            AtOnce::Asked => {
                self.at_once.set(AtOnce::Woken);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            AtOnce::Woken => {
                self.at_once.set(AtOnce::No);
                return Poll::Ready(self.set.replace(Time::NEVER));
            }
        }
        match &self.kind {
            Kind::Timer(timer) => loop {
                match timer.poll_read_ready(cx) {
                    Poll::Pending => return Poll::Pending,
                    // The runtime is shutting down; nobody waits any more.
                    Poll::Ready(Err(_)) => return Poll::Pending,
                    Poll::Ready(Ok(mut ready)) => {
                        if ready.try_io(|timer| timer.get_ref().clear()).is_ok() {
                            break;
                        }
                    }
                }
            },
            #[cfg(test)]
            Kind::Simulated(bell) => {
                if !bell.poll_rung(cx, self.set.get()) {
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(self.set.replace(Time::NEVER))
    }

    fn know(&self, waker: &Waker) {
        let mut known = self.waker.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }
}
