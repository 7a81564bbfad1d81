//! Tests duels between targets with known differences, on a simulated noisy machine.

use throng_base::random::Random;
use throng_metrics::duel::Outcome;
use throng_metrics::{Histogram, StepInterval};

use super::*;
use crate::directory::{StepInfo, TablesInfo};

const SLICE_S: u64 = 5;
const BUDGET_S: u64 = 300;

fn info() -> RunInfo {
    let step = StepInfo { name: "GET /".into(), kind: "http".into(), ..StepInfo::default() };
    RunInfo {
        tables: TablesInfo { steps: vec![step], ..TablesInfo::default() },
        ..RunInfo::default()
    }
}

fn plan(seed: u64, within: f64, conditions: &[&str]) -> Plan {
    let conditions = conditions.iter().map(|text| Condition::parse(text).expect("a condition"));
    Plan {
        sides: ["http://a".into(), "http://b".into()],
        seed,
        slice_s: SLICE_S,
        within,
        budget_s: BUDGET_S,
        is_paced: false,
        conditions: conditions.collect(),
    }
}

/// An approximately normal random value.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// Noise of the machine: a slow drift, an offset per slice, noise per second, and occasional
/// seconds in which a third of the performance is lost.
struct Machine {
    random: Random,
    drift: f64,
    mood: f64,
    disturbed_s: u64,
}

impl Machine {
    fn speed(&mut self, second: u64) -> f64 {
        let random = &mut self.random;
        self.drift += 0.002 * normal(random);
        if second.is_multiple_of(SLICE_S) {
            self.mood = 0.02 * normal(random);
        }
        if random.chance(0.01) {
            self.disturbed_s = 1 + random.below(6);
        }
        self.disturbed_s = self.disturbed_s.saturating_sub(1);
        let disturbed = if self.disturbed_s > 0 { 0.67 } else { 1.0 };
        (self.drift + self.mood + 0.02 * normal(random)).exp() * disturbed
    }
}

/// The throughput of a target with two threads that share 8 connections: with few connections, the
/// thread that has fewer of them is idle now and then.
fn dealt(random: &mut Random) -> f64 {
    let on_one = (0..8).filter(|_| random.chance(0.5)).count();
    1.0 - 0.02 * on_one.abs_diff(4) as f64
}

/// Requests of B cost `costs` times as much. Returns the length of the duel in seconds, and its
/// result.
fn duel(seed: u64, costs: f64, plan: Plan) -> (u64, Duel) {
    duel_over(seed, costs, plan, |_, _| 1.0)
}

/// Like [`duel`]; `share` is the throughput of a side in a slice, which depends on its connections.
fn duel_over(
    seed: u64,
    costs: f64,
    plan: Plan,
    mut share: impl FnMut(Side, u64) -> f64,
) -> (u64, Duel) {
    let random = Random::for_owner(seed, 99);
    let mut machine = Machine { random, drift: 0.0, mood: 0.0, disturbed_s: 0 };
    let (order, budget_s) = (plan.seed, plan.budget_s);
    let mut referee = Referee::new(&info(), plan);
    for second in 0..budget_s {
        let side = Side::of_slice(order, second / SLICE_S);
        let cost = if side == Side::B { 1.0 + costs } else { 1.0 };
        let speed = machine.speed(second) * share(side, second / SLICE_S);
        let count = (20_000.0 * speed / cost) as u64;
        let mut latency = Histogram::new();
        for quantile in 0..10u64 {
            let tail = if quantile == 9 { 4.0 } else { 1.0 + 0.1 * quantile as f64 };
            let nanos = 2e6 * cost / speed * tail;
            latency.record_times(nanos as u64, count / 10);
        }
        let row = StepInterval { count, ok: count, latency, ..StepInterval::default() };
        let machine_number = u16::from(side == Side::B);
        let interval =
            Interval { second, machine: machine_number, steps: vec![row], ..Interval::default() };
        referee.add(&interval);
        let noise = 1.0 + 0.01 * normal(&mut machine.random);
        let target_ns = Some((count as f64 * 20_000.0 * cost * noise) as u64);
        referee.add_cpu(second, Cpu { own_ns: count * 9_000, target_ns });
        if referee.second(second) {
            let duel = referee.duel(DuelEnd::Running);
            if referee.is_decided(&duel) {
                return (second + 1, duel);
            }
        }
    }
    (budget_s, referee.duel(DuelEnd::Budget))
}

#[test]
fn a_target_does_not_differ_from_itself() {
    let (mut differ, mut seconds) = (0, 0);
    for seed in 0..200 {
        let (took, duel) = duel(seed, 0.0, plan(seed, 0.01, &[]));
        differ += u32::from(!matches!(duel.outcome(), Outcome::Same | Outcome::Undecided(_)));
        seconds += took;
    }
    assert!(differ <= 10, "{differ} of 200 name a difference: more than one in twenty");
    assert!(seconds / 200 < BUDGET_S, "some end early: {} s on average", seconds / 200);
}

#[test]
fn few_connections_cause_no_difference_if_each_slice_opens_new_ones() {
    // The number of 60 duels of a target with itself that find a difference.
    let differ = |is_new_in_each_slice: bool| {
        let differs = |seed: &u64| {
            let mut random = Random::for_owner(*seed, 7);
            let kept = [dealt(&mut random), dealt(&mut random)];
            let mut slices = BTreeMap::new();
            let share = |side: Side, slice: u64| match is_new_in_each_slice {
                true => *slices.entry(slice).or_insert_with(|| dealt(&mut random)),
                false => kept[side as usize],
            };
            let (_, duel) = duel_over(*seed, 0.0, plan(*seed, 0.01, &[]), share);
            !matches!(duel.outcome(), Outcome::Same | Outcome::Undecided(_))
        };
        (0..60).filter(differs).count()
    };
    let (anew, kept) = (differ(true), differ(false));
    assert!(anew <= 3, "{anew} of 60: more than one in twenty");
    assert!(kept > 6, "{kept} of 60: this is what new connections are for");
}

#[test]
fn three_percent_are_found_in_five_minutes() {
    let mut found = 0;
    for seed in 0..200 {
        let (_, duel) = duel(seed, 0.03, plan(seed, 0.01, &[]));
        found += match duel.outcome() {
            Outcome::Faster { is_b: false, .. } => 1,
            Outcome::Faster { is_b: true, .. } => panic!("seed {seed}: {duel:?}"),
            _ => 0,
        };
    }
    assert!(found >= 180, "found in {found} of 200: less than nine in ten");
}

#[test]
fn a_difference_in_the_target_s_cpu_time_is_found_sooner() {
    let (_, found) = duel(3, 0.02, plan(3, 0.03, &[]));
    let cpu = found.figures.iter().find(|it| it.figure == "target_cpu_per_attempt").expect("CPU");
    let change = cpu.change.expect("an interval");
    assert!(change.named && change.low > 0.01 && change.high < 0.03, "{change:?}");
    assert_eq!(cpu.a.map(|nanos| (nanos / 1e3).round()), Some(20.0));
}

#[test]
fn the_warm_up_and_the_first_second_of_a_slice_are_not_counted() {
    let mut referee = Referee::new(&info(), plan(5, 0.01, &[]));
    for second in 0..8 * SLICE_S {
        let side = Side::of_slice(5, second / SLICE_S);
        let is_counted = second >= 2 * SLICE_S && !second.is_multiple_of(SLICE_S);
        let count = if is_counted { 100 } else { 7_000 };
        let row = StepInterval { count, ok: count, ..StepInterval::default() };
        // Attempts that end in the other side's slice do not count, either.
        for machine in 0..2u16 {
            let works = side == Side::BOTH[usize::from(machine)];
            let steps = vec![if works {
                row.clone()
            } else {
                StepInterval { count: 1, ok: 1, ..row.clone() }
            }];
            referee.add(&Interval { second, machine, steps, ..Interval::default() });
        }
        assert_eq!(referee.second(second), [19, 29, 39].contains(&second), "{second}");
    }
    let duel = referee.duel(DuelEnd::Budget);
    assert_eq!((duel.pairs, duel.figures[0].a, duel.figures[0].b), (3, Some(100.0), Some(100.0)));
    assert_eq!(duel.outcome(), Outcome::TooShort, "three pairs have no interval");
}

#[test]
fn conditions_use_all_pairs() {
    let texts = ["rate < -5%", "http p99 > +1%", "\"GET /\" mean > +50%", "cpu_per_attempt > +5%"];
    let (_, slow) = duel(1, 0.10, plan(1, 0.01, &texts));
    let words: Vec<_> = slow.conditions.iter().map(|one| one.fails.word()).collect();
    assert_eq!(words, ["failed", "failed", "passed", "passed"], "{slow:?}");
    let short = Plan { budget_s: 50, ..plan(1, 0.01, &texts[..1]) };
    let (_, short) = duel(1, 0.10, short);
    assert_eq!(short.conditions[0].fails.word(), "indeterminate", "four pairs say nothing");
    let (_, none) = duel(1, 0.0, plan(1, 0.01, &["connect mean > +5%"]));
    assert_eq!(none.conditions[0].fails.word(), "unknown", "nothing connects");
}

#[test]
fn a_side_without_responses_is_reported_after_its_first_slice() {
    let mut referee = Referee::new(&info(), plan(2, 0.01, &[]));
    let answers = StepInterval { count: 5, ok: 5, ..StepInterval::default() };
    for second in 0..2 * SLICE_S {
        referee.add(&Interval { second, steps: vec![answers.clone()], ..Interval::default() });
        referee.second(second);
        let is_second_slice = second + 1 == 2 * SLICE_S;
        let expected = (is_second_slice
            || Side::of_slice(2, 0) == Side::B && second + 1 >= SLICE_S)
            .then_some(Side::B);
        assert_eq!(referee.silent(), expected, "{second}");
    }
}
