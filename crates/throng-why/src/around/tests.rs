//! Tests simulated runs in which an event has an effect, or none.

use throng_base::Random;
use throng_metrics::{Cause, Gauges, Interval, StepInterval};

use super::*;

const EVENT_S: f64 = 60.4;

/// Mean results of a second: attempts, failures, response times in ms, and users online.
#[derive(Clone, Copy)]
struct Second {
    attempts: f64,
    failing: f64,
    ms: f64,
    online: u64,
}

const USUAL: Second = Second { attempts: 200.0, failing: 0.0, ms: 10.0, online: 1_000 };

fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.uniform(0.0, 1.0)).sum::<f64>() - 6.0
}

/// Two minutes with autocorrelated noise in the response times, heavy tails, varying counts and
/// occasional hiccups.
fn run(seed: u64, at: impl Fn(usize) -> Second) -> Timeline {
    let mut random = Random::new(seed);
    let (mut timeline, mut drift) = (Timeline::default(), 0.0);
    for t in 0..120 {
        let second = at(t);
        drift = 0.7 * drift + 0.08 * normal(&mut random);
        let hiccup = if random.below(60) == 0 { 2.5 } else { 1.0 };
        let spread = second.attempts.sqrt() * normal(&mut random);
        let count = (second.attempts + spread).max(0.0) as u64;
        let noise = if random.below(4) == 0 { 1 } else { 0 };
        let failed = ((count as f64 * second.failing) as u64 + noise).min(count);
        let mut row = StepInterval { count, ok: count - failed, ..StepInterval::default() };
        row.begun = count;
        if failed > 0 {
            row.errors.push((Cause::Reset, failed));
        }
        for _ in 0..count {
            let tail = (0.5 * normal(&mut random) + drift).exp();
            row.latency.record((second.ms * hiccup * tail * 1e6) as u64);
        }
        let line =
            Interval { second: t as u64, shards: 1, steps: vec![row], ..Interval::default() };
        let gauges = Gauges {
            users_online: second.online,
            users_present: second.online,
            ..Gauges::default()
        };
        timeline.add(&line, true, &gauges, |_| true);
    }
    timeline.finish();
    timeline
}

fn happened() -> Happened {
    Happened { begun_s: EVENT_S, ended_s: EVENT_S + 1.0, same_from_s: 0.0, same_to_s: 120.0 }
}

fn change(effect: &Effect, figure: Around) -> Option<&Change> {
    effect.changes.iter().find(|it| it.figure == figure)
}

#[test]
fn without_a_change_nothing_is_reported() {
    let silent = |seed: &u64| around(&run(*seed, |_| USUAL), &happened()).changes.is_empty();
    let loud: Vec<u64> = (0..100).filter(|seed| !silent(seed)).collect();
    assert!(loud.is_empty(), "of clean runs: {loud:?}");
}

#[test]
fn a_restart_is_reported_with_its_times() {
    for seed in 0..20 {
        let effect = around(
            &run(seed, |t| match t {
                60..=63 => Second { attempts: 60.0, failing: 0.9, online: 200, ..USUAL },
                64..=71 => Second { ms: 60.0, online: 880, ..USUAL },
                72..=99 => Second { online: 1_000 - (100 - t as u64), ..USUAL },
                _ => USUAL,
            }),
            &happened(),
        );
        let back = |figure| change(&effect, figure).and_then(|it| it.back_s).map(f64::ceil);
        assert_eq!(back(Around::Errors), Some(4.0), "{seed}: {effect:?}");
        assert_eq!(back(Around::Rate), Some(4.0), "{seed}");
        // A hiccup right after it delays the return.
        let p99 = back(Around::P99).unwrap_or_default();
        assert!((11.0..=20.0).contains(&p99), "{seed}: {p99}");
        let online = change(&effect, Around::Online).expect("users were offline");
        assert_eq!((online.before, online.worst), (1_000.0, 200.0), "{seed}");
        let share = change(&effect, Around::Errors).map_or(0.0, |it| it.worst);
        assert!((share - 0.9).abs() < 0.05, "{seed}: {share}");
        let told: Vec<String> = effect.told().iter().map(Said::english).collect();
        assert!(told.iter().any(|it| it.starts_with("800 users offline, all online again after")));
    }
}

#[test]
fn a_value_that_does_not_return_is_reported() {
    let effect =
        around(&run(3, |t| if t > 60 { Second { ms: 80.0, ..USUAL } } else { USUAL }), &happened());
    let p50 = change(&effect, Around::P50).expect("slower");
    assert_eq!(p50.back_s, None);
    let told = p50.told().english();
    assert!(told.ends_with("not recovered after 60 s"), "{told}");
    assert!(change(&effect, Around::Online).is_none());
}

#[test]
fn a_load_change_limits_the_compared_time() {
    let timeline = run(5, |t| match t {
        0..70 => USUAL,
        _ => Second { attempts: 20.0, online: 100, ..USUAL },
    });
    let bounded = Happened { same_to_s: 70.0, ..happened() };
    assert_eq!(around(&timeline, &bounded).changes, []);
    let early = Happened { same_from_s: 58.0, ..happened() };
    let effect = around(&timeline, &early);
    assert_eq!(effect.changes, [], "two seconds before it are not enough");
    assert!(effect.during.is_some());
}

#[test]
fn results_before_during_and_after_are_reported() {
    let effect = around(
        &run(7, |t| match t {
            60..=64 => Second { ms: 100.0, failing: 0.5, ..USUAL },
            _ => USUAL,
        }),
        &happened(),
    );
    let stretches = [&effect.before, &effect.during, &effect.after];
    let [before, during, after] = stretches.map(|it| it.clone().expect("there"));
    assert_eq!((before.from_s, before.to_s, during.from_s), (30.0, 60.0, 60.0));
    assert!((65.0..=68.0).contains(&during.to_s) && after.from_s == during.to_s, "{during:?}");
    let share = |it: &Stretch| it.error_share.unwrap_or(1.0);
    assert!(share(&before) < 0.01 && share(&after) < 0.01 && share(&during) > 0.2);
    assert!(during.p50_ns > before.p50_ns.map(|it| it * 4.0), "{during:?}");
    assert_eq!(before.online_min, 1_000.0);
}

#[test]
fn a_run_without_seconds_reports_nothing() {
    let effect = around(&Timeline::default(), &happened());
    assert_eq!(effect, Effect::default());
}
