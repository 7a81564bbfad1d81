//! Wakes a shard's driver at a given time: by timerfd in the real world, by the simulated clock in
//! tests.

use std::cell::{Cell, RefCell};
use std::io;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use throng_base::{Clock, Time};

use crate::system::{self, Timer};

/// A shorter sleep is not worth it: falling asleep and waking take as long.
const SLEEP_MIN: Duration = Duration::from_micros(10);

pub(crate) struct Alarm {
    kind: Kind,
    /// The time it is set to; [`Time::NEVER`] if it is not set.
    set: Cell<Time>,
    /// The driver is running, or yields to others: it does not wait for the alarm.
    awake: Cell<bool>,
    /// The time has already passed: no timer is armed for it.
    at_once: Cell<AtOnce>,
    /// The waker of the driver.
    waker: RefCell<Option<Waker>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtOnce {
    No,
    /// The driver is to be woken after all tasks that are ready.
    Asked,
    /// It was woken.
    Woken,
}

enum Kind {
    Timer(Timer),
    #[cfg(test)]
    Simulated(crate::world::Bell),
}

impl Alarm {
    /// An alarm in real time; must be called in the runtime that it wakes.
    pub(crate) fn timer() -> io::Result<Alarm> {
        Ok(Alarm::new(Kind::Timer(Timer::new()?)))
    }

    #[cfg(test)]
    pub(crate) fn simulated(hand: std::rc::Rc<crate::world::Hand>) -> Alarm {
        Alarm::new(Kind::Simulated(crate::world::Bell::new(hand)))
    }

    fn new(kind: Kind) -> Alarm {
        let at_once = Cell::new(AtOnce::No);
        let (set, awake) = (Cell::new(Time::NEVER), Cell::new(true));
        Alarm { kind, set, awake, at_once, waker: RefCell::default() }
    }

    /// Goes off at `time`, or now if that has passed, unless it is already set to an earlier time.
    /// While the driver is awake, the time is only stored: the driver checks everything before it
    /// sleeps.
    pub(crate) fn set_at_most(&self, time: Time, clock: &Clock) {
        let before = self.set.get();
        if time >= before {
            return;
        }
        self.set.set(time);
        if !self.awake.get() {
            self.arm(clock);
            // An overdue alarm keeps its time: if the whole process was suspended, users may run
            // before the driver.
            self.set.set(self.set.get().min(before));
        }
    }

    /// Waits until `next`, or until an earlier time that the alarm is set to meanwhile; returns
    /// when it went off.
    pub(crate) async fn wait(&self, next: Time, clock: &Clock) -> Time {
        self.set.set(self.set.get().min(next));
        self.awake.set(false);
        self.arm(clock);
        let woken = std::future::poll_fn(|cx| self.poll(cx)).await;
        self.awake.set(true);
        woken
    }

    /// Blocks the whole shard until then: whatever arrives is read afterwards, all together.
    pub(crate) async fn nap(&self, until: Time, clock: &Clock) {
        match &self.kind {
            Kind::Timer(_) => {
                let left = until - clock.now();
                if left > SLEEP_MIN {
                    system::sleep(left);
                }
            }
            #[cfg(test)]
            Kind::Simulated(bell) => bell.nap(until).await,
        }
        self.set.set(Time::NEVER);
    }

    /// Arms the timer. If the time has passed or is too near, no timer is armed: the driver runs as
    /// soon as all other ready tasks have run, without a system call.
    fn arm(&self, clock: &Clock) {
        let (now, time) = (clock.now(), self.set.get());
        let is_near = matches!(self.kind, Kind::Timer(_)) && time - now <= SLEEP_MIN;
        if time <= now || is_near {
            self.set.set(time.max(now));
            self.at_once.set(AtOnce::Asked);
            self.waker.borrow().iter().for_each(Waker::wake_by_ref);
            return;
        }
        match &self.kind {
            // Setting an existing timer to a valid time does not fail.
            Kind::Timer(timer) => {
                let _ = timer.set(time - now);
            }
            #[cfg(test)]
            Kind::Simulated(bell) => bell.ring_at(time),
        }
    }

    /// Ready when the alarm went off, with the time it was set to; it is no longer set then.
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Time> {
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
            Kind::Timer(timer) => ready!(timer.poll(cx)),
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

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use crate::world::Hand;

    /// The process was suspended, and a user whose reply had arrived meanwhile runs first.
    #[test]
    fn an_overdue_alarm_keeps_its_time() {
        let hand = Hand::new();
        let alarm = Alarm::simulated(std::rc::Rc::clone(&hand));
        let (due, now) = (Time(1_100), Time(3_000));
        let mut waits = pin!(alarm.wait(due, &hand.clock));
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(cx).is_pending());
        hand.clock.set(now);
        alarm.set_at_most(Time(1_010), &hand.clock);
        let woken = (0..3).find_map(|_| match waits.as_mut().poll(cx) {
            Poll::Ready(woken) => Some(woken),
            Poll::Pending => None,
        });
        assert_eq!(woken, Some(due));
    }
}
