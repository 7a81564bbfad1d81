//! Opens gRPC calls that stay open. A server may send nothing before it receives a message, so a
//! call is open as soon as its connection uses HTTP/2.

pub(super) mod reflect;

use throng_metrics::Cause;
use throng_protocol::grpc::{CallStream, Encoding};
use throng_protocol::http1::RequestKind;
use throng_protocol::http2::{self, Body};
use throng_protocol::machine::{Event, Machine};

use throng_base::Said;

use super::{Missing, Opens};
use crate::connector::{Opened, Order, multiplexes, pull};
use crate::failure::Failure;
use crate::shard::Lane;
use crate::transport::Transport;

/// The first bytes of a call.
pub(crate) struct CallAsk {
    /// The header block of the request.
    pub(crate) block: Vec<u8>,
    /// Messages with their prefixes.
    pub(crate) messages: Vec<u8>,
    /// The compression of later messages; None if there are none.
    pub(crate) encoding: Option<Encoding>,
}

impl Opens for CallAsk {
    fn missing(&self) -> Missing {
        |waited| say!("no HTTP/2 frame arrived within {waited}")
    }

    async fn open(
        &self,
        shard: &Lane,
        order: &Order,
        mut transport: Transport,
        _: &[u8],
    ) -> Result<Opened, Failure> {
        multiplexes(shard, order, &transport)?;
        let mut out = Vec::with_capacity(512 + self.messages.len());
        let body = match self.encoding {
            Some(_) => Body::Open,
            None => Body::Bytes(&self.messages),
        };
        let encoding = self.encoding.unwrap_or_default();
        let asked = http2::Ask {
            kind: RequestKind::Normal,
            block: &self.block,
            indexed: &[],
            body,
            body_bytes_max: u64::MAX,
        };
        // A new connection has room for one stream.
        let failed = |reason: Said| Failure::new(Cause::GeneratorFailed, reason);
        let limits = &shard.prepared.limits.http2;
        let mut call = CallStream::open(&asked, encoding, limits, &mut out)
            .map_err(|refused| failed(say!("{refused:?}")))?;
        if self.encoding.is_some() {
            call.send(&self.messages, &mut out);
        }
        let mut machine = Machine::Call(call);
        let settings = |event: &Event<'_>| {
            matches!(event, Event::Http(http2::Event::Settings { .. })).then_some(())
        };
        let (open, pulled) =
            pull(shard, &mut transport, &mut machine, out, |_| {}, settings).await?;
        open.ok_or_else(|| Failure::new(Cause::ClosedEarly, CLOSED))?;
        Ok(Opened { multiplexes: true, ..Opened::by(machine, transport, pulled) })
    }
}

pub(in crate::connector) const NEEDS_HTTP2: Said =
    say!("throng offers h2 (ALPN), which gRPC requires, but the target did not choose a protocol");
const CLOSED: Said = say!("the connection was closed before the first HTTP/2 frame");
