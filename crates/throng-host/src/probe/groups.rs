//! Control groups of the watched processes: their usage, and their limits.

use std::path::{Path, PathBuf};

use super::series::Figures;
use crate::Root;
use crate::facts::{cgroup_directories_in, cores_limit_of, memory_limit_of};
use crate::kernel::{pressures, value};
use crate::quota::Throttled;

const GROUPS_MAX: usize = 16;

/// Reads the groups that these texts of `/proc/PID/cgroup` name.
pub(super) fn read(root: &Root, texts: &[String], figures: &mut Figures) {
    for text in texts.iter().take(GROUPS_MAX) {
        let name = path(text);
        let group = Group { root, labels: [("group", name)] };
        group.cpu(&cgroup_directories_in(text, "cpu"), figures);
        group.accounts(&cgroup_directories_in(text, "cpuacct"), figures);
        group.memory(&cgroup_directories_in(text, "memory"), figures);
        group.processes(&cgroup_directories_in(text, "pids"), figures);
        group.pressure(&cgroup_directories_in(text, "cpu"), figures);
    }
}

/// The name of a group: its path; in version 1, the path of its memory controller.
fn path(text: &str) -> &str {
    let rows = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let of_memory = rows().find(|(names, _)| names.split(',').any(|name| name == "memory"));
    of_memory.or_else(|| rows().find(|(names, _)| names.is_empty())).map_or("/", |row| row.1)
}

struct Group<'a> {
    root: &'a Root,
    labels: [(&'a str, &'a str); 1],
}

impl Group<'_> {
    /// The first existing file of these, for the group itself.
    fn number(&self, directories: &[PathBuf], names: &[&str]) -> Option<u64> {
        let own = own(directories);
        own.into_iter()
            .flat_map(|directory| names.iter().map(|name| directory.join(name)))
            .find_map(|file| self.root.number(file))
    }

    fn text(&self, directories: &[PathBuf], name: &str) -> String {
        let texts = own(directories).into_iter().filter_map(|it| self.root.read(it.join(name)));
        texts.into_iter().next().unwrap_or_default()
    }

    fn cpu(&self, directories: &[PathBuf], figures: &mut Figures) {
        if let Some(cores) = cores_limit_of(self.root, directories) {
            figures.add("throng_cgroup_cpu_limit", &self.labels, cores);
        }
        let text = self.text(directories, "cpu.stat");
        for (word, mode) in [("user_usec", "user"), ("system_usec", "system")] {
            self.cpu_time(mode, value(&text, word).map(|micros| micros as f64 / 1e6), figures);
        }
        if let Some(throttled) = Throttled::parse(&text) {
            let rows = [
                ("throng_cgroup_cpu_periods_total", throttled.periods as f64),
                ("throng_cgroup_cpu_throttled_periods_total", throttled.throttled as f64),
                ("throng_cgroup_cpu_throttled_seconds_total", throttled.time_ns as f64 / 1e9),
            ];
            rows.into_iter().for_each(|(name, value)| figures.add(name, &self.labels, value));
        }
    }

    /// Version 1 counts CPU time in a separate controller.
    fn accounts(&self, directories: &[PathBuf], figures: &mut Figures) {
        for (file, mode) in [("cpuacct.usage_user", "user"), ("cpuacct.usage_sys", "system")] {
            let value = self.number(directories, &[file]);
            self.cpu_time(mode, value.map(|nanos| nanos as f64 / 1e9), figures);
        }
    }

    fn cpu_time(&self, mode: &str, seconds: Option<f64>, figures: &mut Figures) {
        if let Some(seconds) = seconds {
            let labels = [self.labels[0], ("mode", mode)];
            figures.add("throng_cgroup_cpu_seconds_total", &labels, seconds);
        }
    }

    fn memory(&self, directories: &[PathBuf], figures: &mut Figures) {
        let used = self.number(directories, &["memory.current", "memory.usage_in_bytes"]);
        figures.maybe("throng_cgroup_memory_bytes", &self.labels, used);
        let limit = memory_limit_of(self.root, directories);
        figures.maybe("throng_cgroup_memory_limit_bytes", &self.labels, limit);
        let texts = ["memory.events", "memory.oom_control"].map(|it| self.text(directories, it));
        let kills = texts.iter().find_map(|text| value(text, "oom_kill"));
        figures.maybe("throng_cgroup_oom_kills_total", &self.labels, kills);
    }

    fn processes(&self, directories: &[PathBuf], figures: &mut Figures) {
        let number = |name: &str| self.number(directories, &[name]);
        figures.maybe("throng_cgroup_processes", &self.labels, number("pids.current"));
        figures.maybe("throng_cgroup_processes_limit", &self.labels, number("pids.max"));
    }

    fn pressure(&self, directories: &[PathBuf], figures: &mut Figures) {
        for resource in ["cpu", "io", "memory"] {
            let text = self.text(directories, &format!("{resource}.pressure"));
            for row in pressures(&text) {
                let name = match row.kind {
                    "some" => "throng_cgroup_pressure_waiting_seconds_total",
                    _ => "throng_cgroup_pressure_stalled_seconds_total",
                };
                let labels = [self.labels[0], ("resource", resource)];
                figures.add(name, &labels, row.total_us as f64 / 1e6);
            }
        }
    }
}

/// The group itself, in version 1 and 2: directories are listed from it up to the root of each.
fn own(directories: &[PathBuf]) -> Vec<&Path> {
    let is_own = |at: &usize| *at == 0 || !directories[at - 1].starts_with(&directories[*at]);
    (0..directories.len()).filter(is_own).map(|at| directories[at].as_path()).collect()
}
