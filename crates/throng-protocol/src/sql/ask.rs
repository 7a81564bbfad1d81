//! Requests to a database: logins and statements.

use std::io::Write as _;

use crate::field::Field;

/// The protocol of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    #[default]
    Postgres,
    /// MariaDB, too.
    MySql,
}

/// The transport of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// Others may read it.
    #[default]
    Plain,
    UnixSocket,
    Tls,
}

/// The credentials of a login, and the database.
#[derive(Clone, Debug, Default)]
pub struct Login {
    pub dialect: Dialect,
    pub user: String,
    pub password: Option<String>,
    /// Empty for none (MySQL).
    pub database: String,
    /// Nonce of the login: printable, without commas, and unique.
    pub nonce: String,
    pub carrier: Carrier,
}

/// A statement.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Without NUL.
    pub sql: &'a [u8],
    /// `None` sends only the text, which may have several statements.
    pub values: Option<&'a Values>,
    /// The statement is prepared once per connection under this number.
    pub number: Option<u16>,
    /// The first row is needed.
    pub keeps: bool,
}

/// The values of parameters in message format. For PostgreSQL all are text: the server parses each
/// as the type of its parameter. For MySQL they have types.
#[derive(Clone, Debug, Default)]
pub struct Values {
    pub(super) bytes: Vec<u8>,
    /// Types of MySQL.
    pub(super) types: Vec<u8>,
    pub(super) count: u16,
}

impl Values {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.types.clear();
        self.count = 0;
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn push(&mut self, dialect: Dialect, value: Field<'_>) {
        self.count = self.count.saturating_add(1);
        match dialect {
            Dialect::Postgres => push_text(value, &mut self.bytes),
            Dialect::MySql => self.types.push(push_typed(value, &mut self.bytes)),
        }
    }
}

/// A PostgreSQL value with its length.
fn push_text(value: Field<'_>, out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(&(-1i32).to_be_bytes());
    // Writing to a vector does not fail.
    let _ = match value {
        Field::Null => return,
        Field::Bytes(bytes) => out.write_all(bytes),
        Field::Bool(value) => write!(out, "{value}"),
        Field::Number(value) => write!(out, "{value}"),
        Field::Float(value) => write!(out, "{value}"),
    };
    let length = (out.len() - begin - 4) as u32;
    out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
}

/// Writes a MySQL value; returns its type (`enum_field_types`).
fn push_typed(value: Field<'_>, out: &mut Vec<u8>) -> u8 {
    match value {
        Field::Null => NULL,
        Field::Bool(value) => {
            out.push(value.into());
            TINY
        }
        Field::Number(value) => {
            out.extend_from_slice(&value.to_le_bytes());
            LONGLONG
        }
        Field::Float(value) => {
            out.extend_from_slice(&value.to_le_bytes());
            DOUBLE
        }
        Field::Bytes(bytes) => {
            push_counted(bytes, out);
            if std::str::from_utf8(bytes).is_ok() { VAR_STRING } else { BLOB }
        }
    }
}

/// Types of values.
const TINY: u8 = 1;
const DOUBLE: u8 = 5;
pub(super) const NULL: u8 = 6;
const LONGLONG: u8 = 8;
const BLOB: u8 = 252;
const VAR_STRING: u8 = 253;

/// Bytes after a length-encoded integer of MySQL.
pub(super) fn push_counted(bytes: &[u8], out: &mut Vec<u8>) {
    let length = (bytes.len() as u64).to_le_bytes();
    match bytes.len() {
        ..251 => out.push(length[0]),
        251..=0xffff => out.extend_from_slice(&[0xfc, length[0], length[1]]),
        0x1_0000..=0xff_ffff => out.extend_from_slice(&[0xfd, length[0], length[1], length[2]]),
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&length);
        }
    }
    out.extend_from_slice(bytes);
}
