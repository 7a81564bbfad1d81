//! Which cookies a jar takes, keeps and sends.

use throng_fuzz::mutations;

use super::*;

const NOW: u64 = 1_000_000_000;

fn store(jar: &mut Jar, text: &str) -> Stored {
    jar.store(text.as_bytes(), "www.a.example", "/d/page?q", true, NOW, &CookieLimits::default())
}

fn sent(jar: &Jar, host: &str, path: &str, secure: bool, now: u64) -> String {
    let mut out = Vec::new();
    let any = jar.write_header(&mut out, host, path, secure, now);
    assert_eq!(any, !out.is_empty());
    String::from_utf8(out).unwrap()
}

/// Where the only cookie of a jar is sent.
fn check(text: &str, host: &str, path: &str, secure: bool, is_sent: bool) {
    let mut jar = Jar::new();
    let stored = store(&mut jar, text);
    let header = sent(&jar, host, path, secure, NOW);
    assert_eq!(!header.is_empty(), is_sent, "{text} ({stored:?}) to {host}{path}");
}

#[test]
fn cookies_are_returned_to_their_host_and_domain() {
    check("a=b", "www.a.example", "/d/x", false, true);
    check("a=b", "WWW.A.example", "/d/x", false, true);
    check("a=b", "a.example", "/d/x", false, false);
    check("a=b", "x.www.a.example", "/d/x", false, false);
    check("a=b; Domain=a.example", "other.a.example", "/d/x", false, true);
    check("a=b; domain=.A.Example", "a.example", "/d/x", false, true);
    check("a=b; Domain=a.example", "bada.example", "/d/x", false, false);
    check("a=b; Domain=", "www.a.example", "/d/x", false, true);
    check("a=b; Domain=example", "www.a.example", "/d/x", false, false);
    check("a=b; Domain=b.example", "b.example", "/d/x", false, false);
    check("a=b; Domain=x.www.a.example", "x.www.a.example", "/d/x", false, false);
}

#[test]
fn a_value_is_found_by_name_and_host_and_preferably_by_path() {
    let mut jar = Jar::new();
    for text in ["a=root; Path=/", "a=deep=1; Path=/d", "b=; Path=/e", "c=1; Path=/; Secure"] {
        assert_eq!(store(&mut jar, text), Stored::Kept);
    }
    let value = |name: &str, host: &str, path: &str, secure: bool| {
        let value = jar.value(name, (host, path), secure, NOW);
        value.map(|value| String::from_utf8_lossy(value).into_owned())
    };
    let here = |name: &str, path: &str| value(name, "www.a.example", path, true);
    assert_eq!(here("a", "/d/page?q").as_deref(), Some("deep=1"));
    assert_eq!(here("a", "/x").as_deref(), Some("root"));
    assert_eq!(here("b", "/x").as_deref(), Some(""), "of another path, as no other has its name");
    assert_eq!(here("A", "/"), None, "names differ by their case");
    assert_eq!(value("a", "b.example", "/", true), None);
    assert_eq!(value("c", "www.a.example", "/", false), None);
    store(&mut jar, "a=; Path=/d; Max-Age=0");
    let left = jar.value("a", ("www.a.example", "/d"), true, NOW);
    assert_eq!(left, Some(&b"root"[..]));
}

#[test]
fn an_address_has_no_parent_domain() {
    let limits = CookieLimits::default();
    let mut jar = Jar::new();
    let domain = b"a=b; Domain=0.0.1";
    let stored = jar.store(domain, "127.0.0.1", "/", false, NOW, &limits);
    assert_eq!(stored, Stored::Refused(Refusal::OtherDomain));
    assert_eq!(jar.store(b"a=b", "127.0.0.1", "/", false, NOW, &limits), Stored::Kept);
    let own = b"c=d; Domain=localhost";
    assert_eq!(jar.store(own, "localhost", "/", false, NOW, &limits), Stored::Kept);
    assert_eq!(sent(&jar, "127.0.0.1", "/", false, NOW), "Cookie: a=b\r\n");
    assert_eq!(sent(&jar, "localhost", "/", false, NOW), "Cookie: c=d\r\n");
}

#[test]
fn cookies_are_returned_below_their_path() {
    check("a=b", "www.a.example", "/d", false, true);
    check("a=b", "www.a.example", "/d?x", false, true);
    check("a=b", "www.a.example", "/dx", false, false);
    check("a=b", "www.a.example", "/", false, false);
    check("a=b; Path=/", "www.a.example", "/else", false, true);
    check("a=b; Path=/", "www.a.example", "", false, true);
    check("a=b; Path=/e/", "www.a.example", "/e/f", false, true);
    check("a=b; Path=/e/", "www.a.example", "/e", false, false);
    check("a=b; Path=relative", "www.a.example", "/d/x", false, true);
    check("a=b; Path=/x; Path=/y", "www.a.example", "/y", false, true);
    assert_eq!(default_path("/"), "/");
    assert_eq!(default_path("/a"), "/");
    assert_eq!(default_path("/a/b/c?d/e"), "/a/b");
    assert_eq!(default_path("x"), "/");
}

#[test]
fn secure_cookies_need_tls_both_ways() {
    check("a=b; Secure", "www.a.example", "/d", true, true);
    check("a=b; secure", "www.a.example", "/d", false, false);
    let mut jar = Jar::new();
    let limits = CookieLimits::default();
    let mut put = |text: &[u8], secure| jar.store(text, "h", "/", secure, NOW, &limits);
    assert_eq!(put(b"a=b; Secure", false), Stored::Refused(Refusal::NotSecure));
    assert_eq!(put(b"a=b; Secure", true), Stored::Kept);
    assert_eq!(put(b"a=c", false), Stored::Refused(Refusal::Guarded));
}

#[test]
fn cookies_live_until_they_expire() {
    let lives = |text: &str, seconds: u64| {
        let mut jar = Jar::new();
        store(&mut jar, text);
        !sent(&jar, "www.a.example", "/d", true, NOW + seconds).is_empty()
    };
    assert!(lives("a=b", u64::MAX - NOW - 1));
    assert!(lives("a=b; Max-Age=10", 9));
    assert!(!lives("a=b; Max-Age=10", 10));
    assert!(!lives("a=b; Max-Age=0", 0));
    assert!(!lives("a=b; Max-Age=-5", 0));
    assert!(lives("a=b; Max-Age=99999999999999999999", 1 << 40));
    assert!(lives("a=b; Max-Age=x", 1 << 40));
    assert!(!lives("a=b; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0));
    assert!(lives("a=b; Expires=Sun, 09 Sep 2001 01:46:50 GMT", 9));
    assert!(!lives("a=b; Expires=Sun, 09 Sep 2001 01:46:50 GMT", 10));
    assert!(lives("a=b; Expires=never", 1 << 40));
    assert!(lives("a=b; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 9));
}

#[test]
fn a_cookie_is_replaced_and_removed_by_its_name_domain_and_path() {
    let mut jar = Jar::new();
    assert!(jar.is_empty());
    assert_eq!(store(&mut jar, "a=1"), Stored::Kept);
    assert_eq!(store(&mut jar, "b=2; Path=/"), Stored::Kept);
    assert_eq!(store(&mut jar, "c = 3=4 ; HttpOnly"), Stored::Kept);
    assert_eq!(store(&mut jar, "a=5; Path=/"), Stored::Kept);
    assert_eq!(store(&mut jar, "a=6"), Stored::Kept);
    // The longer path first, then the older cookie; a replaced one keeps its age.
    let all = "Cookie: a=6; c=3=4; b=2; a=5\r\n";
    assert_eq!(sent(&jar, "www.a.example", "/d/", true, NOW), all);
    assert_eq!(store(&mut jar, "a=; Max-Age=0"), Stored::Removed);
    assert_eq!(sent(&jar, "www.a.example", "/d/", true, NOW), "Cookie: c=3=4; b=2; a=5\r\n");
    assert_eq!(jar.len(), 3);
    for bad in ["", "a", "=a", ";", "a=b\rc", "a\0=b"] {
        assert_eq!(store(&mut jar, bad), Stored::Refused(Refusal::Malformed), "{bad:?}");
    }
}

#[test]
fn limits_are_exact_to_the_byte_and_the_oldest_is_dropped() {
    assert_eq!(size_of::<Jar>(), size_of::<Vec<u8>>());
    let mut jar = Jar::new();
    let value = "v".repeat(4095);
    assert_eq!(store(&mut jar, &format!("n={value}")), Stored::Kept);
    let stored = store(&mut jar, &format!("n={value}v"));
    assert_eq!(stored, Stored::Refused(Refusal::TooLong));
    let limits = CookieLimits { cookies_max: 3, cookie_bytes_max: 10 };
    let mut jar = Jar::new();
    let mut store = |text: &str| jar.store(text.as_bytes(), "h", "/a/b", true, NOW, &limits);
    assert_eq!(store("a=1; Path=/a/b"), Stored::Kept);
    assert_eq!(store("b=2; Path=/"), Stored::Kept);
    assert_eq!(store("c=3"), Stored::Kept);
    assert_eq!(store("a=4; Path=/a/b"), Stored::Kept);
    assert_eq!(store("d=5"), Stored::KeptForOldest);
    assert_eq!(store("e=6; Max-Age=1"), Stored::KeptForOldest);
    assert_eq!(sent(&jar, "h", "/a/b", true, NOW), "Cookie: c=3; d=5; e=6\r\n");
    // What has expired makes room before what has not.
    assert_eq!(jar.store(b"f=7", "h", "/", true, NOW + 1, &limits), Stored::Kept);
    assert_eq!(sent(&jar, "h", "/a/b", true, NOW), "Cookie: c=3; d=5; f=7\r\n");
    let none = CookieLimits { cookies_max: 0, ..limits };
    let stored = Jar::new().store(b"a=b", "h", "/", true, NOW, &none);
    assert_eq!(stored, Stored::Refused(Refusal::NoRoom));
}

#[test]
fn fuzz_a_jar_never_panics_and_never_splits_a_header() {
    let corpus: &[&[u8]] = &[
        b"sid=31d4d96e407aad42; Path=/; Secure; HttpOnly; SameSite=Lax",
        b"lang=en-US; Expires=Wed, 09 Jun 2031 10:18:14 GMT; Domain=.a.example",
        b"x=\"y\"; Max-Age=3600; Expires=Wednesday, 09-Jun-31 10:18:14 GMT; path=/d",
        b"old=1; Expires=Thu Jan  1 00:00:00 1970; Max-Age=-1",
    ];
    let mut jar = Jar::new();
    mutations(corpus, |input, _| {
        let limits = CookieLimits::default();
        jar.store(input, "www.a.example", "/d/e", true, NOW, &limits);
        assert!(jar.len() <= limits.cookies_max);
        let mut out = Vec::new();
        if jar.write_header(&mut out, "www.a.example", "/d/e/f", true, NOW) {
            let line = out.strip_suffix(b"\r\n").unwrap();
            assert!(line.starts_with(b"Cookie: ") && !line.contains(&b'\n'));
            assert!(!line.contains(&b'\r'));
        }
    });
    assert!(!jar.is_empty());
}
