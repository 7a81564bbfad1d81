//! Tests folders with runs drawn from known distributions.

use std::fs;
use std::time::Duration;

use throng_base::random::Random;
use throng_metrics::{Histogram, Interval, StepInterval};

use super::super::Fails;
use super::*;
use crate::directory::{INTERVALS_FILE, PhaseInfo, StepInfo, timestamp};
use crate::event::Event;
use crate::record::Recorder;
use crate::terminal::{Style, history_text};
use throng_metrics::capacity::Capacity;

const SECOND_NS: u64 = 1_000_000_000;

/// Properties of a generated run.
#[derive(Clone)]
struct Made {
    scenario: &'static str,
    text: &'static str,
    number: u64,
    mean_ns: f64,
    seconds: u64,
    ended: bool,
    /// The lower end of its capacity interval.
    carries: Option<f64>,
}

impl Default for Made {
    fn default() -> Made {
        let (scenario, text) = ("shop", "name: shop\n");
        let (mean_ns, carries) = (1e6, None);
        Made { scenario, text, number: 0, mean_ns, seconds: 12, ended: true, carries }
    }
}

/// Writes a run with about forty responses per second, and returns its directory.
fn write(folder: &Path, made: &Made) -> PathBuf {
    let directory = folder.join(format!("{:03}-{}", made.number, made.scenario));
    let mut random = Random::new(made.number);
    let step =
        |name: &str| StepInfo { name: name.into(), kind: "http".into(), ..StepInfo::default() };
    let phase = PhaseInfo { name: "hold".into(), measured: true, ..PhaseInfo::default() };
    let started = Duration::from_secs(1_795_262_581 + made.number * 3_600);
    let mut info = RunInfo::new(made.scenario, started);
    info.id = format!("run-{}", made.number);
    info.labels.insert("parity".into(), ["even", "odd"][(made.number % 2) as usize].into());
    (info.tables.steps, info.tables.phases) = (vec![step("GET /"), step("GET /cart")], vec![phase]);
    let mut recorder = Recorder::create(&directory, &info, made.text).unwrap();
    let end = made.seconds * SECOND_NS;
    recorder.event(&Event::PhaseBegun { at_ns: 0, phase: 0 }).unwrap();
    for second in 0..made.seconds {
        let row = |number: u16, random: &mut Random| {
            let count = 40 + random.below(5);
            let mut latency = Histogram::new();
            let times = (0..count).map(|_| made.mean_ns * (1.0 + random.uniform(-0.2, 0.2)));
            times.for_each(|time| latency.record(time as u64 * (u64::from(number) + 1)));
            StepInterval {
                step: number,
                count,
                ok: count,
                begun: count,
                latency,
                ..Default::default()
            }
        };
        let steps = vec![row(0, &mut random), row(1, &mut random)];
        let interval = Interval { second, shards: 1, steps, ..Interval::default() };
        recorder.interval(&interval).unwrap();
    }
    if let Some(carries) = made.carries {
        let (low, high, carries) = (Some(carries), Some(carries * 1.05), Some(carries));
        let found = Capacity { carries, low, high, ..crate::tests::sample::capacity::capacity() };
        let capacity = Event::Capacity { at_ns: end, capacity: Box::new(found) };
        recorder.event(&capacity).unwrap();
    }
    if made.ended {
        recorder.event(&Event::PhaseEnded { at_ns: end, phase: 0 }).unwrap();
        recorder.event(&Event::RunEnded { at_ns: end }).unwrap();
        info.time.ended = Some(timestamp(started + Duration::from_secs(made.seconds)));
        recorder.finish(&info).unwrap();
    }
    directory
}

fn several(folder: &Path, means: &[f64]) {
    for (number, mean_ns) in (0..).zip(means) {
        write(folder, &Made { number, mean_ns: *mean_ns, ..Made::default() });
    }
}

fn asked() -> Asked {
    Asked::default()
}

fn conditions(texts: &[&str]) -> Vec<Condition> {
    texts.iter().map(|text| Condition::parse(text).unwrap()).collect()
}

fn by(run: &Past, measure: Quantity) -> Option<f64> {
    Some(run.figure(measure)?.change.as_ref()?.by)
}

#[test]
fn runs_are_compared_with_the_previous_one_and_lasting_changes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    several(folder.path(), &[1e6, 1e6, 1e6, 1e6, 1.3e6, 1.3e6, 1.3e6]);
    let history = History::read(folder.path(), &asked()).unwrap();
    let trend = &history.scenarios[0];
    assert_eq!((history.scenarios.len(), trend.runs.len()), (1, 7));
    assert_eq!(by(&trend.runs[0], Quantity::Mean), None);
    let named = |run: &Past| {
        let changes = run.figures.iter().filter_map(|figure| figure.change.as_ref());
        changes.filter(|change| change.named).count()
    };
    let counts: Vec<usize> = trend.runs.iter().map(named).collect();
    assert_eq!([&counts[..4], &counts[5..]].concat(), [0; 6]);
    // The median is between two steps of the distribution: it is noise.
    assert_eq!(counts[4], 4, "mean, p90, p95 and p99: {:#?}", trend.runs[4].figures);
    let p99 = by(&trend.runs[4], Quantity::Quantile(0.99)).unwrap();
    assert!((0.25..0.35).contains(&p99), "{p99}");
    let since: Vec<usize> = trend.shifts.iter().map(|shift| shift.since).collect();
    assert_eq!(since, [4, 4], "p95 and p99: {:?}", trend.shifts);
    let text = history_text(&history, &Style::plain());
    for part in
        ["shop: 7 runs", "since run 004-shop: p95 31 % higher (2.32ms →", "2026-11-21 12:03:01"]
    {
        assert!(text.contains(part), "{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn unusable_runs_are_listed_and_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    several(folder.path(), &[1e6, 1e6, 1e6, 1e6, 1e6]);
    let at = |number: u64| folder.path().join(format!("{number:03}-shop"));
    fs::write(at(1).join(RUN_FILE), "{").unwrap();
    let lines = fs::read(at(2).join(INTERVALS_FILE)).unwrap();
    fs::write(at(2).join(INTERVALS_FILE), &lines[..lines.len() - 9]).unwrap();
    let info = fs::read_to_string(at(3).join(RUN_FILE)).unwrap();
    let newer = info.replacen("\"format\": ", "\"format\": 99", 1);
    fs::write(at(3).join(RUN_FILE), newer).unwrap();
    write(folder.path(), &Made { number: 5, ended: false, ..Made::default() });
    fs::create_dir(folder.path().join("no-run")).unwrap();
    fs::write(folder.path().join("README.md"), "of no interest").unwrap();
    let history = History::read(folder.path(), &asked()).unwrap();
    let runs: Vec<String> = history.scenarios[0].runs.iter().map(Past::name).collect();
    assert_eq!(runs, ["000-shop", "004-shop"]);
    assert!(by(&history.scenarios[0].runs[1], Quantity::Mean).is_some());
    let over = |over: &PassedOver| format!("{}: {}", over.name(), over.reason.english());
    let over: Vec<String> = history.passed_over.iter().map(over).collect();
    let all = over.join("\n");
    for reason in [
        "001-shop: ",
        "is damaged",
        "003-shop: the run directory has format 99",
        "005-shop: it has not ended",
        "002-shop: its data is incomplete",
        "no-run: ",
        "is not a run directory",
    ] {
        assert!(all.contains(reason), "{all}");
    }
    assert_eq!(over.len(), 5, "{all}");
}

#[test]
fn scenarios_steps_labels_and_the_newest_runs_are_selected() {
    let folder = tempfile::tempdir().unwrap();
    several(folder.path(), &[1e6, 1e6, 1e6, 1e6]);
    write(folder.path(), &Made { scenario: "chat", number: 9, ..Made::default() });
    let names = |asked: &Asked| -> Vec<(String, usize)> {
        let history = History::read(folder.path(), asked).unwrap();
        let trends = history.scenarios.iter();
        trends.map(|trend| (trend.scenario.clone(), trend.runs.len())).collect()
    };
    let both =
        |chat: usize, shop: usize| vec![("chat".to_string(), chat), ("shop".to_string(), shop)];
    assert_eq!(names(&asked()), both(1, 4));
    assert_eq!(names(&Asked { last: Some(2), ..asked() }), both(1, 2));
    let labels = vec![("parity".to_string(), "odd".to_string())];
    assert_eq!(names(&Asked { labels, ..asked() }), both(1, 2));
    // The oldest displayed run is also compared with its predecessor.
    let last = Asked { last: Some(1), ..asked() };
    let history = History::read(folder.path(), &last).unwrap();
    assert!(by(&history.scenarios[1].runs[0], Quantity::Rate).is_some());
    let step = Asked { step: Some("GET /cart".into()), ..asked() };
    let history = History::read(folder.path(), &step).unwrap();
    let mean = history.scenarios[1].runs[0].figure(Quantity::Mean).unwrap().after.unwrap();
    assert!((1.9e6..2.1e6).contains(&mean), "{mean}");
    let wrong = Asked { step: Some("GET /card".into()), ..asked() };
    let told = History::read(folder.path(), &wrong).unwrap_err().render(false);
    assert!(told.contains("did you mean `GET /cart`?"), "{told}");
    let labels = vec![("parity".to_string(), "neither".to_string())];
    let told = History::read(folder.path(), &Asked { labels, ..asked() }).unwrap_err();
    assert!(told.render(false).contains("has these labels"), "{told:?}");
    let one = folder.path().join("000-shop");
    let told = History::read(&one, &asked()).unwrap_err().render(false);
    assert!(told.contains("is the directory of a single run"), "{told}");
}

#[test]
fn all_runs_are_compared_with_one_baseline() {
    let folder = tempfile::tempdir().unwrap();
    several(folder.path(), &[1e6, 1.3e6, 1.3e6]);
    write(folder.path(), &Made { scenario: "chat", number: 9, ..Made::default() });
    let baseline = Some("000-shop".into());
    let conditions = conditions(&["mean > +10%", "\"GET /cart\" p50 > +50%"]);
    let history = History::read(folder.path(), &Asked { baseline, conditions, ..asked() }).unwrap();
    assert_eq!(history.scenarios.len(), 1);
    let trend = &history.scenarios[0];
    let changes: Vec<Option<f64>> = trend.runs.iter().map(|run| by(run, Quantity::Mean)).collect();
    assert_eq!(changes[0], None);
    assert!(changes[1..].iter().flatten().all(|by| (0.25..0.35).contains(by)), "{changes:?}");
    let fails: Vec<Fails> = trend.judged.iter().map(|judged| judged.fails).collect();
    assert_eq!(fails, [Fails::Yes, Fails::No]);
}

#[test]
fn conditions_apply_to_the_newest_run() {
    let folder = tempfile::tempdir().unwrap();
    several(folder.path(), &[1e6, 1.3e6, 1.3e6]);
    write(folder.path(), &Made { scenario: "chat", number: 9, ..Made::default() });
    let judged = |texts: &[&str]| {
        let conditions = conditions(texts);
        let history = History::read(folder.path(), &Asked { conditions, ..asked() });
        history.map(|history| history.scenarios[1].judged[0].fails)
    };
    assert_eq!(judged(&["mean > +10%"]).unwrap(), Fails::No);
    write(folder.path(), &Made { number: 10, mean_ns: 1.7e6, ..Made::default() });
    assert_eq!(judged(&["mean > +10%"]).unwrap(), Fails::Yes);
    let told = judged(&["htpt mean > +10%"]).unwrap_err().render(false);
    assert!(told.contains("did you mean `http`"), "{told}");
}

#[test]
fn other_differences_are_listed_where_they_occur() {
    let folder = tempfile::tempdir().unwrap();
    several(folder.path(), &[1e6, 1e6]);
    write(folder.path(), &Made { number: 2, text: "name: shop\n# other\n", ..Made::default() });
    let history = History::read(folder.path(), &asked()).unwrap();
    let unlike = |run: &Past| run.unlike.iter().map(Said::english).collect::<Vec<_>>();
    let unlike: Vec<_> = history.scenarios[0].runs.iter().map(unlike).collect();
    assert_eq!(unlike, [vec![], vec![], vec!["the scenarios differ".to_string()]]);
}

#[test]
fn names_are_not_interpreted_as_markup() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "<b>a|b`c\u{1b}[31m";
    for number in 0..2 {
        let directory = write(folder.path(), &Made { scenario: "x", number, ..Made::default() });
        let info = fs::read_to_string(directory.join(RUN_FILE)).unwrap();
        let name = serde_json::to_string(scenario).unwrap();
        let hostile = info.replace("\"x\"", &name).replace("\"even\"", "\"@all\\n| x\"");
        fs::write(directory.join(RUN_FILE), hostile).unwrap();
    }
    let history = History::read(folder.path(), &asked()).unwrap();
    let told = crate::markdown::history_markdown(&history);
    assert!(told.contains("### &lt;b&gt;a\\|b\\`c"), "{told}");
    assert!(!told.contains('\u{1b}') && !told.contains('@') && !told.contains("\n| x"), "{told}");
    let text = history_text(&history, &Style::plain());
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn capacities_have_their_own_trend() {
    let folder = tempfile::tempdir().unwrap();
    for (number, carries) in (0..).zip([Some(860.0), None, Some(880.0), Some(700.0)]) {
        write(folder.path(), &Made { number, carries, ..Made::default() });
    }
    let history = History::read(folder.path(), &Asked::default()).unwrap();
    let text = history_text(&history, &Style { width: 110, ..Style::plain() });
    for line in [
        "capacity in run 2026-11-21 12:03:01: 860/s (860 to 903)\n",
        ": 880/s (880 to 924); no difference: the intervals overlap\n",
        ": 700/s (700 to 735); lower: the intervals do not overlap\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let json = crate::compare::history_json(&history);
    let runs = &json["scenarios"][0]["runs"];
    assert_eq!(
        (&runs[0]["capacity"]["carries"], &runs[0]["capacity"]["unit"]),
        (&860.0.into(), &"per_s".into())
    );
    assert!(runs[1]["capacity"].is_null(), "{runs}");
    let verdicts = [0, 2, 3].map(|run| runs[run]["capacity"]["verdict"].as_str());
    assert_eq!(verdicts, [None, Some("unchanged"), Some("worse")]);
    let markdown = crate::markdown::history_markdown(&history);
    assert!(markdown.contains("\n- capacity in run 2026-11-21 15:03:01: 700/s "), "{markdown}");
}
