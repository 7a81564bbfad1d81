//! Loops, choices, conditions, values, leaving and stopping.

use super::*;
use crate::control::StoppedBy;
use crate::logs::LOGS_PER_SECOND_MAX;
use throng_program::Way;

fn repeat(register: u16, times: u32, end: u32) -> Instruction {
    Instruction::RepeatBegin { register, low: times, high: times, end }
}

fn played(program: Program) -> Outcome {
    let outcome = run(program, 1, |world| world, ok_server());
    outcome.is_sound(1);
    outcome
}

#[test]
fn loops_lie_in_each_other() {
    const DEEP: u32 = 10;
    let mut code = vec![set(2, "0")];
    for level in 0..DEEP {
        code.push(repeat(level as u16, 2, 2 * DEEP + 1 - level));
    }
    code.push(set(2, "a + 1"));
    for level in (0..DEEP).rev() {
        code.push(Instruction::RepeatEnd { register: level as u16, begin: level + 1 });
    }
    code.push(log("a"));
    let outcome = played(one(code, 2));
    assert_eq!(outcome.lines(), ["1024", "1024"]);
}

#[test]
fn a_loop_of_none_is_passed_over() {
    let code = vec![
        repeat(0, 0, 2),
        log("1"),
        Instruction::RepeatEnd { register: 0, begin: 0 },
        Instruction::ForEachBegin {
            register: 0,
            values: Box::new(expression("[]")),
            list: 0,
            item: 1,
            end: 5,
        },
        log("2"),
        Instruction::ForEachEnd { register: 0, list: 0, item: 1, begin: 3 },
        log("3"),
    ];
    assert_eq!(played(one(code, 1)).lines(), ["3"]);
}

#[test]
fn a_loop_goes_on_for_a_time() {
    let code = vec![
        set(2, "0"),
        Instruction::DuringBegin { register: 3, time: S },
        pause(100 * MS),
        set(2, "a + 1"),
        Instruction::DuringEnd { register: 3, begin: 1 },
        log("a"),
    ];
    assert_eq!(played(one(code, 3)).lines(), ["10", "10", "10"]);
}

#[test]
fn all_items_have_their_turn() {
    let each = |values: &str| {
        vec![
            Instruction::ForEachBegin {
                register: 1,
                values: Box::new(expression(values)),
                list: 0,
                item: 1,
                end: 2,
            },
            log("item"),
            Instruction::ForEachEnd { register: 1, list: 0, item: 1, begin: 0 },
            step(2, Failing::default()),
        ]
    };
    let outcome = played(one(each(r#"["x", 2, [3]]"#), 1));
    assert_eq!(outcome.lines(), ["x", "2", "[3]"]);
    assert_eq!(outcome.step(2).ok, 1);
    // What is no list fails the step that comes next, and ends the iteration.
    let outcome = played(one(each("iteration"), 5));
    assert_eq!(outcome.ended(EXPRESSIONS), (0, vec![(Cause::ExpressionFailed, 5)]));
    assert_eq!(outcome.step(2).begun, 0, "the step beside it has nothing to do with it");
    let example = &outcome.examples[0];
    assert_eq!(example.detail, "`for_each` needs a list, and this is a whole number");
    let population = &outcome.sum.population;
    assert_eq!((population.iterations_started, population.iterations_finished), (5, 0));
}

#[test]
fn conditions_decide() {
    let code = vec![
        set(2, "0"),
        Instruction::Unless { condition: Box::new(expression("a < 5")), to: 4 },
        set(2, "a + 1"),
        Instruction::Jump(1),
        Instruction::Unless { condition: Box::new(expression("iteration == 2")), to: 6 },
        log("a"),
        step(0, Failing::default()),
    ];
    let outcome = played(one(code, 3));
    assert_eq!((outcome.lines(), outcome.step(0).ok), (vec!["5"], 3));
    let code = vec![
        Instruction::Unless { condition: Box::new(expression("1")), to: 0 },
        step(1, Failing::default()),
    ];
    let outcome = played(one(code, 2));
    assert_eq!(outcome.ended(EXPRESSIONS), (0, vec![(Cause::ExpressionFailed, 2)]));
    assert_eq!(outcome.step(1).begun, 0);
}

#[test]
fn ways_are_drawn_by_their_weights() {
    let ways = [(1, 1), (2, 3), (7, 5)].map(|(weight, to)| Way { weight, to });
    let code = vec![
        Instruction::Choose(ways.into()),
        step(0, Failing::default()),
        Instruction::Jump(6),
        step(1, Failing::default()),
        Instruction::Jump(6),
        step(2, Failing::default()),
    ];
    let outcome = played(one(code, 4000));
    let share = |index| outcome.step(index).ok as f64 / 4000.0;
    assert_eq!(outcome.sum.total().ok, 4000);
    for (index, want) in [(0, 0.1), (1, 0.2), (2, 0.7)] {
        assert!((share(index) - want).abs() < 0.03, "{index}: {}", share(index));
    }
}

#[test]
fn think_times_may_come_from_data() {
    let think = |text: &str| Instruction::Think(Pause::Text(Box::new(valued(text))));
    let code = vec![think("'250ms'"), think("0.5"), think("1")];
    let outcome = played(one(code, 2));
    assert_eq!(outcome.end.second(), 3, "{}", outcome.end);
    let outcome = played(one(vec![think("'soon'"), step(0, Failing::default())], 1));
    assert_eq!(outcome.examples[0].cause, Cause::ExpressionFailed);
}

#[test]
fn next_and_leave_are_ends_that_the_scenario_wants() {
    let first = Instruction::Unless { condition: Box::new(expression("iteration == 1")), to: 2 };
    let code = vec![first.clone(), Instruction::Next, step(0, Failing::default())];
    let outcome = played(one(code, 3));
    assert_eq!((outcome.step(0).ok, outcome.sum.population.iterations_finished), (2, 3));
    // Everybody leaves; what is left of the work is nobody's, and the phase is over.
    let mut program = one(vec![step(0, Failing::default()), Instruction::Leave], 100);
    program.load.phases[0] = iterations(5, 100);
    let code = [step(0, Failing::default()), Instruction::Leave, step(1, Failing::default())];
    (program.sessions[0].end, program.sessions[0].last) = (2, code.len() as u32);
    program.sessions[0].code = code.into();
    let outcome = played(program);
    assert_eq!((outcome.step(0).ok, outcome.step(1).ok), (5, 5), "who leaves says goodbye");
    assert_eq!(outcome.sum.population.iterations_finished, 5);
}

#[test]
fn a_user_may_stop_the_run_for_all() {
    let third = Instruction::Unless { condition: Box::new(expression("user.id == 3")), to: 3 };
    let reason = Text::literal("the shop is\nsold out");
    let code = vec![pause(S), third, Instruction::Stop(Box::new(reason)), pause(MS)];
    let drive = Drive::Users(Users { to: 20, coming: Coming::AtOnce });
    let program = program(Scheme::Http, vec![session(code, 0)], HTTP, phase(drive, Some(3600 * S)));
    for shards in [1, 2] {
        let play = Play { shards, ..Play::new(program.clone(), 4) };
        let outcome = play.run(|world| world, ok_server());
        outcome.is_sound(4);
        assert!(outcome.end < Time::from_secs(1) + 200 * MS, "{}", outcome.end);
        let stopped = outcome.stopped.expect("there is a reason");
        assert_eq!(stopped.reason, "the shop is sold out");
        assert_eq!((stopped.by, stopped.at), (StoppedBy::Rule, Time::from_secs(1)));
    }
}

#[test]
fn a_flood_of_words_is_bounded() {
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
fn a_user_of_a_large_scenario_is_no_bigger() {
    let steps = |count: usize| {
        let code = (0..count).map(|_| step(0, Failing::default())).collect();
        one(code, 1)
    };
    let outcome = played(steps(100));
    assert_eq!(outcome.sum.total().ok, 100);
    // What a user keeps is as large as its session has slots and registers, and not there at all
    // as long as it keeps nothing.
    for count in [1, 100] {
        let mut program = steps(count);
        program.sessions[0].registers = 2;
        let memory = Memory::new(&program.sessions[0], &program);
        assert_eq!((memory.registers.len(), memory.values.len()), (2, 4));
    }
}
