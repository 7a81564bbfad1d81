//! How a step can end, and who is to blame when it ends badly.

use serde::{Deserialize, Serialize};
use throng_base::status::{self, Meaning};
use throng_base::{Said, grpc, mqtt, redis, sql};

/// Who has to act when something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The system under test refused, misbehaved, closed or was silent.
    Target,
    /// The way between.
    Network,
    /// This machine or this program: the result says nothing about the target.
    Generator,
    /// The scenario or the command line asks for what cannot be.
    Scenario,
    /// One of them, and it cannot be told from outside: a 4xx says that the request was wrong, a
    /// failed check that the response or the check is.
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
        /// Why a step failed. The word is stable: it stands in records and thresholds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Cause {
            $($(#[$doc])* #[serde(rename = $word)] $name,)*
        }

        impl Cause {
            pub const ALL: &'static [Cause] = &[$(Cause::$name,)*];

            /// The word that records carry.
            pub fn word(self) -> &'static str {
                match self { $(Cause::$name => $word,)* }
            }

            pub fn blame(self) -> Blame {
                match self { $(Cause::$name => Blame::$blame,)* }
            }

            /// What happened, for a person.
            pub fn text(self) -> Said {
                match self { $(Cause::$name => say!($text),)* }
            }

            /// What to do next, in a few words.
            pub fn next(self) -> Said {
                match self { $(Cause::$name => say!($next),)* }
            }
        }
    };
}

// The word of records, the blame, what happened, and the one thing to do next; `throng explain`
// says more.
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
    /// The limit on what all users keep of bodies and messages.
    MemoryLimit, "memory-limit", Generator, "the memory limit for bodies and messages was reached",
        "raise `--max-memory`, or use fewer users";
    /// EACCES and EPERM, as of a local firewall.
    Denied, "denied", Generator, "this host does not allow the connection",
        "check the firewall rules of this host";
    /// Of the proxy itself, or of its way to the target: it does not say which.
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
    /// The alert of a target that knows its clients by their certificates.
    ClientCertificate, "client-certificate", Scenario,
        "the target requires a client certificate that it trusts",
        "use a certificate that the target trusts: --cert or `tls`";
    /// TLS to a port without it, or the other way round.
    WrongScheme, "wrong-scheme", Scenario, "the port uses a different protocol than the target URL",
        "try http instead of https, or vice versa";
    UpgradeRefused, "upgrade-refused", Target,
        "the target refused the WebSocket upgrade or event stream",
        "check the response, then the path, Origin and token";
    /// FIN before the answer was complete.
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
    /// Of a gRPC call, or of a connection that is one.
    GrpcStatus, "grpc-status", Target, "the gRPC status is not as expected",
        "look at the status and its message with --details";
    /// A reason code of a server that has to act itself, or nobody knows who has.
    MqttReason, "mqtt-reason", Target, "the MQTT server reported an error",
        "see the reason with --details, and check the server's log";
    MqttRequest, "mqtt-request", Scenario, "the MQTT server rejected a request from the scenario",
        "look at the reason with --details, then fix the step";
    /// We are said to break it.
    MqttProtocol, "mqtt-protocol", Generator, "the MQTT server reported a protocol error by throng",
        "check the packets with `throng try`, then fix the server";
    /// An error of a server that has to act itself, or nobody knows who has.
    RedisError, "redis-error", Target, "the Redis server reported an error",
        "see the error with --details, and check the server's log";
    RedisRequest, "redis-request", Scenario,
        "the Redis server rejected a command from the scenario",
        "look at the error with --details, then fix the step";
    /// A SQLSTATE of a server that cannot do what it is asked for: resources, shutdown, errors.
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
    /// No answer to a heartbeat by its deadline.
    HeartbeatLost, "heartbeat-lost", Target, "a heartbeat got no reply in time",
        "check the target's load at that time";
    /// A message has not reached a user who should have got it.
    DeliveryLost, "delivery-lost", Target, "a message did not reach a user in its audience in time",
        "trace one lost message through the target";
    /// A field of a declared message.
    FieldUnexpected, "field-unexpected", TargetOrScenario,
        "a field of the message does not have the expected value",
        "use --details to compare a response with the check";
    /// A long-lived connection ended while nothing was asked.
    Lost, "lost", Target, "the target dropped the connection while the user was online",
        "find the reason for the close in the target's log";
    /// XPath, CSS selector, size, digest, expression.
    CheckFailed, "check-failed", TargetOrScenario, "the response failed a check",
        "use --details to compare a response with the check";
    SaveFailed, "save-failed", TargetOrScenario, "the response does not contain a value to save",
        "look at a response with `throng try`";
    /// More messages waited for an `expect` or a handler of one user than the generator keeps.
    MessagesDropped, "messages-dropped", Generator, "throng dropped incoming messages",
        "reduce the handler time per message";
    /// In place of the expected message there were messages of several records, which the
    /// connection does not separate.
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
    /// Nothing was sent, hence no latency; too few users for the rate.
    ScenarioFailed, "scenario-failed", Scenario, "the scenario defines a step that cannot run",
        "run one user with `throng try`";
}

/// A protocol that has statuses of its own.
struct Statuses {
    meaning: fn(u16) -> Option<Meaning>,
    /// Why a step failed, in the order of [`status::Blame`].
    causes: [Cause; 4],
    /// The target says with one of them why it ends a connection.
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
    /// The protocol that has a status, and what it means there.
    fn of(status: u16) -> Option<(&'static Statuses, Meaning)> {
        STATUSES.iter().find_map(|one| Some((one, (one.meaning)(status)?)))
    }

    fn cause(&self, blame: status::Blame) -> Cause {
        self.causes[blame as usize]
    }

    /// The cause that has statuses of wrong requests and others.
    fn mixed(&self) -> Option<Cause> {
        let cause = self.cause(status::Blame::Target);
        Some(cause).filter(|cause| *cause == self.cause(status::Blame::TargetOrScenario))
    }
}

impl Cause {
    /// Whether it is about the status of an answer, which may say that the request was wrong.
    pub fn is_status(self) -> bool {
        let is_mixed = STATUSES.iter().any(|one| one.mixed() == Some(self));
        matches!(self, Cause::StatusUnexpected | Cause::UpgradeRefused) || is_mixed
    }

    /// Whether the status next to it says why the target ended the connection.
    pub fn has_reason_code(self) -> bool {
        STATUSES.iter().any(|one| one.ends && one.causes.contains(&self))
    }

    /// Why a connection ended that the target closed with this status.
    pub fn of_close(status: u16) -> Cause {
        let own = Statuses::of(status).filter(|(one, _)| one.ends);
        own.map_or(Cause::ClosedEarly, |(one, meaning)| one.cause(meaning.blame))
    }

    /// Why a step failed that was answered with this status.
    pub fn of_status(status: u16) -> Cause {
        let own = Statuses::of(status);
        own.map_or(Cause::StatusUnexpected, |(one, meaning)| one.cause(meaning.blame))
    }
}

/// Whether a status says that the request was wrong: a 4xx of HTTP, or such a code of another
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

/// The number that its protocol gives a status.
pub fn status_number(status: u16) -> u16 {
    Statuses::of(status).and_then(|(_, meaning)| meaning.number()).unwrap_or(status)
}

/// A status as reports show it: its name in its protocol, its SQLSTATE, or its number.
pub fn status_word(status: u16) -> String {
    Statuses::of(status).map_or_else(|| status.to_string(), |(_, meaning)| meaning.word.into())
}

/// The status of one attempt: its number, with its name where its protocol has one.
pub fn status_text(status: u16) -> String {
    Statuses::of(status).map_or_else(|| status.to_string(), |(_, meaning)| meaning.text())
}

words! {
    /// A part of a connection's life that is timed on its own. In this order they are the funnel: a
    /// connection that is through one of them comes to the next.
    Stage {
        Resolve, "resolve", "resolve";
        Connect, "connect", "connect";
        /// From the open connection to a proxy to its answer that the target is reached.
        Proxy, "proxy", "proxy";
        Tls, "tls", "tls";
        Upgrade, "upgrade", "upgrade";
        /// From the open connection to the last answer of the messages right behind the `connect`.
        /// Long-lived connections only, as all that follow.
        Login, "login", "login";
        /// From then on to the first unsolicited message. Its absence is not a failure.
        FirstMessage, "first-message", "first-message";
        /// Online: from the login to the end of the connection, however it ends.
        Steady, "steady", "steady";
        /// The close by throng: from its start to the end of the connection.
        End, "end", "end";
        /// Of a user that was online: from the loss of its last connection until it is online
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
    fn words_are_unique_and_speakable() {
        let mut words: Vec<_> = Cause::ALL.iter().map(|cause| cause.word()).collect();
        assert!(words.iter().all(|w| w.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Cause::ALL.len());
    }

    #[test]
    fn what_to_do_next_fits_into_a_line() {
        for cause in Cause::ALL {
            let next = cause.next().english();
            assert!((10..=58).contains(&next.len()), "{}: {next}", cause.word());
        }
    }
}
