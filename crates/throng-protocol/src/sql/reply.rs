//! The result of a statement.

use super::error::ServerError;
use super::parts::Parts;
use crate::field::Field;

/// Types whose values are not text (`pg_type.dat`). MySQL's results are stored in the same form.
const BOOL: u32 = 16;
const INTEGERS: [u32; 4] = [20, 21, 23, 26];
const FLOATS: [u32; 2] = [700, 701];

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came<'a> {
    /// The login is complete.
    Open,
    /// The first row of a result.
    FirstRow,
    /// The complete result of a request.
    Done(Reply<'a>),
}

/// The result of all statements of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Rows returned, or changed by statements that return none; the sum for several statements.
    pub rows: u64,
    /// Rows that were inserted, updated or deleted; the sum for several statements.
    pub affected: u64,
    /// The key that MySQL assigned to an inserted row; 0 without one. PostgreSQL reports none.
    pub insert_id: Option<u64>,
    /// Size of the messages.
    pub bytes: u64,
    pub(super) is_error: bool,
    /// The description of the first row and its position, or the error.
    pub(super) kept: &'a [u8],
    pub(super) row_at: usize,
}

impl<'a> Reply<'a> {
    /// Why a statement failed; the following ones were not executed.
    pub fn error(&self) -> Option<ServerError> {
        self.is_error.then(|| ServerError::read(self.kept))
    }

    /// A field by name: `rows`, `affected`, `insert_id`, or `column.NAME` of the first row.
    pub fn field(&self, name: &str) -> Option<Field<'a>> {
        let number = |number: u64| Field::Number(number as i64);
        match name {
            "rows" => return Some(number(self.rows)),
            "affected" => return Some(number(self.affected)),
            "insert_id" => return self.insert_id.map(number),
            _ => {}
        }
        let column = name.strip_prefix("column.")?.as_bytes();
        self.columns().find(|(name, _)| *name == column).map(|(_, value)| value)
    }

    /// The first row: its columns with their names.
    pub fn columns(&self) -> impl Iterator<Item = (&'a [u8], Field<'a>)> + use<'a> {
        let kept = if self.is_error { b"" } else { self.kept };
        let (columns, row) = kept.split_at_checked(self.row_at).unwrap_or_default();
        let (mut columns, mut row) = (Parts(columns), Parts(row));
        let count = columns.two().unwrap_or(0).min(row.two().unwrap_or(0));
        (0..count).map_while(move |_| {
            let (name, kind) = column(&mut columns)?;
            Some((name, value(kind, &mut row)?))
        })
    }
}

/// The name and the type of a column.
fn column<'a>(columns: &mut Parts<'a>) -> Option<(&'a [u8], u32)> {
    let name = columns.text()?;
    // Table and column number; after the type its size, modifier and format.
    columns.take(6)?;
    let kind = columns.four()?;
    columns.take(8)?;
    Some((name, kind))
}

/// The stored type of a column that PostgreSQL has not described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Float,
    Text,
}

/// Describes a column as PostgreSQL does, after the number of columns.
pub(super) fn describe(name: &[u8], kind: Kind, out: &mut Vec<u8>) {
    let kind = match kind {
        Kind::Integer => INTEGERS[0],
        Kind::Float => FLOATS[1],
        Kind::Text => 0,
    };
    out.extend(name.iter().filter(|byte| **byte != 0));
    out.extend_from_slice(&[0; 7]);
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&[0; 8]);
}

/// A value, which is sent as text.
fn value<'a>(kind: u32, row: &mut Parts<'a>) -> Option<Field<'a>> {
    let length = row.four()?;
    if length == u32::MAX {
        return Some(Field::Null);
    }
    let bytes = row.take(length as usize)?;
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let typed = match kind {
        BOOL => Some(Field::Bool(bytes == b"t")),
        kind if INTEGERS.contains(&kind) => text.parse().ok().map(Field::Number),
        kind if FLOATS.contains(&kind) => {
            text.parse().ok().filter(|it: &f64| it.is_finite()).map(Field::Float)
        }
        _ => None,
    };
    Some(typed.unwrap_or(Field::Bytes(bytes)))
}
