//! The accept queues of listening sockets, which are read often enough to detect bursts, and the
//! states of connections on their ports, which are counted rarely: the kernel walks all its
//! connections for that.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use throng_base::{Clock, Time};

use super::diag::{Diag, FAMILIES, Found, STATES, connections, listening};
use super::series::Figures;
use crate::Root;
use crate::kernel::processor_times;

/// The interval of queue readings.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long maxima are kept.
pub const WINDOW_MAX: Duration = Duration::from_secs(60);
/// The minimum interval between counts of states.
const COUNT_EVERY: Duration = Duration::from_secs(30);
/// The share of time that counts may take: with a million connections they are rarer.
const COUNT_PART: u32 = 400;
/// Readings of queues per reading of the processors: the kernel counts their time in coarse ticks.
const PROCESSORS_EVERY: u64 = 10;
/// The maximum number of listening addresses.
const LISTENERS_MAX: usize = 64;
/// The number of ports whose connections are counted if none is named.
const PORTS_MAX: usize = 8;

/// Reads the queues; see the module's description.
#[derive(Debug)]
pub struct Listeners {
    clock: Clock,
    root: Root,
    diag: Diag,
    /// The requested ports; all if empty.
    ports: Vec<u16>,
    queues: BTreeMap<(u16, IpAddr), Queue>,
    /// The number of drops of each socket at the last reading.
    drops: HashMap<u32, u32>,
    looks: u64,
    states: BTreeMap<(u16, usize), u64>,
    count_due: Time,
    processors: HashMap<String, [u64; 8]>,
    busiest: Maximum,
}

/// All sockets that listen on one address and port.
#[derive(Debug, Default)]
struct Queue {
    longest: Maximum,
    limit: u32,
    full: u64,
    drops: u64,
    is_open: bool,
}

/// The maximum within a window that ends now: a value that is followed by a larger one can never be
/// a maximum again.
#[derive(Debug, Default)]
struct Maximum(VecDeque<(Time, f64)>);

impl Maximum {
    fn add(&mut self, now: Time, value: f64) {
        while self.0.back().is_some_and(|(_, before)| *before <= value) {
            self.0.pop_back();
        }
        self.0.push_back((now, value));
        while self.0.front().is_some_and(|(at, _)| now.since(*at) > WINDOW_MAX) {
            self.0.pop_front();
        }
    }

    fn within(&self, now: Time, window: Duration) -> Option<f64> {
        self.0.iter().find(|(at, _)| now.since(*at) <= window).map(|(_, value)| *value)
    }
}

impl Listeners {
    pub fn open(root: Root, clock: Clock, ports: Vec<u16>) -> io::Result<Listeners> {
        Ok(Listeners {
            diag: Diag::open()?,
            count_due: clock.now(),
            clock,
            root,
            ports,
            queues: BTreeMap::new(),
            drops: HashMap::new(),
            looks: 0,
            states: BTreeMap::new(),
            processors: HashMap::new(),
            busiest: Maximum::default(),
        })
    }

    /// Reads once. To be called every [`LOOK_EVERY`].
    pub fn look(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        let mut found = Vec::new();
        for family in FAMILIES {
            self.diag.ask(|number| listening(family, number), |one| found.push(one))?;
        }
        self.take(now, &found);
        if self.looks.is_multiple_of(PROCESSORS_EVERY) {
            let text = self.root.read("proc/stat").unwrap_or_default();
            self.take_processors(now, &text);
        }
        self.looks += 1;
        if now >= self.count_due {
            self.count()?;
            let took = self.clock.now().since(now);
            self.count_due = self.clock.now() + COUNT_EVERY.max(took * COUNT_PART);
        }
        Ok(())
    }

    fn take(&mut self, now: Time, found: &[Found]) {
        for queue in self.queues.values_mut() {
            queue.is_open = false;
        }
        let mut rows: BTreeMap<(u16, IpAddr), (u32, u32, bool)> = BTreeMap::new();
        let ports = self.ports.clone();
        let is_wanted = |one: &&Found| ports.is_empty() || ports.contains(&one.port);
        for one in found.iter().filter(is_wanted) {
            let key = (one.port, one.address);
            if !self.queues.contains_key(&key) && self.queues.len() >= LISTENERS_MAX {
                continue;
            }
            let queue = self.queues.entry(key).or_default();
            queue.is_open = true;
            if let Some(drops) = one.drops {
                let before = self.drops.insert(one.inode, drops).unwrap_or(0);
                queue.drops += u64::from(drops.wrapping_sub(before));
            }
            let row = rows.entry(key).or_insert((0, u32::MAX, false));
            row.0 = row.0.max(one.queue);
            row.1 = row.1.min(one.queue_limit);
            row.2 |= one.queue > one.queue_limit;
        }
        for (key, (longest, limit, is_full)) in rows {
            if let Some(queue) = self.queues.get_mut(&key) {
                queue.longest.add(now, f64::from(longest));
                queue.limit = limit;
                queue.full += u64::from(is_full);
            }
        }
        if self.drops.len() > found.len() {
            self.drops.retain(|inode, _| found.iter().any(|one| one.inode == *inode));
        }
    }

    fn take_processors(&mut self, now: Time, text: &str) {
        let mut busiest: Option<f64> = None;
        for (name, ticks) in processor_times(text).filter(|(name, _)| *name != "cpu") {
            let Some(before) = self.processors.insert(name.to_string(), ticks) else { continue };
            let mut passed = [0; 8];
            for (at, passed) in passed.iter_mut().enumerate() {
                *passed = ticks[at].saturating_sub(before[at]);
            }
            let [_, _, _, idle, iowait, ..] = passed;
            let all: u64 = passed.iter().sum();
            if all > 0 {
                let share = 1.0 - (idle + iowait) as f64 / all as f64;
                busiest = Some(busiest.map_or(share, |busiest| busiest.max(share)));
            }
        }
        if let Some(busiest) = busiest {
            self.busiest.add(now, busiest);
        }
    }

    /// Counts the connections on the requested ports, or on those with a listener.
    fn count(&mut self) -> io::Result<()> {
        let mut ports = self.ports.clone();
        if ports.is_empty() {
            ports =
                self.queues.iter().filter(|it| it.1.is_open).map(|((port, _), _)| *port).collect();
            ports.dedup();
            ports.truncate(PORTS_MAX);
        }
        let mut states = BTreeMap::new();
        for port in ports {
            for family in FAMILIES {
                let ask = |number| connections(family, port, number);
                self.diag.ask(ask, |one| {
                    *states.entry((port, usize::from(one.state))).or_insert(0) += 1;
                })?;
            }
            states.entry((port, 1)).or_insert(0);
        }
        self.states = states;
        Ok(())
    }

    /// The results; maxima are those of a window that ends now.
    pub fn tell(&self, window: Duration, figures: &mut Figures) {
        let now = self.clock.now();
        for ((port, address), queue) in &self.queues {
            let (port, address) = (port.to_string(), address.to_string());
            let labels = [("address", address.as_str()), ("port", port.as_str())];
            if let Some(longest) = queue.longest.within(now, window) {
                figures.add("throng_listen_queue_max", &labels, longest);
            }
            if queue.is_open {
                figures.add("throng_listen_queue_limit", &labels, f64::from(queue.limit));
            }
            figures.add("throng_listen_full_total", &labels, queue.full as f64);
            figures.add("throng_listen_drops_total", &labels, queue.drops as f64);
        }
        figures.add("throng_listen_looks_total", &[], self.looks as f64);
        for ((port, state), count) in &self.states {
            let Some(state) = STATES.get(*state) else { continue };
            let port = port.to_string();
            let labels = [("port", port.as_str()), ("state", *state)];
            figures.add("throng_tcp_connections", &labels, *count as f64);
        }
        if let Some(busiest) = self.busiest.within(now, window) {
            figures.add("throng_cpu_busiest_share", &[], busiest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_is_within_its_window() {
        let mut maximum = Maximum::default();
        let seen = [(1, 5.0), (2, 9.0), (3, 2.0), (4, 2.0), (5, 1.0)];
        seen.iter().for_each(|(at, value)| maximum.add(Time::from_secs(*at), *value));
        let within = |seconds| maximum.within(Time::from_secs(5), Duration::from_secs(seconds));
        assert_eq!([0, 1, 2, 3, 60].map(within), [1.0, 2.0, 2.0, 9.0, 9.0].map(Some));
        assert_eq!(maximum.within(Time::from_secs(9), Duration::from_secs(1)), None);
        maximum.add(Time::from_secs(70), 0.0);
        assert_eq!(maximum.0.len(), 1, "nothing is kept that no window has");
    }

    fn socket(port: u16, inode: u32, queue: u32, drops: u32) -> Found {
        let (state, address) = (10, IpAddr::from([0, 0, 0, 0]));
        Found { state, address, port, queue, queue_limit: 4, inode, drops: Some(drops) }
    }

    #[test]
    fn sockets_of_one_port_are_one_queue_and_drops_are_counted_once() {
        let clock = Clock::simulated();
        let mut it = Listeners::open(Root::default(), clock.clone(), vec![80]).expect("opened");
        it.take(clock.now(), &[socket(80, 1, 3, 2), socket(80, 2, 5, 0), socket(81, 3, 9, 9)]);
        it.take(clock.now(), &[socket(80, 1, 0, 3), socket(80, 2, 0, 0)]);
        // A restart: another socket, which starts at 0.
        it.take(clock.now(), &[socket(80, 4, 1, 1)]);
        let mut figures = Figures::default();
        it.tell(Duration::ZERO, &mut figures);
        let labels = [("address", "0.0.0.0"), ("port", "80")];
        let value = |name: &str| figures.value(name, &labels);
        assert_eq!(value("throng_listen_queue_max"), Some(5.0));
        assert_eq!(value("throng_listen_queue_limit"), Some(4.0));
        assert_eq!(value("throng_listen_full_total"), Some(1.0));
        assert_eq!(value("throng_listen_drops_total"), Some(4.0));
        assert_eq!(it.queues.len(), 1);
        it.take(clock.now(), &[]);
        let mut figures = Figures::default();
        it.tell(Duration::ZERO, &mut figures);
        assert_eq!(figures.value("throng_listen_queue_limit", &labels), None, "nothing listens");
    }

    #[test]
    fn the_busiest_processor_is_measured_between_readings() {
        let clock = Clock::simulated();
        let mut it = Listeners::open(Root::default(), clock.clone(), Vec::new()).expect("opened");
        let text = |busy: u64, idle: u64| {
            format!(
                "cpu 0 0 0 0 0 0 0 0\ncpu0 {busy} 0 0 {idle} 0 0 0 0\ncpu1 1 0 0 {idle} 0 0 0 0\n"
            )
        };
        it.take_processors(clock.now(), &text(100, 0));
        it.take_processors(clock.now(), &text(175, 25));
        let mut figures = Figures::default();
        it.tell(Duration::ZERO, &mut figures);
        assert_eq!(figures.value("throng_cpu_busiest_share", &[]), Some(0.75));
    }
}
