//! Thresholds of a run, and their verdicts. The serialized types are part of `run.json`.

use std::cmp::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::audit::AuditFigure;
use crate::figures::{Counter, DeliveryCounter, DeliveryInterval, is_zero};
use crate::histogram::Histogram;
use crate::host::is_bytes;
use crate::interval::{ConnectionsInterval, Interval, StepInterval};
use crate::outcome::Stage;
use crate::quantity::Unit;
use throng_base::StepId;

/// The subject of a threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// These steps together: a named one, all of a kind, or all that are attempts
    /// ([`crate::StepKind::is_attempt`]).
    Steps(Vec<StepId>),
    Stage(Stage),
    /// A trend of the scenario: [`Measure::Count`], [`Measure::Rate`] and statistics of its values,
    /// in its unit.
    Trend {
        step: StepId,
        unit: TrendUnit,
    },
    /// Users online at the end.
    UsersOnline,
    /// Users present at the end, online or not.
    UsersPresent,
    /// Connections open at the end.
    Connections,
    /// [`Measure::Count`] and [`Measure::Rate`] apply; [`Measure::ShareOfWhole`] if the counter has
    /// a denominator.
    Counter(Counter),
    /// A count of a row of the ledger. [`Measure::Count`] and [`Measure::Rate`] apply; so does
    /// [`Measure::ShareOfWhole`] if it is a share of the expected deliveries.
    Delivery {
        step: StepId,
        counter: DeliveryCounter,
    },
    /// A monitor: [`Measure::Mean`], [`Measure::Min`] and [`Measure::Max`] of its readings in
    /// measured phases. Not part of intervals.
    Monitored(Monitored),
    /// A value of an audit, by number, for one view or the worst of all. Not part of intervals.
    /// [`Measure::Count`] applies, [`Measure::ShareOfWhole`] of what was compared, and statistics
    /// of times.
    Audit {
        audit: u16,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        view: Option<u16>,
        figure: AuditFigure,
    },
    /// The share of the load that was generated although machines backed off. Not part of
    /// intervals. [`Measure::ShareOfWhole`] applies.
    Generated,
}

/// A value of monitors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitored {
    /// The name of the monitor; if empty, all that have the value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    pub figure: HostFigure,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostFigure {
    /// CPU usage of the host; [`Measure::Mean`] only.
    Cpu,
    /// Share of memory that is not available to programs.
    Memory,
    /// A series by its name in reports; for a counter, its increase per second.
    Series(String),
}

impl HostFigure {
    fn unit(&self) -> Unit {
        match self {
            HostFigure::Cpu | HostFigure::Memory => Unit::Share,
            HostFigure::Series(name) if is_bytes(name) => Unit::Bytes,
            HostFigure::Series(_) => Unit::Decimal,
        }
    }
}

impl DeliveryCounter {
    fn figure(self, row: &DeliveryInterval, measure: Measure, duration: Duration) -> Option<f64> {
        // Without sent messages, a share of losses is meaningless.
        let whole = self.whole(row);
        let said = whole.is_none_or(|whole| whole > 0);
        match measure {
            Measure::Count => said.then(|| self.of(row) as f64),
            Measure::Rate => Some(per_second(self.of(row), duration)),
            Measure::ShareOfWhole => {
                said.then(|| self.of(row) as f64 / whole.unwrap_or(row.expected).max(1) as f64)
            }
            _ => None,
        }
    }
}

/// The statistic of the subject.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// In nanoseconds.
    Quantile(f64),
    Mean,
    Min,
    Max,
    /// Successful attempts during the load, per second.
    Rate,
    /// Ended attempts, successful or not.
    Count,
    /// Failed attempts.
    Failed,
    /// Share of failed attempts, 0 to 1.
    FailedShare,
    /// Share of successful attempts, 0 to 1.
    OkShare,
    /// HTTP requests that were sent again.
    Resent,
    /// Share of attempts that were sent again, 0 to 1.
    ResentShare,
    /// Share of a counter in its denominator ([`Counter::whole`]), 0 to 1.
    ShareOfWhole,
}

/// The unit of a trend's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrendUnit {
    Time,
    Bytes,
    Number,
}

impl TrendUnit {
    /// Histogram units per value: times are nanoseconds, and numbers have three decimals.
    pub fn scale(self) -> f64 {
        match self {
            TrendUnit::Time | TrendUnit::Bytes => 1.0,
            TrendUnit::Number => 1000.0,
        }
    }

    /// The unit of its statistics.
    pub fn unit(self) -> Unit {
        match self {
            TrendUnit::Time => Unit::Nanoseconds,
            TrendUnit::Bytes => Unit::Bytes,
            TrendUnit::Number => Unit::Decimal,
        }
    }
}

impl Unit {
    /// The unit of a measure of the subject.
    pub fn of(subject: &Subject, measure: Measure) -> Unit {
        let is_bytes = matches!(subject, Subject::Counter(counter) if counter.is_bytes());
        match (subject, measure) {
            (Subject::Monitored(monitored), _) => monitored.figure.unit(),
            (subject, _) if subject.is_gauge() => Unit::Number,
            (_, Measure::ShareOfWhole) => Unit::Share,
            (_, Measure::Rate) if is_bytes => Unit::BytesPerSecond,
            (_, Measure::Rate) => Unit::PerSecond,
            (Subject::Counter(_), _) if is_bytes => Unit::Bytes,
            (Subject::Counter(_) | Subject::Delivery { .. }, _)
            | (Subject::Audit { .. }, Measure::Count)
            | (_, Measure::Count | Measure::Failed | Measure::Resent) => Unit::Number,
            (_, Measure::FailedShare | Measure::OkShare | Measure::ResentShare) => Unit::Share,
            (
                Subject::Trend { unit, .. },
                Measure::Quantile(_) | Measure::Mean | Measure::Min | Measure::Max,
            ) => unit.unit(),
            (_, Measure::Quantile(_) | Measure::Mean | Measure::Min | Measure::Max) => {
                Unit::Nanoseconds
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    #[serde(rename = "<")]
    Less,
    #[serde(rename = "<=")]
    LessOrEqual,
    #[serde(rename = "=")]
    Equal,
    #[serde(rename = ">=")]
    GreaterOrEqual,
    #[serde(rename = ">")]
    Greater,
}

impl Subject {
    /// Whether it concerns a current number, such as users, instead of events.
    pub fn is_gauge(&self) -> bool {
        matches!(self, Subject::UsersOnline | Subject::UsersPresent | Subject::Connections)
    }
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

    /// Whether it is true for two values in this order.
    pub fn holds_for(self, order: Ordering) -> bool {
        match self {
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Equal => order.is_eq(),
            Comparison::GreaterOrEqual => order.is_ge(),
            Comparison::Greater => order.is_gt(),
        }
    }
}

/// A threshold, such as `http p99 < 50ms`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// As written by the user.
    pub text: String,
    pub subject: Subject,
    pub measure: Measure,
    pub comparison: Comparison,
    /// In the unit of the measure: nanoseconds, per second, a share, or a number.
    pub value: f64,
    /// Only the phases of this load count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<u16>,
    /// Only this phase counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<u16>,
    /// Times of transactions include the user's pauses; not for other steps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_pauses: bool,
    /// Times to the first byte of the response instead of the last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_byte: bool,
    /// It must be met in every window of this many seconds; 0 means over the whole time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub over_s: u64,
    /// Only the time after these marks counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<Around>,
}

impl Threshold {
    /// Applies to the whole run, to the last byte of a response, and without pauses.
    pub fn new(
        text: impl Into<String>,
        subject: Subject,
        measure: Measure,
        comparison: Comparison,
        value: f64,
    ) -> Threshold {
        Threshold {
            text: text.into(),
            subject,
            measure,
            comparison,
            value,
            load: None,
            phase: None,
            with_pauses: false,
            first_byte: false,
            over_s: 0,
            around: None,
        }
    }
}

/// The seconds after each mark with this name, set by an event of the scenario or by the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Around {
    pub seconds: u64,
    pub mark: String,
}

/// A condition that ends a run early.
#[derive(Clone, Debug, PartialEq)]
pub struct AbortRule {
    /// It describes the state that must not occur.
    pub condition: Threshold,
    /// How long it must be true.
    pub after: Duration,
}

/// The verdict of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", content = "figure", rename_all = "kebab-case")]
pub enum Verdict {
    Met(f64),
    NotMet(f64),
    /// There is no value: the subject never occurred.
    Unknown,
    /// The generator's own lateness can explain the result: neither met nor not met.
    Indeterminate(f64),
}

/// Smaller lateness does not explain any value.
const OWN_DELAY_NS_MIN: f64 = 10e6;
/// Less lost time does not explain any rate.
const OWN_LOST_SHARE_MIN: f64 = 0.01;

impl Threshold {
    /// Evaluates the sum of the measured intervals, or of the named phase, which took `duration`.
    pub fn judge(&self, sum: &Interval, duration: Duration) -> Verdict {
        let Some(figure) = self.figure(sum, duration) else { return Verdict::Unknown };
        let holds = |figure| self.comparison.holds(figure, self.value);
        match self.without_own_delay(figure, sum, duration) {
            Some(other) if holds(other) != holds(figure) => Verdict::Indeterminate(figure),
            _ if holds(figure) => Verdict::Met(figure),
            _ => Verdict::NotMet(figure),
        }
    }

    /// Evaluates a value that does not come from intervals.
    pub fn judge_figure(&self, figure: Option<f64>) -> Verdict {
        match figure {
            None => Verdict::Unknown,
            Some(figure) if self.holds(figure) => Verdict::Met(figure),
            Some(figure) => Verdict::NotMet(figure),
        }
    }

    /// The possible value without the generator's own lateness, if that was large enough to explain
    /// it. Times decrease by the same statistic of the lateness, and rates increase by the lost
    /// time.
    fn without_own_delay(&self, figure: f64, sum: &Interval, duration: Duration) -> Option<f64> {
        if !matches!(self.subject, Subject::Steps(_) | Subject::Stage(_)) {
            return None;
        }
        let lateness = &sum.generator.lateness;
        let own = match self.measure {
            Measure::Quantile(quantile) => lateness.value_at(quantile) as f64,
            Measure::Mean => lateness.mean(),
            Measure::Min => lateness.min() as f64,
            Measure::Max => lateness.max() as f64,
            Measure::Rate => {
                let lost = sum.lost_share(duration);
                let explains = (OWN_LOST_SHARE_MIN..1.0).contains(&lost);
                return explains.then(|| figure / (1.0 - lost));
            }
            _ => return None,
        };
        // Much faster responses were not delayed by it.
        let explains = own >= OWN_DELAY_NS_MIN && figure * 2.0 >= own;
        explains.then(|| (figure - own).max(0.0))
    }

    /// The number of values of its percentile, if they are so few that it is the maximum.
    pub fn largest_of(&self, sum: &Interval) -> Option<u64> {
        let Measure::Quantile(quantile) = self.measure else { return None };
        let count = match &self.subject {
            Subject::Steps(steps) => {
                let total = sum.sum(|step| steps.contains(&step));
                self.timed(&total).count()
            }
            Subject::Trend { step, .. } => sum.sum(|other| other == *step).latency.count(),
            Subject::Stage(stage) => sum.stage(*stage)?.latency.count(),
            _ => return None,
        };
        // No value is above it.
        let is_largest = count as f64 * (1.0 - quantile) < 1.0 - 1e-9;
        (count > 0 && quantile < 1.0 && is_largest).then_some(count)
    }

    /// The unit of the measured value and of the threshold's value.
    pub fn unit(&self) -> Unit {
        Unit::of(&self.subject, self.measure)
    }

    /// Whether any value fails the threshold. `errors <= 100%` and `count >= 0` cannot fail, so
    /// they are useless. A missing value does not count here.
    pub fn can_fail(&self) -> bool {
        let (low, high) = self.range();
        match self.comparison {
            Comparison::Less => high >= self.value,
            Comparison::LessOrEqual => high > self.value,
            Comparison::Equal => true,
            Comparison::GreaterOrEqual => low < self.value,
            Comparison::Greater => low <= self.value,
        }
    }

    /// Whether this value meets it.
    pub fn holds(&self, figure: f64) -> bool {
        self.comparison.holds(figure, self.value)
    }

    /// The value that is closer to failing it, or fails it by more.
    pub fn worse(&self, one: f64, other: f64) -> f64 {
        match self.comparison {
            Comparison::Less | Comparison::LessOrEqual => one.max(other),
            Comparison::Greater | Comparison::GreaterOrEqual => one.min(other),
            Comparison::Equal if (one - self.value).abs() >= (other - self.value).abs() => one,
            Comparison::Equal => other,
        }
    }

    /// The part of an interval that it needs, to save memory.
    pub fn part(&self, interval: &Interval) -> Interval {
        let wanted = |step: u16| match &self.subject {
            Subject::Steps(steps) => steps.contains(&StepId(step)),
            Subject::Trend { step: own, .. } => own.0 == step,
            _ => false,
        };
        let steps = interval.steps.iter().filter(|row| wanted(row.step)).cloned().collect();
        let empty = Interval { second: interval.second, steps, ..Interval::default() };
        match &self.subject {
            Subject::Steps(_) | Subject::Trend { .. } | Subject::Monitored(_) => empty,
            Subject::Stage(_) => Interval {
                connections: ConnectionsInterval {
                    stages: interval.connections.stages.clone(),
                    ..ConnectionsInterval::default()
                },
                ..empty
            },
            Subject::UsersOnline | Subject::UsersPresent | Subject::Connections => {
                Interval { gauges: interval.gauges.clone(), ..empty }
            }
            Subject::Audit { .. } | Subject::Generated => empty,
            Subject::Delivery { .. } => {
                Interval { deliveries: interval.deliveries.clone(), ..empty }
            }
            Subject::Counter(_) => Interval {
                connections: ConnectionsInterval {
                    counts: interval.connections.counts.clone(),
                    ..ConnectionsInterval::default()
                },
                population: interval.population.clone(),
                lifecycle: interval.lifecycle.clone(),
                heartbeats: interval.heartbeats.clone(),
                retries: interval.retries.clone(),
                traffic: interval.traffic.clone(),
                ..empty
            },
        }
    }

    /// Whether any value meets the threshold. `checks > 100%` and `count < 0` cannot be met.
    pub fn can_be_met(&self) -> bool {
        let (low, high) = self.range();
        match self.comparison {
            Comparison::Less => low < self.value,
            Comparison::LessOrEqual => low <= self.value,
            Comparison::Equal => (low..=high).contains(&self.value),
            Comparison::GreaterOrEqual => high >= self.value,
            Comparison::Greater => high > self.value,
        }
    }

    /// The range of possible values.
    fn range(&self) -> (f64, f64) {
        match self.unit() {
            Unit::Share => (0.0, 1.0),
            _ => (0.0, f64::INFINITY),
        }
    }

    /// The value over a time span; `None` if there is nothing to evaluate.
    pub fn figure(&self, sum: &Interval, duration: Duration) -> Option<f64> {
        match &self.subject {
            Subject::Monitored(_) => None,
            Subject::UsersOnline => Some(sum.gauges.users_online as f64),
            Subject::UsersPresent => Some(sum.gauges.users_present as f64),
            Subject::Connections => Some(sum.gauges.connections_open as f64),
            Subject::Counter(counter) => match self.measure {
                Measure::Count => Some(counter.of(sum) as f64),
                Measure::Rate => Some(per_second(counter.of(sum), duration)),
                Measure::ShareOfWhole => {
                    let whole = counter.whole(sum).filter(|whole| *whole > 0)?;
                    Some(counter.of(sum) as f64 / whole as f64)
                }
                _ => None,
            },
            Subject::Delivery { step, counter } => {
                let row = sum.deliveries.iter().find(|row| row.step == step.0);
                let nothing = DeliveryInterval::default();
                counter.figure(row.unwrap_or(&nothing), self.measure, duration)
            }
            // See [`Threshold::judge_figure`].
            Subject::Audit { .. } | Subject::Generated => None,
            Subject::Trend { step, unit } => {
                let total = sum.sum(|other| other == *step);
                let counts = (total.ok, total.ok_in_time());
                let figure = self.of(total.count, counts, &total.latency, duration)?;
                Some(match self.measure {
                    Measure::Count | Measure::Rate => figure,
                    _ => figure / unit.scale(),
                })
            }
            Subject::Stage(stage) => {
                let stage = sum.stage(*stage)?;
                self.of(stage.ok + stage.failed, (stage.ok, stage.ok), &stage.latency, duration)
            }
            Subject::Steps(steps) => {
                let total = sum.sum(|step| steps.contains(&step));
                let latency = self.timed(&total);
                let count = total.count as f64;
                let resent = (total.count > 0).then_some(total.resent as f64);
                match self.measure {
                    Measure::Resent => resent,
                    Measure::ResentShare => resent.map(|resent| resent / count),
                    Measure::FailedShare => total.failed_share(),
                    _ => self.of(total.count, (total.ok, total.ok_in_time()), latency, duration),
                }
            }
        }
    }

    /// The times of a row that it looks at.
    fn timed<'r>(&self, row: &'r StepInterval) -> &'r Histogram {
        match (self.first_byte, self.with_pauses) {
            (true, _) => &row.first_byte,
            (false, true) => &row.with_pauses,
            (false, false) => &row.latency,
        }
    }

    /// From the number of ended attempts, of successes, and of successes during the load.
    fn of(
        &self,
        count: u64,
        (ok, in_time): (u64, u64),
        latency: &Histogram,
        duration: Duration,
    ) -> Option<f64> {
        let timed = (!latency.is_empty()).then_some(latency);
        let share = |part: u64| (count > 0).then(|| part as f64 / count as f64);
        match self.measure {
            Measure::Quantile(quantile) => timed.map(|timed| timed.value_at(quantile) as f64),
            Measure::Mean => timed.map(Histogram::mean),
            Measure::Min => timed.map(|timed| timed.min() as f64),
            Measure::Max => timed.map(|timed| timed.max() as f64),
            Measure::Rate => Some(per_second(in_time, duration)),
            Measure::Count => Some(count as f64),
            // Without attempts, zero failures are meaningless.
            Measure::Failed => (count > 0).then(|| (count - ok) as f64),
            Measure::FailedShare => share(count - ok),
            Measure::OkShare => share(ok),
            Measure::Resent | Measure::ResentShare | Measure::ShareOfWhole => None,
        }
    }
}

impl Counter {
    /// Whether it counts bytes, which are written with units.
    pub fn is_bytes(self) -> bool {
        matches!(self, Counter::BytesIn | Counter::BytesOut)
    }
}

fn per_second(count: u64, duration: Duration) -> f64 {
    count as f64 / duration.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{
        Connections, Counts as _, Heartbeats, Lifecycle, Messages, Population, Retries,
    };

    fn threshold(
        subject: Subject,
        measure: Measure,
        comparison: Comparison,
        value: f64,
    ) -> Threshold {
        Threshold::new("", subject, measure, comparison, value)
    }

    fn all() -> Subject {
        Subject::Steps(vec![StepId(0), StepId(1)])
    }

    fn judge(measure: Measure, comparison: Comparison, value: f64, sum: &Interval) -> Verdict {
        threshold(all(), measure, comparison, value).judge(sum, Duration::from_secs(2))
    }

    #[test]
    fn thresholds_are_evaluated_over_all_their_steps() {
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

    #[test]
    fn a_percentile_of_few_values_is_known_to_be_the_maximum() {
        let of = |count: u64, measure: Measure| {
            let mut figures = StepInterval { count, ok: count, ..StepInterval::default() };
            (0..count).for_each(|n| figures.latency.record(1000 * (n + 1)));
            let sum = Interval { steps: vec![figures], ..Interval::default() };
            threshold(all(), measure, Comparison::Less, 1.0).largest_of(&sum)
        };
        assert_eq!(of(99, Measure::Quantile(0.99)), Some(99));
        assert_eq!(of(100, Measure::Quantile(0.99)), None);
        assert_eq!(of(19, Measure::Quantile(0.95)), Some(19));
        assert_eq!(of(20, Measure::Quantile(0.95)), None);
        assert_eq!(of(1, Measure::Quantile(0.5)), Some(1));
        // An explicit maximum, and a percentile without values.
        assert_eq!((of(3, Measure::Max), of(0, Measure::Quantile(0.99))), (None, None));
        assert_eq!(of(3, Measure::Quantile(1.0)), None);
    }

    #[test]
    fn every_counter_is_evaluated_by_its_own_value() {
        let mut sum = Interval::default();
        let mut text = serde_json::to_value(&sum).unwrap();
        // Each of these counts gets a distinct value.
        let groups = [
            ("population", Population::FIGURES),
            ("connections", Connections::FIGURES),
            ("lifecycle", Lifecycle::FIGURES),
            ("heartbeats", Heartbeats::FIGURES),
            ("retries", Retries::FIGURES),
            ("messages", Messages::FIGURES),
        ];
        let counts = groups.iter().flat_map(|(part, all)| all.iter().map(move |it| (part, it)));
        for (value, (part, figure)) in (10..).zip(counts) {
            text[part][figure.field] = value.into();
        }
        (text["bytes_in"], text["bytes_out"]) = (1.into(), 2.into());
        sum = serde_json::from_value(text).unwrap();
        let (mut figures, mut words) = (Vec::new(), Vec::new());
        for counter in Counter::ALL {
            let judged = |measure| {
                let threshold =
                    threshold(Subject::Counter(*counter), measure, Comparison::Greater, 0.0);
                threshold.judge(&sum, Duration::from_secs(2))
            };
            let figure = counter.of(&sum);
            assert_eq!(judged(Measure::Count), Verdict::Met(figure as f64));
            assert_eq!(judged(Measure::Rate), Verdict::Met(figure as f64 / 2.0));
            assert_eq!(judged(Measure::OkShare), Verdict::Unknown);
            assert_eq!(serde_json::to_value(counter).unwrap(), counter.word());
            figures.push(figure);
            words.push(counter.word());
        }
        assert_eq!(figures.len(), 8 + 12 + 3 + 7 + 4 + 9 + 2);
        figures.sort_unstable();
        figures.dedup();
        assert_eq!(figures.len(), Counter::ALL.len(), "no figure has two counters");
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Counter::ALL.len());
    }

    #[test]
    fn rows_of_the_ledger_are_shares_of_expected_deliveries() {
        let row =
            DeliveryInterval { step: 4, sent: 2, expected: 10, ..DeliveryInterval::default() };
        let row = DeliveryInterval { delivered: 9, lost: 1, foreign: 3, ..row };
        let sum = Interval { deliveries: vec![row], ..Interval::default() };
        let judged = |step, counter, measure, value| {
            let subject = Subject::Delivery { step: StepId(step), counter };
            let threshold = threshold(subject, measure, Comparison::Equal, value);
            threshold.judge(&sum, Duration::from_secs(2))
        };
        use DeliveryCounter::{Delivered, Foreign, Lost, Sent};
        assert_eq!(judged(4, Lost, Measure::Count, 0.0), Verdict::NotMet(1.0));
        assert_eq!(judged(4, Delivered, Measure::ShareOfWhole, 0.9), Verdict::Met(0.9));
        assert_eq!(judged(4, Delivered, Measure::Rate, 4.5), Verdict::Met(4.5));
        assert_eq!(judged(4, Foreign, Measure::Count, 3.0), Verdict::Met(3.0));
        assert_eq!(judged(5, Lost, Measure::Count, 0.0), Verdict::Unknown);
        assert_eq!(judged(5, Sent, Measure::Count, 0.0), Verdict::Met(0.0));
        for counter in DeliveryCounter::ALL {
            let text = serde_json::to_value(counter).unwrap();
            assert_eq!(text, counter.word());
        }
    }

    #[test]
    fn times_of_transactions_are_with_or_without_pauses() {
        let mut figures = StepInterval { step: 1, count: 2, ok: 2, ..StepInterval::default() };
        figures.latency.record_times(1_000, 2);
        figures.with_pauses.record_times(9_000, 2);
        figures.first_byte.record_times(7_000, 2);
        let sum = Interval { steps: vec![figures], ..Interval::default() };
        let mut threshold = threshold(all(), Measure::Max, Comparison::Less, 5_000.0);
        let judged = |threshold: &Threshold| threshold.judge(&sum, Duration::from_secs(1));
        assert_eq!(judged(&threshold), Verdict::Met(1_000.0));
        threshold.first_byte = true;
        assert_eq!(judged(&threshold), Verdict::NotMet(7_000.0));
        (threshold.with_pauses, threshold.first_byte) = (true, false);
        assert_eq!(judged(&threshold), Verdict::NotMet(9_000.0));
        (threshold.measure, threshold.value) = (Measure::Count, 3.0);
        assert_eq!(judged(&threshold), Verdict::Met(2.0));
    }

    #[test]
    fn useless_thresholds_are_detected() {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
        use Measure::{Count, FailedShare, OkShare, Quantile};
        let can = |subject: Subject, measure, comparison, value| {
            let threshold = threshold(subject, measure, comparison, value);
            (threshold.can_fail(), threshold.can_be_met())
        };
        let open = (true, true);
        let (always, never) = ((false, true), (true, false));
        assert_eq!(can(all(), FailedShare, LessOrEqual, 1.0), always);
        assert_eq!(can(all(), FailedShare, Less, 1.0), open);
        assert_eq!(can(all(), FailedShare, Less, 1.1), always);
        assert_eq!(can(all(), FailedShare, Less, 0.0), never);
        assert_eq!(can(all(), OkShare, GreaterOrEqual, 1.0), open);
        assert_eq!(can(all(), OkShare, Greater, 1.0), never);
        assert_eq!(can(all(), OkShare, GreaterOrEqual, 0.0), always);
        assert_eq!(can(all(), OkShare, Equal, 1.5), never);
        assert_eq!(can(all(), Count, GreaterOrEqual, 0.0), always);
        assert_eq!(can(all(), Count, Greater, 0.0), open);
        assert_eq!(can(all(), Count, Equal, 0.0), open);
        assert_eq!(can(all(), Count, Less, 1e18), open);
        assert_eq!(can(all(), Quantile(0.99), GreaterOrEqual, 0.0), always);
        assert_eq!(can(all(), Quantile(0.99), LessOrEqual, 0.0), open);
        assert_eq!(can(Subject::UsersOnline, Count, Less, 0.0), never);
        assert_eq!(can(Subject::Counter(Counter::Unmet), Count, LessOrEqual, 0.0), open);
    }

    #[test]
    fn thresholds_survive_serialization() {
        let subjects = [
            (all(), r#"{"steps":[0,1]}"#),
            (Subject::Stage(Stage::Tls), r#"{"stage":"tls"}"#),
            (Subject::UsersOnline, r#""users-online""#),
            (Subject::Connections, r#""connections""#),
            (Subject::Counter(Counter::BytesIn), r#"{"counter":"bytes.in"}"#),
            (
                Subject::Delivery { step: StepId(3), counter: DeliveryCounter::OutOfOrder },
                r#"{"delivery":{"step":3,"counter":"out_of_order"}}"#,
            ),
        ];
        for (subject, text) in subjects {
            assert_eq!(serde_json::to_string(&subject).unwrap(), text);
            let measure = Measure::Quantile(0.99);
            let mut threshold = threshold(subject, measure, Comparison::LessOrEqual, 50e6);
            for (phase, with_pauses) in [(None, false), (Some(3), true)] {
                (threshold.phase, threshold.with_pauses) = (phase, with_pauses);
                let text = serde_json::to_string(&threshold).unwrap();
                assert!(text.contains(r#""measure":{"quantile":0.99},"comparison":"<=""#));
                assert_eq!(text.contains("with_pauses"), with_pauses);
                assert_eq!(serde_json::from_str::<Threshold>(&text).unwrap(), threshold, "{text}");
            }
        }
        let verdict = |verdict| serde_json::to_string(&verdict).unwrap();
        assert_eq!(verdict(Verdict::NotMet(1.5)), r#"{"verdict":"not-met","figure":1.5}"#);
        assert_eq!(verdict(Verdict::Unknown), r#"{"verdict":"unknown"}"#);
    }

    #[test]
    fn values_explained_by_lateness_are_indeterminate() {
        use Comparison::{Greater, GreaterOrEqual, Less};
        let mut figures = StepInterval { count: 1_000, ok: 1_000, ..StepInterval::default() };
        figures.latency.record_times(500_000, 900);
        figures.latency.record_times(45_000_000, 100);
        let mut sum = Interval { steps: vec![figures], ..Interval::default() };
        let judged =
            |sum: &Interval, measure, comparison, value| judge(measure, comparison, value, sum);
        let p99 = Measure::Quantile(0.99);
        assert!(matches!(judged(&sum, p99, Less, 10e6), Verdict::NotMet(_)), "it was in time");
        // Half of the time without a processor: 40 ms late in a tenth of all readings.
        sum.generator.lateness = Histogram::new();
        sum.generator.lateness.record_times(60_000, 90);
        sum.generator.lateness.record_times(40_000_000, 10);
        assert!(matches!(judged(&sum, p99, Less, 10e6), Verdict::Indeterminate(_)));
        assert!(
            matches!(judged(&sum, p99, Less, 50e6), Verdict::Met(_)),
            "it is less all the same"
        );
        assert!(matches!(judged(&sum, p99, Less, 1e6), Verdict::NotMet(_)), "it explains 40 of 45");
        assert!(matches!(judged(&sum, p99, Greater, 20e6), Verdict::Indeterminate(_)));
        let p50 = Measure::Quantile(0.5);
        assert!(
            matches!(judged(&sum, p50, Less, 100_000.0), Verdict::NotMet(_)),
            "half were in time"
        );
        // The rate of a generator that was stopped for 40 % of the time.
        let rate = |sum: &Interval, value| judged(sum, Measure::Rate, GreaterOrEqual, value);
        assert!(matches!(rate(&sum, 600.0), Verdict::NotMet(_)));
        (sum.shards, sum.generator.lost_ns) = (2, 2 * 800_000_000);
        assert!(matches!(rate(&sum, 600.0), Verdict::Indeterminate(_)));
        assert!(matches!(rate(&sum, 500.0), Verdict::Met(_)));
        assert!(matches!(rate(&sum, 900.0), Verdict::NotMet(_)));
    }
}
