//! Opens gRPC calls that stay open. A server may say nothing before it has got a message: open is
//! what speaks HTTP/2.

use throng_metrics::Cause;
use throng_protocol::grpc::{CallStream, Encoding};
use throng_protocol::http1::{Excerpt, RequestKind};
use throng_protocol::http2::{self, Body};
use throng_protocol::machine::Machine;

use throng_base::Said;

use super::{Opened, Order, multiplexes, write_all};
use crate::failure::{Failure, http2_failure, io_failure};
use crate::shard::Lane;
use crate::spent::Times;
use crate::transport::Transport;

/// What is said of the call before it is open.
pub(crate) struct CallAsk {
    /// The header block of the request.
    pub(crate) block: Vec<u8>,
    /// Messages with their prefixes.
    pub(crate) messages: Vec<u8>,
    /// How those are compressed that follow; None where none do.
    pub(crate) encoding: Option<Encoding>,
}

/// What every connection of HTTP/2 begins with: the head of a SETTINGS frame (RFC 9113, 3.4).
const HEAD_BYTES: usize = 9;
const SETTINGS: u8 = 4;

pub(super) async fn open(
    shard: &Lane,
    order: &Order,
    ask: &CallAsk,
    mut transport: Transport,
) -> Result<Opened, Failure> {
    multiplexes(shard, order, &transport)?;
    let mut out = Vec::with_capacity(512 + ask.messages.len());
    let body = match ask.encoding {
        Some(_) => Body::Open,
        None => Body::Bytes(&ask.messages),
    };
    let encoding = ask.encoding.unwrap_or_default();
    let asked = http2::Ask {
        kind: RequestKind::Normal,
        block: &ask.block,
        indexed: &[],
        body,
        body_bytes_max: u64::MAX,
    };
    // A new connection has room for one.
    let failed = |reason: Said| Failure::new(Cause::GeneratorFailed, reason);
    let limits = &shard.prepared.http2_limits;
    let mut call = CallStream::open(&asked, encoding, limits, &mut out)
        .map_err(|refused| failed(say!("{refused:?}")))?;
    if ask.encoding.is_some() {
        call.send(&ask.messages, &mut out);
    }
    write_all(&mut transport, &out).await?;
    let mut surplus = Vec::new();
    while surplus.len() < HEAD_BYTES {
        let read = std::future::poll_fn(|cx| {
            let mut buffer = shard.read_buffer.borrow_mut();
            transport.poll_read(cx, &mut buffer).map(|read| {
                let count = read.map_err(|error| io_failure(&error))?.bytes;
                surplus.extend_from_slice(&buffer[..count]);
                Ok::<usize, Failure>(count)
            })
        });
        if read.await? == 0 {
            return Err(Failure::new(Cause::ClosedEarly, CLOSED));
        }
    }
    if surplus.get(3) != Some(&SETTINGS) {
        let begin = Excerpt::of(&surplus);
        return Err(http2_failure(&http2::Violation::NotHttp2(begin)));
    }
    Ok(Opened {
        transport,
        multiplexes: true,
        machine: Some(Machine::Call(call)),
        bytes_in: surplus.len() as u64,
        // The machine reads all of it.
        surplus,
        bytes_out: out.len() as u64,
        status: 0,
        times: Times::default(),
    })
}

const CLOSED: Said = say!("the connection was closed before the first HTTP/2 frame");
