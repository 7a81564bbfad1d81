//! Times that tools report beside those that the target served: `bench truth`, for throng under
//! every latency law, and a part of `bench rate`, for all tools that keep a rate.

use std::fmt::Write as _;

use super::contest::{self, Entrant, Row, Sample};
use super::report::{Gate, spaced};
use super::server;
use super::tool::{Load, Places, Tool, ToolKind};
use super::{Options, machine};

/// Either is good enough.
const DIFFERENCE_PERCENT_MAX: f64 = 3.0;
const DIFFERENCE_US_MAX: f64 = 30.0;
/// Names on the command line, and each law as the target reads it.
pub(super) const NAMES: [&str; 6] = ["none", "fixed", "short", "uniform", "exponential", "stall"];
const LAWS: [&str; 6] =
    ["none", "20ms", "5ms", "10ms..50ms", "exponential 20ms", "stall 500ms every 5s"];
/// Closed load: so many users with a pause between two requests.
const CLOSED: u32 = 64;
const THINK: [&str; 2] = ["--think", "10ms"];
/// Open load: enough connections for what is under way at a time, and for what comes due while
/// the target stands still.
const RATE: u32 = 2000;
const OPEN: u32 = 100;
const OPEN_STALL: u32 = 1200;
/// Of `bench rate`: what the target waits before it answers.
const ANSWERS: [(&str, &str); 2] = [("immediate", "none"), ("after 5 ms", "5ms")];
/// Each connection has so many requests a second: few enough for an answer each in time, and so
/// many that what the first of each takes is no part of the p99.
const RATE_OF_A_CONNECTION: u32 = 50;

/// Both views of one percentile of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    reported_us: f64,
    served_us: f64,
    /// The tool itself stands by the run.
    valid: bool,
}

impl Pair {
    /// Of the p50 (0) or the p99 (1) of a sample.
    fn of(sample: &Sample, place: usize) -> Option<Pair> {
        let (reported_us, served_us) = (sample.times_us[place]?, sample.served_us?[place]);
        Some(Pair { reported_us, served_us, valid: sample.valid })
    }

    /// Of the round with the median difference: a single one tells more of the machine's noise.
    fn median(row: &Row, place: usize) -> Option<Pair> {
        let pairs = row.samples.iter().map(|sample| Pair::of(sample, place));
        let mut pairs = pairs.collect::<Option<Vec<Pair>>>()?;
        pairs.sort_by(|a, b| a.difference_us().total_cmp(&b.difference_us()));
        pairs.get(pairs.len() / 2).copied()
    }

    fn difference_us(self) -> f64 {
        self.reported_us - self.served_us
    }

    fn percent(self) -> f64 {
        100.0 * self.difference_us() / self.served_us.max(1e-9)
    }

    /// The difference as a multiple of the bound that it is closer to.
    fn of_bound(self) -> f64 {
        let percent = self.percent().abs() / DIFFERENCE_PERCENT_MAX;
        percent.min(self.difference_us().abs() / DIFFERENCE_US_MAX)
    }

    fn cells(self) -> String {
        let verdict = match (self.of_bound() <= 1.0, self.valid) {
            (true, true) => "",
            (true, false) => " (the tool calls the run invalid)",
            (false, true) => " **not met**",
            (false, false) => " **not met** (the tool calls the run invalid)",
        };
        format!(
            "{:.0} µs | {:.0} µs | {:+.0} µs, {:+.1} %{verdict}",
            self.served_us,
            self.reported_us,
            self.difference_us(),
            self.percent()
        )
    }
}

/// Rows of a table, and of each tool the worst difference as a multiple of the bound.
#[derive(Default)]
struct Table {
    text: String,
    worst: Vec<(String, Option<f64>)>,
}

impl Table {
    /// Measures all tools at a target with this law and adds a row for each.
    fn add(
        &mut self,
        answers: &str,
        load: (&str, &Load),
        tools: &[Tool],
        law: &str,
        options: &Options,
        places: &Places,
    ) {
        let (said, load) = load;
        let entrant = |tool: &Tool| {
            let tool = *tool;
            let run = move |_| {
                let words = ["http", "--latency", law];
                let target = server::throng_target(&places.throng, &places.folder, &words)?;
                let (url, served) = (target.url("http", 1), Some(target.port));
                tool.measure(&Load { url, served, ..load.clone() }, places)
            };
            Entrant { name: tool.name(), run: Box::new(run) }
        };
        let entrants: Vec<Entrant<'_>> = tools.iter().map(entrant).collect();
        let title = format!("{answers}, {said}");
        for row in contest::hold(&title, options.rounds, &entrants) {
            let pairs = [0, 1].map(|place| Pair::median(&row, place));
            let cells = match (&row.trouble, pairs) {
                (None, [Some(p50), Some(p99)]) => format!("{} | {}", p50.cells(), p99.cells()),
                (trouble, _) => {
                    let trouble = trouble.clone().unwrap_or("it reports no times".to_string());
                    format!("not measured: {} | | | | | ", trouble.trim().replace('|', "/"))
                }
            };
            let _ = writeln!(self.text, "| {answers} | {said} | {} | {cells} |", row.name);
            let worst = pairs[0].zip(pairs[1]).map(|(a, b)| a.of_bound().max(b.of_bound()));
            match self.worst.iter_mut().find(|(name, _)| *name == row.name) {
                Some((_, old)) => *old = old.zip(worst).map(|(old, new)| old.max(new)),
                None => self.worst.push((row.name, worst)),
            }
        }
    }

    fn gates(self, tools: &[Tool]) -> (String, Vec<Gate>) {
        let names: Vec<String> =
            tools.iter().filter(|tool| tool.is_throng()).map(|tool| tool.name()).collect();
        let ours = self.worst.into_iter().filter(|(name, _)| names.contains(name));
        let gate = |(name, measured)| Gate {
            threshold: format!(
                "{name}: reported p50 and p99 within {DIFFERENCE_PERCENT_MAX} % or \
                 {DIFFERENCE_US_MAX} µs of the served times, in every row"
            ),
            measured,
            max: 1.0,
            unit: "x the limit",
        };
        (self.text + "\n", ours.map(gate).collect())
    }
}

fn preface(title: &str) -> String {
    format!(
        "## {title}\n\n`throng target http` measures the time of each request from the kernel's \
         receive timestamp of its last byte until the response is written, including the wait in \
         the target's socket. For throng, both times exclude the first second, in which \
         connections open. The goal is a difference of at most {DIFFERENCE_PERCENT_MAX} % or \
         {DIFFERENCE_US_MAX} µs; larger differences are marked. Each percentile is from the round \
         with the median difference.\n\n\
         | response | load | tool | p50 served | reported | difference | p99 served | \
         reported | difference |\n\
         | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    )
}

fn load(connections: u32, rate: Option<u32>, seconds: u32) -> Load {
    Load { rate, ..Load::new(String::new(), ToolKind::KeepAlive, connections, seconds) }
}

pub(super) fn truth(options: &Options, places: &Places) -> Result<String, String> {
    let tools = [Tool::Throng];
    Tool::Throng.program(places)?;
    let mut table = Table::default();
    for (_, law) in NAMES.iter().zip(LAWS).filter(|(name, _)| options.wants(name)) {
        let closed = load(CLOSED, None, options.seconds);
        let closed = Load { more: THINK.map(str::to_string).to_vec(), ..closed };
        let said = format!("closed, {CLOSED} connections, {}", THINK.join(" "));
        table.add(law, (&said, &closed), &tools, law, options, places);
        let connections = if law.starts_with("stall") { OPEN_STALL } else { OPEN };
        let open = load(connections, Some(RATE), options.seconds);
        let said = format!("open, {connections} connections, --rate {RATE}");
        table.add(law, (&said, &open), &tools, law, options, places);
    }
    let title = "Truth: times that throng reports, and times that the target measured";
    let (rows, _) = table.gates(&[]);
    Ok(machine::facts(options, places) + &preface(title) + &rows)
}

/// The table of `bench rate` and its thresholds.
pub(super) fn rates(
    rates: &[u32],
    tools: &[Tool],
    options: &Options,
    places: &Places,
) -> (String, Vec<Gate>) {
    let tools: Vec<Tool> = tools.iter().copied().filter(|tool| tool.tells_times()).collect();
    let mut table = Table::default();
    for (answers, law) in ANSWERS {
        for rate in rates {
            let connections = rate.div_ceil(RATE_OF_A_CONNECTION);
            let load = load(connections, Some(*rate), options.seconds);
            let said = format!("{}/s", spaced((*rate).into()));
            table.add(answers, (&said, &load), &tools, law, options, places);
        }
    }
    let (rows, gates) = table.gates(&tools);
    (preface("Reported and served times") + &rows, gates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(reported: &[f64]) -> Row {
        let sample = |reported: &f64| Sample {
            times_us: [Some(*reported), Some(100.0 - reported)],
            served_us: Some([5.0, 5.0]),
            valid: true,
            ..Sample::default()
        };
        let samples = reported.iter().map(sample).collect();
        Row { name: Tool::Throng.name(), samples, trouble: None }
    }

    fn pair(reported_us: f64, served_us: f64) -> Pair {
        Pair { reported_us, served_us, valid: true }
    }

    #[test]
    fn either_bound_is_enough() {
        let is_true = |reported_us, served_us| pair(reported_us, served_us).of_bound() <= 1.0;
        assert!(is_true(1020.0, 1000.0) && is_true(125.0, 100.0) && is_true(98_000.0, 100_000.0));
        assert!(!is_true(1040.0, 1000.0) && !is_true(96_000.0, 100_000.0));
        assert_eq!(pair(160.0, 100.0).of_bound(), 2.0);
    }

    #[test]
    fn the_round_in_the_middle_counts() {
        let row = row(&[10.0, 30.0, 20.0]);
        assert_eq!(Pair::median(&row, 0), Some(pair(20.0, 5.0)));
        assert_eq!(Pair::median(&row, 1), Some(pair(80.0, 5.0)));
        let silent = Row { samples: vec![Sample::default()], ..row };
        assert_eq!(Pair::median(&silent, 0), None);
    }

    #[test]
    fn a_difference_is_told_with_what_is_to_be_thought_of_it() {
        let off = pair(61.0, 30.0);
        assert_eq!(pair(5150.0, 5000.0).cells(), "5000 µs | 5150 µs | +150 µs, +3.0 %");
        assert_eq!(off.cells(), "30 µs | 61 µs | +31 µs, +103.3 % **not met**");
        let doubted = Pair { valid: false, ..off }.cells();
        assert!(doubted.ends_with("% **not met** (the tool calls the run invalid)"), "{doubted}");
    }

    #[test]
    fn the_worst_row_counts() {
        let (name, other) = (Tool::Throng.name(), Tool::Wrk2.name());
        let worst = vec![(name.clone(), Some(2.5)), (other, Some(9.0))];
        let (_, gates) = Table { text: String::new(), worst }.gates(&[Tool::Throng, Tool::Wrk2]);
        assert_eq!(gates.iter().map(|gate| gate.measured).collect::<Vec<_>>(), [Some(2.5)]);
    }
}
