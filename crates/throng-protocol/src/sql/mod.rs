//! SQL, client side: login, statements and their results on one connection.
//!
//! - [`Client`]: one connection, in the [`Dialect`] of its server: [`postgres`] or [`mysql`].
//! - [`Reply`]: the result of a statement: counts, and the first row by column names.
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

/// Most parameters of a statement that a message can contain.
pub const PARAMETERS_MAX: usize = u16::MAX as usize;

/// The client of one connection: bytes in, results out; statements in, bytes out.
#[derive(Debug)]
pub enum Client {
    Postgres(postgres::Client),
    MySql(mysql::Client),
}

impl Client {
    /// Creates a client that logs in, and writes its first message.
    pub fn new(login: Login, out: &mut Vec<u8>) -> Client {
        match login.dialect {
            Dialect::Postgres => Client::Postgres(postgres::Client::new(login, out)),
            Dialect::MySql => Client::MySql(mysql::Client::new(login)),
        }
    }

    /// Writes a statement.
    pub fn ask(&mut self, ask: &Ask<'_>, out: &mut Vec<u8>) {
        match self {
            Client::Postgres(client) => client.ask(ask, out),
            Client::MySql(client) => client.ask(ask, out),
        }
    }

    /// Rolls back the open transaction, if any: immediately, or when the running request has ended.
    /// The next statement runs after that.
    pub fn roll_back(&mut self, out: &mut Vec<u8>) {
        match self {
            Client::Postgres(client) => client.roll_back(out),
            Client::MySql(client) => client.roll_back(out),
        }
    }

    /// Whether a transaction is open, by the server's last report.
    pub fn is_in_transaction(&self) -> bool {
        match self {
            Client::Postgres(client) => client.is_in_transaction(),
            Client::MySql(client) => client.is_in_transaction(),
        }
    }

    /// Ends the connection.
    pub fn terminate(&self, out: &mut Vec<u8>) {
        match self {
            Client::Postgres(client) => client.terminate(out),
            Client::MySql(client) => client.terminate(out),
        }
    }

    /// Reads up to the next event; data that it borrows is copied to `kept`. Data to send is
    /// appended to `out`.
    ///
    /// # Errors
    /// The connection can no longer be used.
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

    /// Bytes of an incomplete message.
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
