//! Queries the kernel for its sockets: NETLINK_SOCK_DIAG (sock_diag(7)). Requests and responses are
//! bytes; only [`Diag`] has a socket.

use std::io;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// `AF_INET` and `AF_INET6` of linux/socket.h.
pub(super) const FAMILIES: [u8; 2] = [2, 10];
/// `IPPROTO_TCP` of linux/in.h.
const TCP: u8 = 6;
/// The states of tcp_states.h, by their number.
pub(super) const STATES: [&str; 13] = [
    "",
    "established",
    "syn-sent",
    "syn-recv",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "close",
    "close-wait",
    "last-ack",
    "listen",
    "closing",
    "new-syn-recv",
];
const LISTEN: u32 = 1 << 10;
/// All states of a connection: not closed, and not listening.
const CONNECTIONS: u32 = 0x1ffe & !LISTEN & !(1 << 7);

/// linux/netlink.h and linux/sock_diag.h; libraries have these names only on Linux.
const NETLINK: i32 = 16;
const NETLINK_SOCK_DIAG: i32 = 4;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` and `NLM_F_DUMP`.
const REQUEST_DUMP: u16 = 0x301;
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
/// `struct inet_diag_msg`.
const MESSAGE_BYTES: usize = 72;
const ATTRIBUTE_BYTES: usize = 4;
const BYTECODE: u16 = 1;
const SOCKET_MEMORY: u16 = 7;
/// The index in these numbers.
const SOCKET_MEMORY_DROPS: usize = 8;
const PORT_AT_LEAST: u8 = 2;
const PORT_AT_MOST: u8 = 3;
/// The maximum size of a part of a dump.
const BUFFER_BYTES: usize = 32 * 1024;
const TIME_MAX: Duration = Duration::from_secs(2);

/// A TCP socket as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) state: u8,
    pub(super) address: IpAddr,
    pub(super) port: u16,
    /// For a listening socket: connections that wait for accept(2).
    pub(super) queue: u32,
    /// For a listening socket: its limit. The queue is full when it is longer.
    pub(super) queue_limit: u32,
    pub(super) inode: u32,
    /// Connections that a listening socket has dropped since it was opened.
    pub(super) drops: Option<u32>,
}

/// Requests the listening sockets of a family: the kernel only walks their table.
pub(super) fn listening(family: u8, sequence: u32) -> Vec<u8> {
    request(family, LISTEN, 1 << (SOCKET_MEMORY - 1), &[], sequence)
}

/// Requests the connections of a family with this local port.
pub(super) fn connections(family: u8, port: u16, sequence: u32) -> Vec<u8> {
    // Each instruction is a code, with the offset of the next one for yes and for no; a jump beyond
    // the end means no. The port is in the next instruction (inet_diag.h).
    let instruction = |code: u8, yes: u8, no: u16| {
        let no = no.to_ne_bytes();
        [code, yes, no[0], no[1]]
    };
    let code = [
        instruction(PORT_AT_LEAST, 8, 20),
        instruction(0, 0, port),
        instruction(PORT_AT_MOST, 8, 12),
        instruction(0, 0, port),
    ];
    request(family, CONNECTIONS, 0, &code.concat(), sequence)
}

fn request(family: u8, states: u32, extensions: u8, code: &[u8], sequence: u32) -> Vec<u8> {
    let attribute = if code.is_empty() { 0 } else { ATTRIBUTE_BYTES + code.len() };
    let length = REQUEST_BYTES + attribute;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST_DUMP.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend([family, TCP, extensions, 0]);
    bytes.extend(states.to_ne_bytes());
    // The addresses and ports of one socket: 0 matches all.
    bytes.resize(REQUEST_BYTES, 0);
    if attribute > 0 {
        bytes.extend((attribute as u16).to_ne_bytes());
        bytes.extend(BYTECODE.to_ne_bytes());
        bytes.extend(code);
    }
    bytes
}

/// How a part of a response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// More parts follow.
    More,
    Done,
    /// An error number of the kernel.
    Failed(i32),
}

/// Parses a part of the response to the request with this number. A truncated message ends it.
pub(super) fn answer(mut bytes: &[u8], sequence: u32, mut each: impl FnMut(Found)) -> End {
    while let (Some(length), Some(kind), Some(number)) =
        (number32(bytes, 0), number16(bytes, 4), number32(bytes, 8))
    {
        let length = length as usize;
        if length < HEADER_BYTES || length > bytes.len() {
            break;
        }
        let (message, rest) = bytes.split_at(length);
        // Messages are aligned to four bytes.
        bytes = rest.get(length.next_multiple_of(4) - length..).unwrap_or_default();
        if number != sequence {
            continue;
        }
        let body = &message[HEADER_BYTES..];
        match kind {
            NLMSG_DONE => return End::Done,
            NLMSG_ERROR => {
                let code =
                    number32(body, 0).map_or(libc::EPROTO, |code| (code as i32).wrapping_neg());
                return End::Failed(code);
            }
            _ => drop(found(body).map(&mut each)),
        }
    }
    End::More
}

fn found(body: &[u8]) -> Option<Found> {
    let (message, attributes) = body.split_at_checked(MESSAGE_BYTES)?;
    let source: [u8; 16] = message[8..24].try_into().ok()?;
    let address = match message[0] {
        family if family == FAMILIES[0] => {
            IpAddr::V4(Ipv4Addr::new(source[0], source[1], source[2], source[3]))
        }
        _ => IpAddr::V6(Ipv6Addr::from(source)),
    };
    Some(Found {
        state: message[1],
        address,
        port: u16::from_be_bytes([message[4], message[5]]),
        queue: number32(message, 56)?,
        queue_limit: number32(message, 60)?,
        inode: number32(message, 68)?,
        drops: attribute(attributes, SOCKET_MEMORY)
            .and_then(|memory| number32(memory, 4 * SOCKET_MEMORY_DROPS)),
    })
}

/// The content of an attribute, by its type.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (length, kind) = (usize::from(number16(bytes, 0)?), number16(bytes, 2)?);
        let contents = bytes.get(ATTRIBUTE_BYTES..length)?;
        if kind == wanted {
            return Some(contents);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn number16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A netlink socket.
#[derive(Debug)]
pub(super) struct Diag {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Diag {
    pub(super) fn open() -> io::Result<Diag> {
        let (domain, protocol) = (Domain::from(NETLINK), Protocol::from(NETLINK_SOCK_DIAG));
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        socket.set_read_timeout(Some(TIME_MAX))?;
        Ok(Diag { socket, buffer: vec![0; BUFFER_BYTES], sequence: 0 })
    }

    /// Sends `request` with a new number, and reads the response to its end.
    pub(super) fn ask(
        &mut self,
        request: impl Fn(u32) -> Vec<u8>,
        mut each: impl FnMut(Found),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.write_all(&request(self.sequence))?;
        loop {
            let length = self.socket.read(&mut self.buffer)?;
            match answer(&self.buffer[..length], self.sequence, &mut each) {
                End::More => {}
                End::Done => return Ok(()),
                End::Failed(code) => return Err(io::Error::from_raw_os_error(code)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
