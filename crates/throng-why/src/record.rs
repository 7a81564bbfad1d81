//! The input of rules: the seconds of a run, sums by phase, and facts. It is created from a run
//! directory, or by a test without a run.

use std::ops::Range;

use throng_base::Said;
use throng_metrics::host::{self, Series};
use throng_metrics::{Cause, Histogram, Interval, Stage, StepKind};

use crate::finding::Span;
use crate::stats;
use crate::timeline::{Point, Timeline};

/// Lateness (p99) above which a second says nothing about the target: as in the verdict of a run.
pub(crate) const LATENESS_NS_MAX: f64 = 10_000_000.0;
/// Share of a second that shards may lose before it also says nothing.
const LOST_MAX: f64 = 0.05;
/// Maximum relative change of a constant load over a stretch.
const STEADY_CHANGE_MAX: f64 = 0.05;
/// Points at each end of a stretch in which the load is not constant yet, or no longer.
const EDGE_POINTS: usize = 2;
/// Minimum length of a stretch.
const STRETCH_POINTS_MIN: usize = 5;

/// A phase of the load and its time span.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseFacts {
    pub name: String,
    pub measured: bool,
    pub span: Span,
}

/// A threshold on a rate that was not met.
#[derive(Clone, Debug, PartialEq)]
pub struct MissedRate {
    pub text: String,
    pub figure: f64,
    pub wanted: f64,
}

/// A series of a monitor that findings use, over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// The name of the monitor.
    pub source: String,
    /// Includes its labels.
    pub name: String,
    /// Seconds of the run and values; for a counter, the increase per second.
    pub points: Vec<(f64, f64)>,
}

impl Watched {
    /// Its name without labels.
    pub fn base(&self) -> &str {
        host::base(&self.name)
    }

    /// The value of a label; empty without the label.
    pub(crate) fn label(&self, name: &str) -> &str {
        host::label(&self.name, name).unwrap_or_default()
    }

    /// Its values within these time spans.
    pub(crate) fn values(&self, spans: &[Span]) -> Vec<f64> {
        let is_in = |at: f64| spans.iter().any(|it| it.from_s <= at && at <= it.to_s);
        self.points.iter().filter(|(at, _)| is_in(*at)).map(|(_, value)| *value).collect()
    }

    pub(crate) fn mean(&self, spans: &[Span]) -> Option<f64> {
        let values = self.values(spans);
        (!values.is_empty()).then(|| stats::mean(&values))
    }

    pub fn largest(&self) -> Option<f64> {
        self.points.iter().map(|(_, value)| *value).reduce(f64::max)
    }

    /// For a counter: its total increase.
    pub(crate) fn total(&self, span: Span) -> f64 {
        let at = |index: usize| self.points.get(index).map(|(at, _)| *at);
        let grown = |(index, (to, rate)): (usize, &(f64, f64))| {
            // Assume that the first value covers as much time as the second one.
            let from = match index.checked_sub(1) {
                Some(before) => at(before)?,
                None => (to - (at(1).unwrap_or(2.0 * to) - to)).max(0.0),
            };
            (from < span.to_s && span.from_s < *to).then(|| rate * (to - from).max(0.0))
        };
        self.points.iter().enumerate().filter_map(grown).sum()
    }
}

/// Name of the derived series of a host's CPU usage.
pub const BUSY: &str = "busy processors";

/// A level of a search that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedLevel {
    pub load: f64,
    pub span: Span,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchFacts {
    pub failed: Vec<FailedLevel>,
    /// The load that the service sustains, or at which its throughput stops growing.
    pub border: Option<f64>,
}

/// Facts about a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// By index.
    pub steps: Vec<(String, StepKind)>,
    pub phases: Vec<PhaseFacts>,
    pub lasted_s: f64,
    /// False if the run was killed or is still active.
    pub ended: bool,
    /// The version of throng did not count retries.
    pub no_retries: bool,
    pub same_host: bool,
    pub targets: Vec<String>,
    /// By target: the first address of the same service; empty if each is a separate service.
    pub services: Vec<u16>,
    /// The zero of all times since the Unix epoch; 0 if unknown.
    pub zero_unix_ns: u64,
    /// Source ports of the host.
    pub port_range: Option<(u16, u16)>,
    /// Why the generator could not generate the load.
    pub generator: Vec<Said>,
    /// Why the results are inconsistent.
    pub doubts: Vec<Said>,
    pub missed_rates: Vec<MissedRate>,
    /// The load is long to test stability (`--soak`).
    pub soak: bool,
    /// Each request asks the target to close the connection, so closed connections are no finding.
    pub no_keep_alive: bool,
    /// Present for a capacity search.
    pub search: Option<SearchFacts>,
    /// Series of monitors that findings use.
    pub watched: Vec<Watched>,
    /// Times of load changes by the operator.
    pub changes_s: Vec<f64>,
}

/// A run as the rules see it.
pub struct Record<'a> {
    pub facts: &'a Facts,
    pub timeline: &'a Timeline,
    /// The results of each phase, in the order of `facts`.
    pub sums: Vec<&'a Interval>,
    /// The sum of all measured phases.
    pub whole: Interval,
}

impl<'a> Record<'a> {
    pub fn new(facts: &'a Facts, timeline: &'a Timeline, sums: Vec<&'a Interval>) -> Record<'a> {
        let mut whole = Interval::default();
        let measured = sums.iter().zip(&facts.phases).filter(|(_, phase)| phase.measured);
        measured.for_each(|(sum, _)| whole.merge_later(sum));
        Record { facts, timeline, sums, whole }
    }

    pub(crate) fn points(&self) -> &'a [Point] {
        self.timeline.points()
    }

    pub(crate) fn width(&self) -> f64 {
        self.timeline.width_s() as f64
    }

    pub(crate) fn span(&self, range: &Range<usize>) -> Span {
        let width = self.width();
        let end = range.end as f64 * width;
        let lasted = self.facts.lasted_s.max(range.start as f64 * width);
        Span::new(range.start as f64 * width, if lasted > 0.0 { end.min(lasted) } else { end })
    }

    /// The time span of all measured phases.
    pub(crate) fn measured_span(&self) -> Span {
        let measured = || self.facts.phases.iter().filter(|phase| phase.measured);
        let from = measured().map(|phase| phase.span.from_s).fold(f64::INFINITY, f64::min);
        let to = measured().map(|phase| phase.span.to_s).fold(0.0, f64::max);
        Span::new(from.min(to), to)
    }

    /// Series of monitors, by their name without labels.
    pub(crate) fn watched(&self, base: &str) -> impl Iterator<Item = &'a Watched> {
        let is_kept = |it: &Series| !it.used_by.is_empty();
        debug_assert!(base == BUSY || Series::find(base).is_some_and(is_kept), "{base}");
        self.facts.watched.iter().filter(move |row| row.base() == base)
    }

    /// Another series of the same source with the same labels.
    pub(crate) fn beside(&self, row: &Watched, base: &str) -> Option<&'a Watched> {
        let labels = |it: &Watched| it.name[it.base().len()..].to_string();
        self.watched(base).find(|it| it.source == row.source && labels(it) == labels(row))
    }

    /// The last value of the series that is the limit of this one.
    pub(crate) fn limit(&self, row: &Watched) -> Option<f64> {
        let limit = self.beside(row, Series::find(row.base())?.limit.first()?)?;
        limit.points.last().map(|(_, value)| *value).filter(|limit| *limit > 0.0)
    }

    /// A value per second for each point.
    pub(crate) fn rates(&self, range: &Range<usize>, of: impl Fn(&Point) -> f64) -> Vec<f64> {
        let points = &self.points()[range.clone()];
        points.iter().map(|point| of(point) / point.lines.max(1.0)).collect()
    }

    pub(crate) fn values(&self, range: &Range<usize>, of: impl Fn(&Point) -> f64) -> Vec<f64> {
        self.points()[range.clone()].iter().map(of).collect()
    }

    pub(crate) fn sum(&self, range: &Range<usize>, of: impl Fn(&Point) -> f64) -> f64 {
        self.points()[range.clone()].iter().map(of).sum()
    }

    /// All points.
    pub(crate) fn all(&self) -> Range<usize> {
        0..self.points().len()
    }

    /// Whether the generator was on time, so that the point describes the target.
    pub(crate) fn is_trusted(&self, point: &Point) -> bool {
        is_about_target(point, self.width())
    }

    /// Measured stretches without phase boundaries and load changes, excluding the points at their
    /// ends.
    pub(crate) fn stretches(&self) -> Vec<Range<usize>> {
        let width = self.width();
        let place = |second: f64| (second / width) as usize;
        let mut cuts = vec![0, self.points().len()];
        for phase in self.facts.phases.iter().filter(|it| it.span.to_s > it.span.from_s) {
            cuts.extend([place(phase.span.from_s), place(phase.span.to_s)]);
        }
        cuts.extend(self.facts.changes_s.iter().map(|at| place(*at)));
        cuts.retain(|at| *at <= self.points().len());
        cuts.sort_unstable();
        cuts.dedup();
        let inner = |pair: &[usize]| pair[0] + EDGE_POINTS..pair[1].saturating_sub(EDGE_POINTS);
        let ranges = cuts.windows(2).map(inner);
        ranges.filter(|range| self.is_stretch(range)).collect()
    }

    fn is_stretch(&self, range: &Range<usize>) -> bool {
        let is_measured = |point: &Point| point.lines == 0.0 || point.measured > 0.0;
        range.len() >= STRETCH_POINTS_MIN && self.points()[range.clone()].iter().all(is_measured)
    }

    /// Whether starts have a scheduled rate.
    pub(crate) fn is_open(&self, range: &Range<usize>) -> bool {
        self.points()[range.clone()].iter().any(|point| point.wanted > 0.0)
    }

    /// The requested load: starts per second, or users.
    pub(crate) fn load(&self, range: &Range<usize>) -> Vec<f64> {
        match self.is_open(range) {
            true => self.rates(range, |point| point.wanted),
            false => self.values(range, |point| point.users_wanted.max(point.users)),
        }
    }

    /// The stretches with a constant load.
    pub(crate) fn steady(&self) -> Vec<Range<usize>> {
        let is_steady = |range: &Range<usize>| {
            let load = self.load(range);
            let middle = stats::median(&load).unwrap_or_default();
            let change = stats::slope(&load).map_or(0.0, |it| it.slope * load.len() as f64);
            middle > 0.0 && (change / middle).abs() <= STEADY_CHANGE_MAX
        };
        self.stretches().into_iter().filter(is_steady).collect()
    }

    /// Times of a stage of all connections, in measured phases.
    pub(crate) fn stage_latency(&self, stage: Stage) -> Option<&Histogram> {
        self.whole.stage(stage).map(|row| &row.latency)
    }

    /// The number of attempts that failed for a cause, measured or not, and their time span.
    pub(crate) fn failures(&self, cause: Cause) -> Option<(u64, Span)> {
        let (_, places) = self.timeline.failures().iter().find(|(it, _)| *it == cause)?;
        let (first, _) = places.first_key_value()?;
        let (last, _) = places.last_key_value()?;
        let total = places.values().sum();
        Some((total, self.span(&(*first as usize..*last as usize + 1))))
    }

    /// The service of a target's address.
    pub(crate) fn service(&self, target: u16) -> u16 {
        self.facts.services.get(usize::from(target)).copied().unwrap_or(target)
    }

    pub(crate) fn step_name(&self, step: u16) -> String {
        let known = self.facts.steps.get(usize::from(step));
        known.map_or_else(|| format!("step {step}"), |(name, _)| name.clone())
    }

    pub(crate) fn kind(&self, step: u16) -> StepKind {
        self.facts.steps.get(usize::from(step)).map_or(StepKind::NONE, |(_, kind)| *kind)
    }

    /// Whether connections are kept to be online, not only for the next request.
    pub(crate) fn is_long_lived(&self) -> bool {
        self.facts.steps.iter().any(|(_, kind)| *kind == StepKind::Connect)
            || self.sums.iter().any(|sum| sum.lifecycle.begun > 0)
    }
}

/// Whether the generator was on time in a point of this many seconds.
pub(crate) fn is_about_target(point: &Point, width_s: f64) -> bool {
    point.lateness <= LATENESS_NS_MAX && point.lost <= LOST_MAX * width_s
}

/// The number of times between two values, by the middles of buckets.
pub(crate) fn within(times: &Histogram, from_ns: f64, to_ns: f64) -> u64 {
    let buckets = times.buckets().filter(|(index, _)| {
        let bucket = throng_metrics::histogram::bucket(*index);
        let middle = (bucket.start as f64 + bucket.end as f64) / 2.0;
        from_ns <= middle && middle < to_ns
    });
    buckets.map(|(_, count)| count).sum()
}
