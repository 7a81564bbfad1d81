//! Laws without a formula: the gate runs in simulated time, always with the same random numbers, so
//! that the share of bad requests grows smoothly with the rate.

use throng_base::{Random, Time};

use super::{Model, Question, Simulated, Spacing};
use crate::queue::gate::{Entry, Gate};
use crate::queue::machine::Ticket;

/// Number of runs of a simulation, each from an empty queue. Their variance gives the precision.
const RUNS: u64 = 16;
/// With slow spells, fewer but longer runs, because they must contain whole spells.
const RUNS_WITH_SPELLS: u64 = 4;
/// One part in this many of a run is the warm-up, in which the queue fills.
const WARM_PART: u64 = 10;
/// A rate whose share of bad requests exceeds the limit by this factor is not simulated further.
const HOPELESS: f64 = 8.0;
/// Two-sided 95 % quantiles of the t distribution with 15 and 3 degrees of freedom.
const QUANTILE: f64 = 2.131;
const QUANTILE_WITH_SPELLS: f64 = 3.182;
/// Stages with increasing numbers of requests: the divisor of the final number, and the relative
/// width of the search around the last result.
const STAGES: [(u64, f64); 3] = [(64, 1.0), (8, 0.1), (1, 0.02)];
/// If even this share of the maximum rate fails, no rate meets the threshold.
const RATE_MIN: f64 = 1e-6;
/// Relative precision of a rate.
const PRECISION: f64 = 2e-4;

/// The simulated result at a rate.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// The share of bad requests.
    share: f64,
    /// Its standard error.
    error: f64,
    over_s: f64,
}

impl Model {
    /// The highest rate that meets the threshold, with about this many requests per rate.
    pub(super) fn simulate(&self, question: Question, requests: u64) -> (f64, Simulated) {
        let rate_max = self.rate_max(question);
        let (mut low, mut high) = (0.0, rate_max);
        let mut rate = high;
        for (part, around) in STAGES {
            if around < 1.0 {
                (low, high) = (rate * (1.0 - around), rate * (1.0 + around));
            }
            // The previous stage was imprecise if the rate is outside its interval.
            let good = |rate| self.run(question, rate, requests / part).share <= question.share();
            while low > 0.0 && !good(low) {
                (low, high) =
                    (if low < rate * 0.5 { 0.0 } else { low * (1.0 - 2.0 * around) }, low);
            }
            while around < 1.0 && high < rate_max && good(high) {
                (low, high) = (high, high * (1.0 + 2.0 * around));
            }
            while high - low > high * PRECISION.max(around * 0.02) && high > rate_max * RATE_MIN {
                let middle = f64::midpoint(low, high);
                if good(middle) { low = middle } else { high = middle }
            }
            rate = low;
            if rate <= 0.0 {
                return (0.0, Simulated { low_per_s: 0.0, high_per_s: 0.0, over_s: 0.0 });
            }
        }
        (rate, self.how_sure(question, rate, requests))
    }

    /// The interval of a rate, from the error of its share and the slope of the share.
    fn how_sure(&self, question: Question, rate: f64, requests: u64) -> Simulated {
        let [below, at, above] =
            [0.99, 1.0, 1.01].map(|factor| self.run(question, rate * factor, requests));
        let slope = ((above.share - below.share) / 0.02).max(at.share * 0.5).max(1e-9);
        let quantile = match self.options.slow_spells {
            None => QUANTILE,
            Some(_) => QUANTILE_WITH_SPELLS,
        };
        // At least the precision of the search.
        let half = (quantile * at.error / slope).max(PRECISION);
        Simulated {
            low_per_s: rate * (1.0 - half).max(0.0),
            high_per_s: rate * (1.0 + half),
            over_s: at.over_s,
        }
    }

    /// The runs at a rate; fewer if it is much too high.
    fn run(&self, question: Question, rate: f64, requests: u64) -> Found {
        let spells = self.options.slow_spells;
        let runs = if spells.is_none() { RUNS } else { RUNS_WITH_SPELLS };
        let (mut each, mut warm) = (requests / runs, requests / runs / WARM_PART);
        if let Some(spells) = spells {
            // Whole spells, of which the first is not counted.
            let per_spell = (rate * spells.every.as_secs_f64()).max(1.0);
            let whole = (each as f64 / per_spell).ceil().max(2.0);
            (each, warm) = ((whole * per_spell) as u64, per_spell as u64);
        }
        let (mut shares, mut sum) = (Vec::new(), 0.0);
        for run in 0..runs {
            let share = self.one_run(question, rate, (each, warm), run);
            sum += share;
            shares.push(share);
            if sum > HOPELESS * question.share() * runs as f64 {
                break;
            }
        }
        let n = shares.len() as f64;
        let share = sum / n;
        let deviation: f64 = shares.iter().map(|one| (one - share).powi(2)).sum();
        let error = if n > 1.0 { (deviation / (n - 1.0) / n).sqrt() } else { share };
        Found { share, error, over_s: each as f64 / rate }
    }

    /// The share of bad requests among `requests`, without the first `warm`.
    fn one_run(&self, question: Question, rate: f64, requests: (u64, u64), run: u64) -> f64 {
        let (requests, warm) = requests;
        let mut options = self.options.clone();
        options.warm_up = None;
        let mut gate = Gate::new(&options, Random::for_owner(run, 1));
        let mut starts = Random::for_owner(run, 2);
        let mut count = Count { within_ns: question.within_ns(), warm, ..Count::default() };
        let mean_ns = 1e9 / rate;
        let mut at_ns = 0.0;
        for number in 0..requests {
            at_ns += match question.spacing {
                Spacing::Poisson => starts.exponential(mean_ns),
                Spacing::Even => mean_ns,
            };
            let entry = gate.enter(Time(at_ns as u64), 0, |ticket, at| count.departed(ticket, at));
            count.entered(number, entry);
        }
        gate.advance(Time::NEVER, |ticket, at| count.departed(ticket, at));
        let bad = count.bad as f64 / (requests - warm).max(1) as f64;
        1.0 - (1.0 - bad) * (1.0 - self.failing)
    }
}

/// Bad requests after the warm-up.
#[derive(Default)]
struct Count {
    within_ns: f64,
    warm: u64,
    /// Number of requests admitted during the warm-up.
    warm_admitted: u64,
    bad: u64,
}

impl Count {
    fn entered(&mut self, number: u64, entry: Entry) {
        match entry {
            Entry::Through => {}
            Entry::Queued(ticket) if number < self.warm => self.warm_admitted = ticket.number + 1,
            Entry::Queued(_) => {}
            Entry::Refused(_) => self.bad += u64::from(number >= self.warm),
        }
    }

    fn departed(&mut self, ticket: Ticket, at: Time) {
        let late = (at - ticket.arrived).as_nanos() as f64 > self.within_ns;
        self.bad += u64::from(late && ticket.number >= self.warm_admitted);
    }
}
