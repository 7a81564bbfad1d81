//! SQL as a client speaks it to a database: login, statements and their results on one connection.
//!
//! - [`Client`]: one connection, in the [`Dialect`] of its server: [`postgres`] or [`mysql`].
//! - [`Reply`]: what a statement returned: rows, the first row by the names of its columns.
//! - [`ServerError`]: an error with its SQLSTATE.

mod ask;
mod error;
pub mod mysql;
mod parts;
pub mod postgres;
mod reply;

pub use ask::{Ask, Carrier, Dialect, Login, Values};
pub use error::{ServerError, SqlError};
pub use reply::{Came, Reply};
pub use throng_expression::scram::Room;

/// The most parameters of a statement that a message can carry.
pub const PARAMETERS_MAX: usize = u16::MAX as usize;

/// The client of one connection: bytes in, results out; statements in, bytes out.
#[derive(Debug)]
pub enum Client {
    Postgres(postgres::Client),
    MySql(mysql::Client),
}

impl Client {
    /// A client that logs in, and what it says first.
    pub fn new(login: Login, out: &mut Vec<u8>) -> Client {
        match login.dialect {
            Dialect::Postgres => Client::Postgres(postgres::Client::new(login, out)),
            Dialect::MySql => Client::MySql(mysql::Client::new(login)),
        }
    }

    /// Writes what is asked for.
    pub fn ask(&mut self, ask: &Ask<'_>, out: &mut Vec<u8>) {
        match self {
            Client::Postgres(client) => client.ask(ask, out),
            Client::MySql(client) => client.ask(ask, out),
        }
    }

    /// Says that no more follows.
    pub fn terminate(&self, out: &mut Vec<u8>) {
        match self {
            Client::Postgres(client) => client.terminate(out),
            Client::MySql(client) => client.terminate(out),
        }
    }

    /// Reads up to what came next; what it borrows is copied to `kept`. What has to be sent for it
    /// is added to `out`.
    ///
    /// # Errors
    /// The connection is of no more use.
    pub fn next<'r>(
        &mut self,
        input: &mut &[u8],
        bytes_max: usize,
        (room, kept): (&mut Room, &'r mut Vec<u8>),
        out: &mut Vec<u8>,
    ) -> Result<Option<Came<'r>>, SqlError> {
        match self {
            Client::Postgres(client) => client.next(input, bytes_max, (room, kept), out),
            Client::MySql(client) => client.next(input, bytes_max, kept, out),
        }
    }

    /// How many bytes of a message have come that is not complete.
    pub fn half(&self) -> usize {
        match self {
            Client::Postgres(client) => client.half(),
            Client::MySql(client) => client.half(),
        }
    }

    pub fn heap_bytes(&self) -> usize {
        size_of::<Client>()
            + match self {
                Client::Postgres(client) => client.heap_bytes(),
                Client::MySql(client) => client.heap_bytes(),
            }
    }
}
