//! Writes header fields: stateless ones for prepared blocks, or with a connection's table.

use super::integer::{write_number, write_string};
use super::table::{DynamicTable, Found, STATIC, find_static};

/// First bytes of the field representations (RFC 7541, 6).
const INDEXED: u8 = 0x80;
const WITH_INDEXING: u8 = 0x40;
const SIZE_UPDATE: u8 = 0x20;
const NEVER_INDEXED: u8 = 0x10;
const WITHOUT_INDEXING: u8 = 0;

/// Maximum size of our dynamic table, whatever the peer allows.
const TABLE_BYTES_MAX: u16 = 2048;
/// Default size of a table (RFC 9113, 6.5.2).
const TABLE_BYTES_DEFAULT: u16 = 4096;

/// Writes a field without changing the tables. The name is converted to lower case, as HTTP/2
/// requires.
pub fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    match find_static(name.to_ascii_lowercase().as_bytes(), value) {
        Found::Field(index) => write_number(out, INDEXED, 7, index),
        _ => {
            write_name(out, name);
            write_value(out, value);
        }
    }
}

/// As [`write_field`], for a value that intermediaries must not put into a table (RFC 7541, 7.1.3).
pub fn write_secret(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    write_literal_name(out, NEVER_INDEXED, name);
    write_value(out, value);
}

/// Writes the start of a field whose value follows by [`write_value`], and may differ in every
/// request.
pub fn write_name(out: &mut Vec<u8>, name: &str) {
    write_literal_name(out, WITHOUT_INDEXING, name);
}

pub fn write_value(out: &mut Vec<u8>, value: &[u8]) {
    write_string(out, value);
}

fn write_literal_name(out: &mut Vec<u8>, form: u8, name: &str) {
    let name = name.to_ascii_lowercase();
    match find_static(name.as_bytes(), b"") {
        Found::Field(index) | Found::Name(index) => write_number(out, form, 4, index),
        Found::Nothing => {
            out.push(form);
            write_string(out, name.as_bytes());
        }
    }
}

/// Writes fields with a dynamic table: a repeated one takes one byte or two.
#[derive(Debug)]
pub(in super::super) struct Encoder {
    table: DynamicTable,
    /// Sizes that must still be announced to the peer: the smallest one, and the current one.
    untold: Option<(u16, u16)>,
}

impl Encoder {
    /// For a peer whose limit is not known yet.
    pub(in super::super) fn new() -> Encoder {
        Encoder { table: DynamicTable::new(TABLE_BYTES_DEFAULT), untold: None }
    }

    pub(in super::super) fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }

    /// The peer allows a table of this size.
    pub(in super::super) fn limit(&mut self, peer_bytes_max: u32) {
        let allowed = peer_bytes_max.min(u32::from(TABLE_BYTES_DEFAULT)) as u16;
        // Our own limit is announced with the first field that needs a table.
        let in_use = self.table.heap_bytes() > 0;
        let size = if in_use { allowed.min(TABLE_BYTES_MAX) } else { allowed };
        self.resize(size);
    }

    fn resize(&mut self, size: u16) {
        if size != self.table.bytes_max() {
            let smallest = self.untold.map_or(size, |(smallest, _)| smallest.min(size));
            self.untold = Some((smallest, size));
            self.table.resize(size);
        }
    }

    /// Starts a header block: announces the size of the table if it has changed.
    #[inline]
    pub(in super::super) fn begin(&mut self, indexes: bool, out: &mut Vec<u8>) {
        if indexes && self.table.bytes_max() > TABLE_BYTES_MAX {
            self.resize(TABLE_BYTES_MAX);
        }
        if let Some((smallest, size)) = self.untold.take() {
            if smallest < size {
                write_number(out, SIZE_UPDATE, 5, usize::from(smallest));
            }
            write_number(out, SIZE_UPDATE, 5, usize::from(size));
        }
    }

    /// Writes a field, whose name must be in lower case, and adds it to the table.
    pub(in super::super) fn write(&mut self, out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        let fixed = find_static(name, value);
        if let Found::Field(index) = fixed {
            return write_number(out, INDEXED, 7, index);
        }
        let kept = self.table.find(name, value);
        if let Found::Field(index) = kept {
            return write_number(out, INDEXED, 7, STATIC.len() + 1 + index);
        }
        match (fixed, kept) {
            (Found::Name(index), _) => write_number(out, WITH_INDEXING, 6, index),
            (_, Found::Name(index)) => {
                write_number(out, WITH_INDEXING, 6, STATIC.len() + 1 + index);
            }
            _ => {
                out.push(WITH_INDEXING);
                write_string(out, name);
            }
        }
        write_string(out, value);
        self.table.insert(name, value);
    }
}
