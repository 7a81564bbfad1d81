//! A gRPC server with the service of `examples/echo.proto` (github.com/grpc/grpc,
//! `doc/PROTOCOL-HTTP2.md`). This module contains the messages; `connection/grpc.rs` executes the
//! calls.

mod echo;
mod reflection;
mod wire;

pub(crate) use echo::{CountRequest, SayReply, SayRequest};
pub(crate) use reflection::ReflectionRequest;
pub(crate) use wire::{Encoding, Messages, Status, timeout, write_message};

/// Maximum length of a message, compressed and uncompressed; the usual default.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The available methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Say,
    Count,
    Collect,
    Chat,
    /// Server reflection.
    Reflection,
}

impl Method {
    pub(crate) fn at(path: &str) -> Option<Method> {
        Some(match path {
            "/echo.v1.Echo/Say" => Method::Say,
            "/echo.v1.Echo/Count" => Method::Count,
            "/echo.v1.Echo/Collect" => Method::Collect,
            "/echo.v1.Echo/Chat" => Method::Chat,
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
            | "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" => {
                Method::Reflection
            }
            _ => return None,
        })
    }
}
