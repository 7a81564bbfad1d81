//! The command line. Every flag is defined here and nowhere else; the help is made of this.
//! `records`: commands that look at several runs. `route`: on which way `bench` reaches its target.

mod control;
mod protocol;
mod records;
mod route;
mod target;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use throng_base::{Language, Said, units};
use throng_export::Wanted;
use throng_program::HttpVersion;
use throng_program::load::PRECISION_MAX;
use throng_scenario::LoadChanges;

use crate::choice::Choice;
use crate::machine::Described;
pub(crate) use control::{ControlArguments, What};
pub(crate) use protocol::{CallArguments, ProtocolArguments, ReflectionArguments, metadata};
pub(crate) use records::{CompareArguments, HistoryArguments};
pub(crate) use route::RouteArguments;
pub(crate) use target::{DeliveryArguments, PushArguments, TargetArguments, TargetKind};

#[derive(Debug, Parser)]
#[command(
    name = "throng",
    version,
    about = "Puts a million live users on a service from one small machine, tells the truth about \
             what happened, and says why.",
    after_help = "Exit codes: 0 goals met, 1 goals not met, 2 usage or scenario wrong (nothing was \
                  sent), 3 host not fit, 4 target unreachable, 5 result invalid, 70 a bug, 130 \
                  interrupted.\n\nLoad only services that are your own."
)]
pub(crate) struct Arguments {
    /// The language of all that is printed, `en` or `zh`; that of the locale if left out
    #[arg(long, global = true, value_name = "LANGUAGE", value_parser = language)]
    pub(crate) lang: Option<Language>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Loads one URL: http, https, ws, wss, tcp, tls or udp
    Bench(Box<BenchArguments>),
    /// Writes a commented scenario to begin with
    Init(InitArguments),
    /// Says what a scenario will do, without sending anything
    Check(CheckArguments),
    /// Does a scenario with one user, step by step, and shows what is sent and received
    Try(TryArguments),
    /// Says how many machines so many users or requests need, and what to do on each
    Plan(PlanArguments),
    /// Runs a scenario file
    Run(RunArguments),
    /// One of the processes of a run: `throng run --processes` starts it
    #[command(hide = true)]
    Post,
    /// Repeats a recorded run, from its directory alone
    Rerun(RerunArguments),
    /// Says what stands between this host and so many users, and what cures it
    Doctor(DoctorArguments),
    /// Draws the packets of a private protocol, decodes bytes and captures, encodes messages
    Protocol(ProtocolArguments),
    /// Explains the code of a message, such as `unknown-key`
    Explain(ExplainArguments),
    /// Prints the JSON Schema of scenarios or of protocol files, for editors
    Schema(SchemaArguments),
    /// Changes the load of a run that goes on: more, less, pause, mark, stop
    Control(ControlArguments),
    /// Prints the summary of a recorded run again
    Report(ReportArguments),
    /// Merges the records of one load that several machines have made
    Merge(MergeArguments),
    /// Holds recorded runs against the first of them, and names what has changed beyond noise
    Compare(CompareArguments),
    /// Lists the runs of a folder with their trend, and names what has changed for good
    History(HistoryArguments),
    /// Shows what throng does: starts its own reference target and loads it for a few seconds
    Demo(DemoArguments),
    /// A reference server with known behaviour, to test against
    Target(Box<TargetArguments>),
}

impl Command {
    /// Whether it has users or serves them, perhaps a million.
    pub(crate) fn has_users(&self) -> bool {
        matches!(
            self,
            Command::Bench(_)
                | Command::Try(_)
                | Command::Run(_)
                | Command::Post
                | Command::Rerun(_)
                | Command::Demo(_)
                | Command::Target(_)
        )
    }
}

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
    /// So late starts, ends of pauses and heartbeats may be, so that several share one waking
    /// [default: 250us]; 0 wakes for each
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
    /// Users as in the run that had this seed; drawn anew if left out
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
    /// A goal, such as `http p99 < 50ms` or `errors < 0.1%`; may be given more than once
    #[arg(long = "threshold", value_name = "GOAL")]
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
    /// Fail a request that found its kept connection closed, instead of sending it once more
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
    /// The client's certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
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

#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// The summary as JSON on standard output; see docs/json.md
    #[arg(long)]
    pub(crate) json: bool,
    /// The summary with all that is known of the generator and its host,
    /// and the first failures of each kind with what was sent and what came
    #[arg(long)]
    pub(crate) details: bool,
    /// No lines while the run goes on
    #[arg(long)]
    pub(crate) quiet: bool,
    /// No colours; the variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
    /// A label of the run in its record and reports; may be given more than once
    #[arg(long = "label", visible_alias = "tag", value_name = "NAME=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Write the verdict as JUnit XML into this file, for CI
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the summary as Markdown into this file, for pull requests
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Tell another program the figures of each second while the run goes on, or write them into a
    /// file: `prometheus=127.0.0.1:9464`, `otlp=http://…`, `csv=FILE` and more; see docs/export.md
    #[arg(long = "export", value_name = "KIND=WHERE", value_parser = export)]
    pub(crate) exports: Vec<Wanted>,
    /// Record the run in this new directory, instead of one under ./throng-runs
    #[arg(short = 'o', long, value_name = "DIR", conflicts_with = "no_record")]
    pub(crate) out: Option<PathBuf>,
    /// Record nothing
    #[arg(long)]
    pub(crate) no_record: bool,
    /// Copy so much of data, bodies and certificates into the record; what is more is recorded by
    /// its path and SHA-256 [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "no_record")]
    pub(crate) copy_max: Option<u64>,
    /// Threads; one per processor, and more where the users need more file descriptors
    #[arg(long, visible_alias = "threads", value_parser = shards)]
    pub(crate) shards: Option<usize>,
    /// Make the load in so many processes, merged as machines are: each with descriptors and
    /// memory of its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) processes: Option<u16>,
    /// Make only this part of the load, for runs that are merged later: `2/5`, or `1-3/8` for more
    /// of it
    #[arg(long, value_name = "K/N", value_parser = load_part, conflicts_with = "processes")]
    pub(crate) part: Option<LoadPart>,
}

/// What the generator may take of its host; see docs/limits.md.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Limits of the generator")]
pub(crate) struct LimitArguments {
    /// Let nobody come while throng uses this share of its processors, or all programs together
    /// use it of the host: `80%`
    #[arg(long, value_name = "SHARE", value_parser = share_of_processors)]
    pub(crate) max_cpu: Option<f64>,
    /// Let nobody come while throng takes so much memory, with what the kernel spends on its
    /// connections; half of it may be bodies and messages: `8GiB`
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub(crate) max_memory: Option<u64>,
    /// Stand back behind other programs: -20 to 19, as in nice(1); below 0 only as root
    #[arg(long, value_name = "N", value_parser = nice, allow_hyphen_values = true)]
    pub(crate) nice: Option<i32>,
    /// Begin although this host is not fit for so many users; `throng doctor` says why it is not
    #[arg(long)]
    pub(crate) force: bool,
}

/// A scenario and what is set in it.
#[derive(Args, Debug)]
pub(crate) struct ScenarioArguments {
    /// The scenario, YAML
    pub(crate) file: PathBuf,
    /// Sets a variable of the scenario: `users=500`; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Users and data as in the run that had this seed; drawn anew if neither this nor the scenario
    /// says it
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// What is changed of the load for once; its shape stays.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "The load, changed for once")]
pub(crate) struct LoadArguments {
    /// So many users at most, instead of those of the scenario; all its phases in proportion
    #[arg(short = 'u', long, visible_alias = "vus", value_name = "N", value_parser = count)]
    pub(crate) users: Option<u64>,
    /// So long in all; all phases in proportion
    #[arg(short = 'd', long = "for", visible_alias = "duration", value_name = "DURATION", value_parser = duration)]
    pub(crate) time: Option<Duration>,
    /// So many arrivals or iterations per second at most; all phases in proportion
    #[arg(long, value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// So late starts, ends of pauses and heartbeats may be, so that several share one waking; 0
    /// wakes for each
    #[arg(long, value_name = "TIME", value_parser = precision)]
    pub(crate) precision: Option<Duration>,
}

impl LoadArguments {
    pub(crate) fn changes(self) -> LoadChanges {
        LoadChanges {
            users: self.users,
            time: self.time,
            rate: self.rate,
            precision: self.precision,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Args, Debug)]
pub(crate) struct RerunArguments {
    /// The directory of the run: same scenario, files, seed, shards and labels
    pub(crate) run: PathBuf,
    /// Gives a secret variable that is masked in the record; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Run although files that were not copied, or variables of the environment, have changed
    #[arg(long)]
    pub(crate) allow_changed: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  throng plan im-websocket.yaml               by what a user of \
    its last run has cost\n  throng plan im-websocket.yaml --users 2M --machine 8cores,32GiB\n  \
    throng plan --users 1M                      idle users on WebSockets\n  throng plan --rate \
    50k/s                    requests over HTTP\n  throng plan --pv 3M --per-machine 58/s      the \
    peak of a day"
)]
pub(crate) struct PlanArguments {
    /// The scenario; without one, idle users on WebSockets, or users who ask over HTTP
    pub(crate) file: Option<PathBuf>,
    /// Sets a variable of the scenario: `users=500`; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "file")]
    pub(crate) set: Vec<String>,
    /// Users at the same time, instead of those of the scenario
    #[arg(long, value_parser = count)]
    pub(crate) users: Option<u64>,
    /// Requests per second of all users together
    #[arg(long, value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Page views a day: the rate is that of their peak
    #[arg(long, value_name = "VIEWS", value_parser = count, conflicts_with = "rate")]
    pub(crate) pv: Option<u64>,
    /// The share of the views that comes in the peak; 80% if left out
    #[arg(long, value_parser = part, requires = "pv")]
    pub(crate) share: Option<f64>,
    /// The part of the day that the peak lasts; 20% if left out
    #[arg(long, value_name = "SHARE", value_parser = part, requires = "pv")]
    pub(crate) of_day: Option<f64>,
    /// What one machine of the service carries, measured before; that of the last run if left out
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "pv")]
    pub(crate) per_machine: Option<f64>,
    /// What the machines for throng are like, `8cores,16GiB`; this host if left out
    #[arg(long, visible_alias = "machines", value_name = "MACHINE", value_parser = Described::parse)]
    pub(crate) machine: Option<Described>,
    /// Take the cost of a user from this run, instead of the last one of this scenario
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    /// Say where the bytes of a user go
    #[arg(long)]
    pub(crate) explain: bool,
    /// The plan as JSON; see docs/plan.md
    #[arg(long)]
    pub(crate) json: bool,
    /// No colours; the variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    /// No colours; the variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TryArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Only this session; by default every session once
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Users of each session, one after another
    #[arg(long, default_value = "1", value_parser = few)]
    pub(crate) users: u64,
    /// Wait for the Enter key before each step
    #[arg(long)]
    pub(crate) step: bool,
    /// Do not shorten what was sent and received
    #[arg(long)]
    pub(crate) full: bool,
    /// Show passwords, tokens and cookies, which are masked otherwise
    #[arg(long)]
    pub(crate) show_secrets: bool,
    /// Shorten pauses to this; `think` and `stay` are not waited for in full
    #[arg(long, value_parser = duration, default_value = "1s")]
    pub(crate) pause: Duration,
    /// No colours; the variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  throng init                       an HTTP service, into \
    http.yaml\n  throng init api shop.yaml         an API with a login, and accounts.csv\n  throng \
    init websocket --target ws://127.0.0.1:8089\n  throng init tcp -                 to standard \
    output\n  throng init http shop.yaml --curl copied.txt\n                                    what \
    a browser has copied")]
pub(crate) struct InitArguments {
    /// What the scenario is for
    #[arg(default_value = "http", value_parser = Choice::<InitKind>::new())]
    pub(crate) kind: InitKind,
    /// Where to write it; `http.yaml` and so on if left out, `-` is standard output
    pub(crate) file: Option<PathBuf>,
    /// The service: a URL without a path
    #[arg(long, value_name = "URL")]
    pub(crate) target: Option<String>,
    /// Make it of the cURL commands in this file, a step of each, as browsers copy them
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub(crate) curl: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InitKind {
    /// Pages or calls over HTTP
    Http,
    /// An API with a login, tokens, accounts from a file
    Api,
    /// Users who stay on a WebSocket
    Websocket,
    /// Text or bytes over TCP
    Tcp,
}

impl InitKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            InitKind::Http => "http",
            InitKind::Api => "api",
            InitKind::Websocket => "websocket",
            InitKind::Tcp => "tcp",
        }
    }
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  throng doctor shop.yaml             the host that runs this \
    scenario\n  throng doctor --users 1M            the host that runs so many users\n  throng \
    doctor --users 1M --target   the host of the service\n  throng doctor shop.yaml --fix       \
    as root: sets what the kernel lets it set\n\nExit codes: 0 fit, 2 usage or scenario wrong, \
    3 not fit. The rules are explained in docs/doctor.md.")]
pub(crate) struct DoctorArguments {
    /// A scenario: its users, targets and source addresses are what the host has to carry
    pub(crate) file: Option<PathBuf>,
    /// Sets a variable of the scenario: `users=500`; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "file")]
    pub(crate) set: Vec<String>,
    /// So many users; those of the scenario if left out, or 10,000
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) users: Option<u64>,
    /// Look at the host of the service under test, not at the one that runs throng
    #[arg(long)]
    pub(crate) target: bool,
    /// Set the settings of the kernel that are too low, and look again
    #[arg(long)]
    pub(crate) fix: bool,
    /// The same as JSON; see docs/doctor.md
    #[arg(long)]
    pub(crate) json: bool,
    /// No colours; the variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// The word in brackets: `unknown-key`; all codes if left out
    pub(crate) code: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct SchemaArguments {
    /// Of which files
    #[arg(value_enum, default_value = "scenario")]
    pub(crate) of: SchemaKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// Scenarios: `NAME.yaml`
    Scenario,
    /// Private protocols: `NAME.protocol.yaml`
    Protocol,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArguments {
    /// How long
    #[arg(short = 'd', long, value_parser = duration, default_value = "5s")]
    pub(crate) duration: Duration,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Args, Debug)]
pub(crate) struct ReportArguments {
    /// The directory of the run; the latest below ./throng-runs if left out
    pub(crate) run: Option<PathBuf>,
    /// The summary as JSON; see docs/json.md
    #[arg(long)]
    pub(crate) json: bool,
    /// With all that is known of the generator and its host,
    /// and the first failures of each kind with what was sent and what came
    #[arg(long)]
    pub(crate) details: bool,
    /// A label of the run in its record and reports; may be given more than once
    #[arg(long = "label", visible_alias = "tag", value_name = "NAME=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Write the verdict as JUnit XML into this file, for CI
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the run as a page for a browser: one file without network, `report.html` in its
    /// directory if no file is named
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub(crate) html: Option<Option<PathBuf>>,
    /// Write the summary as Markdown into this file, for pull requests
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write a row for each second and step into this CSV file, or to standard output instead of
    /// the summary; see docs/ci.md
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) csv: Option<PathBuf>,
    /// No colours
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
pub(crate) struct MergeArguments {
    /// The directories of the runs
    #[arg(num_args = 2.., required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// Record the merged run in this new directory
    #[arg(short = 'o', long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// The summary as JSON; see docs/json.md
    #[arg(long)]
    pub(crate) json: bool,
    /// With all that is known of the generator and its host,
    /// and the first failures of each kind with what was sent and what came
    #[arg(long)]
    pub(crate) details: bool,
    /// No colours
    #[arg(long)]
    pub(crate) no_color: bool,
}

/// A part of the load: the first of so many, how many of them, and of how many in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadPart {
    pub(crate) first: u64,
    pub(crate) width: u64,
    pub(crate) of: u64,
}

fn export(text: &str) -> Result<Wanted, String> {
    text.parse().map_err(|told: Said| told.spoken())
}

fn load_part(text: &str) -> Result<LoadPart, String> {
    let wrong = || say!("write `2/5`, or `1-3/8` for three of eight parts").spoken();
    let read = || {
        let (parts, of) = text.split_once('/')?;
        let (first, last) = parts.split_once('-').unwrap_or((parts, parts));
        let [first, last, of] = [first, last, of].map(|number| number.trim().parse::<u64>().ok());
        let (first, last, of) = (first?, last?, of?);
        let fits = (1..=last).contains(&first) && last <= of && of <= PARTS_MAX;
        fits.then_some(LoadPart { first: first - 1, width: last - first + 1, of })
    };
    read().ok_or_else(wrong)
}

/// More machines than a run could have.
const PARTS_MAX: u64 = 1 << 20;

fn in_words(error: &units::UnitError) -> String {
    format!("{}; {}", error.message.spoken(), error.help.spoken())
}

/// A label, which is checked where those of the scenario are.
fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| tell!("write NAME=VALUE"))?;
    Ok((name.trim().to_string(), value.to_string()))
}

fn count(text: &str) -> Result<u64, String> {
    match units::parse_count(text).map_err(|error| in_words(&error))? {
        0 => Err(tell!("it must be at least 1")),
        count => Ok(count),
    }
}

/// Users that a person still wants to look at.
fn few(text: &str) -> Result<u64, String> {
    match count(text)? {
        users @ 1..=100 => Ok(users),
        _ => Err(tell!("it is a number from 1 to 100")),
    }
}

fn language(text: &str) -> Result<Language, String> {
    Language::parse(text).ok_or_else(|| tell!("it is `en` or `zh`"))
}

/// A duration; a bare number is seconds, as in wrk and ab.
fn duration(text: &str) -> Result<Duration, String> {
    let text = match text.parse::<f64>() {
        Ok(_) => format!("{text}s"),
        Err(_) => text.to_string(),
    };
    let duration = units::parse_duration(&text).map_err(|error| in_words(&error))?;
    match duration.is_zero() {
        true => Err(tell!("it must be longer than nothing")),
        false => Ok(duration),
    }
}

/// How late something may be: `0`, or a time.
fn precision(text: &str) -> Result<Duration, String> {
    let precision = match text {
        "0" => Duration::ZERO,
        _ => units::parse_duration(text).map_err(|error| in_words(&error))?,
    };
    match precision > PRECISION_MAX {
        true => Err(tell!("at most 5ms: what is later looks like a generator that cannot keep up")),
        false => Ok(precision),
    }
}

/// A rate; a bare number is per second.
fn rate(text: &str) -> Result<f64, String> {
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    let number = units::parse_count(number).map_or(number.to_string(), |count| count.to_string());
    let text = format!("{number}/{unit}");
    let rate = units::parse_rate(&text).map_err(|error| in_words(&error))?;
    match rate > 0.0 {
        true => Ok(rate),
        false => Err(tell!("it must be more than 0")),
    }
}

fn source(text: &str) -> Result<String, String> {
    match throng_scenario::check_source(text) {
        Ok(()) => Ok(text.to_string()),
        Err((message, help)) => Err(tell!("{message}; {help}")),
    }
}

fn http_version(text: &str) -> Result<HttpVersion, String> {
    let found = HttpVersion::ALL.into_iter().find(|version| version.word() == text);
    found.ok_or_else(|| tell!("HTTP versions are `1.1`, `2` and `auto`"))
}

fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map_err(|error| in_words(&error))
}

fn share(text: &str) -> Result<f64, String> {
    match units::parse_share(text).map_err(|error| in_words(&error))? {
        share if share <= 1.0 => Ok(share),
        _ => Err(tell!("a share is at most 100%")),
    }
}

/// A share that something can be divided by.
fn part(text: &str) -> Result<f64, String> {
    share_of_processors(text)
}

fn share_of_processors(text: &str) -> Result<f64, String> {
    match share(text)? {
        share if share > 0.0 => Ok(share),
        _ => Err(tell!("it must be more than 0")),
    }
}

fn memory(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err(tell!("it must be more than 0")),
        bytes => Ok(bytes),
    }
}

fn nice(text: &str) -> Result<i32, String> {
    match text.parse() {
        Ok(nice @ -20..=19) => Ok(nice),
        _ => Err(tell!("it is a number from -20 to 19; the higher, the more it stands back")),
    }
}

fn shards(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(shards @ 1..=1024) => Ok(shards),
        _ => Err(tell!("it is a number from 1 to 1024")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_do_not_contradict_each_other() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
    }

    #[test]
    fn fingers_of_other_tools_are_understood() {
        let parse = |line: &str| {
            let words = line.split(' ').map(Into::into).collect();
            let words = crate::fingers::understood(words).expect("understood");
            match Arguments::try_parse_from(words).map(|arguments| arguments.command) {
                Ok(Command::Bench(bench)) => bench,
                other => panic!("{line}: {other:?}"),
            }
        };
        let wrk = parse("throng bench -c64 -d30s http://127.0.0.1/");
        assert_eq!((wrk.concurrency, wrk.duration), (64, Some(Duration::from_secs(30))));
        let ab = parse("throng bench -k -c 10 -n 1000 http://127.0.0.1/");
        assert_eq!((ab.requests, ab.connection.keepalive), (Some(1000), true));
        let hey = parse("throng bench -z 5s -q 100 -disable-keepalive -m POST -T a/b u");
        assert_eq!((hey.rate, hey.connection.no_keepalive), (Some(100.0), true));
        let vegeta = parse("throng bench -rate=900/s -duration=10s u");
        assert_eq!((vegeta.rate, vegeta.duration), (Some(900.0), Some(Duration::from_secs(10))));
        let go = parse("throng bench -c 1 -n 100 -u http://127.0.0.1/ -v json -data {}");
        assert_eq!(go.request.auth.as_deref(), Some("http://127.0.0.1/"));
        assert_eq!(go.expectation.verify, Some(Verify::Json));
        assert_eq!(go.request.body.as_deref(), Some("{}"));
    }

    #[test]
    fn impossible_values_are_refused() {
        for line in [
            "-c 0",
            "-c x",
            "-d 0s",
            "-d soon",
            "-q 0",
            "-q -1",
            "--shards 0",
            "-n 1.5",
            "--source 1.2.3.4/8",
        ] {
            let words = ["throng", "bench", "u"].into_iter().chain(line.split(' '));
            assert!(Arguments::try_parse_from(words).is_err(), "{line}");
        }
    }
}
