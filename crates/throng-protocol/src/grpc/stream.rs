//! A call that stays open: messages in both directions until its status.

use std::convert::Infallible;

use throng_base::Said;

use super::message::{Encoding, write_message};
use super::response::Response;
use super::status::Status;
use super::violation::Violation;
use crate::http1::Event as Part;
use crate::http2::{self, Ask, ErrorCode, Lasting, Refused};
use crate::input::{Event, Input, Limits};

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

/// The call of a connection that was opened for it.
#[derive(Debug)]
pub struct CallStream(Box<Open>);

#[derive(Debug)]
struct Open {
    lasting: Lasting,
    response: Response,
    /// The compression of sent messages.
    encoding: Encoding,
    /// No more messages are sent.
    half_closed: bool,
    /// Its status has arrived, or what replaces it.
    over: bool,
}

impl CallStream {
    /// Writes the start of the connection, and the request.
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
        let (lasting, response) = (Lasting::open(ask, limits, out)?, Response::new());
        Ok(CallStream(Box::new(Open { lasting, response, encoding, half_closed, over: false })))
    }

    /// Reads up to the next message, or other event.
    ///
    /// # Errors
    /// How it ended, other than with OK. Nothing follows.
    pub fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        limits: &Limits,
        room: &'r mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, CallError> {
        let read = self.read(input, limits, room, out);
        self.0.over |= matches!(read, Err(_) | Ok(Some(Event::Closed { .. })));
        read
    }

    fn read<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        limits: &Limits,
        room: &'r mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, CallError> {
        let Open { lasting, response, over, .. } = &mut *self.0;
        if *over {
            return Ok(None);
        }
        let (mut body, bytes_max) = (input.body(), limits.websocket.message_bytes_max);
        let message = response.next(&mut body, bytes_max).map_err(CallError::Grpc)?;
        input.leave_body(body.len());
        if let Some(message) = message {
            let message = message.unpack(bytes_max, room).map_err(CallError::Grpc)?;
            return Ok(Some(Event::Message(message)));
        }
        let mut rest = input.rest();
        let event = lasting.next(input.now, &mut rest, &limits.http2, room, out);
        input.leave(rest);
        let event = event.map_err(CallError::Http2)?;
        let part = match &event {
            Some(http2::Event::Reply { part, .. }) => part,
            Some(http2::Event::Reset { code, .. }) => return Err(CallError::Reset(*code)),
            Some(http2::Event::Failed { violation, .. }) => {
                return Err(CallError::Http2(*violation));
            }
            _ => return Ok(event.map(Event::Http)),
        };
        let read = match part {
            Part::Head(head) => response.head(head.status, head.headers.iter()),
            Part::Trailers(trailers) => response.trailers(trailers.iter()),
            Part::Body(bytes) => {
                input.leave_body(bytes.len());
                Ok(())
            }
            Part::End => {
                let status = response.end(false).map_err(CallError::Grpc)?;
                let is_ok = status.is_ok();
                return if is_ok { Ok(Some(Event::END)) } else { Err(CallError::Status(status)) };
            }
            Part::Informational(_) => Ok(()),
        };
        read.map(|()| event.map(Event::Http)).map_err(CallError::Grpc)
    }

    /// Sends a message. False if none can be sent anymore: nothing was written.
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
            // It is still open.
            let _ = self.0.lasting.send(messages, false, out);
        }
    }

    /// How many sent bytes wait for the peer to make room.
    pub fn backlog(&self) -> usize {
        self.0.lasting.backlog()
    }

    /// Ends the messages of the client. The status follows.
    pub fn half_close(&mut self, out: &mut Vec<u8>) {
        let Open { lasting, half_closed, .. } = &mut *self.0;
        if !std::mem::replace(half_closed, true) {
            // A stream that is over needs no close.
            let _ = lasting.send(&[], true, out);
        }
    }

    /// Whether more messages may be sent.
    pub fn sends(&self) -> bool {
        !self.0.half_closed
    }

    /// Cancels the call: the target is told to stop it.
    pub fn cancel(&mut self, out: &mut Vec<u8>) {
        self.0.over = true;
        self.0.lasting.cancel(out);
    }

    /// Whether its status has arrived.
    pub fn is_over(&self) -> bool {
        self.0.over
    }

    /// The socket has taken everything written. True if more was written now.
    pub fn drained(&mut self, out: &mut Vec<u8>) -> bool {
        self.0.lasting.drained(out)
    }

    pub fn heap_bytes(&self) -> usize {
        size_of::<Open>() + self.0.lasting.heap_bytes() + self.0.response.heap_bytes()
    }
}
