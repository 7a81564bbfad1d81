//! What `throng target` is told. Nothing but this and the command itself knows the reference
//! servers: no other code of the binary links to them.

use std::net::SocketAddr;
use std::time::Duration;
use throng_base::Said;

use clap::{Args, ValueEnum};

use super::values::{any_count, count, duration, rate, share, size, unit};
use crate::choice::Choice;

#[derive(Args, Debug)]
#[command(
    after_help = "Latencies: `20ms`, `10ms..50ms` (uniform), `exponential 20ms` (mean), `lognormal 5ms 10ms` \
     (mean, standard deviation), `stall 500ms every 5s` (the whole server does not respond during \
     the first 500 ms of every 5 s).\n\
     \n\
     http: HTTP/1.1 and HTTP/2 on one port; with --tls the client chooses (ALPN), otherwise its \
     first bytes decide (h2c with prior knowledge). The request headers `sleep` (ms) and `times` \
     make slow and chunked responses; /bytes/N, /chunked/N, /status/CODE, /echo, /anything, \
     /json, /redirect/N, /cookies, /events?every=10ms&count=100, \
     /digest?user=user&password=pass. gRPC over HTTP/2: the service of echo.proto, with \
     reflection. Statistics: /throng/stats, also on --admin for every kind; POST /throng/reset \
     resets them. /throng/law?p=99&within=50ms reports the highest rate at which the queue and \
     the rate limit meet this threshold. Example:\n\
     \x20 throng target http --listen 127.0.0.1:8080 --servers 8 --service 'exponential 1ms' \
     --queue-max 100\n\
     \n\
     chat: the chat room of chat-room.yaml over its private TCP protocol; --admin also shows a \
     single room: /room/ID. Example:\n\
     \x20 throng target chat --listen 127.0.0.1:9000 --admin 127.0.0.1:9001 --lose-every 10k\n\
     \n\
     push: the push service of push-service.yaml over its private TCP protocol. --admin also \
     takes POST /push {\"to\": \"d17\" or [\"d1\", \"d2\"] or \"all\", \"id\": 17, \"data\": …, \
     \"rate\": 50000}, GET /online?from=0&to=999, /device/d17, /stats, /faults, POST /faults \
     {\"lose_every\": 1000}. Example:\n\
     \x20 throng target push --listen 127.0.0.1:9100 --admin 127.0.0.1:9101 --redis \
     redis://127.0.0.1:6390"
)]
pub(crate) struct TargetArguments {
    /// Server to run
    #[arg(value_parser = Choice::<TargetKind>::new())]
    pub(crate) kind: TargetKind,
    /// Address to listen on
    #[arg(short, long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Use TLS with a self-signed certificate (`tls: {verify: false}` accepts it)
    #[arg(long)]
    pub(crate) tls: bool,
    /// Address for statistics over HTTP
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) admin: Option<SocketAddr>,
    /// Latency of responses
    #[arg(long, value_parser = latency, default_value = "none")]
    pub(crate) latency: throng_target::Latency,
    /// Share of requests that get an error response: `1%`
    #[arg(long, value_parser = share, default_value = "0%")]
    pub(crate) errors: f64,
    /// Share of requests that get a connection reset, or a stream reset over HTTP/2: `1%`
    #[arg(long, value_parser = share, default_value = "0%")]
    pub(crate) resets: f64,
    /// http: share of HTTP/2 streams refused before any processing: `1%`
    #[arg(long, value_parser = share, default_value = "0%")]
    pub(crate) refuse_streams: f64,
    /// http: close an HTTP/2 connection with GOAWAY at its Nth request
    #[arg(long, value_name = "N")]
    pub(crate) goaway_after: Option<u64>,
    /// http: maximum number of concurrent HTTP/2 streams on a connection
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(crate) streams: u32,
    /// Close every connection when it reaches this age
    #[arg(long, value_parser = duration)]
    pub(crate) close_after: Option<Duration>,
    /// Accept at most one connection per thread in each interval of this length; other connections
    /// wait
    #[arg(long, value_parser = duration)]
    pub(crate) slow_accept: Option<Duration>,
    /// Reset new connections while this many are open
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) connections_max: Option<u64>,
    /// Serve at most this many new connections per second; further connections wait: `200/s`
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) accept_rate: Option<f64>,
    /// Body size of the default response
    #[arg(long, value_parser = size, default_value = "13")]
    pub(crate) body: u64,
    /// Number of connections to prepare for
    #[arg(long, value_parser = count, default_value = "100k")]
    pub(crate) connections: u64,
    /// Number of threads; by default one per processor, or more if the connections need more file
    /// descriptors
    #[arg(long)]
    pub(crate) workers: Option<usize>,
    /// Serve all connections of a source address on the same thread, which saves CPU if there are
    /// many addresses; by default, connections are spread evenly over the threads
    #[arg(long)]
    pub(crate) by_source: bool,
    /// im: send a message to all users at this interval
    #[arg(long, value_parser = duration)]
    pub(crate) broadcast_every: Option<Duration>,
    /// Random seed for latencies and faults
    #[arg(long, default_value = "1")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) capacity: QueueArguments,
    #[command(flatten)]
    pub(crate) deliveries: DeliveryArguments,
    #[command(flatten)]
    pub(crate) push: PushArguments,
}

/// What an HTTP server can carry.
#[derive(Args, Debug)]
#[command(next_help_heading = "Capacity (http)")]
pub(crate) struct QueueArguments {
    /// Service time of a request, which occupies one server of the queue: `exponential 1ms`
    #[arg(long, value_name = "LATENCY", value_parser = latency)]
    pub(crate) service: Option<throng_target::Latency>,
    /// Maximum number of requests served at the same time; further requests wait in order of
    /// arrival. The default is 1, or unlimited with --usl
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) servers: Option<u64>,
    /// Respond with 503 to a request if this many are already waiting; with 0, no request waits
    #[arg(long, value_name = "N", value_parser = any_count)]
    pub(crate) queue_max: Option<u64>,
    /// Slow down concurrent requests according to the universal scalability law: `0.02,0.0005`
    #[arg(long, value_name = "CONTENTION,CROSSTALK", value_parser = unit::<throng_target::Usl>)]
    pub(crate) usl: Option<throng_target::Usl>,
    /// Respond with 429 to requests above this rate. A token bucket allows bursts of 100 ms worth
    /// of requests, or of the given number: `500/s:20`
    #[arg(long, value_name = "RATE[:BURST]", value_parser = unit::<throng_target::RateLimit>)]
    pub(crate) rate_limit: Option<throng_target::RateLimit>,
    /// Serve requests even if their client has disconnected or reset the stream; by default, such
    /// requests are removed from the queue
    #[arg(long)]
    pub(crate) work_on: bool,
    /// Duration of the server's warm-up, and its speed during that time: `60s:60%`
    #[arg(long, value_name = "TIME:SPEED", value_parser = unit::<throng_target::WarmUp>)]
    pub(crate) warm_up: Option<throng_target::WarmUp>,
    /// In each interval, run slower by this share for the given time: `45s:5s:15%`
    #[arg(
        long,
        value_name = "EVERY:TIME:SLOWER",
        value_parser = unit::<throng_target::SlowSpells>
    )]
    pub(crate) slow_spells: Option<throng_target::SlowSpells>,
}

/// What goes wrong between one user and the others, exactly and counted.
#[derive(Args, Debug)]
#[command(next_help_heading = "Deliveries (chat, push, mqtt)")]
pub(crate) struct DeliveryArguments {
    /// Batch messages to a user for this long and write them together; by default, write them
    /// immediately
    #[arg(long, value_parser = duration)]
    pub(crate) batch: Option<Duration>,
    /// Drop every N-th delivery: `10k`
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) lose_every: Option<u64>,
    /// Corrupt the packet type of every N-th delivery
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) garbage_every: Option<u64>,
    /// Write every N-th delivery twice
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) twice_every: Option<u64>,
    /// Write every N-th delivery late
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) late_every: Option<u64>,
    /// Delay of late deliveries
    #[arg(long, value_parser = duration, default_value = "3s")]
    pub(crate) late_by: Duration,
    /// Swap every N-th delivery with the next one to the same user
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) swap_every: Option<u64>,
    /// Confirm every N-th login or subscription, then forget it
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) forget_every: Option<u64>,
}

/// What only a push service does.
#[derive(Args, Debug)]
#[command(next_help_heading = "The push service")]
pub(crate) struct PushArguments {
    /// Mirror the online devices to the set `presence` on this Redis server
    #[arg(long, value_name = "URL", value_parser = redis)]
    pub(crate) redis: Option<throng_target::RedisAddress>,
    /// Reply to a bind only after Redis has confirmed it
    #[arg(long)]
    pub(crate) redis_wait: bool,
    /// Redis timeout; a bind that waits longer gets a reply with code 2
    #[arg(long, value_parser = duration, default_value = "1s")]
    pub(crate) redis_timeout: Duration,
    /// Leave this share of devices in Redis when they go offline: `1%`
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0%")]
    pub(crate) skip_clear: f64,
    /// Mark a device as offline if it has sent nothing for this long
    #[arg(long, value_parser = duration)]
    pub(crate) idle_timeout: Option<Duration>,
    /// Push to every device at this interval, evenly spread over time
    #[arg(long, value_parser = duration)]
    pub(crate) push_every: Option<Duration>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TargetKind {
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

fn redis(text: &str) -> Result<throng_target::RedisAddress, String> {
    text.parse().map_err(|error: Said| error.spoken())
}

fn latency(text: &str) -> Result<throng_target::Latency, String> {
    text.parse()
        .map_err(|error: throng_target::LatencyError| tell!("{}; {}", error.message, error.help))
}
