//! The limits of the generator: those set by flags (`--max-cpu`, `--max-memory`, `--max-bandwidth`,
//! `--max-packets`) and the memory that the host needs. Without I/O: a reading goes in, an action
//! comes out.
//!
//! At a limit, growth is paused: no users start until the generator is below it again. If that
//! takes too long, growth ends, because users that stay do not free memory.

use std::time::Duration;

use throng_base::units::{format_bytes, format_count};
use throng_base::{Said, Time};
use throng_host::{MemoryBound, MemoryLeft, Throughput};
use throng_program::{Drive, Load};

use crate::HostLimits;
use crate::post::polite::Others;

/// Growth resumes when usage has been below this share of the limit for [`RELEASE_AFTER`].
const RELEASE_SHARE: f64 = 0.9;
const RELEASE_AFTER: Duration = Duration::from_secs(3);
/// How long usage may stay at a limit before growth ends. Low memory on the host is urgent.
const HOST_MEMORY_PATIENCE: Duration = Duration::from_secs(5);
const MEMORY_PATIENCE: Duration = Duration::from_secs(30);
/// A busy host or network may recover, but the run must end.
const BUSY_PATIENCE: Duration = Duration::from_secs(300);

/// All users together may keep 1/2 of the available memory for bodies, messages and unsent bytes.
/// The rest is for the users themselves and for sockets.
const KEPT_PART: u64 = 2;
/// Minimum, even if memory is scarce: enough for one large response.
const KEPT_BYTES_MIN: u64 = 16 << 20;

/// The memory limit for the data that users keep: a share of `--max-memory` and of the memory
/// available at the start. `None` if both are unknown.
pub(crate) fn kept_bytes_max(told: &HostLimits, room: Option<u64>) -> Option<u64> {
    let most = told.max_memory.into_iter().chain(room).min()?;
    Some((most / KEPT_PART).max(KEPT_BYTES_MIN))
}

/// Readings once a second. While users are added, memory is read more often.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// Share of the processors that this process may use, 0 to 1; absent if too little time has
    /// passed since the last reading.
    pub(crate) cpu_share: Option<f64>,
    /// CPU usage of the whole host by all programs.
    pub(crate) host_cpu: Option<f64>,
    /// Resident memory, and kernel memory for connections.
    pub(crate) memory_bytes: u64,
    pub(crate) memory_left: Option<MemoryLeft>,
    /// Throughput of the host by all programs.
    pub(crate) throughput: Option<Throughput>,
    /// Users are still to be added.
    pub(crate) is_growing: bool,
    pub(crate) others: Others,
}

/// What the run must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Pause growth.
    Hold(Reason),
    /// Resume growth.
    Release,
    /// End growth for this run.
    GiveUp(Reason),
    /// Report the limit although there is no growth to pause.
    Tell(Reason),
}

/// A limit, and the usage above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) limit: Limit,
    pub(crate) detail: Said,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The memory that the host or the control group needs itself.
    HostMemory,
    Memory,
    Cpu,
    Bandwidth,
    Packets,
}

/// Most urgent first.
const LIMITS: [Limit; 5] =
    [Limit::HostMemory, Limit::Memory, Limit::Cpu, Limit::Bandwidth, Limit::Packets];

impl Limit {
    /// The word in the run directory.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Limit::HostMemory => "host-memory",
            Limit::Memory => "memory",
            Limit::Cpu => "cpu",
            Limit::Bandwidth => "bandwidth",
            Limit::Packets => "packets",
        }
    }

    /// A rate over time: without a new reading, the previous one applies.
    fn is_per_time(self) -> bool {
        matches!(self, Limit::Cpu | Limit::Bandwidth | Limit::Packets)
    }

    fn patience(self) -> Duration {
        match self {
            Limit::HostMemory => HOST_MEMORY_PATIENCE,
            Limit::Memory => MEMORY_PATIENCE,
            Limit::Cpu | Limit::Bandwidth | Limit::Packets => BUSY_PATIENCE,
        }
    }
}

/// Usage relative to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Below,
    /// Below the limit, but not far enough to resume.
    Near,
    At,
}

/// Enforces the limits of one run.
#[derive(Debug)]
pub(crate) struct Limits {
    cpu_share_max: Option<f64>,
    memory_bytes_max: Option<u64>,
    bits_per_s_max: Option<f64>,
    packets_per_s_max: Option<f64>,
    state: State,
    /// The level of each limit, in the order of [`LIMITS`].
    levels: [Level; LIMITS.len()],
    /// Since when each limit has been reached.
    since: [Option<Time>; LIMITS.len()],
    /// Since when all usage has been well below the limits.
    well_since: Option<Time>,
    /// The last readings of memory whose exhaustion kills the process, oldest first.
    trend: Vec<(Time, u64)>,
    told: bool,
}

/// Number of readings in a trend, so that one delayed reading has no effect.
const TREND_LOOKS: usize = 4;
/// Users may use memory for this time before the next reading can pause growth.
const TREND_AHEAD: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Held { since: Time },
    GivenUp,
}

impl Limits {
    pub(crate) fn new(told: &HostLimits) -> Limits {
        Limits {
            cpu_share_max: told.max_cpu,
            memory_bytes_max: told.max_memory,
            bits_per_s_max: told.max_bandwidth,
            packets_per_s_max: told.max_packets,
            state: State::Free,
            levels: [Level::Below; LIMITS.len()],
            since: [None; LIMITS.len()],
            well_since: None,
            trend: Vec::with_capacity(TREND_LOOKS),
            told: false,
        }
    }

    /// Whether growth is paused.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.state, State::Held { .. })
    }

    pub(crate) fn see(&mut self, seen: &Seen, now: Time) -> Option<Deed> {
        if self.state == State::GivenUp {
            return None;
        }
        let seen = &self.ahead(seen, now);
        let is_old = |limit: Limit| limit.is_per_time() && seen.cpu_share.is_none();
        let levels = std::array::from_fn(|nth| match is_old(LIMITS[nth]) {
            true => self.levels[nth],
            false => self.level(LIMITS[nth], seen),
        });
        self.levels = levels;
        let is_held = self.is_held();
        for (level, since) in levels.iter().zip(&mut self.since) {
            match level {
                Level::Below => *since = None,
                // Paused growth resumes only well below the limit; near it counts as reached.
                Level::Near if !is_held => {}
                Level::Near | Level::At => drop(since.get_or_insert(now)),
            }
        }
        match levels.iter().all(|level| *level == Level::Below) {
            true => drop(self.well_since.get_or_insert(now)),
            false => self.well_since = None,
        }
        match self.state {
            State::Held { since } => self.end_hold(since, seen, now),
            _ => self.hold_if_needed(&levels, seen, now),
        }
    }

    /// The readings minus the memory that users will take in the next second, if its exhaustion
    /// kills the process: the next reading would be too late.
    fn ahead(&mut self, seen: &Seen, now: Time) -> Seen {
        let Some(left) = seen.memory_left.filter(|left| left.bound != MemoryBound::Host) else {
            self.trend.clear();
            return *seen;
        };
        if self.trend.len() == TREND_LOOKS {
            self.trend.remove(0);
        }
        self.trend.push((now, left.available_bytes));
        let full = self.trend.len() == TREND_LOOKS && seen.is_growing;
        // The smallest decrease between two readings.
        let rate = |pair: &[(Time, u64)]| {
            let [(then, before), (at, after)] = pair else { return 0.0 };
            let seconds = at.since(*then).as_secs_f64().max(0.001);
            before.saturating_sub(*after) as f64 / seconds
        };
        let rate = self.trend.windows(2).map(rate).min_by(f64::total_cmp).filter(|_| full);
        let taken = (rate.unwrap_or(0.0) * TREND_AHEAD.as_secs_f64()) as u64;
        let available_bytes = left.available_bytes.saturating_sub(taken);
        Seen { memory_left: Some(MemoryLeft { available_bytes, ..left }), ..*seen }
    }

    fn hold_if_needed(&mut self, levels: &[Level], seen: &Seen, now: Time) -> Option<Deed> {
        let index = levels.iter().position(|level| *level == Level::At)?;
        let reason = self.reason(LIMITS[index], seen)?;
        if seen.is_growing {
            self.state = State::Held { since: now };
            return Some(Deed::Hold(reason));
        }
        // Without growth, low memory on the host is not caused by this run.
        let is_news = reason.limit != Limit::HostMemory && !std::mem::replace(&mut self.told, true);
        is_news.then_some(Deed::Tell(reason))
    }

    fn end_hold(&mut self, held: Time, seen: &Seen, now: Time) -> Option<Deed> {
        if self.well_since.is_some_and(|since| now.since(since) >= RELEASE_AFTER) {
            self.state = State::Free;
            return Some(Deed::Release);
        }
        // Time before growth was paused does not count.
        let is_over = |index: &usize| {
            let lasts = self.since[*index].map(|since| now.since(since.max(held)));
            lasts.is_some_and(|lasts| lasts >= LIMITS[*index].patience())
        };
        let index = (0..LIMITS.len()).find(is_over).filter(|_| seen.is_growing)?;
        let reason = self.reason(LIMITS[index], seen)?;
        self.state = State::GivenUp;
        Some(Deed::GiveUp(reason))
    }

    fn level(&self, limit: Limit, seen: &Seen) -> Level {
        match self.part(limit, seen) {
            Some(part) if part >= 1.0 => Level::At,
            Some(part) if part >= RELEASE_SHARE => Level::Near,
            _ => Level::Below,
        }
    }

    /// Usage as a share of its limit; absent without a limit or a reading.
    fn part(&self, limit: Limit, seen: &Seen) -> Option<f64> {
        match limit {
            Limit::HostMemory => {
                let left = seen.memory_left?;
                Some(left.floor_bytes as f64 / left.available_bytes.max(1) as f64)
            }
            Limit::Memory => Some(seen.memory_bytes as f64 / self.memory_bytes_max?.max(1) as f64),
            Limit::Cpu => {
                let share = seen.cpu_share?.max(seen.host_cpu.unwrap_or(0.0));
                Some(share / self.cpu_share_max?)
            }
            Limit::Bandwidth => Some(seen.throughput?.bits_per_s / self.bits_per_s_max?),
            Limit::Packets => Some(seen.throughput?.packets_per_s / self.packets_per_s_max?),
        }
    }

    /// The limit and the usage, as text.
    fn reason(&self, limit: Limit, seen: &Seen) -> Option<Reason> {
        let detail = match limit {
            Limit::HostMemory => {
                let left = seen.memory_left?;
                let available = format_bytes(left.available_bytes as f64);
                let floor = format_bytes(left.floor_bytes as f64);
                match left.bound {
                    MemoryBound::Group => say!(
                        "throng's control group has {available} of memory left; {floor} must \
                         stay free"
                    ),
                    MemoryBound::AddressSpace => say!(
                        "throng's address space (`ulimit -v`) has {available} left; {floor} must \
                         stay free"
                    ),
                    MemoryBound::Host => {
                        say!("this host has {available} of memory left; {floor} must stay free")
                    }
                }
            }
            Limit::Memory => {
                let taken = format_bytes(seen.memory_bytes as f64);
                let most = format_bytes(self.memory_bytes_max? as f64);
                say!("throng and its connections use {taken} of memory; --max-memory is {most}")
            }
            Limit::Cpu => {
                let percent = |share: f64| (share * 100.0).round();
                let most = percent(self.cpu_share_max?);
                let (own, all) = (percent(seen.cpu_share?), seen.host_cpu.map(percent));
                match all {
                    Some(all) if all > own => {
                        say!("this host is {all} % busy; --max-cpu is {most} %")
                    }
                    _ => say!("throng uses {own} % of its processors; --max-cpu is {most} %"),
                }
            }
            Limit::Bandwidth => {
                let seen = format_bits(seen.throughput?.bits_per_s);
                let most = format_bits(self.bits_per_s_max?);
                say!("this host has {seen} of traffic; --max-bandwidth is {most}")
            }
            Limit::Packets => {
                let seen = format_count(seen.throughput?.packets_per_s as u64);
                let most = format_count(self.packets_per_s_max? as u64);
                say!("this host has {seen} packets/s of traffic; --max-packets is {most}/s")
            }
        };
        Some(Reason { limit, detail })
    }
}

/// Formats a bit rate in decimal units, such as `120 Mbit/s`.
fn format_bits(per_s: f64) -> String {
    match per_s {
        1e9.. => format!("{:.1} Gbit/s", per_s / 1e9),
        1e6.. => format!("{:.0} Mbit/s", per_s / 1e6),
        _ => format!("{:.0} kbit/s", per_s / 1e3),
    }
}

/// Whether the load may still add users, in this or a later phase. Loads with arrivals or
/// iterations always may.
pub(crate) fn is_growing(load: &Load, phase: u16, users_present: u64) -> bool {
    let rest = load.phases.iter().skip(usize::from(phase));
    rest.into_iter().any(|phase| match &phase.drive {
        Drive::Hold => false,
        Drive::Users(users) => users.to > users_present,
        Drive::Iterations(iterations) => iterations.users > users_present,
        Drive::Arrivals(_) => true,
    })
}

#[cfg(test)]
mod tests;
