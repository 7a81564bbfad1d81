//! The thread that mirrors the presence, and what it shares with the workers: a bounded queue of
//! devices whose state changed. What that state is, is looked up when it is written, so that the
//! order of the queue cannot be wrong.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::Serialize;
use throng_base::{Clock, Time};

use crate::address::Address;
use crate::presence::{Device, Presence};
use crate::stats::lock;
use throng_redis::{Link, RedisAddress, write_command, write_head, write_word};

/// The set that has the names of all devices that are online.
const SET: &[u8] = b"presence";
/// Where the set is written anew, before it takes the place of the old one in one step.
const NEXT_SET: &[u8] = b"presence:next";
/// More changes than these do not wait: the whole set is then written anew.
const QUEUE_MAX: usize = 256 * 1024;
/// More binds than these do not wait for a Redis that is gone: the oldest are given up.
const WAITERS_MAX: usize = 256 * 1024;
/// A pipeline has at most so many commands, and a rewriting command so many names.
const BATCH_MAX: usize = 1000;
/// So long a change waits for others to go with it, unless someone waits for it.
const BATCH_WAIT: Duration = Duration::from_millis(5);
/// So often an idle connection is tried.
const PING_EVERY: Duration = Duration::from_millis(250);
/// The pauses between two tries to connect grow from the first to the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A bind that waits until Redis has confirmed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) address: Address,
    /// The sequence number of the bind.
    pub(crate) seq: u32,
    /// When it arrived.
    pub(crate) arrived: Time,
}

/// Hears which binds Redis has confirmed. Called by the mirror's thread.
pub(crate) type Confirm = Box<dyn Fn(&[Ticket]) + Send>;

pub(crate) struct MirrorOptions {
    pub(crate) address: RedisAddress,
    /// How long one exchange with Redis may take.
    pub(crate) patience: Duration,
    pub(crate) presence: Arc<Presence>,
    pub(crate) confirm: Confirm,
    /// Hears when Redis is gone and when it is back.
    pub(crate) tell: Box<dyn Fn(&str) + Send>,
}

/// The state of the mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RedisStats {
    pub(crate) connected: bool,
    /// The set in Redis is not known to be right; it is or will be written anew.
    pub(crate) stale: bool,
    /// The age of the oldest change that Redis has not confirmed.
    pub(crate) lag_ms: u64,
    /// Changes that Redis has not confirmed; while the set is stale they are not counted.
    pub(crate) pending: u64,
    /// Changes that Redis has confirmed.
    pub(crate) written: u64,
    pub(crate) pipelines: u64,
    /// How often the whole set was written anew, and the names in it.
    pub(crate) rewrites: u64,
    pub(crate) rewritten: u64,
    pub(crate) reconnects: u64,
    /// Failures to connect, to write and to be answered.
    pub(crate) errors: u64,
}

/// The mirror as the workers see it.
pub(crate) struct Mirror(Arc<Shared>);

struct Shared {
    clock: Clock,
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    changes: VecDeque<Change>,
    /// Binds that wait for the set to be written anew.
    waiters: VecDeque<Ticket>,
    /// Since when the set is not known to be right.
    stale: Option<Time>,
    /// Changes that are being written, and the oldest of them.
    flying: usize,
    flying_since: Option<Time>,
    rewriting: bool,
    stopped: bool,
    stats: RedisStats,
}

struct Change {
    device: Device,
    at: Time,
    ticket: Option<Ticket>,
}

impl Mirror {
    /// Changes are remembered from now on; they are written when the mirror is started.
    pub(crate) fn new(clock: Clock) -> Mirror {
        let stale = Some(clock.now());
        let queue = Mutex::new(Queue { stale, ..Queue::default() });
        Mirror(Arc::new(Shared { clock, queue, wake: Condvar::new() }))
    }

    /// Starts the thread that writes. It ends when the mirror is stopped.
    pub(crate) fn start(&self, options: MirrorOptions) -> io::Result<JoinHandle<()>> {
        let writer = Writer {
            shared: Arc::clone(&self.0),
            options,
            flying: Vec::new(),
            pipeline: Vec::new(),
            gone: false,
            pause: PAUSE_FIRST,
        };
        thread::Builder::new().name("target-redis".into()).spawn(|| writer.run())
    }

    pub(crate) fn stop(&self) {
        self.0.lock().stopped = true;
        self.0.wake.notify_one();
    }

    /// The state of a device has changed; with a ticket someone waits until Redis knows it.
    pub(crate) fn changed(&self, device: Device, ticket: Option<Ticket>) {
        let at = self.0.clock.now();
        let queue = &mut *self.0.lock();
        if queue.stale.is_some() {
            queue.wait(ticket);
            return;
        }
        if queue.changes.len() >= QUEUE_MAX {
            queue.forget_changes();
            queue.stale = Some(at);
            queue.wait(ticket);
            return self.0.wake.notify_one();
        }
        queue.changes.push_back(Change { device, at, ticket });
        if matches!(queue.changes.len(), 1 | BATCH_MAX) {
            self.0.wake.notify_one();
        }
    }

    /// Counts from zero again; the state stays.
    pub(crate) fn reset(&self) {
        let queue = &mut *self.0.lock();
        let connected = queue.stats.connected;
        queue.stats = RedisStats { connected, ..RedisStats::default() };
    }

    pub(crate) fn stats(&self) -> RedisStats {
        let queue = &*self.0.lock();
        let now = self.0.clock.now();
        let waiting = queue.changes.front().map(|change| change.at);
        let oldest = [queue.stale, queue.flying_since, waiting].into_iter().flatten().min();
        RedisStats {
            stale: queue.stale.is_some() || queue.rewriting,
            lag_ms: oldest.map_or(0, |oldest| (now - oldest).as_millis() as u64),
            pending: (queue.changes.len() + queue.flying) as u64,
            ..queue.stats.clone()
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>, time: Duration) -> MutexGuard<'a, Queue> {
        self.wake.wait_timeout(queue, time).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Queue {
    fn wait(&mut self, ticket: Option<Ticket>) {
        let Some(ticket) = ticket else { return };
        if self.waiters.len() >= WAITERS_MAX {
            self.waiters.pop_front();
        }
        self.waiters.push_back(ticket);
    }

    /// The changes will be part of a set written anew.
    fn forget_changes(&mut self) {
        for change in std::mem::take(&mut self.changes) {
            self.wait(change.ticket);
        }
    }
}

enum Work {
    Stop,
    Rewrite,
    Write(Vec<Change>),
    Ping,
}

/// The mirror's thread.
struct Writer {
    shared: Arc<Shared>,
    options: MirrorOptions,
    /// Whom to tell when what is being written is confirmed.
    flying: Vec<Ticket>,
    pipeline: Vec<u8>,
    /// Redis is gone, and that was told.
    gone: bool,
    pause: Duration,
}

impl Writer {
    fn run(mut self) {
        let mut first = true;
        loop {
            let options = &self.options;
            let link = Link::open(&options.address, self.shared.clock.clone(), options.patience);
            let result = link.and_then(|mut link| {
                {
                    let queue = &mut *self.shared.lock();
                    queue.stats.connected = true;
                    queue.stats.reconnects += u64::from(!first);
                }
                first = false;
                self.serve(&mut link)
            });
            match result {
                Ok(()) => return,
                Err(error) => self.lose(&error),
            }
            if self.rest() {
                return;
            }
        }
    }

    /// Writes what is to be written, until the server stops or Redis fails.
    fn serve(&mut self, link: &mut Link) -> io::Result<()> {
        loop {
            match self.next() {
                Work::Stop => return Ok(()),
                Work::Rewrite => self.rewrite(link)?,
                Work::Write(changes) => self.write(link, &changes)?,
                Work::Ping => {
                    self.pipeline.clear();
                    write_command(&mut self.pipeline, &[b"PING"]);
                    link.exchange(&self.pipeline, 1)?;
                }
            }
            self.pause = PAUSE_FIRST;
            if std::mem::take(&mut self.gone) {
                let address = &self.options.address;
                (self.options.tell)(&format!(
                    "{address} is back; all presence data was written again"
                ));
            }
        }
    }

    /// Waits for something to do.
    fn next(&mut self) -> Work {
        let shared = Arc::clone(&self.shared);
        let mut queue = shared.lock();
        let ping_at = shared.clock.now() + PING_EVERY;
        loop {
            if queue.stopped {
                return Work::Stop;
            }
            if let Some(since) = queue.stale.take() {
                queue.rewriting = true;
                queue.flying_since = Some(since);
                self.flying.extend(queue.waiters.drain(..));
                return Work::Rewrite;
            }
            let now = shared.clock.now();
            let waiting = match queue.changes.front() {
                None => match ping_at - now {
                    Duration::ZERO => return Work::Ping,
                    left => left,
                },
                Some(first) => {
                    let wait = if first.ticket.is_some() { Duration::ZERO } else { BATCH_WAIT };
                    let left = (first.at + wait) - now;
                    if left.is_zero() || queue.changes.len() >= BATCH_MAX {
                        return Work::Write(self.take(&mut queue));
                    }
                    left
                }
            };
            queue = shared.wait(queue, waiting);
        }
    }

    fn take(&mut self, queue: &mut Queue) -> Vec<Change> {
        let count = queue.changes.len().min(BATCH_MAX);
        let changes: Vec<Change> = queue.changes.drain(..count).collect();
        queue.flying = count;
        queue.flying_since = changes.first().map(|change| change.at);
        self.flying.extend(changes.iter().filter_map(|change| change.ticket));
        changes
    }

    fn write(&mut self, link: &mut Link, changes: &[Change]) -> io::Result<()> {
        self.pipeline.clear();
        for change in changes {
            let online = self.options.presence.find(&change.device).is_some();
            let command: &[u8] = if online { b"SADD" } else { b"SREM" };
            let pipeline = &mut self.pipeline;
            change
                .device
                .with_name(|name| write_command(pipeline, &[command, SET, name.as_bytes()]));
        }
        link.exchange(&self.pipeline, changes.len())?;
        self.confirm(|stats| stats.written += changes.len() as u64);
        Ok(())
    }

    /// Writes the whole set beside the old one and puts it in its place. What changes meanwhile
    /// waits in the queue, and is written after it.
    fn rewrite(&mut self, link: &mut Link) -> io::Result<()> {
        let presence = Arc::clone(&self.options.presence);
        let shared = Arc::clone(&self.shared);
        let (mut names, mut count, mut written) = (Vec::new(), 0, 0);
        self.pipeline.clear();
        write_command(&mut self.pipeline, &[b"DEL", NEXT_SET]);
        let mut result = link.exchange(&self.pipeline, 1);
        let mut send = |names: &mut Vec<u8>, count: &mut usize| {
            self.pipeline.clear();
            write_head(&mut self.pipeline, 2 + *count);
            write_word(&mut self.pipeline, b"SADD");
            write_word(&mut self.pipeline, NEXT_SET);
            self.pipeline.append(names);
            written += std::mem::take(count) as u64;
            if shared.lock().stopped {
                return Err(io::Error::other("the server stops"));
            }
            link.exchange(&self.pipeline, 1)
        };
        presence.each(|device| {
            if result.is_ok() {
                device.with_name(|name| write_word(&mut names, name.as_bytes()));
                count += 1;
                if count == BATCH_MAX {
                    result = send(&mut names, &mut count);
                }
            }
        });
        result?;
        if count > 0 {
            send(&mut names, &mut count)?;
        }
        self.pipeline.clear();
        match written {
            // Redis has no empty set that could take the place of another.
            0 => write_command(&mut self.pipeline, &[b"DEL", SET]),
            _ => write_command(&mut self.pipeline, &[b"RENAME", NEXT_SET, SET]),
        }
        link.exchange(&self.pipeline, 1)?;
        self.confirm(|stats| {
            stats.rewrites += 1;
            stats.rewritten += written;
        });
        Ok(())
    }

    /// Redis has confirmed what was being written.
    fn confirm(&mut self, count: impl FnOnce(&mut RedisStats)) {
        {
            let queue = &mut *self.shared.lock();
            queue.stats.pipelines += 1;
            count(&mut queue.stats);
            queue.flying = 0;
            queue.flying_since = None;
            queue.rewriting = false;
        }
        if !self.flying.is_empty() {
            (self.options.confirm)(&self.flying);
            self.flying.clear();
        }
    }

    /// Redis has failed: nobody knows which of the changes being written it has taken.
    fn lose(&mut self, error: &io::Error) {
        {
            let queue = &mut *self.shared.lock();
            let now = self.shared.clock.now();
            let waiting = queue.changes.front().map(|change| change.at);
            let oldest = [queue.stale, queue.flying_since, waiting].into_iter().flatten().min();
            queue.stale = Some(oldest.unwrap_or(now));
            queue.flying = 0;
            queue.flying_since = None;
            queue.rewriting = false;
            queue.stats.connected = false;
            queue.stats.errors += 1;
            self.flying.drain(..).for_each(|ticket| queue.wait(Some(ticket)));
            queue.forget_changes();
        }
        if !std::mem::replace(&mut self.gone, true) && !self.shared.lock().stopped {
            let address = &self.options.address;
            (self.options.tell)(&format!(
                "{address} is unreachable: {error}; devices are served without it, and all presence \
                 data is written to it when it is back"
            ));
        }
    }

    /// Pauses before the next try; tells whether the server stops.
    fn rest(&mut self) -> bool {
        let until = self.shared.clock.now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        let mut queue = self.shared.lock();
        loop {
            let left = until - self.shared.clock.now();
            if queue.stopped || left.is_zero() {
                return queue.stopped;
            }
            queue = self.shared.wait(queue, left);
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
pub(crate) mod tests;
