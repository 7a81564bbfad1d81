//! PostgreSQL as a client speaks it (PostgreSQL documentation, "Frontend/Backend Protocol", 3.0).
//!
//! - [`Client`]: login, statements and their results on one connection.
//! - [`Reply`]: what a statement returned: rows, the first row by the names of its columns.
//! - [`ServerError`]: an error with its SQLSTATE.

mod client;
mod error;
mod frame;
mod parts;
mod reply;
mod scram;
#[cfg(test)]
mod tests;
mod write;

pub use client::{Ask, Client, Login};
pub use error::{ServerError, SqlError};
pub use reply::{Came, Reply};
pub use throng_expression::scram::Room;
pub use write::{SSL_REQUEST, Values};

/// The most parameters of a statement that a message can carry.
pub const PARAMETERS_MAX: usize = u16::MAX as usize;
