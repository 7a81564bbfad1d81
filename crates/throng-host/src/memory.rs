//! How much memory this process could still take, and how much has to be left: of the host, and of
//! the control groups that it is in.

use std::path::PathBuf;

use crate::Root;
use crate::facts::{cgroup_directories, kilobytes, memory_limit};

/// What has to be left at least, however large the host is, for the kernel and everybody else.
const FLOOR_BYTES: u64 = 256 << 20;
/// The share of all memory that has to be left.
const FLOOR_SHARE: f64 = 0.03;
/// On a small host the floor is at most this part of it.
const FLOOR_PART_MAX: u64 = 8;

/// A line of `/proc/self/limits`.
const ADDRESS_SPACE: &str = "Max address space";

/// Memory that could still be had, and the floor that it must not fall below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLeft {
    pub available_bytes: u64,
    pub floor_bytes: u64,
    /// It is a control group's limit and not the end of the host's memory.
    pub is_group: bool,
}

/// Where to read it: control groups with a limit are looked up once.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    root: Root,
    groups: Vec<Group>,
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
        Memory { groups: groups.collect(), root }
    }

    /// Of the host and all groups the one that is nearest to its floor.
    pub(crate) fn left(&self) -> Option<MemoryLeft> {
        let host = self.root.read("proc/meminfo").and_then(|text| {
            let available_bytes = kilobytes(&text, "MemAvailable")?;
            let floor_bytes = floor(kilobytes(&text, "MemTotal")?);
            Some(MemoryLeft { available_bytes, floor_bytes, is_group: false })
        });
        let groups = self.groups.iter().filter_map(|group| group.left(&self.root));
        let above =
            |left: &MemoryLeft| i128::from(left.available_bytes) - i128::from(left.floor_bytes);
        host.into_iter().chain(groups).min_by_key(above)
    }
}

/// What this process could take now: of the host, of its control groups, and of its address space
/// (`ulimit -v`). None where nothing says it.
pub fn room(root: &Root) -> Option<u64> {
    let left = Memory::new(root.clone()).left().map(|left| left.available_bytes);
    let limits = root.read("proc/self/limits").unwrap_or_default();
    let limit = limits.lines().find_map(|line| {
        let rest = line.strip_prefix(ADDRESS_SPACE)?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    });
    let status = root.read("proc/self/status").unwrap_or_default();
    let taken = kilobytes(&status, "VmSize").unwrap_or(0);
    let space = limit.map(|limit| limit.saturating_sub(taken));
    left.into_iter().chain(space).min()
}

impl Group {
    fn left(&self, root: &Root) -> Option<MemoryLeft> {
        let used = ["memory.current", "memory.usage_in_bytes"]
            .into_iter()
            .find_map(|name| root.number(self.directory.join(name)))?;
        let mut available_bytes = self.limit_bytes.saturating_sub(used);
        let floor_bytes = floor(self.limit_bytes);
        // Files in the cache count as used and are given back when memory is short. To ask for
        // them costs the kernel more, so only who comes near asks.
        if available_bytes < floor_bytes.saturating_mul(4) {
            let cached = root.read(self.directory.join("memory.stat")).unwrap_or_default();
            let cached = ["total_inactive_file ", "inactive_file "].into_iter().find_map(|name| {
                let line = cached.lines().find_map(|line| line.strip_prefix(name))?;
                line.trim().parse::<u64>().ok()
            });
            let cached = cached.unwrap_or(0).min(used);
            available_bytes = available_bytes.saturating_add(cached).min(self.limit_bytes);
        }
        Some(MemoryLeft { available_bytes, floor_bytes, is_group: true })
    }
}

/// How much of so many bytes has to be left.
fn floor(total_bytes: u64) -> u64 {
    let share = (total_bytes as f64 * FLOOR_SHARE) as u64;
    share.max(FLOOR_BYTES.min(total_bytes / FLOOR_PART_MAX))
}
