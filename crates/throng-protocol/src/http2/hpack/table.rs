//! The two tables of HPACK: the static one of RFC 7541, appendix A, and the dynamic one of its
//! section 2.3.2, stored in one buffer that grows as needed.

use std::collections::VecDeque;

/// Size of an entry besides its name and its value (RFC 7541, 4.1).
pub(super) const ENTRY_OVERHEAD: usize = 32;
/// Initial capacity of a dynamic table's text.
const TEXT_BYTES_FIRST: usize = 256;

/// Names and values by index, from 1 on.
#[rustfmt::skip]
pub(super) static STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
    (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
    (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""),
    ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""),
    ("authorization", ""), ("cache-control", ""), ("content-disposition", ""),
    ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""),
    ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""),
    ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""),
    ("vary", ""), ("via", ""), ("www-authenticate", ""),
];

/// The index of a field in a table, or of its name only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Field(usize),
    Name(usize),
    Nothing,
}

/// The static index of a field or of its name.
pub(super) fn find_static(name: &[u8], value: &[u8]) -> Found {
    let mut found = Found::Nothing;
    for (at, (other, content)) in STATIC.iter().enumerate() {
        if other.as_bytes() != name {
            continue;
        }
        if content.as_bytes() == value {
            return Found::Field(at + 1);
        }
        if found == Found::Nothing {
            found = Found::Name(at + 1);
        }
    }
    found
}

/// Fields that one end has sent to the other, newest first. Allocates nothing before the first.
#[derive(Debug, Default)]
pub(super) struct DynamicTable {
    /// Concatenated names and values, oldest first.
    text: Vec<u8>,
    /// Oldest first.
    entries: VecDeque<Entry>,
    /// As defined by the RFC.
    bytes: usize,
    bytes_max: u16,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u16,
    name: u16,
    value: u16,
}

impl Entry {
    fn counted(self) -> usize {
        usize::from(self.name) + usize::from(self.value) + ENTRY_OVERHEAD
    }
}

impl DynamicTable {
    pub(super) fn new(bytes_max: u16) -> DynamicTable {
        DynamicTable { bytes_max, ..DynamicTable::default() }
    }

    pub(super) fn bytes_max(&self) -> u16 {
        self.bytes_max
    }

    /// Its heap memory.
    pub(super) fn heap_bytes(&self) -> usize {
        self.text.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// Sets a new limit; drops entries that no longer fit, and frees their memory.
    pub(super) fn resize(&mut self, bytes_max: u16) {
        self.bytes_max = bytes_max;
        self.evict(0);
        if self.entries.is_empty() {
            (self.text, self.entries) = (Vec::new(), VecDeque::new());
        }
    }

    /// Name and value of an entry; 0 is the newest.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let place = self.entries.len().checked_sub(index + 1)?;
        let Entry { at, name, value } = self.entries[place];
        let text = &self.text[usize::from(at)..];
        let (name, rest) = text.split_at(usize::from(name));
        Some((name, &rest[..usize::from(value)]))
    }

    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> Found {
        let mut found = Found::Nothing;
        for index in 0..self.entries.len() {
            let Some((other, content)) = self.get(index).filter(|(other, _)| *other == name) else {
                continue;
            };
            debug_assert_eq!(other, name);
            if content == value {
                return Found::Field(index);
            }
            if found == Found::Nothing {
                found = Found::Name(index);
            }
        }
        found
    }

    /// Adds a field. A field that is larger than the table empties it (RFC 7541, 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let length = name.len() + value.len();
        let counted = length + ENTRY_OVERHEAD;
        self.evict(counted);
        if counted > usize::from(self.bytes_max) {
            return;
        }
        self.make_room(length);
        // All of these are below the limit, which has 16 bits.
        let entry = Entry {
            at: self.text.len() as u16,
            name: name.len() as u16,
            value: value.len() as u16,
        };
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.entries.push_back(entry);
        self.bytes += counted;
    }

    /// Drops the oldest until `more` bytes fit.
    fn evict(&mut self, more: usize) {
        while self.bytes + more > usize::from(self.bytes_max) {
            let Some(oldest) = self.entries.pop_front() else { return };
            self.bytes -= oldest.counted();
        }
    }

    /// Makes room for `length` bytes of text. The text never exceeds the limit: dropped entries are
    /// removed before more memory is allocated.
    fn make_room(&mut self, length: usize) {
        if self.entries.is_empty() {
            self.text.clear();
        }
        let needed = self.text.len() + length;
        if needed <= self.text.capacity() {
            return;
        }
        if needed <= usize::from(self.bytes_max) {
            let doubled = (self.text.capacity() * 2).max(TEXT_BYTES_FIRST);
            let wanted = doubled.min(usize::from(self.bytes_max)).max(needed);
            self.text.reserve_exact(wanted - self.text.len());
            return;
        }
        let begin = self.entries.front().map_or(0, |oldest| oldest.at);
        self.text.drain(..usize::from(begin));
        self.entries.iter_mut().for_each(|entry| entry.at -= begin);
        self.text.reserve_exact(length);
    }
}

#[cfg(test)]
mod tests {
    use throng_base::Random;

    use super::*;

    #[test]
    fn the_static_table_is_found_by_field_and_by_name() {
        assert_eq!(find_static(b":status", b"404"), Found::Field(13));
        assert_eq!(find_static(b":status", b"201"), Found::Name(8));
        assert_eq!(find_static(b"www-authenticate", b"x"), Found::Name(61));
        assert_eq!(find_static(b"accept-encoding", b"gzip, deflate"), Found::Field(16));
        assert_eq!(find_static(b"x-y", b""), Found::Nothing);
    }

    /// A simple list of fields, as in the RFC, compared with the buffer.
    #[test]
    fn a_table_behaves_like_a_list_that_drops_its_oldest() {
        for bytes_max in [0, 33, 100, 300, 2048] {
            let mut table = DynamicTable::new(bytes_max);
            let mut model: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            let mut random = Random::for_owner(1, u64::from(bytes_max));
            let mut limit = usize::from(bytes_max);
            for _ in 0..3_000 {
                if random.below(50) == 0 {
                    limit = random.below(u64::from(bytes_max) + 1) as usize;
                    table.resize(limit as u16);
                } else {
                    let mut text =
                        |up_to| (0..random.below(up_to)).map(|_| random.next_u64() as u8).collect();
                    let field: (Vec<u8>, Vec<u8>) = (text(20), text(60));
                    table.insert(&field.0, &field.1);
                    model.insert(0, field);
                }
                let mut sum = 0;
                let mut fits = |(name, value): &(Vec<u8>, Vec<u8>)| {
                    sum += name.len() + value.len() + ENTRY_OVERHEAD;
                    sum <= limit
                };
                let kept = model.iter().map_while(|field| fits(field).then_some(())).count();
                model.truncate(kept);
                for (index, (name, value)) in model.iter().enumerate() {
                    assert_eq!(table.get(index), Some((&name[..], &value[..])));
                }
                assert_eq!(table.get(model.len()), None);
                assert!(table.text.capacity() <= usize::from(bytes_max));
            }
        }
    }
}
