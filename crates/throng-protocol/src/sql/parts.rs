//! The parts of messages: numbers, texts, bytes.

/// The parts of a message.
pub(super) struct Parts<'a>(pub(super) &'a [u8]);

impl<'a> Parts<'a> {
    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    pub(super) fn two(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    pub(super) fn four(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// A little-endian number of up to eight bytes.
    pub(super) fn little(&mut self, bytes: usize) -> Option<u64> {
        let digits = self.take(bytes)?.iter().rev();
        Some(digits.fold(0, |number, digit| number << 8 | u64::from(*digit)))
    }

    /// A length-encoded integer of MySQL.
    pub(super) fn counted(&mut self) -> Option<u64> {
        match self.byte()? {
            0xfc => self.little(2),
            0xfd => self.little(3),
            0xfe => self.little(8),
            0xfb | 0xff => None,
            byte => Some(byte.into()),
        }
    }

    /// A text after such a length.
    pub(super) fn counted_text(&mut self) -> Option<&'a [u8]> {
        let bytes = usize::try_from(self.counted()?).ok()?;
        self.take(bytes)
    }

    /// Up to a NUL.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(0, self.0)?;
        let text = self.take(end);
        self.take(1)?;
        text
    }
}
