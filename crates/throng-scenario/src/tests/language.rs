//! Expressions, data, checks and saves in the program.

use std::sync::Arc;

use throng_base::Random;
use throng_data::{AtEnd, Origin, Take};
use throng_expression::{Answer, EvaluationError, Scope, Value};
use throng_metrics::{Comparison, Counter, Subject};
use throng_program::{Body, Check, Extractor, Http, Matcher, Program, Save, Statement, Text};

use super::program;

/// The user to render texts for: the seventh, in its third iteration.
struct SomeUser {
    slots: Vec<Value>,
    random: Random,
}

impl SomeUser {
    fn new() -> SomeUser {
        SomeUser { slots: vec![Value::Null; 8], random: Random::new(1) }
    }

    fn render(&mut self, text: &Text) -> String {
        let mut out = Vec::new();
        text.render(&mut out, self).unwrap();
        String::from_utf8(out).unwrap()
    }
}

impl Scope for SomeUser {
    fn user_id(&self) -> u64 {
        7
    }

    fn iteration(&self) -> u64 {
        3
    }

    fn slot(&self, slot: u16) -> &Value {
        &self.slots[usize::from(slot)]
    }

    /// As `source:column`, so that tests see both numbers.
    fn field(&mut self, source: u16, column: u16) -> Result<Value, EvaluationError> {
        Ok(Value::Text(format!("{source}:{column}").into()))
    }

    fn row(&mut self, source: u16) -> Result<Value, EvaluationError> {
        Ok(Value::List([Value::Int(i64::from(source))].into()))
    }

    fn answer(&mut self, part: Answer) -> Result<Value, EvaluationError> {
        match part {
            Answer::Status => Ok(Value::Int(201)),
            _ => Err(EvaluationError(throng_base::Said::of_others("there is no answer"))),
        }
    }

    fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn unix_nanos(&self) -> u64 {
        1_700_000_000_000_000_000
    }
}

/// A scenario with one session; `head` contains its other keys, `steps` the lines of its list.
fn one_session(head: &str, steps: &str) -> Program {
    let indented: String = steps.lines().map(|line| format!("      {line}\n")).collect();
    let head = format!("target: http://h\nload: [{{users: 1, for: 1s}}]\n{head}");
    program(&format!("{head}\nsessions:\n  s:\n    steps:\n{indented}"))
}

fn http(program: &Program, at: usize) -> &Http {
    let steps = program.sessions[0].all().filter_map(|one| match one {
        Statement::Http(http) => Some(&**http),
        _ => None,
    });
    steps.collect::<Vec<_>>()[at]
}

fn body(program: &Program, at: usize) -> &Text {
    match &http(program, at).body {
        Body::Text(text) => text,
        Body::None => panic!("a body"),
    }
}

#[test]
fn values_keep_their_types_in_json() {
    let program = one_session(
        "vars: {list: [1, {a: x}], room: lobby, half: 0.5, seven: 7}",
        "- http: POST /
  json:
    id: \"${user.id}\"
    s: ${string(user.id)}
    all: ${vars.list}
    t: \"u${user.id}\"
    r: ${vars.room}
    h: ${vars.half}
    n: \"${vars.seven}\"",
    );
    let body = body(&program, 0);
    assert_eq!(
        SomeUser::new().render(body),
        r#"{"id":7,"s":"7","all":[1,{"a":"x"}],"t":"u7","r":"lobby","h":0.5,"n":7}"#
    );
    // Constants are merged at compile time: three values and the text between them.
    assert_eq!(body.segments.len(), 7);
}

#[test]
fn names_in_json_and_forms_may_be_expressions() {
    let program = one_session(
        r#"vars: {odd: "a b\"&"}"#,
        "- http: POST /
  json: {\"${vars.odd}\": 1, \"u${user.id}\": {\"$${x}\": [{\"${user.id}\": 2}]}}
- http: POST /
  form: {\"${vars.odd}\": 1, \"u[${user.id}]\": [a, b]}",
    );
    let mut user = SomeUser::new();
    assert_eq!(user.render(body(&program, 0)), r#"{"a b\"&":1,"u7":{"${x}":[{"7":2}]}}"#);
    assert_eq!(user.render(body(&program, 1)), "a+b%22%26=1&u%5B7%5D=a&u%5B7%5D=b");
}

#[test]
fn variables_can_use_each_other() {
    let program = one_session(
        "vars:
  b: \"${vars.a + 1}\"
  a: 1
  c: {env: HOST}
  d: {env: NOWHERE, default: [x]}
  e: x-${vars.b}-${env.HOST}
  f: 007
  g: \"5\"",
        "- http: POST /
  json:
    - ${vars.b}
    - ${vars.c}
    - ${vars.d}
    - ${vars.e}
    - ${vars.f}
    - ${vars.g}
    - ${vars.a}",
    );
    let body = body(&program, 0).as_literal().unwrap();
    let matcher = r#"[2,"from-env",["x"],"x-2-from-env","007","5",1]"#;
    assert_eq!(String::from_utf8_lossy(body), matcher);
}

#[test]
fn values_are_escaped_for_their_format() {
    let program = one_session(
        r#"vars: {odd: "a b&c\"?é"}"#,
        "- http: POST /x/${vars.odd}?i=${user.id}
  headers: {x: \"${vars.odd}\"}
  form: {f: \"${vars.odd}\", g: \"<${user.id}>\"}
  cookies: {c: \"v${user.id}\"}
- http: POST /
  json: {j: \"-${vars.odd}\"}",
    );
    let mut user = SomeUser::new();
    let first = http(&program, 0);
    assert_eq!(user.render(&first.path), "/x/a%20b&c%22?%C3%A9?i=7");
    assert_eq!(user.render(&first.headers[0].1), "a b&c\"?é");
    assert_eq!(user.render(body(&program, 0)), "f=a+b%26c%22%3F%C3%A9&g=%3C7%3E");
    assert_eq!(first.cookies[0].0, "c");
    assert_eq!(user.render(&first.cookies[0].1), "v7");
    assert_eq!(user.render(body(&program, 1)), r#"{"j":"-a b&c\"?é"}"#);
}

#[test]
fn sources_and_columns_are_numbered() {
    let program = one_session(
        "data:
  accounts: {csv: files/accounts.csv, take: unique, at_end: error}
  words: {list: [red, 7]}
  people: {generate: {id: 1..9, name: \"user-##\"}, rows: 5, take: per user}
  lines: {json_lines: files/people.jsonl, take: shuffle}",
        "- http: GET /${data.accounts.password}/${data.accounts.user}/${data.accounts.password}
- http: GET /${data.words}/${data.people.name}/${data.lines.code}",
    );
    let mut user = SomeUser::new();
    assert_eq!(user.render(&http(&program, 0).path), "/0:0/0:1/0:0");
    assert_eq!(user.render(&http(&program, 1).path), "/[1]/2:0/3:0");
    let [accounts, words, people, lines] = program.data.as_slice() else { panic!("{program:?}") };
    assert_eq!((accounts.take, accounts.at_end), (Take::Unique, AtEnd::Error));
    let red = Value::Text("red".into());
    assert_eq!(words.origin, Origin::List(Arc::new([red, Value::Int(7)])));
    assert_eq!(
        (words.take, people.take, lines.take),
        (Take::Circular, Take::PerUser, Take::Shuffle)
    );
    assert!(matches!(people.origin, Origin::Generate { rows: Some(5), .. }));
}

fn shown(check: &Check) -> String {
    let text = |text: &Text| match text.as_literal() {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => "…".to_string(),
    };
    let extractor = match &check.extractor {
        Extractor::Json(path) => format!("json {path}"),
        Extractor::XPath(path) => format!("xpath {path}"),
        Extractor::Css(css) => format!("css {css}"),
        Extractor::Pattern(pattern) => format!("regex {pattern}"),
        Extractor::Digest(digest) => format!("digest {digest}"),
        Extractor::Expression(_) => "expression".to_string(),
        other => format!("{other:?}"),
    };
    let matcher = match &check.matcher {
        Matcher::Equals(value) => format!("equals {}", text(value)),
        Matcher::Contains(value) => format!("contains {}", text(value)),
        Matcher::Matches(pattern) => format!("matches {pattern}"),
        Matcher::Number(comparison, value) => format!("{comparison:?} {}", value.to_text()),
        Matcher::Count(comparison, value) => format!("count {comparison:?} {value}"),
        other => format!("{other:?}"),
    };
    format!("{extractor}: {matcher}")
}

#[test]
fn checks_have_a_selector_and_an_expected_value() {
    let program = one_session(
        "",
        r#"- set: {x: 1}
- http: GET /
  save: {x: status}
  check:
    header: {ETag: present, x: "${saved.x}"}
    cookie: {Sid: present, lang: {matches: '^en'}}
    text: {matches: '^a'}
    json: {code: "${1 + 1}", b: {c: [true, null, '7'], count: 2}, d: "${saved.x}"}
    json.items: {count: ">= 3"}
    json.price: "< 10"
    json.$..id: present
    regex: 'id=(\d+)'
    xpath: {//title: Hello, //b: {count: 2}}
    css: {"li.item": {count: 3}, "input@value": 7}
    size: 1KiB..2KiB
    time: <= 500ms
    digest: {crc32: DEADBEEF}
    that: ["${response.status == 200}", saved.x > 1]"#,
    );
    let checks: Vec<String> = http(&program, 0).checks.iter().map(shown).collect();
    assert_eq!(
        checks,
        [
            "Header(\"etag\"): Present",
            "Header(\"x\"): equals …",
            "Cookie(\"Sid\"): Present",
            "Cookie(\"lang\"): matches ^en",
            "Body: matches ^a",
            "json code: Equal 2",
            "json b.c[0]: Bool(true)",
            "json b.c[1]: Null",
            "json b.c[2]: equals 7",
            "json b.count: Equal 2",
            "json d: equals …",
            "json $.items[*]: count GreaterOrEqual 3",
            "json price: Less 10",
            "json $..id: Present",
            "regex id=(\\d+): Present",
            "xpath //title: equals Hello",
            "xpath //b: count Equal 2",
            "css li.item: count Equal 3",
            "css input@value: equals 7",
            "Size: GreaterOrEqual 1024",
            "Size: LessOrEqual 2048",
            "Time: LessOrEqual 500000000",
            "digest crc32: equals deadbeef",
            "expression: True",
            "expression: True",
        ]
    );
}

#[test]
fn saves_have_slots() {
    let program = one_session(
        "",
        r#"- http: "GET /${has(saved.last) ? saved.last : 1}"
  save:
    a: json.data.grant
    b: header.ETag
    c: {json: "$..id", all: true, default: [0]}
    d: {css: 'input[name=csrf]@value'}
    e: "${response.status + 1}"
    f: body
    g: {regex: 't=(\w+)', default: none}
    h: cookie.X.Sid
- set: {last: "${2 + 3}"}
- http: POST /
  json: ["${saved.a}", "${saved.b}", "${saved.c}", "${saved.d}", "${saved.e + 1}", "${saved.f}", "${saved.g}", "${saved.h}"]"#,
    );
    let session = &program.sessions[0];
    assert_eq!(*session.slots, ["a", "b", "c", "d", "e", "f", "g", "h", "last"].map(String::from));
    let saves: &[Save] = &http(&program, 0).saves;
    let slots: Vec<u16> = saves.iter().map(|save| save.slot).collect();
    assert_eq!(slots, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(matches!(&saves[1].extractor, Extractor::Header(name) if name == "etag"));
    assert!(matches!(&saves[7].extractor, Extractor::Cookie(name) if name == "X.Sid"));
    assert!(saves[2].all && !saves[0].all);
    let mut user = SomeUser::new();
    let set = session.all().find_map(|one| match one {
        Statement::Set { slot: 8, value } => Some(value),
        _ => None,
    });
    assert_eq!(set.unwrap().value(&mut user).unwrap(), Value::Int(5));
    let default = saves[2].default.as_ref().unwrap().value(&mut user).unwrap();
    assert_eq!(default, Value::List(Arc::new([Value::Int(0)])));
    let Extractor::Expression(status) = &saves[4].extractor else { panic!("{:?}", saves[4]) };
    assert_eq!(status.evaluate(&mut user), Ok(Value::Int(202)));
    assert_eq!(saves[6].default.as_ref().unwrap().as_literal(), Some(&b"none"[..]));
}

#[test]
fn credentials_can_differ_between_users() {
    let program = one_session(
        "vars: {word: geheim}",
        r#"- {http: GET /, auth: {user: ann, password: "${vars.word}"}}
- {http: GET /, auth: {user: "u'\"${user.id // the number
  }", password: "${'p' + string(user.id)}"}}"#,
    );
    let mut user = SomeUser::new();
    let header = |at: usize| &http(&program, at).headers[0].1;
    assert_eq!(header(0).as_literal(), Some(&b"Basic YW5uOmdlaGVpbQ=="[..]));
    // u'"7:p7
    assert_eq!(user.render(header(1)), "Basic dSciNzpwNw==");
}

#[test]
fn thresholds_can_use_counters_and_pauses() {
    let text = "
target: http://h
sessions:
  s:
    steps:
      - transaction: GET /?a=1
        steps: [{http: GET /?a=1}, {think: 10ms}]
load: [{name: in out, users: 1, for: 1s}]
thresholds:
  - GET /?a=1 p95 < 1s in in out
  - GET /?a=1 with pauses p95 < 2s
  - iterations rate > 5/s
  - unmet = 0
  - bytes.in rate < 10MB/s
  - errors < 1%
  - transaction rate > 1/s
";
    let thresholds = program(text).thresholds;
    assert_eq!(thresholds[0].phase, Some(0));
    assert_eq!(thresholds[0].subject, thresholds[1].subject);
    assert!(!thresholds[0].with_pauses && thresholds[1].with_pauses);
    assert_eq!(thresholds[2].subject, Subject::Counter(Counter::Iterations));
    assert_eq!((thresholds[3].comparison, thresholds[3].value), (Comparison::Equal, 0.0));
    assert_eq!(thresholds[4].value, 10e6);
    // All steps means only attempts, not the transaction around them.
    let Subject::Steps(all) = &thresholds[5].subject else { panic!("{:?}", thresholds[5]) };
    assert_eq!(all.len(), 1);
    assert_ne!(thresholds[5].subject, thresholds[6].subject);
}

#[test]
fn a_file_of_unknown_names_takes_no_longer_than_others() {
    let vars: String =
        (0..20_000).map(|i| format!("  name{i}: \"${{vars.other{i}}}\"\n")).collect();
    let steps: String = (0..20_000).map(|i| format!("      - log: ${{vars.nam{i}}}\n")).collect();
    let head = "target: http://h\nload: [{users: 1, for: 1s}]\nsessions:\n  s:\n    steps:\n";
    let source = throng_base::Source::new("many.yaml", format!("vars:\n{vars}{head}{steps}"));
    let errors = super::compile_set(&source, &[]).unwrap_err();
    assert_eq!(errors.len(), crate::DIAGNOSTICS_MAX);
}
