//! The compiled scenario: the contract between the scenario language and the engine.
//!
//! The language compiles a file or a command line to a [`Program`]; the engine runs it and knows
//! nothing else. All names are resolved, all values are typed, all defaults are filled in.
//!
//! - [`event`]: actions at set times of a run.
//! - [`failing`]: what a user does when a step fails.
//! - [`flow`]: sessions and the statements of their steps.
//! - [`audit`]: comparisons with the target's presence data and counts.
//! - [`check`]: checks and saves of responses.
//! - [`delivery`]: messages and their expected receivers, for the ledger.
//! - [`load`]: the loads and their phases, which define the number of users and when they start.
//! - [`monitor`]: sources of series in parallel to the run.
//! - [`network`]: the simulated network between users and targets.
//! - [`once`]: steps that run once, before and after the loads.
//! - [`output`]: receivers of measurements during the run.
//! - [`protocol`]: the schemes, and protocol-specific options of connections and messages.
//! - [`rate`]: starts per second over the time of a phase.
//! - [`route`]: where connections go, if not to the addresses of a target's name.
//! - [`sessions`]: which users run which session.
//! - [`statement`]: properties that every reader of the tree needs.
//! - [`text`]: texts with parts that differ per user.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

pub mod audit;
pub mod check;
pub mod delivery;
pub mod event;
pub mod failing;
#[macro_use]
pub mod flow;
pub mod load;
pub mod monitor;
pub mod network;
pub mod once;
pub mod output;
pub mod protocol;
pub mod rate;
pub mod route;
pub mod sessions;
pub mod statement;
mod tally;
pub mod text;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Said, Secrets, StepId};
use throng_expression::Value;
use throng_metrics::{AbortRule, Threshold};
pub use throng_metrics::{OncePart, StepInfo, StepKind};
use throng_protocol::framed::Protocol;
use throng_protocol::protobuf::Schema;
use throng_protocol::websocket::DeflateOffer;

pub use audit::{Audit, AuditWhat, Books, HttpSource, IDS, RedisKind, Source, UserName, View};
pub use check::{Check, Extractor, Matcher, Save, StatusSet};
pub use delivery::{Audience, Begins, Delivery, Mark};
pub use event::{Action, Change, HttpCall, Steering, TimedEvent, Trigger};
pub use failing::{Failing, OnError, RETRY_ON_MAX, Retry, RetryOn};
pub use flow::{
    Beat, BeatFault, Block, Body, Connect, DigestAuth, Ends, EventRequest, Every, Expect, Handler,
    Heartbeat, Http, LINKS_MAX, Link, Message, Pause, Rendezvous, Request, Secure, Send, Session,
    Slow, Statement, Stay, TaskBody, Until, Way, Which,
};
pub use load::{
    Amount, Arrivals, Churn, CloseMode, Coming, Drive, Iterations, Load, Phase, Start, Users,
};
pub use monitor::{Metric, Monitor, NODE_EXPORTER_PORT, Selector, host_metrics};
pub use network::UserNetwork;
pub use once::Once;
pub use output::{Output, OutputKind};
pub use protocol::*;
pub use rate::{Point, Points, Rate, Sine, Spacing};
pub use route::{ConnectTo, Endpoints, Proxy, Resolve, Routing, UnixSocket, authority};
pub use tally::tallied;
pub use text::{Composed, Escape, Segment, Text};

/// Everything a run does.
#[derive(Clone, Debug)]
pub struct Program {
    pub name: String,
    /// Labels that the operator gave to the run, by name.
    pub labels: BTreeMap<String, String>,
    pub targets: Vec<Target>,
    /// The rows of every report, indexed by [`StepId`].
    pub steps: Vec<StepInfo>,
    pub sessions: Vec<Session>,
    /// Declared protocols, by the indexes that sessions use.
    pub protocols: Vec<Arc<Protocol>>,
    /// The contents of the `proto` files, for methods and messages of calls.
    pub schema: Option<Arc<Schema>>,
    /// The row for bytes that violate a declared protocol, if there is one.
    pub broken: Option<StepId>,
    /// The row for expressions outside of steps that have no value, if there are any.
    pub expressions: Option<StepId>,
    /// Before the load, and after it.
    pub setup: Option<Box<Once>>,
    pub teardown: Option<Box<Once>>,
    /// The values that the setup has saved, by its slots; empty until it is over.
    pub setup_values: Arc<[Value]>,
    /// The messages that must reach their receivers.
    pub deliveries: Vec<Delivery>,
    /// The parallel loads; not empty.
    pub loads: Vec<Load>,
    /// How long users in the middle of a step or transaction may go on after the last phase of
    /// their load.
    pub graceful_stop: Duration,
    /// How late due actions may be so that wake-ups are shared; zero wakes for each event.
    pub precision: Duration,
    pub thresholds: Vec<Threshold>,
    /// Conditions that end the run early.
    pub abort_when: Vec<AbortRule>,
    /// While one of them holds, no users are added.
    pub hold_when: Vec<AbortRule>,
    /// Actions at set times, by the indexes that triggers use.
    pub events: Vec<TimedEvent>,
    pub tls: Tls,
    pub connection: ConnectionOptions,
    pub limits: Limits,
    /// The sources of rows, by the numbers that expressions use.
    pub data: Vec<throng_data::Source>,
    /// File descriptor tables are sized for this many users, even if the loads plan fewer.
    pub users_room: u64,
    /// The number of places where users wait for each other.
    pub rendezvous: u16,
    pub trace: Option<Trace>,
    /// Other sources that are read during the run.
    pub monitors: Vec<Monitor>,
    /// Audits of the target during the run.
    pub audits: Vec<Audit>,
    /// Receivers of the measurements of each second.
    pub outputs: Vec<Output>,
    /// The same seed gives the same users.
    pub seed: u64,
    /// `run.id`: unique, whatever the seed.
    pub run_id: String,
    /// Texts that must not be shown.
    pub secrets: Secrets,
    /// Changes of the scenario's load by command-line options, as messages.
    pub changes: Vec<Said>,
}

impl Program {
    pub fn step(&self, id: StepId) -> &StepInfo {
        &self.steps[id.index()]
    }

    /// Whether the presence of every user must be tracked.
    pub fn asks_presence(&self) -> bool {
        self.audits.iter().any(|audit| !audit.views().is_empty())
    }
}

/// Requests that carry a trace context, so that they can be found in tracing (W3C Trace Context).
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The name of the header.
    pub header: String,
    /// Share of the requests that carry it, 0 to 1.
    pub share: f64,
}

impl Program {
    /// By target, the first of those among which users are distributed; empty if there is no
    /// choice.
    pub fn services(&self) -> Vec<u16> {
        let mut services: Vec<u16> = (0..self.targets.len() as u16).collect();
        let all = services.clone();
        for link in self.sessions.iter().flat_map(|session| &session.links) {
            let choice = if link.targets.is_empty() { &all[..] } else { &link.targets };
            let known = choice.iter().map(|target| services[usize::from(*target)]);
            let Some(first) = known.min() else { continue };
            let joined: Vec<u16> =
                choice.iter().map(|target| services[usize::from(*target)]).collect();
            services.iter_mut().filter(|it| joined.contains(it)).for_each(|it| *it = first);
        }
        if services == all { Vec::new() } else { services }
    }
}

/// One address of the service. Users are distributed over all targets by weight, and over all
/// addresses of a name in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub scheme: Scheme,
    /// A name or an address; an IPv6 address without brackets.
    pub host: String,
    pub port: u16,
    pub weight: u32,
    /// Connections go there, whatever the address and port of the name.
    pub unix_socket: Option<UnixSocket>,
    pub lookup: Lookup,
    /// The response header that names the instance behind the address, in lower case.
    pub instance: Option<Arc<str>>,
    /// Credentials in the URL, if any.
    pub login: Option<Arc<Login>>,
}

/// When the name of a target is looked up again during the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lookup {
    #[default]
    Once,
    /// When connections to it fail.
    OnFailure,
    /// The same, and periodically.
    Every(Duration),
}

impl Target {
    /// Without the optional parts of a target.
    pub fn new(scheme: Scheme, host: impl Into<String>, port: u16) -> Target {
        Target {
            scheme,
            host: host.into(),
            port,
            weight: 1,
            unix_socket: None,
            lookup: Lookup::Once,
            instance: None,
            login: None,
        }
    }

    /// The name in reports: its URL, and its unix socket if any.
    pub fn written(&self) -> String {
        let (scheme, authority) = (self.scheme.word(), self.authority());
        match &self.unix_socket {
            None => format!("{scheme}://{authority}"),
            Some(socket) => format!("{scheme}://{authority} unix:{socket}"),
        }
    }

    /// Whether TLS may be used there.
    pub fn may_be_secure(&self) -> bool {
        self.scheme.is_secure() || self.login.as_ref().is_some_and(|login| login.may_be_secure())
    }

    /// The host without the zone of an IPv6 address (RFC 4007, 11), which is only valid on this
    /// computer.
    pub fn host_alone(&self) -> &str {
        self.host.split_once('%').map_or(&self.host, |(host, _)| host)
    }

    /// `host:port` for a Host header; the default port of the scheme is omitted.
    pub fn authority(&self) -> String {
        let host = self.host_alone();
        let host = match host.contains(':') {
            true => format!("[{host}]"),
            false => host.to_string(),
        };
        match self.scheme.default_port() == Some(self.port) {
            true => host,
            false => format!("{host}:{}", self.port),
        }
    }
}

/// TLS options for schemes that use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// False accepts any certificate.
    pub verify: bool,
    /// Trusted instead of the system's roots (PEM).
    pub ca: Option<PathBuf>,
    /// The client's certificate chain and key (PEM).
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Sent as SNI and verified instead of the host of the target.
    pub server_name: Option<String>,
    /// True lets reconnecting users resume sessions; false requires a full handshake each time.
    pub resumption: bool,
}

impl Default for Tls {
    fn default() -> Tls {
        Tls { verify: true, ca: None, identity: None, server_name: None, resumption: false }
    }
}

/// How connections are opened and kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionOptions {
    /// False opens a connection for every HTTP request.
    pub keep_alive: bool,
    /// False fails a request that the target has not processed, instead of resending it.
    pub resend: bool,
    /// Time limit for name lookup, TCP, TLS and upgrade together.
    pub connect_timeout: Duration,
    pub sources: Sources,
    pub family: Family,
    pub routing: Routing,
    /// How permessage-deflate is offered on WebSocket connections.
    pub deflate: DeflateOffer,
    /// Keep cookies per user and send them back.
    pub cookies: bool,
    pub http_version: HttpVersion,
    /// How many concurrent iterations a user runs over its one HTTP/2 connection.
    pub streams: u16,
}

/// The version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HttpVersion {
    #[default]
    Http1,
    /// Only HTTP/2: negotiated over TLS (ALPN, RFC 7301), otherwise with prior knowledge.
    Http2,
    /// Over TLS the version that the target prefers, otherwise HTTP/1.1.
    Auto,
}

impl HttpVersion {
    pub const ALL: [HttpVersion; 3] = [HttpVersion::Http1, HttpVersion::Http2, HttpVersion::Auto];

    pub fn word(self) -> &'static str {
        match self {
            HttpVersion::Http1 => "1.1",
            HttpVersion::Http2 => "2",
            HttpVersion::Auto => "auto",
        }
    }

    /// Whether requests may share a connection.
    pub fn may_multiplex(self, is_secure: bool) -> bool {
        match self {
            HttpVersion::Http1 => false,
            HttpVersion::Http2 => true,
            HttpVersion::Auto => is_secure,
        }
    }
}

/// The source addresses and ports of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Used as needed, in this order; empty leaves the address to the system.
    pub blocks: Vec<SourceBlock>,
    /// First and last source port; `None` uses those of the host (`ip_local_port_range`).
    pub ports: Option<(u16, u16)>,
    /// The addresses do not belong to this host (ip(7), IP_TRANSPARENT).
    pub transparent: bool,
}

/// Consecutive local addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceBlock {
    /// Both ends are included, and of one family.
    Range { first: IpAddr, last: IpAddr },
    /// All addresses of this interface, looked up when the run starts.
    Interface(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    #[default]
    Any,
    V4,
    V6,
}

impl Default for ConnectionOptions {
    fn default() -> ConnectionOptions {
        ConnectionOptions {
            keep_alive: true,
            resend: true,
            connect_timeout: Duration::from_secs(10),
            sources: Sources::default(),
            family: Family::Any,
            routing: Routing::default(),
            deflate: DeflateOffer::Nothing,
            cookies: true,
            http_version: HttpVersion::default(),
            streams: 1,
        }
    }
}

/// Limits for data of a target; reaching one is a counted outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub head_bytes_max: usize,
    /// For a body that is needed. Other bodies are only counted.
    pub body_bytes_max: u64,
    pub message_bytes_max: usize,
    pub redirects_max: u8,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head_bytes_max: 64 * 1024,
            body_bytes_max: 64 * 1024 * 1024,
            message_bytes_max: 16 * 1024 * 1024,
            redirects_max: 10,
        }
    }
}
