//! Tests changes of a running load: all shards together do what one shard does.

use throng_program::{Change, Rate, Spacing};

use super::*;
use crate::profile::tests::any_rate;

const NEVER_TOO_MANY: u64 = u64::MAX;

/// All actions, and how many starts were begun, unmet and dropped.
#[derive(Debug, Default, PartialEq)]
struct Done {
    /// The time and the action.
    seen: Vec<(Time, &'static str)>,
    begun: u64,
    unmet: u64,
    dropped: u64,
    /// Starts scheduled at a rate.
    wanted: u64,
}

impl Done {
    fn staying(&self, until: Time) -> i64 {
        let change = |what: &str| i64::from(what == "come") - i64::from(what == "leave");
        self.seen.iter().filter(|(at, _)| *at <= until).map(|(_, what)| change(what)).sum()
    }

    fn count(&self, what: &str) -> u64 {
        self.seen.iter().filter(|(_, other)| *other == what).count() as u64
    }
}

fn amendment(milliseconds: u64, change: impl Into<Adjustment>) -> Amendment {
    Amendment { at: ms(milliseconds), change: change.into(), users_max: NEVER_TOO_MANY }
}

fn word(action: Action) -> Option<&'static str> {
    Some(match action {
        Action::Come { .. } => "come",
        Action::Leave => "leave",
        Action::Arrive { .. } => "arrive",
        Action::Part { .. } => "part",
        Action::Phase(_) | Action::End => return None,
    })
}

/// Each shard receives a change up to 200 ms in advance. It starts all due iterations or, if users
/// are `busy`, only some.
fn play_amended(
    phases: &[Phase],
    shards: u64,
    (amendments, holds): (&[Amendment], &[(Time, Word)]),
    busy: bool,
) -> Done {
    let load = Load::alone(phases.to_vec());
    let mut done = Done::default();
    for index in 0..shards {
        let mut random = Random::new(index + 1000 * shards);
        let share = Share::WHOLE.thread(index, shards);
        let mut schedule = Schedule::new(&load, share, ms(0), 5);
        let (mut wanted, mut settled) = (0, 0);
        let early = Duration::from_millis(1 + random.below(200));
        let mut heard: VecDeque<Amendment> = amendments.iter().copied().collect();
        let mut words: VecDeque<(Time, Word)> = holds.iter().copied().collect();
        loop {
            let hears = |at: Time| Time(at.0.saturating_sub(early.as_nanos() as u64));
            let amended = heard.front().map_or(Time::NEVER, |it| hears(it.at));
            let said = words.front().map_or(Time::NEVER, |(at, _)| *at);
            let iteration = schedule.next_iteration().filter(|_| schedule.has_begun() && !busy);
            let due = iteration.unwrap_or(Time::NEVER).min(schedule.next());
            let next = due.min(amended).min(said);
            if next == Time::NEVER {
                break;
            }
            while let Some(amendment) = heard.pop_front_if(|it| hears(it.at) <= next) {
                schedule.amend(amendment);
            }
            while let Some((_, Word::Held(held))) = words.pop_front_if(|(at, _)| *at <= next) {
                schedule.hold(held);
            }
            while let Some(due) = schedule.next_iteration().filter(|due| *due <= next) {
                if !schedule.has_begun() || (busy && random.chance(0.5)) {
                    break;
                }
                settled += u64::from(schedule.iterations().is_some_and(|it| it.rate.is_some()));
                schedule.starts.take();
                done.begun += 1;
                if !busy {
                    done.seen.push((due, "iteration"));
                }
            }
            // Queries at random times miss nothing.
            if random.chance(0.3) {
                wanted += schedule.asked(next, 5 * MS).wanted;
            }
            while let Some(action) = schedule.pop(next) {
                settled += u64::from(matches!(action, Action::Arrive { .. }));
                done.seen.extend(word(action).map(|word| (next, word)));
            }
        }
        assert!(schedule.is_over());
        let (unmet, dropped) = (
            std::mem::take(&mut schedule.starts.unmet),
            std::mem::take(&mut schedule.starts.dropped),
        );
        wanted += schedule.asked(Time::NEVER, Duration::ZERO).wanted;
        assert_eq!(wanted, settled + unmet + dropped, "shard {index} of {shards}");
        (done.unmet, done.dropped) = (done.unmet + unmet, done.dropped + dropped);
        done.wanted += wanted;
    }
    done.seen.sort_unstable();
    done
}

fn played(phases: &[Phase], shards: u64, amendments: &[Amendment]) -> Done {
    play_amended(phases, shards, (amendments, &[]), false)
}

#[test]
fn a_hold_is_raised_and_lowered_at_the_pace_of_the_load() {
    let load = [
        phase(users(1000, Some(1000.0)), None),
        phase(Drive::Hold, Some(9 * S)),
        phase(users(0, None), Some(S)),
    ];
    let changes = [
        amendment(2000, Change::Times(1.1)),
        amendment(4000, Change::Times(1.0 / 1.1)),
        amendment(5000, Change::Users(500)),
        amendment(7000, Change::EndPhase),
    ];
    for shards in [1, 2, 7, 60] {
        let done = played(&load, shards, &changes);
        let seen = [1999, 2049, 3000, 4999, 5499, 6000, 7001].map(|at| done.staying(ms(at)));
        assert_eq!(seen, [1000, 1050, 1100, 1000, 500, 500, 0], "{shards}");
    }
}

#[test]
fn a_ramp_continues_at_its_pace_to_a_new_target() {
    let load = [phase(users(1000, Some(100.0)), None), phase(users(0, None), Some(S))];
    let changes = [
        amendment(1005, Change::Times(1.1)),
        amendment(1010, Change::Times(1.0 / 1.1)),
        amendment(1015, Change::Users(300)),
        amendment(2000, Change::Users(100)),
    ];
    for shards in [1, 2, 7, 60] {
        let done = played(&load, shards, &changes);
        let seen = [1005, 1100, 1999, 2999, 3001].map(|at| done.staying(ms(at)));
        assert_eq!(seen, [101, 111, 200, 100, 0], "{shards}");
    }
}

#[test]
fn repeated_changes_cause_no_additional_starts() {
    let spaced = |spacing| {
        let rate = Rate::constant(10.0);
        Drive::Arrivals(Arrivals { rate, spacing, max: None })
    };
    let keys: Vec<Amendment> = (0..3000)
        .map(|key| {
            let times = if key % 2 == 0 { 1.1 } else { 1.0 / 1.1 };
            amendment(1000 + 3 * key, Change::Times(times))
        })
        .collect();
    for shards in [1, 7] {
        let even = played(&[phase(spaced(Spacing::Even), Some(10 * S))], shards, &keys);
        let count = even.count("arrive");
        assert!((103..=106).contains(&count), "{count} at 10/s and 11/s by turns");
        let chance = played(&[phase(spaced(Spacing::Poisson), Some(10 * S))], shards, &keys);
        let count = chance.count("arrive");
        assert!((65..=145).contains(&count), "{count} by chance");
    }
    let ramp = [phase(users(400, Some(10.0)), Some(10 * S))];
    let seen = played(&ramp, 7, &keys).count("come");
    assert_eq!(seen, 100, "users come at their pace");
}

#[test]
fn delayed_starts_survive_a_change_of_the_rate() {
    let iterations = |total| {
        let drive = Drive::Iterations(Iterations::new(50, Some(100.0), total));
        [phase(drive, Some(10 * S))]
    };
    let double = [amendment(4000, Change::Times(2.0)), amendment(6000, Change::Rate(50.0))];
    for shards in [1, 2, 7, 60] {
        for (total, due) in [(None, 1000), (Some(600), 600)] {
            let changes = (double.as_slice(), [].as_slice());
            let done = play_amended(&iterations(total), shards, changes, true);
            assert_eq!(done.begun + done.unmet + done.dropped, due, "{shards}");
            let done = play_amended(&iterations(total), shards, changes, false);
            assert_eq!((done.begun, done.unmet), (due, 0), "{shards}");
        }
    }
}

#[test]
fn users_never_exceed_the_maximum() {
    let load = [phase(users(100, Some(100.0)), Some(3 * S))];
    let change = Amendment { users_max: 150, ..amendment(1500, Change::Times(10.0)) };
    assert_eq!(played(&load, 7, &[change]).count("come"), 150);
}

#[test]
fn a_change_before_the_start_of_a_load_applies_at_its_start() {
    let load = Load::alone(vec![phase(users(10, None), Some(S)), phase(Drive::Hold, Some(S))]);
    let mut schedule = Schedule::new(&load, Share::WHOLE, Time::NEVER, 0);
    schedule.amend(amendment(100, Change::Users(20)));
    schedule.amend(amendment(200, Change::EndPhase));
    while schedule.next() < Time::NEVER {
        assert_eq!(schedule.pop(schedule.next()), None);
    }
    schedule.begin(ms(5000));
    let mut come = 0;
    while schedule.next() < Time::NEVER {
        come += u64::from(matches!(schedule.pop(schedule.next()), Some(Action::Come { .. })));
    }
    assert_eq!((come, schedule.start), (20, ms(7000)));
}

fn any_drive(random: &mut Random) -> Drive {
    let spacing = if random.chance(0.5) { Spacing::Even } else { Spacing::Poisson };
    let every = Duration::from_millis(random.below(900));
    match random.below(6) {
        0 => Drive::Hold,
        1 => steps(random.below(500), 1 + random.below(99), every),
        2 => {
            let max = random.chance(0.5).then(|| 1 + random.below(50));
            Drive::Arrivals(Arrivals { rate: any_rate(random), spacing, max })
        }
        3 => {
            let total = random.chance(0.3).then(|| 1 + random.below(900));
            let (users, drops) = (1 + random.below(50), random.chance(0.5));
            let rate = Some(any_rate(random));
            Drive::Iterations(Iterations { users, rate, spacing, total, drops })
        }
        _ => users(random.below(500), random.chance(0.7).then(|| 30.0 + random.below(400) as f64)),
    }
}

fn any_changes(random: &mut Random) -> Vec<Amendment> {
    let mut at = 0;
    let hammered = random.chance(0.3);
    (0..random.below(12))
        .map(|_| {
            at += if hammered { random.below(6) } else { random.below(1500) };
            let change = match random.below(8) {
                0 => Change::EndPhase,
                1 => Change::Users(random.below(600)),
                2 => Change::Rate(random.below(900) as f64 / 7.0),
                3..6 => Change::Times(1.1),
                _ => Change::Times(1.0 / 1.1),
            };
            amendment(at, change)
        })
        .collect()
}

#[test]
fn changes_have_the_same_effect_on_any_number_of_shards() {
    let mut random = Random::new(15);
    for round in 0..100 {
        let mut load: Vec<Phase> = (0..1 + random.below(4))
            .map(|_| phase(any_drive(&mut random), Some(MS * random.below(4000) as u32)))
            .collect();
        load.push(phase(users(333, Some(1000.0)), None));
        let changes = any_changes(&mut random);
        let (mut at, mut times) = (0, Vec::new());
        for _ in 0..random.below(3) {
            let from = at + 300 + random.below(1000);
            at = from + random.below(1500);
            times.push((from, at));
        }
        let holds = held(&times);
        let why = format!("round {round}: {load:?}\n{changes:?}\nheld {times:?}");
        let whole = play_amended(&load, 1, (&changes, &holds), false);
        let starts = |done: &Done| done.begun + done.count("arrive") + done.unmet + done.dropped;
        for shards in [2, 7, 60] {
            let done = play_amended(&load, shards, (&changes, &holds), false);
            assert_eq!(done, whole, "{shards} shards, {why}");
            // Users that are too busy lose no starts.
            let busy = play_amended(&load, shards, (&changes, &holds), true);
            assert_eq!(starts(&busy), starts(&whole), "{shards} shards that are busy, {why}");
        }
    }
}

#[test]
fn disconnects_continue_without_a_gap_through_changes() {
    let churn = |amount| Some(Churn { amount, ways: vec![Parting::Fin] });
    let rate = churn(Amount::Rate(20.0));
    let share = churn(Amount::Share { share: 0.5, every: S });
    let keys: Vec<Amendment> =
        (0..900).map(|key| amendment(1500 + 5 * key, Change::Users(200 + key % 2))).collect();
    for (churn, wanted) in [(rate, 160), (share, 700)] {
        let hold = Phase { churn, ..phase(Drive::Hold, Some(8 * S)) };
        let load = [phase(users(200, None), Some(Duration::ZERO)), hold];
        let whole = played(&load, 1, &keys);
        assert!(whole.count("part").abs_diff(wanted) <= 8, "{}", whole.count("part"));
        for shards in [2, 7, 60] {
            assert_eq!(played(&load, shards, &keys), whole, "{shards}");
        }
    }
}

#[test]
fn a_portion_on_one_machine_does_not_affect_the_others() {
    let rate = |rate| Drive::Arrivals(Arrivals::ramp(rate, rate));
    let load = [
        phase(users(1000, None), Some(2 * S)),
        phase(Drive::Hold, Some(4 * S)),
        phase(users(0, None), Some(2 * S)),
        phase(rate(1000.0), Some(4 * S)),
    ];
    let portions = [
        amendment(1000, Adjustment::Portion(0.5)),
        amendment(3000, Adjustment::Portion(0.25)),
        // Meanwhile, the load itself changes.
        amendment(4000, Change::Users(800)),
        amendment(5000, Adjustment::Portion(1.0)),
        amendment(9000, Adjustment::Portion(0.5)),
        amendment(10_000, Change::Rate(2000.0)),
        amendment(11_000, Adjustment::Portion(1.0)),
    ];
    for shards in [1, 2, 7] {
        let done = played(&load, shards, &portions);
        let staying = [900, 1100, 2500, 3100, 4100, 5100, 6100].map(|at| done.staying(ms(at)));
        assert_eq!(staying, [1000, 500, 500, 250, 200, 800, 0], "{shards} shards");
        let arrived = |from, to| {
            let is_in = |at: &Time| (ms(from)..ms(to)).contains(at);
            done.seen.iter().filter(|(at, what)| *what == "arrive" && is_in(at)).count() as u64
        };
        let arrivals = [(8000, 9000), (9000, 10_000), (10_000, 11_000), (11_000, 12_000)];
        for ((from, to), wanted) in arrivals.into_iter().zip([1000, 500, 1000, 2000]) {
            assert!(arrived(from, to).abs_diff(wanted) <= 1, "{from} {}", arrived(from, to));
        }
        assert_eq!((done.unmet, done.dropped), (0, 0));
    }
}

#[test]
fn restoring_the_full_portion_restores_the_later_phases() {
    let load = [phase(users(333, None), Some(2 * S)), phase(users(777, None), Some(2 * S))];
    let portions = [0.9, 0.37, 0.1, 0.2, 1.0]
        .into_iter()
        .zip(1..)
        .map(|(portion, at)| amendment(300 * at, Adjustment::Portion(portion)));
    let portions: Vec<Amendment> = portions.collect();
    let done = played(&load, 3, &portions);
    let staying = [700, 1000, 1300, 1600, 2100].map(|at| done.staying(ms(at)));
    assert_eq!(staying, [123, 33, 67, 333, 777]);
    // A fixed number of iterations is still done.
    let starts = Iterations::new(10, Some(100.0), Some(300));
    let counted = [phase(Drive::Iterations(starts), Some(5 * S))];
    for portions in [&portions[..], &[]] {
        assert_eq!(played(&counted, 2, portions).begun, 300);
    }
}
