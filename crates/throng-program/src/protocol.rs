//! The protocols: their schemes, and their specific options. How a connection opens, what is sent
//! over it, and its credentials are one enum each, with a variant for each protocol that needs it.

pub mod grpc;
pub mod mqtt;
pub mod redis;
pub mod sql;

use throng_expression::Expression;
use throng_protocol::{framed, protobuf};

pub use self::grpc::{Call, Opened};
pub use self::sql::{Database, Sql, SslMode};
use crate::text::{Composed, Text};

/// Whether connections of a scheme use TLS.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Secured {
    Never,
    Always,
    /// Only if the URL requires it.
    ByUrl,
}

macro_rules! schemes {
    ($(
        $(#[$doc:meta])*
        $name:ident, $word:literal $(or $other:literal)?, $secured:ident, $port:expr;
    )*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Scheme {
            $($(#[$doc])* $name,)*
        }

        impl Scheme {
            pub const ALL: [Scheme; [$($word,)*].len()] = [$(Scheme::$name,)*];

            pub const fn word(self) -> &'static str {
                match self { $(Scheme::$name => $word,)* }
            }

            /// The scheme with this word, in any case.
            pub fn named(word: &str) -> Option<Scheme> {
                let is = |one: &str| word.eq_ignore_ascii_case(one);
                $(if is($word) $(|| is($other))? {
                    return Some(Scheme::$name);
                })*
                None
            }

            const fn secured(self) -> Secured {
                match self { $(Scheme::$name => Secured::$secured,)* }
            }

            pub const fn default_port(self) -> Option<u16> {
                match self { $(Scheme::$name => $port,)* }
            }
        }
    };
}

// The name and its alias, TLS, the default port.
schemes! {
    Http, "http", Never, Some(80);
    Https, "https", Always, Some(443);
    Ws, "ws", Never, Some(80);
    Wss, "wss", Always, Some(443);
    Tcp, "tcp", Never, None;
    /// Raw bytes over TLS.
    Tls, "tls", Always, None;
    /// Datagrams; they may be lost, and there is no connection that could end.
    Udp, "udp", Never, None;
    /// HTTP/2 with prior knowledge.
    Grpc, "grpc", Never, None;
    Grpcs, "grpcs", Always, Some(443);
    Mqtt, "mqtt", Never, Some(1883);
    Mqtts, "mqtts", Always, Some(8883);
    Redis, "redis", Never, Some(6379);
    Rediss, "rediss", Always, Some(6379);
    Postgres, "postgres" or "postgresql", ByUrl, Some(5432);
    MySql, "mysql" or "mariadb", ByUrl, Some(3306);
}

impl Scheme {
    pub fn is_secure(self) -> bool {
        self.secured() == Secured::Always
    }

    /// Whether there are targets of the scheme that use TLS.
    pub fn may_be_secure(self) -> bool {
        self.secured() != Secured::Never
    }
}

/// The credentials in a target's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    Redis(redis::Login),
    Sql(Database),
}

impl Login {
    /// Whether the client may ask for TLS at login.
    pub fn may_be_secure(&self) -> bool {
        matches!(self, Login::Sql(Database { tls, .. }) if *tls != SslMode::Disable)
    }
}

/// Protocol-specific options of a `connect`.
#[derive(Clone, Debug)]
pub enum ConnectOptions {
    /// The gRPC call of the connection.
    Call(Opened),
    /// The MQTT client. Over TCP, or in the messages of a WebSocket.
    Mqtt(mqtt::Client),
}

impl ConnectOptions {
    /// Whether the connection resumes a session that the server has kept.
    pub fn resumes(&self) -> bool {
        matches!(self, ConnectOptions::Mqtt(client) if !client.clean_start)
    }

    /// Whether the client keeps a session across connections.
    pub fn keeps_session(&self) -> bool {
        matches!(self, ConnectOptions::Mqtt(_))
    }

    /// The gRPC call of the connection.
    pub fn call(&self) -> Option<&Opened> {
        match self {
            ConnectOptions::Call(opened) => Some(opened),
            ConnectOptions::Mqtt(_) => None,
        }
    }

    pub fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        match self {
            ConnectOptions::Call(opened) => opened.expressions(visit),
            ConnectOptions::Mqtt(client) => client.expressions(visit),
        }
    }
}

/// A message on a long-lived connection.
#[derive(Clone, Debug)]
pub enum Content {
    /// On raw TCP and on declared protocols both kinds are only bytes.
    Plain {
        kind: MessageKind,
        content: Text,
    },
    Declared(Box<Composed<framed::Template>>),
    /// A message of a call that stays open.
    Proto(Box<Composed<protobuf::Template>>),
    Mqtt(Box<mqtt::Order>),
    Redis(Box<redis::Commands>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    Text,
    Binary,
}

/// A message of a protocol-specific verb.
pub trait Command {
    fn verb(&self) -> &'static str;

    /// The text that receivers get, if there is one.
    fn text(&self) -> Option<&Text>;

    /// Whether unsolicited messages may follow.
    fn subscribes(&self) -> bool;

    fn expressions(&self, visit: &mut dyn FnMut(&Expression));
}

impl Content {
    fn command(&self) -> Option<&dyn Command> {
        match self {
            Content::Plain { .. } | Content::Declared(_) | Content::Proto(_) => None,
            Content::Mqtt(order) => Some(&**order),
            Content::Redis(commands) => Some(&**commands),
        }
    }

    /// Its own verb, if it is not sent by `send` or `request`. Such a message is acknowledged; no
    /// other message is its reply.
    pub fn verb(&self) -> Option<&'static str> {
        self.command().map(Command::verb)
    }

    /// The text that receivers get, if there is one.
    pub fn text(&self) -> Option<&Text> {
        match self {
            Content::Plain { content, .. } => Some(content),
            content => content.command()?.text(),
        }
    }

    /// Whether unsolicited messages may follow.
    pub fn subscribes(&self) -> bool {
        self.command().is_some_and(Command::subscribes)
    }

    pub fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        match self {
            Content::Plain { content, .. } => content.expressions(visit),
            Content::Declared(declared) => declared.expressions(visit),
            Content::Proto(message) => message.expressions(visit),
            content => content.command().into_iter().for_each(|own| own.expressions(visit)),
        }
    }
}
