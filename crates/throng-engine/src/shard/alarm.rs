//! Wakes a shard's driver at a moment: by timerfd in the real world, by the hand of the clock in
//! a simulated one.

use std::cell::{Cell, RefCell};
use std::io;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use throng_base::{Clock, Time};

use crate::system::{self, Timer};

/// To sleep for less is not worth it: falling asleep and waking take as long.
const SLEEP_MIN: Duration = Duration::from_micros(10);

pub(crate) struct Alarm {
    kind: Kind,
    /// The moment it is set to; [`Time::NEVER`] when it is not.
    set: Cell<Time>,
    /// The driver has its turn, or lets others have theirs: it does not wait for the alarm.
    awake: Cell<bool>,
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
    Timer(Timer),
    #[cfg(test)]
    Simulated(crate::world::Bell),
}

impl Alarm {
    /// An alarm in real time; must be called in the runtime that is to be woken.
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

    /// Goes off at `time`, or now when that is over, unless it is already set to an earlier
    /// moment. While the driver is awake this is only written down: it looks at everything before
    /// it sleeps.
    pub(crate) fn set_at_most(&self, time: Time, clock: &Clock) {
        let before = self.set.get();
        if time >= before {
            return;
        }
        self.set.set(time);
        if !self.awake.get() {
            self.arm(clock);
            // One that should have gone off already is as late as it is: where the whole process
            // stood still, users may go on before the driver has its turn.
            self.set.set(self.set.get().min(before));
        }
    }

    /// Waits until `next`, or until an earlier moment to which the alarm is set meanwhile; gives
    /// the moment at which it went off.
    pub(crate) async fn wait(&self, next: Time, clock: &Clock) -> Time {
        self.set.set(self.set.get().min(next));
        self.awake.set(false);
        self.arm(clock);
        let woken = std::future::poll_fn(|cx| self.poll(cx)).await;
        self.awake.set(true);
        woken
    }

    /// Holds up the whole shard until then: whatever comes is heard afterwards, all together.
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

    /// Arms the timer. For a moment that is over, or so near that to sleep is not worth it, none is
    /// armed: the driver has its turn as soon as all others had theirs, without a system call.
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
            // Setting a timer that exists to a valid time does not fail.
            Kind::Timer(timer) => {
                let _ = timer.set(time - now);
            }
            #[cfg(test)]
            Kind::Simulated(bell) => bell.ring_at(time),
        }
    }

    /// Ready when the alarm went off, with the moment at which it should have; it is not set any
    /// more then.
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

    /// The process stood still, and a user whose answer had come meanwhile has its turn first.
    #[test]
    fn an_alarm_that_is_overdue_stays_as_late_as_it_is() {
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
