//! Source addresses of connections: `source`, and `connection: {sources: …}`. Addresses stay ranges
//! until the run begins, so that a whole network takes as little space as one address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use throng_base::{Said, units};
use throng_program::{Session, SourceBlock, Sources, Target};

use crate::ast;
use crate::read::Context;
use crate::syntax::{Kind, Node};
use crate::words::shorten;

const HELP: Said =
    say!("write `127.0.0.2`, `127.1.0.1..127.1.0.200`, `127.1.0.0/16` or `interface eth0`");

const PORTS_HELP: Said = say!("write `ports: 20_000..60_000`");

/// Maximum length of an interface name (if_nametoindex(3), IF_NAMESIZE).
const INTERFACE_BYTES_MAX: usize = 15;

/// What is wrong with an address, and what is valid.
#[derive(Debug, PartialEq, Eq)]
struct SourceError {
    message: Said,
    help: Said,
}

/// Checks the value of `--source` on a command line.
pub fn check_source(text: &str) -> Result<(), (Said, Said)> {
    parse(text).map(|_| ()).map_err(|error| (error.message, error.help))
}

/// `source: {addresses: …, ports: …, transparent: true}`
pub(crate) fn read_source(cx: &mut Context<'_>, node: &Node, sources: &mut Sources) {
    let Some(fields) = ast::Source::read(cx, node) else { return };
    if let Some(node) = fields.addresses.node() {
        if let (Some(key), false) = (fields.addresses.key(), sources.blocks.is_empty()) {
            let message = say!("both `connection: {{sources: …}}` and `source` are set");
            let help = say!("keep one of them");
            cx.report("conflicting-keys", key.place, message, say!("the second one"), help);
        }
        sources.blocks = read_blocks(cx, node);
    } else if sources.blocks.is_empty()
        && (fields.ports.node().is_none() || fields.transparent.is_there())
    {
        fields.need(cx, fields.addresses, say!("write `source: {{addresses: 127.1.0.0/16}}`"));
    }
    sources.ports = fields.ports.node().and_then(|node| read_ports(cx, node));
    sources.transparent =
        fields.transparent.node().and_then(|node| cx.bool(node)).unwrap_or_default();
}

/// One address, range, network or interface, or a list of them.
pub(crate) fn read_blocks(cx: &mut Context<'_>, node: &Node) -> Vec<SourceBlock> {
    match &node.kind {
        Kind::List(items) if items.is_empty() => {
            cx.empty(node.place, say!("there are no addresses"), HELP);
            Vec::new()
        }
        Kind::List(items) => items.iter().filter_map(|item| read_block(cx, item)).collect(),
        _ => read_block(cx, node).into_iter().collect(),
    }
}

fn read_block(cx: &mut Context<'_>, node: &Node) -> Option<SourceBlock> {
    let text = cx.text(node, say!("an address"))?;
    match parse(&text) {
        Ok(block) => Some(block),
        Err(reason) => {
            let message = say!("`{}` is not a source address", shorten(&text));
            cx.refuse("bad-value", node.place, message, reason.message, reason.help)
        }
    }
}

/// Warns of source addresses that cannot reach any target because of their address family.
pub(crate) fn warn_family(
    cx: &mut Context<'_>,
    node: &Node,
    sources: &Sources,
    targets: &[Target],
) {
    if !targets.is_empty() && targets.iter().all(|target| target.unix_socket.is_some()) {
        let message = say!("connections to a Unix socket have no source address");
        let help = say!("remove the source addresses");
        return cx.warn("unused-source", node.place, message, say!("has no effect"), help);
    }
    let targets = targets.iter().filter(|target| target.unix_socket.is_none());
    let family = |target: &Target| target.host.parse::<IpAddr>().ok().map(|host| host.is_ipv4());
    // The addresses of a name are unknown until the run begins.
    let Some(families) = targets.map(family).collect::<Option<Vec<bool>>>() else { return };
    let useless = sources.blocks.iter().find_map(|block| match block {
        SourceBlock::Range { first, .. } if !families.contains(&first.is_ipv4()) => Some(first),
        _ => None,
    });
    let (Some(first), false) = (useless, families.is_empty()) else { return };
    let (own, other) = if first.is_ipv4() { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
    let message = say!("no connection can use `{first}`: it is an {own} address");
    let label = say!("the target has only {other} addresses");
    let help = say!("write source addresses of the target's address family");
    cx.warn("unused-source", node.place, message, label, help);
}

/// Warns of source addresses that are not used by users with their own network.
pub(crate) fn warn_network(
    cx: &mut Context<'_>,
    scenario: &ast::Scenario<'_>,
    sessions: &[Session],
) {
    let connection = scenario.connection.node();
    let of_connection = || connection.and_then(|node| node.get("sources"));
    let Some(node) = scenario.source.node().or_else(of_connection) else { return };
    let with_network = sessions.iter().filter(|session| session.network.is_some());
    let names: Vec<String> =
        with_network.map(|session| format!("`{}`", shorten(&session.name))).collect();
    if !names.is_empty() {
        let message = say!("users with `network` do not use these source addresses");
        let label = say!("has no effect on {}", names.join(", "));
        let help = say!("remove the source addresses, or remove `network`");
        cx.warn("unused-source", node.place, message, label, help);
    }
}

fn parse(text: &str) -> Result<SourceBlock, SourceError> {
    let text = text.trim();
    if let Some(name) = text.strip_prefix("interface").filter(|rest| rest.starts_with(' ')) {
        return parse_interface(name.trim());
    }
    if let Some((network, bits)) = text.split_once('/') {
        return parse_network(network.trim(), bits.trim());
    }
    match text.split_once("..").or_else(|| text.split_once('-')) {
        Some((first, last)) => parse_range(first.trim(), last.trim()),
        None => parse_address(text).map(|one| SourceBlock::Range { first: one, last: one }),
    }
}

fn wrong<T>(message: Said, help: Said) -> Result<T, SourceError> {
    Err(SourceError { message, help })
}

fn parse_address(text: &str) -> Result<IpAddr, SourceError> {
    let plain = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    match plain.parse() {
        Ok(address) => Ok(address),
        Err(_) if plain.contains(':') && plain.parse::<std::net::SocketAddr>().is_ok() => wrong(
            say!("the address contains a port"),
            say!("write the ports under a separate key: `ports: 20_000..60_000`"),
        ),
        Err(_) => wrong(say!("this is not an IPv4 or IPv6 address"), HELP),
    }
}

fn parse_range(first: &str, last: &str) -> Result<SourceBlock, SourceError> {
    let first = parse_address(first)?;
    // Other tools write this as `127.1.0.1-200`.
    if let (IpAddr::V4(begin), Ok(end)) = (first, last.parse::<u8>()) {
        let [a, b, c, _] = begin.octets();
        return wrong(
            say!("the end of the range must be a full address"),
            say!("write `{begin}..{a}.{b}.{c}.{end}`"),
        );
    }
    let last = parse_address(last)?;
    if first.is_ipv4() != last.is_ipv4() {
        return wrong(
            say!("one end is an IPv4 address and the other an IPv6 address"),
            say!("write one range per address family: `[127.1.0.1..127.1.0.9, ::1]`"),
        );
    }
    match first <= last {
        true => Ok(SourceBlock::Range { first, last }),
        false => wrong(
            say!("the start of the range is greater than its end"),
            say!("write `{last}..{first}`"),
        ),
    }
}

fn parse_interface(name: &str) -> Result<SourceBlock, SourceError> {
    let is_name = |c: char| c.is_ascii_graphic() && c != '/';
    match !name.is_empty() && name.len() <= INTERFACE_BYTES_MAX && name.chars().all(is_name) {
        true => Ok(SourceBlock::Interface(name.to_string())),
        false => wrong(
            say!("this is not a valid interface name"),
            say!("write `interface eth0`; `ip -brief address` shows the interfaces"),
        ),
    }
}

/// A network (RFC 4632), without the reserved first and last addresses.
fn parse_network(network: &str, bits: &str) -> Result<SourceBlock, SourceError> {
    let network = parse_address(network)?;
    let width: u32 = if network.is_ipv4() { 32 } else { 128 };
    let prefix = bits.bytes().all(|byte| byte.is_ascii_digit()).then(|| bits.parse::<u32>().ok());
    let Some(prefix) = prefix.flatten().filter(|prefix| *prefix <= width) else {
        return wrong(
            say!("the prefix length is not a valid number of bits"),
            say!("write at most `{network}/{width}`"),
        );
    };
    let (value, host) = match network {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shr(prefix).unwrap_or(0);
            (u128::from(v4.to_bits()), u128::from(mask))
        }
        IpAddr::V6(v6) => (v6.to_bits(), u128::MAX.checked_shr(prefix).unwrap_or(0)),
    };
    let address = |value: u128| match network {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(value as u32)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(value)),
    };
    if value & host != 0 {
        let begin = address(value & !host);
        return wrong(
            say!("the address has host bits set"),
            say!("write `{begin}/{prefix}` for the network, or only `{network}` for the address"),
        );
    }
    // IPv4 reserves a network and a broadcast address, IPv6 the subnet-router address (RFC 4291,
    // 2.6.1); networks of one or two addresses reserve none (RFC 3021, RFC 6164).
    let (skipped_first, skipped_last) = match (host > 1, network) {
        (false, _) => (0, 0),
        (true, IpAddr::V4(_)) => (1, 1),
        (true, IpAddr::V6(_)) => (1, 0),
    };
    let (first, last) = (value + skipped_first, (value | host) - skipped_last);
    Ok(SourceBlock::Range { first: address(first), last: address(last) })
}

/// `20_000..60_000`, or a single port.
fn read_ports(cx: &mut Context<'_>, node: &Node) -> Option<(u16, u16)> {
    let text = cx.text(node, say!("source ports"))?;
    let (first, last) =
        text.split_once("..").or_else(|| text.split_once('-')).unwrap_or((&text, &text));
    let port = |text: &str| match units::parse_count(text.trim()) {
        Ok(port) => u16::try_from(port)
            .ok()
            .filter(|port| *port > 0)
            .ok_or(say!("ports range from 1 to 65535")),
        Err(_) => Err(say!("this is not a number or a range")),
    };
    match (port(first), port(last)) {
        (Ok(first), Ok(last)) if first <= last => Some((first, last)),
        (Ok(_), Ok(_)) => {
            cx.bad_value(node, say!("the start of the range is greater than its end"), PORTS_HELP)
        }
        (Err(label), _) | (_, Err(label)) => {
            let message = say!("`{}` is not a valid source port or range of ports", shorten(&text));
            cx.refuse("bad-value", node.place, message, label, PORTS_HELP)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match parse(text) {
            Ok(SourceBlock::Range { first, last }) => format!("{first}..{last}"),
            Ok(SourceBlock::Interface(name)) => format!("interface {name}"),
            Err(error) => say!("{}; {}", error.message, error.help).english(),
        }
    }

    #[test]
    fn addresses_are_read_as_ranges() {
        for (text, want) in [
            ("127.0.0.2", "127.0.0.2..127.0.0.2"),
            ("::1", "::1..::1"),
            ("[::1]", "::1..::1"),
            ("127.1.0.1..127.1.0.200", "127.1.0.1..127.1.0.200"),
            ("127.1.0.1 - 127.1.0.200", "127.1.0.1..127.1.0.200"),
            ("127.1.0.0/16", "127.1.0.1..127.1.255.254"),
            ("127.0.0.0/8", "127.0.0.1..127.255.255.254"),
            ("10.0.0.8/31", "10.0.0.8..10.0.0.9"),
            ("10.0.0.8/32", "10.0.0.8..10.0.0.8"),
            ("0.0.0.0/0", "0.0.0.1..255.255.255.254"),
            ("fd00::/120", "fd00::1..fd00::ff"),
            ("fd00::/127", "fd00::..fd00::1"),
            ("::/0", "::1..ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("interface eth0", "interface eth0"),
        ] {
            assert_eq!(shown(text), want, "{text}");
        }
    }

    #[test]
    fn mistakes_name_what_is_valid() {
        for (text, part) in [
            (
                "127.1.0.5/16",
                "write `127.1.0.0/16` for the network, or only `127.1.0.5` for the address",
            ),
            ("fd00::5/64", "write `fd00::/64`"),
            ("127.1.0.0/33", "at most `127.1.0.0/32`"),
            ("127.1.0.0/+8", "not a valid number of bits"),
            ("127.1.0.0/", "not a valid number of bits"),
            ("127.1.0.9..127.1.0.1", "write `127.1.0.1..127.1.0.9`"),
            ("127.1.0.1..::1", "one end is an IPv4 address"),
            ("127.1.0.1-200", "write `127.1.0.1..127.1.0.200`"),
            ("127.1.0.1:80", "the address contains a port"),
            ("localhost", "this is not an IPv4 or IPv6 address"),
            ("interface ", "this is not an IPv4 or IPv6 address"),
            ("interface a name", "this is not a valid interface name"),
            ("interface averyveryverylongname", "this is not a valid interface name"),
            ("", "not an IPv4"),
        ] {
            assert!(shown(text).contains(part), "{text}: {}", shown(text));
        }
    }
}
