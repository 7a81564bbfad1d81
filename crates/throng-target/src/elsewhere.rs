//! What [`system`](crate) is on Linux, for other systems: the target is compiled there, because the
//! command line names its options, but none is served there, and nothing of this is called.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use socket2::Socket;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) struct TimerFd(OwnedFd);

impl TimerFd {
    pub(crate) fn new() -> io::Result<TimerFd> {
        unsupported()
    }

    pub(crate) fn arm(&self, _: Duration) -> io::Result<()> {
        unsupported()
    }
}

impl AsRawFd for TimerFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> io::Result<Bell> {
        unsupported()
    }

    pub(crate) fn try_clone(&self) -> io::Result<Bell> {
        unsupported()
    }

    pub(crate) fn ring(&self) {}

    pub(crate) fn hear(&self) {}
}

impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

pub(crate) trait OwnsDescriptor: AsRawFd {}

impl OwnsDescriptor for TimerFd {}
impl OwnsDescriptor for Bell {}

pub(crate) fn watch<T: OwnsDescriptor>(_: T) -> io::Result<AsyncFd<T>> {
    unsupported()
}

pub(crate) fn stamp_arrivals(_: &Socket) -> io::Result<()> {
    unsupported()
}

/// What one read of a socket gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) bytes: usize,
    pub(crate) stamp: Option<u64>,
}

pub(crate) fn receive(_: &TcpStream, _: &mut [u8]) -> io::Result<Received> {
    unsupported()
}

pub(crate) fn own_descriptor_table() -> io::Result<()> {
    unsupported()
}

pub(crate) fn part_descriptor_table() -> io::Result<()> {
    unsupported()
}

pub(crate) fn spread_by_source(_: &Socket, _: bool, _: u32) -> io::Result<()> {
    unsupported()
}

pub(crate) fn raise_descriptor_limit() -> io::Result<u64> {
    unsupported()
}
