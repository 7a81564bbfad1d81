//! Parsers for the texts of `/proc`: pure functions that skip lines they cannot parse.

/// The time columns of `/proc/stat`, in order; later columns are part of `user` and `nice`
/// (proc_stat(5)).
pub(crate) const MODES: [&str; 8] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// `cpu` for all processors, `cpu0` and so on for each, with its ticks by mode.
pub(crate) fn processor_times(text: &str) -> impl Iterator<Item = (&str, [u64; 8])> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next().filter(|name| name.starts_with("cpu"))?;
        let mut ticks = [0; 8];
        for one in &mut ticks {
            *one = words.next()?.parse().ok()?;
        }
        Some((name, ticks))
    })
}

/// The counters of a protocol in `/proc/net/snmp` and `/proc/net/netstat`: pairs of lines with
/// names and values in the same columns. Negative values (`Tcp: MaxConn -1`) are skipped.
pub(crate) fn counters<'a>(
    text: &'a str,
    protocol: &str,
) -> impl Iterator<Item = (&'a str, u64)> + use<'a> {
    let own = |line: &'a str| line.strip_prefix(protocol)?.strip_prefix(':');
    let mut lines = text.lines().filter_map(own);
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.filter_map(|(name, value)| Some((name, value.parse().ok()?)))
}

/// `/proc/net/sockstat`: protocol, name, value.
pub(crate) fn sockets(text: &str) -> impl Iterator<Item = (&str, &str, u64)> {
    text.lines().flat_map(|line| {
        let (protocol, rest) = line.split_once(':').unwrap_or((line, ""));
        let mut words = rest.split_whitespace();
        std::iter::from_fn(move || Some((words.next()?, words.next()?)))
            .filter_map(move |(name, value)| Some((protocol, name, value.parse().ok()?)))
    })
}

/// A line of `/proc/net/softnet_stat`, one per online processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Softnet {
    pub(crate) processed: u64,
    pub(crate) dropped: u64,
    /// How often the processor had packets left when its time slice ended.
    pub(crate) squeezed: u64,
    /// Older kernels do not report it: then the index of the line.
    pub(crate) processor: u64,
}

pub(crate) fn softnet(text: &str) -> impl Iterator<Item = Softnet> {
    text.lines().enumerate().filter_map(|(place, line)| {
        let mut words = line.split_whitespace().map(|word| u64::from_str_radix(word, 16).ok());
        let (processed, dropped) = (words.next()??, words.next()??);
        let squeezed = words.next().flatten().unwrap_or(0);
        let processor = words.nth(9).flatten().unwrap_or(place as u64);
        Some(Softnet { processed, dropped, squeezed, processor })
    })
}

/// A line of `/proc/pressure/*` or of a control group's `*.pressure`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pressure<'a> {
    /// `some` or `full`.
    pub(crate) kind: &'a str,
    pub(crate) percent_10s: f64,
    pub(crate) total_us: u64,
}

pub(crate) fn pressures(text: &str) -> impl Iterator<Item = Pressure<'_>> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let kind = words.next().filter(|kind| ["some", "full"].contains(kind))?;
        let value = |name: &str| words.clone().find_map(|word| word.strip_prefix(name));
        let percent_10s = value("avg10=")?.parse().ok().filter(|it: &f64| it.is_finite())?;
        Some(Pressure { kind, percent_10s, total_us: value("total=")?.parse().ok()? })
    })
}

/// `name 123` lines: `/proc/vmstat`, `cpu.stat`, `memory.events`.
pub(crate) fn named(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name, value.trim().parse().ok()?))
    })
}

/// The value of one of these lines.
pub(crate) fn value(text: &str, name: &str) -> Option<u64> {
    named(text).find(|(it, _)| *it == name).map(|(_, value)| value)
}

/// The line of the limit of open files.
pub(crate) const OPEN_FILES: &str = "Max open files";

/// The soft and hard limit in a line of `/proc/PID/limits`; [`u64::MAX`] means no limit.
pub(crate) fn limits(text: &str, name: &str) -> Option<[u64; 2]> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let value = |word: &str| if word == "unlimited" { Some(u64::MAX) } else { word.parse().ok() };
    let mut words = line.split_whitespace().map(value);
    Some([words.next()??, words.next()??])
}

/// An interface in `/proc/net/dev`: received and sent bytes, packets, errors and drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface<'a> {
    pub(crate) name: &'a str,
    pub(crate) received: [u64; 4],
    pub(crate) sent: [u64; 4],
}

pub(crate) fn interfaces(text: &str) -> impl Iterator<Item = Interface<'_>> {
    text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        let mut numbers = [0; 16];
        let mut words = rest.split_whitespace();
        for number in &mut numbers {
            *number = words.next()?.parse().ok()?;
        }
        let four = |first: usize| [0, 1, 2, 3].map(|at| numbers[first + at]);
        Some(Interface { name: name.trim(), received: four(0), sent: four(8) })
    })
}

/// A line of `/proc/diskstats` (the kernel's `admin-guide/iostats.rst`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disk<'a> {
    pub(crate) name: &'a str,
    pub(crate) reads: u64,
    pub(crate) read_sectors: u64,
    pub(crate) writes: u64,
    pub(crate) written_sectors: u64,
    /// Time with at least one operation in progress.
    pub(crate) busy_ms: u64,
    /// The total time of all operations in progress.
    pub(crate) weighted_ms: u64,
}

pub(crate) fn disks(text: &str) -> impl Iterator<Item = Disk<'_>> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(2);
        let name = words.next()?;
        let mut numbers = [0u64; 11];
        for number in &mut numbers {
            *number = words.next()?.parse().ok()?;
        }
        let [reads, _, read_sectors, _, writes, _, written_sectors, _, _, busy_ms, weighted_ms] =
            numbers;
        Some(Disk { name, reads, read_sectors, writes, written_sectors, busy_ms, weighted_ms })
    })
}

/// A table of hexadecimal columns with a row per processor, such as `/proc/net/stat/nf_conntrack`:
/// the sum of one column.
pub(crate) fn column_sum(text: &str, column: &str) -> Option<u64> {
    let mut lines = text.lines();
    let place = lines.next()?.split_whitespace().position(|name| name == column)?;
    let value = |line: &str| u64::from_str_radix(line.split_whitespace().nth(place)?, 16).ok();
    lines.map(value).try_fold(0u64, |sum, value| Some(sum.saturating_add(value?)))
}

/// The values of `/proc/PID/stat` (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessStat<'a> {
    /// The name of its program, at most 15 bytes.
    pub(crate) name: &'a str,
    pub(crate) is_zombie: bool,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    pub(crate) threads: u64,
    /// Ticks between the start of the host and its start.
    pub(crate) started_ticks: u64,
    pub(crate) resident_pages: u64,
}

pub(crate) fn process(text: &str) -> Option<ProcessStat<'_>> {
    // The name may contain anything, including parentheses: it ends at the last one.
    let (head, rest) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // Field 3 is the first after the name.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(ProcessStat {
        name,
        is_zombie: ["Z", "X"].contains(fields.first()?),
        user_ticks: number(14)?,
        system_ticks: number(15)?,
        threads: number(20)?,
        started_ticks: number(22)?,
        resident_pages: number(24)?,
    })
}

#[cfg(test)]
mod tests;
