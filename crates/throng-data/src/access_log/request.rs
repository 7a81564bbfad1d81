//! The request in a line of an access log: its sender, its time, and its path.
//!
//! Formats: common, combined, combined with the session cookie as another quoted field, and JSON
//! with the names that nginx, Caddy, Traefik and log shippers use.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use crate::moment::{clock_time, log_time};

/// A completed request.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRequest {
    /// Since 1970. Most logs have a resolution of a second.
    pub at_s: f64,
    /// The same number for all requests of a visitor: from the cookie, or from address and user
    /// agent.
    pub visitor: u64,
    pub method: String,
    /// With its query.
    pub path: String,
}

/// Names of fields in JSON logs, in order of preference.
const TIMES: [&str; 8] =
    ["msec", "ts", "time_iso8601", "time_local", "time", "@timestamp", "timestamp", "StartUTC"];
const COOKIES: [&str; 4] = ["cookie", "http_cookie", "session", "session_id"];
const ADDRESSES: [&str; 6] =
    ["remote_addr", "client_ip", "remote_ip", "clientip", "client", "ClientHost"];
const AGENTS: [&str; 3] = ["http_user_agent", "user_agent", "agent"];
const METHODS: [&str; 3] = ["request_method", "method", "RequestMethod"];
const PATHS: [&str; 6] = ["request_uri", "uri", "path", "url", "RequestPath", "target"];

/// None for a line without a known format, or without a valid request (a handshake on a plain port,
/// a truncated line).
pub(super) fn parse(line: &[u8]) -> Option<LogRequest> {
    match line.trim_ascii_start().first()? {
        b'{' => of_json(line),
        _ => of_text(line),
    }
}

fn of_text(line: &[u8]) -> Option<LogRequest> {
    let (time_at, at_s) = memchr::memchr_iter(b'[', line).take(8).find_map(|at| {
        let inside = line.get(at + 1..at + 28)?;
        Some((at, (inside[26] == b']').then(|| log_time(inside))?? as f64))
    })?;
    let address = line[..time_at].split(u8::is_ascii_whitespace).find(|it| !it.is_empty());
    let mut fields = Quoted(&line[time_at..]);
    let request = fields.next()?;
    let (_referer, agent, cookie) = (fields.next(), fields.next(), fields.next());
    let (method, path) = request_line(&text(request))?;
    let cookie = cookie.filter(|cookie| !matches!(*cookie, b"" | b"-"));
    Some(LogRequest { at_s, visitor: visitor(cookie, address, agent), method, path })
}

fn of_json(line: &[u8]) -> Option<LogRequest> {
    let value: Value = serde_json::from_slice(line).ok()?;
    // Caddy and some others have a nested request object.
    let nested = value.get("request").filter(|request| request.is_object());
    let find = |names: &[&str]| {
        let of = |value: &Value| {
            let found = names.iter().find_map(|name| value.get(*name))?;
            let text = found.as_str().map_or_else(|| found.to_string(), str::to_string);
            (!matches!(text.as_str(), "" | "-" | "null")).then_some(text)
        };
        of(&value).or_else(|| nested.and_then(of))
    };
    let at_s = seconds(&find(&TIMES)?)?;
    let line = value.get("request").and_then(Value::as_str).and_then(request_line);
    let (method, path) = match line {
        Some(both) => both,
        None => request_line(&format!("{} {}", find(&METHODS)?, find(&PATHS)?))?,
    };
    let [cookie, address, agent] = [find(&COOKIES), find(&ADDRESSES), find(&AGENTS)];
    let bytes = |text: &Option<String>| text.clone().map(String::into_bytes);
    let (cookie, address, agent) = (bytes(&cookie), bytes(&address), bytes(&agent));
    let visitor = visitor(cookie.as_deref(), address.as_deref(), agent.as_deref());
    Some(LogRequest { at_s, visitor, method, path })
}

fn visitor(cookie: Option<&[u8]>, address: Option<&[u8]>, agent: Option<&[u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match cookie {
        Some(cookie) => cookie.hash(&mut hasher),
        None => (address, agent).hash(&mut hasher),
    }
    hasher.finish()
}

/// `GET /path HTTP/1.1`; the URL in a proxy's log loses its host.
fn request_line(text: &str) -> Option<(String, String)> {
    let mut words = text.split_ascii_whitespace();
    let (method, target) = (words.next()?, words.next()?);
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    let path = match target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    let is_good = is_method && path.starts_with('/') && method != "CONNECT";
    is_good.then(|| (method.to_string(), path.to_string()))
}

/// Seconds since 1970: from seconds, milliseconds (above 10^11), or a date in ISO 8601 or log
/// format.
pub fn seconds(text: &str) -> Option<f64> {
    if let Ok(number) = text.parse::<f64>() {
        return Some(if number > 1e11 { number / 1e3 } else { number });
    }
    if let Some(second) = log_time(text.as_bytes()) {
        return Some(second as f64);
    }
    let (date, time) = text.split_once(['T', ' '])?;
    let Some(zone_at) = time.rfind(['+', '-']) else { return clock_time(text) };
    let (clock, zone) = time.split_at(zone_at);
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let (hours, minutes) = (digits.get(..2)?.parse::<f64>().ok()?, digits.get(2..4));
    let minutes = minutes.map_or(Some(0.0), |minutes| minutes.parse().ok())?;
    let offset = (hours * 60.0 + minutes) * 60.0 * if zone.starts_with('-') { -1.0 } else { 1.0 };
    Some(clock_time(&format!("{date}T{clock}"))? - offset)
}

/// Fields in double quotes; a backslash escapes the next character.
struct Quoted<'a>(&'a [u8]);

impl<'a> Iterator for Quoted<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let begin = memchr::memchr(b'"', self.0)? + 1;
        let rest = &self.0[begin..];
        let mut end = 0;
        while *rest.get(end)? != b'"' {
            end += if rest[end] == b'\\' { 2 } else { 1 };
        }
        self.0 = &rest[end + 1..];
        Some(&rest[..end])
    }
}

/// Decodes `\xHH` (nginx) and `\"` (Apache).
fn text(field: &[u8]) -> String {
    let mut out = Vec::with_capacity(field.len());
    let mut at = 0;
    while at < field.len() {
        let hex = field.get(at + 2..at + 4).filter(|_| field[at..].starts_with(b"\\x"));
        let byte = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (byte, field[at]) {
            (Some(byte), _) => {
                out.push(byte);
                at += 4;
            }
            (None, b'\\') => {
                out.extend(field.get(at + 1));
                at += 2;
            }
            (None, byte) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: f64 = 971_211_336.0;

    fn line(address: &str, rest: &str) -> Option<LogRequest> {
        parse(format!("{address} - ann [10/Oct/2000:13:55:36 -0700] {rest}").as_bytes())
    }

    #[test]
    fn common_and_combined_lines_are_read() {
        let common = line("192.0.2.1", "\"GET /a?b=c%20d HTTP/1.0\" 200 2326").expect("common");
        assert_eq!((common.at_s, common.method.as_str()), (NOON, "GET"));
        assert_eq!(common.path, "/a?b=c%20d");
        let agent = |agent: &str| {
            line("192.0.2.1", &format!("\"GET / HTTP/1.1\" 200 5 \"-\" \"{agent}\"")).expect(agent)
        };
        assert_eq!(agent("one").visitor, agent("one").visitor);
        assert_ne!(agent("one").visitor, agent("two").visitor, "two people behind one address");
        let cookie = |address: &str, cookie: &str| {
            let rest = format!("\"POST /b HTTP/1.1\" 201 5 \"-\" \"x\" \"{cookie}\"");
            line(address, &rest).expect(cookie).visitor
        };
        assert_eq!(cookie("192.0.2.1", "id=7"), cookie("192.0.2.9", "id=7"), "a phone that moves");
        assert_ne!(cookie("192.0.2.1", "-"), cookie("192.0.2.9", "-"), "without a cookie");
        let quoted = line("h", r#""GET /a\x22b\"c HTTP/1.1" 200 5"#).expect("escapes");
        assert_eq!(quoted.path, "/a\"b\"c");
        let proxy = line("h", "\"GET http://shop.test/a HTTP/1.1\" 200 5").expect("a proxy");
        assert_eq!(proxy.path, "/a");
    }

    #[test]
    fn json_lines_of_several_servers_are_read() {
        for (text, at_s) in [
            (r#"{"msec":"971211336.250","request":"GET /a HTTP/1.1","remote_addr":"h"}"#, 0.25),
            (
                r#"{"time_iso8601":"2000-10-10T13:55:36-07:00","request_method":"GET","request_uri":"/a"}"#,
                0.0,
            ),
            (r#"{"ts":971211336.5,"request":{"method":"GET","uri":"/a","remote_ip":"h"}}"#, 0.5),
            (r#"{"@timestamp":"2000-10-10T20:55:36.125Z","method":"GET","path":"/a"}"#, 0.125),
            (r#"{"timestamp":971211336750,"method":"GET","url":"http://h/a"}"#, 0.75),
            (r#"{"time_local":"10/Oct/2000:13:55:36 -0700","request":"GET /a HTTP/2.0"}"#, 0.0),
        ] {
            let found = parse(text.as_bytes()).expect(text);
            assert!((found.at_s - NOON - at_s).abs() < 1e-6, "{text}: {found:?}");
            assert_eq!((found.method.as_str(), found.path.as_str()), ("GET", "/a"), "{text}");
        }
    }

    #[test]
    fn dates_of_browsers_are_read() {
        assert_eq!(seconds("1970-01-01T00:00:00.000Z"), Some(0.0));
        for text in ["2024-02-29T12:30:15.250Z", "2024-02-29T14:30:15.25+02:00", "1709209815250"] {
            assert_eq!(seconds(text), Some(1_709_209_815.25), "{text}");
        }
        assert_eq!(seconds("2024-02-29T12:30:15-0000"), Some(1_709_209_815.0));
        for bad in ["", "yesterday", "2024-13-01T00:00:00Z"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn lines_without_a_request_are_skipped() {
        for rest in [
            "\"-\" 408 0",
            "\"\\x16\\x03\\x01\" 400 5",
            "\"GET",
            "",
            "\"CONNECT h:1 HTTP/1.1\" 405 0",
        ] {
            assert_eq!(line("h", rest), None, "{rest}");
        }
        for text in ["", "no log", "{", "{}", r#"{"ts": 1, "method": "GET"}"#] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
