//! The addresses of this host, and the number of source addresses for users.

pub(super) mod user_network;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Block, Host, Needs, Route};

/// By default, throng uses addresses from 127.1.0.1 to 127.1.255.254 if the target is on the
/// loopback interface.
pub(super) const LOOPBACK_ADDRESSES: u64 = 65_534;
/// A router's address table may be long; this host's own addresses are few.
const PREFIXES_MAX: usize = 65_536;

/// The number of source addresses for this route; `None` if it cannot be read.
pub(super) fn usable(host: &Host, needs: &Needs, route: &Route) -> Option<u64> {
    if needs.sources.is_empty() {
        return match route.address {
            Some(IpAddr::V4(address)) if address.is_loopback() => Some(LOOPBACK_ADDRESSES),
            Some(_) => Some(1),
            // The target's name did not resolve.
            None if !needs.routes.is_empty() => Some(1),
            None => Some(own(host)?.max(1)),
        };
    }
    let is_v4 = match route.address {
        Some(address) => address.is_ipv4(),
        None => !needs.sources.iter().all(is_v6),
    };
    let borrowed = needs.transparent || host.number(nonlocal_key(is_v4)) == Some(1);
    let mut count = 0u64;
    for block in &needs.sources {
        let of_block = match block {
            Block::Range { first, .. } if first.is_ipv4() != is_v4 => 0,
            Block::Range { first, last } if borrowed => size((number(*first), number(*last))),
            Block::Range { first, last } => {
                let range = (number(*first), number(*last));
                let prefixes = if is_v4 { local_v4(host)? } else { local_v6(host)? };
                prefixes.iter().map(|own| size((own.0.max(range.0), own.1.min(range.1)))).sum()
            }
            Block::Interface(name) => of_interface(host, name, is_v4)?,
        };
        count = count.saturating_add(of_block);
    }
    Some(count)
}

/// The number of named source addresses, whether or not this host has them.
pub(super) fn named(needs: &Needs) -> u64 {
    let of = |block: &Block| match block {
        Block::Range { first, last } => size((number(*first), number(*last))),
        Block::Interface(_) => 0,
    };
    needs.sources.iter().map(of).fold(0, u64::saturating_add)
}

/// True if this host has the address, or if that cannot be read.
fn is_own(host: &Host, address: IpAddr) -> bool {
    let prefixes = if address.is_ipv4() { local_v4(host) } else { local_v6(host) };
    let has = |own: &(u128, u128)| (own.0..=own.1).contains(&number(address));
    prefixes.is_none_or(|all| all.iter().any(has))
}

fn is_v6(block: &Block) -> bool {
    matches!(block, Block::Range { first: IpAddr::V6(_), .. })
}

fn nonlocal_key(is_v4: bool) -> &'static str {
    if is_v4 { "net.ipv4.ip_nonlocal_bind" } else { "net.ipv6.ip_nonlocal_bind" }
}

/// The IPv4 addresses of this host that other hosts can reach.
fn own(host: &Host) -> Option<u64> {
    let loopback = |range: &&(u128, u128)| (range.0 >> 24) == 127;
    let prefixes = local_v4(host)?;
    Some(prefixes.iter().filter(|range| !loopback(range)).map(|range| size(*range)).sum())
}

/// The number of addresses from the first to the last; 0 if the range is empty.
fn size((first, last): (u128, u128)) -> u64 {
    let count = last.checked_sub(first).map_or(0, |count| count.saturating_add(1));
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// The first and last address with this prefix.
fn prefix(address: IpAddr, length: u32) -> Option<(u128, u128)> {
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let free = u32::checked_sub(bits, length)?;
    let mask = if free >= 128 { u128::MAX } else { (1u128 << free) - 1 };
    Some((number(address) & !mask, number(address) | mask))
}

/// Local addresses of the kernel: pairs of `|-- 127.0.0.0` and `/8 host LOCAL`.
fn local_v4(host: &Host) -> Option<Vec<(u128, u128)>> {
    let text = host.root.read("proc/net/fib_trie")?;
    let mut address = None;
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("|-- ") {
            address = text.trim().parse::<Ipv4Addr>().ok();
        } else if let Some(length) = line.strip_suffix(" host LOCAL") {
            let length = length.strip_prefix('/').and_then(|length| length.parse().ok());
            let (Some(address), Some(length)) = (address, length) else { continue };
            found.extend(prefix(address.into(), length));
        }
    }
    known(merged(found))
}

/// IPv6 routes with the flag RTF_LOCAL (linux/ipv6_route.h).
fn local_v6(host: &Host) -> Option<Vec<(u128, u128)>> {
    const LOCAL: u64 = 0x8000_0000;
    let text = host.root.read("proc/net/ipv6_route")?;
    let found = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let flags = u64::from_str_radix(words.get(8)?, 16).ok()?;
        let address = Ipv6Addr::from(u128::from_str_radix(words.first()?, 16).ok()?);
        let length = u32::from_str_radix(words.get(1)?, 16).ok()?;
        prefix(address.into(), length).filter(|_| flags & LOCAL != 0)
    });
    known(merged(found.collect()))
}

/// A table without an address of this host was not parsed correctly.
fn known(ranges: Vec<(u128, u128)>) -> Option<Vec<(u128, u128)>> {
    (!ranges.is_empty()).then_some(ranges)
}

/// Each address once.
fn merged(mut ranges: Vec<(u128, u128)>) -> Vec<(u128, u128)> {
    ranges.truncate(PREFIXES_MAX);
    ranges.sort_unstable();
    let mut out: Vec<(u128, u128)> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.0 <= last.1 => last.1 = last.1.max(range.1),
            _ => out.push(range),
        }
    }
    out
}

/// The kernel has no file with the IPv4 addresses of an interface: this counts the host's addresses
/// in the interface's networks.
fn of_interface(host: &Host, name: &str, is_v4: bool) -> Option<u64> {
    if !is_v4 {
        let text = host.root.read("proc/net/if_inet6")?;
        // The fourth column is the scope: 20 is that of one link only.
        let is_its = |line: &&str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.get(5) == Some(&name) && words.get(3) != Some(&"20")
        };
        return Some(text.lines().filter(is_its).count() as u64);
    }
    let routes = host.root.read("proc/net/route")?;
    let own = local_v4(host)?;
    let networks = routes.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // In the byte order of the host, which is that of this program.
        let hex = |at: usize| Some(u32::from_be(u32::from_str_radix(words.get(at)?, 16).ok()?));
        let (network, gateway, mask) = (hex(1)?, hex(2)?, hex(7)?);
        let range = (u128::from(network), u128::from(network | !mask));
        (words.first() == Some(&name) && gateway == 0 && mask != 0).then_some(range)
    });
    let networks = merged(networks.collect());
    let within =
        |range: &(u128, u128)| networks.iter().any(|it| it.0 <= range.0 && range.1 <= it.1);
    let count = own.iter().filter(|range| within(range)).map(|range| size(*range)).sum();
    (count > 0).then_some(count)
}
