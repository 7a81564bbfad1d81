//! The lines of `events.ndjson`: single occurrences with their times.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use throng_base::{Said, Secrets};
pub use throng_metrics::StopBy;
use throng_metrics::{Cause, DeliveryCounter};

use crate::evidence::Evidence;
use crate::once::OnceRun;
use throng_metrics::Duel;
use throng_metrics::audit::{Entry, Round};
use throng_metrics::capacity::Capacity;

/// Maximum length of a log line and of the reason of a stop in memory; the file has the full text.
pub(crate) const TEXT_CHARS_MAX: usize = 1_000;

/// A line of `events.ndjson`. `at_ns` counts from the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    PhaseBegun {
        at_ns: u64,
        phase: u16,
    },
    /// Its time has passed, or its work is done.
    PhaseEnded {
        at_ns: u64,
        phase: u16,
    },
    /// An example of a failure; not every failure has one.
    Failure {
        at_ns: u64,
        step: u16,
        cause: Cause,
        /// Details, such as the status line or the system's error message.
        detail: Said,
        /// For the first failure of each step, cause and code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Box<Evidence>>,
    },
    /// An example of an irregular delivery, in words; not every one has an example. Losses are
    /// [`Event::Failure`].
    Delivery {
        at_ns: u64,
        step: u16,
        /// The counter that includes it.
        counter: DeliveryCounter,
        detail: Said,
    },
    /// The operator asked the run to stop.
    Interrupted {
        at_ns: u64,
    },
    /// Recording failed; `lost` lines so far.
    RecordingTrouble {
        at_ns: u64,
        lost: u64,
        detail: Said,
    },
    /// A message of the generator about itself.
    Notice {
        at_ns: u64,
        text: String,
    },
    /// The run ended because, for some time, there were no responses and no connection opened.
    TargetLost {
        at_ns: u64,
    },
    /// A line that the scenario logged. Not every line is kept.
    Log {
        at_ns: u64,
        /// Counted from 1.
        user: u64,
        /// May contain text of the target.
        text: String,
    },
    /// The scenario ended the whole run.
    Stopped {
        at_ns: u64,
        /// May contain text of the target.
        reason: Said,
        by: StopBy,
    },
    /// Growth is paused because the generator is at one of its limits.
    Held {
        at_ns: u64,
        /// `cpu`, `memory`, or `host-memory`: memory of the whole host.
        limit: String,
        /// The usage and its limit.
        detail: Said,
    },
    /// Usage is below the limit again, so growth resumes.
    Released {
        at_ns: u64,
    },
    /// Usage stayed at the limit for so long that growth ended for this run.
    GrowthGivenUp {
        at_ns: u64,
        limit: String,
        detail: Said,
    },
    /// The setup before the load or the teardown after it has ended.
    Once {
        at_ns: u64,
        #[serde(flatten)]
        once: Box<OnceRun>,
    },
    /// A machine and its users were lost before the end of its load.
    MachineLost {
        at_ns: u64,
        /// Index of the machine.
        machine: u16,
        detail: Said,
    },
    /// A machine changes its portion of the load because other programs use its host more or less.
    BackedOff {
        /// The start of the new portion.
        at_ns: u64,
        /// Index of the machine.
        machine: u16,
        percent: u8,
        detail: Said,
    },
    /// The operator changed the load, or machines took over the load of others.
    Amended {
        /// The start of the change.
        at_ns: u64,
        /// The numbers of the load and of its current phase in the run.
        load: u16,
        phase: u16,
        /// In stable words: `times 1.1`, `users 500`, `rate 20`, `end-phase`, `pause`, `go-on`,
        /// `redistribute 1.5`.
        change: String,
    },
    /// The operator marked a moment.
    Marked {
        at_ns: u64,
        name: String,
    },
    /// A name resolved to other addresses during the run; new connections use them.
    AddressesChanged {
        at_ns: u64,
        host: String,
        before: Vec<SocketAddr>,
        after: Vec<SocketAddr>,
    },
    /// An event of the scenario starts.
    ActionBegun {
        at_ns: u64,
        /// Its number in the scenario.
        number: u16,
        name: String,
        /// `run`, `http`, `mark`, `amend`.
        action: String,
        /// When it was due.
        due_ns: u64,
    },
    /// An event of the scenario has ended, or never started.
    ActionEnded {
        at_ns: u64,
        number: u16,
        name: String,
        action: String,
        status: ActionStatus,
        took_ns: u64,
        /// Its result in words.
        detail: Said,
        /// The start and end of a command's output or of a response's body.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
    },
    /// A monitor reported a series for the first time.
    Series {
        at_ns: u64,
        /// Index of the monitor.
        monitor: u16,
        /// Counted from 0 for each monitor.
        number: u16,
        /// Includes its labels.
        name: String,
        /// It only increases, or restarts at 0.
        counter: bool,
    },
    /// A monitor was read.
    Scrape {
        /// The time of the request.
        at_ns: u64,
        monitor: u16,
        /// By the number of the series.
        values: Vec<(u16, f64)>,
        /// Number of matching series that were not kept.
        #[serde(default, skip_serializing_if = "is_zero")]
        left_out: u64,
    },
    /// A monitor could not be read.
    ScrapeFailed {
        at_ns: u64,
        monitor: u16,
        detail: Said,
    },
    /// A round of a presence audit.
    Audited {
        /// The start of the round.
        at_ns: u64,
        audit: u16,
        round: Box<Round>,
    },
    /// The target's counts were read.
    BooksRead {
        at_ns: u64,
        audit: u16,
        entry: Box<Entry>,
    },
    /// The state of a capacity search; the last one is the result.
    Capacity {
        at_ns: u64,
        capacity: Box<Capacity>,
    },
    /// The state of a duel, after each pair of slices and at the end.
    Duel {
        at_ns: u64,
        duel: Box<Duel>,
    },
    RunEnded {
        at_ns: u64,
    },
    /// An event of a newer version of throng.
    #[serde(other)]
    Unknown,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Event {
    /// The index of its monitor.
    pub(crate) fn monitor_mut(&mut self) -> Option<&mut u16> {
        match self {
            Event::Series { monitor, .. }
            | Event::Scrape { monitor, .. }
            | Event::ScrapeFailed { monitor, .. } => Some(monitor),
            _ => None,
        }
    }

    /// Its time from the start of the run; `None` for an unknown event.
    pub fn at_ns_mut(&mut self) -> Option<&mut u64> {
        match self {
            Event::PhaseBegun { at_ns, .. }
            | Event::PhaseEnded { at_ns, .. }
            | Event::Failure { at_ns, .. }
            | Event::Delivery { at_ns, .. }
            | Event::Interrupted { at_ns }
            | Event::RecordingTrouble { at_ns, .. }
            | Event::Notice { at_ns, .. }
            | Event::TargetLost { at_ns }
            | Event::Log { at_ns, .. }
            | Event::Stopped { at_ns, .. }
            | Event::Held { at_ns, .. }
            | Event::Released { at_ns }
            | Event::GrowthGivenUp { at_ns, .. }
            | Event::Once { at_ns, .. }
            | Event::MachineLost { at_ns, .. }
            | Event::BackedOff { at_ns, .. }
            | Event::Amended { at_ns, .. }
            | Event::Marked { at_ns, .. }
            | Event::AddressesChanged { at_ns, .. }
            | Event::ActionBegun { at_ns, .. }
            | Event::ActionEnded { at_ns, .. }
            | Event::Series { at_ns, .. }
            | Event::Scrape { at_ns, .. }
            | Event::ScrapeFailed { at_ns, .. }
            | Event::Audited { at_ns, .. }
            | Event::BooksRead { at_ns, .. }
            | Event::Capacity { at_ns, .. }
            | Event::Duel { at_ns, .. }
            | Event::RunEnded { at_ns } => Some(at_ns),
            Event::Unknown => None,
        }
    }

    /// The event without secrets.
    #[must_use]
    pub fn masked(&self, secrets: &Secrets) -> Event {
        let mut event = self.clone();
        let mask = |text: &mut String| *text = secrets.mask(text).into_owned();
        let mask_message = |text: &mut String| *text = secrets.mask_message(text).into_owned();
        let mask_said = |said: &mut Said| {
            said.change_texts(&|text| secrets.mask(text).into_owned());
        };
        match &mut event {
            Event::Failure { detail: said, .. }
            | Event::Delivery { detail: said, .. }
            | Event::ScrapeFailed { detail: said, .. }
            | Event::Stopped { reason: said, .. } => mask_said(said),
            Event::ActionEnded { name, detail, output, .. } => {
                mask(name);
                mask_message(output);
                mask_said(detail);
            }
            Event::Log { text, .. } => mask_message(text),
            Event::Notice { text, .. }
            | Event::Series { name: text, .. }
            | Event::AddressesChanged { host: text, .. }
            | Event::ActionBegun { name: text, .. }
            | Event::Marked { name: text, .. } => mask(text),
            Event::Audited { round, .. } => {
                for view in &mut round.views {
                    view.unknown.iter_mut().for_each(mask);
                    view.trouble.iter_mut().for_each(mask_said);
                }
            }
            Event::BooksRead { entry, .. } => entry.trouble.iter_mut().for_each(mask_said),
            Event::Once { once, .. } => once.mask(secrets),
            Event::Capacity { capacity, .. } => capacity.mask(secrets),
            Event::Duel { duel, .. } => duel.mask(secrets),
            _ => {}
        }
        event
    }
}

/// A change of a name's addresses, in the same form in every language.
pub fn moved(host: &str, before: &[SocketAddr], after: &[SocketAddr]) -> String {
    let listed = |all: &[SocketAddr]| {
        let ips: Vec<String> = all.iter().map(|address| address.ip().to_string()).collect();
        ips.join(", ")
    };
    format!("{host}: {} -> {}", listed(before), listed(after))
}

words! {
    /// The result of an event of the scenario.
    #[derive(Default)]
    ActionStatus {
        Done, "done", "done";
        /// It was executed and failed.
        Failed, "failed", "failed";
        /// It exceeded its timeout and was killed.
        TimedOut, "timed-out", "timed out";
        /// The end of the run interrupted it.
        Stopped, "stopped", "stopped";
        /// It never became due.
        NotReached, "not-reached", "did not happen";
        /// It was due while the run had no controller.
        Missed, "missed", "missed";
        /// The run was killed first, or the word is from a newer version.
        #[default]
        #[serde(other)]
        Unknown, "unknown", "unknown";
    }
}
