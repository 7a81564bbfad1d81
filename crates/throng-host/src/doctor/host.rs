//! The values of a host that rules read.

use crate::Root;
use crate::facts::{cgroup_directories, field, kilobytes};
use crate::kernel::limits;

/// capabilities(7), the numbers of linux/capability.h.
pub(super) const CAP_SYS_ADMIN: u32 = 21;
pub(super) const CAP_SYS_RESOURCE: u32 = 24;

/// A line of /proc/self/limits.
pub(super) const PROCESSES: &str = "Max processes";

/// A host as its files describe it.
#[derive(Clone, Debug)]
pub struct Host {
    pub(super) root: Root,
}

impl Host {
    pub fn new(root: Root) -> Host {
        Host { root }
    }

    /// The value of a setting such as `net.core.somaxconn`.
    pub(super) fn setting(&self, key: &str) -> Option<String> {
        self.root.line(setting_path(key))
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.root.number(setting_path(key))
    }

    /// A setting of several numbers.
    pub(super) fn numbers<const N: usize>(&self, key: &str) -> Option<[u64; N]> {
        self.root.numbers(setting_path(key))
    }

    /// The soft and the hard limit of this process; [`u64::MAX`] means no limit.
    pub(super) fn limits(&self, name: &str) -> Option<(u64, u64)> {
        limits(&self.root.read("proc/self/limits")?, name).map(Into::into)
    }

    /// True if this process has a capability; false if that cannot be read.
    pub(super) fn can(&self, capability: u32) -> bool {
        let status = self.root.read("proc/self/status").unwrap_or_default();
        let set = field(&status, "CapEff").and_then(|text| u64::from_str_radix(&text, 16).ok());
        set.is_some_and(|set| set & (1 << capability) != 0)
    }

    /// Bytes of a line of meminfo.
    pub(super) fn memory(&self, name: &str) -> Option<u64> {
        kilobytes(&self.root.read("proc/meminfo")?, name)
    }

    pub(super) fn cores(&self) -> Option<u64> {
        crate::facts::cores(&self.root, &self.root.read("proc/cpuinfo").unwrap_or_default())
    }

    /// The smallest value of a file in our control groups, from our own up to the root.
    pub(super) fn group_min(&self, controller: &str, file: &str) -> Option<u64> {
        let groups = cgroup_directories(&self.root, controller);
        groups.iter().filter_map(|group| self.root.number(group.join(file))).min()
    }

    /// Interfaces that are up, without the loopback, by name.
    pub(super) fn interfaces(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.path("sys/class/net"));
        let names = entries.into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let is_up = |name: &String| {
            let state = self.root.line(format!("sys/class/net/{name}/operstate"));
            name != "lo" && state.as_deref() == Some("up")
        };
        let mut names: Vec<String> = names.filter(is_up).collect();
        names.sort();
        names
    }
}

/// The path of a setting. Dots separate names, as in sysctl(8); a name with dots is written with
/// `/`.
pub(super) fn setting_path(key: &str) -> String {
    let path = if key.contains('/') { key.to_string() } else { key.replace('.', "/") };
    format!("proc/sys/{path}")
}
