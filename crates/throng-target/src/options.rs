//! The options of a server, and checks for impossible values.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::{Args, ValueEnum};
use throng_base::Said;
use throng_base::flags::{count, duration, rate, share, size, unit};

use crate::faults::{FaultOptions, not_given};
use crate::latency::Latency;
use crate::queue::CapacityOptions;
use crate::redis::RedisAddress;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TargetKind {
    /// HTTP/1.1, HTTP/2 and gRPC
    Http,
    /// Echoes bytes and WebSocket messages
    Echo,
    /// The WebSocket messenger of im-websocket.yaml: login, heartbeat, broadcast
    Im,
    /// The chat room of chat-room.yaml: rooms, presence, messages to all users in the room
    Chat,
    /// The push service of push-service.yaml: presence, pushes to one, some or all devices
    Push,
    /// A broker for MQTT 3.1.1 and 5: QoS 0 to 2, wills, retained messages, shared subscriptions
    Mqtt,
}

impl TargetKind {
    /// Whether the server delivers messages between connections.
    pub(crate) fn delivers(self) -> bool {
        matches!(self, TargetKind::Chat | TargetKind::Push | TargetKind::Mqtt)
    }
}

/// What only a push service does.
#[derive(Args, Clone, Debug, PartialEq)]
#[command(next_help_heading = "The push service")]
pub struct PushOptions {
    /// Mirror the online devices to the set `presence` on this Redis server
    #[arg(long, value_name = "URL", value_parser = redis)]
    pub redis: Option<RedisAddress>,
    /// Reply to a bind only after Redis has confirmed it
    #[arg(long)]
    pub redis_wait: bool,
    /// Redis timeout; a bind that waits longer gets a reply with code 2
    #[arg(long, value_parser = duration, default_value = "1s")]
    pub redis_timeout: Duration,
    /// Leave this share of devices in Redis when they go offline: `1%`
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0%")]
    pub skip_clear: f64,
    /// Mark a device as offline if it has sent nothing for this long
    #[arg(long, value_parser = duration)]
    pub idle_timeout: Option<Duration>,
    /// Push to every device at this interval, evenly spread over time
    #[arg(long, value_parser = duration)]
    pub push_every: Option<Duration>,
}

impl Default for PushOptions {
    fn default() -> PushOptions {
        not_given()
    }
}

impl PushOptions {
    /// Checks for impossible values.
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

/// The first error that applies.
fn first<const FAULTS: usize>(faults: [(bool, Said); FAULTS]) -> Option<Said> {
    faults.into_iter().find_map(|(is_there, fault)| is_there.then_some(fault))
}

/// Receives messages to the user while the server runs. Called from the server's threads.
pub(crate) type TellUser = fn(&str);

/// What a server is told before it starts: flags of `throng target`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Address to listen on
    #[arg(short, long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Use TLS with a self-signed certificate (`tls: {verify: false}` accepts it)
    #[arg(long)]
    pub tls: bool,
    /// Address for statistics over HTTP
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub admin: Option<SocketAddr>,
    /// Latency of responses
    #[arg(long, value_parser = unit::<Latency>, default_value = "none")]
    pub latency: Latency,
    /// Share of requests that get an error response: `1%`
    #[arg(long, value_parser = share, default_value = "0%")]
    pub errors: f64,
    /// Share of requests that get a connection reset, or a stream reset over HTTP/2: `1%`
    #[arg(long, value_parser = share, default_value = "0%")]
    pub resets: f64,
    /// http: share of HTTP/2 streams refused before any processing: `1%`
    #[arg(long, value_parser = share, default_value = "0%")]
    pub refuse_streams: f64,
    /// http: close an HTTP/2 connection with GOAWAY at its Nth request
    #[arg(long, value_name = "N")]
    pub goaway_after: Option<u64>,
    /// http: maximum number of concurrent HTTP/2 streams on a connection
    #[arg(long = "streams", value_name = "N", default_value = "1000")]
    pub streams_max: u32,
    /// Close every connection when it reaches this age
    #[arg(long, value_parser = duration)]
    pub close_after: Option<Duration>,
    /// Accept at most one connection per thread in each interval of this length; other connections
    /// wait
    #[arg(long, value_parser = duration)]
    pub slow_accept: Option<Duration>,
    /// Reset new connections while this many are open
    #[arg(long, value_name = "N", value_parser = count)]
    pub connections_max: Option<u64>,
    /// Serve at most this many new connections per second; further connections wait: `200/s`
    #[arg(long = "accept-rate", value_name = "RATE", value_parser = rate)]
    pub accept_per_s: Option<f64>,
    /// Body size of the default response
    #[arg(long, value_parser = size, default_value = "13")]
    pub body: u64,
    /// Number of connections to prepare for
    #[arg(long, value_parser = count, default_value = "100k")]
    pub connections: u64,
    /// Number of threads; by default one per processor, or more if the connections need more file
    /// descriptors
    #[arg(long)]
    pub workers: Option<usize>,
    /// Serve all connections of a source address on the same thread, which saves CPU if there are
    /// many addresses; by default, connections are spread evenly over the threads
    #[arg(long)]
    pub by_source: bool,
    /// im: send a message to all users at this interval
    #[arg(long, value_parser = duration)]
    pub broadcast_every: Option<Duration>,
    /// Random seed for latencies and faults
    #[arg(long, default_value = "1")]
    pub seed: u64,
    #[command(flatten)]
    pub capacity: CapacityOptions,
    /// Batch messages to a user for this long and write them together; by default, write them
    /// immediately
    #[arg(long, value_parser = duration, help_heading = "Deliveries (chat, push, mqtt)")]
    pub batch: Option<Duration>,
    #[command(flatten)]
    pub faults: FaultOptions,
    #[command(flatten)]
    pub push: PushOptions,
    // Called once for each condition such as a full descriptor table.
    #[arg(skip)]
    pub told: Option<TellUser>,
}

/// A server of this process, on any port.
impl Default for Options {
    fn default() -> Options {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Options { listen, connections: 10_000, ..not_given() }
    }
}

/// Maximum number of threads.
const WORKERS_MAX: usize = 4096;
/// Maximum size of a body: a terabyte.
pub(crate) const BODY_BYTES_MAX: u64 = 1 << 40;

impl Options {
    /// Checks for impossible values.
    pub(crate) fn check(&self, kind: TargetKind) -> io::Result<()> {
        let share = |share: f64| (0.0..=1.0).contains(&share);
        let zero = |duration: Option<Duration>| duration.is_some_and(|d| d.is_zero());
        let is_silent = kind == TargetKind::Im && zero(self.broadcast_every);
        let push = self.push.fault().filter(|_| kind == TargetKind::Push);
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
            (
                self.batch.is_some_and(|batch| batch > BATCH_MAX),
                say!("deliveries can be batched for at most one minute"),
            ),
            (zero(self.slow_accept), say!("the `--slow-accept` time must be more than 0")),
            (self.connections_max == Some(0), say!("a server must allow at least one connection")),
            (
                self.accept_per_s.is_some_and(|rate| !is_positive(rate)),
                say!("the rate of accepted connections must be more than 0"),
            ),
            (
                kind != TargetKind::Http && self.capacity.any(),
                say!("only `throng target http` has a queue and a rate limit"),
            ),
            (
                !kind.delivers() && (self.faults.any() || self.batch.is_some()),
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
                Err(io::Error::new(io::ErrorKind::InvalidInput, throng_base::SaidError(fault)))
            }
            None => Ok(()),
        }
    }
}

/// Maximum time for which deliveries are batched.
const BATCH_MAX: Duration = Duration::from_mins(1);

/// The number of workers, and whether each has a separate descriptor table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Workers {
    pub(crate) workers: usize,
    pub(crate) own_tables: bool,
}

impl Workers {
    /// `descriptors` is the size of one table. A tenth of it is a reserve, because the kernel
    /// distributes connections over listeners at random.
    pub(crate) fn new(options: &Options, cores: usize, descriptors: u64) -> Workers {
        let usable = (descriptors / 10 * 9).max(1);
        let needed = usize::try_from(options.connections.div_ceil(usable)).unwrap_or(WORKERS_MAX);
        let workers = options.workers.unwrap_or(cores.max(needed).clamp(1, WORKERS_MAX));
        Workers { workers, own_tables: options.connections > usable && workers > 1 }
    }
}

fn redis(text: &str) -> Result<RedisAddress, String> {
    text.parse().map_err(|error: Said| error.spoken())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_workers_grows_with_the_connections() {
        let workers = |connections, workers| {
            Workers::new(&Options { connections, workers, ..Options::default() }, 2, 20_000)
        };
        assert_eq!(workers(10_000, None), Workers { workers: 2, own_tables: false });
        assert_eq!(workers(18_001, None), Workers { workers: 2, own_tables: true });
        assert_eq!(workers(100_000, None), Workers { workers: 6, own_tables: true });
        assert_eq!(workers(1_000_000, None), Workers { workers: 56, own_tables: true });
        assert_eq!(workers(1_000_000, Some(1)), Workers { workers: 1, own_tables: false });
    }

    #[test]
    fn impossible_options_are_rejected() {
        let check = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options.check(TargetKind::Http).is_ok()
        };
        assert!(check(|_| ()));
        assert!(!check(|o| o.errors = f64::NAN));
        assert!(!check(|o| (o.errors, o.resets) = (0.6, 0.6)));
        assert!(!check(|o| o.workers = Some(0)));
        assert!(!check(|o| o.close_after = Some(Duration::ZERO)));
        let (low, high) = (Duration::from_secs(2), Duration::from_secs(1));
        assert!(
            Options { latency: Latency::Uniform(low, high), ..Options::default() }
                .check(TargetKind::Echo)
                .is_err()
        );
        let silent = Options { broadcast_every: Some(Duration::ZERO), ..Options::default() };
        assert!(silent.check(TargetKind::Im).is_err());
    }

    #[test]
    fn impossible_options_of_a_push_service_are_rejected() {
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
