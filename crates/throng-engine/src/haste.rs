//! What a user does when what it waits for has come: whether it goes straight on to send, so that a
//! shard that sleeps on would hold it up, or waits anyway.

use throng_program::{Instruction, Session};

/// What follows an instruction before any other moment is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum After {
    /// A pause, or nothing.
    Waits,
    /// The end of the iteration; where the next one begins at once, it sends.
    Ends,
    /// Something is sent.
    Sends,
}

/// By instruction of the session.
pub(crate) fn of(session: &Session) -> Box<[After]> {
    let begins = follows(session, session.begin);
    let after = |pc: usize| match session.code[pc] {
        Instruction::Connect(_)
        | Instruction::Http(_)
        | Instruction::Call(_)
        | Instruction::Request(_)
        | Instruction::Expect(_) => match follows(session, pc as u32 + 1) {
            After::Ends if begins != After::Sends => After::Waits,
            after => after,
        },
        Instruction::Think(_) | Instruction::Stay(_) | Instruction::Rendezvous(_) => After::Waits,
        // It waits for nothing.
        _ => After::Sends,
    };
    (0..session.code.len()).map(after).collect()
}

/// What comes first from here on: of several ways, the one that holds up most.
fn follows(session: &Session, from: u32) -> After {
    let mut most = After::Waits;
    let (mut open, mut seen) = (vec![from], Vec::new());
    while let Some(pc) = open.pop() {
        if seen.contains(&pc) {
            continue;
        }
        seen.push(pc);
        if pc == session.end {
            most = most.max(After::Ends);
            continue;
        }
        match session.code.get(pc as usize) {
            Some(
                Instruction::Connect(_)
                | Instruction::Disconnect { .. }
                | Instruction::Http(_)
                | Instruction::Call(_)
                | Instruction::Request(_)
                | Instruction::Send(_)
                | Instruction::Parallel(_),
            ) => return After::Sends,
            Some(Instruction::Next | Instruction::Leave) => most = most.max(After::Ends),
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
            Some(
                Instruction::DuringBegin { .. }
                | Instruction::TransactionBegin { .. }
                | Instruction::TransactionEnd { .. }
                | Instruction::Set { .. }
                | Instruction::Log(_)
                | Instruction::Slow { .. },
            ) => open.push(pc + 1),
            Some(
                Instruction::Expect(_)
                | Instruction::Think(_)
                | Instruction::Stay(_)
                | Instruction::Rendezvous(_)
                | Instruction::Return
                | Instruction::Stop(_),
            )
            | None => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throng_base::StepId;
    use throng_expression::Expression;
    use throng_program::{Body, Failing, Http, Parting, Pause, Text, Way};

    use super::*;

    fn get() -> Instruction {
        Instruction::Http(Box::new(Http {
            step: StepId(0),
            link: 0,
            method: "GET".into(),
            path: Text::literal("/"),
            headers: Vec::new(),
            cookies: Vec::new(),
            digest: None,
            body: Body::None,
            timeout: Duration::from_secs(1),
            follow_redirects: false,
            checks: Vec::new(),
            saves: Vec::new(),
            failing: Failing::default(),
        }))
    }

    fn think() -> Instruction {
        let time = Duration::from_secs(1);
        Instruction::Think(Pause::Uniform { low: time, high: time })
    }

    /// What follows the first instruction of this code, which iterations begin with.
    fn after(code: Vec<Instruction>) -> After {
        let end = code.len() as u32;
        of(&Session { code: code.into(), end, last: end, ..Session::default() })[0]
    }

    #[test]
    fn what_comes_next_is_found_through_whatever_takes_no_time() {
        let repeat = |low, end| Instruction::RepeatBegin { register: 0, low, high: 2, end };
        let end = |begin| Instruction::RepeatEnd { register: 0, begin };
        let condition = || Box::new(Expression::constant(true.into()));
        assert_eq!(after(vec![get(), get()]), After::Sends);
        assert_eq!(after(vec![get(), think(), get()]), After::Waits);
        assert_eq!(after(vec![get()]), After::Ends);
        assert_eq!(after(vec![get(), Instruction::Next, get()]), After::Ends);
        assert_eq!(
            after(vec![get(), Instruction::Disconnect { link: 0, how: Parting::Fin }]),
            After::Sends
        );
        // Loops are gone through, or passed over, or begin again.
        assert_eq!(after(vec![get(), repeat(0, 3), think(), end(1), get()]), After::Sends);
        assert_eq!(after(vec![get(), repeat(0, 3), think(), end(1)]), After::Ends);
        assert_eq!(after(vec![get(), end(0), think()]), After::Waits);
        // Of several ways, the one that holds up most.
        let unless = |to| Instruction::Unless { condition: condition(), to };
        assert_eq!(after(vec![get(), unless(3), think(), get()]), After::Sends);
        let ways = [2, 3].map(|to| Way { weight: 1, to });
        assert_eq!(after(vec![get(), Instruction::Choose(ways.into()), think()]), After::Ends);
        // A jump to itself leads nowhere.
        assert_eq!(after(vec![get(), Instruction::Jump(1)]), After::Waits);
    }

    #[test]
    fn an_iteration_that_begins_with_a_pause_holds_nobody_up() {
        let session = |first: Instruction| Session {
            code: vec![first, get()].into(),
            end: 2,
            last: 2,
            ..Session::default()
        };
        assert_eq!(of(&session(think()))[1], After::Waits);
        assert_eq!(of(&session(get()))[1], After::Ends);
    }
}
