//! Reports what one user does, step by step as it happens: for `throng try`. Not active without an
//! observer.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Duration;

use throng_base::{Said, StepId, Time, UserId};
use throng_metrics::{Cause, Stage};
use throng_protocol::http1::Head;
use tokio::sync::mpsc::Sender;

/// Most bytes of a message that are shown; the rest is only counted.
pub const SHOWN_BYTES_MAX: usize = 64 * 1024;
/// Events that may wait for the observer; more are dropped and counted.
pub(crate) const TRACES_WAITING_MAX: usize = 10_000;

/// An event of a user.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    pub at: Time,
    pub user: UserId,
    /// Its index in [`throng_program::Program::sessions`].
    pub session: u16,
    /// Counted from 1; 0 before the first.
    pub iteration: u64,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    IterationBegins,
    /// `finished` is false if the iteration was abandoned.
    IterationEnds {
        finished: bool,
    },
    /// A step starts, or is retried.
    StepBegins {
        /// `None` for verbs without a row in the report, such as `think`.
        step: Option<StepId>,
        /// The verb in the scenario language.
        verb: &'static str,
        /// Its index in the session's code.
        pc: u32,
        /// How many attempts there were before.
        retry: u32,
    },
    /// A connection is open.
    Connected {
        /// As `host:port`.
        target: String,
        /// The duration of each stage.
        stages: Vec<(Stage, Duration)>,
    },
    Sent(Shown),
    /// A message as received, without its frame. For an HTTP response, first the head; then, when
    /// it is complete, the body with its content coding undone.
    Received(Shown),
    /// A piece of an HTTP head that is not complete; the whole head follows, unless the response
    /// breaks off.
    PartOfHead(Shown),
    /// A cookie of the response was refused.
    CookieRefused {
        name: String,
        why: Said,
    },
    /// Valid, but possibly surprising.
    Note(Said),
    /// A selector found nothing: what it may have been meant to find.
    Near(Said),
    /// A try of a step failed, and another follows; the last one decides.
    TryFails {
        step: StepId,
        failure: (Cause, Said),
        figures: Figures,
    },
    StepEnds {
        step: StepId,
        /// `None` for a success; otherwise the cause, and what was found instead.
        failure: Option<(Cause, Said)>,
        figures: Figures,
    },
    /// A value was saved from a response.
    Saved {
        name: String,
        value: String,
    },
    /// The verb `set`.
    Set {
        name: String,
        value: String,
    },
    /// The user has paused, stayed, waited for others or for a retry.
    Paused(Duration),
    /// An `if` or `while`.
    Condition {
        holds: bool,
    },
    Log(String),
    /// The session restarts without its connection.
    Anew,
    /// The session would restart, and got no further than before: the user leaves.
    GivenUp,
    /// The user is gone.
    Gone,
    /// This many events were dropped, because the observer was too slow.
    LeftOut(u64),
}

/// Bytes that were sent or received, truncated for display.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub bytes: Vec<u8>,
    /// How many there were.
    pub length: u64,
}

impl Shown {
    pub fn of(bytes: &[u8]) -> Shown {
        Shown::first(bytes, SHOWN_BYTES_MAX)
    }

    /// The first `most` bytes.
    pub(crate) fn first(bytes: &[u8], most: usize) -> Shown {
        let shown = &bytes[..bytes.len().min(most)];
        Shown { bytes: shown.to_vec(), length: bytes.len() as u64 }
    }
}

/// The measurements of one try of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// From when it was due to the last byte.
    pub latency: Option<Duration>,
    /// From when it was due to the first byte.
    pub first_byte: Option<Duration>,
    /// HTTP status; 0 without one.
    pub code: u16,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// The user that an event belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) user: UserId,
    pub(crate) session: u16,
    pub(crate) iteration: u64,
}

/// A shard's channel to the observer.
#[derive(Debug)]
pub(crate) struct Tracer {
    sender: Sender<Trace>,
    left_out: Cell<u64>,
    passes: RefCell<HashMap<UserId, Pass>>,
}

/// How far a user got through its session.
#[derive(Clone, Copy, Debug, Default)]
struct Pass {
    /// Successful steps since it started.
    good: u64,
    /// The maximum in an earlier pass.
    best: u64,
}

impl Tracer {
    pub(crate) fn new(sender: Sender<Trace>) -> Tracer {
        Tracer { sender, left_out: Cell::new(0), passes: RefCell::default() }
    }

    /// Never waits: events without room are dropped, and counted for the next one.
    pub(crate) fn tell(&self, trace: Trace) {
        if let What::StepEnds { failure: None, .. } = trace.what {
            self.passes.borrow_mut().entry(trace.user).or_default().good += 1;
        }
        let left_out = self.left_out.get();
        if left_out > 0 {
            let note = Trace { what: What::LeftOut(left_out), ..trace.clone() };
            if self.sender.try_send(note).is_err() {
                return self.left_out.set(left_out + 1);
            }
            self.left_out.set(0);
        }
        if self.sender.try_send(trace).is_err() {
            self.left_out.set(self.left_out.get() + 1);
        }
    }

    /// A session restarts: whether this pass got further than earlier ones.
    pub(crate) fn gets_on(&self, user: UserId) -> bool {
        let mut passes = self.passes.borrow_mut();
        let pass = passes.entry(user).or_default();
        let good = std::mem::take(&mut pass.good);
        let gets_on = good > pass.best;
        pass.best = pass.best.max(good);
        gets_on
    }
}

/// The head of a response in HTTP/1.1 format, whatever its protocol.
#[cold]
pub(crate) fn text_of_head(head: &Head<'_>) -> Vec<u8> {
    let version = match head.version_major {
        2 => "HTTP/2".to_string(),
        major => format!("HTTP/{major}.{}", head.version_minor),
    };
    let mut text = format!("{version} {} {}", head.status, String::from_utf8_lossy(head.reason));
    text.truncate(text.trim_end().len());
    text.push_str("\r\n");
    let mut text = text.into_bytes();
    text.extend_from_slice(head.headers.as_bytes());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_events_are_counted() {
        let (sender, mut heard) = tokio::sync::mpsc::channel(3);
        let tracer = Tracer::new(sender);
        let trace = |iteration| Trace {
            at: Time::ZERO,
            user: UserId(1),
            session: 0,
            iteration,
            what: What::IterationBegins,
        };
        (1..=5).for_each(|iteration| tracer.tell(trace(iteration)));
        (1..=3).for_each(|want| assert_eq!(heard.try_recv().unwrap().iteration, want));
        tracer.tell(trace(6));
        assert_eq!(heard.try_recv().unwrap().what, What::LeftOut(2));
        assert_eq!(heard.try_recv().unwrap().iteration, 6);
    }

    #[test]
    fn a_session_makes_progress_while_it_gets_further_than_before() {
        let (sender, _heard) = tokio::sync::mpsc::channel(100);
        let tracer = Tracer::new(sender);
        let good = |user| {
            let figures = Figures::default();
            let what = What::StepEnds { step: StepId(0), failure: None, figures };
            let user = UserId(user);
            tracer.tell(Trace { at: Time::ZERO, user, session: 0, iteration: 1, what });
        };
        assert!(!tracer.gets_on(UserId(1)), "nothing was good");
        good(2);
        assert!(tracer.gets_on(UserId(2)));
        good(2);
        assert!(!tracer.gets_on(UserId(2)), "no further");
        (0..2).for_each(|_| good(2));
        assert!(tracer.gets_on(UserId(2)));
    }

    #[test]
    fn long_messages_are_truncated() {
        let shown = Shown::of(&vec![1; SHOWN_BYTES_MAX + 1]);
        assert_eq!(
            (shown.bytes.len(), shown.length),
            (SHOWN_BYTES_MAX, SHOWN_BYTES_MAX as u64 + 1)
        );
    }
}
