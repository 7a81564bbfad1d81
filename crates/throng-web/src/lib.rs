//! A small HTTP server for what browsers and scrapers ask of a run. It has one thread, whatever
//! comes, and all that a client can make it keep is bounded.
//!
//! - [`server`]: HTTP/1.1, one request for each connection (hyper does the protocol).
//! - [`events`]: server-sent events for several viewers, who come back without a gap.
//! - [`gate`]: who may see it: whoever has the token, from a page of this server.

#![forbid(unsafe_code)]

pub mod events;
pub mod gate;
pub mod server;

pub use events::Hub;
pub use gate::{Gate, Token};
pub use server::{Connection, Reply, Request, Running, Server};
