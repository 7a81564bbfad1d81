//! Who and what is meant: numbers with a type.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// A user's number, unique over all shards and machines of a run, counted from 1.
    UserId(u64)
);
id!(
    /// A step that has a row of its own in every report; counted over all sessions of a program.
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
