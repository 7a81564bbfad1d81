//! Messages on long-lived connections: WebSocket, MQTT, Redis, gRPC, TCP, private protocols; and
//! statements of SQL.

mod bursts;
pub(crate) mod chat;
pub(crate) mod declared;
mod encrypted;
mod grpc;
mod library;
mod mqtt;
mod mqtt_users;
mod presence;
pub(crate) mod push;
pub(crate) mod redis;
mod reflection;
mod secure;
pub(crate) mod sql;
mod tcp;
mod websocket;
