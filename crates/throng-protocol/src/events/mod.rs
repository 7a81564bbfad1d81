//! Server-sent events (HTML standard, section "Server-sent events"): a response that does not end,
//! whose body consists of events.
//!
//! - [`EventParser`] reads the body, which may also be JSON lines ([`Form`]).
//! - [`EventReader`] reads a complete response, over HTTP/1.1 or HTTP/2: its head, its transfer and
//!   content coding, its events.
//! - [`EventMessage`]: an event as one message.

mod error;
mod message;
mod parser;
mod reader;

pub use error::{EventError, NotEvents};
pub use message::EventMessage;
pub use parser::{EventParser, Form, Resume};
pub use reader::{EventReader, check_head};

#[cfg(test)]
mod tests;
