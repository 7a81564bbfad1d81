//! The flags of `throng bench`: one URL, and everything that a scenario would define for it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use throng_base::flags::{count, duration, size};
use throng_program::HttpVersion;
use throng_run::{HostLimits, SearchOptions};
use throng_scenario::bench::BenchStage;
use throng_scenario::precision;

use super::route::RouteArguments;
use super::run::OutputArguments;
use super::scheme::SchemeArguments;
use super::values::{Rates, http_version, rates, source, stage};

const BENCH_HELP: &str = "Examples:\n\
     \x20 throng bench http://127.0.0.1:8080/ -c 100 -d 30s\n\
     \x20 throng bench http://127.0.0.1:8080/login -c 10 -n 1000 --body '{\"user\":\"a\"}' \\\n\
     \x20     -T application/json --expect-json code=0\n\
     \x20 throng bench http://127.0.0.1:8080/ -c 200 --rate 500 -d 1m\n\
     \x20 throng bench http://127.0.0.1:8080/ --rate 100..5000 --steps 8 --for 10s\n\
     \x20 throng bench --urls urls.txt -c 20\n\
     \x20 throng bench ws://127.0.0.1:8089/chat -c 1000 --body hello\n\
     \x20 throng bench ws://127.0.0.1:8089/chat -c 10000 -d 5m           (idle users)\n\
     \x20 throng bench ws://127.0.0.1:8089/chat -c 1000000 --hold 10m --heartbeat 30s \\\n\
     \x20     --source 127.1.0.0/16                  (connect, stay online, disconnect)\n\
     \x20 throng bench tcp://127.0.0.1:6379 --body 'PING\\r\\n' --delimiter '\\r\\n'\n\
     \x20 throng bench udp://127.0.0.1:9000 --hex 'de ad be ef'       (one datagram each way)\n\
     \x20 throng bench redis://127.0.0.1 --command 'GET k' -c 50 --pipeline 16\n\
    \x20 throng bench mqtt://127.0.0.1/rooms/1 -c 1000 --qos 1 --body hello     (publish)\n\
     \x20 throng bench 'mqtt://127.0.0.1/rooms/#' -c 1000 -d 5m             (subscribe)\n\
     \x20 throng bench --curl copied-from-the-browser.txt -c 50\n\
     \n\
     Options that differ between tools:\n\
     \x20 -d  is the duration, as in wrk. In hey and curl it is the body: use --body.\n\
     \x20     go-stress-testing's -data is the body, too, and is accepted.\n\
     \x20 -n  is the total number of requests for all users, as in ab, hey and oha;\n\
     \x20     in go-stress-testing it is per user.\n\
     \x20 -q  is the total rate for all users, as in oha; in hey it is per user.\n\
     \x20 -k  keeps connections open, as in ab and go-stress-testing, and is the default;\n\
     \x20     in curl it means --insecure.\n\
     \x20 -t  is rejected: threads in wrk (--shards), the time limit in ab (-d), the\n\
     \x20     timeout in hey and go-stress-testing (--timeout).\n\
     \x20 -p  is rejected: the body in ab (-D), a cURL file in go-stress-testing (--curl),\n\
     \x20     parallel HTTP/2 streams in oha.\n\
     \x20 -u  takes a URL, as in go-stress-testing, or user:password, as in curl.\n\
     \x20 hey follows redirects by default; here, as in curl, -L enables this.\n\
     \x20 Response time is measured from the scheduled start, as in wrk2, to avoid\n\
     \x20 coordinated omission, and includes the time to connect. wrk, hey and ab\n\
     \x20 count from the time of sending.";

#[derive(Args, Debug)]
#[command(after_help = BENCH_HELP)]
pub(crate) struct BenchArguments {
    /// URL to load: http://, https://, ws://, wss://, tcp://, tls://, udp://, a gRPC method as
    /// grpc://HOST:PORT/package.Service/Method, a topic as mqtt://HOST/TOPIC, redis://HOST/DB,
    /// postgres://USER:PASSWORD@HOST/DATABASE, or mysql://USER:PASSWORD@HOST/DATABASE
    pub(crate) url: Option<String>,

    /// Concurrent users, each with its own connection
    #[arg(short = 'c', long, visible_aliases = ["users", "connections"], value_parser = count, default_value = "50")]
    pub(crate) concurrency: u64,
    /// Total number of requests (messages on ws, tcp and udp) for all users
    #[arg(short = 'n', long, visible_alias = "iterations", value_parser = count)]
    pub(crate) requests: Option<u64>,
    /// Duration: `30s`, `10m`, or a number of seconds; by default 10 seconds, unless the number of
    /// requests is given
    #[arg(short = 'd', long, short_alias = 'z', visible_alias = "for", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// Bring all users online, keep them online for this long, then disconnect them
    #[arg(long, value_parser = duration, conflicts_with_all = ["duration", "requests", "warm_up"])]
    pub(crate) hold: Option<Duration>,
    /// Keep users connected and send a heartbeat at this interval (ws, tcp, udp and mqtt); on ws
    /// and mqtt, a ping by default
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) heartbeat: Option<Duration>,
    /// The heartbeat message; --body is then sent only once, as a login
    #[arg(long, value_name = "TEXT", requires = "heartbeat", allow_hyphen_values = true)]
    pub(crate) heartbeat_body: Option<String>,
    /// Total requests per second for all users, regardless of how fast the target responds (open
    /// model); `100..5000` is a ramp; with --hold, the number of users that connect per second
    /// (default: 10,000)
    #[arg(short = 'q', long, short_alias = 'R', visible_alias = "qps", value_parser = rates)]
    pub(crate) rate: Option<Rates>,
    /// Divide a range of rates into this many constant rates, each lasting for the duration:
    /// `--rate 100..5000 --steps 8 --for 10s`
    #[arg(
        long,
        value_name = "N",
        requires = "rate",
        value_parser = clap::value_parser!(u32).range(2..=1000),
        conflicts_with_all = ["requests", "hold"]
    )]
    pub(crate) steps: Option<u32>,
    /// A stage of the load, `NAME=TIME@RATE` or `NAME=TIME@FROM..TO`; give it once per stage, in
    /// order: `--stages climb=10s@50..200 --stages hold=1m@200`
    #[arg(
        long,
        value_name = "STAGE",
        value_parser = stage,
        conflicts_with_all = ["rate", "requests", "duration", "hold", "capacity"]
    )]
    pub(crate) stages: Vec<BenchStage>,
    /// Read the requests from a list, one per line: `[METHOD] URL [WEIGHT]`, or `URL POST BODY` as
    /// in siege
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["curl", "body", "body_file", "hex", "hold", "heartbeat"]
    )]
    pub(crate) urls: Option<PathBuf>,
    /// Think time: how long each user pauses between two requests
    #[arg(long, value_parser = duration)]
    pub(crate) think: Option<Duration>,
    /// Maximum delay of a start, a heartbeat or the end of a pause, so that throng can process
    /// several in one wake-up [default: 250us]; 0 disables this
    #[arg(long, value_name = "TIME", value_parser = precision)]
    pub(crate) precision: Option<Duration>,
    /// Warm-up: generate the load for this long before measuring
    #[arg(long, value_parser = duration)]
    pub(crate) warm_up: Option<Duration>,

    #[command(flatten)]
    pub(crate) request: RequestArguments,
    #[command(flatten)]
    pub(crate) of_scheme: SchemeArguments,
    #[command(flatten)]
    pub(crate) expectation: ExpectationArguments,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) route: RouteArguments,
    #[command(flatten)]
    pub(crate) limits: HostLimits,
    #[command(flatten)]
    pub(crate) output: OutputArguments,

    /// Find the highest rate at which this threshold is met, such as `http p99 < 50ms`, instead of
    /// using a fixed rate; may be given more than once; see docs/capacity.md
    #[arg(
        long,
        value_name = "THRESHOLD",
        conflicts_with_all = ["requests", "duration", "hold", "warm_up", "rate"]
    )]
    pub(crate) capacity: Vec<String>,
    #[command(flatten)]
    pub(crate) search: SearchOptions,

    /// Print the scenario equivalent to this command line, and send nothing
    #[arg(long)]
    pub(crate) print_scenario: bool,
    /// Random seed, to reproduce the random choices of another run; by default a new one
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

impl BenchArguments {
    /// A search varies the rate by default: a closed loop has no capacity.
    pub(crate) fn searched(&self) -> SearchOptions {
        let vary = self.search.vary.clone().or_else(|| Some("rate".into()));
        SearchOptions { vary, ..self.search.clone() }
    }
}

#[derive(Args, Debug)]
#[command(next_help_heading = "The request")]
pub(crate) struct RequestArguments {
    /// HTTP method; by default GET, or POST with a body
    #[arg(short = 'm', long, short_alias = 'X')]
    pub(crate) method: Option<String>,
    /// A header, `Name: value`; may be given more than once
    #[arg(short = 'H', long = "header", value_name = "HEADER", allow_hyphen_values = true)]
    pub(crate) headers: Vec<String>,
    /// The body, or the message on ws, tcp, udp and mqtt; `@FILE` reads it from a file
    #[arg(long, visible_alias = "data", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) body: Option<String>,
    /// Read the body from this file
    #[arg(short = 'D', long, value_name = "FILE")]
    pub(crate) body_file: Option<PathBuf>,
    /// The message as bytes in hex: `de ad be ef`
    #[arg(long, value_name = "HEX")]
    pub(crate) hex: Option<String>,
    /// Content-Type of the body
    #[arg(short = 'T', long)]
    pub(crate) content_type: Option<String>,
    /// Basic authentication, `user:password`; -u also accepts the URL
    #[arg(
        short = 'a',
        long,
        short_alias = 'u',
        value_name = "USER:PASSWORD",
        allow_hyphen_values = true
    )]
    pub(crate) auth: Option<String>,
    /// Use Digest authentication instead of Basic, with the user from --auth
    #[arg(long)]
    pub(crate) digest: bool,
    /// A cookie, `name=value`; may be given more than once
    #[arg(
        short = 'b',
        long = "cookie",
        short_alias = 'C',
        value_name = "COOKIE",
        allow_hyphen_values = true
    )]
    pub(crate) cookies: Vec<String>,
    /// Follow redirects that stay on the target
    #[arg(short = 'L', long, visible_alias = "redirect")]
    pub(crate) follow: bool,
    /// Read the request from a file with a cURL command, as copied from a browser
    #[arg(long, value_name = "FILE")]
    pub(crate) curl: Option<PathBuf>,
    /// A WebSocket subprotocol to offer; may be given more than once
    #[arg(long = "subprotocol", value_name = "NAME")]
    pub(crate) subprotocols: Vec<String>,
    /// Use HTTP/2: negotiated by ALPN over TLS, otherwise with prior knowledge
    #[arg(long, visible_alias = "http2-prior-knowledge", conflicts_with = "http_version")]
    pub(crate) http2: bool,
    /// `1.1`, `2`, or `auto` (over TLS, the target chooses)
    #[arg(long, value_name = "VERSION", value_parser = http_version)]
    pub(crate) http_version: Option<HttpVersion>,
    /// Concurrent requests on each HTTP/2 connection; when one ends, the next one starts
    #[arg(long, visible_alias = "max-concurrent-streams", value_name = "N")]
    pub(crate) streams: Option<u16>,
    /// Offer permessage-deflate on WebSockets
    #[arg(long)]
    pub(crate) deflate: bool,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Expected response")]
pub(crate) struct ExpectationArguments {
    /// Expected status: `200`, `2xx`, `200..299` or a comma-separated list; by default any status
    /// below 400
    #[arg(long, visible_aliases = ["code", "expect-code"], value_name = "STATUS")]
    pub(crate) expect_status: Option<String>,
    /// A JSON field and its expected value, `data.code=200`; may be given more than once
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) expect_json: Vec<String>,
    /// Text that the body must contain
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) expect_text: Option<String>,
    /// Same as in go-stress-testing: `statusCode` means --expect-status 200, `json` means
    /// --expect-json code=200
    #[arg(short = 'v', long, value_name = "KIND")]
    pub(crate) verify: Option<Verify>,
    /// A response on tcp ends after this text (`\r\n` and `\x00` are escapes)
    #[arg(long, value_name = "TEXT", group = "until", allow_hyphen_values = true)]
    pub(crate) delimiter: Option<String>,
    /// A response on tcp ends after this many bytes
    #[arg(long, value_name = "BYTES", value_parser = size, group = "until")]
    pub(crate) length: Option<u64>,
    /// A response on tcp ends after a match of this regular expression
    #[arg(long, value_name = "REGEX", group = "until", allow_hyphen_values = true)]
    pub(crate) pattern: Option<String>,
    /// A threshold, such as `http p99 < 50ms` or `errors < 0.1%`; may be given more than once
    #[arg(long = "threshold", value_name = "THRESHOLD")]
    pub(crate) thresholds: Vec<String>,
    /// A condition that ends the run early with exit code 4, such as `errors > 10% over 10s for
    /// 20s`; may be given more than once
    #[arg(long, value_name = "CONDITION")]
    pub(crate) abort_when: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verify {
    #[value(name = "statusCode", alias = "status")]
    StatusCode,
    Json,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "The connection")]
pub(crate) struct ConnectionArguments {
    /// Open a new connection for every request
    #[arg(long, visible_alias = "disable-keepalive", visible_alias = "short")]
    pub(crate) no_keepalive: bool,
    /// Keep connections open (the default); same as -k in ab
    #[arg(short = 'k', long, conflicts_with = "no_keepalive")]
    pub(crate) keepalive: bool,
    /// Do not resend requests that the target did not process (the keep-alive connection was
    /// already closed, or HTTP/2 reported them as unprocessed); they fail instead
    #[arg(long)]
    pub(crate) no_resend: bool,
    /// Request timeout, counted from the moment the request is sent; 30 seconds by default
    #[arg(long, short = 's', value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Timeout for opening a connection; 10 seconds by default
    #[arg(long, value_parser = duration)]
    pub(crate) connect_timeout: Option<Duration>,
    /// Accept any certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Trust the certificates in this file (PEM) instead of the system certificates
    #[arg(long, visible_alias = "ca", value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// The client's certificate (PEM); its key may be in the same file, or in `--key`
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// The key of the client's certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Server name for TLS (SNI), instead of the URL's host name
    #[arg(long, visible_alias = "sni", value_name = "NAME")]
    pub(crate) server_name: Option<String>,
    /// Resume TLS sessions instead of performing full handshakes
    #[arg(long)]
    pub(crate) resume: bool,
    /// Use only IPv4 addresses
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// Use only IPv6 addresses
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Local source addresses, used as needed: `127.0.0.2`, `127.1.0.1..127.1.0.200`,
    /// `127.1.0.0/16` or `interface eth0`; may be given more than once
    #[arg(long = "source", value_name = "ADDRESSES", value_parser = source)]
    pub(crate) sources: Vec<String>,
    /// Do not keep cookies
    #[arg(long)]
    pub(crate) no_cookies: bool,
}
