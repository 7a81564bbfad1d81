//! Whether the results describe the target; [`crate::verdict`] determines it.

use throng_base::Said;
use throng_metrics::Packets;

use super::Hold;

/// Lateness (p99) above which missing starts are blamed on the generator and a second counts as
/// late.
pub const LATENESS_NS_MAX: u64 = 10_000_000;
/// CPU usage of the host above which no processor time is left.
pub const HOST_CPU_BUSY: f64 = 0.95;

/// Whether the results describe the target.
#[derive(Clone, Debug, PartialEq)]
pub enum Validity {
    Valid,
    Invalid { reasons: Vec<InvalidReason> },
}

#[derive(Clone, Debug, PartialEq)]
pub enum InvalidReason {
    /// Due starts never happened, and the generator was late.
    StartsUnmet { unmet: u64, due: u64 },
    /// The generator was much too late.
    Late { p99_ns: u64, max_ns: u64 },
    /// The generator did not run for part of the time: stopped, throttled, or without a processor.
    TimeLost { lost_ns: u64, measured_ns: u64, longest_ns: u64 },
    /// Attempts failed because this host ran out of descriptors, ports or memory.
    GeneratorErrors { failed: u64, attempts: u64 },
    /// Due starts never happened because every user was busy, while the generator was on time.
    /// `needed` is the sufficient number of users, if known.
    TooFewUsers { unmet: u64, due: u64, needed: Option<u64> },
    /// The end of the run interrupted every attempt.
    NothingAnswered { cut_off: u64 },
    /// Growth ended because of a limit of the generator.
    GrowthGivenUp { hold: Hold },
    /// Growth was paused until the end of the phase; at most `came` users were present.
    UsersHeld { phase: String, came: u64, wanted: u64, seconds: u64, limit: String },
    /// The ledger found no ID in any message.
    DeliveriesBlind { name: String, sent: u64, received: u64, lost: u64 },
    /// A threshold applies to deliveries of which some were not tracked.
    DeliveriesUnwatched { name: String, unwatched: u64, sent: u64 },
    /// A machine was lost before the end of its load, with its last results.
    MachineLost { name: String, at_ns: u64, detail: Said },
    /// A machine backed off, so part of the load was missing. `percent` is the minimum portion.
    BackedOff { name: String, at_ns: u64, percent: u8, detail: Said },
    /// One machine is invalid, although all machines together are not.
    OfMachine { name: String, reason: Box<InvalidReason> },
    /// A data source ran out of rows before the end of the load, and the scenario does not expect
    /// it.
    DataEnded { at_ns: u64, detail: Said },
    /// A threshold applies to messages of which the generator dropped some.
    MessagesDropped { dropped: u64 },
    /// The generator delayed or dropped packets of a simulated network.
    PacketsLate { packets: Packets },
}

impl InvalidReason {
    /// The word in run directories and JSON.
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

    /// Whether a capacity search accounts for it within its levels: above the limit of a target,
    /// starts are missing, and a level that the generator did not offer ends the search.
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
