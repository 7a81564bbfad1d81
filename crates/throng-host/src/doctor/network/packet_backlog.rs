//! `net.core.netdev_max_backlog`: packets that wait for a processor, including those of the
//! loopback interface.

use throng_base::units::format_count;

use crate::doctor::{Finding, Fix, Host, Needs, Severity};
use crate::network::Drops;

const RULE: &str = "packet-backlog";
const KEY: &str = "net.core.netdev_max_backlog";
const ENOUGH: u64 = 10_000;

pub(crate) fn examine(host: &Host, _: &Needs) -> Option<Finding> {
    let detail = say!(
        "loopback packets, and packets that one processor hands to another, wait in a queue of \
         this length and are dropped when it is full; a lost packet delays a new connection by a \
         second"
    );
    let mut finding = Finding::new(RULE, say!("packet queue"), detail);
    let Some(max) = host.number(KEY) else { return Some(finding) };
    host.root.read("proc/net/softnet_stat")?;
    let dropped = Drops::read(&host.root).packets;
    finding.value = match dropped {
        0 => say!("{}", format_count(max)),
        _ => say!("{} ({} dropped since boot)", format_count(max), format_count(dropped)),
    };
    finding.fixes = vec![Fix::setting(KEY, ENOUGH)];
    // Without drops, there is nothing to fix.
    let is_fit = dropped == 0 || max >= ENOUGH;
    if !is_fit {
        finding.needed = say!("{}", format_count(ENOUGH));
    }
    Some(finding.judge(is_fit, Severity::Warn))
}
