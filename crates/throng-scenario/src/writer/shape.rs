//! The load of a `bench` command line: constant, a ramp, steps, or custom stages.

use std::time::Duration;

use throng_base::Said;
use throng_base::units::{parse_rate, parse_time, write_duration};

use super::{Bench, TIME, Writer};
use crate::quote::scalar;

/// How the rate of a command line changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum BenchShape {
    /// It stays at [`Bench::rate`], or there is none.
    #[default]
    Constant,
    /// A linear ramp from this rate to [`Bench::rate`].
    Ramp { from: f64 },
    /// Constant rates from this one to [`Bench::rate`], each for [`Bench::time`]. At least two.
    Steps { from: f64, count: u32 },
    /// Replaces rate and time.
    Stages(Vec<BenchStage>),
}

/// `NAME=TIME@RATE` or `NAME=TIME@FROM..TO`.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchStage {
    pub name: String,
    pub time: Duration,
    /// Starts per second at its start and end.
    pub from: f64,
    pub to: f64,
}

/// A rate, or two with `..` between them.
pub fn parse_rates(text: &str) -> Result<(f64, f64), Said> {
    let one = |text: &str| {
        let text = text.trim();
        let rate =
            if text.contains('/') { parse_rate(text) } else { parse_rate(&format!("{text}/s")) };
        rate.map_err(|error| error.message)
    };
    match text.split_once("..") {
        Some((from, to)) => Ok((one(from)?, one(to)?)),
        None => one(text).map(|rate| (rate, rate)),
    }
}

impl BenchStage {
    pub fn parse(text: &str) -> Result<BenchStage, Said> {
        let wrong =
            || say!("`{text}` is not a stage: write `NAME=TIME@RATE`, such as `climb=10s@50..200`");
        let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
        let (time, rates) = rest.split_once('@').ok_or_else(wrong)?;
        let name = name.trim();
        if name.is_empty() {
            return Err(wrong());
        }
        let time = parse_time(time.trim()).map_err(|error| error.message)?;
        let (from, to) = parse_rates(rates)?;
        if time.is_zero() || from.max(to) <= 0.0 {
            return Err(say!("`{text}`: the time and the rate of a stage must be more than 0"));
        }
        Ok(BenchStage { name: name.to_string(), time, from, to })
    }

    fn drive(&self) -> String {
        match self.from == self.to {
            true => format!("iterations: {}/s", number(self.to)),
            false => {
                let (from, to) = (number(self.from), number(self.to));
                format!("iterations: {{from: {from}/s, to: {to}/s}}")
            }
        }
    }
}

impl Bench {
    /// The stages of the load, if it is not constant.
    fn stages(&self) -> Option<Vec<BenchStage>> {
        let (to, time) = (self.rate.unwrap_or_default(), self.time.unwrap_or(TIME));
        match &self.shape {
            BenchShape::Constant => None,
            BenchShape::Ramp { from } => {
                Some(vec![BenchStage { name: "bench".into(), time, from: *from, to }])
            }
            BenchShape::Steps { from, count } => {
                let last = f64::from((*count).max(2) - 1);
                let step = |number: u32| {
                    let rate = from + (to - from) * f64::from(number) / last;
                    let rate = (rate * 1e3).round() / 1e3;
                    BenchStage { name: format!("rate {rate}"), time, from: rate, to: rate }
                };
                Some((0..=last as u32).map(step).collect())
            }
            BenchShape::Stages(stages) => Some(stages.clone()),
        }
    }
}

impl Writer<'_> {
    /// Writes the stages; false if there are none.
    pub(super) fn shaped(&mut self, users: u64) -> bool {
        let Some(stages) = self.bench.stages() else { return false };
        self.line("load:");
        if let Some((time, first)) = self.bench.warm_up.zip(stages.first()) {
            let rate = if first.from > 0.0 { first.from } else { first.to };
            let (rate, time) = (number(rate), write_duration(time));
            let steady = format!("iterations: {rate}/s, users: {users}");
            self.line(&format!("  - {{name: warm-up, {steady}, for: {time}, measured: false}}"));
        }
        for stage in &stages {
            let (name, drive) = (scalar(&stage.name), stage.drive());
            let time = write_duration(stage.time);
            self.line(&format!("  - {{name: {name}, {drive}, users: {users}, for: {time}}}"));
        }
        true
    }
}

/// Without unnecessary digits.
fn number(rate: f64) -> f64 {
    (rate * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::write;
    use crate::tests::program;

    fn load(bench: &Bench) -> Vec<String> {
        let text = write(bench);
        assert_eq!(program(&text).loads.len(), 1, "{text}");
        let lines = text.lines().skip_while(|line| *line != "load:").skip(1);
        lines.take_while(|line| line.starts_with(' ')).map(str::to_string).collect()
    }

    fn bench(shape: BenchShape) -> Bench {
        let time = Some(Duration::from_secs(10));
        let url = "http://127.0.0.1:8080/".into();
        Bench { url, users: 50, rate: Some(500.0), time, shape, ..Bench::default() }
    }

    #[test]
    fn a_range_of_rates_is_a_ramp_or_steps() {
        let ramp = "  - {name: bench, iterations: {from: 100/s, to: 500/s}, users: 50, for: 10s}";
        assert_eq!(load(&bench(BenchShape::Ramp { from: 100.0 })), [ramp]);
        let steps = load(&bench(BenchShape::Steps { from: 100.0, count: 3 }));
        let step = |rate: u32| {
            format!("  - {{name: rate {rate}, iterations: {rate}/s, users: 50, for: 10s}}")
        };
        assert_eq!(steps, [step(100), step(300), step(500)]);
        let odd = load(&bench(BenchShape::Steps { from: 100.0, count: 4 }));
        assert!(odd[1].contains("iterations: 233.333/s"), "{odd:?}");
    }

    #[test]
    fn stages_run_in_order_after_the_warm_up() {
        let stages = ["climb = 10s @ 50..200", "hold=1m@200", "sink=90s@200/s..30/m"];
        let stages = stages.iter().map(|it| BenchStage::parse(it).expect("a stage")).collect();
        let warm_up = Some(Duration::from_secs(5));
        let bench = Bench { warm_up, ..bench(BenchShape::Stages(stages)) };
        assert_eq!(
            load(&bench),
            [
                "  - {name: warm-up, iterations: 50/s, users: 50, for: 5s, measured: false}",
                "  - {name: climb, iterations: {from: 50/s, to: 200/s}, users: 50, for: 10s}",
                "  - {name: hold, iterations: 200/s, users: 50, for: 1m}",
                "  - {name: sink, iterations: {from: 200/s, to: 0.5/s}, users: 50, for: 90s}",
            ]
        );
    }

    #[test]
    fn invalid_stages_are_refused_with_an_example() {
        for text in
            ["", "climb", "climb=10s", "=10s@5", "climb=10s@", "climb=soon@5", "a=0s@5", "a=5s@0"]
        {
            let error = BenchStage::parse(text).expect_err(text);
            assert!(!error.english().is_empty(), "{text}");
        }
        let error = BenchStage::parse("climb=10s").expect_err("no rate").english();
        assert!(error.contains("climb=10s@50..200"), "{error}");
    }
}
