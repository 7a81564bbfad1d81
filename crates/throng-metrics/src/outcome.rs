//! How a step can end, and who is to blame when it ends badly.

use serde::{Deserialize, Serialize};
use throng_base::Said;
use throng_base::grpc::Code;
use throng_base::{mqtt, redis, sql};

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
    ($($(#[$doc:meta])* $name:ident, $word:literal, $blame:ident, $text:literal;)*) => {
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
        }
    };
}

causes! {
    ResolveFailed, "resolve-failed", Network, "the target's host name did not resolve";
    ConnectRefused, "connect-refused", Target, "the target refused the connection";
    ConnectTimeout, "connect-timeout", Target, "the connection was not established in time";
    Unreachable, "unreachable", Network, "the network or host is unreachable";
    /// EMFILE and ENFILE.
    DescriptorsExhausted, "descriptors-exhausted", Generator, "throng ran out of file descriptors";
    /// EADDRNOTAVAIL and EADDRINUSE.
    PortsExhausted, "ports-exhausted", Generator, "throng ran out of source ports";
    /// ENOMEM, ENOBUFS, and ENOSPC of epoll.
    MemoryExhausted, "memory-exhausted", Generator, "this host ran out of kernel memory";
    /// The limit on what all users keep of bodies and messages.
    MemoryLimit, "memory-limit", Generator, "the memory limit for bodies and messages was reached";
    /// EACCES and EPERM, as of a local firewall.
    Denied, "denied", Generator, "this host does not allow the connection";
    /// Of the proxy itself, or of its way to the target: it does not say which.
    ProxyFailed, "proxy-failed", Network, "the proxy, or the target behind it, could not be reached";
    /// 407 and other refusals.
    ProxyRefused, "proxy-refused", Scenario, "the proxy rejected the connection";
    TlsFailed, "tls-failed", Target, "the TLS handshake failed";
    CertificateRefused, "certificate-refused", Scenario, "the target's certificate is not \
                                                          trusted";
    /// The alert of a target that knows its clients by their certificates.
    ClientCertificate, "client-certificate", Scenario, "the target requires a client certificate \
                                                        that it trusts";
    /// TLS to a port without it, or the other way round.
    WrongScheme, "wrong-scheme", Scenario, "the port uses a different protocol than the target URL";
    UpgradeRefused, "upgrade-refused", Target, "the target refused the WebSocket upgrade or event \
                                                stream";
    /// FIN before the answer was complete.
    ClosedEarly, "closed-early", Target, "the target closed the connection before the response was complete";
    Reset, "reset", Target, "the target reset the connection";
    Timeout, "timeout", Target, "no complete response arrived in time";
    Malformed, "malformed", Target, "the response violates the protocol";
    TooLarge, "too-large", Target, "the response is larger than the limit";
    StatusUnexpected, "status-unexpected", Target, "the status is not as expected";
    /// Of a gRPC call, or of a connection that is one.
    GrpcStatus, "grpc-status", Target, "the gRPC status is not as expected";
    /// A reason code of a server that has to act itself, or nobody knows who has.
    MqttReason, "mqtt-reason", Target, "the MQTT server reported an error";
    MqttRequest, "mqtt-request", Scenario, "the MQTT server rejected a request from the scenario";
    /// We are said to break it.
    MqttProtocol, "mqtt-protocol", Generator, "the MQTT server reported a protocol error by throng";
    /// An error of a server that has to act itself, or nobody knows who has.
    RedisError, "redis-error", Target, "the Redis server reported an error";
    RedisRequest, "redis-request", Scenario, "the Redis server rejected a command from the scenario";
    /// A SQLSTATE of a server that cannot do what it is asked for: resources, shutdown, errors.
    SqlServer, "sql-server", Target, "the database server could not execute a statement";
    /// A constraint, a lock, or another transaction.
    SqlConflict, "sql-conflict", TargetOrScenario,
        "a statement conflicted with the data or with another transaction";
    SqlRequest, "sql-request", Scenario, "the database server rejected a statement or the login";
    SqlProtocol, "sql-protocol", Generator,
        "the database server reported a protocol error by throng";
    BodyUnexpected, "body-unexpected", TargetOrScenario, "the body is not as expected";
    JsonUnexpected, "json-unexpected", TargetOrScenario, "a JSON field is not as expected";
    HeaderUnexpected, "header-unexpected", TargetOrScenario, "a header is not as expected";
    TooSlow, "too-slow", Target, "the response took longer than the check allows";
    CodingFailed, "coding-failed", Target, "the body could not be decompressed";
    RedirectFailed, "redirect-failed", Target, "a redirect could not be followed";
    /// No answer to a heartbeat by its deadline.
    HeartbeatLost, "heartbeat-lost", Target, "a heartbeat got no reply in time";
    /// A message has not reached a user who should have got it.
    DeliveryLost, "delivery-lost", Target, "a message did not reach a user in its audience in time";
    /// A field of a declared message.
    FieldUnexpected, "field-unexpected", TargetOrScenario,
        "a field of the message does not have the expected value";
    /// A long-lived connection ended while nothing was asked.
    Lost, "lost", Target, "the target dropped the connection while the user was online";
    /// XPath, CSS selector, size, digest, expression.
    CheckFailed, "check-failed", TargetOrScenario, "the response failed a check";
    SaveFailed, "save-failed", TargetOrScenario, "the response does not contain a value to save";
    /// More messages waited for an `expect` or a handler of one user than the generator keeps.
    MessagesDropped, "messages-dropped", Generator, "throng dropped incoming messages";
    /// In place of the expected message there were messages of several records, which the
    /// connection does not separate.
    MessagesJoined, "messages-joined", Scenario, "a message contains several records";
    NetworkFailed, "network-failed", Network, "the operating system reported a network error";
    GeneratorFailed, "generator-failed", Generator, "the generator could not run the step";
    ExpressionFailed, "expression-failed", Scenario, "an expression in the scenario could not be evaluated";
    DataExhausted, "data-exhausted", Scenario, "a data source ran out of rows";
    DataFailed, "data-failed", Scenario, "a row of a data source could not be read";
    RendezvousTimeout, "rendezvous-timeout", Scenario, "too few users reached a rendezvous in time";
    /// Nothing was sent, hence no latency; too few users for the rate.
    ScenarioFailed, "scenario-failed", Scenario, "the scenario defines a step that cannot run";
}

impl Cause {
    /// Whether it is about the status of an answer, which may say that the request was wrong.
    pub fn is_status(self) -> bool {
        use Cause::{GrpcStatus, MqttReason, RedisError, StatusUnexpected, UpgradeRefused};
        matches!(self, StatusUnexpected | UpgradeRefused | GrpcStatus | MqttReason | RedisError)
    }

    /// Whether the status next to it is a reason code, or a SQLSTATE.
    pub fn has_reason_code(self) -> bool {
        use Cause::{MqttProtocol, MqttReason, MqttRequest};
        use Cause::{SqlConflict, SqlProtocol, SqlRequest, SqlServer};
        matches!(self, MqttReason | MqttRequest | MqttProtocol)
            || matches!(self, SqlServer | SqlConflict | SqlRequest | SqlProtocol)
    }

    /// Why a connection ended that the target closed with this status.
    pub fn of_close(status: u16) -> Cause {
        of_mqtt(status).map_or(Cause::ClosedEarly, |(_, _, blame)| Cause::of_mqtt(blame))
    }

    /// That of the status of a SQLSTATE.
    pub fn of_sql(status: u16) -> Cause {
        match sql::state_of(status).map_or(mqtt::Blame::Target, |state| state.blame) {
            mqtt::Blame::Target => Cause::SqlServer,
            mqtt::Blame::TargetOrScenario => Cause::SqlConflict,
            mqtt::Blame::Scenario => Cause::SqlRequest,
            mqtt::Blame::Generator => Cause::SqlProtocol,
        }
    }

    /// That of a reason code of MQTT.
    pub fn of_mqtt(blame: mqtt::Blame) -> Cause {
        match blame {
            mqtt::Blame::Target | mqtt::Blame::TargetOrScenario => Cause::MqttReason,
            mqtt::Blame::Scenario => Cause::MqttRequest,
            mqtt::Blame::Generator => Cause::MqttProtocol,
        }
    }

    /// That of an error of Redis, by its status.
    pub fn of_redis(status: u16) -> Cause {
        match redis::error(status) {
            Some((_, redis::Blame::Scenario)) => Cause::RedisRequest,
            _ => Cause::RedisError,
        }
    }
}

/// Whether a status says that the request was wrong: a 4xx of HTTP, or such a code of another
/// protocol.
pub fn blames_request(status: u16) -> bool {
    let blame = of_mqtt(status).map(|(_, _, blame)| blame);
    let blame = blame.or_else(|| redis::error(status).map(|(_, blame)| blame));
    match (Code::of_status(status), blame) {
        (Some(code), _) => code.blames_request(),
        (None, Some(blame)) => blame == mqtt::Blame::TargetOrScenario,
        (None, None) => (400..500).contains(&status),
    }
}

/// The number that its protocol gives a status.
pub fn status_number(status: u16) -> u16 {
    let own = Code::of_status(status).map(Code::number).or_else(|| mqtt::code_of(status));
    own.map_or(status, u16::from)
}

/// A status as reports show it: its name in its protocol, its SQLSTATE, or its number.
pub fn status_word(status: u16) -> String {
    match (Code::of_status(status), of_mqtt(status), sql::state_of(status)) {
        (Some(code), ..) => code.name().into(),
        (None, Some((_, name, _)), _) => name.into(),
        (None, None, Some(state)) => state.code.into(),
        (None, None, None) => {
            redis::error(status).map_or_else(|| status.to_string(), |(word, _)| word.into())
        }
    }
}

/// The status of one attempt: its number, with its name where it is one of gRPC, MQTT or SQL.
pub fn status_text(status: u16) -> String {
    match (Code::of_status(status), of_mqtt(status), sql::state_of(status)) {
        (Some(code), ..) => format!("{} {}", code.number(), code.name()),
        (None, Some((code, name, _)), _) => format!("0x{code:02x} {name}"),
        (None, None, Some(state)) => format!("{} {}", state.code, state.name),
        (None, None, None) => status_word(status),
    }
}

/// A reason code of MQTT with its name and whom it blames.
fn of_mqtt(status: u16) -> Option<(u8, &'static str, mqtt::Blame)> {
    let code = mqtt::code_of(status)?;
    mqtt::code(code).map(|(name, blame)| (code, name, blame))
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
}
