//! Values: requests that differ per user, checks and saves of responses, data rows, cookies and
//! trace IDs.

use std::cell::RefCell;

use throng_data::{AtEnd, Origin, Take};
use throng_expression::{Answer, Value};
use throng_extract::{Css, Digest, JsonPath, Pattern, XPath};
use throng_metrics::Comparison;
use throng_program::{OnError, Save};

use throng_base::Said;

use super::*;

/// Names as in compiled scenarios; slots as in [`session`].
struct Scenario;

impl Names for Scenario {
    fn resolve(&mut self, path: &[&str]) -> Result<(Name, usize), UnknownName> {
        Ok(match path {
            ["saved", "list", ..] => (Name::Slot(0), 2),
            ["saved", "a", ..] => (Name::Slot(2), 2),
            ["saved", "b", ..] => (Name::Slot(3), 2),
            ["user", "id", ..] => (Name::UserId, 2),
            ["iteration", ..] => (Name::Iteration, 1),
            ["data", "rows", "n", ..] => (Name::Field { source: 0, column: 0 }, 3),
            ["data", "rows", ..] => (Name::Row(0), 2),
            ["response", "status", ..] => (Name::Answer(Answer::Status), 2),
            ["response", "json", ..] => (Name::Answer(Answer::Json), 2),
            ["response", "headers", ..] => (Name::Answer(Answer::Headers), 2),
            ["response", "size", ..] => (Name::Answer(Answer::Size), 2),
            ["response", "time", ..] => (Name::Answer(Answer::Time), 2),
            _ => return Err(UnknownName::default()),
        })
    }
}

fn formula(text: &str) -> Expression {
    match Expression::compile(text, &mut Scenario) {
        Ok(expression) => expression,
        Err(error) => panic!("{text}: {error:?}"),
    }
}

/// A text with `${…}` in it.
pub(super) fn text_with(text: &str, escape: Escape) -> Text {
    let mut segments = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (inner, behind) = after.split_once('}').unwrap();
        if !before.is_empty() {
            segments.push(Segment::Literal(before.as_bytes().into()));
        }
        segments.push(Segment::Value { value: formula(inner), escape });
        rest = behind;
    }
    if !rest.is_empty() {
        segments.push(Segment::Literal(rest.as_bytes().into()));
    }
    Text { segments }
}

pub(super) fn request(method: &str, path: &str, change: impl FnOnce(&mut Http)) -> Statement {
    let mut http = Http {
        step: StepId(0),
        link: 0,
        method: method.into(),
        path: text_with(path, Escape::Path),
        headers: vec![("User-Agent".into(), Text::default()), ("Accept".into(), Text::default())],
        cookies: Vec::new(),
        digest: None,
        body: Body::None,
        timeout: 200 * MS,
        follow_redirects: false,
        checks: Vec::new(),
        saves: Vec::new(),
        failing: Failing::default(),
    };
    change(&mut http);
    Statement::Http(Arc::new(http))
}

fn body(http: &mut Http, text: &str, escape: Escape) {
    http.body = Body::Text(text_with(text, escape));
}

fn json(path: &str) -> Pick {
    Pick::Json(JsonPath::parse(path).unwrap())
}

fn check(pick: Pick, want: Want) -> Check {
    Check { pick, want }
}

fn save(slot: u16, pick: Pick) -> Save {
    Save { slot, pick, all: false, default: None }
}

fn equals(text: &str) -> Want {
    Want::Equals(text_with(text, Escape::None))
}

fn ok(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nX-Kind: demo\r\n\r\n{body}").into()
}

/// Requests as the server received them.
type Asked = Rc<RefCell<Vec<String>>>;

/// A server that records its requests, and what it does then.
fn remembering(answer: impl Fn(&str) -> Vec<(Duration, Deed)> + 'static) -> (Server, Asked) {
    let asked: Asked = Asked::default();
    let memory = Rc::clone(&asked);
    let server: Server = Box::new(move |bytes, _| {
        let mut deeds = Vec::new();
        while let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head
                .split("Content-Length: ")
                .nth(1)
                .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
            if bytes.len() < end + 4 + length {
                break;
            }
            let whole: Vec<u8> = bytes.drain(..end + 4 + length).collect();
            let whole = String::from_utf8(whole).unwrap();
            deeds.extend(answer(&whole));
            memory.borrow_mut().push(whole);
        }
        deeds
    });
    (server, asked)
}

/// A program with one session, run this often by this many users.
fn done(code: Block, users: u64, total: u64) -> Program {
    let drive = Drive::Iterations(Iterations::new(users, None, Some(total)));
    program(Scheme::Http, vec![session(code, 0)], &[StepKind::Http], phase(drive, None))
}

fn play(program: Program, server: Server) -> Outcome {
    let outcome = run(program, 1, |world| world, server);
    outcome.is_sound(1);
    outcome
}

/// The verdict on one response with these checks.
fn verdict(answer: &[u8], checks: &[Check], saves: &[Save]) -> Option<(Cause, Said)> {
    // In pieces and in one.
    let mut verdicts = Vec::new();
    for cut in [0, answer.len() / 2, answer.len() - 1] {
        let code = vec![request("GET", "/", |http| {
            http.checks = checks.to_vec();
            http.saves = saves.to_vec();
        })];
        let (before, behind) = (answer[..cut].to_vec(), answer[cut..].to_vec());
        let (server, _) = remembering(move |_| vec![(MS, say(&before)), (MS, say(&behind))]);
        let outcome = play(done(code, 1, 1), server);
        let example = outcome.examples.first();
        verdicts.push(example.map(|example| (example.cause, example.detail.clone())));
    }
    let first = verdicts.swap_remove(0);
    assert!(verdicts.iter().all(|other| *other == first), "{first:?} {verdicts:?}");
    first
}

const PAGE: &str = r#"{"code":0,"name":"Ann","big":1.5,"on":true,"none":null,"list":[1,2,3]}"#;

fn judged(answer: &[u8], pick: Pick, want: Want, good: bool) {
    let told = format!("{pick:?} {want:?}");
    let found = verdict(answer, &[check(pick, want)], &[]);
    assert_eq!(found.is_none(), good, "{told}: {found:?}");
}

fn number(comparison: Comparison, number: impl Into<Value>) -> Want {
    Want::Number(comparison, number.into())
}

fn matches(text: &str) -> Want {
    Want::Matches(regex::bytes::Regex::new(text).unwrap())
}

#[test]
fn statuses_headers_and_bodies_are_checked() {
    use Comparison::{Equal, Greater};
    let answer = ok(PAGE);
    let header = || Pick::Header("x-kind".into());
    let statuses = |low, high| Want::Statuses(StatusSet { ranges: vec![(low, high)] });
    for (pick, want, good) in [
        (Pick::Status, statuses(200, 299), true),
        (Pick::Status, statuses(201, 299), false),
        (Pick::Status, number(Equal, 200.0), true),
        (header(), Want::Present, true),
        (header(), Want::Absent, false),
        (header(), equals("demo"), true),
        (header(), equals("${'de' + 'mo'}"), true),
        (header(), equals("dem"), false),
        (header(), Want::Contains(Text::literal("em")), true),
        (header(), matches("^d.*o$"), true),
        (header(), Want::Count(Equal, 1), true),
        (Pick::Header("x-gone".into()), Want::Absent, true),
        (Pick::Header("x-gone".into()), Want::Present, false),
        (Pick::Header("x-gone".into()), Want::Count(Equal, 0), true),
        (Pick::Header("content-length".into()), number(Greater, 10.0), true),
        (Pick::Body, Want::Contains(Text::literal("Ann")), true),
        (Pick::Body, Want::Contains(Text::literal("Bob")), false),
        (Pick::Body, Want::Present, true),
        (Pick::Body, equals(PAGE), true),
        (Pick::Body, matches(r#""code":\d"#), true),
    ] {
        judged(&answer, pick, want, good);
    }
}

#[test]
fn numbers_beyond_double_precision_are_compared_exactly() {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let answer = ok(r#"{"id":9007199254740993,"top":18446744073709551615,"half":0.5}"#);
    let pattern = |text: &str| Pick::Pattern(Pattern::parse(text).unwrap());
    for pick in [json("id"), pattern(r#""id":(\d+)"#)] {
        for (comparison, value, good) in [
            (Greater, 9_007_199_254_740_992_i64, true),
            (Greater, 9_007_199_254_740_993, false),
            (GreaterOrEqual, 9_007_199_254_740_994, false),
            (Less, 9_007_199_254_740_994, true),
            (LessOrEqual, 9_007_199_254_740_992, false),
            (Equal, 9_007_199_254_740_992, false),
            (Equal, 9_007_199_254_740_993, true),
        ] {
            judged(&answer, pick.clone(), number(comparison, value), good);
        }
    }
    judged(&answer, json("top"), number(Less, u64::MAX), false);
    judged(&answer, json("top"), number(Greater, u64::MAX - 1), true);
    judged(&answer, json("half"), number(Less, 1_i64), true);
}

#[test]
fn fields_patterns_and_numbers_are_checked() {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less};
    let answer = ok(PAGE);
    let pattern = |text: &str| Pick::Pattern(Pattern::parse(text).unwrap());
    let size = PAGE.len() as f64;
    let value = |text: &str| Pick::Expression(formula(text));
    for (pick, want, good) in [
        (json("code"), number(Equal, 0.0), true),
        (json("code"), number(Equal, 1.0), false),
        (json("code"), equals("0"), false),
        (json("code"), equals("${iteration - 1}"), true),
        (json("code"), equals("${'0'}"), true),
        (json("name"), equals("Ann"), true),
        (json("name"), equals("${'A' + 'nn'}"), true),
        (json("big"), number(Greater, 1.4), true),
        (json("on"), Want::Bool(true), true),
        (json("on"), Want::Bool(false), false),
        (json("on"), Want::True, true),
        (json("none"), Want::Null, true),
        (json("none"), Want::Present, true),
        (json("gone"), Want::Absent, true),
        (json("gone"), Want::Present, false),
        (json("list"), Want::Count(Equal, 3), true),
        (json("list"), Want::Count(Less, 3), false),
        (json("$.list[*]"), Want::Count(GreaterOrEqual, 3), true),
        (json("list[1]"), number(Equal, 2.0), true),
        (json("list"), Want::Contains(text_with("${1 + 1}", Escape::None)), true),
        (pattern(r#""name":"(\w+)""#), equals("Ann"), true),
        (pattern(r#""code":(\d)"#), number(Equal, 0.0), true),
        (pattern(r"\d,"), Want::Count(Greater, 2), true),
        (pattern("Bob"), Want::Absent, true),
        (Pick::Size, number(Equal, size), true),
        (Pick::Size, number(Less, size), false),
        (Pick::Time, number(Less, 1e9), true),
        (Pick::Time, number(Less, 1e3), false),
        (Pick::Digest(Digest::Md5), equals(&Digest::Md5.of(PAGE.as_bytes())), true),
        (Pick::Digest(Digest::Crc32), equals("00000000"), false),
        (value("response.json.code == 0 && response.status == 200"), Want::True, true),
        (value("response.json.list.size()"), number(Equal, 3.0), true),
        (value("response.headers['x-kind']"), equals("demo"), true),
        (value("response.size > 1000"), Want::True, false),
        (value("response.time > 0.0"), Want::True, true),
        (value("response.json.gone"), Want::Present, false),
    ] {
        judged(&answer, pick, want, good);
    }
}

#[test]
fn html_pages_are_checked() {
    let html = ok("<html><body><p id='x'>hello</p><p>two</p></body></html>");
    let css = |text: &str| Pick::Css(Css::parse(text).unwrap());
    let xpath = |text: &str| Pick::XPath(XPath::parse(text).unwrap());
    for (pick, want, good) in [
        (css("#x"), equals("hello"), true),
        (css("p"), Want::Count(Comparison::Equal, 2), true),
        (css("b"), Want::Absent, true),
        (css("b"), Want::Present, false),
        (xpath("//p[@id='x']"), equals("hello"), true),
        (xpath("//p"), Want::Count(Comparison::Equal, 2), true),
        (xpath("//b"), Want::Present, false),
    ] {
        let told = format!("{pick:?} {want:?}");
        let found = verdict(&html, &[check(pick, want)], &[]);
        assert_eq!(found.is_none(), good, "{told}: {found:?}");
        assert!(found.is_none_or(|(cause, _)| cause == Cause::CheckFailed));
    }
}

#[test]
fn failed_checks_report_what_was_found() {
    let answer = ok("{\"code\":5,\"name\":\"\x1b[31mred\"}");
    let plain = ok("hello\nworld");
    let equal = |value: f64| number(Comparison::Equal, value);
    for (answer, checks, cause, want) in [
        (
            &plain,
            vec![check(json("code"), equal(0.0))],
            Cause::JsonUnexpected,
            "expected `json.code` to be 0, but the body is not valid JSON: `hello world`",
        ),
        (
            &plain,
            vec![check(Pick::Header("x-kind".into()), equals("other"))],
            Cause::HeaderUnexpected,
            "expected the header `x-kind` to be `other`, got `demo`",
        ),
        (
            &plain,
            vec![
                check(Pick::Size, equal(3.0)),
                check(Pick::Header("x-gone".into()), Want::Present),
                check(Pick::Body, Want::Contains(Text::literal("hello"))),
            ],
            Cause::CheckFailed,
            "expected the size to be 3, got 11; expected the header `x-gone` to be found, but it \
             is absent",
        ),
        (
            &plain,
            vec![check(Pick::Time, number(Comparison::Less, 1e6))],
            Cause::TooSlow,
            "expected the response time to be < 1.00ms, got 5.",
        ),
        (
            &plain,
            vec![check(Pick::Expression(formula("saved.a + 1")), Want::True)],
            Cause::ExpressionFailed,
            "",
        ),
    ] {
        let (found, detail) = verdict_once(answer, checks).unwrap();
        assert_eq!(found, cause, "{detail:?}");
        assert!(detail.english().starts_with(want), "{detail:?}");
    }
    let (_, detail) = verdict_once(&answer, vec![check(json("name"), equals("x"))]).unwrap();
    assert!(
        !detail.english().contains('\x1b') && detail.english().contains("[31mred"),
        "{detail:?}"
    );
}

/// Like [`verdict`], but for messages that contain the time.
fn verdict_once(answer: &[u8], checks: Vec<Check>) -> Option<(Cause, Said)> {
    let code = vec![request("GET", "/", |http| http.checks = checks)];
    let answer = answer.to_vec();
    let (server, _) = remembering(move |_| vec![(5 * MS, say(&answer))]);
    let outcome = play(done(code, 1, 1), server);
    outcome.examples.first().map(|example| (example.cause, example.detail.clone()))
}

#[test]
fn saved_values_are_sent_later_and_users_differ() {
    let login = request("POST", "/login?u=${user.id}", |http| {
        body(http, r#"{"user":"u${user.id}","no":${iteration}}"#, Escape::JsonText);
        http.checks = vec![check(json("code"), number(Comparison::Equal, 0.0))];
        http.saves = vec![
            save(2, json("data.token")),
            save(3, Pick::Header("x-session".into())),
            Save { slot: 0, pick: json("list"), all: true, default: None },
        ];
    });
    let buy = request("PUT", "/buy/${saved.list[0][1]}", |http| {
        http.headers.push(("Authorization".into(), text_with("Bearer ${saved.a}", Escape::Header)));
        http.headers.push(("X-Session".into(), text_with("${saved.b}", Escape::Header)));
        body(http, "t=${saved.a}", Escape::Form);
    });
    let (server, asked) = remembering(|asked| {
        if !asked.starts_with("POST") {
            return vec![(MS, say(HELLO))];
        }
        let user = asked.split("u=").nth(1).unwrap().split(' ').next().unwrap();
        let json = format!(r#"{{"code":0,"data":{{"token":"t/{user} x"}},"list":[7,{user}]}}"#);
        let (length, head) = (json.len(), "HTTP/1.1 200 OK\r\nContent-Length: ");
        vec![(MS, say(format!("{head}{length}\r\nX-Session: s{user}\r\n\r\n{json}").as_bytes()))]
    });
    let outcome = play(done(vec![login, buy], 3, 6), server);
    assert_eq!(outcome.sum.total().errors, [], "{:?}", outcome.examples);
    let asked = asked.borrow();
    assert_eq!(asked.len(), 12);
    for user in 1..4 {
        let login = format!(
            "POST /login?u={user} HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Length: 20\r\n\r\n\
             {{\"user\":\"u{user}\",\"no\":"
        );
        let buy = format!(
            "PUT /buy/{user} HTTP/1.1\r\nHost: 127.0.0.1:1\r\nAuthorization: Bearer t/{user} x\r\n\
             X-Session: s{user}\r\nContent-Length: 9\r\n\r\nt=t%2F{user}+x"
        );
        assert_eq!(asked.iter().filter(|one| one.starts_with(&login)).count(), 2, "{asked:?}");
        assert_eq!(asked.iter().filter(|one| **one == buy).count(), 2, "{buy}: {asked:?}");
    }
}

#[test]
fn a_missing_value_is_a_failure_or_takes_its_default() {
    let answer = ok(r#"{"a":1}"#);
    let missing = verdict(&answer, &[], &[save(2, json("token"))]);
    let detail = "`a` was not saved: `json.token` was not found in `{\"a\":1}`";
    assert_eq!(missing, Some((Cause::SaveFailed, Said::of_others(detail))));
    let header = Pick::Header("x-token".into());
    let missing = verdict(&answer, &[], &[save(2, header)]);
    let detail = "`a` was not saved: the header `x-token` is missing";
    assert_eq!(missing, Some((Cause::SaveFailed, Said::of_others(detail))));
    let default = Some(Text::literal("none"));
    let kept = Save { slot: 2, pick: json("token"), all: true, default };
    assert_eq!(verdict(&answer, &[], &[kept]), None);
}

#[test]
fn nothing_is_sent_after_an_evaluation_error() {
    for (code, cause) in [
        (request("GET", "/${saved.a}", |_| {}), Cause::ExpressionFailed),
        (
            request("GET", "/", |http| {
                let value = text_with("${'a\\r\\nX-Evil: 1'}", Escape::None);
                http.headers.push(("X-Good".into(), value));
            }),
            Cause::ExpressionFailed,
        ),
        (
            request("GET", "/", |http| {
                let value = text_with("${'a\\nb'}", Escape::Header);
                http.headers.push(("X-Good".into(), value));
            }),
            Cause::ExpressionFailed,
        ),
        (
            request("GET", "/", |http| http.path = text_with("/${'a b'}", Escape::None)),
            Cause::ExpressionFailed,
        ),
        (
            request("GET", "/", |http| {
                http.cookies.push(("a".into(), text_with("${'1\\r\\n'}", Escape::None)));
            }),
            Cause::ExpressionFailed,
        ),
        (
            request("GET", "/", |http| {
                http.cookies.push(("a".into(), text_with("${'1; b=2'}", Escape::Header)));
            }),
            Cause::ExpressionFailed,
        ),
    ] {
        let (server, asked) = remembering(|_| vec![(MS, say(HELLO))]);
        let outcome = play(done(vec![code], 1, 3), server);
        assert_eq!(outcome.errors(cause), 3, "{:?}", outcome.examples);
        assert_eq!(outcome.sum.total().latency.count(), 0, "nothing was sent, hence no latency");
        assert_eq!(*asked.borrow(), [] as [String; 0]);
    }
}

pub(super) fn rows(take: Take, at_end: AtEnd) -> Source {
    let items = (10..15).map(|n| Value::Map([("n".into(), Value::Int(n))].into()));
    let mut source = Source::new("rows", Origin::List(items.collect()), take, at_end);
    source.column("n").unwrap();
    source
}

/// The rows that users sent: two requests per iteration.
fn rows_sent(take: Take, at_end: AtEnd, users: u64, total: u64) -> (Outcome, Vec<String>) {
    let ask = |path: &str| request("GET", path, |_| {});
    let code = vec![ask("/${user.id}/${data.rows.n}"), ask("/${user.id}/${data.rows.n}")];
    let (server, asked) = remembering(|_| vec![(MS, say(HELLO))]);
    let mut program = done(code, users, total);
    program.data = vec![rows(take, at_end)];
    let outcome = play(program, server);
    let path = |asked: &String| asked.split(' ').nth(1).unwrap()[1..].to_string();
    let paths = asked.borrow().iter().map(path).collect();
    (outcome, paths)
}

#[test]
fn rows_are_taken_once_per_iteration() {
    let (outcome, sent) = rows_sent(Take::Circular, AtEnd::Stop, 1, 7);
    assert_eq!(outcome.sum.total().errors, []);
    let want: Vec<_> = [10, 11, 12, 13, 14, 10, 11]
        .iter()
        .flat_map(|n| [format!("1/{n}"), format!("1/{n}")])
        .collect();
    assert_eq!(sent, want);
    let (outcome, sent) = rows_sent(Take::PerUser, AtEnd::Stop, 3, 9);
    assert_eq!(outcome.sum.total().errors, []);
    let mut own = sent.clone();
    own.sort_unstable();
    own.dedup();
    assert_eq!(own.len(), 3, "three users with a row each: {sent:?}");
    own.iter_mut().for_each(|path| drop(path.drain(..2)));
    own.dedup();
    assert_eq!(own.len(), 3, "no two users have the same: {sent:?}");
}

#[test]
fn exhausted_data_ends_the_run_fails_the_step_or_starts_over() {
    let (outcome, sent) = rows_sent(Take::Unique, AtEnd::Stop, 1, 100);
    assert_eq!(sent.len(), 10, "five rows, twice each");
    let mut unique = sent.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 5);
    let stopped = outcome.stopped.expect("the run has stopped");
    assert_eq!(stopped.reason, "`data.rows` has no row: all rows were used");
    assert_eq!(outcome.sum.total().errors, [], "the end of the data is nobody's failure");
    let (outcome, sent) = rows_sent(Take::Unique, AtEnd::Error, 1, 7);
    assert_eq!((sent.len(), outcome.errors(Cause::DataExhausted)), (10, 4));
    assert!(outcome.stopped.is_none());
    let (outcome, sent) = rows_sent(Take::Unique, AtEnd::Wrap, 1, 7);
    assert_eq!((sent.len(), outcome.sum.total().ok), (14, 14));
}

#[test]
fn rows_from_before_are_dropped_at_the_first_iteration() {
    let ask = || request("GET", "/${data.rows.n}", |_| {});
    let (server, asked) = remembering(|_| vec![(MS, say(HELLO))]);
    let mut program = done(vec![ask()], 1, 2);
    program.sessions[0].before = vec![ask()];
    program.data = vec![rows(Take::Circular, AtEnd::Stop)];
    play(program, server);
    let asked: Vec<_> =
        asked.borrow().iter().map(|one| one.split(' ').nth(1).unwrap().to_string()).collect();
    assert_eq!(asked, ["/10", "/11", "/12"]);
}

#[test]
fn the_scenario_overrides_the_jar_in_a_single_cookie_header() {
    let first = request("GET", "/first", |_| {});
    let own = |http: &mut Http| {
        http.cookies.push(("b".into(), text_with("${user.id}", Escape::Header)));
        http.cookies.push(("d".into(), Text::literal("4")));
    };
    let fixed = request("GET", "/fixed", |http| {
        http.headers.push(("Cookie".into(), Text::literal("c=own; e=5")));
    });
    let (server, asked) = remembering(|_| {
        let set = "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nSet-Cookie: c=3\r\n";
        vec![(MS, say(format!("HTTP/1.1 200 OK\r\n{set}Content-Length: 0\r\n\r\n").as_bytes()))]
    });
    play(
        done(vec![request("GET", "/own", own), first, request("GET", "/", own), fixed], 1, 1),
        server,
    );
    let cookies =
        |asked: &String| asked.split("Cookie: ").nth(1).map(|rest| rest.trim_end().to_string());
    let sent: Vec<_> = asked.borrow().iter().map(cookies).collect();
    let want = [
        Some("b=1; d=4"),
        Some("a=1; b=2; c=3"),
        Some("b=1; d=4; a=1; c=3"),
        Some("c=own; e=5; a=1; b=2"),
    ];
    assert_eq!(sent, want.map(|cookies| cookies.map(String::from)));
}

#[test]
fn a_cookie_is_saved_from_the_jar_for_the_url() {
    let cookie = |name: &str| Pick::Cookie(name.into());
    let page = request("GET", "/a/page", |http| {
        http.checks = vec![check(cookie("xsrf"), Want::Present), check(cookie("X"), Want::Absent)];
        http.saves = vec![save(2, cookie("xsrf"))];
        http.follow_redirects = true;
    });
    let post = request("POST", "/a/post", |http| {
        let value = text_with("${url.decode(saved.a)}", Escape::Header);
        http.headers.push(("X-XSRF".into(), value));
    });
    let gone = request("GET", "/out", |http| {
        http.checks = vec![check(cookie("xsrf"), Want::Absent)];
        http.saves = vec![save(2, cookie("xsrf"))];
    });
    let (server, asked) = remembering(|asked| {
        let head = match asked.split(' ').nth(1).unwrap() {
            // Only the first page sets it, through the redirect that leads to it.
            "/a/page" if !asked.contains("Cookie: ") => {
                "302 Found\r\nLocation: /a/in\r\nSet-Cookie: xsrf=t%3D; Path=/a"
            }
            "/out" => "200 OK\r\nSet-Cookie: xsrf=; Path=/a; Max-Age=0",
            _ => "200 OK",
        };
        vec![(MS, say(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n").as_bytes()))]
    });
    let outcome = play(done(vec![page.clone(), page, post, gone], 1, 1), server);
    let asked = asked.borrow();
    let posted = asked.iter().find(|one| one.starts_with("POST")).expect("it was sent");
    assert!(posted.contains("X-XSRF: t=\r\n"), "{asked:?}");
    let failed: Vec<_> = outcome.examples.iter().map(|it| it.detail.english()).collect();
    assert_eq!(failed, ["`a` was not saved: the user has no cookie `xsrf` for this host"]);
}

#[test]
fn some_requests_carry_a_trace_context() {
    let (server, asked) =
        remembering(|_| vec![(MS, say(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"))]);
    let code = vec![request("GET", "/", |_| {}), request("GET", "/${user.id}", |_| {})];
    let mut program = done(code, 20, 500);
    program.trace = Some(throng_program::Trace { header: "traceparent".into(), share: 0.1 });
    let outcome = play(program, server);
    let asked = asked.borrow();
    let traced: Vec<_> = asked.iter().filter_map(|one| one.split("traceparent: ").nth(1)).collect();
    assert!((60..140).contains(&traced.len()), "{}", traced.len());
    let mut ids: Vec<_> = traced.iter().map(|trace| &trace[3..35]).collect();
    for trace in &traced {
        assert!(
            trace.starts_with("00-") && trace.ends_with("-01\r\n\r\n") && trace.len() == 59,
            "{trace}"
        );
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), traced.len(), "no id comes twice");
    let example = &outcome.examples[0].detail;
    if let Some((_, id)) = example.english().split_once("(trace ") {
        assert!(ids.contains(&id.trim_end_matches(')')), "{example:?}");
    }
    let everywhere = {
        let (server, _) =
            remembering(|_| vec![(MS, say(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"))]);
        let mut program = done(vec![request("GET", "/", |_| {})], 1, 1);
        program.trace = Some(throng_program::Trace { header: "traceparent".into(), share: 1.0 });
        play(program, server).examples[0].detail.clone()
    };
    assert!(
        everywhere.english().starts_with("expected a status below 400, got 500 (trace "),
        "{everywhere:?}"
    );
}

#[test]
fn a_redirect_keeps_its_body() {
    let random = || text_with("${random.u64()}", Escape::None);
    let moved = request("POST", "/${random.u64()}", |http| {
        http.body = Body::Text(random());
        http.follow_redirects = true;
    });
    let count = Cell::new(0);
    let (server, asked) = remembering(move |_| {
        count.set(count.get() + 1);
        let moved = b"HTTP/1.1 307 Go\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n";
        vec![(MS, say(if count.get() == 1 { moved } else { HELLO }))]
    });
    let outcome = play(done(vec![moved], 1, 1), server);
    assert_eq!(outcome.sum.total().ok, 1, "{:?}", outcome.examples);
    let asked = asked.borrow();
    let bodies: Vec<_> = asked.iter().map(|one| one.split("\r\n\r\n").nth(1).unwrap()).collect();
    assert!(asked[1].starts_with("POST /there "));
    assert_eq!(bodies[0], bodies[1]);
}

#[test]
fn the_same_seed_sends_the_same() {
    let send = |seed| {
        let code = vec![request("GET", "/${random.u64()}/${random.int(1, 9)}", |_| {})];
        let (server, asked) = remembering(|_| vec![(MS, say(HELLO))]);
        let mut program = done(code, 5, 50);
        program.seed = seed;
        play(program, server);
        let mut asked = asked.take();
        asked.sort_unstable();
        asked
    };
    assert_eq!(send(3), send(3));
    assert_ne!(send(3), send(4));
}

#[test]
fn messages_are_written_checked_and_saved() {
    for scheme in [Scheme::Ws, Scheme::Tcp] {
        let message =
            |text: &str| Message::plain(MessageKind::Text, text_with(text, Escape::JsonText));
        let until = Until::Delimiter(b"\n".to_vec().into());
        let ask = |text: &str, checks, saves| {
            Statement::Request(Arc::new(Request {
                step: StepId(1),
                link: 0,
                message: message(text),
                answer: Which::default(),
                until: until.clone(),
                checks,
                saves,
                timeout: S,
                failing: Failing::default(),
            }))
        };
        let same = text_with("${user.id}", Escape::None);
        let code = vec![
            connect(),
            ask(
                "{\"id\":${user.id},\"t\":\"x${user.id}\"}\n",
                vec![check(json("id"), Want::Equals(same))],
                vec![save(2, json("t"))],
            ),
            ask("[\"${saved.a}\"]\n", vec![check(json("[0]"), equals("${saved.a}"))], Vec::new()),
            ask("${saved.b}\n", Vec::new(), Vec::new()),
        ];
        let drive = Drive::Iterations(Iterations::new(10, None, Some(100)));
        let program = program(
            scheme,
            vec![session(code, 1)],
            &[StepKind::Connect, StepKind::Request],
            phase(drive, None),
        );
        let server: Server = match scheme {
            Scheme::Ws => chat_server(0),
            _ => Box::new(|asked, _| {
                let echoed = std::mem::take(asked);
                vec![(MS, Deed::Say(echoed))]
            }),
        };
        let outcome = play(program, server);
        let total = outcome.sum.total();
        let words = format!("{scheme:?} {:?}", outcome.examples);
        assert_eq!(total.errors, [(Cause::ExpressionFailed, 100)], "{words}");
        assert_eq!(total.ok, 210, "{words}");
    }
}

#[test]
fn checking_responses_costs_hardly_any_allocations() {
    let allocations = |code: Block, count| {
        let page = ok(r#"{"code":0,"data":{"id":5,"other":[1,2,3]}}"#);
        // A server that records nothing.
        let server = http_server(move |_| vec![(MS, say(&page))]);
        let program = done(code, 1, count);
        let before = crate::system::allocations();
        let outcome = play(program, server);
        assert_eq!(outcome.sum.total().ok, count, "{:?}", outcome.examples);
        crate::system::allocations() - before
    };
    let per_request = |code: fn() -> Block| {
        (allocations(code(), 2_000) - allocations(code(), 1_000)) as f64 / 1_000.0
    };
    let fixed = per_request(|| vec![request("GET", "/aaaaaaaaaaaaaaaaaaaa", |_| {})]);
    let looked_at = per_request(|| {
        vec![request("GET", "/${user.id}/${iteration}", |http| {
            http.checks = vec![
                status(200),
                check(json("code"), number(Comparison::Equal, 0.0)),
                check(json("data.id"), Want::Present),
            ];
        })]
    });
    // The world itself allocates, the same for both.
    assert!(looked_at - fixed < 2.0, "{looked_at} and {fixed} allocations per request");
}

#[test]
fn writing_a_message_does_not_allocate() {
    let allocations = |text: &'static str, count: u64| {
        let content = text_with(text, Escape::JsonText);
        let ask = Statement::Request(Arc::new(Request {
            step: StepId(1),
            link: 0,
            message: Message::plain(MessageKind::Text, content),
            answer: Which::default(),
            until: Until::Any,
            checks: Vec::new(),
            saves: Vec::new(),
            timeout: S,
            failing: Failing::default(),
        }));
        let drive = Drive::Iterations(Iterations::new(1, None, Some(count)));
        let steps = [StepKind::Connect, StepKind::Request];
        let program = program(
            Scheme::Tcp,
            vec![session(vec![connect(), ask], 1)],
            &steps,
            phase(drive, None),
        );
        let server: Server = Box::new(|asked, _| {
            asked.clear();
            vec![(MS, say(b"ok"))]
        });
        let before = crate::system::allocations();
        let outcome = play(program, server);
        assert_eq!(outcome.sum.total().ok, count + 1, "{:?}", outcome.examples);
        crate::system::allocations() - before
    };
    let each = |text| (allocations(text, 2_000) - allocations(text, 1_000)) as f64 / 1_000.0;
    let (fixed, varying) = (each("user 1 in 1234"), each("user ${user.id} in ${iteration}"));
    assert!((varying - fixed).abs() < 0.1, "{varying} and {fixed} allocations per message");
}

#[test]
fn counters_and_trends_match_what_the_users_did() {
    for seed in 1..10 {
        let next = Failing { then: OnError::Next, ..Failing::default() };
        let scaled = text_with("${iteration * 0.5}", Escape::None);
        let tally = |step, value, scale| Statement::Tally {
            step: StepId(step),
            value: Arc::new(value),
            scale,
        };
        let code = vec![
            step(0, next),
            tally(1, Text::literal("2"), None),
            tally(2, scaled, Some(1e6)),
            tally(3, text_with("${iteration % 2 == 0 ? 1 : 0.5}", Escape::None), None),
        ];
        let drive = Drive::Users(Users { to: 50, coming: Coming::AtOnce });
        let kinds = [StepKind::Http, StepKind::Counter, StepKind::Trend, StepKind::Counter];
        let program =
            program(Scheme::Http, vec![session(code, 0)], &kinds, phase(drive, Some(2 * S)));
        let server = http_server(|random| match random.below(4) {
            0 => vec![(MS, Deed::Reset)],
            _ => vec![(MS, say(HELLO))],
        });
        let outcome = run(program, seed, |world| world.refuse(0.02), server);
        outcome.is_sound(seed);
        let [done, pairs, trend, even] = [0, 1, 2, 3].map(|row| outcome.step(row));
        assert!(done.ok > 500 && !done.errors.is_empty(), "seed {seed}: {done:?}");
        assert_eq!((pairs.count, trend.count), (2 * done.ok, done.ok), "seed {seed}");
        // A half is not a whole number: the step fails and adds nothing.
        assert_eq!(outcome.errors(Cause::ExpressionFailed), done.ok - even.count, "seed {seed}");
    }
}
