//! The results of one second, or of the part of a second that belongs to one phase. Shards create
//! intervals, which are merged by adding; a run is the sum of its intervals.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::StepId;

use crate::cells::Cells;
use crate::connections::ResidenceInterval;
use crate::figures::{
    Connections, DeliveryInterval, Groups, Heartbeats, Lifecycle, Messages, Packets, Population,
    Retries, SampleInterval, is_zero,
};
use crate::gauges::{Gauges, Resources};
use crate::histogram::Histogram;
use crate::merge::Merge as _;
use crate::outcome::{Blame, Cause, Stage};
use crate::places::{InstanceInterval, SessionInterval, TargetInterval};
use crate::slowest::Slow;

merged! {
    /// The results of one step. An attempt is one execution of it, with all its tries. Each attempt
    /// that began ends once: it is counted in `ok`, in `errors` or in `interrupted`; `count` is the
    /// sum of the first two. So `begun = count + interrupted` in a whole run, but not in each
    /// second.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct StepInterval {
        pub step: u16 => Key,
        #[serde(default)]
        pub begun: u64 => Sum,
        pub count: u64 => Sum,
        pub ok: u64 => Sum,
        /// The part of `ok` that ended after the load; not included in rates.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub ok_after: u64 => Sum,
        /// Neither successful nor failed: interrupted by the end of the run, or because the user
        /// left.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub interrupted: u64 => Sum,
        /// Failed tries that were followed by another try, by cause. They are not errors, because
        /// the last try decides. Their codes and bytes are included in the row.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub retried: Vec<(Cause, u64)> => Sum,
        /// Failed attempts that had been retried.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub given_up: u64 => Sum,
        /// From the due time to the last byte of the response; a timeout counts with its waiting
        /// time. Attempts without any response (refused, reset) are not included.
        pub latency: Histogram => Sum,
        /// From passing the last try's request to the kernel to the last byte of the response:
        /// `latency` without the time that the attempt waited for a free user, a connection or a
        /// stream. `None` if all are equal to `latency`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub service: Option<Histogram> => By(StepInterval::merge_service),
        /// For transactions: `latency` excludes the user's pauses, this includes them.
        #[serde(default, skip_serializing_if = "Histogram::is_empty")]
        pub with_pauses: Histogram => Sum,
        /// From the due time to the first byte of the response.
        #[serde(default, skip_serializing_if = "Histogram::is_empty")]
        pub first_byte: Histogram => Sum,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub errors: Vec<(Cause, u64)> => Sum,
        /// Responses by code: HTTP status, WebSocket close code.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub codes: Vec<(u16, u64)> => Sum,
        /// Failures with a 4xx status: the target or the scenario is wrong.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub refused: u64 => Sum,
        /// Requests and calls that were sent again because the target had not processed them: it
        /// closed the idle connection before they arrived, or said so (HTTP/2). They are included
        /// in `count`, not additional to it.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub resent: u64 => Sum,
        pub bytes_in: u64 => Sum,
        pub bytes_out: u64 => Sum,
    }
}

fn is_first(machine: &u16) -> bool {
    *machine == 0
}

impl StepInterval {
    pub fn failed(&self) -> u64 {
        self.count - self.ok
    }

    /// Who must act if the step failed for this cause. For statuses, the majority decides.
    pub fn blame(&self, cause: Cause) -> Blame {
        if !cause.is_status() {
            return cause.blame();
        }
        let of_cause = self.errors.iter().filter(|(one, _)| *one == cause);
        match of_cause.map(|(_, count)| *count).sum::<u64>() {
            count if self.refused * 2 > count => Blame::TargetOrScenario,
            _ => cause.blame(),
        }
    }

    /// The service times; those of `latency` if they are equal.
    pub fn service(&self) -> &Histogram {
        self.service.as_ref().unwrap_or(&self.latency)
    }

    /// Adds a response with its latency, and how long the attempt waited before it was sent;
    /// `u64::MAX` if it never was.
    #[inline]
    pub fn answered(&mut self, latency_ns: u64, waited_ns: u64) {
        if waited_ns > 0 || self.service.is_some() {
            let service = self.service.get_or_insert_with(|| self.latency.clone());
            if waited_ns != u64::MAX {
                service.record(latency_ns.saturating_sub(waited_ns));
            }
        }
        self.latency.record(latency_ns);
    }

    /// Successful attempts during the load, on which rates are based.
    pub fn ok_in_time(&self) -> u64 {
        self.ok.saturating_sub(self.ok_after)
    }

    /// The share of ended attempts that failed, 0 to 1; `None` if none has ended.
    pub fn failed_share(&self) -> Option<f64> {
        (self.count > 0).then(|| self.failed() as f64 / self.count as f64)
    }

    /// Whether, in a whole run, every attempt that began has ended once. True for old run
    /// directories without `begun`.
    pub fn is_balanced(&self) -> bool {
        self.begun == self.count + self.interrupted
    }

    /// If only one of them has separate service times, those of the other equal its `latency`.
    fn merge_service(&mut self, other: &StepInterval) {
        if self.service.is_some() || other.service.is_some() {
            let service = self.service.get_or_insert_with(|| self.latency.clone());
            service.merge(other.service());
        }
    }
}

/// Adds `n` to the counter of `key`, which is created if necessary. There are few keys.
pub fn add<K: Copy + PartialEq>(counters: &mut Vec<(K, u64)>, key: K, n: u64) {
    match counters.iter_mut().find(|(known, _)| *known == key) {
        Some((_, count)) => *count += n,
        None => counters.push((key, n)),
    }
}

merged! {
    /// The results of one stage of connections.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct StageInterval {
        pub stage: Stage => Key,
        /// Connections that reached the stage. In a whole run, `began - ok - failed` were
        /// interrupted by its end.
        #[serde(default)]
        pub began: u64 => Sum,
        pub ok: u64 => Sum,
        pub failed: u64 => Sum,
        /// Of the successful ones.
        pub latency: Histogram => Sum,
        /// Of the failed ones.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub errors: Vec<(Cause, u64)> => Sum,
    }
}

merged! {
    /// Kernel data of connections that are sampled regularly (tcp(7), TCP_INFO).
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct TcpSamples {
        pub count: u64 => Sum,
        /// The smoothed round-trip time.
        pub round_trip: Histogram => Sum,
        /// Segments retransmitted on sampled connections since they were opened.
        pub retransmits: u64 => Sum,
        /// Segments received out of order on them, which indicates loss.
        #[serde(skip_serializing_if = "is_zero")]
        pub out_of_order: u64 => Sum,
        /// Maximum number of bytes that one of them had not sent, or that were not acknowledged.
        pub backlog_bytes_max: u64 => Most,
    }
}

/// A shard that does nothing for this long although work is due has lost the time: it neither sent
/// nor measured.
pub const LOST_NS_MIN: u64 = 20_000_000;

flat! {
    merged
    /// One second of a run, or the part of it that belongs to one phase. The fields of nested
    /// groups are fields of the line, in this order.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct Interval {
        /// The second of the run.
        pub second: u64 => Own, needed;
        /// The phase of the load, counted from 0. What ends after the last phase is counted in it.
        pub phase: u16 => Own, needed;
        /// The machine, counted from 0.
        #[serde(skip_serializing_if = "is_first")]
        pub machine: u16 => Key;
        /// Number of shards included.
        pub shards: u16 => Own, needed;
        pub steps: Vec<StepInterval> => Sum, needed;
        flat connections => Sum
        /// How connections were opened, how many there were, and how they ended.
        struct ConnectionsInterval {
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub stages: Vec<StageInterval> => Sum;
            pub counts: Connections => Sum = "connections", needed;
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub residence: Vec<ResidenceInterval> => Sum;
        }
        /// The slowest attempts of the phase so far, by step, of each shard.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub slowest: Vec<Slow> => Sum;
        flat parts => Sum
        /// Results by address, by instance and by session.
        struct PartsInterval {
            /// By address, if there are several.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub targets: Vec<TargetInterval> => Sum;
            /// By the instance named in a response header, if the scenario specifies the header.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub instances: Vec<InstanceInterval> => Sum;
            /// By session, if there are several.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub sessions: Vec<SessionInterval> => Sum;
        }
        pub population: Population => Sum, needed;
        pub lifecycle: Lifecycle => Sum;
        pub heartbeats: Heartbeats => Sum;
        pub retries: Retries => Sum;
        pub tcp: TcpSamples => Sum;
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub deliveries: Vec<DeliveryInterval> => Sum;
        /// By step: how its responses differ.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub samples: Vec<SampleInterval> => Sum;
        pub gauges: Gauges => Now, needed;
        /// Changes of the picture of the population. Sums over time do not have them.
        #[serde(skip_serializing_if = "Cells::is_empty")]
        pub cells: Cells => Now;
        flat traffic => Sum
        /// Messages and bytes of all connections.
        struct TrafficInterval {
            pub messages: Messages => Sum, needed;
            /// Of users with a simulated network.
            #[serde(skip_serializing_if = "Packets::is_empty")]
            pub packets: Packets => Sum;
            pub bytes_in: u64 => Sum, needed;
            pub bytes_out: u64 => Sum, needed;
        }
        flat generator => Sum
        /// How well the generator kept its schedule, and the resources it used.
        struct GeneratorInterval {
            /// The delay between due times and actual starts.
            pub lateness: Histogram => Sum, needed;
            /// Events per wake-up.
            pub together: Together => Sum;
            /// Time of at least [`LOST_NS_MIN`] in which shards did nothing although work was due:
            /// the sum over all shards, and the maximum of one.
            pub lost_ns: u64 => Sum;
            pub lost_max_ns: u64 => Most;
            #[serde(skip_serializing_if = "Option::is_none")]
            pub resources: Option<Resources> => Sum;
        }
    }
}

merged! {
    /// What a shard started per wake-up: starts, ends of pauses, heartbeats. These reach the target
    /// together.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Together {
        /// Wake-ups in which something started.
        pub wakings: u64 => Sum,
        /// Total number of events started.
        pub begun: u64 => Sum,
        /// Maximum per wake-up.
        pub max: u64 => Most,
    }
}

impl Together {
    #[inline]
    pub fn add(&mut self, begun: u64) {
        self.wakings += 1;
        self.begun += begun;
        self.max = self.max.max(begun);
    }

    /// The mean per wake-up; `None` without one.
    pub fn mean(&self) -> Option<f64> {
        (self.wakings > 0).then(|| self.begun as f64 / self.wakings as f64)
    }
}

macro_rules! groups {
    ($($group:ident: $type:ty = $($place:ident).+;)+) => {
        impl Groups for Interval {
            $(fn $group(&self) -> &$type {
                &self.$($place).+
            })+

            fn bytes_in(&self) -> u64 {
                self.traffic.bytes_in
            }

            fn bytes_out(&self) -> u64 {
                self.traffic.bytes_out
            }
        }
    };
}

groups! {
    population: Population = population;
    connections: Connections = connections.counts;
    lifecycle: Lifecycle = lifecycle;
    heartbeats: Heartbeats = heartbeats;
    retries: Retries = retries;
    messages: Messages = traffic.messages;
}

impl Interval {
    /// Adds another shard's results of the same second.
    pub fn merge_shard(&mut self, other: &Interval) {
        self.merge(other);
        self.shards += other.shards;
        self.gauges.merge(&other.gauges);
        self.cells.merge(&other.cells);
    }

    /// Adds a later interval: counters add up, and gauges are replaced.
    pub fn merge_later(&mut self, later: &Interval) {
        self.merge(later);
        self.second = self.second.max(later.second);
        self.phase = later.phase;
        self.shards = self.shards.max(later.shards);
        self.gauges = later.gauges.clone();
        self.cells = Cells::default();
    }

    /// Adds only the values that show whether rows are balanced.
    pub fn add_books(&mut self, other: &Interval) {
        let counts = |row: &StepInterval| StepInterval {
            step: row.step,
            begun: row.begun,
            count: row.count,
            interrupted: row.interrupted,
            ..StepInterval::default()
        };
        self.steps.merge(&other.steps.iter().map(counts).collect());
        self.heartbeats.merge(&other.heartbeats);
    }

    /// The share of the time, 0 to 1, in which shards did nothing although work was due.
    pub fn lost_share(&self, duration: Duration) -> f64 {
        let time = duration.as_nanos() as f64 * f64::from(self.shards.max(1));
        if time > 0.0 { (self.generator.lost_ns as f64 / time).min(1.0) } else { 0.0 }
    }

    pub fn step(&self, step: StepId) -> Option<&StepInterval> {
        self.steps.iter().find(|mine| mine.step == step.0)
    }

    /// A row of the ledger.
    pub fn delivery_mut(&mut self, step: u16) -> &mut DeliveryInterval {
        DeliveryInterval::of(&mut self.deliveries, step)
    }

    pub fn stage(&self, stage: Stage) -> Option<&StageInterval> {
        self.connections.stages.iter().find(|mine| mine.stage == stage)
    }

    pub fn stage_mut(&mut self, stage: Stage) -> &mut StageInterval {
        let index = match self.connections.stages.iter().position(|mine| mine.stage == stage) {
            Some(index) => index,
            None => {
                self.connections.stages.push(StageInterval::new(stage));
                self.connections.stages.len() - 1
            }
        };
        &mut self.connections.stages[index]
    }

    /// The sum of the steps for which `among` is true. Reports and thresholds without a subject
    /// both use this sum for all attempts ([`crate::StepKind::is_attempt`]).
    pub fn sum(&self, among: impl Fn(StepId) -> bool) -> StepInterval {
        let mut sum = StepInterval::default();
        self.steps.iter().filter(|row| among(StepId(row.step))).for_each(|row| sum.merge(row));
        sum
    }

    /// The sum of all steps of any kind.
    pub fn total(&self) -> StepInterval {
        self.sum(|_| true)
    }
}

impl StageInterval {
    pub fn new(stage: Stage) -> StageInterval {
        let latency = Histogram::new();
        StageInterval { stage, began: 0, ok: 0, failed: 0, latency, errors: Vec::new() }
    }
}

keyed! {
    sorted StepInterval: u16, |row| row.step;
    unsorted StageInterval: Stage, |row| row.stage;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(second: u64, step: u16, latency: u64) -> Interval {
        let mut interval = Interval { second, shards: 1, ..Interval::default() };
        let mut figures = StepInterval { step, count: 2, ok: 1, ..StepInterval::default() };
        figures.latency.record(latency);
        figures.errors.push((Cause::Reset, 1));
        interval.steps.push(figures);
        interval.stage_mut(Stage::Connect).ok += 1;
        interval.gauges.users_online = 10;
        interval.connections.counts.opened = 3;
        interval
    }

    #[test]
    fn shards_add_up_and_gauges_are_replaced_over_time() {
        let mut first = interval(1, 0, 100);
        first.merge_shard(&interval(1, 1, 200));
        assert_eq!((first.shards, first.gauges.users_online, first.steps.len()), (2, 20, 2));
        first.merge_later(&interval(2, 1, 300));
        assert_eq!((first.second, first.gauges.users_online), (2, 10));
        assert_eq!(first.connections.counts.opened, 9);
        assert_eq!(first.stage(Stage::Connect).map(|stage| stage.ok), Some(3));
        let total = first.total();
        assert_eq!((total.count, total.failed(), total.latency.count()), (6, 3, 3));
        assert_eq!(total.errors, [(Cause::Reset, 3)]);
    }

    /// The rows of the sum: step and count. Counts of a step are powers of ten.
    fn merged(mine: &[u16], theirs: &[u16]) -> Vec<(u16, u64)> {
        let row = |step: u16, count: u64| {
            let mut row = StepInterval { step, count, ..StepInterval::default() };
            row.latency.record_times(u64::from(step), count);
            row
        };
        let rows = |steps: &[u16], count: u64| steps.iter().map(|step| row(*step, count)).collect();
        let mut sum = Interval { steps: rows(mine, 1), ..Interval::default() };
        sum.merge_later(&Interval { steps: rows(theirs, 10), ..Interval::default() });
        let rows = sum.steps.iter();
        rows.map(|row| {
            assert_eq!(row.latency.count(), row.count);
            (row.step, row.count)
        })
        .collect()
    }

    #[test]
    fn rows_of_steps_add_up_in_any_order() {
        assert_eq!(merged(&[], &[]), []);
        assert_eq!(merged(&[], &[2, 5]), [(2, 10), (5, 10)]);
        assert_eq!(merged(&[2, 5], &[]), [(2, 1), (5, 1)]);
        assert_eq!(merged(&[2, 5], &[2, 5]), [(2, 11), (5, 11)]);
        assert_eq!(merged(&[2, 5], &[1, 3, 9]), [(1, 10), (2, 1), (3, 10), (5, 1), (9, 10)]);
        assert_eq!(merged(&[1, 3, 9], &[9, 3, 4]), [(1, 1), (3, 11), (4, 10), (9, 11)]);
        assert_eq!(merged(&[9, 1, 3], &[3, 0, 1]), [(0, 10), (1, 11), (3, 11), (9, 1)]);
        assert_eq!(merged(&[1], &[7, 7, 1, 7, 1]), [(1, 21), (7, 30)]);
        let all: Vec<u16> = (0..300).collect();
        let even: Vec<u16> = all.iter().copied().filter(|step| step % 2 == 0).collect();
        let sum = merged(&even, &all);
        assert!(sum.iter().all(|(step, count)| *count == 10 + u64::from(step % 2 == 0)));
        assert_eq!(sum.len(), 300);
    }

    #[test]
    fn rows_of_the_ledger_add_up_by_their_step() {
        let mut all = serde_json::Map::new();
        for (number, counter) in (1u64..).zip(crate::DeliveryCounter::ALL) {
            all.insert(counter.word().to_string(), number.into());
        }
        all.insert("step".into(), 7.into());
        let row: DeliveryInterval = serde_json::from_value(all.into()).unwrap();
        let one = Interval { deliveries: vec![row.clone()], ..Interval::default() };
        let mut sum = Interval::default();
        sum.delivery_mut(3).sent = 5;
        sum.merge_shard(&one);
        sum.merge_later(&one);
        assert_eq!((sum.deliveries.len(), sum.delivery_mut(3).sent), (2, 5));
        for counter in crate::DeliveryCounter::ALL {
            let (twice, once) = (counter.of(sum.delivery_mut(7)), counter.of(&row));
            assert_eq!(twice, 2 * once, "{}", counter.word());
        }
    }

    #[test]
    fn service_times_are_kept_if_they_differ_and_are_merged_with_equal_ones() {
        let answered = |times: &[(u64, u64)]| {
            let mut row = StepInterval::default();
            times.iter().for_each(|(latency, waited)| row.answered(*latency, *waited));
            row
        };
        let plain = answered(&[(100, 0), (200, 0)]);
        assert!(plain.service.is_none() && plain.service() == &plain.latency);
        let waited = answered(&[(300, 0), (1_000, 900), (5_000, u64::MAX), (400, 0)]);
        let sum = |row: &StepInterval| row.service().mean() * row.service().count() as f64;
        assert_eq!((waited.latency.count(), waited.service().count()), (4, 3));
        assert_eq!((sum(&waited), waited.service().max()), (800.0, 400));
        for (one, other) in [(&plain, &waited), (&waited, &plain)] {
            let mut both = one.clone();
            both.merge(other);
            assert_eq!((both.latency.count(), both.service().count()), (6, 5));
            assert_eq!(sum(&both), 1_100.0);
            let json = serde_json::to_string(&both).unwrap();
            assert_eq!(serde_json::from_str::<StepInterval>(&json).unwrap(), both);
        }
        // None of these attempts was sent, which differs from being equal.
        let unsent = answered(&[(100, u64::MAX)]);
        assert_eq!(unsent.service.as_ref().map(Histogram::count), Some(0));
        let mut twice = plain.clone();
        twice.merge(&plain);
        assert!(
            twice.service.is_none() && !serde_json::to_string(&twice).unwrap().contains("serv")
        );
    }

    #[test]
    fn the_majority_of_statuses_decides_the_blame() {
        let row = |cause: Cause, count: u64, refused: u64| {
            let row = StepInterval { errors: vec![(cause, count)], refused, ..<_>::default() };
            row.blame(cause)
        };
        assert_eq!(row(Cause::StatusUnexpected, 3, 3), Blame::TargetOrScenario);
        assert_eq!(row(Cause::StatusUnexpected, 3, 2), Blame::TargetOrScenario);
        assert_eq!(row(Cause::StatusUnexpected, 3, 1), Blame::Target);
        assert_eq!(row(Cause::UpgradeRefused, 1, 1), Blame::TargetOrScenario);
        assert_eq!(row(Cause::Reset, 1, 1), Blame::Target);
        let mut sum = StepInterval { refused: 1, resent: 2, ..StepInterval::default() };
        sum.merge(&StepInterval { refused: 3, resent: 4, ..StepInterval::default() });
        assert_eq!((sum.refused, sum.resent), (4, 6));
    }
}
