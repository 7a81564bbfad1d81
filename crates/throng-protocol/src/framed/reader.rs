//! Splits a stream into packets. A packet that is complete in the input is not copied; only the
//! start of an incomplete packet is kept.

use memchr::memmem;

use throng_base::Said;

use super::declaration::{Coding, Format};
use super::decode::{Measured, hex, measure, packet_bytes};
use super::notation::{Extent, ExtentSearch};
use super::table::{Frame, Length, Shape, Table};
use super::{Broken, PacketReader, Records};
use crate::fields::number::{Varint, read_bits, read_unsigned};

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

/// The beginning of a packet whose end has not come.
#[derive(Debug)]
pub(super) struct Held {
    bytes: Vec<u8>,
    /// A delimiter may be cut in two: what was looked at already is not looked at again.
    seen: ExtentSearch,
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
        if let Some(held) = &mut self.held {
            let Some(length) = held.finish(records, bytes)? else { return Ok(None) };
            *room = self.held.take().map(|held| held.bytes).unwrap_or_default();
            return Ok(Some(&room[..length]));
        }
        let all = records.begin(bytes);
        if all.is_empty() {
            *bytes = all;
            return Ok(None);
        }
        let mut seen = ExtentSearch::default();
        let begun = records.begun(all, &mut seen).map_err(|broken| broken.showing(all))?;
        let Begun::Complete { bytes: length, used } = begun else {
            self.held = Some(Box::new(Held { bytes: all.to_vec(), seen }));
            *bytes = &[];
            return Ok(None);
        };
        *bytes = &all[used..];
        Ok(Some(&all[..length]))
    }

    /// The bytes of an incomplete packet.
    pub fn held(&self) -> &[u8] {
        self.held.as_ref().map_or(&[], |held| &held.bytes)
    }

    /// The heap memory that the reader owns.
    pub fn heap_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, |held| size_of::<Held>() + held.bytes.capacity())
    }
}

impl Held {
    /// Completes the packet that is held; returns its length without the delimiter.
    fn finish(&mut self, records: Records<'_>, bytes: &mut &[u8]) -> Result<Option<usize>, Broken> {
        let begun = |held: &[u8], seen: &mut ExtentSearch, rest: &[u8]| {
            let begun = records.begun(held, seen);
            begun.map_err(|broken| broken.showing(held.iter().chain(rest)))
        };
        let mut needed = match begun(&self.bytes, &mut self.seen, bytes)? {
            Begun::Complete { .. } => self.bytes.len(),
            Begun::Needs(needed) => needed,
        };
        loop {
            let mut missing = needed.saturating_sub(self.bytes.len()).min(bytes.len());
            if records.end_is_found() {
                // Its end is unknown: avoid copying what follows it.
                missing = missing.min(DELIMITED_STEP_BYTES);
            }
            let before = *bytes;
            self.bytes.extend_from_slice(&before[..missing]);
            *bytes = &before[missing..];
            match begun(&self.bytes, &mut self.seen, bytes)? {
                Begun::Complete { bytes: length, used } => {
                    // More of the input was taken than belongs to the packet.
                    *bytes = &before[missing - (self.bytes.len() - used)..];
                    return Ok(Some(length));
                }
                Begun::Needs(_) if bytes.is_empty() => return Ok(None),
                Begun::Needs(more) => needed = more,
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
        while let Ok(Begun::Complete { bytes, used }) =
            self.begun(rest, &mut ExtentSearch::default())
            && used > 0
        {
            let record = &rest[..bytes];
            rest = self.begin(&rest[used..]);
            // There is no record after the last delimiter, nor between two of them.
            let is_gap = record.is_empty() && self.are_delimited();
            if !is_gap && !sink(record) || rest.is_empty() {
                return;
            }
        }
        sink(rest);
    }

    /// Where the next packet begins: spaces between elements are in none of them.
    fn begin(self, bytes: &[u8]) -> &[u8] {
        if self.are_elements() { bytes.trim_ascii_start() } else { bytes }
    }

    fn table<'s>(self) -> Option<&'s Table>
    where
        Self: 's,
    {
        match self {
            Records::Declared(protocol) | Records::Sent(protocol) => Some(protocol.table()),
            Records::Delimited { .. } => None,
        }
    }

    /// Nothing but the end of a packet says where it is.
    fn end_is_found(self) -> bool {
        self.are_delimited() || self.are_elements()
    }

    fn are_elements(self) -> bool {
        self.table().is_some_and(|table| {
            let format = table.document.as_ref().map(|document| document.format);
            matches!(table.frame, Frame::Document { .. }) && format == Some(Format::Xml)
        })
    }

    fn are_delimited(self) -> bool {
        self.table().is_none_or(|table| matches!(table.frame, Frame::Delimited { .. }))
    }

    /// Looks at bytes from the first one of a record on, of which some were `seen` before.
    fn begun(self, bytes: &[u8], seen: &mut ExtentSearch) -> Result<Begun, Broken> {
        let table = match self {
            Records::Declared(protocol) | Records::Sent(protocol) => protocol.table(),
            Records::Delimited { delimiter, bytes_max } => {
                return delimited(bytes, delimiter, bytes_max, seen);
            }
        };
        match (&table.frame, &table.length) {
            (Frame::Fixed(length), _) if bytes.len() < *length => Ok(Begun::Needs(*length)),
            (Frame::Fixed(length), _) => Ok(Begun::Complete { bytes: *length, used: *length }),
            (Frame::Delimited { bytes: delimiter, bytes_max }, _) => {
                delimited(bytes, delimiter, *bytes_max, seen)
            }
            (Frame::Fields { bytes_max }, _) => {
                let from_target = matches!(self, Records::Declared(_));
                Ok(match measure(table, from_target, bytes, *bytes_max)? {
                    Measured::Bytes(length) => Begun::Complete { bytes: length, used: length },
                    Measured::Needs(needed) => Begun::Needs(more(bytes, needed)),
                })
            }
            (Frame::Document { root, bytes_max }, _) => {
                document(table, root, bytes, *bytes_max, seen)
            }
            // A message of the transport may contain several packets with lengths.
            (Frame::Whole | Frame::Length, Some(length)) => by_length(table, length, bytes),
            (Frame::Whole | Frame::Length, None) => {
                Ok(Begun::Complete { bytes: bytes.len(), used: bytes.len() })
            }
        }
    }
}

/// If the end is unknown, examine more than one more byte.
fn more(bytes: &[u8], needed: usize) -> usize {
    match needed == bytes.len() + 1 {
        true => needed + DELIMITED_STEP_BYTES.max(needed / 2),
        false => needed,
    }
}

/// A document that determines its own end.
fn document(
    table: &Table,
    root: &[u8],
    bytes: &[u8],
    bytes_max: usize,
    seen: &mut ExtentSearch,
) -> Result<Begun, Broken> {
    let format = table.document.as_ref().map(|document| document.format).unwrap_or_default();
    let extent = format.extent(root, bytes, seen);
    let extent = extent.map_err(|(at, reason)| lost(at, String::new(), reason))?;
    let (Extent::Complete(needed) | Extent::Needs(needed)) = extent;
    if needed > bytes_max {
        // Where an element ends is found only in the bytes that have come, however many these are.
        let needed = if format.is_binary() { needed } else { bytes_max + 1 };
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
    seen: &mut ExtentSearch,
) -> Result<Begun, Broken> {
    let from = (seen.bytes as usize + 1).saturating_sub(delimiter.len());
    let found = memmem::find(&bytes[from..], delimiter).map(|at| from + at);
    match found {
        Some(length) if length <= bytes_max => {
            Ok(Begun::Complete { bytes: length, used: length + delimiter.len() })
        }
        // A delimiter that has started may still end in time.
        None if bytes.len() < bytes_max + delimiter.len() => {
            seen.bytes = bytes.len() as u32;
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
            let coding = if let Shape::Coded(coding) = shape { coding } else { &Coding::Varint };
            match coding.read(rest) {
                Varint::Complete { raw, bytes } => (raw, bytes),
                Varint::Short => return Ok(Begun::Needs(bytes.len() + 1)),
                Varint::Long => {
                    let reason = coding.wrong(rest);
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
