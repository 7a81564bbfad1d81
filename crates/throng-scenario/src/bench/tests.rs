//! Tests that the scenario of a command line does what the command line requests.

use std::time::Duration;

use throng_base::Random;
use throng_extract::JsonPath;
use throng_program::{
    Beat, Body, Check, Coming, Drive, Family, Iterations, Parting, Pick, Program, Statement, Until,
    Users, Want,
};

use super::*;
use crate::tests::program;
use crate::{JsonWant, parse_json_expectation};

fn compiled(bench: &Bench) -> Program {
    program(&write(bench))
}

fn base(url: &str) -> Bench {
    Bench { url: url.into(), users: 10, ..Bench::default() }
}

/// The message if it is the same for all users.
fn literal_of(message: &throng_program::Message) -> Option<&[u8]> {
    match &message.content {
        throng_program::Content::Plain { content, .. } => content.as_literal(),
        _ => None,
    }
}

#[test]
fn users_start_stay_and_leave() {
    let bench = Bench {
        users: 1_000_000,
        hold: Some(Duration::from_secs(600)),
        heartbeat: Some(Duration::from_secs(30)),
        body: BenchBody::Text("{\"cmd\":\"login\"}".into()),
        sources: vec!["127.1.0.0/16".into()],
        thresholds: vec!["users.online >= 1M in hold".into()],
        ..base("ws://127.0.0.1:8089/acc")
    };
    let program = compiled(&bench);
    assert_eq!(program.connection.sources.blocks.len(), 1);
    let [connect, request, stay] = &*program.sessions[0].steps else { panic!("{program:?}") };
    assert!(matches!(connect, Statement::Connect(_)));
    assert!(matches!(request, Statement::Request(_)));
    let Statement::Stay(stay) = stay else { panic!("{stay:?}") };
    assert!(matches!(stay.heartbeat.as_ref().unwrap().beat, Beat::Ping));
    let names: Vec<&str> =
        program.loads[0].phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["fill", "hold", "drain"]);
    let users = Users { to: 1_000_000, coming: Coming::Rate(FILL_RATE) };
    assert_eq!(program.loads[0].phases[0].drive, Drive::Users(users));

    let tcp = Bench {
        hold: Some(Duration::from_secs(1)),
        rate: Some(500.0),
        heartbeat: Some(Duration::from_secs(5)),
        heartbeat_message: Some("tick\r\n".into()),
        ..base("tcp://127.0.0.1:9000")
    };
    let program = compiled(&tcp);
    let Statement::Stay(stay) = &program.sessions[0].steps[1] else { panic!("{program:?}") };
    let Beat::Message(message) = &stay.heartbeat.as_ref().unwrap().beat else { panic!("{stay:?}") };
    assert_eq!(literal_of(message), Some(&b"tick\r\n"[..]));
    assert_eq!(program.loads[0].phases[2].drive, {
        let coming = Coming::Rate(1000.0);
        Drive::Users(Users { to: 0, coming })
    });

    // HTTP requests by users that start and leave.
    let http = Bench { hold: Some(Duration::from_secs(1)), ..base("http://127.0.0.1/") };
    assert_eq!(compiled(&http).loads[0].phases.len(), 3);
}

#[test]
fn the_shortest_command_line_gives_a_readable_scenario() {
    let bench =
        Bench { time: Some(Duration::from_secs(30)), ..base("http://127.0.0.1:8080/x?y=1") };
    assert_eq!(
        write(&bench),
        "name: bench http://127.0.0.1:8080\n\
         target: http://127.0.0.1:8080\n\
         sessions:\n  bench:\n    steps:\n      - http: GET /x?y=1\n\
         load:\n  - {name: bench, users: 10, for: 30s}\n"
    );
    compiled(&bench);
}

#[test]
fn all_http_options_are_in_the_scenario() {
    let second = Duration::from_secs(1);
    let bench = Bench {
        headers: vec![
            ("X-A".into(), "1: \"${x}\"".into()),
            ("Accept".into(), "*/*".into()),
            ("x-a".into(), "#2".into()),
        ],
        body: BenchBody::Text("{\"a\": 'b'}\n$${".into()),
        keep_alive: Some(false),
        timeout: Some(second * 2),
        connect_timeout: Some(second),
        expect_status: Some("200,3xx".into()),
        expect_json: vec![
            parse_json_expectation("data.code=200").unwrap(),
            parse_json_expectation("t[0]=\"5\"").unwrap(),
        ],
        expect_text: Some("present".into()),
        verify_tls: Some(false),
        ca: Some("ca.pem".into()),
        certificate: Some("client.pem".into()),
        key: Some("client.key".into()),
        server_name: Some("name".into()),
        follow_redirects: true,
        redirects_max: Some(3),
        think: Some(second),
        warm_up: Some(second),
        cookies: Some(false),
        family: Some(Family::V6),
        sources: vec!["::1".into(), "fd00::/120".into()],
        seed: Some(9),
        thresholds: vec!["http p99 < 50ms".into(), "errors = 0 in bench".into()],
        abort_when: vec!["errors > 10% over 10s for 20s".into()],
        iterations: Some(1000),
        rate: Some(0.5),
        ..base("https://me:p%20w@[::1]:8443/a b#f")
    };
    let program = compiled(&bench);
    let Statement::Http(http) = &program.sessions[0].steps[0] else { panic!("http") };
    assert_eq!(http.method, "POST");
    assert_eq!(http.path.as_literal(), Some(&b"/a%20b"[..]));
    let sent: Vec<(&str, &[u8])> = http
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_literal().unwrap()))
        .collect();
    assert_eq!(sent[..3], [("X-A", &b"1: \"${x}\""[..]), ("X-A", b"#2"), ("Accept", b"*/*")]);
    assert_eq!(sent[3], ("Authorization", &b"Basic bWU6cCB3"[..]));
    let Body::Text(body) = &http.body else { panic!("a body") };
    assert_eq!(body.as_literal(), Some(&b"{\"a\": 'b'}\n$${"[..]));
    assert!(http.follow_redirects && http.timeout == second * 2);
    assert_eq!(http.checks.len(), 4);
    assert!(matches!(&http.checks[3].want, Want::Equals(text) if text.as_literal() == Some(b"5")));
    assert!(!program.tls.verify && program.tls.identity.is_some());
    assert!(!program.connection.keep_alive && !program.connection.cookies);
    assert_eq!(program.connection.sources.blocks.len(), 2);
    assert_eq!((program.limits.redirects_max, program.seed), (3, 9));
    assert_eq!(program.loads[0].phases.len(), 2);
    assert!(!program.loads[0].phases[0].measured);
    let want = Iterations::new(10, Some(0.5), Some(1000));
    assert_eq!(program.loads[0].phases[1].drive, Drive::Iterations(want));
    assert_eq!(program.thresholds[1].phase, Some(1));
    assert_eq!(program.abort_when[0].condition.text, "errors > 10% over 10s for 20s");
}

#[test]
fn all_options_of_long_lived_connections_are_in_the_scenario() {
    let text = Bench {
        body: BenchBody::Text("hello".into()),
        protocols: vec!["chat".into()],
        deflate: true,
        ..base("ws://h/acc?x=1")
    };
    let program = compiled(&text);
    let session = &program.sessions[0];
    assert_eq!((session.before.len(), session.steps.len(), session.after.len()), (1, 1, 0));
    let Statement::Connect(connect) = &session.before[0] else { panic!("connect") };
    assert_eq!(connect.path.as_literal(), Some(&b"/acc?x=1"[..]));
    let protocols: Vec<_> = connect.protocols.iter().map(|one| one.as_literal()).collect();
    assert_eq!(protocols, [Some(&b"chat"[..])]);
    let idle = compiled(&base("wss://h/"));
    let stays = idle.sessions[0].all().nth(1).unwrap();
    assert!(matches!(stays, Statement::Stay(stay) if stay.time.is_none()));
    let phase = &idle.loads[0].phases[0];
    assert_eq!(phase.drive, Drive::Users(Users { to: 10, coming: Coming::AtOnce }));
    let connects = compiled(&Bench { iterations: Some(5), ..base("tls://h:9") });
    assert!(matches!(
        connects.sessions[0].steps[1],
        Statement::Disconnect { how: Parting::Fin, .. }
    ));
    for until in [
        BenchUntil::Any,
        BenchUntil::Delimiter("\r\n\0".into()),
        BenchUntil::Length(5),
        BenchUntil::Pattern("a|\\d\"'$".into()),
    ] {
        let bench = Bench {
            hex_message: Some(vec![0, 255]),
            until: until.clone(),
            keep_alive: Some(false),
            ..base("tcp://h:9")
        };
        let program = compiled(&bench);
        let Statement::Request(request) = &program.sessions[0].steps[1] else { panic!("request") };
        assert_eq!(literal_of(&request.message), Some(&[0, 255][..]));
        match (&request.until, until) {
            (Until::Any, BenchUntil::Any) => {}
            (Until::Length(a), BenchUntil::Length(b)) => assert_eq!(*a, b),
            (Until::Delimiter(a), BenchUntil::Delimiter(b)) => assert_eq!(**a, *b.as_bytes()),
            (Until::Pattern(a), BenchUntil::Pattern(b)) => assert_eq!(a.as_str(), b),
            (a, b) => panic!("{a:?} {b:?}"),
        }
    }
}

#[test]
fn forms_and_files_are_in_the_scenario() {
    let part = |name: &str, content| FormPart {
        name: name.into(),
        content,
        filename: Some("q\"x".into()),
        content_type: Some("text/plain; charset=utf-8".into()),
    };
    let body = BenchBody::Form(vec![
        part("a b", FormContent::Text("v: {x}".into())),
        part("f", FormContent::File("post.txt".into())),
    ]);
    let program = compiled(&Bench { body, ..base("http://h") });
    let Statement::Http(http) = &program.sessions[0].steps[0] else { panic!("http") };
    let Body::Text(text) = &http.body else { panic!("a body") };
    let text = String::from_utf8(text.as_literal().unwrap().to_vec()).unwrap();
    assert!(
        text.contains("name=\"a b\"; filename=\"q%22x\"\r\nContent-Type: text/plain"),
        "{text}"
    );
    assert!(text.contains("\r\n\r\nv: {x}\r\n") && text.contains("a small text"), "{text}");
    compiled(&Bench { body: BenchBody::File("post.txt".into()), ..base("http://h") });
}

/// Random text with characters that are special in YAML and in the language.
fn any_text(random: &mut Random) -> String {
    let special =
        "\"'\\{}[]:#,&*!|>%@`~-?$\n\r\t \u{0}\u{7f}\u{85}\u{a0}\u{feff}\u{2028}\u{ffff}ü界😀=0";
    let special: Vec<char> = special.chars().collect();
    (0..random.below(24))
        .map(|_| match random.below(3) {
            0 => special[random.below(special.len() as u64) as usize],
            1 => char::from_u32(random.below(0x11_0000) as u32).unwrap_or('x'),
            _ => (b'a' + random.below(26) as u8) as char,
        })
        .collect()
}

#[test]
fn fuzz_any_text_is_written_and_read_back() {
    for case in throng_fuzz::cases(1) {
        case.try_on(b"", || is_read_back(&mut case.random()));
    }
}

/// A random header, body and expectation.
fn is_read_back(random: &mut Random) {
    let wanted = any_text(random);
    let value: String = any_text(random).chars().filter(|c| !c.is_control()).collect();
    let bytes: Vec<u8> = (0..random.below(9)).map(|_| random.next_u64() as u8).collect();
    let body = match random.below(3) {
        0 => BenchBody::Bytes(bytes.clone()),
        _ => BenchBody::Text(wanted.clone()),
    };
    let want = match &body {
        BenchBody::Bytes(_) => bytes,
        _ => wanted.clone().into_bytes(),
    };
    let bench = Bench {
        headers: vec![("X".into(), value.clone())],
        body,
        expect_text: Some(wanted.clone()).filter(|text| !text.is_empty()),
        expect_json: vec![(JsonPath::parse("a.b").unwrap(), JsonWant::Text(wanted.clone()))],
        ..base("http://h/")
    };
    let scenario = write(&bench);
    let program = program(&scenario);
    let Statement::Http(http) = &program.sessions[0].steps[0] else { panic!("http") };
    let Body::Text(text) = &http.body else { panic!("{scenario}") };
    assert_eq!(text.as_literal(), Some(&want[..]), "{scenario}");
    assert_eq!(http.headers[0].1.as_literal(), Some(value.as_bytes()), "{scenario}");
    let json = http.checks.iter().find_map(|check| match check {
        Check { pick: Pick::Json(_), want: Want::Equals(text) } => text.as_literal(),
        _ => None,
    });
    assert_eq!(json, Some(wanted.as_bytes()), "{scenario}");
}
