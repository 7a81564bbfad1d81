//! The handshakes of the protocols: what a connection needs before it is open.
//!
//! To add one, add a row to [`Handshake`], and implement [`Opens`] in a file of its own.

mod events;
pub(crate) mod grpc;
pub(crate) mod mqtt;
pub(crate) mod redis;
mod sql;
mod websocket;

use std::cell::Cell;
use std::pin::Pin;

use throng_base::{Random, Said};
use throng_metrics::Cause;
use throng_program::{ConnectOptions, Login, Scheme, Target};
use throng_protocol::machine::{Machine, Nature, Violation};
use tokio_rustls::TlsConnector;

use super::{Ask, Opened, Order, Pulled};
use crate::failure::{Failure, http_failure, http2_failure};
use crate::network::Network;
use crate::shard::Lane;
use crate::transport::Transport;
pub(super) use grpc::NEEDS_HTTP2;
pub use grpc::reflect::{ReflectError, reflect};
pub(crate) use websocket::Upgrade;

/// Names what is missing when a connection attempt times out.
pub(crate) type Missing = fn(&str) -> Said;

/// A handshake.
pub(crate) trait Opens {
    fn missing(&self) -> Missing;

    /// Its request, if it is an HTTP request.
    fn ask(&self) -> Option<&Ask> {
        None
    }

    /// The machine that speaks the protocol, if it continues from an earlier connection.
    fn take_machine(&self) -> Option<Machine> {
        None
    }

    /// Whether the server may send first.
    fn is_greeted(&self) -> bool {
        false
    }

    /// Runs the handshake until the connection is open. Bytes that the server sent before are its
    /// greeting.
    async fn open(
        &self,
        shard: &Lane,
        order: &Order,
        transport: Transport,
        greeting: &[u8],
    ) -> Result<Opened, Failure>;
}

macro_rules! handshakes {
    ($($name:ident($own:ty);)*) => {
        /// The handshake that a connection needs before it is open.
        pub(crate) enum Handshake {
            $($name($own),)*
        }

        impl Handshake {
            pub(crate) fn missing(&self) -> Missing {
                match self {
                    $(Handshake::$name(own) => own.missing(),)*
                }
            }

            pub(super) fn ask(&self) -> Option<&Ask> {
                match self {
                    $(Handshake::$name(own) => own.ask(),)*
                }
            }

            pub(crate) fn take_machine(&self) -> Option<Machine> {
                match self {
                    $(Handshake::$name(own) => own.take_machine(),)*
                }
            }

            pub(super) fn is_greeted(&self) -> bool {
                match self {
                    $(Handshake::$name(own) => own.is_greeted(),)*
                }
            }

            pub(super) async fn open(
                &self,
                shard: &Lane,
                order: &Order,
                transport: Transport,
                greeting: &[u8],
            ) -> Result<Opened, Failure> {
                match self {
                    $(Handshake::$name(own) => {
                        own.open(shard, order, transport, greeting).await
                    })*
                }
            }
        }
    };
}

handshakes! {
    WebSocket(Upgrade);
    Events(Ask);
    Call(grpc::CallAsk);
    Mqtt(mqtt::Greeting);
    Redis(redis::Hello);
    Sql(throng_protocol::sql::Login);
}

/// The first bytes of a server: they show what it speaks.
#[derive(Default)]
struct FirstBytes(Cell<[u8; 5]>);

impl FirstBytes {
    fn note(&self, bytes: &[u8]) {
        if let (Some(begin), [0, ..]) = (bytes.first_chunk(), self.0.get()) {
            self.0.set(*begin);
        }
    }

    /// A server that speaks HTTP or TLS does not violate another protocol.
    fn explain(&self, failure: Failure, http: Said, tls: Said) -> Failure {
        match self.0.get() {
            [b'H', b'T', b'T', b'P', b'/'] => Failure::new(Cause::WrongScheme, http),
            // A TLS alert (RFC 8446, 5.1): its type and the version of the record.
            [21, 3, ..] => Failure::new(Cause::WrongScheme, tls),
            _ => failure,
        }
    }
}

/// How a connection opens to a target that requires a login before anything else.
pub(crate) fn login_to(target: &Target, random: &mut Random) -> Option<Handshake> {
    Some(match target.login.as_deref()? {
        Login::Redis(login) => Handshake::Redis(redis::Hello::new(login)),
        Login::Sql(database) => Handshake::Sql(sql::login(database, random)),
    })
}

/// A request for TLS before the login; returns the settings once the server has agreed.
type AskedForTls<'c, 'n> =
    Pin<Box<dyn Future<Output = Result<Option<&'n TlsConnector>, Failure>> + 'c>>;

/// Asks for TLS, if the protocol has a request for that.
pub(super) fn ask_for_tls<'c, 'n: 'c>(
    (network, target): (&'n Network, &'c Target),
    carrier: &'c mut Transport,
    before: &'c mut Pulled,
) -> Option<AskedForTls<'c, 'n>> {
    match target.login.as_deref()? {
        Login::Redis(_) => None,
        Login::Sql(database) => {
            Some(Box::pin(sql::tls(network, (target, database), carrier, before)))
        }
    }
}

/// Failure of a connection whose target violates the protocol, or ends it with an error.
pub(crate) fn violation_failure(violation: &Violation) -> Failure {
    if let Violation::Sql(error) = violation {
        return sql::failure(error);
    }
    let (cause, status) = match violation.nature() {
        Nature::Http(error) => return http_failure(error),
        Nature::Http2(violation) => return http2_failure(violation),
        Nature::Status(status) => (Cause::of_status(status), status),
        Nature::Reset => (Cause::Reset, 0),
        Nature::Foreign => (Cause::WrongScheme, 0),
        Nature::TooLarge => (Cause::TooLarge, 0),
        Nature::Malformed => (Cause::Malformed, 0),
    };
    Failure { status, ..Failure::new(cause, violation.said()) }
}

/// The machine of a connection that opens without a handshake, where its protocol has its own.
pub(crate) fn machine_of(scheme: Scheme) -> Option<Machine> {
    scheme.is_redis().then(|| Machine::Redis(Box::default()))
}

/// What the client of an open connection takes beside the connection.
pub(crate) fn client_bytes(scheme: Scheme) -> u64 {
    let bytes = match scheme {
        scheme if scheme.is_redis() => size_of::<throng_protocol::redis::Client>(),
        scheme if scheme.is_sql() => size_of::<throng_protocol::sql::Client>(),
        _ => 0,
    };
    bytes as u64
}

/// The same of a client that outlives its connections.
pub(crate) fn session_bytes(options: &ConnectOptions) -> u64 {
    let bytes = match options {
        ConnectOptions::Call(_) => 0,
        ConnectOptions::Mqtt(_) => size_of::<throng_protocol::mqtt::Client>(),
    };
    bytes as u64
}
