//! A small HTTP server for browsers and scrapers. It uses one thread for any number of clients, and
//! the memory that a client can occupy is bounded.
//!
//! - [`server`]: HTTP/1.1, one request per connection (hyper implements the protocol).
//! - [`events`]: server-sent events for several viewers, which reconnect without a gap.
//! - [`gate`]: access control, by a token and by the origin of the page.

#![forbid(unsafe_code)]

pub mod events;
pub mod gate;
pub mod server;

pub use events::Hub;
pub use gate::{Gate, Token};
pub use server::{Connection, Reply, Request, Running, Server};
