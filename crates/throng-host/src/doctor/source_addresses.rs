//! Source addresses: a connection is identified by source address and port, and target address and
//! port, which must be unique.

use std::net::IpAddr;

use throng_base::units::format_count;

use throng_base::Said;

use super::{Finding, Fix, Host, Needs, addresses, descriptors, source_ports};

pub(super) const RULE: &str = "source-addresses";

/// The maximum number of printed commands.
const COMMANDS_MAX: u64 = 3;

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    if needs.is_target() || !needs.has_ports() {
        return None;
    }
    let detail = match needs.has_tcp() {
        true => {
            say!(
                "to each target address and port, a source address can open one connection per \
                 source port; more users need more source addresses, or more target addresses or \
                 ports"
            )
        }
        false => {
            say!(
                "only one UDP socket can use a port of a source address, regardless of its \
                 destination; more users need more source addresses; more target addresses do not \
                 help"
            )
        }
    };
    let mut finding = Finding::new(RULE, say!("source addresses"), detail);
    let ports = ports(host, needs);
    let Some((count, wanted)) = tightest(host, needs, ports) else { return Some(finding) };
    let named = addresses::named(needs);
    finding.value = match count {
        addresses::LOOPBACK_ADDRESSES if needs.sources.is_empty() => {
            say!("127.1.0.0/16, used as needed")
        }
        _ if named > count => say!(
            "{} of {} listed addresses exist on this host",
            format_count(count),
            format_count(named)
        ),
        1 => say!("1 address"),
        _ => say!("{} addresses", format_count(count)),
    };
    finding.needed = match wanted {
        1 => Said::default(),
        _ => say!("{} with {} ports each", format_count(wanted), format_count(ports)),
    };
    finding.ceiling = source_ports::ceiling(host, needs, ports);
    let is_fit = finding.ceiling.is_none_or(|ceiling| ceiling >= needs.users);
    finding.fixes = cure(host, needs, wanted.saturating_sub(count));
    Some(finding.judge(is_fit, needs.bad()))
}

/// The available ports after the fix of the port rule.
fn ports(host: &Host, needs: &Needs) -> u64 {
    match needs.ports {
        Some(_) => source_ports::count(host, needs).unwrap_or(source_ports::PORTS_MAX),
        None => source_ports::PORTS_MAX.max(source_ports::count(host, needs).unwrap_or(0)),
    }
}

/// The available and the required addresses, for the route with the largest shortage.
fn tightest(host: &Host, needs: &Needs, ports: u64) -> Option<(u64, u64)> {
    let mut tightest: Option<(u64, u64)> = None;
    for route in &needs.routes_or_one() {
        let count = addresses::usable(host, needs, route)?;
        let users = (descriptors::connections(host, needs) as f64 * route.share).ceil() as u64;
        let wanted = users.div_ceil(ports.max(1)).max(1);
        let missing = |(count, wanted): (u64, u64)| i128::from(wanted) - i128::from(count);
        if tightest.is_none_or(|other| missing((count, wanted)) > missing(other)) {
            tightest = Some((count, wanted));
        }
    }
    tightest
}

fn cure(host: &Host, needs: &Needs, missing: u64) -> Vec<Fix> {
    let interface = host.interfaces().into_iter().next().unwrap_or_else(|| "eth0".into());
    let is_v6 = needs.routes.iter().any(|route| matches!(route.address, Some(IpAddr::V6(_))));
    let mut fixes: Vec<Fix> = (0..missing.min(COMMANDS_MAX))
        .map(|turn| Fix::Command { now: add(&interface, turn, is_v6), for_good: String::new() })
        .collect();
    fixes.push(Fix::Advice(if is_v6 {
        say!(
            "add {} addresses from your network to {interface}, or add a whole block with `{}`; \
             then list them in the scenario: `source: {{addresses: …}}`",
            format_count(missing),
            any_ip(is_v6)
        )
    } else {
        say!(
            "the addresses are examples: use {} free addresses from your own network, or route a \
             block to this host and make it local with `{}`; then list the addresses in the \
             scenario: `source: {{addresses: …}}`",
            format_count(missing),
            any_ip(is_v6)
        )
    }));
    fixes
}

/// Example addresses from RFC 5737 and RFC 3849, which are unassigned.
fn add(interface: &str, turn: u64, is_v6: bool) -> String {
    match is_v6 {
        true => format!("ip -6 addr add 2001:db8::{:x}/64 dev {interface}", turn + 0x10),
        false => format!("ip addr add 198.51.100.{}/24 dev {interface}", turn + 10),
    }
}

fn any_ip(is_v6: bool) -> &'static str {
    match is_v6 {
        true => "ip -6 route add local 2001:db8:1::/64 dev lo",
        false => "ip route add local 198.51.100.0/24 dev lo",
    }
}
