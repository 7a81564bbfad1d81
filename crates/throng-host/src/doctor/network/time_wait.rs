//! TIME_WAIT: the end that closes a connection first keeps its four-tuple for 60 seconds.

use throng_base::units::format_count;

use crate::doctor::{Finding, Fix, Host, Needs, Severity, source_ports};

const RULE: &str = "time-wait";
/// Not a setting (TCP_TIMEWAIT_LEN); net.ipv4.tcp_fin_timeout has another meaning.
const SECONDS: f64 = 60.0;
const KEY: &str = "net.ipv4.tcp_tw_reuse";

pub(crate) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    if needs.is_target() || !needs.has_tcp() {
        return None;
    }
    let detail = say!(
        "the side that closes a connection first keeps its port in TIME_WAIT for 60 s, and no \
         setting shortens this time; with tcp_tw_reuse (and TCP timestamps), a new connection \
         can reuse the port after 1 s"
    );
    let mut finding = Finding::new(RULE, say!("ports in TIME_WAIT"), detail);
    let (Some(reuse), Some(buckets)) =
        (host.number(KEY), host.number("net.ipv4.tcp_max_tw_buckets"))
    else {
        return Some(finding);
    };
    let is_reused = reuse == 1 || (reuse == 2 && needs.is_local());
    finding.value = match (reuse, is_reused) {
        (1, _) => say!("tcp_tw_reuse is on"),
        (2, _) => say!("tcp_tw_reuse is on for loopback only"),
        _ => say!("tcp_tw_reuse is off"),
    };
    let seconds = if is_reused { 1.0 } else { SECONDS };
    let waiting = ((needs.reopened_per_second * seconds).ceil() as u64).min(buckets);
    if waiting == 0 {
        return Some(finding.judge(true, Severity::Fit));
    }
    let wanted = needs.connections().saturating_add(waiting);
    finding.needed = say!(
        "{} ports in use at the same time, {} of them by connections closed in the last \
         {seconds} s",
        format_count(wanted),
        format_count(waiting)
    );
    let room = source_ports::count(host, needs)
        .and_then(|ports| source_ports::ceiling(host, needs, ports));
    let Some(room) = room else { return Some(finding) };
    finding.fixes = vec![
        Fix::setting(KEY, 1),
        Fix::Advice(say!(
            "or use more source addresses, or let the target close connections first"
        )),
    ];
    Some(finding.judge(wanted <= room, Severity::Warn))
}
