//! The thread that paces pushes to many devices, and times out binds that wait for Redis. It writes
//! to no sockets: it sends letters to the workers.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throng_base::{Clock, Time};

use super::codec::push_frame;
use crate::address::Address;
use crate::mail::{Envelope, Mailboxes, Stamped};
use crate::options::PushOptions;
use crate::presence::Presence;
use crate::redis::Ticket;
use crate::sums::lock;

/// Maximum number of concurrent pushes to many devices.
const JOBS_MAX: usize = 64;
/// Maximum number of devices in all pending pushes, at eight bytes each.
const WAITING_MAX: u64 = 16_000_000;
/// Maximum number of binds that wait for Redis.
const TICKETS_MAX: usize = 256 * 1024;
/// Interval at which paced pushes continue.
const TICK: Duration = Duration::from_millis(2);
/// Devices per tick of a push without a rate, so that workers have time for other work.
const UNPACED_PER_TICK: usize = 2_000;
/// Maximum number of devices in a letter, which are written one after another.
const ENVELOPE_ADDRESSES_MAX: usize = 256;
/// The first ID of automatic pushes, which distinguishes them from the admin's.
const OWN_IDS_FROM: u64 = 1 << 32;

/// A push was rejected because too many are pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

pub(crate) struct Pusher {
    clock: Clock,
    patience: Duration,
    every: Option<Duration>,
    queue: Mutex<Queue>,
    wake: Condvar,
    addressed: AtomicU64,
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    /// Binds that wait for Redis, with their deadlines; all have the same timeout.
    tickets: VecDeque<(Time, Ticket)>,
    /// When the next automatic push to all devices is due, and the number of earlier ones.
    next_own: Option<Time>,
    own_made: u64,
    stopped: bool,
}

/// A pending push to many devices.
struct Job {
    frame: Arc<Stamped>,
    addresses: Vec<Address>,
    done: usize,
    started: Time,
    /// Devices per second; `None` means as fast as the workers accept them.
    rate: Option<f64>,
}

impl Job {
    /// The number of devices whose push is due now.
    fn due(&self, now: Time) -> usize {
        let left = self.addresses.len() - self.done;
        let due = match self.rate {
            None => UNPACED_PER_TICK,
            Some(rate) => {
                let due = (now - self.started).as_secs_f64() * rate;
                // The first is due immediately.
                (due as usize).saturating_add(1).saturating_sub(self.done)
            }
        };
        due.min(left)
    }
}

impl Pusher {
    pub(crate) fn new(clock: Clock, options: &PushOptions) -> Pusher {
        let next_own = options.push_every.map(|every| clock.now() + every);
        Pusher {
            clock,
            patience: options.redis_timeout,
            every: options.push_every,
            queue: Mutex::new(Queue { next_own, ..Queue::default() }),
            wake: Condvar::new(),
            addressed: AtomicU64::new(0),
        }
    }

    /// Pushes to these devices at a rate per second.
    pub(crate) fn push(
        &self,
        frame: Stamped,
        addresses: Vec<Address>,
        rate: Option<f64>,
    ) -> Result<(), TooMany> {
        if addresses.is_empty() {
            return Ok(());
        }
        self.begin(&mut self.lock(), frame, addresses, rate)?;
        self.wake.notify_one();
        Ok(())
    }

    fn begin(
        &self,
        queue: &mut Queue,
        frame: Stamped,
        addresses: Vec<Address>,
        rate: Option<f64>,
    ) -> Result<(), TooMany> {
        let count = addresses.len() as u64;
        if queue.jobs.len() >= JOBS_MAX || queue.waiting() + count > WAITING_MAX {
            return Err(TooMany);
        }
        self.addressed.fetch_add(count, Ordering::Relaxed);
        let (frame, started) = (Arc::new(frame), self.clock.now());
        queue.jobs.push(Job { frame, addresses, done: 0, started, rate });
        Ok(())
    }

    /// Pushes to one device immediately. Returns false if its worker's mailbox is full.
    pub(crate) fn push_one(&self, mailboxes: &Mailboxes, frame: Stamped, address: Address) -> bool {
        let envelope = Envelope::Push(Box::new([address]), Arc::new(frame));
        let taken = mailboxes.send(address.worker, envelope);
        self.addressed.fetch_add(u64::from(taken), Ordering::Relaxed);
        taken
    }

    pub(crate) fn watch(&self, ticket: Ticket) -> bool {
        let queue = &mut *self.lock();
        if queue.tickets.len() >= TICKETS_MAX {
            return false;
        }
        queue.tickets.push_back((self.clock.now() + self.patience, ticket));
        if queue.tickets.len() == 1 {
            self.wake.notify_one();
        }
        true
    }

    /// Number of pushes times their devices.
    pub(crate) fn addressed(&self) -> u64 {
        self.addressed.load(Ordering::Relaxed)
    }

    /// Devices whose push is still pending.
    pub(crate) fn waiting(&self) -> u64 {
        self.lock().waiting()
    }

    pub(crate) fn reset(&self) {
        self.addressed.store(0, Ordering::Relaxed);
    }

    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.wake.notify_one();
    }

    /// Runs until it is stopped.
    pub(crate) fn run(&self, mailboxes: &Mailboxes, presence: &Presence) {
        let mut queue = self.lock();
        while !queue.stopped {
            let now = self.clock.now();
            self.push_own(&mut queue, presence, now);
            queue.jobs.retain_mut(|job| advance(job, mailboxes, now));
            end_patience(&mut queue, mailboxes, now);
            let next = queue.next();
            let time = if queue.jobs.is_empty() { next - now } else { TICK };
            let waited = self.wake.wait_timeout(queue, time);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Starts the automatic push of the current period to all devices, spread over the period.
    fn push_own(&self, queue: &mut Queue, presence: &Presence, now: Time) {
        let (Some(every), Some(due)) = (self.every, queue.next_own) else { return };
        if due > now {
            return;
        }
        queue.next_own = Some(due + every);
        queue.own_made += 1;
        let number = queue.own_made;
        let data = format!("{{\"number\":{number}}}");
        let addresses = presence.addresses();
        let rate = addresses.len() as f64 / every.as_secs_f64();
        if let Some(frame) = push_frame(OWN_IDS_FROM + number, data.as_bytes())
            && !addresses.is_empty()
        {
            // If too many pushes are pending, this one is skipped.
            let _ = self.begin(queue, frame, addresses, Some(rate));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }
}

impl Queue {
    fn waiting(&self) -> u64 {
        self.jobs.iter().map(|job| (job.addresses.len() - job.done) as u64).sum()
    }

    /// When the next action is due, apart from pending pushes.
    fn next(&self) -> Time {
        let ticket = self.tickets.front().map(|(until, _)| *until);
        ticket.into_iter().chain(self.next_own).min().unwrap_or(Time::NEVER)
    }
}

/// Sends the pushes that are due, and returns whether any are left. Pushes that a full mailbox
/// rejects are sent at the next tick.
fn advance(job: &mut Job, mailboxes: &Mailboxes, now: Time) -> bool {
    let due = job.due(now);
    let until = job.done + due;
    let mut refused = Vec::new();
    let frame = &job.frame;
    post_by_worker(
        &job.addresses[job.done..until],
        |address| address.worker,
        |worker, addresses| {
            for part in addresses.chunks(ENVELOPE_ADDRESSES_MAX) {
                if !mailboxes.send(worker, Envelope::Push(part.into(), Arc::clone(frame))) {
                    refused.extend_from_slice(part);
                }
            }
        },
    );
    job.done = until - refused.len();
    job.addresses[job.done..until].copy_from_slice(&refused);
    job.done < job.addresses.len()
}

fn end_patience(queue: &mut Queue, mailboxes: &Mailboxes, now: Time) {
    let over = queue.tickets.partition_point(|(until, _)| *until <= now);
    if over == 0 {
        return;
    }
    let over: Vec<Ticket> = queue.tickets.drain(..over).map(|(_, ticket)| ticket).collect();
    post_by_worker(
        &over,
        |ticket| ticket.address.worker,
        |worker, tickets| {
            mailboxes.send(worker, Envelope::Bound(tickets.into(), false));
        },
    );
}

/// Calls `send` once for each worker with its items, in order.
pub(crate) fn post_by_worker<T: Copy>(
    items: &[T],
    worker: impl Fn(&T) -> u16,
    mut send: impl FnMut(u16, &[T]),
) {
    match items {
        [] => {}
        [one] => send(worker(one), &[*one]),
        _ => {
            let mut workers: HashMap<u16, Vec<T>> = HashMap::new();
            for item in items {
                workers.entry(worker(item)).or_default().push(*item);
            }
            workers.iter().for_each(|(worker, items)| send(*worker, items));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(count: u32) -> Vec<Address> {
        (0..count)
            .map(|place| Address { worker: (place % 2) as u16, generation: 0, place })
            .collect()
    }

    fn frame() -> Stamped {
        push_frame(1, b"{}").unwrap()
    }

    fn places(mailboxes: &Mailboxes) -> Vec<u32> {
        let envelopes = (0..2).flat_map(|worker| mailboxes.take(worker));
        let mut places: Vec<u32> = envelopes
            .flat_map(|envelope| match envelope {
                Envelope::Push(addresses, _) => addresses.into_vec(),
                other => panic!("{other:?}"),
            })
            .map(|address| address.place)
            .collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn a_paced_push_keeps_its_rate_and_reaches_each_device_once() {
        let mailboxes = Mailboxes::new(2).unwrap();
        let (frame, started) = (Arc::new(frame()), Time::ZERO);
        let mut job =
            Job { frame, addresses: addresses(1000), done: 0, started, rate: Some(1000.0) };
        let mut all = Vec::new();
        for (ms, sent) in [(0, 1), (0, 1), (100, 101), (101, 102), (5000, 1000)] {
            let left = advance(&mut job, &mailboxes, Time(ms * 1_000_000));
            all.extend(places(&mailboxes));
            assert_eq!((all.len(), job.done, left), (sent, sent, sent < 1000), "at {ms} ms");
        }
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1000));
    }

    #[test]
    fn pushes_rejected_by_a_full_mailbox_are_sent_again() {
        let mailboxes = Mailboxes::new(2).unwrap();
        while mailboxes.send(0, Envelope::Push(Box::new([]), Arc::new(frame()))) {}
        let started = Time::ZERO;
        let mut job = Job {
            frame: Arc::new(frame()),
            addresses: addresses(10),
            done: 0,
            started,
            rate: None,
        };
        assert!(advance(&mut job, &mailboxes, Time::ZERO));
        assert_eq!((job.done, places(&mailboxes).len()), (5, 5));
        assert!(!advance(&mut job, &mailboxes, Time::ZERO));
        assert_eq!(places(&mailboxes), [0, 2, 4, 6, 8]);
    }

    #[test]
    fn too_many_pushes_are_rejected() {
        let pusher = Pusher::new(Clock::simulated(), &PushOptions::default());
        for _ in 0..JOBS_MAX {
            assert_eq!(pusher.push(frame(), addresses(2), None), Ok(()));
        }
        assert_eq!(pusher.push(frame(), addresses(2), None), Err(TooMany));
        assert_eq!(pusher.push(frame(), Vec::new(), None), Ok(()));
        assert_eq!((pusher.addressed(), pusher.waiting()), (128, 128));
    }

    #[test]
    fn binds_time_out_in_order() {
        let (clock, mailboxes) = (Clock::simulated(), Mailboxes::new(2).unwrap());
        let pusher = Pusher::new(clock.clone(), &PushOptions::default());
        let [first, second] =
            [0, 1].map(|seq| Ticket { address: addresses(1)[0], seq, arrived: Time::ZERO });
        pusher.watch(first);
        clock.set(Time(500_000_000));
        pusher.watch(second);
        let queue = &mut *pusher.lock();
        assert_eq!(queue.next(), Time::from_secs(1));
        end_patience(queue, &mailboxes, Time::from_secs(1));
        let envelopes = mailboxes.take(0);
        let [Envelope::Bound(tickets, false)] = &envelopes[..] else { panic!("{envelopes:?}") };
        assert_eq!(tickets[..], [first]);
        assert_eq!(queue.tickets.len(), 1);
    }
}
