//! Exact laws. Each is a function from a rate per second to the share of requests that fail or
//! exceed the limit.

use super::{Latency, Model, Question, RateLimit, Spacing};

/// Maximum limit in service times for the sums below.
const TERMS_MAX: f64 = 20_000.0;
/// With a mean of about 1, the Poisson terms after this many are below 1e-18.
const TAIL_TERMS: usize = 64;

type Share = Box<dyn Fn(f64) -> f64>;

impl Model {
    /// The share of bad requests by rate, if there is a formula.
    pub(super) fn closed(&self, question: Question) -> Option<Share> {
        let options = &self.options;
        let within_s = question.within_ns() / 1e9;
        let good = 1.0 - self.failing;
        // Requests that fail are as slow as the others.
        let bad = move |refused: f64, late: f64| 1.0 - (1.0 - refused) * (1.0 - late) * good;
        let Some(service) = options.service else {
            let limit = options.rate_limit?;
            return Some(match question.spacing {
                Spacing::Even => {
                    Box::new(move |rate| bad((1.0 - limit.per_s / rate).max(0.0), 0.0))
                }
                Spacing::Poisson => Box::new(move |rate| bad(refused_by_bucket(rate, limit), 0.0)),
            });
        };
        if options.rate_limit.is_some() || options.usl.is_some() || options.slow_spells.is_some() {
            return None;
        }
        let servers = options.servers()?;
        let service_s = service.mean_ns() / 1e9;
        let waiting_max = options.queue_max;
        match (question.spacing, service) {
            (Spacing::Poisson, Latency::Exponential(_)) => match waiting_max {
                None => {
                    Some(Box::new(move |rate| bad(0.0, mmc(rate, service_s, servers, within_s))))
                }
                Some(max) => {
                    let finite = Finite::new(service_s, servers, max, within_s)?;
                    Some(Box::new(move |rate| {
                        let (refused, late) = finite.refused_and_late(rate);
                        bad(refused, late)
                    }))
                }
            },
            (Spacing::Poisson, Latency::Fixed(_)) if servers == 1 && waiting_max.is_none() => {
                (within_s / service_s <= TERMS_MAX || within_s.is_infinite()).then(|| {
                    Box::new(move |rate| bad(0.0, md1(rate, service_s, within_s))) as Share
                })
            }
            (Spacing::Even, Latency::Exponential(_)) if servers == 1 && waiting_max.is_none() => {
                Some(Box::new(move |rate| bad(0.0, dm1(rate, service_s, within_s))))
            }
            (Spacing::Even, Latency::Fixed(_)) if waiting_max.is_none() => {
                let saturation = f64::from(servers) / service_s;
                let late = if service_s > within_s { 1.0 } else { 0.0 };
                Some(Box::new(move |rate| bad(0.0, if rate > saturation { 1.0 } else { late })))
            }
            _ => None,
        }
    }
}

/// The probability that an arrival has to wait in M/M/c (Erlang's C), by the recursion of his B.
fn erlang_c(offered: f64, servers: u32) -> f64 {
    let mut blocked = 1.0;
    for n in 1..=servers {
        blocked = offered * blocked / (f64::from(n) + offered * blocked);
    }
    let load = offered / f64::from(servers);
    blocked / (1.0 - load * (1.0 - blocked))
}

/// P(response time > t) of M/M/c: an exponential service after a wait that is zero or exponential
/// with the rate of the spare capacity.
pub(super) fn mmc(rate: f64, service_s: f64, servers: u32, t: f64) -> f64 {
    let (served, all) = (1.0 / service_s, f64::from(servers) / service_s);
    if rate >= all {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    let wait = erlang_c(rate * service_s, servers);
    // The slower of both rates, and the difference to the other.
    let (slow, apart) = (served.min(all - rate), (all - rate - served).abs());
    // (1 - exp(-apart t)) / apart, or t if both rates are equal.
    let both = if apart * t < 1e-9 { t } else { -(-apart * t).exp_m1() / apart };
    (-served * t).exp() + wait * served * (-slow * t).exp() * both
}

/// M/M/c/K: c servers and a bounded queue.
struct Finite {
    service_s: f64,
    servers: u32,
    /// P(response time > t) by the number of departures that a request waits for.
    late: Vec<f64>,
}

impl Finite {
    /// A request that waits for m departures is late if fewer happen, or if its own service takes
    /// longer than the rest: with N departures of busy servers (Poisson), the latter has the
    /// probability ((c - 1) / c)^(N - m), because each further departure is its own with
    /// probability 1 / c.
    fn new(service_s: f64, servers: u32, waiting_max: u64, t: f64) -> Option<Finite> {
        let waits = usize::try_from(waiting_max).ok()?;
        if t.is_infinite() {
            return Some(Finite { service_s, servers, late: vec![0.0; waits + 1] });
        }
        let mean = f64::from(servers) * t / service_s;
        let terms = (mean + 12.0 * mean.sqrt() + 100.0).ceil();
        if terms > 1e7 {
            return None;
        }
        let departures = poisson(mean, terms as usize + 1);
        let others = f64::from(servers - 1) / f64::from(servers);
        let mut late = vec![1.0; waits.max(departures.len()) + 1];
        let (mut own, mut fewer) = (0.0, 1.0);
        for m in (0..departures.len()).rev() {
            own = departures[m] + others * own;
            fewer -= departures[m];
            late[m] = (fewer.max(0.0) + own).min(1.0);
        }
        late.truncate(waits + 1);
        Some(Finite { service_s, servers, late })
    }

    /// The share of rejected requests, and the share of late ones among the others.
    fn refused_and_late(&self, rate: f64) -> (f64, f64) {
        let offered = rate * self.service_s;
        let servers = self.servers as usize;
        let places = servers + self.late.len() - 1;
        // From the most likely number of requests in both directions, to avoid overflow.
        let ratio = |n: usize| offered / n.min(servers) as f64;
        let top = if offered < servers as f64 { offered as usize } else { places };
        let mut sum = [0.0; 3];
        let mut add = |n: usize, weight: f64| {
            sum[0] += weight;
            if n == places {
                sum[1] += weight;
            } else {
                sum[2] += weight * self.late[(n + 1).saturating_sub(servers)];
            }
        };
        let mut weight = 1.0;
        add(top, weight);
        for n in top + 1..=places {
            weight *= ratio(n);
            add(n, weight);
        }
        weight = 1.0;
        for n in (0..top).rev() {
            weight /= ratio(n + 1);
            add(n, weight);
        }
        let [all, full, late] = sum;
        (full / all, if all > full { late / (all - full) } else { 1.0 })
    }
}

/// The first terms of a Poisson distribution.
fn poisson(mean: f64, terms: usize) -> Vec<f64> {
    let mut weights = vec![0.0; terms];
    let top = (mean as usize).min(terms - 1);
    weights[top] = 1.0;
    for n in top + 1..terms {
        weights[n] = weights[n - 1] * mean / n as f64;
    }
    for n in (0..top).rev() {
        weights[n] = weights[n + 1] * (n + 1) as f64 / mean;
    }
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    weights
}

/// The probabilities of the numbers of requests left behind by a departure in M/D/1, relative to
/// the first: Ramaswami's recursion (1988), which avoids subtraction. Calls `next` for each until
/// it returns false.
fn left_behind(load: f64, mut next: impl FnMut(f64) -> bool) {
    let arrivals = poisson(load, TAIL_TERMS + 1 + (4.0 * load) as usize);
    // P(more than k arrive during a service).
    let mut more = vec![0.0; arrivals.len()];
    for k in (0..arrivals.len() - 1).rev() {
        more[k] = more[k + 1] + arrivals[k + 1];
    }
    let mut weights: Vec<f64> = vec![1.0];
    while next(weights[weights.len() - 1]) {
        let n = weights.len();
        let nearest = n.saturating_sub(more.len() - 1).max(1);
        let first = more.get(n - 1).copied().unwrap_or(0.0);
        let rest: f64 = (nearest..n).map(|k| weights[k] * more[n - k]).sum();
        weights.push((first + rest) / arrivals[0]);
    }
}

/// P(response time > t) of M/D/1: the sum of Franx (2001), whose terms are all positive.
pub(super) fn md1(rate: f64, service_s: f64, t: f64) -> f64 {
    let load = rate * service_s;
    if load >= 1.0 || t < service_s {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    let services = (t - service_s) / service_s;
    let whole = services.floor() as usize + 1;
    // P(at most n wait).
    let (mut waiting, mut sum) = (Vec::with_capacity(whole), 0.0);
    left_behind(load, |weight| {
        sum += weight * (1.0 - load);
        waiting.push(sum);
        waiting.len() <= whole
    });
    let during = poisson((whole as f64 - services) * load, whole.max(TAIL_TERMS));
    let in_time: f64 = (0..whole).map(|n| during[n] * waiting[whole - n]).sum();
    (1.0 - in_time).clamp(0.0, 1.0)
}

/// P(response time > t) of D/M/1: exponential, with the root of `x = exp((x - 1) / load)`.
pub(super) fn dm1(rate: f64, service_s: f64, t: f64) -> f64 {
    let load = rate * service_s;
    if load >= 1.0 {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0 + load * load.ln());
    for _ in 0..100 {
        let x = f64::midpoint(low, high);
        if ((x - 1.0) / load).exp() > x { low = x } else { high = x }
    }
    (-(1.0 - low) / service_s * t).exp()
}

/// The share of Poisson arrivals that a token bucket rejects. The tokens missing in the bucket are
/// the work of an M/D/1 queue with as many places.
pub(super) fn refused_by_bucket(rate: f64, limit: RateLimit) -> f64 {
    let load = rate / limit.per_s;
    let (mut left, mut sum) = (limit.burst, 0.0);
    left_behind(load, |weight| {
        sum += weight;
        left -= 1;
        // Beyond this, the rest is negligible.
        left > 0 && sum < 1e100
    });
    1.0 - 1.0 / (1.0 / sum + load)
}
