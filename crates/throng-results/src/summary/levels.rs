//! Names and sorts the levels of the load.

use throng_base::Said;
use throng_base::units::{format_count, parse_count};

use super::{LevelRow, Summary, per_second};
use crate::directory::RunInfo;
use crate::monitors::Busy;

/// With fewer levels, there is no curve over the load.
pub(crate) const LEVELS_DRAWN_MIN: usize = 3;
/// Below this ratio of the most users to the fewest, levels differ by their rate.
const USERS_VARY_MIN: f64 = 1.05;

impl LevelRow {
    /// The phase, and the load if it was changed.
    pub(crate) fn label(&self, info: &RunInfo) -> Said {
        let phase = match (info.tables.loads.get(self.load), self.name.is_empty()) {
            (Some(load), false) => format!("{load} / {}", self.name),
            (Some(load), true) => load.clone(),
            (None, _) => self.name.clone(),
        };
        let phase = Said::of_others(phase).cleaned();
        match self.changed() {
            None => phase,
            Some(change) if phase.is_empty() => change,
            Some(change) => say!("{phase}, {change}"),
        }
    }

    /// Sets the target's usage. `is_shared` means that its host also generates load.
    pub(crate) fn take_busy(&mut self, busy: &Busy, is_shared: bool) {
        let lasted_ns = u64::try_from(self.lasted.as_nanos()).unwrap_or(u64::MAX);
        let to_ns = self.at_ns.saturating_add(lasted_ns);
        self.target_cores = busy.cores((self.at_ns, to_ns), is_shared);
        let per_s = per_second(self.total.count, self.lasted);
        self.target_cpu_s = self.target_cores.filter(|_| per_s > 0.0).map(|cores| cores / per_s);
        let memory = busy.memory((self.at_ns, self.kept_to_ns), is_shared);
        self.target_memory_bytes = memory.map(|(bytes, _)| bytes as u64);
        let open = self.connections_open as f64;
        let each = memory.filter(|_| open > 0.0).map(|(_, growth)| growth / open);
        self.target_connection_bytes = each.filter(|bytes| *bytes >= 1.0).map(|bytes| bytes as u64);
    }

    fn changed(&self) -> Option<Said> {
        let change = self.change.as_deref()?;
        Some(match change.split_once(' ') {
            Some(("rate", rate)) => Said::of_others(format!("{rate}/s")),
            Some(("users", users)) => {
                let users = parse_count(users).map_or_else(|_| users.to_string(), format_count);
                say!("{users} users")
            }
            Some(("times", times)) => Said::of_others(format!("× {times}")),
            _ => Said::of_others(change.to_string()),
        })
    }
}

impl Summary {
    /// Whether there are several levels; a warm-up alone does not count.
    pub(crate) fn has_levels(&self) -> bool {
        self.parts.levels.iter().filter(|level| level.measured).count() > 1
    }

    /// Levels with response times, sorted by load, and the unit of the load: users, if their number
    /// differs between levels, or starts per second.
    pub(crate) fn levels_by_load(&self) -> (Said, Vec<(f64, &LevelRow)>) {
        let timed = self.parts.levels.iter().filter(|level| !level.total.latency.is_empty());
        let timed: Vec<&LevelRow> = timed.collect();
        let users = || timed.iter().map(|level| level.users_online);
        let (least, most) = (users().min().unwrap_or(0), users().max().unwrap_or(0));
        let by_users = self.is_long_lived() && most as f64 > USERS_VARY_MIN * least as f64
            || self.levels_have_users();
        let load = |level: &LevelRow| match by_users {
            true => level.users_online as f64,
            false => level.rate_per_s,
        };
        let mut levels: Vec<(f64, &LevelRow)> =
            timed.into_iter().map(|level| (load(level), level)).collect();
        levels.sort_by(|a, b| a.0.total_cmp(&b.0));
        (if by_users { say!("users") } else { say!("starts/s") }, levels)
    }

    /// A change of the load or a phase sets a number of users.
    fn levels_have_users(&self) -> bool {
        let by_change = |level: &LevelRow| {
            level.change.as_deref().is_some_and(|change| change.starts_with("users "))
        };
        let planned: Vec<u64> =
            self.parts.phases.iter().filter_map(|phase| phase.users_planned).collect();
        self.parts.levels.iter().any(by_change) || planned.windows(2).any(|pair| pair[0] != pair[1])
    }
}
