//! What [`system`](crate) is on Linux, for other systems: the engine is compiled there, because the
//! commands that only read use its types, but no load is made there, and nothing of this is called.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::unix::AsyncFd;

/// What was read.
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

pub(crate) fn bind_address_no_port(_: &impl AsRawFd) -> io::Result<()> {
    unsupported()
}

pub(crate) fn set_local_port_range(_: &impl AsRawFd, _: u32) -> io::Result<()> {
    unsupported()
}

pub(crate) fn set_tcp_repair(_: &impl AsRawFd) -> io::Result<()> {
    unsupported()
}

pub(crate) fn tcp_state(_: &impl AsRawFd) -> io::Result<(u32, u32, u32)> {
    unsupported()
}

pub(crate) fn stamp_arrivals(_: &impl AsRawFd) -> io::Result<()> {
    unsupported()
}

pub(crate) fn receive(_: &impl AsRawFd, _: &mut [u8]) -> io::Result<Received> {
    unsupported()
}

pub(crate) fn sleep_exactly() {}

pub(crate) fn sleep(_: Duration) {}

pub(crate) fn unacknowledged(_: &impl AsRawFd) -> io::Result<u64> {
    unsupported()
}

pub(crate) fn peek(_: &impl AsRawFd, _: &mut [u8]) -> io::Result<usize> {
    unsupported()
}

pub(crate) fn are_over<'a, S: AsRawFd + 'a>(sockets: impl Iterator<Item = &'a S>) -> Vec<bool> {
    sockets.map(|_| false).collect()
}

pub(crate) fn interface_addresses(_: &str) -> io::Result<Option<Vec<IpAddr>>> {
    unsupported()
}

pub(crate) struct TimerFd(std::os::fd::OwnedFd);

impl TimerFd {
    pub(crate) fn new() -> io::Result<TimerFd> {
        unsupported()
    }

    pub(crate) fn register(self) -> io::Result<AsyncFd<TimerFd>> {
        unsupported()
    }

    pub(crate) fn set(&self, _: Duration) -> io::Result<()> {
        unsupported()
    }

    pub(crate) fn clear(&self) -> io::Result<()> {
        unsupported()
    }
}

impl AsRawFd for TimerFd {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}
