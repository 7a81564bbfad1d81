//! The threads of this process: the time that each ran, and the time that it waited for a
//! processor. They are read every second, so the list is kept and refreshed only when their number
//! changes: one small file per thread and second.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use crate::Root;
use crate::kernel::process;

/// The maximum size of a thread's file.
const FILE_BYTES_MAX: usize = 1024;
/// The maximum number of threads that are read: a run has at most 1,024 shards.
const THREADS_MAX: usize = 4096;
/// The engine's name of threads with users: `shard-0`, `shard-1`, …
const SHARD: &str = "shard-";
/// The unit of `/proc/*/stat` on every Linux (`USER_HZ` is 100).
const TICK_NS: u64 = 10_000_000;

/// What the threads did since the last reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadTimes {
    /// The CPU time of the busiest shard since it was last requested.
    pub(crate) shard_cpu_max_ns: u64,
    /// The total time that threads were runnable without a processor.
    pub(crate) run_queue_ns: u64,
}

/// All threads of this process.
#[derive(Debug)]
pub(crate) struct Threads {
    root: Root,
    known: Vec<Thread>,
    /// Reused by every reading.
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Thread {
    id: u64,
    is_shard: bool,
    schedstat: PathBuf,
    stat: PathBuf,
    before: Times,
}

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    cpu_ns: u64,
    waited_ns: u64,
}

impl Threads {
    /// Starts measuring: existing threads count from now on.
    pub(crate) fn new(root: Root) -> Threads {
        let mut threads = Threads { root, known: Vec::new(), buffer: Vec::new() };
        threads.list();
        for thread in &mut threads.known {
            thread.before = thread.read(&mut threads.buffer).unwrap_or_default();
        }
        threads
    }

    /// The times since the last call. `count` is the current number of threads; the busiest shard
    /// is determined only if enough time has passed.
    pub(crate) fn since_last(&mut self, count: u64, is_long_enough: bool) -> ThreadTimes {
        if count != self.known.len() as u64 {
            self.list();
        }
        let mut times = ThreadTimes::default();
        for thread in &mut self.known {
            // A thread that ended has no new times; the list is refreshed when the number changes.
            let Some(now) = thread.read(&mut self.buffer) else { continue };
            let waited_before = std::mem::replace(&mut thread.before.waited_ns, now.waited_ns);
            let waited = now.waited_ns.saturating_sub(waited_before);
            times.run_queue_ns = times.run_queue_ns.saturating_add(waited);
            if thread.is_shard && is_long_enough {
                let used_before = std::mem::replace(&mut thread.before.cpu_ns, now.cpu_ns);
                let used = now.cpu_ns.saturating_sub(used_before);
                times.shard_cpu_max_ns = times.shard_cpu_max_ns.max(used);
            }
        }
        times
    }

    /// Refreshes the list, and keeps the values of remaining threads.
    fn list(&mut self) {
        let Ok(entries) = std::fs::read_dir(self.root.path("proc/self/task")) else {
            self.known.clear();
            return;
        };
        let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut ids: Vec<u64> = ids.take(THREADS_MAX).collect();
        ids.sort_unstable();
        let mut before = std::mem::take(&mut self.known);
        self.known = ids
            .into_iter()
            .map(|id| match before.iter().position(|thread| thread.id == id) {
                Some(index) => before.swap_remove(index),
                None => Thread::new(&self.root, id),
            })
            .collect();
    }
}

impl Thread {
    fn new(root: &Root, id: u64) -> Thread {
        let directory = PathBuf::from(format!("proc/self/task/{id}"));
        let name = root.line(directory.join("comm")).unwrap_or_default();
        Thread {
            id,
            is_shard: name.starts_with(SHARD),
            schedstat: root.path(directory.join("schedstat")),
            stat: root.path(directory.join("stat")),
            before: Times::default(),
        }
    }

    fn read(&self, buffer: &mut Vec<u8>) -> Option<Times> {
        // Kernels without CONFIG_SCHED_INFO count the time in ticks, and do not count waiting.
        text(&self.schedstat, buffer)
            .and_then(schedstat)
            .or_else(|| text(&self.stat, buffer).and_then(stat))
    }
}

/// The text of a small file, in the buffer.
fn text<'a>(path: &PathBuf, buffer: &'a mut Vec<u8>) -> Option<&'a str> {
    buffer.resize(FILE_BYTES_MAX, 0);
    let length = File::open(path).ok()?.read(buffer).ok()?;
    std::str::from_utf8(&buffer[..length]).ok()
}

/// `<time on a processor, ns> <time waiting for one, ns> <number of runs>`, see the kernel's
/// Documentation/scheduler/sched-stats.rst.
fn schedstat(text: &str) -> Option<Times> {
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
    Some(Times { cpu_ns: numbers.next()??, waited_ns: numbers.next()?? })
}

/// The times of `/proc/*/stat`.
fn stat(text: &str) -> Option<Times> {
    let stat = process(text)?;
    let ticks = stat.user_ticks.saturating_add(stat.system_ticks);
    Some(Times { cpu_ns: ticks.saturating_mul(TICK_NS), waited_ns: 0 })
}
