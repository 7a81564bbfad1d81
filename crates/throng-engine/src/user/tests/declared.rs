//! Users of a declared protocol: replies are matched by correlation numbers, messages arrive at any
//! time, and background tasks run.

use std::cell::RefCell;

use throng_program::{
    Beat, BeatFault, Composed, Content, Every, Expect, Handler, OnError, Save, Send, Slow, TaskBody,
};
use throng_protocol::framed::declaration::{
    Counts, Endian, Field, Framing, Message as Kind, PlaceId, Placed, Role, Transport, Type,
};
use throng_protocol::framed::{Declaration, Given, MessageId, Protocol};

use super::*;

mod agreement;
mod parts;
mod together;

pub(super) const STEPS: &[StepKind] = &[
    StepKind::Connect,
    StepKind::Request,
    StepKind::Stay,
    StepKind::Heartbeat,
    StepKind::Message,
    StepKind::Send,
    StepKind::Expect,
    StepKind::Broken,
];

pub(super) const ASK: MessageId = MessageId(0);
pub(super) const ANSWER: MessageId = MessageId(1);
pub(super) const PUSH: MessageId = MessageId(2);
pub(super) const ACK: MessageId = MessageId(3);
const PING: MessageId = MessageId(4);
const PONG: MessageId = MessageId(5);

pub(super) fn at<T>(value: T) -> Placed<T> {
    Placed { value, place: PlaceId::default() }
}

pub(super) fn field(id: &str, ty: Type, role: Role) -> Field {
    Field { role, ..Field::new(at(id.into()), ty, PlaceId::default()) }
}

/// u8 kind, u16 length of the body, u32 seq, body.
pub(super) fn protocol(correlates: bool) -> Arc<Protocol> {
    let u = |id: &str, bits| field(id, Type::Unsigned(bits), Role::Value);
    let kind = |name: &str, number: i64, answers: &[&str], push, body| Kind {
        name: at(name.into()),
        kind: Some(at(number.into())),
        answers: answers.iter().map(|one| at((*one).to_string())).collect(),
        push,
        more: None,
        holds_packets: false,
        body,
        acknowledged_by: None,
        place: PlaceId::default(),
    };
    let role = if correlates { Role::Correlates } else { Role::Value };
    let mut seq = field("seq", Type::Unsigned(32), role);
    if !correlates {
        seq.default = Some(at(throng_protocol::framed::declaration::Literal::Int(0)));
    }
    let packet = vec![
        field("kind", Type::Unsigned(8), Role::Selects),
        field(
            "length",
            Type::Unsigned(16),
            Role::Length { counts: Counts::Body, plus: 0, bytes_max: None },
        ),
        seq,
        field("body", Type::Bytes(throng_protocol::framed::declaration::Extent::Rest), Role::Body),
    ];
    let declaration = Declaration {
        transport: Transport::Tcp,
        endian: Endian::Big,
        framing: Framing::Length,
        packet,
        messages: vec![
            kind("ask", 1, &[], false, vec![u("x", 8)]),
            kind("answer", 2, &["ask"], false, vec![u("x", 8), u("code", 8)]),
            kind("push", 3, &[], true, vec![u("id", 64)]),
            kind("ack", 4, &[], false, vec![u("id", 64)]),
            kind("ping", 5, &[], false, Vec::new()),
            kind("pong", 6, &["ping"], false, Vec::new()),
        ],
        ..Declaration::default()
    };
    Arc::new(Protocol::compile(declaration).unwrap())
}

pub(super) fn packet(kind: u8, seq: u32, body: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend_from_slice(&(body.len() as u16).to_be_bytes());
    out.extend_from_slice(&seq.to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// What a user has sent: kind, seq, body. Complete packets are removed from the bytes.
pub(super) fn asked_packets(asked: &mut Vec<u8>) -> Vec<(u8, u32, Vec<u8>)> {
    let mut out = Vec::new();
    while asked.len() >= 7 {
        let length = usize::from(u16::from_be_bytes([asked[1], asked[2]]));
        if asked.len() < 7 + length {
            break;
        }
        let whole: Vec<u8> = asked.drain(..7 + length).collect();
        let seq = u32::from_be_bytes([whole[3], whole[4], whole[5], whole[6]]);
        out.push((whole[0], seq, whole[7..].to_vec()));
    }
    out
}

pub(super) fn message(protocol: &Protocol, kind: MessageId, values: &[(&str, Text)]) -> Message {
    let given = values
        .iter()
        .enumerate()
        .map(|(leaf, (name, _))| ((*name).to_string(), Given::Leaf(leaf as u16)));
    let template = protocol.prepare(kind, &Given::Fields(given.collect())).unwrap();
    let leaves = values.iter().map(|(_, text)| text.clone()).collect();
    Message { content: Content::Declared(Box::new(Composed { template, leaves })), cut: None }
}

pub(super) fn ask(protocol: &Protocol, x: u8) -> Request {
    Request {
        step: StepId(1),
        link: 0,
        message: message(protocol, ASK, &[("x", Text::literal(x.to_string()))]),
        answer: Which::default(),
        until: Until::Any,
        checks: vec![number(protocol, ANSWER, "x", f64::from(x))],
        saves: Vec::new(),
        timeout: 500 * MS,
        failing: Failing::default(),
    }
}

fn number(protocol: &Protocol, kind: MessageId, path: &str, matcher: f64) -> Check {
    let path = protocol.field(kind, path).unwrap();
    let matcher = Matcher::Number(throng_metrics::Comparison::Equal, matcher.into());
    Check { extractor: Extractor::Field([path].into()), matcher }
}

pub(super) fn which(kind: MessageId) -> Which {
    Which { messages: [kind].into(), checks: Vec::new() }
}

/// The body of a handler is the first of its session.
pub(super) fn handler(message: Which, steps: Block) -> Handler {
    let (body, failing) = (Some(TaskBody { number: 0, steps }), Failing::default());
    Handler { step: StepId(4), message, checks: Vec::new(), saves: Vec::new(), body, failing }
}

/// The body of an `every` is the second.
fn every(time: Duration, steps: Block) -> Every {
    Every { time, body: TaskBody { number: 1, steps } }
}

fn beat(protocol: &Protocol, every: Duration) -> Heartbeat {
    Heartbeat {
        step: StepId(3),
        beat: Beat::Message(message(protocol, PING, &[])),
        every,
        answer: which(PONG),
        lost_after: Some(300 * MS),
        fault: BeatFault::default(),
    }
}

pub(super) fn stay_for(time: Duration) -> Statement {
    let mut stay = stay(2, None);
    if let Statement::Stay(stay) = &mut stay {
        Arc::make_mut(stay).time = Some(time);
    }
    stay
}

pub(super) fn think(time: Duration) -> Statement {
    Statement::Think(Pause::Uniform { low: time, high: time })
}

/// One session; `shape` adds what listens.
pub(super) fn talkers(
    protocol: &Arc<Protocol>,
    code: Block,
    shape: impl FnOnce(&mut Session),
    load: Phase,
) -> Program {
    let mut session = session(code, 1);
    session.links[0].protocol = Some(0);
    shape(&mut session);
    let mut program = program(Scheme::Tcp, vec![session], STEPS, load);
    program.protocols = vec![Arc::clone(protocol)];
    program.broken = Some(StepId(7));
    program
}

fn users(to: u64, time: Duration) -> Phase {
    phase(Drive::Users(Users { to, coming: Coming::AtOnce }), Some(time))
}

pub(super) fn iterations(users: u64, total: u64) -> Phase {
    phase(Drive::Iterations(Iterations::new(users, None, Some(total))), None)
}

/// Answers after a moment, in any order, with pushes before and after.
fn server(pushes: usize) -> Server {
    let ids = Cell::new(0u64);
    Box::new(move |asked, random| {
        let mut deeds = Vec::new();
        for (kind, seq, body) in asked_packets(asked) {
            let delay = Duration::from_micros(100 + random.below(5_000));
            for _ in 0..pushes {
                ids.set(ids.get() + 1);
                deeds.push((delay / 2, say(&packet(3, 0, &ids.get().to_be_bytes()))));
            }
            match kind {
                1 => deeds.push((delay, say(&packet(2, seq, &[body[0], 0])))),
                5 => deeds.push((delay, say(&packet(6, seq, &[])))),
                _ => {}
            }
        }
        deeds
    })
}

#[test]
fn replies_are_matched_by_their_correlation_number() {
    for correlates in [true, false] {
        let protocol = protocol(correlates);
        // The body asks the same thing at the same time; its replies must not be taken for the
        // session's.
        let asks = |x| Statement::Request(Arc::new(ask(&protocol, x)));
        let code = vec![connect(), asks(7), think(5 * MS)];
        let shape = |session: &mut Session| {
            if correlates {
                session.links[0].every = vec![every(10 * MS, vec![asks(9), asks(8)])];
            }
            session.links[0].heartbeat = Some(beat(&protocol, 40 * MS));
        };
        let program = talkers(&protocol, code, shape, users(50, 3 * S));
        let outcome = run(program, 11, |world| world.clog(0.1), server(2));
        outcome.is_sound(11);
        let asked = outcome.step(1);
        assert_eq!((asked.errors.as_slice(), asked.ok > 5_000), (&[][..], true), "{}", asked.ok);
        let beats = &outcome.sum.heartbeats;
        assert!(beats.answered > 3_000 && beats.lost == 0, "{beats:?}");
        assert!(
            outcome.sum.traffic.messages.pushes > 2 * asked.ok,
            "{:?}",
            outcome.sum.traffic.messages
        );
        assert_eq!(outcome.sum.traffic.messages.broken + outcome.sum.traffic.messages.unasked, 0);
    }
}

#[test]
fn messages_are_handled_at_any_time() {
    let protocol = protocol(true);
    let ack = |slow: bool| {
        let mut body = vec![Statement::Send(Arc::new(Send {
            timeout: 30 * S,
            step: StepId(5),
            link: 0,
            message: message(&protocol, ACK, &[("id", slot(2))]),
            failing: Failing::default(),
        }))];
        if slow {
            body.insert(0, think(20 * MS));
        }
        body
    };
    for slow in [false, true] {
        let code = vec![
            connect(),
            Statement::Request(Arc::new(ask(&protocol, 1))),
            think(50 * MS),
            stay_for(50 * MS),
        ];
        let shape = |session: &mut Session| {
            let mut handler = handler(which(PUSH), ack(slow));
            handler.saves = vec![save_id(&protocol)];
            session.links[0].handlers = vec![handler];
        };
        let program = talkers(&protocol, code, shape, iterations(20, 200));
        let acked: Rc<RefCell<Vec<u64>>> = Rc::default();
        let (seen, inner) = (Rc::clone(&acked), server(2));
        let server: Server = Box::new(move |asked, random| {
            let mut copy = asked.clone();
            for (kind, _, body) in asked_packets(&mut copy) {
                if kind == 4 {
                    seen.borrow_mut().push(u64::from_be_bytes(body.try_into().unwrap()));
                }
            }
            // Only requests are answered, so that an acknowledgement causes no push.
            let asks: Vec<_> =
                asked_packets(asked).into_iter().filter(|(kind, ..)| *kind == 1).collect();
            let mut bytes: Vec<u8> =
                asks.iter().flat_map(|(kind, seq, body)| packet(*kind, *seq, body)).collect();
            inner(&mut bytes, random)
        });
        let clog = if slow { 0.3 } else { 0.0 };
        let outcome = run(program, 12, |world| world.clog(clog), server);
        outcome.is_sound(12);
        assert_eq!(outcome.step(1).errors, []);
        assert_eq!(outcome.step(1).ok, 200);
        assert_eq!((outcome.step(4).ok, outcome.sum.traffic.messages.skipped), (400, 0));
        // Each was acknowledged once and by its own ID, including those that arrived meanwhile.
        let mut ids = acked.borrow().clone();
        ids.sort_unstable();
        assert_eq!(ids, (1..=400).collect::<Vec<u64>>());
    }
}

/// The ID of a push in slot 2.
pub(super) fn save_id(protocol: &Protocol) -> Save {
    let id = protocol.field(PUSH, "id").unwrap();
    Save { slot: 2, extractor: Extractor::Field([id].into()), all: false, default: None }
}

pub(super) fn slot(slot: u16) -> Text {
    let expression = Expression::compile("a", &mut Slots(slot)).unwrap();
    Text { segments: vec![Segment::Value { value: expression, escape: Escape::None }] }
}

struct Slots(u16);

impl Names for Slots {
    fn resolve(&mut self, _: &[&str]) -> Result<(Name, usize), UnknownName> {
        Ok((Name::Slot(self.0), 1))
    }
}

#[test]
fn an_expected_message_may_arrive_before_its_expect() {
    let protocol = protocol(true);
    let expect = |kind, checks| {
        Statement::Expect(Arc::new(Expect {
            step: StepId(6),
            link: 0,
            message: Which { messages: [kind].into(), checks },
            until: Until::Any,
            checks: Vec::new(),
            saves: Vec::new(),
            timeout: 200 * MS,
            failing: Failing::default(),
        }))
    };
    let send = Statement::Send(Arc::new(Send {
        timeout: 30 * S,
        step: StepId(5),
        link: 0,
        message: message(&protocol, ASK, &[("x", Text::literal("3"))]),
        failing: Failing::default(),
    }));
    // Two are in flight at a time, and their replies arrive during think time.
    let three = number(&protocol, ANSWER, "x", 3.0);
    let code = vec![
        connect(),
        send.clone(),
        send,
        expect(PUSH, Vec::new()),
        think(20 * MS),
        expect(ANSWER, vec![three.clone()]),
        expect(ANSWER, vec![three]),
        // This one never comes.
        expect(ANSWER, vec![number(&protocol, ANSWER, "x", 4.0)]),
    ];
    let program = talkers(&protocol, code, |_| {}, iterations(10, 100));
    let outcome = run(program, 13, |world| world, server(1));
    outcome.is_sound(13);
    let expected = outcome.step(6);
    assert_eq!((expected.count, expected.ok), (400, 300));
    assert_eq!(expected.errors, [(Cause::Timeout, 100)]);
    // A malformed reply that is recognized by its kind and fields does not cost the connection.
    assert_eq!(outcome.sum.connections.counts.opened, 10);
}

#[test]
fn malformed_packets_are_counted_and_handled_as_the_scenario_says() {
    for then in [OnError::Count, OnError::Leave, OnError::Stop] {
        let protocol = protocol(true);
        let mut ask = ask(&protocol, 1);
        ask.failing.then = then;
        let code = vec![connect(), Statement::Request(Arc::new(ask))];
        let program = talkers(&protocol, code, |_| {}, iterations(1, 3));
        let inner = server(0);
        let server: Server = Box::new(move |asked, random| {
            let mut deeds = inner(asked, random);
            // A push of seven bytes, where eight are declared.
            deeds.insert(0, (Duration::ZERO, say(&packet(3, 0, &[0; 7]))));
            deeds
        });
        let outcome = run(program, 14, |world| world, server);
        outcome.is_sound(14);
        let broken = outcome.sum.traffic.messages.broken;
        let ok = outcome.step(1).ok;
        match then {
            OnError::Count => assert_eq!((broken, ok), (3, 3)),
            _ => assert_eq!((broken, ok), (1, 0)),
        }
        let example = &outcome.examples[0].detail;
        assert!(example.english().contains("03000700000000"), "{example:?}");
        assert_eq!(outcome.stopped.is_some(), then == OnError::Stop);
    }
}

#[test]
fn a_reply_of_the_wrong_kind_is_reported() {
    let protocol = protocol(true);
    let code = vec![connect(), Statement::Request(Arc::new(ask(&protocol, 1)))];
    let program = talkers(&protocol, code, |_| {}, iterations(1, 3));
    let server: Server = Box::new(|asked, _| {
        let reply = |(_, seq, _): (u8, u32, Vec<u8>)| (MS, say(&packet(6, seq, &[])));
        asked_packets(asked).into_iter().map(reply).collect()
    });
    let outcome = run(program, 15, |world| world, server);
    outcome.is_sound(15);
    assert_eq!(outcome.step(1).errors, [(Cause::Malformed, 3)]);
    assert!(
        outcome.examples[0].detail.english().contains("not a reply to `ask`"),
        "{:?}",
        outcome.examples
    );
}

#[test]
fn heartbeats_can_be_malformed_on_purpose() {
    let protocol = protocol(true);
    let faults = [
        (BeatFault { stop_after: Some(2), ..BeatFault::default() }, 20..=20, 20..=20),
        (BeatFault { late: 70 * MS, ..BeatFault::default() }, 85..=100, 85..=100),
        (BeatFault { times: 2, ..BeatFault::default() }, 180..=200, 180..=200),
    ];
    for (fault, beats, pings) in faults {
        let shape = |session: &mut Session| {
            session.links[0].heartbeat = Some(Heartbeat { fault, ..beat(&protocol, 100 * MS) });
        };
        let code = vec![connect(), stay_for(S)];
        let program = talkers(&protocol, code, shape, iterations(10, 10));
        let seen = Rc::new(Cell::new(0));
        let (count, inner) = (Rc::clone(&seen), server(0));
        let server: Server = Box::new(move |asked, random| {
            let pings = asked.chunks(7).filter(|packet| packet[0] == 5).count();
            count.set(count.get() + pings as u64);
            inner(asked, random)
        });
        let outcome = run(program, 16, |world| world, server);
        outcome.is_sound(16);
        assert!(beats.contains(&outcome.sum.heartbeats.sent), "{:?}", outcome.sum.heartbeats);
        assert!(pings.contains(&seen.get()), "{fault:?}: {}", seen.get());
        assert!(outcome.sum.heartbeats.faulty > 0);
        assert_eq!(outcome.sum.heartbeats.lost, 0);
    }
}

#[test]
fn a_slow_reader_does_not_exceed_its_rate() {
    let protocol = protocol(true);
    let slow = Slow { read: Some(900), write: None };
    let mut ask = ask(&protocol, 1);
    ask.timeout = 60 * S;
    let code =
        vec![connect(), Statement::Slow { link: 0, slow }, Statement::Request(Arc::new(ask))];
    let program = talkers(&protocol, code, |_| {}, iterations(1, 2));
    // 299 pushes of fifteen bytes before each reply of nine.
    let outcome = run(program, 17, |world| world, server(299));
    outcome.is_sound(17);
    assert_eq!(outcome.step(1).ok, 2);
    let mean = outcome.step(1).latency.mean() / 1e9;
    assert!((4.5..5.5).contains(&mean), "{mean}");
}

/// A connection that is lost while a body runs is lost once, and the bodies end with it.
#[test]
fn bodies_end_with_their_connection() {
    let protocol = protocol(true);
    let asks = vec![Statement::Request(Arc::new(ask(&protocol, 9)))];
    let code = vec![connect(), stay_for(10 * S)];
    let shape = |session: &mut Session| session.links[0].every = vec![every(50 * MS, asks)];
    let program = talkers(&protocol, code, shape, users(50, 4 * S));
    let inner = server(0);
    let server: Server = Box::new(move |asked, random| match random.below(20) {
        0 => vec![(MS, Deed::Reset)],
        1 => vec![(MS, Deed::Close)],
        _ => inner(asked, random),
    });
    let outcome = run(program, 18, |world| world, server);
    outcome.is_sound(18);
    let ended =
        outcome.sum.connections.counts.reset + outcome.sum.connections.counts.closed_by_target;
    assert!(ended > 100, "{:?}", outcome.sum.connections.counts);
    let asked = outcome.step(1);
    assert_eq!(asked.count - asked.ok, asked.errors.iter().map(|(_, count)| count).sum::<u64>());
    assert!(asked.ok > 1000 && asked.count - asked.ok >= ended / 2, "{:?}", asked.errors);
    assert_eq!(outcome.step(2).count - outcome.step(2).ok, ended, "{:?}", outcome.step(2).errors);
}
