//! The fields of packets (MQTT 5, 1.5): read with their limits, and written.

use super::flaw::Flaw;

/// The largest variable byte integer.
pub(super) const VARINT_MAX: u32 = 268_435_455;
/// The longest text, and the longest binary data.
pub(super) const FIELD_BYTES_MAX: usize = 65_535;

/// The rest of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, bytes: usize) -> Result<&'a [u8], Flaw> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(Flaw::CutOff)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Flaw> {
        let (first, rest) = self.0.split_first().ok_or(Flaw::CutOff)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn two(&mut self) -> Result<u16, Flaw> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Flaw::CutOff)?;
        self.0 = rest;
        Ok(u16::from_be_bytes(*first))
    }

    pub(super) fn four(&mut self) -> Result<u32, Flaw> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Flaw::CutOff)?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*first))
    }

    pub(super) fn packet_id(&mut self) -> Result<u16, Flaw> {
        match self.two()? {
            0 => Err(Flaw::PacketIdZero),
            id => Ok(id),
        }
    }

    pub(super) fn varint(&mut self) -> Result<u32, Flaw> {
        let (value, bytes) = varint(self.0)?.ok_or(Flaw::CutOff)?;
        if bytes != varint_bytes(value) {
            return Err(Flaw::LengthNotShortest);
        }
        self.0 = &self.0[bytes..];
        Ok(value)
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Flaw> {
        let length = self.two()?;
        self.take(usize::from(length))
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Flaw> {
        let text = std::str::from_utf8(self.bytes()?).map_err(|_| Flaw::NotUtf8)?;
        if memchr::memchr(0, text.as_bytes()).is_some() {
            return Err(Flaw::NulCharacter);
        }
        Ok(text)
    }

    /// Checks that nothing is left.
    pub(super) fn end(self) -> Result<(), Flaw> {
        if self.0.is_empty() { Ok(()) } else { Err(Flaw::LeftOver(self.0.len())) }
    }
}

/// A variable byte integer at the start of `bytes`, and its size; `None` if it is incomplete.
pub(super) fn varint(bytes: &[u8]) -> Result<Option<(u32, usize)>, Flaw> {
    let mut value = 0;
    for at in 0..4 {
        let Some(byte) = bytes.get(at) else { return Ok(None) };
        value |= u32::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((value, at + 1)));
        }
    }
    Err(Flaw::LengthTooLong)
}

/// The size of a variable byte integer.
pub(super) fn varint_bytes(value: u32) -> usize {
    match value {
        0..=0x7f => 1,
        0x80..=0x3fff => 2,
        0x4000..=0x1f_ffff => 3,
        _ => 4,
    }
}

fn varint_of(mut value: u32) -> ([u8; 4], usize) {
    let (mut bytes, count) = ([0; 4], varint_bytes(value));
    for (at, byte) in bytes[..count].iter_mut().enumerate() {
        *byte = value as u8 & 0x7f | if at + 1 < count { 0x80 } else { 0 };
        value >>= 7;
    }
    (bytes, count)
}

pub(super) fn write_varint(value: u32, out: &mut Vec<u8>) {
    let (bytes, count) = varint_of(value);
    out.extend_from_slice(&bytes[..count]);
}

/// Writes binary data or a text; truncates what is longer than a field can be.
pub(super) fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let bytes = &bytes[..bytes.len().min(FIELD_BYTES_MAX)];
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Writes a body with its length before it.
pub(super) fn write_measured(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    body(out);
    let end = out.len();
    let (prefix, count) = varint_of((end - start) as u32);
    out.extend_from_slice(&prefix[..count]);
    out.copy_within(start..end, start + count);
    out[start..start + count].copy_from_slice(&prefix[..count]);
}
