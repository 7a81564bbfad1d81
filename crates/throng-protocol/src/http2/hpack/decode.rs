//! Reads header blocks. The output is lines of text as in HTTP/1.1, so that code that reads headers
//! does not depend on the version.

use super::HpackError;
use super::integer::{read_number, read_string};
use super::table::{DynamicTable, STATIC};
use crate::http2::section::{Section, Unknown};

/// The table size that a peer may use before it knows ours (RFC 9113, 6.5.2). A peer that never
/// announces a smaller table keeps it.
const TABLE_BYTES_DEFAULT: u16 = 4096;

/// Why a block was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Refusal {
    Broken(HpackError),
    /// Larger than the limit of its section.
    TooLarge,
}

impl From<HpackError> for Refusal {
    fn from(error: HpackError) -> Refusal {
        Refusal::Broken(error)
    }
}

/// The reading half of a connection's header compression.
#[derive(Debug)]
pub(in super::super) struct Decoder {
    table: DynamicTable,
    /// The size that we have announced.
    table_bytes_max: u16,
}

impl Decoder {
    pub(in super::super) fn new(table_bytes_max: u16) -> Decoder {
        Decoder { table: DynamicTable::new(TABLE_BYTES_DEFAULT), table_bytes_max }
    }

    #[cfg(test)]
    pub(super) fn table(&self) -> &DynamicTable {
        &self.table
    }

    pub(in super::super) fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }

    /// Reads a complete block into `section`.
    pub(in super::super) fn decode(
        &mut self,
        block: &[u8],
        section: &mut Section<'_>,
    ) -> Result<(), Refusal> {
        let mut rest = block;
        let mut in_fields = false;
        while let Some(first) = rest.first().copied() {
            let is_size = first & 0xe0 == 0x20;
            if is_size && in_fields {
                return Err(HpackError::SizeBehindField.into());
            }
            in_fields |= !is_size;
            match first {
                0x80.. => self.indexed(&mut rest, section)?,
                0x40..0x80 => self.literal(&mut rest, 6, section)?,
                0x20..0x40 => self.size_update(&mut rest)?,
                _ => self.literal(&mut rest, 4, section)?,
            }
        }
        Ok(())
    }

    #[inline]
    fn indexed(&self, rest: &mut &[u8], section: &mut Section<'_>) -> Result<(), Refusal> {
        let index = read_number(rest, 7)?;
        let (name, value) = self.entry(index)?;
        let line = section.begin();
        section.text().extend_from_slice(name);
        let line = section.name_done(line);
        section.text().extend_from_slice(value);
        let unknown = index > STATIC.len();
        section.value_done(line, Unknown { name: unknown, value: unknown }).ok_or(Refusal::TooLarge)
    }

    fn literal(
        &mut self,
        rest: &mut &[u8],
        prefix_bits: u32,
        section: &mut Section<'_>,
    ) -> Result<(), Refusal> {
        let index = read_number(rest, prefix_bits)?;
        let line = section.begin();
        if index == 0 {
            read_string(rest, section.text())?;
        } else {
            section.text().extend_from_slice(self.entry(index)?.0);
        }
        let line = section.name_done(line);
        read_string(rest, section.text())?;
        if prefix_bits == 6 {
            let (name, value) = section.field(line);
            self.table.insert(name, value);
        }
        let name = index == 0 || index > STATIC.len();
        section.value_done(line, Unknown { name, value: true }).ok_or(Refusal::TooLarge)
    }

    fn size_update(&mut self, rest: &mut &[u8]) -> Result<(), HpackError> {
        let size = read_number(rest, 5)?;
        let size_max = self.table_bytes_max;
        match u16::try_from(size) {
            Ok(size) if size <= size_max => self.table.resize(size),
            _ => return Err(HpackError::TableTooLarge { size, size_max }),
        }
        Ok(())
    }

    #[inline]
    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
        if let Some((name, value)) = STATIC.get(index.wrapping_sub(1)) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let dynamic = index.checked_sub(STATIC.len() + 1);
        dynamic.and_then(|index| self.table.get(index)).ok_or(HpackError::NoSuchIndex(index))
    }
}
