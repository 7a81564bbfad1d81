//! What messages are made of: numbers, texts, bytes.

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

    /// Up to a NUL.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(0, self.0)?;
        let text = self.take(end);
        self.take(1)?;
        text
    }
}
