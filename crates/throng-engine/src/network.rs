//! What a shard opens connections with, and where those go that it leaves without a word;
//! [`crate::connector`] opens them. `wired`: where users have a network of their own.

mod wired;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::Socket;
use throng_base::Time;
use throng_metrics::Packets;
use throng_program::{HttpVersion, Target, Tls};
use tokio_rustls::TlsConnector;

use crate::prepared::Prepared;
use crate::routes::Route;
use crate::sources::{Pool, Pools};
use crate::transport::{Transport, stream};
use crate::vanished::Vanished;
pub(crate) use wired::Wired;

/// How connections come into being on one shard.
pub(crate) enum Connector {
    Network(Box<Network>),
    #[cfg(test)]
    World(Rc<crate::world::World>),
}

impl Connector {
    /// Leaves the connection without a word: from now on nothing that comes is heard or answered.
    /// What was sent before and is not acknowledged the kernel goes on to repeat.
    pub(crate) fn vanish(&self, transport: Transport, now: Time) {
        match self {
            Connector::Network(network) => {
                network.vanished.keep_silent(transport.into_socket(), now);
            }
            #[cfg(test)]
            Connector::World(_) => transport.in_memory(crate::world::MemoryStream::vanish),
        }
    }

    /// Closes our half, with the last word of TLS before, and keeps the connection unread until
    /// the target closes its own. Of datagrams there are no halves: such a socket is closed.
    pub(crate) fn half_close(&self, mut transport: Transport, now: Time) {
        transport.say_goodbye(&mut Context::from_waker(Waker::noop()));
        match self {
            Connector::Network(network) if !transport.is_datagram() => {
                network.vanished.keep_half_closed(transport.into_socket(), now);
            }
            Connector::Network(_) => {}
            #[cfg(test)]
            Connector::World(_) => transport.in_memory(crate::world::MemoryStream::half_close),
        }
    }

    /// What became of the packets of users with a network of their own, since the last call.
    pub(crate) fn take_packets(&self) -> Packets {
        match self {
            Connector::Network(network) => {
                network.wired.as_ref().map(|wired| wired.take_packets()).unwrap_or_default()
            }
            #[cfg(test)]
            Connector::World(_) => Packets::default(),
        }
    }

    /// Lets connections go that were kept long enough, or that the target has closed.
    pub(crate) fn forget_vanished(&self, now: Time) {
        match self {
            Connector::Network(network) => network.vanished.forget(now),
            #[cfg(test)]
            Connector::World(_) => {}
        }
    }
}

pub(crate) struct Network {
    pub(crate) tls: Option<TlsConnector>,
    /// The same for HTTP, where HTTP/2 may be agreed on.
    pub(crate) tls_http: Option<TlsConnector>,
    /// The same for gRPC, which is HTTP/2 alone.
    pub(crate) tls_grpc: Option<TlsConnector>,
    /// The same for connections that begin without TLS, without a protocol (ALPN): what is spoken
    /// there is known before.
    pub(crate) tls_within: Option<TlsConnector>,
    /// The same for databases, which refuse other protocols (PostgreSQL 17, ALPN).
    pub(crate) tls_sql: Option<TlsConnector>,
    pub(crate) server_names: Vec<Option<ServerName<'static>>>,
    pub(crate) pools: Pools,
    pub(crate) vanished: Vanished,
    /// More than one small write may be under way: Nagle's algorithm (RFC 896) must not hold the
    /// last one back.
    pub(crate) sends_in_pieces: bool,
    /// The kernel is asked when what comes came, and has been by this one from the beginning.
    pub(crate) stamps: Option<Socket>,
    /// Where users have a network of their own. It is dropped last: it delivers what is left.
    pub(crate) wired: Option<Arc<Wired>>,
}

impl Network {
    /// What a shard opens connections with. The TLS side is made once per shard, so that shards
    /// share no session cache.
    pub(crate) fn new(
        tls: Option<&Arc<ClientConfig>>,
        prepared: &Prepared,
        (pools, wired): (Pools, Option<Arc<Wired>>),
        vanished: Vanished,
    ) -> Network {
        let program = &prepared.program;
        let targets = program.targets.iter();
        let agreeing = |version: HttpVersion| {
            let config = tls.and_then(|config| crate::tls::agreeing(config, version));
            config.map(|config| TlsConnector::from(Arc::new(config)))
        };
        let offering = |protocols: &[&[u8]]| {
            tls.map(|config| {
                let mut config = ClientConfig::clone(config);
                config.alpn_protocols = protocols.iter().map(|one| one.to_vec()).collect();
                TlsConnector::from(Arc::new(config))
            })
        };
        Network {
            tls: tls.map(|config| TlsConnector::from(Arc::clone(config))),
            tls_http: agreeing(program.connection.http_version),
            tls_grpc: agreeing(HttpVersion::Http2),
            tls_within: offering(&[]),
            tls_sql: offering(&[b"postgresql"]),
            server_names: targets.map(|target| server_name(&program.tls, target)).collect(),
            pools,
            wired,
            vanished,
            sends_in_pieces: prepared.sends_in_pieces(),
            stamps: prepared.stamps().then(stream::keep_stamping).and_then(Result::ok),
        }
    }

    /// Where connections to an address of this route of a target come from.
    pub(crate) fn pool(&self, target: u16, route: &Route, address: SocketAddr) -> Rc<Pool> {
        self.pools.to(target, address, &route.addresses)
    }

    /// Without TLS.
    #[cfg(test)]
    pub(crate) fn plain(pools: Pools) -> Network {
        Network {
            tls: None,
            tls_http: None,
            tls_grpc: None,
            tls_within: None,
            tls_sql: None,
            server_names: Vec::new(),
            pools,
            wired: None,
            vanished: Vanished::new(0),
            sends_in_pieces: false,
            stamps: None,
        }
    }
}

pub(crate) fn server_name(options: &Tls, target: &Target) -> Option<ServerName<'static>> {
    let name = options.server_name.as_deref().unwrap_or(target.host_alone());
    ServerName::try_from(name.to_string()).ok()
}
