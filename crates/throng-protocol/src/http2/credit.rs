//! Limits how much work a peer can cause without making progress (RFC 9113, 10.5).

use throng_base::Time;

/// Credit for a frame that makes progress, and for each of ours with a request or a part of one: a
/// server may well answer it with one or two WINDOW_UPDATEs.
const EARNED: u16 = 4;
/// Credit per second: for keep-alive and round-trip PINGs of a stream that is open for hours.
const EARNED_PER_SECOND: u64 = 100;

#[derive(Debug, Default)]
pub(super) struct Credit {
    left: u16,
    second: u32,
}

impl Credit {
    pub(super) fn new(credit_max: u16) -> Credit {
        Credit { left: credit_max, second: 0 }
    }

    /// Adds the credit of elapsed time.
    #[inline]
    pub(super) fn at(&mut self, now: Time, credit_max: u16) {
        let second = now.second() as u32;
        if second != self.second {
            let passed = u64::from(second.wrapping_sub(self.second));
            let earned = passed.saturating_mul(EARNED_PER_SECOND).min(u64::from(credit_max));
            self.left = self.left.saturating_add(earned as u16).min(credit_max);
            self.second = second;
        }
    }

    #[inline]
    pub(super) fn earn(&mut self) {
        self.left = self.left.saturating_add(EARNED);
    }

    /// False when there is none left.
    #[inline]
    pub(super) fn spend(&mut self, credit_max: u16) -> bool {
        let left = self.left.min(credit_max);
        self.left = left.saturating_sub(1);
        left > 0
    }
}
