//! Thresholds on gauges: users online, users present, connections. Once such a threshold is met, it
//! must be met in every second until the end of its phase. The time before that is the ramp, and
//! the value at the end would miss users that were lost in between.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_metrics::{Gauges, Interval, Threshold, Verdict};

use crate::directory::RunInfo;
use crate::window::phases;

/// One such threshold in one phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Held {
    /// Index among the thresholds of the run.
    pub(super) row: usize,
    threshold: Threshold,
    /// The worst value since it was first met.
    worst: Option<f64>,
}

impl Held {
    /// The thresholds that apply to a phase.
    pub(super) fn of_phase(info: &RunInfo, phase: usize) -> Vec<Held> {
        let thresholds = info.tables.thresholds.iter().map(|it| &it.threshold).enumerate();
        let is_held = |it: &Threshold| it.over_s == 0 && it.around.is_none();
        let held = thresholds.filter(|(_, it)| it.subject.is_gauge() && is_held(it));
        held.filter(|(_, it)| phases(it, info).get(phase).copied().unwrap_or(true))
            .map(|(row, it)| Held { row, threshold: it.clone(), worst: None })
            .collect()
    }

    /// Processes the gauges at the end of a second; seconds must be in order.
    pub(super) fn second(&mut self, gauges: &Gauges) {
        let interval = Interval { gauges: gauges.clone(), ..Interval::default() };
        let Some(figure) = self.threshold.figure(&interval, Duration::from_secs(1)) else { return };
        self.worst = match self.worst {
            Some(worst) => Some(self.threshold.worse(worst, figure)),
            None => self.threshold.holds(figure).then_some(figure),
        };
    }
}

/// The verdict over all phases, given the verdict at the end.
pub(super) fn verdict<'a>(phases: impl Iterator<Item = &'a Held>, at_end: Verdict) -> Verdict {
    phases.fold(at_end, |verdict, held| match (held.worst, verdict) {
        (Some(worst), Verdict::Met(_)) if !held.threshold.holds(worst) => Verdict::NotMet(worst),
        (Some(worst), Verdict::Met(figure)) => Verdict::Met(held.threshold.worse(worst, figure)),
        (Some(worst), Verdict::NotMet(figure)) => {
            Verdict::NotMet(held.threshold.worse(worst, figure))
        }
        _ => verdict,
    })
}

#[cfg(test)]
mod tests {
    use throng_metrics::{Comparison, Measure, Subject};

    use super::*;

    #[test]
    fn a_gauge_threshold_must_stay_met_once_it_is_met() {
        let threshold = Threshold::new(
            "users.online >= 10",
            Subject::UsersOnline,
            Measure::Count,
            Comparison::GreaterOrEqual,
            10.0,
        );
        let judged = |users: &[u64], at_end: f64| {
            let mut held = Held { row: 0, threshold: threshold.clone(), worst: None };
            for users in users {
                held.second(&Gauges { users_online: *users, ..Gauges::default() });
            }
            let at_end =
                if threshold.holds(at_end) { Verdict::Met } else { Verdict::NotMet }(at_end);
            verdict([held].iter(), at_end)
        };
        assert_eq!(judged(&[3, 7, 10, 10, 12, 12], 12.0), Verdict::Met(10.0));
        assert_eq!(judged(&[3, 7, 10, 4, 6, 12, 12], 12.0), Verdict::NotMet(4.0));
        assert_eq!(judged(&[3, 7, 8, 9, 9], 9.0), Verdict::NotMet(9.0), "never met");
        assert_eq!(judged(&[10, 10, 12, 12], 2.0), Verdict::NotMet(2.0), "not at the end");
    }
}
