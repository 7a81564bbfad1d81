//! The screen as text, at sizes from zero to very large.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use throng_base::{Language, Time};
use throng_metrics::cells::CellRow;
use throng_metrics::{Cause, Cells, Gauges, Histogram, Interval, Stage, StepInterval};
use throng_results::{RunInfo, StepInfo, TablesInfo, TargetsInfo};

use super::*;

/// A run with several steps on long-lived connections; one of the steps fails.
fn figures(steps: u16, seconds: u64) -> Figures {
    let step = |n: u16| StepInfo {
        name: format!("GET /\u{1b}[2J目录/{n}"),
        kind: "http".into(),
        ..StepInfo::default()
    };
    let info = RunInfo {
        tables: TablesInfo { steps: (0..steps).map(step).collect(), ..TablesInfo::default() },
        targets: TargetsInfo {
            urls: vec!["http://127.0.0.1:8080".into()],
            ..TargetsInfo::default()
        },
        ..RunInfo::new("people who buy", Duration::ZERO)
    };
    let mut figures = Figures::new(&info);
    for second in 0..seconds {
        let mut interval = Interval { second, ..Interval::default() };
        for step in 0..steps {
            let mut latency = Histogram::new();
            (1..=200).for_each(|n| latency.record((1 + n) * 100_000 * (1 + second % 7)));
            let (ok, errors) = match step {
                1 => (200, vec![(Cause::Timeout, 3)]),
                _ => (203, Vec::new()),
            };
            let row = StepInterval { step, count: 203, ok, latency, ..<_>::default() };
            interval.steps.push(StepInterval { errors, ..row });
        }
        (interval.population.wanted, interval.population.begun) = (300, 250 + second);
        let connect = interval.stage_mut(Stage::Connect);
        (connect.began, connect.ok, connect.failed) = (20, 18, 2);
        let gauges = Gauges {
            users_online: second * 10,
            users_present: second * 10 + 3,
            connections_open: 42,
            ..Gauges::default()
        };
        figures.add(&interval, &gauges);
    }
    figures.event(Time::from_secs(7), "phase `steady`: times 1.1");
    figures
}

/// A million users, a fifth of which are disconnected.
fn with_cells(mut figures: Figures) -> Figures {
    let row = |cell: u16| match cell {
        400..600 => CellRow(cell, [0, 0, 0, 0, 1_000, 0]),
        _ => CellRow(cell, [1_000, 0, 0, 0, 0, 0]),
    };
    let cells = Cells { users_per_cell: 1_000, rows: (0..1_000).map(row).collect() };
    figures.add(&Interval { second: 31, cells, ..Interval::default() }, &Gauges::default());
    figures
}

fn progress() -> Progress {
    Progress {
        phase: "steady".into(),
        number: 1,
        phases: 2,
        share: Some(0.25),
        left: Some(Duration::from_secs(45)),
        elapsed: Duration::from_secs(15),
    }
}

/// The screen of this size, line by line.
fn screen(
    figures: &Figures,
    (width, height): (u16, u16),
    helps: bool,
    language: Language,
) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
    let progress = progress();
    let style = Style { colour: true, width: usize::from(width), language, ..Style::plain() };
    let view = View { figures, progress: Some(&progress), style, helps };
    terminal.draw(|frame| draw(frame, &view)).expect("it is drawn");
    let buffer = terminal.backend().buffer();
    let line = |y: u16| -> String { (0..width).map(|x| buffer[(x, y)].symbol()).collect() };
    (0..height).map(|y| format!("{}\n", line(y).trim_end())).collect()
}

#[test]
fn everything_fits_on_a_small_terminal() {
    let figures = figures(3, 30);
    let text = screen(&figures, (80, 24), false, Language::English);
    for part in [
        "people who buy · http://127.0.0.1:8080",
        "steady 1/2",
        "25 %",
        "45s left",
        "280 users",
        "606 ok/s",
        "90 failed",
        "3 offline",
        "per second",
        "scheduled",
        "response time",
        "p99",
        "users",
        "steps",
        "connections: 42 open",
        "connect",
        "87 timeout (target) GET /",
        "7.00s phase `steady`: times 1.1",
        "? help",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(text.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)), "no curve:\n{text}");
}

#[test]
fn users_are_drawn_as_a_block_of_cells() {
    let figures = with_cells(figures(3, 30));
    let text = screen(&figures, (160, 48), false, Language::English);
    for part in
        ["population: 3,000 users per cell", "█ 800,000 online", "█ 200,000 away (connection"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    // In addition to those in the legend.
    assert_eq!(text.matches('█').count(), 334 + 2, "{text}");
    let style = Style { width: 160, ..Style::plain() };
    let view = View { figures: &figures, progress: None, style, helps: false };
    let mut terminal = Terminal::new(TestBackend::new(160, 48)).expect("a screen");
    terminal.draw(|frame| draw(frame, &view)).expect("it is drawn");
    let buffer = terminal.backend().buffer();
    let count = |symbol| buffer.content().iter().filter(|cell| cell.symbol() == symbol).count();
    assert!(count("A") > 60 && count("O") > 260, "without colours, cells are letters");
}

#[test]
fn help_names_every_key() {
    let figures = figures(1, 3);
    let text = screen(&figures, (80, 24), true, Language::English);
    for key in [
        "+  raise",
        "-  lower",
        "p  pause",
        "g  go on",
        "n  end",
        "m  record a mark",
        "q  stop",
        "?  show",
    ] {
        assert!(text.contains(key), "{key}:\n{text}");
    }
    let hidden = screen(&figures, (80, 24), false, Language::English);
    assert!(!hidden.contains("p  pause: no"), "{hidden}");
}

#[test]
fn any_size_and_any_run_is_drawn() {
    for (steps, seconds) in [(0, 0), (1, 1), (2, 2), (1_000, 3), (5, 400)] {
        let figures = match seconds {
            3 => with_cells(figures(steps, seconds)),
            _ => figures(steps, seconds),
        };
        for size in [(1, 1), (20, 5), (49, 30), (50, 12), (60, 15), (80, 24), (200, 60), (400, 100)]
        {
            for language in [Language::English, Language::Chinese] {
                for helps in [false, true] {
                    let text = screen(&figures, size, helps, language);
                    assert_eq!(text.lines().count(), usize::from(size.1));
                }
            }
        }
    }
}

#[test]
fn failing_steps_are_shown_first_among_a_thousand() {
    let text = screen(&figures(1_000, 3), (80, 24), false, Language::English);
    let steps = text.split("steps (").nth(1).unwrap_or_default();
    assert!(steps.contains("with better results not shown)"), "{text}");
    assert!(steps.lines().nth(2).is_some_and(|line| line.contains("/1 ")), "{text}");
}
