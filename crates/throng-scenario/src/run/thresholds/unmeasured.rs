//! Thresholds on steps that run only in unmeasured phases: those of `before`, if every user starts
//! in one.

use std::collections::HashSet;

use throng_base::StepId;
use throng_metrics::{Subject, Threshold};
use throng_program::{Coming, Drive, Load, Phase, Session, Statement, statement};

use super::ThresholdsReader;
use crate::words::shorten;

/// Steps that run only in unmeasured phases, and the first of these phases.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unmeasured {
    steps: HashSet<StepId>,
    phase: String,
}

impl Unmeasured {
    /// Empty if users can run `before` again, as after a reconnect, or if events change the load.
    pub(crate) fn of(sessions: &[Session], loads: &[Load], is_known: bool) -> Unmeasured {
        let first = loads.iter().flat_map(|load| &load.phases).find(|phase| !phase.measured);
        let Some(first) = first.filter(|_| is_known && !loads.iter().any(starts_measured)) else {
            return Unmeasured::default();
        };
        let ids = |block| statement::all(block).filter_map(Statement::step);
        let mut steps: HashSet<StepId> = sessions.iter().flat_map(|one| ids(&one.before)).collect();
        for step in sessions.iter().flat_map(|one| ids(&one.steps).chain(ids(&one.after))) {
            steps.remove(&step);
        }
        Unmeasured { steps, phase: first.name.clone() }
    }
}

/// True if a user of the load can start in a measured phase.
fn starts_measured(load: &Load) -> bool {
    let mut users = Some(0);
    load.phases.iter().any(|phase| {
        let before = users;
        users = users_after(phase, before);
        phase.measured && (users.is_none() || users > before || phase.churn.is_some())
    })
}

/// The number of users that stay at the end of the phase, if it does not depend on speed.
fn users_after(phase: &Phase, before: Option<u64>) -> Option<u64> {
    match &phase.drive {
        Drive::Hold => before,
        Drive::Users(users) => {
            let is_complete = phase.time.is_none() || users.coming == Coming::AtOnce;
            is_complete.then_some(users.to)
        }
        Drive::Iterations(iterations) => Some(iterations.users),
        Drive::Arrivals(_) => None,
    }
}

/// Warns of a threshold without data in any measured phase.
pub(super) fn warn(reader: &mut ThresholdsReader<'_, '_, '_>, threshold: &Threshold) {
    let Unmeasured { steps, phase } = reader.names.unmeasured;
    let Subject::Steps(ids) = &threshold.subject else { return };
    if threshold.phase.is_some() || ids.is_empty() || !ids.iter().all(|id| steps.contains(id)) {
        return;
    }
    let message = say!("no user runs the steps of this threshold in a measured phase");
    let label = say!("they are in `before`, which all users run in unmeasured phases");
    let help = say!("name the phase: add `in {}`", shorten(phase));
    reader.cx.warn("nothing-measured", reader.node.place, message, label, help);
}
