//! The compiled scenario: the contract between the scenario language and the engine.
//!
//! The language makes a [`Program`] out of a file or a command line; the engine runs it and knows
//! nothing else. All names are resolved, all values have their type, all defaults are filled in.
//!
//! - [`event`]: what is done at set times of a run.
//! - [`failing`]: what a user does when a step fails.
//! - [`flow`]: sessions and the statements of their steps.
//! - [`audit`]: what the target says of its users and its books.
//! - [`check`]: what an answer is checked for and what is saved from it.
//! - [`delivery`]: which messages have to reach whom, for the ledger.
//! - [`load`]: the loads and their phases, which say how many users there are and when they begin.
//! - [`monitor`]: sources of series beside the run.
//! - [`network`]: what is between users and targets.
//! - [`once`]: what is done once in a run, before and after its loads.
//! - [`output`]: who is told the figures while the run goes on.
//! - [`protocol`]: the schemes, and what only some protocols have: how a connection opens, what is
//!   sent over it.
//! - [`rate`]: starts per second over the time of a phase.
//! - [`route`]: where connections go, if not to what a target's name resolves to.
//! - [`sessions`]: which users do which session.
//! - [`statement`]: what every reader of the tree asks a statement.
//! - [`text`]: texts with parts that differ from user to user.

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
pub use throng_metrics::StepKind;
use throng_metrics::{AbortRule, Threshold, TrendUnit};
use throng_protocol::framed::Protocol;
use throng_protocol::protobuf::Schema;
use throng_protocol::websocket::DeflateOffer;

pub use audit::{Audit, AuditWhat, Books, HttpSource, IDS, RedisKind, Source, UserName, View};
pub use check::{Check, Pick, Save, StatusSet, Want};
pub use delivery::{Audience, Begins, Delivery, Mark};
pub use event::{Action, Change, HttpCall, Steering, TimedEvent, Trigger};
pub use failing::{Failing, OnError, RETRY_ON_MAX, Retry, RetryOn};
pub use flow::{
    Beat, BeatFault, Beside, Block, Body, Connect, DigestAuth, Ends, EventRequest, Every, Expect,
    Handler, Heartbeat, Http, LINKS_MAX, Link, Message, Pause, Rendezvous, Request, Secure, Send,
    Session, Slow, Statement, Stay, Until, Way, Which,
};
pub use load::{
    Amount, Arrivals, Churn, Coming, Drive, Iterations, Load, Parting, Phase, Start, Users,
};
pub use monitor::{Metric, Monitor, NODE_EXPORTER_PORT, Selector, host_metrics};
pub use network::UserNetwork;
pub use once::{Once, OncePart};
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
    /// What a person calls the run besides, by the names of the labels.
    pub labels: BTreeMap<String, String>,
    pub targets: Vec<Target>,
    /// The rows of every report, indexed by [`StepId`].
    pub steps: Vec<Step>,
    pub sessions: Vec<Session>,
    /// Declared protocols, by the numbers that sessions use.
    pub protocols: Vec<Arc<Protocol>>,
    /// What the files of `proto` declare, of which calls have their methods and messages.
    pub schema: Option<Arc<Schema>>,
    /// The row of bytes that break a declared protocol, where there is one.
    pub broken: Option<StepId>,
    /// The row of expressions of no step that have no value, where there are any.
    pub expressions: Option<StepId>,
    /// Before the load, and after it.
    pub setup: Option<Box<Once>>,
    pub teardown: Option<Box<Once>>,
    /// What the setup has saved, by its slots; empty until it is over.
    pub setup_values: Arc<[Value]>,
    /// Which messages have to reach whom.
    pub deliveries: Vec<Delivery>,
    /// What goes on side by side; not empty.
    pub loads: Vec<Load>,
    /// How long users in the middle of a step or transaction may go on after the last phase of
    /// their load.
    pub graceful_stop: Duration,
    /// How late what is due may be done so that wakings are shared; zero wakes for each event.
    pub precision: Duration,
    pub thresholds: Vec<Threshold>,
    /// What ends the run before its time.
    pub abort_when: Vec<AbortRule>,
    /// While one of them holds, no users are added.
    pub hold_when: Vec<AbortRule>,
    /// What is done at set times, by the numbers that triggers use.
    pub events: Vec<TimedEvent>,
    pub tls: Tls,
    pub connection: ConnectionOptions,
    pub limits: Limits,
    /// The sources of rows, by the numbers that expressions use.
    pub data: Vec<throng_data::Source>,
    /// For so many users there are tables of descriptors, even if the loads plan fewer.
    pub users_room: u64,
    /// How many places there are where users wait for each other.
    pub rendezvous: u16,
    pub trace: Option<Trace>,
    /// What is read of other sources meanwhile.
    pub monitors: Vec<Monitor>,
    /// What is asked of the target's own knowledge meanwhile.
    pub audits: Vec<Audit>,
    /// Who is told the figures of each second.
    pub outputs: Vec<Output>,
    /// The same seed gives the same users.
    pub seed: u64,
    /// `run.id`: no other run has it, whatever the seed.
    pub run_id: String,
    /// What of all this must not be told.
    pub secrets: Secrets,
    /// What the command has changed of the load that the scenario has, in words.
    pub changes: Vec<Said>,
}

impl Program {
    pub fn step(&self, id: StepId) -> &Step {
        &self.steps[id.index()]
    }

    /// Whether it has to be known of every user whether it is online.
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

/// A row of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub name: String,
    pub kind: StepKind,
    /// By their names; steps of one name and kind with other labels have a row of their own.
    pub labels: BTreeMap<String, String>,
    /// Of a trend.
    pub unit: Option<TrendUnit>,
}

impl Step {
    /// A row without labels.
    pub fn new(name: impl Into<String>, kind: StepKind) -> Step {
        Step { name: name.into(), kind, labels: BTreeMap::new(), unit: None }
    }
}

impl Program {
    /// By target, the first of those that a user gets one of; empty where there is no choice.
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

/// One address of the service. Users are spread over all addresses by weight, and over all that
/// a name resolves to in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub scheme: Scheme,
    /// A name or an address; an IPv6 address without brackets.
    pub host: String,
    pub port: u16,
    pub weight: u32,
    /// Connections go there, whatever address and port the name has.
    pub unix_socket: Option<UnixSocket>,
    pub lookup: Lookup,
    /// The response header that names the instance behind the address, in lower case.
    pub instance: Option<Arc<str>>,
    /// Who logs in there, where the URL says it.
    pub login: Option<Arc<Login>>,
}

/// When the name of a target is looked up beside the first time, before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lookup {
    #[default]
    Once,
    /// When connections to it fail.
    OnFailure,
    /// The same, and every so often.
    Every(Duration),
}

impl Target {
    /// Without anything that only some targets have.
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

    /// As reports name it: its URL, and the socket that it has.
    pub fn written(&self) -> String {
        let (scheme, authority) = (self.scheme.word(), self.authority());
        match &self.unix_socket {
            None => format!("{scheme}://{authority}"),
            Some(socket) => format!("{scheme}://{authority} unix:{socket}"),
        }
    }

    /// Whether TLS may be spoken there.
    pub fn may_be_secure(&self) -> bool {
        self.scheme.is_secure() || self.login.as_ref().is_some_and(|login| login.may_be_secure())
    }

    /// The host without the zone of an IPv6 address (RFC 4007, 11), which is of this computer
    /// alone.
    pub fn host_alone(&self) -> &str {
        self.host.split_once('%').map_or(&self.host, |(host, _)| host)
    }

    /// `host:port` as a Host header has it; the default port of the scheme is left out.
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

/// How TLS is spoken where the scheme asks for it.
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
    /// True lets reconnecting users resume; false is a full handshake each time.
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
    /// False fails a request that the target has not looked at, instead of sending it again.
    pub resend: bool,
    /// The time that resolve, TCP, TLS and upgrade may take together.
    pub connect_timeout: Duration,
    pub sources: Sources,
    pub family: Family,
    pub routing: Routing,
    /// How permessage-deflate is offered on WebSocket connections.
    pub deflate: DeflateOffer,
    /// Keep cookies per user and send them back.
    pub cookies: bool,
    pub http_version: HttpVersion,
    /// How many iterations a user does at once over its one connection of HTTP/2.
    pub streams: u16,
}

/// Which version of HTTP is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HttpVersion {
    #[default]
    Http1,
    /// HTTP/2 alone: over TLS as both ends agree (ALPN, RFC 7301), else with prior knowledge.
    Http2,
    /// Over TLS what the target prefers of both, else HTTP/1.1.
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

/// Where connections come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Taken as they are needed, in this order; empty leaves the address to the system.
    pub blocks: Vec<SourceBlock>,
    /// First and last source port; None takes what the host has (`ip_local_port_range`).
    pub ports: Option<(u16, u16)>,
    /// The addresses are borrowed: this host does not have them (ip(7), IP_TRANSPARENT).
    pub transparent: bool,
}

/// Local addresses in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceBlock {
    /// Both ends are in it, and of one family.
    Range { first: IpAddr, last: IpAddr },
    /// All addresses of this interface, looked up when the run begins.
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

/// What a target may make us hold; reaching one is a counted outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub head_bytes_max: usize,
    /// Of a body that somebody looks at. Bodies nobody looks at are only counted.
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
