//! Wakes a shard's driver at a moment: by timerfd in the real world, by the hand of the clock in
//! a simulated one.

use std::cell::Cell;
use std::io;
use std::task::{Context, Poll};

use throng_base::{Clock, Time};
use tokio::io::unix::AsyncFd;

use crate::system::TimerFd;

pub(crate) struct Alarm {
    kind: Kind,
    /// The moment it is set to; [`Time::NEVER`] when it is not.
    set: Cell<Time>,
}

enum Kind {
    Timer(AsyncFd<TimerFd>),
    #[cfg(test)]
    Simulated(crate::world::Bell),
}

impl Alarm {
    /// An alarm in real time; must be called in the runtime that is to be woken.
    pub(crate) fn timer() -> io::Result<Alarm> {
        let timer = TimerFd::new()?.register()?;
        Ok(Alarm { kind: Kind::Timer(timer), set: Cell::new(Time::NEVER) })
    }

    #[cfg(test)]
    pub(crate) fn simulated(hand: std::rc::Rc<crate::world::Hand>) -> Alarm {
        Alarm { kind: Kind::Simulated(crate::world::Bell::new(hand)), set: Cell::new(Time::NEVER) }
    }

    /// Goes off at `time`, or now when that is over, unless it is already set to an earlier
    /// moment.
    pub(crate) fn set_at_most(&self, time: Time, clock: &Clock) {
        if time >= self.set.get() {
            return;
        }
        let now = clock.now();
        let time = time.max(now);
        self.set.set(time);
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
}
