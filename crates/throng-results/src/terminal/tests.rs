//! Tests the complete text.

mod capacity;
mod chinese;
mod delivering;
mod duel;
mod lateness;
mod live;
mod networks;
mod staying;
mod summary;

use std::time::Duration;

use expect_test::{Expect, expect};
use throng_base::{Language, Random, Said, Time};
use throng_metrics::{Cause, Comparison, Interval, Measure, Percentile, StepInterval};

use super::text::width;
use super::*;
use crate::directory::{RunInfo, StepInfo};
use crate::event::Event;
use crate::summary::Summary;
use crate::summary::Validity;
use crate::tests::sample::{self, SECOND_NS};

/// With all details, for a file or a pipe.
fn full() -> Style {
    Style { details: true, ..Style::plain() }
}

/// Compares the summary with the expected text, and its width with the page.
fn check(summary: &Summary, want: &Expect) {
    let text = summary_text(summary, &full());
    want.assert_eq(&text);
    assert_fits(&text, 80);
}

fn assert_fits(text: &str, columns: usize) {
    // Diagnostics have the same width everywhere.
    for line in text.lines().filter(|line| !line.starts_with("  = ")) {
        assert!(width(line) <= columns, "{} columns: {line}", width(line));
    }
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn the_summary_of_a_good_run() {
    check(
        &sample::summary(),
        &expect![[r#"
            quick check · thresholds met
            https://127.0.0.1:8443 · 10.0s of 12.0s measured · 100,900 ok · 100 failed
            10,090 ok/s · 2026-11-21T12:03:01.000Z

            threshold        measured  verdict
            http p99 < 50ms    2.90ms  met
            errors < 0.1%     0.099 %  met

            step    requests       ok  failed    ok/s       in      out
            GET /    100,000   99,900     100   9,990  82.3 MB  4.52 MB
            log in     1,000    1,000       0     100  10.0 KB  20.0 KB
            all      101,000  100,900     100  10,090  82.3 MB  4.54 MB

            latency    mean     p50     p90     p95     p99   p99.9  p99.99     max
            GET /    1.23ms  1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms  2.89ms
            log in   3.49ms  3.49ms  3.88ms  3.95ms  3.98ms  3.98ms       –  3.99ms
            all      1.25ms  1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.98ms  3.99ms
            – too few values: p90 needs 10, p95 20, p99 100, p99.9 1,000, p99.99 10,000

            rate         ██████████  10,090/s
            p99          ██████████  2.90ms
            users        ██████████  64

            errors · shares of 101,000 requests
            80  0.079 %  GET /: the status is not as expected (status-unexpected, blame:
                         target)
                         at 2.35s: HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31mtry again
                         later
            20  0.020 %  GET /: no complete response arrived in time (timeout, blame:
                         target)

            slowest step log in (mean 3.49ms) · 2.76 % of the total step time
                         97.2 % of the total step time in GET /

            codes          of 99,980 responses
            200    99,900              99.91 %
            503        80              0.080 %

            connection    count     min    mean      sd     p50     p90     p99     max
            connect          60  50.0µs  52.5µs  1.72µs  52.0µs  55.0µs       –  55.0µs
            tls              60   700µs   725µs  17.7µs   717µs   750µs       –   750µs
            first byte  100,000   390µs  1.05ms   595µs   889µs  2.01ms  2.34ms  2.38ms
            total       101,000   400µs  1.25ms   774µs  1.04ms  2.47ms  2.90ms  3.99ms

            phase      time  users  requests  failed    ok/s     p50     p99     max
            warm-up*  2.00s     64    20,200      20  10,090  1.04ms  2.90ms  3.99ms
            load      10.0s     64   101,000     100  10,090  1.04ms  2.90ms  3.99ms
            * not measured: not included in any other value

            users        64 online at peak · 60 started · measured phases only
            connections  64 open at peak · 60 opened · measured phases only
            closed       50 by throng
            bytes        82.3 MB (8.23 MB/s) received · 4.54 MB (454 KB/s) sent

            generator    0.95 cores used · 94.1µs CPU per attempt · 45.2 MB memory
                         host 61.0 % busy
                         lateness p50 44.8µs · p99 69.1µs · max 70.0µs
                         throng stayed on schedule

            host         box-1 · Linux 6.18.5 · Debian GNU/Linux 13 (trixie) · KVM
                         AMD EPYC 7B13 · 2 cores · 25.8 GB memory · cgroup limit 17.2 GB
                         1024 (hard 20000) descriptors · ports 32768–60999 · tcp_tw_reuse 2
                         somaxconn 4096 · clock tsc

            directory    throng-runs/20261121-120301-quick-check
                         throng report throng-runs/20261121-120301-quick-check
                         throng 0.1.0 (10d8f4b21) · seed 42
        "#]],
    );
}

/// A run with one phase whose connections are refused.
fn refused() -> Summary {
    let mut info = sample::info();
    info.tables.phases.remove(0);
    info.tables.steps.pop();
    info.tables.thresholds.clear();
    info.generator.host = throng_host::HostFacts::default();
    info.time.ended = Some(info.time.started.clone());
    let mut interval = Interval { shards: 1, ..Interval::default() };
    let errors = vec![(Cause::ConnectRefused, 1_500)];
    interval.steps = vec![StepInterval { count: 1_500, errors, ..StepInterval::default() }];
    interval.connections.counts.attempted = 1_500;
    let detail = "connect 127.0.0.1:8443: Connection refused (os error 111)".to_string();
    let events = [
        Event::PhaseBegun { at_ns: 0, phase: 0 },
        Event::Failure {
            at_ns: 100_000,
            step: 0,
            cause: Cause::ConnectRefused,
            detail: Said::of_others(detail),
            evidence: None,
        },
        Event::PhaseEnded { at_ns: SECOND_NS, phase: 0 },
    ];
    sample::summary_of(info, &[interval], &events)
}

#[test]
fn the_summary_of_a_target_that_refuses() {
    check(
        &refused(),
        &expect![[r#"
            quick check · the target could not be reached
            https://127.0.0.1:8443 · 1.00s · 0 ok · 1,500 failed · 0 ok/s
            2026-11-21T12:03:01.000Z

            step   requests  ok  failed  ok/s   in  out
            GET /     1,500   0   1,500     0  0 B  0 B

            errors · shares of 1,500 requests
            1,500  100 %  GET /: the target refused the connection (connect-refused, blame:
                          target)
                          at 100µs: connect 127.0.0.1:8443: Connection refused (os error
                          111)

            connections  1,500 not opened

            directory    throng 0.1.0 (10d8f4b21) · seed 42
        "#]],
    );
}

/// A generator that was late, ran out of ports and lost lines.
fn overloaded() -> Summary {
    let mut info = sample::info();
    info.lines_lost = 3;
    info.generator.host = throng_host::HostFacts::default();
    let threshold =
        |text, value| sample::threshold(text, Measure::Quantile(0.99), Comparison::Less, value);
    info.tables.thresholds = vec![threshold("http p99 < 1ms", 1e6)];
    let mut intervals = sample::intervals();
    for interval in &mut intervals[5..] {
        (0..500).for_each(|n| interval.generator.lateness.record(200_000_000 + n * 360_000));
        interval.population.unmet = 1_234;
        interval.population.waited = 55;
        interval.steps[0].errors.push((Cause::PortsExhausted, 700));
        interval.steps[0].ok -= 700;
        interval.generator.resources.as_mut().unwrap().host_cpu = 1.0;
    }
    sample::summary_of(info, &intervals, &sample::events())
}

#[test]
fn the_summary_of_an_invalid_run() {
    check(
        &overloaded(),
        &expect![[r#"
            quick check · the result is invalid
            https://127.0.0.1:8443 · 10.0s of 12.0s measured · 96,000 ok · 5,000 failed
            9,600 ok/s · 2026-11-21T12:03:01.000Z

            threshold       measured  verdict
            http p99 < 1ms    2.90ms  NOT MET

            error[generator-late]: this run does not measure the target
              = throng was more than 10 ms behind schedule in 7 of 10 seconds (worst 380ms)
              = 8,638 of 109,638 starts (7.9 %) never happened while the generator was behind schedule
              = 1 % of the starts were 371ms or more behind schedule (worst 380ms)
              = cause: this host's CPU was 100 % busy from 00:05 onward
              = help: lower the rate to 10,090/s, which this host sustained, or use a faster host
            error[generator-limited]: this host could not sustain the load
              = 4,900 of 101,000 attempts (4.9 %) failed because of this host
              = cause: 4,900 × throng ran out of source ports (ports-exhausted)
              = help: keep connections open, use more source addresses, or widen ip_local_port_range
            error[record-incomplete]: some results of this run are missing
              = 3 result lines could not be written

            step    requests      ok  failed   ok/s       in      out
            GET /    100,000  95,000   5,000  9,500  82.3 MB  4.52 MB
            log in     1,000   1,000       0    100  10.0 KB  20.0 KB
            all      101,000  96,000   5,000  9,600  82.3 MB  4.54 MB

            latency    mean     p50     p90     p95     p99   p99.9  p99.99     max
            GET /    1.23ms  1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms  2.89ms
            log in   3.49ms  3.49ms  3.88ms  3.95ms  3.98ms  3.98ms       –  3.99ms
            all      1.25ms  1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.98ms  3.99ms
            – too few values: p90 needs 10, p95 20, p99 100, p99.9 1,000, p99.99 10,000

            rate         ███▇▇▇▇▇▇▇  9,390/s to 10,090/s
            p99          ██████████  2.90ms
            users        ██████████  64

            errors · shares of 101,000 requests
            4,900   4.85 %  GET /: throng ran out of source ports (ports-exhausted, blame:
                            generator)
               80  0.079 %  GET /: the status is not as expected (status-unexpected, blame:
                            target)
                            at 2.35s: HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31mtry
                            again later
               20  0.020 %  GET /: no complete response arrived in time (timeout, blame:
                            target)

            slowest step log in (mean 3.49ms) · 2.76 % of the total step time
                         97.2 % of the total step time in GET /

            codes          of 99,980 responses
            200    99,900              99.91 %
            503        80              0.080 %

            connection    count     min    mean      sd     p50     p90     p99     max
            connect          60  50.0µs  52.5µs  1.72µs  52.0µs  55.0µs       –  55.0µs
            tls              60   700µs   725µs  17.7µs   717µs   750µs       –   750µs
            first byte  100,000   390µs  1.05ms   595µs   889µs  2.01ms  2.34ms  2.38ms
            total       101,000   400µs  1.25ms   774µs  1.04ms  2.47ms  2.90ms  3.99ms

            phase      time  users  requests  failed    ok/s     p50     p99     max
            warm-up*  2.00s     64    20,200      20  10,090  1.04ms  2.90ms  3.99ms
            load      10.0s     64   101,000   5,000   9,600  1.04ms  2.90ms  3.99ms
            * not measured: not included in any other value

            users        64 online at peak · 60 started · measured phases only
            schedule     8,638 starts never happened
                         385 starts delayed until a user was free
            connections  64 open at peak · 60 opened · measured phases only
            closed       50 by throng
            bytes        82.3 MB (8.23 MB/s) received · 4.54 MB (454 KB/s) sent

            generator    0.95 cores used · 94.1µs CPU per attempt · 45.2 MB memory
                         host 88.3 % busy
                         lateness p50 53.5µs · p99 371ms · max 380ms
                         the result is invalid, see above

            directory    throng 0.1.0 (10d8f4b21) · seed 42
        "#]],
    );
}

#[test]
fn the_summary_of_a_run_with_transactions_that_a_rule_stopped() {
    let summary = sample::shop(true);
    let text = summary_text(&summary, &full());
    assert_fits(&text, 80);
    // The other sections are those of the successful run.
    let good = summary_text(&sample::summary(), &full());
    let sections: Vec<&str> =
        text.split("\n\n").filter(|section| !good.contains(section)).collect();
    expect![[r#"
        quick check · stopped by a rule
        https://127.0.0.1:8443 · 10.0s of 12.0s measured · 100,900 ok · 100 failed
        10,090 ok/s · 2026-11-21T12:03:01.000Z

        threshold                                              phase   measured  verdict
        http p99 < 50ms                                                  2.90ms  met
        errors < 0.1%                                                   0.099 %  met
        check out: basket, address…ment.with_pauses p95 <= 1s  load       2.94s  NOT MET
        connections.reset <= 5                                                0  met
        bytes.in rate <= 1 MB/s                                load   8.23 MB/s  NOT MET
        upgrade p95 <= 1s                                                     –  unknown
        unknown: nothing was measured, so the threshold counts as not met

        error[stopped-by-rule]: a rule in the scenario stopped the run
          = the run was stopped at 11.0s: half of the baskets are \u{1b}[31mempty
          = metrics and thresholds cover only the time until then

        step         requests       ok  failed    ok/s       in      out
        GET /         100,000   99,900     100   9,990  82.3 MB  4.52 MB
        log in          1,000    1,000       0     100  10.0 KB  20.0 KB
        doors open*       200      180      20    18.0        –        –
        all           101,000  100,900     100  10,090  82.3 MB  4.54 MB
        * time that users spent waiting for each other; not included in any total

        latency        mean     p50     p90     p95     p99   p99.9  p99.99     max
        GET /        1.23ms  1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms  2.89ms
        log in       3.49ms  3.49ms  3.88ms  3.95ms  3.98ms  3.98ms       –  3.99ms
        doors open*   1.31s   902ms   902ms   5.00s   5.00s       –       –   5.00s
        all          1.25ms  1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.98ms  3.99ms
        – too few values: p90 needs 10, p95 20, p99 100, p99.9 1,000, p99.99 10,000

        transaction            done  failed  ok/s    mean     p50     p95     p99   p95*
        check out:…nd payment   500      20  48.0  6.49ms  6.46ms  6.91ms  6.98ms  2.94s
        * includes think time; all other times exclude it

        failures · these are not attempts, so no share is shown
        20  doors open: too few users reached a rendezvous in time (rendezvous-timeout,
            blame: scenario)

        log
        3.00s  user 37   basket 1 \u{1b}[31mis empty\nthough it was filled though it was
                         filled though it was filled though it was filled though …
        3.00s  user 74   basket 2 \u{1b}[31mis empty\nthough it was filled
        3.00s  user 111  basket 3 \u{1b}[31mis empty\nthough it was filled
        3.00s  user 148  basket 4 \u{1b}[31mis empty\nthough it was filled
        3.01s  user 185  basket 5 \u{1b}[31mis empty\nthough it was filled
        3.01s  user 222  basket 6 \u{1b}[31mis empty\nthough it was filled
        3.01s  user 259  basket 7 \u{1b}[31mis empty\nthough it was filled
        3.01s  user 296  basket 8 \u{1b}[31mis empty\nthough it was filled
        3.01s  user 333  basket 9 \u{1b}[31mis empty\nthough it was filled
        3.01s  user 370  basket 10 \u{1b}[31mis empty\nthough it was filled
        … and 2 more lines; events.ndjson lists all of them

        directory    throng 0.1.0 (10d8f4b21) · seed 42
    "#]]
    .assert_eq(&sections.join("\n\n"));
}

#[test]
fn a_wide_page_shows_complete_thresholds() {
    let wide = summary_text(&sample::shop(true), &Style { width: 120, ..full() });
    assert_fits(&wide, 110);
    let thresholds = wide.split_once("\nthreshold ").unwrap().1;
    let thresholds = thresholds.split_inclusive("\n\n").next().unwrap().trim_end();
    expect![[r#"
                                                            phase   measured  verdict
        http p99 < 50ms                                                         2.90ms  met
        errors < 0.1%                                                          0.099 %  met
        check out: basket, address and payment.with_pauses p95 <= 1s  load       2.94s  NOT MET
        connections.reset <= 5                                                       0  met
        bytes.in rate <= 1 MB/s                                       load   8.23 MB/s  NOT MET
        upgrade p95 <= 1s                                                            –  unknown
        unknown: nothing was measured, so the threshold counts as not met"#]]
    .assert_eq(thresholds);
}

#[test]
fn a_run_that_ended_with_its_data_is_reported() {
    let mut events = sample::shop_events();
    for event in &mut events {
        if let Event::Stopped { by, reason, .. } = event {
            (*by, *reason) =
                (crate::event::StopBy::Data, Said::of_others("`accounts` has no row left"));
        }
    }
    let summary = sample::summary_of(sample::info(), &sample::intervals(), &events);
    let text = summary_text(&summary, &full());
    let (head, _) = text.split_once("\nstep ").unwrap();
    expect![[r#"
        quick check · thresholds met
        https://127.0.0.1:8443 · 10.0s of 12.0s measured · 100,900 ok · 100 failed
        10,090 ok/s · 2026-11-21T12:03:01.000Z

        threshold        measured  verdict
        http p99 < 50ms    2.90ms  met
        errors < 0.1%     0.099 %  met

        warning[data-ended]: the run ended when its data ran out
          = the run was stopped at 11.0s: `accounts` has no row left
          = help: to run the whole load, add rows, or reuse rows (`at_end: wrap`)
    "#]]
    .assert_eq(head);
}

#[test]
fn a_run_with_a_stuck_user_is_reported() {
    let (by, reason) = (crate::event::StopBy::Bug, Said::of_others("user 3 stands still"));
    let events = [Event::Stopped { at_ns: 7_000_000_000, reason, by }];
    let summary = sample::summary_of(sample::info(), &sample::intervals(), &events);
    let text = summary_text(&summary, &full());
    let (head, _) = text.split_once("\nstep ").unwrap();
    expect![[r#"
        quick check · throng has a bug
        https://127.0.0.1:8443 · 10.0s of 12.0s measured · 100,900 ok · 100 failed
        10,090 ok/s · 2026-11-21T12:03:01.000Z

        threshold        measured  verdict
        http p99 < 50ms    2.90ms  met
        errors < 0.1%     0.099 %  met

        error[bug]: a bug in throng ended the run
          = the run was stopped at 7.00s: user 3 stands still
          = help: please report this line with the command and the scenario
    "#]]
    .assert_eq(head);
}

/// A run with this many steps, of which every seventh fails, and as many transactions and
/// thresholds.
fn large(steps: u16) -> Summary {
    let mut info = sample::info();
    let kinds = [("http", "GET /api/v1/customers/00/orders"), ("transaction", "order")];
    info.tables.steps = (0..steps * 2)
        .map(|step| {
            let (kind, name) = kinds[usize::from(step % 2)];
            StepInfo {
                name: format!("{name}/{}", step / 2),
                kind: kind.into(),
                ..StepInfo::default()
            }
        })
        .collect();
    info.tables.thresholds = (0..steps)
        .map(|step| {
            let text = format!("orders of the customer with the number {step} p99 < 1ms");
            let value = if step % 9 == 8 { 1e4 } else { 1e8 };
            sample::threshold(&text, Measure::Quantile(0.99), Comparison::Less, value)
        })
        .collect();
    let mut interval = Interval { phase: 1, shards: 1, ..Interval::default() };
    interval.steps = (0..steps * 2)
        .map(|step| {
            let failed = u64::from(step / 2 % 7 == 6);
            let mut figures =
                StepInterval { step, count: 100, ok: 100 - failed, ..StepInterval::default() };
            figures.latency.record_times(u64::from(step + 1) * 20_000, 100);
            figures
        })
        .collect();
    sample::summary_of(info, &[interval], &sample::events())
}

#[test]
fn only_the_worst_of_many_steps_are_shown_with_a_note() {
    let summary = large(200);
    let text = summary_text(&summary, &full());
    assert_fits(&text, 80);
    let notes: Vec<&str> = text.lines().filter(|line| line.starts_with('…')).collect();
    expect![[r#"
        … and 160 thresholds with better results; `throng report --json` lists all of
        … and 160 steps with better results; `throng report --json` lists all of them
        … and 160 steps with better results; `throng report --json` lists all of them
        … and 160 transactions with better results; `throng report --json` lists all of"#]]
    .assert_eq(&notes.join("\n"));
    let named = |name: &str| text.lines().filter(|line| line.contains(name)).count();
    assert_eq!(named("/orders/195 "), 2, "it failed");
    assert_eq!(named("/orders/199 "), 3, "it is the slowest");
    assert_eq!(named("/orders/0 "), 0);
    assert_eq!(named(" NOT MET"), 22, "no threshold that was missed is left out");
    assert!(text.lines().count() < 250, "{}", text.lines().count());
    let small = summary_text(&large(6), &full());
    assert!(small.lines().all(|line| !line.starts_with('…')), "{small}");
}

#[test]
fn transactions_are_in_no_live_line() {
    let mut live = Live::new(full(), &sample::shop_info());
    let mut plain = live.clone();
    live.add(&sample::shop_intervals()[0]);
    plain.add(&sample::intervals()[0]);
    let until = Time::from_secs(1);
    assert_eq!(live.line(until), plain.line(until));
}

#[test]
fn the_summary_of_a_killed_run_without_results() {
    let info = RunInfo::new("空 run", Duration::ZERO);
    check(
        &sample::summary_of(info, &[], &[]),
        &expect![[r#"
        空 run · incomplete
        0s · 0 ok · 0 failed · 0 ok/s · 1970-01-01T00:00:00.000Z
    "#]],
    );
}

#[test]
fn colors_are_used_only_on_request() {
    let style = Style { colour: true, ..full() };
    let colourful = summary_text(&sample::summary(), &style);
    let plain = summary_text(&sample::summary(), &full());
    assert!(colourful.contains("\x1b[32mthresholds met\x1b[0m"));
    assert_eq!(without_colours(&colourful), plain);
}

fn without_colours(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |plain, part| plain + part.split_once('m').unwrap().1)
}

#[test]
fn fuzz_any_text_and_number_fits_on_the_page() {
    let mut random = Random::new(throng_fuzz::seed());
    let ims = [false, true].map(sample::im_held);
    for _ in 0..30 {
        let mut summary = sample::shop(random.below(2) == 0);
        let name = "\x1b[2J名前 \u{202e}\r\nvery ".repeat(random.below(20) as usize);
        summary.steps.rows[0].name.clone_from(&name);
        summary.parts.phases[0].name.clone_from(&name);
        summary.info.name.clone_from(&name);
        summary.steps.errors[0].example.as_mut().unwrap().detail = Said::of_others(&name);
        let big = |random: &mut Random| random.next_u64() >> (30 + random.below(34));
        summary.steps.rows[0].count = big(&mut random);
        summary.steps.rows[0].ok = big(&mut random);
        summary.steps.rows[0].ok_per_s = big(&mut random) as f64 / 7.0;
        summary.steps.total.latency.max_ns = big(&mut random) << 20;
        summary.connections.stages[0].failed = random.below(1_000_000);
        summary.steps.transactions[0].name.clone_from(&name);
        summary.steps.transactions[0].count = big(&mut random);
        summary.steps.transactions[0].with_pauses.percentiles_ns[Percentile::P95 as usize] =
            big(&mut random) << 20;
        summary.events.log.first[0].text.clone_from(&name);
        summary.events.log.first[0].user = big(&mut random);
        summary.verdict.thresholds[0].text.clone_from(&name);
        summary.verdict.thresholds[0].phase = Some(name.clone());
        lasting(&mut summary, ims[random.below(2) as usize].clone(), &name, &mut random);
        for (width, language) in
            [(80, Language::English), (110, Language::English), (80, Language::Chinese)]
        {
            let style = Style { width, language, ..full() };
            assert_fits(&summary_text(&summary, &style), width);
            summary::assert_short(&summary, &Style { details: false, ..style });
        }
    }
}

/// Makes it a run with long-lived users and random counts.
fn lasting(summary: &mut Summary, im: Summary, name: &str, random: &mut Random) {
    let big = |random: &mut Random| random.next_u64() >> (30 + random.below(34));
    if random.below(2) == 0 {
        summary.connections.stages = im.connections.stages;
        summary.connections.stages[0].began = big(random);
        summary.connections.stages[3].cut_off = Some(big(random));
        summary.connections.stages[1].errors.push((Cause::CertificateRefused, big(random)));
    }
    (summary.steps.pushed, summary.messages.heartbeats, summary.connections.tcp) =
        (im.steps.pushed, im.messages.heartbeats, im.connections.tcp);
    (summary.connections.lifecycle, summary.growth) = (im.connections.lifecycle, im.growth);
    summary.steps.pushed[0].name = name.to_string();
    summary.steps.pushed[0].count = big(random);
    summary.parts.phases[0].users_online_max = big(random);
    summary.parts.phases[0].held_seconds = random.below(1_000_000);
    summary.messages.heartbeats.counts.lost = big(random);
    summary.messages.deliveries = sample::chat_unwatched(2).messages.deliveries;
    summary.messages.deliveries[0].name = name.to_string();
    let row = &mut summary.messages.deliveries[0].counts;
    (row.sent, row.expected, row.delivered) = (big(random), big(random), big(random));
    (row.lost, row.excused, row.foreign) = (big(random), big(random), big(random));
    summary.connections.counts.vanished = big(random);
    summary.connections.opening.per_s_max = big(random);
    summary.connections.tcp.backlog_bytes_max = big(random);
    summary.generator.resources.packets_dropped = big(random);
    summary.growth.held.as_mut().unwrap().detail = Said::of_others(name);
    summary.verdict.validity = im.verdict.validity;
}

fn live_interval(second: u64, count: u64, codes: &[(u16, u64)]) -> Interval {
    let mut interval = Interval { second, shards: 1, ..Interval::default() };
    let ok = codes.iter().filter(|(code, _)| *code < 400).map(|(_, n)| n).sum();
    let mut step = StepInterval { count, ok, codes: codes.into(), ..StepInterval::default() };
    step.errors = vec![(Cause::StatusUnexpected, count - ok)];
    step.latency.record_times(1_230_000, count - count / 50);
    step.latency.record_times(4_560_000, count / 50);
    step.latency.record(89_000_000);
    interval.steps.push(step);
    interval.gauges.users_online = 1_000;
    (interval.traffic.bytes_in, interval.traffic.bytes_out) = (12_000_000, 300_000);
    interval
}

/// A run with any content.
#[test]
fn summaries_fit_on_a_narrow_page() {
    let narrow = Style { width: 60, ..full() };
    let chat = sample::chat_unwatched(2);
    for summary in [sample::summary(), sample::shop(true), sample::shop(false), large(20), chat] {
        let text = summary_text(&summary, &narrow);
        // The first line of a diagnostic is a sentence without values.
        let is_told = |line: &&str| ["error[", "warning["].iter().any(|it| line.starts_with(it));
        let rest: Vec<&str> = text.lines().filter(|line| !is_told(line)).collect();
        assert_fits(&rest.join("\n"), 60);
        let has_digit = |word: &str| word.contains(|c: char| c.is_ascii_digit());
        let is_cut = |word: &&str| word.ends_with('…') && has_digit(word) && !word.contains('/');
        assert_eq!(text.split_whitespace().find(is_cut), None, "{text}");
    }
}

#[test]
fn the_summary_of_users_that_only_stay_connected() {
    let mut info = sample::info();
    info.tables.thresholds.clear();
    info.generator.host = throng_host::HostFacts::default();
    info.tables.phases.remove(0);
    let step =
        |kind: &str| StepInfo { name: kind.into(), kind: kind.into(), ..StepInfo::default() };
    info.tables.steps = vec![step("connect"), step("stay")];
    let mut interval = Interval { shards: 1, ..Interval::default() };
    let mut connect = StepInterval { count: 100, ok: 100, ..StepInterval::default() };
    connect.latency.record_times(2_000_000, 100);
    let mut stay = StepInterval { step: 1, count: 100, ok: 99, ..StepInterval::default() };
    stay.errors = vec![(Cause::Lost, 1)];
    interval.steps = vec![connect, stay];
    interval.stage_mut(throng_metrics::Stage::Connect).latency.record_times(900_000, 100);
    interval.stage_mut(throng_metrics::Stage::Connect).ok = 100;
    (interval.gauges.users_online, interval.gauges.connections_open) = (100, 100);
    (interval.connections.counts.attempted, interval.connections.counts.opened) = (100, 100);
    let ended = Event::PhaseEnded { at_ns: 10 * SECOND_NS, phase: 0 };
    let summary = sample::summary_of(info, &[interval], &[ended]);
    check(
        &summary,
        &expect![[r#"
            quick check · done
            https://127.0.0.1:8443 · 10.0s · 199 ok · 1 failed · 19.9 ok/s
            2026-11-21T12:03:01.000Z

            step     attempts   ok  failed  ok/s   in  out
            connect       100  100       0  10.0  0 B  0 B
            stay          100   99       1  9.90  0 B  0 B
            all           200  199       1  19.9  0 B  0 B

            latency    mean     p50     p90     p95     p99     max
            connect  2.00ms  2.00ms  2.00ms  2.00ms  2.00ms  2.00ms
            all      2.00ms  2.00ms  2.00ms  2.00ms  2.00ms  2.00ms
            – too few values: p90 needs 10, p95 20, p99 100, p99.9 1,000, p99.99 10,000

            errors · shares of 200 attempts
            1  0.50 %  stay: the target dropped the connection while the user was online
                       (lost, blame: target)

            funnel   entered  passed    p50    p90    p99    max
            connect      100     100  900µs  900µs  900µs  900µs

            online  at the end  least  most  opened  opened/s  broken
            load           100    100   100     100      10.0       0

            users        100 online at peak
            connections  100 open at peak · 100 opened · 100 opened in the peak second
                         10 per second on average

            directory    throng 0.1.0 (10d8f4b21) · seed 42
        "#]],
    );
}

#[test]
fn a_live_line_fits_with_any_content() {
    let mut live = Live::new(full(), &sample::info());
    let mut interval = live_interval(0, 0, &[]);
    interval.gauges.users_online = 1_000_000;
    interval.steps[0].count = 4_000_000_000_000;
    interval.steps[0].ok = 3_000_000_000_000;
    interval.steps[0].codes =
        (100..600).map(|code| (code, 1_000_000_000 + u64::from(code))).collect();
    interval.steps[0].errors = vec![(Cause::CertificateRefused, 1_000_000_000_000)];
    interval.steps[0].latency.record_times(300_000_000_000_000, 99);
    interval.traffic.bytes_in = 999_000_000_000;
    for second in [1, 3_600, 360_000, 40_000_000] {
        live.add(&interval);
        let line = live.line(Time::from_secs(second));
        assert_fits(&line, 80);
        interval.steps[0].codes.clear();
    }
    let headers =
        (0..100).filter(|second| live.line(Time::from_secs(50_000_000 + second)).contains("users"));
    assert_eq!(headers.count(), 5);
}

#[test]
fn the_progress_line() {
    let mut progress = Progress {
        phase: "ramp\x1b up".into(),
        number: 1,
        phases: 3,
        share: Some(0.42),
        left: Some(Duration::from_millis(17_400)),
        elapsed: Duration::from_secs(12),
    };
    let plain = |progress: &Progress| progress_line(progress, &full());
    expect![[r#"ramp\u{1b} up 1/3 ━━━━━━━━━━━━──────────────────  42 % · 18s left"#]]
        .assert_eq(&plain(&progress));
    let colourful = progress_line(&progress, &Style { colour: true, ..full() });
    assert_eq!(without_colours(&colourful), plain(&progress));
    progress.left = None;
    progress.phase = "x".repeat(100);
    (progress.number, progress.phases) = (12, 12);
    progress.share = Some(f64::INFINITY);
    expect!["xxxxxxxxxxxxxxxxxxx… 12/12 ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 100 % · 12s so far"]
        .assert_eq(&plain(&progress));
    let narrow = progress_line(&progress, &Style { width: 60, ..full() });
    assert!(width(&narrow) <= 60, "{narrow}");
    progress.share = None;
    (progress.phases, progress.elapsed) = (1, Duration::from_secs(3_725));
    expect!["xxxxxxxxxxxxxxxxxxx… · 1h02m so far"].assert_eq(&plain(&progress));
}

/// Every attempt failed with the same cause.
fn failed_throughout(thresholds: bool) -> Summary {
    let mut info = sample::info();
    info.tables.phases.remove(0);
    if !thresholds {
        info.tables.thresholds.clear();
    }
    let mut interval = Interval { shards: 1, ..Interval::default() };
    let errors = vec![(Cause::StatusUnexpected, 454_624)];
    let mut figures = StepInterval { count: 454_624, errors, ..StepInterval::default() };
    figures.latency.record_times(400_000, 454_624);
    interval.steps = vec![figures];
    interval.connections.counts.opened = 50;
    let events = [
        Event::PhaseBegun { at_ns: 0, phase: 0 },
        Event::PhaseEnded { at_ns: 10 * SECOND_NS, phase: 0 },
    ];
    sample::summary_of(info, &[interval], &events)
}

#[test]
fn a_run_without_a_success_never_passes() {
    for thresholds in [false, true] {
        let summary = failed_throughout(thresholds);
        assert_eq!(crate::exit_code(&summary), throng_base::Exit::ThresholdsNotMet);
        let red = summary_text(&summary, &Style { colour: true, ..full() });
        let head = red.lines().next().unwrap();
        assert!(head.contains("\x1b[31mnothing succeeded: the status is not"), "{head}");
        assert!(!head.contains("\x1b[32m"), "{head}");
        let junit = crate::junit(&summary);
        assert!(junit.contains("type=\"nothing-succeeded\""), "{junit}");
        let json = crate::summary_json(&summary);
        assert_eq!(json["outcome"]["headline"], "nothing succeeded");
        assert_eq!(json["outcome"]["exit_code"], 1);
    }
    let text = summary_text(&failed_throughout(false), &full());
    let top: Vec<&str> = text.split("\n\n").take(2).collect();
    expect![[r#"
        quick check · nothing succeeded: the status is not as expected
        https://127.0.0.1:8443 · 10.0s · 0 ok · 454,624 failed · 0 ok/s
        2026-11-21T12:03:01.000Z

        error[nothing-succeeded]: no attempt in this run succeeded
          = no attempt succeeded: 454,624 of 454,624 failed
          = cause: 454,624 × the status is not as expected (status-unexpected)
          = help: run one user with `throng try` first"#]]
    .assert_eq(&top.join("\n\n"));
}

#[test]
fn lateness_is_shown_with_the_verdict() {
    let mut intervals = sample::intervals();
    for interval in &mut intervals[3..7] {
        (0..500).for_each(|n| interval.generator.lateness.record(15_000_000 + n * 10_000));
        interval.generator.resources.as_mut().unwrap().host_cpu = 0.999;
    }
    let summary = sample::summary_of(sample::info(), &intervals, &sample::events());
    assert_eq!(crate::exit_code(&summary), throng_base::Exit::Success);
    let coloured = summary_text(&summary, &Style { colour: true, ..full() });
    let head = coloured.lines().next().unwrap();
    assert!(head.contains("[33mthresholds met, but throng fell behind"), "{head}");
    let text = summary_text(&summary, &full());
    let top: Vec<&str> = text.split("\n\n").take(3).collect();
    expect![[r#"
        quick check · thresholds met, but throng fell behind
        https://127.0.0.1:8443 · 10.0s of 12.0s measured · 100,900 ok · 100 failed
        10,090 ok/s · 2026-11-21T12:03:01.000Z

        threshold        measured  verdict
        http p99 < 50ms    2.90ms  met
        errors < 0.1%     0.099 %  met

        warning[generator-strained]: throng fell behind schedule; results are affected
          = throng was more than 10 ms behind schedule in 4 of 10 seconds (worst 20.0ms)
          = cause: this host's CPU was 100 % busy from 00:03 onward
          = help: use fewer users, longer pauses or a faster host (this host sustained 10,090/s)"#]]
    .assert_eq(&top.join("\n\n"));
    assert_eq!(
        crate::summary_json(&summary)["outcome"]["warnings"][0]["code"],
        "generator-strained"
    );
}

#[test]
fn host_usage_is_shown_with_details() {
    let summary = sample::summary();
    let short = summary_text(&summary, &Style::plain());
    assert_eq!(short.lines().filter(|line| line.contains("tcp_tw_reuse")).count(), 0);
    let long = summary_text(&summary, &Style { details: true, ..full() });
    assert_fits(&long, 80);
    let host = long.split_once("\nhost ").unwrap().1.split_once("\n\n").unwrap().0;
    assert_eq!((host.lines().count(), host.contains("tcp_tw_reuse 2")), (4, true), "{host}");
}

#[test]
fn a_percentile_requires_a_value_above_it() {
    let text = |count: u64| {
        let mut info = sample::info();
        info.tables.phases.remove(0);
        let mut interval = Interval { shards: 1, ..Interval::default() };
        let mut figures = StepInterval { count, ok: count, ..StepInterval::default() };
        figures.latency.record_times(400_000, count);
        interval.steps = vec![figures];
        let text = summary_text(&sample::summary_of(info, &[interval], &[]), &full());
        text.lines().find(|line| line.starts_with("latency")).unwrap().to_string()
    };
    assert_eq!(text(1).split_whitespace().collect::<Vec<_>>(), ["latency", "mean", "max"]);
    for (count, last) in
        [(9, "p50"), (10, "p90"), (20, "p95"), (99, "p95"), (100, "p99"), (9_999, "p99.9")]
    {
        assert_eq!(text(count).split_whitespace().rev().nth(1), Some(last), "{count}");
    }
    assert!(text(10_000).contains("p99.99"));
}

/// The successful run, on a generator with a quota of half a processor.
fn throttled(lost_share: f64) -> Summary {
    let mut info = sample::info();
    let threshold =
        |text, value| sample::threshold(text, Measure::Quantile(0.99), Comparison::Less, value);
    info.tables.thresholds =
        vec![threshold("http p99 < 10ms", 1e7), threshold("http p99 < 50ms", 5e7)];
    let mut intervals = sample::intervals();
    for interval in &mut intervals {
        interval.shards = 2;
        interval.generator.lost_ns = (2e9 * lost_share) as u64;
        interval.generator.lost_max_ns = 45_000_000;
        (0..50).for_each(|_| interval.generator.lateness.record(40_000_000));
        interval.steps[0].latency.record_times(45_000_000, 500);
        let resources = interval.generator.resources.as_mut().unwrap();
        resources.cpu.quota_periods = 10;
        resources.cpu.throttled_periods = 9;
        resources.cpu.throttled_ns = 420_000_000;
    }
    sample::summary_of(info, &intervals, &sample::events())
}

#[test]
fn a_threshold_explained_by_lateness_is_indeterminate() {
    let summary = throttled(0.05);
    assert_eq!(crate::exit_code(&summary), throng_base::Exit::ResultInvalid);
    let json = crate::summary_json(&summary);
    assert_eq!(json["outcome"]["valid"], true);
    assert_eq!(json["thresholds"][0]["verdict"], "indeterminate");
    assert_eq!(json["thresholds"][1]["verdict"], "met");
    assert!(crate::junit(&summary).contains("type=\"threshold-indeterminate\""));
    let text = summary_text(&summary, &full());
    assert_fits(&text, 80);
    let shown: Vec<&str> = text
        .split("\n\n")
        .enumerate()
        .filter(|(at, section)| *at < 3 || section.starts_with("latency"))
        .map(|(_, section)| section)
        .collect();
    expect![[r#"
        quick check · thresholds cannot be evaluated
        https://127.0.0.1:8443 · 10.0s of 12.0s measured · 100,900 ok · 100 failed
        10,090 ok/s · 2026-11-21T12:03:01.000Z

        threshold        measured  verdict
        http p99 < 10ms    44.8ms  undetermined
        http p99 < 50ms    44.8ms  met
        undetermined: throng's own lateness can explain the value

        warning[generator-strained]: throng fell behind schedule; results are affected
          = throng was more than 10 ms behind schedule in 10 of 10 seconds (worst 40.0ms)
          = cause: a CPU quota stopped throng for 4.20s, in 90 of 100 periods
          = help: lower the load, or use a faster host

        latency    mean     p50     p90     p95      p99    p99.9   p99.99     max
        GET /    3.32ms  1.09ms  2.64ms  2.87ms  ~44.8ms  ~44.8ms  ~44.8ms  45.0ms
        log in   3.49ms  3.49ms  3.88ms  3.95ms   3.98ms   3.98ms        –  3.99ms
        all      3.32ms  1.09ms  2.67ms  3.69ms  ~44.8ms  ~44.8ms  ~44.8ms  45.0ms
        – too few values: p90 needs 10, p95 20, p99 100, p99.9 1,000, p99.99 10,000
        ~ throng's own lateness can account for half of this time or more"#]]
    .assert_eq(&shown.join("\n\n"));
}

#[test]
fn a_stopped_generator_has_no_valid_result() {
    let summary = throttled(0.42);
    let Validity::Invalid { reasons } = &summary.verdict.validity else { panic!("it is valid") };
    assert_eq!(reasons.iter().map(|it| it.word()).collect::<Vec<_>>(), ["time-lost"]);
    let text = summary_text(&summary, &full());
    let told = text.split("\n\n").nth(2).unwrap();
    expect![[r#"
        error[generator-late]: this run does not measure the target
          = throng was more than 10 ms behind schedule in 10 of 10 seconds (worst 40.0ms)
          = throng stalled for 4.20s of 10.0s (longest stall 45.0ms)
          = cause: a CPU quota stopped throng for 4.20s, in 90 of 100 periods
          = help: lower the load, or use a faster host"#]]
    .assert_eq(told);
}
