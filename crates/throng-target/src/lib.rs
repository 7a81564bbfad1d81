//! Reference servers with known behaviour: http, echo, im. They know exactly what they served,
//! so that what a tester reports can be checked against the truth.
//!
//! They share no codec with the tester: HTTP/1.1 and WebSocket are written here a second time.
//!
//! - [`start`] starts a server; [`Running`] tells its addresses and its [`Stats`] and stops it.
//! - [`Latency`] is the law by which answers are delayed; [`Options`] has the faults.
//!
//! Inside: a worker is a thread with a runtime, a listener and, when there are more connections
//! than a descriptor table holds, a table of its own. A connection is one small task. A session
//! (`http`, `raw`, `websocket` with `im`) is a machine that turns bytes into answers; the
//! connection sends them when the worker's timer says that they are due.

#![deny(unsafe_code)]

mod board;
mod connection;
mod http;
mod im;
mod latency;
mod options;
mod output;
mod server;
mod session;
mod stream;
#[allow(unsafe_code)]
mod system;
mod timer;
mod turn;
mod websocket;
mod worker;

#[cfg(test)]
mod tests;

pub use board::{ConnectionStats, ServiceTime, Stats};
pub use latency::{Latency, LatencyError};
pub use options::{Kind, Options};
pub use server::{Running, start};
