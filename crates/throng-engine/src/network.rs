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
use throng_program::{Scheme, Target, Tls};
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
    /// The settings for TLS, one for each offer of protocols; none without TLS.
    tls: Vec<TlsConnector>,
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
        let own = Scheme::ALL.into_iter().filter_map(|scheme| Some(vec![scheme.alpn()?]));
        // Connections that start without TLS offer nothing: the protocol is already known.
        let offers = [tls::HTTP1, tls::HTTP2, tls::ANY_HTTP, &[]].map(<[_]>::to_vec);
        let offering = |config: &Arc<ClientConfig>| {
            let offers = offers.into_iter().chain(own);
            let configs = offers.map(|offer| Arc::new(tls::offering(config, &offer)));
            configs.map(TlsConnector::from).collect()
        };
        Network {
            tls: tls.map(offering).unwrap_or_default(),
            server_names: targets.map(|target| server_name(&program.tls, target)).collect(),
            pools,
            wired,
            vanished,
            sends_in_pieces: prepared.sends_in_pieces(),
            stamps: prepared.stamps().then(stream::keep_stamping).and_then(Result::ok),
        }
    }

    /// The settings for TLS that offer these protocols.
    pub(crate) fn tls(&self, offer: &tls::Offer) -> Option<&TlsConnector> {
        self.tls.iter().find(|tls| tls.config().alpn_protocols == offer)
    }

    /// The sources of connections to an address of this route.
    pub(crate) fn pool(&self, target: u16, route: &Route, address: SocketAddr) -> Rc<Pool> {
        self.pools.to(target, address, &route.addresses)
    }

    /// Without TLS.
    #[cfg(test)]
    pub(crate) fn plain(pools: Pools) -> Network {
        Network {
            tls: Vec::new(),
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
