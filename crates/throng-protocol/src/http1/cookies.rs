//! The cookies of one user (RFC 6265 sections 5.2 to 5.4). An empty jar owns no memory.
//! There is no list of public suffixes: a Domain without a dot is refused, `co.uk` is not.

use std::net::IpAddr;

use super::cookie_date;
use super::headers::trim_blanks;

/// Longer attribute values are ignored, as browsers do.
const ATTRIBUTE_BYTES_MAX: usize = 1024;

/// The limits of a jar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieLimits {
    pub cookies_max: usize,
    /// Name and value of one cookie.
    pub cookie_bytes_max: usize,
}

impl Default for CookieLimits {
    fn default() -> CookieLimits {
        CookieLimits { cookies_max: 50, cookie_bytes_max: 4 * 1024 }
    }
}

/// The result of a Set-Cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    Kept,
    /// Stored; the oldest cookie was dropped because the jar was full.
    KeptForOldest,
    /// It had expired; the cookie of that name was removed.
    Removed,
    Refused(Refusal),
}

/// Why a cookie is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not `name=value`, or contains a control character.
    Malformed,
    /// It is over `cookie_bytes_max`.
    TooLong,
    /// Its domain does not match its host.
    OtherDomain,
    /// It is Secure, and its connection is not.
    NotSecure,
    /// A Secure cookie of this name exists, and its connection is not secure.
    Guarded,
    /// The jar accepts none.
    NoRoom,
}

/// The cookies of one user.
#[derive(Clone, Debug, Default)]
pub struct Jar {
    /// In the order they are sent in: longest path first, then oldest.
    cookies: Vec<Cookie>,
}

#[derive(Clone, Debug)]
struct Cookie {
    /// `name=value`, as sent.
    pair: Box<[u8]>,
    name_length: usize,
    domain: Box<str>,
    path: Box<str>,
    /// Seconds; `u64::MAX` for a cookie of the session.
    expires: u64,
    /// Increases with each cookie of the jar.
    age_rank: u64,
    host_only: bool,
    secure: bool,
}

impl Jar {
    pub fn new() -> Jar {
        Jar::default()
    }

    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    pub fn len(&self) -> usize {
        self.cookies.len()
    }

    /// Stores a Set-Cookie value from `host` (a name or address without a port) in the response to
    /// a request for `path` (a query is ignored); `secure` if the connection cannot be eavesdropped
    /// on or modified: over TLS, or on this computer.
    pub fn store(
        &mut self,
        set_cookie_value: &[u8],
        host: &str,
        path: &str,
        secure: bool,
        now_seconds: u64,
        limits: &CookieLimits,
    ) -> Stored {
        let mut cookie = match parse(set_cookie_value, host, path, now_seconds, limits) {
            Ok(cookie) => cookie,
            Err(refusal) => return Stored::Refused(refusal),
        };
        let same = self.cookies.iter().position(|other| other.is_same(&cookie));
        if !secure && cookie.secure {
            return Stored::Refused(Refusal::NotSecure);
        }
        if !secure && same.is_some_and(|at| self.cookies[at].secure) {
            return Stored::Refused(Refusal::Guarded);
        }
        let newest = self.cookies.iter().map(|other| other.age_rank).max();
        cookie.age_rank = newest.map_or(0, |rank| rank + 1);
        if let Some(at) = same {
            cookie.age_rank = self.cookies.remove(at).age_rank;
        }
        if cookie.expires <= now_seconds {
            return Stored::Removed;
        }
        self.make_room_and_insert(cookie, now_seconds, limits)
    }

    /// Writes `Cookie: a=b; c=d` and a line end with the cookies for a request for `path` at
    /// `host`; writes nothing and returns false if there are none.
    pub fn write_header(
        &self,
        out: &mut Vec<u8>,
        host: &str,
        path: &str,
        secure: bool,
        now_seconds: u64,
    ) -> bool {
        if self.cookies.is_empty() {
            return false;
        }
        let path = path_of(path);
        let mut before: &[u8] = b"Cookie: ";
        for cookie in self.of_host(host, secure, now_seconds) {
            if path_matches(path, &cookie.path) {
                out.extend_from_slice(before);
                out.extend_from_slice(&cookie.pair);
                before = b"; ";
            }
        }
        let any = before == b"; ";
        if any {
            out.extend_from_slice(b"\r\n");
        }
        any
    }

    /// The value of the cookie with this name for `host`: one for `path` goes before one for
    /// another path.
    pub fn value(
        &self,
        name: &str,
        (host, path): (&str, &str),
        secure: bool,
        now_seconds: u64,
    ) -> Option<&[u8]> {
        let is_named = |cookie: &&Cookie| cookie.name() == name.as_bytes();
        let mut named = self.of_host(host, secure, now_seconds).filter(is_named);
        let first = named.clone().next()?;
        let cookie = named.find(|cookie| path_matches(path_of(path), &cookie.path));
        Some(cookie.unwrap_or(first).value())
    }

    fn of_host(
        &self,
        host: &str,
        secure: bool,
        now_seconds: u64,
    ) -> impl Iterator<Item = &Cookie> + Clone {
        self.cookies.iter().filter(move |cookie| {
            let is_sent = cookie.expires > now_seconds && (secure || !cookie.secure);
            is_sent && cookie.is_for_host(host)
        })
    }

    fn make_room_and_insert(
        &mut self,
        cookie: Cookie,
        now_seconds: u64,
        limits: &CookieLimits,
    ) -> Stored {
        if limits.cookies_max == 0 {
            return Stored::Refused(Refusal::NoRoom);
        }
        let mut stored = Stored::Kept;
        if self.cookies.len() >= limits.cookies_max {
            self.cookies.retain(|other| other.expires > now_seconds);
        }
        while self.cookies.len() >= limits.cookies_max {
            let oldest = (0..self.cookies.len()).min_by_key(|at| self.cookies[*at].age_rank);
            self.cookies.remove(oldest.unwrap_or_default());
            stored = Stored::KeptForOldest;
        }
        let order = |other: &Cookie| (usize::MAX - other.path.len(), other.age_rank);
        let at = self.cookies.partition_point(|other| order(other) < order(&cookie));
        self.cookies.insert(at, cookie);
        stored
    }
}

impl Cookie {
    fn name(&self) -> &[u8] {
        &self.pair[..self.name_length]
    }

    fn value(&self) -> &[u8] {
        &self.pair[self.name_length + 1..]
    }

    fn is_same(&self, other: &Cookie) -> bool {
        self.name() == other.name() && self.domain == other.domain && self.path == other.path
    }

    fn is_for_host(&self, host: &str) -> bool {
        if self.host_only {
            host.eq_ignore_ascii_case(&self.domain)
        } else {
            domain_matches(host, &self.domain)
        }
    }
}

#[derive(Default)]
struct Attributes<'a> {
    max_age: Option<i64>,
    expires: Option<u64>,
    domain: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
    secure: bool,
}

/// RFC 6265 sections 5.2 and 5.3, up to the point where the jar comes in.
fn parse(
    text: &[u8],
    host: &str,
    path: &str,
    now_seconds: u64,
    limits: &CookieLimits,
) -> Result<Cookie, Refusal> {
    // A control byte could end the header that the cookie is sent back in.
    if text.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(Refusal::Malformed);
    }
    let mut parts = text.split(|byte| *byte == b';');
    let pair = parts.next().and_then(split_at_equals).filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or(Refusal::Malformed)?;
    if name.len() + value.len() > limits.cookie_bytes_max {
        return Err(Refusal::TooLong);
    }
    let mut attributes = Attributes::default();
    parts.for_each(|part| attributes.read(part));
    let (domain, host_only) = match attributes.domain {
        None => (host.to_ascii_lowercase(), true),
        Some(domain) => {
            let domain = std::str::from_utf8(domain).map_err(|_| Refusal::OtherDomain)?;
            let domain = domain.to_ascii_lowercase();
            let is_own = host.eq_ignore_ascii_case(&domain);
            if !is_own && (!domain.contains('.') || !domain_matches(host, &domain)) {
                return Err(Refusal::OtherDomain);
            }
            (domain, false)
        }
    };
    let path = match attributes.path.filter(|path| path.starts_with(b"/")) {
        Some(path) => std::str::from_utf8(path).map_err(|_| Refusal::Malformed)?,
        None => default_path(path),
    };
    Ok(Cookie {
        pair: [name, b"=", value].concat().into_boxed_slice(),
        name_length: name.len(),
        domain: domain.into_boxed_str(),
        path: path.into(),
        expires: attributes.expires_at(now_seconds),
        age_rank: 0,
        host_only,
        secure: attributes.secure,
    })
}

impl<'a> Attributes<'a> {
    /// The last attribute of a kind counts; one that is not understood does not.
    fn read(&mut self, part: &'a [u8]) {
        let (name, value) = split_at_equals(part).unwrap_or((trim_blanks(part), b""));
        if value.len() > ATTRIBUTE_BYTES_MAX {
            return;
        }
        match name.to_ascii_lowercase().as_slice() {
            b"expires" => self.expires = cookie_date::parse(value).or(self.expires),
            b"max-age" => self.max_age = seconds(value).or(self.max_age),
            b"domain" => {
                let domain = value.strip_prefix(b".").unwrap_or(value);
                self.domain = if domain.is_empty() { self.domain } else { Some(domain) };
            }
            b"path" => self.path = Some(value),
            b"secure" => self.secure = true,
            _ => {}
        }
    }

    fn expires_at(&self, now_seconds: u64) -> u64 {
        match (self.max_age, self.expires) {
            (Some(seconds), _) if seconds <= 0 => 0,
            (Some(seconds), _) => now_seconds.saturating_add(seconds.unsigned_abs()),
            (None, Some(expires)) => expires,
            (None, None) => u64::MAX,
        }
    }
}

fn split_at_equals(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = part.iter().position(|byte| *byte == b'=')?;
    Some((trim_blanks(&part[..at]), trim_blanks(&part[at + 1..])))
}

/// `-?[0-9]+`; what is out of range is as far as can be.
fn seconds(value: &[u8]) -> Option<i64> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0i64, |number, digit| {
        number.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    Some(if digits.len() < value.len() { -number } else { number })
}

/// RFC 6265 section 5.1.3; `domain` is in lower case.
fn domain_matches(host: &str, domain: &str) -> bool {
    if host.eq_ignore_ascii_case(domain) {
        return true;
    }
    let Some(at) = host.len().checked_sub(domain.len()) else { return false };
    let (before, tail) = host.as_bytes().split_at(at);
    before.ends_with(b".") && tail.eq_ignore_ascii_case(domain.as_bytes()) && !is_address(host)
}

fn is_address(host: &str) -> bool {
    host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok()
}

fn path_of(path_and_query: &str) -> &str {
    let path = path_and_query.split(['?', '#']).next().unwrap_or_default();
    if path.starts_with('/') { path } else { "/" }
}

/// RFC 6265 section 5.1.4: up to the last slash, without it.
fn default_path(path_and_query: &str) -> &str {
    let path = path_of(path_and_query);
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

/// RFC 6265 section 5.1.4.
fn path_matches(path: &str, cookie_path: &str) -> bool {
    path.strip_prefix(cookie_path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || cookie_path.ends_with('/'))
}

#[cfg(test)]
mod tests;
