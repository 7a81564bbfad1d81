//! Tests the short summary: complete, and never longer or wider than a terminal.

use throng_base::LoadPart;

use super::*;
use crate::directory::{GeneratorInfo, MachineInfo};
use crate::summary::{ChangeOf, ErrorRow, Example, InvalidReason, Row, ThresholdRow};
use crate::tests::sample::{chat, chat_blind, im, im_held, shop};
use throng_metrics::{Blame, Percentile, Unit, Verdict};

/// Checks the height and width of the summary, and returns it.
pub(super) fn assert_short(summary: &Summary, style: &Style) -> String {
    let text = summary_text(summary, style);
    let plain = if style.colour { without_colours(&text) } else { text.clone() };
    let lines = plain.lines().count();
    assert!(lines <= super::super::summary::LINES_MAX, "{lines} lines:\n{plain}");
    for line in plain.lines() {
        assert!(width(line) <= style.width.max(Style::WIDTH_MIN), "{}: {line}", width(line));
        assert_eq!(line, line.trim_end(), "blanks at the end");
    }
    assert!(plain.chars().all(|c| c == '\n' || !c.is_control()), "{plain:?}");
    assert!(!plain.contains("\n\n") && plain.ends_with('\n'), "{plain}");
    text
}

/// A run with everything that can be long: 1,000 steps, ten thresholds, twenty errors, deliveries,
/// transactions, a late generator, and names of any length.
fn crowded() -> Summary {
    let mut summary = chat_blind(false);
    summary.info.name = "a name that is longer than any name has a right to be ".repeat(3);
    summary.info.targets.urls =
        (0..7).map(|n| format!("https://host-{n}.example/{}", "a".repeat(90))).collect();
    summary.info.labels = (0..9).map(|n| (format!("label-{n}"), "value".repeat(5))).collect();
    let step = |n: u64| {
        let mut row = summary.steps.rows[0].clone();
        row.name = format!("GET /catalogue/of/everything/that/there/is/{n}");
        row.kind = "http".into();
        row.latency.percentiles_ns[Percentile::P99 as usize] = n * 1_000_000;
        row
    };
    let steps: Vec<Row> = (0..1_000).map(step).collect();
    summary.steps.rows.extend(steps);
    summary.steps.transactions = shop(false).steps.transactions;
    summary.verdict.thresholds = (0..10)
        .map(|n| ThresholdRow {
            text: format!("GET /catalogue/of/everything/that/there/is/{n} p99 < 50ms"),
            load: None,
            phase: None,
            unit: Unit::Nanoseconds,
            verdict: if n % 2 == 0 { Verdict::NotMet(1e9) } else { Verdict::Unknown },
            largest_of: (n == 0).then_some(17),
            only_in: (n == 1).then(|| "warm-up".to_string()),
        })
        .collect();
    let cause = |n: usize| Cause::ALL[n % Cause::ALL.len()];
    summary.steps.errors = (0..20)
        .map(|n| ErrorRow {
            step: format!("GET /catalogue/of/everything/that/there/is/{n}"),
            cause: cause(n),
            blame: Blame::TargetOrScenario,
            count: 1_000_000 - n as u64,
            share: Some(0.012),
            example: Some(Example {
                at_ns: 1,
                detail: Said::of_others("what it said ".repeat(30)),
            }),
        })
        .collect();
    summary.messages.counts.dropped = 12;
    summary.generator.lateness.percentiles_ns[Percentile::P50 as usize] = 30_000_000;
    summary.generator.lateness.count = 1_000;
    summary.steps.total.latency.percentiles_ns[Percentile::P50 as usize] = 40_000_000;
    summary.generator.resources.ports_left = Some(3);
    summary.users.population.dropped = 1_000;
    summary.users.population.wanted = 1_000_000;
    summary.verdict.validity = Validity::Invalid {
        reasons: vec![
            InvalidReason::Late { p99_ns: 300_000_000, max_ns: 900_000_000 },
            InvalidReason::GeneratorErrors { failed: 7_000, attempts: 70_000 },
        ],
    };
    summary.directory = Some(format!("/srv/{}", "deep/".repeat(40)).into());
    summary
}

/// A run of one second, which has no curve.
fn brief() -> Summary {
    let mut info = sample::info();
    info.tables.phases.remove(0);
    let events = [
        Event::PhaseBegun { at_ns: 0, phase: 0 },
        Event::PhaseEnded { at_ns: SECOND_NS, phase: 0 },
        Event::RunEnded { at_ns: SECOND_NS },
    ];
    sample::summary_of(info, &[sample::interval(0, 0)], &events)
}

fn interrupted() -> Summary {
    let mut events = sample::events();
    events.truncate(4);
    events.push(Event::Interrupted { at_ns: 7 * SECOND_NS });
    events.push(Event::RunEnded { at_ns: 7 * SECOND_NS });
    sample::summary_of(sample::info(), &sample::intervals()[..7], &events)
}

/// A merged run of three machines: one was late, and one was lost.
fn merged() -> Summary {
    let long = "generator-2.of-a-very-long.internal.domain.that.goes.on.example";
    let machine = |(name, first): (&str, u64)| MachineInfo {
        name: name.into(),
        host: sample::host(),
        shards: 2,
        part: LoadPart { first, width: 1, of: 3 },
        offset_ns: first as i64 * 1_000_000,
        ..MachineInfo::default()
    };
    let machines: Vec<_> = [("box-1", 0), (long, 1), ("box-3", 2)].map(machine).into();
    let info = RunInfo {
        generator: GeneratorInfo { machines, shards: 6, ..sample::info().generator },
        users_planned: 192,
        ..sample::info()
    };
    let of_machine = |interval: &Interval, machine: u16| {
        let mut interval = Interval { machine, ..interval.clone() };
        if machine == 1 {
            (0..900).for_each(|n| interval.generator.lateness.record(40_000_000 + n * 100_000));
        }
        interval
    };
    let all: Vec<Interval> = sample::intervals()
        .iter()
        .flat_map(|interval| [0, 1, 2].map(|machine| of_machine(interval, machine)))
        .filter(|interval| interval.machine != 2 || interval.second < 6)
        .collect();
    let mut events = sample::events();
    let detail = Said::of_others("its process ended with signal 9");
    events.insert(3, Event::MachineLost { at_ns: 6 * SECOND_NS, machine: 2, detail });
    let mut summary = sample::summary_of(info, &all, &events);
    summary.directory = Some("throng-runs/20261121-120301-merged".into());
    summary
}

/// A run without any lines.
fn never_began() -> Summary {
    sample::summary_of(sample::info(), &[], &[Event::RunEnded { at_ns: 0 }])
}

fn shapes() -> Vec<(&'static str, Summary)> {
    vec![
        ("good", sample::summary()),
        ("refused", refused()),
        ("overloaded", overloaded()),
        ("shop", shop(true)),
        ("million", im()),
        ("held", im_held(true)),
        ("chat", chat()),
        ("blind", chat_blind(true)),
        ("crowded", crowded()),
        ("brief", brief()),
        ("interrupted", interrupted()),
        ("merged", merged()),
        ("never started", never_began()),
        ("failed throughout", failed_throughout(true)),
    ]
}

#[test]
fn every_kind_of_run_fits_on_a_terminal() {
    for (name, summary) in shapes() {
        for width in [20, 60, 80, 110, 200] {
            for language in [Language::English, Language::Chinese] {
                for (colour, ascii) in [(false, false), (true, false), (false, true)] {
                    let (newest, page) = (width == 80, width > 60);
                    let style =
                        Style { colour, width, language, details: false, ascii, newest, page };
                    let text = assert_short(&summary, &style);
                    assert!(ascii || !text.is_empty(), "{name}");
                }
            }
        }
    }
}

#[test]
fn a_crowded_summary_keeps_the_important_lines() {
    let text = assert_short(&crowded(), &Style::plain());
    for part in [
        "INVALID",
        "exit 5",
        "all 1,002 steps",
        "slowest step",
        "NOT MET",
        "more thresholds",
        "resolve-failed",
        "blame: ",
        "more kinds of errors",
        "throng report RUN --details",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let warned = text.lines().position(|line| line.starts_with('⚠'));
    assert!(warned.is_some_and(|at| at <= 3), "the warning stands at the top:\n{text}");
}

#[test]
fn dumb_terminals_get_ascii() {
    for (name, summary) in shapes() {
        for details in [false, true] {
            let style = Style { ascii: true, details, ..Style::plain() };
            let text = summary_text(&summary, &style);
            let strange: String = text.chars().filter(|c| !c.is_ascii()).collect();
            assert!(strange.is_empty(), "{name}: {strange}\n{text}");
        }
    }
}

/// Compares the short summary with the expected text.
fn check_short(summary: &Summary, style: &Style, want: &Expect) {
    want.assert_eq(&assert_short(summary, style));
}

#[test]
fn a_good_run_in_short() {
    check_short(
        &sample::summary(),
        &Style { newest: true, ..Style::plain() },
        &expect![[r#"
            quick check · PASSED · 2 of 2 thresholds met                              exit 0
            https://127.0.0.1:8443 · 64 users · 10.0s of 12.0s measured
            2026-11-21 12:03:01 UTC
            requests     101,000 · 10,090 ok/s · 100 failed (0.099 %)
            response time     p50     p90     p95     p99   p99.9     max
            all 2 steps    1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.99ms
            GET /          1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms
            log in         3.49ms  3.88ms  3.95ms  3.98ms  3.98ms  3.99ms
            slowest step log in (mean 3.49ms) · 2.76 % of the total step time
            rate         ██████████  10,090/s
            p99          ██████████  2.90ms
            users        ██████████  64
            ✓ http p99 < 50ms   2.90ms
            ✓ errors < 0.1%    0.099 %
            errors       80 (0.079 %) status-unexpected in GET / · blame: target
                         HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31mtry again later
                         → look at a response with --details, and the target's log
                         20 (0.020 %) timeout in GET / · blame: target
                         no complete response arrived in time
                         → find out what the target waits for, or raise the timeout
            directory    throng-runs/20261121-120301-quick-check
                         all metrics: throng report --details
        "#]],
    );
}

#[test]
fn a_merged_run_in_short() {
    check_short(
        &merged(),
        &Style::plain(),
        &expect![[r#"
            quick check · INVALID                                                     exit 5
            https://127.0.0.1:8443 · 192 users · 3 machines, lost: box-3
            ⚠ this run does not measure the target (generator-late): throng was more than 10
              ms behind schedule in 10 of 10 seconds (worst 130ms), on
              generator-2.of-a-very-long.internal.domain.that.goes.on.example
              → lower the load, or use more machines
            … more warnings with --details: 1
            requests     242,400 · 24,216 ok/s · 240 failed (0.099 %)
            response time     p50     p90     p95     p99   p99.9     max
            all 2 steps    1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.99ms
            GET /          1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms
            log in         3.49ms  3.88ms  3.95ms  3.98ms  3.98ms  3.99ms
            slowest step log in (mean 3.49ms) · 2.76 % of the total step time
            rate         ████▃▃▃▃▃▃  20,180/s to 30,270/s
            p99          ██████████  2.90ms
            ✓ http p99 < 50ms   2.90ms
            ✓ errors < 0.1%    0.099 %
            errors       192 (0.079 %) status-unexpected in GET / · blame: target
                         HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31mtry again later
                         → look at a response with --details, and the target's log
                         … more kinds of errors with --details: 1
            directory    throng-runs/20261121-120301-merged
            throng report throng-runs/20261121-120301-merged --details
        "#]],
    );
}

#[test]
fn a_merged_run_on_a_narrow_page() {
    check_short(
        &merged(),
        &Style { width: 60, ..Style::plain() },
        &expect![[r#"
            quick check · INVALID                                 exit 5
            https://127.0.0.1:8443 · 192 users · 3 machines, lost: box-3
            ⚠ this run does not measure the target (generator-late):
              throng was more than 10 ms behind schedule in 10 of 10
              seconds (worst 130ms), on …
              → lower the load, or use more machines
            … more warnings with --details: 1
            requests     242,400 · 24,216 ok/s · 240 failed (0.099 %)
            response time    p50    p90    p95    p99  p99.9    max
            all 2 steps   1.04ms 2.47ms 2.70ms 2.90ms 3.88ms 3.99ms
            GET /         1.02ms 2.41ms 2.64ms 2.83ms 2.89ms 2.89ms
            log in        3.49ms 3.88ms 3.95ms 3.98ms 3.98ms 3.99ms
            slowest step log in (mean 3.49ms)
            rate         ████▃▃▃▃▃▃  20,180/s to 30,270/s
            p99          ██████████  2.90ms
            ✓ http p99 < 50ms   2.90ms
            ✓ errors < 0.1%    0.099 %
            errors       192 status-unexpected in GET / · blame: target
                         HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31m…
                         → look at a response with --details, and the t…
                         … more kinds of errors with --details: 1
            directory    throng-runs/20261121-120301-merged
            throng report throng-runs/20261121-120301-merged --details
        "#]],
    );
}

#[test]
fn a_merged_run_on_a_dumb_terminal() {
    check_short(
        &merged(),
        &Style { ascii: true, ..Style::plain() },
        &expect![[r#"
            quick check | INVALID                                                     exit 5
            https://127.0.0.1:8443 | 192 users | 3 machines, lost: box-3
            ! this run does not measure the target (generator-late): throng was more than 10
              ms behind schedule in 10 of 10 seconds (worst 130ms), on
              generator-2.of-a-very-long.internal.domain.that.goes.on.example
              > lower the load, or use more machines
            ~ more warnings with --details: 1
            requests     242,400 | 24,216 ok/s | 240 failed (0.099 %)
            response time     p50     p90     p95     p99   p99.9     max
            all 2 steps    1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.99ms
            GET /          1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms
            log in         3.49ms  3.88ms  3.95ms  3.98ms  3.98ms  3.99ms
            slowest step log in (mean 3.49ms) | 2.76 % of the total step time
            rate         ####------  20,180/s to 30,270/s
            p99          ##########  2.90ms
            + http p99 < 50ms   2.90ms
            + errors < 0.1%    0.099 %
            errors       192 (0.079 %) status-unexpected in GET / | blame: target
                         HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31mtry again later
                         > look at a response with --details, and the target's log
                         ~ more kinds of errors with --details: 1
            directory    throng-runs/20261121-120301-merged
            throng report throng-runs/20261121-120301-merged --details
        "#]],
    );
}

/// The page is named if there is space.
#[test]
fn the_html_page_is_named() {
    let last = |style: Style| {
        let text = assert_short(&sample::summary(), &style);
        text.lines().next_back().unwrap_or_default().trim().to_string()
    };
    let paged = Style { page: true, newest: true, ..Style::plain() };
    let command = "all metrics: throng report --details";
    assert_eq!(last(paged), format!("{command} · in a browser: report.html"));
    assert_eq!(last(Style { width: 60, ..paged }), command);
    assert_eq!(last(Style { page: false, ..paged }), command);
}

#[test]
fn a_good_run_on_a_narrow_page() {
    check_short(
        &sample::summary(),
        &Style { width: 60, ..Style::plain() },
        &expect![[r#"
            quick check · PASSED · 2 of 2 thresholds met          exit 0
            https://127.0.0.1:8443 · 64 users · 10.0s of 12.0s measured
            2026-11-21 12:03:01 UTC
            requests     101,000 · 10,090 ok/s · 100 failed (0.099 %)
            response time    p50    p90    p95    p99  p99.9    max
            all 2 steps   1.04ms 2.47ms 2.70ms 2.90ms 3.88ms 3.99ms
            GET /         1.02ms 2.41ms 2.64ms 2.83ms 2.89ms 2.89ms
            log in        3.49ms 3.88ms 3.95ms 3.98ms 3.98ms 3.99ms
            slowest step log in (mean 3.49ms)
            rate         ██████████  10,090/s
            p99          ██████████  2.90ms
            users        ██████████  64
            ✓ http p99 < 50ms   2.90ms
            ✓ errors < 0.1%    0.099 %
            errors       80 status-unexpected in GET / · blame: target
                         HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31m…
                         → look at a response with --details, and the t…
                         20 (0.020 %) timeout in GET / · blame: target
                         no complete response arrived in time
                         → find out what the target waits for, or raise…
            directory    throng-runs/20261121-120301-quick-check
                         all metrics: throng report RUN --details
        "#]],
    );
}

#[test]
fn a_good_run_on_a_dumb_terminal() {
    check_short(
        &sample::summary(),
        &Style { ascii: true, ..Style::plain() },
        &expect![[r#"
            quick check | PASSED | 2 of 2 thresholds met                              exit 0
            https://127.0.0.1:8443 | 64 users | 10.0s of 12.0s measured
            2026-11-21 12:03:01 UTC
            requests     101,000 | 10,090 ok/s | 100 failed (0.099 %)
            response time     p50     p90     p95     p99   p99.9     max
            all 2 steps    1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.99ms
            GET /          1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms
            log in         3.49ms  3.88ms  3.95ms  3.98ms  3.98ms  3.99ms
            slowest step log in (mean 3.49ms) | 2.76 % of the total step time
            rate         ##########  10,090/s
            p99          ##########  2.90ms
            users        ##########  64
            + http p99 < 50ms   2.90ms
            + errors < 0.1%    0.099 %
            errors       80 (0.079 %) status-unexpected in GET / | blame: target
                         HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31mtry again later
                         > look at a response with --details, and the target's log
                         20 (0.020 %) timeout in GET / | blame: target
                         no complete response arrived in time
                         > find out what the target waits for, or raise the timeout
            directory    throng-runs/20261121-120301-quick-check
            throng report throng-runs/20261121-120301-quick-check --details
        "#]],
    );
}

#[test]
fn a_good_run_in_chinese() {
    let style = Style { language: Language::Chinese, ..Style::plain() };
    check_short(
        &sample::summary(),
        &style,
        &expect![[r#"
            quick check · 通过 · 2 个阈值中 2 个满足                                退出码 0
            https://127.0.0.1:8443 · 64 个用户 · 实测 10.0s，共 12.0s
            2026-11-21 12:03:01 UTC
            请求         101,000 · 10,090 成功/s · 失败 100（0.099 %）
            响应时间          p50     p90     p95     p99   p99.9    最大
            全部 2 个步骤  1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.99ms
            GET /          1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms
            log in         3.49ms  3.88ms  3.95ms  3.98ms  3.98ms  3.99ms
            最慢步骤     log in（平均 3.49ms） · 占全部步骤时间的 2.76 %
            速率         ██████████  10,090/s
            p99          ██████████  2.90ms
            用户         ██████████  64
            ✓ http p99 < 50ms   2.90ms
            ✓ errors < 0.1%    0.099 %
            错误         80 (0.079 %) status-unexpected 位置：GET / · 责任方：被测服务
                         HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31mtry again later
                         → 用 --details 查看一个响应，并查看服务日志
                         20 (0.020 %) timeout 位置：GET / · 责任方：被测服务
                         未在超时时间内收到完整响应
                         → 查明被测服务在等什么，或调大超时: `throng explain timeout`
            运行目录     throng-runs/20261121-120301-quick-check
            throng report throng-runs/20261121-120301-quick-check --details
        "#]],
    );
}

#[test]
fn a_target_that_refuses_in_short() {
    check_short(
        &refused(),
        &Style::plain(),
        &expect![[r#"
            quick check · FAILED · the target could not be reached                    exit 4
            https://127.0.0.1:8443 · 1.00s · 2026-11-21 12:03:01 UTC
            requests     1,500 · 0 ok/s · 1,500 failed (100 %)
            errors       1,500 (100 %) connect-refused in GET / · blame: target
                         connect 127.0.0.1:8443: Connection refused (os error 111)
                         → check that the target listens on this port
            directory    none · run again with --details for all metrics
        "#]],
    );
}

#[test]
fn an_invalid_run_in_short() {
    check_short(
        &overloaded(),
        &Style::plain(),
        &expect![[r#"
            quick check · INVALID                                                     exit 5
            https://127.0.0.1:8443 · 64 users · 10.0s of 12.0s measured
            ⚠ this run does not measure the target (generator-late): throng was more than 10
              ms behind schedule in 7 of 10 seconds (worst 380ms); cause: this host's CPU
              was 100 % busy from 00:05 onward
              → lower the rate to 10,090/s, which this host sustained, or use a faster host
            … more warnings with --details: 2
            requests     101,000 · 9,600 ok/s · 5,000 failed (4.95 %)
            schedule     8,638 starts never happened
            response time     p50     p90     p95     p99   p99.9     max
            all 2 steps    1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.99ms
            GET /          1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms
            log in         3.49ms  3.88ms  3.95ms  3.98ms  3.98ms  3.99ms
            slowest step log in (mean 3.49ms) · 2.76 % of the total step time
            rate         ███▇▇▇▇▇▇▇  9,390/s to 10,090/s
            p99          ██████████  2.90ms
            ✗ http p99 < 1ms  2.90ms  NOT MET
            errors       4,900 (4.85 %) ports-exhausted in GET / · blame: generator
                         throng ran out of source ports
                         → add source addresses, or keep connections open
                         … more kinds of errors with --details: 2
            directory    none · run again with --details for all metrics
        "#]],
    );
}

#[test]
fn a_shop_that_a_rule_stopped_in_short() {
    check_short(
        &shop(true),
        &Style::plain(),
        &expect![[r#"
            quick check · FAILED · stopped by a rule                                  exit 4
            https://127.0.0.1:8443 · 64 users · 10.0s of 12.0s measured
            ⚠ a rule in the scenario stopped the run (stopped-by-rule): the run was stopped
              at 11.0s: half of the baskets are \u{1b}[31mempty
              → `throng explain stopped-by-rule`
            requests     101,000 · 10,090 ok/s · 100 failed (0.099 %)
            response time                        p50     p90     p95     p99   p99.9     max
            all 2 steps                       1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.99ms
            GET /                             1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms
            log in                            3.49ms  3.88ms  3.95ms  3.98ms  3.98ms  3.99ms
            check out: baske…t (transaction)  6.46ms  6.85ms  6.91ms  6.98ms       –  6.98ms
            slowest step log in (mean 3.49ms) · 2.76 % of the total step time
            rate         ██████████  10,090/s
            p99          ██████████  2.90ms
            ✗ check out: basket, address a…with_pauses p95 <= 1s in load      2.94s  NOT MET
            ✗ bytes.in rate <= 1 MB/s in load                             8.23 MB/s  NOT MET
            … more thresholds: 3 met, 1 not met
            errors       80 (0.079 %) status-unexpected in GET / · blame: target
                         HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31mtry again later
                         → look at a response with --details, and the target's log
                         20 (0.020 %) timeout in GET / · blame: target
                         … more kinds of errors with --details: 1
            directory    none · run again with --details for all metrics
        "#]],
    );
}

#[test]
fn a_million_users_in_short() {
    check_short(
        &im(),
        &Style::plain(),
        &expect![[r#"
            a million people in an IM server · PASSED · 4 of 4 thresholds met         exit 0
            ws://127.0.0.1:8089 · 1,000,000 users · 11m10s · 2026-11-21 12:03:01 UTC
            attempts     24,167,652 · 36,069 ok/s · 1,203 failed (0.005 %)
            users        1,000,000 online at peak · 1,000,003 connections opened · 3 broken
            heartbeats   21,166,443 sent · 2 lost (<0.001 %) · p99 6.72ms
            response time    p50     p90     p95     p99   p99.9     max
            all 3 steps    758µs  4.82ms  6.72ms  6.72ms  6.72ms  6.74ms
            connect /acc   400µs   400µs   400µs   400µs   400µs   400µs
            heartbeat      758µs  4.82ms  6.72ms  6.72ms  6.72ms  6.74ms
            slowest step heartbeat (mean 2.00ms) · 98.4 % of the total step time
            rate         ▇▇▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂█  33,333/s to 55,000/s
            p99          █████████████████████  6.72ms
            ✓ users.online >= 999_990 in hold    999,997
            ✓ users.present >= 1M in hold      1,000,000
            … more thresholds: 2 met, 0 not met
            errors       1,000 (0.004 %) connect-refused in connect /acc · blame: target
                         the target refused the connection
                         → check that the target listens on this port
                         200 (<0.001 %) connect-timeout in connect /acc · blame: target
                         … more kinds of errors with --details: 1
            directory    none · run again with --details for all metrics
        "#]],
    );
}

#[test]
fn a_chat_room_in_short() {
    check_short(
        &chat(),
        &Style::plain(),
        &expect![[r#"
            live chat room · FAILED · 2 of 2 thresholds not met                       exit 1
            https://127.0.0.1:8443 · 1,000 users · 10.0s · 2026-11-21 12:03:01 UTC
            attempts     21,000 · 2,100 ok/s · 0 failed (0 %)
            users        1,000 online at peak · 1,000 connections opened
            heartbeats   300 sent · 0 lost (0 %)
            deliveries   room talk · 20,000,000 expected · 2 lost · 70 undetermined
            response time            p50     p90     p95     p99   p99.9     max
            all 2 steps            900µs   900µs   900µs  2.00ms  2.00ms  2.00ms
            connect               2.00ms  2.00ms  2.00ms  2.00ms  2.00ms  2.00ms
            say                    900µs   900µs   900µs   900µs   900µs   900µs
            room talk (delivery)  1.40ms  1.40ms  1.40ms  1.40ms  1.40ms   613ms
            slowest step connect (mean 2.00ms) · 10.0 % of the total step time
            rate         ██████████  2,100/s
            p99          ██████████  2.00ms
            users        ▁▂▃▃▄▅▆▆▇█  100 to 1,000
            ✗ room talk lost = 0   2  NOT MET
            ✗ room talk twice = 0  1  NOT MET
            errors       2 delivery-lost in room talk · blame: target
                         message 0x2a sent by user 17 at 1.30s did not reach 2 of 500 recei…
                         → trace one lost message through the target
            directory    none · run again with --details for all metrics
        "#]],
    );
}

#[test]
fn a_second_in_short() {
    check_short(
        &brief(),
        &Style::plain(),
        &expect![[r#"
            quick check · PASSED · 2 of 2 thresholds met                              exit 0
            https://127.0.0.1:8443 · 64 users · 1.00s · 2026-11-21 12:03:01 UTC
            requests     10,100 · 10,090 ok/s · 10 failed (0.099 %)
            response time     p50     p90     p95     p99   p99.9     max
            all 2 steps    1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.99ms
            GET /          1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms
            log in         3.49ms  3.88ms  3.95ms  3.98ms       –  3.99ms
            slowest step log in (mean 3.49ms) · 2.76 % of the total step time
            ✓ http p99 < 50ms   2.90ms
            ✓ errors < 0.1%    0.099 %
            errors       8 (0.079 %) status-unexpected in GET / · blame: target
                         the status is not as expected
                         → look at a response with --details, and the target's log
                         2 (0.020 %) timeout in GET / · blame: target
                         no complete response arrived in time
                         → find out what the target waits for, or raise the timeout
            directory    none · run again with --details for all metrics
        "#]],
    );
}

#[test]
fn an_interrupted_run_in_short() {
    check_short(
        &interrupted(),
        &Style::plain(),
        &expect![[r#"
            quick check · INTERRUPTED                                               exit 130
            https://127.0.0.1:8443 · 64 users · 5.00s of 7.00s measured
            2026-11-21 12:03:01 UTC
            requests     50,500 · 10,090 ok/s · 50 failed (0.099 %)
            response time     p50     p90     p95     p99   p99.9     max
            all 2 steps    1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.99ms
            GET /          1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms
            log in         3.49ms  3.88ms  3.95ms  3.98ms       –  3.99ms
            slowest step log in (mean 3.49ms) · 2.76 % of the total step time
            rate         █████  10,090/s
            p99          █████  2.90ms
            users        █████  64
            ✓ http p99 < 50ms   2.90ms
            ✓ errors < 0.1%    0.099 %
            errors       40 (0.079 %) status-unexpected in GET / · blame: target
                         HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31mtry again later
                         → look at a response with --details, and the target's log
                         10 (0.020 %) timeout in GET / · blame: target
                         no complete response arrived in time
                         → find out what the target waits for, or raise the timeout
            directory    none · run again with --details for all metrics
        "#]],
    );
}

#[test]
fn a_run_that_never_began_in_short() {
    check_short(
        &never_began(),
        &Style::plain(),
        &expect![[r#"
            quick check · FAILED · 2 of 2 thresholds not met                          exit 1
            https://127.0.0.1:8443 · 0s · 2026-11-21 12:03:01 UTC
            ✗ http p99 < 50ms  nothing to measure
            ✗ errors < 0.1%    nothing to measure
            directory    none · run again with --details for all metrics
        "#]],
    );
}

#[test]
fn a_crowded_run_in_short() {
    check_short(
        &crowded(),
        &Style::plain(),
        &expect![[r#"
            a name that is longer than any …an any name has a right to be  · INVALID  exit 5
            https://host-0.examp…aaaaaaaaaaaaaaaaaaa and 6 more · 1,000 users · 10.0s
            ⚠ this run does not measure the target (generator-late): throng was more than 10
              ms behind schedule in 0 of 10 seconds (worst 0s)
              → lower the rate to 2,100/s, which this host sustained, or use a faster host
            ⚠ only 3 source ports were left on this host
            … more warnings with --details: 3
            attempts     21,000 · 2,100 ok/s · 0 failed (0 %)
            schedule     1,000 starts were dropped · 100,000 starts scheduled per second
            users        1,000 online at peak · 1,000 connections opened
            heartbeats   300 sent · 0 lost (0 %)
            deliveries   room talk · 0 of 20,000,000 delivered · 20,000,000 lost (100 %)
            response time        p50    p90    p95     p99   p99.9     max
            all 1,002 steps  ~40.0ms  900µs  900µs  2.00ms  2.00ms  2.00ms
            ~ throng's own lateness can account for half of this time or more
            slowest step GET /catalogue/of/everything/that/there/is/999 (mean 2.00ms)
            ✗ GET /catalogue/o…re/is/0 p99 < 50ms  1.00s  NOT MET · the largest of 17 values
            … more thresholds: 0 met, 9 not met
            errors       1,000,000 resolve-failed in GET /…/is/0 · blame: target or scenario
                         … more kinds of errors with --details: 19
            directory    /srv/deep/deep/deep/deep/deep/dee…ep/deep/deep/deep/deep/deep/deep/
                         all metrics: throng report RUN --details
        "#]],
    );
}

#[test]
fn the_same_failure_in_several_steps_is_shown_once() {
    let mut summary = sample::summary();
    let mut more: Vec<_> = ["log in", "check out"].map(|_| summary.steps.errors[0].clone()).into();
    (more[0].step, more[0].count, more[0].share) = ("log in".into(), 1_200, Some(0.012));
    (more[1].step, more[1].count, more[1].share) = ("check out".into(), 7, Some(0.000_07));
    summary.steps.errors.extend(more);
    let errors = |width| {
        let text = assert_short(&summary, &Style { width, ..Style::plain() });
        let at = text.find("\nerrors").expect("errors");
        text[at + 1..].lines().take(4).collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        errors       1,287 (1.29 %) status-unexpected in 3 steps · blame: target
                     HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31mtry again later
                     → look at a response with --details, and the target's log
                     20 (0.020 %) timeout in GET / · blame: target"#]]
    .assert_eq(&errors(80));
    expect![[r#"
        errors       1,287 status-unexpected in 3 steps
                     HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31m…
                     → look at a response with --details, and the t…
                     20 (0.020 %) timeout in GET / · blame: target"#]]
    .assert_eq(&errors(60));
}

/// In any space for notices.
#[test]
fn the_cause_of_lateness_is_never_omitted() {
    let late = |mut summary: Summary| {
        let own = lateness::beside_its_target();
        (summary.generator, summary.info.targets.same_host) = (own.generator, true);
        summary.info.generator.host = own.info.generator.host;
        (summary.verdict.validity, summary.parts.machines) = (Validity::Valid, Vec::new());
        summary
    };
    let cause = "cause: throng used 0.4 of 2 cores on average, and other processes used 1.6";
    for summary in [late(sample::summary()), late(chat()), late(im())] {
        let text = assert_short(&summary, &Style::plain());
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(cause), "{text}");
        assert!(joined.contains("run throng on a different machine"), "{text}");
    }
    let text = assert_short(&late(sample::summary()), &Style::plain());
    assert!(text.contains("https://127.0.0.1:8443 (same host)"), "{text}");
}

/// The shown counts add up to all attempts, deliveries and users.
#[test]
fn counts_in_the_summary_add_up() {
    let mut summary = sample::summary();
    (summary.steps.total.count, summary.steps.total.ok, summary.steps.total.failed) = (79, 39, 40);
    (summary.steps.total.ok_after, summary.steps.total.ok_per_s) = (21, 1.8);
    let text = assert_short(&summary, &Style::plain());
    let line = "requests     79 · 1.80 ok/s · 40 failed (50.6 %) · 21 ok after the load ended";
    assert!(text.contains(line), "{text}");
    // A few late successes do not visibly change a rate.
    (summary.steps.total.ok, summary.steps.total.ok_after) = (10_000, 21);
    assert!(!assert_short(&summary, &Style::plain()).contains("after the load"));
    let mut summary = chat();
    summary.messages.deliveries.truncate(1);
    let counts = &mut summary.messages.deliveries[0].counts;
    (counts.expected, counts.delivered, counts.lost, counts.excused) = (5_232, 5_222, 7, 3);
    let text = assert_short(&summary, &Style::plain());
    assert!(text.contains("5,222 of 5,232 delivered · 7 lost · 3 undetermined"), "{text}");
}

/// Tables show no p99 of forty values; a threshold on it explains its value.
#[test]
fn a_threshold_on_few_values_states_that_it_is_the_largest() {
    let mut info = sample::info();
    info.tables.phases.remove(0);
    let mut interval = Interval { shards: 1, ..Interval::default() };
    let mut figures = StepInterval { count: 40, ok: 40, ..StepInterval::default() };
    figures.latency.record_times(400_000, 40);
    interval.steps = vec![figures];
    let summary = sample::summary_of(info, &[interval], &[]);
    let text = assert_short(&summary, &Style::plain());
    assert!(text.contains("the largest of 40 values"), "{text}");
    let text = summary_text(&summary, &Style { details: true, ..full() });
    assert!(text.contains("met · the largest of 40 values"), "{text}");
    let json = crate::summary_json(&summary);
    assert_eq!(json["thresholds"][0]["largest_of"], 40);
    assert!(crate::markdown::summary_markdown(&summary).contains(", the largest of 40 values)"));
    let many = sample::summary();
    assert!(!assert_short(&many, &Style::plain()).contains("the largest of"));
}

#[test]
fn load_changes_by_the_operator_are_in_the_summary() {
    let mut summary = sample::summary();
    let changes = [(3, true, "times 2"), (4, false, "deploy"), (5, true, "pause")];
    for (at, is_change, what) in changes {
        let of = match is_change {
            true => ChangeOf::Phase("load".into()),
            false => ChangeOf::Mark,
        };
        let change = crate::summary::Change { at_ns: at * SECOND_NS, of, what: what.into() };
        summary.events.changes.add(change);
    }
    let text = assert_short(&summary, &Style::plain());
    let line = "changed      times 2 at 3.00s · mark deploy at 4.00s · pause at 5.00s\n";
    assert!(text.contains(line), "{text}");
    for _ in 0..20 {
        let what = "users 12345".to_string();
        let of = ChangeOf::Phase("load".into());
        summary.events.changes.add(crate::summary::Change { at_ns: 6 * SECOND_NS, of, what });
    }
    let text = assert_short(&summary, &Style::plain());
    assert!(text.contains("times 2 at 3.00s · ") && text.contains(" more\n"), "{text}");
    let markdown = crate::markdown::summary_markdown(&summary);
    assert!(markdown.contains("- at 3.00s, load: times 2\n"), "{markdown}");
    let mut crowded = crowded();
    crowded.events.changes = summary.events.changes;
    assert!(assert_short(&crowded, &Style::plain()).contains("changed "));
}
