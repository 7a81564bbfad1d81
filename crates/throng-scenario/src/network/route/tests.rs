//! Hosts and ports, and the flags of curl.

use super::*;

#[test]
fn hosts_and_ports_are_read() {
    let some = |host: &str, port| Ok(Endpoints { host: Some(host.to_string()), port });
    for (text, place) in [
        ("a.example:443", some("a.example", Some(443))),
        ("A.example", some("a.example", None)),
        ("a:*", some("a", None)),
        ("[::1]:80", some("::1", Some(80))),
        ("[::1]", some("::1", None)),
        ("::1", some("::1", None)),
        ("*:443", Ok(Endpoints { host: None, port: Some(443) })),
        (":443", Ok(Endpoints { host: None, port: Some(443) })),
        ("*", Ok(Endpoints::default())),
    ] {
        assert_eq!(parse_endpoints(text), place, "{text}");
    }
    for text in ["a:0", "a:70000", "a:b", "[::1", "[::1]x", "a b:80", "http://a"] {
        assert!(parse_endpoints(text).is_err(), "{text}");
    }
}

#[test]
fn flags_of_curl_mean_the_same_as_in_curl() {
    let resolve = |text| resolve_of_curl(text).ok();
    let is = |key: &str, all: &[&str]| {
        Some((key.to_string(), all.iter().map(|one| one.to_string()).collect::<Vec<_>>()))
    };
    assert_eq!(resolve("a:443:127.0.0.1"), is("a:443", &["127.0.0.1"]));
    assert_eq!(resolve("+a:80:127.0.0.1,[::1]"), is("a:80", &["127.0.0.1", "[::1]"]));
    assert_eq!(resolve("*:80:::1"), is("*:80", &["::1"]));
    assert_eq!(resolve("[::1]:80:10.0.0.1"), is("[::1]:80", &["10.0.0.1"]));
    for text in ["", "a", "a:80", "-a:80", "a:80:", ":80:127.0.0.1", "a:80:b", "a:x:127.0.0.1"] {
        assert_eq!(resolve(text), None, "{text}");
    }
    let other = |text| connect_to_of_curl(text).ok();
    let is = |from: &str, to: &str| Some((from.to_string(), to.to_string()));
    assert_eq!(other("a:80:b:81"), is("a:80", "b:81"));
    assert_eq!(other("::b:81"), is("*", "b:81"));
    assert_eq!(other(":80:[::1]:"), is("*:80", "[::1]"));
    assert_eq!(other("a:::8080"), is("a", "*:8080"));
    assert_eq!(other("a:80::"), is("a:80", "a:80"));
    for text in ["", "a:80", "a:80:b", ":::", "a:x:b:1", "a:80:b:0"] {
        assert_eq!(other(text), None, "{text}");
    }
}
