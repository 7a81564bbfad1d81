//! Readings of the machine, a tool and its target, from `/proc` and from the target's statistics;
//! and from them, what a population costs while users start, stay and leave.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use throng_base::{Clock, Time};

use super::report::{in_bytes, line, spaced};
use super::server::Server;

const GIBIBYTE: f64 = 1024.0 * 1024.0 * 1024.0;

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
    busy: Duration,
    total_bytes: u64,
    pub(super) available_bytes: u64,
    slab_bytes: u64,
    /// TCP sockets in use, as in `/proc/net/sockstat`.
    sockets: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Reading {
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
    counted: Counted,
    pub(super) readings: Vec<Reading>,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(target: &'a Server, counted: Counted) -> Watcher<'a> {
        Watcher { clock: Clock::start(), target, counted, readings: Vec::new() }
    }

    /// Takes a reading of the tool with this process ID, the target and the host.
    pub(super) fn read(&mut self, tool: i32) -> Reading {
        let last = self.readings.last().copied().unwrap_or_default();
        let processes = processes();
        // A target that is too busy to respond is assumed to be unchanged.
        let stats = self.target.stats().unwrap_or_default();
        let count = |place, last| stats.pointer(place).and_then(|it| it.as_u64()).unwrap_or(last);
        let reading = Reading {
            at: self.clock.now() - Time::ZERO,
            tool: usage(&processes, tool),
            target: usage(&processes, self.target.pid()),
            host: host(),
            logged_in: count(self.counted.logged_in, last.logged_in),
            done: count(self.counted.done, last.done),
        };
        self.readings.push(reading);
        reading
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Process {
    parent: i32,
    usage: Usage,
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
    let cpu = ticks(number(11)? + number(12)? + number(13)? + number(14)?);
    let resident_bytes = number(21)? * constant(libc::_SC_PAGESIZE);
    Some(Process { parent: fields.get(1)?.parse().ok()?, usage: Usage { cpu, resident_bytes } })
}

/// The process and all its descendants, now.
pub(super) fn usage_of(root: i32) -> Usage {
    usage(&processes(), root)
}

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
        cpu: sum.cpu + process.usage.cpu,
        resident_bytes: sum.resident_bytes + process.usage.resident_bytes,
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

/// What a population costs.
pub(super) struct Costs<'a> {
    before: &'a Host,
    readings: &'a [Reading],
    users: u64,
    /// The maximum number of logged-in users, as the target counts them, up to the requested
    /// number: the divisor of costs.
    pub(super) came: u64,
    /// The last reading before the first user, the first one with this many users, and the last
    /// one.
    empty: Option<&'a Reading>,
    full: Option<&'a Reading>,
    last: Option<&'a Reading>,
}

type Span<'a> = (&'a Reading, &'a Reading);

fn seconds((from, to): Span<'_>) -> f64 {
    (to.at - from.at).as_secs_f64()
}

fn spent((from, to): Span<'_>, cpu: fn(&Reading) -> Duration) -> f64 {
    cpu(to).saturating_sub(cpu(from)).as_secs_f64()
}

fn tool(reading: &Reading) -> Duration {
    reading.tool.cpu
}

fn target(reading: &Reading) -> Duration {
    reading.target.cpu
}

impl<'a> Costs<'a> {
    pub(super) fn new(before: &'a Host, readings: &'a [Reading], users: u64) -> Costs<'a> {
        let came = readings.iter().map(|it| it.logged_in).max().unwrap_or(0).min(users);
        let is_full = |it: &&Reading| came > 0 && it.logged_in >= came;
        let (full, last) = (readings.iter().find(is_full), readings.iter().rfind(is_full));
        let empty = readings.iter().take_while(|it| it.logged_in == 0).last();
        Costs { before, readings, users, came, empty, full, last }
    }

    /// From the last reading without users to the first with all.
    fn filling(&self) -> Option<Span<'a>> {
        self.empty.zip(self.full)
    }

    pub(super) fn filling_s(&self) -> Option<f64> {
        self.filling().map(seconds)
    }

    /// CPU of the tool per connection, in microseconds: while users come, and since its start.
    pub(super) fn connecting_us(&self) -> Option<[f64; 2]> {
        let each = |seconds: f64| seconds * 1e6 / self.came as f64;
        let since_start = self.full?.tool.cpu.as_secs_f64();
        Some([each(spent(self.filling()?, tool)), each(since_start)])
    }

    /// CPU of the tool between the first and the last reading with all users, in cores.
    pub(super) fn holding_cores(&self) -> Option<f64> {
        let span = self.full.zip(self.last)?;
        Some(spent(span, tool) / seconds(span).max(0.1))
    }

    /// The last reading with all users.
    pub(super) fn last(&self) -> Option<&'a Reading> {
        self.last
    }

    /// The readings between which all users were there and were active: from the last one before
    /// the first event, or from the middle of the time if that was earlier; until the last event.
    fn working(&self) -> Option<Span<'a>> {
        let (full, last) = self.full.zip(self.last)?;
        let held = self.readings.iter().filter(|it| (full.at..=last.at).contains(&it.at));
        let idle = held.clone().rfind(|it| it.done == 0);
        let middle = full.at + (last.at - full.at) / 2;
        let begin = idle.or_else(|| held.clone().find(|it| it.at >= middle))?;
        let end = held.clone().find(|it| it.done == last.done)?;
        (end.at > begin.at && end.done > begin.done).then_some((begin, end))
    }

    /// The rows of a table, with the maximum for some of them.
    pub(super) fn lines(&self, goals: &[(&str, f64)]) -> String {
        let (users, came) = (spaced(self.users), spaced(self.came));
        let all = Some(self.came >= self.users);
        let mut text = line("maximum number of users logged in", &users, Some(came), all);
        for (what, unit, figure) in self.time().into_iter().chain(self.memory()) {
            let most = goals.iter().find(|(name, _)| *name == what).map(|(_, most)| *most);
            let shown = |figure: f64| match unit {
                "B" => in_bytes(figure),
                _ => format!("{figure:.2} {unit}").trim_end().to_string(),
            };
            let goal = most.map_or(String::new(), |most| format!("≤ {}", shown(most)));
            let is_met = most.zip(figure).map(|(most, figure)| figure <= most);
            text += &line(what, &goal, figure.map(shown), is_met);
        }
        text
    }

    fn time(&self) -> [(&'static str, &'static str, Option<f64>); 10] {
        let gone = self.last.and_then(|last| {
            let mut rest = self.readings.iter().filter(|it| it.at > last.at);
            // The last user may have left since the last reading.
            rest.find(|it| it.logged_in == 0).or(self.readings.last())
        });
        let working = self.working();
        let done = |(from, to): Span<'_>| (to.done - from.done) as f64;
        let of_user = |cpu| self.filling().map(|it| spent(it, cpu) * 1e6 / self.came as f64);
        let of_event = |cpu| working.map(|it| spent(it, cpu) * 1e6 / done(it));
        let cores = |cpu| working.map(|it| spent(it, cpu) / seconds(it));
        let others = cores(|it| it.host.busy).zip(cores(tool)).zip(cores(target));
        let others = others.map(|((all, tool), target)| (all - tool - target).max(0.0));
        [
            ("time until all users are online", "s", self.filling_s()),
            ("time until all users have left", "s", self.last.zip(gone).map(seconds)),
            ("CPU per established connection, generator", "µs", of_user(tool)),
            ("CPU per established connection, target", "µs", of_user(target)),
            (
                "events per second with all users online",
                "",
                working.map(|it| done(it) / seconds(it)),
            ),
            ("CPU per event, generator", "µs", of_event(tool)),
            ("CPU per event, target", "µs", of_event(target)),
            ("CPU with all users online, generator", "cores", cores(tool)),
            ("CPU with all users online, target", "cores", cores(target)),
            ("CPU with all users online, other processes", "cores", others),
        ]
    }

    fn memory(&self) -> [(&'static str, &'static str, Option<f64>); 8] {
        let full = self.readings.iter().filter(|it| self.came > 0 && it.logged_in >= self.came);
        let each = |bytes: fn(&Reading) -> u64| {
            full.clone().map(bytes).max().map(|most| most as f64 / self.came as f64)
        };
        let most = |figure: fn(&Reading) -> u64| {
            self.readings.iter().map(figure).max().map(|it| it as f64)
        };
        let gib = |bytes: Option<f64>| bytes.map(|bytes| bytes / GIBIBYTE);
        let free = self.readings.iter().map(|it| it.host.available_bytes).min();
        let free = free.map(|it| it as f64);
        let used = free.map(|free| self.before.total_bytes as f64 - free);
        let more = free.map(|free| self.before.available_bytes as f64 - free);
        [
            ("memory per user, generator", "B", each(|it| it.tool.resident_bytes)),
            ("memory per connection, target", "B", each(|it| it.target.resident_bytes)),
            ("memory per socket, kernel", "B", self.kernel_bytes()),
            ("sockets", "in use", most(|it| it.host.sockets)),
            ("maximum memory of the machine", "GiB", gib(used)),
            ("increase during the run", "GiB", gib(more)),
            ("minimum free memory", "GiB", gib(free)),
            ("maximum kernel slab", "GiB", gib(most(|it| it.host.slab_bytes))),
        ]
    }

    /// The decrease of the machine's free memory that neither process accounts for, per additional
    /// socket.
    fn kernel_bytes(&self) -> Option<f64> {
        let held = self.last?;
        let gone = self.before.available_bytes.checked_sub(held.host.available_bytes)?;
        let kernel = gone.checked_sub(held.tool.resident_bytes + held.target.resident_bytes)?;
        let sockets = held.host.sockets.checked_sub(self.before.sockets)?;
        (sockets > 0).then(|| kernel as f64 / sockets as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line = "7 (a) b) c) S 1 7 7 0 -1 4 1 2 3 4 50 25 20 5 20 0 9 0 100 4096 3 18446744";
        let read = process(line).unwrap();
        assert_eq!((read.parent, read.usage.cpu), (1, ticks(100)));
        assert_eq!(read.usage.resident_bytes, 3 * constant(libc::_SC_PAGESIZE));
        assert_eq!(process("7 (a"), None);
        assert_eq!(busy("cpu  1 2 3 1000 500 4 5 6 0 0\n"), Some(ticks(21)));
        assert_eq!(number_after("sockets: used 9\nTCP: inuse 8 orphan 0", "TCP: inuse"), Some(8));
        assert_eq!(number_after("MemTotal: x", "MemTotal:"), None);
    }

    #[test]
    fn a_family_is_added_up() {
        let process =
            |parent| Process { parent, usage: Usage { cpu: ticks(1), resident_bytes: 10 } };
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

    fn reading(at: u64, logged_in: u64, done: u64) -> Reading {
        let usage = Usage { cpu: Duration::from_millis(at * 10), resident_bytes: 100 * logged_in };
        let host = Host {
            busy: Duration::from_millis(at * 30),
            total_bytes: 1 << 30,
            available_bytes: (1 << 29) - 1000 * logged_in,
            sockets: logged_in * 2,
            slab_bytes: 0,
        };
        let at = Duration::from_secs(at);
        Reading { at, tool: usage, target: usage, host, logged_in, done }
    }

    fn working(readings: &[Reading]) -> Option<(u64, u64)> {
        let before = Host::default();
        let costs = Costs::new(&before, readings, 100);
        costs.working().map(|(from, to)| (from.at.as_secs(), to.at.as_secs()))
    }

    #[test]
    fn costs_above_the_maximum_are_marked() {
        let before = reading(0, 0, 0).host;
        let readings = [
            reading(0, 0, 0),
            reading(4, 100, 0),
            reading(5, 100, 0),
            reading(9, 100, 80),
            reading(12, 0, 80),
        ];
        let costs = Costs::new(&before, &readings, 100);
        let goals =
            [("memory per user, generator", 100.0), ("time until all users are online", 3.0)];
        let text = costs.lines(&goals);
        for line in [
            "| maximum number of users logged in | 100 | 100 | met |",
            "| time until all users are online | ≤ 3.00 s | 4.00 s | **not met** |",
            "| time until all users have left |  | 3.00 s |  |",
            "| CPU per established connection, target |  | 400.00 µs |  |",
            "| events per second with all users online |  | 20.00 |  |",
            "| CPU per event, generator |  | 500.00 µs |  |",
            "| CPU with all users online, other processes |  | 0.01 cores |  |",
            "| memory per user, generator | ≤ 100 B | 100 B | met |",
            "| memory per socket, kernel |  | 400 B |  |",
            "| maximum memory of the machine |  | 0.50 GiB |  |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn work_is_from_the_last_idle_reading_or_from_the_middle() {
        let talk = [reading(0, 0, 0), reading(1, 100, 0), reading(2, 100, 0), reading(3, 100, 5)];
        assert_eq!(working(&talk), Some((2, 3)));
        let beats = [0, 2, 4, 6, 8].map(|at| reading(at, if at > 1 { 100 } else { 60 }, at + 1));
        assert_eq!(working(&beats), Some((6, 8)));
        assert_eq!(working(&[reading(0, 100, 7), reading(1, 100, 7)]), None);
        assert_eq!(working(&[]), None);
    }
}
