//! The counts of a server: each worker writes its own figures, readers add them up.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::sums::Sums;
use crate::times::Times;

sums! {
    /// What a server has served, as `/throng/stats` shows it.
    pub struct Stats {
        pub connections: ConnectionStats,
        /// HTTP requests that were read completely, in any version, including upgrades, without
        /// those for `/throng/…`.
        pub requests: u64,
        pub http2: Http2Stats,
        pub grpc: GrpcStats,
        /// Received WebSocket messages, and pieces of bytes on raw connections.
        pub messages: u64,
        pub bytes_in: u64,
        pub bytes_out: u64,
        /// Error responses because of [`crate::Options::errors`].
        pub errors_sent: u64,
        /// Requests that were reset because of [`crate::Options::resets`].
        pub resets_sent: u64,
        /// Requests that were refused because they were not HTTP or WebSocket, or too large.
        pub refused: u64,
        /// Responses that were dropped because the peer disconnected before they were written.
        pub unanswered: u64,
        /// Logged-in connections.
        pub logged_in: u64,
        pub logins: u64,
        /// Logins of users that were logged in on another connection.
        pub double_logins: u64,
        pub heartbeats: u64,
        /// Event streams that started, how many of them resumed after a `Last-Event-ID`, and the
        /// events that were given to their sockets.
        pub event_streams: u64,
        pub event_streams_resumed: u64,
        pub events: u64,
        pub broadcasts: u64,
        /// Broadcast messages, one per receiving connection.
        pub broadcast_messages: u64,
        /// Broadcast messages not sent because the peer does not read.
        pub broadcast_messages_dropped: u64,
        /// Different accounts that logged in or were authorized over HTTP.
        pub accounts: u64,
        /// Logins and authorizations of an account after its first.
        pub accounts_again: u64,
        /// Messages from one connection to others; only for servers that deliver.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub deliveries: Option<DeliveryStats>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub chat: Option<ChatStats>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub mqtt: Option<MqttStats>,
        /// The stats of a push service.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub push: Option<serde_json::Value>,
        /// The limits of [`crate::CapacityOptions`]; only for a server with limits.
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
        /// Connections that the peer reset, or that broke.
        pub reset: u64,
        pub accept_errors: u64,
        /// Connections that were reset immediately because of [`crate::Options::connections_max`];
        /// they are not in `accepted`.
        pub refused: u64,
    }
}

/// The part of HTTP/2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Http2Stats {
    /// HTTP/2 connections since the last reset of the counts.
    pub connections: u64,
    pub requests: u64,
    /// The maximum number of concurrently open streams on one connection.
    pub streams_max: u64,
    /// Streams that the peer reset.
    pub cancelled: u64,
    /// Streams that were refused because of [`crate::Options::refuse_streams`]; they are not
    /// requests.
    pub refused: u64,
    /// Connections that were closed with GOAWAY because of [`crate::Options::goaway_after`].
    pub goaways: u64,
}

sums! {
    /// The part of gRPC, without the calls of server reflection.
    pub struct GrpcStats {
        /// Calls that started; they are requests, too. Each ends with a status, is reset, or is
        /// left by its peer.
        pub calls: u64,
        /// Messages of calls that were received, and that were given to the connection.
        pub messages_in: u64,
        pub messages_out: u64,
        /// Calls by the name of their status; codes without a name are `UNKNOWN`.
        pub statuses: BTreeMap<&'static str, u64>,
    }
}

sums! {
    /// The outcomes of deliveries. `owed - lost - dropped - late_unsent - swaps_unsent + twice`
    /// equals `written` after all delayed deliveries.
    pub struct DeliveryStats {
        /// Messages times their open receiving connections.
        pub owed: u64,
        /// Given to a socket, or waiting in memory for it; a second copy counts.
        pub written: u64,
        /// Not written because of [`crate::FaultOptions::lose_every`].
        pub lost: u64,
        /// Written with a byte that breaks the declaration.
        pub garbage: u64,
        pub twice: u64,
        /// Delayed by [`crate::FaultOptions::late_by`].
        pub late: u64,
        /// Delayed, but the connection ended before they were due.
        pub late_unsent: u64,
        /// Pairs that were written in the wrong order.
        pub swapped: u64,
        /// Held back for a swap, but the connection ended before the next delivery.
        pub swaps_unsent: u64,
        /// Not written because the peer does not read, or because a worker's mailbox was full.
        pub dropped: u64,
        /// For a connection that had ended; they are not owed.
        pub gone: u64,
    }
}

/// Events in the chat rooms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChatStats {
    /// Rooms with at least one join so far.
    pub rooms: u64,
    /// Users in a room.
    pub online: u64,
    pub joins: u64,
    /// Joins that were confirmed and forgotten because of [`crate::FaultOptions::forget_every`].
    pub joins_forgotten: u64,
    /// Joins with a wrong token, code 401.
    pub joins_refused: u64,
    /// Messages before a join, code 403.
    pub before_join: u64,
    pub likes: u64,
    pub gifts: u64,
    pub lights: u64,
    pub says: u64,
    pub leaves: u64,
    /// Connections that were closed because a packet had a wrong magic number.
    pub bad_magic: u64,
    /// … because a packet was longer than 64 KiB.
    pub bad_length: u64,
    /// … because a packet was of a kind that clients do not send.
    pub bad_kind: u64,
    /// … because the body of a packet did not fit its kind.
    pub bad_body: u64,
}

/// The outcomes of requests under the limits of [`crate::CapacityOptions`]. `admitted` is `served +
/// dropped + waiting + in_service` at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueStats {
    /// Waiting requests.
    pub waiting: u64,
    /// Requests in service.
    pub in_service: u64,
    /// The maximum number of waiting requests.
    pub waiting_max: u64,
    /// Requests that entered the queue.
    pub admitted: u64,
    pub served: u64,
    /// Requests that left the queue or their server because their client disconnected.
    pub dropped: u64,
    /// Requests whose client disconnected before they were served, and that stayed because of
    /// [`crate::CapacityOptions::work_on`].
    pub unwanted: u64,
    /// Requests that got 503 because of [`crate::CapacityOptions::queue_max`].
    pub queue_full: u64,
    /// Requests that got 429 because of [`crate::CapacityOptions::rate_limit`].
    pub rate_limited: u64,
}

sums! {
    /// The counts of an MQTT broker.
    pub struct MqttStats {
        /// CONNECT packets that were accepted, and those of them with MQTT 5.
        pub connects: u64,
        pub connects_v5: u64,
        /// CONNECT packets that resumed a session.
        pub resumed: u64,
        /// CONNECT packets that were refused.
        pub refused: u64,
        /// Connections that were closed because their client connected again.
        pub taken_over: u64,
        /// DISCONNECT packets from clients.
        pub disconnects: u64,
        /// Connections that were closed because no packet arrived for 1.5 times the keep-alive
        /// time.
        pub keep_alive: u64,
        /// Connections that were closed because of a malformed or unexpected packet.
        pub broken: u64,
        /// Filters that were subscribed to and unsubscribed from.
        pub subscribes: u64,
        pub unsubscribes: u64,
        /// Subscriptions that were confirmed and then forgotten.
        pub forgotten: u64,
        /// Published messages by QoS, without repeated ones of QoS 2.
        pub published: [u64; 3],
        /// PUBLISH packets of QoS 2 that were repeated before their PUBREL.
        pub repeated: u64,
        pub wills: u64,
        /// Deliveries acknowledged by PUBACK or PUBCOMP, and acknowledgements without a matching
        /// delivery.
        pub acknowledged: u64,
        pub misnumbered: u64,
        /// Messages sent again to resumed sessions; they are not in `deliveries`.
        pub resent: u64,
        /// Messages for a subscription that were not sent: expired, too large for the client, or
        /// beyond the queue limit of a client.
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

/// The figures of all workers, and the online users.
pub(crate) struct Board {
    /// One per worker; the admin's, which are never read, are the last.
    figures: Vec<Mutex<Figures>>,
    pub(crate) people: People,
    /// Accounts that logged in or were authorized over HTTP; they are never removed.
    accounts: People,
    accounts_again: AtomicU64,
}

/// The figures of one worker. Only that worker writes them.
#[derive(Default)]
pub(crate) struct Figures {
    /// Counts and gauges; the service time in it stays empty.
    pub(crate) counts: Stats,
    pub(crate) service: Times,
    pub(crate) deliveries: DeliveryStats,
}

impl Board {
    pub(crate) fn new(workers: usize) -> Board {
        Board {
            figures: (0..=workers).map(|_| Mutex::default()).collect(),
            people: People::new(),
            accounts: People::new(),
            accounts_again: AtomicU64::new(0),
        }
    }

    /// An account logs in or is authorized over HTTP.
    pub(crate) fn account(&self, name: &str) {
        let (_, again) = self.accounts.enter(name);
        self.accounts_again.fetch_add(u64::from(again), Ordering::Relaxed);
    }

    /// The figures of one worker. They are locked during the write of a response, so that a client
    /// that has read the response finds it counted.
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

    /// Resets all counts; connections and logins do not change.
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

/// Readers add up the times of all workers.
impl Sums for ServiceTime {
    fn add(&mut self, _: &ServiceTime) {}
}

/// The logged-in users and their connections, over all workers. Users are identified by the hash of
/// their ID: eight bytes each, with a collision probability of 3e-8 among a million.
pub(crate) struct People {
    parts: Vec<Mutex<HashMap<u64, u32>>>,
}

/// Parts with a lock each, so that workers rarely wait for each other.
const PEOPLE_PARTS: usize = 64;

impl People {
    fn new() -> People {
        People { parts: (0..PEOPLE_PARTS).map(|_| Mutex::default()).collect() }
    }

    /// The key of the user, and whether the user was online already.
    pub(crate) fn enter(&self, user: &str) -> (u64, bool) {
        let mut hasher = DefaultHasher::new();
        user.hash(&mut hasher);
        let key = hasher.finish();
        let mut part = lock(self.part(key));
        let connections = part.entry(key).or_insert(0);
        *connections += 1;
        (key, *connections > 1)
    }

    pub(crate) fn leave(&self, key: u64) {
        let mut part = lock(self.part(key));
        if let Some(connections) = part.get_mut(&key) {
            *connections -= 1;
            if *connections == 0 {
                part.remove(&key);
            }
        }
    }

    /// The number of different online users.
    pub(crate) fn online(&self) -> u64 {
        self.parts.iter().map(|part| lock(part).len() as u64).sum()
    }

    fn forget(&self) {
        self.parts.iter().for_each(|part| lock(part).clear());
    }

    fn part(&self, key: u64) -> &Mutex<HashMap<u64, u32>> {
        &self.parts[key as usize % PEOPLE_PARTS]
    }
}

/// A panic while figures were locked leaves them as correct as they were.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_online_until_the_last_connection_leaves() {
        let people = People::new();
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
        let board = Board::new(2);
        for worker in 0..2 {
            let mut figures = board.figures(worker);
            figures.counts.connections.open = 3;
            figures.counts.requests = 5;
            figures.service.record(1000);
        }
        assert_eq!((board.stats().requests, board.stats().service_time.count), (10, 2));
        board.reset();
        let stats = board.stats();
        assert_eq!((stats.connections.open, stats.requests, stats.service_time.count), (6, 0, 0));
    }
}
