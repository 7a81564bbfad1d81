//! Measures several entrants side by side: in rounds, so that other work on the machine affects all
//! of them, and with the median, so that one bad round does not decide.

use std::time::Duration;

/// One measurement of one entrant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) cpu: Duration,
    /// The duration of the load.
    pub(super) seconds: f64,
    /// The p50 and the p99 that it reports, and those that the target measured.
    pub(super) times_us: [Option<f64>; 2],
    pub(super) served_us: Option<[f64; 2]>,
    pub(super) starts: Starts,
    /// The tool considers the result valid.
    pub(super) valid: bool,
}

/// Figures of throng about its sending, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Starts {
    pub(super) precision: Option<f64>,
    pub(super) late_p50: Option<f64>,
    pub(super) late_p99: Option<f64>,
    pub(super) late_max: Option<f64>,
    /// Requests that were sent per wakeup.
    pub(super) together_mean: Option<f64>,
    pub(super) together_max: Option<f64>,
}

/// A tool to measure.
pub(super) struct Entrant<'a> {
    pub(super) name: String,
    /// Measures once; receives the number of the round.
    pub(super) run: Box<dyn Fn(u32) -> Result<Sample, String> + 'a>,
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

/// Measures all entrants `rounds` times in turn; each round starts with another one. An entrant
/// that fails once is not measured again.
pub(super) fn hold(title: &str, rounds: u32, entrants: &[Entrant<'_>]) -> Vec<Row> {
    let empty = |entrant: &Entrant<'_>| Row {
        name: entrant.name.clone(),
        samples: Vec::new(),
        trouble: None,
    };
    let mut rows: Vec<Row> = entrants.iter().map(empty).collect();
    for round in 0..rounds {
        for turn in 0..entrants.len() {
            let index = (turn + round as usize) % entrants.len();
            let (entrant, row) = (&entrants[index], &mut rows[index]);
            if row.trouble.is_some() {
                continue;
            }
            let told = match (entrant.run)(round) {
                Ok(sample) => {
                    row.samples.push(sample);
                    format!("{:.2} µs of CPU each, {:.0}/s", sample.cpu_us(), sample.rate())
                }
                Err(trouble) => row.trouble.insert(trouble).clone(),
            };
            crate::say(&format!("{title}, round {}: {}: {told}", round + 1, entrant.name));
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
}

impl Row {
    pub(super) fn cpu_us(&self) -> Option<Spread> {
        Spread::of(self.samples.iter().map(Sample::cpu_us))
    }

    pub(super) fn rate(&self) -> Option<Spread> {
        Spread::of(self.samples.iter().map(Sample::rate))
    }

    /// The median of a figure over the rounds, if each round has it.
    pub(super) fn median(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let figures: Option<Vec<f64>> = self.samples.iter().map(figure).collect();
        Spread::of(figures?.into_iter()).map(|spread| spread.median)
    }

    pub(super) fn failed(&self) -> u64 {
        self.samples.iter().map(|sample| sample.failed).sum()
    }
}

/// CPU per success of `name` as a multiple of that of `base`: the median over the rounds.
/// Both ran within the same minute in each round.
pub(super) fn ratio(rows: &[Row], name: &str, base: &str) -> Option<Spread> {
    let find = |wanted: &str| rows.iter().find(|row| row.name == wanted);
    let (row, base) = (find(name)?, find(base)?);
    let pairs = row.samples.iter().zip(&base.samples);
    Spread::of(pairs.map(|(one, other)| one.cpu_us() / other.cpu_us()))
}

impl Spread {
    pub(super) fn of(figures: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = figures.collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Spread { median, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn the_median_is_used() {
        let spread = |figures: &[f64]| Spread::of(figures.iter().copied());
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0, 1.0, 9.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
        assert_eq!(spread(&[1.0, 2.0]), Some(Spread { median: 1.5, min: 1.0, max: 2.0 }));
        let sample = |p50| Sample { times_us: [p50, None], ..Sample::default() };
        let samples = [Some(3.0), Some(1.0), Some(2.0)].map(sample).to_vec();
        let row = Row { name: String::new(), samples, trouble: None };
        assert_eq!(row.median(|sample| sample.times_us[0]), Some(2.0));
        assert_eq!(row.median(|sample| sample.times_us[1]), None);
    }

    #[test]
    fn rounds_take_turns_and_ratios_pair_rounds() {
        let order = RefCell::new(String::new());
        let entrant = |name: &str, cpu_us: u64, fails: bool| {
            let (name, order) = (name.to_string(), &order);
            let said = name.clone();
            let run = move |round: u32| {
                order.borrow_mut().push_str(&said);
                let cpu = Duration::from_micros(cpu_us * u64::from(round + 1));
                let sample = Sample { ok: 1, failed: 2, cpu, seconds: 1.0, ..Sample::default() };
                if fails { Err("broken".to_string()) } else { Ok(sample) }
            };
            Entrant { name, run: Box::new(run) }
        };
        let entrants = [entrant("a", 5, false), entrant("b", 10, false), entrant("c", 1, true)];
        let rows = hold("test", 3, &entrants);
        assert_eq!(*order.borrow(), "abcbaab");
        let half = Some(Spread { median: 0.5, min: 0.5, max: 0.5 });
        assert_eq!(ratio(&rows, "a", "b"), half);
        assert_eq!(ratio(&rows, "c", "b"), None);
        assert_eq!((rows[0].failed(), rows[2].trouble.as_deref()), (6, Some("broken")));
    }
}
