//! The source addresses and ports of a run, looked up and tried before its first packet. A subnet
//! takes no more memory than one address. `pool` is a shard's part.

mod pool;
mod pools;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use socket2::{Domain, Protocol, Socket, Type};
use throng_program::{Program, Scheme, SourceBlock, Sources, Target};

use throng_base::{Said, Share};

use crate::prepared::stride;
use crate::system;

pub(crate) use pool::{Chosen, Pool};
pub(crate) use pools::Pools;

/// The kernel's default (ip(7), ip_local_port_range).
const PORTS_USUAL: (u16, u16) = (32_768, 60_999);
/// The first source address that a run chooses itself if the target is on the loopback interface.
const LOOPBACK_FIRST: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 1);
const LOOPBACK_LAST: Ipv4Addr = Ipv4Addr::new(127, 1, 255, 254);
/// How many of the required addresses are tried before the first packet.
const TRIED_MAX: u64 = 1024;
/// Addresses of one family that a run can number.
const ADDRESSES_MAX: u64 = 1 << 40;
/// The share of an address's ports that are used before another address is taken. With a given
/// range, the kernel tries one port after another and soon finds a free one; measured with Linux
/// 6.18, a connection costs the same up to 99 %.
const FILL: f64 = 0.9;
/// Otherwise the kernel tries every second port first: once half of them are used, it tries all of
/// those in vain each time, which made a connection 60 times as expensive.
const FILL_BY_PARITY: f64 = 0.45;

/// How many source addresses the connections of a program to `target` can have on this host: as
/// many as `source` lists, or those that a run chooses itself.
pub fn source_count(program: &Program, target: IpAddr) -> Result<u64, Said> {
    let plan = Plan::looked_up(&program.connection.sources)?;
    Ok(plan.addresses(target).map_or(1, |list| list.count))
}

/// How many source ports an address has per target address.
pub fn source_ports(sources: &Sources) -> u64 {
    let (first, last) = sources.ports.unwrap_or_else(host_ports);
    u64::from(last.saturating_sub(first)) + 1
}

/// The share of an address's ports that a run on this host uses before it takes another address.
pub fn source_fill(sources: &Sources) -> f64 {
    Plan::ports_of(sources).fill()
}

/// The share of all users for each target of a program: sessions by weight, and the targets of each
/// by weight. The sum is 1.
pub fn target_shares(program: &Program) -> Vec<f64> {
    let mut shares = vec![0.0; program.targets.len()];
    let weight = |target: &u16| program.targets.get(usize::from(*target)).map_or(0, |it| it.weight);
    for (session, all) in program.sessions.iter().zip(program.session_shares()) {
        for link in &session.links {
            let own: f64 = link.targets.iter().map(|target| f64::from(weight(target))).sum();
            for target in &link.targets {
                let part = f64::from(weight(target)) / own.max(1.0);
                if let Some(share) = shares.get_mut(usize::from(*target)) {
                    *share += part * all;
                }
            }
        }
    }
    shares
}

/// Addresses of one family, in order.
#[derive(Debug, Default)]
pub(crate) struct AddressList {
    spans: Vec<Span>,
    count: u64,
}

#[derive(Debug)]
struct Span {
    /// How many addresses precede it.
    before: u64,
    first: IpAddr,
}

impl AddressList {
    fn push(&mut self, first: IpAddr, last: IpAddr) {
        let count = match (first, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                u64::from(last.to_bits().saturating_sub(first.to_bits())) + 1
            }
            (IpAddr::V6(first), IpAddr::V6(last)) => {
                let more = last.to_bits().saturating_sub(first.to_bits());
                u64::try_from(more).unwrap_or(u64::MAX).saturating_add(1)
            }
            // A range cannot have ends of two families; the scenario language rejects it.
            _ => return,
        };
        self.spans.push(Span { before: self.count, first });
        self.count = self.count.saturating_add(count).min(ADDRESSES_MAX);
    }

    fn get(&self, index: u64) -> Option<IpAddr> {
        if index >= self.count {
            return None;
        }
        let behind = self.spans.partition_point(|span| span.before <= index);
        let span = self.spans.get(behind.checked_sub(1)?)?;
        let further = index - span.before;
        Some(match span.first {
            IpAddr::V4(first) => {
                Ipv4Addr::from_bits(first.to_bits().wrapping_add(further as u32)).into()
            }
            IpAddr::V6(first) => {
                let bits = first.to_bits().wrapping_add(u128::from(further));
                std::net::Ipv6Addr::from_bits(bits).into()
            }
        })
    }
}

/// The type of a connection's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceKind {
    /// A port can be used once per target address.
    Stream,
    /// A port can be used once, whatever the target: the kernel does not distinguish two bound UDP
    /// sockets with the same port.
    Datagram,
}

impl SourceKind {
    fn of(target: &Target) -> SourceKind {
        match target.scheme {
            Scheme::Udp => SourceKind::Datagram,
            _ => SourceKind::Stream,
        }
    }

    /// A socket for a connection to `target`.
    pub(crate) fn socket(self, target: SocketAddr) -> io::Result<Socket> {
        let (kind, protocol) = match self {
            SourceKind::Stream => (Type::STREAM, Protocol::TCP),
            SourceKind::Datagram => (Type::DGRAM, Protocol::UDP),
        };
        system::socket(Domain::for_address(target), kind, Some(protocol))
    }
}

/// How source ports are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    /// By the kernel, from those of the host, by parity.
    OfHost,
    /// By the kernel, from these, one after another: see [`system::set_local_port_range`].
    Among(u32),
    /// By us, one after another: the kernel does not know the option, or the range exceeds that of
    /// the host.
    InTurn(Range),
}

impl Ports {
    fn fill(self) -> f64 {
        match self {
            Ports::OfHost => FILL_BY_PARITY,
            Ports::Among(_) | Ports::InTurn(_) => FILL,
        }
    }
}

/// Source ports that are tried one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    first: u16,
    pub(crate) count: u32,
    /// The step to the next port if one is taken. Coprime to `count`, so that all ports are tried;
    /// close to the golden ratio, so that successive ones are far apart.
    stride: u32,
}

impl Range {
    fn new((first, last): (u16, u16)) -> Range {
        let count = u32::from(last.saturating_sub(first)) + 1;
        Range { first, count, stride: stride(count.into()) as u32 }
    }
}

/// The sources of a run, the same for all shards.
#[derive(Debug)]
pub(crate) struct Plan {
    v4: Arc<AddressList>,
    v6: Arc<AddressList>,
    /// For targets on the loopback interface, unless an IPv4 address was given.
    loopback: Arc<AddressList>,
    pub(crate) ports: Ports,
    ports_count: u64,
    pub(crate) transparent: bool,
    /// By target: its socket type, and its share of all users.
    routes: Vec<(SourceKind, f64)>,
}

impl Plan {
    /// Looks up and tries all sources for this many users. Keeps only target addresses that some
    /// source can reach. The error says why no source is usable.
    pub(crate) fn new(
        program: &Program,
        users: u64,
        targets: &mut [Vec<SocketAddr>],
    ) -> Result<Plan, Said> {
        let mut plan = Plan::looked_up(&program.connection.sources)?;
        plan.routes =
            program.targets.iter().map(SourceKind::of).zip(target_shares(program)).collect();
        plan.keep_fitting(&program.targets, targets)?;
        plan.try_options(targets)?;
        plan.try_addresses(users as f64, targets)?;
        Ok(plan)
    }

    fn looked_up(sources: &Sources) -> Result<Plan, Said> {
        let (mut v4, mut v6) = (AddressList::default(), AddressList::default());
        for block in &sources.blocks {
            match block {
                SourceBlock::Range { first, last } if first.is_ipv4() => v4.push(*first, *last),
                SourceBlock::Range { first, last } => v6.push(*first, *last),
                SourceBlock::Interface(name) => {
                    for address in of_interface(name)? {
                        let list = if address.is_ipv4() { &mut v4 } else { &mut v6 };
                        list.push(address, address);
                    }
                }
            }
        }
        let mut loopback = AddressList::default();
        if sources.blocks.is_empty() {
            loopback.push(LOOPBACK_FIRST.into(), LOOPBACK_LAST.into());
        }
        Ok(Plan {
            v4: Arc::new(v4),
            v6: Arc::new(v6),
            loopback: Arc::new(loopback),
            ports: Plan::ports_of(sources),
            ports_count: source_ports(sources),
            transparent: sources.transparent,
            routes: Vec::new(),
        })
    }

    /// The route of a target; without a program, all targets are alike.
    fn route(&self, target: usize, of: usize) -> (SourceKind, f64) {
        self.routes.get(target).copied().unwrap_or((SourceKind::Stream, 1.0 / of.max(1) as f64))
    }

    fn ports_of(sources: &Sources) -> Ports {
        let host = host_ports();
        match (sources.ports, ports(sources.ports.unwrap_or(host), host)) {
            (None, Ports::InTurn(_)) => Ports::OfHost,
            (_, ports) => ports,
        }
    }

    /// The sources of connections to `target`; `None` leaves the choice to the system.
    fn addresses(&self, target: IpAddr) -> Option<&Arc<AddressList>> {
        let list = match target {
            IpAddr::V4(address) if address.is_loopback() && self.loopback.count > 0 => {
                &self.loopback
            }
            IpAddr::V4(_) => &self.v4,
            IpAddr::V6(_) => &self.v6,
        };
        (list.count > 0).then_some(list)
    }

    fn is_given(&self) -> bool {
        self.v4.count + self.v6.count > 0
    }

    /// Keeps only the addresses that one of the given sources can reach.
    fn keep_fitting(&self, names: &[Target], targets: &mut [Vec<SocketAddr>]) -> Result<(), Said> {
        if !self.is_given() {
            return Ok(());
        }
        let by_address = |target: &Target| target.unix_socket.is_none();
        for (target, addresses) in names.iter().zip(targets).filter(|(it, _)| by_address(it)) {
            addresses.retain(|address| self.fits(address.ip()));
            if addresses.is_empty() {
                return Err(say!(
                    "no source address has the address family of `{}`; add one to `source`",
                    target.host
                ));
            }
        }
        Ok(())
    }

    /// Checks that the kernel accepts the options, for every required family and socket type.
    fn try_options(&self, targets: &[Vec<SocketAddr>]) -> Result<(), Said> {
        let mut tried = Vec::new();
        for (target, address) in numbered(targets) {
            let (kind, _) = self.route(target, targets.len());
            if tried.contains(&(kind, address.is_ipv4())) {
                continue;
            }
            tried.push((kind, address.is_ipv4()));
            let socket = kind.socket(*address);
            let done = socket.and_then(|socket| self.set_options(&socket, *address, kind));
            done.map_err(|error| match error.raw_os_error() {
                Some(libc::EPERM) => say!(
                    "`transparent` requires the capability CAP_NET_ADMIN: run as root, or run \
                     `setcap cap_net_admin+ep` on the program"
                ),
                _ => say!(
                    "cannot create a socket with the options in `source`: {error}",
                    error = Said::of_error(&error)
                ),
            })?;
        }
        Ok(())
    }

    /// Tries the addresses that will be needed.
    fn try_addresses(&self, users: f64, targets: &[Vec<SocketAddr>]) -> Result<(), Said> {
        if !self.is_given() {
            return Ok(());
        }
        for v4 in [true, false] {
            let fitting = numbered(targets).filter(|(_, address)| address.is_ipv4() == v4);
            let needed = |one: &(usize, &SocketAddr)| self.needed(users, targets, *one);
            let Some(most) = fitting.max_by_key(needed) else { continue };
            let Some(list) = self.addresses(most.1.ip()) else { continue };
            let (kind, _) = self.route(most.0, targets.len());
            let needed = needed(&most).clamp(1, list.count);
            let tried = (0..needed.min(TRIED_MAX)).chain([needed - 1]);
            tried
                .filter_map(|index| list.get(index))
                .try_for_each(|it| self.try_one(*most.1, kind, it))?;
        }
        Ok(())
    }

    fn try_one(&self, target: SocketAddr, kind: SourceKind, source: IpAddr) -> Result<(), Said> {
        let tried = kind.socket(target).and_then(|socket| {
            self.set_options(&socket, target, kind)?;
            socket.bind(&SocketAddr::new(source, 0).into())
        });
        let interface = if target.ip().is_loopback() { "lo" } else { "eth0" };
        tried.map_err(|error| match error.raw_os_error() {
            Some(libc::EADDRNOTAVAIL) => say!(
                "the source address `{source}` is not configured on this host; add it with `ip \
                 addr add {source} dev {interface}`, or set `transparent: true` in `source`"
            ),
            _ => say!(
                "the source address `{source}` cannot be used: {error}",
                error = Said::of_error(&error)
            ),
        })
    }

    /// Sets a socket's options before it is bound.
    pub(crate) fn set_options(
        &self,
        socket: &Socket,
        target: SocketAddr,
        kind: SourceKind,
    ) -> io::Result<()> {
        if self.transparent {
            system::set_transparent(socket, target)?;
        }
        match self.ports {
            Ports::OfHost => Ok(()),
            Ports::Among(range) => system::set_local_port_range(socket, range),
            Ports::InTurn(_) if kind == SourceKind::Stream => socket.set_reuse_address(true),
            // Two UDP sockets could share a port unnoticed.
            Ports::InTurn(_) => Ok(()),
        }
    }

    /// How many source addresses this many users of all targets need for the share of them that
    /// uses this target.
    fn needed(
        &self,
        users: f64,
        targets: &[Vec<SocketAddr>],
        (target, address): (usize, &SocketAddr),
    ) -> u64 {
        let (kind, _) = self.route(target, targets.len());
        let shares_ports = |(other, at): &(usize, &SocketAddr)| match kind {
            SourceKind::Stream => *at == address && self.route(*other, targets.len()).0 == kind,
            SourceKind::Datagram => {
                self.route(*other, targets.len()).0 == kind && self.is_like(at.ip(), address.ip())
            }
        };
        let share: f64 = numbered(targets)
            .filter(shares_ports)
            .map(|(other, _)| {
                self.route(other, targets.len()).1 / targets[other].len().max(1) as f64
            })
            .sum();
        let ports = (self.ports_of_kind(kind) * self.ports_count as f64).max(1.0);
        // A share such as a third is not exact.
        (users * share / ports * (1.0 - 1e-9)).ceil() as u64
    }

    /// How many of an address's ports are used before another address is taken.
    fn ports_of_kind(&self, kind: SourceKind) -> f64 {
        match kind {
            SourceKind::Stream => self.ports.fill(),
            // For UDP, the kernel starts at any port and tries all of them alike.
            SourceKind::Datagram => FILL,
        }
    }

    /// Whether connections to both have the same source addresses.
    fn is_like(&self, one: IpAddr, other: IpAddr) -> bool {
        one.is_ipv4() == other.is_ipv4()
            && (self.loopback.count == 0 || one.is_loopback() == other.is_loopback())
    }

    /// One shard's part of the sources.
    pub(crate) fn pools(
        self: &Arc<Self>,
        users: u64,
        targets: &[Vec<SocketAddr>],
        shard: Share,
    ) -> Pools {
        Pools::new(Arc::clone(self), users, targets.to_vec(), shard)
    }

    /// One shard's part of the sources for connections to one address of a target.
    fn pool(
        self: &Arc<Self>,
        users: u64,
        targets: &[Vec<SocketAddr>],
        (target, address): (usize, &SocketAddr),
        shard: Share,
    ) -> Pool {
        let (_, shards) = shard.place();
        let needed = self.needed(users as f64, targets, (target, address));
        // If one address is enough, it is the system's own, as for any other program.
        let alone = !self.is_given() && needed <= 1;
        let own = users as f64 / shards.max(1) as f64;
        let own = self.needed(own, targets, (target, address));
        let list = self.addresses(address.ip());
        let first = if alone || list.is_none() { 0 } else { own.max(1) };
        Pool::new(Arc::clone(self), list.map(Arc::clone), shard.stripe(), first)
    }

    /// Whether a source can reach this address, if sources are given.
    pub(crate) fn fits(&self, target: IpAddr) -> bool {
        !self.is_given() || self.addresses(target).is_some()
    }

    /// The message when all are used up.
    pub(crate) fn exhausted(&self, target: SocketAddr, tried: u64) -> Said {
        let ports = self.ports_count;
        if tried == 0 {
            return say!(
                "{target}: none of the source addresses is configured on this host; add them \
                 with `ip addr add`"
            );
        }
        say!(
            "{target}: all {ports} source ports on each of {tried} source addresses are in use; \
             list more addresses in `source`, or add them with `ip addr add`"
        )
    }
}

/// All addresses, each with the index of its target.
fn numbered(targets: &[Vec<SocketAddr>]) -> impl Iterator<Item = (usize, &SocketAddr)> {
    let targets = targets.iter().enumerate();
    targets.flat_map(|(target, addresses)| addresses.iter().map(move |address| (target, address)))
}

/// How ports from `first` to `last` are chosen on a host with these ports. The kernel can only
/// narrow the range of the host.
fn ports((first, last): (u16, u16), host: (u16, u16)) -> Ports {
    let range = u32::from(last) << 16 | u32::from(first);
    let inside = first >= host.0 && last <= host.1;
    match inside && knows_port_range(range) {
        true => Ports::Among(range),
        false => Ports::InTurn(Range::new((first, last))),
    }
}

fn knows_port_range(range: u32) -> bool {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
    socket.is_ok_and(|socket| system::set_local_port_range(&socket, range).is_ok())
}

/// The source ports of this host.
fn host_ports() -> (u16, u16) {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let text = text.unwrap_or_default();
    let mut ports = text.split_ascii_whitespace().map(str::parse::<u16>);
    match (ports.next(), ports.next()) {
        (Some(Ok(first)), Some(Ok(last))) if first <= last => (first, last),
        _ => PORTS_USUAL,
    }
}

fn of_interface(name: &str) -> Result<Vec<IpAddr>, Said> {
    let found = system::interface_addresses(name).map_err(|error| {
        say!(
            "cannot list the network interfaces of this host: {error}",
            error = Said::of_error(&error)
        )
    })?;
    match found {
        None => Err(say!("this host has no interface `{name}`; `ip addr` lists its interfaces")),
        Some(found) if found.is_empty() => {
            Err(say!("the interface `{name}` has no address; add one with `ip addr add`"))
        }
        Some(found) => Ok(found),
    }
}

#[cfg(test)]
pub(crate) mod tests;
