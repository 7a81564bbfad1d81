//! Converts columns, rows and errors of MySQL to the format of PostgreSQL.

use std::io::Write as _;

use crate::sql::error::NUMBER;
use crate::sql::parts::Parts;
use crate::sql::reply::{Kind, describe};

/// The format of a column's values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// `enum_field_types`.
    kind: u8,
    is_unsigned: bool,
    /// Decimal places of seconds.
    decimals: u8,
}

const TINY: u8 = 1;
const SHORT: u8 = 2;
const LONG: u8 = 3;
const FLOAT: u8 = 4;
const DOUBLE: u8 = 5;
const TIMESTAMP: u8 = 7;
const LONGLONG: u8 = 8;
const INT24: u8 = 9;
const DATE: u8 = 10;
const TIME: u8 = 11;
const DATETIME: u8 = 12;
const YEAR: u8 = 13;
const BIT: u8 = 16;

/// Seconds without a fixed number of decimal places.
const NOT_FIXED: u8 = 31;

/// Reads the description of a column, and appends it to what is kept.
pub(super) fn column(body: &[u8], kept: &mut Vec<u8>) -> Option<Column> {
    let mut parts = Parts(body);
    // Catalog, schema, table and original table.
    for _ in 0..4 {
        parts.counted_text()?;
    }
    let name = parts.counted_text()?;
    let _own_name = parts.counted_text()?;
    let mut parts = Parts(parts.counted_text()?);
    let _charset = parts.take(2)?;
    let _width = parts.take(4)?;
    let kind = parts.byte()?;
    let flags = parts.little(2)?;
    let column = Column { kind, is_unsigned: flags & 32 != 0, decimals: parts.byte()? };
    let kept_as = match kind {
        TINY | SHORT | LONG | LONGLONG | INT24 | YEAR | BIT => Kind::Integer,
        FLOAT | DOUBLE => Kind::Float,
        _ => Kind::Text,
    };
    describe(name, kept_as, kept);
    Some(column)
}

/// Appends a row of the text or binary protocol to what is kept.
pub(super) fn row(
    body: &[u8],
    columns: &[Column],
    is_binary: bool,
    kept: &mut Vec<u8>,
) -> Option<()> {
    kept.extend_from_slice(&(columns.len() as u16).to_be_bytes());
    let mut parts = Parts(body);
    let nulls = match is_binary {
        true => {
            parts.byte()?;
            parts.take((columns.len() + 9) / 8)?
        }
        false => b"",
    };
    for (at, column) in (2..).zip(columns) {
        let is_null = match is_binary {
            true => nulls[at / 8] >> (at % 8) & 1 == 1,
            false => parts.0.first() == Some(&0xfb) && parts.byte().is_some(),
        };
        let begin = kept.len();
        kept.extend_from_slice(&u32::MAX.to_be_bytes());
        if is_null {
            continue;
        }
        match (is_binary, column.kind) {
            (_, BIT) => {
                let bits = parts.counted_text()?;
                let number = bits.iter().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
                let _ = write!(kept, "{number}");
            }
            (true, _) => binary(*column, &mut parts, kept)?,
            (false, _) => kept.extend_from_slice(parts.counted_text()?),
        }
        let length = (kept.len() - begin - 4) as u32;
        kept[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
    }
    parts.0.is_empty().then_some(())
}

/// Writes a value in the text protocol's format.
fn binary(column: Column, parts: &mut Parts<'_>, out: &mut Vec<u8>) -> Option<()> {
    let mut integer = |bytes: usize, out: &mut Vec<u8>| {
        let number = parts.little(bytes)?;
        let unused = 64 - 8 * bytes as u32;
        // Writing to a vector does not fail.
        let _ = match column.is_unsigned {
            true => write!(out, "{number}"),
            false => write!(out, "{}", (number << unused) as i64 >> unused),
        };
        Some(())
    };
    match column.kind {
        TINY => integer(1, out)?,
        SHORT | YEAR => integer(2, out)?,
        LONG | INT24 => integer(4, out)?,
        LONGLONG => integer(8, out)?,
        FLOAT => {
            let _ = write!(out, "{}", f32::from_bits(parts.little(4)? as u32));
        }
        DOUBLE => {
            let _ = write!(out, "{}", f64::from_bits(parts.little(8)?));
        }
        DATE | DATETIME | TIMESTAMP | TIME => {
            let value = parts.counted_text()?;
            date_or_time(column, value, out)?;
        }
        _ => out.extend_from_slice(parts.counted_text()?),
    }
    Some(())
}

/// `2026-11-28`, `2026-11-28 13:11:00.25` or `-25:00:00`; trailing zeros are not sent.
fn date_or_time(column: Column, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut padded = [0; 12];
    padded.get_mut(..value.len())?.copy_from_slice(value);
    let mut parts = Parts(&padded);
    let mut hours = 0;
    let _ = match column.kind {
        TIME => {
            let sign = if parts.byte()? == 1 { "-" } else { "" };
            hours = parts.little(4)? * 24;
            write!(out, "{sign}")
        }
        _ => {
            let (year, month, day) = (parts.little(2)?, parts.byte()?, parts.byte()?);
            write!(out, "{year:04}-{month:02}-{day:02}")
        }
    };
    if column.kind == DATE {
        return Some(());
    }
    if column.kind != TIME {
        out.push(b' ');
    }
    let (hours, minutes, seconds) =
        (hours + u64::from(parts.byte()?), parts.byte()?, parts.byte()?);
    let _ = write!(out, "{hours:02}:{minutes:02}:{seconds:02}");
    let micros = parts.little(4.min(parts.0.len()))?;
    let digits = if column.decimals >= NOT_FIXED { 6 } else { column.decimals.min(6) };
    if digits > 0 && (column.decimals < NOT_FIXED || micros > 0) {
        let fraction = format!("{micros:06}");
        out.push(b'.');
        out.extend_from_slice(fraction.as_bytes().get(..digits.into())?);
    }
    Some(())
}

/// The content of an ERR packet, as an ErrorResponse.
pub(super) fn error_of(body: &[u8]) -> Vec<u8> {
    let mut parts = Parts(body.get(1..).unwrap_or_default());
    let number = parts.little(2).unwrap_or(0);
    // A server that refuses a connection immediately may omit it.
    let (code, message) = match parts.0 {
        [b'#', a, b, c, d, e, message @ ..] => ([*a, *b, *c, *d, *e], message),
        message => (*b"HY000", message),
    };
    let mut error = b"VERROR\0C".to_vec();
    error.extend(code.iter().filter(|byte| **byte != 0));
    error.extend_from_slice(&[0, NUMBER]);
    let _ = write!(error, "{number}");
    error.extend_from_slice(b"\0M");
    error.extend(message.iter().filter(|byte| **byte != 0));
    error.extend_from_slice(&[0; 2]);
    error
}
