//! Requests that differ from their step, and the targets of redirects and saved URLs (RFC 9110,
//! 10.2.2; RFC 3986, 5.2): only the scenario's own targets, because a response must never send load
//! to a third party.

use std::borrow::Cow;
use std::fmt::Write as _;

use throng_base::{Random, Said, Time};
use throng_program::{Http, Scheme, Target};

use super::exchange::Exchange;

/// How a request differs from its step.
#[derive(Default)]
pub(super) struct Detour {
    pub(super) redirect: Option<Redirect>,
    pub(super) again: Option<Again>,
}

/// A request that is resent because the target has not processed it.
pub(super) struct Again {
    /// Its length as first written.
    pub(super) bytes_out: u64,
    /// How often it was resent, including this time.
    pub(super) resends: u8,
    /// Deadline of its response, if known.
    pub(super) until: Time,
    /// Random state and time before it was written; `None` if it depends on neither.
    pub(super) before: Option<(Random, Time)>,
    /// Its entry in the ledger.
    pub(super) sent: Option<(u16, u64)>,
    /// The step, and its scheduled start.
    pub(super) pc: u32,
    pub(super) due: Time,
}

impl Again {
    /// Whether it is the request of this step, with this scheduled start.
    pub(super) fn is_of(&self, pc: u32, due: Time) -> bool {
        (self.pc, self.due) == (pc, due)
    }
}

/// A request to another target or path than its step says: after a redirect, or because its path
/// was a URL.
#[derive(Clone, Debug)]
pub(crate) struct Redirect {
    pub(crate) target: u16,
    /// The target of the first request.
    pub(crate) first: u16,
    /// The host differs from that of the first request.
    pub(crate) elsewhere: bool,
    pub(crate) path: String,
    /// The method became GET and the body was dropped (RFC 9110, 15.4.4).
    pub(crate) as_get: bool,
    /// How many redirects were followed; 0 if the path was a URL.
    pub(crate) count: u8,
    /// Bytes received and sent for earlier redirects.
    pub(crate) bytes: (u64, u64),
    /// Random state and time before the first request was written, if it depends on them.
    pub(crate) before: Option<(Random, Time)>,
    /// When the first request of the try was handed over; [`Time::NEVER`] if this is the first.
    pub(crate) sent: Time,
    /// The same request again, with the response to a challenge (RFC 7616).
    pub(crate) challenged: bool,
}

impl Redirect {
    /// Sends the first request to another target; nothing was sent before.
    pub(crate) fn to(target: u16, path: String) -> Redirect {
        let (as_get, count, bytes) = (false, 0, (0, 0));
        let (before, sent, challenged) = (None, Time::NEVER, false);
        let (first, elsewhere) = (target, false);
        Redirect { target, first, elsewhere, path, as_get, count, bytes, before, sent, challenged }
    }

    /// Whether this is a later request than the first.
    pub(crate) fn is_followed(&self) -> bool {
        self.count > 0 || self.challenged
    }
}

/// Whether this status is a redirect.
pub(crate) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Whether the method becomes GET.
pub(crate) fn becomes_get(status: u16, method: &str) -> bool {
    match status {
        303 => method != "HEAD",
        301 | 302 => method == "POST",
        _ => false,
    }
}

/// Whether two targets share what must not be sent to another origin: credentials, cookies, and the
/// host name (Fetch standard, HTTP-redirect fetch; curl as of 7.83).
pub(super) fn is_same_origin(one: u16, other: u16, targets: &[Target]) -> bool {
    let of = |target: u16| {
        let target = targets.get(usize::from(target))?;
        Some((target.scheme, target.port, target.host.to_ascii_lowercase()))
    };
    one == other || of(one) == of(other)
}

/// The URL of a WebSocket that is given as an HTTP URL (WebSockets standard, 3.1: `http` means
/// `ws`, and `https` means `wss`).
pub(super) fn websocket_url(reference: &str) -> Cow<'_, str> {
    match split_scheme(reference) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
            format!("ws://{rest}").into()
        }
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => {
            format!("wss://{rest}").into()
        }
        _ => reference.into(),
    }
}

/// The WebSocket target for a URL that has resolved to this target: for an HTTP target, the
/// WebSocket target on its host.
pub(super) fn as_websocket(target: u16, targets: &[Target]) -> Option<u16> {
    let page = targets.get(usize::from(target))?;
    let scheme = match page.scheme {
        Scheme::Ws | Scheme::Wss => return Some(target),
        Scheme::Http => Scheme::Ws,
        Scheme::Https => Scheme::Wss,
        _ => return None,
    };
    let is_it = |one: &Target| {
        one.scheme == scheme && one.port == page.port && one.host.eq_ignore_ascii_case(&page.host)
    };
    targets.iter().position(is_it).map(|found| found as u16)
}

/// A reference with all bytes percent-encoded that a URL must not contain, as browsers do: spaces,
/// non-ASCII bytes and delimiters (RFC 3986, 2.1; URL standard, path percent-encode set).
fn encoded(reference: &[u8]) -> String {
    let mut out = String::with_capacity(reference.len());
    for byte in reference.trim_ascii() {
        match byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>') {
            true => out.push(char::from(*byte)),
            // Writing to memory does not fail.
            false => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// Scheme and rest of an absolute URL (RFC 3986, 3.1); the query of a path may contain another URL.
fn split_scheme(reference: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = reference.split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some((scheme, rest))
}

/// Whether a reference is a path that needs no resolution.
pub(super) fn is_plain_path(reference: &str) -> bool {
    let path = reference.split('?').next().unwrap_or_default();
    let has_dots = || path.split('/').any(|segment| matches!(segment, "." | ".."));
    reference.starts_with('/') && !reference.starts_with("//") && !has_dots()
}

/// The target and path of a `Location`, relative to a request for `path` at target `here`.
pub(crate) fn resolve(
    location: &[u8],
    here: u16,
    path: &str,
    targets: &[Target],
) -> Result<(u16, String), Said> {
    let location = encoded(location);
    let location = location.split('#').next().unwrap_or("");
    let base = targets.get(usize::from(here)).ok_or(say!("there is no such target"))?;
    if let Some((scheme, rest)) = split_scheme(location) {
        let scheme =
            Scheme::ALL.into_iter().find(|known| scheme.eq_ignore_ascii_case(known.word()));
        let scheme = scheme
            .ok_or_else(|| say!("the scheme of its location `{location}` is not supported"))?;
        return elsewhere(scheme, rest, location, targets);
    }
    if let Some(rest) = location.strip_prefix("//") {
        return elsewhere(base.scheme, rest, location, targets);
    }
    let plain = path.split('?').next().unwrap_or("/");
    let joined = match location.as_bytes().first() {
        None => path.to_string(),
        Some(b'/') => remove_dots(location),
        Some(b'?') => format!("{plain}{location}"),
        Some(_) => {
            let folder = &plain[..plain.rfind('/').map_or(0, |slash| slash + 1)];
            remove_dots(&format!("{folder}{location}"))
        }
    };
    clean(joined).map(|path| (here, path))
}

fn elsewhere(
    scheme: Scheme,
    rest: &str,
    location: &str,
    targets: &[Target],
) -> Result<(u16, String), Said> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let wanted = authority.to_ascii_lowercase();
    let suffix = scheme.default_port().map(|port| format!(":{port}"));
    let wanted = suffix.and_then(|port| wanted.strip_suffix(&port)).unwrap_or(&wanted);
    let found = targets.iter().position(|target| {
        target.scheme == scheme && target.authority().eq_ignore_ascii_case(wanted)
    });
    let Some(found) = found else {
        return Err(say!("it points to `{location}`, which is not a target of this scenario"));
    };
    let path = match path.as_bytes().first() {
        Some(b'/') => remove_dots(path),
        _ => format!("/{path}"),
    };
    clean(path).map(|path| (found as u16, path))
}

/// Path and query as they were sent.
pub(super) fn path_of<'a>(
    http: &'a Http,
    redirect: Option<&'a Redirect>,
    exchange: &'a Exchange,
) -> Cow<'a, str> {
    let written = || exchange.rare.as_ref().map_or(&[][..], |rare| &rare.sent_to.path);
    match (redirect, http.path.as_literal()) {
        (Some(redirect), _) => Cow::Borrowed(&redirect.path),
        (None, Some(literal)) => String::from_utf8_lossy(literal),
        (None, None) => String::from_utf8_lossy(written()),
    }
}

/// Checks that a path is valid in a request line.
fn clean(path: String) -> Result<String, Said> {
    match path.bytes().all(|byte| byte.is_ascii_graphic()) && path.starts_with('/') {
        true => Ok(path),
        false => Err(say!("its path contains characters that are not allowed in a request line")),
    }
}

/// RFC 3986, 5.2.4; the query is unchanged.
fn remove_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut parts: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." if last => parts.push(""),
            "." => {}
            ".." => {
                parts.pop();
                if last {
                    parts.push("");
                }
            }
            other => parts.push(other),
        }
    }
    format!("/{}{query}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(scheme: Scheme, host: &str, port: u16) -> Target {
        Target::new(scheme, host, port)
    }

    #[test]
    fn locations_are_resolved_as_in_rfc_3986() {
        let targets = [
            target(Scheme::Http, "127.0.0.1", 8080),
            target(Scheme::Https, "example.org", 443),
            target(Scheme::Http, "::1", 80),
        ];
        for (location, want) in [
            ("/b?x=1", Some((0, "/b?x=1"))),
            ("c", Some((0, "/a/c"))),
            ("../c", Some((0, "/c"))),
            ("./", Some((0, "/a/"))),
            ("/../../x/./y/..", Some((0, "/x/"))),
            ("?q=/../", Some((0, "/a/b?q=/../"))),
            ("", Some((0, "/a/b?old"))),
            ("http://127.0.0.1:8080/z", Some((0, "/z"))),
            ("HTTPS://Example.org:443", Some((1, "/"))),
            ("https://example.org?x", Some((1, "/?x"))),
            ("//[::1]/six#part", Some((2, "/six"))),
            ("http://example.org/", None),
            ("http://127.0.0.1/", None),
            ("ftp://127.0.0.1:8080/", None),
            ("javascript:alert(1)", Some((0, "/a/javascript:alert(1)"))),
            ("/ü?q=ä", Some((0, "/%C3%BC?q=%C3%A4"))),
            (" /a b#c d ", Some((0, "/a%20b"))),
            ("/a%20b\"<>", Some((0, "/a%20b%22%3C%3E"))),
            ("#top", Some((0, "/a/b?old"))),
            ("/login?next=http://example.org/", Some((0, "/login?next=http://example.org/"))),
            ("http://127.0.0.1:8080/a/./b/../c?../d", Some((0, "/a/c?../d"))),
        ] {
            let got = resolve(location.as_bytes(), 0, "/a/b?old", &targets).ok();
            let want = want.map(|(target, path)| (target, path.to_string()));
            assert_eq!(got, want, "{location}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_percent_encoded() {
        let targets = [target(Scheme::Http, "a.test", 80)];
        let got = resolve(b"/caf\xe9", 0, "/", &targets);
        assert_eq!(got.ok(), Some((0, "/caf%E9".to_string())));
    }

    #[test]
    fn a_websocket_goes_to_the_host_of_its_page() {
        let targets = [
            target(Scheme::Http, "a.test", 8080),
            target(Scheme::Ws, "a.test", 80),
            target(Scheme::Ws, "A.test", 8080),
            target(Scheme::Wss, "a.test", 443),
            target(Scheme::Https, "a.test", 443),
            target(Scheme::Https, "b.test", 443),
            target(Scheme::Tcp, "a.test", 8080),
        ];
        let got = (0..7).map(|page| as_websocket(page, &targets)).collect::<Vec<_>>();
        assert_eq!(got, [Some(2), Some(1), Some(2), Some(3), Some(3), None, None]);
        assert_eq!(websocket_url("HTTPS://b.test/x"), "wss://b.test/x");
        assert_eq!(websocket_url("http://b.test"), "ws://b.test");
        assert_eq!(websocket_url("/x?to=http://b.test"), "/x?to=http://b.test");
    }

    #[test]
    fn another_host_port_or_scheme_is_another_origin() {
        let targets = [
            target(Scheme::Http, "a.test", 80),
            target(Scheme::Http, "A.test", 80),
            target(Scheme::Http, "a.test", 81),
            target(Scheme::Https, "a.test", 80),
            target(Scheme::Http, "b.test", 80),
        ];
        let same: Vec<bool> = (0..5).map(|other| is_same_origin(0, other, &targets)).collect();
        assert_eq!(same, [true, true, false, false, false]);
    }

    #[test]
    fn paths_without_dots_are_unchanged() {
        for (path, plain) in [
            ("/a/b.c/..d/...", true),
            ("/a?x=/../", true),
            ("/a/../b", false),
            ("/a/.", false),
            ("//a/b", false),
            ("a/b", false),
            ("", false),
        ] {
            assert_eq!(is_plain_path(path), plain, "{path}");
        }
    }

    #[test]
    fn methods_change_as_in_browsers() {
        assert!(becomes_get(303, "PUT") && becomes_get(302, "POST") && !becomes_get(307, "POST"));
        assert!(!becomes_get(301, "PUT") && !becomes_get(303, "HEAD"));
        assert!(is_redirect(308) && !is_redirect(304));
    }
}
