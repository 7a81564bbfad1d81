//! Measures several entrants side by side: in rounds, so that other work on the machine affects all
//! of them, and with the median, so that one bad round does not decide.

use std::time::Duration;

use serde_json::Value;

/// One measurement of one entrant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) cpu: Duration,
    /// The duration of the load.
    pub(super) seconds: f64,
    /// The p50 and the p99 that it reports, and those that the target measured.
    pub(super) times_us: [Option<f64>; 2],
    pub(super) served_us: Option<[f64; 2]>,
    /// Of throng.
    pub(super) summary: Value,
}

/// The results of an entrant over all rounds, or why there are none.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) samples: Vec<Sample>,
    pub(super) trouble: Option<String>,
}

/// A figure over all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// Measures all entrants `rounds` times in turn; each round starts with another one. `measure`
/// receives the number of the entrant and of the round. An entrant that fails is not measured
/// again.
pub(super) fn hold(
    title: &str,
    rounds: u32,
    names: impl Iterator<Item = String>,
    measure: impl Fn(usize, usize) -> Result<Sample, String>,
) -> Vec<Row> {
    let empty = |name| Row { name, samples: Vec::new(), trouble: None };
    let mut rows: Vec<Row> = names.map(empty).collect();
    for round in 0..rounds as usize {
        for turn in 0..rows.len() {
            let index = (turn + round) % rows.len();
            let row = &mut rows[index];
            if row.trouble.is_some() {
                continue;
            }
            let told = match measure(index, round) {
                Ok(sample) => {
                    let told =
                        format!("{:.2} µs of CPU each, {:.0}/s", sample.cpu_us(), sample.rate());
                    row.samples.push(sample);
                    told
                }
                Err(trouble) => row.trouble.insert(trouble).clone(),
            };
            crate::say(&format!("{title}, round {}: {}: {told}", round + 1, row.name));
        }
    }
    rows
}

impl Sample {
    /// CPU time per success, in microseconds.
    pub(super) fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.ok.max(1) as f64
    }

    pub(super) fn rate(&self) -> f64 {
        self.ok as f64 / self.seconds
    }

    /// The tool considers the result valid.
    pub(super) fn is_valid(&self) -> bool {
        self.summary["outcome"]["valid"] != false
    }
}

impl Row {
    /// A figure over the rounds, if each round has it.
    pub(super) fn spread(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.samples.iter().map(figure).collect::<Option<Vec<f64>>>()?)
    }

    pub(super) fn median(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        Some(self.spread(figure)?.median)
    }

    pub(super) fn failed(&self) -> u64 {
        self.samples.iter().map(|sample| sample.failed).sum()
    }
}

/// CPU per success of `name` as a multiple of that of `base`: the median over the rounds.
/// Both ran within the same minute in each round.
pub(super) fn ratio(rows: &[Row], name: &str, base: &str) -> Option<Spread> {
    let find = |wanted: &str| rows.iter().find(|row| row.name == wanted);
    let pairs = find(name)?.samples.iter().zip(&find(base)?.samples);
    Spread::of(pairs.map(|(one, other)| one.cpu_us() / other.cpu_us()).collect())
}

impl Spread {
    pub(super) fn of(mut figures: Vec<f64>) -> Option<Spread> {
        figures.sort_by(f64::total_cmp);
        let (min, max) = (*figures.first()?, *figures.last()?);
        let median = f64::midpoint(figures[(figures.len() - 1) / 2], figures[figures.len() / 2]);
        Some(Spread { median, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn the_median_is_used() {
        assert_eq!(Spread::of(vec![]), None);
        let spread = Spread::of(vec![3.0, 1.0, 9.0]);
        assert_eq!(spread, Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
        assert_eq!(Spread::of(vec![1.0, 2.0]).unwrap().median, 1.5);
        let sample = |p50| Sample { times_us: [p50, None], ..Sample::default() };
        let samples = [Some(3.0), Some(1.0), Some(2.0)].map(sample).to_vec();
        let row = Row { name: String::new(), samples, trouble: None };
        assert_eq!(row.median(|sample| sample.times_us[0]), Some(2.0));
        assert_eq!(row.median(|sample| sample.times_us[1]), None);
    }

    #[test]
    fn rounds_take_turns_and_ratios_pair_rounds() {
        let order = RefCell::new(String::new());
        let names = ["a", "b", "c"];
        let measure = |index: usize, round: usize| {
            order.borrow_mut().push_str(names[index]);
            let cpu = Duration::from_micros([5, 10, 1][index] * (round as u64 + 1));
            let sample = Sample { ok: 1, failed: 2, cpu, seconds: 1.0, ..Sample::default() };
            if index == 2 { Err("broken".to_string()) } else { Ok(sample) }
        };
        let rows = hold("test", 3, names.iter().map(ToString::to_string), measure);
        assert_eq!(*order.borrow(), "abcbaab");
        let half = Some(Spread { median: 0.5, min: 0.5, max: 0.5 });
        assert_eq!(ratio(&rows, "a", "b"), half);
        assert_eq!(ratio(&rows, "c", "b"), None);
        assert_eq!((rows[0].failed(), rows[2].trouble.as_deref()), (6, Some("broken")));
    }
}
