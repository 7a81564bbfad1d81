//! Frames (RFC 9113, 4 and 6): parses their headers, and writes ours.

use std::fmt;

pub(super) const HEADER_BYTES: usize = 9;
/// The largest payload that a peer may send by default.
pub(super) const PAYLOAD_BYTES_MAX: u32 = 16_384;
/// The start of a client's connection (RFC 9113, 3.4); its SETTINGS follow.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const END_STREAM: u8 = 0x1;
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;
pub(super) const PRIORITY: u8 = 0x20;

/// An error code in a frame (RFC 9113, 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    pub const NO_ERROR: ErrorCode = ErrorCode(0);
    pub const PROTOCOL_ERROR: ErrorCode = ErrorCode(1);
    pub const FLOW_CONTROL_ERROR: ErrorCode = ErrorCode(3);
    pub const STREAM_CLOSED: ErrorCode = ErrorCode(5);
    pub const FRAME_SIZE_ERROR: ErrorCode = ErrorCode(6);
    pub const REFUSED_STREAM: ErrorCode = ErrorCode(7);
    pub const CANCEL: ErrorCode = ErrorCode(8);
    pub const COMPRESSION_ERROR: ErrorCode = ErrorCode(9);
    pub const ENHANCE_YOUR_CALM: ErrorCode = ErrorCode(11);

    /// The name of the code; `None` if RFC 9113 does not define it.
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).copied()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {:#x}", self.0),
        }
    }
}

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Data,
    Headers,
    Priority,
    RstStream,
    Settings,
    PushPromise,
    Ping,
    GoAway,
    WindowUpdate,
    Continuation,
    /// An extension; such frames are ignored (RFC 9113, 5.5).
    Unknown(u8),
}

impl Kind {
    pub(super) fn of(byte: u8) -> Kind {
        match byte {
            0 => Kind::Data,
            1 => Kind::Headers,
            2 => Kind::Priority,
            3 => Kind::RstStream,
            4 => Kind::Settings,
            5 => Kind::PushPromise,
            6 => Kind::Ping,
            7 => Kind::GoAway,
            8 => Kind::WindowUpdate,
            9 => Kind::Continuation,
            other => Kind::Unknown(other),
        }
    }

    fn byte(self) -> u8 {
        match self {
            Kind::Data => 0,
            Kind::Headers => 1,
            Kind::Priority => 2,
            Kind::RstStream => 3,
            Kind::Settings => 4,
            Kind::PushPromise => 5,
            Kind::Ping => 6,
            Kind::GoAway => 7,
            Kind::WindowUpdate => 8,
            Kind::Continuation => 9,
            Kind::Unknown(other) => other,
        }
    }

    /// The section of RFC 9113 that describes it.
    pub(super) fn section(self) -> &'static str {
        match self {
            Kind::Data => "6.1",
            Kind::Headers => "6.2",
            Kind::Priority => "6.3",
            Kind::RstStream => "6.4",
            Kind::Settings => "6.5",
            Kind::PushPromise => "6.6",
            Kind::Ping => "6.7",
            Kind::GoAway => "6.8",
            Kind::WindowUpdate => "6.9",
            Kind::Continuation => "6.10",
            Kind::Unknown(_) => "5.5",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Data => "DATA",
            Kind::Headers => "HEADERS",
            Kind::Priority => "PRIORITY",
            Kind::RstStream => "RST_STREAM",
            Kind::Settings => "SETTINGS",
            Kind::PushPromise => "PUSH_PROMISE",
            Kind::Ping => "PING",
            Kind::GoAway => "GOAWAY",
            Kind::WindowUpdate => "WINDOW_UPDATE",
            Kind::Continuation => "CONTINUATION",
            Kind::Unknown(byte) => return write!(f, "frame of type {byte:#x}"),
        })
    }
}

/// The nine bytes at the start of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Size of the payload.
    pub(super) size: u32,
    pub(super) kind: Kind,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Header {
    #[inline]
    pub(super) fn read(bytes: [u8; HEADER_BYTES]) -> Header {
        let [s0, s1, s2, kind, flags, i0, i1, i2, i3] = bytes;
        Header {
            size: u32::from_be_bytes([0, s0, s1, s2]),
            kind: Kind::of(kind),
            flags,
            stream: u32::from_be_bytes([i0 & 0x7f, i1, i2, i3]),
        }
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Writes the header of a frame; `size` bytes of payload must follow.
#[inline]
pub(super) fn write_header(out: &mut Vec<u8>, kind: Kind, flags: u8, stream: u32, size: usize) {
    let [_, s0, s1, s2] = (size as u32).to_be_bytes();
    let [i0, i1, i2, i3] = stream.to_be_bytes();
    out.extend_from_slice(&[s0, s1, s2, kind.byte(), flags, i0, i1, i2, i3]);
}

pub(super) fn write_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    write_header(out, Kind::RstStream, 0, stream, 4);
    out.extend_from_slice(&code.0.to_be_bytes());
}

pub(super) fn write_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    write_header(out, Kind::WindowUpdate, 0, stream, 4);
    out.extend_from_slice(&increment.to_be_bytes());
}

pub(super) fn write_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    write_header(out, Kind::Settings, 0, 0, settings.len() * 6);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub(super) fn write_settings_ack(out: &mut Vec<u8>) {
    write_header(out, Kind::Settings, ACK, 0, 0);
}

pub(super) fn write_ping(out: &mut Vec<u8>, flags: u8, data: &[u8; 8]) {
    write_header(out, Kind::Ping, flags, 0, 8);
    out.extend_from_slice(data);
}

/// We accept no streams of the peer, so that the last one is always 0.
pub(super) fn write_goaway(out: &mut Vec<u8>, code: ErrorCode) {
    write_header(out, Kind::GoAway, 0, 0, 8);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&code.0.to_be_bytes());
}
