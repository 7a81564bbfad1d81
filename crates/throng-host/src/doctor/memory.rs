//! Memory: what the kernel and the users take, against what the host has left.

use super::{Finding, Fix, Host, Needs, Severity, in_bytes};
use crate::costs::{TARGET_BYTES, TLS_BYTES, USER_BYTES, socket_bytes};

pub(super) const RULE: &str = "memory";

/// Bytes of all users, least and most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) kernel: (u64, u64),
    pub(super) ours: (u64, u64),
}

impl Cost {
    /// Of one user. A socket is a quarter smaller where its pages are full than where they were
    /// used by others before.
    pub(super) fn of(host: &Host, needs: &Needs) -> Cost {
        let socket = socket_bytes(&host.root, needs.datagrams);
        let kernel = (socket - socket / 4, socket);
        let sum = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
        let tls = if needs.tls { TLS_BYTES } else { (0, 0) };
        match (needs.is_target(), needs.is_local()) {
            // Nobody knows what a service spends; of its own it may have as little as nothing.
            (true, _) => Cost { kernel, ours: (0, sum(TARGET_BYTES, tls).1) },
            (false, false) => Cost { kernel, ours: sum(USER_BYTES, tls) },
            (false, true) => {
                let ends = sum(USER_BYTES, TARGET_BYTES);
                Cost { kernel: sum(kernel, kernel), ours: sum(ends, sum(tls, tls)) }
            }
        }
    }

    pub(super) fn least(self) -> u64 {
        self.kernel.0 + self.ours.0
    }

    pub(super) fn most(self) -> u64 {
        self.kernel.1 + self.ours.1
    }
}

// sentences
pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    let cost = Cost::of(host, needs);
    let mut finding = Finding { title: "memory", ..Finding::new(RULE, detail(needs)) };
    finding.needed = format!(
        "{} ({} per user)",
        in_bytes(cost.most().saturating_mul(needs.users)),
        in_bytes(cost.most())
    );
    let Some(available) = host.memory("MemAvailable") else { return Some(finding) };
    // The kernel can swap out other processes, not its own sockets.
    let swap = host.memory("SwapFree").unwrap_or(0);
    finding.value = format!("{} available", in_bytes(available));
    finding.ceiling = Some(available / cost.most());
    finding.fixes = vec![Fix::Advice("use a host with more memory, or several hosts".into())];
    let enough = |per_user: u64, bytes: u64| per_user.saturating_mul(needs.users) <= bytes;
    let bad = match enough(cost.least(), available.saturating_add(swap)) {
        true => Severity::Warn,
        false => needs.bad(),
    };
    Some(finding.judge(enough(cost.most(), available), bad))
}

// sentences
fn detail(needs: &Needs) -> String {
    let text = if needs.is_target() {
        "each open connection costs the kernel 3 to 4 KB; what the service itself takes for it \
         comes on top"
    } else if needs.is_local() {
        "each user costs the kernel 3 to 4 KB for its socket and throng about 1 KB; the target is \
         on this host too, so both ends count"
    } else {
        "each user costs the kernel 3 to 4 KB for its socket and throng about 1 KB"
    };
    text.to_string()
}
