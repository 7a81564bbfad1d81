//! Bursts: messages that wait for an `expect` or a handler, and their limits. Malformed replies and
//! the request they belong to. The bytes that rows count.

use std::cell::RefCell;

use throng_program::{Expect, Send};
use throng_protocol::framed::declaration::{Extent, Framing, Message as Kind, PlaceId, Role, Type};
use throng_protocol::framed::{Declaration, MessageId, Protocol};

use super::declared::{
    ACK, ANSWER, ASK, PUSH, STEPS, ask, asked_packets, at, field, handler, iterations, message,
    packet, protocol, save_id, slot, stay_for, talkers, think, which,
};
use super::*;
use crate::user::connection::backlog::WAITING_MESSAGES_MAX;

/// So many fit into nothing that was kept before, and are sent by many a server at once.
const BURST: u64 = 600;

fn expect(kind: MessageId, timeout: Duration) -> Statement {
    Statement::Expect(Arc::new(Expect {
        step: StepId(6),
        link: 0,
        message: which(kind),
        until: Until::Any,
        checks: Vec::new(),
        saves: Vec::new(),
        timeout,
        failing: Failing::default(),
    }))
}

/// Answers with this many pushes before and after the reply, all in one write; keeps the
/// acknowledgements.
fn burst((before, behind): (u64, u64), acked: &Rc<RefCell<Vec<u64>>>) -> Server {
    let acked = Rc::clone(acked);
    Box::new(move |asked, _| {
        let mut deeds = Vec::new();
        for (kind, seq, body) in asked_packets(asked) {
            match kind {
                1 => {
                    let push = |id: u64| packet(3, 0, &id.to_be_bytes());
                    let mut all: Vec<u8> = (1..=before).flat_map(push).collect();
                    all.extend(packet(2, seq, &[body[0], 0]));
                    all.extend((before + 1..=before + behind).flat_map(push));
                    deeds.push((MS, say(&all)));
                }
                4 => acked.borrow_mut().push(u64::from_be_bytes(body.try_into().unwrap())),
                _ => {}
            }
        }
        deeds
    })
}

/// Asks once, then waits for this many pushes, one after another.
fn waits_for(before: u64, behind: u64) -> Outcome {
    let protocol = protocol(true);
    let ask = Statement::Request(Arc::new(ask(&protocol, 1)));
    let waits = repeat((before + behind) as u32, vec![expect(PUSH, 100 * MS)]);
    let program = talkers(&protocol, vec![connect(), ask, waits], |_| {}, iterations(1, 1));
    let outcome = run(program, 31, |world| world, burst((before, behind), &Rc::default()));
    outcome.is_sound(31);
    outcome
}

#[test]
fn each_expect_takes_a_message_of_the_burst() {
    let outcome = waits_for(0, BURST);
    assert_eq!((outcome.step(6).ok, outcome.step(6).errors.as_slice()), (BURST, &[][..]));
    assert_eq!((outcome.sum.traffic.messages.dropped, outcome.sum.traffic.messages.pushes), (0, 0));
}

#[test]
fn dropped_messages_are_counted_and_not_blamed_on_the_target() {
    let more = 40;
    let outcome = waits_for(WAITING_MESSAGES_MAX as u64 + more, 0);
    // The oldest were dropped; a step that waits for them later waits in vain.
    let expected = outcome.step(6);
    assert_eq!(outcome.sum.traffic.messages.dropped, more);
    assert_eq!(expected.ok, WAITING_MESSAGES_MAX as u64);
    assert_eq!(expected.errors, [(Cause::MessagesDropped, more)]);
    let detail = &outcome.examples.last().unwrap().detail;
    assert!(detail.english().ends_with(": 40 messages were dropped"), "{detail:?}");
}

/// The end of the connection does not make it the target's fault either.
#[test]
fn a_dropped_message_is_missing_after_the_connection_has_ended() {
    let all = WAITING_MESSAGES_MAX as u64 + 40;
    let inner = burst((all, 0), &Rc::default());
    let server: Server = Box::new(move |asked, random| {
        let mut deeds = inner(asked, random);
        let ends = (!deeds.is_empty()).then_some((MS, Deed::Close));
        deeds.extend(ends);
        deeds
    });
    let protocol = protocol(true);
    let ask = Statement::Request(Arc::new(ask(&protocol, 1)));
    let waits = repeat(all as u32, vec![expect(PUSH, 100 * MS)]);
    let program = talkers(&protocol, vec![connect(), ask, waits], |_| {}, iterations(1, 1));
    let outcome = run(program, 31, |world| world, server);
    outcome.is_sound(31);
    let expected = outcome.step(6);
    assert_eq!(expected.ok, WAITING_MESSAGES_MAX as u64);
    assert_eq!(expected.errors, [(Cause::MessagesDropped, 1)]);
}

/// Stays while pushes come, and acknowledges each after `pause`.
fn handles(pushes: u64, pause: Duration, stays: Duration) -> (Outcome, Vec<u64>) {
    handles_until(pushes, pause, vec![stay_for(stays)])
}

fn handles_until(pushes: u64, pause: Duration, then: Block) -> (Outcome, Vec<u64>) {
    let protocol = protocol(true);
    let acknowledge = Statement::Send(Arc::new(Send {
        timeout: 30 * S,
        step: StepId(5),
        link: 0,
        message: message(&protocol, ACK, &[("id", slot(2))]),
        failing: Failing::default(),
    }));
    let mut code = vec![connect(), Statement::Request(Arc::new(ask(&protocol, 1)))];
    code.extend(then);
    let shape = |session: &mut Session| {
        let mut handler = handler(which(PUSH), vec![think(pause), acknowledge]);
        handler.saves = vec![save_id(&protocol)];
        session.links[0].handlers = vec![handler];
    };
    let program = talkers(&protocol, code, shape, iterations(1, 1));
    let acked = Rc::default();
    let outcome = run(program, 32, |world| world, burst((0, pushes), &acked));
    outcome.is_sound(32);
    let acked = acked.take();
    (outcome, acked)
}

#[test]
fn messages_wait_for_their_handler_and_are_handled_before_the_user_leaves() {
    // Six seconds of work, of which the first is within the load.
    for stays in [S, 3 * S] {
        let (outcome, acked) = handles(300, 10 * MS, stays);
        assert_eq!(acked, (1..=300).collect::<Vec<u64>>());
        assert_eq!((outcome.step(4).ok, outcome.step(5).ok), (300, 300));
        let messages = &outcome.sum.traffic.messages;
        assert_eq!((messages.skipped, messages.dropped), (0, 0));
    }
}

#[test]
fn a_user_that_leaves_by_itself_handles_its_messages_first() {
    let behind = stay_for(S);
    let (outcome, acked) = handles_until(300, 10 * MS, vec![Statement::Leave, behind]);
    assert_eq!(acked, (1..=300).collect::<Vec<u64>>());
    assert_eq!((outcome.step(4).ok, outcome.step(5).ok), (300, 300));
    assert_eq!((outcome.step(1).ok, outcome.sum.traffic.messages.skipped), (1, 0));
}

#[test]
fn messages_of_handlers_that_are_cut_off_are_counted() {
    // The graceful stop is five seconds.
    let (outcome, acked) = handles(BURST, 10 * MS, 100 * MS);
    let skipped = outcome.sum.traffic.messages.skipped;
    assert_eq!((outcome.step(4).ok, acked.len() as u64 + skipped), (BURST, BURST));
    assert!((80..=100).contains(&skipped), "{skipped}");
}

#[test]
fn messages_beyond_the_limit_fail_at_their_handler_and_blame_the_generator() {
    let more = 10;
    let pushes = WAITING_MESSAGES_MAX as u64 + 1 + more;
    let (outcome, _) = handles(pushes, 10 * MS, 100 * MS);
    let handled = outcome.step(4);
    assert_eq!((handled.count, handled.ok), (pushes, pushes - more));
    assert_eq!(handled.errors, [(Cause::MessagesDropped, more)]);
    assert_eq!(outcome.sum.traffic.messages.dropped, more);
}

/// One request whose reply violates the declaration.
fn broken(protocol: &Arc<Protocol>, code: Block, answer: fn(u32) -> Vec<u8>) -> Outcome {
    let program = talkers(protocol, code, |_| {}, iterations(1, 3));
    let server: Server = Box::new(move |asked, _| {
        asked_packets(asked).into_iter().map(|(_, seq, _)| (MS, say(&answer(seq)))).collect()
    });
    let outcome = run(program, 33, |world| world, server);
    outcome.is_sound(33);
    outcome
}

#[test]
fn a_malformed_reply_fails_its_request_immediately_and_counts_once() {
    let (with, without) = (protocol(true), protocol(false));
    // No message has the kind; the body is too short; the body is too long.
    let answers: [fn(u32) -> Vec<u8>; 3] = [
        |seq| packet(99, seq, &[1, 0]),
        |seq| packet(2, seq, &[1]),
        |seq| packet(2, seq, &[1, 0, 0]),
    ];
    let request = |protocol: &Protocol| Statement::Request(Arc::new(ask(protocol, 1)));
    let send_and_expect = |protocol: &Protocol| {
        let message = message(protocol, ASK, &[("x", Text::literal("1"))]);
        let failing = Failing::default();
        let send = Statement::Send(Arc::new(Send {
            timeout: 30 * S,
            link: 0,
            step: StepId(5),
            message,
            failing,
        }));
        vec![connect(), send, expect(ANSWER, 500 * MS)]
    };
    let cases = [
        (&with, vec![connect(), request(&with)], 1, &answers[..]),
        // Without a number, only the kind shows which request it answers.
        (&without, vec![connect(), request(&without)], 1, &answers[1..]),
        (&with, send_and_expect(&with), 6, &answers[1..]),
    ];
    for (protocol, code, step, answers) in cases {
        for answer in answers {
            let outcome = broken(protocol, code.clone(), *answer);
            let failed = outcome.step(step);
            assert_eq!(failed.errors, [(Cause::Malformed, 3)]);
            assert!(failed.latency.max() < 50_000_000, "nothing is waited for");
            assert_eq!((outcome.step(7).count, outcome.sum.traffic.messages.broken), (0, 3));
        }
    }
}

/// Lines that are answered by lines.
fn lines() -> Arc<Protocol> {
    let text = field("text", Type::Text(Extent::Rest), Role::Value);
    let line = Kind {
        name: at("line".into()),
        kind: None,
        answers: vec![at("line".to_string())],
        push: false,
        more: None,
        holds_packets: false,
        body: vec![text],
        acknowledged_by: None,
        place: PlaceId::default(),
    };
    let body = Type::Bytes(Extent::Rest);
    let declaration = Declaration {
        framing: Framing::Delimiter { bytes: at(b"\r\n".to_vec()), bytes_max: 1024 },
        packet: vec![field("body", body, Role::Body)],
        messages: vec![line],
        ..Declaration::default()
    };
    Arc::new(Protocol::compile(declaration).unwrap())
}

#[test]
fn rows_count_delimiters_in_both_directions() {
    let protocol = lines();
    let mut ask = ask(&declared::protocol(true), 1);
    ask.message = message(&protocol, MessageId(0), &[("text", Text::literal("hello"))]);
    ask.checks.clear();
    let code = vec![connect(), Statement::Request(Arc::new(ask))];
    let program = talkers(&protocol, code, |_| {}, iterations(1, 3));
    let server: Server = Box::new(|asked, _| vec![(MS, say(&std::mem::take(asked)))]);
    let outcome = run(program, 34, |world| world, server);
    outcome.is_sound(34);
    let row = outcome.step(1);
    assert_eq!((row.ok, row.bytes_out, row.bytes_in), (3, 21, 21));
    assert_eq!((outcome.sum.traffic.bytes_out, outcome.sum.traffic.bytes_in), (21, 21));
}

#[test]
fn each_byte_of_a_stream_counts_for_one_reply() {
    let until = || Until::Delimiter(b"\n".to_vec().into());
    let mut next = expect(PUSH, S);
    if let Statement::Expect(expect) = &mut next {
        let expect = Arc::make_mut(expect);
        (expect.until, expect.message) = (until(), Which::default());
    }
    let code = vec![connect(), super::ask("go\n", until()), repeat(BURST as u32, vec![next])];
    let session = session(code, 1);
    let program = program(Scheme::Tcp, vec![session], STEPS, iterations(1, 1));
    let server: Server = Box::new(|asked, _| {
        let lines: String = (0..=BURST).map(|line| format!("line {line}\n")).collect();
        asked.clear();
        vec![(MS, say(lines.as_bytes()))]
    });
    let outcome = run(program, 35, |world| world, server);
    outcome.is_sound(35);
    assert_eq!((outcome.step(1).ok, outcome.step(6).ok), (1, BURST));
    assert_eq!(
        (outcome.step(1).bytes_in, outcome.step(6).bytes_in),
        (7, outcome.sum.traffic.bytes_in - 7)
    );
}
