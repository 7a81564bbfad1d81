//! Diagnostics about a setup or teardown that failed.

use throng_base::units::format_duration;
use throng_base::{Diagnostic, Said, clean};

use crate::once::{OnceOutcome, OncePart, OnceRun};
use crate::summary::Summary;

/// Maximum length of the message of a step or rule; the run directory has the full text.
const DETAIL_CHARS_MAX: usize = 300;

impl OnceRun {
    fn time(&self) -> String {
        format_duration(std::time::Duration::from_nanos(self.lasted_ns))
    }

    /// The failed step, with its position, its cause and what was found.
    fn reason(&self) -> Option<Said> {
        let failure = self.failure.as_ref()?;
        let detail = failure.detail.clone().cleaned().shortened(DETAIL_CHARS_MAX);
        let why = match failure.cause.map(|cause| cause.text()) {
            Some(cause) if detail.is_empty() => cause,
            Some(cause) => say!("{cause}: {detail}"),
            None => detail,
        };
        Some(match failure.step.is_empty() {
            true => why,
            false => say!("`{}` at {}: {why}", clean(&failure.step), failure.place),
        })
    }

    fn text(&self) -> Said {
        let time = self.time();
        match (self.part, self.outcome) {
            (OncePart::Setup, OnceOutcome::TimedOut) => {
                say!("the setup timed out after {time}: the load did not start")
            }
            (OncePart::Setup, _) => say!("the setup failed: the load did not start"),
            (OncePart::Teardown, OnceOutcome::TimedOut) => {
                say!("the teardown timed out after {time}")
            }
            (OncePart::Teardown, _) => say!("the teardown failed"),
        }
    }

    fn diagnostic(&self) -> Diagnostic {
        let told = match self.part {
            OncePart::Setup => Diagnostic::error("setup-failed", self.text()).help(say!(
                "correct the step or the service it uses; `throng try` shows what is sent and \
                 received"
            )),
            OncePart::Teardown => Diagnostic::warning("teardown-failed", self.text()).help(say!(
                "data created by the setup may still exist; the thresholds still apply"
            )),
        };
        self.reason().into_iter().fold(told, Diagnostic::note)
    }
}

/// The setup, if it failed and the load did not start.
pub(crate) fn failed_setup(summary: &Summary) -> Option<&OnceRun> {
    summary.events.once.iter().find(|once| once.part == OncePart::Setup && !once.is_done())
}

/// Why the load did not start.
pub(crate) fn failed_text(once: &OnceRun) -> Said {
    match once.reason() {
        Some(reason) => say!("{}: {reason}", once.text()),
        None => once.text(),
    }
}

/// Except parts that the operator interrupted.
pub(crate) fn diagnostics(summary: &Summary) -> impl Iterator<Item = Diagnostic> {
    let is_told =
        |once: &&OnceRun| matches!(once.outcome, OnceOutcome::Failed | OnceOutcome::TimedOut);
    summary.events.once.iter().filter(is_told).map(OnceRun::diagnostic)
}
