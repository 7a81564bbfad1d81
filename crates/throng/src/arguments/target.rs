//! What `throng target` is told. Nothing but this and the command itself knows the reference
//! servers: no other code of the binary links to them.

use std::net::SocketAddr;
use std::time::Duration;
use throng_base::Said;

use clap::{Args, ValueEnum};

use super::values::{count, duration, share, size};
use crate::choice::Choice;

#[derive(Args, Debug)]
#[command(after_help = "Latencies: `20ms`, `10ms..50ms` (uniform), `exponential 20ms` (mean), \
    `stall 500ms every 5s` (the whole server answers nothing during the first 500 ms of every 5 \
    s).\n\nhttp: HTTP/1.1 and HTTP/2 on one port, with --tls as the client chooses (ALPN), else by its first \
    bytes (h2c with prior knowledge). The request headers `sleep` (ms) and `times` make slow and chunked answers; \
    /bytes/N, /chunked/N, /status/CODE, /echo, /anything, /json, /redirect/N, /cookies, \
    /events?every=10ms&count=100, /digest?user=user&password=pass. gRPC over HTTP/2: the service of echo.proto, with reflection. Statistics: \
    /throng/stats, also on --admin for every kind; POST /throng/reset sets them back.\n\nchat: the chat room of \
    chat-room.yaml over its private TCP protocol; --admin also tells of one room: /room/ID. \
    Example:\n  throng target chat --listen 127.0.0.1:9000 --admin 127.0.0.1:9001 --lose-every \
    10k\n\npush: the push service of push-service.yaml over its private TCP protocol. --admin also \
    takes POST /push {\"to\": \"d17\" or [\"d1\", \"d2\"] or \"all\", \"id\": 17, \"data\": …, \"rate\": 50000}, \
    GET /online?from=0&to=999, /device/d17, /stats, /faults, POST /faults {\"lose_every\": 1000}. \
    Example:\n  throng target push --listen 127.0.0.1:9100 --admin 127.0.0.1:9101 --redis \
    redis://127.0.0.1:6390")]
pub(crate) struct TargetArguments {
    /// What to be
    #[arg(value_parser = Choice::<TargetKind>::new())]
    pub(crate) kind: TargetKind,
    /// Where to listen
    #[arg(short, long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Speak TLS, with a certificate that nobody knows (`tls: {verify: false}` accepts it)
    #[arg(long)]
    pub(crate) tls: bool,
    /// Where statistics are served over HTTP
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) admin: Option<SocketAddr>,
    /// How long answers take
    #[arg(long, value_parser = latency, default_value = "none")]
    pub(crate) latency: throng_target::Latency,
    /// The share of requests answered by an error: `1%`
    #[arg(long, value_parser = share, default_value = "0%")]
    pub(crate) errors: f64,
    /// The share of requests answered by a reset of the connection, over HTTP/2 of the stream: `1%`
    #[arg(long, value_parser = share, default_value = "0%")]
    pub(crate) resets: f64,
    /// http: the share of HTTP/2 streams refused before anything is done with them: `1%`
    #[arg(long, value_parser = share, default_value = "0%")]
    pub(crate) refuse_streams: f64,
    /// http: leave an HTTP/2 connection with a GOAWAY at its Nth request
    #[arg(long, value_name = "N")]
    pub(crate) goaway_after: Option<u64>,
    /// http: how many streams of HTTP/2 a client may have open at once on a connection
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(crate) streams: u32,
    /// Close every connection at this age
    #[arg(long, value_parser = duration)]
    pub(crate) close_after: Option<Duration>,
    /// Accept one connection in this time on each thread, and let the others wait
    #[arg(long, value_parser = duration)]
    pub(crate) slow_accept: Option<Duration>,
    /// The size of the default answer's body
    #[arg(long, value_parser = size, default_value = "13")]
    pub(crate) body: u64,
    /// How many connections to make room for
    #[arg(long, value_parser = count, default_value = "100k")]
    pub(crate) connections: u64,
    /// Threads; one per processor, or as many as the connections need
    #[arg(long)]
    pub(crate) workers: Option<usize>,
    /// Give the connections of one source address all to one thread, those of the next address to
    /// the next: less work for the host where they come from many; spread evenly if left out
    #[arg(long)]
    pub(crate) by_source: bool,
    /// im: send a message to everybody this often
    #[arg(long, value_parser = duration)]
    pub(crate) broadcast_every: Option<Duration>,
    /// The seed of latencies and faults
    #[arg(long, default_value = "1")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) deliveries: DeliveryArguments,
    #[command(flatten)]
    pub(crate) push: PushArguments,
}

/// What goes wrong between one user and the others, exactly and counted.
#[derive(Args, Debug)]
#[command(next_help_heading = "Deliveries (chat, push)")]
pub(crate) struct DeliveryArguments {
    /// Gather for this long what is for a user, and write it together; at once if left out
    #[arg(long, value_parser = duration)]
    pub(crate) batch: Option<Duration>,
    /// Do not write every N-th delivery: `10k`
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) lose_every: Option<u64>,
    /// Break the kind of the packet of every N-th delivery
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) garbage_every: Option<u64>,
    /// Write every N-th delivery twice
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) twice_every: Option<u64>,
    /// Write every N-th delivery late
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) late_every: Option<u64>,
    /// How late
    #[arg(long, value_parser = duration, default_value = "3s")]
    pub(crate) late_by: Duration,
    /// Write every N-th delivery behind the next one to the same user
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) swap_every: Option<u64>,
    /// Answer every N-th login, and forget it
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) forget_every: Option<u64>,
}

/// What only a push service does.
#[derive(Args, Debug)]
#[command(next_help_heading = "The push service")]
pub(crate) struct PushArguments {
    /// Mirror who is online to the set `presence` of this Redis
    #[arg(long, value_name = "URL", value_parser = redis)]
    pub(crate) redis: Option<throng_target::RedisAddress>,
    /// Answer a bind only when Redis has confirmed it
    #[arg(long)]
    pub(crate) redis_wait: bool,
    /// How long Redis may take; a bind that waits longer is answered with code 2
    #[arg(long, value_parser = duration, default_value = "1s")]
    pub(crate) redis_timeout: Duration,
    /// Take a device offline that says nothing for this long
    #[arg(long, value_parser = duration)]
    pub(crate) idle_timeout: Option<Duration>,
    /// Push to every device this often, evenly spread
    #[arg(long, value_parser = duration)]
    pub(crate) push_every: Option<Duration>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TargetKind {
    /// HTTP/1.1
    Http,
    /// Echoes bytes, and messages of WebSockets
    Echo,
    /// The WebSocket messenger of im-websocket.yaml: login, heartbeat, broadcast
    Im,
    /// The chat room of chat-room.yaml: rooms, presence, everyone hears what is said
    Chat,
    /// The push service of push-service.yaml: presence, pushes to one, some or all
    Push,
}

fn redis(text: &str) -> Result<throng_target::RedisAddress, String> {
    text.parse().map_err(|error: Said| error.spoken())
}

fn latency(text: &str) -> Result<throng_target::Latency, String> {
    text.parse()
        .map_err(|error: throng_target::LatencyError| tell!("{}; {}", error.message, error.help))
}
