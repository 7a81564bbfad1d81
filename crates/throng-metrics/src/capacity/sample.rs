//! A sample result for tests: a search on a queue with one server and 1,000/s (M/M/1). Its p99 is
//! ln(100)/(1000 - load) seconds, so `p99 < 50ms` is met below 908/s.

use super::{
    Basis, Capacity, EndedBy, FailedBy, Knee, Level, LevelVerdict, LoadUnit, Overload, Purpose,
};

const SERVED_MAX: f64 = 1_000.0;
const WITHIN_S: f64 = 0.050;
pub const THRESHOLD: &str = "http p99 < 50ms";

/// The loads in the order of the search.
const LOADS: [(f64, Purpose); 17] = [
    (50.0, Purpose::Climb),
    (100.0, Purpose::Climb),
    (200.0, Purpose::Climb),
    (400.0, Purpose::Climb),
    (800.0, Purpose::Climb),
    (1_040.0, Purpose::Climb),
    (912.0, Purpose::Bracket),
    (854.0, Purpose::Bracket),
    (820.0, Purpose::Refine),
    (855.0, Purpose::Refine),
    (891.0, Purpose::Refine),
    (926.0, Purpose::Refine),
    (829.0, Purpose::Refine),
    (864.0, Purpose::Refine),
    (860.0, Purpose::Confirm),
    (1_190.0, Purpose::Beyond),
    (860.0, Purpose::Confirm),
];

fn level((at, (load, purpose)): (usize, (f64, Purpose))) -> Level {
    let is_over = load >= SERVED_MAX;
    let (served, seconds) = (load.min(SERVED_MAX), if is_over { 4.0 } else { 20.0 });
    let mean_s = if is_over { 1.9 } else { 1.0 / (SERVED_MAX - load) };
    let quantile = |share: f64| Some(if is_over { 2.0 } else { mean_s * -(1.0 - share).ln() });
    let strain = if is_over { 97.0 } else { (-(SERVED_MAX - load) * WITHIN_S).exp() / 0.01 };
    let by = || match is_over {
        true => FailedBy::Backlog,
        false => FailedBy::Threshold(THRESHOLD.into()),
    };
    Level {
        load,
        purpose,
        at_s: at as f64 * 24.0,
        seconds,
        offered: load,
        served,
        attempts: (load * seconds) as u64,
        strain: Some(strain),
        mean_s,
        p50_s: quantile(0.5),
        p90_s: quantile(0.9),
        p99_s: quantile(0.99),
        in_flight: load * mean_s * 1.01,
        in_flight_expected: load * mean_s,
        online: None,
        verdict: if strain < 1.0 { LevelVerdict::Met } else { LevelVerdict::NotMet(by()) },
    }
}

pub fn capacity() -> Capacity {
    Capacity {
        unit: LoadUnit::PerS,
        varied: None,
        thresholds: vec![THRESHOLD.into(), "errors < 0.1%".into()],
        carries: Some(860.0),
        low: Some(864.0),
        high: Some(905.0),
        basis: Basis::Interval,
        confirmed_s: 60.0,
        fails_at: Some(912.0),
        fails_by: Some(FailedBy::Threshold(THRESHOLD.into())),
        overload: Overload { at: Some(1_190.0), recovered_s: Some(4.0), collapse: None },
        trend: None,
        knee: Knee {
            optimal: Some((470.0, 530.0)),
            maximum: Some((970.0, 1_010.0)),
            collapse: None,
        },
        levels: LOADS.into_iter().enumerate().map(level).collect(),
        ended_by: EndedBy::Found,
        spent_s: 412.0,
        budget_s: 1_200.0,
        at_least: None,
        peak: None,
    }
}
