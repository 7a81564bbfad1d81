//! Reads frames, however they are split, and returns complete messages.
//!
//! Between two messages, a connection owns no memory but the reader itself; state for an incomplete
//! message is in one box. The box is kept if messages may refer to earlier ones: it then contains
//! their last bytes.

use super::agreement::Deflate;
use super::deflate::Inflater;
use super::error::WebSocketError;
use super::frame::{
    CONTROL_PAYLOAD_BYTES_MAX, HEADER_BYTES_MAX, Header, Opcode, Situation, apply_mask,
};

/// Most bytes reserved for an announced length. A peer that announces more must send it.
const RESERVE_BYTES_MAX: u64 = 64 * 1024;

/// The end of the connection that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads what a server sends: never masked.
    Client,
    /// Reads what a client sends: always masked.
    Server,
}

/// Size limits. Control frames have at most 125 bytes by the RFC.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The payload of a complete message, both as received and inflated.
    pub message_bytes_max: usize,
    /// The payload of one frame.
    pub frame_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { message_bytes_max: 16 * 1024 * 1024, frame_bytes_max: 16 * 1024 * 1024 }
    }
}

/// A complete message, or a control frame. It does not borrow from the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    Text(&'a str),
    Binary(&'a [u8]),
    Ping(&'a [u8]),
    Pong(&'a [u8]),
    Close { code: Option<u16>, reason: &'a str },
}

/// The reading half of one connection.
#[derive(Debug)]
pub struct FrameReader {
    buffers: Option<Box<Buffers>>,
    role: Role,
    deflate: Option<Deflate>,
    /// After a close frame or an error nothing more is read.
    done: bool,
}

const _: () = assert!(size_of::<FrameReader>() <= 16);

/// An incomplete message or frame, and the data that the next message may refer to.
#[derive(Debug)]
struct Buffers {
    /// The start of an incomplete header.
    header: [u8; HEADER_BYTES_MAX],
    header_bytes: usize,
    /// The frame whose payload is being read.
    frame: Option<Header>,
    /// How much of that payload has arrived.
    frame_bytes: u64,
    /// The message being read: opcode, and whether it is compressed.
    message: Option<(Opcode, bool)>,
    data: Vec<u8>,
    /// The payload of an incomplete control frame. It may arrive between the frames of a message.
    control: [u8; CONTROL_PAYLOAD_BYTES_MAX],
    /// The last bytes of the compressed messages so far, with context takeover.
    history: Vec<u8>,
}

/// A complete frame that ends a message, or a control frame.
enum Whole<'a> {
    /// In the input, neither masked nor split.
    Here(Header, &'a [u8]),
    Held(Header, Box<Buffers>),
}

impl FrameReader {
    /// The negotiated permessage-deflate.
    pub fn deflate(&self) -> Option<Deflate> {
        self.deflate
    }

    /// `deflate` is the negotiated compression, if any.
    pub fn new(role: Role, deflate: Option<Deflate>) -> FrameReader {
        FrameReader { buffers: None, role, deflate, done: false }
    }

    /// Reads `bytes` up to the end of the next message, which is returned; `None` if they end
    /// before.
    ///
    /// A message that is complete in `bytes`, in one frame, neither masked nor compressed, is not
    /// copied; any other is in `room` or in the inflater. Data after a close frame is ignored (RFC
    /// 6455, 5.5.1). After an error nothing more is read; [`WebSocketError::close_code`] is the
    /// code to send.
    pub fn next<'a: 'r, 'r>(
        &mut self,
        bytes: &mut &'a [u8],
        limits: &Limits,
        inflater: &'r mut Inflater,
        room: &'r mut Vec<u8>,
    ) -> Result<Option<Message<'r>>, WebSocketError> {
        let read = self.read(bytes, limits, inflater, room);
        self.done |= matches!(read, Err(_) | Ok(Some(Message::Close { .. })));
        read
    }

    fn read<'a: 'r, 'r>(
        &mut self,
        bytes: &mut &'a [u8],
        limits: &Limits,
        inflater: &'r mut Inflater,
        room: &'r mut Vec<u8>,
    ) -> Result<Option<Message<'r>>, WebSocketError> {
        let Some(whole) = self.frame(bytes, limits)? else { return Ok(None) };
        let (header, mut payload): (_, &'r [u8]) = match whole {
            Whole::Here(header, payload) => (header, payload),
            Whole::Held(header, buffers) => {
                return self.held(header, buffers, limits, inflater, room).map(Some);
            }
        };
        if header.compressed {
            payload = inflater.inflate(payload, &[], limits.message_bytes_max)?;
        }
        message_of(header.opcode, payload).map(Some)
    }

    /// True between messages. Without context takeover the reader then owns no heap memory.
    pub fn is_idle(&self) -> bool {
        self.buffers.as_ref().is_none_or(|buffers| buffers.is_empty())
    }

    /// True after a close frame or an error: nothing more will be read.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The heap memory that the reader owns.
    pub fn heap_bytes(&self) -> usize {
        self.buffers.as_ref().map_or(0, |buffers| {
            size_of::<Buffers>() + buffers.data.capacity() + buffers.history.capacity()
        })
    }

    fn situation(&self, limits: &Limits, message_bytes: Option<usize>) -> Situation {
        Situation {
            masked: self.role == Role::Server,
            deflate: self.deflate.is_some(),
            message_bytes,
            frame_bytes_max: limits.frame_bytes_max,
            message_bytes_max: limits.message_bytes_max,
        }
    }

    /// Reads frames up to one that is returned.
    fn frame<'a>(
        &mut self,
        bytes: &mut &'a [u8],
        limits: &Limits,
    ) -> Result<Option<Whole<'a>>, WebSocketError> {
        while !bytes.is_empty() && !self.done {
            let whole = match self.buffers.take() {
                None => self.begin(bytes, limits)?,
                Some(buffers) => self.resume(buffers, bytes, limits)?,
            };
            if whole.is_some() {
                return Ok(whole);
            }
        }
        Ok(None)
    }

    /// Reads between two messages.
    fn begin<'a>(
        &mut self,
        bytes: &mut &'a [u8],
        limits: &Limits,
    ) -> Result<Option<Whole<'a>>, WebSocketError> {
        let Some(header) = Header::parse(bytes, &self.situation(limits, None))? else {
            return self.resume(Buffers::boxed(), bytes, limits);
        };
        *bytes = &bytes[header.header_bytes..];
        let whole = header.fin && header.mask.is_none() && !self.keeps_history(&header);
        let length = usize::try_from(header.payload_bytes).ok().filter(|_| whole);
        if let Some((payload, rest)) = length.and_then(|length| bytes.split_at_checked(length)) {
            *bytes = rest;
            return Ok(Some(Whole::Here(header, payload)));
        }
        let mut buffers = Buffers::boxed();
        buffers.start_frame(header);
        Ok(self.read_payload(buffers, bytes))
    }

    /// Continues inside a header, a payload, or between two frames of a message.
    fn resume<'a>(
        &mut self,
        mut buffers: Box<Buffers>,
        bytes: &mut &'a [u8],
        limits: &Limits,
    ) -> Result<Option<Whole<'a>>, WebSocketError> {
        if buffers.frame.is_some() {
            return Ok(self.read_payload(buffers, bytes));
        }
        let had = buffers.header_bytes;
        let taken = bytes.len().min(HEADER_BYTES_MAX - had);
        let known = had + taken;
        buffers.header[had..known].copy_from_slice(&bytes[..taken]);
        let message_bytes = buffers.message.map(|_| buffers.data.len());
        let situation = self.situation(limits, message_bytes);
        let Some(header) = Header::parse(&buffers.header[..known], &situation)? else {
            buffers.header_bytes = known;
            self.buffers = Some(buffers);
            *bytes = &bytes[taken..];
            return Ok(None);
        };
        buffers.header_bytes = 0;
        buffers.start_frame(header);
        *bytes = &bytes[header.header_bytes - had..];
        Ok(self.read_payload(buffers, bytes))
    }

    fn read_payload<'a>(
        &mut self,
        mut buffers: Box<Buffers>,
        bytes: &mut &'a [u8],
    ) -> Option<Whole<'a>> {
        match buffers.take_payload(bytes) {
            Some(header) if header.fin => Some(Whole::Held(header, buffers)),
            _ => {
                self.buffers = Some(buffers);
                None
            }
        }
    }

    /// Returns what was held, and keeps what the next message may refer to.
    fn held<'a>(
        &mut self,
        header: Header,
        mut buffers: Box<Buffers>,
        limits: &Limits,
        inflater: &'a mut Inflater,
        room: &'a mut Vec<u8>,
    ) -> Result<Message<'a>, WebSocketError> {
        let message = buffers.message.take_if(|_| !header.opcode.is_control());
        *room = match message {
            Some(_) => std::mem::take(&mut buffers.data),
            None => buffers.control[..header.payload_bytes as usize].to_vec(),
        };
        let (opcode, is_compressed) = message.unwrap_or((header.opcode, false));
        let mut payload = &room[..];
        if is_compressed {
            let history = &mut buffers.history;
            payload = inflater.inflate(payload, history, limits.message_bytes_max)?;
            let history_bytes_max = self.deflate.map_or(0, Deflate::history_bytes);
            if history_bytes_max > 0 {
                note_history(history, payload, history_bytes_max);
            }
        }
        let message = message_of(opcode, payload)?;
        let goes_on = opcode != Opcode::Close;
        if goes_on && (buffers.message.is_some() || !buffers.history.is_empty()) {
            self.buffers = Some(buffers);
        }
        Ok(message)
    }

    /// Whether later messages may refer to this one.
    fn keeps_history(&self, header: &Header) -> bool {
        header.compressed && self.deflate.is_some_and(|deflate| deflate.history_bytes() > 0)
    }
}

impl Buffers {
    fn boxed() -> Box<Buffers> {
        Box::new(Buffers {
            header: [0; HEADER_BYTES_MAX],
            header_bytes: 0,
            frame: None,
            frame_bytes: 0,
            message: None,
            data: Vec::new(),
            control: [0; CONTROL_PAYLOAD_BYTES_MAX],
            history: Vec::new(),
        })
    }

    /// Whether no frame and no message is incomplete.
    fn is_empty(&self) -> bool {
        self.header_bytes == 0 && self.frame.is_none() && self.message.is_none()
    }

    fn start_frame(&mut self, header: Header) {
        self.frame = Some(header);
        self.frame_bytes = 0;
        if header.opcode.is_control() {
            return;
        }
        if header.opcode != Opcode::Continuation {
            self.message = Some((header.opcode, header.compressed));
        }
        let reserved = header.payload_bytes.min(RESERVE_BYTES_MAX) as usize;
        if header.fin {
            self.data.reserve_exact(reserved);
        } else {
            self.data.reserve(reserved);
        }
    }

    /// Takes the part of the frame's payload in `bytes`; returns the frame's header when it is
    /// complete.
    fn take_payload(&mut self, bytes: &mut &[u8]) -> Option<Header> {
        let header = self.frame?;
        let missing = usize::try_from(header.payload_bytes - self.frame_bytes);
        let (part, rest) = bytes.split_at(missing.unwrap_or(usize::MAX).min(bytes.len()));
        *bytes = rest;
        let stored = if header.opcode.is_control() {
            let at = self.frame_bytes as usize;
            let stored = &mut self.control[at..at + part.len()];
            stored.copy_from_slice(part);
            stored
        } else {
            let at = self.data.len();
            self.data.extend_from_slice(part);
            &mut self.data[at..]
        };
        if let Some(mask) = header.mask {
            apply_mask(stored, mask, self.frame_bytes);
        }
        self.frame_bytes += part.len() as u64;
        if self.frame_bytes < header.payload_bytes {
            return None;
        }
        self.frame.take()
    }
}

fn message_of(opcode: Opcode, payload: &[u8]) -> Result<Message<'_>, WebSocketError> {
    Ok(match opcode {
        Opcode::Text => {
            let text = std::str::from_utf8(payload).map_err(|_| WebSocketError::TextNotUtf8)?;
            Message::Text(text)
        }
        Opcode::Ping => Message::Ping(payload),
        Opcode::Pong => Message::Pong(payload),
        Opcode::Close => read_close(payload)?,
        _ => Message::Binary(payload),
    })
}

/// Keeps the last bytes of all messages so far, and no more memory than that.
fn note_history(history: &mut Vec<u8>, inflated: &[u8], bytes_max: usize) {
    let inflated = &inflated[inflated.len().saturating_sub(bytes_max)..];
    let kept = history.len().min(bytes_max - inflated.len());
    history.drain(..history.len() - kept);
    history.reserve_exact(inflated.len());
    history.extend_from_slice(inflated);
}

fn read_close(payload: &[u8]) -> Result<Message<'_>, WebSocketError> {
    let Some((code, reason)) = payload.split_first_chunk::<2>() else {
        return match payload {
            [] => Ok(Message::Close { code: None, reason: "" }),
            _ => Err(WebSocketError::CloseCodeCut),
        };
    };
    let code = u16::from_be_bytes(*code);
    // RFC 6455, 7.4.2, and the codes 1012 to 1014 that IANA registered later.
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(WebSocketError::CloseCodeForbidden(code));
    }
    let reason = std::str::from_utf8(reason).map_err(|_| WebSocketError::CloseReasonNotUtf8)?;
    Ok(Message::Close { code: Some(code), reason })
}
