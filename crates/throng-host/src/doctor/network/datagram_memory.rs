//! `net.ipv4.udp_mem`: the queues of all UDP sockets together.

use throng_base::units::format_count;

use super::tcp_memory;
use crate::doctor::{Finding, Host, Needs, Severity, in_bytes};
use crate::system::page_bytes;

const RULE: &str = "udp-memory";
const KEY: &str = "net.ipv4.udp_mem";

pub(crate) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    if !needs.has_datagrams() {
        return None;
    }
    let detail = say!(
        "idle sockets use none of this memory; a socket with a queued datagram uses at least one \
         page, so a message to all users may need one page per user; above the third number, \
         datagrams are dropped"
    );
    let mut finding = Finding::new(RULE, say!("UDP queue memory"), detail);
    let Some([low, pressure, high]) = host.numbers::<3>(KEY) else { return Some(finding) };
    finding.value =
        say!("{low} {pressure} {high} pages ({})", in_bytes(high.saturating_mul(page_bytes())));
    // Outgoing datagrams are sent immediately or kept by throng: queues form at the receiver. On
    // one host, the service has one socket, whose queue has its own limit.
    let wanted = needs.of_datagrams();
    finding.needed = say!(
        "none while idle; {} pages if all sockets have data at the same time",
        format_count(wanted)
    );
    finding.fixes = tcp_memory::cure(host, KEY, wanted, [low, pressure, high]);
    Some(finding.judge(wanted <= high, Severity::Warn))
}
