//! Protocols as pure machines: bytes in, messages out. No sockets, no clock, no async.
//!
//! - [`events`]: server-sent events, an answer of HTTP that does not end.
//! - [`framed`]: private protocols that a person declares.
//! - [`grpc`]: calls and their messages, but for HTTP/2 itself.
//! - [`http1`]: HTTP/1.1 as a client speaks it (RFC 9112), cookies, content codings.
//! - [`http2`]: HTTP/2 as a client speaks it (RFC 9113), with HPACK (RFC 7541).
//! - [`machine`]: all of them as one, for whoever drives a connection.
//! - [`mqtt`]: MQTT 3.1.1 and 5.0 as a client speaks them.
//! - [`redis`]: Redis as a client speaks it (RESP2).
//! - [`sql`]: PostgreSQL as a client speaks it.
//! - [`websocket`]: RFC 6455 frames and handshake, permessage-deflate (RFC 7692).
//! - [`protobuf`]: messages of `.proto` files by compiled descriptors, as proto3 JSON maps them.
//! - [`stream`]: raw TCP; where one answer ends and the next begins.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

pub mod events;
mod field;
pub mod fields;
pub mod framed;
pub mod grpc;
pub mod http1;
pub mod http2;
mod input;
pub mod machine;
pub mod mqtt;
pub mod protobuf;
pub mod redis;
pub mod sql;
pub mod stream;
pub mod websocket;
