//! A record that is the same wherever it is written: ten minutes of a shop, with a slow spell in
//! its middle. Pictures of the page are taken of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throng_base::{Said, StepId};
use throng_host::HostFacts;
use throng_metrics::{
    Cause, Comparison, Cpu, Ending, Interval, Measure, ResidenceInterval, Resources, Stage,
    StepInterval, Subject, Threshold,
};
use throng_results::{
    BuildInfo, Event, GeneratorInfo, LivePage, MonitorInfo, PhaseInfo, Recorder, Run, RunInfo,
    StepInfo, TablesInfo, TargetsInfo, ThresholdInfo, timestamp,
};

const SECOND_NS: u64 = 1_000_000_000;
const SECONDS: u64 = 600;
/// When the phases begin: warm-up, ramp, hold.
const PHASES: [u64; 3] = [0, 30, 210];
/// The slow spell.
const SLOW: std::ops::Range<u64> = 330..400;
/// Each step's name, its median in microseconds, and its share of the attempts.
const STEPS: [(&str, u64, f64); 4] = [
    ("GET /", 2_400, 0.5),
    ("search", 9_000, 0.3),
    ("add to basket", 5_200, 0.15),
    ("check out", 31_000, 0.05),
];
/// Of the logarithms of times, in steps of a twentieth of all attempts: some are much slower.
const SPREAD: [f64; 20] = [
    0.70, 0.76, 0.80, 0.84, 0.88, 0.91, 0.94, 0.97, 1.0, 1.03, 1.06, 1.1, 1.15, 1.2, 1.27, 1.36,
    1.5, 1.75, 2.3, 4.6,
];

/// Writes the record into a directory that is not there.
pub(crate) fn record(directory: &Path) {
    record_of(directory, BEGUN, SECONDS);
}

/// The same begun at another time, and over after so many seconds.
pub(crate) fn record_of(directory: &Path, begun: Duration, seconds: u64) {
    let mut info = info(begun, seconds);
    let scenario =
        "name: spring sale\ntarget: https://shop.example\nload:\n  - {users: 400, for: 10m}\n";
    let mut recorder = Recorder::create(directory, &info, scenario).expect("a record");
    for event in events(seconds) {
        recorder.event(&event).expect("an event");
    }
    for second in 0..seconds {
        recorder.interval(&interval(second)).expect("a line");
    }
    info.time.ended = Some(timestamp(begun + Duration::from_secs(seconds)));
    recorder.finish(&info).expect("an end");
    // As at the end of a run, when its record has been summed up.
    let summary = Run::open(directory).expect("a run").summary().expect("a summary");
    info.end.outcome = summary.info.end.outcome;
    recorder.finish(&info).expect("an end");
}

/// What a viewer who comes after `from` seconds is told until `to`, by the names of the messages.
pub(crate) fn live(from: u64, to: u64) -> Vec<(&'static str, Value)> {
    let mut page = LivePage::new(Arc::new(info(BEGUN, SECONDS)));
    for mut event in events(SECONDS) {
        let has_been = event.at_ns_mut().is_none_or(|at_ns| *at_ns < from * SECOND_NS);
        if has_been {
            page.event(&event);
        }
    }
    (0..from).for_each(|second| {
        page.line(interval(second));
    });
    let mut all = page.all();
    all["recorded"] = json!(true);
    all["status"] = json!([{"load": "shoppers", "phase": "hold", "users": users(to), "per_second": null, "paused": false}]);
    let mut told = vec![("all", all)];
    for second in from..to {
        page.line(interval(second));
        told.push(("second", page.second()));
    }
    told.push(("figures", page.figures()));
    told
}

/// 21 November 2026.
pub(crate) const BEGUN: Duration = Duration::from_secs(1_795_262_581);

fn info(begun: Duration, seconds: u64) -> RunInfo {
    let step = |(name, ..): &(&str, u64, f64)| StepInfo {
        name: (*name).into(),
        kind: "http".into(),
        ..StepInfo::default()
    };
    let names = ["warm-up", "ramp", "hold"].into_iter().zip(PHASES);
    let ends = PHASES.into_iter().skip(1).chain([seconds]);
    let phase = |((name, from), to): ((&str, u64), u64)| PhaseInfo {
        name: name.into(),
        measured: from > 0,
        planned_ns: Some((to - from) * SECOND_NS),
        users_planned: Some(users(to - 1)),
        ..PhaseInfo::default()
    };
    let threshold = |text: &str, measure, value| {
        ThresholdInfo::from(&Threshold::new(
            text,
            Subject::Steps((0..4).map(StepId).collect()),
            measure,
            Comparison::Less,
            value,
        ))
    };
    RunInfo {
        id: "20261121-120301-0000000001".into(),
        build: BuildInfo { version: "0.1.0".into(), ..BuildInfo::default() },
        command: ["throng", "run", "shop.yaml"].map(String::from).to_vec(),
        labels: [("build".into(), "2.4.1".into())].into(),
        seed: 42,
        generator: GeneratorInfo { host: host(), shards: 2, ..GeneratorInfo::default() },
        targets: TargetsInfo {
            urls: vec!["https://shop.example".into()],
            ..TargetsInfo::default()
        },
        tables: TablesInfo {
            steps: STEPS.iter().map(step).collect(),
            phases: names.zip(ends).map(phase).collect(),
            monitors: vec![MonitorInfo { name: "database".into(), ..MonitorInfo::default() }],
            thresholds: vec![
                threshold("http p95 < 200ms", Measure::Quantile(0.95), 200e6),
                threshold("errors < 0.05%", Measure::FailedShare, 0.0005),
            ],
            ..TablesInfo::default()
        },
        users_planned: 400,
        precision_ns: 1_000_000,
        ..RunInfo::new("spring sale", begun)
    }
}

fn host() -> HostFacts {
    HostFacts {
        hostname: Some("load-1".into()),
        kernel: Some("6.18.5".into()),
        os: Some("Debian GNU/Linux 13 (trixie)".into()),
        cpu_model: Some("AMD EPYC 7B13".into()),
        cores: Some(8),
        cores_usable: Some(8),
        memory_bytes: Some(24 << 30),
        throng_version: "0.1.0".into(),
        ..HostFacts::default()
    }
}

fn phase_at(second: u64) -> u16 {
    PHASES.iter().filter(|from| **from <= second).count() as u16 - 1
}

fn users(second: u64) -> u64 {
    match second {
        0..30 => 40,
        30..210 => 40 + (second - 30) * 2,
        _ => 400,
    }
}

/// Between -1 and 1, uneven as things are.
fn wave(second: u64, step: u64) -> f64 {
    let at = second as f64 + step as f64 * 17.0;
    (0.45 * (at / 7.3).sin() + 0.3 * (at / 2.9).sin() + 0.25 * (at * 1.7).sin()).clamp(-1.0, 1.0)
}

/// How much slower the shop is than by itself.
fn slowness(second: u64) -> f64 {
    let load = users(second) as f64 / 400.0;
    let spell = match SLOW.contains(&second) {
        true => 7.0 * (((second - SLOW.start) as f64) / 70.0 * std::f64::consts::PI).sin(),
        false => 0.0,
    };
    0.6 + 0.4 * load * load + spell
}

fn interval(second: u64) -> Interval {
    let phase = phase_at(second);
    let mut one = Interval { second, phase, shards: 2, ..Interval::default() };
    let present = users(second);
    let slow = slowness(second);
    for (step, (_, median_us, share)) in (0..).zip(STEPS) {
        let wanted = present as f64 * 9.0 * share * (1.0 + 0.04 * wave(second, u64::from(step)));
        let count = (wanted / (1.0 + (slow - 1.0).max(0.0) / 9.0)) as u64;
        let failed = match SLOW.contains(&second) && step >= 2 {
            true => count / 25,
            false => 0,
        };
        one.steps.push(attempts(second, step, (count, failed), median_us as f64 * 1e3 * slow));
    }
    opening(&mut one);
    let in_flight = one.steps.iter().map(|row| row.latency.mean() * row.count as f64 / 1e9);
    one.gauges.in_flight = in_flight.sum::<f64>() as u64;
    one.gauges.users_wanted = present;
    one.gauges.users_present = present;
    one.gauges.users_online = present;
    one.gauges.connections_open = present;
    one.population.iterations_started = one.steps[0].count;
    one.population.iterations_finished = one.steps[0].count;
    one.traffic.bytes_in = one.steps.iter().map(|row| row.bytes_in).sum();
    one.traffic.bytes_out = one.steps.iter().map(|row| row.bytes_out).sum();
    for at in 0..100 {
        one.generator.lateness.record(40_000 + at * at * 60 + (wave(second, at) * 30e3) as u64);
    }
    let busy = present as f64 / 400.0;
    one.generator.resources = Some(Resources {
        cpu: Cpu {
            cpu_user_ns: (busy * 210e6 + wave(second, 3) * 9e6) as u64 + 20_000_000,
            cpu_system_ns: (busy * 380e6 + wave(second, 5) * 12e6) as u64 + 20_000_000,
            ..Cpu::default()
        },
        memory_bytes: 38_000_000 + present * 11_000,
        host_cpu: 0.04 + 0.11 * busy,
        ..Resources::default()
    });
    one
}

fn attempts(second: u64, step: u16, (count, failed): (u64, u64), median_ns: f64) -> StepInterval {
    let ok = count - failed;
    let mut row = StepInterval { step, begun: count, count, ok, ..StepInterval::default() };
    for (at, factor) in SPREAD.iter().enumerate() {
        let share = count / 20 + u64::from(at as u64 * 13 % 20 < count % 20);
        let ns = median_ns * factor * (1.0 + 0.08 * wave(second, at as u64 + 40));
        row.latency.record_times(ns as u64, share);
        row.first_byte.record_times((ns * 0.93) as u64, share);
    }
    if failed > 0 {
        row.errors = vec![(Cause::StatusUnexpected, failed / 4 * 3), (Cause::Timeout, failed)];
        row.errors[1].1 -= row.errors[0].1;
        row.errors.retain(|(_, count)| *count > 0);
        row.codes = vec![(503, row.errors[0].1)];
    }
    row.codes.push((200, ok));
    (row.bytes_in, row.bytes_out) = (count * 5_400, count * 310);
    row
}

/// Users who come open a connection; one in a hundred is reset in the slow spell.
fn opening(one: &mut Interval) {
    let came = match one.second {
        0 => 40,
        second => users(second) - users(second - 1),
    };
    let reset = u64::from(SLOW.contains(&one.second) && one.second.is_multiple_of(5));
    let opened = came + reset;
    (one.connections.counts.attempted, one.connections.counts.opened) = (opened, opened);
    (one.connections.counts.reconnects, one.connections.counts.reset) = (reset, reset);
    one.population.started = came;
    if reset > 0 {
        let lived = ResidenceInterval::of(&mut one.connections.residence, Ending::Reset, false);
        lived.record_times(one.second * SECOND_NS / 2, reset);
    }
    for (stage, time_ns) in [(Stage::Connect, 310_000.0), (Stage::Tls, 1_900_000.0)] {
        let row = one.stage_mut(stage);
        (row.began, row.ok) = (opened, opened);
        let wave = 1.0 + 0.2 * wave(one.second, 9);
        one.stage_mut(stage).latency.record_times((time_ns * wave) as u64, opened);
    }
}

fn events(seconds: u64) -> Vec<Event> {
    let mut events = Vec::new();
    let begun = |at: usize| Event::PhaseBegun { at_ns: PHASES[at] * SECOND_NS, phase: at as u16 };
    let ended = |at: usize, to: u64| Event::PhaseEnded { at_ns: to * SECOND_NS, phase: at as u16 };
    let name = "connections{pool=\"orders\"}".to_string();
    events.push(begun(0));
    events.push(Event::Series { at_ns: 0, monitor: 0, number: 0, name, counter: false });
    for second in (0..seconds).step_by(5) {
        match second {
            30 => events.extend([ended(0, 30), begun(1)]),
            210 => events.extend([ended(1, 210), begun(2)]),
            325 => events.push(mark(328, "deploy 2.4.1")),
            340 => events.push(failure(342)),
            _ => {}
        }
        let figure = users(second) as f64 / 20.0 * slowness(second).min(4.0);
        let values = vec![(0, figure.round())];
        let at_ns = second * SECOND_NS;
        events.push(Event::Scrape { at_ns, monitor: 0, values, left_out: 0 });
    }
    events.push(ended(2, seconds));
    events.push(Event::RunEnded { at_ns: seconds * SECOND_NS });
    events
}

fn mark(second: u64, name: &str) -> Event {
    Event::Marked { at_ns: second * SECOND_NS, name: name.into() }
}

fn failure(second: u64) -> Event {
    Event::Failure {
        at_ns: second * SECOND_NS + 345_678_901,
        step: 3,
        cause: Cause::StatusUnexpected,
        detail: Said::of_others("HTTP/1.1 503 Service Unavailable"),
        evidence: None,
    }
}
