//! Tests comparisons of runs drawn from known distributions.

use throng_base::random::Random;
use throng_metrics::{Cpu, Histogram, Interval, Percentile, Resources, StepInterval};

use super::*;
use crate::directory::{PhaseInfo, RunInfo, StepInfo};
use crate::tests::sample::summary_of;

/// A run with about a hundred responses per second and times around `mean_ns`; consecutive seconds
/// are correlated.
fn run(seed: u64, seconds: u64, mean_ns: f64) -> Sampled {
    costing(seed, seconds, mean_ns, 0)
}

/// The same, with at most this much CPU time of the generator per attempt.
fn costing(seed: u64, seconds: u64, mean_ns: f64, cpu_ns: u64) -> Sampled {
    let mut random = Random::new(seed);
    let step = StepInfo { name: "GET /".into(), kind: "http".into(), ..StepInfo::default() };
    let phase = PhaseInfo { name: "hold".into(), measured: true, ..PhaseInfo::default() };
    let mut info = RunInfo { id: format!("run-{seed}"), ..RunInfo::default() };
    (info.tables.steps, info.tables.phases) = (vec![step], vec![phase]);
    let mut units = Units::new(&info);
    let mut mood = 0.0;
    let mut intervals = Vec::new();
    for second in 0..seconds {
        mood = 0.5 * mood + random.uniform(-0.1, 0.1);
        let count = 40 + random.below(5);
        let mut latency = Histogram::new();
        for _ in 0..count {
            latency.record((mean_ns * (1.0 + mood + random.uniform(-0.2, 0.2))) as u64);
        }
        let row = StepInterval { count, ok: count, latency, ..StepInterval::default() };
        let cpu_user_ns = count * cpu_ns - cpu_ns / (random.below(40) + 10);
        let resources =
            Some(Resources { cpu: Cpu { cpu_user_ns, ..Cpu::default() }, ..Resources::default() });
        let steps = vec![row];
        let mut interval = Interval { second, shards: 1, steps, ..Interval::default() };
        interval.generator.resources = resources;
        units.add(&interval);
        intervals.push(interval);
    }
    Sampled { summary: summary_of(info, &intervals, &[]), scenario: String::new(), units }
}

fn mean_change(one: &Sampled, two: &Sampled) -> Change {
    let side = |run: &Sampled| measured(run, &run.attempts(), &[Quantity::Mean]);
    figure(Quantity::Mean, 0, &side(one), &side(two)).change.unwrap()
}

#[test]
fn equal_runs_differ_as_rarely_as_promised() {
    let mut differ = 0;
    for case in 0..200 {
        let (low, high) =
            mean_change(&run(2 * case, 40, 1e6), &run(2 * case + 1, 40, 1e6)).interval.unwrap();
        differ += u32::from(low > 0.0 || high < 0.0);
    }
    // One in twenty is ten; correlation adds a few.
    assert!((2..=24).contains(&differ), "{differ} of 200");
}

/// Even for noisy runs, times are not negative and shares do not exceed 1.
#[test]
fn intervals_stay_within_possible_values() {
    let side = |value: f64| {
        let noise = Noise { errors: vec![value * 2.0], stretches: 3.0 };
        Side { figures: vec![Some(value)], noise: Some(noise) }
    };
    let of = |measure, one, two| {
        figure(measure, 0, &side(one), &side(two)).change.unwrap().interval.unwrap()
    };
    let (low, high) = of(Quantity::Mean, 10.0, 4.0);
    assert!(low == -1.0 && high > 0.0, "{low} {high}");
    let (low, high) = of(Quantity::Failed, 0.3, 0.4);
    assert!((low + 0.3).abs() < 1e-9 && (high - 0.7).abs() < 1e-9, "{low} {high}");
}

#[test]
fn a_real_change_is_found() {
    let (one, two) = (run(1, 60, 1e6), run(2, 60, 1.1e6));
    let change = mean_change(&one, &two);
    let (low, high) = change.interval.unwrap();
    assert!(low > 0.0 && low < 0.1 && high > 0.1, "{change:?}");
    let held = compare(&one, &two, &[]).unwrap();
    let words: Vec<String> = held.findings().map(|(_, figure, _)| figure.measure.word()).collect();
    assert_eq!(words, ["mean", "p50", "p90", "p95", "p99"]);
    assert!(held.findings().all(|(_, figure, _)| figure.verdict() == Some(false)));
    assert_eq!(held.compared, 7);
    let same = compare(&one, &one, &[]).unwrap();
    assert_eq!(same.findings().count(), 0);
}

#[test]
fn the_generator_s_cost_is_compared() {
    let (one, two) = (costing(1, 30, 1e6, 10_000), costing(2, 30, 1e6, 15_000));
    let held = compare(&one, &two, &[]).unwrap();
    let row = held.rows.last().unwrap();
    assert_eq!((row.kind.as_str(), row.figures.len(), held.compared), (GENERATOR, 2, 9));
    for figure in &row.figures {
        let change = figure.change.as_ref().unwrap();
        assert_eq!(figure.verdict(), Some(false), "{figure:?}");
        assert!((0.45..0.55).contains(&change.by), "{figure:?}");
    }
    let whole = row.figures[1].before.unwrap();
    assert!((9_900.0..10_000.0).contains(&whole), "{whole}");
    let text =
        crate::terminal::comparison_text(&one, &two, &held, &crate::terminal::Style::plain());
    assert!(text.contains("CPU per attempt"), "{text}");
    let conditions = ["cpu_per_attempt > +10%", "cores > +60%"];
    let conditions = conditions.map(|text| Condition::parse(text).unwrap());
    let held = compare(&one, &two, &conditions).unwrap();
    let fails: Vec<Fails> = held.judged.iter().map(|judged| judged.fails).collect();
    assert_eq!(fails, [Fails::Yes, Fails::No]);
    // Without a recorded cost, there is nothing to compare.
    assert!(
        compare(&run(1, 30, 1e6), &two, &[]).unwrap().rows.iter().all(|row| row.kind != GENERATOR)
    );
}

#[test]
fn a_run_that_is_too_short_has_no_findings() {
    let (one, two) = (run(1, 6, 1e6), run(2, 6, 9e6));
    assert_eq!(mean_change(&one, &two).interval, None);
    let conditions = [Condition::parse("mean > +10%").unwrap()];
    let held = compare(&one, &two, &conditions).unwrap();
    assert_eq!((held.compared, held.findings().count()), (0, 0));
    assert_eq!(held.judged[0].fails, Fails::Perhaps);
}

#[test]
fn a_long_run_is_merged_to_few_units_without_loss() {
    let long = run(3, 1_000, 1e6);
    assert_eq!(long.units.width, 16);
    let whole = long.units.whole(&long.attempts());
    assert_eq!(whole.count, long.summary.steps.total.count);
    assert_eq!(whole.latency.value_at(0.99), long.summary.steps.total.latency.at(Percentile::P99));
    assert!(long.units.inner(&long.attempts()).len() >= 60);
}

#[test]
fn conditions_require_a_change_beyond_limit_and_noise() {
    let (one, two) = (run(1, 60, 1e6), run(2, 60, 1.1e6));
    let judge = |text: &str, two: &Sampled| {
        let condition = Condition::parse(text).unwrap();
        condition.check(&one.summary.info).unwrap();
        let (before, after) = (condition.side(&one), condition.side(two));
        condition.judge(before.as_ref(), after.as_ref()).fails
    };
    assert_eq!(judge("http mean > +5%", &two), Fails::Yes);
    assert_eq!(judge("\"GET /\" p50 >= 5%", &two), Fails::Yes);
    assert_eq!(judge("p99 > +0%", &two), Fails::Yes);
    assert_eq!(judge("mean > +30%", &two), Fails::No);
    assert_eq!(judge("mean < -5%", &two), Fails::No);
    assert_eq!(judge("rate < -5%", &two), Fails::No);
    assert_eq!(judge("failed > +0.5%", &two), Fails::No);
    assert_eq!(judge("p99.99 > +5%", &two), Fails::Unknown);
}

#[test]
fn errors_in_conditions_are_reported() {
    for (text, message) in [
        ("p99", "has no comparison"),
        ("", "has no comparison"),
        ("p99 > +10ms", "the `%` is missing"),
        ("http size > 5%", "`size` is not a metric"),
        ("http cores > 5%", "` is a metric of the generator, not of a step"),
        ("p100 > 5%", "`p100` is not a metric"),
        ("p99 > -10%", "the condition is true even if nothing changes"),
        ("rate < 5%", "the condition is true even if nothing changes"),
        ("p99 > +%", "number"),
    ] {
        let told = Condition::parse(text).unwrap_err().render(false);
        assert!(told.contains(message), "{text}: {told}");
    }
    let one = run(1, 10, 1e6);
    let told = Condition::parse("htpt p99 > 5%").unwrap().check(&one.summary.info).unwrap_err();
    assert!(told.render(false).contains("did you mean `http`"), "{told:?}");
}

#[test]
fn other_differences_are_named() {
    let (one, mut two) = (run(1, 10, 1e6), run(1, 10, 1e6));
    two.summary.info.seed = 7;
    two.summary.info.targets.urls = vec!["http://other".into()];
    two.scenario = "name: other".into();
    two.summary.info.lines_lost = 1;
    two.summary.info.build.commit = "10d8f4b21+changes".into();
    let held = compare(&one, &two, &[]).unwrap();
    let told: Vec<String> = held.unlike.iter().map(throng_base::Said::english).collect();
    let all = told.join("\n");
    for text in ["the scenarios differ", "seed: 0 → 7", "http://other", "incomplete", "10d8f4b21+"]
    {
        assert!(all.contains(text), "{all}");
    }
    two.summary.info.tables.steps[0].name = "GET /other".into();
    let told = compare(&one, &two, &[]).unwrap_err();
    assert_eq!(told.code, "not-comparable");
}

#[test]
fn capacities_are_compared() {
    let (mut one, mut two) = (run(1, 40, 1e6), run(2, 40, 1e6));
    assert_eq!(compare(&one, &two, &[]).unwrap().capacity, None);
    let found = crate::tests::sample::capacity::capacity();
    let less = throng_metrics::Capacity { low: Some(700.0), high: Some(740.0), ..found.clone() };
    one.summary.capacity = Some(Box::new(found));
    two.summary.capacity = Some(Box::new(less));
    let held = compare(&one, &two, &[]).unwrap();
    let sentence = "capacity: 860/s (864 to 905) before, 860/s (700 to 740) now; lower: ";
    let style = crate::terminal::Style { width: 110, ..crate::terminal::Style::plain() };
    let text = crate::terminal::comparison_text(&one, &two, &held, &style);
    assert!(text.contains(sentence), "{text}");
    let json = comparisons_json(&one, &[(&two, &held)]);
    assert_eq!(json["comparisons"][0]["capacity"]["verdict"], "worse");
    let markdown = crate::markdown::comparison_markdown(&one, &two, &held);
    assert!(markdown.contains("\n- capacity: 860/s "), "{markdown}");
}
