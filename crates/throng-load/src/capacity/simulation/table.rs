//! Runs many searches on one target, and formats the results as a row.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use throng_metrics::capacity::Basis;

use super::run::{Searched, search, settings};
use super::target::Model;

/// A promise that exceeds the law by more is wrong.
const EXCESS: f64 = 1.02;

/// Results of all searches on one target.
#[derive(Clone, Debug)]
pub struct Figures {
    pub model: Model,
    pub rate: f64,
    pub searches: usize,
    /// Searches with an interval, and those whose interval contains the law.
    pub intervals: usize,
    pub right: usize,
    /// Searches with a promise, and those whose promise exceeds the law by more than 2 %.
    pub promises: usize,
    pub too_high: usize,
    /// Median of half the width of the interval, relative to its middle.
    pub half_width: f64,
    /// Median of the promise relative to the law.
    pub promised: f64,
    /// Mean time under load and mean number of holds per search.
    pub seconds: f64,
    pub holds: f64,
    /// Searches that detected a collapse, and those whose target collapsed twice.
    pub collapsed: usize,
    pub twice: usize,
    /// Number of second consecutive loads above one that had failed.
    pub rises: usize,
}

/// Runs a search with each of the seeds, on `threads` threads.
pub fn figures(model: Model, rate: f64, seeds: Range<u64>, threads: usize) -> Figures {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut done = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return done;
            }
            done.push(search(model, rate, settings(model, rate, seed)));
        }
    };
    let searches: Vec<Searched> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    of_searches(model, rate, &searches)
}

fn of_searches(model: Model, rate: f64, searches: &[Searched]) -> Figures {
    let count = |is: &dyn Fn(&&Searched) -> bool| searches.iter().filter(is).count();
    let ends = |it: &Searched| match it.answer.basis {
        Basis::Interval => it.answer.low.zip(it.answer.high),
        Basis::Bracket | Basis::AtLeast | Basis::Nothing => None,
    };
    let mean = |of: &dyn Fn(&Searched) -> f64| {
        searches.iter().map(of).sum::<f64>() / searches.len().max(1) as f64
    };
    let half = |(low, high): (f64, f64)| (high - low) / (high + low);
    let promised = |it: &Searched| it.answer.carries.map(|carries| carries / it.law);
    Figures {
        model,
        rate,
        searches: searches.len(),
        intervals: count(&|it| ends(it).is_some()),
        right: count(&|it| ends(it).is_some_and(|(low, high)| low <= it.law && it.law <= high)),
        promises: count(&|it| it.answer.carries.is_some()),
        too_high: count(&|it| promised(it).is_some_and(|part| part > EXCESS)),
        half_width: median(searches.iter().filter_map(ends).map(half)),
        promised: median(searches.iter().filter_map(promised)),
        seconds: mean(&|it| it.answer.spent_s),
        holds: mean(&|it| it.answer.levels.len() as f64),
        collapsed: count(&|it| it.answer.overload.collapse.is_some()),
        twice: count(&|it| it.collapses > 1),
        rises: searches.iter().map(|it| it.rises).sum(),
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The first lines of a Markdown table of [`Figures::row`].
pub const HEADING: &str = "\
| target | rate | searches | interval | right | too high | twice | half-width | promise / law | load time |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |";

impl Figures {
    /// A row of a Markdown table.
    pub fn row(&self) -> String {
        let Figures { rate, searches, intervals, right, too_high, twice, .. } = self;
        let (name, half, promised) = (self.model.name(), 100.0 * self.half_width, self.promised);
        let seconds = self.seconds;
        format!(
            "| {name} | {rate} | {searches} | {intervals} | {right} | {too_high} | {twice} | \
             {half:.1} % | {promised:.3} | {seconds:.0} s |"
        )
    }
}
