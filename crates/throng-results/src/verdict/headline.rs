//! The result of a run in one phrase, and its tone.

use throng_base::{Exit, Said};
use throng_metrics::{Cause, Verdict};

use super::{
    deciding_capacity, deciding_duel, exit_code, failed_setup, is_indeterminate, is_strained,
    is_unreachable, nothing_succeeded, was_reached,
};
use crate::summary::{Outage, Summary, ThresholdRow};
use throng_metrics::Duel;
use throng_metrics::capacity::{Basis, Capacity, EndedBy};
use throng_metrics::duel::Outcome;

/// Whether the result is good or bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Warning,
    Bad,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Headline {
    pub(crate) tone: Tone,
    pub(crate) text: Said,
    /// The reason, if a single cause explains it.
    pub(crate) cause: Option<Cause>,
}

/// The phrase for the run.
pub(crate) fn headline(summary: &Summary) -> Headline {
    if let Some(capacity) = deciding_capacity(summary) {
        let (tone, text) = capacity_words(capacity);
        return Headline { tone, text, cause: None };
    }
    if let Some(duel) = deciding_duel(summary) {
        return Headline { tone: duel_tone(duel), text: duel.verdict(), cause: None };
    }
    let cause = nothing_succeeded(summary);
    let (tone, text) = words(summary, cause.is_some());
    let cause = cause.filter(|_| text == NOTHING_SUCCEEDED);
    match idle(summary).filter(|_| exit_code(summary) == Exit::Success) {
        Some(idle) => Headline { tone: Tone::Warning, text: say!("{text}; {idle}"), cause },
        None => Headline { tone, text, cause },
    }
}

/// Part of the run without users or without a success.
fn idle(summary: &Summary) -> Option<Said> {
    let deserted = summary.events.deserted_s;
    let deserted = deserted.map(|from_s| say!("no users from {from_s} s onward: all left"));
    deserted.or_else(|| summary.events.outage.map(with_outage))
}

fn with_outage(outage: Outage) -> Said {
    say!("no attempt succeeded for {} s, starting at second {}", outage.seconds, outage.from_s)
}

pub(crate) const NOTHING_SUCCEEDED: Said = say!("nothing succeeded");

fn words(summary: &Summary, nothing_succeeded: bool) -> (Tone, Said) {
    let strained = is_strained(summary);
    match exit_code(summary) {
        Exit::Success if summary.verdict.thresholds.is_empty() && strained => {
            (Tone::Warning, say!("done, but throng fell behind"))
        }
        Exit::Success if strained => {
            (Tone::Warning, say!("thresholds met, but throng fell behind"))
        }
        Exit::Success if summary.verdict.thresholds.is_empty() => (Tone::Good, say!("done")),
        Exit::Success => (Tone::Good, say!("thresholds met")),
        Exit::ThresholdsNotMet if nothing_succeeded => (Tone::Bad, NOTHING_SUCCEEDED),
        Exit::ThresholdsNotMet => (Tone::Bad, say!("thresholds not met")),
        Exit::TargetUnreachable if failed_setup(summary).is_some() => {
            (Tone::Bad, say!("the setup failed"))
        }
        Exit::TargetUnreachable
            if summary.events.target_lost_ns.is_some() && was_reached(summary) =>
        {
            (Tone::Bad, say!("the target became unreachable"))
        }
        Exit::TargetUnreachable
            if summary.events.target_lost_ns.is_none() && !is_unreachable(summary) =>
        {
            (Tone::Bad, say!("stopped by a rule"))
        }
        Exit::TargetUnreachable => (Tone::Bad, say!("the target could not be reached")),
        Exit::ResultInvalid if is_indeterminate(summary) => {
            (Tone::Warning, say!("thresholds cannot be evaluated"))
        }
        Exit::ResultInvalid => (Tone::Bad, say!("the result is invalid")),
        Exit::Interrupted if summary.verdict.unended && !summary.info.interrupted => {
            (Tone::Warning, say!("incomplete"))
        }
        Exit::Interrupted => (Tone::Warning, say!("interrupted")),
        Exit::Bug => (Tone::Bad, say!("throng has a bug")),
        _ => (Tone::Bad, say!("failed")),
    }
}

/// The result of a search.
fn capacity_words(capacity: &Capacity) -> (Tone, Said) {
    let is_down = matches!(capacity.ended_by, EndedBy::NotRecovered | EndedBy::CollapsedAgain);
    let wanted = capacity.at_least.map(|load| capacity.load(load));
    let carries = capacity.carries.map(|load| capacity.load(load));
    match (capacity.judge().0, carries, wanted) {
        (Exit::Success, Some(carries), _) if is_down => {
            (Tone::Warning, say!("carries {carries}, but does not recover from overload"))
        }
        (Exit::Success, Some(carries), _) if capacity.basis == Basis::AtLeast => {
            (Tone::Good, say!("carries at least {carries}"))
        }
        (Exit::Success, Some(carries), _) => (Tone::Good, say!("carries {carries}")),
        (Exit::Success, None, Some(wanted)) => (Tone::Good, say!("carries at least {wanted}")),
        (Exit::Success, None, None) => {
            let load = capacity.load(capacity.low.unwrap_or_default());
            (Tone::Good, say!("met at {load}, the highest allowed load"))
        }
        (Exit::ThresholdsNotMet, _, Some(wanted)) => {
            (Tone::Bad, say!("carries less than {wanted}"))
        }
        (Exit::ThresholdsNotMet, ..) if is_down => {
            (Tone::Bad, say!("did not recover from overload"))
        }
        (Exit::ThresholdsNotMet, ..) => (Tone::Bad, say!("fails at the lowest load")),
        (_, _, Some(wanted)) => (Tone::Warning, say!("unclear whether it carries {wanted}")),
        _ if capacity.ended_by == EndedBy::NotConfirmed => {
            (Tone::Warning, say!("no load was confirmed"))
        }
        _ => (Tone::Warning, say!("capacity not determined")),
    }
}

fn duel_tone(duel: &Duel) -> Tone {
    match (duel.judge().0, duel.outcome()) {
        (Exit::ThresholdsNotMet, _) => Tone::Bad,
        (Exit::ResultInvalid, _) | (_, Outcome::Undecided(_) | Outcome::TooShort) => Tone::Warning,
        _ => Tone::Good,
    }
}

/// The verdict in one word, with the reason if the word is not sufficient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) tone: Tone,
    pub(crate) word: Said,
    pub(crate) why: Option<Said>,
}

/// The word for a search or a duel.
fn decided(exit: Exit, has_condition: bool) -> Said {
    match (exit, has_condition) {
        (Exit::Success, false) => say!("DONE"),
        (Exit::Success, true) => say!("PASSED"),
        (Exit::ThresholdsNotMet, _) => say!("FAILED"),
        _ => say!("UNDECIDED"),
    }
}

/// For the first line of a summary. The lines below it explain why a result is invalid.
pub(crate) fn stamp(summary: &Summary) -> Stamp {
    if let Some(capacity) = deciding_capacity(summary) {
        let (tone, why) = capacity_words(capacity);
        let word = decided(capacity.judge().0, capacity.at_least.is_some());
        return Stamp { tone, word, why: Some(why) };
    }
    if let Some(duel) = deciding_duel(summary) {
        let word = decided(duel.judge().0, !duel.conditions.is_empty());
        return Stamp { tone: duel_tone(duel), word, why: Some(duel.verdict()) };
    }
    let Headline { tone, text, cause } = headline(summary);
    let all = summary.verdict.thresholds.len();
    let is_met = |threshold: &&ThresholdRow| matches!(threshold.verdict, Verdict::Met(_));
    let met = summary.verdict.thresholds.iter().filter(is_met).count();
    let is_late = is_strained(summary);
    let (word, why) = match exit_code(summary) {
        Exit::Success => {
            let why = match (all, is_late) {
                (0, false) => None,
                (0, true) => Some(say!("but throng fell behind")),
                (_, false) => Some(say!("{met} of {all} thresholds met")),
                (_, true) => Some(say!("{met} of {all} thresholds met, but throng fell behind")),
            };
            let why = match (why, idle(summary)) {
                (Some(why), Some(idle)) => Some(say!("{why}; {idle}")),
                (why, idle) => why.or(idle),
            };
            (if all == 0 { say!("DONE") } else { say!("PASSED") }, why)
        }
        Exit::ThresholdsNotMet if cause.is_none() && met < all => {
            (say!("FAILED"), Some(say!("{} of {all} thresholds not met", (all - met))))
        }
        Exit::ResultInvalid if is_indeterminate(summary) => {
            (say!("INVALID"), Some(say!("the thresholds cannot be evaluated")))
        }
        Exit::ResultInvalid => (say!("INVALID"), None),
        Exit::Interrupted if summary.info.interrupted => (say!("INTERRUPTED"), None),
        Exit::Interrupted => (say!("INCOMPLETE"), Some(say!("killed, or still running"))),
        _ => {
            let why = cause.map(|cause| say!("nothing succeeded: {cause}", cause = cause.text()));
            (say!("FAILED"), Some(why.unwrap_or(text)))
        }
    };
    Stamp { tone, word, why }
}
