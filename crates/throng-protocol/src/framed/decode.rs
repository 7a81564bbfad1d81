//! Reads a packet along the table in one pass, and records the positions of its parts.

use std::cell::Cell;
use std::ops::Range;

use throng_base::Said;

use super::checksum::checksum;
use super::declaration::{Coding, Layer, Prefix};
use super::kinds::{Kinds, number_of_integer, number_of_text};
use super::table::{
    Base, Constant, Extents, Frame, GoesOn, Job, Length, NONE, Node, Record, Repeats, Shape, Table,
    Test,
};
use super::value::View;
use super::{Broken, Decoded, EXCERPT_BYTES_MAX, MessageId, Packet};
use crate::fields::number::{Varint, extend_sign, read_bits, read_unsigned};

/// Most recorded parts of one packet.
pub(super) const PARTS_MAX: usize = 262_144;

/// Most items of one repeated field.
pub(super) const ITEMS_MAX: u64 = 1 << 24;

/// Capacity for unpacked bytes that is kept for the next packet.
const UNPACKED_KEPT_MAX: usize = 1024 * 1024;

type Read<T = ()> = Result<T, Box<Broken>>;

/// Reads `packet`, sent by one side; it is the message `assumed` if given and no field selects one.
pub(super) fn decode(
    table: &Table,
    from_target: bool,
    assumed: Option<MessageId>,
    packet: &[u8],
    decoded: &mut Decoded,
) -> Result<Packet, Broken> {
    decoded.records.clear();
    decoded.unpacked.clear();
    decoded.unpacked.shrink_to(UNPACKED_KEPT_MAX);
    let side = usize::from(from_target);
    let message = assumed.filter(|_| table.selectors.is_empty());
    let mut decoder = Decoder {
        table,
        kinds: &table.kinds[side],
        packet,
        records: &mut decoded.records,
        unpacked: &mut decoded.unpacked,
        at: 0,
        kind: 0,
        message: message.map(|message| message.0).or(table.only[side]),
        correlation: None,
        measures: false,
        needed: Cell::new(0),
        unknown_kind: None,
    };
    let read = decoder.packet();
    let (message, correlation) = (decoder.message, decoder.correlation);
    let goes_on = read.is_ok() && decoder.goes_on();
    decoded.message = message.map(MessageId);
    decoded.correlation = correlation;
    read.map_err(|broken| broken.showing(packet))?;
    Ok(Packet { message: MessageId(message.unwrap_or_default()), correlation, goes_on })
}

/// What is known about a packet that ends with its last field.
pub(super) enum Measured {
    Bytes(usize),
    /// This many bytes are needed to know more.
    Needs(usize),
}

thread_local! {
    /// Records of the packet that is being measured; taken out and put back.
    static MEASURED: Cell<Vec<Record>> = const { Cell::new(Vec::new()) };
}

/// Capacity for records that is kept for the next packet.
const MEASURED_KEPT_MAX: usize = 4_096;

/// The length of the packet that the bytes start with.
pub(super) fn measure(
    table: &Table,
    from_target: bool,
    bytes: &[u8],
    bytes_max: usize,
) -> Result<Measured, Broken> {
    let side = usize::from(from_target);
    let mut records = MEASURED.take();
    records.clear();
    let mut decoder = Decoder {
        table,
        kinds: &table.kinds[side],
        packet: bytes,
        records: &mut records,
        unpacked: &mut Vec::new(),
        at: 0,
        kind: 0,
        message: table.only[side],
        correlation: None,
        measures: true,
        needed: Cell::new(0),
        unknown_kind: None,
    };
    let read = decoder.list(0, bytes.len());
    let unknown = decoder.unknown_kind.take();
    let (at, needed) = (decoder.at, decoder.needed.get());
    if records.capacity() <= MEASURED_KEPT_MAX {
        MEASURED.set(records);
    }
    let wanted = match (read, unknown) {
        (Ok(()), None) => at as u64,
        (_, Some(broken)) | (Err(broken), None) if needed == 0 => {
            return Err(Broken { is_lost: true, ..*broken });
        }
        _ => needed,
    };
    if wanted > bytes_max as u64 {
        let reason = say!("the packet has more than {bytes_max} bytes");
        let excerpt = Box::default();
        return Err(Broken { position: at, field: String::new(), reason, is_lost: true, excerpt });
    }
    match needed {
        0 => Ok(Measured::Bytes(at)),
        needed => Ok(Measured::Needs(needed as usize)),
    }
}

struct Decoder<'a> {
    table: &'a Table,
    kinds: &'a Kinds,
    packet: &'a [u8],
    records: &'a mut Vec<Record>,
    /// The unpacked content of layers.
    unpacked: &'a mut Vec<u8>,
    at: usize,
    /// The combined values of the selecting fields so far.
    kind: u64,
    message: Option<u16>,
    correlation: Option<u64>,
    /// Only the end of the packet is searched, which may not have arrived.
    measures: bool,
    /// The bytes that were missing when the packet ended too early.
    needed: Cell<u64>,
    /// No message has the kind that was read: the part before the body is still read, because it
    /// may identify the request.
    unknown_kind: Option<Box<Broken>>,
}

impl<'a> Decoder<'a> {
    fn packet(&mut self) -> Read {
        let end = self.packet.len();
        match &self.table.frame {
            Frame::Fixed(bytes) if end != *bytes => {
                let reason = say!("the packet has {end} bytes, but `fixed` is {bytes}");
                return Err(self.broken(NONE, 0, reason));
            }
            _ if end > self.table.packet_bytes_max => {
                let most = self.table.packet_bytes_max;
                let reason = say!("the packet has {end} bytes; the maximum is {most}");
                return Err(self.broken(NONE, 0, reason));
            }
            _ if end == 0 && self.table.list(0).bytes_min > 0 => {
                return Err(self.broken(NONE, 0, say!("the packet is empty")));
            }
            _ => {}
        }
        let read = self.list(0, end);
        if read.is_ok() {
            self.select();
        }
        if let Some(unknown) = self.unknown_kind.take() {
            return Err(unknown);
        }
        read?;
        self.ends(NONE, end)
    }

    /// Whether the reply has more packets after this one.
    fn goes_on(&self) -> bool {
        let message =
            self.message.and_then(|message| self.table.messages.get(usize::from(message)));
        let test = match message.map(|message| &message.more) {
            None | Some(GoesOn::Never) => return false,
            Some(GoesOn::Always) => return true,
            Some(GoesOn::If(test)) => test,
        };
        let body = self.records.iter().position(|record| Some(record.node) == self.table.body);
        self.holds(test, body.map_or(0, |body| body + 1))
    }

    /// Checks that nothing is left before `end`.
    fn ends(&self, node: u32, end: usize) -> Read {
        match end - self.at {
            0 => Ok(()),
            left => {
                let reason = match left {
                    1 => say!("1 byte is left after the last field"),
                    _ => say!("{left} bytes are left after the last field"),
                };
                Err(self.broken(node, self.at, reason))
            }
        }
    }

    fn list(&mut self, list: u32, end: usize) -> Read {
        let table = self.table;
        let scope = self.records.len();
        for id in table.list(list).nodes.clone() {
            let node = table.node(id);
            if let Some(test) = &node.condition
                && !self.holds(test, scope)
            {
                continue;
            }
            if node.is_optional && self.at == end {
                continue;
            }
            match node.repeat {
                Repeats::Once => self.one(id, node, scope, end)?,
                _ => self.items(id, node, scope, end)?,
            }
        }
        Ok(())
    }

    fn holds(&self, test: &Test, scope: usize) -> bool {
        let scope = if test.is_of_packet { 0 } else { scope };
        match self.record_of(test.node, scope) {
            Some(record) => test.holds(self.table.node(test.node).whole(record.raw)),
            None => false,
        }
    }

    /// The record of an earlier field of the list whose records start at `scope`.
    fn record_of(&self, node: u32, scope: usize) -> Option<Record> {
        let mut at = scope;
        while let Some(record) = self.records.get(at) {
            if record.node == node {
                return Some(*record);
            }
            at = record.next as usize;
        }
        None
    }

    /// The value of an earlier field that contains a count or size.
    fn told(&self, id: u32, told_by: u32, scope: usize) -> Read<u64> {
        let Some(record) = self.record_of(told_by, scope) else {
            let name = &self.table.node(told_by).name;
            let reason = say!("the field `{name}` with the length or count is missing");
            return Err(self.broken(id, self.at, reason));
        };
        u64::try_from(self.table.node(told_by).whole(record.raw)).map_err(|_| {
            let name = &self.table.node(told_by).name;
            let value = record.raw as i64;
            self.broken(id, self.at, say!("the length or count in `{name}` is negative: {value}"))
        })
    }

    #[inline]
    fn push(&mut self, node: u32, start: usize, raw: u64) {
        let next = self.records.len() as u32 + 1;
        self.records.push(Record { node, next, start: start as u32, end: self.at as u32, raw });
    }

    /// Takes `width` bytes.
    #[inline]
    fn take(&mut self, id: u32, width: usize, end: usize) -> Read<&'a [u8]> {
        if end - self.at < width {
            return Err(self.cut(id, width as u64, end));
        }
        let bytes = &self.packet[self.at..self.at + width];
        self.at += width;
        Ok(bytes)
    }

    #[inline]
    fn one(&mut self, id: u32, node: &'a Node, scope: usize, end: usize) -> Read {
        let start = self.at;
        let raw = match &node.shape {
            Shape::Unsigned(width) => {
                read_unsigned(self.take(id, usize::from(*width), end)?, node.is_little)
            }
            Shape::Signed(width) => {
                let bytes = self.take(id, usize::from(*width), end)?;
                extend_sign(read_unsigned(bytes, node.is_little), *width)
            }
            Shape::Float32 => read_unsigned(self.take(id, 4, end)?, node.is_little),
            Shape::Float64 => read_unsigned(self.take(id, 8, end)?, node.is_little),
            Shape::Coded(coding) => self.number(id, coding, end)?,
            Shape::Bool => match self.take(id, 1, end)?[0] {
                bit @ (0 | 1) => u64::from(bit),
                other => {
                    let reason = say!("expected the byte 1 (true) or 0 (false), not {other:#04x}");
                    return Err(self.broken(id, start, reason));
                }
            },
            Shape::Bits(_) => return self.bits(id, node, scope, end),
            Shape::Text(extent) | Shape::Bytes(extent) if matches!(node.job, Job::Kind(_)) => {
                return self.text_kind(id, node, extent, end);
            }
            Shape::Text(extent)
            | Shape::Bytes(extent)
            | Shape::Json(extent)
            | Shape::Proto(_, extent) => self.content(id, node, extent, scope, end)?,
            Shape::List(list) => return self.inner(id, node, *list, scope, end),
            Shape::Body => return self.body(id, end),
        };
        self.push(id, start, raw);
        // What every packet needs is checked here; rare checks and all errors are in `check`.
        match (&node.job, &node.constant) {
            (Job::Value, None) => return Ok(()),
            (Job::Correlation, None) if node.shape.extent().is_none() => {
                self.correlation = Some(raw);
                return Ok(());
            }
            (Job::Value, Some(constant))
                if constant.raw == raw && node.shape.extent().is_none() =>
            {
                return Ok(());
            }
            (Job::Kind(_), None) if self.table.selectors.len() == 1 => {
                if let Some(message) = self.kinds.number(raw) {
                    self.message = Some(message);
                    return Ok(());
                }
            }
            _ => {}
        }
        self.check(id, node, scope)
    }

    /// A structure: its own record, and those of its fields.
    fn inner(&mut self, id: u32, node: &'a Node, list: u32, scope: usize, end: usize) -> Read {
        let Some(bound) = &node.bound else {
            let index = self.open(id, 0)?;
            self.list(list, end)?;
            self.close(index);
            return Ok(());
        };
        let start = self.at;
        let (length, _) = self.extent(id, node, bound, scope, end)?;
        // The prefix belongs to the structure: its record starts there.
        let begin = std::mem::replace(&mut self.at, start);
        let index = self.open(id, 0)?;
        self.at = begin;
        let end = begin + length;
        self.list(list, end)?;
        self.ends(id, end)?;
        self.close(index);
        Ok(())
    }

    /// Starts a part that contains others.
    fn open(&mut self, id: u32, raw: u64) -> Read<usize> {
        if self.records.len() >= PARTS_MAX {
            let reason = say!("the packet has more than {PARTS_MAX} fields and items");
            return Err(self.broken(id, self.at, reason));
        }
        let start = self.at as u32;
        self.records.push(Record { node: id, next: NONE, start, end: start, raw });
        Ok(self.records.len() - 1)
    }

    fn close(&mut self, index: usize) {
        let next = self.records.len() as u32;
        let record = &mut self.records[index];
        record.next = next;
        record.end = self.at as u32;
    }

    /// The message that several fields select together.
    fn select(&mut self) {
        let [first, _, ..] = self.table.selectors[..] else { return };
        self.message = self.kinds.number(self.kind);
        if self.message.is_none() {
            let parts = self.table.selectors.iter().filter_map(|at| self.record_of(at.node, 0));
            let parts: Vec<u64> = parts.map(|record| record.raw).collect();
            let at = self.record_of(first.node, 0).map_or(0, |record| record.start as usize);
            let reason = say!("no message has the kind {}", format!("{parts:?}"));
            self.unknown_kind = Some(self.broken(first.node, at, reason));
        }
    }

    /// A selecting text: it ends where the matching kind does.
    fn text_kind(&mut self, id: u32, node: &'a Node, extent: &'a Extents, end: usize) -> Read {
        let start = self.at;
        let found = self.kinds.text(&self.packet[start..end]);
        let text =
            found.and_then(|message| self.table.messages[usize::from(message)].text.as_ref());
        if let Some(text) = text {
            self.message = found;
            self.at += text.written.len();
            self.push(id, start, (start as u64) << 32 | (start + text.content.len()) as u64);
            return Ok(());
        }
        if self.measures {
            let rest = &self.packet[start..end];
            // As many bytes as are needed to see the error, however many have arrived.
            let wrong = (1..=rest.len()).find(|n| !self.kinds.may_become_text(&rest[..*n]));
            return Err(match wrong {
                None => self.cut(id, rest.len() as u64 + 1, end),
                Some(n) => self.broken(id, start, unknown_text(&rest[..n])),
            });
        }
        // It is read as declared, so that it can be shown.
        let raw = self.content(id, node, extent, 0, end)?;
        self.push(id, start, raw);
        let shown = Record { node: id, next: NONE, start: 0, end: 0, raw }.content();
        let shown = &self.packet[shown.start..shown.end.min(shown.start + EXCERPT_BYTES_MAX)];
        let reason = unknown_text(shown);
        self.unknown_kind = Some(self.broken(id, start, reason));
        Ok(())
    }

    fn body(&mut self, id: u32, end: usize) -> Read {
        self.select();
        let Some(message) = self.message else {
            if let Some(unknown) = self.unknown_kind.take() {
                return Err(unknown);
            }
            let reason = say!("no earlier field identifies the message");
            return Err(self.broken(id, self.at, reason));
        };
        // If the packet ends with its last field, nothing else limits the body.
        let trailer = if self.measures { 0 } else { self.table.trailer };
        let Some(end) = end.checked_sub(trailer).filter(|end| *end >= self.at) else {
            return Err(self.cut(id, trailer as u64, end));
        };
        let list = self.table.messages[usize::from(message)].list;
        let index = self.open(id, 0)?;
        self.list(list, end)?;
        if self.table.is_padded && !self.table.list(list).is_open {
            let zeros = self.packet[self.at..end].iter().take_while(|byte| **byte == 0).count();
            self.at += zeros;
            if self.at < end {
                let reason = say!("the rest of the packet is not all zeros");
                return Err(self.broken(id, self.at, reason));
            }
        }
        self.close(index);
        match self.measures {
            true => Ok(()),
            false => self.ends(id, end),
        }
    }

    fn bits(&mut self, id: u32, node: &'a Node, scope: usize, end: usize) -> Read {
        let Shape::Bits(field) = &node.shape else { return Ok(()) };
        let group = field.group_bytes as usize;
        if end - self.at < group {
            return Err(self.cut(id, group as u64, end));
        }
        let raw = read_bits(&self.packet[self.at..self.at + group], field.first, field.bits);
        let start = self.at + (field.first / 8) as usize;
        let until = self.at + (field.first + field.bits).div_ceil(8) as usize;
        let next = self.records.len() as u32 + 1;
        self.records.push(Record { node: id, next, start: start as u32, end: until as u32, raw });
        if field.is_last {
            self.at += group;
        }
        match node.constant.is_none() && node.job == Job::Value {
            true => Ok(()),
            false => self.check(id, node, scope),
        }
    }

    fn number(&mut self, id: u32, coding: &Coding, end: usize) -> Read<u64> {
        let bytes = &self.packet[self.at..end];
        match coding.read(bytes) {
            Varint::Complete { raw, bytes } => {
                self.at += bytes;
                Ok(raw)
            }
            Varint::Short => Err(self.cut(id, (end - self.at) as u64 + 1, end)),
            Varint::Long => Err(self.broken(id, self.at, coding.wrong(bytes))),
        }
    }

    fn prefix(&mut self, id: u32, prefix: Prefix, is_little: bool, end: usize) -> Read<u64> {
        match prefix.bytes() {
            Some(1) => Ok(u64::from(self.take(id, 1, end)?[0])),
            Some(width) => Ok(read_unsigned(self.take(id, usize::from(width), end)?, is_little)),
            None => self.number(id, &prefix.coding(), end),
        }
    }

    /// The size of the content from here on, after its prefix is read, and of the delimiter that
    /// follows.
    fn extent(
        &mut self,
        id: u32,
        node: &'a Node,
        extent: &'a Extents,
        scope: usize,
        end: usize,
    ) -> Read<(usize, usize)> {
        let (length, behind) = match extent {
            Extents::Fixed(bytes) => (u64::from(*bytes), 0),
            Extents::Prefixed { prefix, bytes_max } => {
                let length = self.prefix(id, *prefix, node.is_little, end)?;
                if length > *bytes_max {
                    let reason = say!("it has {length} bytes; the maximum is {bytes_max}");
                    return Err(self.broken(id, self.at, reason));
                }
                (length, 0)
            }
            Extents::Delimited(delimiter) => {
                match memchr::memmem::find(&self.packet[self.at..end], delimiter) {
                    Some(length) => (length as u64, delimiter.len()),
                    None => return Err(self.without(id, delimiter, end)),
                }
            }
            Extents::Field(told_by) => (self.told(id, *told_by, scope)?, 0),
            Extents::Rest => ((end - self.at) as u64, 0),
            Extents::RestBefore(last) => match self.packet[self.at..end].strip_suffix(&**last) {
                Some(content) => (content.len() as u64, last.len()),
                None => return Err(self.without(id, last, end)),
            },
        };
        if length > (end - self.at) as u64 {
            return Err(self.cut(id, length, end));
        }
        Ok((length as usize, behind))
    }

    /// Text, bytes, JSON or protobuf: start and end of the content for a record.
    fn content(
        &mut self,
        id: u32,
        node: &'a Node,
        extent: &'a Extents,
        scope: usize,
        end: usize,
    ) -> Read<u64> {
        let (length, behind) = self.extent(id, node, extent, scope, end)?;
        let from = self.at;
        let mut until = from + length;
        self.at = until + behind;
        let is_padded = node.is_padded();
        if is_padded && matches!(extent, Extents::Fixed(_)) {
            until = from + unpadded(&self.packet[from..until]);
        }
        let range = match node.layer.filter(|_| !self.measures) {
            Some(layer) => self.unpack(id, node, layer, from..until)?,
            None => {
                let verified = self.verify(node, &self.packet[from..until]);
                verified.map_err(|(at, reason)| self.broken(id, from + at, reason))?;
                from..until
            }
        };
        Ok((range.start as u64) << 32 | range.end as u64)
    }

    /// Unpacks compressed content; returns its position in the unpacked bytes.
    fn unpack(
        &mut self,
        id: u32,
        node: &Node,
        layer: Layer,
        range: Range<usize>,
    ) -> Read<Range<usize>> {
        let begin = self.unpacked.len();
        let unpacked = layer.unpack(&self.packet[range.clone()], self.unpacked);
        unpacked.map_err(|reason| self.broken(id, range.start, reason))?;
        let verified = self.verify(node, &self.unpacked[begin..]);
        verified.map_err(|(at, reason)| {
            self.broken(id, range.start, say!("byte {at} of the unpacked data: {reason}"))
        })?;
        Ok(begin..self.unpacked.len())
    }

    /// Checks that text, documents and protobuf are valid; otherwise returns the position and the
    /// reason.
    fn verify(&self, node: &Node, bytes: &[u8]) -> Result<(), (usize, Said)> {
        if self.measures {
            return Ok(());
        }
        let format = node.format;
        if matches!(node.shape, Shape::Text(_) | Shape::Json(_))
            && !format.is_binary()
            && let Err(error) = std::str::from_utf8(bytes)
        {
            let at = error.valid_up_to();
            return Err((at, say!("the text is not UTF-8: byte {:#04x}", bytes[at])));
        }
        match &node.shape {
            Shape::Json(_) => format.check(bytes).map_err(|at| (at, format.wrong(bytes, at))),
            Shape::Proto(message, _) => {
                let checked = self.table.schema.check(*message, bytes);
                checked.map_err(|wrong| (wrong.position, wrong.reason))
            }
            _ => Ok(()),
        }
    }

    fn items(&mut self, id: u32, node: &'a Node, scope: usize, end: usize) -> Read {
        let count = match node.repeat {
            Repeats::Once => Some(1),
            Repeats::Times(times) => Some(u64::from(times)),
            Repeats::Prefixed(prefix) => {
                // The prefix belongs to the field: its record starts there.
                let start = self.at;
                let count = self.prefix(id, prefix, node.is_little, end)?;
                let items = self.at;
                self.at = start;
                let index = self.open(id, count)?;
                self.at = items;
                return self.all_items(id, node, index, Some(count), scope, end);
            }
            Repeats::Field(told_by) => Some(self.told(id, told_by, scope)?),
            Repeats::Rest | Repeats::Until => None,
        };
        let index = self.open(id, count.unwrap_or_default())?;
        self.all_items(id, node, index, count, scope, end)
    }

    fn all_items(
        &mut self,
        id: u32,
        node: &'a Node,
        index: usize,
        count: Option<u64>,
        scope: usize,
        end: usize,
    ) -> Read {
        let left = (end - self.at) as u64;
        let least = node.item_bytes_min(&self.table.lists);
        if let Some(count) = count {
            let needed = count.saturating_mul(least);
            if count > ITEMS_MAX || needed > left {
                let reason = match needed > left {
                    true => say!(
                        "{count} items need at least {needed} bytes, but the packet has only \
                         {left} left"
                    ),
                    false => say!("there are {count} items; the maximum is {ITEMS_MAX}"),
                };
                return Err(match needed > left {
                    true if self.measures => self.cut(id, needed, end),
                    _ => self.broken(id, self.at, reason),
                });
            }
        }
        let done = match (node.packed_width(), count) {
            (Some(width), Some(count)) => {
                self.at += usize::from(width) * count as usize;
                count
            }
            (Some(width), None) if left.is_multiple_of(u64::from(width)) => {
                self.at = end;
                left / u64::from(width)
            }
            _ => self.single_items(id, node, count, scope, end)?,
        };
        self.records[index].raw = done;
        self.close(index);
        if let (Some(name), false) = (&node.carries, self.measures) {
            let records = self.records.as_slice();
            let (table, packet, unpacked) = (self.table, self.packet, self.unpacked.as_slice());
            let found = View { table, packet, records, unpacked }.carried(index, name);
            self.correlation = found.or(self.correlation);
        }
        Ok(())
    }

    /// Items with one record each.
    fn single_items(
        &mut self,
        id: u32,
        node: &'a Node,
        count: Option<u64>,
        scope: usize,
        end: usize,
    ) -> Read<u64> {
        let mut done = 0;
        let is_until = node.repeat == Repeats::Until;
        while is_until || count.map_or(self.at < end, |count| done < count) {
            if is_until && self.packet[self.at..end].starts_with(&node.until) {
                self.at += node.until.len();
                break;
            }
            if is_until && self.at == end {
                return Err(self.without(id, &node.until, end));
            }
            if self.records.len() >= PARTS_MAX {
                let reason = say!("the packet has more than {PARTS_MAX} fields and items");
                return Err(self.broken(id, self.at, reason));
            }
            let start = self.at;
            self.one(id, node, scope, end)?;
            if count.is_none() && self.at == start {
                let reason = say!("its items are empty, so the list would never end");
                return Err(self.broken(id, self.at, reason));
            }
            done += 1;
        }
        Ok(done)
    }

    /// Checks constants, and fields that the protocol itself sets.
    #[inline(never)]
    fn check(&mut self, id: u32, node: &'a Node, scope: usize) -> Read {
        let Some(record) = self.records.last().copied() else { return Ok(()) };
        if let Some(constant) = &node.constant {
            self.constant(id, node, constant, record)?;
        }
        match &node.job {
            Job::Value | Job::Computed | Job::Body => Ok(()),
            Job::Length => self.length(id, record),
            Job::Kind(index) if self.table.selectors.len() > 1 => {
                let selector = self.table.selectors[usize::from(*index)];
                self.kind |= record.raw << selector.shift;
                Ok(())
            }
            Job::Kind(_) => match self.kinds.number(record.raw) {
                Some(message) => {
                    self.message = Some(message);
                    Ok(())
                }
                None => {
                    let kind = node.whole(record.raw);
                    let reason = say!("no message has the kind {kind}");
                    let broken = self.broken(id, record.start as usize, reason);
                    self.unknown_kind = Some(broken);
                    Ok(())
                }
            },
            Job::Correlation => {
                self.correlation = Some(match node.shape {
                    Shape::Text(_) => number_of_text(&self.packet[record.content()]),
                    Shape::Bytes(_) => number_of_integer(&self.packet[record.content()]),
                    _ => record.raw,
                });
                Ok(())
            }
            Job::Checksum { .. } if self.measures => Ok(()),
            Job::Checksum { algorithm, over } => {
                let Shape::Unsigned(width) = node.shape else { return Ok(()) };
                let begin = match self.records.get(scope) {
                    Some(first) => first.start as usize,
                    None => 0,
                };
                let packet = self.packet;
                let sum = match over.is_empty() {
                    true => {
                        let all = &packet[begin..record.start as usize];
                        checksum(*algorithm, width, std::iter::once(all))
                    }
                    false => {
                        let parts = over.iter().filter_map(|over| self.record_of(*over, scope));
                        let bytes =
                            parts.map(|part| &packet[part.start as usize..part.end as usize]);
                        checksum(*algorithm, width, bytes)
                    }
                };
                if sum == record.raw {
                    return Ok(());
                }
                let reason =
                    say!("the checksum is {:#x}, but the correct checksum is {sum:#x}", record.raw);
                Err(self.broken(id, record.start as usize, reason))
            }
        }
    }

    fn constant(&self, id: u32, node: &Node, constant: &Constant, record: Record) -> Read {
        let is_right = match node.shape.extent() {
            Some(_) => self.packet[record.content()] == *constant.content,
            None => record.raw == constant.raw,
        };
        if is_right {
            return Ok(());
        }
        let found = hex(&self.packet[record.start as usize..record.end as usize]);
        let expected = hex(&constant.written);
        let reason = match node.shape {
            Shape::Bits(_) => {
                say!(
                    "the bits are {:#b}, but the protocol requires {:#b} here",
                    record.raw,
                    constant.raw
                )
            }
            _ => say!("found {found}, but the protocol requires {expected} here"),
        };
        Err(self.broken(id, record.start as usize, reason))
    }

    /// Checks that the length field matches the packet.
    fn length(&self, id: u32, record: Record) -> Read {
        let Some(length) = &self.table.length else { return Ok(()) };
        let wrong = |reason| self.broken(id, record.start as usize, reason);
        let total = packet_bytes(length, record.raw, record.end as usize).map_err(wrong)?;
        match total == self.packet.len() {
            true => Ok(()),
            false => {
                let bytes = self.packet.len();
                let told = record.raw;
                let reason = say!(
                    "the length is {told}, so the packet should have {total} bytes in total, but \
                     it has {bytes}"
                );
                Err(self.broken(id, record.start as usize, reason))
            }
        }
    }

    /// The error of a missing delimiter.
    #[cold]
    fn without(&self, id: u32, delimiter: &[u8], end: usize) -> Box<Broken> {
        match self.measures && end == self.packet.len() {
            true => self.cut(id, (end - self.at) as u64 + 1, end),
            false => self.broken(id, self.at, say!("its delimiter {} is missing", hex(delimiter))),
        }
    }

    #[cold]
    fn cut(&self, id: u32, needed: u64, end: usize) -> Box<Broken> {
        if end == self.packet.len() {
            self.needed.set((self.at as u64).saturating_add(needed));
        }
        let left = end.saturating_sub(self.at);
        let reason = match (needed, left) {
            (1, _) => say!("1 byte is needed here, but none is left"),
            (_, 1) => say!("{needed} bytes are needed here, but only 1 is left"),
            _ => say!("{needed} bytes are needed here, but only {left} are left"),
        };
        self.broken(id, self.at, reason)
    }

    #[cold]
    fn broken(&self, id: u32, position: usize, reason: Said) -> Box<Broken> {
        let field = self.table.path(id);
        let excerpt = Box::default();
        Box::new(Broken { position, field, reason, is_lost: false, excerpt })
    }
}

/// The length without trailing zeros.
pub(super) fn unpadded(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

fn unknown_text(shown: &[u8]) -> Said {
    say!("no message has the kind {}", shown.escape_ascii())
}

/// The packet size for a length field with this value that ends at `end`.
pub(super) fn packet_bytes(length: &Length, value: u64, end: usize) -> Result<usize, Said> {
    if value > length.value_max {
        return Err(say!("the length is {value}; the maximum is {}", length.value_max));
    }
    let base = match length.base {
        Base::Packet => 0,
        Base::Behind(bytes) => end + bytes,
    };
    let counted = i128::from(value) - i128::from(length.plus);
    let total = usize::try_from(base as i128 + counted).unwrap_or(0);
    let least = length.packet_bytes_min.max(end);
    match total < least {
        true => {
            Err(say!("the length is {value}, but a packet has at least {least} bytes in total"))
        }
        false => Ok(total),
    }
}

/// Bytes in hexadecimal: `c4 a7 …`.
pub(super) fn hex(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(EXCERPT_BYTES_MAX)];
    let mut text: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    if shown.len() < bytes.len() {
        text.push("…".to_owned());
    }
    text.join(" ")
}
