//! gRPC calls that stay open: see [`crate::grpc`].

use throng_base::Said;

use super::{Breach, Deflater, Event, Input, Lent, Nature, ProtocolMachine, Traits};
use crate::grpc::{CallError, CallStream};

impl ProtocolMachine for CallStream {
    type Breach = CallError;

    fn traits(&self) -> Traits {
        Traits { messages: true, closes: true, hangs_up: true, frames: true, ..Traits::default() }
    }

    #[inline]
    fn is_stream(&self) -> bool {
        true
    }

    #[inline(always)]
    fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        lent: &'r mut Lent,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, CallError> {
        self.next(input, &lent.limits, &mut lent.room, out)
    }

    fn drained(&mut self, out: &mut Vec<u8>) -> bool {
        self.drained(out)
    }

    fn backlog(&self) -> usize {
        self.backlog()
    }

    fn message(
        &mut self,
        _: bool,
        content: &[u8],
        _: [u8; 4],
        _: &mut Deflater,
        out: &mut Vec<u8>,
    ) {
        self.message(content, out);
    }

    fn awaits_end(&self) -> bool {
        self.sends()
    }

    fn close(&mut self, _: u16, _: [u8; 4], out: &mut Vec<u8>) -> bool {
        match self.sends() {
            true => self.half_close(out),
            // Everything has been sent, and the target need not end the call by itself.
            false => self.cancel(out),
        }
        true
    }

    fn closed(&self, _: Option<u16>, _: &str) -> Said {
        say!("the target ended the gRPC call")
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }
}

impl Breach for CallError {
    fn said(&self) -> Said {
        self.said()
    }

    fn nature(&self) -> Nature<'_> {
        match self {
            CallError::Status(status) => Nature::Status(status.code.status()),
            CallError::Grpc(violation) if violation.is_too_large() => Nature::TooLarge,
            CallError::Grpc(_) => Nature::Malformed,
            CallError::Http2(violation) => Nature::Http2(violation),
            CallError::Reset(_) => Nature::Reset,
        }
    }
}
