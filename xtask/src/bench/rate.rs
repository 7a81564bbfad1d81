//! `bench rate`: open load at rates from few to many requests a second. What a request costs each
//! tool that can keep a rate, how well it keeps it, and whether its times are those that the target
//! knows.

mod loader;
mod served;

use std::cell::RefCell;

use super::contest::{self, Entrant, Row, Sample, Spread};
use super::report::{self, Gate, spaced};
use super::server::{self, Server};
use super::tool::Places;
use super::{Options, machine};
use crate::workspace::Workspace;
use loader::{Load, Loader, Starts, Told};

/// What `--tools` may say.
pub(super) const TOOLS: [&str; 4] = Loader::WORDS;

pub(super) const RATES: [u32; 5] = [1_000, 5_000, 20_000, 30_000, 100_000];
const CONNECTIONS: u32 = 100;
/// From here on a tool has all cores, with two threads, and the server one of them beside it.
const RATE_UNPINNED: u32 = 100_000;
/// Where the goals are set: CPU per request as a multiple of wrk2's.
const COSTS_MAX: [(u32, Loader, f64); 5] = [
    (1_000, Loader::Throng(Some("1ms")), 1.2),
    (20_000, Loader::Throng(Some("1ms")), 0.9),
    (20_000, Loader::Throng(Some("250us")), 1.3),
    (20_000, Loader::Throng(Some("100us")), 2.0),
    (20_000, Loader::Throng(None), 1.3),
];
/// A tool that misses more of the rate is busy all the time: what it costs then is no measure.
const MISSING_PERCENT_JUDGED: f64 = 2.0;
/// What may be missing of a rate that is held.
const MISSING_PERCENT_MAX: f64 = 0.1;
/// Beyond the precision.
const LATENESS_US_MAX: f64 = 50.0;

/// One rate, and what each tool made of it.
struct Case {
    rate: u32,
    rows: Vec<Row>,
    /// What each said, round by round as in `rows`.
    told: Vec<Vec<Told>>,
}

pub(super) fn run(
    options: &Options,
    places: &Places,
    workspace: &Workspace,
) -> Result<String, String> {
    let mut text = machine::facts(options, places, workspace);
    let mut gates = Vec::new();
    if options.wants("cost") {
        let nginx = server::nginx(&places.folder)?;
        text.push_str(&preface(options));
        let rates = RATES.iter().filter(|rate| options.wants_rate(**rate));
        let cases: Vec<Case> =
            rates.map(|rate| Case::hold(*rate, options, places, &nginx)).collect();
        cases.iter().for_each(|case| text.push_str(&case.table()));
        gates.extend(cost_gates(&cases));
        gates.extend(lateness_gates(&cases));
    }
    if options.wants("served") {
        let (told, more) = served::run(options, places);
        text.push_str(&told);
        gates.extend(more);
    }
    text.push_str(&report::goals(&gates));
    Ok(text)
}

fn preface(options: &Options) -> String {
    format!(
        "Open load over {CONNECTIONS} connections on one nginx, medians of {} rounds. A tool has \
         core {} and one thread; at {} requests a second and more all cores, the server's among \
         them, and two threads. CPU is that of the tool alone, of vegeta that of `attack` without \
         `report`.\n\n\
         - *achieved* is the share of the asked rate. wrk2 opens a connection every 5 ms and \
         thread: it is counted from when half of them are open.\n\
         - A ratio is judged where both tools achieve {:.0} %: one that falls behind is busy all the \
         time, and its requests go out in larger numbers together.\n\
         - *lateness* and *together* are what throng says of its sending: how late it was, and how \
         many requests went out by one waking.\n\
         - p50 and p99 are what each tool reports. Those of wrk2 count from a plan that it looks \
         at once a millisecond; of a run of at most 10.5 s they are of the whole of it, of a \
         longer one of what came after its calibration, which ends then. h2load tells none.\n\n",
        options.rounds,
        super::TOOL_CORE,
        spaced(RATE_UNPINNED.into()),
        100.0 - MISSING_PERCENT_JUDGED,
    )
}

impl Case {
    fn hold(rate: u32, options: &Options, places: &Places, nginx: &Server) -> Case {
        let load = Load {
            url: nginx.url("http", 1),
            connections: CONNECTIONS,
            rate,
            seconds: options.seconds,
            pinned: rate < RATE_UNPINNED,
            warm: None,
        };
        let loaders = Loader::ALL.into_iter().filter(|loader| options.wants_tool(loader.word()));
        let loaders: Vec<Loader> = loaders.collect();
        let told: Vec<RefCell<Vec<Told>>> = loaders.iter().map(|_| RefCell::default()).collect();
        let entrants: Vec<Entrant<'_>> = loaders
            .iter()
            .zip(&told)
            .map(|(loader, all)| Entrant {
                name: loader.name(),
                run: Box::new(|_| {
                    let (told, cpu) = loader.run(&load, places)?;
                    all.borrow_mut().push(told);
                    let Told { ok, failed, seconds, .. } = told;
                    Ok(Sample { ok, failed, cpu, seconds })
                }),
            })
            .collect();
        let rows = contest::hold(&title(rate), options.rounds, &entrants);
        drop(entrants);
        Case { rate, rows, told: told.into_iter().map(RefCell::into_inner).collect() }
    }

    fn table(&self) -> String {
        let mut text = format!(
            "## {}\n\n| tool | CPU per request | ratio to wrk2 | achieved | lateness p50 / p99 / \
             max | together mean / max | p50 | p99 | failed |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
            title(self.rate)
        );
        for (row, told) in self.rows.iter().zip(&self.told) {
            text.push_str(&report::line(row, || self.cells(row, told)));
        }
        text.push('\n');
        text
    }

    fn cells(&self, row: &Row, told: &[Told]) -> [String; 8] {
        let middle = |figure: fn(&Told) -> Option<f64>| contest::median(told, figure);
        let starts = |figures: &[fn(&Starts) -> Option<f64>], digits: usize, unit: &str| {
            let each = figures.iter().map(|figure| {
                let figure = contest::median(told, |told| figure(&told.starts?))?;
                Some(format!("{figure:.digits$}"))
            });
            // What an older throng does not tell is no figure.
            let all: Option<Vec<String>> = each.collect();
            all.map_or_else(String::new, |all| format!("{}{unit}", all.join(" / ")))
        };
        let us = |figure: Option<f64>| figure.map_or_else(String::new, |us| format!("{us:.0} µs"));
        [
            report::spread(row.cpu_us(), 2, " µs"),
            report::spread(contest::ratio(&self.rows, &row.name, Loader::Wrk2.word()), 2, ""),
            self.missing(row).map_or_else(String::new, |gone| format!("{:.2} %", 100.0 - gone)),
            starts(&[|s| s.late_p50, |s| s.late_p99, |s| s.late_max], 0, " µs"),
            starts(&[|s| s.together_mean, |s| s.together_max], 1, ""),
            us(middle(|told| told.p50)),
            us(middle(|told| told.p99)),
            row.failed().to_string(),
        ]
    }

    /// What is missing of the rate, in percent.
    fn missing(&self, row: &Row) -> Option<f64> {
        Some(100.0 * (1.0 - row.rate()?.median / f64::from(self.rate)))
    }

    fn keeps(&self, loader: Loader) -> bool {
        let missing = self.row(loader).and_then(|(row, _)| self.missing(row));
        missing.is_some_and(|missing| missing <= MISSING_PERCENT_JUDGED)
    }

    fn row(&self, loader: Loader) -> Option<(&Row, &[Told])> {
        let index = self.rows.iter().position(|row| row.name == loader.name())?;
        Some((&self.rows[index], &self.told[index]))
    }
}

fn title(rate: u32) -> String {
    format!("{} requests/s", spaced(rate.into()))
}

fn cost_gates(cases: &[Case]) -> Vec<Gate> {
    let mut gates = Vec::new();
    for case in cases {
        let here = COSTS_MAX.iter().filter(|(rate, ..)| *rate == case.rate);
        gates.extend(here.filter(|(_, loader, _)| case.row(*loader).is_some()).map(
            |(rate, loader, max)| {
                let (name, base) = (loader.name(), Loader::Wrk2.word());
                let ratio = contest::ratio(&case.rows, &name, base);
                let ratio = ratio.filter(|_| case.keeps(*loader) && case.keeps(Loader::Wrk2));
                Gate {
                    goal: format!(
                        "{}: CPU per request of {name} at most {max} x {base}",
                        title(*rate)
                    ),
                    measured: ratio.map(|ratio| ratio.median),
                    max: *max,
                    unit: "x",
                }
            },
        ));
        let default = case.row(Loader::Throng(None)).filter(|_| case.rate == RATE_UNPINNED);
        gates.extend(default.map(|(row, _)| {
            let wrk2 = case.row(Loader::Wrk2).and_then(|(row, _)| case.missing(row));
            Gate {
                goal: format!(
                    "{}: {} misses at most {MISSING_PERCENT_MAX} % of it, or what wrk2 misses",
                    title(case.rate),
                    row.name
                ),
                measured: case.missing(row),
                max: wrk2.unwrap_or(0.0).max(MISSING_PERCENT_MAX),
                unit: "%",
            }
        }));
    }
    gates
}

/// At the worst of the rates at which a tool has its core for itself.
fn lateness_gates(cases: &[Case]) -> Vec<Gate> {
    let calm: Vec<&Case> = cases.iter().filter(|case| case.rate < RATE_UNPINNED).collect();
    let throngs = Loader::ALL.into_iter().filter(|loader| matches!(loader, Loader::Throng(_)));
    let worst = |loader: Loader| {
        let beyond = |case: &&Case| {
            let (_, told) = case.row(loader)?;
            contest::median(told, |told| {
                let starts = told.starts?;
                Some(starts.late_p99? - starts.precision?)
            })
        };
        let each: Vec<Option<f64>> = calm.iter().map(beyond).collect();
        let figures: Option<Vec<f64>> = each.into_iter().collect();
        Spread::of(figures?.into_iter()).map(|spread| spread.max)
    };
    throngs
        .filter(|loader| calm.iter().any(|case| case.row(*loader).is_some()))
        .map(|loader| Gate {
            goal: format!(
                "{}: lateness p99 at most {LATENESS_US_MAX} µs beyond the precision, at each rate",
                loader.name()
            ),
            measured: worst(loader),
            max: LATENESS_US_MAX,
            unit: "µs",
        })
        .collect()
}

#[cfg(test)]
mod tests;
