//! Tracks whether an attempt reached the target, and why users did not finish. The engine gives up
//! on a session that restarts repeatedly without progress.

use throng_base::{Diagnostic, Said};
use throng_engine::{Trace, What};
use throng_metrics::Cause;
use throng_program::Program;
use throng_results::is_connecting;

pub(super) struct Progress {
    /// Users that have not finished.
    left: u64,
    /// Successful steps.
    good: u64,
    /// The most recent failure.
    failure: Option<Failure>,
    /// The engine gave up on a user.
    is_stuck: bool,
    /// No connection to the target succeeded.
    is_unreached: bool,
}

struct Failure {
    step: String,
    cause: Cause,
    detail: Said,
}

impl Progress {
    pub(super) fn of(users: u64) -> Progress {
        Progress { left: users, good: 0, failure: None, is_stuck: false, is_unreached: true }
    }

    pub(super) fn hear(&mut self, trace: &Trace, program: &Program) {
        match &trace.what {
            What::Connected { .. } | What::Received(_) => self.is_unreached = false,
            What::StepEnds { failure: None, .. } => self.good += 1,
            What::StepEnds { step, failure: Some((cause, detail)), .. }
            | What::TryFails { step, failure: (cause, detail), .. } => {
                self.is_unreached &= is_connecting(*cause);
                let step = program.step(*step).name.clone();
                self.failure = Some(Failure { step, cause: *cause, detail: detail.clone() });
            }
            What::GivenUp => self.is_stuck = true,
            What::Gone => self.left = self.left.saturating_sub(1),
            _ => {}
        }
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    /// All users have ended, and at least one of them did not finish its session.
    pub(super) fn is_over(&self) -> bool {
        self.is_stuck && self.left == 0
    }

    /// The target responded, or a step failed for a reason other than connecting. Successful steps
    /// that need no connection, such as pauses, do not count.
    pub(super) fn is_reached(&self) -> bool {
        !self.is_unreached
    }

    /// No step succeeded, and every failure was a failed connection.
    pub(super) fn is_unreachable(&self) -> bool {
        self.is_unreached && self.good == 0 && self.failure.is_some()
    }

    /// Explains what stopped the users, and how to fix it.
    pub(super) fn diagnostic(&self, masked: impl Fn(&Said) -> String) -> Option<Diagnostic> {
        let Failure { step, cause, detail } = self.failure.as_ref()?;
        let message = match self.is_unreachable() {
            true => say!("the target could not be reached: {}", cause.text()),
            false => say!("the session never gets past `{step}`: {}", cause.text()),
        };
        let error = Diagnostic::error(cause.word(), message);
        let error = match masked(detail) {
            detail if detail.is_empty() => error,
            detail => error.note(say!("the step `{step}` failed: {detail}")),
        };
        Some(error.help(cure(*cause)))
    }
}

fn cure(cause: Cause) -> Said {
    match cause {
        Cause::ConnectRefused => {
            say!("start the service, or correct the host and the port in `target`")
        }
        Cause::ResolveFailed => say!("correct the host in `target`, or check the DNS of this host"),
        Cause::ConnectTimeout | Cause::Unreachable => {
            say!("check the address in `target`, the network and the firewalls in between")
        }
        Cause::WrongScheme => {
            say!(
                "check the scheme in `target`: with TLS, write `https` or `wss`, otherwise \
                 `http` or `ws`"
            )
        }
        Cause::UpgradeRefused => say!(
            "check the path after `connect:` and what the service requires: `headers`, `auth`, \
             `protocols`"
        ),
        cause => say!("`throng explain {}` shows what to do", cause.word()),
    }
}
