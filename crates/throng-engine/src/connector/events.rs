//! Opens event streams (HTML standard, section "Server-sent events"): the request, and whether its
//! answer is one. What comes behind the head, and the head with it, the machine reads.

use throng_metrics::Cause;
use throng_protocol::events::{EventReader, check_head};
use throng_protocol::http1::request::{write_head_end, write_header, write_request_line};
use throng_protocol::http1::{RequestKind, validate_header_value, validate_target};
use throng_protocol::machine::Machine;

use super::{Ask, Failure, Opened, Order, Times, converse, refused_by_target};
use crate::shard::Shard;
use crate::transport::Transport;

/// What an `EventSource` says of itself, where the scenario does not.
const USUAL: [(&str, &str); 2] = [("Accept", "text/event-stream"), ("Cache-Control", "no-cache")];

pub(super) async fn subscribe(
    shard: &Shard,
    order: &Order,
    ask: &Ask,
    mut transport: Transport,
) -> Result<Opened, Failure> {
    let authority = &shard.prepared.targets[usize::from(order.target)].authority;
    let request = write_request(ask, authority)?;
    let kind = RequestKind::Normal;
    let answer = converse(shard, order, &mut transport, &request, kind, check_head).await?;
    answer.verdict.map_err(|error| refused_by_target(&error, answer.status))?;
    Ok(Opened {
        transport,
        multiplexes: false,
        machine: Some(Machine::Events(EventReader::default())),
        bytes_in: answer.heard.len() as u64,
        // It reads the answer from its beginning.
        surplus: answer.heard,
        bytes_out: request.len() as u64,
        status: answer.status,
        times: Times::default(),
    })
}

fn write_request(ask: &Ask, authority: &str) -> Result<Vec<u8>, Failure> {
    let path = if ask.path.is_empty() { "/" } else { &ask.path };
    if !path.starts_with('/') || validate_target(path).is_err() {
        return Err(Failure::new(Cause::ScenarioFailed, bad_path(path)));
    }
    let is_own = |name: &str| ask.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let mut out = Vec::with_capacity(256);
    write_request_line(&mut out, "GET", path);
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
    if !is_own("Cookie") {
        out.extend_from_slice(&ask.cookies);
    }
    write_head_end(&mut out);
    Ok(out)
}

// sentences
fn bad_path(path: &str) -> String {
    format!("the path `{path}` must begin with `/` and have no spaces")
}

// sentences
fn bad_value(name: &str) -> String {
    format!("the value of the header `{name}` has a line break or control character")
}
