//! Compares runs: what has changed relative to the first run beyond the noise between the seconds
//! of a run.
//!
//! - `capacity`: the results of capacity searches.
//! - `duel`: two targets under the same load in turn. `signed_rank`: their differences.
//! - [`condition`]: conditions of `--fail-if`.
//! - [`history`]: the runs of a folder by time; [`shift`]: lasting changes.
//! - [`json`]: comparisons as JSON.
//! - [`noise`]: the random error of a value.
//! - [`units`]: the seconds of a run, merged to a limited number of units.
//! - [`unlike`]: other differences between two runs.

mod capacity;
mod condition;
mod duel;
mod history;
mod json;
mod noise;
mod shift;
mod signed_rank;
mod units;
mod unlike;

use throng_base::random::Random;
use throng_base::{Diagnostic, Exit, diagnostic};
use throng_metrics::{Quantity, StepKind, Table};

use crate::directory::RunInfo;
use crate::read::Run;
use crate::summary::{Summary, per_second};

pub use capacity::{Capacities, CapacityChange, Carried};
pub use condition::{Condition, Fails, Judged};
pub use duel::{Cpu, Plan, Referee, SLICE_S_MIN};
pub use history::{Asked, History, PassedOver, Past, Trend};
pub(crate) use json::verdict_word;
pub use json::{comparisons_json, history_json};
pub use noise::CONFIDENCE;
use noise::Noise;
pub use shift::Shift;
use units::{Cell, Subject, Units};

/// Smaller changes are irrelevant: relative to the baseline for rates and times (a histogram bucket
/// is up to 1.6 % wide), in points for error shares.
pub const MATTERS_MIN: f64 = 0.02;
const POINTS_MATTER_MIN: f64 = 0.001;

/// Compared values of rows, in display order.
pub const MEASURES: [Quantity; 7] = [
    Quantity::Rate,
    Quantity::Failed,
    Quantity::Mean,
    Quantity::Quantile(0.5),
    Quantity::Quantile(0.9),
    Quantity::Quantile(0.95),
    Quantity::Quantile(0.99),
];
/// Name and kind of the generator's row.
pub(crate) const GENERATOR: &str = "generator";
pub(crate) const OF_GENERATOR: [Quantity; 2] = [Quantity::Cores, Quantity::CpuPerAttempt];

/// A run, with the data for comparisons.
#[derive(Debug)]
pub struct Sampled {
    pub summary: Summary,
    scenario: String,
    units: Units,
}

/// A comparison of a run with the baseline.
#[derive(Debug)]
pub struct Comparison {
    /// Other differences, which may be the cause.
    pub unlike: Vec<throng_base::Said>,
    pub rows: Vec<Row>,
    /// Number of changes that were tested.
    pub compared: usize,
    /// Present if both runs searched for the capacity.
    pub capacity: Option<Capacities>,
    pub judged: Vec<Judged>,
}

#[derive(Debug)]
pub struct Row {
    /// `None` for all attempts together.
    pub name: Option<String>,
    pub kind: String,
    pub figures: Vec<Figure>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub measure: Quantity,
    pub before: Option<f64>,
    pub after: Option<f64>,
    pub change: Option<Change>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Relative to the baseline; a difference for error shares.
    pub by: f64,
    /// The confidence interval of the change, at [`CONFIDENCE`]; `None` if a run is too short.
    pub interval: Option<(f64, f64)>,
    /// The p-value.
    chance: f64,
    /// The change is relevant and significant, given the number of tests.
    pub named: bool,
}

impl Sampled {
    pub fn read(run: &Run) -> Result<Sampled, Box<Diagnostic>> {
        let mut units = Units::new(&run.info);
        let summary = run.summary_beside(|interval| units.add(interval))?;
        Ok(Sampled { summary, scenario: run.scenario.clone(), units })
    }

    fn attempts(&self) -> Subject {
        Subject::Steps(attempts(&self.summary.info))
    }

    fn generator(&self) -> Subject {
        Subject::Generator(attempts(&self.summary.info))
    }

    /// Steps with results, by index.
    fn steps(&self) -> impl Iterator<Item = (u16, &crate::StepInfo)> {
        let told = |kind: StepKind| kind.is_attempt() || kind.table() == Table::Transactions;
        let steps = (0..).zip(&self.summary.info.tables.steps);
        steps.filter(move |(index, step)| told(step.kind) && self.units.holds(*index))
    }

    fn find(&self, name: &str, kind: StepKind) -> Option<u16> {
        self.steps().find(|(_, step)| step.name == name && step.kind == kind).map(|(at, _)| at)
    }

    /// The name of the run directory.
    pub fn name(&self) -> String {
        let directory = self.summary.directory.as_ref();
        let name = directory.and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
        name.map_or_else(|| self.summary.info.name.clone(), std::borrow::Cow::into_owned)
    }
}

fn attempts(info: &RunInfo) -> Vec<u16> {
    let attempts = (0..).zip(&info.tables.steps).filter(|(_, step)| step.kind.is_attempt());
    attempts.map(|(index, _)| index).collect()
}

/// The steps that a name selects: a step, a kind of steps or `connect`; all attempts if it is
/// empty.
fn subject(info: &RunInfo, name: &str) -> Option<Subject> {
    let steps = || (0..).zip(&info.tables.steps);
    let called = steps().filter(|(_, step)| step.name == name);
    let called: Vec<u16> = called.map(|(index, _)| index).collect();
    let of_kind = steps().filter(|(_, step)| step.kind.word() == name);
    let of_kind: Vec<u16> = of_kind.map(|(index, _)| index).collect();
    match (name, called.is_empty(), of_kind.is_empty()) {
        ("", _, _) => Some(Subject::Steps(attempts(info))),
        (_, false, _) => Some(Subject::Steps(called)),
        (_, _, false) => Some(Subject::Steps(of_kind)),
        ("connect", _, _) => Some(Subject::Connect),
        _ => None,
    }
}

/// The most similar name, for an unknown one.
fn did_you_mean<'a>(info: &'a RunInfo, name: &str) -> Option<&'a str> {
    let known = info.tables.steps.iter().flat_map(|step| [&*step.name, step.kind.word()]);
    diagnostic::did_you_mean(name, known)
}

/// Compares a run with the baseline.
pub fn compare(
    baseline: &Sampled,
    other: &Sampled,
    conditions: &[Condition],
) -> Result<Comparison, Box<Diagnostic>> {
    let steps: Vec<_> = baseline.steps().collect();
    let pairs = steps.iter().filter_map(|(at, step)| {
        other.find(&step.name, step.kind).map(|other_at| (*at, other_at, *step))
    });
    let pairs: Vec<_> = pairs.collect();
    if pairs.is_empty() {
        let (one, two) = (baseline.name(), other.name());
        let empty = [baseline, other].into_iter().find(|run| run.steps().next().is_none());
        let message = match empty {
            Some(run) => say!("nothing was measured in {}", run.name()),
            None => say!("{two} and {one} have no step in common"),
        };
        let help = say!("compare runs of the same scenario; steps are matched by name");
        return Err(Box::new(Diagnostic::error("not-comparable", message).help(help)));
    }
    let mut rows =
        vec![row(None, "total", baseline, &baseline.attempts(), other, &other.attempts())];
    let attempts = steps.iter().filter(|(_, step)| step.kind.is_attempt()).count();
    for (at, other_at, step) in pairs {
        // The row of a single step would equal that of all attempts.
        if attempts > 1 || !step.kind.is_attempt() {
            let (one, two) = (Subject::Steps(vec![at]), Subject::Steps(vec![other_at]));
            rows.push(row(Some(&step.name), step.kind.word(), baseline, &one, other, &two));
        }
    }
    let connects = |run: &Sampled| run.units.whole(&Subject::Connect).count > 0;
    if connects(baseline) && connects(other) {
        let connect = Subject::Connect;
        rows.push(row(Some("connect"), "stage", baseline, &connect, other, &connect));
    }
    rows.extend(generator_row(baseline, other));
    let compared = name_findings(rows.iter_mut().flat_map(|row| &mut row.figures).collect());
    let judged = conditions.iter().map(|one| {
        let (before, after) = (one.side(baseline), one.side(other));
        one.judge(before.as_ref(), after.as_ref())
    });
    let judged = judged.collect();
    let capacity = Capacities::of(&baseline.summary, &other.summary);
    Ok(Comparison { unlike: unlike::unlike(baseline, other), rows, compared, capacity, judged })
}

/// The exit code for these conditions.
pub fn exit_of<'a>(judged: impl Iterator<Item = &'a Judged>) -> Exit {
    Fails::exit(judged.map(|judged| judged.fails))
}

fn row(
    name: Option<&str>,
    kind: &str,
    baseline: &Sampled,
    subject: &Subject,
    other: &Sampled,
    of_other: &Subject,
) -> Row {
    let before = measured(baseline, subject, &MEASURES);
    let after = measured(other, of_other, &MEASURES);
    Row { name: name.map(Into::into), kind: kind.into(), figures: figures(&before, &after) }
}

/// The compared values of a row.
fn figures(before: &Side, after: &Side) -> Vec<Figure> {
    let figures = MEASURES.iter().enumerate();
    figures.map(|(at, measure)| figure(*measure, at, before, after)).collect()
}

/// The cost of the load for the generator, if both runs recorded it.
fn generator_row(baseline: &Sampled, other: &Sampled) -> Option<Row> {
    let figures = OF_GENERATOR.iter().map(|quantity| {
        let side = |run: &Sampled| measured(run, &run.generator(), &[*quantity]);
        figure(*quantity, 0, &side(baseline), &side(other))
    });
    let figures: Vec<Figure> = figures.collect();
    let known = figures.iter().any(|figure| figure.change.is_some());
    known.then(|| Row { name: Some(GENERATOR.into()), kind: GENERATOR.into(), figures })
}

/// A row of one run.
#[derive(Debug)]
struct Side {
    figures: Vec<Option<f64>>,
    noise: Option<Noise>,
}

fn measured(run: &Sampled, subject: &Subject, measures: &[Quantity]) -> Side {
    let whole = run.units.whole(subject);
    let figures = measures.iter().map(|measure| figure_of(run, &whole, *measure)).collect();
    let id = run.summary.info.id.bytes();
    // Comparing the same runs gives the same result.
    let seed = id.fold(0, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let width = run.units.width as f64;
    let cells = run.units.inner(subject);
    let noise = Noise::of(&cells, width, measures, Random::for_owner(seed, 0));
    Side { figures, noise }
}

fn figure_of(run: &Sampled, whole: &Cell, measure: Quantity) -> Option<f64> {
    let timed = whole.latency.count() as f64;
    match measure {
        Quantity::Rate => Some(per_second(whole.in_time, run.summary.measured)),
        Quantity::Failed => {
            (whole.count > 0).then(|| (whole.count - whole.ok) as f64 / whole.count as f64)
        }
        Quantity::Mean => (timed > 0.0).then(|| whole.latency.mean()),
        // A percentile requires a value above it, as in reports.
        Quantity::Quantile(quantile) => {
            let enough = timed * (1.0 - quantile) >= 1.0 - 1e-9;
            enough.then(|| whole.latency.value_at(quantile) as f64)
        }
        // Older versions do not record it.
        Quantity::Cores => {
            (whole.cpu_ns > 0).then(|| per_second(whole.cpu_ns, run.summary.measured) / 1e9)
        }
        Quantity::CpuPerAttempt => {
            let known = whole.cpu_ns > 0 && whole.count > 0;
            known.then(|| whole.cpu_ns as f64 / whole.count as f64)
        }
        // A run directory only has that of the generator.
        Quantity::TargetCpuPerAttempt => None,
    }
}

fn figure(measure: Quantity, at: usize, before: &Side, after: &Side) -> Figure {
    let (old, new) = (before.figures[at], after.figures[at]);
    let change = old.zip(new).and_then(|(old, new)| {
        let points = measure.is_by_points();
        // A relative change needs a positive base.
        if !points && old <= 0.0 {
            return None;
        }
        let by = if points { new - old } else { new / old - 1.0 };
        let noise = before.noise.as_ref().zip(after.noise.as_ref());
        let Some((one, two)) = noise else {
            return Some(Change { by, interval: None, chance: 1.0, named: false });
        };
        // The error of a quotient, to first order.
        let (of_old, of_new) = (one.errors[at], two.errors[at]);
        let error = match points {
            true => of_old.hypot(of_new),
            false => of_new.hypot(of_old * new / old) / old,
        };
        let freedom = (one.stretches + two.stretches - 2.0).max(1.0);
        let reach = error * noise::reach(freedom);
        let chance = noise::chance(by, error, freedom);
        // Values are not negative, and shares do not exceed 1.
        let (least, most) = if points { (-old, 1.0 - old) } else { (-1.0, f64::INFINITY) };
        let interval = Some(((by - reach).max(least), (by + reach).min(most)));
        Some(Change { by, interval, chance, named: false })
    });
    Figure { measure, before: old, after: new, change }
}

/// Marks the significant changes, and returns the number of tests.
fn name_findings(mut figures: Vec<&mut Figure>) -> usize {
    let changes = figures.iter().filter_map(|figure| figure.change.as_ref());
    let known = changes.filter(|change| change.interval.is_some());
    let chances: Vec<f64> = known.map(|change| change.chance).collect();
    let compared = chances.len();
    let largest = noise::largest_finding(chances);
    for figure in &mut figures {
        let least = matters_min(figure.measure);
        if let Some(change) = &mut figure.change {
            let beyond = change.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
            change.named = beyond && change.chance <= largest && change.by.abs() >= least;
        }
    }
    compared
}

/// Smaller changes are irrelevant.
fn matters_min(measure: Quantity) -> f64 {
    if measure.is_by_points() { POINTS_MATTER_MIN } else { MATTERS_MIN }
}

impl Figure {
    /// Whether the change is an improvement; `None` if it is noise.
    pub fn verdict(&self) -> Option<bool> {
        let change = self.change.as_ref().filter(|change| change.named)?;
        Some(self.measure.is_better(change.by))
    }
}

impl Comparison {
    /// The relevant and significant changes.
    pub fn findings(&self) -> impl Iterator<Item = (&Row, &Figure, &Change)> {
        let figures =
            self.rows.iter().flat_map(|row| row.figures.iter().map(move |one| (row, one)));
        let changed =
            figures.filter_map(|(row, figure)| Some((row, figure, figure.change.as_ref()?)));
        changed.filter(|(_, _, change)| change.named)
    }
}

#[cfg(test)]
mod tests;
