//! Source ports: the range that the kernel chooses from, without the reserved ones.

use throng_base::units::format_count;

use super::{Finding, Fix, Host, Needs, addresses, descriptors};

pub(super) const RULE: &str = "source-ports";

/// The number of ports in the widest range: 1024 to 65535.
pub(super) const PORTS_MAX: u64 = 64_512;

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    if needs.is_target() || !needs.has_ports() {
        return None;
    }
    let detail = say!(
        "the kernel picks source ports from this range; it prefers ports of the same parity as \
         the first one and uses the others when those run out, so the whole range is usable"
    );
    let mut finding = Finding::new(RULE, say!("source ports"), detail);
    let range = needs.ports.or_else(|| crate::facts::port_range(&host.root));
    let (Some((first, last)), Some(ports)) = (range, count(host, needs)) else {
        return Some(finding);
    };
    let reserved = (u64::from(last) + 1).saturating_sub(u64::from(first)).saturating_sub(ports);
    finding.value = match reserved {
        0 => say!("{} ports ({first} to {last})", format_count(ports)),
        _ => say!(
            "{} ports ({first} to {last}, {} of them reserved)",
            format_count(ports),
            format_count(reserved)
        ),
    };
    finding.ceiling = ceiling(host, needs, ports);
    let Some(ceiling) = finding.ceiling else { return Some(finding) };
    finding.needed = match fewest(host, needs) {
        Some(fewest) if fewest <= PORTS_MAX => {
            say!("{} ports", format_count(fewest))
        }
        _ => say!("{} ports and more addresses", format_count(PORTS_MAX)),
    };
    finding.fixes = match needs.ports {
        Some(_) => vec![Fix::Advice(say!("widen `ports` of `source` in the scenario"))],
        None => widened(first, last),
    };
    Some(finding.judge(ceiling >= needs.users, needs.bad()))
}

/// The available ports. Reserved ones are only excluded from the kernel's choice.
pub(super) fn count(host: &Host, needs: &Needs) -> Option<u64> {
    match needs.ports {
        Some((first, last)) => Some((u64::from(last) + 1).saturating_sub(u64::from(first))),
        None => crate::source_ports(&host.root, None),
    }
}

/// How many users these ports allow, in addition to kept connections; `None` if the addresses
/// cannot be read.
pub(super) fn ceiling(host: &Host, needs: &Needs, ports: u64) -> Option<u64> {
    let mut ceiling = u64::MAX;
    for route in &needs.routes_or_one() {
        let addresses = addresses::usable(host, needs, route)?;
        let pairs = addresses.saturating_mul(ports);
        let connections = match route.share < 1.0 {
            // A share of a third is never exact.
            true => (pairs as f64 / route.share * (1.0 + 1e-9)) as u64,
            false => pairs,
        };
        ceiling = ceiling.min(connections);
    }
    Some(needs.users_of(ceiling.saturating_sub(descriptors::kept(host, needs))))
}

/// The ports that would suffice with the available addresses.
fn fewest(host: &Host, needs: &Needs) -> Option<u64> {
    let mut fewest = 1;
    for route in &needs.routes_or_one() {
        let addresses = addresses::usable(host, needs, route)?.max(1);
        let users = (descriptors::connections(host, needs) as f64 * route.share).ceil() as u64;
        fewest = fewest.max(users.div_ceil(addresses));
    }
    Some(fewest)
}

fn widened(first: u16, last: u16) -> Vec<Fix> {
    if (first, last) == (1024, 65535) {
        return Vec::new();
    }
    vec![
        Fix::setting("net.ipv4.ip_local_port_range", "1024 65535"),
        Fix::Advice(say!(
            "if services on this host will listen on ports in this range later, add those ports \
             to net.ipv4.ip_local_reserved_ports"
        )),
    ]
}
