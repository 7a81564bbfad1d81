//! Request bodies: sends what the peer's windows allow (RFC 9113, 5.2), and keeps the rest.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Client;
use crate::http2::frame::{self, END_STREAM, FrameKind, HEADER_BYTES};
use crate::http2::{Body, NotOpen, Token};

/// Bytes of bodies written ahead of the socket. The rest follows when it has taken them.
const AHEAD_BYTES_MAX: usize = 256 * 1024;

/// Body data that waits for a window.
#[derive(Debug, Default)]
pub(super) struct Upload {
    pieces: VecDeque<Piece>,
    /// Total size of the pieces.
    pub(super) bytes: usize,
    /// Nothing follows them.
    last: bool,
}

#[derive(Debug)]
struct Piece {
    kept: Kept,
    at: usize,
}

#[derive(Debug)]
enum Kept {
    Shared(Arc<[u8]>),
    Owned(Box<[u8]>),
}

impl Piece {
    /// The unsent part of `body`, from `at` on.
    fn of(body: Body<'_>, at: usize) -> Piece {
        match body {
            Body::Shared(bytes) => Piece { kept: Kept::Shared(Arc::clone(bytes)), at },
            other => Piece { kept: Kept::Owned(other.bytes()[at..].into()), at: 0 },
        }
    }

    fn rest(&self) -> &[u8] {
        match &self.kept {
            Kept::Shared(bytes) => &bytes[self.at..],
            Kept::Owned(bytes) => &bytes[self.at..],
        }
    }
}

impl Client {
    /// More of the body of a request that was started with [`Body::Open`]; `last` ends it.
    pub fn send(
        &mut self,
        token: Token,
        body: Body<'_>,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), NotOpen> {
        let place = self.streams.find(token.0).ok_or(NotOpen)?;
        let stream = self.streams.at(place);
        let ended = stream.upload.as_ref().is_some_and(|upload| upload.last);
        if !stream.sends || ended {
            return Err(NotOpen);
        }
        self.upload(place, body, last, out);
        Ok(())
    }

    /// How much of a body waits for a window or for the socket. A caller that ignores this keeps
    /// all of it in memory.
    pub fn backlog(&self, token: Token) -> usize {
        let stream = self.streams.find(token.0).and_then(|place| self.streams.get(place));
        stream.and_then(|stream| stream.upload.as_ref()).map_or(0, |upload| upload.bytes)
    }

    /// The socket has taken everything written. True if more was written now.
    #[inline]
    pub fn drained(&mut self, out: &mut Vec<u8>) -> bool {
        (self.owed, self.ahead) = (0, 0);
        if self.uploads == 0 {
            return false;
        }
        let before = out.len();
        self.go_on(out);
        out.len() > before
    }

    /// Writes what can be sent now, and keeps the rest.
    pub(super) fn upload(&mut self, place: usize, body: Body<'_>, last: bool, out: &mut Vec<u8>) {
        let bytes = body.bytes();
        if bytes.is_empty() && !last {
            return;
        }
        let mut sent = 0;
        if self.streams.at(place).upload.is_none() {
            loop {
                let (taken, ended) = self.write_data(place, &bytes[sent..], last, out);
                sent += taken;
                if ended || (sent == bytes.len() && !last) {
                    return;
                }
                if taken == 0 {
                    break;
                }
            }
            self.uploads += 1;
        }
        let upload = self.streams.at(place).upload.get_or_insert_default();
        if sent < bytes.len() {
            upload.pieces.push_back(Piece::of(body, sent));
            upload.bytes += bytes.len() - sent;
        }
        upload.last = last;
    }

    /// Writes what can be sent now of all waiting bodies, one frame of each in turn.
    pub(super) fn go_on(&mut self, out: &mut Vec<u8>) {
        let mut idle = 0;
        while self.uploads > 0 && idle < self.streams.places() {
            if self.send_window <= 0 && !self.streams.any_ends() || self.ahead >= AHEAD_BYTES_MAX {
                return;
            }
            self.turn = (self.turn + 1) % self.streams.places() as u32;
            let went = self.go_on_with(self.turn as usize, out);
            idle = if went { 0 } else { idle + 1 };
        }
    }

    /// Writes one frame of a waiting body. False if it cannot be sent.
    pub(super) fn go_on_with(&mut self, place: usize, out: &mut Vec<u8>) -> bool {
        let Some(mut upload) = self.streams.at(place).upload.take() else { return false };
        let is_last = upload.last && upload.pieces.len() <= 1;
        let rest = upload.pieces.front().map_or(&[][..], Piece::rest);
        let all = rest.len();
        let (taken, ended) = self.write_data(place, rest, is_last, out);
        upload.bytes -= taken;
        if taken > 0 && taken == all {
            upload.pieces.pop_front();
        } else if let Some(piece) = upload.pieces.front_mut() {
            piece.at += taken;
        }
        if ended || (upload.pieces.is_empty() && !upload.last) {
            self.uploads -= 1;
        } else {
            self.streams.at(place).upload = Some(upload);
        }
        taken > 0 || ended
    }

    /// Writes at most one frame with the start of `bytes`. Returns how much it took, and whether
    /// that ended the request.
    fn write_data(
        &mut self,
        place: usize,
        bytes: &[u8],
        last: bool,
        out: &mut Vec<u8>,
    ) -> (usize, bool) {
        if self.ahead >= AHEAD_BYTES_MAX {
            return (0, false);
        }
        let stream = self.streams.at(place);
        let window = self.send_window.min(stream.send_window).max(0) as usize;
        let taken = bytes.len().min(window).min(self.peer.frame_bytes_max as usize);
        let ends = last && taken == bytes.len();
        if taken == 0 && !ends {
            return (0, false);
        }
        frame::write_header(
            out,
            FrameKind::DATA,
            if ends { END_STREAM } else { 0 },
            stream.id,
            taken,
        );
        out.extend_from_slice(&bytes[..taken]);
        stream.send_window -= taken as i32;
        stream.sends &= !ends;
        self.send_window -= taken as i32;
        self.ahead += HEADER_BYTES + taken;
        self.credit.earn();
        (taken, ends)
    }
}
