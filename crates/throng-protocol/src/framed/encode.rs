//! Writes packets: constant runs from the template, values as their fields require them, and what
//! depends on them (counts, length, checksums) once it is known.

use std::sync::Arc;

use memchr::memmem;
use throng_expression::Value;

use throng_base::Said;

use super::EncodeError;
use super::checksum::checksum;
use super::declaration::{Format, Prefix};
use super::decode::ITEMS_MAX;
use super::kinds::write_correlation;
use super::notation::Form;
use super::table::{Base, Extents, Frame, Job, MARKS_MAX, NONE, Node, Repeats, Shape, Table, Test};
use crate::fields::coerce;
use crate::fields::number::{
    Varint, extend_sign, put_bits, put_unsigned, read_bits, read_unsigned, write_unsigned,
};
use crate::protobuf;

/// The source of leaf values: a value, or text that it appends.
pub(super) type Leaves<'a, E> = &'a mut dyn FnMut(u16, &mut Vec<u8>) -> Result<Option<Value>, E>;

/// Most bytes that a number of variable size needs to include its own size.
const OWN_BYTES_MAX: u64 = 32;

/// One operation of a template.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// A run of the template's constant bytes.
    Bytes {
        from: u32,
        until: u32,
    },
    Field(u32, Plan),
}

/// The source of a field's value.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    /// Derived from the declaration and the rest of the packet.
    Auto,
    /// Not given: its condition should be false.
    Missing,
    Leaf(u16),
    Literal(Value),
    Fields(Box<[Op]>),
    Items(Box<[Plan]>),
    Json(Box<[Piece]>),
    Proto(Box<protobuf::Template>),
}

/// A piece of JSON, or of another document.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Bytes { from: u32, until: u32 },
    Leaf(u16),
}

/// Where something was written: offsets from the first byte of the packet.
#[derive(Clone, Copy, Debug)]
struct Mark {
    start: u32,
    end: u32,
    /// Number of items of a repeated field.
    count: u32,
}

const ABSENT: Mark = Mark { start: NONE, end: NONE, count: 0 };

/// State of the list that is being written.
struct Scope {
    list: u32,
    /// The offset of its first byte.
    begin: usize,
    /// The offset of the current group of bits.
    group: usize,
    /// An optional field that is missing: nothing can follow it.
    absent: u32,
    marks: [Mark; MARKS_MAX],
}

#[derive(Clone, Copy)]
enum Source<'a> {
    Plan(&'a Plan),
    Value(&'a Value),
    Missing,
}

enum Members<'a> {
    Ops(&'a [Op]),
    Map(&'a [(Arc<str>, Value)]),
    /// Defaults only.
    None,
}

type Write<E, T = ()> = Result<T, EncodeError<E>>;

pub(super) struct Encoder<'a, E> {
    table: &'a Table,
    /// The constant bytes of the template.
    bytes: &'a [u8],
    leaf: Leaves<'a, E>,
    out: &'a mut Vec<u8>,
    /// Start of the packet in `out`.
    begin: usize,
    message: u16,
    correlation: u64,
    packet: [Mark; MARKS_MAX],
}

impl<'a, E> Encoder<'a, E> {
    pub(super) fn new(
        table: &'a Table,
        bytes: &'a [u8],
        message: u16,
        correlation: u64,
        leaf: Leaves<'a, E>,
        out: &'a mut Vec<u8>,
    ) -> Encoder<'a, E> {
        let begin = out.len();
        let packet = [ABSENT; MARKS_MAX];
        Encoder { table, bytes, leaf, out, begin, message, correlation, packet }
    }

    /// Appends a whole packet.
    pub(super) fn packet(&mut self, ops: &[Op]) -> Write<E> {
        self.list(0, &Members::Ops(ops))?;
        let bytes = self.at();
        let table = self.table;
        match &table.frame {
            Frame::Delimited { bytes: delimiter, .. } => {
                self.out.extend_from_slice(delimiter);
                if memmem::find(&self.out[self.begin..], delimiter) != Some(bytes) {
                    let reason = say!("it contains the packet delimiter");
                    return Err(self.refuse(NONE, reason));
                }
            }
            Frame::Fixed(fixed) if bytes != *fixed => {
                let reason = say!("the packet has {bytes} bytes, but `fixed` is {fixed}");
                return Err(self.refuse(NONE, reason));
            }
            _ => {}
        }
        if bytes > table.packet_bytes_max {
            let most = table.packet_bytes_max;
            let reason = say!("the packet has {bytes} bytes; the maximum is {most}");
            return Err(self.refuse(NONE, reason));
        }
        Ok(())
    }

    /// Appends one field with all that belongs to it; its condition is ignored.
    pub(super) fn alone(&mut self, id: u32, plan: &Plan) -> Write<E> {
        let mut scope = self.scope(NONE);
        if let Shape::Bits(field) = self.table.node(id).shape
            && field.first > 0
        {
            // Its group starts with another field.
            let length = self.out.len() + field.group_bytes as usize;
            self.out.resize(length, 0);
        }
        self.field_value(id, self.table.node(id), Source::Plan(plan), &mut scope)
    }

    /// The position of the correlation in the packet written last.
    pub(super) fn correlation_at(&self) -> Option<usize> {
        let node = self.table.node(self.table.correlator?);
        let mark = self.packet[usize::from(node.mark?)];
        (mark.start != NONE).then_some(mark.start as usize)
    }

    fn at(&self) -> usize {
        self.out.len() - self.begin
    }

    fn scope(&self, list: u32) -> Scope {
        let begin = self.at();
        Scope { list, begin, group: begin, absent: NONE, marks: [ABSENT; MARKS_MAX] }
    }

    #[cold]
    fn refuse(&self, id: u32, reason: Said) -> EncodeError<E> {
        EncodeError::Value { field: self.table.path(id), reason }
    }

    fn list(&mut self, list: u32, members: &Members<'_>) -> Write<E> {
        let mut scope = self.scope(list);
        let table = self.table;
        match members {
            Members::Ops(ops) => {
                for op in *ops {
                    match op {
                        Op::Bytes { from, until } => {
                            let run = &self.bytes[*from as usize..*until as usize];
                            self.out.extend_from_slice(run);
                        }
                        Op::Field(id, plan) => {
                            self.field(*id, Source::Plan(plan), &mut scope)?;
                        }
                    }
                }
            }
            Members::Map(entries) => {
                self.names_are_known(list, entries)?;
                for (id, node) in table.members(list) {
                    let entry = entries.iter().rev().find(|(name, _)| **name == *node.name);
                    let source = match entry {
                        Some((_, value)) => Source::Value(value),
                        None => Source::Missing,
                    };
                    self.field(id, source, &mut scope)?;
                }
            }
            Members::None => {
                for id in table.list(list).nodes.clone() {
                    self.field(id, Source::Missing, &mut scope)?;
                }
            }
        }
        self.finish(&mut scope)
    }

    /// A value that gives a structure may only contain fields that can be given.
    fn names_are_known(&self, list: u32, entries: &[(Arc<str>, Value)]) -> Write<E> {
        for (name, _) in entries {
            let Some(id) = self.table.find(list, name) else {
                let reason = say!("there is no field `{name}` in it");
                let parent = self.table.members(list).next().map_or(NONE, |(_, node)| node.parent);
                return Err(self.refuse(parent, reason));
            };
            if self.table.node(id).is_automatic() {
                let reason = say!("it is set automatically");
                return Err(self.refuse(id, reason));
            }
        }
        Ok(())
    }

    fn field(&mut self, id: u32, source: Source<'_>, scope: &mut Scope) -> Write<E> {
        let node = self.table.node(id);
        if let Some(test) = &node.condition
            && !self.holds(test, source, scope)
        {
            return Ok(());
        }
        if node.is_optional {
            let is_missing = matches!(source, Source::Missing | Source::Plan(Plan::Missing));
            if is_missing && node.default.is_none() && !node.is_automatic() {
                scope.absent = id;
                return Ok(());
            }
            if scope.absent != NONE {
                let name = &self.table.node(scope.absent).name;
                return Err(self.refuse(id, say!("it requires `{name}`, which is missing")));
            }
        }
        let start = self.at();
        self.field_value(id, node, source, scope)?;
        if let Some(mark) = node.mark {
            let (start, end) = match node.shape {
                Shape::Bits(field) => (
                    scope.group + (field.first / 8) as usize,
                    scope.group + (field.first + field.bits).div_ceil(8) as usize,
                ),
                _ => (start, self.at()),
            };
            let at = usize::from(mark);
            let (start, end) = (start as u32, end as u32);
            let mark = Mark { start, end, count: scope.marks[at].count };
            scope.marks[at] = mark;
            if scope.list == 0 {
                self.packet[at] = mark;
            }
        }
        Ok(())
    }

    fn field_value(
        &mut self,
        id: u32,
        node: &Node,
        source: Source<'_>,
        scope: &mut Scope,
    ) -> Write<E> {
        if let Shape::Bits(field) = node.shape
            && field.first == 0
        {
            scope.group = self.at();
            let length = self.out.len() + field.group_bytes as usize;
            self.out.resize(length, 0);
        }
        if let Some(constant) = &node.constant {
            match node.shape {
                Shape::Bits(_) => self.write_raw(node, constant.raw, scope.group),
                _ => self.out.extend_from_slice(&constant.written),
            }
            return Ok(());
        }
        match &node.job {
            Job::Value => match node.repeat {
                Repeats::Once => self.item(id, node, source, scope.group),
                _ => self.items(id, node, source, scope),
            },
            // Derived values are written when the rest is complete.
            Job::Length | Job::Computed | Job::Checksum { .. } => {
                self.write_raw(node, 0, scope.group);
                Ok(())
            }
            Job::Kind(_) if matches!(source, Source::Plan(Plan::Literal(_) | Plan::Leaf(_))) => {
                self.item(id, node, source, scope.group)
            }
            Job::Kind(index) => {
                let kind = &self.table.messages[usize::from(self.message)];
                match &kind.text {
                    Some(text) => self.out.extend_from_slice(&text.written),
                    None => self.write_raw(node, kind.raws[usize::from(*index)], scope.group),
                }
                Ok(())
            }
            Job::Correlation if !matches!(source, Source::Missing | Source::Plan(Plan::Auto)) => {
                self.item(id, node, source, scope.group)
            }
            Job::Correlation => match &node.shape {
                Shape::Text(extent) | Shape::Bytes(extent) => {
                    let number = self.correlation;
                    self.sized(id, node, extent, |encoder| {
                        let begin = encoder.out.len();
                        let is_text = matches!(node.shape, Shape::Text(_));
                        write_correlation(number, is_text, encoder.out);
                        encoder.complete_text(id, node, begin)
                    })
                }
                _ => {
                    self.fits(id, node, self.correlation)?;
                    self.write_raw(node, self.correlation, scope.group);
                    Ok(())
                }
            },
            Job::Body => self.body(id, source),
        }
    }

    fn body(&mut self, id: u32, source: Source<'_>) -> Write<E> {
        let list = self.table.messages[usize::from(self.message)].list;
        self.structure(id, list, source)?;
        if let (Frame::Fixed(bytes), true) = (&self.table.frame, self.table.is_padded)
            && !self.table.list(list).is_open
        {
            let until = bytes.saturating_sub(self.table.trailer);
            if self.at() < until {
                self.out.resize(self.begin + until, 0);
            }
        }
        Ok(())
    }

    fn holds(&self, test: &Test, source: Source<'_>, scope: &Scope) -> bool {
        let node = self.table.node(test.node);
        if node.job == Job::Computed {
            // Values counted from later fields are not known yet.
            return !matches!(source, Source::Missing | Source::Plan(Plan::Missing));
        }
        let marks = if test.is_of_packet { &self.packet } else { &scope.marks };
        let mark = node.mark.map_or(ABSENT, |mark| marks[usize::from(mark)]);
        if mark.start == NONE {
            return false;
        }
        let bytes = &self.out[self.begin + mark.start as usize..self.begin + mark.end as usize];
        let raw = match node.shape {
            Shape::Signed(width) => extend_sign(read_unsigned(bytes, node.is_little), width),
            Shape::Coded(ref coding) => match coding.read(bytes) {
                Varint::Complete { raw, .. } => raw,
                Varint::Short | Varint::Long => 0,
            },
            Shape::Bits(field) => read_bits(bytes, field.first % 8, field.bits),
            _ => read_unsigned(bytes, node.is_little),
        };
        test.holds(node.whole(raw))
    }

    /// Appends a number that fits; bits go into their group.
    #[inline]
    fn write_raw(&mut self, node: &Node, raw: u64, group: usize) {
        match &node.shape {
            shape if node.member.is_some() => {
                let format = self.table.format(node);
                match shape {
                    Shape::Float32 => format.write_single(f32::from_bits(raw as u32), self.out),
                    _ => format.write(&super::value::number(node, raw), self.out),
                }
            }
            Shape::Bits(field) => {
                put_bits(raw, field.first, field.bits, &mut self.out[self.begin + group..]);
            }
            _ => node.write_number(raw, self.out),
        }
    }

    /// Checks that a number which the protocol itself sets fits its field.
    #[inline]
    fn fits(&self, id: u32, node: &Node, value: u64) -> Write<E> {
        if let Shape::Unsigned(width) = node.shape
            && value <= u64::MAX >> (64 - 8 * u32::from(width))
        {
            return Ok(());
        }
        let (low, high) = node.range();
        match coerce::within(i128::from(value), low, high) {
            Ok(_) => Ok(()),
            Err(reason) => Err(self.refuse(id, reason)),
        }
    }

    fn items(&mut self, id: u32, node: &Node, source: Source<'_>, scope: &mut Scope) -> Write<E> {
        let got;
        let source = match source {
            Source::Plan(Plan::Leaf(leaf)) => {
                got = self.leaf_value(*leaf)?;
                Source::Value(&got)
            }
            Source::Plan(Plan::Literal(value)) => Source::Value(value),
            other => other,
        };
        let source = match (source, &node.default) {
            (Source::Missing | Source::Value(Value::Null), Some(default)) => Source::Value(default),
            (other, _) => other,
        };
        let count = match source {
            Source::Plan(Plan::Items(plans)) => plans.len(),
            Source::Value(Value::List(items)) => items.len(),
            Source::Value(value) if !value.is_null() => {
                let found = value.type_name();
                return Err(self.refuse(id, say!("expected a list, not {found}")));
            }
            _ => return Err(self.missing(id, node)),
        };
        let carried = node.carries.as_ref().zip(node.by).filter(|_| self.correlation > 0);
        self.count(id, node, count + usize::from(carried.is_some()), scope)?;
        let mut starts = Vec::new();
        for index in 0..count {
            if node.repeat == Repeats::Until {
                starts.push(self.out.len());
            }
            match source {
                Source::Plan(Plan::Items(plans)) => {
                    self.item(id, node, Source::Plan(&plans[index]), 0)?;
                }
                Source::Value(Value::List(items)) => {
                    self.item(id, node, Source::Value(&items[index]), 0)?;
                }
                _ => {}
            }
        }
        if let Some((name, by)) = carried {
            // Behind those that are given: the first one of a name counts.
            let of = |field: u32| Arc::from(&*self.table.node(field).name);
            let number = Value::from(self.correlation.to_string());
            let item = [(of(by.name), Value::from(&**name)), (of(by.value), number)];
            self.item(id, node, Source::Value(&Value::from(item.to_vec())), 0)?;
        }
        self.out.extend_from_slice(&node.until);
        if starts.iter().any(|start| self.out[*start..].starts_with(&node.until)) {
            return Err(
                self.refuse(id, say!("one of its items starts with the bytes that end the list"))
            );
        }
        Ok(())
    }

    /// Checks the number of items, and writes it if the declaration requires that.
    fn count(&mut self, id: u32, node: &Node, count: usize, scope: &mut Scope) -> Write<E> {
        if count as u64 > ITEMS_MAX {
            let reason = say!("there are {count} items; the maximum is {ITEMS_MAX}");
            return Err(self.refuse(id, reason));
        }
        match node.repeat {
            Repeats::Times(times) if times as usize != count => {
                let reason = say!("expected {times} items, not {count}");
                return Err(self.refuse(id, reason));
            }
            Repeats::Prefixed(prefix) => {
                let most = prefix.max();
                if count as u64 > most {
                    let reason = say!("there are {count} items; the maximum is {most}");
                    return Err(self.refuse(id, reason));
                }
                prefix.write(count as u64, node.is_little, self.out);
            }
            _ => {}
        }
        if let Some(mark) = node.mark {
            scope.marks[usize::from(mark)].count = count as u32;
        }
        Ok(())
    }

    #[cold]
    fn missing(&self, id: u32, node: &Node) -> EncodeError<E> {
        // The condition may belong to an enclosing structure.
        let parents = std::iter::successors(Some(node), |node| {
            (node.parent != NONE).then(|| self.table.node(node.parent))
        });
        let reason = match parents.into_iter().find_map(|node| node.condition.as_ref()) {
            Some(test) => {
                let name = &self.table.node(test.node).name;
                say!("it is missing, but the value of `{name}` requires it")
            }
            None => say!("it has no value"),
        };
        self.refuse(id, reason)
    }

    /// One value of a field: all of it, or an item.
    fn item(&mut self, id: u32, node: &Node, source: Source<'_>, group: usize) -> Write<E> {
        match &node.shape {
            Shape::List(list) => match &node.bound {
                None => self.structure(id, *list, source),
                Some(bound) => {
                    self.sized(id, node, bound, |encoder| encoder.structure(id, *list, source))
                }
            },
            Shape::Text(extent)
            | Shape::Bytes(extent)
            | Shape::Json(extent)
            | Shape::Proto(_, extent) => self.content(id, node, extent, source),
            _ => {
                let got;
                let value = match source {
                    Source::Value(value) | Source::Plan(Plan::Literal(value)) => value,
                    Source::Plan(Plan::Leaf(leaf)) => {
                        got = self.leaf_value(*leaf)?;
                        &got
                    }
                    Source::Missing | Source::Plan(_) => &Value::Null,
                };
                let value = match (value, &node.default) {
                    (Value::Null, Some(default)) => default,
                    (Value::Null, None) => return Err(self.missing(id, node)),
                    (value, _) => value,
                };
                self.scalar(id, node, value, group)
            }
        }
    }

    fn scalar(&mut self, id: u32, node: &Node, value: &Value, group: usize) -> Write<E> {
        if let (Shape::Unsigned(width), Value::Int(int @ 0..)) = (&node.shape, value)
            && node.member.is_none()
            && *int as u64 <= u64::MAX >> (64 - 8 * u32::from(*width))
        {
            // The common case needs no further checks.
            write_unsigned(*int as u64, *width, node.is_little, self.out);
            return Ok(());
        }
        let raw = match raw_of(node, value) {
            Ok(raw) => raw,
            Err(reason) => {
                let word = self.table.word(id);
                return Err(self.refuse(id, say!("its type is `{word}`: {reason}")));
            }
        };
        self.write_raw(node, raw, group);
        Ok(())
    }

    fn structure(&mut self, id: u32, list: u32, source: Source<'_>) -> Write<E> {
        match source {
            Source::Plan(Plan::Fields(ops)) => self.list(list, &Members::Ops(ops)),
            Source::Plan(Plan::Leaf(leaf)) => {
                let value = self.leaf_value(*leaf)?;
                self.structure(id, list, Source::Value(&value))
            }
            Source::Value(Value::Map(entries))
            | Source::Plan(Plan::Literal(Value::Map(entries))) => {
                self.list(list, &Members::Map(entries))
            }
            Source::Value(Value::Null) | Source::Missing | Source::Plan(Plan::Missing) => {
                self.list(list, &Members::None)
            }
            Source::Value(other) | Source::Plan(Plan::Literal(other)) => {
                let found = other.type_name();
                Err(self.refuse(id, say!("expected a map of fields, not {found}")))
            }
            Source::Plan(_) => self.list(list, &Members::None),
        }
    }

    /// The value of a leaf; text that it appends is taken back.
    fn leaf_value(&mut self, leaf: u16) -> Write<E, Value> {
        let start = self.out.len();
        let got = (self.leaf)(leaf, self.out).map_err(EncodeError::Leaf)?;
        if let Some(value) = got {
            self.out.truncate(start);
            return Ok(value);
        }
        let text = self.out.get(start..).unwrap_or_default();
        let value = match std::str::from_utf8(text) {
            Ok(text) => Value::from(text),
            Err(_) => Value::from(text),
        };
        self.out.truncate(start);
        Ok(value)
    }

    /// Text, bytes, JSON and protobuf, with prefix or delimiter.
    fn content(&mut self, id: u32, node: &Node, extent: &Extents, source: Source<'_>) -> Write<E> {
        self.sized(id, node, extent, |encoder| {
            let begin = encoder.out.len();
            encoder.bare_content(id, node, source)?;
            encoder.complete_text(id, node, begin)?;
            let packed = node.layer.map_or(Ok(()), |layer| layer.pack(begin, encoder.out));
            packed.map_err(|reason| encoder.refuse(id, reason))
        })
    }

    /// Text and bytes in a document are written as its format has them.
    fn complete_text(&mut self, id: u32, node: &Node, begin: usize) -> Write<E> {
        if node.member.is_none() || !matches!(node.shape, Shape::Text(_) | Shape::Bytes(_)) {
            return Ok(());
        }
        let format = self.table.format(node);
        let enclosed = format.enclose(node.form(format), begin, self.out);
        enclosed.map_err(|reason| self.refuse(id, reason))
    }

    /// Writes content with its prefix, delimiter or padding.
    fn sized(
        &mut self,
        id: u32,
        node: &Node,
        extent: &Extents,
        write: impl FnOnce(&mut Self) -> Write<E>,
    ) -> Write<E> {
        let start = self.out.len();
        let fixed_prefix = match extent {
            Extents::Prefixed { prefix, .. } => prefix.bytes().map_or(0, usize::from),
            _ => 0,
        };
        self.out.resize(start + fixed_prefix, 0);
        let begin = self.out.len();
        write(self)?;
        let length = self.out.len() - begin;
        match extent {
            Extents::Fixed(bytes) => self.pad(id, node, length, *bytes as usize)?,
            Extents::Prefixed { prefix, bytes_max } => {
                if length as u64 > *bytes_max {
                    let reason = say!("it has {length} bytes; the maximum is {bytes_max}");
                    return Err(self.refuse(id, reason));
                }
                self.put_prefix(*prefix, length, node.is_little, start, begin);
            }
            Extents::Delimited(delimiter) => {
                self.out.extend_from_slice(delimiter);
                if memmem::find(&self.out[begin..], delimiter) != Some(length) {
                    let reason = say!("it contains its own delimiter");
                    return Err(self.refuse(id, reason));
                }
            }
            Extents::RestBefore(last) => self.out.extend_from_slice(last),
            Extents::Field(_) | Extents::Rest => {}
        }
        Ok(())
    }

    /// Inserts the size of what was written after `begin` before it; a prefix of fixed size already
    /// has its space at `start`.
    fn put_prefix(
        &mut self,
        prefix: Prefix,
        length: usize,
        is_little: bool,
        start: usize,
        begin: usize,
    ) {
        match prefix {
            Prefix::Unsigned(_) => {
                put_unsigned(length as u64, is_little, &mut self.out[start..begin]);
            }
            Prefix::Varint | Prefix::Ber | Prefix::Lenenc => {
                let end = self.out.len();
                prefix.coding().write(length as u64, self.out);
                let width = self.out.len() - end;
                self.out[begin..].rotate_right(width);
            }
        }
    }

    fn pad(&mut self, id: u32, node: &Node, length: usize, bytes: usize) -> Write<E> {
        let is_padded = node.is_padded();
        if length > bytes || length < bytes && !is_padded {
            let reason = match is_padded {
                true => say!("it has {length} bytes; the maximum is {bytes}"),
                false => say!("it has {length} bytes, but {bytes} are required"),
            };
            return Err(self.refuse(id, reason));
        }
        let end = self.out.len() + bytes - length;
        self.out.resize(end, 0);
        Ok(())
    }

    fn bare_content(&mut self, id: u32, node: &Node, source: Source<'_>) -> Write<E> {
        let begin = self.out.len();
        match source {
            Source::Plan(Plan::Leaf(leaf)) => {
                match (self.leaf)(*leaf, self.out).map_err(EncodeError::Leaf)? {
                    Some(value) => {
                        self.out.truncate(begin);
                        self.given_content(id, node, &value)
                    }
                    None => match node.shape {
                        Shape::Bytes(_) => Ok(()),
                        Shape::Text(_) => match std::str::from_utf8(&self.out[begin..]) {
                            Ok(_) => Ok(()),
                            Err(_) => {
                                let reason = say!("expected text, but these bytes are not UTF-8");
                                Err(self.refuse(id, reason.to_owned()))
                            }
                        },
                        _ => {
                            let text = String::from_utf8_lossy(&self.out[begin..]).into_owned();
                            self.out.truncate(begin);
                            self.given_content(id, node, &Value::from(text))
                        }
                    },
                }
            }
            Source::Plan(Plan::Json(pieces)) => {
                let format = self.table.format(node);
                pieces.iter().try_for_each(|piece| self.piece(format, piece))
            }
            Source::Plan(Plan::Proto(template)) => {
                let written = self.table.schema.encode(template, self.leaf, self.out);
                written.map_err(|error| match error {
                    EncodeError::Value { field, reason } => self.refuse_within(id, &field, reason),
                    leaf => leaf,
                })
            }
            Source::Value(value) | Source::Plan(Plan::Literal(value)) => {
                self.given_content(id, node, value)
            }
            Source::Missing | Source::Plan(_) => match &node.default {
                Some(default) => self.given_content(id, node, default),
                None => Err(self.missing(id, node)),
            },
        }
    }

    fn given_content(&mut self, id: u32, node: &Node, value: &Value) -> Write<E> {
        let value = match (value, &node.default, &node.shape) {
            (Value::Null, Some(default), _) => default,
            (Value::Null, None, Shape::Json(_)) => value,
            (Value::Null, None, _) => return Err(self.missing(id, node)),
            _ => value,
        };
        let written = match &node.shape {
            Shape::Text(_) => coerce::text(value, self.out),
            Shape::Bytes(_) => coerce::bytes(value, self.out),
            Shape::Proto(message, _) => {
                let written = self.table.schema.write(*message, value, self.out);
                return written
                    .map_err(|wrong| self.refuse_within(id, &wrong.path.join("."), wrong.reason));
            }
            _ => {
                let (begin, format) = (self.out.len(), self.table.format(node));
                format.write_any(value, self.out);
                let checked = format.check(&self.out[begin..]);
                checked.map_err(|_| say!("its lists and maps are nested too deeply"))
            }
        };
        written.map_err(|reason| self.refuse(id, reason))
    }

    /// The same for a field inside a protobuf message.
    #[cold]
    fn refuse_within(&self, id: u32, inner: &str, reason: Said) -> EncodeError<E> {
        let outer = self.table.path(id);
        let field = if inner.is_empty() { outer } else { format!("{outer}.{inner}") };
        EncodeError::Value { field, reason }
    }

    fn piece(&mut self, format: Format, piece: &Piece) -> Write<E> {
        match piece {
            Piece::Bytes { from, until } => {
                self.out.extend_from_slice(&self.bytes[*from as usize..*until as usize]);
            }
            Piece::Leaf(leaf) => {
                let begin = self.out.len();
                match (self.leaf)(*leaf, self.out).map_err(EncodeError::Leaf)? {
                    Some(value) => {
                        self.out.truncate(begin);
                        format.write(&value, self.out);
                    }
                    None => format.put(Form::Text, begin, self.out),
                }
            }
        }
        Ok(())
    }

    /// Writes the values that depend on the fields of a list.
    fn finish(&mut self, scope: &mut Scope) -> Write<E> {
        let table = self.table;
        let list = table.list(scope.list);
        for (index, (counter, counted)) in list.computed.iter().enumerate() {
            let value = self.computed(*counted, scope);
            let mut before = list.computed[..index].iter().filter(|(other, _)| other == counter);
            match before.next() {
                Some((_, first)) if self.computed(*first, scope) != value => {
                    let (name, first) = (&table.node(*counter).name, table.path(*first));
                    let reason = say!(
                        "`{name}` counts both this field and `{first}`, but their sizes differ"
                    );
                    return Err(self.refuse(*counted, reason));
                }
                Some(_) => {}
                None => self.patch(*counter, value, scope)?,
            }
        }
        if scope.list == 0 {
            self.length(scope)?;
        }
        for id in &list.checksums {
            self.checksum(*id, scope)?;
        }
        if scope.list == 0 {
            self.packet = scope.marks;
        }
        Ok(())
    }

    /// The number of items or bytes of a field.
    fn computed(&self, counted: u32, scope: &Scope) -> u64 {
        let node = self.table.node(counted);
        let mark = node.mark.map_or(ABSENT, |mark| scope.marks[usize::from(mark)]);
        match (mark.start, node.repeat) {
            (NONE, _) => 0,
            (_, Repeats::Once) => u64::from(mark.end - mark.start),
            _ => u64::from(mark.count),
        }
    }

    /// Fills in a number that was left open.
    fn patch(&mut self, id: u32, value: u64, scope: &mut Scope) -> Write<E> {
        let node = self.table.node(id);
        let mark = node.mark.map_or(ABSENT, |mark| scope.marks[usize::from(mark)]);
        if mark.start == NONE {
            return match value {
                0 => Ok(()),
                _ => Err(self.refuse(
                    id,
                    say!("it is missing, but a later field takes its length or count from it"),
                )),
            };
        }
        self.fits(id, node, value)?;
        let start = self.begin + mark.start as usize;
        let end = self.begin + mark.end as usize;
        match node.shape {
            Shape::Bits(field) => {
                put_bits(value, field.first % 8, field.bits, &mut self.out[start..end]);
            }
            ref shape if shape.is_of_variable_size() => {
                let behind = self.out.len();
                self.write_raw(node, value, 0);
                let length = self.out.len() - behind;
                self.out[start..].rotate_right(length);
                self.out.drain(start + length..end + length);
                shift(&mut scope.marks, mark.start, length as u32 - (mark.end - mark.start));
            }
            _ => put_unsigned(value, node.is_little, &mut self.out[start..end]),
        }
        Ok(())
    }

    fn length(&mut self, scope: &mut Scope) -> Write<E> {
        let table = self.table;
        let Some(length) = &table.length else { return Ok(()) };
        let node = table.node(length.node);
        let mark = node.mark.map_or(ABSENT, |mark| scope.marks[usize::from(mark)]);
        let total = self.at() as u64;
        let counted = match length.base {
            Base::Behind(bytes) => total.saturating_sub(u64::from(mark.end) + bytes as u64),
            Base::Packet if node.shape.is_of_variable_size() => {
                // It includes its own size, and is encoded as a 0 until now.
                let others = total - u64::from(mark.end - mark.start);
                let sizes = (1..=OWN_BYTES_MAX).map(|own| (own, others + own));
                let mut fitting = sizes.filter(|(own, all)| {
                    let behind = self.out.len();
                    self.write_raw(node, all.saturating_add_signed(length.plus), 0);
                    let bytes = self.out.len() - behind;
                    self.out.truncate(behind);
                    bytes as u64 == *own
                });
                fitting.next().map_or(total, |(_, all)| all)
            }
            Base::Packet => total,
        };
        let Some(value) = counted.checked_add_signed(length.plus) else {
            let least = length.plus.unsigned_abs();
            let reason = say!("it counts {counted} bytes, but at least {least} are required");
            return Err(self.refuse(length.node, reason));
        };
        if value > length.value_max {
            let most = length.value_max;
            let reason = say!("the length would be {value}; the maximum is {most}");
            return Err(self.refuse(length.node, reason));
        }
        self.patch(length.node, value, scope)
    }

    fn checksum(&mut self, id: u32, scope: &mut Scope) -> Write<E> {
        let table = self.table;
        let node = table.node(id);
        let (Job::Checksum { algorithm, over }, Shape::Unsigned(width)) = (&node.job, &node.shape)
        else {
            return Ok(());
        };
        let mark_of =
            |id: u32| table.node(id).mark.map_or(ABSENT, |mark| scope.marks[usize::from(mark)]);
        let written = &self.out[self.begin..];
        let mark = mark_of(id);
        if mark.start == NONE {
            return Ok(());
        }
        let sum = match over.is_empty() {
            true => {
                let all = &written[scope.begin..mark.start as usize];
                checksum(*algorithm, *width, std::iter::once(all))
            }
            false => {
                let marks = over.iter().map(|id| mark_of(*id)).filter(|mark| mark.start != NONE);
                let parts = marks.map(|mark| &written[mark.start as usize..mark.end as usize]);
                checksum(*algorithm, *width, parts)
            }
        };
        self.patch(id, sum, scope)
    }
}

/// Moves the marks after `start` by this many bytes.
fn shift(marks: &mut [Mark; MARKS_MAX], start: u32, bytes: u32) {
    for mark in marks.iter_mut().filter(|mark| mark.start != NONE) {
        if mark.start > start {
            mark.start += bytes;
        }
        if mark.end > start {
            mark.end += bytes;
        }
    }
}

/// The raw value of a number field.
pub(super) fn raw_of(node: &Node, value: &Value) -> Result<u64, Said> {
    match node.shape {
        Shape::Float32 => {
            let number = coerce::float(value, f64::from(f32::MAX))?;
            Ok(u64::from((number as f32).to_bits()))
        }
        Shape::Float64 => Ok(coerce::float(value, f64::MAX)?.to_bits()),
        Shape::Bool => Ok(u64::from(coerce::bool(value)?)),
        _ => {
            let named = |text: &str| {
                let found = node.labels.iter().find(|(name, _)| **name == *text);
                found.map(|(_, number)| *number)
            };
            let (low, high) = node.range();
            Ok(coerce::within(coerce::whole(value, &named)?, low, high)? as u64)
        }
    }
}
