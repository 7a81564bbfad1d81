//! One connection: its state, and what is written on it.
//!
//! - [`incoming`]: frames of the peer; [`response`]: heads and bodies made of them.
//! - [`streams`]: the open exchanges; [`upload`]: bodies that wait for a window.

mod incoming;
mod response;
mod streams;
mod upload;

use super::credit::Credit;
use super::frame::{self, END_HEADERS, END_STREAM, FrameKind, PREFACE};
use super::hpack::{Decoder, Encoder};
use super::{Ask, Body, ErrorCode, Event, Limits, NotOpen, Refused, Token, Violation};
use crate::http1::{Excerpt, HttpError};
use incoming::{Block, Reading};
use streams::{Phase, Stream, Streams};

/// Settings by their numbers (RFC 9113, 6.5.2).
const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
const MAX_HEADER_LIST_SIZE: u16 = 6;

/// Initial size of every window (RFC 9113, 6.9.2), and the maximum.
const WINDOW_DEFAULT: u32 = 65_535;
const WINDOW_MAX: u32 = i32::MAX as u32;
/// Minimum that the RFC advises servers to allow (5.1.2), used until the server's settings arrive.
const STREAMS_UNTIL_TOLD: u32 = 100;
/// Our frames are at most this large, whatever the peer accepts.
const FRAME_BYTES_MAX: u32 = 64 * 1024;
const STREAM_ID_MAX: u32 = i32::MAX as u32;

/// The peer's settings.
#[derive(Clone, Copy, Debug)]
struct Peer {
    streams_max: u32,
    window: u32,
    frame_bytes_max: u32,
}

/// One connection as its client sees it. Between exchanges it keeps only the header tables and room
/// for a few streams.
#[derive(Debug)]
pub struct Client {
    decoder: Decoder,
    encoder: Encoder,
    streams: Streams,
    /// A payload or header block that is incomplete.
    partial: Vec<u8>,
    block: Option<Box<Block>>,
    reading: Reading,
    /// Bytes of bodies written since the socket last took everything.
    ahead: usize,
    /// The same for answers to the peer's control frames.
    owed: u32,
    peer: Peer,
    send_window: i32,
    receive_window: u32,
    /// The size of full windows.
    stream_window: u32,
    connection_window: u32,
    next_id: u32,
    /// The last stream that a closing peer will process.
    going: Option<u32>,
    /// How many bodies wait, and which was served last.
    uploads: u32,
    turn: u32,
    credit: Credit,
    state: StreamState,
    /// We have reset streams: frames for closed ones may have been in flight.
    resets: bool,
    /// Our SETTINGS have not been acknowledged.
    ack_awaited: bool,
}

const _: () = assert!(size_of::<Client>() <= 384);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamState {
    /// The peer's SETTINGS have not arrived.
    Opening,
    Open,
    Closed,
}

impl Client {
    /// A connection on which nothing has been written yet.
    pub fn new(limits: &Limits) -> Client {
        let peer = Peer {
            streams_max: STREAMS_UNTIL_TOLD,
            window: WINDOW_DEFAULT,
            frame_bytes_max: frame::PAYLOAD_BYTES_MAX,
        };
        Client {
            decoder: Decoder::new(limits.header_table_bytes),
            encoder: Encoder::new(),
            streams: Streams::default(),
            partial: Vec::new(),
            block: None,
            reading: Reading::default(),
            ahead: 0,
            owed: 0,
            peer,
            send_window: WINDOW_DEFAULT as i32,
            receive_window: limits.connection_window_bytes.clamp(WINDOW_DEFAULT, WINDOW_MAX),
            stream_window: limits.stream_window_bytes.min(WINDOW_MAX),
            connection_window: limits.connection_window_bytes.clamp(WINDOW_DEFAULT, WINDOW_MAX),
            next_id: 1,
            going: None,
            uploads: 0,
            turn: 0,
            credit: Credit::new(limits.control_frames_max),
            state: StreamState::Opening,
            resets: false,
            ack_awaited: true,
        }
    }

    /// Writes the start of a connection. Requests may follow immediately.
    pub fn open(&mut self, limits: &Limits, out: &mut Vec<u8>) {
        out.extend_from_slice(PREFACE);
        let head_bytes_max = u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX);
        let settings = [
            (HEADER_TABLE_SIZE, u32::from(limits.header_table_bytes)),
            (ENABLE_PUSH, 0),
            (INITIAL_WINDOW_SIZE, self.stream_window),
            (MAX_HEADER_LIST_SIZE, head_bytes_max),
        ];
        frame::write_settings(out, &settings);
        if self.connection_window > WINDOW_DEFAULT {
            frame::write_window_update(out, 0, self.connection_window - WINDOW_DEFAULT);
        }
    }

    /// True before the first request.
    pub fn is_new(&self) -> bool {
        self.next_id == 1
    }

    /// Whether a request could be sent now.
    pub fn room(&self) -> Result<(), Refused> {
        let max = self.peer.streams_max;
        if self.state == StreamState::Closed {
            Err(Refused::Closed)
        } else if self.going.is_some() {
            Err(Refused::GoingAway)
        } else if self.next_id > STREAM_ID_MAX {
            Err(Refused::IdsUsedUp)
        } else if self.streams.open() >= max as usize {
            Err(Refused::Streams { max })
        } else {
            Ok(())
        }
    }

    /// Writes a request, with as much of its body as the peer's windows allow.
    #[inline]
    pub fn ask(&mut self, ask: &Ask<'_>, out: &mut Vec<u8>) -> Result<Token, Refused> {
        self.room()?;
        let id = self.next_id;
        self.next_id += 2;
        self.credit.earn();
        let is_open = matches!(ask.body, Body::Open);
        let sends = is_open || !ask.body.bytes().is_empty();
        let flags = if sends { 0 } else { END_STREAM };
        write_block(&mut self.encoder, (id, flags), ask, self.peer.frame_bytes_max, out);
        let place = self.streams.push(Stream {
            id,
            send_window: self.peer.window as i32,
            receive_window: self.stream_window,
            phase: Phase::Head,
            kind: ask.kind,
            informational: 0,
            sends,
            expected: None,
            received: 0,
            body_bytes_max: ask.body_bytes_max,
            upload: None,
        });
        if sends && !is_open {
            self.upload(place, ask.body, true, out);
        }
        Ok(Token(id))
    }

    /// Cancels an exchange. No more events are returned for it.
    pub fn cancel(
        &mut self,
        token: Token,
        code: ErrorCode,
        out: &mut Vec<u8>,
    ) -> Result<(), NotOpen> {
        let place = self.streams.find(token.0).ok_or(NotOpen)?;
        self.reset(place, code, out);
        Ok(())
    }

    /// Asks for a [`Event::Pong`] with the same data.
    pub fn ping(&mut self, data: &[u8; 8], out: &mut Vec<u8>) {
        self.credit.earn();
        frame::write_ping(out, 0, data);
    }

    /// Sends GOAWAY: the connection is closed afterwards.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if self.state != StreamState::Closed {
            frame::write_goaway(out, ErrorCode::NO_ERROR);
        }
        self.state = StreamState::Closed;
        self.streams.clear();
        self.uploads = 0;
    }

    /// The peer has closed: every open exchange fails.
    pub fn close(&mut self, sink: &mut (impl FnMut(Event<'_>) + ?Sized)) {
        let begun = self.reading.header_bytes();
        let wrong = self.state == StreamState::Opening && !begun.is_empty();
        let not_http2 = wrong.then(|| Violation::NotHttp2(Excerpt::of(begun)));
        for stream in self.streams.iter() {
            let cut_off = match stream.phase {
                Phase::Head => Violation::ClosedBeforeHead,
                _ => Violation::Http(HttpError::CutOffInBody {
                    received: stream.received - self.reading.data_to_come(stream.id),
                    expected: stream.expected,
                }),
            };
            let violation = not_http2.unwrap_or(cut_off);
            sink(Event::Failed { token: Token(stream.id), violation });
        }
        self.state = StreamState::Closed;
        self.streams.clear();
        self.uploads = 0;
    }

    /// How many exchanges are open.
    pub fn open_streams(&self) -> usize {
        self.streams.open()
    }

    /// The peer speaks HTTP/2: its SETTINGS have arrived.
    pub fn is_ready(&self) -> bool {
        self.state == StreamState::Open
    }

    /// Its heap memory, without the bodies that wait.
    pub fn heap_bytes(&self) -> usize {
        let block = self.block.as_ref().map_or(0, |block| size_of::<Block>() + block.capacity());
        self.decoder.heap_bytes()
            + self.encoder.heap_bytes()
            + self.streams.heap_bytes()
            + self.partial.capacity()
            + block
    }

    /// Removes the stream.
    fn forget(&mut self, place: usize) {
        if self.streams.at(place).upload.is_some() {
            self.uploads -= 1;
        }
        self.streams.remove(place);
    }

    fn reset(&mut self, place: usize, code: ErrorCode, out: &mut Vec<u8>) {
        frame::write_reset(out, self.streams.at(place).id, code);
        self.resets = true;
        self.forget(place);
    }
}

fn write_block(
    encoder: &mut Encoder,
    (id, flags): (u32, u8),
    ask: &Ask<'_>,
    bytes_max: u32,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    frame::write_header(out, FrameKind::HEADERS, flags | END_HEADERS, id, 0);
    let begin = out.len();
    encoder.begin(!ask.indexed.is_empty(), out);
    out.extend_from_slice(ask.block);
    for (name, value) in ask.indexed {
        encoder.write(out, name, value);
    }
    let size = out.len() - begin;
    if size > bytes_max as usize {
        return spread_block((id, flags), start, bytes_max, out);
    }
    let [_, s0, s1, s2] = (size as u32).to_be_bytes();
    out[start..start + 3].copy_from_slice(&[s0, s1, s2]);
}

/// Splits a block that is too large for one frame.
#[cold]
fn spread_block((id, flags): (u32, u8), start: usize, bytes_max: u32, out: &mut Vec<u8>) {
    let block = out.split_off(start + frame::HEADER_BYTES);
    out.truncate(start);
    let mut pieces = block.chunks(bytes_max as usize).peekable();
    let (mut kind, mut flags) = (FrameKind::HEADERS, flags);
    while let Some(piece) = pieces.next() {
        let end = if pieces.peek().is_none() { END_HEADERS } else { 0 };
        frame::write_header(out, kind, flags | end, id, piece.len());
        out.extend_from_slice(piece);
        (kind, flags) = (FrameKind::CONTINUATION, 0);
    }
}
