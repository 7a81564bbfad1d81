//! The operator of a run, which watches and controls it: a terminal, or a program that embeds
//! throng.

use std::borrow::Cow;
use std::io;

use throng_base::{Clock, Diagnostic, Exit, Said, Time};
use throng_metrics::{Gauges, Interval};
use throng_results::terminal::Progress;
use throng_results::{Event, RunInfo, Summary};
use tokio::sync::mpsc::UnboundedReceiver;

/// What a run reports, in the order in which it happens.
#[allow(clippy::large_enum_variant)] // At most one line exists at a time, or it is borrowed.
pub enum Line<'a> {
    /// A sentence about the run.
    Said(Said),
    /// An error, or a warning.
    Diagnostic(Cow<'a, Diagnostic>),
    /// All errors in a scenario.
    Mistakes(Cow<'a, [Diagnostic]>),
    /// Text to print unchanged: a table, or what a process of the run wrote to standard error
    /// before it was lost.
    Text(Cow<'a, str>),
    /// The scenario's own message (`log`): when, in nanoseconds since the start of the load, and
    /// the user's number, from 1. Both are missing in `setup` and `teardown`.
    Log { at: Option<(u64, u64)>, text: Cow<'a, str> },
    /// How `setup` or `teardown` ended.
    Once(Said),
    /// A bug in throng.
    Bug(Said),
    /// The load starts; this is the zero of the clock.
    Began { info: Cow<'a, RunInfo>, clock: Clock },
    /// The results of a second, or of its part in a phase; `gauges` cover all loads.
    Interval { interval: Cow<'a, Interval>, gauges: Cow<'a, Gauges> },
    /// An event as in `events.ndjson`, without secrets.
    Event(Cow<'a, Event>),
    /// All results up to this time have been reported.
    Second(Time),
    /// Progress of the run, several times per second, if [`Operator::sees_progress`]. `None` if no
    /// phase is running.
    Progress(Option<Progress>),
    /// The operator asked to stop.
    Interrupted,
    /// The load has ended; audits, exports and `teardown` follow.
    Over,
    /// The results of the run; `has_page` if the run directory has its HTML report.
    Summary { summary: Cow<'a, Summary>, has_page: bool },
}

/// Watches and controls a run. Its methods must not wait for the run.
pub trait Operator {
    fn tell(&self, line: Line<'_>);

    /// Requests to stop the run. Called once, inside the runtime of the run and before anything is
    /// recorded.
    ///
    /// # Errors
    /// The system does not deliver them.
    fn stop_requests(&self) -> io::Result<StopRequests> {
        Ok(StopRequests::none())
    }

    /// Keys pressed during the load, as [`crate::control::command::of_key`] reads them. Called
    /// once, when the load starts.
    fn keys(&self) -> Option<UnboundedReceiver<u8>> {
        None
    }

    /// Whether to send [`Line::Progress`].
    fn sees_progress(&self) -> bool {
        false
    }

    /// The help key was pressed. Returns false if the operator cannot show help.
    fn helps(&self) -> bool {
        false
    }
}

/// Requests to stop a run: the first ends it gracefully, the second immediately.
pub struct StopRequests(Option<UnboundedReceiver<()>>);

impl StopRequests {
    pub fn new(requests: UnboundedReceiver<()>) -> StopRequests {
        StopRequests(Some(requests))
    }

    /// Never stops the run.
    pub fn none() -> StopRequests {
        StopRequests(None)
    }

    /// The next request; pending forever if none can arrive.
    pub async fn next(&mut self) {
        next(self.0.as_mut()).await;
    }
}

/// The next message; pending forever if none can arrive.
pub(crate) async fn next<T>(from: Option<&mut UnboundedReceiver<T>>) -> T {
    let message = match from {
        Some(from) => from.recv().await,
        None => None,
    };
    match message {
        Some(message) => message,
        None => std::future::pending().await,
    }
}

impl dyn Operator + '_ {
    pub fn say(&self, said: Said) {
        self.tell(Line::Said(said));
    }

    /// Prints a line of text unchanged.
    pub fn line(&self, line: &str) {
        self.tell(Line::Text(Cow::Owned(format!("{line}\n"))));
    }

    /// Waits for a request to stop.
    pub async fn stop_requested(&self) {
        let mut requests = self.stop_requests().unwrap_or_else(|_| StopRequests::none());
        requests.next().await;
    }

    /// Reports why a command fails, with this exit code.
    pub fn fail(&self, diagnostic: &Diagnostic, exit: Exit) -> Exit {
        self.diagnostic(diagnostic);
        exit
    }

    /// Reports why a run does not start, and that nothing was sent.
    pub fn refuse(&self, diagnostic: &Diagnostic, exit: Exit) -> Exit {
        self.diagnostic(diagnostic);
        self.say(say!("nothing was sent"));
        exit
    }

    pub fn diagnostic(&self, diagnostic: &Diagnostic) {
        self.tell(Line::Diagnostic(Cow::Borrowed(diagnostic)));
    }

    pub fn diagnostics(&self, diagnostics: &[Diagnostic]) {
        self.tell(Line::Mistakes(Cow::Borrowed(diagnostics)));
    }
}

impl Line<'_> {
    /// A copy that the receiver can keep.
    pub fn into_owned(self) -> Line<'static> {
        match self {
            Line::Said(said) => Line::Said(said),
            Line::Diagnostic(one) => Line::Diagnostic(Cow::Owned(one.into_owned())),
            Line::Mistakes(all) => Line::Mistakes(Cow::Owned(all.into_owned())),
            Line::Text(text) => Line::Text(Cow::Owned(text.into_owned())),
            Line::Log { at, text } => Line::Log { at, text: Cow::Owned(text.into_owned()) },
            Line::Once(said) => Line::Once(said),
            Line::Bug(said) => Line::Bug(said),
            Line::Began { info, clock } => {
                Line::Began { info: Cow::Owned(info.into_owned()), clock }
            }
            Line::Interval { interval, gauges } => Line::Interval {
                interval: Cow::Owned(interval.into_owned()),
                gauges: Cow::Owned(gauges.into_owned()),
            },
            Line::Event(event) => Line::Event(Cow::Owned(event.into_owned())),
            Line::Second(until) => Line::Second(until),
            Line::Progress(progress) => Line::Progress(progress),
            Line::Interrupted => Line::Interrupted,
            Line::Over => Line::Over,
            Line::Summary { summary, has_page } => {
                Line::Summary { summary: Cow::Owned(summary.into_owned()), has_page }
            }
        }
    }
}
