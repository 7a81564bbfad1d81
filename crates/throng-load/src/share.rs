//! A shard's exact part of the load.

use throng_base::UserId;

/// Which part of the whole is ours: every `of`-th event, beginning with number `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub index: u64,
    pub of: u64,
}

impl Share {
    pub const WHOLE: Share = Share { index: 0, of: 1 };

    /// How many of `whole` events are ours.
    pub fn part(self, whole: u64) -> u64 {
        whole / self.of + u64::from(whole % self.of > self.index)
    }

    /// The number in the whole of our event `local`.
    pub fn global(self, local: u64) -> u64 {
        local * self.of + self.index
    }

    /// The identity of our user `local`; identities of the whole count from 1 without gaps.
    pub fn user(self, local: u64) -> UserId {
        UserId(self.global(local) + 1)
    }
}
