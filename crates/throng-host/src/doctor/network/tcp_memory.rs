//! `net.ipv4.tcp_mem`: the queues of all TCP sockets together.

use throng_base::units::format_count;

use crate::doctor::{Finding, Fix, Host, Needs, Severity, in_bytes};
use crate::system::page_bytes;

const RULE: &str = "tcp-memory";
const KEY: &str = "net.ipv4.tcp_mem";

pub(crate) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    if !needs.has_tcp() {
        return None;
    }
    let detail = say!(
        "idle sockets use none of this memory; a socket with queued data uses at least one page, \
         so a message to all users may need one page per user; above the second number, windows \
         shrink; above the third, data is dropped"
    );
    let mut finding = Finding::new(RULE, say!("TCP queue memory"), detail);
    let Some([low, pressure, high]) = host.numbers::<3>(KEY) else { return Some(finding) };
    finding.value =
        say!("{low} {pressure} {high} pages ({})", in_bytes(high.saturating_mul(page_bytes())));
    let wanted = needs.of_tcp().saturating_mul(needs.ends());
    finding.needed = say!(
        "none while idle; {} pages if all sockets have data at the same time",
        format_count(wanted)
    );
    finding.fixes = cure(host, KEY, wanted, [low, pressure, high]);
    Some(finding.judge(wanted <= high, Severity::Warn))
}

/// Raises marks, never lowers them; at most half of the memory, in the kernel's proportions.
pub(crate) fn cure(host: &Host, key: &str, wanted: u64, marks: [u64; 3]) -> Vec<Fix> {
    let Some(memory) = host.memory("MemTotal") else { return Vec::new() };
    let high = wanted.saturating_mul(5) / 4;
    let high = high.min(memory / 2 / page_bytes());
    if high <= marks[2] {
        let advice = say!(
            "this host does not have enough memory for a higher limit: spread messages to all \
             users over several seconds"
        );
        return vec![Fix::Advice(advice)];
    }
    let raised = [high / 2, high / 3 * 2, high];
    let of = |at: usize| raised[at].max(marks[at]);
    let value = format!("{} {} {}", of(0), of(1), of(2));
    vec![Fix::setting(key, value.as_str())]
}
