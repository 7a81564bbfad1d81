//! The capacity of a server: exact where a formula exists, otherwise by simulation.
//!
//! A threshold "p99 within 50 ms" means that at most 1 % of the requests fail or take longer. The
//! law is the highest rate that meets it in the long run, without the warm-up, with random
//! (Poisson) or even starts.

mod closed;
mod simulation;

use std::time::Duration;

use serde::Serialize;
use throng_base::Said;
use throng_base::units;

use super::bucket::RateLimit;
use super::options::CapacityOptions;
use crate::latency::Latency;

/// Spacing of the starts of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Spacing {
    #[default]
    Poisson,
    Even,
}

/// The threshold: which share of requests may fail or exceed which time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Question {
    /// The percentile, above 0 and below 100.
    pub(crate) p: f64,
    /// The limit of the response time; without one, only failures count.
    pub(crate) within: Option<Duration>,
    pub(crate) spacing: Spacing,
}

/// The computed capacity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Law {
    /// The highest rate in requests per second; 0 if no rate meets the threshold.
    pub(crate) rate_per_s: f64,
    pub(crate) by: By,
    /// In Kendall's notation, with additional limits.
    pub(crate) model: String,
    pub(crate) p: f64,
    /// In nanoseconds; `None` if only failures count.
    pub(crate) within_ns: Option<u64>,
    pub(crate) spacing: Spacing,
    /// The rate above which the queue grows without limit, for any threshold.
    pub(crate) saturation_per_s: f64,
    #[serde(flatten)]
    pub(crate) simulated: Option<Simulated>,
}

/// The precision of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Simulated {
    /// The 95 % interval of the rate.
    pub(crate) low_per_s: f64,
    pub(crate) high_per_s: f64,
    /// The duration of each run in seconds.
    pub(crate) over_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum By {
    #[serde(rename = "closed form")]
    ClosedForm,
    #[serde(rename = "simulation")]
    Simulation,
}

/// A server whose law is computed.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) options: CapacityOptions,
    /// The share of requests that fail after their service because of faults.
    pub(crate) failing: f64,
}

/// Number of requests in the final stage of a simulation.
const REQUESTS: u64 = 1_600_000;

impl Question {
    /// Parses `p=99&within=50ms&spacing=even`; the defaults are p99, no time and Poisson.
    pub(crate) fn read(query: &str) -> Result<Question, Said> {
        let mut question = Question { p: 99.0, within: None, spacing: Spacing::Poisson };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("p", value) => {
                    let p = value.parse().ok().filter(|p| *p > 0.0 && *p < 100.0);
                    question.p = p.ok_or(say!("`p` must be a percentile: `99`, `99.9`"))?;
                }
                ("within", value) => {
                    let within = units::parse_duration(value)
                        .map_err(|error| say!("`within`: {}; {}", error.message, error.help))?;
                    question.within = Some(within);
                }
                ("spacing", "poisson") => question.spacing = Spacing::Poisson,
                ("spacing", "even") => question.spacing = Spacing::Even,
                ("spacing", _) => return Err(say!("`spacing` must be `poisson` or `even`")),
                (name, _) => {
                    return Err(say!("unknown parameter `{name}`; write `?p=99&within=50ms`"));
                }
            }
        }
        Ok(question)
    }

    /// The share of requests that may fail or take longer.
    fn share(&self) -> f64 {
        1.0 - self.p / 100.0
    }

    /// The limit of the response time, in nanoseconds.
    fn within_ns(&self) -> f64 {
        self.within.map_or(f64::INFINITY, |within| within.as_nanos() as f64)
    }
}

impl Model {
    /// The law; `None` for a server without limits.
    pub(crate) fn law(&self, question: Question) -> Option<Law> {
        self.law_by(question, REQUESTS)
    }

    fn law_by(&self, question: Question, requests: u64) -> Option<Law> {
        let saturation_per_s = self.saturation_per_s()?;
        let (rate_per_s, simulated) = match self.closed(question) {
            Some(share) => (self.highest(question, share), None),
            None => {
                let (rate, simulated) = self.simulate(question, requests);
                (rate, Some(simulated))
            }
        };
        Some(Law {
            rate_per_s,
            by: if simulated.is_none() { By::ClosedForm } else { By::Simulation },
            model: self.notation(question.spacing),
            p: question.p,
            within_ns: question.within.map(|within| within.as_nanos() as u64),
            spacing: question.spacing,
            saturation_per_s,
            simulated,
        })
    }

    /// The rate above which more requests arrive than can be served.
    fn saturation_per_s(&self) -> Option<f64> {
        let limit = self.options.rate_limit.map(|limit| limit.per_s);
        [limit, self.service_per_s()].into_iter().flatten().reduce(f64::min)
    }

    /// The maximum throughput of the queue.
    fn service_per_s(&self) -> Option<f64> {
        let one = self.options.speed().mean() * 1e9 / self.options.service?.mean_ns();
        let servers = self.options.servers();
        let Some(usl) = self.options.usl else { return Some(one * f64::from(servers?)) };
        // The throughput of the USL grows up to its peak, and decreases after it.
        let peak = ((1.0 - usl.contention).max(0.0) / usl.crosstalk).sqrt();
        let most = servers.map_or(peak, |servers| peak.min(f64::from(servers)));
        if most.is_infinite() {
            return (usl.contention > 0.0).then(|| one / usl.contention);
        }
        let whole = [most.floor(), most.ceil()].map(|n| n.max(1.0));
        Some(whole.map(|n| n * usl.speed_of_each(n) * one).into_iter().fold(0.0, f64::max))
    }

    /// No higher rate can meet the threshold: beyond saturation, only a share is served.
    fn rate_max(&self, question: Question) -> f64 {
        self.saturation_per_s().unwrap_or(0.0) / (1.0 - question.share()) * 1.001
    }

    /// The highest rate at which the share of bad requests is allowed. The share must not decrease
    /// with the rate.
    fn highest(&self, question: Question, share: impl Fn(f64) -> f64) -> f64 {
        let (mut low, mut high) = (0.0, self.rate_max(question));
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if share(middle) <= question.share() { low = middle } else { high = middle }
        }
        low
    }

    fn notation(&self, spacing: Spacing) -> String {
        let options = &self.options;
        let arrivals = if spacing == Spacing::Even { "D" } else { "M" };
        let mut text = match options.service {
            None => "token bucket".to_owned(),
            Some(service) => {
                let service = match service {
                    Latency::Exponential(_) => "M",
                    Latency::Fixed(_) => "D",
                    _ => "G",
                };
                let servers = options.servers().map_or("∞".to_owned(), |n| n.to_string());
                let places = options.queue_max.zip(options.servers());
                let places =
                    places.map_or(String::new(), |(max, n)| format!("/{}", max + u64::from(n)));
                format!("{arrivals}/{service}/{servers}{places}")
            }
        };
        let limited = options.rate_limit.is_some() && options.service.is_some();
        for (given, name) in [
            (options.usl.is_some(), ", USL"),
            (limited, ", token bucket"),
            (options.slow_spells.is_some(), ", slow spells"),
            (self.failing > 0.0, ", errors"),
        ] {
            text += if given { name } else { "" };
        }
        text
    }
}

#[cfg(test)]
mod tests;
