//! Rates of any shape, random starts, and dropped starts.

use super::*;

fn sine(mean: f64, amplitude: f64) -> Rate {
    let period = Duration::from_secs(2);
    Rate::Sine(Sine { mean, amplitude, period, offset: Duration::ZERO })
}

fn points() -> Rate {
    let points = [(0, 0.0), (1000, 60.0), (2000, 60.0), (2000, 5.0), (5000, 20.0)];
    let point = |(millis, rate): (u64, f64)| (Duration::from_millis(millis), rate);
    Rate::Points(Points::new(points.map(point)))
}

fn arriving(rate: Rate, spacing: Spacing, max: Option<u64>) -> Phase {
    let drive = Drive::Arrivals(Arrivals { rate, spacing, max });
    phase(drive, Some(Duration::from_secs(5)))
}

fn working(users: u64, rate: Rate, spacing: Spacing, drops: bool) -> Phase {
    let rate = Some(rate);
    let drive = Drive::Iterations(Iterations { users, rate, spacing, total: None, drops });
    phase(drive, Some(Duration::from_secs(5)))
}

#[test]
fn shapes_are_as_exact_as_ramps() {
    for (name, rate) in [("sine", sine(40.0, 30.0)), ("points", points())] {
        is_exact(name, http(vec![ask()], vec![arriving(rate.clone(), Spacing::Even, None)]));
        holds(
            name,
            http(
                vec![ask(), think(300, 300)],
                vec![arriving(rate.clone(), Spacing::Even, None), users(0, 2)],
            ),
        );
        is_exact(name, http(vec![ask()], vec![working(20, rate, Spacing::Even, false)]));
    }
}

#[test]
fn random_choices_stay_within_the_bounds() {
    for (name, rate) in
        [("constant", Rate::constant(80.0)), ("sine", sine(40.0, 30.0)), ("points", points())]
    {
        let open = arriving(rate.clone(), Spacing::Poisson, None);
        holds(name, http(vec![ask(), think(100, 200)], vec![open, users(0, 1)]));
        let paced = working(20, rate, Spacing::Poisson, false);
        holds(name, http(vec![ask()], vec![paced]));
    }
}

#[test]
fn dropped_starts_stay_within_the_bounds() {
    for spacing in [Spacing::Even, Spacing::Poisson] {
        let code = || vec![ask(), think(990, 990)];
        for max in [6, 60, 600] {
            let open = arriving(Rate::constant(60.0), spacing, Some(max));
            holds("arrivals", http(code(), vec![open, users(0, 2)]));
        }
        for users in [3, 70] {
            let paced = working(users, Rate::constant(60.0), spacing, true);
            holds("iterations", http(code(), vec![paced]));
        }
    }
}

#[test]
fn delayed_starts_catch_up_with_a_rate_that_users_only_reach_at_times() {
    // Ten users run a hundred per second; the sine requires 150 at its peak, and 10 later.
    let rate = sine(80.0, 70.0);
    let code = || vec![ask(), think(89, 89)];
    holds_nearly(
        "waiting",
        http(code(), vec![working(10, rate.clone(), Spacing::Even, false)]),
        0.1,
    );
    holds_nearly("dropping", http(code(), vec![working(10, rate, Spacing::Even, true)]), 0.1);
}
