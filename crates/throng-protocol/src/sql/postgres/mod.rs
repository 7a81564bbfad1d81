//! PostgreSQL (PostgreSQL documentation, "Frontend/Backend Protocol", 3.0).

mod client;
mod frame;
mod scram;
#[cfg(test)]
mod tests;
mod write;

pub use client::Client;
pub use write::SSL_REQUEST;
