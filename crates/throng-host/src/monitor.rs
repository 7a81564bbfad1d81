//! What this process and its host did since the last reading: read once per second, at negligible
//! cost. A value that cannot be read is absent or zero, never guessed.

use std::time::Duration;

use crate::kernel::pressures;
use crate::memory::{Memory, MemoryLeft};
use crate::network::{Drops, SocketCost, Sockets, Throughput, Traffic};
use crate::quota::Quotas;
use crate::threads::Threads;
use crate::usage::{HostCpu, HostShare, ProcessUsage};
use crate::{HostFacts, Root};

/// Shares over a shorter time are meaningless: the kernel counts in ticks of 1 to 10 ms.
const SHARES_TIME_MIN: Duration = Duration::from_millis(500);

/// Monitors this process and its host.
#[derive(Debug)]
pub struct Monitor {
    root: Root,
    cost: SocketCost,
    memory: Memory,
    threads: Threads,
    quotas: Quotas,
    host: HostCpu,
    /// The processors that this process may use, by affinity and control group.
    processors: f64,
    /// All online processors.
    host_processors: f64,
    usage: ProcessUsage,
    drops: Drops,
    traffic: Traffic,
    shares: Shares,
}

/// Values that are shares of a time, since a reading that is old enough.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    since: Duration,
    /// The CPU time of this process from then until the last reading.
    cpu_ns: u64,
    told: HostFigures,
}

#[derive(Clone, Copy, Debug, Default)]
struct HostFigures {
    shard: f64,
    process: f64,
    host: Option<HostShare>,
    others: Option<f64>,
    throughput: Option<Throughput>,
}

/// One reading. Counters are since the last reading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    /// CPU usage of this process, as a share of the processors it may use, 0 to 1.
    pub cpu_share: f64,
    /// CPU usage of the busiest shard's thread, as a share of one processor, 0 to 1.
    pub shard_cpu_max: f64,
    /// The total time that threads were runnable without a processor.
    pub run_queue_ns: u64,
    /// The CPU quota of a control group: its periods, those in which it throttled this process, and
    /// for how long, all processors together.
    pub quota_periods: u64,
    pub throttled_periods: u64,
    pub throttled_ns: u64,
    /// Resident memory.
    pub memory_bytes: u64,
    pub memory_left: Option<MemoryLeft>,
    pub host: Option<HostShare>,
    /// CPU usage of everything except this process, as a share of all processors, 0 to 1.
    pub others_cpu: Option<f64>,
    /// The share of the last ten seconds in which a program of the host waited for memory, 0 to 1.
    pub memory_stall: Option<f64>,
    /// For the busiest interface.
    pub throughput: Option<Throughput>,
    pub packets_dropped: u64,
    pub listen_dropped: u64,
    /// Connections that the host's firewall tracks, and its limit; 0 without one.
    pub conntrack: u64,
    pub conntrack_max: u64,
    /// Kernel memory of all TCP and UDP sockets of the host; 0 if the kernel does not count them.
    pub kernel_socket_bytes: u64,
    /// Closed connections of the host that still keep their ports.
    pub time_wait: u64,
    /// The shares are those of the last reading: too little time has passed for new ones.
    pub shares_are_old: bool,
}

impl Monitor {
    /// Starts measuring at this time, on any steady clock.
    pub fn new(root: &Root, now: Duration) -> Monitor {
        let facts = HostFacts::read(root, "");
        let processors = facts.cores_usable.or(facts.cores).unwrap_or(1).max(1) as f64;
        let all = facts.cores.unwrap_or(1).max(1) as f64;
        let allowed = facts.cgroup_cores_max.unwrap_or(processors);
        Monitor {
            cost: SocketCost::read(root),
            memory: Memory::new(root.clone()),
            threads: Threads::new(root.clone()),
            quotas: Quotas::new(root.clone()),
            host: HostCpu::new(root.clone()),
            processors: processors.min(allowed).max(0.01),
            host_processors: all,
            usage: ProcessUsage::read(root),
            drops: Drops::read(root),
            traffic: Traffic::read(root),
            shares: Shares { since: now, ..Shares::default() },
            root: root.clone(),
        }
    }

    /// The kernel memory of a socket on this host.
    pub fn socket_cost(&self) -> SocketCost {
        self.cost
    }

    /// The memory of this process, and what is left for it. It may be read more often than the
    /// rest, which is per reading interval.
    pub fn memory(&mut self) -> (u64, Option<MemoryLeft>) {
        (ProcessUsage::read(&self.root).memory_bytes, self.memory.left())
    }

    pub fn read(&mut self, now: Duration) -> Reading {
        let usage = ProcessUsage::read(&self.root);
        let before = std::mem::replace(&mut self.usage, usage);
        let cpu_user_ns = usage.cpu_user_ns.saturating_sub(before.cpu_user_ns);
        let cpu_system_ns = usage.cpu_system_ns.saturating_sub(before.cpu_system_ns);
        let passed = now.saturating_sub(self.shares.since);
        let is_long_enough = passed >= SHARES_TIME_MIN;
        let threads = self.threads.since_last(usage.threads, is_long_enough);
        let throttled = self.quotas.since_last();
        let drops = Drops::read(&self.root);
        let dropped = drops.since(std::mem::replace(&mut self.drops, drops));
        let sockets = Sockets::read(&self.root).unwrap_or_default();
        self.shares.cpu_ns += cpu_user_ns + cpu_system_ns;
        if is_long_enough {
            self.renew_shares(passed, threads.shard_cpu_max_ns);
            self.shares.since = now;
        }
        Reading {
            cpu_user_ns,
            cpu_system_ns,
            cpu_share: self.shares.told.process,
            shard_cpu_max: self.shares.told.shard,
            run_queue_ns: threads.run_queue_ns,
            quota_periods: throttled.periods,
            throttled_periods: throttled.throttled,
            throttled_ns: throttled.time_ns,
            memory_bytes: usage.memory_bytes,
            memory_left: self.memory.left(),
            host: self.shares.told.host,
            others_cpu: self.shares.told.others,
            memory_stall: memory_stall(&self.root),
            throughput: self.shares.told.throughput,
            packets_dropped: dropped.packets,
            listen_dropped: dropped.connections,
            conntrack: conntrack(&self.root, "count"),
            conntrack_max: conntrack(&self.root, "max"),
            kernel_socket_bytes: sockets.bytes(self.cost),
            time_wait: sockets.time_wait,
            shares_are_old: !is_long_enough,
        }
    }

    /// Computes the shares over the elapsed time.
    fn renew_shares(&mut self, passed: Duration, shard_cpu_max_ns: u64) {
        let of = |ns: u64, processors: f64| {
            (ns as f64 / (passed.as_nanos() as f64 * processors)).clamp(0.0, 1.0)
        };
        let host = self.host.since_last();
        let own = of(self.shares.cpu_ns, self.host_processors);
        let traffic = Traffic::read(&self.root);
        let before = std::mem::replace(&mut self.traffic, traffic);
        self.shares.told = HostFigures {
            shard: of(shard_cpu_max_ns, 1.0),
            process: of(self.shares.cpu_ns, self.processors),
            host: host.or(self.shares.told.host),
            others: host.map(|host| others(host, own)).or(self.shares.told.others),
            throughput: self.traffic.since(&before, passed),
        };
        self.shares.cpu_ns = 0;
    }
}

/// The usage of all others. The kernel does not attribute packet processing: it is divided in
/// proportion to the other usage.
fn others(host: HostShare, own: f64) -> f64 {
    let of_programs = (host.busy - host.softirq).max(own).max(f64::MIN_POSITIVE);
    (host.busy * (of_programs - own) / of_programs).clamp(0.0, 1.0)
}

/// Zero if this host does not track connections: the file is missing.
fn conntrack(root: &Root, what: &str) -> u64 {
    let text = root.read(format!("proc/sys/net/netfilter/nf_conntrack_{what}"));
    text.and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

/// Kernels without pressure information have no such file.
fn memory_stall(root: &Root) -> Option<f64> {
    let text = root.read("proc/pressure/memory")?;
    let some = pressures(&text).find(|row| row.kind == "some")?;
    Some((some.percent_10s / 100.0).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests;
