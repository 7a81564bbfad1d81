//! Splits a stream into packets. A packet that is complete in the input is not copied; only the
//! start of an incomplete packet is kept.

use memchr::memmem;

use throng_base::Said;

use super::decode::{Measured, hex, measure, packet_bytes};
use super::table::{Frame, Length, Shape, Table};
use super::{Broken, PacketReader, Records};
use crate::fields::number::{Varint, read_bits, read_unsigned, read_varint};

/// Bytes added to a packet per step while its delimiter is searched.
const DELIMITED_STEP_BYTES: usize = 256;

/// What is known about the packet that starts with some bytes.
enum Begun {
    Complete {
        /// Size of the packet.
        bytes: usize,
        /// Including its separator.
        used: usize,
    },
    /// This many bytes are needed to know more.
    Needs(usize),
}

impl PacketReader {
    pub fn new() -> PacketReader {
        PacketReader::default()
    }

    /// Reads `bytes` up to the end of the next packet, which is returned without the delimiter;
    /// `None` if they end before. A packet that arrived in pieces is in `room`. After
    /// [`Broken::is_lost`] nothing more can be read.
    pub fn next<'a: 'r, 'r>(
        &mut self,
        records: Records<'_>,
        bytes: &mut &'a [u8],
        room: &'r mut Vec<u8>,
    ) -> Result<Option<&'r [u8]>, Broken> {
        if bytes.is_empty() {
            return Ok(None);
        }
        if !self.held.is_empty() {
            let length = self.finish(records, bytes)?;
            return Ok(length.map(|length| {
                *room = std::mem::take(&mut self.held);
                &room[..length]
            }));
        }
        let all = *bytes;
        let begun = records.begun(all, 0).map_err(|broken| broken.showing(all))?;
        let Begun::Complete { bytes: length, used } = begun else {
            self.held.extend_from_slice(all);
            *bytes = &[];
            return Ok(None);
        };
        *bytes = &all[used..];
        Ok(Some(&all[..length]))
    }

    /// The bytes of an incomplete packet.
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// The heap memory that the reader owns.
    pub fn heap_bytes(&self) -> usize {
        self.held.capacity()
    }

    /// Completes the packet that is held; returns its length without the delimiter.
    fn finish(&mut self, records: Records<'_>, bytes: &mut &[u8]) -> Result<Option<usize>, Broken> {
        // A delimiter may be split: bytes are not searched twice.
        let mut looked = self.held.len();
        let begun = |held: &[u8], looked, rest: &[u8]| {
            let begun = records.begun(held, looked);
            begun.map_err(|broken| broken.showing(held.iter().chain(rest)))
        };
        let mut needed = match begun(&self.held, looked, bytes)? {
            Begun::Complete { .. } => self.held.len(),
            Begun::Needs(needed) => needed,
        };
        loop {
            let mut missing = needed.saturating_sub(self.held.len()).min(bytes.len());
            if records.are_delimited() {
                // Its end is unknown: avoid copying what follows it.
                missing = missing.min(DELIMITED_STEP_BYTES);
            }
            let before = *bytes;
            self.held.extend_from_slice(&before[..missing]);
            *bytes = &before[missing..];
            match begun(&self.held, looked, bytes)? {
                Begun::Complete { bytes: length, used } => {
                    // More of the input was taken than belongs to the packet.
                    *bytes = &before[missing - (self.held.len() - used)..];
                    return Ok(Some(length));
                }
                Begun::Needs(_) if bytes.is_empty() => return Ok(None),
                Begun::Needs(more) => {
                    looked = self.held.len();
                    needed = more;
                }
            }
        }
    }
}

impl Records<'_> {
    /// Calls `sink` for every record in one message of a transport with its own messages; a server
    /// may join several records in one. What cannot be split is passed on unchanged: decoding it
    /// reports the error. `sink` returns false to stop.
    pub fn split<'m>(self, message: &'m [u8], sink: &mut dyn FnMut(&'m [u8]) -> bool) {
        let mut rest = message;
        while let Ok(Begun::Complete { bytes, used }) = self.begun(rest, 0)
            && used > 0
        {
            let record = &rest[..bytes];
            rest = &rest[used..];
            // There is no record after the last delimiter, nor between two of them.
            let is_gap = record.is_empty() && self.are_delimited();
            if !is_gap && !sink(record) || rest.is_empty() {
                return;
            }
        }
        sink(rest);
    }

    fn are_delimited(self) -> bool {
        match self {
            Records::Declared(protocol) | Records::Sent(protocol) => {
                matches!(protocol.table().frame, Frame::Delimited { .. })
            }
            Records::Delimited { .. } => true,
        }
    }

    /// Examines bytes from the start of a record; no delimiter ends in the first `looked` of them.
    fn begun(self, bytes: &[u8], looked: usize) -> Result<Begun, Broken> {
        let table = match self {
            Records::Declared(protocol) | Records::Sent(protocol) => protocol.table(),
            Records::Delimited { delimiter, bytes_max } => {
                return delimited(bytes, delimiter, bytes_max, looked);
            }
        };
        match (&table.frame, &table.length) {
            (Frame::Fixed(length), _) if bytes.len() < *length => Ok(Begun::Needs(*length)),
            (Frame::Fixed(length), _) => Ok(Begun::Complete { bytes: *length, used: *length }),
            (Frame::Delimited { bytes: delimiter, bytes_max }, _) => {
                delimited(bytes, delimiter, *bytes_max, looked)
            }
            (Frame::Fields { bytes_max }, _) => {
                let from_target = matches!(self, Records::Declared(_));
                Ok(match measure(table, from_target, bytes, *bytes_max)? {
                    Measured::Bytes(length) => Begun::Complete { bytes: length, used: length },
                    // If the end is unknown, examine more than one more byte.
                    Measured::Needs(needed) if needed == bytes.len() + 1 => {
                        Begun::Needs(needed + DELIMITED_STEP_BYTES.max(needed / 2))
                    }
                    Measured::Needs(needed) => Begun::Needs(needed),
                })
            }
            // A message of the transport may contain several packets with lengths.
            (Frame::Whole | Frame::Length, Some(length)) => by_length(table, length, bytes),
            (Frame::Whole | Frame::Length, None) => {
                Ok(Begun::Complete { bytes: bytes.len(), used: bytes.len() })
            }
        }
    }
}

fn delimited(
    bytes: &[u8],
    delimiter: &[u8],
    bytes_max: usize,
    looked: usize,
) -> Result<Begun, Broken> {
    let from = (looked + 1).saturating_sub(delimiter.len());
    let found = memmem::find(&bytes[from..], delimiter).map(|at| from + at);
    match found {
        Some(length) if length <= bytes_max => {
            Ok(Begun::Complete { bytes: length, used: length + delimiter.len() })
        }
        // A delimiter that has started may still end in time.
        None if bytes.len() < bytes_max + delimiter.len() => {
            Ok(Begun::Needs(bytes_max + delimiter.len()))
        }
        _ => {
            let reason = say!("the packet has more than {bytes_max} bytes without a delimiter");
            Err(lost(bytes_max, String::new(), reason))
        }
    }
}

fn by_length(table: &Table, length: &Length, bytes: &[u8]) -> Result<Begun, Broken> {
    for (at, mask, expected) in &length.magic {
        match bytes.get(*at as usize) {
            Some(byte) if byte & mask != *expected => return Err(not_magic(table, length, bytes)),
            Some(_) => {}
            None => break,
        }
    }
    let node = table.node(length.node);
    let rest = bytes.get(length.offset..).unwrap_or_default();
    let (value, width) = match node.shape {
        Shape::Unsigned(width) => {
            let width = usize::from(width);
            if rest.len() < width {
                return Ok(Begun::Needs(length.offset + width));
            }
            (read_unsigned(&rest[..width], node.is_little), width)
        }
        Shape::Bits(field) => {
            let width = (field.first + field.bits).div_ceil(8) as usize;
            if rest.len() < width {
                return Ok(Begun::Needs(length.offset + width));
            }
            (read_bits(rest, field.first, field.bits), width)
        }
        ref shape => {
            let read = match shape {
                Shape::Coded(coding) => coding.read(rest),
                _ => read_varint(rest),
            };
            match (read, shape) {
                (Varint::Complete { raw, bytes }, _) => (raw, bytes),
                (Varint::Short, _) => return Ok(Begun::Needs(bytes.len() + 1)),
                (Varint::Long, shape) => {
                    let reason = match shape {
                        Shape::Coded(coding) => coding.wrong(rest),
                        _ => say!("the number uses more bytes than a 64-bit value needs"),
                    };
                    return Err(lost(length.offset, table.path(length.node), reason));
                }
            }
        }
    };
    let total = packet_bytes(length, value, length.offset + width)
        .map_err(|reason| lost(length.offset, table.path(length.node), reason))?;
    match bytes.len() < total {
        true => Ok(Begun::Needs(total)),
        false => Ok(Begun::Complete { bytes: total, used: total }),
    }
}

/// The start of the packet is added when all of it is available.
fn lost(position: usize, field: String, reason: Said) -> Broken {
    Broken { position, field, reason, is_lost: true, excerpt: Box::default() }
}

/// Names the constant that the packet does not start with.
#[cold]
fn not_magic(table: &Table, length: &Length, bytes: &[u8]) -> Broken {
    let is_wrong = |(at, mask, expected): &&(u32, u8, u8)| {
        bytes.get(*at as usize).is_some_and(|byte| byte & mask != *expected)
    };
    let wrong = length.magic.iter().find(is_wrong).copied().unwrap_or_default();
    let mut begin = 0;
    for (id, node) in table.members(0) {
        let width = node.bytes(&table.lists).unwrap_or(0) as usize;
        let here = begin..begin + width;
        begin += width;
        let Some(constant) = node.constant.as_ref() else { continue };
        if here.contains(&(wrong.0 as usize)) {
            // As much as is needed to see the error, however much has arrived.
            let found = hex(&bytes[here.start..=wrong.0 as usize]);
            let expected = hex(&constant.written);
            let reason = say!("found {found}, but the protocol requires {expected} here");
            return lost(here.start, table.path(id), reason);
        }
    }
    let reason = say!(
        "the byte is {:#04x}, which differs from the constant required here",
        bytes[wrong.0 as usize]
    );
    lost(wrong.0 as usize, String::new(), reason)
}
