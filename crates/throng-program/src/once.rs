//! Steps that one user runs once per run: `setup` before the load, `teardown` after it. They are a
//! program of their own, with their own rows, so that they are not part of the load's results.

use std::time::Duration;

use throng_base::StepId;

use crate::{Drive, Iterations, Load, OncePart, Phase, Program, Session, StepInfo};

/// How long the current step may still take when the time is over.
const GRACEFUL_STOP: Duration = Duration::from_secs(1);

/// The steps, compiled.
#[derive(Clone, Debug)]
pub struct Once {
    pub session: Session,
    /// Its rows, indexed by [`StepId`].
    pub steps: Vec<StepInfo>,
    /// By row: the position of its first step, `shop.yaml:7:9`.
    pub places: Vec<String>,
    /// As in [`Program`].
    pub broken: Option<StepId>,
    pub expressions: Option<StepId>,
    /// Time limit of all steps together.
    pub time_max: Duration,
}

impl Program {
    pub fn once(&self, part: OncePart) -> Option<&Once> {
        match part {
            OncePart::Setup => self.setup.as_deref(),
            OncePart::Teardown => self.teardown.as_deref(),
        }
    }

    /// The program of one user that runs these steps once.
    pub fn of_once(&self, once: &Once) -> Program {
        let iterations = Iterations::new(1, None, Some(1));
        let phase = Phase {
            name: once.session.name.clone(),
            drive: Drive::Iterations(iterations),
            time: Some(once.time_max),
            churn: None,
            measured: true,
        };
        Program {
            steps: once.steps.clone(),
            sessions: vec![once.session.clone()],
            broken: once.broken,
            expressions: once.expressions,
            setup: None,
            teardown: None,
            deliveries: Vec::new(),
            thresholds: Vec::new(),
            abort_when: Vec::new(),
            hold_when: Vec::new(),
            events: Vec::new(),
            monitors: Vec::new(),
            audits: Vec::new(),
            outputs: Vec::new(),
            loads: vec![Load::alone(vec![phase])],
            graceful_stop: GRACEFUL_STOP,
            precision: Duration::ZERO,
            ..self.clone()
        }
    }
}
