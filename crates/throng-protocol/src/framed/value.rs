//! Returns fields of decoded packets.

use std::sync::Arc;

use throng_expression::Value;

use super::kinds::number_of_text;
use super::path::Step;
use super::table::{NONE, Node, Record, Repeats, Shape, Table};
use super::{Decoded, FieldPath};
use crate::fields::number::{extend_sign, read_unsigned};

/// The value at a path.
pub(super) fn value(
    table: &Table,
    packet: &[u8],
    decoded: &Decoded,
    path: &FieldPath,
) -> Option<Value> {
    if decoded.message != Some(path.message) {
        return None;
    }
    let view = View::new(table, packet, decoded);
    if path.record != NONE
        && let Some(record) = view.records.get(path.record as usize)
        && record.node == path.node
    {
        return view.found(path.record as usize, Some(path));
    }
    let (mut at, mut end) = (0, view.records.len());
    let mut found = None;
    for (index, step) in path.steps.iter().enumerate() {
        match step {
            Step::Node(node) => {
                let record = view.child(at, end, *node)?;
                found = Some(record);
                (at, end) = (record + 1, view.records[record].next as usize);
            }
            Step::Named(name) => {
                let by = table.node(view.records[found?].node).by?;
                let record = view.named(at, end, by.name, name)?;
                found = Some(record);
                (at, end) = (record + 1, view.records[record].next as usize);
            }
            Step::Item(item) => {
                let array = view.records[found?];
                let node = table.node(array.node);
                if u64::from(*item) >= array.raw {
                    return None;
                }
                if let Some(width) = node.packed_width() {
                    let is_last = index + 1 == path.steps.len();
                    return is_last.then(|| view.packed_item(node, &array, width, *item));
                }
                let mut record = at;
                for _ in 0..*item {
                    record = view.records.get(record)?.next as usize;
                }
                found = Some(record);
                (at, end) = (record + 1, view.records.get(record)?.next as usize);
            }
        }
    }
    let found = found?;
    match path.steps.last() {
        Some(Step::Item(_)) => view.found_item(found, Some(path)),
        _ => view.found(found, Some(path)),
    }
}

/// A packet and its decoded positions.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) table: &'a Table,
    pub(super) packet: &'a [u8],
    pub(super) records: &'a [Record],
    pub(super) unpacked: &'a [u8],
}

impl<'a> View<'a> {
    pub(super) fn new(table: &'a Table, packet: &'a [u8], decoded: &'a Decoded) -> View<'a> {
        View { table, packet, records: &decoded.records, unpacked: &decoded.unpacked }
    }

    /// Text, bytes, JSON or protobuf, without prefix, delimiter and padding.
    pub(super) fn content(&self, record: &Record) -> &'a [u8] {
        match self.table.node(record.node).layer {
            Some(_) => self.unpacked.get(record.content()).unwrap_or_default(),
            None => &self.packet[record.content()],
        }
    }
}

impl View<'_> {
    fn child(&self, mut at: usize, end: usize, node: u32) -> Option<usize> {
        while at < end {
            let record = self.records.get(at)?;
            if record.node == node {
                return Some(at);
            }
            at = record.next as usize;
        }
        None
    }

    /// The first item with this name, ignoring case.
    fn named(&self, mut at: usize, end: usize, node: u32, name: &str) -> Option<usize> {
        while at < end {
            let next = self.records.get(at)?.next as usize;
            let found = self.child(at + 1, next, node).map(|it| self.content(&self.records[it]));
            if found.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes())) {
                return Some(at);
            }
            at = next;
        }
        None
    }

    /// What the item with this name correlates, in a list that is the last thing that was read.
    pub(super) fn carried(&self, list: usize, name: &str) -> Option<u64> {
        let by = self.table.node(self.records.get(list)?.node).by?;
        let item = self.named(list + 1, self.records.len(), by.name, name)?;
        let end = self.records[item].next as usize;
        let value = self.child(item + 1, end, by.value)?;
        Some(number_of_text(self.content(&self.records[value])))
    }

    /// The value at a path inside a record, or all of it.
    fn found(&self, index: usize, path: Option<&FieldPath>) -> Option<Value> {
        let node = self.table.node(self.records[index].node);
        match node.repeat {
            Repeats::Once => self.found_item(index, path),
            _ => Some(self.all_items(index)),
        }
    }

    fn found_item(&self, index: usize, path: Option<&FieldPath>) -> Option<Value> {
        let record = &self.records[index];
        let node = self.table.node(record.node);
        match &node.shape {
            Shape::Json(_) => {
                let (format, text) = (self.table.format(node), self.content(record));
                let steps = path.map_or(&[][..], |path| &path.inner);
                format.value(&text[format.find(text, steps)?])
            }
            Shape::Proto(message, _) => {
                let (schema, bytes) = (&self.table.schema, self.content(record));
                match path.and_then(|path| path.proto.as_deref()) {
                    Some(path) => schema.value(bytes, path).ok().flatten(),
                    None => schema.message_value(*message, bytes).ok(),
                }
            }
            _ => Some(self.item(index)),
        }
    }

    /// All items of a repeated field.
    pub(super) fn all_items(&self, index: usize) -> Value {
        let array = &self.records[index];
        let node = self.table.node(array.node);
        if let Some(width) = node.packed_width() {
            let items =
                (0..array.raw as u32).map(|item| self.packed_item(node, array, width, item));
            return items.collect::<Vec<Value>>().into();
        }
        let mut items = Vec::new();
        let mut at = index + 1;
        while at < array.next as usize {
            items.push(self.item(at));
            at = self.records[at].next as usize;
        }
        items.into()
    }

    pub(super) fn packed_item(&self, node: &Node, array: &Record, width: u8, item: u32) -> Value {
        let width = usize::from(width);
        let first = array.end as usize - array.raw as usize * width;
        let at = first + item as usize * width;
        let raw = read_unsigned(&self.packet[at..at + width], node.is_little);
        match node.shape {
            Shape::Signed(width) => number(node, extend_sign(raw, width)),
            _ => number(node, raw),
        }
    }

    /// The value of one record that is not a list.
    pub(super) fn item(&self, index: usize) -> Value {
        let record = &self.records[index];
        let node = self.table.node(record.node);
        match &node.shape {
            Shape::Text(_) | Shape::Bytes(_) if node.member.is_some() => {
                let format = self.table.format(node);
                format.content(node.form(format), self.content(record)).unwrap_or_default()
            }
            Shape::Text(_) => {
                let bytes = self.content(record);
                match std::str::from_utf8(bytes) {
                    Ok(text) => Value::from(text),
                    Err(_) => Value::from(bytes),
                }
            }
            Shape::Bytes(_) => Value::from(self.content(record)),
            Shape::Json(_) | Shape::Proto(..) => self.found_item(index, None).unwrap_or_default(),
            Shape::List(_) | Shape::Body => self.fields(index),
            _ => number(node, record.raw),
        }
    }

    fn fields(&self, index: usize) -> Value {
        let mut entries: Vec<(Arc<str>, Value)> = Vec::new();
        let mut at = index + 1;
        while at < self.records[index].next as usize {
            let record = &self.records[at];
            let name = Arc::from(&*self.table.node(record.node).name);
            entries.push((name, self.found(at, None).unwrap_or_default()));
            at = record.next as usize;
        }
        entries.into()
    }
}

/// The value of a number field.
pub(super) fn number(node: &Node, raw: u64) -> Value {
    match &node.shape {
        shape if shape.is_signed() => Value::Int(raw as i64),
        Shape::Float32 => Value::Float(f64::from(f32::from_bits(raw as u32))),
        Shape::Float64 => Value::Float(f64::from_bits(raw)),
        Shape::Bool => Value::Bool(raw == 1),
        _ => Value::from(raw),
    }
}
