//! The memory that this process could still use, and the floor that must stay free: on the host,
//! and in its control groups.

use std::path::PathBuf;

use crate::Root;
use crate::facts::{cgroup_directories, kilobytes, memory_limit};
use crate::kernel::{limits, value};

/// The minimum that must stay free for the kernel and other processes, on a host of any size.
const FLOOR_BYTES: u64 = 256 << 20;
/// The share of all memory that must stay free.
const FLOOR_SHARE: f64 = 0.03;
/// On a small host the floor is at most this part of it.
const FLOOR_PART_MAX: u64 = 8;

/// A control group with less than this many floors left is checked more precisely.
const NEAR_FLOORS: u64 = 16;

/// A line of `/proc/self/limits`.
pub(crate) const ADDRESS_SPACE: &str = "Max address space";

/// Memory that is still available, and the floor that must stay free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLeft {
    pub available_bytes: u64,
    pub floor_bytes: u64,
    pub bound: MemoryBound,
}

/// The limit that is nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBound {
    Host,
    /// The limit of a control group: a process above it is killed.
    Group,
    /// The limit of this process (`ulimit -v`): an allocation beyond it ends the process.
    AddressSpace,
}

/// Where to read it: control groups with a limit are looked up once.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    root: Root,
    groups: Vec<Group>,
    /// For the address space of this process.
    space_bytes_max: Option<u64>,
}

#[derive(Clone, Debug)]
struct Group {
    directory: PathBuf,
    limit_bytes: u64,
}

impl Memory {
    pub(crate) fn new(root: Root) -> Memory {
        let groups = cgroup_directories(&root, "memory").into_iter().filter_map(|directory| {
            memory_limit(&root, &directory).map(|limit_bytes| Group { directory, limit_bytes })
        });
        Memory { groups: groups.collect(), space_bytes_max: space_limit(&root), root }
    }

    /// The nearest limit of the host, the groups and the address space.
    pub(crate) fn left(&self) -> Option<MemoryLeft> {
        let host = self.root.read("proc/meminfo").and_then(|text| {
            let available_bytes = kilobytes(&text, "MemAvailable")?;
            let floor_bytes = floor(kilobytes(&text, "MemTotal")?);
            Some(MemoryLeft { available_bytes, floor_bytes, bound: MemoryBound::Host })
        });
        let groups = self.groups.iter().filter_map(|group| group.left(&self.root));
        let above =
            |left: &MemoryLeft| i128::from(left.available_bytes) - i128::from(left.floor_bytes);
        host.into_iter().chain(groups).chain(self.space()).min_by_key(above)
    }

    fn space(&self) -> Option<MemoryLeft> {
        let limit = self.space_bytes_max?;
        let status = self.root.read("proc/self/status")?;
        let available_bytes = limit.saturating_sub(kilobytes(&status, "VmSize")?);
        let (floor_bytes, bound) = (floor(limit), MemoryBound::AddressSpace);
        Some(MemoryLeft { available_bytes, floor_bytes, bound })
    }
}

/// The limit of this process's address space, if any (setrlimit(2), RLIMIT_AS).
pub fn address_space_limit() -> Option<u64> {
    space_limit(&Root::default())
}

fn space_limit(root: &Root) -> Option<u64> {
    let [limit, _] = limits(&root.read("proc/self/limits")?, ADDRESS_SPACE)?;
    (limit < u64::MAX).then_some(limit)
}

/// What this process could allocate now, limited by the host, its control groups and its address
/// space (`ulimit -v`). `None` if nothing is known.
pub fn room(root: &Root) -> Option<u64> {
    let memory = Memory::new(root.clone());
    let left = [memory.left(), memory.space()].into_iter().flatten();
    left.map(|left| left.available_bytes).min()
}

impl Group {
    fn left(&self, root: &Root) -> Option<MemoryLeft> {
        let used = ["memory.current", "memory.usage_in_bytes"]
            .into_iter()
            .find_map(|name| root.number(self.directory.join(name)))?;
        let mut available_bytes = self.limit_bytes.saturating_sub(used);
        let floor_bytes = floor(self.limit_bytes);
        // Cached files count as used and are freed when memory is short. This is expensive to read,
        // so it is read only near the limit.
        if available_bytes < floor_bytes.saturating_mul(NEAR_FLOORS) {
            let cached = root.read(self.directory.join("memory.stat")).unwrap_or_default();
            let names = ["total_inactive_file", "inactive_file"];
            let cached = names.into_iter().find_map(|name| value(&cached, name));
            let cached = cached.unwrap_or(0).min(used);
            available_bytes = available_bytes.saturating_add(cached).min(self.limit_bytes);
        }
        Some(MemoryLeft { available_bytes, floor_bytes, bound: MemoryBound::Group })
    }
}

/// The floor for this much memory.
fn floor(total_bytes: u64) -> u64 {
    let share = (total_bytes as f64 * FLOOR_SHARE) as u64;
    share.max(FLOOR_BYTES.min(total_bytes / FLOOR_PART_MAX))
}
