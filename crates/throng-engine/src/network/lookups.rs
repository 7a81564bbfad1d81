//! Names that are looked up again while a run goes on (`resolve: every 30s`): one thread for each
//! name, whose addresses all shards share. What a lookup finds is judged as at the start: only
//! addresses that may be loaded, and that have a source, replace the ones before.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use throng_base::{Clock, Said, Time};
use throng_program::{Lookup, Program, Target};
use tokio::sync::mpsc::UnboundedSender;

/// A name is looked up once in this time at most, however many connections to it fail.
const PAUSE: Duration = Duration::from_secs(1);

/// What became of a name that was looked up again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameNews {
    /// New connections go elsewhere.
    Moved { at: Time, host: String, before: Vec<SocketAddr>, after: Vec<SocketAddr> },
    /// It has no address that may be connected to: connections go where they went. Told once until
    /// a lookup succeeds.
    Kept { at: Time, host: String, reason: Said },
}

/// The names of a run that are looked up again, and the addresses that they have now.
#[derive(Debug)]
pub(crate) struct Lookups {
    /// By target: its name.
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
    /// A connection failed, and its name has not been looked up since.
    is_doubted: AtomicBool,
    doubts: SyncSender<()>,
}

/// What the thread of one name needs.
pub(crate) struct Watch {
    lookups: Weak<Lookups>,
    number: usize,
    every: Option<Duration>,
    doubts: Receiver<()>,
}

impl Lookups {
    /// None where every name is looked up once. `addresses` are those of the targets.
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

    /// How often addresses have changed, if that is not as often as `known`.
    #[inline]
    pub(crate) fn change_after(&self, known: u64) -> Option<u64> {
        Some(self.changes.load(Ordering::Acquire)).filter(|change| *change != known)
    }

    /// Where connections to a target go, if its name is looked up again.
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

    /// Takes the addresses of a name; those before, if they were others. Their order is of no
    /// concern, because a name server turns it with every answer.
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

/// The host, the port and the interval of a target whose name is looked up again. An address needs
/// no lookup, and a name whose addresses the scenario gives has none.
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
    /// Looks the name up until the run is over. `look_up` says where connections may go.
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

    /// Waits until the name is to be looked up; false when the run is over.
    fn waits(&self, clock: &Clock, last: Time) -> bool {
        let left = |time: Duration| time.saturating_sub(clock.now().since(last));
        let doubted = match self.every {
            Some(every) => self.doubts.recv_timeout(left(every)),
            None => self.doubts.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match doubted {
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => true,
            // Nothing is sent before this lookup has begun: a message ends the pause never early.
            Ok(()) => match self.doubts.recv_timeout(left(PAUSE)) {
                Err(RecvTimeoutError::Disconnected) => false,
                Ok(()) | Err(RecvTimeoutError::Timeout) => true,
            },
        }
    }
}

#[cfg(test)]
mod tests;
