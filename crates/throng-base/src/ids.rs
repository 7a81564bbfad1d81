//! Numeric IDs as types.

use std::fmt;

use crate::random::Random;

/// A unique and short ID of a run, which user names, headers and searches can contain. With 4 *
/// 10^15 possible IDs, a thousand runs have a collision with a probability of 10^-10.
pub fn run_id(random: &mut Random) -> String {
    const LETTERS: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
    const CHARACTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    const LENGTH: usize = 10;
    let first = LETTERS[random.below(26) as usize];
    let rest = (1..LENGTH).map(|_| CHARACTERS[random.below(36) as usize]);
    std::iter::once(first).chain(rest).map(char::from).collect()
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub struct $name(pub $inner);

        impl $name {
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// The number of a user, unique over all shards and machines of a run, from 1.
    UserId(u64)
);
id!(
    /// A step with a row in every report, numbered over all sessions of a program.
    StepId(u16)
);
id!(
    /// A session of a program.
    SessionId(u16)
);
id!(
    /// A shard of this process.
    ShardId(u16)
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_are_words_and_differ() {
        let mut random = Random::new(7);
        let ids: std::collections::HashSet<String> =
            (0..1000).map(|_| run_id(&mut random)).collect();
        assert_eq!(ids.len(), 1000);
        let is_word = |id: &String| {
            id.len() == 10
                && id.starts_with(|c: char| c.is_ascii_lowercase())
                && id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        assert!(ids.iter().all(is_word));
    }
}
