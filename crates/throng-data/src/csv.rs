//! CSV according to RFC 4180, and common variants: any separator, either line end, empty lines
//! skipped, a quote in an unquoted field taken literally. Bytes in, fields out.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2};

use crate::error::DataError;

/// The result of scanning a row. Lines are counted from 0, within the scanned bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// A row with this number of bytes and lines, including its line end.
    Row { length: usize, lines: u64 },
    /// The row is longer than the bytes; with the line of a quote that is still open.
    More { quote: Option<u64> },
    /// The file ends within the quotes opened on this line.
    Unclosed { line: u64 },
    /// On this line there is text between a closing quote and the next separator.
    AfterQuote { line: u64 },
}

/// The extent of the row at the start of `bytes`; `last` means that no bytes follow. `bytes` are
/// not empty.
pub(crate) fn scan(bytes: &[u8], last: bool, separator: u8) -> Scan {
    match memchr2(b'\n', b'"', bytes) {
        Some(newline) if bytes[newline] == b'\n' => Scan::Row { length: newline + 1, lines: 1 },
        Some(_) => scan_quoted(bytes, last, separator),
        None if last => Scan::Row { length: bytes.len(), lines: 1 },
        None => Scan::More { quote: None },
    }
}

fn scan_quoted(bytes: &[u8], last: bool, separator: u8) -> Scan {
    let lines = |until: usize| memchr_iter(b'\n', &bytes[..until]).count() as u64;
    let mut at = 0;
    loop {
        if bytes.get(at) == Some(&b'"') {
            let Some(end) = closing_quote(&bytes[at + 1..]) else {
                return match last {
                    true => Scan::Unclosed { line: lines(at) },
                    false => Scan::More { quote: Some(lines(at)) },
                };
            };
            at += 1 + end + 1;
            match bytes.get(at..).unwrap_or_default() {
                // Another quote may follow, which makes an escaped quote.
                [] | [b'\r'] if !last => return Scan::More { quote: None },
                [] | [b'\r'] => return Scan::Row { length: bytes.len(), lines: lines(at) + 1 },
                [b'\n', ..] => return Scan::Row { length: at + 1, lines: lines(at) + 1 },
                [b'\r', b'\n', ..] => return Scan::Row { length: at + 2, lines: lines(at) + 1 },
                [next, ..] if *next == separator => at += 1,
                _ => return Scan::AfterQuote { line: lines(at) },
            }
        } else {
            match memchr2(separator, b'\n', &bytes[at..]) {
                Some(found) if bytes[at + found] == separator => at += found + 1,
                Some(newline) => {
                    let length = at + newline + 1;
                    return Scan::Row { length, lines: lines(length) };
                }
                None if last => return Scan::Row { length: bytes.len(), lines: lines(at) + 1 },
                None => return Scan::More { quote: None },
            }
        }
    }
}

/// The position of the closing quote; two quotes are a literal one. None if there is none; then a
/// final quote may be the first half of a pair.
fn closing_quote(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr(b'"', &bytes[at..])?;
        if bytes.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

/// The fields of a row without its line end.
pub(crate) struct Fields<'a> {
    rest: Option<&'a str>,
    separator: u8,
}

pub(crate) fn fields(row: &str, separator: u8) -> Fields<'_> {
    Fields { rest: Some(row), separator }
}

/// One field as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    raw: &'a str,
    quoted: bool,
}

impl<'a> Field<'a> {
    /// A space outside of quotes belongs to the field (RFC 4180).
    pub(crate) fn begins_with_space(self) -> bool {
        !self.quoted && self.raw.starts_with([' ', '\t'])
    }

    pub(crate) fn text(self) -> Cow<'a, str> {
        match self.quoted && self.raw.contains('"') {
            true => Cow::Owned(self.raw.replace("\"\"", "\"")),
            false => Cow::Borrowed(self.raw),
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let rest = self.rest?;
        let bytes = rest.as_bytes();
        if let Some(end) = rest.strip_prefix('"').and_then(|rest| closing_quote(rest.as_bytes())) {
            let raw = &rest[1..1 + end];
            self.rest = rest.get(end + 3..).filter(|_| bytes[end + 2] == self.separator);
            return Some(Field { raw, quoted: true });
        }
        let end = memchr(self.separator, bytes);
        self.rest = end.map(|end| &rest[end + 1..]);
        Some(Field { raw: &rest[..end.unwrap_or(rest.len())], quoted: false })
    }
}

/// The number of fields in a row.
pub(crate) fn count(row: &str, separator: u8) -> usize {
    match memchr(b'"', row.as_bytes()) {
        Some(_) => fields(row, separator).count(),
        None => memchr_iter(separator, row.as_bytes()).count() + 1,
    }
}

/// The mistake of a row whose number of fields differs from that of the columns.
pub(crate) fn miscounted(found: usize, columns: usize, separator: u8) -> DataError {
    let separator = char::from(separator).escape_default();
    let (message, help) = if found < columns {
        (
            say!("the row has only {found} of {columns} fields"),
            say!("add the missing fields; an empty field still needs its separator `{separator}`"),
        )
    } else {
        (
            say!("the row has {found} fields, but there are {columns} columns"),
            say!("put fields that contain `{separator}` in quotes"),
        )
    };
    DataError::new("data-malformed", message).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        fields(text, b',').map(|field| field.text().into_owned()).collect()
    }

    #[test]
    fn fields_are_unquoted() {
        for (row, want) in [
            ("a,b", vec!["a", "b"]),
            ("a,", vec!["a", ""]),
            ("", vec![""]),
            (",", vec!["", ""]),
            (r#""a,b",c"#, vec!["a,b", "c"]),
            (r#""say ""hi""","""""#, vec![r#"say "hi""#, "\""]),
            ("\"two\nlines\",x", vec!["two\nlines", "x"]),
            (r#"5" pipe,b"#, vec![r#"5" pipe"#, "b"]),
            (r#""","#, vec!["", ""]),
            ("é,\"ü\"", vec!["é", "ü"]),
        ] {
            assert_eq!(read(row), want, "{row:?}");
            assert_eq!(count(row, b','), want.len(), "{row:?}");
        }
    }

    #[test]
    fn rows_end_at_line_ends_outside_of_quotes() {
        let row = |length, lines| Scan::Row { length, lines };
        for (text, last, want) in [
            ("a,b\nc", false, row(4, 1)),
            ("a,b\r\nc", false, row(5, 1)),
            ("a,b", false, Scan::More { quote: None }),
            ("a,b", true, row(3, 1)),
            ("\"a\nb\",c\nd", false, row(8, 2)),
            ("\"a\nb", false, Scan::More { quote: Some(0) }),
            ("x,\"\n\",\"a\nb", true, Scan::Unclosed { line: 1 }),
            ("\"a\"", false, Scan::More { quote: None }),
            ("\"a\"", true, row(3, 1)),
            ("\"a\"\r\n", false, row(5, 1)),
            ("\"a\"\r", false, Scan::More { quote: None }),
            ("\"a\"b\n", false, Scan::AfterQuote { line: 0 }),
            ("\"a\"\"\n", true, Scan::Unclosed { line: 0 }),
            ("a\",b\n\"", true, row(5, 1)),
            ("\"a\",", true, row(4, 1)),
            ("\"a\",\n\n", true, row(5, 1)),
        ] {
            assert_eq!(scan(text.as_bytes(), last, b','), want, "{text:?} {last}");
        }
    }
}
