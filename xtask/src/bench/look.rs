//! Readings of the machine, a tool and its target, from `/proc` and from the target's statistics.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use throng_base::{Clock, Time};

use crate::bench::server::{self, Server};

/// A process with all its descendants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usage {
    /// User and system time.
    pub(super) cpu: Duration,
    pub(super) resident_bytes: u64,
}

/// The whole computer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Host {
    /// The busy time of all processors.
    pub(super) busy: Duration,
    pub(super) total_bytes: u64,
    pub(super) available_bytes: u64,
    pub(super) slab_bytes: u64,
    /// TCP sockets in use, as in `/proc/net/sockstat`.
    pub(super) sockets: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Look {
    /// Since the first reading.
    pub(super) at: Duration,
    pub(super) tool: Usage,
    pub(super) target: Usage,
    pub(super) host: Host,
    /// As the target counts them.
    pub(super) logged_in: u64,
    /// What the target has served so far, of the kind that the bench measures.
    pub(super) done: u64,
}

/// Where the target's statistics contain the values of a reading.
#[derive(Clone, Copy)]
pub(super) struct Counted {
    pub(super) logged_in: &'static str,
    pub(super) done: &'static str,
}

/// For `throng target im`.
pub(super) const MESSENGER: Counted = Counted { logged_in: "/logged_in", done: "/heartbeats" };

/// Takes readings repeatedly, and keeps them.
pub(super) struct Watcher<'a> {
    clock: Clock,
    target: &'a Server,
    admin_port: u16,
    counted: Counted,
    pub(super) looks: Vec<Look>,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(target: &'a Server, admin_port: u16, counted: Counted) -> Watcher<'a> {
        Watcher { clock: Clock::start(), target, admin_port, counted, looks: Vec::new() }
    }

    /// Takes a reading of the tool with this process ID, the target and the host.
    pub(super) fn look(&mut self, tool: i32) -> Look {
        let last = self.looks.last().copied().unwrap_or_default();
        let processes = processes();
        // A target that is too busy to respond is assumed to be unchanged.
        let stats = server::stats(self.admin_port).unwrap_or_default();
        let count = |name: &str, last| stats.pointer(name).and_then(Value::as_u64).unwrap_or(last);
        let look = Look {
            at: self.clock.now() - Time::ZERO,
            tool: usage(&processes, tool),
            target: usage(&processes, self.target.pid()),
            host: host(),
            logged_in: count(self.counted.logged_in, last.logged_in),
            done: count(self.counted.done, last.done),
        };
        self.looks.push(look);
        look
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Process {
    parent: i32,
    cpu: Duration,
    resident_bytes: u64,
}

fn processes() -> HashMap<i32, Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter_map(|id| Some((id, process(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?)))
        .collect()
}

/// The values of a line of `/proc/PID/stat`, proc(5). The name in parentheses may contain anything.
fn process(stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    // Its own time, and that of children that were waited for.
    let spent = number(11)? + number(12)? + number(13)? + number(14)?;
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        cpu: ticks(spent),
        resident_bytes: number(21)? * constant(libc::_SC_PAGESIZE),
    })
}

/// These processes and all their descendants.
pub(super) fn usage_of(roots: &[i32]) -> Usage {
    let processes = processes();
    roots.iter().map(|root| usage(&processes, *root)).fold(Usage::default(), |sum, one| Usage {
        cpu: sum.cpu + one.cpu,
        resident_bytes: sum.resident_bytes + one.resident_bytes,
    })
}

/// The process and all its descendants.
fn usage(processes: &HashMap<i32, Process>, root: i32) -> Usage {
    let descends = |mut id: i32| {
        // The process tree is at most as deep as the number of processes.
        for _ in 0..processes.len() {
            match processes.get(&id) {
                _ if id == root => return true,
                Some(process) => id = process.parent,
                None => return false,
            }
        }
        false
    };
    let family = processes.iter().filter(|(id, _)| descends(**id));
    family.fold(Usage::default(), |sum, (_, process)| Usage {
        cpu: sum.cpu + process.cpu,
        resident_bytes: sum.resident_bytes + process.resident_bytes,
    })
}

pub(super) fn host() -> Host {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let memory = read("/proc/meminfo");
    let of_memory = |name: &str| number_after(&memory, name).unwrap_or(0) * 1024;
    Host {
        busy: busy(&read("/proc/stat")).unwrap_or_default(),
        total_bytes: of_memory("MemTotal:"),
        available_bytes: of_memory("MemAvailable:"),
        slab_bytes: of_memory("Slab:"),
        sockets: number_after(&read("/proc/net/sockstat"), "TCP: inuse").unwrap_or(0),
    }
}

/// The sum of the first line of `/proc/stat`, without idle time and without guest time, which is
/// counted twice.
fn busy(stat: &str) -> Option<Duration> {
    let numbers = stat.lines().next()?.strip_prefix("cpu ")?;
    let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let (user, rest) = numbers.split_at_checked(3)?;
    let more = rest.get(2..5)?;
    Some(ticks(user.iter().sum::<u64>() + more.iter().sum::<u64>()))
}

fn number_after(text: &str, label: &str) -> Option<u64> {
    text.split_once(label)?.1.split_whitespace().next()?.parse().ok()
}

fn ticks(count: u64) -> Duration {
    Duration::from_nanos(count.saturating_mul(1_000_000_000 / constant(libc::_SC_CLK_TCK)))
}

fn constant(name: libc::c_int) -> u64 {
    // SAFETY: sysconf reads a number and has no other effect.
    let value = unsafe { libc::sysconf(name) };
    u64::try_from(value).unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line = "7 (a) b) c) S 1 7 7 0 -1 4 1 2 3 4 50 25 20 5 20 0 9 0 100 4096 3 18446744";
        let read = process(line).unwrap();
        assert_eq!((read.parent, read.cpu), (1, ticks(100)));
        assert_eq!(read.resident_bytes, 3 * constant(libc::_SC_PAGESIZE));
        assert_eq!(process("7 (a"), None);
        assert_eq!(busy("cpu  1 2 3 1000 500 4 5 6 0 0\n"), Some(ticks(21)));
        assert_eq!(number_after("sockets: used 9\nTCP: inuse 8 orphan 0", "TCP: inuse"), Some(8));
        assert_eq!(number_after("MemTotal: x", "MemTotal:"), None);
    }

    #[test]
    fn a_family_is_added_up() {
        let process = |parent| Process { parent, cpu: ticks(1), resident_bytes: 10 };
        // 5 and 6 are each other's parents, which a kernel would never report.
        let tree = [(2, 1), (3, 2), (4, 3), (5, 6), (6, 5), (1, 0)];
        let processes = tree.into_iter().map(|(id, parent)| (id, process(parent))).collect();
        assert_eq!(usage(&processes, 2), Usage { cpu: ticks(3), resident_bytes: 30 });
        assert_eq!(usage(&processes, 9), Usage::default());
    }

    #[test]
    fn this_process_is_seen() {
        let me = usage(&processes(), std::process::id().cast_signed());
        assert!(me.resident_bytes > 0);
        let host = host();
        assert!(host.busy > Duration::ZERO && host.available_bytes < host.total_bytes);
    }
}
