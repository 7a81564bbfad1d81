//! One exchange that a connection of HTTP/2 is opened for and ends with: a stream of events, a call
//! whose messages come and go.

use throng_base::Time;

use super::client::Client;
use super::{Ask, Body, ErrorCode, Event, Limits, NotOpen, Refused, Token, Violation};

/// The connection and its exchange.
#[derive(Debug)]
pub struct Lasting(Box<Client>, Token);

impl Lasting {
    /// Writes all that a connection begins with, and the request.
    pub fn open(ask: &Ask<'_>, limits: &Limits, out: &mut Vec<u8>) -> Result<Lasting, Refused> {
        let mut client = Box::new(Client::new(limits));
        client.open(limits, out);
        let token = client.ask(ask, out)?;
        Ok(Lasting(client, token))
    }

    /// As [`Client::next`].
    pub fn next<'a: 'r, 'r>(
        &mut self,
        now: Time,
        bytes: &mut &'a [u8],
        limits: &Limits,
        room: &'r mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, Violation> {
        self.0.next(now, bytes, limits, room, out)
    }

    /// More of the body of a request that was begun with [`Body::Open`]; with `last` its end.
    pub fn send(&mut self, bytes: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), NotOpen> {
        self.0.send(self.1, Body::Bytes(bytes), last, out)
    }

    /// How much of what was sent waits for a window or for the socket.
    pub fn backlog(&self) -> usize {
        self.0.backlog(self.1)
    }

    /// The socket has taken all that was written so far. True when more has been written now.
    pub fn drained(&mut self, out: &mut Vec<u8>) -> bool {
        self.0.drained(out)
    }

    /// Gives the exchange up and says good-bye. Nothing is told any more.
    pub fn cancel(&mut self, out: &mut Vec<u8>) {
        // One that has ended needs no reset.
        let _ = self.0.cancel(self.1, ErrorCode::CANCEL, out);
        self.0.end(out);
    }

    /// What it keeps on the heap, with what waits to be sent.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Client>() + self.0.heap_bytes() + self.backlog()
    }
}
