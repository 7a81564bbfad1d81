//! Requests that share a connection: HTTP/2, with one stream per request.

use std::io;
use std::task::Context;

use throng_base::SaidError;
use throng_protocol::http1::RequestKind;
use throng_protocol::http2::{Ask, Body, ErrorCode, Refused, Token};
use throng_protocol::machine::Machine;

use super::State;
use super::agenda::waiting_bytes;
use super::connection::Connection;
use super::send::Outbound;

/// A request on a stream.
pub(super) struct Asked<'a> {
    pub(super) kind: RequestKind,
    /// The head, as written by [`throng_protocol::http2::write_block`].
    pub(super) block: &'a [u8],
    pub(super) body: Body<'a>,
    pub(super) body_bytes_max: u64,
}

impl State {
    /// Closes a connection that the target is leaving, once no request is in flight on it.
    pub(super) fn end_if_going(&mut self, line: u8) {
        let Some(client) = self.lines.get(line).http2() else { return };
        let is_unused = client.open_streams() == 0;
        let keeps = self.shard.prepared.program.connection.keep_alive;
        if is_unused && (!keeps || self.lines.get(line).is_going()) {
            self.leave_to_target(line);
        }
    }
}

impl Outbound<'_> {
    /// Writes a request as a new stream; returns its ID.
    pub(super) fn ask(&mut self, asked: &Asked<'_>, cx: &mut Context<'_>) -> io::Result<u32> {
        let shard = std::rc::Rc::clone(&self.user.shard);
        let Some(Connection { machine: Machine::Http2(client), .. }) =
            self.user.lines.connection_mut(self.line)
        else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let mut out = shard.frame_buffer.borrow_mut();
        out.clear();
        if client.is_new() {
            client.open(&shard.prepared.limits.http2, &mut out);
        }
        let Asked { kind, block, body, body_bytes_max } = *asked;
        let ask = Ask { kind, block, indexed: &[], body, body_bytes_max };
        let token = client.ask(&ask, &mut out).map_err(refusal)?;
        match shard.prepared.program.connection.streams {
            1 => self.send(&out, cx)?,
            _ => self.gather(&out, cx)?,
        }
        drop(out);
        self.drain(cx)?;
        Ok(token.0)
    }

    /// Buffers what is sent until the user listens, so that requests made together go out in one
    /// write.
    fn gather(&mut self, own: &[u8], cx: &mut Context<'_>) -> io::Result<()> {
        let waiting = (waiting_bytes(&self.user.agenda), &self.user.shard.purse);
        let Some(connection) = self.user.lines.connection_mut(self.line) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        match connection.is_sent() {
            true => connection.keep_unsent(own, waiting),
            false => self.send(own, cx),
        }
    }

    /// The socket may have taken all bytes: sends more of the request bodies.
    pub(super) fn drain(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while let State { lines, shard, .. } = &mut *self.user
            && let Some(connection) = lines.connection_mut(self.line)
            && connection.is_sent()
        {
            let mut out = shard.frame_buffer.borrow_mut();
            out.clear();
            if !connection.machine.drained(&mut out) {
                break;
            }
            let more = std::mem::take(&mut *out);
            drop(out);
            let sent = self.send(&more, cx);
            self.user.shard.frame_buffer.replace(more);
            sent?;
        }
        Ok(())
    }

    /// Abandons an exchange; the connection continues with the others.
    pub(super) fn cancel(&mut self, stream: u32) {
        let shard = std::rc::Rc::clone(&self.user.shard);
        let mut out = shard.frame_buffer.borrow_mut();
        out.clear();
        let Some(connection) = self.user.lines.connection_mut(self.line) else { return };
        if let Machine::Http2(client) = &mut connection.machine
            && client.cancel(Token(stream), ErrorCode::CANCEL, &mut out).is_ok()
        {
            // Without a reset, the target would continue to send what no task reads.
            connection.keep_control(&out);
        }
    }
}

fn refusal(refused: Refused) -> io::Error {
    io::Error::other(SaidError(match refused {
        Refused::Streams { max } => say!("the target allows at most {max} concurrent streams"),
        Refused::GoingAway => say!("the target accepts no more requests on this connection"),
        Refused::IdsUsedUp => say!("all stream IDs of this connection are used up"),
        Refused::Closed => say!("the connection is closed"),
    }))
}
