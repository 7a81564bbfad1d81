//! Runs with one fault each, one per finding.

use throng_base::Random;
use throng_metrics::{
    Cause, Ending, InstanceInterval, SampleInterval, Slow, StepKind, TargetInterval,
};

use super::{Second, Simulated, World, simulate};
use crate::finding::{Code, Level};
use crate::record::{BUSY, Facts, MissedRate, Watched};

/// A fault: the expected finding, its required level, and a run with it.
pub(super) type Fault = (Code, Level, fn(u64) -> Simulated);

pub(super) const FAULTS: [Fault; 28] = [
    (Code::GeneratorBound, Level::Likely, late),
    (Code::PortsExhausted, Level::Certain, |seed| failing(seed, Cause::PortsExhausted)),
    (Code::DescriptorLimit, Level::Certain, |seed| failing(seed, Cause::DescriptorsExhausted)),
    (Code::DescriptorLimit, Level::Likely, descriptors_of_target),
    (Code::SynLost, Level::Likely, syn_lost),
    (Code::AcceptQueueFull, Level::Certain, accept_queue),
    (Code::AcceptQueueFull, Level::Certain, accept_queue_of_slow_target),
    (Code::AcceptQueueFull, Level::Likely, mute),
    (Code::TargetRestarted, Level::Likely, |seed| restarted(seed, 6)),
    (Code::TargetRestarted, Level::Likely, |seed| restarted(seed, 1_000)),
    (Code::OneBadAddress, Level::Likely, |seed| bad_address(seed, true)),
    (Code::OneBadAddress, Level::Likely, |seed| bad_address(seed, false)),
    (Code::Unbalanced, Level::Likely, unbalanced),
    (Code::PlateauResidence, Level::Likely, plateau),
    (Code::ClosesFirst, Level::Certain, closes_first),
    (Code::ReconnectStorm, Level::Likely, storm),
    (Code::RateLimited, Level::Certain, |seed| limited(seed, 429)),
    (Code::RateLimited, Level::Likely, |seed| limited(seed, 503)),
    (Code::Saturated, Level::Likely, saturated_open),
    (Code::Saturated, Level::Likely, saturated_closed),
    (Code::TlsBound, Level::Likely, tls_bound),
    (Code::TlsHidden, Level::Hint, tls_hidden),
    (Code::ThinkBound, Level::Likely, think_bound),
    (Code::Amplified, Level::Certain, amplified),
    (Code::PeriodicStall, Level::Likely, |seed| stalls(seed, 7)),
    (Code::TwoPeaks, Level::Likely, two_peaks),
    (Code::WarmUp, Level::Likely, warm_up),
    (Code::Drift, Level::Likely, drift),
];

/// Faults that need errors or steps over time.
pub(super) const MORE: [Fault; 25] = [
    (Code::RisingErrors, Level::Certain, |seed| rising_errors(seed)),
    (Code::SlowStep, Level::Likely, slow_step),
    (Code::TwoPeaks, Level::Hint, cache),
    (Code::TooGood, Level::Certain, |seed| too_good(seed, true)),
    (Code::TooGood, Level::Hint, |seed| too_good(seed, false)),
    (Code::TimeUnaccounted, Level::Likely, |seed| unaccounted(seed, 0.8)),
    (Code::TimeUnaccounted, Level::Hint, |seed| unaccounted(seed, 0.94)),
    (Code::ConntrackFull, Level::Certain, conntrack_here),
    (Code::ConntrackFull, Level::Certain, conntrack_there),
    (Code::ConntrackFull, Level::Hint, conntrack_by_numbers),
    (Code::OwnDuplicates, Level::Certain, own_duplicates),
    (Code::HeadOfLine, Level::Likely, head_of_line),
    (Code::OneBadAddress, Level::Likely, dead_address),
    (Code::OneBadAddress, Level::Likely, |seed| bad_instance(seed, true)),
    (Code::OneBadAddress, Level::Likely, |seed| bad_instance(seed, false)),
    (Code::PeriodicStall, Level::Likely, stalls_by_work),
    (Code::PeriodicStall, Level::Likely, stalls_among_spikes),
    (Code::Amplified, Level::Certain, |seed| {
        let again = "haproxy_backend_retry_warnings_total{source=\"/run/h\",proxy=\"shop\"}";
        watched(simulate(&World::new(seed, 60), |_, _| {}), &[(again, |_| 10.0)])
    }),
    // Data of a monitor on the target's host makes them certain.
    (Code::DescriptorLimit, Level::Certain, |seed| {
        let open = "throng_process_descriptors{name=\"shop\"}";
        let limit = "throng_process_descriptors_limit{name=\"shop\"}";
        let rows: [Row; 2] = [(open, |at| (at * 40.0).min(1_024.0)), (limit, |_| 1_024.0)];
        watched(descriptors_of_target(seed), &rows)
    }),
    (Code::AcceptQueueFull, Level::Certain, |seed| {
        watched(mute(seed), &[("throng_listen_drops_total{port=\"80\"}", |_| 4.0)])
    }),
    (Code::TargetRestarted, Level::Certain, |seed| {
        let began = "throng_process_started_total{name=\"shop\"}";
        let ended = "throng_process_ended_total{name=\"shop\"}";
        watched(restarted(seed, 6), &[(began, at_70), (ended, at_70)])
    }),
    (Code::MemoryShort, Level::Certain, |seed| {
        watched(restarted(seed, 12), &[("node_vmstat_oom_kill", at_70)])
    }),
    (Code::MemoryShort, Level::Certain, |seed| {
        waiting(seed, "node_pressure_memory_stalled_seconds_total")
    }),
    (Code::DiskBound, Level::Certain, |seed| {
        waiting(seed, "node_pressure_io_stalled_seconds_total")
    }),
    (Code::Saturated, Level::Certain, |seed| watched(saturated_open(seed), &[(BUSY, |_| 0.97)])),
];

/// A series, and its value at a second.
type Row = (&'static str, fn(f64) -> f64);

/// Adds data as from a monitor of the target's host.
fn watched(made: Simulated, rows: &[Row]) -> Simulated {
    let row = |(name, value): &Row| Watched {
        source: "shop".into(),
        name: (*name).into(),
        points: (0..120).map(|at| (f64::from(at), value(f64::from(at)))).collect(),
    };
    let facts = Facts { watched: rows.iter().map(row).collect(), ..made.facts };
    Simulated { facts, ..made }
}

/// For 20 seconds, all threads of the host wait most of the time.
fn waiting(seed: u64, series: &'static str) -> Simulated {
    let made = simulate(&World::new(seed, 120), |second, _| {
        if (60..80).contains(&second.t) {
            second.factor *= 4.0;
        }
    });
    watched(made, &[(series, |at| if (61.0..81.0).contains(&at) { 0.7 } else { 0.01 })])
}

fn at_70(at: f64) -> f64 {
    if at == 70.0 { 1.0 } else { 0.0 }
}

fn late(seed: u64) -> Simulated {
    simulate(&World::new(seed, 120), |second, random| {
        if random.chance(0.5) {
            second.lateness_ms = random.uniform(20.0, 80.0);
        }
    })
}

fn failing(seed: u64, cause: Cause) -> Simulated {
    simulate(&World::new(seed, 120), |second, _| {
        if second.t > 60 {
            second.failing.push((0.2, cause, 0));
        }
    })
}

fn long_lived(seed: u64, seconds: usize) -> World {
    let phases = vec![(seconds, 5_000.0, 5_000.0)];
    World { kind: StepKind::Connect, think_s: 100.0, phases, ..World::new(seed, seconds) }
}

fn descriptors_of_target(seed: u64) -> Simulated {
    let mut open = 0.0;
    simulate(&long_lived(seed, 120), |second, random| {
        second.attempted = 40.0;
        second.opened = f64::min(40.0, 1_018.0 - open);
        second.connect_failed = second.attempted - second.opened;
        // Some connections end, and are replaced immediately.
        let ended = if random.chance(0.2) { 2.0 } else { 0.0 };
        second.ends = vec![(Ending::ClosedByUs, ended, 30.0)];
        open += second.opened - ended;
    })
}

fn syn_lost(seed: u64) -> Simulated {
    simulate(&World { churn_s: Some(2.0), ..World::new(seed, 120) }, |second, random| {
        second.opened += 1.0;
        if random.chance(0.3) {
            second.connects_slower = vec![(1.0, 1_000.0)];
        }
        if random.chance(0.05) {
            second.connects_slower.push((1.0, 2_000.0));
        }
    })
}

fn accept_queue(seed: u64) -> Simulated {
    let mut made = simulate(&World { churn_s: Some(2.0), ..World::new(seed, 120) }, {
        |second: &mut Second, random: &mut Random| {
            second.listen_dropped = if random.chance(0.5) { 5.0 } else { 0.0 };
            second.connects_slower = vec![(1.0, 1_000.0)];
        }
    });
    made.facts.same_host = true;
    made
}

/// Responses take longer than the run, and so do most connects.
fn accept_queue_of_slow_target(seed: u64) -> Simulated {
    let mut made = simulate(&World { churn_s: None, ..World::new(seed, 12) }, |second, _| {
        second.attempts = 0.0;
        second.attempted = if second.t == 0 { 50.0 } else { 0.0 };
        second.opened = second.attempted / 5.0;
        second.listen_dropped = if second.t < 10 { 40.0 } else { 0.0 };
    });
    made.facts.same_host = true;
    made
}

fn mute(seed: u64) -> Simulated {
    simulate(&World::new(seed, 120), |second, _| {
        second.slower = vec![(0.01, 200.0), (0.004, 600.0), (0.002, 1_400.0)];
    })
}

/// The target is unreachable for some seconds.
fn restarted(seed: u64, seconds: usize) -> Simulated {
    let begin = 60 + seed as usize % 20;
    simulate(&World::new(seed, 150), move |second, _| {
        let users = second.users;
        if second.t == begin {
            second.ends = vec![(Ending::Reset, users * 0.9, 40.0)];
        }
        if (begin..begin + seconds).contains(&second.t) {
            second.opened = 0.0;
            (second.attempted, second.connect_failed, second.refused) = (users, users, users);
            second.reconnects = users * 0.9;
            second.failing = vec![(1.0, Cause::ConnectRefused, 0)];
        }
        if second.t == begin + seconds {
            (second.attempted, second.opened) = (users * 0.9, users * 0.9);
        }
    })
}

fn bad_address(seed: u64, is_slow: bool) -> Simulated {
    let mut made = simulate(&World { addresses: 3, ..World::new(seed, 60) }, |_, _| {});
    for sum in &mut made.sums {
        let row = &mut sum.parts.targets[1];
        match is_slow {
            true => {
                let middle = row.latency.value_at(0.5);
                row.latency.record_times(middle * 3, row.count * 3);
            }
            false => row.ok -= row.count / 50,
        }
    }
    made
}

/// The second of three instances behind a load balancer is slow or fails.
fn bad_instance(seed: u64, is_slow: bool) -> Simulated {
    let mut made = bad_address(seed, is_slow);
    for sum in &mut made.sums {
        let instance = |row: TargetInterval| {
            let (count, failed, latency) = (row.count, row.failed(), row.latency);
            let name = row.address.map(|it| it.ip().to_string()).unwrap_or_default();
            InstanceInterval { target: 0, name, count, failed, latency }
        };
        sum.parts.instances =
            std::mem::take(&mut sum.parts.targets).into_iter().map(instance).collect();
    }
    made
}

/// No server listens at the address, so users rarely try it.
fn dead_address(seed: u64) -> Simulated {
    let mut made = simulate(&World { addresses: 3, ..World::new(seed, 60) }, |_, _| {});
    for sum in &mut made.sums {
        let row = &mut sum.parts.targets[1];
        (row.begun, row.count, row.ok) = (46, 46, 0);
    }
    made
}

/// Nearly all responses come from a cache, or are equal.
fn too_good(seed: u64, is_cache: bool) -> Simulated {
    let mut made = simulate(&World::new(seed, 60), |_, _| {});
    let mut random = Random::new(seed);
    for sum in &mut made.sums {
        let mut row = SampleInterval { sampled: 300, same: 1, ..SampleInterval::default() };
        match is_cache {
            true => row.cached = 200 + random.below(100),
            false => row.same = 298 + random.below(3),
        }
        sum.samples = vec![row];
        sum.steps.iter_mut().for_each(|step| step.bytes_in = 2_000 * step.count);
    }
    made
}

fn unbalanced(seed: u64) -> Simulated {
    let world = World { addresses: 3, churn_s: Some(3.0), ..World::new(seed, 90) };
    let mut made = simulate(&world, |_, _| {});
    for sum in &mut made.sums {
        let moved = sum.parts.targets[2].connections_opened / 2;
        sum.parts.targets[2].connections_opened -= moved;
        sum.parts.targets[0].connections_opened += moved;
    }
    made
}

/// 300 connections per second, each ended by the target after 8 s.
fn plateau(seed: u64) -> Simulated {
    simulate(&long_lived(seed, 90), |second, _| {
        (second.attempted, second.opened) = (300.0, 300.0);
        let ended = if second.t >= 8 { 300.0 } else { 0.0 };
        second.ends = vec![(Ending::ClosedByTarget, ended, 8.0)];
    })
}

fn closes_first(seed: u64) -> Simulated {
    simulate(&long_lived(seed, 90), |second, random| {
        let lost = if random.chance(0.5) { 3.0 } else { 0.0 };
        let age = random.uniform(1.0, 40.0);
        second.ends = vec![(Ending::Reset, lost, age), (Ending::ClosedByUs, 5.0, age)];
    })
}

fn storm(seed: u64) -> Simulated {
    let world = World { phases: vec![(150, 500.0, 500.0)], ..long_lived(seed, 150) };
    simulate(&world, |second, random| {
        if second.t == 70 {
            second.ends = vec![(Ending::Reset, 100.0, 40.0)];
        }
        if (71..82).contains(&second.t) {
            second.attempted = 200.0 + random.uniform(0.0, 100.0);
            second.reconnects = second.attempted;
            (second.connect_failed, second.opened) = (second.attempted * 0.9, 10.0);
        }
    })
}

fn rate_600(_: f64) -> f64 {
    600.0
}

fn limited(seed: u64, code: u16) -> Simulated {
    let world = World { open_rate: Some(rate_600), ..World::new(seed, 90) };
    simulate(&world, move |second, random| {
        if second.t >= 20 {
            // A limit of 250/s is enforced exactly for any rate.
            let seen = second.attempts.min(250.0);
            let _ = random;
            second.attempts = 250.0;
            second.failing = vec![(1.0 - seen.min(200.0) / 250.0, Cause::StatusUnexpected, code)];
        }
    })
    .settled(code)
}

impl Simulated {
    /// Removes the randomness of single attempts: the limiter is deterministic.
    fn settled(mut self, code: u16) -> Simulated {
        let mut timeline = crate::Timeline::default();
        let mut sums = vec![throng_metrics::Interval::default(); self.sums.len()];
        for second in 0..90u64 {
            let mut line = throng_metrics::Interval { second, shards: 1, ..<_>::default() };
            let offered = 300 + (second * 7_919) % 60;
            let ok = if second >= 20 { 200 } else { 190 };
            let refused = if second >= 20 { offered - ok } else { 0 };
            let mut row = throng_metrics::StepInterval {
                begun: ok + refused,
                count: ok + refused,
                ok,
                codes: vec![(200, ok), (code, refused)],
                errors: vec![(Cause::StatusUnexpected, refused)],
                ..<_>::default()
            };
            row.latency.record_times(9_000_000 + second * 1_000, ok);
            row.latency.record_times(1_000_000, refused);
            line.steps.push(row);
            timeline.add(&line, true, &line.gauges.clone(), |_| true);
            sums[0].merge_later(&line);
        }
        timeline.finish();
        self.timeline = timeline;
        self.sums = sums;
        self
    }
}

/// 600 per second for a target with a capacity of 500.
fn saturated_open(seed: u64) -> Simulated {
    let world = World { open_rate: Some(rate_600), capacity: 1e9, ..World::new(seed, 90) };
    let mut waiting = 0.0;
    simulate(&world, move |second, random| {
        let served = 500.0 + super::normal(random) * 15.0;
        waiting += second.wanted - served;
        second.attempts = served;
        second.in_flight = f64::min(waiting, 300.0);
        second.backlog = (waiting - 300.0).max(0.0);
        second.factor += waiting / 500.0 / 0.012;
    })
}

/// A ramp of users without pauses on a target with a capacity of 400 per second.
fn saturated_closed(seed: u64) -> Simulated {
    let phases = vec![(150, 1.0, 100.0)];
    let world = World { think_s: 0.0, capacity: 1e9, phases, ..World::new(seed, 150) };
    simulate(&world, |second, random| {
        let free = second.users / 0.05;
        second.attempts = free.min(400.0 + super::normal(random) * 12.0);
        second.factor *= second.users / second.attempts.max(1.0) / 0.012;
    })
}

fn tls_bound(seed: u64) -> Simulated {
    let phases = vec![(60, 50.0, 50.0), (60, 200.0, 200.0)];
    let world = World { tls: true, churn_s: Some(1.0), phases, ..World::new(seed, 120) };
    simulate(&world, |second, random| {
        let is_busy = second.t >= 60;
        second.tls_ms = if is_busy { 80.0 } else { 6.0 } * random.uniform(0.8, 1.2);
    })
}

fn tls_hidden(seed: u64) -> Simulated {
    let world = World { tls: true, ..World::new(seed, 240) };
    simulate(&world, |second, _| second.tls_ms = 60.0)
}

fn think_bound(seed: u64) -> Simulated {
    let mut made = simulate(&World { think_s: 2.0, ..World::new(seed, 120) }, |_, _| {});
    made.facts.missed_rates =
        vec![MissedRate { text: "http rate > 100/s".into(), figure: 24.8, wanted: 100.0 }];
    made
}

fn amplified(seed: u64) -> Simulated {
    simulate(&World::new(seed, 60), |second, _| second.retried = second.attempts * 0.05)
}

fn stalls(seed: u64, period: usize) -> Simulated {
    let first = seed as usize % period;
    simulate(&World::new(seed, 120), move |second, _| {
        if second.t % period == first {
            second.slower = vec![(0.2, 400.0)];
        }
    })
}

/// A stall per minute on a busy host, which causes other slow requests.
fn stalls_among_spikes(seed: u64) -> Simulated {
    let first = seed as usize % 60;
    let spikes = [(101, 400.0), (215, 420.0), (401, 450.0), (559, 430.0), (621, 410.0)];
    simulate(&World::new(seed, 660), move |second, _| {
        let spike = spikes.iter().find(|(at, _)| (at + first) % 660 == second.t);
        if second.t % 60 == first {
            second.slower = vec![(0.4, 1_500.0)];
        } else if let Some((_, ms)) = spike {
            second.slower = vec![(0.03, *ms)];
        }
    })
}

fn rate_of_two(t: f64) -> f64 {
    if t < 120.0 { 100.0 } else { 160.0 }
}

/// A stall every 1,200 requests, at two rates: every 12 s, then every 7.5 s.
pub(super) fn stalls_by_work(seed: u64) -> Simulated {
    let phases = vec![(120, 100.0, 100.0), (100, 160.0, 160.0)];
    let world = World { open_rate: Some(rate_of_two), phases, ..World::new(seed, 220) };
    let mut done = 120.0 * (seed % 10) as f64;
    simulate(&world, move |second, _| {
        let before = done;
        done += second.attempts;
        if (done / 1_200.0).floor() > (before / 1_200.0).floor() {
            second.slower = vec![(0.2, 400.0)];
        }
    })
}

fn two_peaks(seed: u64) -> Simulated {
    let world = World { steps: vec![1.5], ..World::new(seed, 120) };
    let mut made = simulate(&world, |second, _| second.slower = vec![(0.3, 40.0)]);
    // The head is sent immediately, and the body waits.
    let row = &mut made.sums[0].steps[0];
    row.first_byte.record_times(1_500_000, row.count);
    made
}

fn cache(seed: u64) -> Simulated {
    let world = World { steps: vec![2.0], ..World::new(seed, 120) };
    simulate(&world, |second, _| second.slower = vec![(0.05, 90.0)])
}

fn warm_up(seed: u64) -> Simulated {
    simulate(&World { sigma: 0.05, ..World::new(seed, 400) }, |second, _| {
        second.factor *= 1.0 + 1.2 * (-(second.t as f64) / 25.0).exp();
    })
}

/// 2 % a minute.
fn drift(seed: u64) -> Simulated {
    let world = World { phases: vec![(1_800, 50.0, 50.0)], ..World::new(seed, 1_800) };
    simulate(&world, |second, _| second.factor *= 1.0 + 0.02 * second.t as f64 / 60.0)
}

fn rising_errors(seed: u64) -> Simulated {
    let phases = vec![(60, 20.0, 20.0), (60, 80.0, 80.0)];
    simulate(&World { phases, ..World::new(seed, 120) }, |second, _| {
        if second.t > 62 {
            second.failing = vec![(0.05, Cause::Timeout, 0)];
        }
    })
}

fn slow_step(seed: u64) -> Simulated {
    let world = World { steps: vec![10.0, 12.0, 15.0], ..World::new(seed, 240) };
    simulate(&world, |second, _| {
        let slower = 1.0 + 6.0 * second.t as f64 / 240.0;
        second.step_factors.insert(1, slower);
    })
}

/// Some requests never end, and their users wait.
fn unaccounted(seed: u64, share: f64) -> Simulated {
    simulate(&World::new(seed, 120), |second, _| second.attempts *= share)
}

/// Connects that time out because a table is full.
fn timing_out(second: &mut Second) {
    (second.attempted, second.connect_failed) = (second.attempted + 100.0, 100.0);
    second.failing.push((0.05, Cause::ConnectTimeout, 0));
}

fn conntrack_here(seed: u64) -> Simulated {
    simulate(&World::new(seed, 120), |second, _| {
        second.conntrack = second.t as f64 / 80.0;
        if second.t > 80 {
            second.conntrack = 1.0;
            timing_out(second);
        }
    })
}

fn conntrack_there(seed: u64) -> Simulated {
    let made = simulate(&World::new(seed, 120), |second, _| {
        if second.t > 80 {
            timing_out(second);
        }
    });
    let rows: [Row; 3] = [
        ("node_nf_conntrack_entries", |at| (at * 800.0).min(65_536.0)),
        ("node_nf_conntrack_entries_limit", |_| 65_536.0),
        ("node_nf_conntrack_stat_drop", |at| if at > 82.0 { 20.0 } else { 0.0 }),
    ];
    watched(made, &rows)
}

fn conntrack_by_numbers(seed: u64) -> Simulated {
    let world = World { churn_s: None, ..World::new(seed, 200) };
    simulate(&world, |second, _| {
        (second.attempted, second.opened) = (650.0, 650.0);
        second.ends = vec![(Ending::ClosedByUs, 650.0, 1.0)];
        if second.t > 100 {
            timing_out(second);
        }
    })
}

/// Repeated values, which the target rejects correctly.
fn own_duplicates(seed: u64) -> Simulated {
    let mut made = simulate(&World::new(seed, 120), |second, _| {
        if second.t > 40 {
            second.failing = vec![(0.3, Cause::StatusUnexpected, 409)];
        }
    });
    let row = SampleInterval {
        step: 0,
        followed: 20_000,
        repeated: 6_100,
        conflicts: 6_000,
        conflicts_repeated: 5_900,
        ..SampleInterval::default()
    };
    made.sums[0].samples.push(row);
    made
}

fn head_of_line(seed: u64) -> Simulated {
    let mut made = simulate(&World::new(seed, 120), |second, _| {
        second.slower = vec![(0.03, 220.0)];
        second.in_flight = 200.0;
        second.opened = if second.t == 0 { 50.0 } else { 0.0 };
    });
    let sum = &mut made.sums[0];
    sum.connections.counts.http2 = sum.connections.counts.opened;
    (sum.tcp.count, sum.tcp.out_of_order) = (3_000, 400);
    let slow = |(user, at_ns)| Slow { user, at_ns, latency_ns: 240_000_000, ..Slow::default() };
    sum.slowest = [(1, 5_000), (1, 5_100), (1, 5_200), (1, 9_000_000_000), (2, 40_000_000_000)]
        .map(slow)
        .to_vec();
    made
}
