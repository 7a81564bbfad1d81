//! `bench rate`: open load at rates from few to many requests per second. The cost of a request in
//! each tool that can keep a rate, how well it keeps it, and whether its times match those of the
//! target.

use super::contest::{self, Row, Spread};
use super::report::{self, Goal, spaced};
use super::server::{self, Server};
use super::tool::{self, Load, Values, at};
use super::{Options, Places, TOOL_CORE, machine, served};

/// The names of the tools in the tables, and their command lines.
const TOOLS: [(&str, &str); 7] = [
    (
        "throng, 100us",
        "throng bench @URL@ -c @USERS@ -d @SECONDS@s --rate @RATE@ --precision 100us",
    ),
    (
        "throng, 250us",
        "throng bench @URL@ -c @USERS@ -d @SECONDS@s --rate @RATE@ --precision 250us",
    ),
    ("throng, 1ms", "throng bench @URL@ -c @USERS@ -d @SECONDS@s --rate @RATE@ --precision 1ms"),
    (DEFAULT, "throng bench @URL@ -c @USERS@ -d @SECONDS@s --rate @RATE@"),
    (WRK2, "wrk2 -t @THREADS@ -c @USERS@ -d @SECONDS@s -R @RATE@ --latency @URL@"),
    (
        "vegeta",
        "vegeta attack -rate @RATE@ -duration @SECONDS@s -max-body 0 -connections @USERS@ \
         -max-workers @USERS@ -targets @FOLDER@/vegeta.targets -output @FOLDER@/vegeta.results",
    ),
    (H2LOAD, "h2load --h1 -t @THREADS@ -c @USERS@ -D @SECONDS@ --rps @RATE_OF_USER@ @URL@"),
];
const DEFAULT: &str = "throng bench";
const WRK2: &str = "wrk2";
/// It tells no percentiles.
const H2LOAD: &str = "h2load";
/// Above it, throng's own target has no spare time on one core.
const RATE_SERVED_MAX: u32 = 20_000;
const RATES: [u32; 4] = [1_000, 5_000, 20_000, 100_000];
const CONNECTIONS: u32 = 100;
/// From here on, a tool has all cores, with two threads, and the server one of them, too.
const RATE_UNPINNED: u32 = 100_000;
/// wrk2 opens a connection in so much time, each thread its own, before it keeps the whole rate.
/// Its results are counted from when half of them are open.
const WRK2_OPENS_ONE_S: f64 = 0.005;
/// Where times are compared, each connection has so many requests a second: few enough for a timely
/// response to each, and so many that the first of each does not affect the p99.
const RATE_OF_A_CONNECTION: u32 = 50;
/// What the target waits before it answers.
const ANSWERS: [(&str, &str); 2] = [("immediate", "none"), ("after 5 ms", "5ms")];

/// CPU per request as a multiple of wrk2's.
const COSTS_MAX: [(u32, &str, f64); 5] = [
    (1_000, "throng, 1ms", 1.2),
    (20_000, "throng, 1ms", 0.9),
    (20_000, "throng, 250us", 1.3),
    (20_000, "throng, 100us", 2.0),
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
    let tools: Vec<(&str, &str)> =
        TOOLS.into_iter().filter(|(_, line)| options.wants_tool(line)).collect();
    let mut goals = Vec::new();
    if options.wants("cost") {
        let nginx = server::nginx(&places.folder, "")?;
        text += &preface(options);
        let hold = |rate: &u32| Case::hold(*rate, &tools, options, places, &nginx);
        let cases = RATES.iter().map(hold).collect::<Result<Vec<Case>, String>>()?;
        text.extend(cases.iter().map(Case::table));
        goals.extend(cases.iter().flat_map(Case::goals));
        goals.extend(lateness_goals(&cases));
    }
    if options.wants("served") {
        let mut table = served::Table::new("Reported and served times");
        let tools: Vec<(&str, &str)> =
            tools.into_iter().filter(|(name, _)| *name != H2LOAD).collect();
        for (answers, law) in ANSWERS {
            for rate in RATES.iter().filter(|rate| **rate <= RATE_SERVED_MAX) {
                let values = values(*rate, rate.div_ceil(RATE_OF_A_CONNECTION), 1);
                let load = format!("{}/s", spaced((*rate).into()));
                table.add((answers, law), (&load, &values), &tools, options, places)?;
            }
        }
        goals.extend(table.goals());
        text += &(table.text + "\n");
    }
    Ok(text + &report::goals(&goals))
}

fn values(rate: u32, connections: u32, threads: u32) -> Values {
    vec![
        ("RATE", rate.to_string()),
        ("USERS", connections.to_string()),
        ("RATE_OF_USER", (f64::from(rate) / f64::from(connections)).to_string()),
        ("THREADS", threads.to_string()),
    ]
}

fn preface(options: &Options) -> String {
    format!(
        "Open model over {CONNECTIONS} connections to one nginx, medians of {} rounds. Each tool \
         runs one thread on core {TOOL_CORE}. At {} requests/s and above, it runs two threads and \
         may use all cores, including the server's core. CPU is that of the tool only; for vegeta, \
         that of `attack` without `report`.\n\n\
         - *achieved* is the share of the requested rate. wrk2 opens one connection per thread \
         every 5 ms, so its measurement starts when half of them are open.\n\
         - A goal for a ratio applies if both tools achieve {:.0} %: a tool that falls behind \
         sends more requests per wake-up.\n\
         - Only throng reports *lateness* and *requests per wake-up*. h2load reports no \
         percentiles.\n\
         - The schedule of wrk2 has a resolution of 1 ms. In runs longer than 10.5 s, its \
         percentiles cover only the time after its calibration.\n\n",
        options.rounds,
        spaced(RATE_UNPINNED.into()),
        100.0 - MISSING_PERCENT_JUDGED,
    )
}

/// Two threads on all cores, or one on a core of its own.
fn threads(rate: u32) -> u32 {
    if rate < RATE_UNPINNED { 1 } else { 2 }
}

impl Case {
    fn hold(
        rate: u32,
        tools: &[(&str, &str)],
        options: &Options,
        places: &Places,
        nginx: &Server,
    ) -> Result<Case, String> {
        let url = nginx.url("http", 1);
        let mut values = values(rate, CONNECTIONS, threads(rate));
        values.extend(served::values_of(&url, options, places)?);
        let names = tools.iter().map(|(name, _)| (*name).to_string());
        let rows = contest::hold(&title(rate), options.rounds, names, |index, _| {
            let core = (threads(rate) == 1).then_some(TOOL_CORE);
            let (line, values, seconds) = (tools[index].1, values.clone(), options.seconds);
            tool::measure(&Load { line, values, seconds, core, served: None }, places)
        });
        Ok(Case { rate, rows })
    }

    fn table(&self) -> String {
        let mut text = format!(
            "## {}\n\n| tool | CPU per request | ratio to wrk2 | achieved | lateness p50 / p99 / \
             max | requests per wake-up mean / max | p50 | p99 | failed |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
            title(self.rate)
        );
        text.extend(self.rows.iter().map(|row| report::cells(row, || self.cells(row))));
        text + "\n"
    }

    fn cells(&self, row: &Row) -> [String; 8] {
        // A figure that an older throng does not report is left out.
        let starts = |places: &[&str], unit: f64, digits: usize, name: &str| {
            let figure = |place: &&str| {
                let figure = row.median(|it| at(&it.summary, &format!("/generator/{place}")))?;
                Some(format!("{:.digits$}", figure / unit))
            };
            let all: Option<Vec<String>> = places.iter().map(figure).collect();
            all.map_or_else(String::new, |all| format!("{}{name}", all.join(" / ")))
        };
        let lateness = ["lateness/p50_ns", "lateness/p99_ns", "lateness/max_ns"];
        let us = |figure: Option<f64>| figure.map_or_else(String::new, |us| format!("{us:.0} µs"));
        [
            report::cpu(row),
            report::spread(contest::ratio(&self.rows, &row.name, WRK2), 2, ""),
            self.missing(row).map_or_else(String::new, |gone| format!("{:.2} %", 100.0 - gone)),
            starts(&lateness, 1e3, 0, " µs"),
            starts(&["together_mean", "together_max"], 1.0, 1, ""),
            us(row.median(|sample| sample.times_us[0])),
            us(row.median(|sample| sample.times_us[1])),
            row.failed().to_string(),
        ]
    }

    /// The shortfall of the rate, in percent.
    fn missing(&self, row: &Row) -> Option<f64> {
        let opened_last = f64::from(CONNECTIONS / threads(self.rate)) - 1.0;
        let opening = if row.name == WRK2 { opened_last / 2.0 * WRK2_OPENS_ONE_S } else { 0.0 };
        let rate = row.median(|sample| Some(sample.ok as f64 / (sample.seconds - opening)))?;
        Some(100.0 * (1.0 - rate / f64::from(self.rate)))
    }

    fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The goals of this rate: what requests cost, and whether the rate is kept.
    fn goals(&self) -> Vec<Goal> {
        let keeps = |name: &str| {
            let missing = self.row(name).and_then(|row| self.missing(row));
            missing.is_some_and(|missing| missing <= MISSING_PERCENT_JUDGED)
        };
        let here = COSTS_MAX
            .iter()
            .filter(|(rate, name, _)| *rate == self.rate && self.row(name).is_some());
        let cost = |(_, name, max): &(u32, &str, f64)| {
            let ratio = contest::ratio(&self.rows, name, WRK2);
            let ratio = ratio.filter(|_| keeps(name) && keeps(WRK2));
            Goal::of_ratio((&title(self.rate), "request"), (name, WRK2), ratio, *max)
        };
        let mut goals: Vec<Goal> = here.map(cost).collect();
        let default = self.row(DEFAULT).filter(|_| self.rate == RATE_UNPINNED);
        goals.extend(default.map(|row| {
            let wrk2 = self.row(WRK2).and_then(|row| self.missing(row));
            Goal {
                what: format!(
                    "{}: {DEFAULT} misses at most {MISSING_PERCENT_MAX} % of the rate, or no more \
                     than wrk2",
                    title(self.rate)
                ),
                measured: self.missing(row),
                max: wrk2.unwrap_or(0.0).max(MISSING_PERCENT_MAX),
                unit: "%",
            }
        }));
        goals
    }
}

fn title(rate: u32) -> String {
    format!("{} requests/s", spaced(rate.into()))
}

/// At the worst of the rates at which a tool has its own core.
fn lateness_goals(cases: &[Case]) -> Vec<Goal> {
    let calm: Vec<&Case> = cases.iter().filter(|case| case.rate < RATE_UNPINNED).collect();
    let beyond = |case: &&Case, name: &str| {
        case.row(name)?.median(|sample| {
            let figure = |place| at(&sample.summary, place);
            let late = figure("/generator/lateness/p99_ns")? - figure("/generator/precision_ns")?;
            Some(late / 1e3)
        })
    };
    let ours = TOOLS.iter().filter(|(name, _)| name.starts_with("throng"));
    let measured = ours.filter(|(name, _)| calm.iter().any(|case| case.row(name).is_some()));
    let goal = |(name, _): &(&str, &str)| Goal {
        what: format!(
            "{name}: lateness p99 at most {LATENESS_US_MAX} µs above the precision, at every rate"
        ),
        measured: calm
            .iter()
            .map(|case| beyond(case, name))
            .collect::<Option<Vec<f64>>>()
            .and_then(Spread::of)
            .map(|spread| spread.max),
        max: LATENESS_US_MAX,
        unit: "µs",
    };
    measured.map(goal).collect()
}

#[cfg(test)]
mod tests;
