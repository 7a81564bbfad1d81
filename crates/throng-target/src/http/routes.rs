//! The routes of the HTTP servers: from the head of a request to the bytes of the response.
//!
//! `/` and any unknown path: 200 with the default body · `/bytes/N` · `/chunked/N` · `/status/CODE`
//! · `/echo` returns the body · `/anything` returns the request as JSON · `/redirect/N` ·
//! `/cookies` · `/cookies/set?name=value` · `/json` · `/events`, the stream of [`super::events`] ·
//! `/digest` with the authentication of [`super::digest`] · `/throng/stats` · `/throng/reset` ·
//! `/throng/law`, and the service of [`shop`].
//!
//! The request headers `sleep` (ms) and `times` make the first of these slow: the head and the
//! first piece of the response are sent after `sleep`, and each further one of `times` pieces after
//! another `sleep`. A piece is the whole normal body.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use throng_base::{Random, Said};

use super::shop::{self, Call};
use super::{Digest, Events, Head, Pieces, Refusal, Tail};
use super::{chat, push};
use crate::options::{BODY_BYTES_MAX, TargetKind};
use crate::output::{Finish, write_filler};
use crate::queue::{Question, Refused};
use crate::setup::Setup;
use crate::stats::WorkerStats;

/// Maximum `sleep`: a day in milliseconds.
const SLEEP_MS_MAX: u64 = 86_400_000;
/// Maximum `times`.
const TIMES_MAX: u32 = 1_000_000;
/// Maximum number of redirects of `/redirect/N`.
const REDIRECTS_MAX: u32 = 100;
/// A filler body up to this size is written with its head; a larger one as the socket accepts it.
const INLINE_BODY_BYTES_MAX: u64 = 32 * 1024;
/// Maximum length of a filler piece of a slow response.
const PIECE_BYTES_MAX: u64 = 1024 * 1024;

/// How the response to a request is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) minor: u8,
    pub(crate) keep_alive: bool,
    /// For HEAD: the same head without a body.
    pub(crate) head_only: bool,
    /// From the headers `sleep` and `times`.
    pub(crate) slow: Option<(Duration, u32)>,
}

impl Reply {
    pub(crate) fn new(head: &Head<'_>) -> Result<Reply, Refusal> {
        let mut reply = Reply {
            minor: head.minor,
            keep_alive: head.keep_alive,
            head_only: head.method == "HEAD",
            slow: None,
        };
        let (sleep, times) = (head.sleep, head.times);
        if sleep.is_some() || times.is_some() {
            let sleep: u64 = number(sleep.unwrap_or("0"), SLEEP_MS_MAX)
                .ok_or(Refusal::bad("`sleep` must be in milliseconds, at most one day"))?;
            let times: u32 = number(times.unwrap_or("1"), TIMES_MAX)
                .filter(|times| *times > 0)
                .ok_or(Refusal::bad("`times` must be a number from 1 to 1000000"))?;
            reply.slow = Some((Duration::from_millis(sleep), times));
            // Without chunked coding, a response in pieces ends with the connection.
            reply.keep_alive &= head.minor == 1;
        }
        Ok(reply)
    }

    pub(crate) fn finish(&self) -> Option<Finish> {
        (!self.keep_alive).then_some(Finish::Close)
    }
}

/// The requested response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Default,
    Bytes(u64),
    Chunked(u64),
    Status(u16),
    /// Too many requests; the next may follow in this many seconds.
    Limited(u64),
    /// The request body, with this content type.
    Echo(String),
    Anything(Box<SeenRequest>),
    Redirect(u32),
    SetCookie(String),
    /// The response of a service: its status and JSON.
    Service(u16, String),
    /// Prepared text of this type.
    Text(&'static str, String),
    Json,
    Events(Events),
    Digest(Digest),
    Call(Call),
    /// Unknown path on the admin address.
    Missing,
    Admin(Admin),
}

/// A request for statistics or administration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admin {
    Stats,
    Reset,
    /// The highest rate that meets the threshold in this query.
    Law(String),
    Broadcast,
    /// A request that only some kinds of servers support: method and target.
    Service(String, String),
}

/// A request as shown by `/anything`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SeenRequest {
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Plan {
    /// The response to a request that the server's limits reject.
    pub(crate) fn refused(refused: Refused) -> Plan {
        match refused {
            Refused::Full => Plan::Status(503),
            // RFC 9110, section 10.2.3: whole seconds.
            Refused::Limited(wait) => Plan::Limited(wait.as_secs_f64().ceil() as u64),
        }
    }

    /// Whether the response contains the request body.
    pub(crate) fn keeps_body(&self) -> bool {
        matches!(
            self,
            Plan::Echo(_)
                | Plan::Anything(_)
                | Plan::Call(_)
                | Plan::Admin(Admin::Broadcast | Admin::Service(..))
        )
    }
}

/// Determines the response. The admin address serves only admin paths.
pub(crate) fn plan(head: &Head<'_>, admin: bool) -> Result<Plan, Refusal> {
    let (path, query) = path_of(head.target);
    match path {
        "/throng/stats" => return Ok(Plan::Admin(Admin::Stats)),
        "/throng/law" => return Ok(Plan::Admin(Admin::Law(query.to_owned()))),
        "/throng/reset" => return Ok(Plan::Admin(Admin::Reset)),
        _ => {}
    }
    if admin {
        return match (path, head.method) {
            ("/broadcast", "POST") => Ok(Plan::Admin(Admin::Broadcast)),
            ("/broadcast", _) => Err(Refusal::new(405, "a broadcast must be a POST with a body")),
            (_, method) => {
                let service = Admin::Service(method.to_owned(), head.target.to_owned());
                Ok(Plan::Admin(service))
            }
        };
    }
    if let Some(call) = shop::call(head, path, query) {
        return Ok(Plan::Call(call));
    }
    let mut words = path.trim_start_matches('/').splitn(3, '/');
    let argument = |argument: Option<&str>, max: u64| {
        number(argument.unwrap_or(""), max).ok_or(Refusal::bad("not a number, or too large"))
    };
    Ok(match (words.next().unwrap_or(""), words.next()) {
        ("bytes", size) => Plan::Bytes(argument(size, BODY_BYTES_MAX)?),
        ("chunked", size) => Plan::Chunked(argument(size, BODY_BYTES_MAX)?),
        ("status", code) => match argument(code, 599)? {
            code @ 200..=599 => Plan::Status(code as u16),
            _ => return Err(Refusal::bad("the final status must be from 200 to 599")),
        },
        ("echo", None) => Plan::Echo(
            head.fields.get("content-type").unwrap_or("application/octet-stream").to_owned(),
        ),
        ("anything", _) => Plan::Anything(Box::new(seen(head, path, query))),
        ("redirect", times) => Plan::Redirect(argument(times, u64::from(REDIRECTS_MAX))? as u32),
        ("cookies", None) => Plan::Text("application/json", cookies(head)),
        ("cookies", Some("set")) if query.contains('=') => Plan::SetCookie(query.to_owned()),
        ("cookies", _) => return Err(Refusal::bad("`/cookies/set?name=value` sets a cookie")),
        ("json", None) => Plan::Json,
        ("events", None) => Plan::Events(Events::asked(head, query)?),
        ("digest", None) => Plan::Digest(Digest::asked(head, query)?),
        _ => Plan::Default,
    })
}

fn number<T: TryFrom<u64> + Into<u64>>(text: &str, max: T) -> Option<T> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits)?;
    (number <= max.into()).then(|| T::try_from(number).ok()).flatten()
}

/// The path and the query of a target, which may include scheme and host.
fn path_of(target: &str) -> (&str, &str) {
    let path = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => {
            rest.find('/').map_or("/", |slash| &rest[slash..])
        }
        _ => target,
    };
    path.split_once('?').unwrap_or((path, ""))
}

fn seen(head: &Head<'_>, path: &str, query: &str) -> SeenRequest {
    let owned = |(name, value): (&str, &str)| (name.to_ascii_lowercase(), value.to_owned());
    SeenRequest {
        method: head.method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: head.fields.iter().map(owned).collect(),
        body: String::new(),
    }
}

fn cookies(head: &Head<'_>) -> String {
    let lists = head.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    let pairs = lists.flat_map(|(_, list)| list.split(';')).filter_map(|c| c.split_once('='));
    let cookies: BTreeMap<&str, &str> =
        pairs.map(|(name, value)| (name.trim(), value.trim())).collect();
    json!({ "cookies": cookies }).to_string()
}

/// The content of a response.
pub(crate) enum Content<'a> {
    Nothing,
    Bytes(&'a [u8]),
    Filler(u64),
    Chunked(u64),
    Events(&'a Events),
}

/// Writes the head of a planned response, and returns what follows.
pub(crate) fn render(
    plan: &Plan,
    body: &[u8],
    reply: Reply,
    setup: &Setup,
    random: &mut Random,
    out: &mut Vec<u8>,
) -> Tail {
    let is_plain = reply.minor == 1 && reply.keep_alive && setup.default_fits(reply);
    if *plan == Plan::Default && is_plain {
        out.extend_from_slice(&setup.default_answer);
        return Tail::None;
    }
    answer(plan, body, setup, random, |status, kind, extra, content| {
        write_answer(out, reply, status, kind, extra, content)
    })
}

/// Computes a planned response and passes it on: its status, its content type, additional headers,
/// and its content.
pub(crate) fn answer<R>(
    plan: &Plan,
    body: &[u8],
    setup: &Setup,
    random: &mut Random,
    answer: impl FnOnce(u16, &str, &[(&str, &str)], Content<'_>) -> R,
) -> R {
    let text = "text/plain";
    match plan {
        Plan::Default => answer(200, text, &[], Content::Filler(setup.options.body)),
        Plan::Bytes(size) => answer(200, "application/octet-stream", &[], Content::Filler(*size)),
        Plan::Chunked(size) => {
            answer(200, "application/octet-stream", &[], Content::Chunked(*size))
        }
        Plan::Status(status) => {
            answer(*status, text, &[], Content::Bytes(reason(*status).as_bytes()))
        }
        Plan::Limited(seconds) => {
            let extra = [("Retry-After", seconds.to_string())];
            let extra = extra.each_ref().map(|(name, value)| (*name, value.as_str()));
            answer(429, text, &extra, Content::Bytes(reason(429).as_bytes()))
        }
        Plan::Echo(kind) => answer(200, kind, &[], Content::Bytes(body)),
        Plan::Anything(seen) => {
            let seen = SeenRequest {
                body: String::from_utf8_lossy(body).into_owned(),
                ..(**seen).clone()
            };
            let json = serde_json::to_vec(&seen).unwrap_or_default();
            answer(200, "application/json", &[], Content::Bytes(&json))
        }
        Plan::Redirect(0) => answer(200, text, &[], Content::Bytes(b"arrived")),
        Plan::Redirect(left) => {
            let location = format!("/redirect/{}", left - 1);
            answer(302, text, &[("Location", &location)], Content::Bytes(b""))
        }
        Plan::SetCookie(pair) => {
            let cookie = format!("{}; Path=/", pair.replace('&', "%26"));
            let extra = [("Location", "/cookies"), ("Set-Cookie", &cookie)];
            answer(302, text, &extra, Content::Bytes(b""))
        }
        Plan::Text(kind, content) => answer(200, kind, &[], Content::Bytes(content.as_bytes())),
        Plan::Json => {
            let token = format!("{:016x}", random.next_u64());
            let json = json!({ "code": 0, "data": { "token": token } }).to_string();
            answer(200, "application/json", &[], Content::Bytes(json.as_bytes()))
        }
        Plan::Events(events) => {
            let extra = [("Cache-Control", "no-store")];
            answer(200, "text/event-stream", &extra, Content::Events(events))
        }
        Plan::Digest(Digest::From(user)) => {
            let json = json!({ "authenticated": true, "user": user }).to_string();
            answer(200, "application/json", &[], Content::Bytes(json.as_bytes()))
        }
        Plan::Digest(Digest::Ask { algorithm, stale }) => {
            let challenges = Digest::challenges(*algorithm, *stale, random);
            let extra: Vec<_> =
                challenges.iter().map(|one| ("WWW-Authenticate", one.as_str())).collect();
            answer(401, text, &extra, Content::Bytes(b"user name and password required"))
        }
        Plan::Call(call) => {
            let said = call.answer(body, setup, random);
            let cookie = said.cookie.as_deref().map(|cookie| [("Set-Cookie", cookie)]);
            let extra = cookie.as_ref().map_or(&[][..], |cookie| cookie);
            answer(said.status, said.kind, extra, Content::Bytes(said.body.as_bytes()))
        }
        Plan::Service(status, json) => {
            answer(*status, "application/json", &[], Content::Bytes(json.as_bytes()))
        }
        Plan::Missing => answer(404, text, &[], Content::Bytes(ADMIN_PATHS)),
        Plan::Admin(_) => answer(200, text, &[], Content::Nothing),
    }
}

const ADMIN_PATHS: &[u8] =
    b"/throng/stats /throng/reset /throng/law /online, POST /broadcast, chat: /room/ID\n";

impl Admin {
    /// Executes the request, and returns the response.
    pub(crate) fn perform(self, setup: &Setup, body: &[u8]) -> Plan {
        let worker_stats = &setup.worker_stats;
        let text = match self {
            Admin::Stats => serde_json::to_string(&setup.stats()).unwrap_or_default(),
            Admin::Reset => {
                setup.reset();
                json!({ "reset": true }).to_string()
            }
            Admin::Law(query) => {
                let (status, json) = law(setup, &query);
                return Plan::Service(status, json);
            }
            Admin::Broadcast => {
                setup.broadcast(body);
                json!({ "sent": true }).to_string()
            }
            Admin::Service(method, target) => {
                let said = match &setup.kind {
                    TargetKind::Chat => chat::route(setup, &method, &target),
                    TargetKind::Push => push::route(setup, &method, &target, body),
                    _ => None,
                };
                match said {
                    Some((status, json)) => return Plan::Service(status, json),
                    None if path_of(&target).0 == "/online" => online(worker_stats),
                    None => return Plan::Missing,
                }
            }
        };
        Plan::Text("application/json", text)
    }
}

/// The law of the server for a threshold, or why there is none.
fn law(setup: &Setup, query: &str) -> (u16, String) {
    let wrong = |status, reason: &Said| (status, json!({ "error": reason.english() }).to_string());
    let question = match Question::read(query) {
        Ok(question) => question,
        Err(reason) => return wrong(400, &reason),
    };
    match setup.law(question) {
        Some(law) => (200, serde_json::to_string(&law).unwrap_or_default()),
        None => wrong(
            404,
            &say!(
                "this server has no limit; `--service` adds a queue, and `--rate-limit` a rate \
                 limit"
            ),
        ),
    }
}

fn online(worker_stats: &WorkerStats) -> String {
    let connections = worker_stats.stats().logged_in;
    json!({ "online": connections, "users": worker_stats.people.online() }).to_string()
}

/// The response to an invalid request; it closes the connection.
pub(crate) fn refuse(out: &mut Vec<u8>, refusal: Refusal, head_only: bool) {
    let reply = Reply { minor: 1, keep_alive: false, head_only, slow: None };
    let extra: &[(&str, &str)] = match refusal.status {
        426 => &[("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")],
        _ => &[],
    };
    let content = Content::Bytes(refusal.reason.as_bytes());
    write_answer(out, reply, refusal.status, "text/plain", extra, content);
}

/// The response to a WebSocket upgrade (RFC 6455, section 4.2.2).
pub(crate) fn switching_protocols(accept: &str, protocol: Option<&str>) -> Vec<u8> {
    let mut answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n"
    );
    if let Some(protocol) = protocol {
        answer.push_str("Sec-WebSocket-Protocol: ");
        answer.push_str(protocol);
        answer.push_str("\r\n");
    }
    answer.push_str("\r\n");
    answer.into_bytes()
}

/// The pieces of a slow response, unless it has no body.
pub(crate) fn pieces(reply: Reply, status: u16, content: &Content<'_>) -> Option<Pieces> {
    let (sleep, left) = reply.slow.filter(|_| status != 204 && status != 304)?;
    let piece = match content {
        Content::Bytes(bytes) => bytes.to_vec(),
        Content::Filler(size) | Content::Chunked(size) => {
            vec![b'x'; *size.min(&PIECE_BYTES_MAX) as usize]
        }
        Content::Nothing | Content::Events(_) => Vec::new(),
    };
    Some(Pieces { left, sleep, piece, chunked: reply.minor == 1 })
}

fn write_answer(
    out: &mut Vec<u8>,
    reply: Reply,
    status: u16,
    kind: &str,
    extra: &[(&str, &str)],
    content: Content<'_>,
) -> Tail {
    let bodiless = status == 204 || status == 304;
    let pieces = pieces(reply, status, &content);
    // Writing to memory cannot fail.
    let _ = write!(out, "HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in extra {
        let _ = write!(out, "{name}: {value}\r\n");
    }
    if !bodiless {
        let _ = write!(out, "Content-Type: {kind}\r\n");
        let _ = match (&pieces, &content) {
            (Some(_), _) | (None, Content::Chunked(_) | Content::Events(_)) if reply.minor == 1 => {
                write!(out, "Transfer-Encoding: chunked\r\n")
            }
            (Some(_), _) | (None, Content::Events(_)) => Ok(()),
            (None, Content::Bytes(bytes)) => write!(out, "Content-Length: {}\r\n", bytes.len()),
            (None, Content::Filler(size) | Content::Chunked(size)) => {
                write!(out, "Content-Length: {size}\r\n")
            }
            (None, Content::Nothing) => write!(out, "Content-Length: 0\r\n"),
        };
    }
    match (reply.keep_alive, reply.minor) {
        (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (true, 0) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        _ => {}
    }
    out.extend_from_slice(b"\r\n");
    write_content(out, reply, pieces, content, bodiless)
}

fn write_content(
    out: &mut Vec<u8>,
    reply: Reply,
    pieces: Option<Pieces>,
    content: Content<'_>,
    bodiless: bool,
) -> Tail {
    if reply.head_only || bodiless {
        // A slow response without a body is delayed once.
        return reply.slow.map_or(Tail::None, |(sleep, _)| {
            Tail::Pieces(Pieces { left: 1, sleep, piece: Vec::new(), chunked: false })
        });
    }
    match (pieces, content) {
        (Some(pieces), _) => Tail::Pieces(pieces),
        (None, Content::Nothing) => Tail::None,
        (None, Content::Bytes(bytes)) => {
            out.extend_from_slice(bytes);
            Tail::None
        }
        (None, Content::Events(events)) => Tail::Events(Box::new(events.clone())),
        (None, Content::Chunked(size)) if reply.minor == 1 => Tail::Chunked(size),
        (None, Content::Filler(size) | Content::Chunked(size)) => {
            if size > INLINE_BODY_BYTES_MAX {
                return Tail::Filler(size);
            }
            write_filler(out, size as usize);
            Tail::None
        }
    }
}

impl Setup {
    /// Whether the prepared default response applies to this request.
    fn default_fits(&self, reply: Reply) -> bool {
        !reply.head_only && reply.slow.is_none() && !self.default_answer.is_empty()
    }
}

/// The prepared default response; empty if its body is too large.
pub(crate) fn default_answer(body: u64) -> Vec<u8> {
    let reply = Reply { minor: 1, keep_alive: true, head_only: false, slow: None };
    let mut out = Vec::new();
    if body <= INLINE_BODY_BYTES_MAX {
        write_answer(&mut out, reply, 200, "text/plain", &[], Content::Filler(body));
    }
    out
}

fn reason(status: u16) -> &'static str {
    let status = ::http::StatusCode::from_u16(status).ok();
    status.and_then(|status| status.canonical_reason()).unwrap_or("Status")
}
