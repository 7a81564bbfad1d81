//! Whether a user sends something as soon as its reply arrives, so that a shard that sleeps longer
//! would delay it, or waits anyway.

use throng_program::Statement;

use crate::prepared::code::{Code, Instruction};

/// What follows an instruction before the next wait for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum After {
    /// A pause, or nothing.
    Waits,
    /// The end of the iteration; if the next one starts immediately, it sends.
    Ends,
    /// Something is sent.
    Sends,
}

/// By instruction of the session.
pub(crate) fn of(code: &Code) -> Box<[After]> {
    let begins = follows(code, code.begin);
    let after = |pc: usize| match code.all[pc] {
        Instruction::Do(ref one) if waits_for_answer(one) => match follows(code, pc as u32 + 1) {
            After::Ends if begins != After::Sends => After::Waits,
            after => after,
        },
        Instruction::Do(Statement::Think(_))
        | Instruction::Do(Statement::Stay(_))
        | Instruction::Do(Statement::Rendezvous(_)) => After::Waits,
        // It does not wait.
        _ => After::Sends,
    };
    (0..code.all.len()).map(after).collect()
}

fn waits_for_answer(one: &Statement) -> bool {
    one.opens_itself()
        || matches!(
            one,
            Statement::Connect(_)
                | Statement::Secure(_)
                | Statement::Request(_)
                | Statement::Expect(_)
        )
}

/// What happens first from here on: of several branches, the one that a delay would affect most.
fn follows(code: &Code, from: u32) -> After {
    let mut most = After::Waits;
    let (mut open, mut seen) = (vec![from], Vec::new());
    while let Some(pc) = open.pop() {
        if seen.contains(&pc) {
            continue;
        }
        seen.push(pc);
        if pc == code.end {
            most = most.max(After::Ends);
            continue;
        }
        match code.all.get(pc as usize) {
            Some(Instruction::Do(one)) if one.opens_itself() => return After::Sends,
            Some(instant) if instant.is_instant() => open.push(pc + 1),
            Some(
                Instruction::Do(Statement::Connect(_))
                | Instruction::Do(Statement::Disconnect { .. })
                | Instruction::Do(Statement::Secure(_))
                | Instruction::Do(Statement::Request(_))
                | Instruction::Do(Statement::Send(_))
                | Instruction::Parallel(_),
            ) => return After::Sends,
            Some(Instruction::Do(Statement::Next) | Instruction::Do(Statement::Leave)) => {
                most = most.max(After::Ends);
            }
            Some(Instruction::Jump(to)) => open.push(*to),
            Some(Instruction::Unless { to, .. }) => open.extend([pc + 1, *to]),
            Some(Instruction::Choose(ways)) => open.extend(ways.iter().map(|way| way.to)),
            Some(Instruction::RepeatBegin { end, .. } | Instruction::ForEachBegin { end, .. }) => {
                open.extend([pc + 1, end + 1]);
            }
            Some(
                Instruction::RepeatEnd { begin, .. }
                | Instruction::DuringEnd { begin, .. }
                | Instruction::ForEachEnd { begin, .. },
            ) => open.extend([pc + 1, begin + 1]),
            Some(Instruction::DuringBegin { .. } | Instruction::Do(Statement::Slow { .. })) => {
                open.push(pc + 1);
            }
            // A pause, or another wait for a time.
            Some(_) | None => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use throng_expression::Expression;
    use throng_program::{Block, CloseMode, Pause, Session, Way};

    use super::*;

    fn get() -> Statement {
        crate::world::get(Duration::from_secs(1), Vec::new())
    }

    fn think() -> Statement {
        let time = Duration::from_secs(1);
        Statement::Think(Pause::Uniform { low: time, high: time })
    }

    /// What follows the last request of the first step, which iterations start with.
    fn after(steps: Block) -> After {
        let first = Code::new(&Session { steps: steps[..1].to_vec(), ..Session::default() });
        let is_get = |one: &Instruction| matches!(one, Instruction::Do(Statement::Http(_)));
        let at = first.all.iter().rposition(is_get).expect("it asks");
        of(&Code::new(&Session { steps, ..Session::default() }))[at]
    }

    #[test]
    fn instantaneous_instructions_are_skipped_to_find_what_follows() {
        let repeat = |low, steps| Statement::Repeat { low, high: 2, steps };
        assert_eq!(after(vec![get(), get()]), After::Sends);
        assert_eq!(after(vec![get(), think(), get()]), After::Waits);
        assert_eq!(after(vec![get()]), After::Ends);
        assert_eq!(after(vec![get(), Statement::Next, get()]), After::Ends);
        assert_eq!(
            after(vec![get(), Statement::Disconnect { link: 0, how: CloseMode::Fin }]),
            After::Sends
        );
        // Loops are entered, or skipped, or start again.
        assert_eq!(after(vec![get(), repeat(0, vec![think()]), get()]), After::Sends);
        assert_eq!(after(vec![get(), repeat(0, vec![think()])]), After::Ends);
        assert_eq!(after(vec![get(), repeat(1, Vec::new()), think()]), After::Waits);
        assert_eq!(after(vec![repeat(1, vec![get()]), think()]), After::Sends);
        assert_eq!(after(vec![repeat(1, vec![think(), get()]), think()]), After::Waits);
        // Of several branches, the one that a delay would affect most.
        let condition = Arc::new(Expression::constant(true.into()));
        let thinks = Statement::If { condition, then: vec![think()], otherwise: Vec::new() };
        assert_eq!(after(vec![get(), thinks, get()]), After::Sends);
        let ways = [vec![think()], Vec::new()].map(|steps| Way { weight: 1, steps });
        assert_eq!(after(vec![get(), Statement::Choose(ways.into())]), After::Ends);
        // A jump to itself leads nowhere.
        assert_eq!(after(vec![get(), Statement::Forever(Vec::new())]), After::Waits);
    }

    #[test]
    fn an_iteration_that_starts_with_a_pause_is_not_delayed() {
        let code = |steps| Code::new(&Session { steps, ..Session::default() });
        assert_eq!(of(&code(vec![think(), get()]))[1], After::Waits);
        assert_eq!(of(&code(vec![get(), get()]))[1], After::Ends);
    }
}
