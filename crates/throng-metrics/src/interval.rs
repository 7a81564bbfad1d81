//! What happened in one second (or less, where a phase ends inside it). Shards make intervals,
//! intervals are merged by adding; a run is the sum of its intervals.

use serde::{Deserialize, Serialize};
use throng_base::StepId;

use crate::histogram::Histogram;
use crate::outcome::{Cause, Stage};

/// What one step did. Every attempt that ended is in `count`; it is `ok`, or it is in `errors`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepInterval {
    pub step: u16,
    pub count: u64,
    pub ok: u64,
    /// From the due time to the last byte of the answer; a timeout counts with its wait.
    /// Attempts that got no answer at all (refused, reset) are not in it.
    pub latency: Histogram,
    /// Of transactions: `latency` is without the times in which the user paused, this is with them.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub with_pauses: Histogram,
    /// From the due time to the first byte of the answer.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub first_byte: Histogram,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<(Cause, u64)>,
    /// Answers by their code: HTTP status, WebSocket close code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<(u16, u64)>,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

impl StepInterval {
    pub fn failed(&self) -> u64 {
        self.count - self.ok
    }

    pub fn merge(&mut self, other: &StepInterval) {
        self.count += other.count;
        self.ok += other.ok;
        self.latency.merge(&other.latency);
        self.with_pauses.merge(&other.with_pauses);
        self.first_byte.merge(&other.first_byte);
        other.errors.iter().for_each(|(cause, n)| add(&mut self.errors, *cause, *n));
        other.codes.iter().for_each(|(code, n)| add(&mut self.codes, *code, *n));
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
    }
}

/// Adds `n` to the counter of `key`, which is made when it is new. Keys are few.
pub fn add<K: Copy + PartialEq>(counters: &mut Vec<(K, u64)>, key: K, n: u64) {
    match counters.iter_mut().find(|(known, _)| *known == key) {
        Some((_, count)) => *count += n,
        None => counters.push((key, n)),
    }
}

/// What one stage of opening connections did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageInterval {
    pub stage: Stage,
    pub ok: u64,
    pub failed: u64,
    /// Of the successful ones.
    pub latency: Histogram,
}

/// Counters of connections: how they began and how they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    pub attempted: u64,
    pub opened: u64,
    pub closed_by_us: u64,
    pub closed_by_target: u64,
    pub reset: u64,
    pub timed_out: u64,
}

/// Counters of users and of the schedule they follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Population {
    pub started: u64,
    pub finished: u64,
    pub iterations_started: u64,
    pub iterations_finished: u64,
    /// Cut off by the end of the run; neither ok nor failed.
    pub interrupted: u64,
    /// Starts that were due and never happened.
    pub unmet: u64,
    /// Starts that had to wait because every user was busy.
    pub waited: u64,
}

/// What is so at the end of the interval. Shards add up; over time the last one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gauges {
    pub users_wanted: u64,
    pub users_online: u64,
    pub connections_opening: u64,
    pub connections_open: u64,
    /// Requests sent whose answer has not come.
    pub in_flight: u64,
}

/// What messages came that nobody asked for, by what the user was told to make of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    pub received: u64,
    pub sent: u64,
    pub pushes: u64,
    pub pings: u64,
}

/// The resources of this process during the interval, measured once for all shards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    pub memory_bytes: u64,
    /// Share of all processors of the host that was busy, 0 to 1; everything that ran there.
    pub host_cpu: f64,
}

/// One second of a run, or the part of it that lies in one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The second of the run.
    pub second: u64,
    /// The phase of the load, counted from 0; what ends after the last phase counts to it.
    pub phase: u16,
    /// How many shards' figures are in it.
    pub shards: u16,
    pub steps: Vec<StepInterval>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageInterval>,
    pub connections: Connections,
    pub population: Population,
    pub gauges: Gauges,
    pub messages: Messages,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// How late the generator itself was with what was due.
    pub lateness: Histogram,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

impl Interval {
    /// Adds another shard's figures of the same second.
    pub fn merge_shard(&mut self, other: &Interval) {
        self.add_counters(other);
        self.shards += other.shards;
        self.gauges.users_wanted += other.gauges.users_wanted;
        self.gauges.users_online += other.gauges.users_online;
        self.gauges.connections_opening += other.gauges.connections_opening;
        self.gauges.connections_open += other.gauges.connections_open;
        self.gauges.in_flight += other.gauges.in_flight;
    }

    /// Adds a later interval: counters add up, gauges are the later ones.
    pub fn merge_later(&mut self, later: &Interval) {
        self.add_counters(later);
        self.second = self.second.max(later.second);
        self.phase = later.phase;
        self.shards = self.shards.max(later.shards);
        self.gauges = later.gauges.clone();
    }

    fn add_counters(&mut self, other: &Interval) {
        for step in &other.steps {
            match self.steps.iter_mut().find(|mine| mine.step == step.step) {
                Some(mine) => mine.merge(step),
                None => self.steps.push(step.clone()),
            }
        }
        for stage in &other.stages {
            self.stage_mut(stage.stage).merge(stage);
        }
        self.connections.merge(&other.connections);
        self.population.merge(&other.population);
        self.messages.merge(&other.messages);
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.lateness.merge(&other.lateness);
        if let Some(theirs) = &other.resources {
            self.resources.get_or_insert_default().merge(theirs);
        }
    }

    pub fn step(&self, step: StepId) -> Option<&StepInterval> {
        self.steps.iter().find(|mine| mine.step == step.0)
    }

    pub fn stage(&self, stage: Stage) -> Option<&StageInterval> {
        self.stages.iter().find(|mine| mine.stage == stage)
    }

    pub fn stage_mut(&mut self, stage: Stage) -> &mut StageInterval {
        let index = match self.stages.iter().position(|mine| mine.stage == stage) {
            Some(index) => index,
            None => {
                let latency = Histogram::new();
                self.stages.push(StageInterval { stage, ok: 0, failed: 0, latency });
                self.stages.len() - 1
            }
        };
        &mut self.stages[index]
    }

    /// All steps together, whatever they are: reports sum up attempts only ([`crate::is_attempt`]).
    pub fn total(&self) -> StepInterval {
        let mut total = StepInterval::default();
        self.steps.iter().for_each(|step| total.merge(step));
        total
    }
}

impl StageInterval {
    fn merge(&mut self, other: &StageInterval) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.latency.merge(&other.latency);
    }
}

impl Connections {
    fn merge(&mut self, other: &Connections) {
        self.attempted += other.attempted;
        self.opened += other.opened;
        self.closed_by_us += other.closed_by_us;
        self.closed_by_target += other.closed_by_target;
        self.reset += other.reset;
        self.timed_out += other.timed_out;
    }
}

impl Population {
    fn merge(&mut self, other: &Population) {
        self.started += other.started;
        self.finished += other.finished;
        self.iterations_started += other.iterations_started;
        self.iterations_finished += other.iterations_finished;
        self.interrupted += other.interrupted;
        self.unmet += other.unmet;
        self.waited += other.waited;
    }
}

impl Messages {
    fn merge(&mut self, other: &Messages) {
        self.received += other.received;
        self.sent += other.sent;
        self.pushes += other.pushes;
        self.pings += other.pings;
    }
}

impl Resources {
    fn merge(&mut self, later: &Resources) {
        self.cpu_user_ns += later.cpu_user_ns;
        self.cpu_system_ns += later.cpu_system_ns;
        self.memory_bytes = self.memory_bytes.max(later.memory_bytes);
        self.host_cpu = self.host_cpu.max(later.host_cpu);
    }
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
        interval.connections.opened = 3;
        interval
    }

    #[test]
    fn shards_add_up_and_time_goes_on() {
        let mut first = interval(1, 0, 100);
        first.merge_shard(&interval(1, 1, 200));
        assert_eq!((first.shards, first.gauges.users_online, first.steps.len()), (2, 20, 2));
        first.merge_later(&interval(2, 1, 300));
        assert_eq!((first.second, first.gauges.users_online), (2, 10));
        assert_eq!(first.connections.opened, 9);
        assert_eq!(first.stage(Stage::Connect).map(|stage| stage.ok), Some(3));
        let total = first.total();
        assert_eq!((total.count, total.failed(), total.latency.count()), (6, 3, 3));
        assert_eq!(total.errors, [(Cause::Reset, 3)]);
    }
}
