//! What the tools report of open load beside what the target knows that it served.

use std::fmt::Write as _;

use serde_json::Value;

use super::RATES;
use super::loader::{Load, Loader};
use crate::bench::pair::{self, DIFFERENCE_PERCENT_MAX, DIFFERENCE_US_MAX, Pair};
use crate::bench::report::{Gate, spaced};
use crate::bench::tool::{Places, Tool};
use crate::bench::{Options, server};

/// What the target waits before it answers.
const LAWS: [(&str, &[&str]); 2] = [("at once", &[]), ("after 5 ms", &["--latency", "5ms"])];
/// Beyond it this target has no time to spare on one core.
const RATE_MAX: u32 = 20_000;
/// Each connection has so many requests a second: few enough for an answer each in time, and so
/// many that what the first of each takes is no part of the p99.
const RATE_OF_A_CONNECTION: u32 = 50;
/// The p50 and the p99 of one round.
type Round = [Pair; 2];

fn cells(pair: Pair) -> String {
    let verdict = match (pair.is_true(), pair.valid) {
        (true, true) => "",
        (true, false) => " (it says not to trust the run)",
        (false, true) => " **off**",
        (false, false) => " **off** (it says not to trust the run)",
    };
    format!(
        "{:.0} µs | {:.0} µs | {:+.0} µs, {:+.1} %{verdict}",
        pair.served_us,
        pair.reported_us,
        pair.difference_us(),
        pair.percent()
    )
}

/// The table and its goals.
pub(super) fn run(options: &Options, places: &Places) -> (String, Vec<Gate>) {
    let loaders = Loader::ALL.into_iter().filter(|loader| options.wants_tool(loader.word()));
    let loaders: Vec<Loader> = loaders.filter(|loader| loader.tells_times()).collect();
    let mut text = preface();
    let mut rows: Vec<(Loader, Option<Round>)> = Vec::new();
    for (answers, law) in LAWS {
        let rates = RATES.into_iter().filter(|rate| *rate <= RATE_MAX && options.wants_rate(*rate));
        for rate in rates {
            for (loader, rounds) in loaders.iter().zip(hold(&loaders, law, rate, options, places)) {
                let told = rounds.and_then(|rounds| middle(&rounds).ok_or("no round".to_string()));
                let cells = match &told {
                    Ok([p50, p99]) => format!("{} | {}", cells(*p50), cells(*p99)),
                    Err(trouble) => format!("not measured: {trouble} | | | | | "),
                };
                let rate = spaced(rate.into());
                let _ = writeln!(text, "| {answers} | {rate} | {} | {cells} |", loader.name());
                rows.push((*loader, told.ok()));
            }
        }
    }
    text.push('\n');
    (text, gates(&loaders, &rows))
}

fn preface() -> String {
    format!(
        "## Reported and served\n\n`throng target http` knows how long each request took: from \
         the kernel's stamp of its last byte until its answer was written. There is a connection \
         for each {RATE_OF_A_CONNECTION} requests a second; of throng the first second, in which \
         they open, counts on neither side. A difference of at most \
         {DIFFERENCE_PERCENT_MAX} % or {DIFFERENCE_US_MAX} µs is within the goal. Each percentile \
         is of the round with the median difference.\n\n\
         | answers | requests/s | tool | p50 served | reported | difference | p99 served | \
         reported | difference |\n\
         | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    )
}

/// All rounds of each, or why there are none; who fails once is not measured again.
fn hold(
    loaders: &[Loader],
    law: &[&str],
    rate: u32,
    options: &Options,
    places: &Places,
) -> Vec<Result<Vec<Round>, String>> {
    let mut rows: Vec<Result<Vec<Round>, String>> =
        loaders.iter().map(|_| Ok(Vec::new())).collect();
    for round in 0..options.rounds {
        for turn in 0..loaders.len() {
            let index = (turn + round as usize) % loaders.len();
            let Ok(rounds) = &mut rows[index] else { continue };
            let said = match measure(loaders[index], law, rate, options.seconds, places) {
                Ok(pairs) => {
                    rounds.push(pairs);
                    pairs.map(cells).join(" | ")
                }
                Err(trouble) => {
                    let trouble = trouble.trim().replace('|', "/");
                    rows[index] = Err(trouble.clone());
                    trouble
                }
            };
            let name = loaders[index].name();
            crate::say(&format!("{rate}/s {}, round {}: {name}: {said}", law.join(" "), round + 1));
        }
    }
    rows
}

fn measure(
    loader: Loader,
    law: &[&str],
    rate: u32,
    seconds: u32,
    places: &Places,
) -> Result<Round, String> {
    let throng = Tool::Throng.program(places)?;
    let arguments = [&["http"], law].concat();
    let target = server::throng_target(&throng, &places.folder, &arguments)?;
    let load = Load {
        url: target.url("http", 1),
        connections: rate.div_ceil(RATE_OF_A_CONNECTION),
        rate,
        seconds,
        pinned: true,
        warm: Some(target.port),
    };
    let (told, _) = loader.run(&load, places)?;
    let stats = server::stats(target.port)?;
    let pair = |reported: Option<f64>, name: &str| {
        let served = stats.pointer(&format!("/service_time/{name}")).and_then(Value::as_f64);
        let served_us = served.ok_or_else(|| format!("the target tells no {name}"))? / 1e3;
        let reported_us = reported.ok_or_else(|| format!("it tells no {name}"))?;
        Ok::<Pair, String>(Pair { reported_us, served_us, valid: told.valid })
    };
    Ok([pair(told.p50, "p50_ns")?, pair(told.p99, "p99_ns")?])
}

/// For each percentile the round in the middle.
fn middle(rounds: &[Round]) -> Option<Round> {
    let [p50, p99] =
        [0, 1].map(|place| pair::median(rounds.iter().map(|round| round[place]).collect()));
    Some([p50?, p99?])
}

/// One for each way of throng, of its worst row.
fn gates(loaders: &[Loader], rows: &[(Loader, Option<Round>)]) -> Vec<Gate> {
    let throngs = loaders.iter().filter(|loader| matches!(loader, Loader::Throng(_)));
    throngs
        .map(|loader| {
            let own = rows.iter().filter(|(of, _)| of == loader);
            let rounds: Option<Vec<Round>> = own.map(|(_, round)| *round).collect();
            let shares = rounds.into_iter().flatten().flatten().map(Pair::of_bound);
            Gate {
                goal: format!(
                    "{}: reported p50 and p99 within {DIFFERENCE_PERCENT_MAX} % or \
                     {DIFFERENCE_US_MAX} µs of what was served, in each row",
                    loader.name()
                ),
                measured: shares.reduce(f64::max),
                max: 1.0,
                unit: "x the bound",
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(reported_us: f64, served_us: f64) -> Pair {
        Pair { reported_us, served_us, valid: true }
    }

    #[test]
    fn a_difference_is_told_with_what_is_to_be_thought_of_it() {
        let off = pair(61.0, 30.0);
        assert_eq!(cells(pair(5150.0, 5000.0)), "5000 µs | 5150 µs | +150 µs, +3.0 %");
        assert_eq!(cells(off), "30 µs | 61 µs | +31 µs, +103.3 % **off**");
        let doubted = cells(Pair { valid: false, ..off });
        assert!(doubted.ends_with("% **off** (it says not to trust the run)"), "{doubted}");
    }

    #[test]
    fn the_round_in_the_middle_and_the_worst_row_count() {
        let rounds = [[10.0, 90.0], [30.0, 70.0], [20.0, 80.0]]
            .map(|reported| reported.map(|reported| pair(reported, 5.0)));
        assert_eq!(middle(&rounds), Some([pair(20.0, 5.0), pair(80.0, 5.0)]));
        let [default, exact] = [Loader::Throng(None), Loader::Throng(Some("100us"))];
        let rows = [(default, Some(rounds[0])), (exact, None), (default, Some(rounds[1]))];
        let gates = gates(&[default, exact, Loader::Wrk2], &rows);
        let measured: Vec<Option<f64>> = gates.iter().map(|gate| gate.measured).collect();
        assert_eq!(measured, [Some(85.0 / 30.0), None]);
    }
}
