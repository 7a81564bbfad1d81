//! Scenarios with Redis as programs. Mistakes and their messages are in `tests-md/redis.md`.

use throng_program::redis::{self, Commands};
use throng_program::{Content, Extractor, Login, Program, Scheme, Statement, StepKind};

use crate::bench::{Bench, write};
use crate::outline::outline;
use crate::tests::program;

fn shop(target: &str, steps: &str) -> Program {
    program(&format!(
        "target: {target}\nsessions:\n  a:\n    steps:\n      - connect\n{steps}\nload: [{{users: 10, for: 1m}}]\n"
    ))
}

fn commands(program: &Program) -> Vec<&Commands> {
    let all = program.sessions[0].all();
    all.filter_map(|one| match one {
        Statement::Request(request) => match &request.message.content {
            Content::Redis(commands) => Some(&**commands),
            _ => None,
        },
        _ => None,
    })
    .collect()
}

#[test]
fn constant_commands_are_encoded_once() {
    let program = shop(
        "redis://a",
        "      - redis: SET k \"a b\"\n      - redis: |\n          GET a\n\n          GET b\n\
         \x20     - redis: [[GET, \"${user.id}\"], [SUBSCRIBE, a, b]]\n        check: {json: {\"[0]\": a}}",
    );
    let all = commands(&program);
    assert_eq!(all[0].fixed(), Some(&b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\na b\r\n"[..]));
    let pipeline = &b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*2\r\n$3\r\nGET\r\n$1\r\nb\r\n"[..];
    assert_eq!((all[1].fixed(), all[1].count, all[1].replies), (Some(pipeline), 2, 2));
    assert_eq!((all[2].fixed(), all[2].replies, all[2].is_read), (None, 3, true));
    let rows: Vec<_> = program.steps.iter().map(|step| (step.name.as_str(), step.kind)).collect();
    assert_eq!(
        rows[1..],
        [
            ("SET k \"a b\"", StepKind::Redis),
            ("GET a (+1)", StepKind::Redis),
            ("GET ${user.id} (+1)", StepKind::Redis),
        ]
    );
    let shown = format!("{:?}", outline(&program, 9));
    assert!(shown.contains("redis GET a (+1)"), "{shown}");
}

#[test]
fn checks_and_saves_select_from_replies() {
    let program = shop(
        "redis://a",
        "      - redis: GET k\n        check: {value: a, header: {type: text}}\n        save: {v: value}\n      - log: ${saved.v}",
    );
    let step = program.sessions[0].all().find(|one| !one.checks().is_empty()).unwrap();
    let names: Vec<_> = step
        .checks()
        .iter()
        .map(|check| &check.extractor)
        .chain(step.saves().iter().map(|save| &save.extractor))
        .map(|extractor| match extractor {
            Extractor::Header(name) => name.as_str(),
            _ => "",
        })
        .collect();
    assert_eq!(names, ["value", "type", "value"]);
}

#[test]
fn the_url_contains_credentials_and_the_database() {
    let login = |url: &str| shop(&format!("\"{url}\""), "").targets[0].clone();
    let full = login("rediss://ann:w%40rd@a/3");
    assert_eq!((full.scheme, full.port), (Scheme::Rediss, 6379));
    let (user, password) = ("ann".into(), "w@rd".into());
    assert_eq!(
        full.login.as_deref(),
        Some(&Login::Redis(redis::Login { user, password, database: 3 }))
    );
    assert_eq!(full.written(), "rediss://a");
    assert!(!format!("{full:?}").contains("w@rd"));
    let plain = login("redis://a:6390");
    assert_eq!((plain.login, plain.port), (None, 6390));
}

#[test]
fn a_command_line_becomes_a_scenario() {
    let bench =
        |flags| Bench { url: "redis://:word@a/3".into(), users: 2, flags, ..Bench::default() };
    let text = write(&bench(Vec::new()));
    assert!(text.contains("- redis: PING") && text.contains("target: redis://:word@a/3"), "{text}");
    assert!(text.contains("name: bench redis://a\n"), "{text}");
    let text = write(&bench(vec![
        ("--command", "SET k:${random.int(1, 9)} 'a: b'".into()),
        ("--pipeline", "2".into()),
    ]));
    let program = program(&text);
    let all = commands(&program);
    assert_eq!((all[0].count, all[0].replies, all[0].is_read), (2, 2, false), "{text}");
}

#[test]
fn a_retry_names_errors() {
    let retry = |on: &str| {
        let steps = format!("      - {{redis: GET k, retry: {{times: 2, on: {on}}}}}");
        format!("{:?}", outline(&shop("redis://a", &steps), 1))
    };
    let shown = retry("[LOADING, CLUSTERDOWN, timeout]");
    assert!(shown.contains("retry 2, wait 1s..30s, on LOADING CLUSTERDOWN timeout"), "{shown}");
    assert!(retry("ERR").contains(", on ERR"));
}
