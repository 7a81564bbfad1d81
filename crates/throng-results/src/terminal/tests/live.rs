//! Tests the line that a run prints every second.

use super::*;

#[test]
fn one_line_per_second() {
    let mut live = Live::new(full(), &sample::info());
    let mut out = String::new();
    let seconds: [&[(u16, u64)]; 5] = [
        &[(200, 102_882)],
        &[(200, 99_000), (503, 1_000)],
        &[(200, 99_000), (503, 1_000), (404, 7)],
        &[(503, 1)],
        &[],
    ];
    for (second, codes) in (0u64..).zip(seconds) {
        live.add(&live_interval(second, codes.iter().map(|(_, n)| n).sum(), codes));
        out += &live.line(Time::from_secs(second + 1));
        out.push('\n');
    }
    // Results of two shards and of two phases share a line.
    let (mut half, mut next) = (live_interval(5, 5, &[(200, 5)]), live_interval(5, 7, &[(200, 7)]));
    live.add(&half);
    live.add(&half);
    (next.phase, half.phase) = (1, 1);
    live.add(&next);
    out += &live.line(Time::from_secs(6));
    out.push('\n');
    out += &live.line(Time::from_secs(7));
    assert_fits(&out, 80);
    // The frame keeps leading spaces, which expected texts lose.
    let framed: String = out.lines().map(|line| format!("|{line}\n")).collect();
    expect![[r#"
        |  time   users       ok failed    ok/s    p50    p99    max bytes/s codes
        |    1s    1000   102882      0  102882 1.24ms 4.55ms 89.0ms 12.3 MB 200:103k
        |    2s    1000   201882   1000   99000 1.24ms 4.55ms 89.0ms 12.3 MB 200:99000 +1
        |    3s    1000   300882   2007   99000 1.24ms 4.55ms 89.0ms 12.3 MB 200:99000 +2
        |    4s    1000   300882   2008       0 1.24ms 89.0ms 89.0ms 12.3 MB 503:1
        |    5s    1000   300882   2008       0 89.0ms 89.0ms 89.0ms 12.3 MB
        |    6s    1000   300899   2008      17 1.24ms 89.0ms 89.0ms 36.9 MB 200:17
        |    7s       0   300899   2008       0      –      –      –     0 B
    "#]]
    .assert_eq(&framed);
}

#[test]
fn codes_that_do_not_fit_are_counted() {
    for (width, end) in [(80, "200:99000 +1"), (85, "200:99000 +1 more"), (90, "503:1000")] {
        let mut live = Live::new(Style { width, ..full() }, &sample::info());
        live.add(&live_interval(0, 100_000, &[(200, 99_000), (503, 1_000)]));
        let line = live.line(Time::from_secs(1));
        assert_fits(&line, width);
        assert!(line.ends_with(end), "{line}");
    }
}

#[test]
fn a_line_counts_attempts_and_shows_the_most_frequent_code() {
    let mut info = sample::info();
    info.tables.steps[0] =
        StepInfo { name: "connect".into(), kind: "connect".into(), ..StepInfo::default() };
    let mut live = Live::new(full(), &info);
    let mut interval = Interval { second: 0, ..Interval::default() };
    let connect = StepInterval { count: 9, ok: 8, ..StepInterval::default() };
    let request = StepInterval { step: 1, count: 90, ok: 80, ..StepInterval::default() };
    interval.steps = vec![connect, request];
    interval.steps[1].codes = vec![(200, 130_565), (1000, 5), (503, 2)];
    live.add(&interval);
    let line = live.line(Time::from_secs(1));
    let words: Vec<&str> = line.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(words[3..5], ["88", "11"], "{line}");
    assert!(line.ends_with(" 200 +2"), "{line}");
}

#[test]
fn a_narrow_line_omits_columns_instead_of_truncating_numbers() {
    let mut chat = sample::info();
    chat.tables.steps[0] =
        StepInfo { name: "connect".into(), kind: "connect".into(), ..StepInfo::default() };
    for info in [sample::info(), chat] {
        for columns in [60, 66, 70, 79] {
            let mut live = Live::new(Style { width: columns, ..full() }, &info);
            let codes = [(200, 123_456), (404, 99_999), (503, 77)];
            live.add(&live_interval(0, 223_532, &codes));
            let line = live.line(Time::from_secs(1));
            assert_fits(&line, columns);
            let (head, figures) = line.split_once('\n').unwrap();
            assert!(head.contains("p99") && head.contains("failed"), "{line}");
            assert!(figures.contains(" 200") && figures.contains(" +"), "{line}");
            assert!(!figures.contains('…'), "{line}");
        }
    }
    let wide = Style { width: 100, ..full() };
    let mut live = Live::new(wide, &sample::info());
    live.add(&live_interval(0, 1_100, &[(404, 100), (200, 1_000)]));
    assert!(live.line(Time::from_secs(1)).ends_with(" 200:1000 404:100"));
}
