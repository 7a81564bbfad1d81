//! What stands at the top: one phrase for a run, and how good it is.

use throng_base::Exit;
use throng_metrics::Cause;

use super::{
    exit_code, failed_setup, is_indeterminate, is_strained, is_unreachable, nothing_succeeded,
    was_reached,
};
use crate::summary::Summary;

/// How good the news is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Warning,
    Bad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Headline {
    pub(crate) tone: Tone,
    pub(crate) text: &'static str,
    /// Why, where one cause says it.
    pub(crate) cause: Option<Cause>,
}

/// The phrase for the run.
pub(crate) fn headline(summary: &Summary) -> Headline {
    let cause = nothing_succeeded(summary);
    let (tone, text) = words(summary, cause.is_some());
    Headline { tone, text, cause: cause.filter(|_| text == NOTHING_SUCCEEDED) }
}

// words
pub(crate) const NOTHING_SUCCEEDED: &str = "nothing succeeded";

// words
fn words(summary: &Summary, nothing_succeeded: bool) -> (Tone, &'static str) {
    let strained = is_strained(summary);
    match exit_code(summary) {
        Exit::GoalsMet if summary.goals.is_empty() && strained => {
            (Tone::Warning, "done, but throng was late")
        }
        Exit::GoalsMet if strained => (Tone::Warning, "goals met, but throng was late"),
        Exit::GoalsMet if summary.goals.is_empty() => (Tone::Good, "done"),
        Exit::GoalsMet => (Tone::Good, "goals met"),
        Exit::GoalsNotMet if nothing_succeeded => (Tone::Bad, NOTHING_SUCCEEDED),
        Exit::GoalsNotMet => (Tone::Bad, "goals not met"),
        Exit::TargetUnreachable if failed_setup(summary).is_some() => {
            (Tone::Bad, "the setup failed")
        }
        Exit::TargetUnreachable if summary.target_lost_ns.is_some() && was_reached(summary) => {
            (Tone::Bad, "the target was lost")
        }
        Exit::TargetUnreachable if summary.target_lost_ns.is_none() && !is_unreachable(summary) => {
            (Tone::Bad, "stopped by a rule")
        }
        Exit::TargetUnreachable => (Tone::Bad, "the target could not be reached"),
        Exit::ResultInvalid if is_indeterminate(summary) => {
            (Tone::Warning, "goals cannot be judged")
        }
        Exit::ResultInvalid => (Tone::Bad, "the result is invalid"),
        Exit::Interrupted if summary.unended && !summary.info.interrupted => {
            (Tone::Warning, "without an end")
        }
        Exit::Interrupted => (Tone::Warning, "interrupted"),
        _ => (Tone::Bad, "failed"),
    }
}
