//! Users that are added in steps, disconnect, are paused, or are abandoned.

use throng_metrics::Gauges;
use throng_program::{Amount, Change, Churn, CloseMode, Connect, Stay};

use throng_load::Amendment;

use super::*;
use crate::control::{GROWTH_AHEAD, Holder};

/// Users that connect and stay.
fn members(phases: Vec<Phase>) -> Program {
    let connect = Statement::Connect(Arc::new(Connect {
        step: StepId(0),
        link: 0,
        path: Text::literal(""),
        headers: Vec::new(),
        cookies: Vec::new(),
        request: None,
        protocols: Vec::new(),
        options: None,
        timeout: S,
        failing: Failing::default(),
        reconnect: None,
    }));
    let stay = Statement::Stay(Arc::new(Stay {
        step: StepId(1),
        link: 0,
        time: None,
        ends: None,
        awaits_end: false,
        heartbeat: None,
        handlers: Vec::new(),
        every: Vec::new(),
        failing: Failing::default(),
    }));
    let mut program = program(phases);
    program.targets[0].scheme = Scheme::Tcp;
    program.sessions[0].steps = vec![connect, stay];
    let step = |name: &str, kind| StepInfo::new(name, kind);
    program.steps = vec![step("connect", StepKind::Connect), step("stay", StepKind::Stay)];
    program
}

fn phase(drive: Drive, time: Option<Duration>) -> Phase {
    Phase { name: "p".into(), drive, time, churn: None, measured: true }
}

fn coming(to: u64, coming: Coming) -> Drive {
    Drive::Users(Users { to, coming })
}

fn run_members(phases: Vec<Phase>, words: &[Word]) -> Outcome {
    run_told(members(phases), Share::WHOLE, MS, words)
}

impl Outcome {
    /// At the end of these seconds.
    fn gauges(&self, seconds: &[u64]) -> Vec<&Gauges> {
        let of = |second: &u64| self.intervals.iter().rfind(|one| one.second == *second);
        seconds.iter().map(|second| &of(second).expect("there is an interval").gauges).collect()
    }

    fn present(&self, seconds: &[u64]) -> Vec<u64> {
        self.gauges(seconds).iter().map(|gauges| gauges.users_present).collect()
    }

    fn online(&self, seconds: &[u64]) -> Vec<u64> {
        self.gauges(seconds).iter().map(|gauges| gauges.users_online).collect()
    }

    /// No second has two intervals of one phase, and no start was late.
    fn is_sound(&self) {
        let mut places: Vec<_> = self.intervals.iter().map(|one| (one.second, one.phase)).collect();
        let all = places.len();
        places.dedup();
        assert_eq!(places.len(), all);
        assert!(
            self.sum.generator.lateness.max() <= 1_000_000,
            "{:?}",
            self.sum.generator.lateness.max()
        );
    }
}

#[test]
fn users_are_added_and_removed_in_steps() {
    let by = |size| Coming::Steps { size, every: 5 * S };
    let outcome = run_members(
        vec![phase(coming(100, by(40)), None), phase(coming(0, by(90)), Some(7 * S))],
        &[],
    );
    outcome.is_sound();
    assert_eq!(
        outcome.online(&[0, 4, 5, 9, 10, 14, 15, 19, 20]),
        [40, 40, 80, 80, 100, 100, 10, 10, 0]
    );
    assert_eq!(outcome.ended(0), Time::from_secs(15));
}

#[test]
fn a_share_of_users_disconnects_and_returns() {
    let ways = vec![CloseMode::Fin, CloseMode::Reset, CloseMode::Vanish];
    let churn = Churn { amount: Amount::Share { share: 0.25, every: 2 * S }, ways };
    let hold = Phase { churn: Some(churn), ..phase(Drive::Hold, Some(9 * S)) };
    let outcome = run_members(vec![users(100, S), hold], &[]);
    outcome.is_sound();
    let connections = &outcome.sum.connections.counts;
    let ended = (connections.reset_by_us, connections.vanished, connections.closed_by_us);
    assert_eq!((connections.opened, ended), (200, (33, 33, 134)));
    assert_eq!(outcome.present(&[2, 4, 6, 8, 9]), [100; 5]);
    assert_eq!(outcome.sum.population.started, 100);
}

#[test]
fn paused_growth_resumes_and_no_start_is_late() {
    let words: [Word; 4] = [
        (Time(2_005_000_000), |control, at| control.hold(Holder::Limit, at)),
        (Time(5_005_000_000), |control, at| control.release(Holder::Limit, at)),
        // Too short to be noticed between two probes.
        (Time(7_001_000_000), |control, at| control.hold(Holder::Limit, at)),
        (Time(7_002_000_000), |control, at| control.release(Holder::Limit, at)),
    ];
    let phases =
        vec![phase(coming(100, Coming::Rate(10.0)), None), phase(Drive::Hold, Some(2 * S))];
    let outcome = run_members(phases, &words);
    outcome.is_sound();
    let held = 3 * S + MS;
    assert_eq!(outcome.ended(0), Time::from_secs(10) + held);
    assert_eq!(outcome.present(&[1, 2, 3, 4]), [20, 23, 23, 23]);
    assert_eq!(outcome.online(&[6, 14]), [40, 100]);
    assert_eq!(outcome.sum.population.started, 100);
}

#[test]
fn abandoned_growth_never_resumes() {
    let words: [Word; 2] = [
        (Time(2_005_000_000), |control, at| control.hold(Holder::Limit, at)),
        (Time(3_500_000_000), |control, _| control.give_up_growth()),
    ];
    let phases = vec![
        phase(coming(100, Coming::Rate(10.0)), None),
        phase(Drive::Hold, Some(3 * S)),
        phase(coming(200, Coming::Rate(10.0)), None),
        phase(Drive::Hold, Some(S)),
        phase(coming(1, Coming::Rate(10.0)), None),
    ];
    let outcome = run_members(phases, &words);
    outcome.is_sound();
    assert_eq!(outcome.sum.population.started, 23);
    let ended = outcome.ended(0);
    assert!(ended >= Time(3_500_000_000) && ended < Time(3_601_000_000), "{ended}");
    assert_eq!(outcome.ended(1) - ended, 3 * S);
    assert_eq!(outcome.ended(2), outcome.ended(1));
    assert_eq!(outcome.ended(4) - outcome.ended(3), 2 * S + 200 * MS);
}

fn amend(control: &Control, said: Time, change: Change) {
    control.amend(0, Amendment { at: said + GROWTH_AHEAD, change: change.into(), users_max: 300 });
}

#[test]
fn an_amendment_takes_effect_at_the_announced_time() {
    let words: [Word; 5] = [
        (Time(2_750_000_000), |control, at| amend(control, at, Change::Times(1.1))),
        (Time(3_750_000_000), |control, at| amend(control, at, Change::Users(900))),
        (Time(5_750_000_000), |control, at| amend(control, at, Change::Users(40))),
        // Many key presses between two probes.
        (Time(5_750_000_000), |control, at| {
            (0..200).for_each(|_| amend(control, at, Change::Times(1.1)));
            (0..200).for_each(|_| amend(control, at, Change::Users(41)));
        }),
        (Time(7_750_000_000), |control, at| amend(control, at, Change::EndPhase)),
    ];
    let phases = vec![
        phase(coming(100, Coming::Rate(200.0)), None),
        phase(Drive::Hold, Some(60 * S)),
        phase(coming(0, Coming::AtOnce), Some(S)),
    ];
    let outcome = run_members(phases, &words);
    outcome.is_sound();
    assert_eq!(outcome.present(&[1, 2, 3, 4, 6, 7, 8]), [100, 100, 110, 300, 100, 41, 0]);
    assert_eq!((outcome.ended(1), outcome.ended(2)), (Time::from_secs(8), Time::from_secs(9)));
    assert_eq!(outcome.sum.population.started, 300);
}

#[test]
fn starts_that_were_due_run_or_are_counted_when_a_rate_is_amended() {
    let words: [Word; 3] = [
        (Time(1_750_000_000), |control, at| amend(control, at, Change::Rate(200.0))),
        (Time(3_750_000_000), |control, at| amend(control, at, Change::Times(0.5))),
        (Time(4_750_000_000), |control, at| amend(control, at, Change::EndPhase)),
    ];
    // Each of 10 users is busy for 100 ms: 100 per second run, the others wait.
    let program = program(vec![iterations(10, Some(100.0), None), phase(Drive::Hold, Some(S))]);
    let program = Program {
        loads: vec![Load::alone(
            program.loads[0]
                .phases
                .iter()
                .map(|it| Phase { time: it.time.or(Some(60 * S)), ..it.clone() })
                .collect(),
        )],
        ..program
    };
    let outcome = run_told(program, Share::WHOLE, 100 * MS, &words);
    let population = &outcome.sum.population;
    let due = 200 + 400 + 100;
    let begun = due - population.unmet;
    assert!(population.unmet > 150 && begun > 400, "{population:?}");
    assert_eq!(outcome.ended(0), Time::from_secs(5));
}

#[test]
fn counted_work_waits_for_users_while_growth_is_paused() {
    let words: [Word; 2] = [
        (Time(500_000_000), |control, at| control.hold(Holder::Limit, at)),
        (Time::from_secs(3), |control, at| control.release(Holder::Limit, at)),
    ];
    let outcome = run_told(
        program(vec![phase(Drive::Hold, Some(S)), iterations(5, None, Some(20))]),
        Share::WHOLE,
        MS,
        &words,
    );
    assert_eq!(outcome.sum.total().ok, 20);
    assert!(outcome.end >= Time::from_secs(3) + GROWTH_AHEAD, "{}", outcome.end);
    assert!(outcome.end < Time::from_secs(4), "{}", outcome.end);
}
