//! Tests that the parts of all shards add up to the load.

use throng_base::{Random, Share};
use throng_program::{Amount, Arrivals, Churn, Users};

use super::*;
use crate::curve::Curve;
use crate::population::GROUPING_SHARDS_MIN;

mod amended;
mod asked;
mod shapes;
mod turns;

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn phase(drive: Drive, time: Option<Duration>) -> Phase {
    Phase { name: "p".into(), drive, time, churn: None, measured: true }
}

fn users(to: u64, rate: Option<f64>) -> Drive {
    let coming = rate.map_or(Coming::AtOnce, Coming::Rate);
    Drive::Users(Users { to, coming })
}

fn any_churn(random: &mut Random) -> Churn {
    let every = Duration::from_millis(50 + random.below(900));
    let amount = match random.below(2) {
        0 => Amount::Rate(1.0 + random.below(700) as f64 / 7.0),
        _ => Amount::Share { share: random.below(101) as f64 / 100.0, every },
    };
    let mut ways = vec![Parting::Fin, Parting::Reset, Parting::Vanish];
    ways.truncate(1 + random.below(3) as usize);
    Churn { amount, ways }
}

fn steps(to: u64, size: u64, every: Duration) -> Drive {
    Drive::Users(Users { to, coming: Coming::Steps { size, every } })
}

/// All actions of all shards, sorted by time.
fn play(phases: &[Phase], shards: u64) -> Vec<(Time, u64, Action)> {
    let load = Load::alone(phases.to_vec());
    let mut all = Vec::new();
    for index in 0..shards {
        let mut schedule =
            Schedule::new(&load, Share::WHOLE.thread(index, shards), Time::from_secs(1), 0);
        while schedule.next() < Time::NEVER {
            let now = schedule.next();
            let action = schedule.pop(now);
            assert!(action.is_some() || schedule.next() > now, "what is due is there");
            all.extend(action.map(|action| (now, index, action)));
        }
        assert!(schedule.is_over());
    }
    all.sort_by_key(|(time, _, _)| *time);
    all
}

#[test]
fn arrivals_are_split_exactly() {
    let load = [phase(Drive::Arrivals(Arrivals::ramp(100.0, 300.0)), Some(10 * S))];
    let dues = |shards| {
        let mut dues: Vec<Time> = play(&load, shards)
            .into_iter()
            .filter_map(|(_, _, action)| match action {
                Action::Arrive { due } => Some(due),
                _ => None,
            })
            .collect();
        dues.sort_unstable();
        dues
    };
    assert_eq!(dues(1).len(), 2000);
    assert_eq!(dues(1), dues(7));
    assert_eq!(dues(1), dues(60));
}

#[test]
fn populations_rise_and_fall_at_their_rate() {
    let load = [
        phase(users(1000, Some(100.0)), None),
        phase(Drive::Hold, Some(5 * S)),
        phase(users(400, Some(200.0)), None),
        phase(users(0, None), Some(S)),
    ];
    for shards in [1, 3, 16] {
        let all = play(&load, shards);
        let online = |until: f64| {
            all.iter()
                .filter(|(time, _, _)| time.as_secs_f64() - 1.0 < until)
                .map(|(_, _, action)| match action {
                    Action::Come { .. } => 1,
                    Action::Leave => -1,
                    _ => 0,
                })
                .sum::<i64>()
        };
        assert_eq!(online(5.0 - 1e-6), 500, "{shards}");
        assert_eq!(online(10.0), 1000, "{shards}");
        assert_eq!(online(15.0), 1000, "{shards}");
        assert_eq!(online(16.5 - 1e-6), 700, "{shards}");
        assert_eq!(online(18.0 - 1e-6), 400, "{shards}");
        assert_eq!(online(19.0), 0, "{shards}");
        let ends = all.iter().filter(|(_, _, action)| *action == Action::End);
        assert!(ends.map(|(time, _, _)| time.second()).all(|second| second == 20), "{shards}");
    }
}

#[test]
fn many_shards_start_users_in_groups_and_in_turns() {
    // The ramp is interrupted: 15,000 of 20,000 users start.
    let load = [phase(users(20_000, Some(10_000.0)), Some(3 * S / 2)), phase(Drive::Hold, Some(S))];
    let dues = |shards: u64| {
        let mut dues: Vec<(Time, u64)> = play(&load, shards)
            .into_iter()
            .filter_map(|(_, shard, action)| match action {
                Action::Come { due } => Some((due, shard)),
                _ => None,
            })
            .collect();
        dues.sort_unstable();
        dues
    };
    let moments = |dues: &[(Time, u64)]| dues.iter().map(|(due, _)| *due).collect::<Vec<_>>();
    let exact = moments(&dues(1));
    assert_eq!((exact.len(), &exact), (15_000, &moments(&dues(GROUPING_SHARDS_MIN - 1))));
    assert_eq!(exact, moments(&dues(60)), "a group of 60 shards would be too early");
    let grouped = dues(20);
    let early = exact.iter().zip(&grouped).map(|(exact, (due, _))| *exact - *due);
    assert!(early.max().is_some_and(|early| early > Duration::ZERO && early <= 8 * MS));
    assert_eq!(grouped.len(), 15_000);
    let mut wakings = grouped.clone();
    wakings.dedup();
    assert!(wakings.len() < 15_000 / 4 + 20 * 4, "{}", wakings.len());
    // Together, the shards are as even as single starts, except for the shard whose turn it is.
    let most = moments(&grouped).windows(120).map(|some| some[119] - some[0]).min();
    assert!(most.is_some_and(|time| time >= 8 * MS), "{most:?}");
}

#[test]
fn identities_have_no_gaps() {
    let mut ids: Vec<u64> = (0..7)
        .flat_map(|index| {
            let share = Share::WHOLE.thread(index, 7);
            (0..share.part(1000)).map(move |local| share.user(local).0)
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=1000).collect::<Vec<_>>());
}

#[test]
fn iterations_are_due_evenly_and_counted_exactly() {
    let drive = Drive::Iterations(Iterations::new(10, Some(50.0), Some(70)));
    let load = Load::alone(vec![phase(drive, Some(2 * S))]);
    let mut dues = Vec::new();
    for index in 0..3 {
        let share = Share::WHOLE.thread(index, 3);
        let mut schedule = Schedule::new(&load, share, Time::ZERO, 0);
        assert_eq!(schedule.pace(), Pace::Scheduled);
        // The shards have 4, 3 and 3 of the 10 users, with 5 of these iterations per user.
        assert_eq!(schedule.starts.waiting(Time::from_secs(1)), 5 * share.part(10));
        while let Some(due) = schedule.next_iteration() {
            schedule.starts.take();
            dues.push(due);
        }
        assert_eq!(schedule.starts.waiting(Time::from_secs(1)), 0);
    }
    dues.sort_unstable();
    assert_eq!(dues.len(), 70);
    assert_eq!(dues[50], Time::from_secs(1));
}

#[test]
fn completed_work_ends_its_phase() {
    let drive = Drive::Iterations(Iterations::new(2, None, Some(5)));
    let load = Load::alone(vec![phase(drive, None)]);
    let mut schedule = Schedule::new(&load, Share::WHOLE, Time::ZERO, 0);
    let mut actions = Vec::new();
    while let Some(action) = schedule.pop(Time::from_secs(3)) {
        actions.push(action);
    }
    let come = Action::Come { due: Time::ZERO };
    assert_eq!(actions, [Action::Phase(0), come, come]);
    let count = std::iter::from_fn(|| schedule.next_iteration().map(|_| schedule.starts.take()));
    assert_eq!(count.count(), 5);
    assert_eq!(schedule.next(), Time::NEVER);
    schedule.finish_phase(Time::from_secs(4));
    assert_eq!(schedule.pop(Time::from_secs(4)), Some(Action::End));
    assert_eq!(schedule.pop(Time::NEVER), None);
}

#[test]
fn an_unfinished_ramp_continues_in_the_next_phase() {
    let load = [
        phase(users(1000, Some(10.0)), Some(3 * S)),
        phase(users(1020, Some(10.0)), Some(2 * S)),
        phase(users(0, Some(20.0)), Some(S)),
        phase(users(40, Some(5.0)), None),
    ];
    for shards in [1, 2, 7, 60] {
        let all = play(&load, shards);
        let online = |until: Duration| {
            let until = Time::from_secs(1) + until;
            all.iter()
                .filter(|(time, _, _)| *time < until)
                .map(|(_, _, action)| match action {
                    Action::Come { .. } => 1,
                    Action::Leave => -1,
                    _ => 0,
                })
                .sum::<i64>()
        };
        let seen = [1, 3, 4, 5, 6, 7, 9].map(|second| online(second * S));
        assert_eq!(seen, [10, 30, 40, 50, 30, 35, 40], "{shards}");
    }
}

#[test]
fn any_load_is_the_same_on_any_number_of_shards() {
    let mut random = Random::new(10);
    for round in 0..300 {
        let load: Vec<Phase> = (0..1 + random.below(6))
            .map(|_| {
                let rate = random.chance(0.7).then(|| 1.0 + random.below(3000) as f64 / 7.0);
                let time = random.chance(0.6).then(|| Duration::from_millis(random.below(4000)));
                let every = Duration::from_millis(random.below(900));
                match random.below(8) {
                    0 => phase(Drive::Hold, time),
                    6 => phase(steps(random.below(500), 1 + random.below(99), every), time),
                    7 => {
                        let churn = Some(any_churn(&mut random));
                        Phase { churn, ..phase(Drive::Hold, time) }
                    }
                    1 => phase(Drive::Arrivals(Arrivals::ramp(7.3, 99.0)), Some(S)),
                    _ => phase(users(random.below(500), rate), time),
                }
            })
            .collect();
        let what = |shards| {
            let mut seen: Vec<(Time, &str)> = play(&load, shards)
                .into_iter()
                .filter_map(|(time, _, action)| match action {
                    Action::Come { .. } => Some((time, "come")),
                    Action::Leave => Some((time, "leave")),
                    Action::Arrive { .. } => Some((time, "arrive")),
                    Action::Part { how: Parting::Fin, .. } => Some((time, "fin")),
                    Action::Part { how: Parting::Reset, .. } => Some((time, "reset")),
                    Action::Part { how: Parting::Vanish, .. } => Some((time, "vanish")),
                    Action::Part { how: Parting::HalfClose, .. } => Some((time, "half_close")),
                    Action::Phase(_) | Action::End => None,
                })
                .collect();
            seen.sort_unstable();
            seen
        };
        let whole = what(1);
        for shards in [2, 3, 16, 61] {
            assert_eq!(what(shards), whole, "round {round}, {shards} shards: {load:?}");
        }
    }
}

#[test]
fn iterations_go_only_to_shards_with_users() {
    for rate in [None, Some(5.0)] {
        let drive = Drive::Iterations(Iterations::new(3, rate, Some(10)));
        let load = Load::alone(vec![phase(drive, None)]);
        let counts: Vec<u64> = (0..5)
            .map(|index| {
                let mut schedule =
                    Schedule::new(&load, Share::WHOLE.thread(index, 5), Time::ZERO, 0);
                let begin = || schedule.next_iteration().map(|_| schedule.starts.take());
                std::iter::from_fn(begin).count() as u64
            })
            .collect();
        assert_eq!(counts, [4, 3, 3, 0, 0]);
    }
}

#[test]
fn nothing_is_unmet_if_every_start_happened() {
    let mut random = Random::new(20);
    for round in 0..500 {
        let rate = (1 + random.below(500)) as f64 / 60.0;
        let time = Duration::from_millis(1 + random.below(100_000));
        let shards = 1 + random.below(7);
        let users = 1 + random.below(9);
        let drive = Drive::Iterations(Iterations::new(users, Some(rate), None));
        let load = Load::alone(vec![phase(drive, Some(time))]);
        let mut begun = 0;
        for index in 0..shards {
            let share = Share::WHOLE.thread(index, shards);
            let mut schedule = Schedule::new(&load, share, Time::from_secs(1), 0);
            while schedule.next_iteration().is_some() {
                schedule.starts.take();
                begun += 1;
            }
            while schedule.pop(Time::NEVER).is_some() {}
            assert_eq!(
                std::mem::take(&mut schedule.starts.unmet),
                0,
                "round {round}: {rate} for {time:?}"
            );
        }
        assert_eq!(begun, Curve::constant(rate).count_before(time), "round {round}");
    }
}

#[test]
fn paced_work_takes_its_scheduled_time() {
    let end = |time| {
        let drive = Drive::Iterations(Iterations::new(1, Some(20.0), Some(20)));
        let load = Load::alone(vec![phase(drive, time)]);
        let mut schedule = Schedule::new(&load, Share::WHOLE, Time::from_secs(1), 0);
        schedule.finish_phase(Time(1_951_000_000));
        schedule.phase_end()
    };
    assert_eq!(end(None), Time::from_secs(2));
    assert_eq!(end(Some(9 * S)), Time::from_secs(2));
    assert_eq!(end(Some(S / 2)), Time(1_500_000_000));
}

#[test]
fn work_is_assigned_once_it_is_known_which_users_stay() {
    let drive = Drive::Iterations(Iterations::new(1, None, Some(5)));
    let phases = vec![phase(users(3, None), Some(S)), phase(drive, None)];
    let load = Load::alone(phases);
    let mut schedule = Schedule::new(&load, Share::WHOLE, Time::ZERO, 0);
    assert!(!schedule.is_settled(Time::ZERO));
    while schedule.pop(Time::ZERO).is_some() {}
    let now = Time::from_secs(1);
    assert!(schedule.is_settled(now));
    let mut seen = Vec::new();
    while let Some(action) = schedule.pop(now) {
        seen.push((action, schedule.is_settled(now)));
    }
    let wanted = [(Action::Phase(1), false), (Action::Leave, false), (Action::Leave, true)];
    assert_eq!(seen, wanted);
}

/// Users online after this time: those that started minus those that left.
fn online(all: &[(Time, u64, Action)], until: Duration) -> i64 {
    let until = Time::from_secs(1) + until;
    let change = |action: &Action| match action {
        Action::Come { .. } => 1,
        Action::Leave => -1,
        _ => 0,
    };
    all.iter().filter(|(time, ..)| *time <= until).map(|(.., action)| change(action)).sum()
}

fn partings(all: &[(Time, u64, Action)]) -> Vec<(Time, u64, Parting)> {
    let of = |(_, shard, action): &(Time, u64, Action)| match action {
        Action::Part { how, due } => Some((*due, *shard, *how)),
        _ => None,
    };
    all.iter().filter_map(of).collect()
}

#[test]
fn steps_start_and_stop_users_at_once_and_hold_them() {
    let load = [
        phase(steps(1000, 300, 10 * S), None),
        phase(steps(100, 450, 5 * S), None),
        phase(steps(1000, 500, 5 * S), Some(6 * S)),
        phase(steps(0, 600, S), Some(S)),
    ];
    for shards in [1, 2, 7, 60] {
        let all = play(&load, shards);
        let seen = [0, 9, 10, 20, 30, 39, 40, 45, 49, 50, 55, 56].map(|s| online(&all, s * S));
        let wanted = [300, 300, 600, 900, 1000, 1000, 550, 100, 100, 600, 1000, 400];
        assert_eq!(seen, wanted, "{shards}");
        assert_eq!(all.last().map(|(time, ..)| *time), Some(Time::from_secs(58)), "{shards}");
    }
}

#[test]
fn an_exact_share_disconnects_and_all_users_take_turns() {
    let churn = |share, ways: &[Parting]| {
        Some(Churn { amount: Amount::Share { share, every: 10 * S }, ways: ways.to_vec() })
    };
    for shards in 1..=60 {
        let third = churn(0.333, &[Parting::Fin, Parting::Vanish]);
        let all = churn(1.0, &[Parting::Reset]);
        let load = [
            phase(users(100, Some(10.0)), None),
            Phase { churn: third, ..phase(Drive::Hold, Some(35 * S)) },
            Phase { churn: all, ..phase(Drive::Hold, Some(11 * S)) },
        ];
        let parted = partings(&play(&load, shards));
        let at = |second: u64| {
            let of = parted.iter().filter(move |(due, ..)| *due == Time::from_secs(1 + second));
            of.map(|(_, shard, how)| (*shard, *how)).collect::<Vec<_>>()
        };
        let counts = [20, 30, 40, 55].map(|second| at(second).len());
        assert_eq!((counts, parted.len()), ([33, 33, 33, 100], 199), "{shards}");
        let vanished = parted.iter().filter(|(_, _, how)| *how == Parting::Vanish).count();
        assert_eq!(vanished, 49, "{shards}");
        // No shard loses more users than it has, and within three ticks nearly all had their turn.
        for shard in 0..shards {
            let has = Share::WHOLE.thread(shard, shards).part(100);
            let of = |second| at(second).iter().filter(|(on, _)| *on == shard).count() as u64;
            assert_eq!(of(55), has, "shard {shard} of {shards}");
            let thirds: u64 = [20, 30, 40].map(of).iter().sum();
            assert!(thirds <= has && thirds + 1 >= has, "shard {shard} of {shards}");
        }
    }
}

#[test]
fn a_rate_of_disconnects_is_even() {
    let churn = Churn { amount: Amount::Rate(50.0), ways: vec![Parting::Fin, Parting::Reset] };
    let load = [
        Phase { churn: Some(churn.clone()), ..phase(Drive::Hold, Some(S)) },
        phase(users(40, None), Some(S)),
        Phase { churn: Some(churn.clone()), ..phase(Drive::Hold, Some(10 * S)) },
        Phase { churn: Some(churn), ..phase(users(0, Some(40.0)), None) },
    ];
    let whole = partings(&play(&load, 1));
    // No users are present at the start and at the end.
    assert_eq!(whole[0].0, Time::from_secs(3));
    assert_eq!(whole.iter().filter(|(due, ..)| *due < Time::from_secs(13)).count(), 500);
    assert_eq!(whole[1].0, Time::from_secs(3) + Duration::from_millis(20));
    assert!(whole.iter().step_by(2).all(|(_, _, how)| *how == Parting::Fin));
    for shards in [2, 3, 40, 60] {
        let held = |all: &[(Time, u64, Parting)]| {
            let mut held: Vec<(Time, Parting)> =
                all.iter().map(|(due, _, how)| (*due, *how)).collect();
            held.retain(|(due, _)| *due < Time::from_secs(13));
            held.sort_unstable_by_key(|(due, _)| *due);
            held
        };
        assert_eq!(held(&partings(&play(&load, shards))), held(&whole), "{shards}");
    }
}

/// Plays the load with pauses of growth; each shard is notified up to 90 ms later, or not at all if
/// the next notification overtakes it.
fn play_held(phases: &[Phase], shards: u64, words: &[(Time, Word)]) -> Vec<(Time, u64, Action)> {
    let load = Load::alone(phases.to_vec());
    let mut all = Vec::new();
    for index in 0..shards {
        let mut random = Random::new(index);
        let mut heard: Vec<(Time, Word)> = words.to_vec();
        heard.iter_mut().for_each(|(at, _)| *at = *at + Duration::from_millis(random.below(90)));
        heard.reverse();
        let mut schedule =
            Schedule::new(&load, Share::WHOLE.thread(index, shards), Time::from_secs(1), 0);
        loop {
            let next = schedule.next().min(heard.last().map_or(Time::NEVER, |(at, _)| *at));
            if next == Time::NEVER {
                break;
            }
            while let Some((_, word)) = heard.pop_if(|(at, _)| *at <= next) {
                match word {
                    Word::Held(held) => schedule.hold(held),
                    Word::GiveUp => schedule.give_up_growth(next),
                }
            }
            while let Some(action) = schedule.pop(next) {
                all.push((next, index, action));
            }
        }
        let unmet = std::mem::take(&mut schedule.starts.unmet);
        all.extend((0..unmet).map(|_| (Time::NEVER, index, Action::Leave)));
    }
    all.sort_by_key(|(time, _, _)| *time);
    all
}

#[derive(Clone, Copy, Debug)]
enum Word {
    Held(Held),
    GiveUp,
}

/// A time in milliseconds since the start.
fn ms(milliseconds: u64) -> Time {
    Time::from_secs(1) + Duration::from_millis(milliseconds)
}

/// The notifications for pauses of growth with these starts and ends, each sent in advance.
fn held(times: &[(u64, u64)]) -> Vec<(Time, Word)> {
    let mut before = Duration::ZERO;
    let mut words = Vec::new();
    for (from, to) in times.iter().map(|(from, to)| (ms(*from), ms(*to))) {
        let ahead = |time: Time| Time(time.0 - 100_000_000);
        words.push((ahead(from), Word::Held(Held { before, from, to: Time::NEVER })));
        words.push((ahead(to), Word::Held(Held { before, from, to })));
        before += to - from;
    }
    words
}

#[test]
fn a_paused_ramp_continues_where_it_stopped() {
    let load = [
        phase(users(1000, Some(100.0)), None),
        phase(Drive::Hold, Some(5 * S)),
        phase(users(0, Some(100.0)), None),
    ];
    // The last pause starts when all users are present, so nothing is paused. Users still leave.
    let words = held(&[(2000, 5000), (5001, 5003), (6000, 8000), (15_500, 30_000)]);
    for shards in [1, 2, 7, 60] {
        let all = play_held(&load, shards, &words);
        let seen = [1500, 4500, 7500, 9000].map(|at| online(&all, Duration::from_millis(at)));
        assert_eq!(seen, [151, 200, 300, 400], "{shards}");
        let second = |s: u64| Duration::from_millis(s * 1000 + 2);
        let seen = [15, 19, 20, 21, 25, 30].map(|s| online(&all, second(s)));
        assert_eq!(seen, [1000, 1000, 999, 899, 499, 0], "{shards}");
    }
}

/// Announced just before a ramp whose users all start before the pause. Some shards are notified
/// before the ramp and others during it; it ends for all at the same moment.
#[test]
fn a_pause_after_the_last_user_of_a_ramp_does_not_extend_it() {
    let load = [
        phase(users(15, None), Some(S)),
        phase(steps(25, 24, Duration::from_millis(546)), None),
        phase(users(0, None), Some(S)),
    ];
    let words = held(&[(1090, 9000)]);
    for shards in [1, 2, 7, 60] {
        let all = play_held(&load, shards, &words);
        let mut last: Vec<Time> = Vec::new();
        for (at, _, action) in &all {
            if *action == Action::Phase(2) {
                last.push(*at);
            }
        }
        assert_eq!(last, vec![ms(1546); shards as usize], "{shards}");
    }
}

#[test]
fn users_paused_until_the_end_of_a_phase_start_later_or_never() {
    let arrivals = Drive::Arrivals(Arrivals::ramp(100.0, 100.0));
    let load = [
        phase(users(500, Some(100.0)), Some(6 * S)),
        phase(Drive::Hold, Some(2 * S)),
        phase(arrivals, Some(4 * S)),
        phase(users(1000, Some(100.0)), None),
    ];
    for shards in [1, 3, 60] {
        let all = play_held(&load, shards, &held(&[(2000, 10_000)]));
        let came = |at| online(&all, Duration::from_millis(at));
        assert_eq!([10_000, 12_000, 20_000].map(came), [200, 201, 1000], "{shards}");
        let arrived = all.iter().filter(|(.., action)| matches!(action, Action::Arrive { .. }));
        let unmet = all.iter().filter(|(time, ..)| *time == Time::NEVER).count();
        let arrived = arrived.count();
        assert_eq!(arrived + unmet, 400, "{shards}");
        assert_eq!(arrived, 200, "{shards}");
    }
}

#[test]
fn growth_that_was_given_up_never_resumes() {
    let iterations = Iterations::new(800, None, Some(4));
    let load = [
        phase(users(1000, Some(100.0)), None),
        phase(Drive::Hold, Some(2 * S)),
        phase(users(2000, Some(100.0)), None),
        phase(Drive::Arrivals(Arrivals::ramp(10.0, 10.0)), Some(S)),
        phase(users(100, Some(100.0)), None),
        phase(steps(500, 100, S), Some(S)),
        phase(Drive::Iterations(iterations), Some(S)),
        phase(users(0, None), None),
    ];
    for shards in [1, 2, 7, 60] {
        // The pause is announced, and its end a while later.
        let mut words = held(&[(3000, 4000)]);
        words.truncate(1);
        words.push((ms(4000), Word::GiveUp));
        let all = play_held(&load, shards, &words);
        let came = all.iter().filter(|(.., action)| matches!(action, Action::Come { .. })).count();
        assert_eq!(came, 300, "{shards}");
        assert!(!all.iter().any(|(.., action)| matches!(action, Action::Arrive { .. })));
        assert_eq!(all.iter().filter(|(time, ..)| *time == Time::NEVER).count(), 10, "{shards}");
        let phases = |phase| {
            let of = all.iter().filter(move |(.., action)| *action == Action::Phase(phase));
            of.map(|(time, ..)| time.since(ms(0)).as_millis() as i64).max().unwrap_or(0)
        };
        let begins: Vec<i64> = (0..8).map(phases).collect();
        // Shards are notified within 90 ms; the ramp of phase 2 is already complete.
        let wanted = [0, 4000, 6000, 6000, 7000, 9000, 10_000, 11_000];
        let near = |(begin, wanted): (&i64, i64)| (0..150).contains(&(begin - wanted));
        assert!(begins.iter().zip(wanted).all(near), "{shards}: {begins:?}");
        assert_eq!(online(&all, 7 * S), came as i64, "{shards}");
        let seen = [9200, 10_200].map(|at| online(&all, Duration::from_millis(at)));
        assert_eq!(seen, [100, 100], "{shards}");
        let last: Vec<_> = all.iter().filter(|(.., action)| *action == Action::End).collect();
        assert_eq!(last.len() as u64, shards);
    }
}

#[test]
fn after_any_pauses_all_users_start() {
    let mut random = Random::new(44);
    for round in 0..80 {
        let mut load: Vec<Phase> = (0..1 + random.below(5))
            .map(|_| {
                let time = random.chance(0.6).then(|| Duration::from_millis(random.below(4000)));
                let every = Duration::from_millis(random.below(900));
                let rate = random.chance(0.7).then(|| 30.0 + random.below(3000) as f64 / 7.0);
                let drive = match random.below(3) {
                    0 => steps(random.below(500), 10 + random.below(99), every),
                    _ => users(random.below(500), rate),
                };
                let churn = random.chance(0.5).then(|| any_churn(&mut random));
                Phase { churn, ..phase(drive, time) }
            })
            .collect();
        load.push(phase(users(333, Some(1000.0)), None));
        let (mut at, mut times) = (0, Vec::new());
        for _ in 0..random.below(9) {
            let from = at + 1 + random.below(1000);
            at = from + random.below(1500);
            times.push((from, at));
        }
        let played = |shards| {
            let mut all = play_held(&load, shards, &held(&times));
            // Every shard reports the starts and ends of phases.
            all.retain(|(.., action)| !matches!(action, Action::Phase(_) | Action::End));
            all
        };
        let what = |all: &[(Time, u64, Action)]| {
            let changes = all.iter().filter(|(.., action)| !matches!(action, Action::Part { .. }));
            let leaves = |action: &Action| *action == Action::Leave;
            let mut seen: Vec<(Time, bool)> =
                changes.map(|(time, _, action)| (*time, leaves(action))).collect();
            seen.sort_unstable();
            seen
        };
        let whole = played(1);
        for shards in [3, 16, 60] {
            let all = played(shards);
            let why = format!("round {round}, {shards} shards: {load:?} held {times:?}");
            assert_eq!(online(&all, 600 * S), 333, "{why}");
            assert_eq!(what(&all), what(&whole), "{why}");
            for shard in 0..shards {
                let of: Vec<_> = all.iter().filter(|(_, on, _)| *on == shard).copied().collect();
                let part = Share::WHOLE.thread(shard, shards).part(333);
                assert_eq!(online(&of, 600 * S), part as i64, "shard {shard}, {why}");
            }
        }
    }
}
