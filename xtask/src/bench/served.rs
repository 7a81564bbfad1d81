//! Times that tools report beside those that the target served: `bench truth`, for throng under
//! every latency law, and a part of `bench rate`, for all tools that keep a rate.

use super::contest::{self, Row, Sample};
use super::report::{self, Goal};
use super::tool::{self, Load, Values, WARM_UP};
use super::{Options, Places, SERVER_CORE, TOOL_CORE, machine, server};

/// Either is good enough.
const DIFFERENCE_PERCENT_MAX: f64 = 3.0;
const DIFFERENCE_US_MAX: f64 = 30.0;
/// Names on the command line, and each law as the target reads it.
pub(super) const NAMES: [&str; 6] = ["none", "fixed", "short", "uniform", "exponential", "stall"];
const LAWS: [&str; 6] =
    ["none", "20ms", "5ms", "10ms..50ms", "exponential 20ms", "stall 500ms every 5s"];
/// Closed load: so many users with a pause between two requests.
const CLOSED: u32 = 64;
/// Open load: enough connections for what is under way at a time, and for what comes due while
/// the target stands still.
const OPEN: u32 = 100;
const OPEN_STALL: u32 = 1200;

/// Both views of one percentile of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    reported_us: f64,
    served_us: f64,
    /// The tool itself considers the run valid.
    valid: bool,
}

impl Pair {
    /// Of the p50 (0) or the p99 (1) of a sample.
    fn of(sample: &Sample, place: usize) -> Option<Pair> {
        let (reported_us, served_us) = (sample.times_us[place]?, sample.served_us?[place]);
        Some(Pair { reported_us, served_us, valid: sample.is_valid() })
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
        let verdict = if self.of_bound() <= 1.0 { "" } else { " **not met**" };
        let doubt = if self.valid { "" } else { " (the tool calls the run invalid)" };
        format!(
            "{:.0} µs | {:.0} µs | {:+.0} µs, {:+.1} %{verdict}{doubt}",
            self.served_us,
            self.reported_us,
            self.difference_us(),
            self.percent()
        )
    }
}

/// Rows of a table, and of each tool the worst difference as a multiple of the bound.
pub(super) struct Table {
    pub(super) text: String,
    worst: Vec<(String, Option<f64>)>,
}

impl Table {
    pub(super) fn new(title: &str) -> Table {
        let text = format!(
            "## {title}\n\n`throng target http` measures the time of each request from the \
             kernel's receive timestamp of its last byte until the response is written, including \
             the wait in the target's socket. For throng, both times exclude the first second, in \
             which connections open. The goal is a difference of at most \
             {DIFFERENCE_PERCENT_MAX} % or {DIFFERENCE_US_MAX} µs; larger differences are marked. \
             Each percentile is from the round with the median difference.\n\n\
             | response | load | tool | p50 served | reported | difference | p99 served | \
             reported | difference |\n\
             | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        );
        Table { text, worst: Vec::new() }
    }

    /// Measures all tools at a target with this latency law and adds a row for each.
    pub(super) fn add(
        &mut self,
        (answers, law): (&str, &str),
        (load, values): (&str, &Values),
        tools: &[(&str, &str)],
        options: &Options,
        places: &Places,
    ) -> Result<(), String> {
        let measure = |index: usize, _: usize| {
            let words = ["http", "--latency", law];
            let target = server::target(&places.throng, &places.folder, &words, Some(SERVER_CORE))?;
            let mut values = values.clone();
            values.extend(values_of(&target.url("http", 1), options, places)?);
            let line = tools[index].1.to_string();
            let line = if line.starts_with("throng ") { line + WARM_UP } else { line };
            let (seconds, core, served) = (options.seconds, Some(TOOL_CORE), Some(&target));
            tool::measure(&Load { line: &line, values, seconds, core, served }, places)
        };
        let names = tools.iter().map(|(name, _)| (*name).to_string());
        for row in contest::hold(&format!("{answers}, {load}"), options.rounds, names, measure) {
            let pairs = [0, 1].map(|place| Pair::median(&row, place));
            let cells = match (&row.trouble, pairs) {
                (None, [Some(p50), Some(p99)]) => format!("{} | {}", p50.cells(), p99.cells()),
                (trouble, _) => {
                    let trouble = trouble.as_deref().unwrap_or("it reports no times");
                    report::not_measured(trouble, 6)
                }
            };
            self.text += &format!("| {answers} | {load} | {} | {cells} |\n", row.name);
            let worst = pairs[0].zip(pairs[1]).map(|(a, b)| a.of_bound().max(b.of_bound()));
            match self.worst.iter_mut().find(|(name, _)| *name == row.name) {
                Some((_, old)) => *old = old.zip(worst).map(|(old, new)| old.max(new)),
                None => self.worst.push((row.name, worst)),
            }
        }
        Ok(())
    }

    /// Of throng, at each precision.
    pub(super) fn goals(&self) -> Vec<Goal> {
        let ours = self.worst.iter().filter(|(name, _)| name.starts_with("throng"));
        let goal = |(name, measured): &(String, Option<f64>)| Goal {
            what: format!(
                "{name}: reported p50 and p99 within {DIFFERENCE_PERCENT_MAX} % or \
                 {DIFFERENCE_US_MAX} µs of the served times, in every row"
            ),
            measured: *measured,
            max: 1.0,
            unit: "x the limit",
        };
        ours.map(goal).collect()
    }
}

/// The values of every command line; vegeta reads the URL from a file.
pub(super) fn values_of(url: &str, options: &Options, places: &Places) -> Result<Values, String> {
    places.write("vegeta.targets", &format!("GET {url}\n"))?;
    Ok(vec![
        ("URL", url.to_string()),
        ("SECONDS", options.seconds.to_string()),
        ("FOLDER", places.folder.display().to_string()),
    ])
}

pub(super) fn truth(options: &Options, places: &Places) -> Result<String, String> {
    let facts = machine::facts(options, places);
    let mut table =
        Table::new("Truth: times that throng reports, and times that the target measured");
    for (_, law) in NAMES.iter().zip(LAWS).filter(|(name, _)| options.wants(name)) {
        let open = if law.starts_with("stall") { OPEN_STALL } else { OPEN };
        for (model, users, flags) in
            [("closed", CLOSED, "--think 10ms"), ("open", open, "--rate 2000")]
        {
            let load = format!("{model}, {users} connections, {flags}");
            let line = format!("throng bench @URL@ -c {users} -d @SECONDS@s {flags}");
            let tools = [("throng bench", line.as_str())];
            table.add((law, law), (&load, &Vec::new()), &tools, options, places)?;
        }
    }
    Ok(facts + &table.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(reported: &[f64]) -> Row {
        let sample = |reported: &f64| Sample {
            times_us: [Some(*reported), Some(100.0 - reported)],
            served_us: Some([5.0, 5.0]),
            ..Sample::default()
        };
        let samples = reported.iter().map(sample).collect();
        Row { name: "throng bench".to_string(), samples, trouble: None }
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
        let worst = vec![("throng bench".to_string(), Some(2.5)), ("wrk2".to_string(), Some(9.0))];
        let goals = Table { text: String::new(), worst }.goals();
        assert_eq!(goals.iter().map(|goal| goal.measured).collect::<Vec<_>>(), [Some(2.5)]);
    }
}
