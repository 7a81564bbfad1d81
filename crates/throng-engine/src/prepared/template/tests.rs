//! Requests with expressions, as written for different users.

use throng_expression::{Expression, Nowhere, Value};
use throng_program::{Escape, Failing, Segment};

use super::*;

/// A text with a value that the engine treats as different per user.
fn varying(value: &str) -> Text {
    let value = Expression::constant(Value::from(value));
    Text { segments: vec![Segment::Value { value, escape: Escape::None }] }
}

fn http(method: &str, body: Body) -> Http {
    Http {
        step: throng_base::StepId(0),
        link: 0,
        method: method.into(),
        path: varying("/a?b"),
        headers: vec![("User-Agent".into(), Text::default()), ("accept".into(), varying(""))],
        cookies: Vec::new(),
        digest: None,
        body,
        timeout: std::time::Duration::from_secs(1),
        follow_redirects: false,
        checks: Vec::new(),
        saves: Vec::new(),
        failing: Failing::default(),
    }
}

fn written(http: &Http, detour: Detour<'_>) -> Result<(String, Parts), EvaluationError> {
    let extras = Extras { authority: "a.example", jar: None, trace: None };
    let (mut sent_to, mut out) = (SentTo::default(), b"before".to_vec());
    let template = Template::new(http, true, detour);
    let mut nobody = Nowhere::default();
    let parts = template.render(http, &extras, &mut nobody, &mut sent_to, &mut out)?;
    assert!(out[parts.head_end..].starts_with(b"\r\n"), "the head ends at its place");
    Ok((String::from_utf8(out.split_off(6)).unwrap(), parts))
}

#[test]
fn the_length_is_that_of_the_body() {
    for length in [0, 1, 9, 10, 15, 16, 99, 100, 101, 12_345] {
        let text = "x".repeat(length);
        for (method, always) in [("POST", true), ("DELETE", false)] {
            let http = http(method, Body::Text(varying(&text)));
            let (request, parts) = written(&http, Detour::default()).unwrap();
            let announced = match length > 0 || always {
                true => format!("Content-Length: {length}\r\n"),
                false => String::new(),
            };
            let head = format!("{method} /a?b HTTP/1.1\r\nHost: a.example\r\n{announced}");
            assert_eq!(request, format!("{head}\r\n{text}"));
            assert_eq!(parts.cookies, head.len() + 6..head.len() + 6);
        }
    }
}

#[test]
fn a_value_that_would_split_a_request_is_an_error() {
    for bad in ["a\r\nb", "a\nb", "\0", "\u{7f}"] {
        let mut request = http("GET", Body::None);
        request.headers.push(("X-Own".into(), varying(bad)));
        assert!(written(&request, Detour::default()).is_err(), "{bad:?}");
        let mut request = http("GET", Body::None);
        request.path = varying(bad);
        assert!(written(&request, Detour::default()).is_err(), "{bad:?}");
    }
    let mut request = http("GET", Body::None);
    request.path = varying("?x");
    assert!(written(&request, Detour::default()).unwrap().0.starts_with("GET /?x HTTP"));
    request.path = varying("/a b");
    assert!(written(&request, Detour::default()).is_err());
}

#[test]
fn a_redirect_can_drop_the_body() {
    let mut request = http("POST", Body::Text(varying("body")));
    request.headers.push(("Content-Type".into(), Text::literal("text/plain")));
    let detour = Detour { path: Some("/new"), as_get: true, elsewhere: false };
    let (written, _) = written(&request, detour).unwrap();
    assert_eq!(written, "GET /new HTTP/1.1\r\nHost: a.example\r\n\r\n");
}

#[test]
fn credentials_of_one_host_are_not_sent_to_another() {
    let mut request = http("GET", Body::None);
    for name in ["Host", "Authorization", "Cookie", "X-Kind"] {
        request.headers.push((name.into(), varying("one")));
        request.headers.push((name.to_lowercase(), Text::literal("two")));
    }
    request.cookies.push(("own".into(), Text::literal("3")));
    let detour = Detour { path: Some("/new"), as_get: false, elsewhere: true };
    let (written, _) = written(&request, detour).unwrap();
    let headers = "Host: a.example\r\nX-Kind: one\r\nx-kind: two\r\n";
    assert_eq!(written, format!("GET /new HTTP/1.1\r\n{headers}\r\n"));
}

/// The request to a server with several names, which are distinguished by the Host header.
#[test]
fn a_header_whose_value_is_not_saved_yet_is_not_an_error() {
    let mut request = http("GET", Body::None);
    for name in ["Host", "Authorization", "X-Own"] {
        let mut text = varying("later");
        text.segments.insert(0, Segment::Given(Box::new([0])));
        request.headers.push((name.into(), text));
    }
    for elsewhere in [false, true] {
        let detour = Detour { elsewhere, ..Detour::default() };
        let (written, _) = written(&request, detour).unwrap();
        let want = "GET /a?b HTTP/1.1\r\nHost: a.example\r\n\r\n";
        assert_eq!(written, want);
    }
}

#[test]
fn cookies_belong_to_the_host_that_the_scenario_names() {
    let mut jar = Jar::new();
    let limits = http1::CookieLimits::default();
    jar.store(b"one=1", "one.example", "/", false, 0, &limits);
    jar.store(b"two=2", "two.example", "/", false, 0, &limits);
    let place = CookiePlace { host: "two.example", secure: false, unix_seconds: 0 };
    for own in [Text::literal("one.example:8080"), varying("one.example:8080")] {
        let mut request = http("GET", Body::None);
        request.headers.push(("host".into(), own));
        let asked = |host: bool| {
            let http = if host { request.clone() } else { http("GET", Body::None) };
            let extras = Extras { authority: "two.example", jar: Some((&jar, place)), trace: None };
            let (mut sent_to, mut out) = (SentTo::default(), Vec::new());
            let template = Template::new(&http, true, Detour::default());
            let mut nobody = Nowhere::default();
            template.render(&http, &extras, &mut nobody, &mut sent_to, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let (named, unnamed) = (asked(true), asked(false));
        assert!(named.contains("\r\nCookie: one=1\r\n"), "{named}");
        assert!(unnamed.contains("\r\nCookie: two=2\r\n"), "{unnamed}");
    }
}

#[test]
fn fuzz_cookies_of_a_target_stay_in_their_header() {
    let good = [&b"a=1; Path=/"[..], b"b=x=y; Secure; HttpOnly", b"c=\"; d=2", b"=; ;=", b"own=2"];
    throng_fuzz::mutations(&good, |input, _| {
        let mut jar = Jar::new();
        let limits = http1::CookieLimits::default();
        for value in input.split(|byte| *byte == b'|') {
            jar.store(value, "a.example", "/", false, 0, &limits);
        }
        let place = CookiePlace { host: "a.example", secure: false, unix_seconds: 0 };
        for own in [&b""[..], b"Cookie: own=1; c=3"] {
            let mut out = [b"before\r\n", own].concat();
            finish_cookies(Some((&jar, place)), b"/", 8, &mut out);
            let line = &out[8..];
            if line.is_empty() {
                continue;
            }
            assert!(line.starts_with(b"Cookie: ") && line.ends_with(b"\r\n"));
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            let pairs = &line[8..line.len() - 2];
            let owned =
                pairs.split(|byte| *byte == b';').filter(|one| name_of(one.trim_ascii()) == b"own");
            assert!(owned.count() <= 1, "{}", line.escape_ascii());
            assert!(own.is_empty() || line.starts_with(own));
        }
    });
}
