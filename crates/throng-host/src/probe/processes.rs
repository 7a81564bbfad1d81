//! Processes that are watched by program name or by number. Their command lines and environments
//! are not read.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use throng_base::Said;

use super::series::Figures;
use crate::Root;
use crate::kernel::{OPEN_FILES, ProcessStat, limits, process, value};
use crate::system::{page_bytes, ticks_per_second};

/// Bytes of a program's name that the kernel keeps (proc(5), `comm`).
const NAME_BYTES_MAX: usize = 15;
/// The maximum number of processes with one name.
const PROCESSES_MAX: usize = 1_000;
/// The number of readings between searches for new processes, unless a known one has ended.
const LOOK_EVERY: u32 = 5;

/// The processes to watch: `nginx`, `1234`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    Name(String),
    Number(u32),
}

impl FromStr for Wanted {
    type Err = Said;

    fn from_str(text: &str) -> Result<Wanted, Said> {
        if text.is_empty() || text.contains(['/', '\0']) || text.contains(char::is_control) {
            return Err(say!(
                "`{text}` is not a process name or process ID: write `nginx` or `1234`"
            ));
        }
        match text.parse() {
            Ok(number) => Ok(Wanted::Number(number)),
            Err(_) => Ok(Wanted::Name(text.to_string())),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Name(name) => f.write_str(name),
            Wanted::Number(number) => write!(f, "{number}"),
        }
    }
}

/// Reads them, and counts starts and ends.
#[derive(Debug)]
pub(super) struct Processes {
    root: Root,
    all: Vec<Watched>,
    readings: u32,
}

/// All processes with one name.
#[derive(Debug)]
struct Watched {
    wanted: Wanted,
    /// By their number.
    known: HashMap<u32, Known>,
    /// In ticks, including ended processes: it never decreases.
    user_ticks: u64,
    system_ticks: u64,
    started: u64,
    ended: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    started_ticks: u64,
    user_ticks: u64,
    system_ticks: u64,
    threads: u64,
    resident_pages: u64,
}

/// Open descriptors of a process, and their limit.
#[derive(Clone, Copy, Debug)]
struct Descriptors {
    open: u64,
    limit: u64,
}

impl Processes {
    pub(super) fn new(root: Root, wanted: Vec<Wanted>) -> Processes {
        let watched = |wanted| Watched {
            wanted,
            known: HashMap::new(),
            user_ticks: 0,
            system_ticks: 0,
            started: 0,
            ended: 0,
        };
        Processes { root, all: wanted.into_iter().map(watched).collect(), readings: 0 }
    }

    pub(super) fn read(&mut self, figures: &mut Figures) {
        let is_first = self.readings == 0;
        let mut looks = self.readings.is_multiple_of(LOOK_EVERY);
        self.readings = self.readings.wrapping_add(1);
        for watched in &mut self.all {
            looks |= watched.renew(&self.root);
        }
        if looks && !self.all.is_empty() {
            self.look_for_new(is_first);
        }
        let stat = self.root.read("proc/stat").unwrap_or_default();
        let boot = value(&stat, "btime").unwrap_or(0);
        for watched in &self.all {
            watched.tell(&self.root, boot as f64, figures);
        }
    }

    /// The texts of their `cgroup`, or that of this process if none is watched.
    pub(super) fn groups(&self) -> Vec<String> {
        let first = |watched: &Watched| watched.known.keys().min().copied();
        let mut numbers: Vec<String> =
            self.all.iter().filter_map(first).map(|number| number.to_string()).collect();
        if self.all.is_empty() {
            numbers.push("self".to_string());
        }
        let text = |number: &String| self.root.read(format!("proc/{number}/cgroup"));
        let mut texts: Vec<String> = numbers.iter().filter_map(text).collect();
        texts.sort();
        texts.dedup();
        texts
    }

    fn look_for_new(&mut self, is_first: bool) {
        let Ok(entries) = std::fs::read_dir(self.root.path("proc")) else { return };
        let numbers = entries.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok());
        for number in numbers {
            let number: u32 = number;
            if self.all.iter().any(|watched| watched.known.contains_key(&number)) {
                continue;
            }
            let Some(text) = self.root.read(format!("proc/{number}/stat")) else { continue };
            let Some(stat) = process(&text).filter(|stat| !stat.is_zombie) else { continue };
            let is_it = |watched: &&mut Watched| watched.is_wanted(number, stat.name);
            for watched in self.all.iter_mut().filter(is_it) {
                watched.add(number, stat, is_first);
            }
        }
    }
}

impl Watched {
    fn is_wanted(&self, number: u32, name: &str) -> bool {
        let is_it = match &self.wanted {
            Wanted::Number(wanted) => *wanted == number,
            // The kernel truncates a longer name, possibly within a character.
            Wanted::Name(wanted) if wanted.len() > NAME_BYTES_MAX => {
                name.len() + 4 > NAME_BYTES_MAX
                    && wanted.starts_with(name.trim_end_matches('\u{fffd}'))
            }
            Wanted::Name(wanted) => wanted == name,
        };
        is_it && self.known.len() < PROCESSES_MAX
    }

    fn add(&mut self, number: u32, stat: ProcessStat<'_>, is_first: bool) {
        self.started += u64::from(!is_first);
        self.known.insert(number, Known { started_ticks: stat.started_ticks, ..Known::default() });
        self.take(number, stat);
    }

    /// Reads the known processes again; returns whether one of them has ended.
    fn renew(&mut self, root: &Root) -> bool {
        let before = self.ended;
        for number in self.known.keys().copied().collect::<Vec<_>>() {
            let text = root.read(format!("proc/{number}/stat")).unwrap_or_default();
            let started = self.known.get(&number).map(|known| known.started_ticks);
            // Another process may have reused its number.
            let is_same = |stat: &ProcessStat<'_>| Some(stat.started_ticks) == started;
            match process(&text).filter(|stat| !stat.is_zombie && is_same(stat)) {
                Some(stat) => self.take(number, stat),
                None => {
                    self.known.remove(&number);
                    self.ended += 1;
                }
            }
        }
        self.ended > before
    }

    fn take(&mut self, number: u32, stat: ProcessStat<'_>) {
        let Some(known) = self.known.get_mut(&number) else { return };
        self.user_ticks += stat.user_ticks.saturating_sub(known.user_ticks);
        self.system_ticks += stat.system_ticks.saturating_sub(known.system_ticks);
        *known = Known {
            started_ticks: known.started_ticks,
            user_ticks: stat.user_ticks.max(known.user_ticks),
            system_ticks: stat.system_ticks.max(known.system_ticks),
            threads: stat.threads,
            resident_pages: stat.resident_pages,
        };
    }

    fn tell(&self, root: &Root, boot: f64, figures: &mut Figures) {
        let name = self.wanted.to_string();
        let labels = [("name", name.as_str())];
        let all = || self.known.values();
        figures.add("throng_processes", &labels, self.known.len() as f64);
        figures.add("throng_process_started_total", &labels, self.started as f64);
        figures.add("throng_process_ended_total", &labels, self.ended as f64);
        let a_second = ticks_per_second();
        for (mode, ticks) in [("user", self.user_ticks), ("system", self.system_ticks)] {
            let labels = [("name", name.as_str()), ("mode", mode)];
            figures.add("throng_process_cpu_seconds_total", &labels, ticks as f64 / a_second);
        }
        let pages: u64 = all().map(|known| known.resident_pages).sum();
        let bytes = pages.saturating_mul(page_bytes()) as f64;
        figures.add("throng_process_resident_bytes", &labels, bytes);
        let threads: u64 = all().map(|known| known.threads).sum();
        figures.add("throng_process_threads", &labels, threads as f64);
        let starts = || all().map(|known| known.started_ticks);
        for (which, ticks) in [("oldest", starts().min()), ("newest", starts().max())] {
            if let Some(ticks) = ticks {
                let name = format!("throng_process_{which}_start_seconds");
                figures.add(&name, &labels, boot + ticks as f64 / a_second);
            }
        }
        let descriptors = self.known.keys().filter_map(|number| descriptors(root, *number));
        let share = |it: &Descriptors| it.open as f64 / it.limit.max(1) as f64;
        let nearest = descriptors.max_by(|one, other| share(one).total_cmp(&share(other)));
        if let Some(nearest) = nearest {
            figures.add("throng_process_descriptors", &labels, nearest.open as f64);
            figures.add("throng_process_descriptors_limit", &labels, nearest.limit as f64);
        }
    }
}

/// The size of the directory is the number of descriptors since Linux 6.2; before, it is 0 and they
/// are counted, which requires the owner of the process or root.
fn descriptors(root: &Root, number: u32) -> Option<Descriptors> {
    let [limit, _] = limits(&root.read(format!("proc/{number}/limits"))?, OPEN_FILES)?;
    let directory = root.path(format!("proc/{number}/fd"));
    let size = std::fs::metadata(&directory).ok()?.len();
    let open = match size {
        0 => std::fs::read_dir(directory).ok()?.count() as u64,
        size => size,
    };
    Some(Descriptors { open, limit })
}
