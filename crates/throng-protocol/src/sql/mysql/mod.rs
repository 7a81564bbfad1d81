//! MySQL and MariaDB (MySQL source code documentation, "Client/Server Protocol", version 10), in
//! the form that all servers since MySQL 5.0 support: results end with EOF packets.

mod client;
mod login;
mod packets;
mod row;
mod rsa;
#[cfg(test)]
mod tests;

pub use client::Client;
pub use login::{SSL_REQUEST, offers_tls};
