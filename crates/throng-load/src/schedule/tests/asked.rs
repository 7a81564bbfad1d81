//! Tests how many starts a load schedules per second.

use throng_program::{Rate, Spacing};

use super::*;
use crate::profile::tests::any_rate;

/// Queries all shards at the end of every second, when only a share of the due starts happens.
fn seconds(phases: &[Phase], shards: u64, begins: f64) -> (Vec<Asked>, u64, u64) {
    let load = Load::alone(phases.to_vec());
    let (mut all, mut settled, mut unmet) = (Vec::new(), 0, 0);
    for index in 0..shards {
        let mut random = Random::new(index);
        let share = Share::WHOLE.thread(index, shards);
        let mut schedule = Schedule::new(&load, share, Time::ZERO, 7);
        for second in 0.. {
            let end = Time::from_secs(second as u64 + 1);
            while schedule.next() < end {
                let now = schedule.next();
                let action = schedule.pop(now);
                settled += u64::from(matches!(action, Some(Action::Arrive { .. })));
            }
            while schedule.next_iteration().is_some_and(|due| due < end) && random.chance(begins) {
                schedule.starts.take();
                settled += 1;
            }
            let asked = schedule.asked(end, Duration::ZERO);
            all.resize(all.len().max(second + 1), Asked::default());
            all[second].wanted += asked.wanted;
            all[second].backlog += asked.backlog;
            if schedule.is_over() {
                break;
            }
        }
        unmet += std::mem::take(&mut schedule.starts.unmet)
            + std::mem::take(&mut schedule.starts.dropped);
    }
    (all, settled, unmet)
}

#[test]
fn every_second_has_the_starts_of_its_rate_on_any_number_of_shards() {
    let ramp = || Drive::Arrivals(Arrivals::ramp(100.0, 300.0));
    for shards in [1, 3, 7] {
        let (all, settled, unmet) = seconds(&[phase(ramp(), Some(10 * S))], shards, 1.0);
        let wanted: Vec<u64> = all.iter().map(|asked| asked.wanted).collect();
        // The integral of 100 + 20 t.
        let exact = |second: u64| 110 + 20 * second;
        assert!((0..10).all(|it| wanted[it as usize].abs_diff(exact(it)) <= 1), "{wanted:?}");
        assert_eq!((wanted.iter().sum::<u64>(), settled, unmet), (2000, 2000, 0));
        assert!(all.iter().all(|asked| asked.backlog == 0), "{all:?}");
    }
}

#[test]
fn starts_without_a_free_user_are_wanted_and_wait() {
    let drive = Drive::Iterations(Iterations::new(10, Some(50.0), None));
    let (all, settled, unmet) = seconds(&[phase(drive, Some(4 * S))], 2, 0.0);
    let seen: Vec<_> = all.iter().map(|asked| (asked.wanted, asked.backlog)).collect();
    assert_eq!(seen[..4], [(50, 50), (50, 100), (50, 150), (50, 200)]);
    assert_eq!((settled, unmet), (0, 200));
}

#[test]
fn every_wanted_start_begins_or_is_unmet() {
    let mut random = Random::new(3);
    for round in 0..300 {
        let spacing = if random.chance(0.5) { Spacing::Even } else { Spacing::Poisson };
        let rate: Rate = any_rate(&mut random);
        let drive = match random.below(2) {
            0 => Drive::Arrivals(Arrivals { rate, spacing, max: None }),
            _ => {
                let iterations = Iterations::new(1 + random.below(9), Some(1.0), None);
                let drops = random.chance(0.3);
                Drive::Iterations(Iterations { rate: Some(rate), spacing, drops, ..iterations })
            }
        };
        let phases =
            [phase(drive, Some((1 + random.below(4) as u32) * S)), phase(Drive::Hold, None)];
        let (all, settled, unmet) = seconds(&phases, 1 + random.below(4), 0.95);
        let wanted: u64 = all.iter().map(|asked| asked.wanted).sum();
        assert_eq!(wanted, settled + unmet, "round {round}: {phases:?}");
    }
}

#[test]
fn starts_due_just_before_the_stop_are_withdrawn() {
    let drive = Drive::Iterations(Iterations::new(10, Some(100.0), None));
    let load = Load::alone(vec![phase(drive, Some(10 * S))]);
    let mut schedule = Schedule::new(&load, Share::WHOLE, Time::ZERO, 7);
    while schedule.pop(Time::from_secs(3)).is_some() {}
    (0..50).for_each(|_| schedule.starts.take());
    assert_eq!(schedule.asked(Time::from_secs(3), Duration::ZERO).wanted, 300);
    schedule.cancel(Time::from_secs(2), Time::from_secs(3));
    let left = Asked { wanted: 0, backlog: 0, withdrawn: 100 };
    assert_eq!(schedule.asked(Time::from_secs(4), Duration::ZERO), left);
    assert_eq!(std::mem::take(&mut schedule.starts.unmet), 150);
}
