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

/// Below this share of a limit users come again, once it has lasted for a while.
const RELEASE_SHARE: f64 = 0.9;
const RELEASE_AFTER: Duration = Duration::from_secs(3);
/// How long a limit is kept before growth is given up. Memory of a host that ends soon is urgent.
const HOST_MEMORY_PATIENCE: Duration = Duration::from_secs(5);
const MEMORY_PATIENCE: Duration = Duration::from_secs(30);
/// A busy host or network may be less busy later; a run must end all the same.
const BUSY_PATIENCE: Duration = Duration::from_secs(300);

/// The share of what this process may take that all users together may keep of bodies, messages
/// and bytes that wait to be sent. The rest is for the users themselves, and for the sockets.
const KEPT_PART: u64 = 2;
/// So much is kept however little there is: one large answer.
const KEPT_BYTES_MIN: u64 = 16 << 20;

/// What all users together may keep: a share of `--max-memory`, and of the room that this process
/// has when it starts. None where nobody knows how much that is.
pub(crate) fn kept_bytes_max(told: &HostLimits, room: Option<u64>) -> Option<u64> {
    let most = told.max_memory.into_iter().chain(room).min()?;
    Some((most / KEPT_PART).max(KEPT_BYTES_MIN))
}

/// What is looked at once a second; while users come memory alone is more often.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// Of the processors that this process may use, 0 to 1; absent where too little time has
    /// passed since it was seen before.
    pub(crate) cpu_share: Option<f64>,
    /// Of all processors of the host, by everybody.
    pub(crate) host_cpu: Option<f64>,
    /// Resident, and what the kernel spends on our connections.
    pub(crate) memory_bytes: u64,
    pub(crate) memory_left: Option<MemoryLeft>,
    /// Of the host, by everybody.
    pub(crate) throughput: Option<Throughput>,
    /// Users are to come who are not there.
    pub(crate) is_growing: bool,
    pub(crate) others: Others,
}

/// What the run has to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Let nobody come.
    Hold(Reason),
    /// Let users come again.
    Release,
    /// Let nobody come any more in this run.
    GiveUp(Reason),
    /// Say that it is at a limit, though nobody is to come whom it could hold back.
    Tell(Reason),
}

/// Which limit, and how far the run is above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) limit: Limit,
    pub(crate) detail: Said,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// What the host, or the control group, needs for itself.
    HostMemory,
    Memory,
    Cpu,
    Bandwidth,
    Packets,
}

/// The most urgent first.
const LIMITS: [Limit; 5] =
    [Limit::HostMemory, Limit::Memory, Limit::Cpu, Limit::Bandwidth, Limit::Packets];

impl Limit {
    /// The word that records carry.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Limit::HostMemory => "host-memory",
            Limit::Memory => "memory",
            Limit::Cpu => "cpu",
            Limit::Bandwidth => "bandwidth",
            Limit::Packets => "packets",
        }
    }

    /// Of some time: between two looks at that, the figure is as it was.
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

/// How far a figure is from its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Below,
    /// Not at the limit, and not far enough below it to begin again.
    Near,
    At,
}

/// Keeps the limits of one run.
#[derive(Debug)]
pub(crate) struct Limits {
    cpu_share_max: Option<f64>,
    memory_bytes_max: Option<u64>,
    bits_per_s_max: Option<f64>,
    packets_per_s_max: Option<f64>,
    state: State,
    /// How far each figure was from its limit, in the order of [`LIMITS`].
    levels: [Level; LIMITS.len()],
    /// Since when each limit was not well kept.
    since: [Option<Time>; LIMITS.len()],
    /// Since when all figures are well below their limits.
    well_since: Option<Time>,
    /// What was left of memory that ends the process, at the last looks, the oldest first.
    trend: Vec<(Time, u64)>,
    told: bool,
}

/// A trend is what lasts for so many looks, so that one that was late is none.
const TREND_LOOKS: usize = 4;
/// What users take in this time has come before the next look can hold anybody.
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

    /// Nobody comes for now.
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
                // Who is held waits until it is well below: near it is as bad.
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

    /// What is seen without the memory that the users of the next second take, where that is not
    /// merely scarce but ends the process: there would be no other look.
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
        // The least of what was taken from one look to the next.
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
        // How little memory the host has is for others to say when nobody wants more of it.
        let is_news = reason.limit != Limit::HostMemory && !std::mem::replace(&mut self.told, true);
        is_news.then_some(Deed::Tell(reason))
    }

    fn end_hold(&mut self, held: Time, seen: &Seen, now: Time) -> Option<Deed> {
        if self.well_since.is_some_and(|since| now.since(since) >= RELEASE_AFTER) {
            self.state = State::Free;
            return Some(Deed::Release);
        }
        // What was so before nobody was let in does not count.
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

    /// The figure as a part of its limit; absent where there is no limit or no figure.
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

    /// The limit with its figure, in words.
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

/// `120 Mbit/s`, as networks are told.
fn format_bits(per_s: f64) -> String {
    match per_s {
        1e9.. => format!("{:.1} Gbit/s", per_s / 1e9),
        1e6.. => format!("{:.0} Mbit/s", per_s / 1e6),
        _ => format!("{:.0} kbit/s", per_s / 1e3),
    }
}

/// Whether users of a load may still come, now or in a later phase of it. Who arrives or iterates
/// may always.
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
