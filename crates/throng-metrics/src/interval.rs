//! What happened in one second (or less, where a phase ends inside it). Shards make intervals,
//! intervals are merged by adding; a run is the sum of its intervals.

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
    /// What one step did. An attempt is one doing of it, with all its tries. Each that is begun
    /// ends once: it is `ok`, or it is in `errors`, or it is `interrupted`; `count` has the first
    /// two. So `begun = count + interrupted` holds of a whole run, though not of a second of it.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct StepInterval {
        pub step: u16 => Key,
        #[serde(default)]
        pub begun: u64 => Sum,
        pub count: u64 => Sum,
        pub ok: u64 => Sum,
        /// Of `ok` those that came after the load had ended: they are in no rate.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub ok_after: u64 => Sum,
        /// Neither good nor bad: cut off by the end of the run, or as its user had to go.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub interrupted: u64 => Sum,
        /// Tries that failed and were followed by another of the same attempt, by cause. They are
        /// no errors: the last try decides. Their codes and bytes are in the row.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub retried: Vec<(Cause, u64)> => Sum,
        /// Of the failed attempts those that had been tried again.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub given_up: u64 => Sum,
        /// From the due time to the last byte of the answer; a timeout counts with its wait.
        /// Attempts that got no answer at all (refused, reset) are not in it.
        pub latency: Histogram => Sum,
        /// From when the request of the last try was handed over for sending to the last byte of
        /// the answer: `latency` without what the attempt waited for on our side, be it a free
        /// user, a connection, or a stream. None where all of them are those of `latency`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub service: Option<Histogram> => By(StepInterval::merge_service),
        /// Of transactions: `latency` is without the times in which the user paused, this is with
        /// them.
        #[serde(default, skip_serializing_if = "Histogram::is_empty")]
        pub with_pauses: Histogram => Sum,
        /// From the due time to the first byte of the answer.
        #[serde(default, skip_serializing_if = "Histogram::is_empty")]
        pub first_byte: Histogram => Sum,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub errors: Vec<(Cause, u64)> => Sum,
        /// Answers by their code: HTTP status, WebSocket close code.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub codes: Vec<(u16, u64)> => Sum,
        /// Of the failures for their status, those with a 4xx: the target or the scenario is wrong.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub refused: u64 => Sum,
        /// Requests and calls that were sent again, as the target had not looked at them: it had
        /// closed the idle connection before they came, or says so (HTTP/2). Of the attempts in
        /// `count`, not in addition to them.
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

    /// Who has to act where the step failed for this cause. A status is told by the most of them.
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

    /// The service times: those of `latency` where they are the same.
    pub fn service(&self) -> &Histogram {
        self.service.as_ref().unwrap_or(&self.latency)
    }

    /// An answer came after so long, of which it waited for being sent; never, if it was not.
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

    /// Good ones that came while the load went on: what a rate is made of.
    pub fn ok_in_time(&self) -> u64 {
        self.ok.saturating_sub(self.ok_after)
    }

    /// What failed among the attempts that ended, 0 to 1; None where none has.
    pub fn failed_share(&self) -> Option<f64> {
        (self.count > 0).then(|| self.failed() as f64 / self.count as f64)
    }

    /// Of a whole run: whether every attempt that was begun has ended once. Records from before
    /// there was `begun` do not say it.
    pub fn is_balanced(&self) -> bool {
        self.begun == self.count + self.interrupted
    }

    /// Where only one of both has service times of its own, those of the other are its `latency`.
    fn merge_service(&mut self, other: &StepInterval) {
        if self.service.is_some() || other.service.is_some() {
            let service = self.service.get_or_insert_with(|| self.latency.clone());
            service.merge(other.service());
        }
    }
}

/// Adds `n` to the counter of `key`, which is made when it is new. Keys are few.
pub fn add<K: Copy + PartialEq>(counters: &mut Vec<(K, u64)>, key: K, n: u64) {
    match counters.iter_mut().find(|(known, _)| *known == key) {
        Some((_, count)) => *count += n,
        None => counters.push((key, n)),
    }
}

merged! {
    /// What one stage of a connection's life did.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct StageInterval {
        pub stage: Stage => Key,
        /// Came to it. Of the whole run, `began - ok - failed` were cut off by its end.
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
    /// What the kernel says of connections that are looked at now and then (tcp(7), TCP_INFO).
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct TcpSamples {
        pub count: u64 => Sum,
        /// The smoothed round-trip time.
        pub round_trip: Histogram => Sum,
        /// Segments that were sent again on the connections looked at, since they were opened.
        pub retransmits: u64 => Sum,
        /// Segments that came out of order on them, which loss on the way here causes.
        #[serde(skip_serializing_if = "is_zero")]
        pub out_of_order: u64 => Sum,
        /// The most bytes that one of them had sent and not seen acknowledged, or not sent.
        pub backlog_bytes_max: u64 => Most,
    }
}

/// A shard that did nothing for so long though something was due has lost that time: it neither
/// sent nor measured.
pub const LOST_NS_MIN: u64 = 20_000_000;

flat! {
    merged
    /// One second of a run, or the part of it that lies in one phase. A record has the fields of
    /// its groups as if they were its own, in this order.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct Interval {
        /// The second of the run.
        pub second: u64 => Own, needed;
        /// The phase of the load, counted from 0; what ends after the last phase counts to it.
        pub phase: u16 => Own, needed;
        /// The machine whose figures these are, counted from 0.
        #[serde(skip_serializing_if = "is_first")]
        pub machine: u16 => Key;
        /// How many shards' figures are in it.
        pub shards: u16 => Own, needed;
        pub steps: Vec<StepInterval> => Sum, needed;
        flat connections => Sum
        /// How connections began, how many there were, and how they ended.
        struct ConnectionsInterval {
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub stages: Vec<StageInterval> => Sum;
            pub counts: Connections => Sum = "connections", needed;
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub residence: Vec<ResidenceInterval> => Sum;
        }
        /// The slowest attempts so far of its phase, by step: those that are among them for a
        /// shard.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub slowest: Vec<Slow> => Sum;
        flat parts => Sum
        /// What was done, by address, by instance and by session.
        struct PartsInterval {
            /// By the address it went to, where there are several.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub targets: Vec<TargetInterval> => Sum;
            /// By the instance that a response header names, where the scenario names the header.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub instances: Vec<InstanceInterval> => Sum;
            /// Iterations by their session, where there are several.
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
        /// By step, what its responses are like.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub samples: Vec<SampleInterval> => Sum;
        pub gauges: Gauges => Now, needed;
        /// What changed in the picture of the population. Longer sums are without it.
        #[serde(skip_serializing_if = "Cells::is_empty")]
        pub cells: Cells => Now;
        flat traffic => Sum
        /// Messages and bytes of all connections.
        struct TrafficInterval {
            pub messages: Messages => Sum, needed;
            /// Of users with a network of their own.
            #[serde(skip_serializing_if = "Packets::is_empty")]
            pub packets: Packets => Sum;
            pub bytes_in: u64 => Sum, needed;
            pub bytes_out: u64 => Sum, needed;
        }
        flat generator => Sum
        /// How well the generator kept its schedule, and what it took of its host.
        struct GeneratorInterval {
            /// How late it was with what was due.
            pub lateness: Histogram => Sum, needed;
            /// What was begun in one waking.
            pub together: Together => Sum;
            /// How long the shards did nothing though something was due, beyond what is only late
            /// ([`LOST_NS_MIN`]): all of them together, and the longest time of one of them.
            pub lost_ns: u64 => Sum;
            pub lost_max_ns: u64 => Most;
            #[serde(skip_serializing_if = "Option::is_none")]
            pub resources: Option<Resources> => Sum;
        }
    }
}

merged! {
    /// What a shard began in one waking: starts, ends of pauses, heartbeats. So many reach the
    /// target together.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Together {
        /// Wakings in which something was begun.
        pub wakings: u64 => Sum,
        /// What was begun in all of them.
        pub begun: u64 => Sum,
        /// The most in one of them.
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

    /// The mean of a waking; None where there was none.
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
    /// Adds another shard's figures of the same second.
    pub fn merge_shard(&mut self, other: &Interval) {
        self.merge(other);
        self.shards += other.shards;
        self.gauges.merge(&other.gauges);
        self.cells.merge(&other.cells);
    }

    /// Adds a later interval: counters add up, gauges are the later ones.
    pub fn merge_later(&mut self, later: &Interval) {
        self.merge(later);
        self.second = self.second.max(later.second);
        self.phase = later.phase;
        self.shards = self.shards.max(later.shards);
        self.gauges = later.gauges.clone();
        self.cells = Cells::default();
    }

    /// Adds what of another interval tells whether its rows are balanced, and nothing else.
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

    /// The share of the time, 0 to 1, in which the shards did nothing though something was due.
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

    /// The steps that are `among` them together. What a report calls all attempts and what a
    /// threshold without a subject is about are both this sum of the same steps
    /// ([`crate::StepKind::is_attempt`]).
    pub fn sum(&self, among: impl Fn(StepId) -> bool) -> StepInterval {
        let mut sum = StepInterval::default();
        self.steps.iter().filter(|row| among(StepId(row.step))).for_each(|row| sum.merge(row));
        sum
    }

    /// All steps together, whatever they are.
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
    fn shards_add_up_and_time_goes_on() {
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

    /// The rows of the sum: step and count. Rows of a step count up by powers of ten.
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
    fn rows_of_steps_add_up_in_whatever_order_they_come() {
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
    fn service_times_are_kept_where_they_are_others_and_merged_with_those_that_are_not() {
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
        // None of them was ever sent: that is another thing than being equal.
        let unsent = answered(&[(100, u64::MAX)]);
        assert_eq!(unsent.service.as_ref().map(Histogram::count), Some(0));
        let mut twice = plain.clone();
        twice.merge(&plain);
        assert!(
            twice.service.is_none() && !serde_json::to_string(&twice).unwrap().contains("serv")
        );
    }

    #[test]
    fn a_status_is_blamed_by_the_most_of_them() {
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
