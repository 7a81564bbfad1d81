//! Series of other sources beside a run: what exporters on the target's hosts say of themselves,
//! asked for again and again over HTTP in the text format of Prometheus or as JSON, read over ssh,
//! or asked over the bus of a fleet.
//!
//! - [`ask()`]: one request of an event of the scenario.
//! - [`command`]: what a command prints.
//! - [`exposition`]: the text format, sample by sample.
//! - [`fetch`]: texts over HTTP.
//! - [`poll`]: a thread for each source, which tells what it has read; a slow or dead source is
//!   told, and slows nothing.
//! - [`readings`]: this host for other readers: what `throng monitor` answers.
//! - [`remote`]: `throng monitor` on another host, over ssh.
//! - [`services`]: Redis, nginx, HAProxy and others on this host, which it answers with.

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
