//! What all workers of a push service share: the presence, its mirror, the pushes on their way and
//! the counts.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use throng_base::Clock;

use super::counts::PushStats;
use super::presence::Presence;
use super::pusher::{self, Pusher};
use crate::board::lock;
use crate::mail::{Address, Letter};
use crate::redis::{Mirror, MirrorOptions, RedisAddress, Ticket};
use crate::server::Setup;

/// What a push service is told before it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushOptions {
    /// Where the presence is mirrored to the set `presence`.
    pub redis: Option<RedisAddress>,
    /// A bind is answered only when Redis has confirmed it.
    pub redis_wait: bool,
    /// How long Redis may take; a bind that waits longer is answered with code 2.
    pub redis_timeout: Duration,
    /// A device without any packet for this time is taken offline.
    pub idle_timeout: Option<Duration>,
    /// How often every device gets a push without being asked for.
    pub push_every: Option<Duration>,
}

impl Default for PushOptions {
    fn default() -> PushOptions {
        PushOptions {
            redis: None,
            redis_wait: false,
            redis_timeout: Duration::from_secs(1),
            idle_timeout: None,
            push_every: None,
        }
    }
}

impl PushOptions {
    /// Refuses what cannot be, in words.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let zero = |duration: Option<Duration>| duration.is_some_and(|d| d.is_zero());
        match self {
            _ if self.redis_wait && self.redis.is_none() => {
                Some("binds can only wait for a Redis that is told")
            }
            _ if self.redis_timeout.is_zero() => Some("Redis must have some time to answer"),
            _ if zero(self.idle_timeout) => Some("a device may be silent for some time"),
            _ if zero(self.push_every) => {
                Some("pushes cannot follow each other without any time between")
            }
            _ => None,
        }
    }
}

/// Workers share counts when there are more of them than this.
const COUNTS: usize = 64;

pub(crate) struct Service {
    pub(super) options: PushOptions,
    pub(super) presence: Arc<Presence>,
    pub(super) mirror: Option<Mirror>,
    pub(super) pusher: Pusher,
    counts: Vec<Mutex<PushStats>>,
}

impl Service {
    pub(crate) fn new(options: &PushOptions) -> Service {
        let clock = Clock::start();
        Service {
            presence: Arc::new(Presence::new()),
            mirror: options.redis.is_some().then(|| Mirror::new(clock.clone())),
            pusher: Pusher::new(clock, options),
            counts: (0..COUNTS).map(|_| Mutex::default()).collect(),
            options: options.clone(),
        }
    }

    /// Starts the threads that push and that mirror. They end when the service is stopped.
    pub(crate) fn start(&self, setup: &Arc<Setup>) -> io::Result<Vec<JoinHandle<()>>> {
        let mut threads = Vec::new();
        let pushing = Arc::clone(setup);
        let run = move || {
            if let Some(service) = &pushing.push {
                service.pusher.run(&pushing.post, &service.presence);
            }
        };
        threads.push(thread::Builder::new().name("target-push".into()).spawn(run)?);
        if let (Some(mirror), Some(address)) = (&self.mirror, &self.options.redis) {
            let (confirming, telling) = (Arc::clone(setup), Arc::clone(setup));
            let confirm = move |tickets: &[Ticket]| {
                pusher::post_by_worker(
                    tickets,
                    |ticket| ticket.address.worker,
                    |worker, tickets| {
                        confirming.post.send(worker, Letter::Bound(tickets.into(), true));
                    },
                );
            };
            threads.push(mirror.start(MirrorOptions {
                address: address.clone(),
                patience: self.options.redis_timeout,
                presence: Arc::clone(&self.presence),
                confirm: Box::new(confirm),
                tell: Box::new(move |message| telling.tell(message)),
            })?);
        }
        Ok(threads)
    }

    pub(crate) fn stop(&self) {
        self.pusher.stop();
        self.mirror.iter().for_each(Mirror::stop);
    }

    /// How long a device may be silent.
    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        self.options.idle_timeout
    }

    /// A device was silent for too long and is taken offline.
    pub(crate) fn count_idle(&self, address: Address) {
        self.count(address.worker, |counts| counts.closed.idle += 1);
    }

    pub(super) fn count(&self, worker: u16, count: impl FnOnce(&mut PushStats)) {
        count(&mut lock(&self.counts[usize::from(worker) % COUNTS]));
    }

    /// A bind waits for Redis from now on, and hears when that took too long; false when too many
    /// wait already.
    pub(super) fn watch(&self, ticket: Ticket) -> bool {
        self.pusher.watch(ticket)
    }

    /// What devices did; pushes that were written are counted with the deliveries of the server.
    pub(crate) fn counts(&self) -> PushStats {
        let mut sum = PushStats::default();
        self.counts.iter().for_each(|counts| sum.add(&lock(counts)));
        sum.addressed = self.pusher.addressed();
        sum
    }

    pub(crate) fn stats(&self) -> Value {
        let mut stats = json!(self.counts());
        stats["online"] = self.presence.online().into();
        stats["pushes_waiting"] = self.pusher.waiting().into();
        if let Some(mirror) = &self.mirror {
            stats["redis"] = json!(mirror.stats());
        }
        stats
    }

    pub(crate) fn reset(&self) {
        self.counts.iter().for_each(|counts| *lock(counts) = PushStats::default());
        self.pusher.reset();
        self.mirror.iter().for_each(Mirror::reset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_options_are_refused() {
        let fault = |change: fn(&mut PushOptions)| {
            let mut options = PushOptions::default();
            change(&mut options);
            options.fault()
        };
        assert_eq!(fault(|_| ()), None);
        assert!(fault(|options| options.redis_wait = true).is_some());
        assert!(fault(|options| options.redis_timeout = Duration::ZERO).is_some());
        assert!(fault(|options| options.idle_timeout = Some(Duration::ZERO)).is_some());
        assert!(fault(|options| options.push_every = Some(Duration::ZERO)).is_some());
    }
}
