//! Loops, choices, conditions, values, leaving and stopping.

use super::*;
use crate::recorder::logs::LOGS_PER_SECOND_MAX;
use throng_metrics::StopBy;
use throng_program::Way;

fn when(condition: &str, then: Block) -> Statement {
    Statement::If { condition: Arc::new(expression(condition)), then, otherwise: Vec::new() }
}

fn played(program: Program) -> Outcome {
    let outcome = run(program, 1, |world| world, ok_server());
    outcome.is_sound(1);
    outcome
}

#[test]
fn loops_can_be_nested() {
    let deep = (0..10).fold(set(2, "a + 1"), |inner, _| repeat(2, vec![inner]));
    let outcome = played(one(vec![set(2, "0"), deep, log("a")], 2));
    assert_eq!(outcome.lines(), ["1024", "1024"]);
}

fn each(values: &str, steps: Block) -> Statement {
    Statement::ForEach { values: Arc::new(expression(values)), list: 0, item: 1, steps }
}

#[test]
fn a_loop_with_zero_passes_is_skipped() {
    let code = vec![repeat(0, vec![log("1")]), each("[]", vec![log("2")]), log("3")];
    assert_eq!(played(one(code, 1)).lines(), ["3"]);
}

#[test]
fn a_loop_can_run_for_a_duration() {
    let during = Statement::During { time: S, steps: vec![pause(100 * MS), set(2, "a + 1")] };
    let code = vec![set(2, "0"), during, log("a")];
    assert_eq!(played(one(code, 3)).lines(), ["10", "10", "10"]);
}

#[test]
fn a_loop_visits_every_item() {
    let code = |values: &str| vec![each(values, vec![log("item")]), step(2, Failing::default())];
    let outcome = played(one(code(r#"["x", 2, [3]]"#), 1));
    assert_eq!(outcome.lines(), ["x", "2", "[3]"]);
    assert_eq!(outcome.step(2).ok, 1);
    // A value that is not a list fails the next step, and ends the iteration.
    let outcome = played(one(code("iteration"), 5));
    assert_eq!(outcome.ended(EXPRESSIONS), (0, vec![(Cause::ExpressionFailed, 5)]));
    assert_eq!(outcome.step(2).begun, 0, "the step beside it has nothing to do with it");
    let example = &outcome.examples[0];
    assert_eq!(example.detail, "`for_each` requires a list, but this is a whole number");
    let population = &outcome.sum.population;
    assert_eq!((population.iterations_started, population.iterations_finished), (5, 0));
}

#[test]
fn conditions_select_branches() {
    let condition = Arc::new(expression("a < 5"));
    let code = vec![
        set(2, "0"),
        Statement::While { condition, steps: vec![set(2, "a + 1")] },
        when("iteration == 2", vec![log("a")]),
        step(0, Failing::default()),
    ];
    let outcome = played(one(code, 3));
    assert_eq!((outcome.lines(), outcome.step(0).ok), (vec!["5"], 3));
    let outcome = played(one(vec![when("1", vec![step(1, Failing::default())])], 2));
    assert_eq!(outcome.ended(EXPRESSIONS), (0, vec![(Cause::ExpressionFailed, 2)]));
    assert_eq!(outcome.step(1).begun, 0);
}

#[test]
fn choices_follow_their_weights() {
    let way = |(weight, row)| Way { weight, steps: vec![step(row, Failing::default())] };
    let ways = [(1, 0), (2, 1), (7, 2)].map(way);
    let outcome = played(one(vec![Statement::Choose(ways.into())], 4000));
    let share = |index| outcome.step(index).ok as f64 / 4000.0;
    assert_eq!(outcome.sum.total().ok, 4000);
    for (index, want) in [(0, 0.1), (1, 0.2), (2, 0.7)] {
        assert!((share(index) - want).abs() < 0.03, "{index}: {}", share(index));
    }
}

#[test]
fn think_times_may_come_from_data() {
    let think = |text: &str| Statement::Think(Pause::Text(Arc::new(valued(text))));
    let code = vec![think("'250ms'"), think("0.5"), think("1")];
    let outcome = played(one(code, 2));
    assert_eq!(outcome.end.second(), 3, "{}", outcome.end);
    let outcome = played(one(vec![think("'soon'"), step(0, Failing::default())], 1));
    assert_eq!(outcome.examples[0].cause, Cause::ExpressionFailed);
}

#[test]
fn next_and_leave_are_not_failures() {
    let first = when("iteration == 1", vec![Statement::Next]);
    let outcome = played(one(vec![first, step(0, Failing::default())], 3));
    assert_eq!((outcome.step(0).ok, outcome.sum.population.iterations_finished), (2, 3));
    // All users leave; the rest of the work is dropped, and the phase is over.
    let mut program = one(vec![step(0, Failing::default()), Statement::Leave], 100);
    program.loads[0].phases[0] = iterations(5, 100);
    program.sessions[0].after = vec![step(1, Failing::default())];
    let outcome = played(program);
    assert_eq!((outcome.step(0).ok, outcome.step(1).ok), (5, 5), "who leaves says goodbye");
    assert_eq!(outcome.sum.population.iterations_finished, 5);
}

#[test]
fn a_user_can_stop_the_whole_run() {
    let stop = Statement::Stop(Arc::new(Text::literal("the shop is\nsold out")));
    let code = vec![pause(S), when("user.id == 3", vec![stop]), pause(MS)];
    let drive = Drive::Users(Users { to: 20, coming: Coming::AtOnce });
    let program = program(Scheme::Http, vec![session(code, 0)], HTTP, phase(drive, Some(3600 * S)));
    for shards in [1, 2] {
        let play = Play { shards, ..Play::new(program.clone(), 4) };
        let outcome = play.run(|world| world, ok_server());
        outcome.is_sound(4);
        assert!(outcome.end < Time::from_secs(1) + 200 * MS, "{}", outcome.end);
        let stopped = outcome.stopped.expect("there is a reason");
        assert_eq!(stopped.reason, "the shop is sold out");
        assert_eq!((stopped.by, stopped.at), (StopBy::Rule, Time::from_secs(1)));
    }
}

#[test]
fn log_lines_are_limited() {
    let code = vec![log("user.id"), pause(MS)];
    let outcome = played(one(code, 3000));
    let per_second = LOGS_PER_SECOND_MAX as usize;
    let said = outcome.logs.iter().filter(|line| line.user.is_some()).count();
    assert!((3 * per_second..=4 * per_second).contains(&said), "{said}");
    let left_out: u64 = outcome
        .logs
        .iter()
        .filter(|line| line.user.is_none())
        .map(|line| line.text.split(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(said as u64 + left_out, 3000);
}

#[test]
fn a_large_scenario_does_not_enlarge_its_users() {
    let steps = |count: usize| {
        let steps = vec![step(0, Failing::default()); count];
        one(vec![repeat(1, vec![repeat(1, steps)])], 1)
    };
    let outcome = played(steps(100));
    assert_eq!(outcome.sum.total().ok, 100);
    // A user's memory has the size of its session's slots and registers, and is not allocated while
    // it keeps nothing.
    for count in [1, 100] {
        let memory = Memory::new(&Prepared::new(steps(count).into(), &[Vec::new()]), 0);
        assert_eq!((memory.registers.len(), memory.values().len()), (2, 4));
    }
}
