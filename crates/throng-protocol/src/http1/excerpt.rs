//! The first bytes of something a peer sent, small enough to live in an error.

use std::fmt;

const EXCERPT_BYTES_MAX: usize = 16;

/// At most 16 bytes of what was received; displayed with everything unprintable escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    bytes: [u8; EXCERPT_BYTES_MAX],
    length: u8,
    shortened: bool,
}

impl Excerpt {
    pub fn of(bytes: &[u8]) -> Excerpt {
        let mut kept = [0; EXCERPT_BYTES_MAX];
        let length = bytes.len().min(EXCERPT_BYTES_MAX);
        kept[..length].copy_from_slice(&bytes[..length]);
        Excerpt { bytes: kept, length: length as u8, shortened: bytes.len() > length }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.shortened { "…" } else { "" };
        write!(f, "`{}{more}`", self.as_bytes().escape_ascii())
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
