//! `net.ipv4.tcp_rmem` and `tcp_wmem`: the queue limits of one socket.

use crate::doctor::{Finding, Fix, Host, Needs, Severity, in_bytes};

const RULE: &str = "socket-buffers";
/// A larger default for every socket is not the kernel's own.
const DEFAULT_BYTES_MAX: u64 = 1 << 20;
/// The kernel's order: minimum, default, maximum.
const KEYS: [(&str, &str); 2] =
    [("net.ipv4.tcp_rmem", "4096 131072 6291456"), ("net.ipv4.tcp_wmem", "4096 16384 4194304")];

pub(crate) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    if !needs.has_tcp() {
        return None;
    }
    let detail = say!(
        "these limits do not reserve memory, so lower limits do not allow more users; they limit \
         the data queued in one socket; with a large default, peers that do not read can use up \
         the memory"
    );
    let mut finding = Finding::new(RULE, say!("socket buffers"), detail);
    let [Some(read), Some(write)] = KEYS.map(|(key, _)| host.numbers::<3>(key)) else {
        return Some(finding);
    };
    finding.value = say!(
        "by default, {} for receiving and {} for sending",
        in_bytes(read[1]),
        in_bytes(write[1])
    );
    let is_large = [read, write].map(|[_, default, _]| default > DEFAULT_BYTES_MAX);
    let worst = (read[1].saturating_add(write[1])).saturating_mul(needs.of_tcp());
    if is_large.contains(&true) {
        finding.needed = say!("up to {} if no peer reads", in_bytes(worst));
    }
    let large = KEYS.iter().zip(is_large).filter(|(_, is_large)| *is_large);
    finding.fixes = large.map(|((key, value), _)| Fix::setting(*key, *value)).collect();
    Some(finding.judge(!is_large.contains(&true), Severity::Warn))
}
