//! The thread that mirrors the presence, and its state shared with the workers: a bounded queue of
//! devices whose state changed. The state is looked up when it is written, so the order of the
//! queue does not matter.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::Serialize;
use throng_base::{Clock, Time};

use crate::address::Address;
use crate::presence::{Device, Presence};
use crate::sums::lock;
use throng_redis::{Link, RedisAddress, write_command, write_head, write_word};

/// The set of the names of all online devices.
const SET: &[u8] = b"presence";
/// The new set during a rewrite, before it replaces the old one atomically.
const NEXT_SET: &[u8] = b"presence:next";
/// The maximum number of queued changes; beyond it, the whole set is rewritten.
const QUEUE_MAX: usize = 256 * 1024;
/// The maximum number of binds that wait for a failed Redis; beyond it, the oldest are dropped.
const WAITERS_MAX: usize = 256 * 1024;
/// The maximum number of commands per pipeline, and of names per command of a rewrite.
const BATCH_MAX: usize = 1000;
/// How long a change waits for others to share a pipeline, unless a bind waits for it.
const BATCH_WAIT: Duration = Duration::from_millis(5);
/// The interval of checks of an idle connection.
const PING_EVERY: Duration = Duration::from_millis(250);
/// The pauses between attempts to connect grow from the first to the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A bind that waits for Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) address: Address,
    /// The sequence number of the bind.
    pub(crate) seq: u32,
    /// When it arrived.
    pub(crate) arrived: Time,
}

/// Receives the binds that Redis has confirmed. Called by the mirror's thread.
pub(crate) type Confirm = Box<dyn Fn(&[Ticket]) + Send>;

pub(crate) struct MirrorOptions {
    pub(crate) address: RedisAddress,
    /// The timeout of one exchange with Redis.
    pub(crate) patience: Duration,
    pub(crate) presence: Arc<Presence>,
    pub(crate) confirm: Confirm,
    /// Receives a warning when Redis fails, and when it recovers.
    pub(crate) tell: Box<dyn Fn(&str) + Send>,
}

/// The state of the mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RedisStats {
    pub(crate) connected: bool,
    /// The set in Redis may be wrong; it is or will be rewritten.
    pub(crate) stale: bool,
    /// The age of the oldest change that Redis has not confirmed.
    pub(crate) lag_ms: u64,
    /// Changes that Redis has not confirmed; not counted while the set is stale.
    pub(crate) pending: u64,
    /// Changes that Redis has confirmed.
    pub(crate) written: u64,
    pub(crate) pipelines: u64,
    /// The number of rewrites of the whole set, and the names in them.
    pub(crate) rewrites: u64,
    pub(crate) rewritten: u64,
    pub(crate) reconnects: u64,
    /// Failures to connect, to write and to receive replies.
    pub(crate) errors: u64,
}

/// The workers' view of the mirror.
pub(crate) struct Mirror(Arc<Shared>);

struct Shared {
    clock: Clock,
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    changes: VecDeque<Change>,
    /// Binds that wait for a rewrite of the set.
    waiters: VecDeque<Ticket>,
    /// Since when the set may be wrong.
    stale: Option<Time>,
    /// The number of changes being written, and the oldest of them.
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
    /// Changes are recorded from now on; they are written after the mirror has started.
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

    /// The state of a device has changed; with a ticket, a bind waits until Redis has confirmed it.
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

    /// Resets the counts; the state stays.
    pub(crate) fn reset(&self) {
        let queue = &mut *self.0.lock();
        let connected = queue.stats.connected;
        queue.stats = RedisStats { connected, ..RedisStats::default() };
    }

    pub(crate) fn stats(&self) -> RedisStats {
        let queue = &*self.0.lock();
        let now = self.0.clock.now();
        RedisStats {
            stale: queue.stale.is_some() || queue.rewriting,
            lag_ms: queue.oldest().map_or(0, |oldest| (now - oldest).as_millis() as u64),
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

    /// Since when a change is not confirmed.
    fn oldest(&self) -> Option<Time> {
        let waiting = self.changes.front().map(|change| change.at);
        [self.stale, self.flying_since, waiting].into_iter().flatten().min()
    }

    /// Nothing is being written.
    fn land(&mut self) {
        (self.flying, self.flying_since, self.rewriting) = (0, None, false);
    }

    /// The changes will be part of a rewritten set.
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
    /// The binds to notify when the current write is confirmed.
    flying: Vec<Ticket>,
    pipeline: Vec<u8>,
    /// Redis has failed, and that was reported.
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

    /// Writes changes until the server stops or Redis fails.
    fn serve(&mut self, link: &mut Link) -> io::Result<()> {
        loop {
            match self.next() {
                Work::Stop => return Ok(()),
                Work::Rewrite => self.rewrite(link)?,
                Work::Write(changes) => self.write(link, &changes)?,
                Work::Ping => self.ask(link, &[b"PING"])?,
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

    /// Writes the whole set beside the old one and replaces it. Changes meanwhile wait in the
    /// queue, and are written after it.
    fn rewrite(&mut self, link: &mut Link) -> io::Result<()> {
        let presence = Arc::clone(&self.options.presence);
        let shared = Arc::clone(&self.shared);
        let (mut names, mut count, mut written) = (Vec::new(), 0, 0);
        let mut result = self.ask(link, &[b"DEL", NEXT_SET]);
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
        match written {
            // Redis has no empty sets that could replace another.
            0 => self.ask(link, &[b"DEL", SET])?,
            _ => self.ask(link, &[b"RENAME", NEXT_SET, SET])?,
        }
        self.confirm(|stats| {
            stats.rewrites += 1;
            stats.rewritten += written;
        });
        Ok(())
    }

    fn ask(&mut self, link: &mut Link, command: &[&[u8]]) -> io::Result<()> {
        self.pipeline.clear();
        write_command(&mut self.pipeline, command);
        link.exchange(&self.pipeline, 1)
    }

    /// Redis has confirmed the current write.
    fn confirm(&mut self, count: impl FnOnce(&mut RedisStats)) {
        {
            let queue = &mut *self.shared.lock();
            queue.stats.pipelines += 1;
            count(&mut queue.stats);
            queue.land();
        }
        if !self.flying.is_empty() {
            (self.options.confirm)(&self.flying);
            self.flying.clear();
        }
    }

    /// Redis has failed: it is unknown which of the current changes it has applied.
    fn lose(&mut self, error: &io::Error) {
        {
            let queue = &mut *self.shared.lock();
            queue.stale = queue.oldest().or(Some(self.shared.clock.now()));
            queue.land();
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

    /// Pauses before the next attempt; returns whether the server stops.
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
