//! Rendezvous in simulated worlds of one and two shards.

use super::*;
use throng_program::Rendezvous;

const KINDS: &[StepKind] = &[StepKind::Http, StepKind::Rendezvous, StepKind::Transaction];

fn meet(users: u64, timeout: Duration) -> Statement {
    Statement::Rendezvous(Arc::new(Rendezvous { step: StepId(1), place: 0, users, timeout }))
}

fn world(code: Block, phase: Phase) -> Program {
    let program = program(Scheme::Http, vec![session(code, 0)], KINDS, phase);
    Program { rendezvous: 1, ..program }
}

fn play(program: Program, shards: u64) -> Outcome {
    let play = Play { shards, traced: true, ..Play::new(program, 1) };
    let outcome = play.run(|world| world, ok_server());
    outcome.is_sound(1);
    outcome
}

/// When requests started, in nanoseconds.
fn begins(outcome: &Outcome) -> Vec<u64> {
    let begins = outcome.traces.iter().filter_map(|trace| match trace.what {
        What::StepBegins { verb: "http", .. } => Some(trace.at.as_nanos()),
        _ => None,
    });
    begins.collect()
}

#[test]
fn users_of_all_shards_are_released_together() {
    for shards in [1, 2, 3] {
        // They arrive within two seconds, and meet once.
        let come = Statement::Think(Pause::Uniform { low: Duration::ZERO, high: 2 * S });
        let code = vec![come, meet(60, 30 * S), step(0, Failing::default()), pause(3600 * S)];
        let drive = Drive::Users(Users { to: 60, coming: Coming::AtOnce });
        let outcome = play(world(code, phase(drive, Some(5 * S))), shards);
        assert_eq!(outcome.ended(1), (60, vec![]), "{shards} shards");
        let begins = begins(&outcome);
        assert_eq!(begins.len(), 60);
        assert!(begins.iter().all(|begin| *begin == begins[0]), "{shards} shards: {begins:?}");
        let waited = outcome.step(1).latency;
        assert!(waited.max() > 1_500_000_000 && waited.min() >= 20_000_000, "{}", waited.max());
    }
}

#[test]
fn groups_are_released_one_after_another() {
    let code = vec![think(), meet(10, 30 * S), step(0, Failing::default())];
    for shards in [1, 2] {
        let drive = Drive::Users(Users { to: 40, coming: Coming::AtOnce });
        let outcome = play(world(code.clone(), phase(drive, Some(10 * S))), shards);
        let (ok, errors) = outcome.ended(1);
        assert!(ok > 1000 && ok % 10 == 0 && errors.is_empty(), "{ok} {errors:?}");
        let cut = outcome.sum.population.interrupted;
        // An incomplete group, and users that were about to be released.
        assert!(cut < 40, "{cut}");
    }
}

#[test]
fn a_user_that_waits_in_vain_continues_alone() {
    let code = vec![meet(11, S), step(0, Failing::default())];
    for shards in [1, 2] {
        let outcome = play(world(code.clone(), iterations(10, 30)), shards);
        let (ok, errors) = outcome.ended(1);
        assert_eq!((ok, errors), (0, vec![(Cause::RendezvousTimeout, 30)]));
        assert_eq!((outcome.step(0).ok, outcome.sum.population.iterations_finished), (30, 30));
        let waited = outcome.step(1).latency;
        assert!(waited.min() >= 1_000_000_000 && waited.max() < 1_002_000_000);
        let example = &outcome.examples[0];
        assert_eq!(example.detail, "fewer than 11 users arrived within 1.00s");
    }
}

#[test]
fn some_users_arrive_in_time_and_others_time_out() {
    // Five wait for six; in every other round, the sixth arrives before they time out.
    let late = Statement::Think(Pause::Uniform { low: Duration::ZERO, high: 3 * S });
    for shards in [1, 2] {
        let code = vec![late.clone(), meet(6, S), step(0, Failing::default())];
        let outcome = play(world(code, iterations(12, 600)), shards);
        let (ok, errors) = outcome.ended(1);
        let failed: u64 = errors.iter().map(|(_, count)| count).sum();
        assert_eq!(ok + failed, 600);
        assert!(ok > 50 && failed > 50 && ok % 6 == 0, "{ok} {failed}");
        assert_eq!(outcome.sum.population.interrupted, 0);
    }
}

#[test]
fn the_end_of_the_run_releases_all_users() {
    let drive = Drive::Users(Users { to: 9, coming: Coming::AtOnce });
    let code = vec![meet(10, 3600 * S), step(0, Failing::default())];
    for shards in [1, 2] {
        let outcome = play(world(code.clone(), phase(drive.clone(), Some(2 * S))), shards);
        assert_eq!((outcome.step(1).count, outcome.step(0).count), (0, 0));
        assert_eq!(outcome.sum.population.interrupted, 9);
        assert!(outcome.end < Time::from_secs(2) + 200 * MS, "{}", outcome.end);
    }
}

#[test]
fn a_user_that_is_told_to_leave_is_no_longer_waited_for() {
    // Half of the users leave while all wait; those that arrive later find only the rest.
    let mut program = world(
        vec![meet(8, 3600 * S), step(0, Failing::default()), pause(9 * S)],
        phase(Drive::Users(Users { to: 6, coming: Coming::AtOnce }), Some(S)),
    );
    let users = |to| phase(Drive::Users(Users { to, coming: Coming::AtOnce }), Some(S));
    program.loads[0].phases.extend([users(2), users(7), users(8)]);
    let outcome = play(program, 1);
    assert_eq!(outcome.ended(1), (8, vec![]));
    let begins = begins(&outcome);
    assert!(begins.iter().all(|begin| *begin >= 3_000_000_000), "{begins:?}");
}

#[test]
fn a_rendezvous_counts_as_a_pause() {
    let steps = vec![
        Statement::Think(Pause::Uniform { low: Duration::ZERO, high: S }),
        meet(10, 30 * S),
        step(0, Failing::default()),
    ];
    let outcome = play(world(vec![transaction(2, steps)], iterations(10, 50)), 2);
    let figures = outcome.step(2);
    assert_eq!((figures.count, figures.ok), (50, 50));
    assert!(figures.latency.max() < 2_000_000, "{}", figures.latency.max());
    assert!(figures.with_pauses.min() > 400_000_000);
}
