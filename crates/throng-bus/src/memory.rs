//! An in-memory bus for tests: each reply has a delay, and on demand messages are lost, duplicated
//! or late, machines are disconnected, and the bus freezes. A seed reproduces the same sequence if
//! tokio's time is paused (`start_paused`) and all machines are on one thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use throng_base::Random;
use throng_extract::Digest;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use crate::{
    Bus, BusError, Entry, Following, Link, Logged, Message, PAYLOAD_BYTES_MAX, Subscription,
    WAITING_MAX, matches,
};

/// Faults, in parts per million.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Messages to listeners that are lost.
    pub lost: u32,
    /// Messages to listeners that are duplicated.
    pub doubled: u32,
    /// Lost replies of the log and of registers to operations that succeeded.
    pub unanswered: u32,
    /// Maximum delay in each direction.
    pub delay_max: Duration,
}

/// How long a machine waits for a reply.
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// How long it takes to notice a lost connection.
const NOTICED_AFTER: Duration = Duration::from_secs(4);
/// Maximum number of remembered IDs of appends.
const IDS_MAX: usize = 100_000;

/// The bus itself.
#[derive(Clone)]
pub struct Memory(Arc<Mutex<World>>);

/// A machine on the bus.
#[derive(Clone)]
pub struct Machine {
    world: Memory,
    name: Arc<str>,
    link: watch::Receiver<Link>,
    connection: Arc<Connection>,
}

/// Dropping it ends the machine's subscriptions.
struct Connection {
    bus: Memory,
    number: u64,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.bus.inner().listeners.retain(|listener| listener.connection != self.number);
    }
}

struct World {
    random: Random,
    faults: Faults,
    log: Vec<(String, Bytes)>,
    /// The length of the log, for followers.
    length: watch::Sender<usize>,
    log_max: usize,
    ids: BTreeSet<String>,
    keys: BTreeMap<String, Entry>,
    revision: u64,
    blobs: BTreeMap<String, Bytes>,
    listeners: Vec<Listener>,
    /// Disconnected machines.
    cut: watch::Sender<BTreeSet<Arc<str>>>,
    connections: u64,
    asked: u64,
}

struct Listener {
    connection: u64,
    machine: Arc<str>,
    pattern: String,
    to: mpsc::Sender<Message>,
}

impl Memory {
    pub fn new(seed: u64, faults: Faults) -> Memory {
        Memory(Arc::new(Mutex::new(World {
            random: Random::new(seed),
            faults,
            log: Vec::new(),
            length: watch::Sender::new(0),
            log_max: usize::MAX,
            ids: BTreeSet::new(),
            keys: BTreeMap::new(),
            revision: 0,
            blobs: BTreeMap::new(),
            listeners: Vec::new(),
            cut: watch::Sender::default(),
            connections: 0,
            asked: 0,
        })))
    }

    /// A machine joins; several can have the same name.
    pub fn join(&self, name: &str) -> Machine {
        let name: Arc<str> = name.into();
        let (told, link) = watch::channel(Link::Up);
        let (mut cut, own) = (self.inner().cut.subscribe(), Arc::clone(&name));
        tokio::spawn(async move {
            loop {
                let is_cut = cut.borrow_and_update().contains(&own);
                if is_cut {
                    // A short disconnect is not noticed.
                    let back = cut.wait_for(|cut| !cut.contains(&own));
                    if timeout(NOTICED_AFTER, back).await.is_ok() {
                        continue;
                    }
                }
                let now = if is_cut { Link::Cut } else { Link::Up };
                told.send_if_modified(|link| std::mem::replace(link, now.clone()) != now);
                tokio::select! {
                    changed = cut.changed() => if changed.is_err() { return },
                    () = told.closed() => return,
                }
            }
        });
        let number = {
            let mut world = self.inner();
            world.connections += 1;
            world.connections
        };
        let connection = Arc::new(Connection { bus: self.clone(), number });
        Machine { world: self.clone(), name, link, connection }
    }

    /// Disconnects or reconnects a machine.
    pub fn cut(&self, name: &str, is_cut: bool) {
        self.inner().cut.send_modify(|cut| match is_cut {
            true => drop(cut.insert(name.into())),
            false => drop(cut.remove(name)),
        });
    }

    pub fn set_faults(&self, faults: Faults) {
        self.inner().faults = faults;
    }

    /// Sets the maximum number of lines in the log.
    pub fn set_log_max(&self, lines: usize) {
        self.inner().log_max = lines;
    }

    /// The log entries that match a pattern.
    pub fn log(&self, pattern: &str) -> Vec<Bytes> {
        let world = self.inner();
        let own = world.log.iter().filter(|(subject, _)| matches(pattern, subject));
        own.map(|(_, payload)| payload.clone()).collect()
    }

    fn inner(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The delay of one direction.
    async fn way(&self, machine: &Arc<str>) -> Result<(), BusError> {
        let delay = self.inner().delay();
        sleep(delay).await;
        let mut cut = self.inner().cut.subscribe();
        // A connection buffers outgoing data for a while.
        match timeout(ANSWER_TIME, cut.wait_for(|cut| !cut.contains(machine))).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(BusError::Cut),
        }
    }

    fn deliver(&self, message: &Message) {
        let mut world = self.inner();
        let listeners = world.listeners.iter();
        let own = listeners.filter(|it| matches(&it.pattern, &message.subject));
        let own: Vec<_> = own.map(|it| (Arc::clone(&it.machine), it.to.clone())).collect();
        for (machine, to) in own {
            let Faults { lost, doubled, .. } = world.faults;
            let times = match (world.happens(lost), world.happens(doubled)) {
                (true, _) => 0,
                (false, is_doubled) => 1 + u32::from(is_doubled),
            };
            for _ in 0..times {
                let (delay, message) = (world.delay(), message.clone());
                let (bus, to, machine) = (self.clone(), to.clone(), Arc::clone(&machine));
                tokio::spawn(async move {
                    sleep(delay).await;
                    let is_cut = bus.inner().cut.borrow().contains(&machine);
                    if !is_cut {
                        let _ = to.try_send(message);
                    }
                });
            }
        }
    }
}

impl World {
    fn delay(&mut self) -> Duration {
        let max = u64::try_from(self.faults.delay_max.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.random.below(max.saturating_add(1)))
    }

    fn happens(&mut self, of_a_million: u32) -> bool {
        of_a_million > 0 && self.random.below(1_000_000) < u64::from(of_a_million)
    }
}

impl Machine {
    /// Runs an operation on the bus, and waits for its reply.
    async fn asked<T>(
        &self,
        act: impl FnOnce(&mut World) -> Result<T, BusError>,
    ) -> Result<T, BusError> {
        self.world.way(&self.name).await?;
        let (done, is_unanswered) = {
            let mut world = self.world.inner();
            let unanswered = world.faults.unanswered;
            (act(&mut world)?, world.happens(unanswered))
        };
        if is_unanswered {
            sleep(ANSWER_TIME).await;
            return Err(BusError::Cut);
        }
        self.world.way(&self.name).await?;
        Ok(done)
    }
}

impl Bus for Machine {
    fn link(&self) -> watch::Receiver<Link> {
        self.link.clone()
    }

    fn publish(&self, subject: &str, payload: Bytes) {
        let message =
            Message { subject: subject.to_string(), payload, reply: None, revision: None };
        let (world, name) = (self.world.clone(), Arc::clone(&self.name));
        tokio::spawn(async move {
            if world.way(&name).await.is_ok() {
                world.deliver(&message);
            }
        });
    }

    async fn subscribe(&self, pattern: &str) -> Result<Subscription, BusError> {
        let (to, messages) = mpsc::channel(WAITING_MAX);
        let connection = self.connection.number;
        let (machine, pattern) = (Arc::clone(&self.name), pattern.to_string());
        let listener = Listener { connection, machine, pattern, to };
        self.world.inner().listeners.push(listener);
        Ok(messages)
    }

    async fn request(
        &self,
        subject: &str,
        payload: Bytes,
        within: Duration,
    ) -> Result<Bytes, BusError> {
        let reply = {
            let mut world = self.world.inner();
            world.asked += 1;
            format!("inbox.{}", world.asked)
        };
        let mut answers = self.subscribe(&reply).await?;
        let message = Message {
            subject: subject.to_string(),
            payload,
            reply: Some(reply.clone()),
            revision: None,
        };
        let asked = async {
            self.world.way(&self.name).await?;
            self.world.deliver(&message);
            answers.recv().await.map(|answer| answer.payload).ok_or(BusError::Cut)
        };
        let answer = timeout(within, asked).await.unwrap_or(Err(BusError::Cut));
        self.world.inner().listeners.retain(|listener| listener.pattern != reply);
        answer
    }

    async fn append(&self, subject: &str, id: &str, payload: Bytes) -> Result<(), BusError> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(BusError::Refused(say!("a line of the log is too long")));
        }
        self.asked(|world| {
            if world.ids.contains(id) {
                return Ok(());
            }
            if world.log.len() >= world.log_max {
                return Err(BusError::Full);
            }
            if world.ids.len() == IDS_MAX {
                world.ids.clear();
            }
            world.ids.insert(id.to_string());
            world.log.push((subject.to_string(), payload));
            world.length.send_replace(world.log.len());
            Ok(())
        })
        .await
    }

    async fn follow(&self, pattern: &str, from: u64) -> Result<Following, BusError> {
        let (to, following) = mpsc::channel(WAITING_MAX);
        let mut length = self.world.inner().length.subscribe();
        let (world, name, pattern) = (self.world.clone(), self.name.clone(), pattern.to_string());
        tokio::spawn(async move {
            let mut next = usize::try_from(from.saturating_sub(1)).unwrap_or(usize::MAX);
            loop {
                length.borrow_and_update();
                let new: Vec<Logged> = {
                    let world = world.inner();
                    let new = world.log.iter().enumerate().skip(next);
                    let own = new.filter(|(_, (subject, _))| matches(&pattern, subject));
                    own.map(|(at, (subject, payload))| Logged {
                        subject: subject.clone(),
                        sequence: at as u64 + 1,
                        payload: payload.clone(),
                        behind: 0,
                    })
                    .collect()
                };
                let count = new.len() as u64;
                for (number, line) in (1..).zip(new) {
                    next = line.sequence as usize;
                    while world.way(&name).await.is_err() {}
                    if to.send(Logged { behind: count - number, ..line }).await.is_err() {
                        return;
                    }
                }
                tokio::select! {
                    changed = length.changed() => if changed.is_err() { return },
                    () = to.closed() => return,
                }
            }
        });
        Ok(following)
    }

    async fn read(&self, key: &str) -> Result<Option<Entry>, BusError> {
        self.asked(|world| Ok(world.keys.get(key).cloned())).await
    }

    async fn write(&self, key: &str, expected: u64, value: Bytes) -> Result<u64, BusError> {
        let told = self.world.clone();
        self.asked(|world| {
            let revision = world.keys.get(key).map_or(0, |entry| entry.revision);
            if revision != expected {
                return Err(BusError::Conflict);
            }
            world.revision += 1;
            let revision = world.revision;
            world.keys.insert(key.to_string(), Entry { revision, value: value.clone() });
            let message = Message {
                subject: format!("written.{key}"),
                payload: value,
                reply: None,
                revision: Some(revision),
            };
            tokio::spawn(async move { told.deliver(&message) });
            Ok(revision)
        })
        .await
    }

    async fn keys(&self, pattern: &str) -> Result<Vec<String>, BusError> {
        let own = |world: &mut World| {
            world.keys.keys().filter(|key| matches(pattern, key)).cloned().collect()
        };
        self.asked(|world| Ok(own(world))).await
    }

    async fn store(&self, blob: Bytes) -> Result<String, BusError> {
        self.asked(|world| {
            let name = Digest::Sha256.of(&blob);
            world.blobs.insert(name.clone(), blob);
            Ok(name)
        })
        .await
    }

    async fn fetch(&self, name: &str) -> Result<Option<Bytes>, BusError> {
        self.asked(|world| Ok(world.blobs.get(name).cloned())).await
    }
}

#[cfg(test)]
mod tests;
