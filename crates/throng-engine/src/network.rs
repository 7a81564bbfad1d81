//! The network of a shard: settings for new connections, and the connections that users dropped
//! silently. [`crate::connector`] opens connections. `wired`: users with their own network.

pub(crate) mod lookups;
pub mod pem;
pub(crate) mod routes;
pub(crate) mod sources;
pub(crate) mod tls;
pub(crate) mod vanished;
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
use throng_program::{HttpVersion, Scheme, Target, Tls};
use tokio_rustls::TlsConnector;

use crate::prepared::Prepared;
use crate::transport::{Transport, stream};
use routes::Route;
use sources::{Pool, Pools};
use vanished::Vanished;
pub(crate) use wired::Wired;

/// How the connections of one shard are opened.
pub(crate) enum Connector {
    Network(Box<Network>),
    #[cfg(test)]
    World(Rc<crate::world::World>),
}

impl Connector {
    /// Drops the connection silently: from now on, nothing is read or answered. The kernel still
    /// retransmits unacknowledged data.
    pub(crate) fn vanish(&self, transport: Transport, now: Time) {
        match self {
            Connector::Network(network) => {
                network.vanished.keep_silent(transport.into_socket(), now);
            }
            #[cfg(test)]
            Connector::World(_) => transport.in_memory(crate::world::MemoryStream::vanish),
        }
    }

    /// Closes the sending half, after a TLS close_notify, and keeps the connection unread until the
    /// target closes its half. A UDP socket has no halves and is closed.
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

    /// Packet counts of users with their own network, since the last call.
    pub(crate) fn take_packets(&self) -> Packets {
        match self {
            Connector::Network(network) => {
                network.wired.as_ref().map(|wired| wired.take_packets()).unwrap_or_default()
            }
            #[cfg(test)]
            Connector::World(_) => Packets::default(),
        }
    }

    /// Closes connections that were kept long enough, or that the target has closed.
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
    /// The same for HTTP, which may negotiate HTTP/2.
    pub(crate) tls_http: Option<TlsConnector>,
    /// The same for schemes that require HTTP/2.
    pub(crate) tls_http2: Option<TlsConnector>,
    /// The same for connections that start without TLS; without ALPN, because the protocol is
    /// already known.
    pub(crate) tls_within: Option<TlsConnector>,
    /// The same for schemes that offer a protocol of their own ([`Scheme::alpn`]).
    tls_own: Vec<(Scheme, TlsConnector)>,
    pub(crate) server_names: Vec<Option<ServerName<'static>>>,
    pub(crate) pools: Pools,
    pub(crate) vanished: Vanished,
    /// Several small writes may be in flight: Nagle's algorithm (RFC 896) must not delay the last
    /// one.
    pub(crate) sends_in_pieces: bool,
    /// While this socket exists, the kernel keeps receive timestamps.
    pub(crate) stamps: Option<Socket>,
    /// The wire, if users have their own network. Dropped last: it delivers the remaining packets.
    pub(crate) wired: Option<Arc<Wired>>,
}

impl Network {
    /// The network of one shard. Each shard has its own TLS settings, so that shards share no
    /// session cache.
    pub(crate) fn new(
        tls: Option<&Arc<ClientConfig>>,
        prepared: &Prepared,
        (pools, wired): (Pools, Option<Arc<Wired>>),
        vanished: Vanished,
    ) -> Network {
        let program = &prepared.program;
        let targets = program.targets.iter();
        let agreeing = |version: HttpVersion| {
            let config = tls.and_then(|config| tls::agreeing(config, version));
            config.map(|config| TlsConnector::from(Arc::new(config)))
        };
        let offering = |protocols: &[&[u8]]| {
            tls.map(|config| {
                let mut config = ClientConfig::clone(config);
                config.alpn_protocols = protocols.iter().map(|one| one.to_vec()).collect();
                TlsConnector::from(Arc::new(config))
            })
        };
        let own = |scheme: Scheme| Some((scheme, offering(&[scheme.alpn()?])?));
        let schemes = Scheme::ALL.into_iter();
        Network {
            tls: tls.map(|config| TlsConnector::from(Arc::clone(config))),
            tls_http: agreeing(program.connection.http_version),
            tls_http2: agreeing(HttpVersion::Http2),
            tls_within: offering(&[]),
            tls_own: schemes.filter_map(own).collect(),
            server_names: targets.map(|target| server_name(&program.tls, target)).collect(),
            pools,
            wired,
            vanished,
            sends_in_pieces: prepared.sends_in_pieces(),
            stamps: prepared.stamps().then(stream::keep_stamping).and_then(Result::ok),
        }
    }

    /// For a scheme that offers a protocol of its own.
    pub(crate) fn tls_of(&self, scheme: Scheme) -> Option<&TlsConnector> {
        self.tls_own.iter().find(|(own, _)| *own == scheme).map(|(_, tls)| tls)
    }

    /// The sources of connections to an address of this route.
    pub(crate) fn pool(&self, target: u16, route: &Route, address: SocketAddr) -> Rc<Pool> {
        self.pools.to(target, address, &route.addresses)
    }

    /// Without TLS.
    #[cfg(test)]
    pub(crate) fn plain(pools: Pools) -> Network {
        Network {
            tls: None,
            tls_http: None,
            tls_http2: None,
            tls_within: None,
            tls_own: Vec::new(),
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
