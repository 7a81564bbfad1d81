//! Opens event streams (HTML standard, section "Server-sent events"): sends the request, and checks
//! whether the response is an event stream.

use throng_metrics::Cause;
use throng_protocol::events::{EventReader, check_head};
use throng_protocol::http1::request::{
    write_content_length, write_head_end, write_header, write_request_line,
};
use throng_protocol::http1::{
    BodyFraming, Head, RequestKind, validate_header_value, validate_target,
};
use throng_protocol::http2::{self, Lasting};
use throng_protocol::machine::Machine;

use throng_base::Said;

use super::{Missing, Opens};
use crate::connector::{Ask, Opened, Order, converse, multiplexes, refused_by_target};
use crate::failure::Failure;
use crate::shard::Lane;
use crate::trace::{Shown, What};
use crate::transport::Transport;

/// The headers of an `EventSource`, unless the scenario sets its own.
const USUAL: [(&str, &str); 2] = [("Accept", "text/event-stream"), ("Cache-Control", "no-cache")];

impl Opens for Ask {
    fn missing(&self) -> Missing {
        |waited| say!("no response to the event stream request within {waited}")
    }

    fn ask(&self) -> Option<&Ask> {
        Some(self)
    }

    async fn open(
        &self,
        shard: &Lane,
        order: &Order,
        mut transport: Transport,
        _: &[u8],
    ) -> Result<Opened, Failure> {
        let authority = &shard.prepared.targets[usize::from(order.target)].authority;
        let head = write_request(self, authority)?;
        let request = [&head[..], &self.body[..]].concat();
        shard.tell(order.who, shard.clock.now(), || What::Sent(Shown::of(&request)));
        let multiplexes = multiplexes(shard, order, &transport)?;
        let (reader, out) = match multiplexes {
            true => {
                let (stream, out) = open_stream(shard, order, (&head, &self.body))?;
                (EventReader::over_http2(stream, self.resume.clone()), out)
            }
            false => (EventReader::since(self.resume.clone()), request),
        };
        let mut machine = Machine::Events(reader);
        let check = |head: &Head<'_>| {
            order.note_cookies(shard, head);
            // The response ends with its head.
            let is_over = multiplexes && head.framing == BodyFraming::Length(0);
            (check_head(head), is_over)
        };
        let is_text = !multiplexes;
        let answer =
            converse(shard, order, &mut transport, &mut machine, out, is_text, check).await?;
        let told = (answer.status, answer.retry_after_s);
        let (verdict, is_over) = answer.verdict;
        verdict.map_err(|error| refused_by_target(&error, told))?;
        if is_over {
            return Err(Failure::new(
                Cause::ClosedEarly,
                say!("the target ended the event stream"),
            ));
        }
        Ok(Opened {
            multiplexes,
            status: answer.status,
            ..Opened::by(machine, transport, answer.pulled)
        })
    }
}

/// The stream of the request, and its bytes.
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
    // A new connection has room for one stream.
    let stream =
        Lasting::open(&ask, &shard.prepared.limits.http2, &mut out).map_err(|refused| {
            Failure::new(Cause::GeneratorFailed, Said::of_others(format!("{refused:?}")))
        })?;
    Ok((stream, out))
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
