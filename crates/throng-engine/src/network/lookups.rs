//! Names that are looked up again during a run (`resolve: every 30s`): one thread per name, whose
//! addresses all shards share. New addresses are checked as at the start: only those that may be
//! loaded and have a source replace the old ones.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use throng_base::{Clock, Said, Time};
use throng_program::{Lookup, Program, Target};
use tokio::sync::mpsc::UnboundedSender;

/// A name is looked up at most once in this time, however many connections to it fail.
const PAUSE: Duration = Duration::from_secs(1);

/// The result of looking up a name again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameNews {
    /// New connections use other addresses.
    Moved { at: Time, host: String, before: Vec<SocketAddr>, after: Vec<SocketAddr> },
    /// It has no usable address: connections keep the old ones. Reported once until a lookup
    /// succeeds.
    Kept { at: Time, host: String, reason: Said },
}

/// The names of a run that are looked up again, and their current addresses.
#[derive(Debug)]
pub(crate) struct Lookups {
    /// The index of its name, by target.
    names: Box<[Option<usize>]>,
    all: Box<[Name]>,
    /// How often an address has changed.
    changes: AtomicU64,
}

#[derive(Debug)]
struct Name {
    host: String,
    port: u16,
    addresses: Mutex<Vec<SocketAddr>>,
    /// A connection failed since the last lookup.
    is_doubted: AtomicBool,
    doubts: SyncSender<()>,
}

/// The data of one name's thread.
pub(crate) struct Watch {
    lookups: Weak<Lookups>,
    number: usize,
    every: Option<Duration>,
    doubts: Receiver<()>,
}

impl Lookups {
    /// `None` if every name is looked up only once. `addresses` are those of the targets.
    pub(crate) fn new(
        program: &Program,
        addresses: &[Vec<SocketAddr>],
    ) -> Option<(Arc<Lookups>, Vec<Watch>)> {
        let (mut names, mut all) = (vec![None; program.targets.len()], Vec::<Name>::new());
        let mut watched = Vec::new();
        for ((target, now), name) in program.targets.iter().zip(addresses).zip(&mut names) {
            let Some((host, port, every)) = looked_up_again(program, target) else { continue };
            let known = all.iter().position(|known| known.host == host && known.port == port);
            let number = known.unwrap_or_else(|| {
                let (sender, doubts) = sync_channel(1);
                let (addresses, host) = (Mutex::new(now.clone()), host.to_string());
                let is_doubted = AtomicBool::new(false);
                all.push(Name { host, port, addresses, is_doubted, doubts: sender });
                watched.push((None, doubts));
                all.len() - 1
            });
            *name = Some(number);
            let soonest: &mut Option<Duration> = &mut watched[number].0;
            *soonest = (*soonest).into_iter().chain(every).min();
        }
        let (names, all) = (names.into(), all.into_boxed_slice());
        let lookups = Arc::new(Lookups { names, all, changes: AtomicU64::new(0) });
        let watch = |(number, (every, doubts))| {
            let lookups = Arc::downgrade(&lookups);
            Watch { lookups, number, every, doubts }
        };
        let watches: Vec<Watch> = watched.into_iter().enumerate().map(watch).collect();
        (!watches.is_empty()).then_some((lookups, watches))
    }

    /// How often addresses have changed, if the number differs from `known`.
    #[inline]
    pub(crate) fn change_after(&self, known: u64) -> Option<u64> {
        Some(self.changes.load(Ordering::Acquire)).filter(|change| *change != known)
    }

    /// The addresses of a target, if its name is looked up again.
    pub(crate) fn addresses(&self, target: u16) -> Option<Vec<SocketAddr>> {
        let name = self.name_of(target)?;
        Some(name.addresses.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// A connection to a target failed: its name is looked up soon.
    pub(crate) fn failed(&self, target: u16) {
        if let Some(name) = self.name_of(target)
            && !name.is_doubted.swap(true, Ordering::AcqRel)
        {
            let _ = name.doubts.try_send(());
        }
    }

    fn name_of(&self, target: u16) -> Option<&Name> {
        let number = (*self.names.get(usize::from(target))?)?;
        self.all.get(number)
    }

    /// Sets the addresses of a name; returns the old ones if they differ. The order does not
    /// matter, because name servers rotate it.
    pub(crate) fn found(&self, number: usize, found: &[SocketAddr]) -> Option<Vec<SocketAddr>> {
        let name = self.all.get(number)?;
        let mut addresses = name.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same =
            addresses.len() == found.len() && found.iter().all(|it| addresses.contains(it));
        if is_same {
            return None;
        }
        let before = std::mem::replace(&mut *addresses, found.to_vec());
        drop(addresses);
        self.changes.fetch_add(1, Ordering::AcqRel);
        Some(before)
    }
}

/// The host, port and interval of a target whose name is looked up again. Addresses, and names
/// whose addresses the scenario gives, are not.
fn looked_up_again<'p>(
    program: &'p Program,
    target: &'p Target,
) -> Option<(&'p str, u16, Option<Duration>)> {
    let every = match target.lookup {
        Lookup::Once => return None,
        Lookup::OnFailure => None,
        Lookup::Every(time) => Some(time),
    };
    let routing = &program.connection.routing;
    let (host, port) = routing.next_hop(target);
    let is_name = host.parse::<IpAddr>().is_err() && routing.addresses(host, port).is_none();
    (is_name && target.unix_socket.is_none()).then_some((host, port, every))
}

impl Watch {
    /// Looks the name up until the run is over. `look_up` returns the usable addresses.
    pub(crate) fn work(
        self,
        clock: &Clock,
        look_up: impl Fn(&str, u16) -> Result<Vec<SocketAddr>, Said>,
        news: &UnboundedSender<NameNews>,
    ) {
        let mut has_failed = false;
        let mut last = clock.now();
        while self.waits(clock, last) {
            let Some(lookups) = self.lookups.upgrade() else { return };
            let Some(name) = lookups.all.get(self.number) else { return };
            last = clock.now();
            name.is_doubted.store(false, Ordering::Release);
            let found = look_up(&name.host, name.port);
            let (at, host) = (clock.now(), name.host.clone());
            let told = match found {
                Ok(after) => {
                    has_failed = false;
                    let before = lookups.found(self.number, &after);
                    before.map(|before| NameNews::Moved { at, host, before, after })
                }
                Err(reason) => {
                    let is_new = !std::mem::replace(&mut has_failed, true);
                    is_new.then_some(NameNews::Kept { at, host, reason })
                }
            };
            if told.is_some_and(|told| news.send(told).is_err()) {
                return;
            }
        }
    }

    /// Waits until the next lookup is due; false when the run is over.
    fn waits(&self, clock: &Clock, last: Time) -> bool {
        let left = |time: Duration| time.saturating_sub(clock.now().since(last));
        let doubted = match self.every {
            Some(every) => self.doubts.recv_timeout(left(every)),
            None => self.doubts.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match doubted {
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => true,
            // No doubt is sent before this lookup has started: a message never ends the pause
            // early.
            Ok(()) => match self.doubts.recv_timeout(left(PAUSE)) {
                Err(RecvTimeoutError::Disconnected) => false,
                Ok(()) | Err(RecvTimeoutError::Timeout) => true,
            },
        }
    }
}

#[cfg(test)]
mod tests;
