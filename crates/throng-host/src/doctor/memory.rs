//! Memory: what the kernel and the users need, compared with the free memory of the host.

use throng_base::units::format_count;

use throng_base::Said;

use super::{Finding, Fix, Host, Needs, Severity, descriptors, in_bytes};
use crate::costs::{TARGET_BYTES, TLS_BYTES, USER_BYTES, socket_bytes};

pub(super) const RULE: &str = "memory";

/// Bytes of all users, minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) kernel: (u64, u64),
    pub(super) ours: (u64, u64),
    /// For all dropped connections that are kept.
    pub(super) kept: (u64, u64),
}

impl Cost {
    /// The cost of one user. A socket takes a quarter less if its pages are full than if they are
    /// fragmented.
    pub(super) fn of(host: &Host, needs: &Needs) -> Cost {
        let socket = socket_bytes(&host.root, needs.datagrams);
        let kernel = (socket - socket / 4, socket);
        let count = descriptors::kept(host, needs);
        let kept = (kernel.0.saturating_mul(count), kernel.1.saturating_mul(count));
        let each = |bytes: u64| (bytes as f64 * needs.connections_per_user.max(1.0)) as u64;
        let all = |bytes: (u64, u64)| (each(bytes.0), each(bytes.1));
        let (kernel, target) = (all(kernel), all(TARGET_BYTES));
        let sum = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
        let tls = if needs.tls { TLS_BYTES } else { (0, 0) };
        match (needs.is_target(), needs.is_local()) {
            // The memory of a service is unknown; the minimum is zero.
            (true, _) => Cost { kernel, ours: (0, sum(target, tls).1), kept },
            (false, false) => Cost { kernel, ours: sum(USER_BYTES, tls), kept },
            (false, true) => {
                let ends = sum(USER_BYTES, target);
                Cost { kernel: sum(kernel, kernel), ours: sum(ends, sum(tls, tls)), kept }
            }
        }
    }

    pub(super) fn least(self) -> u64 {
        self.kernel.0 + self.ours.0
    }

    pub(super) fn most(self) -> u64 {
        self.kernel.1 + self.ours.1
    }

    /// The minimum for this many users, including kept connections.
    pub(super) fn least_of(self, users: u64) -> u64 {
        self.least().saturating_mul(users).saturating_add(self.kept.0)
    }

    pub(super) fn most_of(self, users: u64) -> u64 {
        self.most().saturating_mul(users).saturating_add(self.kept.1)
    }

    /// How many users fit into these bytes.
    pub(super) fn ceiling(self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.kept.1) / self.most()
    }
}

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    let cost = Cost::of(host, needs);
    let mut finding = Finding::new(RULE, say!("memory"), detail(needs));
    let (all, each) = (in_bytes(cost.most_of(needs.users)), in_bytes(cost.most()));
    finding.needed = match descriptors::kept(host, needs) {
        0 => say!("{all} ({each} per user)"),
        kept => {
            let kept = format_count(kept);
            say!("{all} ({each} per user, plus {kept} silently dropped connections)")
        }
    };
    let Some(available) = host.memory("MemAvailable") else { return Some(finding) };
    // The kernel can swap out other processes, but not its sockets.
    let swap = host.memory("SwapFree").unwrap_or(0);
    finding.value = say!("{} available", in_bytes(available));
    finding.ceiling = Some(cost.ceiling(available));
    finding.fixes = vec![Fix::Advice(say!("use a host with more memory, or several hosts"))];
    let bad = match cost.least_of(needs.users) <= available.saturating_add(swap) {
        true => Severity::Warn,
        false => needs.bad(),
    };
    Some(finding.judge(cost.most_of(needs.users) <= available, bad))
}

fn detail(needs: &Needs) -> Said {
    let text = if needs.is_target() {
        say!(
            "each open connection takes 3 to 4 KB of kernel memory, plus the memory that the \
             service itself uses for it"
        )
    } else if needs.is_local() {
        say!(
            "each user takes 3 to 4 KB of kernel memory for its socket and about 1 KB in throng; \
             the target is also on this host, so both ends of each connection use its memory"
        )
    } else {
        say!("each user takes 3 to 4 KB of kernel memory for its socket and about 1 KB in throng")
    };
    text.clone()
}
