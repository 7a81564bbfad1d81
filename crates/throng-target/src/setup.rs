//! What all workers of a server share.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use throng_base::Clock;

use crate::board::{Board, Stats};
use crate::chat::Hall;
use crate::door::Door;
use crate::faults::Faults;
use crate::mail::{Letter, Post};
use crate::mqtt::{Broker, Bundle};
use crate::options::{Kind, Options};
use crate::push::Service;
use crate::queue::{Capacity, Law, Question};

/// See the module.
pub(crate) struct Setup {
    pub(crate) kind: Kind,
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) board: Board,
    /// The answer to a plain GET, ready made; empty when it is too large for that.
    pub(crate) default_answer: Vec<u8>,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    /// Wakes each worker and brings its letters.
    pub(crate) post: Post,
    pub(crate) faults: Faults,
    pub(crate) hall: Hall,
    /// Of an HTTP server that has limits.
    pub(crate) capacity: Option<Capacity>,
    /// Of a server that accepts so many connections, or so many per second.
    pub(crate) door: Door,
    /// Of a push service.
    pub(crate) push: Option<Service>,
    /// Of a broker.
    pub(crate) mqtt: Option<Broker>,
    /// How many broadcasts were posted.
    pub(crate) posted: AtomicU64,
    pub(crate) stopped: AtomicBool,
    pub(crate) shortage_told: AtomicBool,
}

impl Setup {
    /// Posts a broadcast to all workers.
    pub(crate) fn broadcast(&self, body: &[u8]) {
        let number = self.posted.fetch_add(1, Ordering::Relaxed) + 1;
        let body: Arc<[u8]> = body.into();
        for worker in 0..self.post.workers() {
            self.post.send(worker as u16, Letter::Broadcast(number, Arc::clone(&body)));
        }
    }

    /// Sends messages of the broker to the workers of their subscribers.
    pub(crate) fn send(&self, bundles: Vec<Bundle>) {
        for Bundle { worker, targets, message } in bundles {
            let count = targets.len() as u64;
            if !self.post.send(worker, Letter::Mqtt(targets, message)) {
                self.post.drop_deliveries(count);
            }
        }
    }

    /// What was served so far.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.board.stats();
        if !self.kind.delivers() {
            stats.deliveries = None;
        }
        if let Some(deliveries) = &mut stats.deliveries {
            deliveries.owed += self.post.dropped();
            deliveries.dropped += self.post.dropped();
        }
        if self.kind == Kind::Chat {
            self.hall.fill_in(stats.chat.get_or_insert_default(), &self.faults);
        }
        stats.mqtt = self.mqtt.as_ref().map(Broker::stats);
        stats.push = self.push.as_ref().map(Service::stats);
        stats.queue = self.capacity.as_ref().map(Capacity::stats);
        stats
    }

    /// The highest rate for a threshold; none of a server that carries any. A simulation takes
    /// some seconds, once for each question.
    pub(crate) fn law(&self, question: Question) -> Option<Law> {
        let failing = self.options.errors + self.options.resets;
        self.capacity.as_ref()?.law(question, &self.options.capacity, failing)
    }

    /// Sets all counts back; what is open stays open.
    pub(crate) fn reset(&self) {
        self.board.reset();
        self.post.reset();
        self.faults.reset();
        self.hall.reset();
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

    /// Tells once that connections cannot be accepted.
    pub(crate) fn tell_shortage(&self, error: &io::Error) {
        if !self.shortage_told.swap(true, Ordering::Relaxed) {
            self.tell(&format!(
                "connections wait to be accepted, because a worker has reached a limit of this host: \
                 {error}; raise the limit, or open fewer connections"
            ));
        }
    }
}
