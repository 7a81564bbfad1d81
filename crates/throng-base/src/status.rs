//! The statuses of protocols. Each protocol has a separate range of recorded numbers, far above
//! those of HTTP and WebSocket closes.

pub mod grpc;
pub mod mqtt;
pub mod redis;
pub mod sql;

/// Where the fix belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    Target,
    Scenario,
    /// One of both, which cannot be determined from outside.
    TargetOrScenario,
    /// The peer claims that throng violated the protocol.
    Generator,
}

/// The meaning of a status in its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The short form for totals: `NOT_FOUND`, `23505`.
    pub word: &'static str,
    pub beside: Beside,
    pub blame: Blame,
}

/// The addition to the word where a single status is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    Nothing,
    /// `5 NOT_FOUND`
    Number(u8),
    /// `0x87 Not authorized`
    Hexadecimal(u8),
    /// `23505 unique_violation`
    Name(&'static str),
}

impl Meaning {
    /// The protocol's number, if it has one.
    pub fn number(&self) -> Option<u16> {
        match self.beside {
            Beside::Number(number) | Beside::Hexadecimal(number) => Some(number.into()),
            Beside::Nothing | Beside::Name(_) => None,
        }
    }

    /// The long form for a single status.
    pub fn text(&self) -> String {
        let word = self.word;
        match self.beside {
            Beside::Nothing => word.into(),
            Beside::Number(number) => format!("{number} {word}"),
            Beside::Hexadecimal(number) => format!("0x{number:02x} {word}"),
            Beside::Name(name) => format!("{word} {name}"),
        }
    }
}
