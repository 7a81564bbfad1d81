//! What stands at the top: one phrase for a run, and how good it is.

use throng_base::{Exit, Said};
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Headline {
    pub(crate) tone: Tone,
    pub(crate) text: Said,
    /// Why, where one cause says it.
    pub(crate) cause: Option<Cause>,
}

/// The phrase for the run.
pub(crate) fn headline(summary: &Summary) -> Headline {
    let cause = nothing_succeeded(summary);
    let (tone, text) = words(summary, cause.is_some());
    let cause = cause.filter(|_| text == NOTHING_SUCCEEDED);
    Headline { tone, text, cause }
}

pub(crate) const NOTHING_SUCCEEDED: Said = say!("nothing succeeded");

fn words(summary: &Summary, nothing_succeeded: bool) -> (Tone, Said) {
    let strained = is_strained(summary);
    match exit_code(summary) {
        Exit::GoalsMet if summary.goals.is_empty() && strained => {
            (Tone::Warning, say!("done, but throng was late"))
        }
        Exit::GoalsMet if strained => (Tone::Warning, say!("goals met, but throng was late")),
        Exit::GoalsMet if summary.goals.is_empty() => (Tone::Good, say!("done")),
        Exit::GoalsMet => (Tone::Good, say!("goals met")),
        Exit::GoalsNotMet if nothing_succeeded => (Tone::Bad, NOTHING_SUCCEEDED),
        Exit::GoalsNotMet => (Tone::Bad, say!("goals not met")),
        Exit::TargetUnreachable if failed_setup(summary).is_some() => {
            (Tone::Bad, say!("the setup failed"))
        }
        Exit::TargetUnreachable if summary.target_lost_ns.is_some() && was_reached(summary) => {
            (Tone::Bad, say!("the target was lost"))
        }
        Exit::TargetUnreachable if summary.target_lost_ns.is_none() && !is_unreachable(summary) => {
            (Tone::Bad, say!("stopped by a rule"))
        }
        Exit::TargetUnreachable => (Tone::Bad, say!("the target could not be reached")),
        Exit::ResultInvalid if is_indeterminate(summary) => {
            (Tone::Warning, say!("goals cannot be judged"))
        }
        Exit::ResultInvalid => (Tone::Bad, say!("the result is invalid")),
        Exit::Interrupted if summary.unended && !summary.info.interrupted => {
            (Tone::Warning, say!("without an end"))
        }
        Exit::Interrupted => (Tone::Warning, say!("interrupted")),
        _ => (Tone::Bad, say!("failed")),
    }
}
