//! What protocols say of their statuses, each of which has numbers of its own among those that
//! records have: HTTP, and the closes of WebSockets, end far below.

pub mod grpc;
pub mod mqtt;
pub mod redis;
pub mod sql;

/// Where the fix belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    Target,
    Scenario,
    /// One of them, and nobody can tell from outside.
    TargetOrScenario,
    /// The peer says that we broke the protocol.
    Generator,
}

/// What a status means in its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// As sums show it: `NOT_FOUND`, `23505`.
    pub word: &'static str,
    pub beside: Beside,
    pub blame: Blame,
}

/// What stands beside the word where one status is shown alone.
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
    /// The number that the protocol gives it, if it does.
    pub fn number(&self) -> Option<u16> {
        match self.beside {
            Beside::Number(number) | Beside::Hexadecimal(number) => Some(number.into()),
            Beside::Nothing | Beside::Name(_) => None,
        }
    }

    /// As it is shown alone.
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
