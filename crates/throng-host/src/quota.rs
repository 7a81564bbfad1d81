//! The effect of control groups' CPU quotas on this process: periods, those in which it was
//! throttled, and for how long. A group is throttled for the rest of a period once it has used its
//! quota; see the kernel's `scheduler/sched-bwc.rst` and `admin-guide/cgroup-v2.rst` (`cpu.stat`).

use std::path::PathBuf;

use crate::Root;
use crate::facts::cgroup_directories;
use crate::kernel::value;

/// Counters of one control group since its creation, or between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Throttled {
    pub(crate) periods: u64,
    pub(crate) throttled: u64,
    /// All processors together.
    pub(crate) time_ns: u64,
}

/// The groups of this process, from its own to the root.
#[derive(Debug)]
pub(crate) struct Quotas {
    root: Root,
    files: Vec<(PathBuf, Throttled)>,
}

impl Quotas {
    /// Starts measuring. Groups without a quota are not read again.
    pub(crate) fn new(root: Root) -> Quotas {
        let directories = cgroup_directories(&root, "cpu");
        let files = directories.into_iter().filter_map(|directory| {
            let file = directory.join("cpu.stat");
            let now = Throttled::parse(&root.read(&file)?)?;
            Some((file, now))
        });
        let files = files.collect();
        Quotas { root, files }
    }

    /// Since the last call, for the group that was throttled longest, because all of them stop the
    /// same threads.
    pub(crate) fn since_last(&mut self) -> Throttled {
        let root = &self.root;
        let since = |(file, before): &mut (PathBuf, Throttled)| {
            let now = Throttled::parse(&root.read(&*file)?)?;
            let before = std::mem::replace(before, now);
            Some(Throttled {
                periods: now.periods.saturating_sub(before.periods),
                throttled: now.throttled.saturating_sub(before.throttled),
                time_ns: now.time_ns.saturating_sub(before.time_ns),
            })
        };
        let all = self.files.iter_mut().filter_map(since);
        all.max_by_key(|one| (one.time_ns, one.periods)).unwrap_or_default()
    }
}

impl Throttled {
    /// `cpu.stat`: `nr_periods`, `nr_throttled`, and `throttled_usec` (version 2) or
    /// `throttled_time` in nanoseconds (version 1). `None` if the group does not count them.
    pub(crate) fn parse(text: &str) -> Option<Throttled> {
        let micros = value(text, "throttled_usec").map(|micros| micros.saturating_mul(1_000));
        Some(Throttled {
            periods: value(text, "nr_periods")?,
            throttled: value(text, "nr_throttled")?,
            time_ns: micros.or_else(|| value(text, "throttled_time"))?,
        })
    }
}
