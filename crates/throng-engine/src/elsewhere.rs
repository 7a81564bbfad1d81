//! Replaces [`system`](crate) on systems other than Linux: the engine compiles there because
//! read-only commands use its types, but no load is generated, and none of this is called.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// Never opened.
pub(crate) use tokio::net::TcpStream as UnixStream;

/// Never compared: no error has this number.
pub(crate) const EHOSTDOWN: i32 = 112;
/// Nothing is sent.
pub(crate) const MSG_NOSIGNAL: i32 = 0x4000;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) bytes: usize,
    pub(crate) stamp: u64,
}

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn socket(domain: Domain, kind: Type, protocol: Option<Protocol>) -> io::Result<Socket> {
    let _ = (domain, kind, protocol);
    unsupported()
}

pub(crate) fn set_transparent(_: &Socket, _: SocketAddr) -> io::Result<()> {
    unsupported()
}

pub(crate) fn hear_nothing(_: &Socket) -> io::Result<()> {
    unsupported()
}

pub(crate) fn own_descriptor_table() -> io::Result<()> {
    unsupported()
}

pub(crate) fn raise_descriptor_limit() -> u64 {
    0
}

pub(crate) fn bind_address_no_port<S>(_: &S) -> io::Result<()> {
    unsupported()
}

pub(crate) fn set_local_port_range<S>(_: &S, _: u32) -> io::Result<()> {
    unsupported()
}

pub(crate) fn set_tcp_repair<S>(_: &S) -> io::Result<()> {
    unsupported()
}

pub(crate) fn tcp_state<S>(_: &S) -> io::Result<(u32, u32, u32)> {
    unsupported()
}

pub(crate) fn stamp_arrivals<S>(_: &S) -> io::Result<()> {
    unsupported()
}

pub(crate) fn receive<S>(_: &S, _: &mut [u8]) -> io::Result<Received> {
    unsupported()
}

pub(crate) fn sleep_exactly() {}

pub(crate) fn sleep(_: Duration) {}

pub(crate) fn unacknowledged<S>(_: &S) -> io::Result<u64> {
    unsupported()
}

pub(crate) fn peek<S>(_: &S, _: &mut [u8]) -> io::Result<usize> {
    unsupported()
}

pub(crate) fn are_over<'a, S: 'a>(sockets: impl Iterator<Item = &'a S>) -> Vec<bool> {
    sockets.map(|_| false).collect()
}

pub(crate) fn interface_addresses(_: &str) -> io::Result<Option<Vec<IpAddr>>> {
    unsupported()
}

pub(crate) struct Timer(());

impl Timer {
    pub(crate) fn new() -> io::Result<Timer> {
        unsupported()
    }

    pub(crate) fn set(&self, _: Duration) -> io::Result<()> {
        unsupported()
    }

    pub(crate) fn poll(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}
