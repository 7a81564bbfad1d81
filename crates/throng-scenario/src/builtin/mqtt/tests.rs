//! What MQTT becomes in the program. Mistakes with their texts stand in `tests-md/mqtt.md`.

use throng_program::mqtt::{Client, Order, Property};
use throng_program::{
    ConnectOptions, Content, Extractor, Matcher, Message, Program, Scheme, Statement, StepKind,
};
use throng_protocol::mqtt::{Qos, Version};

use crate::bench::{Bench, BenchBody, write};
use crate::outline::outline;
use crate::tests::program;

fn device(target: &str, steps: &str) -> Program {
    program(&format!(
        "target: {target}\nsessions:\n  a:\n    steps:\n{steps}\nload: [{{users: 10, for: 1m}}]\n"
    ))
}

fn client(program: &Program) -> &Client {
    let mut all = program.sessions[0].all();
    let connect = all.find_map(|one| match one {
        Statement::Connect(connect) => match connect.options.as_deref()? {
            ConnectOptions::Mqtt(client) => Some(client),
            ConnectOptions::Call(_) => None,
        },
        _ => None,
    });
    connect.expect("a client")
}

/// The orders, and whether they are acknowledged.
fn orders(program: &Program) -> Vec<(&Order, bool)> {
    fn of(message: &Message, asks: bool) -> Option<(&Order, bool)> {
        match &message.content {
            Content::Mqtt(order) => Some((order, asks)),
            _ => None,
        }
    }
    let all = program.sessions[0].all();
    all.filter_map(|one| match one {
        Statement::Send(send) => of(&send.message, false),
        Statement::Request(request) => of(&request.message, true),
        _ => None,
    })
    .collect()
}

fn properties(all: &[Property]) -> Vec<(&str, String)> {
    let literal = |text: &throng_program::Text| {
        String::from_utf8(text.as_literal().unwrap_or(b"?").to_vec()).unwrap()
    };
    let of = |one: &Property| match &one.name {
        Some(name) => (one.id.name(), format!("{}={}", literal(name), literal(&one.value))),
        None => (one.id.name(), literal(&one.value)),
    };
    all.iter().map(of).collect()
}

const DEVICE: &str = "
      - connect:
        mqtt:
          client_id: \"d-${user.id}\"
          clean_start: false
          session_expiry: never
          keep_alive: 30s
          receive_maximum: 20
          packet_maximum: 64KiB
          topic_aliases: 10
          inflight_max: 5
          will: {topic: lost, text: x, qos: 1, retain: true, delay: 5s}
          properties: {user: {a: [b, c]}}
      - publish: rooms/1
        text: hello
      - publish: \"rooms/${user.id}\"
        hex: 00ff
        qos: 2
        retain: true
        properties: {message_expiry_interval: 1m, payload_format_indicator: true, content_type: x}
      - {subscribe: [a/+, {topic: $share/g/b/#, qos: 2, retained: never}], qos: 1, no_local: false}
      - {unsubscribe: a/+}
      - expect: {topic: a/+, text: x}
        check: {topic: a/b, header: {Unit: celsius}}
        save: {unit: header.Unit, topic: topic}
      - log: \"${saved.unit} ${saved.topic}\"";

#[test]
fn a_user_says_who_it_is_and_what_it_wants() {
    let program = device("mqtts://a", DEVICE);
    assert_eq!((program.targets[0].scheme, program.targets[0].port), (Scheme::Mqtts, 8883));
    let [link] = &*program.sessions[0].links else { panic!("one link") };
    assert!(link.lasts && link.heartbeat.is_none());
    let client = client(&program);
    assert_eq!((client.version, client.clean_start, client.keep_alive_s), (Version::V5, false, 30));
    assert_eq!((client.wishes.aliases_max, client.wishes.inflight_max), (10, 5));
    assert_eq!(
        properties(&client.properties),
        [
            ("user_property", "a=b".into()),
            ("user_property", "a=c".into()),
            ("session_expiry_interval", u32::MAX.to_string()),
            ("receive_maximum", "20".into()),
            ("maximum_packet_size", "65536".into()),
            ("topic_alias_maximum", "10".into()),
        ]
    );
    let will = &client.will.as_ref().unwrap().message;
    assert_eq!((will.qos, will.retain), (Qos::AtLeastOnce, true));
    assert_eq!(properties(&will.properties), [("will_delay_interval", "5".to_string())]);

    let [zero, two, subscribe, unsubscribe] = &orders(&program)[..] else { panic!("four orders") };
    assert!(matches!(zero, (Order::Publish(one), false) if one.qos == Qos::AtMostOnce));
    let (Order::Publish(two), true) = two else { panic!("{two:?}") };
    assert_eq!((two.payload.as_literal(), two.retain), (Some(&b"\x00\xff"[..]), true));
    assert_eq!(
        properties(&two.properties),
        [
            ("content_type", "x".to_string()),
            ("message_expiry_interval", "60".into()),
            ("payload_format_indicator", "1".into()),
        ]
    );
    let (Order::Subscribe(subscribe), true) = subscribe else { panic!("{subscribe:?}") };
    let qos: Vec<(u8, u8)> = subscribe
        .filters
        .iter()
        .map(|(_, options)| (options.qos.level(), options.retain_handling))
        .collect();
    assert_eq!(qos, [(1, 0), (2, 2)]);
    assert!(matches!(unsubscribe, (Order::Unsubscribe(one), true) if one.filters.len() == 1));

    let rows: Vec<(&str, StepKind)> =
        program.steps.iter().map(|step| (step.name.as_str(), step.kind)).collect();
    assert_eq!(
        rows,
        [
            ("connect", StepKind::Connect),
            ("publish rooms/1", StepKind::Publish),
            ("publish rooms/${user.id}", StepKind::Publish),
            ("subscribe a/+, $share/g/b/#", StepKind::Subscribe),
            ("unsubscribe a/+", StepKind::Unsubscribe),
            ("expect", StepKind::Expect),
            // What `log` says may have no value.
            ("expressions", StepKind::Expression),
        ]
    );
}

#[test]
fn received_messages_are_matched_by_topic_and_headers() {
    let program = device("mqtt://a", DEVICE);
    let expect = program.sessions[0].all().find_map(|one| match one {
        Statement::Expect(expect) => Some(expect),
        _ => None,
    });
    let expect = expect.unwrap();
    let is_topic =
        |extractor: &Extractor| matches!(extractor, Extractor::Header(name) if name == "topic");
    let checks = [&expect.message.checks[..], &expect.checks].concat();
    assert!(
        checks
            .iter()
            .any(|one| is_topic(&one.extractor) && matches!(one.matcher, Matcher::Topic(_)))
    );
    assert!(
        checks
            .iter()
            .any(|one| is_topic(&one.extractor) && matches!(one.matcher, Matcher::Equals(_)))
    );
    // The names of user properties keep their case.
    let names: Vec<&Extractor> = expect.saves.iter().map(|save| &save.extractor).collect();
    assert!(matches!(names[0], Extractor::Header(name) if name == "Unit"), "{names:?}");
    assert!(is_topic(names[1]));
}

#[test]
fn over_websocket_it_has_a_path_and_a_subprotocol() {
    let program = device("ws://a\nprotocol: mqtt", "      - connect\n      - {publish: a}");
    assert!(client(&program).clean_start);
    let Statement::Connect(connect) = &program.sessions[0].steps[0] else { panic!("a connect") };
    assert_eq!(connect.path.as_literal(), Some(&b"/mqtt"[..]));
    assert_eq!(connect.protocols[0].as_literal(), Some(&b"mqtt"[..]));
    // On its own scheme it is not asked for.
    let program = device("mqtt://a", "      - connect\n      - {publish: a}");
    let Statement::Connect(connect) = &program.sessions[0].steps[0] else { panic!("a connect") };
    assert!(connect.protocols.is_empty());
    assert_eq!(client(&program).keep_alive_s, 60);
}

#[test]
fn it_is_told_as_it_is_written() {
    let told = format!("{:?}", outline(&device("mqtt://a", DEVICE), 1));
    for line in [
        "client_id d-${user.id}",
        "will lost qos 1",
        "publish rooms/1",
        "message hello",
        "retain",
        "subscribe a/+, $share/g/b/#",
        "topic a/+",
    ] {
        assert!(told.contains(line), "{line}:\n{told}");
    }
}

#[test]
fn a_command_line_publishes_or_listens() {
    let base = |url: &str| Bench { url: url.into(), users: 10, ..Bench::default() };
    let flags = vec![("--qos", "1".into()), ("--client-id", "${x}".into())];
    let body = BenchBody::Text("hi".into());
    let publish = Bench { flags, body, ..base("mqtt://ann:pw@127.0.0.1/rooms/a%20b") };
    assert_eq!(
        write(&publish),
        "name: bench mqtt://127.0.0.1\n\
         target: mqtt://127.0.0.1\n\
         sessions:\n  bench:\n    before:                # once, when the user starts\n\
         \x20     - connect:\n\
         \x20       mqtt: {client_id: \"$${x}-${user.id}\", user: ann, password: pw}\n\
         \x20   steps:                 # repeatedly\n\
         \x20     - publish: rooms/a b\n        text: hi\n        qos: 1\n\
         load:\n  - {name: bench, users: 10, for: 10s}\n"
    );
    program(&write(&publish));
    let listen = program(&write(&base("mqtts://127.0.0.1/$share/g/rooms/#")));
    let [(Order::Subscribe(one), true)] = &orders(&listen)[..] else { panic!("{listen:?}") };
    assert_eq!(one.filters[0].0.as_literal(), Some(&b"$share/g/rooms/#"[..]));
    assert_eq!(listen.sessions[0].links[0].handlers.len(), 1);
    let idle = program(&write(&base("mqtt://127.0.0.1")));
    assert!(orders(&idle).is_empty());
}

#[test]
fn a_retry_names_reason_codes() {
    let step = "      - {publish: t, qos: 1, retry: {times: 2, on: [Server busy, \"0x97\"]}}";
    let told =
        format!("{:?}", outline(&device("mqtt://a", &format!("      - connect\n{step}")), 1));
    assert!(told.contains("retry 2, wait 1s..30s, on Server busy Quota exceeded"), "{told}");
}
