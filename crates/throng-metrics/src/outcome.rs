//! The ways a step can end, and the blame for failures.

use serde::{Deserialize, Serialize};
use throng_base::status::{self, Meaning};
use throng_base::{Said, grpc, mqtt, redis, sql};

/// Who must act after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The target refused, misbehaved, closed the connection or did not respond.
    Target,
    /// The network between the generator and the target.
    Network,
    /// This host or throng: the result says nothing about the target.
    Generator,
    /// The scenario or the command line requires something impossible.
    Scenario,
    /// One of both: a 4xx status means that the request was wrong, and a failed check that the
    /// response or the check is.
    #[serde(rename = "target or scenario")]
    TargetOrScenario,
}

impl Blame {
    pub fn text(self) -> Said {
        match self {
            Blame::Target => say!("target"),
            Blame::Network => say!("network"),
            Blame::Generator => say!("generator"),
            Blame::Scenario => say!("scenario"),
            Blame::TargetOrScenario => say!("target or scenario"),
        }
    }
}

macro_rules! causes {
    ($(
        $(#[$doc:meta])* $name:ident, $word:literal, $blame:ident, $text:literal, $next:literal;
    )*) => {
        /// Why a step failed. The word is stable, because run directories and thresholds contain
        /// it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Cause {
            $($(#[$doc])* #[serde(rename = $word)] $name,)*
        }

        impl Cause {
            pub const ALL: &'static [Cause] = &[$(Cause::$name,)*];

            /// The word in run directories.
            pub fn word(self) -> &'static str {
                match self { $(Cause::$name => $word,)* }
            }

            pub fn blame(self) -> Blame {
                match self { $(Cause::$name => Blame::$blame,)* }
            }

            /// What happened.
            pub fn text(self) -> Said {
                match self { $(Cause::$name => say!($text),)* }
            }

            /// A short hint at what to do next.
            pub fn next(self) -> Said {
                match self { $(Cause::$name => say!($next),)* }
            }
        }
    };
}

// The recorded word, the blame, what happened, and what to do next; `throng explain` has more
// details.
causes! {
    ResolveFailed, "resolve-failed", Network, "the target's host name did not resolve",
        "check the host name and the DNS settings of this host";
    ConnectRefused, "connect-refused", Target, "the target refused the connection",
        "check that the target listens on this port";
    ConnectTimeout, "connect-timeout", Target, "the connection was not established in time",
        "check for a firewall or a full accept queue";
    Unreachable, "unreachable", Network, "the network or host is unreachable",
        "check the route and the address";
    /// EMFILE and ENFILE.
    DescriptorsExhausted, "descriptors-exhausted", Generator, "throng ran out of file descriptors",
        "raise the limit of open files (`ulimit -n`)";
    /// EADDRNOTAVAIL and EADDRINUSE.
    PortsExhausted, "ports-exhausted", Generator, "throng ran out of source ports",
        "add source addresses, or keep connections open";
    /// ENOMEM, ENOBUFS, and ENOSPC of epoll.
    MemoryExhausted, "memory-exhausted", Generator, "this host ran out of kernel memory",
        "use fewer users, or raise tcp_mem";
    /// The limit on the bodies and messages that all users keep.
    MemoryLimit, "memory-limit", Generator, "the memory limit for bodies and messages was reached",
        "raise `--max-memory`, or use fewer users";
    /// EACCES and EPERM, as of a local firewall.
    Denied, "denied", Generator, "this host does not allow the connection",
        "check the firewall rules of this host";
    /// An error of the proxy, or of its connection to the target: it does not say which.
    ProxyFailed, "proxy-failed", Network,
        "the proxy, or the target behind it, could not be reached",
        "check the proxy's address and log";
    /// 407 and other refusals.
    ProxyRefused, "proxy-refused", Scenario, "the proxy rejected the connection",
        "check the user name and password for the proxy";
    TlsFailed, "tls-failed", Target, "the TLS handshake failed",
        "try the target with `openssl s_client`";
    CertificateRefused, "certificate-refused", Scenario, "the target's certificate is not trusted",
        "use --cacert or `tls: {{ca: FILE}}`, or skip the check";
    /// A TLS alert of a target that requires client certificates.
    ClientCertificate, "client-certificate", Scenario,
        "the target requires a client certificate that it trusts",
        "use a certificate that the target trusts: --cert or `tls`";
    /// TLS to a port without it, or the reverse.
    WrongScheme, "wrong-scheme", Scenario, "the port uses a different protocol than the target URL",
        "try http instead of https, or vice versa";
    UpgradeRefused, "upgrade-refused", Target,
        "the target refused the WebSocket upgrade or event stream",
        "check the response, then the path, Origin and token";
    /// FIN before the end of the response.
    ClosedEarly, "closed-early", Target,
        "the target closed the connection before the response was complete",
        "check the target's log and its connection limit";
    Reset, "reset", Target, "the target reset the connection",
        "check the target's log and its connection limit";
    Timeout, "timeout", Target, "no complete response arrived in time",
        "find out what the target waits for, or raise the timeout";
    Malformed, "malformed", Target, "the response violates the protocol",
        "look at a response with --details";
    TooLarge, "too-large", Target, "the response is larger than the limit",
        "raise the limit if such responses are normal";
    StatusUnexpected, "status-unexpected", Target, "the status is not as expected",
        "look at a response with --details, and the target's log";
    /// Of a gRPC call, or of a call used as a connection.
    GrpcStatus, "grpc-status", Target, "the gRPC status is not as expected",
        "look at the status and its message with --details";
    /// A reason code that the server is responsible for, or whose blame is unclear.
    MqttReason, "mqtt-reason", Target, "the MQTT server reported an error",
        "see the reason with --details, and check the server's log";
    MqttRequest, "mqtt-request", Scenario, "the MQTT server rejected a request from the scenario",
        "look at the reason with --details, then fix the step";
    /// The server claims that throng violates the protocol.
    MqttProtocol, "mqtt-protocol", Generator, "the MQTT server reported a protocol error by throng",
        "check the packets with `throng try`, then fix the server";
    /// An error that the server is responsible for, or whose blame is unclear.
    RedisError, "redis-error", Target, "the Redis server reported an error",
        "see the error with --details, and check the server's log";
    RedisRequest, "redis-request", Scenario,
        "the Redis server rejected a command from the scenario",
        "look at the error with --details, then fix the step";
    /// A SQLSTATE of a server that cannot execute the statement: resources, shutdown, errors.
    SqlServer, "sql-server", Target, "the database server could not execute a statement",
        "see the error with --details, and the server's log";
    /// A constraint, a lock, or another transaction.
    SqlConflict, "sql-conflict", TargetOrScenario,
        "a statement conflicted with the data or with another transaction",
        "see the error with --details; retry, or use other keys";
    SqlRequest, "sql-request", Scenario, "the database server rejected a statement or the login",
        "look at the error with --details, then fix the step";
    SqlProtocol, "sql-protocol", Generator,
        "the database server reported a protocol error by throng",
        "look at the error with --details, and report it";
    BodyUnexpected, "body-unexpected", TargetOrScenario, "the body is not as expected",
        "use --details to compare a response with the check";
    JsonUnexpected, "json-unexpected", TargetOrScenario, "a JSON field is not as expected",
        "use --details to compare a response with the check";
    HeaderUnexpected, "header-unexpected", TargetOrScenario, "a header is not as expected",
        "use --details to compare a response with the check";
    TooSlow, "too-slow", Target, "the response took longer than the check allows",
        "find out what is slow, or allow more time in the check";
    CodingFailed, "coding-failed", Target, "the body could not be decompressed",
        "look at the Content-Encoding with --details";
    RedirectFailed, "redirect-failed", Target, "a redirect could not be followed",
        "use `throng try` to see where the redirect leads";
    /// No reply to a heartbeat before its deadline.
    HeartbeatLost, "heartbeat-lost", Target, "a heartbeat got no reply in time",
        "check the target's load at that time";
    /// A message did not reach a user in its audience.
    DeliveryLost, "delivery-lost", Target, "a message did not reach a user in its audience in time",
        "trace one lost message through the target";
    /// A field of a declared message.
    FieldUnexpected, "field-unexpected", TargetOrScenario,
        "a field of the message does not have the expected value",
        "use --details to compare a response with the check";
    /// A long-lived connection ended without a pending request.
    Lost, "lost", Target, "the target dropped the connection while the user was online",
        "find the reason for the close in the target's log";
    /// XPath, CSS selector, size, digest, expression.
    CheckFailed, "check-failed", TargetOrScenario, "the response failed a check",
        "use --details to compare a response with the check";
    SaveFailed, "save-failed", TargetOrScenario, "the response does not contain a value to save",
        "look at a response with `throng try`";
    /// More messages waited for an `expect` or a handler of one user than the generator stores.
    MessagesDropped, "messages-dropped", Generator, "throng dropped incoming messages",
        "reduce the handler time per message";
    /// Instead of the expected message, messages with several records arrived, which the connection
    /// does not separate.
    MessagesJoined, "messages-joined", Scenario, "a message contains several records",
        "set `protocol: {{delimiter: …}}` for the connection";
    NetworkFailed, "network-failed", Network, "the operating system reported a network error",
        "check the network path to the target: `ip -s link`";
    GeneratorFailed, "generator-failed", Generator, "the generator could not run the step",
        "look at the example with --details";
    ExpressionFailed, "expression-failed", Scenario,
        "an expression in the scenario could not be evaluated",
        "run one user with `throng try`";
    DataExhausted, "data-exhausted", Scenario, "a data source ran out of rows",
        "add rows, or reuse rows (`at_end: wrap`)";
    DataFailed, "data-failed", Scenario, "a row of a data source could not be read",
        "fix the row named in the example";
    RendezvousTimeout, "rendezvous-timeout", Scenario, "too few users reached a rendezvous in time",
        "use more users, or wait longer";
    /// Nothing was sent, so there is no latency; for example, too few users for the rate.
    ScenarioFailed, "scenario-failed", Scenario, "the scenario defines a step that cannot run",
        "run one user with `throng try`";
}

/// A protocol with its own statuses.
struct Statuses {
    meaning: fn(u16) -> Option<Meaning>,
    /// Causes of failures, in the order of [`status::Blame`].
    causes: [Cause; 4],
    /// The target can use one of them as the reason for closing a connection.
    ends: bool,
}

static STATUSES: [Statuses; 4] = {
    use Cause::{GrpcStatus, MqttProtocol, MqttReason, MqttRequest, RedisError, RedisRequest};
    use Cause::{SqlConflict, SqlProtocol, SqlRequest, SqlServer};
    [
        Statuses { meaning: grpc::meaning, causes: [GrpcStatus; 4], ends: false },
        Statuses {
            meaning: mqtt::meaning,
            causes: [MqttReason, MqttRequest, MqttReason, MqttProtocol],
            ends: true,
        },
        Statuses {
            meaning: redis::meaning,
            causes: [RedisError, RedisRequest, RedisError, RedisError],
            ends: false,
        },
        Statuses {
            meaning: sql::meaning,
            causes: [SqlServer, SqlRequest, SqlConflict, SqlProtocol],
            ends: true,
        },
    ]
};

impl Statuses {
    /// The protocol of a status, and its meaning there.
    fn of(status: u16) -> Option<(&'static Statuses, Meaning)> {
        STATUSES.iter().find_map(|one| Some((one, (one.meaning)(status)?)))
    }

    fn cause(&self, blame: status::Blame) -> Cause {
        self.causes[blame as usize]
    }

    /// The cause whose statuses include wrong requests and other errors.
    fn mixed(&self) -> Option<Cause> {
        let cause = self.cause(status::Blame::Target);
        Some(cause).filter(|cause| *cause == self.cause(status::Blame::TargetOrScenario))
    }
}

impl Cause {
    /// Whether it concerns the status of a response, which may blame the request.
    pub fn is_status(self) -> bool {
        let is_mixed = STATUSES.iter().any(|one| one.mixed() == Some(self));
        matches!(self, Cause::StatusUnexpected | Cause::UpgradeRefused) || is_mixed
    }

    /// Whether the status is the reason for which the target closed the connection.
    pub fn has_reason_code(self) -> bool {
        STATUSES.iter().any(|one| one.ends && one.causes.contains(&self))
    }

    /// The cause of a connection closed by the target with this status.
    pub fn of_close(status: u16) -> Cause {
        let own = Statuses::of(status).filter(|(one, _)| one.ends);
        own.map_or(Cause::ClosedEarly, |(one, meaning)| one.cause(meaning.blame))
    }

    /// The cause of a step whose response has this status.
    pub fn of_status(status: u16) -> Cause {
        let own = Statuses::of(status);
        own.map_or(Cause::StatusUnexpected, |(one, meaning)| one.cause(meaning.blame))
    }
}

/// Whether a status means that the request was wrong: an HTTP 4xx, or such a code of another
/// protocol.
pub fn blames_request(status: u16) -> bool {
    match Statuses::of(status) {
        Some((own, Meaning { blame: status::Blame::TargetOrScenario, .. })) => {
            own.mixed().is_some()
        }
        Some(_) => false,
        None => (400..500).contains(&status),
    }
}

/// The number of a status in its own protocol.
pub fn status_number(status: u16) -> u16 {
    Statuses::of(status).and_then(|(_, meaning)| meaning.number()).unwrap_or(status)
}

/// A status as shown in reports: its name in its protocol, its SQLSTATE, or its number.
pub fn status_word(status: u16) -> String {
    Statuses::of(status).map_or_else(|| status.to_string(), |(_, meaning)| meaning.word.into())
}

/// The status of one attempt: its number, with its name if its protocol has one.
pub fn status_text(status: u16) -> String {
    Statuses::of(status).map_or_else(|| status.to_string(), |(_, meaning)| meaning.text())
}

words! {
    /// The reason that a run ended early.
    StopBy {
        /// A rule of the scenario: `stop`, `on_error: stop`.
        Rule, "rule";
        /// A data source ran out of rows, and the scenario ends the run then.
        Data, "data";
        /// A data source ran out of rows, and the scenario does not mention it.
        DataShort, "data-short";
        /// A bug in throng: a user waited for something that would never happen.
        Bug, "bug";
    }
}

words! {
    /// A stage of a connection that is timed separately. In this order, the stages are the funnel:
    /// a connection that completes one of them reaches the next.
    Stage {
        Resolve, "resolve", "resolve";
        Connect, "connect", "connect";
        /// From the open connection to the proxy until the proxy has connected to the target.
        Proxy, "proxy", "proxy";
        Tls, "tls", "tls";
        Upgrade, "upgrade", "upgrade";
        /// From the open connection to the last response to the messages right after the `connect`.
        /// Only for long-lived connections, like all stages below.
        Login, "login", "login";
        /// From then on to the first unsolicited message. Its absence is not a failure.
        FirstMessage, "first-message", "first-message";
        /// Online: from the login to the end of the connection, however it ends.
        Steady, "steady", "steady";
        /// The close by throng: from its start to the end of the connection.
        End, "end", "end";
        /// For a user that was online: from the loss of its last connection until it is online
        /// again.
        Away, "away", "away";
    }
}

impl Stage {
    /// Whether the stage is a part of opening a connection.
    pub fn opens(self) -> bool {
        self < Stage::Login
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_readable() {
        let mut words: Vec<_> = Cause::ALL.iter().map(|cause| cause.word()).collect();
        assert!(words.iter().all(|w| w.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Cause::ALL.len());
    }

    #[test]
    fn the_hint_fits_on_a_line() {
        for cause in Cause::ALL {
            let next = cause.next().english();
            assert!((10..=58).contains(&next.len()), "{}: {next}", cause.word());
        }
    }
}
