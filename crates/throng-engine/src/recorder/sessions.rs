//! The iterations of each session.

use std::time::Duration;

use throng_metrics::SessionInterval;

use super::rows::Rows;
use crate::recorder::spent::nanos;

/// How an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Iteration {
    /// With its duration, if known.
    Finished(Option<Duration>),
    Failed,
    Interrupted,
}

/// The rows of sessions, if there are several.
pub(crate) struct Sessions(pub(super) Rows<SessionInterval>);

impl Sessions {
    /// For this many sessions, if they are counted separately.
    pub(super) fn new(sessions: usize) -> Sessions {
        Sessions(Rows::new(if sessions > 1 { sessions } else { 0 }))
    }

    fn of(&mut self, session: u16) -> Option<&mut SessionInterval> {
        let new = || SessionInterval { session, ..SessionInterval::default() };
        let is_told = usize::from(session) < self.0.places.len();
        is_told.then(|| self.0.at(usize::from(session), new))
    }

    pub(crate) fn begins(&mut self, session: u16) {
        if let Some(row) = self.of(session) {
            row.begun += 1;
        }
    }

    pub(crate) fn ends(&mut self, session: u16, how: Iteration) {
        let Some(row) = self.of(session) else { return };
        match how {
            Iteration::Finished(time) => {
                row.finished += 1;
                if let Some(time) = time {
                    row.time.record(nanos(time));
                }
            }
            Iteration::Failed => row.failed += 1,
            Iteration::Interrupted => row.interrupted += 1,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.own_bytes() + self.0.rows.iter().map(|row| row.time.heap_bytes()).sum::<usize>()
    }
}
