//! The verbs that need no connection: loops, choices, pauses, values, logs.

use std::time::Duration;

use throng_base::units::parse_duration;
use throng_base::{Random, Said, StepId, Time};
use throng_expression::{Expression, Value};
use throng_metrics::{Cause, StopBy};
use throng_program::{Pause, Statement, Text, tallied};

use crate::failure::{Finding, shown};
use crate::prepared::code::{Branch, Instruction};
use crate::prepared::weighted;
use crate::scope::scope;
use crate::trace::{SHOWN_BYTES_MAX, What};
use crate::user::State;
use crate::user::flow::{FINISHED, Session};
use crate::user::task::{Active, Doing, GONE, Task};
use crate::user::transaction::End;
use crate::user::verb::rendezvous;
use crate::user::watched::as_text;

/// Runs an instruction that needs no connection.
pub(super) fn control(active: &mut Active<'_>, instruction: &Instruction) {
    let done = match instruction {
        Instruction::Do(Statement::Think(pause)) => think(active, pause),
        Instruction::Unless { condition, to } => unless(active, condition, *to),
        Instruction::Choose(ways) => return choose(active, ways),
        Instruction::Do(Statement::Set { slot, value }) => set(active, *slot, value),
        Instruction::Do(Statement::Tally { step, value, scale }) => {
            tally(active, *step, value, *scale)
        }
        Instruction::Do(Statement::Log(text)) => log(active, text),
        Instruction::Do(Statement::Stop(reason)) => stop_run(active, reason),
        Instruction::Do(Statement::Rendezvous(rendezvous)) => {
            return rendezvous::begin(active, rendezvous);
        }
        Instruction::TransactionBegin { step } => {
            let due = active.task.due;
            let transactions = active.task.transactions.get_or_insert_default();
            transactions.begin(*step, due, active.shard);
            active.task.pc += 1;
            return;
        }
        Instruction::TransactionEnd { .. } => {
            active.task.pc += 1;
            return active.task.transactions.iter_mut().for_each(|one| one.end(active.user));
        }
        Instruction::Do(Statement::Next) => return next_iteration(active),
        Instruction::Do(Statement::Leave) => return leave_on_purpose(active),
        other => turn(active, other),
    };
    if let Err(finding) = done {
        active.expression_failed(finding);
    }
}

/// A think time starts when it was due, so that delays do not add up.
fn think(active: &mut Active<'_>, pause: &Pause) -> Result<(), Finding> {
    let time = match pause {
        Pause::Text(text) => {
            let value = scope!(active.user, active.shard).value_of(text)?;
            time_of(&value).map_err(|detail| (Cause::ExpressionFailed, detail))?
        }
        drawn => drawn_time(drawn, &mut active.user.random),
    };
    let until = active.task.due + time;
    if active.task.is_scheduled && until < active.user.now && !time.is_zero() {
        catch_up(active, time);
        return Ok(());
    }
    active.wait_for(Doing::Pause, until);
    Ok(())
}

/// The iteration started late, by more than the pause that is due first: the next step is late as
/// well, and its response time includes that.
pub(super) fn catch_up(active: &mut Active<'_>, pause: Duration) {
    let until = active.task.due + pause;
    active.paused_for(pause);
    active.next_step();
    (active.task.due, active.task.is_scheduled) = (until, true);
}

/// The verb `stop`: this user leaves immediately, the others when they are notified.
fn stop_run(active: &mut Active<'_>, reason: &Text) -> Result<(), Finding> {
    let mut said = Vec::new();
    scope!(active.user, active.shard).render(reason, &mut said)?;
    active.shard.stop_because(active.user.now, Said::of_others(shown(&said)), StopBy::Rule);
    leave_on_purpose(active);
    Ok(())
}

/// The verb `parallel`: the user starts the branches when this task waits for them.
pub(super) fn parallel(active: &mut Active<'_>, branches: &[u32]) {
    let (session, now) = (&*active.task, active.user.now);
    let agenda = active.user.agenda.get_or_insert_default();
    agenda.tasks.extend(branches.iter().map(|begins| Task::branch(*begins, session, now)));
    match branches {
        [] => active.next_step(),
        _ => active.wait_for(Doing::Join, Time::NEVER),
    }
}

/// The verb `next`.
fn next_iteration(active: &mut Active<'_>) {
    match active.user.running {
        _ if active.task.is_body() => {
            active.branch_leaves();
            active.task.return_from_body();
        }
        true => Session::new(active).end_iteration(FINISHED),
        false if active.user.leaving => active.go_to(GONE),
        false => active.go_to(active.of_session().begin),
    }
}

/// The verb `leave`.
fn leave_on_purpose(active: &mut Active<'_>) {
    if active.task.is_body() {
        return active.leave_from_body();
    }
    active.task.leave_transactions(End::Whole, active.user);
    match active.user.leaving {
        true => active.go_to(GONE),
        false => {
            let mut session = Session::new(active);
            session.iteration_over(FINISHED);
            session.leave_done();
        }
    }
}

/// Loops and jumps. They take no time: the next instruction is due when they were.
fn turn(active: &mut Active<'_>, instruction: &Instruction) -> Result<(), Finding> {
    match instruction {
        Instruction::RepeatBegin { register, low, high, end } => {
            let times =
                low + active.user.random.below(u64::from(high.saturating_sub(*low)) + 1) as u32;
            *loop_register(active.user, *register) = u64::from(times);
            active.task.pc = if times == 0 { end + 1 } else { active.task.pc + 1 };
        }
        Instruction::RepeatEnd { register, begin } => {
            let left = loop_register(active.user, *register);
            *left = left.saturating_sub(1);
            active.task.pc = if *left > 0 { begin + 1 } else { active.task.pc + 1 };
        }
        Instruction::DuringBegin { register, time } => {
            *loop_register(active.user, *register) = (active.user.now + *time).as_nanos();
            active.task.pc += 1;
        }
        Instruction::DuringEnd { register, begin } => {
            let goes_on = active.user.now.as_nanos() < *loop_register(active.user, *register);
            active.task.pc = if goes_on { begin + 1 } else { active.task.pc + 1 };
        }
        Instruction::ForEachBegin { register, values, list, item, end } => {
            let found = scope!(active.user, active.shard).evaluate(values)?;
            if found.as_list().is_none() {
                let what = found.type_name();
                let detail = say!("`for_each` requires a list, but this is {}", what);
                return Err((Cause::ExpressionFailed, detail));
            }
            *loop_register(active.user, *register) = 0;
            keep(active, *list, found);
            active.task.pc =
                if take_item(active, *list, 0, *item) { active.task.pc + 1 } else { end + 1 };
        }
        Instruction::ForEachEnd { register, list, item, begin } => {
            let index = loop_register(active.user, *register);
            *index += 1;
            let index = *index;
            active.task.pc =
                if take_item(active, *list, index, *item) { begin + 1 } else { active.task.pc + 1 };
        }
        Instruction::Jump(to) => active.task.pc = *to,
        _ => active.task.pc += 1,
    }
    Ok(())
}

/// Puts an item of the list into its slot. False at the end of the list, which is then dropped,
/// because it may be large.
fn take_item(active: &mut Active<'_>, list: u16, index: u64, item: u16) -> bool {
    let values = active.user.memory().values();
    let items = values.get(usize::from(list)).and_then(Value::as_list).unwrap_or_default();
    let next = usize::try_from(index).ok().and_then(|index| items.get(index)).cloned();
    let there = next.is_some();
    if !there {
        keep(active, list, Value::Null);
    }
    keep(active, item, next.unwrap_or_default());
    there
}

fn loop_register(user: &mut State, register: u16) -> &mut u64 {
    &mut user.memory().registers[usize::from(register)]
}

fn keep(active: &mut Active<'_>, slot: u16, value: Value) {
    let shard = active.shard;
    active.user.memory().save(slot, value, &shard.prepared);
    active.user.follow_audiences();
}

fn unless(active: &mut Active<'_>, condition: &Expression, to: u32) -> Result<(), Finding> {
    let found = scope!(active.user, active.shard).evaluate(condition)?;
    let Some(holds) = found.as_bool() else {
        let what = found.type_name();
        let detail = say!("a condition must be true or false, but this is {}", what);
        return Err((Cause::ExpressionFailed, detail));
    };
    active.user.tell(|| What::Condition { holds });
    active.task.pc = if holds { active.task.pc + 1 } else { to };
    Ok(())
}

fn choose(active: &mut Active<'_>, ways: &[Branch]) {
    let sum = ways.iter().map(|way| u64::from(way.weight)).sum();
    let way = weighted(ways.iter().map(|way| way.weight), sum, &mut active.user.random);
    active.task.pc = ways.get(way).map_or(active.task.pc + 1, |way| way.to);
}

fn set(active: &mut Active<'_>, slot: u16, text: &Text) -> Result<(), Finding> {
    let value = scope!(active.user, active.shard).value_of(text)?;
    let name = || active.user.name_of(slot);
    active.user.tell(|| What::Set { name: name(), value: as_text(&value) });
    keep(active, slot, value);
    active.task.pc += 1;
    Ok(())
}

/// The verbs `count` and `measure`.
fn tally(
    active: &mut Active<'_>,
    step: StepId,
    text: &Text,
    scale: Option<f64>,
) -> Result<(), Finding> {
    let value = scope!(active.user, active.shard).value_of(text)?;
    let number = tallied(&value, scale).map_err(|why| (Cause::ExpressionFailed, why))?;
    let mut recorder = active.shard.recorder.borrow_mut();
    match scale {
        Some(_) => recorder.measured(step, number),
        None => recorder.counted(step, number),
    }
    drop(recorder);
    active.task.pc += 1;
    Ok(())
}

fn log(active: &mut Active<'_>, text: &Text) -> Result<(), Finding> {
    let mut line = Vec::new();
    scope!(active.user, active.shard).render(text, &mut line)?;
    active.shard.log(active.user.now, active.user.id, &line);
    let shown = || String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES_MAX)]);
    active.user.tell(|| What::Log(shown().into_owned()));
    active.task.pc += 1;
    Ok(())
}
/// A random time; negative ones become zero.
fn drawn_time(pause: &Pause, random: &mut Random) -> Duration {
    let seconds = match pause {
        Pause::Uniform { low, high } => random.uniform(low.as_secs_f64(), high.as_secs_f64()),
        Pause::Exponential { mean, max } => {
            random.exponential(mean.as_secs_f64()).min(max.as_secs_f64())
        }
        Pause::Normal { mean, deviation } => {
            mean.as_secs_f64() + deviation.as_secs_f64() * normal(random)
        }
        Pause::Text(_) => 0.0,
    };
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default()
}

/// A sample of the standard normal distribution (G. E. P. Box, M. E. Muller: "A Note on the
/// Generation of Random Normal Deviates", 1958).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

/// A hundred years; anything longer is an error.
const THINK_SECONDS_MAX: f64 = 100.0 * 365.25 * 86_400.0;

/// A duration with a unit, or a number of seconds.
fn time_of(value: &Value) -> Result<Duration, Said> {
    let text = value.to_text();
    let seconds = value.as_f64().or_else(|| text.trim().parse().ok());
    let Some(seconds) = seconds else {
        let shown = shown(text.as_bytes());
        return parse_duration(&text)
            .map_err(|error| say!("`{shown}` is not a valid think time: {}", error.message));
    };
    if !seconds.is_finite() || seconds > THINK_SECONDS_MAX {
        return Err(say!("`{text}` seconds is not a valid think time"));
    }
    Ok(Duration::from_secs_f64(seconds.max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_with_units() {
        for (value, want) in [
            (Value::Int(2), Some(2000)),
            (Value::Float(0.25), Some(250)),
            (Value::Int(-3), Some(0)),
            (Value::Text("1.5".into()), Some(1500)),
            (Value::Text(" 250ms ".into()), Some(250)),
            (Value::Text("1m30s".into()), Some(90_000)),
            (Value::Text("soon".into()), None),
            (Value::Text("".into()), None),
            (Value::Text("inf".into()), None),
            (Value::Float(1e300), None),
            (Value::Null, None),
        ] {
            let want = want.map(Duration::from_millis);
            assert_eq!(time_of(&value).ok(), want, "{value:?}");
        }
    }

    #[test]
    fn random_times_follow_their_distribution() {
        let mut random = Random::new(5);
        let ms = Duration::from_millis;
        let mut mean = |pause: Pause| {
            let sum: Duration = (0..20_000).map(|_| drawn_time(&pause, &mut random)).sum();
            sum.as_secs_f64() / 20.0
        };
        let exponential = mean(Pause::Exponential { mean: ms(100), max: ms(10_000) });
        assert!((97.0..103.0).contains(&exponential), "{exponential}");
        let cut = mean(Pause::Exponential { mean: ms(100), max: ms(50) });
        assert!((36.0..43.0).contains(&cut), "{cut}");
        let normal = mean(Pause::Normal { mean: ms(100), deviation: ms(20) });
        assert!((99.0..101.0).contains(&normal), "{normal}");
        let below = mean(Pause::Normal { mean: ms(0), deviation: ms(100) });
        assert!((37.0..43.0).contains(&below), "half of it is none: {below}");
        let uniform = mean(Pause::Uniform { low: ms(50), high: ms(150) });
        assert!((99.0..101.0).contains(&uniform), "{uniform}");
    }
}
