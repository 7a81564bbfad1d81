//! Replies of several packets: one attempt, which ends with the last packet. Pushes of several
//! packets: one message.

use throng_metrics::{Cause, Comparison};
use throng_protocol::framed::declaration::More;

use super::*;

/// `row` is a packet of the reply to `ask`, `answer` the last one.
fn rows(correlates: bool) -> Arc<Protocol> {
    let mut declaration = protocol(correlates).declaration().clone();
    let row = Kind {
        name: at("row".into()),
        kind: Some(at(7.into())),
        more: Some(More::Always),
        body: vec![field("y", Type::Unsigned(8), Role::Value)],
        ..declaration.messages[1].clone()
    };
    declaration.messages.push(row);
    Arc::new(Protocol::compile(declaration).unwrap())
}

/// Sends three rows, one per millisecond, and the end some time later.
fn lists(row: impl Fn(u8) -> Vec<u8> + 'static, end: Option<Duration>) -> Server {
    Box::new(move |asked, _| {
        let mut deeds = Vec::new();
        for (_, seq, body) in asked_packets(asked) {
            for n in 0..3 {
                deeds.push((u32::from(n + 1) * MS, say(&packet(7, seq, &row(n)))));
            }
            deeds.extend(end.map(|end| (end, say(&packet(2, seq, &[body[0], 0])))));
        }
        deeds
    })
}

fn count(name: &str, count: f64) -> Check {
    let want = Want::Number(Comparison::Equal, count.into());
    Check { pick: Pick::Result(name.into()), want }
}

fn asked(protocol: &Arc<Protocol>, checks: Vec<Check>, server: Server) -> Outcome {
    let mut ask = ask(protocol, 9);
    ask.checks.extend(checks);
    let code = vec![connect(), Statement::Request(Arc::new(ask)), think(MS)];
    let outcome =
        run(talkers(protocol, code, |_| {}, iterations(2, 20)), 21, |world| world, server);
    outcome.is_sound(21);
    outcome
}

#[test]
fn a_reply_of_several_packets_is_one_attempt() {
    for correlates in [true, false] {
        let protocol = rows(correlates);
        let row = protocol.message("row").unwrap();
        // A field of the first row, one of the last packet, and the number of packets.
        let checks = vec![
            number(&protocol, row, "y", 10.0),
            count("packets", 4.0),
            count("packets.row", 3.0),
            count("packets.answer", 1.0),
            count("packets.pong", 0.0),
        ];
        let outcome = asked(&protocol, checks, lists(|n| vec![10 + n], Some(20 * MS)));
        let step = outcome.step(1);
        assert_eq!((step.errors.as_slice(), step.ok, step.count), (&[][..], 20, 20));
        let messages = &outcome.sum.traffic.messages;
        assert_eq!((messages.received, messages.unasked, messages.pushes), (80, 0, 0));
        let (first, all) = (step.first_byte.mean() / 1e6, step.latency.mean() / 1e6);
        assert!(
            first < 10.0 && all >= 20.0,
            "{first} ms to the first packet, {all} ms to the last"
        );
    }
}

/// An error in the middle is reported at the end, so that no packet is left for the next request.
#[test]
fn a_reply_is_checked_at_its_end() {
    for correlates in [true, false] {
        let protocol = rows(correlates);
        let row = protocol.message("row").unwrap();
        let wrong = vec![number(&protocol, row, "y", 11.0)];
        let outcome = asked(&protocol, wrong, lists(|n| vec![10 + n], Some(20 * MS)));
        assert_eq!(outcome.step(1).errors, [(Cause::FieldUnexpected, 20)]);
        assert_eq!(outcome.sum.traffic.messages.unasked, 0);
        let short = |n: u8| if n == 1 { vec![] } else { vec![10 + n] };
        let outcome = asked(&protocol, Vec::new(), lists(short, Some(20 * MS)));
        assert_eq!(outcome.step(1).errors, [(Cause::Malformed, 20)]);
        assert_eq!(outcome.sum.traffic.messages.unasked, 0);
        assert_eq!(outcome.sum.traffic.messages.broken, 20);
    }
}

#[test]
fn a_reply_without_an_end_times_out() {
    for correlates in [true, false] {
        let protocol = rows(correlates);
        let outcome = asked(&protocol, Vec::new(), lists(|n| vec![10 + n], None));
        assert_eq!(outcome.step(1).errors, [(Cause::Timeout, 20)]);
        assert_eq!(outcome.sum.traffic.messages.received, 60);
    }
}

/// `push` continues: `page` is a later packet, `tail` the last one.
fn pages() -> Arc<Protocol> {
    let mut declaration = protocol(true).declaration().clone();
    let push = &mut declaration.messages[2];
    push.more = Some(More::Always);
    let part = |name: &str, kind: i64, more| Kind {
        name: at(name.into()),
        kind: Some(at(kind.into())),
        answers: vec![at("push".into())],
        push: true,
        more,
        body: vec![field("y", Type::Unsigned(8), Role::Value)],
        ..declaration.messages[2].clone()
    };
    let parts = [part("page", 8, Some(More::Always)), part("tail", 9, None)];
    declaration.messages.extend(parts);
    Arc::new(Protocol::compile(declaration).unwrap())
}

/// Sends this many pushes of four packets before each reply, cut into two pieces anywhere; records
/// what is acknowledged.
fn pushes(count: u64, acked: &Rc<RefCell<Vec<u64>>>) -> Server {
    let acked = Rc::clone(acked);
    Box::new(move |asked, random| {
        let mut deeds = Vec::new();
        for (kind, seq, body) in asked_packets(asked) {
            if kind == 4 {
                acked.borrow_mut().push(u64::from_be_bytes(body.try_into().unwrap()));
                continue;
            }
            let mut all = Vec::new();
            for id in 1..=count {
                all.extend(packet(3, 0, &id.to_be_bytes()));
                all.extend([packet(8, 0, &[1]), packet(8, 0, &[2])].concat());
                all.extend(packet(9, 0, &[40 + id as u8]));
            }
            all.extend(packet(2, seq, &[body[0], 0]));
            let second = all.split_off(random.below(all.len() as u64) as usize);
            deeds.extend([(MS, say(&all)), (MS, say(&second))]);
        }
        deeds
    })
}

/// Acknowledges the push that a handler has saved.
fn acknowledge(protocol: &Protocol) -> Statement {
    Statement::Send(Arc::new(Send {
        timeout: S,
        step: StepId(5),
        link: 0,
        message: message(protocol, ACK, &[("id", slot(2))]),
        failing: Failing::default(),
    }))
}

/// Checks of a push: its number of packets, its first page, and that its tail is the `nth`.
fn whole_push(protocol: &Arc<Protocol>, nth: Option<u8>) -> Vec<Check> {
    let (page, tail) = (protocol.message("page").unwrap(), protocol.message("tail").unwrap());
    let mut checks = vec![
        count("packets", 4.0),
        count("packets.push", 1.0),
        count("packets.page", 2.0),
        number(protocol, page, "y", 1.0),
    ];
    checks.extend(nth.map(|nth| number(protocol, tail, "y", f64::from(40 + nth))));
    checks
}

#[test]
fn a_push_of_several_packets_is_one_message() {
    let protocol = pages();
    let ask = Statement::Request(Arc::new(ask(&protocol, 9)));
    let shape = |session: &mut Session| {
        let mut handler = handler(which(PUSH), vec![think(MS), acknowledge(&protocol)]);
        (handler.checks, handler.saves) = (whole_push(&protocol, None), vec![save_id(&protocol)]);
        session.links[0].handlers = vec![handler];
    };
    for seed in 0..10 {
        let acked = Rc::default();
        let code = vec![connect(), ask.clone(), stay_for(100 * MS)];
        let program = talkers(&protocol, code, shape, iterations(1, 5));
        let outcome = run(program, seed, |world| world, pushes(3, &acked));
        outcome.is_sound(seed);
        let step = outcome.step(4);
        assert_eq!((step.errors.as_slice(), step.ok), (&[][..], 15), "seed {seed}");
        let messages = &outcome.sum.traffic.messages;
        assert_eq!((messages.received, messages.pushes, messages.unasked), (65, 15, 0));
        // Pushes that waited for the body before them are complete, too.
        assert_eq!(acked.take(), [1, 2, 3].repeat(5), "seed {seed}");
    }
}

/// They arrive before the reply, and are kept for later steps.
#[test]
fn a_kept_push_of_several_packets_stays_complete() {
    let protocol = pages();
    let ask = Statement::Request(Arc::new(ask(&protocol, 9)));
    let expect = |nth| {
        Statement::Expect(Arc::new(Expect {
            step: StepId(6),
            link: 0,
            message: which(PUSH),
            until: Until::Any,
            checks: whole_push(&protocol, Some(nth)),
            saves: Vec::new(),
            timeout: S,
            failing: Failing::default(),
        }))
    };
    for seed in 0..10 {
        let code = vec![connect(), ask.clone(), expect(1), expect(2), expect(3)];
        let program = talkers(&protocol, code, |_| {}, iterations(1, 5));
        let outcome = run(program, seed, |world| world, pushes(3, &Rc::default()));
        outcome.is_sound(seed);
        let step = outcome.step(6);
        assert_eq!((step.errors.as_slice(), step.ok), (&[][..], 15), "seed {seed}");
        assert_eq!(outcome.sum.traffic.messages.received, 65);
    }
}

/// A push whose rest never arrives is a push, and the next one is complete.
#[test]
fn a_push_without_an_end_is_counted_and_dropped() {
    let protocol = pages();
    let ask = Statement::Request(Arc::new(ask(&protocol, 9)));
    let server: Server = Box::new(|asked, _| {
        let mut deeds = Vec::new();
        for (_, seq, body) in asked_packets(asked) {
            let first = packet(3, 0, &7u64.to_be_bytes());
            let all = [first.clone(), packet(8, 0, &[1]), first, packet(9, 0, &[1])].concat();
            deeds.push((MS, say(&[all, packet(2, seq, &[body[0], 0])].concat())));
        }
        deeds
    });
    let shape = |session: &mut Session| {
        let mut handler = handler(which(PUSH), Vec::new());
        (handler.checks, handler.body) = (vec![count("packets", 2.0)], None);
        session.links[0].handlers = vec![handler];
    };
    let code = vec![connect(), ask, stay_for(MS)];
    let outcome = run(talkers(&protocol, code, shape, iterations(1, 5)), 1, |world| world, server);
    outcome.is_sound(1);
    assert_eq!((outcome.step(4).errors.as_slice(), outcome.step(4).ok), (&[][..], 5));
    assert_eq!(outcome.sum.traffic.messages.pushes, 10);
}
