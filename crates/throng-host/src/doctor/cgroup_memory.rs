//! The memory limits of control groups: a process above the limit is killed, regardless of the
//! host's free memory.

use super::memory::Cost;
use super::{Finding, Fix, Host, Needs, Severity, in_bytes};
use crate::facts::{cgroup_directories, memory_limit};

pub(super) const RULE: &str = "cgroup-memory";

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    // The service under test has its own control groups.
    let groups = match needs.is_target() {
        true => return None,
        false => cgroup_directories(&host.root, "memory"),
    };
    let limit = groups.iter().filter_map(|group| memory_limit(&host.root, group)).min()?;
    // The target is in its own group, or in none.
    let alone = Needs { routes: Vec::new(), ..needs.clone() };
    let cost = Cost::of(host, &alone);
    let detail = say!(
        "a control group (container, systemd service) limits the memory of this process and of \
         its kernel sockets"
    );
    let mut finding = Finding {
        value: say!("{} allowed", in_bytes(limit)),
        needed: say!("{}", in_bytes(cost.most_of(needs.users))),
        ceiling: Some(cost.ceiling(limit)),
        ..Finding::new(RULE, say!("control group memory"), detail)
    };
    let wanted = cost.most_of(needs.users).saturating_mul(5) / 4;
    finding.fixes = vec![Fix::Command { now: String::new(), for_good: memory_max(wanted) }];
    // Kernels before cgroup 2 may account for sockets elsewhere.
    let bad = match cost.ours.0.saturating_mul(needs.users) <= limit {
        true => Severity::Warn,
        false => needs.bad(),
    };
    Some(finding.judge(cost.most_of(needs.users) <= limit, bad))
}

/// In systemd's notation; container runtimes have their own option.
fn memory_max(bytes: u64) -> String {
    format!("systemd: [Service] MemoryMax={}M", bytes.div_ceil(1 << 20))
}
