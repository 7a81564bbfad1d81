//! The highest load at which the thresholds of a virtual target are met, exactly.

use super::target::{Model, REFUSED_ALLOWED, SLOW_ALLOWED, VirtualTarget};

/// The law of a target in requests per second, `at_s` seconds after its start. For models without a
/// closed form, it is the recorded result of [`brute_force`].
pub fn law(model: Model, rate: f64, at_s: f64) -> f64 {
    // The response time of one server with exponential times is exponential as well, with the
    // mean 1 / (rate - load).
    let single = |speed: f64| speed * rate - (1.0 / SLOW_ALLOWED).ln() / model.within_s(rate);
    match model {
        Model::OneServer | Model::WarmUp | Model::Retry => single(1.0),
        Model::Drift => single(1.0 - 0.01 * at_s / 60.0),
        Model::EightServers => lowest(rate, |load| late(8, load / rate, 50.0) > SLOW_ALLOWED),
        Model::FixedTimes => lowest(rate, |load| late_fixed(load / rate, 50.0) > SLOW_ALLOWED),
        Model::Pool => lowest(rate, |load| refused(8, 60, load / rate) > REFUSED_ALLOWED),
        Model::Usl => rate * USL,
        Model::RateLimit => rate * of_rate(rate, RATE_LIMIT),
        Model::Spells => rate * of_rate(rate, SPELLS),
    }
}

fn of_rate(rate: f64, at: [f64; 3]) -> f64 {
    at[usize::from(rate > 500.0) + usize::from(rate > 5_000.0)]
}

/// Computed by [`brute_force`]: for the USL, and with spells at 200/s, 1,000/s and 10,000/s.
const USL: f64 = 0.8727;
const RATE_LIMIT: [f64; 3] = [0.9581, 1.0074, 1.0099];
const SPELLS: [f64; 3] = [0.8129, 0.8049, 0.8038];

/// Bisects with this number of attempts at each load, always with the same random numbers.
pub fn brute_force(model: Model, rate: f64, attempts: f64) -> f64 {
    lowest_between((0.75 * rate, 1.03 * rate), 12, |load| {
        let mut target = VirtualTarget::new(model, rate, 7);
        for _ in 0..60 {
            target.second(load);
        }
        let seconds = (attempts / load).ceil() as u64;
        let (mut ended, mut bad) = (0, 0.0);
        for _ in 0..seconds {
            let second = target.second(load);
            (ended, bad) = (ended + second.ended, bad + second.counted[0].bad);
        }
        bad > SLOW_ALLOWED * ended as f64
    })
}

pub(super) fn lowest(rate: f64, fails: impl FnMut(f64) -> bool) -> f64 {
    lowest_between((0.001 * rate, 0.999_999 * rate), 60, fails)
}

fn lowest_between(ends: (f64, f64), steps: u32, mut fails: impl FnMut(f64) -> bool) -> f64 {
    let (mut low, mut high) = ends;
    for _ in 0..steps {
        let middle = f64::midpoint(low, high);
        if fails(middle) { high = middle } else { low = middle }
    }
    f64::midpoint(low, high)
}

/// The share of attempts that takes longer than `times` mean times between departures from all
/// servers, at a utilization of `used` (M/M/c).
fn late(servers: u32, used: f64, times: f64) -> f64 {
    let count = f64::from(servers);
    // In service times of one server, which has rate 1; the queue has rate `free`.
    let (free, time) = (count * (1.0 - used), times / count);
    let served = (-time).exp();
    served + waits(servers, used) / (free - 1.0) * (served - (-free * time).exp())
}

/// The share of attempts that finds all servers busy (Erlang C).
pub(super) fn waits(servers: u32, used: f64) -> f64 {
    let offered = used * f64::from(servers);
    let inverse = (1..=servers).fold(1.0, |inverse, n| 1.0 + inverse * f64::from(n) / offered);
    1.0 / inverse / (1.0 - used * (1.0 - 1.0 / inverse))
}

/// The same for one server with fixed service times, by the exponential decay of its waiting time
/// (Cramér and Lundberg), which is exact for long times.
fn late_fixed(used: f64, times: f64) -> f64 {
    let rises = |decay: f64| used * (decay.exp() - 1.0) > decay;
    let decay = lowest_between((1e-9, 20.0), 80, rises);
    (1.0 - used) / (used * decay.exp() - 1.0) * (-decay * (times - 1.0)).exp()
}

/// The share of attempts that finds the system full (M/M/c/K).
fn refused(servers: u32, room: u32, used: f64) -> f64 {
    let offered = used * f64::from(servers);
    let mut weight = 1.0;
    let mut sum = 1.0;
    for n in 1..=room {
        weight *= offered / f64::from(n.min(servers));
        sum += weight;
    }
    weight / sum
}
