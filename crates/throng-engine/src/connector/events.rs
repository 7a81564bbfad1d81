//! Opens event streams (HTML standard, section "Server-sent events"): the request, and whether its
//! answer is one. What comes behind the head, and the head with it, the machine reads.

use throng_metrics::Cause;
use throng_protocol::events::{EventError, EventReader, check_head};
use throng_protocol::http1::request::{
    write_content_length, write_head_end, write_header, write_request_line,
};
use throng_protocol::http1::{Head, RequestKind, validate_header_value, validate_target};
use throng_protocol::http2::{self, Lasting};
use throng_protocol::machine::Machine;

use throng_base::Said;

use super::{Ask, Opened, Order, converse, multiplexes, refusal_s, refused_by_target, write_all};
use crate::failure::{Failure, http2_failure, io_failure};
use crate::shard::Lane;
use crate::spent::Times;
use crate::trace::{Shown, What, text_of_head};
use crate::transport::Transport;

/// What an `EventSource` says of itself, where the scenario does not.
const USUAL: [(&str, &str); 2] = [("Accept", "text/event-stream"), ("Cache-Control", "no-cache")];

pub(super) async fn subscribe(
    shard: &Lane,
    order: &Order,
    ask: &Ask,
    mut transport: Transport,
) -> Result<Opened, Failure> {
    let authority = &shard.prepared.targets[usize::from(order.target)].authority;
    let request = write_request(ask, authority)?;
    if multiplexes(shard, order, &transport)? {
        return over_http2(shard, order, (ask, &request), transport).await;
    }
    let request = [&request[..], &ask.body[..]].concat();
    let kind = RequestKind::Normal;
    let check = |head: &Head<'_>| {
        order.note_cookies(shard, head);
        check_head(head)
    };
    let answer = converse(shard, order, &mut transport, &request, kind, check).await?;
    let told = (answer.status, answer.retry_after_s);
    answer.verdict.map_err(|error| refused_by_target(&error, told))?;
    Ok(Opened {
        transport,
        multiplexes: false,
        machine: Some(Machine::Events(EventReader::since(ask.resume.clone()))),
        bytes_in: answer.heard.len() as u64,
        // It reads the answer from its beginning.
        surplus: answer.heard,
        bytes_out: request.len() as u64,
        status: answer.status,
        times: Times::default(),
    })
}

/// The same as the one stream of a connection of HTTP/2. The machine reads its head here already.
async fn over_http2(
    shard: &Lane,
    order: &Order,
    (ask, request): (&Ask, &[u8]),
    mut transport: Transport,
) -> Result<Opened, Failure> {
    let (stream, mut out) = open_stream(shard, order, (request, &ask.body))?;
    let reader = EventReader::over_http2(stream, ask.resume.clone());
    let mut subscribing = Subscribing { reader, status: 0, retry_after_s: 0, bytes_in: 0 };
    let sent = || What::Sent(Shown::of(&[request, &ask.body[..]].concat()));
    shard.tell(order.who, shard.clock.now(), sent);
    let (mut surplus, mut bytes_out) = (None, 0);
    while surplus.is_none() {
        if !out.is_empty() {
            write_all(&mut transport, &out).await?;
            bytes_out += out.len() as u64;
            out.clear();
        }
        let read = std::future::poll_fn(|cx| {
            let mut buffer = shard.read_buffer.borrow_mut();
            transport.poll_read(cx, &mut buffer).map(|read| {
                let count = read.map_err(|error| io_failure(&error))?.bytes;
                subscribing.received(shard, order, &buffer[..count], &mut out)
            })
        });
        surplus = read.await?;
    }
    // What HTTP/2 answers by itself (acknowledgements): the opening does not depend on it.
    write_all(&mut transport, &out).await?;
    Ok(Opened {
        transport,
        multiplexes: true,
        machine: Some(Machine::Events(subscribing.reader)),
        surplus: surplus.unwrap_or_default(),
        bytes_in: subscribing.bytes_in,
        bytes_out: bytes_out + out.len() as u64,
        status: subscribing.status,
        times: Times::default(),
    })
}

/// The stream that asks, and what it says.
fn open_stream(
    shard: &Lane,
    order: &Order,
    (head, body): (&[u8], &[u8]),
) -> Result<(Lasting, Vec<u8>), Failure> {
    let target = &shard.prepared.targets[usize::from(order.target)].target;
    let scheme = if target.scheme.is_secure() { "https" } else { "http" };
    let (mut block, mut out) = (Vec::with_capacity(256), Vec::with_capacity(512));
    http2::write_block(&mut block, scheme, head);
    let ask = http2::Ask {
        kind: RequestKind::Normal,
        block: &block,
        indexed: &[],
        body: match body {
            [] => http2::Body::None,
            body => http2::Body::Bytes(body),
        },
        body_bytes_max: u64::MAX,
    };
    // A new connection has room for one.
    let stream =
        Lasting::open(&ask, &shard.prepared.http2_limits, &mut out).map_err(|refused| {
            Failure::new(Cause::GeneratorFailed, Said::of_others(format!("{refused:?}")))
        })?;
    Ok((stream, out))
}

/// A stream whose head has not come.
struct Subscribing {
    reader: EventReader,
    status: u16,
    retry_after_s: u16,
    bytes_in: u64,
}

impl Subscribing {
    /// Bytes came: those behind the head, if it has come.
    fn received(
        &mut self,
        shard: &Lane,
        order: &Order,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        if bytes.is_empty() {
            return Err(http2_failure(&http2::Violation::ClosedBeforeHead));
        }
        self.bytes_in += bytes.len() as u64;
        let now = shard.clock.now();
        let mut workspace = shard.workspace.borrow_mut();
        let limits = &shard.prepared.http2_limits;
        let mut lent = http2::Lent { now, limits, workspace: &mut workspace, out };
        let (status, retry_after_s) = (&mut self.status, &mut self.retry_after_s);
        let unix_seconds = shard.unix_nanos(now) / 1_000_000_000;
        let read = self.reader.receive_head(bytes, &mut lent, &mut |head| {
            (*status, *retry_after_s) = (head.status, refusal_s(head, unix_seconds));
            order.note_cookies(shard, head);
            shard.tell(order.who, now, || What::Received(Shown::of(&text_of_head(head))));
        });
        let used = read.map_err(|error| self.failure_of(&error))?;
        Ok((self.status != 0).then(|| bytes[used..].to_vec()))
    }

    fn failure_of(&self, error: &EventError) -> Failure {
        match error {
            EventError::NotEvents(error) => {
                refused_by_target(error, (self.status, self.retry_after_s))
            }
            EventError::Http2(violation) => http2_failure(violation),
            EventError::Reset(_) => Failure::new(Cause::Reset, Said::of_others(error.to_string())),
            EventError::Ended => {
                Failure::new(Cause::ClosedEarly, Said::of_others(error.to_string()))
            }
            _ => Failure::new(Cause::Malformed, Said::of_others(error.to_string())),
        }
    }
}

fn write_request(ask: &Ask, authority: &str) -> Result<Vec<u8>, Failure> {
    let path = if ask.path.is_empty() { "/" } else { &ask.path };
    if !path.starts_with('/') || validate_target(path).is_err() {
        return Err(Failure::new(Cause::ScenarioFailed, bad_path(path)));
    }
    let is_own = |name: &str| ask.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let mut out = Vec::with_capacity(256);
    let method = if ask.method.is_empty() { "GET" } else { &ask.method };
    write_request_line(&mut out, method, path);
    for (name, value) in [("Host", authority)].into_iter().chain(USUAL) {
        if !is_own(name) {
            write_header(&mut out, name, value.as_bytes());
        }
    }
    for (name, value) in &ask.headers {
        if validate_header_value(value.as_bytes()).is_err() {
            return Err(Failure::new(Cause::ScenarioFailed, bad_value(name)));
        }
        write_header(&mut out, name, value.as_bytes());
    }
    let last_id = &ask.resume.last_id;
    if !last_id.is_empty() && !is_own("Last-Event-ID") {
        write_header(&mut out, "Last-Event-ID", last_id);
    }
    let has_length = is_own("Content-Length") || is_own("Transfer-Encoding");
    if !has_length && (!ask.body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH")) {
        write_content_length(&mut out, ask.body.len() as u64);
    }
    out.extend_from_slice(&ask.cookies);
    write_head_end(&mut out);
    Ok(out)
}

fn bad_path(path: &str) -> Said {
    say!("the path `{path}` must start with `/` and must not contain spaces")
}

fn bad_value(name: &str) -> Said {
    say!("the value of the header `{name}` contains a line break or control character")
}
