//! Goals of a run, and whether they were met.

use std::time::Duration;

use crate::histogram::Histogram;
use crate::interval::{Interval, StepInterval};
use crate::outcome::Stage;
use throng_base::StepId;

/// What a threshold looks at.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// These steps together: one by name, all of a kind, or all.
    Steps(Vec<StepId>),
    Stage(Stage),
    UsersOnline,
    Connections,
}

/// Which figure of the subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// In nanoseconds.
    Quantile(f64),
    Mean,
    Min,
    Max,
    /// Finished and good, per second.
    Rate,
    /// Finished, good or not.
    Count,
    /// Failed.
    Failed,
    /// Share of all that failed, 0 to 1.
    FailedShare,
    /// Share of all that was good, 0 to 1.
    OkShare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

impl Comparison {
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Equal => left == right,
            Comparison::GreaterOrEqual => left >= right,
            Comparison::Greater => left > right,
        }
    }
}

/// A goal, such as `http p99 < 50ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// As the person wrote it.
    pub text: String,
    pub subject: Subject,
    pub measure: Measure,
    pub comparison: Comparison,
    /// Nanoseconds, per second, a share, or a number: as the measure has it.
    pub value: f64,
    /// Only this phase counts.
    pub phase: Option<u16>,
}

/// What became of a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    Met(f64),
    NotMet(f64),
    /// There was nothing to judge: the subject never happened.
    Unknown,
}

impl Threshold {
    /// Judges the sum of the measured intervals (those of the phase, when one is named), which
    /// took `duration`.
    pub fn judge(&self, sum: &Interval, duration: Duration) -> Verdict {
        match self.figure(sum, duration) {
            None => Verdict::Unknown,
            Some(figure) if self.comparison.holds(figure, self.value) => Verdict::Met(figure),
            Some(figure) => Verdict::NotMet(figure),
        }
    }

    fn figure(&self, sum: &Interval, duration: Duration) -> Option<f64> {
        match &self.subject {
            Subject::UsersOnline => Some(sum.gauges.users_online as f64),
            Subject::Connections => Some(sum.gauges.connections_open as f64),
            Subject::Stage(stage) => {
                let stage = sum.stage(*stage)?;
                self.of(stage.ok + stage.failed, stage.ok, &stage.latency, duration)
            }
            Subject::Steps(steps) => {
                let mut total = StepInterval::default();
                steps.iter().filter_map(|step| sum.step(*step)).for_each(|step| total.merge(step));
                self.of(total.count, total.ok, &total.latency, duration)
            }
        }
    }

    fn of(&self, count: u64, ok: u64, latency: &Histogram, duration: Duration) -> Option<f64> {
        let timed = (!latency.is_empty()).then_some(latency);
        let share = |part: u64| (count > 0).then(|| part as f64 / count as f64);
        match self.measure {
            Measure::Quantile(quantile) => timed.map(|timed| timed.value_at(quantile) as f64),
            Measure::Mean => timed.map(Histogram::mean),
            Measure::Min => timed.map(|timed| timed.min() as f64),
            Measure::Max => timed.map(|timed| timed.max() as f64),
            Measure::Rate => Some(ok as f64 / duration.as_secs_f64().max(1e-9)),
            Measure::Count => Some(count as f64),
            Measure::Failed => Some((count - ok) as f64),
            Measure::FailedShare => share(count - ok),
            Measure::OkShare => share(ok),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(measure: Measure, comparison: Comparison, value: f64, sum: &Interval) -> Verdict {
        let subject = Subject::Steps(vec![StepId(0), StepId(1)]);
        let text = String::new();
        let threshold = Threshold { text, subject, measure, comparison, value, phase: None };
        threshold.judge(sum, Duration::from_secs(2))
    }

    #[test]
    fn goals_are_judged_over_all_their_steps() {
        let mut sum = Interval::default();
        for step in 0..3 {
            let mut figures = StepInterval { step, count: 10, ok: 9, ..StepInterval::default() };
            (0..10).for_each(|_| figures.latency.record(1000 * (u64::from(step) + 1)));
            sum.steps.push(figures);
        }
        use Comparison::{Equal, Greater, Less};
        let met = |measure, comparison, value| {
            matches!(judge(measure, comparison, value, &sum), Verdict::Met(_))
        };
        assert!(met(Measure::Count, Equal, 20.0));
        assert!(met(Measure::Rate, Equal, 9.0));
        assert!(met(Measure::Max, Equal, 2000.0));
        assert!(met(Measure::Quantile(0.5), Less, 1100.0));
        assert!(!met(Measure::FailedShare, Less, 0.1));
        assert!(met(Measure::OkShare, Greater, 0.8));
        let nothing = Interval::default();
        assert_eq!(judge(Measure::Max, Less, 1.0, &nothing), Verdict::Unknown);
        assert_eq!(judge(Measure::OkShare, Less, 1.0, &nothing), Verdict::Unknown);
    }
}
