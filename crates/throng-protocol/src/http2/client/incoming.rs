//! Reads the frames of a peer, in pieces of any size. DATA is not buffered, only counted; other
//! frames are kept only while incomplete.

use throng_base::Time;

use super::{
    Client, ENABLE_PUSH, FRAME_BYTES_MAX, HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS, MAX_FRAME_SIZE, StreamState, WINDOW_MAX,
};
use crate::http1::{Event as Part, Excerpt, HttpError};
use crate::http2::frame::{
    self, ACK, END_HEADERS, END_STREAM, FrameKind, HEADER_BYTES, Header, PADDED, PAYLOAD_BYTES_MAX,
    PRIORITY,
};
use crate::http2::{ErrorCode, Event, Limits, Malformed, Token, Violation};

/// State that one call of `next` passes down.
pub(super) struct Call<'a, 'c> {
    pub(super) limits: &'c Limits,
    /// Buffer for the lines of a section, until an event takes it.
    pub(super) room: Option<&'a mut Vec<u8>>,
    pub(super) out: &'c mut Vec<u8>,
}

pub(super) type Read<'a> = Result<Option<Event<'a>>, Violation>;

/// Position in the stream of frames.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) at: At,
    /// The start of an incomplete frame header.
    header: [u8; HEADER_BYTES],
    header_length: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Header,
    /// Collecting the payload of this frame.
    Payload(Header),
    /// The padding length of this DATA frame is next.
    PadLength(Header),
    Data {
        stream: u32,
        left: u32,
        padding: u8,
        end: bool,
    },
    /// The response on this stream has ended, or is too large.
    End(u32),
    /// After a GOAWAY: streams that the peer will not process end with this code.
    Leaving(ErrorCode),
}

impl At {
    /// Position in a DATA frame, or after it.
    fn data(stream: u32, left: u32, padding: u8, end: bool) -> At {
        match (left, padding, end) {
            (0, 0, true) => At::End(stream),
            (0, 0, false) => At::Header,
            _ => At::Data { stream, left, padding, end },
        }
    }

    /// Whether an event must be returned before more bytes are read.
    fn has_more(self) -> bool {
        matches!(self, At::End(_) | At::Leaving(_))
    }
}

impl Default for Reading {
    fn default() -> Reading {
        Reading { at: At::Header, header: [0; HEADER_BYTES], header_length: 0 }
    }
}

impl Reading {
    /// Bytes of the incomplete frame header.
    pub(super) fn header_bytes(&self) -> &[u8] {
        &self.header[..usize::from(self.header_length)]
    }

    /// Completes a frame header that arrived in pieces.
    #[cold]
    fn header_piece(&mut self, rest: &mut &[u8]) -> Option<[u8; HEADER_BYTES]> {
        let have = usize::from(self.header_length);
        let (piece, after) = rest.split_at((HEADER_BYTES - have).min(rest.len()));
        self.header[have..have + piece.len()].copy_from_slice(piece);
        self.header_length += piece.len() as u8;
        *rest = after;
        let is_whole = self.header_bytes().len() == HEADER_BYTES;
        is_whole.then(|| {
            self.header_length = 0;
            self.header
        })
    }

    /// Bytes of this stream's current DATA frame that are counted but have not arrived.
    pub(super) fn data_to_come(&self, id: u32) -> u64 {
        match self.at {
            At::Data { stream, left, .. } if stream == id => u64::from(left),
            _ => 0,
        }
    }
}

/// An incomplete header block.
#[derive(Debug)]
pub(super) struct Block {
    stream: u32,
    end_stream: bool,
    bytes: Vec<u8>,
    /// Size of its frames, including their headers.
    wire_bytes: usize,
    continuations: u16,
}

impl Block {
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

impl Client {
    /// Reads `bytes` up to the next event; `None` if they end before. Answers to control frames are
    /// written to `out`. After an error every exchange has failed, nothing more is read, and `out`
    /// contains a GOAWAY. The lines of a section are in `room`; bytes of a body end where the
    /// remaining `bytes` start.
    ///
    /// `now` restores credit over time; it affects nothing else.
    #[inline]
    pub fn next<'a: 'r, 'r>(
        &mut self,
        now: Time,
        bytes: &mut &'a [u8],
        limits: &Limits,
        room: &'r mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, Violation> {
        let is_done = bytes.is_empty() && !self.reading.at.has_more();
        if is_done || self.state == StreamState::Closed {
            return Ok(None);
        }
        self.credit.at(now, limits.control_frames_max);
        let (length_before, ahead_before) = (out.len(), self.ahead);
        let mut read = self.read(bytes, &mut Call { limits, room: Some(room), out });
        let answers = (out.len() - length_before) - (self.ahead - ahead_before);
        self.owed = self.owed.saturating_add(u32::try_from(answers).unwrap_or(u32::MAX));
        let bytes_max = limits.unread_bytes_max;
        if read.is_ok() && self.owed > bytes_max && answers > 0 {
            read = Err(Violation::AnswersUnread { bytes_max });
        }
        if let Err(violation) = read {
            self.give_up(violation, out);
        }
        read
    }

    #[cold]
    fn give_up(&mut self, violation: Violation, out: &mut Vec<u8>) {
        if !matches!(violation, Violation::NotHttp2(_)) {
            frame::write_goaway(out, violation.error_code());
        }
        self.state = StreamState::Closed;
        (self.partial, self.block, self.uploads) = (Vec::new(), None, 0);
        self.streams.clear();
    }

    #[inline]
    fn read<'a: 'r, 'r>(&mut self, rest: &mut &'a [u8], call: &mut Call<'r, '_>) -> Read<'r> {
        loop {
            let read = match self.reading.at {
                At::End(stream) => Ok(self.end_stream(stream, call.out)),
                At::Leaving(code) => {
                    let above = self.streams.first_above(self.going);
                    if above.is_none() {
                        self.reading.at = At::Header;
                    }
                    Ok(above.and_then(|id| self.reset_by_peer(id, code, true)))
                }
                _ if rest.is_empty() => return Ok(None),
                At::Header => self.read_header(rest, call),
                At::Data { .. } => Ok(self.read_data(rest)),
                At::PadLength(header) => {
                    let padding = rest[0];
                    *rest = &rest[1..];
                    if u32::from(padding) >= header.size {
                        return Err(Violation::Padding(FrameKind::DATA));
                    }
                    self.begin_data(header, self.streams.find(header.stream), padding, call)
                }
                At::Payload(header) => {
                    let missing = header.size as usize - self.partial.len();
                    let (piece, after) = rest.split_at(missing.min(rest.len()));
                    self.partial.extend_from_slice(piece);
                    *rest = after;
                    if piece.len() < missing {
                        return Ok(None);
                    }
                    let payload = std::mem::take(&mut self.partial);
                    self.reading.at = At::Header;
                    self.frame(header, &payload, call)
                }
            };
            if !matches!(read, Ok(None)) {
                return read;
            }
        }
    }

    #[inline]
    fn read_header<'a>(&mut self, rest: &mut &[u8], call: &mut Call<'a, '_>) -> Read<'a> {
        let header = match rest.first_chunk::<HEADER_BYTES>() {
            Some(bytes) if self.reading.header_length == 0 => {
                if self.state == StreamState::Opening {
                    check_preface(bytes, rest)?;
                }
                *rest = &rest[HEADER_BYTES..];
                *bytes
            }
            _ => {
                let Some(bytes) = self.reading.header_piece(rest) else { return Ok(None) };
                if self.state == StreamState::Opening {
                    check_preface(&bytes, &bytes)?;
                }
                bytes
            }
        };
        let header = Header::read(header);
        check_header(header, self.block.as_deref(), self.next_id)?;
        if header.kind == FrameKind::DATA {
            return self.data_frame(header, call);
        }
        match rest.split_at_checked(header.size as usize) {
            Some((payload, after)) => {
                *rest = after;
                self.frame(header, payload, call)
            }
            None => {
                self.reading.at = At::Payload(header);
                Ok(None)
            }
        }
    }

    /// A complete frame other than DATA.
    fn frame<'a>(&mut self, header: Header, payload: &[u8], call: &mut Call<'a, '_>) -> Read<'a> {
        let kind = header.kind;
        let wrong_size = Violation::FrameSize { kind, size: header.size };
        if !matches!(kind, FrameKind::HEADERS | FrameKind::CONTINUATION | FrameKind::GOAWAY)
            && !self.credit.spend(call.limits.control_frames_max)
        {
            return Err(Violation::Flood(kind));
        }
        match kind {
            FrameKind::HEADERS => self.headers(header, payload, call),
            FrameKind::CONTINUATION => self.continuation(header, payload, call),
            FrameKind::SETTINGS => self.settings(header, payload, call),
            FrameKind::RST_STREAM => {
                let code = payload.try_into().map_err(|_| wrong_size)?;
                Ok(self.reset_by_peer(header.stream, ErrorCode(u32::from_be_bytes(code)), false))
            }
            FrameKind::PING => {
                let data: &[u8; 8] = payload.try_into().map_err(|_| wrong_size)?;
                if header.has(ACK) {
                    return Ok(Some(Event::Pong { data: *data }));
                }
                frame::write_ping(call.out, ACK, data);
                Ok(None)
            }
            FrameKind::GOAWAY => self.goaway(payload.split_first_chunk().ok_or(wrong_size)?, call),
            FrameKind::WINDOW_UPDATE => {
                let increment = payload.try_into().map_err(|_| wrong_size)?;
                let increment = u32::from_be_bytes(increment) & WINDOW_MAX;
                self.window_update(header.stream, increment, call)
            }
            FrameKind::PRIORITY if payload.len() != 5 => Err(wrong_size),
            _ => Ok(None),
        }
    }

    fn headers<'a>(&mut self, header: Header, payload: &[u8], call: &mut Call<'a, '_>) -> Read<'a> {
        let padding = Violation::Padding(FrameKind::HEADERS);
        let mut fragment = payload;
        if header.has(PADDED) {
            let (length, after) = fragment.split_first().ok_or(padding)?;
            let kept = after.len().checked_sub(usize::from(*length)).ok_or(padding)?;
            fragment = &after[..kept];
        }
        if header.has(PRIORITY) {
            fragment = fragment.get(5..).ok_or(padding)?;
        }
        let place = self.check_closed(header)?;
        let (stream, end_stream) = (header.stream, header.has(END_STREAM));
        let wire_bytes = HEADER_BYTES + payload.len();
        if header.has(END_HEADERS) {
            return self.head_block(place, (stream, end_stream), fragment, wire_bytes, call);
        }
        let bytes = fragment.to_vec();
        let block = Block { stream, end_stream, bytes, wire_bytes, continuations: 0 };
        self.block = Some(Box::new(block));
        Ok(None)
    }

    fn continuation<'a>(
        &mut self,
        header: Header,
        payload: &[u8],
        call: &mut Call<'a, '_>,
    ) -> Read<'a> {
        let Some(mut block) = self.block.take() else { return Ok(None) };
        block.continuations += 1;
        let count_max = call.limits.continuations_max;
        if block.continuations > count_max {
            return Err(Violation::ManyContinuations { count_max });
        }
        let bytes_max = call.limits.head_bytes_max;
        if block.bytes.len() + payload.len() > bytes_max {
            return Err(Violation::Http(HttpError::HeadTooLarge { bytes_max }));
        }
        block.bytes.extend_from_slice(payload);
        block.wire_bytes += HEADER_BYTES + payload.len();
        if header.has(END_HEADERS) {
            let Block { stream, end_stream, bytes, wire_bytes, .. } = *block;
            let place = self.streams.find(stream);
            return self.head_block(place, (stream, end_stream), &bytes, wire_bytes, call);
        }
        self.block = Some(block);
        Ok(None)
    }

    fn settings<'a>(
        &mut self,
        header: Header,
        payload: &[u8],
        call: &mut Call<'a, '_>,
    ) -> Read<'a> {
        let size = header.size;
        if !size.is_multiple_of(6) || (header.has(ACK) && size > 0) {
            return Err(Violation::FrameSize { kind: FrameKind::SETTINGS, size });
        }
        if header.has(ACK) {
            let awaited = std::mem::take(&mut self.ack_awaited);
            return if awaited { Ok(None) } else { Err(Violation::AckWithoutSettings) };
        }
        if self.state == StreamState::Opening {
            self.peer.streams_max = u32::MAX;
        }
        let mut window = self.peer.window;
        for setting in payload.chunks_exact(6) {
            let id = u16::from_be_bytes([setting[0], setting[1]]);
            let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
            let is_valid = match id {
                ENABLE_PUSH => value == 0,
                INITIAL_WINDOW_SIZE => value <= WINDOW_MAX,
                MAX_FRAME_SIZE => (PAYLOAD_BYTES_MAX..1 << 24).contains(&value),
                _ => true,
            };
            if !is_valid {
                return Err(Violation::Setting { id, value });
            }
            match id {
                HEADER_TABLE_SIZE => self.encoder.limit(value),
                MAX_CONCURRENT_STREAMS => self.peer.streams_max = value,
                INITIAL_WINDOW_SIZE => window = value,
                MAX_FRAME_SIZE => self.peer.frame_bytes_max = value.min(FRAME_BYTES_MAX),
                _ => {}
            }
        }
        let is_first =
            std::mem::replace(&mut self.state, StreamState::Open) == StreamState::Opening;
        frame::write_settings_ack(call.out);
        let change = i64::from(window) - i64::from(self.peer.window);
        self.peer.window = window;
        let is_resized = self.streams.resize_windows(change);
        is_resized.ok_or(Violation::Setting { id: INITIAL_WINDOW_SIZE, value: window })?;
        self.go_on(call.out);
        Ok(Some(Event::Settings { streams_max: self.peer.streams_max, is_first }))
    }

    fn window_update<'a>(&mut self, id: u32, increment: u32, call: &mut Call<'a, '_>) -> Read<'a> {
        let widened = |window: i32| window.checked_add(increment as i32);
        if id == 0 {
            if increment == 0 {
                return Err(Violation::ZeroIncrement);
            }
            self.send_window = widened(self.send_window).ok_or(Violation::WindowOverflow)?;
            self.go_on(call.out);
            return Ok(None);
        }
        let Some(place) = self.streams.find(id) else { return Ok(None) };
        let stream = self.streams.at(place);
        let malformed = match widened(stream.send_window) {
            _ if increment == 0 => Malformed::ZeroIncrement,
            None => Malformed::WindowOverflow,
            Some(window) => {
                stream.send_window = window;
                while self.go_on_with(place, call.out) {}
                return Ok(None);
            }
        };
        Ok(Some(self.fail(place, malformed.into(), call.out)))
    }

    fn goaway<'a>(
        &mut self,
        (fixed, debug): (&[u8; 8], &[u8]),
        call: &mut Call<'a, '_>,
    ) -> Read<'a> {
        let [l0, l1, l2, l3, c0, c1, c2, c3] = *fixed;
        let last = u32::from_be_bytes([l0, l1, l2, l3]) & WINDOW_MAX;
        let code = ErrorCode(u32::from_be_bytes([c0, c1, c2, c3]));
        match self.going {
            Some(first) if last > first => {
                return Err(Violation::GoAwayRaised { first, second: last });
            }
            Some(_) if !self.credit.spend(call.limits.control_frames_max) => {
                return Err(Violation::Flood(FrameKind::GOAWAY));
            }
            _ => self.going = Some(last),
        }
        self.reading.at = At::Leaving(code);
        Ok(Some(Event::GoAway { last: Token(last), code, debug: Excerpt::of(debug) }))
    }

    /// The peer ends a stream: alone, or as one of those that it will not process.
    #[cold]
    fn reset_by_peer(
        &mut self,
        id: u32,
        code: ErrorCode,
        is_above: bool,
    ) -> Option<Event<'static>> {
        let place = self.streams.find(id)?;
        let untouched = self.streams.at(place).is_untouched();
        self.forget(place);
        let unprocessed = untouched && (is_above || code == ErrorCode::REFUSED_STREAM);
        Some(Event::Reset { token: Token(id), code, unprocessed })
    }

    /// The index of the stream. Data or a head for a closed stream was in flight when we reset it,
    /// or is an error.
    #[inline]
    fn check_closed(&self, header: Header) -> Result<Option<usize>, Violation> {
        let Header { kind, stream: id, .. } = header;
        let place = self.streams.find(id);
        if place.is_none() && !self.resets && self.going.is_none() {
            return Err(Violation::StreamClosed { kind, id });
        }
        Ok(place)
    }

    fn data_frame<'a>(&mut self, header: Header, call: &mut Call<'a, '_>) -> Read<'a> {
        let place = self.check_closed(header)?;
        self.account(header, place, call.out)?;
        if !header.has(PADDED) {
            return self.begin_data(header, place, 0, call);
        }
        if header.size == 0 {
            return Err(Violation::Padding(FrameKind::DATA));
        }
        self.reading.at = At::PadLength(header);
        Ok(None)
    }

    /// The payload size of this frame is known: its data is checked before it arrives, so that the
    /// result does not depend on how the bytes are split.
    fn begin_data<'a>(
        &mut self,
        header: Header,
        place: Option<usize>,
        padding: u8,
        call: &mut Call<'a, '_>,
    ) -> Read<'a> {
        let pad_length = u32::from(header.has(PADDED));
        let left = header.size - pad_length - u32::from(padding);
        let end = header.has(END_STREAM);
        let expected = place.map(|place| self.streams.at(place).expect_data(left, end));
        if matches!(expected, Some(Ok(()))) && (left > 0 || end) {
            self.credit.earn();
        } else if left == 0 && !self.credit.spend(call.limits.control_frames_max) {
            // Data of a stream that we reset was in flight: that may be many frames.
            return Err(Violation::Flood(FrameKind::DATA));
        }
        self.reading.at = At::data(header.stream, left, padding, end);
        let failed = place.zip(expected.and_then(Result::err));
        Ok(failed.map(|(place, violation)| self.fail(place, violation, call.out)))
    }

    #[inline]
    fn read_data<'a>(&mut self, rest: &mut &'a [u8]) -> Option<Event<'a>> {
        let At::Data { stream, left, padding, end } = self.reading.at else { return None };
        if left == 0 {
            let skipped = usize::from(padding).min(rest.len());
            *rest = &rest[skipped..];
            self.reading.at = At::data(stream, left, padding - skipped as u8, end);
            return None;
        }
        let (data, after) = rest.split_at((left as usize).min(rest.len()));
        *rest = after;
        self.reading.at = At::data(stream, left - data.len() as u32, padding, end);
        self.streams.find(stream)?;
        Some(Event::Reply { token: Token(stream), part: Part::Body(data) })
    }

    /// Subtracts a DATA frame from our windows, and opens them again when half used.
    fn account(
        &mut self,
        header: Header,
        place: Option<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        let size = header.size;
        let ignored = Violation::WindowIgnored;
        self.receive_window = self.receive_window.checked_sub(size).ok_or(ignored)?;
        if self.receive_window < self.connection_window / 2 {
            let used = self.connection_window - self.receive_window;
            frame::write_window_update(out, 0, used);
            self.receive_window = self.connection_window;
        }
        let Some(place) = place else { return Ok(()) };
        let full = self.stream_window;
        let stream = self.streams.at(place);
        stream.receive_window = stream.receive_window.checked_sub(size).ok_or(ignored)?;
        if stream.receive_window < full.div_ceil(2) && !header.has(END_STREAM) {
            frame::write_window_update(out, header.stream, full - stream.receive_window);
            stream.receive_window = full;
        }
        Ok(())
    }
}

/// A server starts with SETTINGS (RFC 9113, 3.4).
fn check_preface(header: &[u8; HEADER_BYTES], shown: &[u8]) -> Result<(), Violation> {
    let read = Header::read(*header);
    if read.kind == FrameKind::SETTINGS && read.stream == 0 && !read.has(ACK) {
        return Ok(());
    }
    Err(Violation::NotHttp2(Excerpt::of(shown)))
}

/// Checks a frame header, whatever its payload.
#[inline]
fn check_header(header: Header, block: Option<&Block>, next_id: u32) -> Result<(), Violation> {
    let Header { size, kind, flags: _, stream: id } = header;
    if size > PAYLOAD_BYTES_MAX {
        return Err(Violation::FrameTooLarge { size, size_max: PAYLOAD_BYTES_MAX });
    }
    match block {
        Some(block) if kind != FrameKind::CONTINUATION || id != block.stream => {
            return Err(Violation::HeaderBlockCut(kind));
        }
        None if kind == FrameKind::CONTINUATION => {
            return Err(Violation::ContinuationWithoutHeaders);
        }
        _ => {}
    }
    // A frame may arrive for any stream that was ever opened.
    let was_opened = id % 2 == 1 && id < next_id;
    let of_stream = match kind {
        FrameKind::DATA | FrameKind::HEADERS | FrameKind::RST_STREAM | FrameKind::CONTINUATION => {
            was_opened
        }
        FrameKind::WINDOW_UPDATE => id == 0 || was_opened,
        FrameKind::PRIORITY => id != 0,
        FrameKind::SETTINGS | FrameKind::PING | FrameKind::GOAWAY => id == 0,
        FrameKind::PUSH_PROMISE => return Err(Violation::Push),
        _ => true,
    };
    if of_stream { Ok(()) } else { Err(Violation::StreamId { kind, id }) }
}
