//! The flags of `throng bench`: one URL, and all that a scenario would say about it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use throng_program::HttpVersion;

use super::protocol::CallArguments;
use super::route::RouteArguments;
use super::run::{LimitArguments, OutputArguments};
use super::values::{count, duration, http_version, precision, rate, size, source};

const BENCH_HELP: &str = "\
Examples:
  throng bench http://127.0.0.1:8080/ -c 100 -d 30s
  throng bench http://127.0.0.1:8080/login -c 10 -n 1000 --body '{\"user\":\"a\"}' \\
      -T application/json --expect-json code=0
  throng bench http://127.0.0.1:8080/ -c 200 --rate 500 -d 1m
  throng bench ws://127.0.0.1:8089/chat -c 1000 --body hello
  throng bench ws://127.0.0.1:8089/chat -c 10000 -d 5m           (idle users)
  throng bench ws://127.0.0.1:8089/chat -c 1000000 --hold 10m --heartbeat 30s \\
      --source 127.1.0.0/16                  (come, are held, and leave again)
  throng bench tcp://127.0.0.1:6379 --body 'PING\\r\\n' --delimiter '\\r\\n'
  throng bench udp://127.0.0.1:9000 --hex 'de ad be ef'       (a datagram, and one back)
  throng bench --curl copied-from-the-browser.txt -c 50

Where tools disagree:
  -d  is the duration, as in wrk. hey and curl mean the body: use --body. So does
      go-stress-testing's -data, which is understood.
  -n  is the number of requests of all users together, as in ab, hey and oha;
      in go-stress-testing it is per user.
  -q  is the rate of all users together, as in oha; in hey it is per user.
  -k  keeps connections, as in ab and go-stress-testing, and is the default;
      curl means --insecure.
  -t  is refused: threads in wrk (--shards), the time limit in ab (-d), the
      timeout in hey and go-stress-testing (--timeout).
  -p  is refused: the body in ab (-D), a cURL file in go-stress-testing (--curl),
      parallel HTTP/2 streams in oha.
  -u  takes a URL, as in go-stress-testing, or user:password, as in curl.
  hey and curl -L follow redirects; here only --follow does.
  Latency counts from the moment a request was due (wrk2), with the time to
  connect; wrk, hey and ab count from the moment it was sent.";

#[derive(Args, Debug)]
#[command(after_help = BENCH_HELP)]
pub(crate) struct BenchArguments {
    /// What to load: http://, https://, ws://, wss://, tcp://, tls://, udp://, or a method of gRPC
    /// as grpc://HOST:PORT/package.Service/Method
    pub(crate) url: Option<String>,

    /// Users at the same time, each with a connection of its own
    #[arg(short = 'c', long, visible_aliases = ["users", "connections"], value_parser = count, default_value = "50")]
    pub(crate) concurrency: u64,
    /// How many requests (or messages, on ws, tcp and udp) all users do together
    #[arg(short = 'n', long, visible_alias = "iterations", value_parser = count)]
    pub(crate) requests: Option<u64>,
    /// How long: `30s`, `10m`, or seconds; 10 seconds when no number is given either
    #[arg(short = 'd', long, short_alias = 'z', value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// Bring all users online, hold them this long, and send them away again
    #[arg(long, value_parser = duration, conflicts_with_all = ["duration", "requests", "warm_up"])]
    pub(crate) hold: Option<Duration>,
    /// On ws, tcp and udp: users stay, and send a heartbeat this often; on ws a ping, if nothing
    /// else is said
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) heartbeat: Option<Duration>,
    /// The message of the heartbeat; --body is then sent once, as a login
    #[arg(long, value_name = "TEXT", requires = "heartbeat", allow_hyphen_values = true)]
    pub(crate) heartbeat_body: Option<String>,
    /// Requests per second of all users together, whatever the target does (open model); with
    /// --hold, users who come per second: 10,000 if left out
    #[arg(short = 'q', long, short_alias = 'R', visible_alias = "qps", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Each user pauses this long between two requests
    #[arg(long, value_parser = duration)]
    pub(crate) think: Option<Duration>,
    /// How late starts, ends of pauses and heartbeats may be, so that several share one wake-up
    /// [default: 250us]; 0 wakes up for each
    #[arg(long, value_name = "TIME", value_parser = precision)]
    pub(crate) precision: Option<Duration>,
    /// Load for this long before anything is measured
    #[arg(long, value_parser = duration)]
    pub(crate) warm_up: Option<Duration>,

    #[command(flatten)]
    pub(crate) request: RequestArguments,
    #[command(flatten)]
    pub(crate) call: CallArguments,
    #[command(flatten)]
    pub(crate) expectation: ExpectationArguments,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) route: RouteArguments,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,

    /// Prints the scenario that this command line stands for, and sends nothing
    #[arg(long)]
    pub(crate) print_scenario: bool,
    /// The seed of all random choices, to repeat those of another run; a new one by default
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "The request")]
pub(crate) struct RequestArguments {
    /// HTTP method; GET, or POST with a body
    #[arg(short = 'm', long, short_alias = 'X')]
    pub(crate) method: Option<String>,
    /// A header, `Name: value`; may be given more than once
    #[arg(short = 'H', long = "header", value_name = "HEADER", allow_hyphen_values = true)]
    pub(crate) headers: Vec<String>,
    /// The body, or the message on ws, tcp and udp; `@FILE` reads it from a file
    #[arg(long, visible_alias = "data", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) body: Option<String>,
    /// The body from this file
    #[arg(short = 'D', long, value_name = "FILE")]
    pub(crate) body_file: Option<PathBuf>,
    /// The message as bytes in hex: `de ad be ef`
    #[arg(long, value_name = "HEX")]
    pub(crate) hex: Option<String>,
    /// Content-Type of the body
    #[arg(short = 'T', long)]
    pub(crate) content_type: Option<String>,
    /// Basic authentication, `user:password`; with -u also the URL
    #[arg(
        short = 'a',
        long,
        short_alias = 'u',
        value_name = "USER:PASSWORD",
        allow_hyphen_values = true
    )]
    pub(crate) auth: Option<String>,
    /// Digest authentication instead of Basic, with the user of --auth
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
    /// Read the request from a file with a cURL command, as browsers copy it
    #[arg(long, value_name = "FILE")]
    pub(crate) curl: Option<PathBuf>,
    /// A WebSocket sub-protocol to offer; may be given more than once
    #[arg(long = "subprotocol", value_name = "NAME")]
    pub(crate) subprotocols: Vec<String>,
    /// HTTP/2: over TLS as agreed by ALPN, else with prior knowledge
    #[arg(long, visible_alias = "http2-prior-knowledge", conflicts_with = "http_version")]
    pub(crate) http2: bool,
    /// `1.1`, `2`, or `auto`: over TLS what the target prefers of both
    #[arg(long, value_name = "VERSION", value_parser = http_version)]
    pub(crate) http_version: Option<HttpVersion>,
    /// Requests at the same time on each connection of HTTP/2, each as soon as one before it ends
    #[arg(long, visible_alias = "max-concurrent-streams", value_name = "N")]
    pub(crate) streams: Option<u16>,
    /// Offer permessage-deflate on WebSockets
    #[arg(long)]
    pub(crate) deflate: bool,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "What the answer has to be")]
pub(crate) struct ExpectationArguments {
    /// `200`, `2xx`, `200..299` or several with commas; by default anything below 400
    #[arg(long, visible_aliases = ["code", "expect-code"], value_name = "STATUS")]
    pub(crate) expect_status: Option<String>,
    /// A JSON field and its value, `data.code=200`; may be given more than once
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) expect_json: Vec<String>,
    /// A text that the body contains
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) expect_text: Option<String>,
    /// As in go-stress-testing: `statusCode` is --expect-status 200, `json` is
    /// --expect-json code=200
    #[arg(short = 'v', long, value_name = "KIND")]
    pub(crate) verify: Option<Verify>,
    /// Where an answer on tcp ends: after this text (`\r\n` and `\x00` are understood)
    #[arg(long, value_name = "TEXT", group = "until", allow_hyphen_values = true)]
    pub(crate) delimiter: Option<String>,
    /// Where an answer on tcp ends: after so many bytes
    #[arg(long, value_name = "BYTES", value_parser = size, group = "until")]
    pub(crate) length: Option<u64>,
    /// Where an answer on tcp ends: after this regular expression
    #[arg(long, value_name = "REGEX", group = "until", allow_hyphen_values = true)]
    pub(crate) pattern: Option<String>,
    /// A threshold, such as `http p99 < 50ms` or `errors < 0.1%`; may be given more than once
    #[arg(long = "threshold", value_name = "THRESHOLD")]
    pub(crate) thresholds: Vec<String>,
    /// What ends the run before its time with exit code 4, such as `errors > 10% over 10s for 20s`;
    /// may be given more than once
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
    /// A new connection for every request
    #[arg(long, visible_alias = "disable-keepalive", visible_alias = "short")]
    pub(crate) no_keepalive: bool,
    /// Keep connections: the default, as -k in ab
    #[arg(short = 'k', long, conflicts_with = "no_keepalive")]
    pub(crate) keepalive: bool,
    /// Fail a request that the target has not looked at, instead of sending it again: one that
    /// found its kept connection closed, or that HTTP/2 says so of
    #[arg(long)]
    pub(crate) no_resend: bool,
    /// How long a request may take, from the moment it is sent; 30 seconds by default
    #[arg(long, short = 's', value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// How long a connection may take to open; 10 seconds by default
    #[arg(long, value_parser = duration)]
    pub(crate) connect_timeout: Option<Duration>,
    /// Accept any certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Trust the certificates of this file (PEM) instead of the system's
    #[arg(long, visible_alias = "ca", value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// The client's certificate (PEM), with its key or beside `--key`
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// The key of the client's certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Ask for this name in TLS instead of the host of the URL
    #[arg(long, visible_alias = "sni", value_name = "NAME")]
    pub(crate) server_name: Option<String>,
    /// Resume TLS sessions instead of full handshakes
    #[arg(long)]
    pub(crate) resume: bool,
    /// Only IPv4 addresses
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// Only IPv6 addresses
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Local addresses to come from: `127.0.0.2`, `127.1.0.1..127.1.0.200`, `127.1.0.0/16` or
    /// `interface eth0`; may be given more than once, taken as needed
    #[arg(long = "source", value_name = "ADDRESSES", value_parser = source)]
    pub(crate) sources: Vec<String>,
    /// Do not keep cookies
    #[arg(long)]
    pub(crate) no_cookies: bool,
}
