//! Replies of several packets: one attempt, which ends with the last of them.

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

/// Sends three rows, a millisecond each, and the end after some more.
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
        // A field of the first row, one of the last packet, and how many came.
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

/// What is wrong in the middle is told at the end, so that no packet is left to the next request.
#[test]
fn a_reply_is_judged_at_its_end() {
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
