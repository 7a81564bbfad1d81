//! What prevents this host from running this many users: one rule per file. Each reports what it
//! found, what is needed, how many users the limit allows, and how to fix it.
//!
//! A rule reads the host and returns nothing if it does not apply. A value that cannot be read is
//! [`Severity::Unknown`], never guessed. `docs/doctor.md` explains each rule.

mod address_space;
mod addresses;
mod cgroup_memory;
mod cgroup_pids;
mod clock_source;
mod cpu_quota;
mod descriptors;
mod epoll_watches;
mod file_max;
mod fix;
mod host;
mod memory;
mod needs;
mod network;
mod nr_open;
mod page_reporting;
mod source_addresses;
mod source_ports;
mod steal;
mod threads;

use throng_base::Said;
use throng_base::units::format_bytes;

pub use fix::{Applied, Fix, apply};
pub use host::Host;
pub use needs::{Block, Needs, Role, Route};

/// The result of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule's identifier.
    pub rule: &'static str,
    /// What it checks.
    pub title: Said,
    /// The value on this host.
    pub value: Said,
    /// What the users need; empty if nothing is needed.
    pub needed: Said,
    /// How many users this limit allows, if known.
    pub ceiling: Option<u64>,
    pub severity: Severity,
    /// Why it matters.
    pub detail: Said,
    pub fixes: Vec<Fix>,
}

words! {
    Severity {
        /// The users do not fit.
        Unfit, "unfit";
        /// They fit, but something may disturb them or the measurement.
        Warn, "warn";
        /// The value cannot be read.
        Unknown, "unknown";
        Fit, "fit";
    }
}

impl Finding {
    /// Without values.
    fn new(rule: &'static str, title: Said, detail: Said) -> Finding {
        Finding {
            rule,
            title,
            value: Said::default(),
            needed: Said::default(),
            ceiling: None,
            severity: Severity::Unknown,
            detail,
            fixes: Vec::new(),
        }
    }

    /// Fit, or this severity if the condition is not met; fixes are kept only if it is not fit.
    fn judge(mut self, is_fit: bool, otherwise: Severity) -> Finding {
        self.severity = if is_fit { Severity::Fit } else { otherwise };
        if is_fit {
            self.fixes.clear();
        }
        self
    }

    /// A run does not start if addresses, ports, descriptors or memory are missing.
    pub fn stops_a_run(&self) -> bool {
        const STOPPING: [&str; 9] = [
            descriptors::RULE,
            epoll_watches::RULE,
            file_max::RULE,
            source_ports::RULE,
            source_addresses::RULE,
            memory::RULE,
            cgroup_memory::RULE,
            address_space::RULE,
            addresses::user_network::RULE,
        ];
        self.severity == Severity::Unfit && STOPPING.contains(&self.rule)
    }
}

type Rule = fn(&Host, &Needs) -> Option<Finding>;

/// In the order of the report.
const RULES: [Rule; 27] = [
    memory::examine,
    cgroup_memory::examine,
    address_space::examine,
    page_reporting::examine,
    source_addresses::examine,
    source_ports::examine,
    descriptors::examine,
    file_max::examine,
    nr_open::examine,
    epoll_watches::examine,
    threads::examine,
    cgroup_pids::examine,
    network::conntrack::examine,
    network::time_wait::examine,
    network::accept_queue::examine,
    network::syn_backlog::examine,
    network::tcp_memory::examine,
    network::buffers::examine,
    network::datagram_memory::examine,
    network::datagram_queues::examine,
    network::packet_backlog::examine,
    network::nic_queues::examine,
    network::reverse_path::examine,
    addresses::user_network::examine,
    clock_source::examine,
    cpu_quota::examine,
    steal::examine,
];

/// The findings of all rules, the worst first.
#[derive(Clone, Debug, PartialEq)]
pub struct Examination {
    pub findings: Vec<Finding>,
}

pub fn examine(host: &Host, needs: &Needs) -> Examination {
    let mut findings: Vec<Finding> =
        RULES.iter().filter_map(|examine| examine(host, needs)).collect();
    findings.sort_by_key(|finding| finding.severity as u8);
    Examination { findings }
}

impl Examination {
    pub fn is_fit(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity != Severity::Unfit)
    }

    /// The limit that more users would reach first.
    pub fn next_limit(&self) -> Option<&Finding> {
        let limits = self.findings.iter().filter(|finding| finding.ceiling.is_some());
        limits.min_by_key(|finding| finding.ceiling)
    }
}

/// The bytes in readable form.
fn in_bytes(bytes: u64) -> String {
    format_bytes(bytes as f64)
}

/// A round number: two leading digits, rounded up.
fn rounded_up(number: u64) -> u64 {
    let mut step = 1;
    while number / step >= 100 {
        step *= 10;
    }
    number.div_ceil(step).saturating_mul(step)
}

#[cfg(test)]
mod tests;
