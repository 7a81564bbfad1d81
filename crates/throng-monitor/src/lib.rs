//! Series of other sources during a run: exporters on the target's hosts, polled over HTTP in the
//! Prometheus text format or as JSON, read over ssh, or queried over the bus of a fleet.
//!
//! - [`ask()`]: one request of an event of the scenario.
//! - [`command`]: the output of a command.
//! - [`exposition`]: the text format, sample by sample.
//! - [`fetch`]: texts over HTTP.
//! - [`poll`]: a thread per source, which reports its readings; a slow or failed source is
//!   reported, and delays no other.
//! - [`readings`]: this host for other readers: the responses of `throng monitor`.
//! - [`remote`]: `throng monitor` on another host, over ssh.
//! - [`services`]: Redis, nginx, HAProxy and others on this host, which are part of the responses.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

mod ask;
pub mod command;
pub mod exposition;
pub mod fetch;
pub mod poll;
pub mod readings;
pub mod remote;
mod scrape;
pub mod services;

pub use ask::{Answered, ask, ask_up_to};
pub use poll::{Polled, Polls, Reached, ReadJoined, reach};
pub use readings::{Asked, Readings};
pub use services::Service;
