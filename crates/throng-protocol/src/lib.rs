//! Protocols as pure machines: bytes in, messages out. No sockets, no clock, no async.
//!
//! - [`events`]: server-sent events, an HTTP response that does not end.
//! - [`framed`]: declared protocols.
//! - [`grpc`]: calls and their messages, without HTTP/2 itself.
//! - [`http1`]: HTTP/1.1, client side (RFC 9112), cookies, content codings.
//! - [`http2`]: HTTP/2, client side (RFC 9113), with HPACK (RFC 7541).
//! - [`machine`]: all of them behind one interface, for the code that drives a connection.
//! - [`mqtt`]: MQTT 3.1.1 and 5.0, client side.
//! - [`redis`]: Redis, client side (RESP2).
//! - [`sql`]: PostgreSQL and MySQL, client side.
//! - [`websocket`]: RFC 6455 frames and handshake, permessage-deflate (RFC 7692).
//! - [`protobuf`]: messages of `.proto` files by compiled descriptors, mapped as in proto3 JSON.
//! - [`stream`]: raw TCP; where one reply ends and the next starts.

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
