//! Reads frames in any cuts and hands out whole messages.
//!
//! A connection between two messages owns no memory but the reader itself; what is needed while
//! a message is cut lives in one box. The box stays where messages may refer to earlier ones: it
//! then holds their last bytes.

use super::agreement::Deflate;
use super::deflate::Inflater;
use super::error::WebSocketError;
use super::frame::{
    CONTROL_PAYLOAD_BYTES_MAX, HEADER_BYTES_MAX, Header, Opcode, Situation, apply_mask,
};

/// What an announced length may reserve at once. A peer that announces more has to send it.
const RESERVE_BYTES_MAX: u64 = 64 * 1024;

/// Which end of the connection reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads what a server sends: never masked.
    Client,
    /// Reads what a client sends: always masked.
    Server,
}

/// How large things may become. Control frames have at most 125 bytes by the RFC.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The payload of a whole message, both as it came and inflated.
    pub message_bytes_max: usize,
    /// The payload of one frame.
    pub frame_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { message_bytes_max: 16 * 1024 * 1024, frame_bytes_max: 16 * 1024 * 1024 }
    }
}

/// A whole message, or a control frame, that lives as long as the call that hands it out.
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

/// A message or a frame of which a part has come, and what the next message may refer to.
#[derive(Debug)]
struct Buffers {
    /// The first bytes of a header that is cut.
    header: [u8; HEADER_BYTES_MAX],
    header_bytes: usize,
    /// The frame whose payload is being read.
    frame: Option<Header>,
    /// How much of that payload has come.
    frame_bytes: u64,
    /// The message being read: opcode, and whether it is compressed.
    message: Option<(Opcode, bool)>,
    data: Vec<u8>,
    /// The payload of a cut control frame. It may come between the frames of a message.
    control: [u8; CONTROL_PAYLOAD_BYTES_MAX],
    /// The last bytes of the compressed messages so far, with context takeover.
    history: Vec<u8>,
}

/// What a call of `receive` lends to all below it.
struct Call<'a, S> {
    limits: &'a Limits,
    inflater: &'a mut Inflater,
    sink: &'a mut S,
}

impl FrameReader {
    /// What was agreed on for permessage-deflate.
    pub fn deflate(&self) -> Option<Deflate> {
        self.deflate
    }

    /// `deflate` is what was agreed on, if messages may be compressed.
    pub fn new(role: Role, deflate: Option<Deflate>) -> FrameReader {
        FrameReader { buffers: None, role, deflate, done: false }
    }

    /// Reads all of `bytes` and calls `sink` for each message that became whole.
    ///
    /// A message that lies in `bytes` whole, in one frame, neither masked nor compressed, is
    /// handed out where it lies. What follows a close frame is ignored (RFC 6455, 5.5.1). After
    /// an error nothing more is read; [`WebSocketError::close_code`] says what to send.
    pub fn receive(
        &mut self,
        mut bytes: &[u8],
        limits: &Limits,
        inflater: &mut Inflater,
        sink: &mut impl FnMut(Message<'_>),
    ) -> Result<(), WebSocketError> {
        let mut call = Call { limits, inflater, sink };
        while !bytes.is_empty() && !self.done {
            let read = match self.buffers.take() {
                None => self.begin(bytes, &mut call),
                Some(buffers) => self.resume(buffers, bytes, &mut call),
            };
            self.done |= read.is_err();
            bytes = read?;
        }
        Ok(())
    }

    /// True when no message is half read. Without context takeover the reader then owns no heap
    /// memory.
    pub fn is_idle(&self) -> bool {
        self.buffers.as_ref().is_none_or(|buffers| buffers.is_empty())
    }

    /// True after a close frame or an error: nothing more will be read.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The heap memory that the reader owns now.
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

    /// Reads at the border of two messages. Returns what it did not read.
    fn begin<'b>(
        &mut self,
        bytes: &'b [u8],
        call: &mut Call<'_, impl FnMut(Message<'_>)>,
    ) -> Result<&'b [u8], WebSocketError> {
        let Some(header) = Header::parse(bytes, &self.situation(call.limits, None))? else {
            return self.resume(Buffers::boxed(), bytes, call);
        };
        let rest = &bytes[header.header_bytes..];
        let whole = header.fin && header.mask.is_none() && !self.keeps_history(&header);
        match usize::try_from(header.payload_bytes) {
            Ok(length) if whole && length <= rest.len() => {
                let (payload, rest) = rest.split_at(length);
                if header.opcode.is_control() {
                    self.deliver_control(header.opcode, payload, call.sink)?;
                } else {
                    deliver_data((header.opcode, header.compressed), payload, &[], call)?;
                }
                Ok(rest)
            }
            _ => {
                let mut buffers = Buffers::boxed();
                buffers.start_frame(header);
                self.read_payload(buffers, rest, call)
            }
        }
    }

    /// Goes on inside a header, a payload, or between two frames of a message.
    fn resume<'b>(
        &mut self,
        mut buffers: Box<Buffers>,
        bytes: &'b [u8],
        call: &mut Call<'_, impl FnMut(Message<'_>)>,
    ) -> Result<&'b [u8], WebSocketError> {
        if buffers.frame.is_some() {
            return self.read_payload(buffers, bytes, call);
        }
        let had = buffers.header_bytes;
        let taken = bytes.len().min(HEADER_BYTES_MAX - had);
        let known = had + taken;
        buffers.header[had..known].copy_from_slice(&bytes[..taken]);
        let message_bytes = buffers.message.map(|_| buffers.data.len());
        let situation = self.situation(call.limits, message_bytes);
        let Some(header) = Header::parse(&buffers.header[..known], &situation)? else {
            buffers.header_bytes = known;
            self.buffers = Some(buffers);
            return Ok(&bytes[taken..]);
        };
        buffers.header_bytes = 0;
        buffers.start_frame(header);
        self.read_payload(buffers, &bytes[header.header_bytes - had..], call)
    }

    fn read_payload<'b>(
        &mut self,
        mut buffers: Box<Buffers>,
        bytes: &'b [u8],
        call: &mut Call<'_, impl FnMut(Message<'_>)>,
    ) -> Result<&'b [u8], WebSocketError> {
        let (header, rest) = match buffers.take_payload(bytes) {
            (Some(header), rest) => (header, rest),
            (None, rest) => {
                self.buffers = Some(buffers);
                return Ok(rest);
            }
        };
        if header.opcode.is_control() {
            let payload = &buffers.control[..header.payload_bytes as usize];
            self.deliver_control(header.opcode, payload, call.sink)?;
        } else if let Some(message) = buffers.message.take_if(|_| header.fin) {
            let data = std::mem::take(&mut buffers.data);
            let inflated = deliver_data(message, &data, &buffers.history, call)?;
            let history_bytes_max = self.deflate.map_or(0, Deflate::history_bytes);
            if let (Some(inflated), 1..) = (inflated, history_bytes_max) {
                note_history(&mut buffers.history, inflated, history_bytes_max);
            }
        }
        if (buffers.message.is_some() || !buffers.history.is_empty()) && !self.done {
            self.buffers = Some(buffers);
        }
        Ok(rest)
    }

    /// Whether a message is one to which later ones may refer.
    fn keeps_history(&self, header: &Header) -> bool {
        header.compressed && self.deflate.is_some_and(|deflate| deflate.history_bytes() > 0)
    }

    fn deliver_control(
        &mut self,
        opcode: Opcode,
        payload: &[u8],
        sink: &mut impl FnMut(Message<'_>),
    ) -> Result<(), WebSocketError> {
        let message = match opcode {
            Opcode::Ping => Message::Ping(payload),
            Opcode::Pong => Message::Pong(payload),
            _ => {
                let message = read_close(payload)?;
                self.done = true;
                message
            }
        };
        sink(message);
        Ok(())
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

    /// Whether no frame and no message is half read.
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

    /// Takes what `bytes` hold of the frame's payload; the frame's header when it is whole.
    fn take_payload<'b>(&mut self, bytes: &'b [u8]) -> (Option<Header>, &'b [u8]) {
        let Some(header) = self.frame else { return (None, bytes) };
        let missing = usize::try_from(header.payload_bytes - self.frame_bytes);
        let (part, rest) = bytes.split_at(missing.unwrap_or(usize::MAX).min(bytes.len()));
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
            return (None, rest);
        }
        self.frame = None;
        (Some(header), rest)
    }
}

/// Gives out a message; what a compressed one was before it was compressed.
fn deliver_data<'a, S: FnMut(Message<'_>)>(
    (opcode, compressed): (Opcode, bool),
    payload: &[u8],
    history: &[u8],
    call: &'a mut Call<'_, S>,
) -> Result<Option<&'a [u8]>, WebSocketError> {
    let inflated = match compressed {
        true => Some(call.inflater.inflate(payload, history, call.limits.message_bytes_max)?),
        false => None,
    };
    let payload = inflated.unwrap_or(payload);
    let message = match opcode {
        Opcode::Text => {
            let text = std::str::from_utf8(payload).map_err(|_| WebSocketError::TextNotUtf8)?;
            Message::Text(text)
        }
        _ => Message::Binary(payload),
    };
    (call.sink)(message);
    Ok(inflated)
}

/// Keeps the last bytes of all messages so far, and no more memory than for them.
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
