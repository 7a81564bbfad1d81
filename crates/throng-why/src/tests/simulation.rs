//! Simulates runs: lines as shards would write them, with autocorrelated noise, heavy tails and
//! random hiccups. A fault changes seconds, and the rules see only the lines.

mod clean;
mod faults;
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use throng_base::Random;
use throng_metrics::{
    Cause, Cpu, Ending, Gauges, Interval, Place, ResidenceInterval, Resources, Stage, StepInterval,
    StepKind, TargetInterval,
};

use crate::finding::Span;
use crate::record::{Facts, PhaseFacts, Record};
use crate::rules::{Judged, judge};
use crate::timeline::Timeline;

const MS: f64 = 1e6;
/// Maximum samples per second; more attempts are counted by weight.
const SAMPLES_MAX: f64 = 120.0;

/// The state of a second. A fault changes it before it becomes a line.
#[derive(Clone, Debug)]
pub(super) struct Second {
    pub(super) t: usize,
    pub(super) users: f64,
    /// Scheduled starts per second; 0 in a closed model.
    pub(super) wanted: f64,
    pub(super) attempts: f64,
    /// Factor of all response times.
    pub(super) factor: f64,
    /// Factors of single steps.
    pub(super) step_factors: BTreeMap<usize, f64>,
    /// Shares of attempts that take longer, in milliseconds.
    pub(super) slower: Vec<(f64, f64)>,
    /// Shares of attempts that fail, with cause and status.
    pub(super) failing: Vec<(f64, Cause, u16)>,
    pub(super) retried: f64,
    pub(super) attempted: f64,
    pub(super) opened: f64,
    pub(super) reconnects: f64,
    pub(super) connect_failed: f64,
    pub(super) refused: f64,
    pub(super) connect_ms: f64,
    /// Numbers of connects that take longer, in milliseconds.
    pub(super) connects_slower: Vec<(f64, f64)>,
    pub(super) tls_ms: f64,
    pub(super) login_ms: f64,
    /// Connections that end: how, how many, and their age in seconds.
    pub(super) ends: Vec<(Ending, f64, f64)>,
    pub(super) in_flight: f64,
    pub(super) backlog: f64,
    pub(super) missed: f64,
    pub(super) lateness_ms: f64,
    pub(super) listen_dropped: f64,
    /// Share of this host's table of tracked connections.
    pub(super) conntrack: f64,
}

/// A run without faults.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) seed: u64,
    pub(super) seconds: usize,
    /// Mean response times of the steps, in milliseconds.
    pub(super) steps: Vec<f64>,
    pub(super) kind: StepKind,
    /// Autocorrelation of the noise between seconds, and its size (of the logarithm).
    pub(super) phi: f64,
    pub(super) sigma: f64,
    /// Pause of users between attempts, in seconds.
    pub(super) think_s: f64,
    pub(super) tls: bool,
    pub(super) addresses: usize,
    /// For each phase: length, and users at its start and end.
    pub(super) phases: Vec<(usize, f64, f64)>,
    /// Starts per second for an open model, by the second.
    pub(super) open_rate: Option<fn(f64) -> f64>,
    /// Attempts per second that the target can serve; responses slow down near it.
    pub(super) capacity: f64,
    /// Connections are closed after this many seconds.
    pub(super) churn_s: Option<f64>,
    /// Random hiccups per second.
    pub(super) hiccups: f64,
}

impl World {
    pub(super) fn new(seed: u64, seconds: usize) -> World {
        World {
            seed,
            seconds,
            steps: vec![12.0],
            kind: StepKind::Http,
            phi: [0.5, 0.65, 0.8][seed as usize % 3],
            sigma: 0.12,
            think_s: 0.2,
            tls: false,
            addresses: 0,
            phases: vec![(seconds, 50.0, 50.0)],
            open_rate: None,
            capacity: 2_000.0,
            churn_s: None,
            hiccups: 0.01,
        }
    }

    fn facts(&self) -> Facts {
        let mut from = 0;
        let phase = |(index, (length, _, _)): (usize, &(usize, f64, f64))| {
            let span = Span::new(from as f64, (from + length) as f64);
            from += length;
            PhaseFacts { name: format!("phase {index}"), measured: true, span }
        };
        let phases = self.phases.iter().enumerate().map(phase).collect();
        let step = |at: usize| (format!("step {at}"), self.kind);
        Facts {
            steps: (0..self.steps.len()).map(step).collect(),
            phases,
            lasted_s: self.seconds as f64,
            ended: true,
            targets: vec!["http://target".into()],
            zero_unix_ns: 1_800_000_000_000_000_000,
            port_range: Some((32_768, 60_999)),
            ..Facts::default()
        }
    }

    /// The users in a second, and its phase.
    fn users(&self, t: usize) -> (f64, u16) {
        let mut begin = 0;
        for (index, (length, from, to)) in self.phases.iter().enumerate() {
            if t < begin + length {
                let share = (t - begin) as f64 / *length as f64;
                return (from + (to - from) * share, index as u16);
            }
            begin += length;
        }
        (self.phases.last().map_or(0.0, |it| it.2), self.phases.len() as u16 - 1)
    }
}

/// State that carries over to the next second.
struct Going {
    random: Random,
    noise: f64,
    open: f64,
    users: f64,
}

/// A simulated run directory.
pub(super) struct Simulated {
    pub(super) facts: Facts,
    pub(super) timeline: Timeline,
    pub(super) sums: Vec<Interval>,
}

impl Simulated {
    pub(super) fn judge(&self) -> Judged {
        judge(&Record::new(&self.facts, &self.timeline, self.sums.iter().collect()))
    }
}

pub(super) fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

fn poisson(random: &mut Random, mean: f64) -> f64 {
    (mean + mean.max(0.0).sqrt() * normal(random)).round().max(0.0)
}

/// Simulates a run. `fault` changes each second.
pub(super) fn simulate(
    world: &World,
    mut fault: impl FnMut(&mut Second, &mut Random),
) -> Simulated {
    let mut going =
        Going { random: Random::for_owner(world.seed, 1), noise: 0.0, open: 0.0, users: 0.0 };
    let mut timeline = Timeline::default();
    let mut sums = vec![Interval::default(); world.phases.len()];
    for t in 0..world.seconds {
        let (users, phase) = world.users(t);
        let mut second = usual(world, &mut going, t, users);
        fault(&mut second, &mut going.random);
        let line = line(world, &mut going, &second, phase);
        going.open = line.gauges.connections_open as f64;
        timeline.add(&line, true, &line.gauges.clone(), |_| true);
        sums[usize::from(phase)].merge_later(&line);
    }
    timeline.finish();
    Simulated { facts: world.facts(), timeline, sums }
}

fn usual(world: &World, going: &mut Going, t: usize, users: f64) -> Second {
    let random = &mut going.random;
    let fresh = (1.0 - world.phi * world.phi).sqrt();
    going.noise = world.phi * going.noise + fresh * world.sigma * normal(random);
    let mut factor = going.noise.exp();
    if random.chance(world.hiccups) {
        factor *= random.uniform(2.0, 6.0);
    }
    let mean_s = world.steps.iter().sum::<f64>() / world.steps.len() as f64 / 1e3;
    let wanted = world.open_rate.map_or(0.0, |rate| poisson(random, rate(t as f64)));
    let attempts = match world.open_rate {
        Some(_) => wanted,
        None => poisson(random, users / (mean_s * factor + world.think_s)),
    };
    // As in a queue: slower near the capacity.
    factor /= (1.0 - attempts / world.capacity).max(0.05);
    let joined = (users - going.users).max(0.0).round();
    going.users = users;
    let ended =
        world.churn_s.map_or(0.0, |life| poisson(random, going.open / life).min(going.open));
    let opened = joined + ended;
    let ends = match world.churn_s {
        Some(life) => vec![(Ending::ClosedByUs, ended, life)],
        None => Vec::new(),
    };
    Second {
        t,
        users,
        wanted,
        attempts,
        factor,
        step_factors: BTreeMap::new(),
        slower: Vec::new(),
        failing: Vec::new(),
        retried: 0.0,
        attempted: opened,
        opened,
        reconnects: ended,
        connect_failed: 0.0,
        refused: 0.0,
        connect_ms: 0.4,
        connects_slower: Vec::new(),
        tls_ms: 3.0,
        login_ms: 5.0,
        ends,
        in_flight: attempts * mean_s * factor,
        backlog: 0.0,
        missed: 0.0,
        lateness_ms: random.uniform(0.05, 0.6),
        listen_dropped: 0.0,
        conntrack: 0.0,
    }
}

fn line(world: &World, going: &mut Going, second: &Second, phase: u16) -> Interval {
    let mut line = Interval { second: second.t as u64, phase, shards: 1, ..Interval::default() };
    let each = second.attempts / world.steps.len() as f64;
    for (step, mean_ms) in world.steps.iter().enumerate() {
        let row = row(&mut going.random, second, step, *mean_ms, each);
        line.steps.push(row);
    }
    places(world, &mut line);
    connections(world, going, &mut line, second);
    let population = &mut line.population;
    population.wanted = second.wanted as u64;
    population.unmet = second.missed as u64;
    population.begun = (second.wanted - second.missed).max(0.0) as u64;
    population.iterations_finished = each as u64;
    if second.wanted == 0.0 {
        let attempts: u64 = line.steps.iter().map(|row| row.count).sum();
        population.paused_us = (attempts as f64 * world.think_s * 1e6) as u64;
    }
    line.retries.retried = second.retried as u64;
    line.gauges.users_wanted = second.users as u64;
    line.gauges.users_present = second.users as u64;
    line.gauges.users_online = second.users as u64;
    line.gauges.in_flight = second.in_flight as u64;
    line.gauges.backlog = second.backlog as u64;
    line.generator.lateness.record_times((second.lateness_ms * MS) as u64, 20);
    let resources = Resources {
        cpu: Cpu { shard_cpu_max: 0.2, ..Cpu::default() },
        host_cpu: 0.3,
        listen_dropped: second.listen_dropped as u64,
        conntrack: (second.conntrack * 65_536.0) as u64,
        conntrack_max: 65_536,
        ..Resources::default()
    };
    line.generator.resources = Some(resources);
    line
}

/// Attempts of a step, with lognormal times and a heavy tail.
fn row(random: &mut Random, second: &Second, step: usize, mean_ms: f64, each: f64) -> StepInterval {
    let count = each.round().max(0.0);
    let mut row = StepInterval { step: step as u16, ..StepInterval::default() };
    let samples = count.min(SAMPLES_MAX);
    let more = count as u64 % (samples as u64).max(1);
    let factor = second.factor * second.step_factors.get(&step).copied().unwrap_or(1.0);
    for sample in 0..samples as u64 {
        let weight = count as u64 / samples as u64 + u64::from(sample < more);
        let mut ms = mean_ms * factor * (0.35 * normal(random)).exp();
        if random.chance(0.01) {
            ms *= random.uniform(1.5, 5.0);
        }
        let mut draw = random.unit();
        for (share, extra) in &second.slower {
            if draw < *share {
                ms += extra * random.uniform(1.0, 1.03);
                break;
            }
            draw -= share;
        }
        row.begun += weight;
        row.count += weight;
        row.latency.record_times((ms * MS) as u64, weight);
        let mut draw = random.unit();
        let failed = second.failing.iter().find(|(share, _, _)| {
            draw -= share;
            draw < 0.0
        });
        match failed {
            Some((_, cause, code)) => {
                throng_metrics::interval::add(&mut row.errors, *cause, weight);
                throng_metrics::interval::add(&mut row.codes, *code, weight);
            }
            None => {
                row.ok += weight;
                throng_metrics::interval::add(&mut row.codes, 200, weight);
            }
        }
    }
    if second.retried > 0.0 {
        row.retried.push((Cause::Timeout, second.retried as u64));
    }
    row
}

/// Distributes results evenly over the addresses; faults change them afterwards.
fn places(world: &World, line: &mut Interval) {
    let total = line.total();
    for index in 0..world.addresses {
        let address: SocketAddr = ([10, 0, 0, index as u8 + 1], 80).into();
        let mut row = TargetInterval::new(Place { target: 0, address: Some(address) });
        let share = total.count / world.addresses as u64;
        (row.begun, row.count, row.ok) = (share, share, total.ok / world.addresses as u64);
        row.ok = row.ok.min(row.count);
        let middle = total.latency.value_at(0.5);
        row.latency.record_times(middle, share);
        line.parts.targets.push(row);
    }
}

fn connections(world: &World, going: &mut Going, line: &mut Interval, second: &Second) {
    let ends = &mut line.connections.counts;
    (ends.attempted, ends.opened) = (second.attempted as u64, second.opened as u64);
    ends.reconnects = second.reconnects as u64;
    let mut ended = 0.0;
    for (how, count, age_s) in &second.ends {
        *how.of(ends) += *count as u64;
        ended += count.floor();
        for _ in 0..*count as usize {
            let age = match world.churn_s.is_some() && *how == Ending::ClosedByUs {
                true => going.random.exponential(*age_s),
                false => age_s + going.random.uniform(0.0, 0.01),
            };
            ResidenceInterval::of(&mut line.connections.residence, *how, false)
                .record((age * 1e9) as u64);
        }
    }
    let open = (going.open + second.opened.floor() - ended).max(0.0);
    line.gauges = Gauges { connections_open: open as u64, ..Gauges::default() };
    for place in 0..line.parts.targets.len() {
        let share = second.opened as u64 / line.parts.targets.len() as u64;
        line.parts.targets[place].connections_opened += share;
    }
    let slower: f64 = second.connects_slower.iter().map(|(count, _)| count).sum();
    let random = &mut going.random;
    let mut times = |ms: f64, count: f64| -> Vec<u64> {
        (0..count as usize).map(|_| (ms * MS * (0.3 * normal(random)).exp()) as u64).collect()
    };
    let quick = times(second.connect_ms, (second.opened - slower).max(0.0));
    let tls = times(second.tls_ms, if world.tls { second.opened } else { 0.0 });
    let login =
        times(second.login_ms, if world.kind == StepKind::Connect { second.opened } else { 0.0 });
    let connect = line.stage_mut(Stage::Connect);
    quick.iter().for_each(|time| connect.latency.record(*time));
    for (count, ms) in &second.connects_slower {
        for time in times_at(&mut going.random, *ms, *count) {
            connect.latency.record(time);
        }
    }
    connect.ok = connect.latency.count();
    connect.failed = second.connect_failed as u64;
    connect.errors = vec![(Cause::ConnectRefused, second.refused as u64)];
    for (stage, times) in [(Stage::Tls, tls), (Stage::Login, login)] {
        if !times.is_empty() {
            let row = line.stage_mut(stage);
            row.ok = times.len() as u64;
            times.iter().for_each(|time| row.latency.record(*time));
        }
    }
}

fn times_at(random: &mut Random, ms: f64, count: f64) -> Vec<u64> {
    (0..count as usize).map(|_| ((ms + random.uniform(0.2, 6.0)) * MS) as u64).collect()
}
