//! What a server knows about itself: each worker writes its own figures, readers add them up.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::sums::Sums;
use crate::times::Times;

sums! {
    /// What a server has served, as `/throng/stats` tells it.
    pub struct Stats {
        pub connections: ConnectionStats,
        /// HTTP requests completely read, upgrades included, without those for `/throng/…`; over
        /// whatever version.
        pub requests: u64,
        pub http2: Http2Stats,
        pub grpc: GrpcStats,
        /// WebSocket messages, and pieces of bytes on raw connections, that were received.
        pub messages: u64,
        pub bytes_in: u64,
        pub bytes_out: u64,
        /// Answers that were errors because of [`crate::Options::errors`].
        pub errors_sent: u64,
        /// Requests answered by a reset because of [`crate::Options::resets`].
        pub resets_sent: u64,
        /// Requests refused because they were no HTTP, no WebSocket or too large.
        pub refused: u64,
        /// Answers that were dropped because the peer was gone before they were written.
        pub unanswered: u64,
        /// Connections that are logged in now.
        pub logged_in: u64,
        pub logins: u64,
        /// Logins of a user who was logged in on another connection.
        pub double_logins: u64,
        pub heartbeats: u64,
        /// Event streams that were answered, those of them that began behind a `Last-Event-ID`, and
        /// the events that were given to their sockets.
        pub event_streams: u64,
        pub event_streams_resumed: u64,
        pub events: u64,
        pub broadcasts: u64,
        /// Broadcast messages, one for each connection that gets one.
        pub broadcast_messages: u64,
        /// Broadcast messages not sent because the peer does not read.
        pub broadcast_messages_dropped: u64,
        /// Different accounts that logged in or were authorised over HTTP.
        pub accounts: u64,
        /// Logins and authorisations of an account that had had one before.
        pub accounts_again: u64,
        /// Of messages from one connection to others; only of servers that deliver.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub deliveries: Option<DeliveryStats>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub chat: Option<ChatStats>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub mqtt: Option<MqttStats>,
        /// What a push service tells about itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub push: Option<serde_json::Value>,
        /// Of the limits of [`crate::CapacityOptions`]; only of a server that has some.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub queue: Option<QueueStats>,
        /// From when the last byte of a request arrived until its answer was written to the socket.
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
        /// Connections that were reset at once because of [`crate::Options::connections_max`]; they
        /// are not in `accepted`.
        pub refused: u64,
    }
}

/// What of it all came over HTTP/2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Http2Stats {
    /// Connections that spoke it; as all counts since they were last set back.
    pub connections: u64,
    pub requests: u64,
    /// The most streams that were open at once on one connection.
    pub streams_max: u64,
    /// Streams that the peer reset.
    pub cancelled: u64,
    /// Streams that were refused because of [`crate::Options::refuse_streams`]; none is a request.
    pub refused: u64,
    /// Connections that were left because of [`crate::Options::goaway_after`].
    pub goaways: u64,
}

sums! {
    /// What of that was gRPC, without the calls of server reflection.
    pub struct GrpcStats {
        /// Calls that began; they are requests too. Each ends with a status, is reset, or its peer
        /// leaves it.
        pub calls: u64,
        /// Messages of calls that came, and that were given to the connection.
        pub messages_in: u64,
        pub messages_out: u64,
        /// How many calls ended with which status, by its name; numbers without one are `UNKNOWN`.
        pub statuses: BTreeMap<&'static str, u64>,
    }
}

sums! {
    /// What became of deliveries. `owed - lost - dropped - late_unsent - swaps_unsent + twice` is
    /// `written` once nothing is held back any more.
    pub struct DeliveryStats {
        /// Messages times the open connections that they were for.
        pub owed: u64,
        /// Given to a socket, or waiting for it in memory; a second copy counts.
        pub written: u64,
        /// Not written because of [`crate::FaultOptions::lose_every`].
        pub lost: u64,
        /// Written with a byte that breaks the declaration.
        pub garbage: u64,
        pub twice: u64,
        /// Held back by [`crate::FaultOptions::late_by`].
        pub late: u64,
        /// Held back, but the connection ended before they were due.
        pub late_unsent: u64,
        /// Pairs that were written in the wrong order.
        pub swapped: u64,
        /// Held back for a swap, but the connection ended before another came.
        pub swaps_unsent: u64,
        /// Not written because the peer does not read, or because a worker's mailbox was full.
        pub dropped: u64,
        /// To one connection that was gone; they are not owed.
        pub gone: u64,
    }
}

sums! {
    /// What happened in the chat rooms.
    pub struct ChatStats {
        /// Rooms that anybody ever joined.
        pub rooms: u64,
        /// Users in a room now.
        pub online: u64,
        pub joins: u64,
        /// Joins that were answered and forgotten because of [`crate::FaultOptions::forget_every`].
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
        /// Connections closed because a packet did not begin as it must.
        pub bad_magic: u64,
        /// … because a packet was longer than 64 KiB.
        pub bad_length: u64,
        /// … because a packet was of no kind that a client sends.
        pub bad_kind: u64,
        /// … because the body of a packet did not fit its kind.
        pub bad_body: u64,
    }
}

sums! {
    /// What became of the requests that met the limits of [`crate::CapacityOptions`]. `admitted` is
    /// `served + dropped + waiting + in_service` at any time.
    pub struct QueueStats {
        /// Requests that wait for a server now.
        pub waiting: u64,
        /// Requests that are in service now.
        pub in_service: u64,
        /// The most requests that waited at once.
        pub waiting_max: u64,
        /// Requests that entered the queue.
        pub admitted: u64,
        pub served: u64,
        /// Requests that left the queue, or their server, because their client had gone.
        pub dropped: u64,
        /// Requests whose client had gone before they were served, and that stayed because of
        /// [`crate::CapacityOptions::work_on`].
        pub unwanted: u64,
        /// Requests that got 503 because of [`crate::CapacityOptions::queue_max`].
        pub queue_full: u64,
        /// Requests that got 429 because of [`crate::CapacityOptions::rate_limit`].
        pub rate_limited: u64,
    }
}

sums! {
    /// What a broker of MQTT has done.
    pub struct MqttStats {
        /// CONNECT packets that were accepted, and of these those of MQTT 5.
        pub connects: u64,
        pub connects_v5: u64,
        /// Those that resumed a session.
        pub resumed: u64,
        /// CONNECT packets that were refused.
        pub refused: u64,
        /// Connections closed because their client connected again.
        pub taken_over: u64,
        /// DISCONNECT packets of clients.
        pub disconnects: u64,
        /// Connections closed because nothing came for 1.5 times the keep-alive time.
        pub keep_alive: u64,
        /// Connections closed because of a malformed packet, or one that may not come.
        pub broken: u64,
        /// Filters subscribed to and left.
        pub subscribes: u64,
        pub unsubscribes: u64,
        /// Subscriptions that were confirmed and then forgotten.
        pub forgotten: u64,
        /// Messages that were published, by their QoS; without repeated ones of QoS 2.
        pub published: [u64; 3],
        /// PUBLISH packets of QoS 2 that were repeated before their PUBREL.
        pub repeated: u64,
        pub wills: u64,
        /// Deliveries acknowledged by PUBACK or PUBCOMP, and acknowledgements that fit no delivery.
        pub acknowledged: u64,
        pub misnumbered: u64,
        /// Messages sent again to resumed sessions; they are not in `deliveries`.
        pub resent: u64,
        /// Messages for a subscription that were not sent: expired, too large for the client, or
        /// more than wait for one client.
        pub left_out: u64,
        /// Sessions now, those without a connection included; subscriptions; retained messages.
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

/// The figures of all workers and the people who are online.
pub(crate) struct Board {
    /// Of each worker; the admin's, which nobody asks for, are the last.
    figures: Vec<Mutex<Figures>>,
    pub(crate) people: People,
    /// Who logged in or was authorised over HTTP; nobody leaves it.
    accounts: People,
    accounts_again: AtomicU64,
}

/// The figures of one worker. Only the worker writes them.
#[derive(Default)]
pub(crate) struct Figures {
    /// Counts and gauges; the service time in it is left empty.
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

    /// An account logs in or is authorised over HTTP.
    pub(crate) fn account(&self, name: &str) {
        let (_, again) = self.accounts.enter(name);
        self.accounts_again.fetch_add(u64::from(again), Ordering::Relaxed);
    }

    /// The figures of one worker. They are held over the write of an answer, so that whoever has
    /// read the answer finds it counted.
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

    /// Sets all counts back; what is open stays open and who is logged in stays so.
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

/// A reader takes them from the times of all workers.
impl Sums for ServiceTime {
    fn add(&mut self, _: &ServiceTime) {}
}

/// A push service counts for itself.
impl Sums for serde_json::Value {
    fn add(&mut self, _: &serde_json::Value) {}
}

/// Which users are logged in, on how many connections, over all workers. Users are known by the
/// hash of their id: eight bytes each, and a collision among a million is a chance of 3e-8.
pub(crate) struct People {
    parts: Vec<Mutex<HashMap<u64, u32>>>,
}

/// Parts with a lock each, so that workers seldom wait for each other.
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

    /// How many different users are online.
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

/// A panic elsewhere while figures were held leaves them as true as they were.
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
