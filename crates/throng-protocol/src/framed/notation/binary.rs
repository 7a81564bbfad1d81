//! Reads and writes CBOR and MessagePack: both are items that begin with a head.

use std::sync::Arc;

use throng_base::Said;
use throng_expression::Value;

use super::heads::{self, Flaw, Head, write_cbor, write_message_pack};
use super::{DEPTH_MAX, Inside, PartKind, Syntax};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Binary {
    Cbor,
    MessagePack,
}

/// An item: what it is, where its head begins behind tags, and what is behind the head.
type Item = (Head, usize, usize);

impl Binary {
    fn head(self, bytes: &[u8], at: usize) -> Result<(Head, usize), Flaw> {
        let rest = bytes.get(at..).unwrap_or_default();
        let (head, used) = match self {
            Binary::Cbor => heads::cbor(rest)?,
            Binary::MessagePack => heads::message_pack(rest)?,
        };
        Ok((head, at + used))
    }

    /// The item at `at`. What tags say of it is not needed.
    fn item(self, bytes: &[u8], mut at: usize) -> Result<Item, usize> {
        loop {
            match self.head(bytes, at).map_err(|_| at)? {
                (Head::Tag, behind) => at = behind,
                (head, behind) => return Ok((head, at, behind)),
            }
        }
    }

    fn part(self, part: &[u8]) -> Option<(Head, usize)> {
        let (head, _, behind) = self.item(part, 0).ok()?;
        Some((head, behind))
    }

    /// Behind the pieces of a text, or of bytes.
    fn pieces(
        self,
        bytes: &[u8],
        mut at: usize,
        is_text: bool,
        mut piece: impl FnMut(&[u8]),
    ) -> Result<usize, usize> {
        loop {
            let (head, behind) = self.head(bytes, at).map_err(|_| at)?;
            let length = match head {
                Head::Break => return Ok(behind),
                Head::Text(Some(length)) if is_text => length,
                Head::Bytes(Some(length)) if !is_text => length,
                _ => return Err(at),
            };
            let end = end_of(bytes, behind, length).ok_or(at)?;
            let content = &bytes[behind..end];
            if is_text && std::str::from_utf8(content).is_err() {
                return Err(at);
            }
            piece(content);
            at = end;
        }
    }

    /// As many bytes as are needed to know more of a document that is broken there, if it can still
    /// become one.
    pub(super) fn needs(self, bytes: &[u8], at: usize) -> Option<usize> {
        match self.head(bytes, at) {
            Err(Flaw::Short) => Some(bytes.len() + 1),
            Ok((
                Head::Text(Some(length))
                | Head::Bytes(Some(length))
                | Head::Foreign { bytes: length, .. },
                behind,
            )) if end_of(bytes, behind, length).is_none() => {
                Some(behind.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)))
            }
            _ => None,
        }
    }

    pub(super) fn wrong(self, name: &str, bytes: &[u8], at: usize) -> Said {
        if self.needs(bytes, at).is_some() {
            return say!("the {name} data is incomplete");
        }
        match self.head(bytes, at) {
            Ok((Head::Text(Some(_)), _)) => say!("the text is not valid UTF-8"),
            Ok((Head::List(_) | Head::Map(_), _)) => {
                say!("lists and maps are nested more than {DEPTH_MAX} levels deep")
            }
            _ => say!("this is not valid {name}: {:#04x}", bytes[at.min(bytes.len() - 1)]),
        }
    }

    pub(super) fn kind(self, part: &[u8]) -> PartKind {
        match self.part(part).map(|(head, _)| head) {
            Some(Head::Null) => PartKind::Null,
            Some(Head::Bool(value)) => PartKind::Bool(value),
            Some(Head::Whole(number)) => PartKind::Whole(number),
            Some(Head::Float(number)) => PartKind::Float(number),
            Some(Head::Text(_)) => PartKind::Text,
            Some(Head::Bytes(_)) => PartKind::Bytes,
            Some(Head::Foreign { kind, .. }) => {
                PartKind::Foreign(kind, self.choose("simple value", "extension type"))
            }
            _ => PartKind::ListOrMap,
        }
    }

    /// What is in a text, or in bytes, if it is in one piece.
    pub(super) fn plain(self, part: &[u8]) -> Option<&[u8]> {
        match self.part(part)? {
            (Head::Text(Some(length)) | Head::Bytes(Some(length)), behind) => {
                part.get(behind..end_of(part, behind, length)?)
            }
            _ => None,
        }
    }

    pub(super) fn value(self, part: &[u8]) -> Option<Value> {
        Some(self.read(part, 0, DEPTH_MAX).ok()?.0)
    }

    /// The value at `at`, and what is behind it.
    fn read(self, bytes: &[u8], at: usize, depth_left: usize) -> Result<(Value, usize), usize> {
        let (head, _, behind) = self.item(bytes, at)?;
        let value = match head {
            Head::Bool(value) => Value::Bool(value),
            Head::Float(number) => Value::Float(number),
            Head::Whole(number) => match (i64::try_from(number), u64::try_from(number)) {
                (Ok(number), _) => Value::Int(number),
                (_, Ok(number)) => Value::UInt(number),
                _ => Value::Float(number as f64),
            },
            Head::Text(length) | Head::Bytes(length) => {
                let is_text = matches!(head, Head::Text(_));
                let mut all = Vec::new();
                let end = match length {
                    Some(length) => {
                        let end = end_of(bytes, behind, length).ok_or(at)?;
                        all.extend_from_slice(&bytes[behind..end]);
                        end
                    }
                    None => self.pieces(bytes, behind, is_text, |piece| all.extend(piece))?,
                };
                let value = match is_text {
                    true => Value::from(String::from_utf8(all).map_err(|_| at)?),
                    false => Value::from(all),
                };
                return Ok((value, end));
            }
            Head::List(_) => {
                let mut items: Vec<Value> = Vec::new();
                let end = self.parts(bytes, at, depth_left, |at, depth_left| {
                    let (item, end) = self.read(bytes, at, depth_left)?;
                    items.push(item);
                    Ok(end)
                })?;
                return Ok((items.into(), end));
            }
            Head::Map(_) => {
                let mut entries: Vec<(Arc<str>, Value)> = Vec::new();
                let end = self.parts(bytes, at, depth_left, |at, depth_left| {
                    let (key, at) = self.read(bytes, at, depth_left)?;
                    let (value, end) = self.read(bytes, at, depth_left)?;
                    entries.push((key.to_text(), value));
                    Ok(end)
                })?;
                return Ok((entries.into(), end));
            }
            // What only other programs know is null within other values.
            _ => return Ok((Value::Null, self.skip(bytes, at, depth_left)?)),
        };
        Ok((value, behind))
    }

    pub(super) fn write(self, value: &Value, out: &mut Vec<u8>) {
        match value {
            Value::Null => out.push(self.choose(0xf6, 0xc0)),
            Value::Bool(false) => out.push(self.choose(0xf4, 0xc2)),
            Value::Bool(true) => out.push(self.choose(0xf5, 0xc3)),
            Value::Int(number) => self.write_int(*number, out),
            Value::UInt(number) => self.write_uint(*number, out),
            Value::Float(number) => {
                out.push(self.choose(0xfb, 0xcb));
                out.extend_from_slice(&number.to_be_bytes());
            }
            Value::Text(text) => {
                self.write_length(true, text.len(), out);
                out.extend_from_slice(text.as_bytes());
            }
            Value::Bytes(bytes) => {
                self.write_length(false, bytes.len(), out);
                out.extend_from_slice(bytes);
            }
            Value::List(items) => {
                self.open(true, items.len(), out);
                items.iter().for_each(|item| self.write(item, out));
            }
            Value::Map(entries) => {
                self.open(false, entries.len(), out);
                for (key, value) in entries.iter() {
                    self.write_length(true, key.len(), out);
                    out.extend_from_slice(key.as_bytes());
                    self.write(value, out);
                }
            }
        }
    }

    fn choose<T>(self, cbor: T, message_pack: T) -> T {
        match self {
            Binary::Cbor => cbor,
            Binary::MessagePack => message_pack,
        }
    }

    fn write_uint(self, number: u64, out: &mut Vec<u8>) {
        match self {
            Binary::Cbor => write_cbor(0, number, out),
            Binary::MessagePack if number >> 32 != 0 => {
                out.push(0xcf);
                out.extend_from_slice(&number.to_be_bytes());
            }
            Binary::MessagePack => {
                let sizes = [Some(0xcc), Some(0xcd), Some(0xce)];
                write_message_pack(Some((0, 0x7f)), sizes, number, out);
            }
        }
    }

    fn write_int(self, number: i64, out: &mut Vec<u8>) {
        match (u64::try_from(number), self) {
            (Ok(number), _) => self.write_uint(number, out),
            (Err(_), Binary::Cbor) => write_cbor(1, !number as u64, out),
            (Err(_), Binary::MessagePack) => {
                let (first, width) = match number {
                    -0x20..0 => return out.push(number as u8),
                    -0x80..-0x20 => (0xd0, 1),
                    -0x8000..-0x80 => (0xd1, 2),
                    -0x8000_0000..-0x8000 => (0xd2, 4),
                    _ => (0xd3, 8),
                };
                out.push(first);
                out.extend_from_slice(&number.to_be_bytes()[8 - width..]);
            }
        }
    }

    pub(super) fn write_single(self, number: f32, out: &mut Vec<u8>) {
        out.push(self.choose(0xfa, 0xca));
        out.extend_from_slice(&number.to_be_bytes());
    }

    /// The head of a text, or of bytes.
    fn write_length(self, is_text: bool, length: usize, out: &mut Vec<u8>) {
        let length = length as u64;
        match (self, is_text) {
            (Binary::Cbor, _) => write_cbor(if is_text { 3 } else { 2 }, length, out),
            (Binary::MessagePack, true) => {
                let sizes = [Some(0xd9), Some(0xda), Some(0xdb)];
                write_message_pack(Some((0xa0, 31)), sizes, length, out);
            }
            (Binary::MessagePack, false) => {
                write_message_pack(None, [Some(0xc4), Some(0xc5), Some(0xc6)], length, out);
            }
        }
    }

    /// Makes a text, or bytes, of what is behind `begin`.
    pub(super) fn enclose(self, is_text: bool, begin: usize, out: &mut Vec<u8>) {
        let end = out.len();
        self.write_length(is_text, end - begin, out);
        let width = out.len() - end;
        out[begin..].rotate_right(width);
    }

    /// The head of a list or a map.
    pub(super) fn open(self, is_list: bool, count: usize, out: &mut Vec<u8>) {
        let count = count as u64;
        match (self, is_list) {
            (Binary::Cbor, _) => write_cbor(if is_list { 4 } else { 5 }, count, out),
            (Binary::MessagePack, true) => {
                write_message_pack(Some((0x90, 15)), [None, Some(0xdc), Some(0xdd)], count, out);
            }
            (Binary::MessagePack, false) => {
                write_message_pack(Some((0x80, 15)), [None, Some(0xde), Some(0xdf)], count, out);
            }
        }
    }
}

impl Syntax for Binary {
    fn start(self, _bytes: &[u8], at: usize) -> usize {
        at
    }

    fn skip(self, bytes: &[u8], at: usize, depth_left: usize) -> Result<usize, usize> {
        let (head, start, behind) = self.item(bytes, at)?;
        match head {
            Head::Text(Some(length)) => {
                let end = end_of(bytes, behind, length).ok_or(start)?;
                std::str::from_utf8(&bytes[behind..end]).map(|_| end).map_err(|_| start)
            }
            Head::Bytes(Some(length)) | Head::Foreign { bytes: length, .. } => {
                end_of(bytes, behind, length).ok_or(start)
            }
            Head::Text(None) => self.pieces(bytes, behind, true, |_| {}),
            Head::Bytes(None) => self.pieces(bytes, behind, false, |_| {}),
            Head::List(_) => {
                self.parts(bytes, start, depth_left, |at, depth| self.skip(bytes, at, depth))
            }
            Head::Map(_) => self.parts(bytes, start, depth_left, |at, depth| {
                let value = self.skip(bytes, at, depth)?;
                self.skip(bytes, value, depth)
            }),
            Head::Break => Err(start),
            _ => Ok(behind),
        }
    }

    fn inside(self, bytes: &[u8], at: usize) -> Inside {
        match self.item(bytes, at) {
            Ok((Head::Map(_), ..)) => Inside::Entries,
            Ok((Head::List(_), ..)) => Inside::Items,
            _ => Inside::Nothing,
        }
    }

    fn parts(
        self,
        bytes: &[u8],
        at: usize,
        depth_left: usize,
        mut part: impl FnMut(usize, usize) -> Result<usize, usize>,
    ) -> Result<usize, usize> {
        let (head, start, behind) = self.item(bytes, at)?;
        let depth_left = depth_left.checked_sub(1).ok_or(start)?;
        let (Head::List(count) | Head::Map(count)) = head else { return Err(start) };
        let mut at = behind;
        let Some(count) = count else {
            while !matches!(self.head(bytes, at), Ok((Head::Break, _))) {
                at = part(at, depth_left)?;
            }
            return Ok(at + 1);
        };
        for _ in 0..count {
            at = part(at, depth_left)?;
        }
        Ok(at)
    }

    fn key(self, bytes: &[u8], at: usize, depth_left: usize) -> Result<(usize, usize), usize> {
        let end = self.skip(bytes, at, depth_left)?;
        Ok((end, end))
    }

    fn is_key(self, written: &[u8], wanted: &str) -> bool {
        match self.part(written) {
            Some((Head::Text(Some(_)), behind)) => written[behind..] == *wanted.as_bytes(),
            Some((Head::Text(None), behind)) => {
                let mut rest = Some(wanted.as_bytes());
                let read = self.pieces(written, behind, true, |piece| {
                    rest = rest.and_then(|rest| rest.strip_prefix(piece));
                });
                read.is_ok() && rest.is_some_and(<[u8]>::is_empty)
            }
            Some((Head::Whole(number), _)) => {
                whole_key(wanted).is_some_and(|wanted| i128::from(wanted) == number)
            }
            _ => false,
        }
    }
}

/// The whole number that a key of digits names.
pub(super) fn whole_key(key: &str) -> Option<i64> {
    let digits = key.strip_prefix('-').unwrap_or(key);
    let is_whole = digits.bytes().all(|digit| digit.is_ascii_digit());
    let is_plain = key == "0" || is_whole && !digits.starts_with('0');
    if is_plain { key.parse().ok() } else { None }
}

/// The end of so many bytes, if they are there.
fn end_of(bytes: &[u8], begin: usize, length: u64) -> Option<usize> {
    let end = begin.checked_add(usize::try_from(length).ok()?)?;
    (end <= bytes.len()).then_some(end)
}
