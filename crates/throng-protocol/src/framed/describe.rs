//! Describes packets and messages: every part with its position, and the layout of a message.

use throng_expression::Value;

use throng_base::Said;

use super::declaration::{Coding, Prefix};
use super::table::{Extents, Job, List, NONE, Node, Repeats, Shape, Table};
use super::value::View;
use super::{Decoded, LayoutRow, MessageId, PacketPart};
use crate::fields::number::{Varint, read_unsigned};

/// All parts of a packet, in wire order.
pub(super) fn describe(table: &Table, packet: &[u8], decoded: &Decoded) -> Vec<PacketPart> {
    let records = decoded.records.as_slice();
    let view = View::new(table, packet, decoded);
    let is_known = decoded.message.is_some();
    let mut describer = Describer { view, is_known, parts: Vec::new() };
    describer.list(0, records.len(), "");
    if table.document.is_some() {
        describer.parts.sort_by_key(|part| part.start);
    }
    describer.parts
}

struct Describer<'a> {
    view: View<'a>,
    /// Whether its message is known.
    is_known: bool,
    parts: Vec<PacketPart>,
}

impl Describer<'_> {
    fn list(&mut self, mut at: usize, end: usize, within: &str) {
        while at < end {
            let record = self.view.records[at];
            let node = self.view.table.node(record.node);
            let path = match within {
                "" => node.name.to_string(),
                within => format!("{within}.{}", node.name),
            };
            // The record of a part in which the packet ends is incomplete.
            let next = if record.next == NONE { end } else { record.next as usize };
            match node.repeat {
                Repeats::Once => self.item(at, next, &path),
                _ => self.items(at, next, &path),
            }
            at = next;
        }
    }

    fn push(&mut self, path: &str, range: (u32, u32), word: String, value: Value, note: Said) {
        let (start, end) = (range.0 as usize, range.1 as usize);
        let path = path.to_owned();
        self.parts.push(PacketPart { path, start, end, bits: None, type_word: word, value, note });
    }

    fn items(&mut self, at: usize, next: usize, path: &str) {
        let view = self.view;
        let array = view.records[at];
        let node = view.table.node(array.node);
        if let Repeats::Prefixed(prefix) = node.repeat {
            let note = say!("number of items that follow");
            self.prefix(path, array.start, prefix, node.is_little, array.raw, note);
        }
        self.items_alone(at, next, path);
        if node.repeat == Repeats::Until && array.next != NONE {
            let value = Value::from(&*node.until);
            let start = array.end - node.until.len() as u32;
            let word = "bytes".to_owned();
            self.push(path, (start, array.end), word, value, say!("delimiter"));
        }
    }

    fn items_alone(&mut self, at: usize, next: usize, path: &str) {
        let view = self.view;
        let array = view.records[at];
        let node = view.table.node(array.node);
        if let Some(width) = node.packed_width() {
            if array.next == NONE {
                return;
            }
            let first = array.end - array.raw as u32 * u32::from(width);
            for item in 0..array.raw as u32 {
                let start = first + item * u32::from(width);
                let value = view.packed_item(node, &array, width, item);
                let range = (start, start + u32::from(width));
                let word = view.table.word(array.node);
                let note = label_of(node, &value);
                self.push(&format!("{path}[{item}]"), range, word, value, note);
            }
            return;
        }
        let (mut at, mut item) = (at + 1, 0);
        while at < next {
            let record = view.records[at];
            let behind = if record.next == NONE { next } else { record.next as usize };
            self.item(at, behind, &format!("{path}[{item}]"));
            (at, item) = (behind, item + 1);
        }
    }

    fn prefix(
        &mut self,
        path: &str,
        start: u32,
        prefix: Prefix,
        is_little: bool,
        raw: u64,
        note: Said,
    ) {
        let bytes = &self.view.packet[start as usize..];
        let (width, value) = match prefix.bytes() {
            Some(width) => {
                let bytes = &bytes[..bytes.len().min(usize::from(width))];
                (u32::from(width), Value::from(read_unsigned(bytes, is_little)))
            }
            None => match prefix.coding().read(bytes) {
                Varint::Complete { raw, bytes } => (bytes as u32, Value::from(raw)),
                Varint::Short | Varint::Long => (1, Value::from(raw)),
            },
        };
        self.push(path, (start, start + width), prefix.word(), value, note);
    }

    fn item(&mut self, at: usize, next: usize, path: &str) {
        let view = self.view;
        let record = view.records[at];
        let node = view.table.node(record.node);
        let word = view.table.word(record.node);
        let range = (record.start, record.end);
        match &node.shape {
            Shape::List(_) => {
                if let Some(Extents::Prefixed { prefix, .. }) = node.bound {
                    let note = say!("number of bytes that follow");
                    self.prefix(path, record.start, prefix, node.is_little, 0, note);
                }
                self.list(at + 1, next, path);
            }
            Shape::Body => {
                self.list(at + 1, next, "");
                let end = self.parts.last().map_or(record.start, |part| part.end as u32);
                let end = end.max(record.start);
                if end < record.end {
                    let value = Value::from(&view.packet[end as usize..record.end as usize]);
                    self.push(path, (end, record.end), "bytes".to_owned(), value, say!("padding"));
                }
            }
            Shape::Bits(bits) => {
                let value = view.item(at);
                let note = self.note(node, &value);
                self.push(path, range, word, value, note);
                if let Some(part) = self.parts.last_mut() {
                    part.bits = Some((bits.first % 8, bits.bits));
                }
            }
            shape => {
                let value = view.item(at);
                let note = self.note(node, &value);
                let Some(extent) = shape.extent() else {
                    self.push(path, range, word, value, note);
                    return;
                };
                if let Some(layer) = node.layer {
                    self.push(path, range, word, value, say!("unpacked from {}", layer.word()));
                    return;
                }
                let content = record.content();
                let (from, until) = (content.start as u32, content.end as u32);
                if let Extents::Prefixed { prefix, .. } = extent {
                    let raw = u64::from(until - from);
                    let note = say!("number of bytes that follow");
                    self.prefix(path, record.start, *prefix, node.is_little, raw, note);
                }
                self.push(path, (from, until), word, value, note);
                if until < record.end {
                    let rest = Value::from(&view.packet[content.end..record.end as usize]);
                    let note = match extent {
                        Extents::Delimited(_) | Extents::RestBefore(_) => say!("delimiter"),
                        _ => say!("padding"),
                    };
                    let word = "bytes".to_owned();
                    self.push(path, (until, record.end), word, rest, note);
                }
            }
        }
    }

    fn note(&self, node: &Node, value: &Value) -> Said {
        match &node.job {
            Job::Kind(_) if self.is_known => say!("kind"),
            Job::Kind(_) => say!("unknown kind"),
            _ => match (label_of(node, value), purpose(node)) {
                (label, purpose) if label.is_empty() => purpose,
                (label, _) => label,
            },
        }
    }
}

/// The label of a value.
fn label_of(node: &Node, value: &Value) -> Said {
    let label = node.labels.iter().find(|(_, number)| Value::Int(*number).equals(value));
    label.map(|(name, _)| say!("{name}")).unwrap_or_default()
}

fn purpose(node: &Node) -> Said {
    match &node.job {
        _ if node.constant.is_some() => say!("constant"),
        Job::Value | Job::Body => {
            node.layer.map(|layer| say!("packed with {}", layer.word())).unwrap_or_default()
        }
        Job::Length => say!("length"),
        Job::Kind(_) => say!("kind"),
        Job::Correlation => say!("correlation"),
        Job::Computed => say!("length or count of the data that follows"),
        Job::Checksum { algorithm, .. } => say!("{}", algorithm.word()),
    }
}

/// The layout of a message, including the packet around it.
pub(super) fn layout(table: &Table, message: MessageId) -> Vec<LayoutRow> {
    let mut drawing = Drawing { table, message, rows: Vec::new() };
    drawing.list(0, "", table.document.is_none().then_some(0));
    drawing.rows
}

struct Drawing<'a> {
    table: &'a Table,
    message: MessageId,
    rows: Vec<LayoutRow>,
}

impl Drawing<'_> {
    /// Adds the rows of a list that starts at `offset`; returns the offset after it.
    fn list(&mut self, list: u32, within: &str, mut offset: Option<u64>) -> Option<u64> {
        let table = self.table;
        for (id, node) in table.members(list) {
            let path = match within {
                "" => node.name.to_string(),
                within => format!("{within}.{}", node.name),
            };
            let is_single = node.repeat == Repeats::Once
                && node.condition.is_none()
                && node.bound.is_none()
                && !node.is_optional;
            match (&node.shape, is_single) {
                (Shape::Body, _) => {
                    let body = table.messages[usize::from(self.message.0)].list;
                    offset = self.list(body, "", offset);
                    continue;
                }
                (Shape::List(inner), true) => {
                    offset = self.list(*inner, &path, offset);
                    continue;
                }
                _ => {}
            }
            self.row(id, node, &path, offset);
            if let Shape::List(inner) = node.shape {
                let path = if node.repeat == Repeats::Once { path } else { format!("{path}[]") };
                self.list(inner, &path, None);
            }
            let bytes = node.bytes(&table.lists);
            offset = offset.and_then(|offset| offset.checked_add(bytes?));
        }
        offset
    }

    fn row(&mut self, id: u32, node: &Node, path: &str, offset: Option<u64>) {
        let table = self.table;
        let offset = match node.shape {
            // The bytes of a group count with its first field.
            Shape::Bits(bits) if bits.first > 0 => offset
                .map(|offset| offset - u64::from(bits.group_bytes) + u64::from(bits.first / 8)),
            _ => offset,
        };
        let one = item_bytes(table, node, &table.lists);
        let bytes = match node.repeat {
            Repeats::Once => one,
            Repeats::Times(times) => format!("{times} x {one}"),
            Repeats::Prefixed(prefix) => format!("{} + n x {one}", prefix_text(prefix)),
            Repeats::Field(counter) => format!("`{}` x {one}", table.node(counter).name),
            Repeats::Rest => format!("n x {one}"),
            Repeats::Until => format!("n x {one} + {}", node.until.len()),
        };
        let mut notes = Vec::new();
        match &node.constant {
            Some(constant) => notes.push(say!("{}", super::decode::hex(&constant.written))),
            None => notes.extend(Some(purpose(node)).filter(|text| !text.is_empty())),
        }
        if let Job::Kind(index) = node.job
            && !table.is_kind_open(self.message.0)
        {
            let kind = &table.messages[usize::from(self.message.0)];
            notes = vec![match &kind.text {
                Some(text) => say!("kind {}", text.content.escape_ascii()),
                None => say!("kind {}", node.whole(kind.raws[usize::from(index)])),
            }];
        }
        if node.is_optional {
            notes.push(say!("optional"));
        }
        if let Some(test) = &node.condition {
            let name = &table.node(test.node).name;
            let sign = test.comparison.sign();
            notes.push(say!("if {name} {sign} {}", test.value));
        }
        self.rows.push(LayoutRow {
            path: path.to_owned(),
            type_word: table.word(id),
            bytes,
            offset: offset.and_then(|offset| usize::try_from(offset).ok()),
            note: Said::listed(notes),
        });
    }
}

fn prefix_text(prefix: Prefix) -> String {
    match prefix.bytes() {
        Some(width) => width.to_string(),
        None if prefix == Prefix::Varint => "1…10".to_owned(),
        None => "1…9".to_owned(),
    }
}

/// The size of one item: `4`, `2 + n`, `3 bits`.
fn item_bytes(table: &Table, node: &Node, lists: &[List]) -> String {
    if node.member.is_some() {
        return "n".to_owned();
    }
    if let Shape::Bits(bits) = node.shape {
        return match bits.bits {
            1 => "1 bit".to_owned(),
            bits => format!("{bits} bits"),
        };
    }
    if let Some(bytes) = node.item_bytes(lists) {
        return bytes.to_string();
    }
    match node.shape.extent().or(node.bound.as_ref()) {
        None => match node.shape {
            Shape::Coded(Coding::Varint | Coding::ZigZag) => "1…10".to_owned(),
            _ => "n".to_owned(),
        },
        Some(Extents::Fixed(bytes)) => bytes.to_string(),
        Some(Extents::Prefixed { prefix, .. }) => format!("{} + n", prefix_text(*prefix)),
        Some(Extents::Delimited(end) | Extents::RestBefore(end)) => format!("n + {}", end.len()),
        Some(Extents::Field(counter)) => format!("`{}`", table.node(*counter).name),
        Some(Extents::Rest) => "n".to_owned(),
    }
}
