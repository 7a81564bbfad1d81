//! Whether the figures of a run are about the target; [`crate::verdict`] finds that out.

use throng_base::Said;
use throng_metrics::Packets;

use super::Hold;

/// Lateness (p99) above which missing starts are the generator's fault, and above which a second
/// counts as late.
pub const LATENESS_NS_MAX: u64 = 10_000_000;
/// Share of the host's processors above which there is nothing left to be had.
pub const HOST_CPU_BUSY: f64 = 0.95;

/// Whether the figures are about the target.
#[derive(Clone, Debug, PartialEq)]
pub enum Validity {
    Valid,
    Invalid { reasons: Vec<InvalidReason> },
}

#[derive(Clone, Debug, PartialEq)]
pub enum InvalidReason {
    /// Starts that were due never happened, and the generator was late.
    StartsUnmet { unmet: u64, due: u64 },
    /// The generator did what was due much too late.
    Late { p99_ns: u64, max_ns: u64 },
    /// The generator stood still for so much of the time: stopped, throttled, without a processor.
    TimeLost { lost_ns: u64, measured_ns: u64, longest_ns: u64 },
    /// Attempts failed because this host had no descriptors, ports or memory left.
    GeneratorErrors { failed: u64, attempts: u64 },
    /// Starts that were due never happened because every user was busy; the generator was in
    /// time. `needed` users would have been enough, when that can be said.
    TooFewUsers { unmet: u64, due: u64, needed: Option<u64> },
    /// The end of the run cut off everything that was begun.
    NothingAnswered { cut_off: u64 },
    /// The generator let nobody come any more, for one of the limits that it was given.
    GrowthGivenUp { hold: Hold },
    /// It held users back until the phase that wanted them was over; at most `came` were there.
    UsersHeld { phase: String, came: u64, wanted: u64, seconds: u64, limit: String },
    /// The ledger found no id in any of the messages that it was to follow.
    DeliveriesBlind { name: String, sent: u64, received: u64, lost: u64 },
    /// There is a threshold on deliveries of which some were not watched.
    DeliveriesUnwatched { name: String, unwatched: u64, sent: u64 },
    /// A machine was gone before its load was over: what it did last is not known.
    MachineLost { name: String, at_ns: u64, detail: Said },
    /// A machine left its host to others: a part of the load was missing. `percent` is the least
    /// that was made of its part.
    BackedOff { name: String, at_ns: u64, percent: u8, detail: Said },
    /// What all machines together are not, this one is.
    OfMachine { name: String, reason: Box<InvalidReason> },
    /// A source of data had no row left, so that the load was not done, and the scenario does not
    /// say that this is an end.
    DataEnded { at_ns: u64, detail: Said },
    /// There is a threshold on messages of which the generator dropped some that had come.
    MessagesDropped { dropped: u64 },
    /// The generator carried packets of users with a network too late, or dropped them.
    PacketsLate { packets: Packets },
}

impl InvalidReason {
    /// The word that records and JSON carry.
    pub fn word(&self) -> &'static str {
        match self {
            InvalidReason::StartsUnmet { .. } => "starts-unmet",
            InvalidReason::Late { .. } => "late",
            InvalidReason::TimeLost { .. } => "time-lost",
            InvalidReason::GeneratorErrors { .. } => "generator-errors",
            InvalidReason::TooFewUsers { .. } => "too-few-users",
            InvalidReason::NothingAnswered { .. } => "nothing-answered",
            InvalidReason::GrowthGivenUp { .. } => "growth-given-up",
            InvalidReason::UsersHeld { .. } => "users-held",
            InvalidReason::DeliveriesBlind { .. } => "deliveries-blind",
            InvalidReason::DeliveriesUnwatched { .. } => "deliveries-unwatched",
            InvalidReason::MessagesDropped { .. } => "messages-dropped",
            InvalidReason::PacketsLate { .. } => "packets-late",
            InvalidReason::DataEnded { .. } => "data-ended",
            InvalidReason::MachineLost { .. } => "machine-lost",
            InvalidReason::BackedOff { .. } => "backed-off",
            InvalidReason::OfMachine { reason, .. } => reason.word(),
        }
    }

    pub(crate) fn is_late(&self) -> bool {
        matches!(
            self,
            InvalidReason::StartsUnmet { .. }
                | InvalidReason::Late { .. }
                | InvalidReason::TimeLost { .. }
                | InvalidReason::OfMachine { .. }
        )
    }

    pub(crate) fn is_of_generator(&self) -> bool {
        let is_limited = matches!(
            self,
            InvalidReason::GeneratorErrors { .. }
                | InvalidReason::MessagesDropped { .. }
                | InvalidReason::PacketsLate { .. }
        );
        is_limited || self.is_late() || self.is_held()
    }

    /// What a search for the capacity judges level by level: beyond the limit of a target starts
    /// are missing, and a level that the generator did not offer ends the search.
    pub(crate) fn is_of_level(&self) -> bool {
        match self {
            InvalidReason::StartsUnmet { .. }
            | InvalidReason::Late { .. }
            | InvalidReason::TimeLost { .. }
            | InvalidReason::GeneratorErrors { .. }
            | InvalidReason::TooFewUsers { .. }
            | InvalidReason::NothingAnswered { .. }
            | InvalidReason::UsersHeld { .. }
            | InvalidReason::PacketsLate { .. } => true,
            InvalidReason::OfMachine { reason, .. } => reason.is_of_level(),
            _ => false,
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        matches!(self, InvalidReason::GrowthGivenUp { .. } | InvalidReason::UsersHeld { .. })
    }
}
