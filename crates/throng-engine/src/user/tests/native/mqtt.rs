//! MQTT clients against a server that acknowledges, echoes, refuses and violates the protocol.

use std::cell::RefCell;

use throng_base::mqtt as base;
use throng_program::mqtt::{Client, Order, Publish, Subscribe};
use throng_program::{Beat, ConnectOptions, Content, Expect, Handler};
use throng_protocol::mqtt::{
    self, Ack, Codes, Connack, Packet, PropertyId, Qos, SubscribeOptions, Value, Version,
    write_property,
};

use super::*;

/// A server that answers each packet with these packets.
fn server(version: Version, answer: impl Fn(&Packet<'_>) -> Vec<Vec<u8>> + 'static) -> Server {
    Box::new(move |asked, _| {
        let mut out = Vec::new();
        while let Some(end) = packet_end(asked) {
            let packet: Vec<u8> = asked.drain(..end).collect();
            let head = 1 + packet[1..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
            let packet = mqtt::decode(version, packet[0], &packet[head..]);
            out.extend(answer(&packet.expect("the client keeps to the standard")).concat());
        }
        vec![(MS, Deed::Say(out))]
    })
}

fn packet_end(bytes: &[u8]) -> Option<usize> {
    let mut length = 0;
    for (place, byte) in bytes.get(1..)?.iter().enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * place);
        if *byte < 0x80 {
            let end = 2 + place + length;
            return (end <= bytes.len()).then_some(end);
        }
    }
    None
}

fn written(version: Version, packet: &Packet<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    packet.write(version, &mut out);
    out
}

/// A server that accepts all, and returns every message to its publisher.
fn echo(version: Version, packet: &Packet<'_>) -> Vec<Vec<u8>> {
    let written = |packet: Packet<'_>| written(version, &packet);
    let ack = |id| Ack { id, ..Ack::default() };
    match *packet {
        Packet::Connect(_) => vec![written(Packet::Connack(Connack::default()))],
        Packet::Subscribe(subscribe) => {
            let codes: Vec<u8> = subscribe.filters().map(|(_, it)| it.qos.level()).collect();
            let codes = Codes { id: subscribe.id, codes: &codes, ..Codes::default() };
            vec![written(Packet::Suback(codes))]
        }
        Packet::Publish(publish) => {
            let acknowledgement = match publish.qos {
                Qos::AtMostOnce => Vec::new(),
                Qos::AtLeastOnce => written(Packet::Puback(ack(publish.id))),
                Qos::ExactlyOnce => written(Packet::Pubrec(ack(publish.id))),
            };
            vec![acknowledgement, written(Packet::Publish(publish))]
        }
        Packet::Pubrec(it) => vec![written(Packet::Pubrel(ack(it.id)))],
        Packet::Pubrel(it) => vec![written(Packet::Pubcomp(ack(it.id)))],
        Packet::Pingreq => vec![written(Packet::Pingresp)],
        _ => Vec::new(),
    }
}

fn client(version: Version) -> Client {
    Client {
        version,
        client_id: valued("string(user.id)"),
        clean_start: true,
        keep_alive_s: 0,
        user: None,
        password: None,
        will: None,
        properties: Vec::new(),
        wishes: Default::default(),
    }
}

fn open(client: Client) -> Statement {
    let mut opens = connect();
    if let Statement::Connect(connect) = &mut opens {
        Arc::make_mut(connect).options = Some(Box::new(ConnectOptions::Mqtt(client)));
    }
    opens
}

fn order(step: u16, order: Order) -> Statement {
    let mut asks = ask("", Until::Any);
    if let Statement::Request(request) = &mut asks {
        let request = Arc::make_mut(request);
        request.step = StepId(step);
        request.message = Message { content: Content::Mqtt(Box::new(order)), cut: None };
    }
    asks
}

fn subscribe(step: u16, filter: &str, qos: Qos) -> Statement {
    let filters = vec![(Text::literal(filter), SubscribeOptions::new(qos))];
    order(step, Order::Subscribe(Subscribe { filters, properties: Vec::new() }))
}

fn message(qos: Qos) -> Order {
    let (topic, payload) = (valued("\"a/\" + string(user.id)"), Text::literal("hello"));
    Order::Publish(Publish { topic, payload, qos, retain: false, properties: Vec::new() })
}

fn publish(step: u16, qos: Qos) -> Statement {
    order(step, message(qos))
}

/// Waits for a message whose topic matches the filter.
fn hear(step: u16, filter: &str) -> Statement {
    let topic =
        Check { pick: Pick::Header("topic".into()), want: Want::Topic(Text::literal(filter)) };
    Statement::Expect(Arc::new(Expect {
        step: StepId(step),
        link: 0,
        message: Which { checks: vec![topic], ..Which::default() },
        until: Until::Any,
        checks: vec![body("hello")],
        saves: Vec::new(),
        timeout: 500 * MS,
        failing: Failing::default(),
    }))
}

const KINDS: [StepKind; 4] =
    [StepKind::Connect, StepKind::Request, StepKind::Request, StepKind::Expect];

/// Users that run these steps once each second, for this many seconds.
fn speaking(code: Block, begin: usize, users: u64, time: Duration) -> Program {
    let drive = Drive::Users(Users { to: users, coming: Coming::AtOnce });
    program(Scheme::Mqtt, vec![session(code, begin)], &KINDS, phase(drive, Some(time)))
}

fn second() -> Statement {
    Statement::Think(Pause::Uniform { low: S, high: S })
}

#[test]
fn messages_of_all_qos_levels_are_acknowledged_and_delivered_by_topic() {
    for version in [Version::V3, Version::V5] {
        for qos in [Qos::AtLeastOnce, Qos::ExactlyOnce] {
            let code = vec![
                open(client(version)),
                subscribe(1, "a/#", qos),
                publish(2, qos),
                hear(3, "a/+"),
                second(),
            ];
            let program = speaking(code, 2, 200, 10 * S);
            let server = server(version, move |packet| echo(version, packet));
            let outcome = run(program, 41, |world| world.clog(0.1), server);
            outcome.is_sound(41);
            let examples = &outcome.examples;
            assert_eq!(outcome.sum.total().errors, [], "{qos:?} {examples:?}");
            let counts = [1, 2, 3].map(|step| outcome.step(step).ok);
            assert_eq!(counts[0], 200);
            assert!(counts[1] >= 1_800 && counts[1] == counts[2], "{counts:?}");
            assert_eq!(outcome.step(0).codes, [(base::status(0), 200)]);
            assert_eq!(outcome.step(1).codes, [(base::status(qos.level()), 200)]);
            assert_eq!(outcome.sum.traffic.messages.unasked, 0);
        }
    }
}

#[test]
fn a_trace_shows_the_random_values_that_are_sent() {
    let drawn = "string(random.int(1, 1000000))";
    let order = order(
        1,
        Order::Publish(Publish {
            topic: valued(&format!("\"a/\" + {drawn}")),
            payload: valued(drawn),
            qos: Qos::AtLeastOnce,
            retain: false,
            properties: Vec::new(),
        }),
    );
    let came = Rc::new(RefCell::new(Vec::new()));
    let server = server(Version::V5, {
        let came = Rc::clone(&came);
        move |packet| {
            if let Packet::Publish(publish) = packet {
                let payload = String::from_utf8_lossy(publish.payload);
                came.borrow_mut().push(format!("PUBLISH {}\n{payload}", publish.topic));
            }
            echo(Version::V5, packet)
        }
    });
    let program = speaking(vec![open(client(Version::V5)), order, second()], 1, 1, 3 * S);
    let outcome = Play { traced: true, ..Play::new(program, 43) }.run(|world| world, server);
    outcome.is_sound(43);
    let sent = outcome.traces.iter().filter_map(|trace| match &trace.what {
        What::Sent(shown) => String::from_utf8(shown.bytes.clone()).ok(),
        _ => None,
    });
    let sent: Vec<String> = sent.filter(|text| text.starts_with("PUBLISH ")).collect();
    assert!(sent.len() >= 2, "{sent:?}");
    assert_eq!(sent, *came.borrow());
}

#[test]
fn an_idle_user_sends_pings_by_itself() {
    for answers in [true, false] {
        let own = Client { keep_alive_s: 3, ..client(Version::V5) };
        let program = speaking(vec![open(own), stay(1, None)], 1, 10, 20 * S);
        let pings = Rc::new(Cell::new(0));
        let count = Rc::clone(&pings);
        let server = server(Version::V5, move |packet| match packet {
            Packet::Pingreq => {
                count.set(count.get() + 1);
                if answers { echo(Version::V5, packet) } else { Vec::new() }
            }
            packet => echo(Version::V5, packet),
        });
        let outcome = run(program, 42, |world| world, server);
        outcome.is_sound(42);
        match answers {
            true => assert_eq!((pings.get(), outcome.sum.total().errors), (60, Vec::new())),
            false => {
                let lost = outcome.errors(Cause::HeartbeatLost);
                assert!(lost >= 20 && pings.get() >= lost, "{lost} {}", pings.get());
                assert!(outcome.examples[0].detail.english().contains("3.1.2.10"));
            }
        }
    }
}

#[test]
fn a_ping_heartbeat_is_answered() {
    for answers in [true, false] {
        let heartbeat = Heartbeat {
            step: StepId(2),
            beat: Beat::Ping,
            every: S,
            answer: Which::default(),
            lost_after: Some(500 * MS),
            fault: Default::default(),
        };
        let code = vec![open(client(Version::V3)), stay(1, Some(heartbeat))];
        let server = server(Version::V3, move |packet| match packet {
            Packet::Pingreq if !answers => Vec::new(),
            packet => echo(Version::V3, packet),
        });
        let outcome = run(speaking(code, 1, 10, 5 * S), 49, |world| world, server);
        outcome.is_sound(49);
        let beats = outcome.sum.heartbeats;
        match answers {
            true => assert!(beats.answered >= 40 && beats.lost == 0, "{beats:?}"),
            false => assert!(beats.answered == 0 && beats.lost >= 30, "{beats:?}"),
        }
    }
}

#[test]
fn the_reason_code_of_a_refusal_decides_its_cause() {
    for (code, cause) in [
        (0x86, Cause::MqttRequest),
        (0x87, Cause::MqttReason),
        (0x89, Cause::MqttReason),
        (0x82, Cause::MqttProtocol),
    ] {
        let program = speaking(vec![open(client(Version::V5)), stay(1, None)], 1, 3, 2 * S);
        let server = server(Version::V5, move |_| {
            let mut text = Vec::new();
            write_property(PropertyId::ReasonString, Value::Text("go away"), &mut text);
            let properties = mqtt::Properties::new(&text, mqtt::PacketType::Connack).unwrap();
            let connack = Connack { code, properties, session_present: false };
            vec![written(Version::V5, &Packet::Connack(connack))]
        });
        let outcome = run(program, 43, |world| world, server);
        outcome.is_sound(43);
        let refused = outcome.errors(cause);
        assert!(refused >= 3, "{code:x}: {:?}", outcome.sum.total().errors);
        assert_eq!(outcome.step(0).codes, [(base::status(code), refused)]);
        let detail = outcome.examples[0].detail.english();
        assert!(detail.ends_with(": go away") && detail.starts_with("CONNACK: "), "{detail}");
    }
}

/// The result of one step against a server that answers it this way.
fn verdict(
    step: Statement,
    answer: impl Fn(u16) -> Packet<'static> + 'static,
) -> (u64, Vec<(Cause, u64)>, Vec<String>) {
    let code = vec![open(client(Version::V5)), step, second()];
    let program = speaking(code, 1, 1, 500 * MS);
    let server = server(Version::V5, move |packet| match packet {
        Packet::Publish(publish) => vec![written(Version::V5, &answer(publish.id))],
        Packet::Subscribe(subscribe) => vec![written(Version::V5, &answer(subscribe.id))],
        packet => echo(Version::V5, packet),
    });
    let outcome = run(program, 44, |world| world, server);
    outcome.is_sound(44);
    let said = outcome.examples.iter().map(|example| example.detail.english()).collect();
    let (ok, errors) = outcome.ended(1);
    (ok, errors, said)
}

#[test]
fn an_acknowledgement_can_be_a_refusal() {
    let full = |id| Packet::Puback(Ack { id, code: 0x97, ..Ack::default() });
    let (ok, errors, said) = verdict(publish(1, Qos::AtLeastOnce), full);
    assert_eq!((ok, &errors[..]), (0, &[(Cause::MqttReason, 1)][..]));
    assert_eq!(said, ["PUBACK: Quota exceeded (0x97)"]);
    let mut expected = publish(1, Qos::AtLeastOnce);
    if let Statement::Request(request) = &mut expected {
        Arc::make_mut(request).checks = vec![status(base::status(0x97))];
    }
    assert_eq!(verdict(expected, full).0, 1);
    let lower = |id| Packet::Suback(Codes { id, codes: &[0], ..Codes::default() });
    let (ok, errors, said) = verdict(subscribe(1, "a", Qos::AtLeastOnce), lower);
    assert_eq!((ok, &errors[..]), (0, &[(Cause::MqttRequest, 1)][..]));
    assert_eq!(said, ["SUBACK: 1 subscriptions were granted a lower QoS than requested"]);
}

#[test]
fn a_server_that_violates_the_protocol_is_disconnected() {
    let publish = || publish(1, Qos::AtLeastOnce);
    let wrong = |id| Packet::Puback(Ack { id: id + 1, ..Ack::default() });
    let (_, errors, said) = verdict(publish(), wrong);
    assert_eq!(errors.iter().map(|(cause, _)| *cause).collect::<Vec<_>>(), [Cause::Malformed]);
    assert!(said[0].contains("PUBACK") && said[0].contains("4.3.2"), "{said:?}");
    let alias = |_| {
        let properties = mqtt::Properties::new(&[0x23, 0, 1], mqtt::PacketType::Publish).unwrap();
        Packet::Publish(mqtt::Publish { properties, ..mqtt::Publish::default() })
    };
    let (_, errors, said) = verdict(publish(), alias);
    assert_eq!(errors.iter().map(|(cause, _)| *cause).collect::<Vec<_>>(), [Cause::Malformed]);
    assert!(said[0].contains("3.3.2.3.4"), "{said:?}");
    // Before CONNACK.
    let program = speaking(vec![open(client(Version::V3)), stay(1, None)], 1, 1, S);
    let server = server(Version::V3, |_| vec![written(Version::V3, &Packet::Pingresp)]);
    let outcome = run(program, 45, |world| world, server);
    assert!(outcome.errors(Cause::Malformed) > 0);
    assert!(outcome.examples[0].detail.english().contains("CONNACK"));
}

#[test]
fn another_protocol_is_distinguished_from_a_violation() {
    for said in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &[21, 3, 3, 0, 2, 2, 70]] {
        let program = speaking(vec![open(client(Version::V5)), stay(1, None)], 1, 1, S);
        let server: Server = Box::new(move |_, _| vec![(MS, say(said))]);
        let outcome = run(program, 48, |world| world, server);
        assert!(outcome.errors(Cause::WrongScheme) > 0, "{:?}", outcome.examples);
        assert_eq!(outcome.errors(Cause::Malformed), 0);
    }
}

#[test]
fn a_session_continues_on_the_next_connection() {
    let own = Client { clean_start: false, ..client(Version::V3) };
    let code = vec![open(own), publish(1, Qos::AtLeastOnce), stay(2, None)];
    let program = speaking(code, 2, 1, 3 * S);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&seen);
    let server = server(Version::V3, move |packet| {
        let mut seen = noted.borrow_mut();
        match *packet {
            Packet::Connect(_) => {
                let connack = Connack { session_present: !seen.is_empty(), ..Connack::default() };
                seen.push("connect".to_string());
                vec![written(Version::V3, &Packet::Connack(connack))]
            }
            Packet::Publish(it) => {
                seen.push(format!("publish {} {}", it.id, it.dup));
                // The first one violates the standard, so that the client loses the connection.
                match it.dup {
                    true => echo(Version::V3, packet),
                    false => vec![vec![0xff, 0xff]],
                }
            }
            _ => Vec::new(),
        }
    });
    let outcome = run(program, 46, |world| world, server);
    outcome.is_sound(46);
    let seen = seen.borrow();
    assert_eq!(seen[..4], ["connect", "publish 1 false", "connect", "publish 1 true"], "{seen:?}");
}

#[test]
fn handlers_get_the_messages_of_their_topics() {
    let mut stays = stay(1, None);
    if let Statement::Stay(stay) = &mut stays {
        let topic =
            Check { pick: Pick::Header("topic".into()), want: Want::Topic(Text::literal("b/#")) };
        let handler = Handler {
            step: StepId(3),
            message: Which { checks: vec![topic], ..Which::default() },
            checks: vec![body("yes")],
            saves: Vec::new(),
            body: None,
            failing: Failing::default(),
        };
        Arc::make_mut(stay).handlers = vec![handler];
    }
    let code = vec![open(client(Version::V5)), stays];
    let program = speaking(code, 1, 5, S);
    let server = server(Version::V5, |packet| {
        let mut out = echo(Version::V5, packet);
        if let Packet::Connect(_) = packet {
            for (topic, payload) in [("b/1", "yes"), ("c", "no"), ("b", "yes"), ("b/x/y", "no")] {
                let payload = payload.as_bytes();
                let message = mqtt::Publish { topic, payload, ..mqtt::Publish::default() };
                out.push(written(Version::V5, &Packet::Publish(message)));
            }
        }
        out
    });
    let outcome = run(program, 47, |world| world, server);
    let (ok, errors) = outcome.ended(3);
    assert_eq!((ok, &errors[..]), (10, &[(Cause::BodyUnexpected, 5)][..]));
    assert_eq!(outcome.sum.traffic.messages.pushes, 20);
}
