//! Users with their own network (`network` of a session): the wire creates their sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use throng_base::{Random, Said, Share};
use throng_metrics::Packets;
use throng_program::{Program, UserNetwork};
use throng_wire::{Counts, Wire, check_reachable};

use crate::trace::Who;

pub(crate) struct Wired {
    wire: Wire,
    /// The index of the network, by session.
    networks: Vec<Option<usize>>,
    /// The users of this process.
    share: Share,
    /// The counts that shards have already reported.
    told: Mutex<Counts>,
}

impl Wired {
    /// A wire for this many users, if there are users with a network. Removes the target addresses
    /// that such users cannot reach.
    ///
    /// # Errors
    /// Says why there can be no wire on this host.
    pub(crate) fn new(
        program: &Program,
        (users, share): (u64, Share),
        addresses: &mut [Vec<SocketAddr>],
    ) -> Result<Option<Arc<Wired>>, Said> {
        let mut networks: Vec<UserNetwork> = Vec::new();
        let mut number = |network: UserNetwork| {
            networks.push(network);
            networks.len() - 1
        };
        let numbers = program.sessions.iter().map(|it| it.network.map(&mut number)).collect();
        if networks.is_empty() {
            return Ok(None);
        }
        keep_reachable(program, addresses)?;
        // Different seeds for the users of different processes.
        let seed = Random::for_owner(program.seed, share.machine().0).next_u64();
        let wire = Wire::start(&networks, seed)?;
        let most = wire.users_max();
        match networks.iter().any(|network| network.rate.is_some()) && users > most {
            true => Err(say!(
                "a `network` with a `rate` supports at most {most} users at once, and this load \
                 has {users}; split the load over `--processes`, or omit `rate`"
            )),
            false => {
                Ok(Some(Arc::new(Wired { wire, networks: numbers, share, told: Mutex::default() })))
            }
        }
    }

    /// The source address of a user; None if the user has the network of this host.
    pub(crate) fn source(&self, who: Who) -> Option<Ipv4Addr> {
        let network = self.networks.get(usize::from(who.session)).copied().flatten()?;
        // Identities start at 1. For a user from another process, this is the number itself.
        let user = who.user.0.saturating_sub(1);
        Some(self.wire.address(network, self.share.local(user).unwrap_or(user)))
    }

    /// Creates a socket that sends over the wire.
    pub(crate) fn socket<T>(&self, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.wire.inside(make)
    }

    /// Packet counts since the last call, by any shard.
    pub(crate) fn take_packets(&self) -> Packets {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = self.wire.counts();
        let Counts { carried, lost, dropped, overflowed, late } = counts.since(&told);
        *told = counts;
        Packets { carried, lost, dropped, overflowed, late }
    }
}

/// The addresses of their targets that users with a network can reach.
fn keep_reachable(program: &Program, addresses: &mut [Vec<SocketAddr>]) -> Result<(), Said> {
    let of_network = program.sessions.iter().filter(|session| session.network.is_some());
    let links: Vec<_> = of_network.flat_map(|session| &session.links).collect();
    for ((number, target), addresses) in (0..).zip(&program.targets).zip(addresses) {
        let is_used = links.iter().any(|it| it.targets.is_empty() || it.targets.contains(&number));
        if !is_used || target.unix_socket.is_some() {
            continue;
        }
        addresses.retain(SocketAddr::is_ipv4);
        if addresses.is_empty() {
            let host = &target.host;
            return Err(say!(
                "`{host}` has no IPv4 address, and users with a `network` use only IPv4"
            ));
        }
        let mut hosts: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
        hosts.dedup();
        hosts.into_iter().try_for_each(check_reachable)?;
    }
    Ok(())
}
