//! Tests areas, times and pieces of the shapes.

use throng_base::Random;
use throng_program::{Points, Sine};

use super::*;

const S: Duration = Duration::from_secs(1);

fn points(all: &[(u64, f64)]) -> Rate {
    let time = |(millis, rate): &(u64, f64)| (Duration::from_millis(*millis), *rate);
    Rate::Points(Points::new(all.iter().map(time)))
}

fn sine(mean: f64, amplitude: f64, period: u32, offset: u32) -> Rate {
    Rate::Sine(Sine { mean, amplitude, period: S * period, offset: S * offset })
}

fn count_in(profile: &Profile, from: f64, to: f64) -> usize {
    let due = |k: u64| profile.reaches(k as f64).map(|due| due.as_secs_f64());
    (0..).map_while(due).filter(|due| (from..to).contains(due)).count()
}

#[test]
fn a_sine_has_its_mean_over_a_period() {
    let profile = Profile::new(&sine(500.0, 300.0, 100, 0), Some(S * 200));
    assert!((profile.all() - 100_000.0).abs() < 1e-6, "{}", profile.all());
    // The first half of a period exceeds the mean by 2/π of the amplitude.
    let half = 500.0 * 50.0 + 300.0 * 100.0 / std::f64::consts::PI;
    assert!((profile.until(50.0) - half).abs() < 1e-6, "{}", profile.until(50.0));
    assert_eq!(count_in(&profile, 0.0, 50.0), half.ceil() as usize);
    assert_eq!(count_in(&profile, 0.0, 200.0), 100_000);
    for (second, rate) in [(0.0, 500.0), (25.0, 800.0), (75.0, 200.0), (125.0, 800.0)] {
        assert!((profile.rate_at(second) - rate).abs() < 0.2, "{}", profile.rate_at(second));
    }
    assert!((profile.peak() - 800.0).abs() < 0.2);
    let later = Profile::new(&sine(500.0, 300.0, 100, 75), Some(S * 200));
    assert!((later.rate_at(0.0) - 200.0).abs() < 0.2, "{}", later.rate_at(0.0));
    // Nothing starts where rounding would make the rate negative.
    let down = Profile::new(&sine(100.0, 100.0, 10, 0), Some(S * 10));
    assert!(down.rate_at(7.5) >= 0.0 && (down.all() - 1000.0).abs() < 0.1, "{}", down.all());
}

#[test]
fn points_are_joined_by_lines_and_a_zero_rate_starts_nothing() {
    let rate = points(&[(0, 0.0), (5_000, 0.0), (15_000, 10.0), (25_000, 10.0)]);
    let profile = Profile::new(&rate, Some(S * 25));
    assert_eq!(profile.all(), 150.0);
    assert_eq!(profile.reaches(0.0), Some(S * 5));
    assert_eq!(profile.reaches(50.0), Some(S * 15));
    assert_eq!(profile.reaches(100.0), Some(S * 20));
    assert_eq!(profile.reaches(151.0), None);
    assert_eq!((profile.rate_at(10.0), profile.peak()), (5.0, 10.0));
    // A shorter phase has the starts up to its end.
    let cut = Profile::new(&rate, Some(S * 10));
    assert_eq!((cut.all(), cut.peak(), cut.reaches(50.0)), (12.5, 5.0, None));
    // A step function: seconds with a number of starts each, and seconds without any.
    let steps =
        points(&[(0, 3.0), (1000, 3.0), (1000, 0.0), (3000, 0.0), (3000, 2.0), (4000, 2.0)]);
    let profile = Profile::new(&steps, Some(S * 4));
    let due: Vec<u128> =
        (0..6).map_while(|k| profile.reaches(f64::from(k))).map(|due| due.as_millis()).collect();
    assert_eq!(due, [0, 333, 666, 3000, 3500]);
    assert_eq!((profile.rate_at(0.5), profile.rate_at(1.0), profile.rate_at(3.5)), (3.0, 0.0, 2.0));
}

/// A random shape.
pub(crate) fn any_rate(random: &mut Random) -> Rate {
    let rate = |random: &mut Random| match random.below(4) {
        0 => 0.0,
        _ => random.below(3000) as f64 / 7.0,
    };
    match random.below(4) {
        0 => Rate::constant(1.0 + rate(random)),
        1 => Rate::Ramp { from: rate(random), to: rate(random) + 1.0 },
        2 => {
            let mean = 1.0 + rate(random);
            let amplitude = mean * random.unit();
            let period = Duration::from_millis(500 + random.below(9_000));
            Rate::Sine(Sine { mean, amplitude, period, offset: period.mul_f64(random.unit()) })
        }
        _ => {
            let mut time = 0;
            let point = |_| {
                time += random.below(3) * random.below(2_000);
                (Duration::from_millis(time), rate(random))
            };
            let mut all: Vec<(Duration, f64)> = (0..12).map(point).collect();
            all.push((Duration::from_millis(time + 1000), 5.0));
            Rate::Points(Points::new(all))
        }
    }
}

#[test]
fn due_times_are_the_inverse_of_the_start_count() {
    let mut random = Random::new(8);
    for round in 0..400 {
        let rate = any_rate(&mut random);
        let time = Duration::from_millis(1 + random.below(20_000));
        let profile = Profile::new(&rate, Some(time));
        let mut before = Duration::ZERO;
        for k in 0..200 {
            let Some(due) = profile.reaches(f64::from(k) * profile.all() / 200.0) else { break };
            assert!(due >= before && due <= time, "round {round}: {profile:?}");
            let until = profile.until(due.as_secs_f64());
            let wanted = f64::from(k) * profile.all() / 200.0;
            // A nanosecond at the peak rate, and rounding.
            let off = 1e-6 * (1.0 + profile.peak());
            assert!((until - wanted).abs() <= off, "round {round}: {until} {wanted} {profile:?}");
            before = due;
        }
        assert!(profile.reaches(profile.all() + 1.0).is_none(), "round {round}: {profile:?}");
        assert!((rate.until(time) - profile.all()).abs() <= rate.until(time) * 0.3 + 3000.0);
    }
}

#[test]
fn pieces_have_the_same_area() {
    let mut random = Random::new(9);
    for round in 0..300 {
        let time = Duration::from_millis(1 + random.below(300_000));
        let profile = Profile::new(&any_rate(&mut random), Some(time));
        for part in [1.0, 0.4] {
            let end = time.as_secs_f64() * part;
            let pieces = profile.pieces(end);
            assert!(pieces.len() <= PIECES_MAX, "round {round}");
            let area = |one: &Piece| f64::midpoint(one.rates.0, one.rates.1) * one.length;
            let all: f64 = pieces.iter().map(area).sum();
            let off = 1e-6 * (1.0 + profile.until(end));
            assert!((all - profile.until(end)).abs() < off, "round {round}: {all} {profile:?}");
            let highest = pieces.iter().map(|one| one.rates.0.max(one.rates.1));
            assert!(highest.fold(0.0, f64::max) <= profile.peak() * (1.0 + 1e-9), "round {round}");
        }
    }
}
