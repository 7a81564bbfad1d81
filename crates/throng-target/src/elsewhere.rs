//! The functions of [`system`](crate) for other systems. The crate is compiled there because the
//! command line has its options, but servers do not run: timers and wake-ups cannot be created.

use std::io;
use std::time::Duration;

use socket2::Socket;
use tokio::net::TcpStream;

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) enum Timer {}

impl Timer {
    pub(crate) fn new() -> io::Result<Timer> {
        unsupported()
    }

    pub(crate) fn arm(&self, _: Duration) -> io::Result<()> {
        match *self {}
    }

    pub(crate) async fn expired(&self) -> io::Result<()> {
        match *self {}
    }
}

pub(crate) enum Bell {}

impl Bell {
    pub(crate) fn new() -> io::Result<Bell> {
        unsupported()
    }

    pub(crate) fn hung(&self) -> io::Result<HungBell> {
        match *self {}
    }

    pub(crate) fn ring(&self) {
        match *self {}
    }
}

pub(crate) enum HungBell {}

impl HungBell {
    pub(crate) async fn rung(&self) -> io::Result<()> {
        match *self {}
    }
}

pub(crate) fn stamp_arrivals(_: &Socket) -> io::Result<()> {
    unsupported()
}

/// The result of one read from a socket.
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

pub(crate) fn share_port(_: &Socket, _: bool) -> io::Result<()> {
    unsupported()
}

pub(crate) fn spread_by_source(_: &Socket, _: bool, _: u32) -> io::Result<()> {
    unsupported()
}

pub(crate) fn raise_descriptor_limit() -> io::Result<u64> {
    unsupported()
}
