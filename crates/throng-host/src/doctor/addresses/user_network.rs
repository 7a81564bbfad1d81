//! Users with their own network (`network` of a session) need a TUN device, a network namespace,
//! and a host that forwards their packets to targets on other hosts.

use std::net::IpAddr;

use super::super::host::CAP_SYS_ADMIN;
use super::super::{Finding, Fix, Host, Needs, Severity};
use super::is_own;

pub(crate) const RULE: &str = "user-network";
/// capabilities(7), the number of linux/capability.h.
const CAP_NET_ADMIN: u32 = 12;
const FORWARD: &str = "net.ipv4.ip_forward";

pub(crate) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    if needs.wired <= 0.0 || needs.is_target() {
        return None;
    }
    let detail = say!(
        "users with a `network` have a network namespace, which requires /dev/net/tun and \
         CAP_NET_ADMIN and CAP_SYS_ADMIN; this host must forward their packets to other hosts"
    );
    let mut finding = Finding::new(RULE, say!("networks of users"), detail);
    if !host.root.path("dev/net/tun").exists() {
        finding.value = say!("no /dev/net/tun");
        finding.fixes = vec![Fix::Command { now: "modprobe tun".into(), for_good: String::new() }];
        return Some(finding.judge(false, Severity::Unfit));
    }
    if !host.can(CAP_NET_ADMIN) || !host.can(CAP_SYS_ADMIN) {
        finding.value = say!("a capability is missing");
        finding.fixes = vec![Fix::Advice(say!("run throng as root"))];
        return Some(finding.judge(false, Severity::Unfit));
    }
    let is_away = |address: IpAddr| !is_own(host, address);
    let leaves = needs.routes.iter().filter_map(|route| route.address).any(is_away);
    let forwards = host.number(FORWARD).is_some_and(|value| value > 0);
    finding.value = if forwards { say!("available, forwarding") } else { say!("available") };
    let masquerade = "iptables -t nat -A POSTROUTING -s 198.18.0.0/15 -j MASQUERADE".into();
    finding.fixes =
        vec![Fix::setting(FORWARD, 1), Fix::Command { now: masquerade, for_good: String::new() }];
    Some(finding.judge(!leaves || forwards, Severity::Unfit))
}
