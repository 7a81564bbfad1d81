//! The statistics of a server: each worker writes its own counts, and readers add them up.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use serde::Serialize;

use crate::sums::{Shards, Sums, lock};
use crate::times::Times;

sums! {
    /// What a server has served, as in `/throng/stats`.
    pub struct Stats {
        pub connections: ConnectionStats,
        /// HTTP requests of any version that were read completely, including upgrades, except those
        /// to `/throng/…`.
        pub requests: u64,
        pub http2: Http2Stats,
        pub grpc: GrpcStats,
        /// WebSocket messages and pieces of raw bytes that were received.
        pub messages: u64,
        pub bytes_in: u64,
        pub bytes_out: u64,
        /// Error responses due to [`crate::Options::errors`].
        pub errors_sent: u64,
        /// Requests that were reset due to [`crate::Options::resets`].
        pub resets_sent: u64,
        /// Requests that were invalid HTTP or WebSocket, or too large.
        pub refused: u64,
        /// Responses that were dropped because the client disconnected first.
        pub unanswered: u64,
        /// Connections currently logged in.
        pub logged_in: u64,
        pub logins: u64,
        /// Logins of a user that was logged in on another connection.
        pub double_logins: u64,
        pub heartbeats: u64,
        /// Event streams, those resumed with a `Last-Event-ID`, and the events written to their
        /// sockets.
        pub event_streams: u64,
        pub event_streams_resumed: u64,
        pub events: u64,
        pub broadcasts: u64,
        /// Broadcast messages, counted once per receiving connection.
        pub broadcast_messages: u64,
        /// Broadcast messages that were dropped because the client does not read.
        pub broadcast_messages_dropped: u64,
        /// Distinct accounts that logged in or were authorized over HTTP.
        pub accounts: u64,
        /// Repeated logins and authorizations of an account.
        pub accounts_again: u64,
        /// Of messages from one connection to others; only for servers that deliver.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub deliveries: Option<DeliveryStats>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub chat: Option<ChatStats>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub mqtt: Option<MqttStats>,
        /// Statistics of a push service.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub push: Option<serde_json::Value>,
        /// Of the limits in [`crate::CapacityOptions`]; only if the server has any.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub queue: Option<QueueStats>,
        /// From the arrival of a request's last byte until its response was written to the socket.
        pub service_time: ServiceTime,
    }
}

sums! {
    pub struct ConnectionStats {
        pub open: u64,
        pub accepted: u64,
        pub closed_by_peer: u64,
        pub closed_by_us: u64,
        /// Connections that the client reset, or that failed.
        pub reset: u64,
        pub accept_errors: u64,
        /// Connections reset immediately due to [`crate::Options::connections_max`]; not included
        /// in `accepted`.
        pub refused: u64,
    }
}

/// The part that used HTTP/2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Http2Stats {
    /// Connections that used it, since the counts were last reset, like all counts.
    pub connections: u64,
    pub requests: u64,
    /// Maximum number of concurrent streams on one connection.
    pub streams_max: u64,
    /// Streams that the client reset.
    pub cancelled: u64,
    /// Streams refused due to [`crate::Options::refuse_streams`]; not counted as requests.
    pub refused: u64,
    /// Connections closed due to [`crate::Options::goaway_after`].
    pub goaways: u64,
}

sums! {
    /// The part that was gRPC, without calls of server reflection.
    pub struct GrpcStats {
        /// Calls that began, which also count as requests. Each ends with a status, is reset, or is
        /// abandoned by its client.
        pub calls: u64,
        /// Messages received in calls, and messages passed to the connection.
        pub messages_in: u64,
        pub messages_out: u64,
        /// Calls by the name of their final status; unknown numbers are `UNKNOWN`.
        pub statuses: BTreeMap<&'static str, u64>,
    }
}

sums! {
    /// The results of deliveries. `owed - lost - dropped - late_unsent - swaps_unsent + twice`
    /// equals `written` once nothing is delayed anymore.
    pub struct DeliveryStats {
        /// Messages times their intended open connections.
        pub owed: u64,
        /// Written to a socket or its buffer, including duplicates.
        pub written: u64,
        /// Dropped due to [`crate::FaultOptions::lose_every`].
        pub lost: u64,
        /// Written with a byte that violates the protocol.
        pub garbage: u64,
        pub twice: u64,
        /// Delayed by [`crate::FaultOptions::late_by`].
        pub late: u64,
        /// Delayed, but the connection ended before they were due.
        pub late_unsent: u64,
        /// Pairs written in the wrong order.
        pub swapped: u64,
        /// Delayed for a swap, but the connection ended before the next message.
        pub swaps_unsent: u64,
        /// Dropped because the client does not read, or because a worker's mailbox was full.
        pub dropped: u64,
        /// For a single connection that had ended; not counted as owed.
        pub gone: u64,
    }
}

sums! {
    /// Statistics of the chat rooms.
    pub struct ChatStats {
        /// Rooms that any user ever joined.
        pub rooms: u64,
        /// Users currently in a room.
        pub online: u64,
        pub joins: u64,
        /// Joins that were confirmed and forgotten due to [`crate::FaultOptions::forget_every`].
        pub joins_forgotten: u64,
        /// Joins with a wrong token: code 401.
        pub joins_refused: u64,
        /// Messages before a join: code 403.
        pub before_join: u64,
        pub likes: u64,
        pub gifts: u64,
        pub lights: u64,
        pub says: u64,
        pub leaves: u64,
        /// Connections closed because a packet had a wrong magic number,
        pub bad_magic: u64,
        /// … a packet exceeded 64 KiB,
        pub bad_length: u64,
        /// … a client must not send this kind of packet,
        pub bad_kind: u64,
        /// … the body of a packet did not match its kind.
        pub bad_body: u64,
    }
}

sums! {
    /// Requests subject to the limits of [`crate::CapacityOptions`]. `admitted` always equals
    /// `served + dropped + waiting + in_service`.
    pub struct QueueStats {
        /// Requests currently waiting for a server.
        pub waiting: u64,
        /// Requests currently in service.
        pub in_service: u64,
        /// Maximum number of waiting requests.
        pub waiting_max: u64,
        /// Requests that entered the queue.
        pub admitted: u64,
        pub served: u64,
        /// Requests removed from the queue or their server because their client disconnected.
        pub dropped: u64,
        /// Requests whose client disconnected, but that were processed due to
        /// [`crate::CapacityOptions::work_on`].
        pub unwanted: u64,
        /// Requests rejected with 503 due to [`crate::CapacityOptions::queue_max`].
        pub queue_full: u64,
        /// Requests rejected with 429 due to [`crate::CapacityOptions::rate_limit`].
        pub rate_limited: u64,
    }
}

sums! {
    /// Statistics of an MQTT broker.
    pub struct MqttStats {
        /// Accepted CONNECT packets, and those of MQTT 5 among them.
        pub connects: u64,
        pub connects_v5: u64,
        /// Connections that resumed a session.
        pub resumed: u64,
        /// Rejected CONNECT packets.
        pub refused: u64,
        /// Connections that were closed because their client connected again.
        pub taken_over: u64,
        /// DISCONNECT packets from clients.
        pub disconnects: u64,
        /// Connections closed after 1.5 times the keep-alive time without a packet.
        pub keep_alive: u64,
        /// Connections closed due to a malformed or unexpected packet.
        pub broken: u64,
        /// Filters subscribed and unsubscribed.
        pub subscribes: u64,
        pub unsubscribes: u64,
        /// Subscriptions that were confirmed and then forgotten.
        pub forgotten: u64,
        /// Published messages by QoS, without repetitions of QoS 2.
        pub published: [u64; 3],
        /// QoS 2 PUBLISH packets repeated before their PUBREL.
        pub repeated: u64,
        pub wills: u64,
        /// Deliveries acknowledged by PUBACK or PUBCOMP, and acknowledgements without a delivery.
        pub acknowledged: u64,
        pub misnumbered: u64,
        /// Messages resent to resumed sessions; not included in `deliveries`.
        pub resent: u64,
        /// Messages for a subscription that were dropped: expired, too large for the client, or
        /// beyond the client's queue.
        pub left_out: u64,
        /// Current sessions, including those without a connection; subscriptions; retained
        /// messages.
        pub sessions: u64,
        pub subscriptions: u64,
        pub retained: u64,
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServiceTime {
    pub count: u64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
}

/// The statistics of all workers, and the users that are online.
pub(crate) struct WorkerStats {
    /// By worker; the last entry is the admin's, which is never reported.
    figures: Vec<Mutex<Figures>>,
    pub(crate) people: People,
    /// Accounts that logged in or were authorized over HTTP; none is ever removed.
    accounts: People,
    accounts_again: AtomicU64,
}

/// The statistics of one worker, which alone writes them.
#[derive(Default)]
pub(crate) struct Figures {
    /// Counts and gauges. The service time in it stays empty.
    pub(crate) counts: Stats,
    pub(crate) service: Times,
    pub(crate) deliveries: DeliveryStats,
}

impl WorkerStats {
    pub(crate) fn new(workers: usize) -> WorkerStats {
        WorkerStats {
            figures: (0..=workers).map(|_| Mutex::default()).collect(),
            people: People::default(),
            accounts: People::default(),
            accounts_again: AtomicU64::new(0),
        }
    }

    /// An account logs in or is authorized over HTTP.
    pub(crate) fn account(&self, name: &str) {
        let (_, again) = self.accounts.enter(name);
        self.accounts_again.fetch_add(u64::from(again), Ordering::Relaxed);
    }

    /// The statistics of one worker, locked while a response is written, so that a client that has
    /// received the response finds it counted.
    pub(crate) fn figures(&self, worker: usize) -> MutexGuard<'_, Figures> {
        lock(&self.figures[worker])
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        let mut service = Times::default();
        let mut deliveries = DeliveryStats::default();
        for figures in &self.figures[..self.figures.len() - 1] {
            let figures = lock(figures);
            stats.add(&figures.counts);
            service.merge(&figures.service);
            deliveries.add(&figures.deliveries);
        }
        stats.deliveries = Some(deliveries);
        stats.accounts = self.accounts.online();
        stats.accounts_again = self.accounts_again.load(Ordering::Relaxed);
        stats.service_time = ServiceTime {
            count: service.count(),
            p50_ns: service.value_at(0.5),
            p90_ns: service.value_at(0.9),
            p99_ns: service.value_at(0.99),
            p999_ns: service.value_at(0.999),
            max_ns: service.max(),
        };
        stats
    }

    /// Resets all counts; open connections and logins stay.
    pub(crate) fn reset(&self) {
        for figures in &self.figures {
            let mut figures = lock(figures);
            let (open, logged_in) = (figures.counts.connections.open, figures.counts.logged_in);
            *figures = Figures::default();
            figures.counts.connections.open = open;
            figures.counts.logged_in = logged_in;
        }
        self.accounts.forget();
        self.accounts_again.store(0, Ordering::Relaxed);
    }
}

impl Sums for Http2Stats {
    fn add(&mut self, other: &Http2Stats) {
        self.connections += other.connections;
        self.requests += other.requests;
        self.streams_max = self.streams_max.max(other.streams_max);
        self.cancelled += other.cancelled;
        self.refused += other.refused;
        self.goaways += other.goaways;
    }
}

/// Readers compute it from the times of all workers.
impl Sums for ServiceTime {
    fn add(&mut self, _: &ServiceTime) {}
}

/// A push service counts for itself.
impl Sums for serde_json::Value {
    fn add(&mut self, _: &serde_json::Value) {}
}

/// Logged-in users and their number of connections over all workers. Users are identified by the
/// hash of their ID: eight bytes each, with a collision probability of 3e-8 among a million.
#[derive(Default)]
pub(crate) struct People(Shards<HashMap<u64, u32>>);

impl People {
    /// The key of the user, and whether it was already online.
    pub(crate) fn enter(&self, user: &str) -> (u64, bool) {
        let mut hasher = DefaultHasher::new();
        user.hash(&mut hasher);
        let key = hasher.finish();
        let mut part = self.0.of(key);
        let connections = part.entry(key).or_insert(0);
        *connections += 1;
        (key, *connections > 1)
    }

    pub(crate) fn leave(&self, key: u64) {
        let mut part = self.0.of(key);
        if let Some(connections) = part.get_mut(&key) {
            *connections -= 1;
            if *connections == 0 {
                part.remove(&key);
            }
        }
    }

    /// Number of distinct users that are online.
    pub(crate) fn online(&self) -> u64 {
        self.0.each().map(|part| part.len() as u64).sum()
    }

    fn forget(&self) {
        self.0.each().for_each(|mut part| part.clear());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_online_until_its_last_connection_ends() {
        let people = People::default();
        let (key, twice) = people.enter("u1");
        assert!(!twice);
        assert_eq!(people.enter("u1"), (key, true));
        assert!(!people.enter("u2").1);
        assert_eq!(people.online(), 2);
        people.leave(key);
        assert_eq!(people.online(), 2);
        people.leave(key);
        people.leave(key);
        assert_eq!(people.online(), 1);
    }

    #[test]
    fn reset_keeps_the_gauges() {
        let worker_stats = WorkerStats::new(2);
        for worker in 0..2 {
            let mut figures = worker_stats.figures(worker);
            figures.counts.connections.open = 3;
            figures.counts.requests = 5;
            figures.service.record(1000);
        }
        assert_eq!(
            (worker_stats.stats().requests, worker_stats.stats().service_time.count),
            (10, 2)
        );
        worker_stats.reset();
        let stats = worker_stats.stats();
        assert_eq!((stats.connections.open, stats.requests, stats.service_time.count), (6, 0, 0));
    }
}
