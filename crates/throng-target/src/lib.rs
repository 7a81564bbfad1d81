//! Reference servers with known behaviour: http, echo, im, chat, push, mqtt. They know exactly what
//! they served, so that what a tester reports can be checked against the truth.
//!
//! They share no codec with the tester: HTTP/1.1, WebSocket and the private protocols
//! of chat and push are written here a second time, gRPC and MQTT too; HTTP/2 is the `h2` crate's,
//! protobuf the `prost` crate's.
//!
//! - [`start`] starts a server; [`Running`] tells its addresses and its [`Stats`] and stops it.
//! - [`Latency`] is the law by which answers are delayed; [`Options`] has the faults,
//!   [`FaultOptions`] those of deliveries from one connection to others.
//! - [`CapacityOptions`] are what it can carry: a queue, a limit of the rate.
//!
//! Inside: a worker is a thread with a runtime, a listener and, when there are more connections
//! than a descriptor table holds, a table of its own. A connection is one small task. A session
//! (`http`, `raw`, `websocket` with `im`, `chat`, `push`, `mqtt`) is a machine that turns bytes
//! into answers; the connection sends them when the worker's timer says that they are due. What one
//! connection has for others goes by mail (`mail`) to their workers, which find them in their
//! `places`.

#![deny(unsafe_code)]

#[macro_use]
extern crate throng_base;

#[macro_use]
mod sums;

mod address;
mod arrival;
mod board;
mod chat;
mod door;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod faults;
mod grpc;
mod http;
mod im;
mod latency;
mod mail;
mod mqtt;
mod options;
mod output;
mod presence;
mod push;
mod queue;
mod redis;
mod server;
mod session;
mod setup;
mod stream;
#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
mod system;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;
mod times;
mod turn;
mod websocket;
mod worker;

#[cfg(test)]
mod tests;

pub use board::{
    ChatStats, ConnectionStats, DeliveryStats, GrpcStats, Http2Stats, MqttStats, QueueStats,
    ServiceTime, Stats,
};
pub use faults::FaultOptions;
pub use latency::{Latency, LatencyError};
pub use options::{Kind, Options, PushOptions};
pub use queue::{CapacityOptions, RateLimit, SlowSpells, Usl, WarmUp};
pub use redis::RedisAddress;
pub use server::{Running, start};
