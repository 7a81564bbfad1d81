//! Users that start TLS on an open connection: plain text ends where TLS starts. In memory, the
//! handshake completes immediately.

use throng_program::Secure;

use super::*;
use crate::user::tests::declared::{ask as asks, iterations, packet, protocol, talkers};

const STEPS: &[StepKind] = &[StepKind::Connect, StepKind::Request, StepKind::Secure];

fn secure() -> Statement {
    let (step, link, timeout) = (StepId(2), 0, S);
    Statement::Secure(Arc::new(Secure { step, link, timeout, failing: Failing::default() }))
}

/// Connects, asks, starts TLS, asks again, and closes.
fn code(ask: impl Fn(u8) -> Statement) -> Block {
    let close = Statement::Disconnect { link: 0, how: CloseMode::Fin };
    vec![connect(), ask(1), secure(), ask(2), close]
}

/// Sends this after the reply to the first request of each connection.
fn behind(reply: impl Fn(u8) -> Vec<u8> + 'static, more: &'static [u8]) -> Server {
    Box::new(move |asked, _| {
        let Some(x) = asked.last().copied().filter(|_| asked.len() >= 8) else {
            return Vec::new();
        };
        asked.clear();
        let mut said = reply(x);
        if x == 1 {
            said.extend_from_slice(more);
        }
        vec![(MS, Deed::Say(said))]
    })
}

fn declared() -> Program {
    let protocol = protocol(false);
    let ask = |x| Statement::Request(Arc::new(asks(&protocol, x)));
    let mut program = talkers(&protocol, code(ask), |_| {}, iterations(5, 50));
    program.broken = None;
    program.steps = STEPS.iter().map(|kind| StepInfo::new(kind.word(), *kind)).collect();
    // It reconnects in each iteration.
    let session = &mut program.sessions[0];
    session.steps.splice(0..0, session.before.drain(..));
    program.expressions = None;
    program
}

fn raw() -> Program {
    let until = || Until::Delimiter(Box::from(&b"\n"[..]));
    let ask = |x: u8| ask(&format!("STARTLS{}", char::from(x)), until());
    let sessions = vec![session(code(ask), 0)];
    let mut program = program(Scheme::Tcp, sessions, STEPS, iterations(5, 50));
    program.expressions = None;
    program
}

fn answer(x: u8) -> Vec<u8> {
    packet(2, 0, &[x, 0])
}

fn line(_: u8) -> Vec<u8> {
    b"go\n".to_vec()
}

#[test]
fn messages_after_the_start_of_tls_are_handled_as_before() {
    let plays = [(declared(), behind(answer, b"")), (raw(), behind(line, b""))];
    for (program, server) in plays {
        let outcome = run(program, 91, |world| world, server);
        outcome.is_sound(91);
        assert_eq!(outcome.sum.total().errors, [], "{:?}", outcome.examples);
        assert_eq!((outcome.step(1).ok, outcome.step(2).ok), (100, 50));
    }
}

#[test]
fn bytes_after_the_reply_that_agrees_to_tls_are_never_read() {
    // A complete message and half of one, which would be a push and the start of the next reply.
    let push: &[u8] = &[3, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    for more in [push, &push[..5], b"\n"] {
        let plays = [(declared(), behind(answer, more)), (raw(), behind(line, more))];
        for (program, server) in plays {
            let outcome = run(program, 92, |world| world, server);
            outcome.is_sound(92);
            let (asked, secured) = (outcome.step(1), outcome.step(2));
            assert_eq!((secured.ok, secured.failed()), (0, 50), "{:?}", outcome.examples);
            assert_eq!(outcome.errors(Cause::Malformed), 50);
            assert_eq!((asked.ok, asked.failed()), (50, 0), "only the first is asked");
            assert_eq!(outcome.sum.traffic.messages.pushes, 0, "what follows is not heard");
        }
    }
}
