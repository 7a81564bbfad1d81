//! The sockets of opening connections: their source address and port, and their network.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::Socket;
use throng_base::{Said, Time};
use throng_metrics::Cause;
use throng_program::Slow;

use super::refused;
use crate::failure::Failure;
use crate::network::Network;
use crate::network::sources::{Chosen, Pool, Ports, Range, SourceKind};
use crate::system;
use crate::transport::SLOW_RECEIVE_BYTES;

/// Maximum number of ports of an address that an attempt tries, if the kernel does not choose. As
/// long as one port in a hundred is free, this nearly always finds one.
const PORTS_TRIED_MAX: u32 = 1024;

/// The destination, the source and the user of a connection.
pub(super) struct Place<'a> {
    pub(super) network: &'a Network,
    pub(super) pool: &'a Pool,
    pub(super) address: SocketAddr,
    pub(super) slow: Slow,
    /// The source address of a user with its own network.
    pub(super) user: Option<Ipv4Addr>,
}

/// Starts to connect a socket, from the first source with a free port.
pub(super) fn begin(place: &Place<'_>, kind: SourceKind, now: Time) -> Result<Socket, Failure> {
    let (pool, address) = (place.pool, place.address);
    if let Some(user) = place.user {
        return begin_from(place, kind, Some(user.into()), 0).map_err(|denied| match denied {
            Denied::Other(error) => refused(address, &error),
            Denied::Full | Denied::Absent => {
                Failure::new(Cause::PortsExhausted, no_port(user, address))
            }
        });
    }
    while let Some(mut chosen) = pool.next(now) {
        let begun = match pool.plan.ports {
            Ports::InTurn(range) => begin_in_turn(place, kind, &mut chosen, range),
            Ports::OfHost | Ports::Among(_) => begin_from(place, kind, chosen.source.address, 0),
        };
        match begun {
            Ok(socket) => {
                chosen.used();
                return Ok(socket);
            }
            Err(Denied::Full) if chosen.source.address.is_none() && !has_way(address) => {
                return Err(Failure::new(Cause::Unreachable, no_way(address)));
            }
            Err(Denied::Full) => chosen.full(now),
            Err(Denied::Absent) => chosen.absent(),
            Err(Denied::Other(error)) => return Err(refused(address, &error)),
        }
    }
    Err(Failure::new(Cause::PortsExhausted, pool.exhausted(address)))
}

/// Whether this host has an address from which this one can be reached. Connects a UDP socket,
/// which sends nothing; the kernel reports a lack of ports differently (EAGAIN).
pub(crate) fn has_way(address: SocketAddr) -> bool {
    let socket = SourceKind::Datagram.socket(address);
    let asked = socket.and_then(|socket| socket.connect(&address.into()));
    let error = asked.err().and_then(|error| error.raw_os_error());
    !matches!(
        error,
        Some(libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT | libc::ENETUNREACH | libc::EHOSTUNREACH)
    )
}

fn no_way(address: SocketAddr) -> Said {
    say!("{address}: this host has no source address that can reach it")
}

fn no_port(user: Ipv4Addr, address: SocketAddr) -> Said {
    say!(
        "all source ports of `{user}` to {address} are in use; the user has too many connections \
         at once"
    )
}

/// Why no connection could be started from a source.
enum Denied {
    /// It has no free port for this target, or the given port is not free.
    Full,
    /// This host does not have the address.
    Absent,
    Other(io::Error),
}

impl From<io::Error> for Denied {
    fn from(error: io::Error) -> Denied {
        match error.raw_os_error() {
            Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE) => Denied::Full,
            _ => Denied::Other(error),
        }
    }
}

/// Tries one port after another, if the kernel does not choose.
fn begin_in_turn(
    place: &Place<'_>,
    kind: SourceKind,
    chosen: &mut Chosen<'_>,
    range: Range,
) -> Result<Socket, Denied> {
    for _ in 0..range.count.min(PORTS_TRIED_MAX) {
        let port = chosen.port(range);
        match begin_from(place, kind, chosen.source.address, port) {
            Err(Denied::Full) => chosen.look_further(range),
            begun => return begun,
        }
    }
    Err(Denied::Full)
}

/// Starts a connection from `source`; the kernel chooses an address of None and a port of 0.
fn begin_from(
    place: &Place<'_>,
    kind: SourceKind,
    source: Option<IpAddr>,
    port: u16,
) -> Result<Socket, Denied> {
    let address = place.address;
    let socket = match (&place.network.wired, place.user) {
        (Some(wired), Some(_)) => wired.socket(|| kind.socket(address))?,
        _ => {
            let socket = kind.socket(address)?;
            place.pool.plan.set_options(&socket, address, kind)?;
            socket
        }
    };
    if place.slow.read.is_some() {
        // Before connecting: a receive window cannot shrink once it is advertised.
        socket.set_recv_buffer_size(SLOW_RECEIVE_BYTES)?;
    }
    if source.is_some() || port != 0 {
        let any = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        // Without it, bind(2) would reserve a port of this source for all targets.
        if port == 0 && kind == SourceKind::Stream {
            system::bind_address_no_port(&socket)?;
        }
        let bound = socket.bind(&SocketAddr::new(source.unwrap_or(any), port).into());
        bound.map_err(|error| match error.raw_os_error() {
            Some(libc::EADDRNOTAVAIL) => Denied::Absent,
            _ => error.into(),
        })?;
    }
    if kind == SourceKind::Stream && (place.network.sends_in_pieces || place.slow.write.is_some()) {
        socket.set_tcp_nodelay(true)?;
    }
    match socket.connect(&address.into()) {
        Ok(()) => Ok(socket),
        Err(error) => match error.raw_os_error() {
            Some(libc::EINPROGRESS) => Ok(socket),
            // A UDP socket found no free port (`inet_dgram_connect` in the kernel).
            Some(libc::EAGAIN) if kind == SourceKind::Datagram => Err(Denied::Full),
            _ => Err(error.into()),
        },
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use throng_base::Share;

    use super::*;

    /// Starts up to this many connections, until one fails.
    pub(crate) fn begin_all(
        network: &Network,
        address: SocketAddr,
        kind: SourceKind,
        count: usize,
    ) -> (Vec<Socket>, Option<Failure>) {
        let place = Place {
            network,
            pool: &network.pools.to(0, address, &[address]),
            address,
            slow: Slow::default(),
            user: None,
        };
        let mut sockets = Vec::new();
        for _ in 0..count {
            match begin(&place, kind, Time::ZERO) {
                Ok(socket) => sockets.push(socket),
                Err(failure) => return (sockets, Some(failure)),
            }
        }
        (sockets, None)
    }

    #[test]
    fn a_slow_reader_has_a_small_socket_buffer() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let plan = Arc::new(crate::network::sources::tests::plan_of(&[]));
        let network = Network::plain(plan.pools(1, &[vec![address]], Share::WHOLE));
        let slow = Slow { read: Some(100), write: Some(100) };
        let place = Place {
            network: &network,
            pool: &network.pools.to(0, address, &[address]),
            address,
            slow,
            user: None,
        };
        for kind in [SourceKind::Stream, SourceKind::Datagram] {
            let socket = begin(&place, kind, Time::ZERO).unwrap();
            assert_eq!(socket.recv_buffer_size().unwrap(), 2 * SLOW_RECEIVE_BYTES);
            assert!(kind == SourceKind::Datagram || socket.tcp_nodelay().unwrap());
        }
    }
}
