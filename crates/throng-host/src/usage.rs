//! Resource usage of this process, and of everything on the host.

use std::process::Child;

use crate::Root;
use crate::facts::{field, kilobytes};
use crate::kernel::processor_times;
use crate::system::{SIGKILL, cpu_time, signal_group};

/// Resource usage of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Of all its threads, since the process started.
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    /// Resident memory; 0 if it cannot be read.
    pub memory_bytes: u64,
    pub threads: u64,
    /// Open descriptors in the table of the main thread. Absent on kernels before 6.2, which do not
    /// count them cheaply.
    pub descriptors: Option<u64>,
}

impl ProcessUsage {
    pub fn now() -> ProcessUsage {
        ProcessUsage::read(&Root::default())
    }

    /// Like [`ProcessUsage::now`], with the files of `root`; the CPU time is always the real one.
    pub fn read(root: &Root) -> ProcessUsage {
        let (cpu_user_ns, cpu_system_ns) = cpu_time();
        let status = root.read("proc/self/status").unwrap_or_default();
        let descriptors = std::fs::metadata(root.path("proc/self/fd")).ok();
        ProcessUsage {
            cpu_user_ns,
            cpu_system_ns,
            memory_bytes: kilobytes(&status, "VmRSS").unwrap_or(0),
            threads: field(&status, "Threads").and_then(|text| text.parse().ok()).unwrap_or(0),
            descriptors: descriptors.map(|data| data.len()).filter(|count| *count > 0),
        }
    }
}

/// Kills a child that leads a process group, together with the group.
pub fn kill_group(child: &mut Child) {
    signal_group(child.id(), SIGKILL);
    // On Windows, which has no groups. A child that has ended is not an error.
    let _ = child.kill();
}

/// Reads the CPU usage of the whole host between one call and the next.
#[derive(Clone, Debug)]
pub struct HostCpu {
    root: Root,
    before: Option<Ticks>,
}

/// Shares of the time of all processors, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostShare {
    /// Everything except idle and waiting for a disk.
    pub busy: f64,
    /// Taken by other virtual machines of the hypervisor; part of `busy`.
    pub steal: f64,
    /// Packet processing outside of any process; part of `busy`.
    pub softirq: f64,
}

#[derive(Clone, Copy, Debug)]
struct Ticks {
    total: u64,
    idle: u64,
    softirq: u64,
    steal: u64,
}

impl Default for HostCpu {
    fn default() -> HostCpu {
        HostCpu::new(Root::default())
    }
}

impl HostCpu {
    /// Starts measuring.
    pub fn new(root: Root) -> HostCpu {
        let before = ticks(&root);
        HostCpu { root, before }
    }

    /// The shares since the last call, or since the start. Absent if no tick has passed or the
    /// kernel does not report them.
    pub fn since_last(&mut self) -> Option<HostShare> {
        let now = ticks(&self.root)?;
        let before = self.before.replace(now)?;
        // The idle counter of some kernels decreases by a tick or two.
        let total = now.total.saturating_sub(before.total);
        let share = |part: u64| (part as f64 / total as f64).clamp(0.0, 1.0);
        (total > 0).then(|| HostShare {
            busy: share(total.saturating_sub(now.idle.saturating_sub(before.idle))),
            steal: share(now.steal.saturating_sub(before.steal)),
            softirq: share(now.softirq.saturating_sub(before.softirq)),
        })
    }
}

fn ticks(root: &Root) -> Option<Ticks> {
    let text = root.read("proc/stat")?;
    let (_, ticks) = processor_times(&text).find(|(name, _)| *name == "cpu")?;
    let [.., idle, iowait, _, softirq, steal] = ticks;
    let total = ticks.iter().fold(0u64, |sum, ticks| sum.saturating_add(*ticks));
    Some(Ticks { total, idle: idle.saturating_add(iowait), softirq, steal })
}
