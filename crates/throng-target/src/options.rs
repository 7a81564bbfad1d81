//! What a server is told before it starts, and what of it is impossible.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use throng_base::Said;

use crate::faults::FaultOptions;
use crate::latency::Latency;
use crate::queue::CapacityOptions;
use crate::redis::RedisAddress;

/// Which server.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// HTTP/1.1 and HTTP/2 with the routes of the module `http`.
    Http,
    /// Says back what it hears: bytes over TCP, messages after a WebSocket upgrade.
    Echo,
    /// A messenger over WebSocket: login, heartbeat, ping, broadcast.
    Im {
        /// How often everyone who is logged in gets a message.
        broadcast_every: Option<Duration>,
    },
    /// A chat room over a private TCP protocol: rooms, fan-out, presence, a kick on double login.
    Chat,
    /// A push service over a private TCP protocol: presence, pushes by an admin interface.
    Push(PushOptions),
    /// A broker of MQTT 3.1.1 and 5.
    Mqtt,
}

impl Kind {
    /// Whether the server delivers messages from one connection to others.
    pub(crate) fn delivers(&self) -> bool {
        matches!(self, Kind::Chat | Kind::Push(_) | Kind::Mqtt)
    }
}

/// What a push service is told before it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct PushOptions {
    /// Where the presence is mirrored to the set `presence`.
    pub redis: Option<RedisAddress>,
    /// A bind is answered only when Redis has confirmed it.
    pub redis_wait: bool,
    /// Share of the devices that are left in Redis when they go, 0 to 1.
    pub skip_clear: f64,
    /// Redis timeout; a bind that waits longer gets a reply with code 2.
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
            skip_clear: 0.0,
            redis_timeout: Duration::from_secs(1),
            idle_timeout: None,
            push_every: None,
        }
    }
}

impl PushOptions {
    /// Refuses what cannot be, in words.
    pub(crate) fn fault(&self) -> Option<Said> {
        let zero = |duration: Option<Duration>| duration.is_some_and(|d| d.is_zero());
        first([
            (self.redis_wait && self.redis.is_none(), say!("`--redis-wait` requires `--redis`")),
            (
                self.skip_clear > 0.0 && self.redis.is_none(),
                say!("`--skip-clear` requires `--redis`"),
            ),
            (self.redis_timeout.is_zero(), say!("the Redis timeout must be more than 0")),
            (zero(self.idle_timeout), say!("the idle timeout must be more than 0")),
            (zero(self.push_every), say!("the interval between pushes must be more than 0")),
        ])
    }
}

/// The first fault that there is.
fn first<const FAULTS: usize>(faults: [(bool, Said); FAULTS]) -> Option<Said> {
    faults.into_iter().find_map(|(is_there, fault)| is_there.then_some(fault))
}

/// Hears what a person should know while the server runs. Called from the server's threads.
pub(crate) type Told = Arc<dyn Fn(&str) + Send + Sync>;

/// What a server is told before it starts.
#[derive(Clone)]
pub struct Options {
    /// Where to listen. Port 0: the kernel chooses, [`crate::Running::listen`] tells.
    pub listen: SocketAddr,
    /// Speaks TLS, with a certificate of its own making.
    pub tls: bool,
    /// Where the statistics and, for `im`, the broadcast are served.
    pub admin: Option<SocketAddr>,
    /// Threads; as many as the computer has cores, or as the connections need.
    pub workers: Option<usize>,
    /// The connections of one source address all go to one worker, those of the next address to the
    /// next; else the kernel spreads them by their hash. For many sources: a worker has no more
    /// room than its table.
    pub by_source: bool,
    /// How many connections to make room for. More than one descriptor table holds are spread
    /// over workers with a table each.
    pub connections: u64,
    pub latency: Latency,
    /// The share of requests answered by an error (http: 500; im: code 500; WebSocket echo: a
    /// close with 1011; raw echo has no errors), from 0 to 1.
    pub errors: f64,
    /// The share of requests answered by a reset of the connection, over HTTP/2 of the stream, from
    /// 0 to 1.
    pub resets: f64,
    /// The share of streams of HTTP/2 that are refused before anything is done with them (RFC 9113,
    /// 8.7), from 0 to 1; none of them is a request.
    pub refuse_streams: f64,
    /// With so many requests on a connection of HTTP/2 it is left by a GOAWAY, once all answers are
    /// given.
    pub goaway_after: Option<u64>,
    /// How many streams of HTTP/2 a client may have open at once on a connection.
    pub streams_max: u32,
    /// Every connection is closed at this age, whatever it is doing: a proxy's timeout.
    pub close_after: Option<Duration>,
    /// A worker accepts one connection in this time and lets the others wait.
    pub slow_accept: Option<Duration>,
    /// More connections than this are reset when they are accepted.
    pub connections_max: Option<u64>,
    /// So many connections per second are served, over all workers; the others wait.
    pub accept_per_s: Option<f64>,
    /// What an `http` server can carry.
    pub capacity: CapacityOptions,
    /// What is to be delivered in this time is written together; zero: at once, and together
    /// only what waits anyhow.
    pub batch: Duration,
    /// Faults of deliveries and of presence, for `chat`, `push` and `mqtt`.
    pub faults: FaultOptions,
    /// The size of the default body, in bytes.
    pub body: u64,
    /// Random seed for latencies and faults.
    pub seed: u64,
    /// Hears of full descriptor tables and the like, once each; without it nobody is told.
    pub told: Option<Told>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tls: false,
            admin: None,
            workers: None,
            by_source: false,
            connections: 10_000,
            latency: Latency::None,
            errors: 0.0,
            resets: 0.0,
            refuse_streams: 0.0,
            goaway_after: None,
            streams_max: 1_000,
            close_after: None,
            slow_accept: None,
            connections_max: None,
            accept_per_s: None,
            capacity: CapacityOptions::default(),
            batch: Duration::ZERO,
            faults: FaultOptions::default(),
            body: 13,
            seed: 1,
            told: None,
        }
    }
}

/// More threads than any computer is served well by.
const WORKERS_MAX: usize = 4096;
/// The largest body that is served, a terabyte.
pub(crate) const BODY_BYTES_MAX: u64 = 1 << 40;

impl Options {
    /// Refuses what cannot be, in words.
    pub(crate) fn check(&self, kind: &Kind) -> io::Result<()> {
        let share = |share: f64| (0.0..=1.0).contains(&share);
        let zero = |duration: Option<Duration>| duration.is_some_and(|d| d.is_zero());
        let is_silent = matches!(kind, Kind::Im { broadcast_every } if zero(*broadcast_every));
        let push = if let Kind::Push(push) = kind { push.fault() } else { None };
        let shares = !share(self.errors) || !share(self.resets) || self.errors + self.resets > 1.0;
        let is_positive = |rate: f64| rate > 0.0 && rate.is_finite();
        let fault = first([
            (is_silent, say!("the interval between broadcasts must be more than 0")),
            (
                shares,
                say!("the shares of errors and resets, and their sum, must be between 0 and 1"),
            ),
            (
                !share(self.refuse_streams),
                say!("the share of refused streams must be between 0 and 1"),
            ),
            (
                self.goaway_after == Some(0) || self.streams_max == 0,
                say!("an HTTP/2 connection must allow at least one request"),
            ),
            (self.workers == Some(0), say!("a server must have at least one worker")),
            (
                self.workers.is_some_and(|n| n > WORKERS_MAX),
                say!("a server can have at most 4096 workers"),
            ),
            (self.body > BODY_BYTES_MAX, say!("a body can be at most 1 TB")),
            (zero(self.close_after), say!("the maximum connection age must be more than 0")),
            (self.batch > BATCH_MAX, say!("deliveries can be batched for at most one minute")),
            (zero(self.slow_accept), say!("the `--slow-accept` time must be more than 0")),
            (self.connections_max == Some(0), say!("a server must allow at least one connection")),
            (
                self.accept_per_s.is_some_and(|rate| !is_positive(rate)),
                say!("the rate of accepted connections must be more than 0"),
            ),
            (
                *kind != Kind::Http && self.capacity.any(),
                say!("only `throng target http` has a queue and a rate limit"),
            ),
            (
                !kind.delivers() && (self.faults.any() || !self.batch.is_zero()),
                say!("only chat, push and mqtt support batched deliveries and delivery faults"),
            ),
        ]);
        let fault = fault
            .or(push)
            .or_else(|| self.faults.fault())
            .or_else(|| self.latency.fault())
            .or_else(|| self.capacity.fault(self.latency));
        match fault {
            Some(fault) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, throng_base::Told(fault)))
            }
            None => Ok(()),
        }
    }
}

/// Deliveries are not gathered for longer than this.
const BATCH_MAX: Duration = Duration::from_mins(1);

/// How many workers a server gets, and whether each has a descriptor table of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seats {
    pub(crate) workers: usize,
    pub(crate) own_tables: bool,
}

impl Seats {
    /// `descriptors` is what one table holds. A tenth of it is headroom: the kernel spreads
    /// connections over the listeners by chance.
    pub(crate) fn new(options: &Options, cores: usize, descriptors: u64) -> Seats {
        let usable = (descriptors / 10 * 9).max(1);
        let needed = usize::try_from(options.connections.div_ceil(usable)).unwrap_or(WORKERS_MAX);
        let workers = options.workers.unwrap_or(cores.max(needed).clamp(1, WORKERS_MAX));
        Seats { workers, own_tables: options.connections > usable && workers > 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_grow_with_the_connections() {
        let seats = |connections, workers| {
            Seats::new(&Options { connections, workers, ..Options::default() }, 2, 20_000)
        };
        assert_eq!(seats(10_000, None), Seats { workers: 2, own_tables: false });
        assert_eq!(seats(18_001, None), Seats { workers: 2, own_tables: true });
        assert_eq!(seats(100_000, None), Seats { workers: 6, own_tables: true });
        assert_eq!(seats(1_000_000, None), Seats { workers: 56, own_tables: true });
        assert_eq!(seats(1_000_000, Some(1)), Seats { workers: 1, own_tables: false });
    }

    #[test]
    fn impossible_options_are_refused() {
        let check = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options.check(&Kind::Http).is_ok()
        };
        assert!(check(|_| ()));
        assert!(!check(|o| o.errors = f64::NAN));
        assert!(!check(|o| (o.errors, o.resets) = (0.6, 0.6)));
        assert!(!check(|o| o.workers = Some(0)));
        assert!(!check(|o| o.close_after = Some(Duration::ZERO)));
        let (low, high) = (Duration::from_secs(2), Duration::from_secs(1));
        assert!(
            Options { latency: Latency::Uniform(low, high), ..Options::default() }
                .check(&Kind::Echo)
                .is_err()
        );
        let im = Kind::Im { broadcast_every: Some(Duration::ZERO) };
        assert!(Options::default().check(&im).is_err());
    }

    #[test]
    fn impossible_options_of_a_push_service_are_refused() {
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
