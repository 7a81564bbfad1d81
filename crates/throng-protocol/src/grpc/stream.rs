//! A call that stays open: messages come and go until its status.

use std::convert::Infallible;

use throng_base::Said;

use super::message::{Encoding, write_message};
use super::response::Response;
use super::status::Status;
use super::violation::Violation;
use crate::http2::{self, Ask, ErrorCode, Lasting, Lent, Piece, Refused};

/// How a call ended, other than with OK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    Status(Status),
    Grpc(Violation),
    Http2(http2::Violation),
    Reset(ErrorCode),
}

impl CallError {
    pub fn said(&self) -> Said {
        match self {
            CallError::Status(status) => status.said(),
            CallError::Grpc(violation) => violation.said(),
            CallError::Http2(violation) => say!("{violation}"),
            CallError::Reset(code) => say!("the target reset the stream: {code}"),
        }
    }
}

/// The call of a connection that was opened for it, or what stands for it while it is read.
#[derive(Debug)]
pub struct CallStream(Box<Open>);

#[derive(Debug)]
struct Open {
    lasting: Lasting,
    response: Response,
    /// How messages are compressed that are sent.
    encoding: Encoding,
    /// No more messages are sent.
    half_closed: bool,
    /// Its status has come, or what stands for one.
    over: bool,
}

impl CallStream {
    /// Writes all that a connection begins with, and the request.
    ///
    /// # Errors
    /// None on a new connection.
    pub fn open(
        ask: &Ask<'_>,
        encoding: Encoding,
        limits: &http2::Limits,
        out: &mut Vec<u8>,
    ) -> Result<CallStream, Refused> {
        let half_closed = !matches!(ask.body, http2::Body::Open);
        Ok(CallStream::of(Lasting::open(ask, limits, out)?, encoding, half_closed))
    }

    fn of(lasting: Lasting, encoding: Encoding, half_closed: bool) -> CallStream {
        let response = Response::new();
        CallStream(Box::new(Open { lasting, response, encoding, half_closed, over: false }))
    }

    /// One that keeps what is sent, for [`CallStream::take_over`].
    pub fn stand_in(&self) -> CallStream {
        CallStream::of(Lasting::stand_in(), self.0.encoding, self.0.half_closed)
    }

    /// Sends what was kept by the one that stood in.
    pub fn take_over(&mut self, stand_in: CallStream, out: &mut Vec<u8>) {
        self.0.half_closed |= stand_in.0.half_closed;
        // A call that is over has no use for it.
        let _ = self.0.lasting.take_over(stand_in.0.lasting, out);
    }

    /// Reads all of `bytes`; `sink` gets the messages. True when the call has ended with OK.
    ///
    /// # Errors
    /// How it ended otherwise. Nothing follows.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        lent: &mut Lent<'_>,
        bytes_max: usize,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, CallError> {
        let Open { lasting, response, over, .. } = &mut *self.0;
        let mut ended = Ok(false);
        let read = lasting.receive(bytes, lent, &mut |piece| {
            if ended == Ok(false) {
                ended = take(response, piece, bytes_max, sink);
            }
        });
        let ended = ended.and_then(|ended| read.map(|()| ended).map_err(CallError::Http2));
        *over |= ended != Ok(false);
        ended
    }

    /// Sends a message. False where no more are: nothing was written.
    pub fn message(&mut self, content: &[u8], out: &mut Vec<u8>) -> bool {
        let Open { lasting, encoding, half_closed: false, .. } = &mut *self.0 else { return false };
        let mut framed = Vec::with_capacity(content.len() + super::PREFIX_BYTES);
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(content);
            Ok::<(), Infallible>(())
        };
        let _ = write_message(*encoding, &mut framed, write);
        lasting.send(&framed, false, out).is_ok()
    }

    /// Sends messages that have their prefixes.
    pub fn send(&mut self, messages: &[u8], out: &mut Vec<u8>) {
        if !messages.is_empty() {
            // It is open still.
            let _ = self.0.lasting.send(messages, false, out);
        }
    }

    /// How much of what was sent waits for the peer to make room.
    pub fn backlog(&self) -> usize {
        self.0.lasting.backlog()
    }

    /// Says that no more messages are sent. The status follows.
    pub fn half_close(&mut self, out: &mut Vec<u8>) {
        let Open { lasting, half_closed, .. } = &mut *self.0;
        if !std::mem::replace(half_closed, true) {
            // Of a stream that is over there is nothing to close.
            let _ = lasting.send(&[], true, out);
        }
    }

    /// Whether more messages may be sent.
    pub fn sends(&self) -> bool {
        !self.0.half_closed
    }

    /// Gives the call up: the target is told not to go on with it.
    pub fn cancel(&mut self, out: &mut Vec<u8>) {
        self.0.over = true;
        self.0.lasting.cancel(out);
    }

    /// Whether its status has come.
    pub fn is_over(&self) -> bool {
        self.0.over
    }

    /// The socket has taken all that was written so far. True when more has been written now.
    pub fn drained(&mut self, out: &mut Vec<u8>) -> bool {
        self.0.lasting.drained(out)
    }

    pub fn heap_bytes(&self) -> usize {
        size_of::<Open>() + self.0.lasting.heap_bytes() + self.0.response.heap_bytes()
    }
}

fn take(
    response: &mut Response,
    piece: Piece<'_>,
    bytes_max: usize,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<bool, CallError> {
    let read = match piece {
        Piece::Head(head) => response.head(head.status, head.headers.iter()),
        Piece::Data(bytes) => response.data(bytes, bytes_max, sink),
        Piece::Trailers(trailers) => response.trailers(trailers.iter()),
        Piece::End => {
            let status = response.end(false).map_err(CallError::Grpc)?;
            return if status.is_ok() { Ok(true) } else { Err(CallError::Status(status)) };
        }
        Piece::Reset { code, .. } => return Err(CallError::Reset(code)),
        Piece::Failed(violation) => return Err(CallError::Http2(violation)),
    };
    read.map(|()| false).map_err(CallError::Grpc)
}
