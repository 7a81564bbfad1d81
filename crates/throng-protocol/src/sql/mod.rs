//! SQL as a client speaks it to a database: login, statements and their results on one connection.
//!
//! - [`Client`]: one connection, in the [`Dialect`] of its server: [`postgres`] or [`mysql`].
//! - [`Reply`]: what a statement returned: rows, the first row by the names of its columns.
//! - [`ServerError`]: an error with its SQLSTATE.

mod ask;
mod error;
mod found;
pub mod mysql;
mod parts;
pub mod postgres;
mod reply;

pub use ask::{Ask, Carrier, Dialect, Login, Values};
pub use error::{ServerError, SqlError};
pub use reply::{Came, Reply};

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

    /// Rolls back the transaction that is open, if there is one: at once, or when the running
    /// request has ended. What is asked for next is executed behind that.
    pub fn roll_back(&mut self, out: &mut Vec<u8>) {
        match self {
            Client::Postgres(client) => client.roll_back(out),
            Client::MySql(client) => client.roll_back(out),
        }
    }

    /// Whether a transaction is open, as the server said last.
    pub fn is_in_transaction(&self) -> bool {
        match self {
            Client::Postgres(client) => client.is_in_transaction(),
            Client::MySql(client) => client.is_in_transaction(),
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
        kept: &'r mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Came<'r>>, SqlError> {
        match self {
            Client::Postgres(client) => client.next(input, bytes_max, kept, out),
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
