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

/// The type of a frame. Those of extensions are ignored (RFC 9113, 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameKind(pub(super) u8);

impl FrameKind {
    pub(super) const DATA: FrameKind = FrameKind(0);
    pub(super) const HEADERS: FrameKind = FrameKind(1);
    pub(super) const PRIORITY: FrameKind = FrameKind(2);
    pub(super) const RST_STREAM: FrameKind = FrameKind(3);
    pub(super) const SETTINGS: FrameKind = FrameKind(4);
    pub(super) const PUSH_PROMISE: FrameKind = FrameKind(5);
    pub(super) const PING: FrameKind = FrameKind(6);
    pub(super) const GOAWAY: FrameKind = FrameKind(7);
    pub(super) const WINDOW_UPDATE: FrameKind = FrameKind(8);
    pub(super) const CONTINUATION: FrameKind = FrameKind(9);
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 10] = [
            "DATA",
            "HEADERS",
            "PRIORITY",
            "RST_STREAM",
            "SETTINGS",
            "PUSH_PROMISE",
            "PING",
            "GOAWAY",
            "WINDOW_UPDATE",
            "CONTINUATION",
        ];
        match NAMES.get(usize::from(self.0)) {
            Some(name) => f.write_str(name),
            None => write!(f, "frame of type {:#x}", self.0),
        }
    }
}

/// The nine bytes at the start of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Size of the payload.
    pub(super) size: u32,
    pub(super) kind: FrameKind,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Header {
    #[inline]
    pub(super) fn read(bytes: [u8; HEADER_BYTES]) -> Header {
        let [s0, s1, s2, kind, flags, i0, i1, i2, i3] = bytes;
        Header {
            size: u32::from_be_bytes([0, s0, s1, s2]),
            kind: FrameKind(kind),
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
pub(super) fn write_header(
    out: &mut Vec<u8>,
    kind: FrameKind,
    flags: u8,
    stream: u32,
    size: usize,
) {
    let [_, s0, s1, s2] = (size as u32).to_be_bytes();
    let [i0, i1, i2, i3] = stream.to_be_bytes();
    out.extend_from_slice(&[s0, s1, s2, kind.0, flags, i0, i1, i2, i3]);
}

pub(super) fn write_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    write_header(out, FrameKind::RST_STREAM, 0, stream, 4);
    out.extend_from_slice(&code.0.to_be_bytes());
}

pub(super) fn write_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    write_header(out, FrameKind::WINDOW_UPDATE, 0, stream, 4);
    out.extend_from_slice(&increment.to_be_bytes());
}

pub(super) fn write_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    write_header(out, FrameKind::SETTINGS, 0, 0, settings.len() * 6);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub(super) fn write_settings_ack(out: &mut Vec<u8>) {
    write_header(out, FrameKind::SETTINGS, ACK, 0, 0);
}

pub(super) fn write_ping(out: &mut Vec<u8>, flags: u8, data: &[u8; 8]) {
    write_header(out, FrameKind::PING, flags, 0, 8);
    out.extend_from_slice(data);
}

/// We accept no streams of the peer, so that the last one is always 0.
pub(super) fn write_goaway(out: &mut Vec<u8>, code: ErrorCode) {
    write_header(out, FrameKind::GOAWAY, 0, 0, 8);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&code.0.to_be_bytes());
}
