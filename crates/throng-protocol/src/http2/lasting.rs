//! An HTTP/2 connection with a single exchange: an event stream, or a call with messages in both
//! directions.

use throng_base::Time;

use super::client::Client;
use super::{Ask, Body, ErrorCode, Event, Limits, NotOpen, Refused, Token, Violation};

/// The connection and its exchange.
#[derive(Debug)]
pub struct Lasting(Box<Client>, Token);

impl Lasting {
    /// Writes the start of the connection, and the request.
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

    /// More of the body of a request that was started with [`Body::Open`]; `last` ends it.
    pub fn send(&mut self, bytes: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), NotOpen> {
        self.0.send(self.1, Body::Bytes(bytes), last, out)
    }

    /// How many sent bytes wait for a window or for the socket.
    pub fn backlog(&self) -> usize {
        self.0.backlog(self.1)
    }

    /// The socket has taken everything written. True if more was written now.
    pub fn drained(&mut self, out: &mut Vec<u8>) -> bool {
        self.0.drained(out)
    }

    /// Cancels the exchange and sends GOAWAY. No more events follow.
    pub fn cancel(&mut self, out: &mut Vec<u8>) {
        // One that has ended needs no reset.
        let _ = self.0.cancel(self.1, ErrorCode::CANCEL, out);
        self.0.end(out);
    }

    /// Its heap memory, including unsent data.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Client>() + self.0.heap_bytes() + self.backlog()
    }
}
