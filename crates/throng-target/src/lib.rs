//! Reference servers with known behavior: http, echo, im, chat, push, mqtt. They count exactly what
//! they served, so that the reports of a load generator can be verified.
//!
//! They share no codec with throng: HTTP/1.1, WebSocket, gRPC, MQTT and the private protocols of
//! chat and push have a second implementation here; HTTP/2 uses the `h2` crate, and protobuf the
//! `prost` crate.
//!
//! - [`start`] starts a server; [`Running`] returns its addresses and its [`Stats`], and stops it.
//! - [`Latency`] is the distribution of delays; [`Options`] contains the faults, and
//!   [`FaultOptions`] those of deliveries from one connection to others.
//! - [`CapacityOptions`] limits the capacity: a queue, a rate limit.
//!
//! Inside: a worker is a thread with a runtime, a listener and, if there are more connections than
//! a descriptor table can hold, its own table. A connection is one small task. A session (`http`,
//! `raw`, `websocket` with `im`, `chat`, `push`, `mqtt`) is a state machine that converts bytes to
//! responses; the connection sends them when the worker's timer says that they are due. Messages
//! for other connections are sent as letters (`mail`) to their workers, which find the connections
//! in their `places`.

#![deny(unsafe_code)]

#[macro_use]
extern crate throng_base;

#[macro_use]
mod sums;

mod address;
mod arrival;
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
mod stats;
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

pub use faults::FaultOptions;
pub use latency::Latency;
pub use options::{Options, PushOptions, TargetKind};
pub use queue::{CapacityOptions, RateLimit, SlowSpells, Usl, WarmUp};
pub use redis::RedisAddress;
pub use server::{Running, start};
pub use stats::{
    ChatStats, ConnectionStats, DeliveryStats, GrpcStats, Http2Stats, MqttStats, QueueStats,
    ServiceTime, Stats,
};
