//! Cuts a stream into packets. What lies whole in the input is handed on where it lies; only the
//! beginning of a packet whose end has not come is kept.

use memchr::memmem;

use throng_base::Said;

use super::decode::{Measured, hex, measure, packet_bytes};
use super::notation::Extent;
use super::table::{Frame, Length, Shape, Table};
use super::{Broken, PacketReader, Records};
use crate::fields::number::{Varint, read_bits, read_unsigned, read_varint};

/// So many bytes are added to a packet at once while its delimiter is looked for.
const DELIMITED_STEP_BYTES: usize = 256;

/// What is known of the packet that begins with some bytes.
enum Begun {
    Complete {
        /// Of the packet.
        bytes: usize,
        /// With what separates it from the next one.
        used: usize,
    },
    /// As many bytes are needed before more is known.
    Needs(usize),
}

impl PacketReader {
    pub fn new() -> PacketReader {
        PacketReader::default()
    }

    /// Reads `bytes` up to the end of the next packet, which is given out without the delimiter;
    /// None when they are used up before. One that came in pieces lies in `room`. After
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

    /// What is held of a packet that is not complete.
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// The heap memory that the reader owns now.
    pub fn heap_bytes(&self) -> usize {
        self.held.capacity()
    }

    /// Completes the packet that is held: how long it is without its delimiter.
    fn finish(&mut self, records: Records<'_>, bytes: &mut &[u8]) -> Result<Option<usize>, Broken> {
        // A delimiter may be cut in two: what was looked at already is not looked at again.
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
                // Its end is not known: what lies behind it should not be copied with it.
                missing = missing.min(DELIMITED_STEP_BYTES);
            }
            let before = *bytes;
            self.held.extend_from_slice(&before[..missing]);
            *bytes = &before[missing..];
            match begun(&self.held, looked, bytes)? {
                Begun::Complete { bytes: length, used } => {
                    // Of a delimiter's input more was taken than the packet has.
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
    /// Calls `sink` with every record in one message of a transport that has messages of its own.
    /// A server may join several records in one of them. What cannot be cut is given out as it is:
    /// whoever decodes it finds what is wrong. `sink` gives false to stop.
    pub fn split<'m>(self, message: &'m [u8], sink: &mut dyn FnMut(&'m [u8]) -> bool) {
        let mut rest = message;
        while let Ok(Begun::Complete { bytes, used }) = self.begun(rest, 0)
            && used > 0
        {
            let record = &rest[..bytes];
            rest = &rest[used..];
            // Behind the last delimiter there is no record, nor between two of them.
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

    /// Looks at bytes from the first one of a record on; in the first `looked` of them no delimiter
    /// ends.
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
                    Measured::Needs(needed) => Begun::Needs(more(bytes, needed)),
                })
            }
            (Frame::Document { bytes_max }, _) => document(table, bytes, *bytes_max),
            // A message of the transport may hold several packets that carry their length.
            (Frame::Whole | Frame::Length, Some(length)) => by_length(table, length, bytes),
            (Frame::Whole | Frame::Length, None) => {
                Ok(Begun::Complete { bytes: bytes.len(), used: bytes.len() })
            }
        }
    }
}

/// Where the end is not known, more is looked at than the next byte.
fn more(bytes: &[u8], needed: usize) -> usize {
    match needed == bytes.len() + 1 {
        true => needed + DELIMITED_STEP_BYTES.max(needed / 2),
        false => needed,
    }
}

/// A document that says itself where it ends.
fn document(table: &Table, bytes: &[u8], bytes_max: usize) -> Result<Begun, Broken> {
    let format = table.document.as_ref().map(|document| document.format).unwrap_or_default();
    let extent = format.extent(bytes).map_err(|(at, reason)| lost(at, String::new(), reason))?;
    let (Extent::Complete(needed) | Extent::Needs(needed)) = extent;
    if needed > bytes_max {
        let reason = say!("the packet has at least {needed} bytes; the maximum is {bytes_max}");
        return Err(lost(0, String::new(), reason));
    }
    Ok(match extent {
        Extent::Complete(length) => Begun::Complete { bytes: length, used: length },
        Extent::Needs(needed) => Begun::Needs(more(bytes, needed)),
    })
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
        // A delimiter that has begun may still end in time.
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

/// What the packet begins with is added where all of it is at hand.
fn lost(position: usize, field: String, reason: Said) -> Broken {
    Broken { position, field, reason, is_lost: true, excerpt: Box::default() }
}

/// Says which constant it is that the packet does not begin with.
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
            // As much as was needed to see it, however much has come.
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
