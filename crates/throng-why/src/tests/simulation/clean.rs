//! Runs without faults: loads of all kinds, autocorrelated noise, random hiccups.

use throng_base::Random;
use throng_metrics::StepKind;

use super::{Second, Simulated, World, simulate};

fn even(_: f64) -> f64 {
    180.0
}

/// A day in an hour: twice the load at noon.
fn daily(t: f64) -> f64 {
    400.0 + 200.0 * (t / 3_600.0 * std::f64::consts::TAU).sin()
}

fn climbing(t: f64) -> f64 {
    50.0 + t * 0.5
}

/// Number of kinds of clean runs.
pub(super) const KINDS: u64 = 12;

/// A clean run of one of the kinds.
pub(super) fn clean(seed: u64) -> Simulated {
    let base = World::new(seed, 240);
    let nothing = |_: &mut Second, _: &mut Random| {};
    let levels = |users: [f64; 4], each: usize| users.map(|it| (each, it, it)).to_vec();
    let world = match seed % KINDS {
        0 => base,
        1 => World { open_rate: Some(even), ..base },
        2 => {
            let phases = vec![(3_600, 300.0, 300.0)];
            World { seconds: 3_600, open_rate: Some(daily), phases, ..base }
        }
        3 => World { phases: vec![(60, 1.0, 60.0), (180, 60.0, 60.0)], ..base },
        4 => World { phases: levels([20.0, 40.0, 80.0, 160.0], 60), think_s: 0.5, ..base },
        5 => World { steps: vec![5.0, 20.0, 80.0, 12.0, 300.0], think_s: 1.0, ..base },
        6 => World {
            kind: StepKind::Connect,
            churn_s: Some(30.0),
            phases: vec![(240, 400.0, 400.0)],
            think_s: 5.0,
            ..base
        },
        7 => {
            let phases = vec![(1_800, 80.0, 80.0)];
            World { seconds: 1_800, sigma: 0.2, phases, ..base }
        }
        8 => World { tls: true, addresses: 3, churn_s: Some(20.0), ..base },
        9 => World { open_rate: Some(climbing), phases: vec![(240, 100.0, 100.0)], ..base },
        10 => World { hiccups: 0.05, sigma: 0.15, ..base },
        _ => World { seconds: 25, phases: vec![(25, 30.0, 30.0)], ..base },
    };
    simulate(&world, nothing)
}
