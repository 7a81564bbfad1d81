//! The state shared by all workers of a push service: presence, its mirror, pending pushes and
//! statistics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use throng_base::Clock;

use super::counts::PushStats;
use super::pusher::Pusher;
use crate::address::Address;
use crate::options::PushOptions;
use crate::presence::Presence;
use crate::redis::{Mirror, Ticket};
use crate::sums::Shards;

pub(crate) struct Service {
    pub(crate) options: PushOptions,
    pub(crate) presence: Arc<Presence>,
    pub(crate) mirror: Option<Mirror>,
    pub(crate) pusher: Pusher,
    /// Devices that went offline.
    gone: AtomicU64,
    counts: Shards<PushStats>,
}

impl Service {
    pub(crate) fn new(options: &PushOptions) -> Service {
        let clock = Clock::start();
        Service {
            presence: Arc::new(Presence::default()),
            mirror: options.redis.is_some().then(|| Mirror::new(clock.clone())),
            pusher: Pusher::new(clock, options),
            gone: AtomicU64::new(0),
            counts: Shards::default(),
            options: options.clone(),
        }
    }

    pub(crate) fn stop(&self) {
        self.pusher.stop();
        self.mirror.iter().for_each(Mirror::stop);
    }

    /// The idle timeout of devices.
    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        self.options.idle_timeout
    }

    /// A device was silent for too long and is marked as offline.
    pub(crate) fn count_idle(&self, address: Address) {
        self.count(address.worker, |counts| counts.closed.idle += 1);
    }

    /// A device went offline: returns whether to remove it from Redis. The share that stays is
    /// exact and evenly distributed.
    pub(crate) fn clears(&self, address: Address) -> bool {
        let share = self.options.skip_clear;
        let number = self.gone.fetch_add(1, Ordering::Relaxed) as f64;
        let skips = ((number + 1.0) * share).floor() > (number * share).floor();
        if skips {
            self.count(address.worker, |counts| counts.uncleared += 1);
        }
        !skips
    }

    pub(crate) fn count(&self, worker: u16, count: impl FnOnce(&mut PushStats)) {
        count(&mut self.counts.of(worker.into()));
    }

    /// Starts the timeout of a bind that waits for Redis. Returns false if too many are waiting.
    pub(crate) fn watch(&self, ticket: Ticket) -> bool {
        self.pusher.watch(ticket)
    }

    /// The actions of devices; written pushes are counted with the server's deliveries.
    pub(crate) fn counts(&self) -> PushStats {
        let mut sum = self.counts.sum();
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
        self.counts.reset();
        self.pusher.reset();
        self.mirror.iter().for_each(Mirror::reset);
    }
}
