//! A program made ready for sending: everything that is the same for all users is rendered once,
//! so that the usual request is one write of bytes that lie there already.

use std::net::SocketAddr;

use throng_program::{
    Body, Check, Connect, Http, Instruction, Message, Program, Scheme, Session, Target, Text, Until,
};
use throng_protocol::http1::{self, RequestKind};
use throng_protocol::{stream, websocket};

/// A program with what a shard needs to run it. One per shard: shards share nothing.
pub(crate) struct Prepared {
    pub(crate) program: std::sync::Arc<Program>,
    /// As [`Session::code`], per session.
    pub(crate) plans: Vec<Vec<Plan>>,
    pub(crate) targets: Vec<PreparedTarget>,
    /// The sum of the weights.
    pub(crate) target_weight: u64,
    pub(crate) session_weight: u64,
    pub(crate) http_limits: http1::Limits,
    pub(crate) http_limits_unkept: http1::Limits,
    pub(crate) websocket_limits: websocket::Limits,
}

pub(crate) struct PreparedTarget {
    pub(crate) target: Target,
    pub(crate) authority: String,
    pub(crate) addresses: Vec<SocketAddr>,
}

/// What is known beforehand of an instruction.
pub(crate) enum Plan {
    Nothing,
    Connect,
    Http(HttpPlan),
    /// Where the answer of an `expect` or `request` ends on a raw stream.
    Answer(stream::Until),
}

pub(crate) struct HttpPlan {
    pub(crate) kind: RequestKind,
    pub(crate) needs_body: bool,
    /// The request may be sent again when a kept connection turns out to be closed
    /// (RFC 9110, 9.2.2).
    pub(crate) idempotent: bool,
    pub(crate) has_header_check: bool,
    /// The whole request per target, where no part differs from user to user.
    pub(crate) fixed: Vec<Option<Fixed>>,
}

pub(crate) struct Fixed {
    pub(crate) bytes: Box<[u8]>,
    /// Where a Cookie header goes.
    pub(crate) head_end: usize,
}

impl Prepared {
    pub(crate) fn new(program: std::sync::Arc<Program>, addresses: &[Vec<SocketAddr>]) -> Prepared {
        let targets: Vec<PreparedTarget> = program
            .targets
            .iter()
            .zip(addresses)
            .map(|(target, addresses)| PreparedTarget {
                target: target.clone(),
                authority: target.authority(),
                addresses: addresses.clone(),
            })
            .collect();
        let plan = |session: &Session| {
            session.code.iter().map(|step| plan(step, &program, &targets)).collect()
        };
        let limits = &program.limits;
        let http_limits = http1::Limits {
            head_bytes_max: limits.head_bytes_max,
            body_bytes_max: limits.body_bytes_max,
            ..http1::Limits::default()
        };
        Prepared {
            plans: program.sessions.iter().map(plan).collect(),
            target_weight: program.targets.iter().map(|target| u64::from(target.weight)).sum(),
            session_weight: program.sessions.iter().map(|one| u64::from(one.weight)).sum(),
            http_limits,
            http_limits_unkept: http1::Limits { body_bytes_max: u64::MAX, ..http_limits },
            websocket_limits: websocket::Limits {
                message_bytes_max: limits.message_bytes_max,
                frame_bytes_max: limits.message_bytes_max as u64,
            },
            targets,
            program,
        }
    }
}

/// A request of so many bytes fits into one segment on any network.
const ONE_SEGMENT_BYTES: usize = 500;

impl Prepared {
    /// Whether a connection may have more than one small segment under way. A user that sends
    /// one short HTTP request at a time never has.
    pub(crate) fn sends_in_pieces(&self) -> bool {
        let short = |fixed: &Option<Fixed>| {
            fixed.as_ref().is_some_and(|fixed| fixed.bytes.len() <= ONE_SEGMENT_BYTES)
        };
        !self.plans.iter().flatten().all(|plan| match plan {
            Plan::Http(plan) => plan.fixed.iter().all(short),
            Plan::Answer(_) | Plan::Connect => false,
            Plan::Nothing => true,
        })
    }
}

fn plan(instruction: &Instruction, program: &Program, targets: &[PreparedTarget]) -> Plan {
    match instruction {
        Instruction::Http(http) => Plan::Http(http_plan(http, program, targets)),
        Instruction::Connect(_) => Plan::Connect,
        Instruction::Expect(expect) => Plan::Answer(until(&expect.until)),
        Instruction::Request(request) => Plan::Answer(until(&request.until)),
        _ => Plan::Nothing,
    }
}

fn until(until: &Until) -> stream::Until {
    match until {
        Until::Any => stream::Until::Any,
        Until::Length(length) => stream::Until::Length(*length),
        // The language refuses an empty delimiter.
        Until::Delimiter(bytes) => stream::Until::delimiter(bytes).unwrap_or(stream::Until::Any),
        Until::Pattern(pattern) => stream::Until::Pattern(pattern.clone()),
    }
}

fn http_plan(http: &Http, program: &Program, targets: &[PreparedTarget]) -> HttpPlan {
    let literal = http.path.as_literal().is_some()
        && http.headers.iter().all(|(_, value)| value.as_literal().is_some())
        && match &http.body {
            Body::None => true,
            Body::Text(text) => text.as_literal().is_some(),
        };
    let fixed = |target: &PreparedTarget| {
        literal.then(|| {
            let parts = Parts { http, target, keep_alive: program.connection.keep_alive };
            let mut bytes = Vec::new();
            // No user stands in a literal text.
            let render = |text: &Text, out: &mut Vec<u8>| {
                out.extend_from_slice(text.as_literal().unwrap_or_default());
            };
            let head_end = parts.write(&mut bytes, render);
            Fixed { bytes: bytes.into(), head_end }
        })
    };
    let kind = match http.method.as_str() {
        "HEAD" => RequestKind::Head,
        "CONNECT" => RequestKind::Connect,
        _ => RequestKind::Normal,
    };
    let method = http.method.as_str();
    HttpPlan {
        kind,
        needs_body: http.needs_body(),
        idempotent: matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE"),
        has_header_check: http.checks.iter().any(|check| matches!(check, Check::Header(_))),
        fixed: targets.iter().map(fixed).collect(),
    }
}

/// What a request is written from.
pub(crate) struct Parts<'a> {
    pub(crate) http: &'a Http,
    pub(crate) target: &'a PreparedTarget,
    pub(crate) keep_alive: bool,
}

impl Parts<'_> {
    /// Appends the request and returns where its head ends, before the empty line.
    pub(crate) fn write(&self, out: &mut Vec<u8>, render: impl Fn(&Text, &mut Vec<u8>)) -> usize {
        let Parts { http, target, .. } = self;
        let has = |name: &str| http.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let mut value = Vec::new();
        render(&http.path, &mut value);
        // A path that is no text can only come from a file; it is sent as far as it is one.
        http1::write_request_line(out, &http.method, &String::from_utf8_lossy(&value));
        if !has("host") {
            http1::write_header(out, "Host", target.authority.as_bytes());
        }
        for (name, text) in &http.headers {
            value.clear();
            render(text, &mut value);
            // Of the headers that we send unasked, one without a value is not sent, as in curl.
            let own = ["accept", "user-agent"];
            let is_own = own.iter().any(|own| name.eq_ignore_ascii_case(own));
            if !(is_own && value.is_empty()) {
                http1::write_header(out, name, &value);
            }
        }
        if !has("user-agent") {
            let agent = concat!("throng/", env!("CARGO_PKG_VERSION"));
            http1::write_header(out, "User-Agent", agent.as_bytes());
        }
        if !has("accept") {
            http1::write_header(out, "Accept", b"*/*");
        }
        if !self.keep_alive && !has("connection") {
            http1::write_header(out, "Connection", b"close");
        }
        value.clear();
        if let Body::Text(text) = &http.body {
            render(text, &mut value);
        }
        let bodyless = value.is_empty() && matches!(http.method.as_str(), "GET" | "HEAD");
        if !has("content-length") && !has("transfer-encoding") && !bodyless {
            let announces =
                !value.is_empty() || matches!(http.method.as_str(), "POST" | "PUT" | "PATCH");
            if announces {
                http1::write_content_length(out, value.len() as u64);
            }
        }
        let head_end = out.len();
        http1::write_head_end(out);
        out.extend_from_slice(&value);
        head_end
    }
}

/// The upgrade request of a WebSocket, but for its key.
pub(crate) fn upgrade_headers<'a>(
    connect: &'a Connect,
    render: impl Fn(&Text, &mut Vec<u8>) + 'a,
) -> Vec<(String, String)> {
    let mut headers = Vec::with_capacity(connect.headers.len());
    for (name, text) in &connect.headers {
        let mut value = Vec::new();
        render(text, &mut value);
        headers.push((name.clone(), String::from_utf8_lossy(&value).into_owned()));
    }
    headers
}

/// Whether messages on this target are WebSocket messages.
pub(crate) fn is_websocket(scheme: Scheme) -> bool {
    matches!(scheme, Scheme::Ws | Scheme::Wss)
}

/// The bytes of a message when all users send the same.
pub(crate) fn fixed_message(message: &Message) -> Option<&[u8]> {
    message.content.as_literal()
}
