//! `bench rate`: open load at rates from few to many requests per second. The cost of a request in
//! each tool that can keep a rate, how well it keeps it, and whether its times match those of the
//! target.

use super::contest::{self, Entrant, Row, Spread, Starts};
use super::report::{self, Gate, spaced};
use super::served;
use super::server::{self, Server};
use super::tool::{Load, Places, Tool, ToolKind};
use super::{Options, machine};

const TOOLS: [Tool; 7] = [
    Tool::Precise("100us"),
    Tool::Precise("250us"),
    Tool::Precise("1ms"),
    DEFAULT,
    Tool::Wrk2,
    Tool::Vegeta,
    Tool::H2load,
];
const DEFAULT: Tool = Tool::Throng;
/// The values of `--tools`.
pub(super) const WORDS: [&str; 4] = ["throng", "wrk2", "vegeta", "h2load"];
/// Above it, throng's own target has no spare time on one core.
const RATE_SERVED_MAX: u32 = 20_000;
pub(super) const RATES: [u32; 4] = [1_000, 5_000, 20_000, 100_000];
const CONNECTIONS: u32 = 100;
/// From here on, a tool has all cores, with two threads, and the server one of them, too.
const RATE_UNPINNED: u32 = 100_000;
/// Thresholds: CPU per request as a multiple of wrk2's.
const COSTS_MAX: [(u32, Tool, f64); 5] = [
    (1_000, Tool::Precise("1ms"), 1.2),
    (20_000, Tool::Precise("1ms"), 0.9),
    (20_000, Tool::Precise("250us"), 1.3),
    (20_000, Tool::Precise("100us"), 2.0),
    (20_000, DEFAULT, 1.3),
];
/// A tool that misses more of the rate is always busy: its cost is not meaningful.
const MISSING_PERCENT_JUDGED: f64 = 2.0;
/// The allowed shortfall of a rate.
const MISSING_PERCENT_MAX: f64 = 0.1;
/// In addition to the precision.
const LATENESS_US_MAX: f64 = 50.0;

/// One rate, and the results of each tool.
struct Case {
    rate: u32,
    rows: Vec<Row>,
}

pub(super) fn run(options: &Options, places: &Places) -> Result<String, String> {
    let mut text = machine::facts(options, places);
    let mut gates = Vec::new();
    let rates: Vec<u32> = RATES.into_iter().filter(|rate| options.wants_rate(*rate)).collect();
    let tools: Vec<Tool> =
        TOOLS.into_iter().filter(|tool| options.wants_tool(tool.word())).collect();
    if options.wants("cost") {
        let nginx = server::nginx(&places.folder, "")?;
        text.push_str(&preface(options));
        let cases: Vec<Case> =
            rates.iter().map(|rate| Case::hold(*rate, &tools, options, places, &nginx)).collect();
        cases.iter().for_each(|case| text.push_str(&case.table()));
        gates.extend(cost_gates(&cases));
        gates.extend(lateness_gates(&cases));
    }
    if options.wants("served") {
        let rates: Vec<u32> = rates.into_iter().filter(|it| *it <= RATE_SERVED_MAX).collect();
        let (told, more) = served::rates(&rates, &tools, options, places);
        text.push_str(&told);
        gates.extend(more);
    }
    text.push_str(&report::thresholds(&gates));
    Ok(text)
}

fn preface(options: &Options) -> String {
    format!(
        "Open model over {CONNECTIONS} connections to one nginx, medians of {} rounds. Each tool \
         runs one thread on core {}. At {} requests/s and above, it runs two threads and may use \
         all cores, including the server's core. CPU is that of the tool only; for vegeta, that \
         of `attack` without `report`.\n\n\
         - *achieved* is the share of the requested rate. wrk2 opens one connection per thread \
         every 5 ms, so its measurement starts when half of them are open.\n\
         - A goal for a ratio applies if both tools achieve {:.0} %: a tool that falls behind \
         sends more requests per wake-up.\n\
         - Only throng reports *lateness* and *requests per wake-up*. h2load reports no \
         percentiles.\n\
         - The schedule of wrk2 has a resolution of 1 ms. In runs longer than 10.5 s, its \
         percentiles cover only the time after its calibration.\n\n",
        options.rounds,
        super::TOOL_CORE,
        spaced(RATE_UNPINNED.into()),
        100.0 - MISSING_PERCENT_JUDGED,
    )
}

impl Case {
    fn hold(rate: u32, tools: &[Tool], options: &Options, places: &Places, nginx: &Server) -> Case {
        let (url, seconds) = (nginx.url("http", 1), options.seconds);
        let load = Load::new(url, ToolKind::KeepAlive, CONNECTIONS, seconds);
        let load = Load { rate: Some(rate), pinned: rate < RATE_UNPINNED, ..load };
        let entrant = |tool: &Tool| {
            let (tool, load) = (*tool, &load);
            Entrant { name: tool.name(), run: Box::new(move |_| tool.measure(load, places)) }
        };
        let entrants: Vec<Entrant<'_>> = tools.iter().map(entrant).collect();
        Case { rate, rows: contest::hold(&title(rate), options.rounds, &entrants) }
    }

    fn table(&self) -> String {
        let mut text = format!(
            "## {}\n\n| tool | CPU per request | ratio to wrk2 | achieved | lateness p50 / p99 / \
             max | requests per wake-up mean / max | p50 | p99 | failed |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
            title(self.rate)
        );
        for row in &self.rows {
            text.push_str(&report::line(row, || self.cells(row)));
        }
        text.push('\n');
        text
    }

    fn cells(&self, row: &Row) -> [String; 8] {
        let starts = |figures: &[fn(&Starts) -> Option<f64>], digits: usize, unit: &str| {
            let each = figures.iter().map(|figure| {
                let figure = row.median(|sample| figure(&sample.starts))?;
                Some(format!("{figure:.digits$}"))
            });
            // A figure that an older throng does not report is left out.
            let all: Option<Vec<String>> = each.collect();
            all.map_or_else(String::new, |all| format!("{}{unit}", all.join(" / ")))
        };
        let us = |figure: Option<f64>| figure.map_or_else(String::new, |us| format!("{us:.0} µs"));
        [
            report::spread(row.cpu_us(), 2, " µs"),
            report::spread(contest::ratio(&self.rows, &row.name, Tool::Wrk2.word()), 2, ""),
            self.missing(row).map_or_else(String::new, |gone| format!("{:.2} %", 100.0 - gone)),
            starts(&[|s| s.late_p50, |s| s.late_p99, |s| s.late_max], 0, " µs"),
            starts(&[|s| s.together_mean, |s| s.together_max], 1, ""),
            us(row.median(|sample| sample.times_us[0])),
            us(row.median(|sample| sample.times_us[1])),
            row.failed().to_string(),
        ]
    }

    /// The shortfall of the rate, in percent.
    fn missing(&self, row: &Row) -> Option<f64> {
        Some(100.0 * (1.0 - row.rate()?.median / f64::from(self.rate)))
    }

    fn keeps(&self, tool: Tool) -> bool {
        let missing = self.row(tool).and_then(|row| self.missing(row));
        missing.is_some_and(|missing| missing <= MISSING_PERCENT_JUDGED)
    }

    fn row(&self, tool: Tool) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == tool.name())
    }
}

fn title(rate: u32) -> String {
    format!("{} requests/s", spaced(rate.into()))
}

fn cost_gates(cases: &[Case]) -> Vec<Gate> {
    let mut gates = Vec::new();
    for case in cases {
        let here = COSTS_MAX.iter().filter(|(rate, ..)| *rate == case.rate);
        gates.extend(here.filter(|(_, tool, _)| case.row(*tool).is_some()).map(
            |(rate, tool, max)| {
                let (name, base) = (tool.name(), Tool::Wrk2.word());
                let ratio = contest::ratio(&case.rows, &name, base);
                let ratio = ratio.filter(|_| case.keeps(*tool) && case.keeps(Tool::Wrk2));
                Gate {
                    threshold: format!(
                        "{}: {name}, CPU per request at most {max} x {base}",
                        title(*rate)
                    ),
                    measured: ratio.map(|ratio| ratio.median),
                    max: *max,
                    unit: "x",
                }
            },
        ));
        let default = case.row(DEFAULT).filter(|_| case.rate == RATE_UNPINNED);
        gates.extend(default.map(|row| {
            let wrk2 = case.row(Tool::Wrk2).and_then(|row| case.missing(row));
            Gate {
                threshold: format!(
                    "{}: {} misses at most {MISSING_PERCENT_MAX} % of the rate, or no more \
                     than wrk2",
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

/// At the worst of the rates at which a tool has its own core.
fn lateness_gates(cases: &[Case]) -> Vec<Gate> {
    let calm: Vec<&Case> = cases.iter().filter(|case| case.rate < RATE_UNPINNED).collect();
    let worst = |tool: Tool| {
        let beyond = |case: &&Case| {
            case.row(tool)?
                .median(|sample| Some(sample.starts.late_p99? - sample.starts.precision?))
        };
        let each: Vec<Option<f64>> = calm.iter().map(beyond).collect();
        let figures: Option<Vec<f64>> = each.into_iter().collect();
        Spread::of(figures?.into_iter()).map(|spread| spread.max)
    };
    TOOLS
        .into_iter()
        .filter(|tool| tool.is_throng() && calm.iter().any(|case| case.row(*tool).is_some()))
        .map(|tool| Gate {
            threshold: format!(
                "{}: lateness p99 at most {LATENESS_US_MAX} µs above the precision, at every rate",
                tool.name()
            ),
            measured: worst(tool),
            max: LATENESS_US_MAX,
            unit: "µs",
        })
        .collect()
}

#[cfg(test)]
mod tests;
