//! One exchange that a connection of HTTP/2 is opened for and ends with: a stream of events, a call
//! of gRPC whose messages come and go.

use throng_base::Time;

use super::client::Client;
use super::{Ask, Body, ErrorCode, Event, Limits, NotOpen, Refused, Token, Violation, Workspace};
use crate::http1::{Head, Headers};

/// What a connection borrows while it reads.
pub struct Lent<'a> {
    /// As [`Client::receive`] has it.
    pub now: Time,
    pub limits: &'a Limits,
    pub workspace: &'a mut Workspace,
    /// What is to be sent to the peer, behind what is there.
    pub out: &'a mut Vec<u8>,
}

/// What came of the exchange: one `Head`, any number of `Data`, at most one `Trailers`, and `End`;
/// `Reset` or `Failed` may end it before. Nothing follows the last three. The meaning of each is
/// that of its namesake in [`Event`].
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    Head(Head<'a>),
    Data(&'a [u8]),
    Trailers(Headers<'a>),
    End,
    Reset { code: ErrorCode, unprocessed: bool },
    Failed(Violation),
}

/// The exchange, or what stands for it while it is read: whoever gets a piece may send something.
#[derive(Debug)]
pub struct Lasting(At);

#[derive(Debug)]
enum At {
    Here(Box<Client>, Token),
    Away { unsent: Vec<u8>, last: bool },
}

const _: () = assert!(size_of::<Lasting>() <= 32);

impl Lasting {
    /// Writes all that a connection begins with, and the request.
    pub fn open(ask: &Ask<'_>, limits: &Limits, out: &mut Vec<u8>) -> Result<Lasting, Refused> {
        let mut client = Box::new(Client::new(limits));
        client.open(limits, out);
        let token = client.ask(ask, out)?;
        Ok(Lasting(At::Here(client, token)))
    }

    /// One that keeps what is sent, for [`Lasting::take_over`].
    pub fn stand_in() -> Lasting {
        Lasting(At::Away { unsent: Vec::new(), last: false })
    }

    /// Sends what was kept by the one that stood in.
    pub fn take_over(&mut self, stand_in: Lasting, out: &mut Vec<u8>) -> Result<(), NotOpen> {
        match stand_in.0 {
            At::Away { unsent, last } if last || !unsent.is_empty() => {
                self.send(&unsent, last, out)
            }
            _ => Ok(()),
        }
    }

    /// Reads all of `bytes`, and tells what they are. Behind an error, which is about the whole
    /// connection, nothing follows.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        lent: &mut Lent<'_>,
        sink: &mut (impl FnMut(Piece<'_>) + ?Sized),
    ) -> Result<(), Violation> {
        let At::Here(client, _) = &mut self.0 else { return Ok(()) };
        let Lent { now, limits, workspace, out } = lent;
        client.receive(*now, bytes, limits, workspace, out, &mut |event: Event<'_>| {
            if let Some(piece) = piece_of(event) {
                sink(piece);
            }
        })
    }

    /// Reads up to the first piece, which is the head unless the exchange failed, and no further:
    /// how many bytes that took. Pieces that end with the same byte are told as well.
    pub fn receive_first(
        &mut self,
        bytes: &[u8],
        lent: &mut Lent<'_>,
        sink: &mut impl FnMut(Piece<'_>),
    ) -> Result<usize, Violation> {
        let mut has_come = false;
        for (at, byte) in bytes.chunks(1).enumerate() {
            self.receive(byte, lent, &mut |piece| {
                has_come = true;
                sink(piece);
            })?;
            if has_come {
                return Ok(at + 1);
            }
        }
        Ok(bytes.len())
    }

    /// More of the body of a request that was begun with [`Body::Open`]; with `last` its end.
    pub fn send(&mut self, bytes: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), NotOpen> {
        match &mut self.0 {
            At::Here(client, token) => client.send(*token, Body::Bytes(bytes), last, out),
            At::Away { last: true, .. } => Err(NotOpen),
            At::Away { unsent, last: is_over } => {
                unsent.extend_from_slice(bytes);
                *is_over = last;
                Ok(())
            }
        }
    }

    /// How much of what was sent waits for a window or for the socket.
    pub fn backlog(&self) -> usize {
        match &self.0 {
            At::Here(client, token) => client.backlog(*token),
            At::Away { unsent, .. } => unsent.len(),
        }
    }

    /// The socket has taken all that was written so far. True when more has been written now.
    pub fn drained(&mut self, out: &mut Vec<u8>) -> bool {
        match &mut self.0 {
            At::Here(client, _) => client.drained(out),
            At::Away { .. } => false,
        }
    }

    /// Gives the exchange up and says good-bye. Nothing is told any more.
    pub fn cancel(&mut self, out: &mut Vec<u8>) {
        if let At::Here(client, token) = &mut self.0 {
            // One that has ended needs no reset.
            let _ = client.cancel(*token, ErrorCode::CANCEL, out);
            client.end(out);
        }
    }

    /// The peer has closed: what was not complete has failed.
    pub fn close(&mut self, sink: &mut impl FnMut(Piece<'_>)) {
        if let At::Here(client, _) = &mut self.0 {
            client.close(&mut |event: Event<'_>| {
                if let Some(piece) = piece_of(event) {
                    sink(piece);
                }
            });
        }
    }

    /// What it keeps on the heap, with what waits to be sent.
    pub fn heap_bytes(&self) -> usize {
        let own = match &self.0 {
            At::Here(client, _) => size_of::<Client>() + client.heap_bytes(),
            At::Away { .. } => 0,
        };
        own + self.backlog()
    }
}

/// There is one stream, and these are its own.
fn piece_of(event: Event<'_>) -> Option<Piece<'_>> {
    Some(match event {
        Event::Head { head, .. } => Piece::Head(head),
        Event::Data { bytes, .. } => Piece::Data(bytes),
        Event::Trailers { headers, .. } => Piece::Trailers(headers),
        Event::End { .. } => Piece::End,
        Event::Reset { code, unprocessed, .. } => Piece::Reset { code, unprocessed },
        Event::Failed { violation, .. } => Piece::Failed(violation),
        Event::Informational { .. }
        | Event::GoAway { .. }
        | Event::Settings { .. }
        | Event::Pong { .. } => return None,
    })
}
