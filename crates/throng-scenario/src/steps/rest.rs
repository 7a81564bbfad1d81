//! How steps end and how much time they take: which steps are unreachable, and which loops would
//! spin.

use std::time::Duration;

use throng_base::Said;
use throng_program::{Pause, Statement};

use crate::read::Context;
use crate::syntax::Place;

/// What keeps a loop from spinning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rest {
    Nothing,
    /// Only sends: a full connection slows it down.
    Sends,
    /// Waits for something.
    Waits,
}

/// How steps end that never continue.
#[derive(Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) how: How,
    pub(crate) place: Place,
}

#[derive(Clone, Copy)]
pub(crate) enum How {
    Repeats,
    Next,
    Leaves,
    Stops,
    /// Each branch in its own way.
    Branches,
}

/// What is known of a list of steps.
#[derive(Clone, Copy)]
pub(crate) struct Flow {
    pub(crate) ends: Option<Ending>,
    /// The minimum on any path to its end.
    pub(crate) least: Rest,
    /// The maximum on some path.
    pub(crate) most: Rest,
    /// The minimum total pause on any path to its end.
    pub(crate) pause: Duration,
    /// The minimum on the paths to a `next`, if there are any.
    pub(crate) next: Option<Rest>,
    /// It changes a value that a condition may use.
    pub(crate) sets: bool,
}

impl Flow {
    pub(crate) const NOTHING: Flow = Flow::of(Rest::Nothing);

    /// A step with a mistake, which must not cause further diagnostics.
    pub(crate) const UNKNOWN: Flow = Flow::of(Rest::Waits);

    pub(crate) const fn of(rest: Rest) -> Flow {
        let pause = Duration::ZERO;
        Flow { ends: None, least: rest, most: rest, pause, next: None, sets: false }
    }

    pub(crate) fn end(how: How, place: Place) -> Flow {
        let next = matches!(how, How::Next).then_some(Rest::Nothing);
        let ends = Some(Ending { how, place });
        // No path reaches its end, so any minimum is true.
        let pause = Duration::ZERO;
        Flow { ends, least: Rest::Waits, most: Rest::Nothing, pause, next, sets: false }
    }

    /// This and then `after`.
    pub(crate) fn then(self, after: Flow) -> Flow {
        if self.ends.is_some() {
            return self;
        }
        let later = after.next.map(|rest| rest.max(self.least));
        Flow {
            ends: after.ends,
            least: self.least.max(after.least),
            most: self.most.max(after.most),
            pause: self.pause.saturating_add(after.pause),
            next: least_of(self.next, later),
            sets: self.sets || after.sets,
        }
    }

    /// One of these, unknown which.
    pub(crate) fn either(self, other: Flow, place: Place) -> Flow {
        Flow {
            ends: both_end(self, other, place),
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            pause: match (self.ends.is_some(), other.ends.is_some()) {
                (true, false) => other.pause,
                (false, true) => self.pause,
                _ => self.pause.min(other.pause),
            },
            next: least_of(self.next, other.next),
            sets: self.sets || other.sets,
        }
    }

    /// One of these at random: each is taken eventually.
    pub(crate) fn by_chance(self, other: Flow, place: Place) -> Flow {
        let least = match (self.ends.is_some(), other.ends.is_some()) {
            (true, false) => other.least,
            (false, true) => self.least,
            _ => self.least.max(other.least),
        };
        let next = match (self.next, other.next) {
            (Some(one), Some(other)) => Some(one.max(other)),
            _ => None,
        };
        let ends = both_end(self, other, place);
        Flow { least, next, ends, ..self.either(other, place) }
    }

    /// Both concurrently: the next step runs when both are over, however they end.
    pub(crate) fn beside(self, other: Flow) -> Flow {
        Flow {
            ends: None,
            least: self.least.max(other.least),
            most: self.most.max(other.most),
            pause: self.pause.max(other.pause),
            next: least_of(self.next, other.next),
            sets: self.sets || other.sets,
        }
    }

    /// May be skipped.
    pub(crate) fn perhaps(self) -> Flow {
        Flow { ends: None, least: Rest::Nothing, pause: Duration::ZERO, ..self }
    }
}

fn both_end(one: Flow, other: Flow, place: Place) -> Option<Ending> {
    one.ends.and(other.ends).map(|_| Ending { how: How::Branches, place })
}

fn least_of(one: Option<Rest>, other: Option<Rest>) -> Option<Rest> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The minimum pause of a statement.
pub(crate) fn pause_of(instruction: &Statement) -> Duration {
    match instruction {
        Statement::Think(Pause::Uniform { low, .. }) => *low,
        _ => Duration::ZERO,
    }
}

/// What a statement other than a jump takes.
pub(crate) fn rest_of(instruction: &Statement) -> Rest {
    let waits = match instruction {
        Statement::Think(Pause::Uniform { high, .. }) => !high.is_zero(),
        Statement::Think(Pause::Normal { mean, deviation }) => {
            !mean.is_zero() || !deviation.is_zero()
        }
        Statement::Think(_) => true,
        Statement::Stay(stay) => stay.time.is_none_or(|time| !time.is_zero()),
        Statement::Send(_) => return Rest::Sends,
        Statement::Connect(_)
        | Statement::Secure(_)
        | Statement::Expect(_)
        | Statement::Request(_)
        | Statement::Rendezvous(_) => true,
        other => other.opens_itself(),
    };
    if waits { Rest::Waits } else { Rest::Nothing }
}

const HELP: Said = say!("add `- think: 1s`");

/// Reports a loop whose steps take no time: a single user would use a whole core. `enough` is what
/// prevents that.
pub(crate) fn check_loop(cx: &mut Context<'_>, place: Place, body: Flow, enough: Rest) {
    if body.most < enough {
        endless(cx, say!("no step in this loop waits"), place);
    } else if body.ends.is_none() && body.least < enough {
        busy(cx, say!("one path through this loop never waits"), place);
    }
}

/// Iterations repeat, so one with only pauses of zero is an endless loop too. If each user runs a
/// single iteration, it is harmless.
pub(crate) fn check_iteration(cx: &mut Context<'_>, place: Place, body: Flow, again: bool) {
    let shortest = match body.ends {
        Some(_) => body.next,
        None => least_of(Some(body.least), body.next),
    };
    if shortest.is_none() {
        return;
    }
    if body.most == Rest::Nothing {
        endless(cx, say!("the iteration does nothing"), place);
    } else if shortest == Some(Rest::Nothing) && again {
        busy(cx, say!("one path through an iteration never waits"), place);
    }
}

fn endless(cx: &mut Context<'_>, message: Said, place: Place) {
    cx.report("endless-loop", place, message, say!("users would loop at full speed"), HELP);
}

fn busy(cx: &mut Context<'_>, message: Said, place: Place) {
    let help = say!("add `- think: 1s` to a path that every user takes");
    cx.warn("busy-loop", place, message, say!("on that path, users loop at full speed"), help);
}

/// Warns of a step after others that never continue.
pub(crate) fn warn_unreachable(cx: &mut Context<'_>, ending: Ending, step: Place) {
    if cx.mistakes.is_full() {
        return;
    }
    let line = cx.line(ending.place);
    let (label, help) = match ending.how {
        How::Repeats => (
            say!("line {line} repeats forever"),
            say!("limit its repetitions, or remove the steps after it"),
        ),
        How::Next => (
            say!("line {line} ends the iteration"),
            say!("put `next` into an `if`, or remove the steps after it"),
        ),
        How::Leaves => (
            say!("the user leaves on line {line}"),
            say!("put `leave` into an `if`, or remove the steps after it"),
        ),
        How::Stops => (
            say!("the run ends on line {line}"),
            say!("put `stop` into an `if`, or remove the steps after it"),
        ),
        How::Branches => (
            say!("every branch on line {line} ends before this step"),
            say!("let one branch continue, or remove the steps after the branches"),
        ),
    };
    cx.warn("unreachable-step", step, say!("this step is never reached"), label, help);
}
