//! `net.ipv4.tcp_max_syn_backlog`: incomplete handshakes.

use throng_base::units::format_count;

use crate::doctor::{Finding, Fix, Host, Needs, Severity, rounded_up};

const RULE: &str = "syn-backlog";
const KEY: &str = "net.ipv4.tcp_max_syn_backlog";
/// The duration of a handshake over a long distance.
const HANDSHAKE_SECONDS: f64 = 0.2;
const MAX: u64 = 65_535;

pub(crate) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    if !needs.has_tcp() || (!needs.is_target() && !needs.is_local()) {
        return None;
    }
    let detail = say!(
        "the maximum number of incomplete handshakes; with tcp_syncookies, handshakes beyond this \
         limit are not lost; without it, the kernel drops new handshakes when three quarters of \
         the limit are in use"
    );
    let mut finding = Finding::new(RULE, say!("handshakes in progress"), detail);
    let (Some(max), Some(cookies)) = (host.number(KEY), host.number("net.ipv4.tcp_syncookies"))
    else {
        return Some(finding);
    };
    finding.value = match cookies {
        0 => say!("{}, tcp_syncookies is off", format_count(max)),
        _ => say!("{}, tcp_syncookies is on", format_count(max)),
    };
    if cookies != 0 {
        return Some(finding.judge(true, Severity::Fit));
    }
    let under_way = needs.opened_per_second.map(|rate| (rate * HANDSHAKE_SECONDS) as u64);
    let users = needs.of_tcp();
    let wanted = rounded_up(under_way.unwrap_or(users).min(users) / 3 * 4).min(MAX);
    finding.needed = say!("{}", format_count(wanted));
    finding.fixes =
        vec![Fix::setting("net.ipv4.tcp_syncookies", 1), Fix::setting(KEY, wanted.max(max))];
    Some(finding.judge(max >= wanted, Severity::Warn))
}
