//! The state that all workers of a server share.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use throng_base::Clock;

use crate::chat::Rooms;
use crate::door::Door;
use crate::faults::Faults;
use crate::mail::{Envelope, Mailboxes};
use crate::mqtt::{Broker, Bundle};
use crate::options::{Options, TargetKind};
use crate::push::Service;
use crate::queue::{Capacity, Law, Question};
use crate::stats::{Stats, WorkerStats};

/// See the module.
pub(crate) struct Setup {
    pub(crate) kind: TargetKind,
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) worker_stats: WorkerStats,
    /// The prepared response to a plain GET; empty if it is too large.
    pub(crate) default_answer: Vec<u8>,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    /// Wakes workers and holds their messages.
    pub(crate) mailboxes: Mailboxes,
    pub(crate) faults: Faults,
    pub(crate) rooms: Rooms,
    /// For an HTTP server with limits.
    pub(crate) capacity: Option<Capacity>,
    /// For a server with a limit of connections, or of new connections per second.
    pub(crate) door: Door,
    /// For a push service.
    pub(crate) push: Option<Service>,
    /// For a broker.
    pub(crate) mqtt: Option<Broker>,
    /// The number of broadcasts so far.
    pub(crate) posted: AtomicU64,
    pub(crate) stopped: AtomicBool,
    pub(crate) shortage_told: AtomicBool,
}

impl Setup {
    /// Sends a broadcast to all workers.
    pub(crate) fn broadcast(&self, body: &[u8]) {
        let number = self.posted.fetch_add(1, Ordering::Relaxed) + 1;
        let body: Arc<[u8]> = body.into();
        for worker in 0..self.mailboxes.workers() {
            self.mailboxes.send(worker as u16, Envelope::Broadcast(number, Arc::clone(&body)));
        }
    }

    /// Sends messages of the broker to the workers of their subscribers.
    pub(crate) fn send(&self, bundles: Vec<Bundle>) {
        for Bundle { worker, targets, message } in bundles {
            let count = targets.len() as u64;
            if !self.mailboxes.send(worker, Envelope::Mqtt(targets, message)) {
                self.mailboxes.drop_deliveries(count);
            }
        }
    }

    /// What the server has served so far.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.worker_stats.stats();
        if !self.kind.delivers() {
            stats.deliveries = None;
        }
        if let Some(deliveries) = &mut stats.deliveries {
            deliveries.owed += self.mailboxes.dropped();
            deliveries.dropped += self.mailboxes.dropped();
        }
        if self.kind == TargetKind::Chat {
            self.rooms.fill_in(stats.chat.get_or_insert_default(), &self.faults);
        }
        stats.mqtt = self.mqtt.as_ref().map(Broker::stats);
        stats.push = self.push.as_ref().map(Service::stats);
        stats.queue = self.capacity.as_ref().map(Capacity::stats);
        stats
    }

    /// The highest rate for a threshold; `None` for a server without limits. A simulation takes
    /// some seconds, once per question.
    pub(crate) fn law(&self, question: Question) -> Option<Law> {
        let failing = self.options.errors + self.options.resets;
        self.capacity.as_ref()?.law(question, &self.options.capacity, failing)
    }

    /// Resets all counts; connections stay open.
    pub(crate) fn reset(&self) {
        self.worker_stats.reset();
        self.mailboxes.reset();
        self.faults.reset();
        self.rooms.reset();
        self.capacity.iter().for_each(Capacity::reset);
        self.mqtt.iter().for_each(Broker::reset);
        self.push.iter().for_each(Service::reset);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn tell(&self, message: &str) {
        if let Some(told) = &self.options.told {
            told(message);
        }
    }

    /// Reports once that connections cannot be accepted.
    pub(crate) fn tell_shortage(&self, error: &io::Error) {
        if !self.shortage_told.swap(true, Ordering::Relaxed) {
            self.tell(&format!(
                "connections wait to be accepted, because a worker has reached a limit of this host: \
                 {error}; raise the limit, or open fewer connections"
            ));
        }
    }
}
