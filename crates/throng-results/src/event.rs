//! What stands in `events.ndjson`: what happened once, with its time.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use throng_base::{Said, Secrets};
use throng_metrics::{Cause, DeliveryCounter};

use crate::evidence::Evidence;
use crate::once::OnceRun;
use throng_metrics::Duel;
use throng_metrics::audit::{Entry, Round};
use throng_metrics::capacity::Capacity;

/// Of a log line and of the reason of a stop; the record has the whole.
pub(crate) const TEXT_CHARS_MAX: usize = 1_000;

/// One line of `events.ndjson`. `at_ns` counts from the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    PhaseBegun {
        at_ns: u64,
        phase: u16,
    },
    /// Its time has passed, or all that it drives is done.
    PhaseEnded {
        at_ns: u64,
        phase: u16,
    },
    /// An example of a failure; not every failure has one.
    Failure {
        at_ns: u64,
        step: u16,
        cause: Cause,
        /// What exactly happened, such as the status line or the word of the system.
        detail: Said,
        /// Of the first failure of each step, cause and code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Box<Evidence>>,
    },
    /// An example of what went wrong with the messages of a row of the ledger, in words; not
    /// everything has one. That messages were lost is a [`Event::Failure`].
    Delivery {
        at_ns: u64,
        step: u16,
        /// Among what it is counted.
        counter: DeliveryCounter,
        detail: Said,
    },
    /// A person asked the run to stop.
    Interrupted {
        at_ns: u64,
    },
    /// Something could not be recorded; `lost` lines so far.
    RecordingTrouble {
        at_ns: u64,
        lost: u64,
        detail: Said,
    },
    /// The generator has something to say about itself.
    Notice {
        at_ns: u64,
        text: String,
    },
    /// The run was given up: for some time nothing was answered and no connection opened.
    TargetLost {
        at_ns: u64,
    },
    /// A line that the scenario wrote. Not every line is kept.
    Log {
        at_ns: u64,
        /// Counted from 1.
        user: u64,
        /// It may hold text of the target.
        text: String,
    },
    /// The scenario ended the whole run.
    Stopped {
        at_ns: u64,
        /// It may hold text of the target.
        reason: Said,
        by: StopBy,
    },
    /// The generator lets nobody come: it is at one of the limits that it was told to keep.
    Held {
        at_ns: u64,
        /// `cpu`, `memory`, or `host-memory`: what the host has for all.
        limit: String,
        /// The figure and its limit.
        detail: Said,
    },
    /// It is below that limit again: users come as the load wants them.
    Released {
        at_ns: u64,
    },
    /// It stayed at that limit for so long that nobody comes any more in this run.
    GrowthGivenUp {
        at_ns: u64,
        limit: String,
        detail: Said,
    },
    /// What is done once in the run is over: the setup before the load, the teardown after it.
    Once {
        at_ns: u64,
        #[serde(flatten)]
        once: Box<OnceRun>,
    },
    /// One of several machines is gone before its load was over, and its users with it.
    MachineLost {
        at_ns: u64,
        /// By its index.
        machine: u16,
        detail: Said,
    },
    /// A machine makes another part of its load than before, as its host is busy by others, or
    /// calm again.
    BackedOff {
        /// From when on it is so.
        at_ns: u64,
        /// By its index.
        machine: u16,
        percent: u8,
        detail: Said,
    },
    /// A person has changed the load while it ran, or machines make what others leave out.
    Amended {
        /// From when on it is so.
        at_ns: u64,
        /// The load by its number, and the phase that ran, by its number in the run.
        load: u16,
        phase: u16,
        /// In words that do not change: `times 1.1`, `users 500`, `rate 20`, `end-phase`, `pause`,
        /// `go-on`, `redistribute 1.5`.
        change: String,
    },
    /// A person has marked a moment.
    Marked {
        at_ns: u64,
        name: String,
    },
    /// A name that is looked up during the run leads elsewhere: new connections go there.
    AddressesChanged {
        at_ns: u64,
        host: String,
        before: Vec<SocketAddr>,
        after: Vec<SocketAddr>,
    },
    /// An event of the scenario begins.
    ActionBegun {
        at_ns: u64,
        /// By its number in the scenario.
        number: u16,
        name: String,
        /// `run`, `http`, `mark`, `amend`.
        action: String,
        /// When it was to begin.
        due_ns: u64,
    },
    /// What an event of the scenario did is over, or it never began.
    ActionEnded {
        at_ns: u64,
        number: u16,
        name: String,
        action: String,
        status: ActionStatus,
        took_ns: u64,
        /// How it ended, in words.
        detail: Said,
        /// What a command wrote, or the body of a response: the first and the last of it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
    },
    /// A source of other figures has told of a series for the first time.
    Series {
        at_ns: u64,
        /// The source, by its index.
        monitor: u16,
        /// For each source from 0.
        number: u16,
        /// With its labels.
        name: String,
        /// It only grows, and begins again at 0.
        counter: bool,
    },
    /// A source was read.
    Scrape {
        /// When it was asked.
        at_ns: u64,
        monitor: u16,
        /// By the numbers of their series.
        values: Vec<(u16, f64)>,
        /// Series that matched and were not kept.
        #[serde(default, skip_serializing_if = "is_zero")]
        left_out: u64,
    },
    /// A source could not be read.
    ScrapeFailed {
        at_ns: u64,
        monitor: u16,
        detail: Said,
    },
    /// A round of an audit of presence is over.
    Audited {
        /// When it began.
        at_ns: u64,
        audit: u16,
        round: Box<Round>,
    },
    /// The books of the target were read.
    BooksRead {
        at_ns: u64,
        audit: u16,
        entry: Box<Entry>,
    },
    /// What a search for the highest load has found so far; the last one counts.
    Capacity {
        at_ns: u64,
        capacity: Box<Capacity>,
    },
    /// What a duel has found by now: after each pair of slices, and at its end.
    Duel {
        at_ns: u64,
        duel: Box<Duel>,
    },
    RunEnded {
        at_ns: u64,
    },
    /// An event of a newer throng.
    #[serde(other)]
    Unknown,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Event {
    /// The source that it is of, by its index.
    pub(crate) fn monitor_mut(&mut self) -> Option<&mut u16> {
        match self {
            Event::Series { monitor, .. }
            | Event::Scrape { monitor, .. }
            | Event::ScrapeFailed { monitor, .. } => Some(monitor),
            _ => None,
        }
    }

    /// When it was, from the start of the run; an event of a newer throng does not say it.
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

/// A change of the addresses of a name, the same in every language.
pub fn moved(host: &str, before: &[SocketAddr], after: &[SocketAddr]) -> String {
    let listed = |all: &[SocketAddr]| {
        let ips: Vec<String> = all.iter().map(|address| address.ip().to_string()).collect();
        ips.join(", ")
    };
    format!("{host}: {} -> {}", listed(before), listed(after))
}

words! {
    /// What became of an event of the scenario.
    #[derive(Default)]
    ActionStatus {
        Done, "done", "done";
        /// It was tried and did not succeed.
        Failed, "failed", "failed";
        /// It took longer than it may, and was ended.
        TimedOut, "timed-out", "timed out";
        /// The run ended before it, and ended it.
        Stopped, "stopped", "stopped";
        /// Its time did not come.
        NotReached, "not-reached", "did not happen";
        /// Its time came while the run had no controller.
        Missed, "missed", "missed";
        /// The run was killed before it was known, or a newer throng knows it.
        #[default]
        #[serde(other)]
        Unknown, "unknown", "unknown";
    }
}

words! {
    /// What ended a run before its load was done.
    StopBy {
        /// A rule of the scenario gave it up: `stop`, `on_error: stop`.
        Rule, "rule";
        /// A source of data had no row left, with which the run was to end.
        Data, "data";
        /// The same, though the scenario does not say that the run ends with its rows.
        DataShort, "data-short";
        /// throng itself has a bug: a user stood still that nothing would ever have woken.
        Bug, "bug";
    }
}
