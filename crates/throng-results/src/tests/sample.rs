//! Sample runs: one with two phases, two steps and a few failures; and one with transactions and a
//! rendezvous that a rule stopped.

pub(crate) mod capacity;
pub(crate) mod duel;
mod findings;
pub(crate) mod since;

pub(crate) use findings::judged;

use throng_host::HostFacts;
use throng_metrics::{
    Cause, Comparison, Counter, Cpu, DeliveryCounter, DeliveryInterval, Ending, Interval, Measure,
    ResidenceInterval, Resources, Stage, StepInterval, Subject, Threshold,
};

use throng_base::Said;

use crate::collector::Collector;
use crate::directory::{
    BuildInfo, GeneratorInfo, PhaseInfo, RunInfo, StepInfo, TablesInfo, TargetsInfo, ThresholdInfo,
};
use crate::event::{Event, StopBy};
use crate::summary::Summary;

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

pub(crate) fn host() -> HostFacts {
    let text = |text: &str| Some(text.to_string());
    HostFacts {
        hostname: text("box-1"),
        kernel: text("6.18.5"),
        os: text("Debian GNU/Linux 13 (trixie)"),
        cpu_model: text("AMD EPYC 7B13"),
        cores: Some(2),
        cores_usable: Some(2),
        cgroup_cores_max: None,
        memory_bytes: Some(24 << 30),
        cgroup_memory_bytes_max: Some(16 << 30),
        descriptors_soft_max: Some(1024),
        descriptors_hard_max: Some(20_000),
        nr_open: Some(1_048_576),
        file_max: Some(2_000_000),
        port_range: Some((32_768, 60_999)),
        tcp_tw_reuse: Some(2),
        somaxconn: Some(4096),
        tcp_mem_pages: Some([287_901, 383_869, 575_802]),
        clock_source: text("tsc"),
        virtualisation: text("KVM"),
        throng_version: "0.1.0".into(),
    }
}

pub(crate) fn threshold(
    text: &str,
    measure: Measure,
    sign: Comparison,
    value: f64,
) -> ThresholdInfo {
    let subject = Subject::Steps(vec![throng_base::StepId(0), throng_base::StepId(1)]);
    let (text, comparison) = (text.to_string(), sign);
    let (phase, with_pauses) = (None, false);
    let threshold = Threshold {
        phase,
        with_pauses,
        ..Threshold::new(text, subject, measure, comparison, value)
    };
    ThresholdInfo::from(&threshold)
}

pub(crate) fn info() -> RunInfo {
    let step = |name: &str, kind: &str| StepInfo {
        name: name.into(),
        kind: kind.into(),
        ..StepInfo::default()
    };
    let phase = |name: &str, measured: bool, seconds: u64| PhaseInfo {
        load: 0,
        name: name.into(),
        measured,
        planned_ns: Some(seconds * SECOND_NS),
        users_planned: None,
        stairs: None,
    };
    let wall = std::time::Duration::from_secs(1_795_262_581);
    let mut info = RunInfo {
        id: "20261121-120301-0000000001".into(),
        build: BuildInfo { version: "0.1.0".into(), commit: "10d8f4b21".into() },
        command: vec!["throng".into(), "bench".into(), "https://127.0.0.1:8443/".into()],
        seed: 42,
        generator: GeneratorInfo { host: host(), shards: 2, ..GeneratorInfo::default() },
        targets: TargetsInfo {
            urls: vec!["https://127.0.0.1:8443".into()],
            ..TargetsInfo::default()
        },
        tables: TablesInfo {
            steps: vec![step("GET /", "http"), step("log in", "request")],
            phases: vec![phase("warm-up", false, 2), phase("load", true, 10)],
            thresholds: vec![
                threshold("http p99 < 50ms", Measure::Quantile(0.99), Comparison::Less, 50e6),
                threshold("errors < 0.1%", Measure::FailedShare, Comparison::Less, 0.001),
            ],
            ..TablesInfo::default()
        },
        users_planned: 64,
        ..RunInfo::new("quick check", wall)
    };
    info.time.ended = Some(crate::timestamp(wall + std::time::Duration::from_secs(12)));
    info
}

/// A second of the run; the warm-up ends before the third.
pub(crate) fn interval(second: u64, phase: u16) -> Interval {
    let mut interval = Interval { second, phase, shards: 2, ..Interval::default() };
    let mut get = StepInterval { step: 0, count: 10_000, ok: 9_990, ..StepInterval::default() };
    for n in 0..500 {
        get.latency.record_times(400_000 + n * n * 10, 20);
        get.first_byte.record_times(390_000 + n * n * 8, 20);
    }
    get.errors = vec![(Cause::StatusUnexpected, 8), (Cause::Timeout, 2)];
    get.codes = vec![(503, 8), (200, 9_990)];
    (get.bytes_in, get.bytes_out) = (8_230_000, 452_000);
    let mut login = StepInterval { step: 1, count: 100, ok: 100, ..StepInterval::default() };
    (0..100).for_each(|n| login.latency.record(3_000_000 + n * 10_000));
    (login.bytes_in, login.bytes_out) = (1_000, 2_000);
    interval.steps = vec![get, login];
    let connect = interval.stage_mut(Stage::Connect);
    connect.ok = 6;
    (0..6).for_each(|n| connect.latency.record(50_000 + n * 1_000));
    let tls = interval.stage_mut(Stage::Tls);
    tls.ok = 6;
    (0..6).for_each(|n| tls.latency.record(700_000 + n * 10_000));
    (interval.connections.counts.attempted, interval.connections.counts.opened) = (6, 6);
    interval.connections.counts.closed_by_us = 5;
    interval.population.iterations_started = 10_100;
    interval.population.iterations_finished = 10_100;
    interval.population.started = 6;
    (interval.gauges.users_online, interval.gauges.connections_open) = (64, 64);
    (interval.traffic.bytes_in, interval.traffic.bytes_out) = (8_231_000, 454_000);
    (0..1_000).for_each(|n| interval.generator.lateness.record(20_000 + n * 50));
    interval.generator.resources = Some(Resources {
        cpu: Cpu { cpu_user_ns: 300_000_000, cpu_system_ns: 650_000_000, ..Cpu::default() },
        memory_bytes: 45_200_000 + second,
        host_cpu: 0.61,
        ..Resources::default()
    });
    interval
}

pub(crate) fn intervals() -> Vec<Interval> {
    (0..12).map(|second| interval(second, u16::from(second >= 2))).collect()
}

pub(crate) fn events() -> Vec<Event> {
    let detail = "HTTP/1.1 503 Service Unavailable\r\n\x1b[31mtry again later".to_string();
    vec![
        Event::PhaseBegun { at_ns: 0, phase: 0 },
        Event::PhaseEnded { at_ns: 2 * SECOND_NS, phase: 0 },
        Event::PhaseBegun { at_ns: 2 * SECOND_NS, phase: 1 },
        Event::Failure {
            at_ns: 2_345_678_901,
            step: 0,
            cause: Cause::StatusUnexpected,
            detail: Said::of_others(detail),
            evidence: None,
        },
        Event::Notice { at_ns: 5 * SECOND_NS, text: "all is well".into() },
        Event::PhaseEnded { at_ns: 12 * SECOND_NS, phase: 1 },
        Event::RunEnded { at_ns: 12 * SECOND_NS + 3_000_000 },
    ]
}

/// The first run with a transaction, a rendezvous, log lines, and thresholds of all kinds.
pub(crate) fn shop_info() -> RunInfo {
    let mut info = info();
    let step = |name: &str, kind: &str| StepInfo {
        name: name.into(),
        kind: kind.into(),
        ..StepInfo::default()
    };
    info.tables.steps.push(step("check out: basket, address and payment", "transaction"));
    info.tables.steps.push(step("doors open", "rendezvous"));
    let threshold = |text: &str, subject: Subject, measure, value, phase, with_pauses| {
        let (text, comparison) = (text.to_string(), Comparison::LessOrEqual);
        let threshold = Threshold {
            phase,
            with_pauses,
            ..Threshold::new(text, subject, measure, comparison, value)
        };
        ThresholdInfo::from(&threshold)
    };
    let steps = |step: u16| Subject::Steps(vec![throng_base::StepId(step)]);
    let p95 = Measure::Quantile(0.95);
    let text = "check out: basket, address and payment.with_pauses p95 <= 1s in load";
    info.tables.thresholds.push(threshold(text, steps(2), p95, 1e9, Some(1), true));
    let resets = Subject::Counter(Counter::ConnectionsReset);
    info.tables.thresholds.push(threshold(
        "connections.reset <= 5",
        resets,
        Measure::Count,
        5.0,
        None,
        false,
    ));
    let received = Subject::Counter(Counter::BytesIn);
    info.tables.thresholds.push(threshold(
        "bytes.in rate <= 1 MB/s in load",
        received,
        Measure::Rate,
        1e6,
        Some(1),
        false,
    ));
    info.tables.thresholds.push(threshold(
        "upgrade p95 <= 1s",
        Subject::Stage(Stage::Upgrade),
        p95,
        1e9,
        None,
        false,
    ));
    info
}

pub(crate) fn shop_intervals() -> Vec<Interval> {
    let mut intervals = intervals();
    for interval in &mut intervals {
        let mut shop = StepInterval { step: 2, count: 50, ok: 48, ..StepInterval::default() };
        shop.errors = vec![(Cause::StatusUnexpected, 2)];
        (0..50).for_each(|n| shop.latency.record(6_000_000 + n * 20_000));
        (0..50).for_each(|n| shop.with_pauses.record(2_006_000_000 + n * 20_000_000));
        let mut wait = StepInterval { step: 3, count: 20, ok: 18, ..StepInterval::default() };
        wait.errors = vec![(Cause::RendezvousTimeout, 2)];
        wait.latency.record_times(900_000_000, 18);
        wait.latency.record_times(5_000_000_000, 2);
        interval.steps.extend([shop, wait]);
    }
    intervals
}

pub(crate) fn shop_events() -> Vec<Event> {
    let mut events = events();
    let line = |user: u64| Event::Log {
        at_ns: 3 * SECOND_NS + user * 1_234_567,
        user: user * 37,
        text: format!(
            "basket {user} \x1b[31mis empty\n{}",
            "though it was filled ".repeat(if user == 1 { 9 } else { 1 })
        ),
    };
    let end = events.split_off(5);
    events.extend((1..=12).map(line));
    let reason = "half of the baskets are \x1b[31mempty".to_string();
    events.push(Event::Stopped {
        at_ns: 11 * SECOND_NS,
        reason: Said::of_others(reason),
        by: StopBy::Rule,
    });
    events.extend(end);
    events
}

/// A million users on long-lived connections: they start within 50 seconds, stay for ten minutes,
/// and leave within 20 seconds. Three lose their connections.
pub(crate) fn im_info() -> RunInfo {
    let step = |name: &str, kind: &str| StepInfo {
        name: name.into(),
        kind: kind.into(),
        ..StepInfo::default()
    };
    let phase = |name: &str, users: u64| PhaseInfo {
        load: 0,
        name: name.into(),
        measured: true,
        planned_ns: None,
        users_planned: Some(users),
        stairs: None,
    };
    let threshold = |text: &str, subject, measure, comparison, value, phase| {
        let (text, with_pauses) = (text.to_string(), false);
        let threshold = Threshold {
            phase,
            with_pauses,
            ..Threshold::new(text, subject, measure, comparison, value)
        };
        ThresholdInfo::from(&threshold)
    };
    let (least, less) = (Comparison::GreaterOrEqual, Comparison::Less);
    let lost = Subject::Counter(Counter::HeartbeatsLost);
    let (count, share, p99) = (Measure::Count, Measure::ShareOfWhole, Measure::Quantile(0.99));
    let million = 1e6;
    RunInfo {
        name: "a million people in an IM server".into(),
        targets: TargetsInfo { urls: vec!["ws://127.0.0.1:8089".into()], ..info().targets },
        tables: TablesInfo {
            steps: vec![
                step("connect /acc", "connect"),
                step("login", "request"),
                step("stay", "stay"),
                step("heartbeat", "heartbeat"),
                step("broadcast", "message"),
                step("someone went offline", "message"),
            ],
            phases: vec![phase("fill", MILLION), phase("hold", MILLION), phase("drain", 0)],
            thresholds: vec![
                threshold(
                    "users.online >= 999_990 in hold",
                    Subject::UsersOnline,
                    count,
                    least,
                    million - 10.0,
                    Some(1),
                ),
                threshold(
                    "users.present >= 1M in hold",
                    Subject::UsersPresent,
                    count,
                    least,
                    million,
                    Some(1),
                ),
                threshold("connect p99 < 3s", Subject::Stage(Stage::Connect), p99, less, 3e9, None),
                threshold("heartbeats.lost < 0.01%", lost, share, less, 1e-4, None),
            ],
            ..info().tables
        },
        users_planned: MILLION,
        ..info()
    }
}

const MILLION: u64 = 1_000_000;
const FILL_SECONDS: u64 = 50;
const HOLD_SECONDS: u64 = 600;
const DRAIN_SECONDS: u64 = 20;

pub(crate) fn im_intervals() -> Vec<Interval> {
    (0..FILL_SECONDS + HOLD_SECONDS + DRAIN_SECONDS).map(im_interval).collect()
}

fn im_interval(second: u64) -> Interval {
    let drain = FILL_SECONDS + HOLD_SECONDS;
    let phase = u16::from(second >= FILL_SECONDS) + u16::from(second >= drain);
    let mut one = Interval { second, phase, shards: 2, ..Interval::default() };
    let came = ((second + 1) * 20_000).min(MILLION);
    let left = (second + 1).saturating_sub(drain) * 50_000;
    one.gauges.users_wanted = came - left;
    one.gauges.users_present = came - left;
    one.gauges.users_online = came - left;
    one.gauges.connections_open = came - left;
    match phase {
        0 => im_fill(&mut one),
        2 => im_drain(&mut one),
        _ => {}
    }
    im_hold(&mut one, came - left);
    // Three users lose their connections, and are back a second later.
    if second == 300 {
        (one.gauges.users_online, one.gauges.connections_open) = (MILLION - 3, MILLION - 3);
        (one.connections.counts.closed_by_target, one.connections.counts.reset) = (1, 2);
        for (ended, times) in [(Ending::ClosedByTarget, 1), (Ending::Reset, 2)] {
            let lived = ResidenceInterval::of(&mut one.connections.residence, ended, false);
            lived.record_times(280 * SECOND_NS, times);
        }
        (one.lifecycle.broken, one.heartbeats.lost) = (3, 2);
        one.heartbeats.answered -= 2;
        let stay = StepInterval {
            step: 2,
            count: 3,
            errors: vec![(Cause::Lost, 3)],
            ..StepInterval::default()
        };
        one.steps.push(stay);
        let steady = one.stage_mut(Stage::Steady);
        (steady.failed, steady.errors) = (3, vec![(Cause::Lost, 1), (Cause::Reset, 2)]);
    }
    if second == 301 {
        im_open(&mut one, 3);
        one.connections.counts.reconnects = 3;
    }
    one
}

/// Users connect and log in; at first, a few of them fail.
fn im_fill(one: &mut Interval) {
    im_open(one, 20_000);
    one.population.started = 20_000;
    one.connections.counts.attempted += 24;
    let connect = one.stage_mut(Stage::Connect);
    (connect.began, connect.failed) = (20_024, 24);
    connect.errors = vec![(Cause::ConnectRefused, 20), (Cause::ConnectTimeout, 4)];
    let step = &mut one.steps[0];
    (step.count, step.errors) =
        (20_024, vec![(Cause::ConnectRefused, 20), (Cause::ConnectTimeout, 4)]);
}

fn im_open(one: &mut Interval, users: u64) {
    (one.connections.counts.attempted, one.connections.counts.opened) = (users, users);
    one.lifecycle.begun = users;
    one.population.iterations_started = users;
    for (stage, time) in
        [(Stage::Connect, 90_000), (Stage::Upgrade, 250_000), (Stage::Login, 700_000)]
    {
        let figures = one.stage_mut(stage);
        (figures.began, figures.ok) = (users, users);
        (0..20).for_each(|n| {
            figures.latency.record_times(time + n * n * time / 20, users.div_ceil(20));
        });
    }
    one.stage_mut(Stage::Steady).began = users;
    one.stage_mut(Stage::FirstMessage).began = users;
    let mut connect = StepInterval { count: users, ok: users, ..StepInterval::default() };
    connect.latency.record_times(400_000, users);
    let mut login = StepInterval { step: 1, count: users, ok: users, ..StepInterval::default() };
    login.latency.record_times(310_000, users);
    one.steps.extend([connect, login]);
}

fn im_drain(one: &mut Interval) {
    (one.connections.counts.closed_by_us, one.lifecycle.complete) = (50_000, 50_000);
    let lived = ResidenceInterval::of(&mut one.connections.residence, Ending::ClosedByUs, false);
    lived.record_times((one.second - 10) * SECOND_NS, 50_000);
    one.population.finished = 50_000;
    let time = (one.second - 10) * SECOND_NS;
    for (stage, time) in [(Stage::Steady, time), (Stage::End, 350_000)] {
        let figures = one.stage_mut(stage);
        figures.ok = 50_000;
        figures.latency.record_times(time, 50_000);
    }
    one.stage_mut(Stage::End).began = 50_000;
    let stay = StepInterval { step: 2, count: 50_000, ok: 50_000, ..StepInterval::default() };
    one.steps.push(stay);
}

/// Heartbeats every 30 seconds, and a broadcast each minute.
fn im_hold(one: &mut Interval, users: u64) {
    let beats = users / 30;
    (one.heartbeats.sent, one.heartbeats.answered) = (beats, beats);
    let mut step = StepInterval { step: 3, count: beats, ok: beats, ..StepInterval::default() };
    (0..10).for_each(|n| step.latency.record_times(180_000 + n * n * n * 9_000, beats / 10));
    (step.bytes_in, step.bytes_out) = (beats * 90, beats * 70);
    let news = if one.second % 60 == 59 { users } else { 0 };
    let message = StepInterval {
        step: 4,
        count: news,
        ok: news,
        bytes_in: news * 120,
        ..StepInterval::default()
    };
    if one.second == 59 {
        let first = one.stage_mut(Stage::FirstMessage);
        first.ok = news;
        first.latency.record_times(34 * SECOND_NS, news);
    }
    one.steps.extend([step, message]);
    (one.traffic.messages.sent, one.traffic.messages.received, one.traffic.messages.pushes) =
        (beats, beats + news, news);
    (one.traffic.bytes_in, one.traffic.bytes_out) = (beats * 100 + news * 130, beats * 80);
    (one.tcp.count, one.tcp.retransmits, one.tcp.backlog_bytes_max) =
        (100, one.second / 600, 1_460);
    one.tcp.round_trip.record_times(45_000, 99);
    one.tcp.round_trip.record(1_300_000);
    one.generator.lateness.record_times(150_000, beats);
    one.generator.resources = Some(Resources {
        cpu: Cpu {
            cpu_user_ns: 400_000_000,
            cpu_system_ns: 500_000_000,
            shard_cpu_max: 0.71,
            run_queue_ns: 20_000_000,
            ..Cpu::default()
        },
        memory_bytes: 300_000_000 + users * 1_100,
        users_bytes: users * 640,
        connections_bytes: users * 320,
        recorder_bytes: 1_900_000,
        kernel_socket_bytes: users * 2_600,
        memory_available_bytes: 14_000_000_000 - users * 6_000,
        host_cpu: 0.83,
        host_steal: 0.012,
        host_softirq: 0.21,
        ports_left: Some(3_000_000 - users),
        ..Resources::default()
    });
}

pub(crate) fn im_events() -> Vec<Event> {
    let at = |second: u64| second * SECOND_NS;
    let drain = FILL_SECONDS + HOLD_SECONDS;
    let reset = std::io::Error::from_raw_os_error(104);
    let detail = say!("{}: {}", "read", Said::of_error(&reset));
    vec![
        Event::PhaseBegun { at_ns: 0, phase: 0 },
        Event::PhaseEnded { at_ns: at(FILL_SECONDS), phase: 0 },
        Event::PhaseBegun { at_ns: at(FILL_SECONDS), phase: 1 },
        Event::Failure {
            at_ns: at(300) + 70_000_000,
            step: 2,
            cause: Cause::Lost,
            detail,
            evidence: None,
        },
        Event::PhaseEnded { at_ns: at(drain), phase: 1 },
        Event::PhaseBegun { at_ns: at(drain), phase: 2 },
        Event::PhaseEnded { at_ns: at(drain + DRAIN_SECONDS), phase: 2 },
        Event::RunEnded { at_ns: at(drain + DRAIN_SECONDS) },
    ]
}

/// A chat room of 1,000: two users miss a message, one gets it twice, and IDs repeat.
pub(crate) fn chat() -> Summary {
    summary_of(chat_info(), &chat_intervals(), &chat_events())
}

pub(crate) fn chat_info() -> RunInfo {
    let step = |name: &str, kind: &str| StepInfo {
        name: name.into(),
        kind: kind.into(),
        ..StepInfo::default()
    };
    let threshold = |text: &str, counter| {
        let subject = Subject::Delivery { step: throng_base::StepId(2), counter };
        let (measure, comparison) = (Measure::Count, Comparison::Equal);
        let (text, phase, with_pauses) = (text.to_string(), None, false);
        let value = 0.0;
        let threshold = Threshold {
            phase,
            with_pauses,
            ..Threshold::new(text, subject, measure, comparison, value)
        };
        ThresholdInfo::from(&threshold)
    };
    let mut info = info();
    info.name = "live chat room".into();
    info.generator.host = HostFacts::default();
    info.tables.phases.remove(0);
    info.tables.steps = vec![
        step("connect", "connect"),
        step("say", "request"),
        step("room talk", "delivery"),
        step("whispers", "delivery"),
    ];
    info.tables.thresholds = vec![
        threshold("room talk lost = 0", DeliveryCounter::Lost),
        threshold("room talk twice = 0", DeliveryCounter::Twice),
    ];
    info
}

pub(crate) fn chat_intervals() -> Vec<Interval> {
    (0..10).map(chat_interval).collect()
}

fn chat_interval(second: u64) -> Interval {
    let mut one = Interval { second, shards: 2, ..Interval::default() };
    let mut connect = StepInterval { count: 100, ok: 100, ..StepInterval::default() };
    connect.latency.record_times(2_000_000, 100);
    let mut say = StepInterval { step: 1, count: 2_000, ok: 2_000, ..StepInterval::default() };
    say.latency.record_times(900_000, 2_000);
    let lost = if second == 5 { 2 } else { 0 };
    let (expected, ok) = (2_000_000, 2_000_000 - lost);
    let mut talk = StepInterval { step: 2, count: expected, ok, ..StepInterval::default() };
    talk.latency.record_times(1_400_000, ok - 1);
    talk.latency.record(613_000_000);
    if lost > 0 {
        talk.errors = vec![(Cause::DeliveryLost, lost)];
    }
    let row = one.delivery_mut(2);
    (row.sent, row.expected, row.delivered, row.lost) = (2_000, expected, ok - 7, lost);
    (row.excused, row.late, row.twice, row.stray) = (7, 1, lost / 2, lost * 2);
    one.steps = vec![connect, say, talk];
    (one.traffic.messages.sent, one.traffic.messages.received) = (2_000, 2_002_000);
    (one.traffic.messages.pushes, one.traffic.messages.unasked, one.traffic.messages.skipped) =
        (2_000_000, 1, 2);
    one.traffic.messages.broken = lost;
    (one.connections.counts.attempted, one.connections.counts.opened) = (100, 100);
    (one.gauges.users_online, one.gauges.connections_open) = ((second + 1) * 100, 1_000);
    (one.heartbeats.sent, one.heartbeats.answered, one.heartbeats.faulty) = (30, 28, 2);
    one.connections.counts.half_closed = lost;
    one
}

pub(crate) fn chat_events() -> Vec<Event> {
    let detail = say!(
        "message {} sent by user {} at {} did not reach {} of {} receivers on one shard: users {}",
        "0x2a",
        17,
        "1.30s",
        2,
        500,
        "5, 77"
    );
    let cause = Cause::DeliveryLost;
    let twice = |second: u64, id: &str, user: u64| Event::Delivery {
        at_ns: second * SECOND_NS,
        step: 2,
        counter: DeliveryCounter::Twice,
        detail: say!("message {id} was delivered to user {user} again"),
    };
    vec![
        Event::PhaseBegun { at_ns: 0, phase: 0 },
        Event::Failure { at_ns: 5 * SECOND_NS, step: 2, cause, detail, evidence: None },
        twice(6, "0x2b", 5),
        twice(7, "0x2c", 6),
        Event::PhaseEnded { at_ns: 10 * SECOND_NS, phase: 0 },
        Event::RunEnded { at_ns: 10 * SECOND_NS },
    ]
}

/// The same with untracked messages in the first or the second row; the second has no threshold.
pub(crate) fn chat_unwatched(row: u16) -> Summary {
    let mut intervals = chat_intervals();
    let row = intervals[3].delivery_mut(row);
    (row.unwatched, row.foreign, row.after_lost) = (1_234, 5, 6);
    summary_of(chat_info(), &intervals, &chat_events())
}

/// The same with a `match` that finds nothing, in sent or only in received messages.
pub(crate) fn chat_blind(is_sent: bool) -> Summary {
    let mut intervals = chat_intervals();
    for interval in &mut intervals {
        let row = interval.delivery_mut(2);
        let step = row.step;
        let (sent, lost) = if is_sent { (0, 0) } else { (2_000, 2_000_000) };
        *row = DeliveryInterval { step, sent, expected: lost, lost, ..DeliveryInterval::default() };
        row.sent_without_id = 2_000 - sent;
        row.received_without_id = 2_000_000;
    }
    let mut events = chat_events();
    let counter =
        if is_sent { DeliveryCounter::SentWithoutId } else { DeliveryCounter::ReceivedWithoutId };
    let detail = say!("`match` found no ID in a message sent by user {}: `{}`", 5, "hello");
    events[3] = Event::Delivery { at_ns: SECOND_NS, step: 2, counter, detail };
    summary_of(chat_info(), &intervals, &events)
}

/// The same with messages of several records that could not be separated.
pub(crate) fn chat_joined() -> Summary {
    let mut intervals = chat_intervals();
    intervals[5].delivery_mut(2).received_joined = 3;
    summary_of(chat_info(), &intervals, &chat_events())
}

/// The same with messages that the generator dropped, with or without thresholds.
pub(crate) fn chat_dropped(has_thresholds: bool) -> Summary {
    let mut intervals = chat_intervals();
    intervals[3].traffic.messages.dropped = 1_234;
    let mut info = chat_info();
    if !has_thresholds {
        info.tables.thresholds.clear();
    }
    summary_of(info, &intervals, &chat_events())
}

/// The same on a generator with too little memory: growth is paused for a while or, if
/// `is_given_up`, ends.
pub(crate) fn im_held(is_given_up: bool) -> Summary {
    let mut intervals = im_intervals();
    for one in &mut intervals[30..] {
        for users in [&mut one.gauges.users_online, &mut one.gauges.users_present] {
            *users = 612_000.min(*users);
        }
        one.generator.resources.as_mut().unwrap().held = one.second < FILL_SECONDS + 40;
    }
    let (limit, at_ns) = ("memory".to_string(), 30 * SECOND_NS);
    let detail = "14.1 GB of 14.0 GB are in use".to_string();
    let mut events = im_events();
    events.insert(
        1,
        Event::Held { at_ns, limit: limit.clone(), detail: Said::of_others(detail.clone()) },
    );
    let released_ns = (FILL_SECONDS + 40) * SECOND_NS;
    events.insert(
        5,
        match is_given_up {
            true => {
                Event::GrowthGivenUp { at_ns: released_ns, limit, detail: Said::of_others(detail) }
            }
            false => Event::Released { at_ns: released_ns },
        },
    );
    summary_of(im_info(), &intervals, &events)
}

pub(crate) fn im() -> Summary {
    summary_of(im_info(), &im_intervals(), &im_events())
}

/// The shop, stopped by a rule if `is_stopped`.
pub(crate) fn shop(is_stopped: bool) -> Summary {
    let mut events = shop_events();
    events.retain(|event| is_stopped || !matches!(event, Event::Stopped { .. }));
    summary_of(shop_info(), &shop_intervals(), &events)
}

pub(crate) fn summary_of(info: RunInfo, intervals: &[Interval], events: &[Event]) -> Summary {
    let mut collector = Collector::new(&info);
    events.iter().for_each(|event| collector.event(event));
    intervals.iter().for_each(|interval| collector.interval(interval));
    collector.finish(info)
}

pub(crate) fn summary() -> Summary {
    let mut summary = summary_of(info(), &intervals(), &events());
    summary.directory = Some("throng-runs/20261121-120301-quick-check".into());
    summary
}
