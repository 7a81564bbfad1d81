//! The requirements of a load: the number of users, their targets and their source addresses.

use std::net::IpAddr;

/// The host's role in the test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It runs throng.
    #[default]
    Generator,
    /// It runs the service under test.
    Target,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    pub role: Role,
    /// Concurrent users.
    pub users: u64,
    /// The average number of concurrent connections; less than one counts as one.
    pub connections_per_user: f64,
    /// Every user always has a connection. False if the number of concurrent connections is
    /// unknown.
    pub holds: bool,
    /// The maximum number of connections opened per second; `None` if unknown.
    pub opened_per_second: Option<f64>,
    /// Connections per second that users close and reopen while others stay.
    pub reopened_per_second: f64,
    /// Connections that users drop silently within the two minutes for which each is kept, without
    /// other limits.
    pub vanished: u64,
    /// Each descriptor table has room for dropped connections.
    pub leaves_behind: bool,
    /// Destinations of connections; empty without a target.
    pub routes: Vec<Route>,
    /// Source addresses; if empty, the system chooses.
    pub sources: Vec<Block>,
    /// Source ports that replace the system's range.
    pub ports: Option<(u16, u16)>,
    /// The source addresses are borrowed: the host does not own them.
    pub transparent: bool,
    pub tls: bool,
    /// The share of connections over UDP sockets, from 0 to 1; the others use TCP or unix sockets.
    pub datagrams: f64,
    /// The share of connections over unix sockets, which have no ports.
    pub unix_sockets: f64,
    /// The share of users with their own network, each with an address.
    pub wired: f64,
}

/// An address and port that connections go to.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// `None` if unknown.
    pub address: Option<IpAddr>,
    /// The share of connections that go there: more than 0, at most 1.
    pub share: f64,
    /// They send datagrams: a port is used only once, for any destination.
    pub is_datagram: bool,
}

impl Route {
    /// True if connections to both have the same source addresses.
    fn is_like(&self, other: &Route) -> bool {
        match (self.address, other.address) {
            (Some(one), Some(other)) => {
                one.is_ipv4() == other.is_ipv4() && one.is_loopback() == other.is_loopback()
            }
            (one, other) => one == other,
        }
    }
}

/// Source addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Both ends are included, and of one family.
    Range {
        first: IpAddr,
        last: IpAddr,
    },
    Interface(String),
}

impl Needs {
    /// Only a number of users.
    pub fn of(users: u64, role: Role) -> Needs {
        Needs { role, users, holds: true, ..Needs::default() }
    }

    /// The same for another number of users.
    #[must_use]
    pub fn with_users(self, users: u64) -> Needs {
        let factor = users as f64 / self.users.max(1) as f64;
        Needs {
            users,
            reopened_per_second: self.reopened_per_second * factor,
            vanished: (self.vanished as f64 * factor).ceil() as u64,
            ..self
        }
    }

    /// Target and generator are on this host: each connection has both ends here.
    pub fn is_local(&self) -> bool {
        let is_local = |route: &Route| route.address.is_some_and(|it| it.is_loopback());
        let has_any = !self.routes.is_empty() || self.unix_sockets > 0.0;
        has_any && self.routes.iter().all(is_local)
    }

    /// The largest share of connections that use the same set of ports: those to one address and
    /// port of the target, or all UDP sockets.
    pub fn fullest_share(&self) -> f64 {
        if !self.has_ports() {
            return 0.0;
        }
        self.routes_or_one().iter().map(|route| route.share).fold(0.0, f64::max)
    }

    /// True if any connection has a source address and port.
    pub(super) fn has_ports(&self) -> bool {
        self.unix_sockets < 1.0 && self.wired < 1.0
    }

    /// The number of a connection's ends on this host.
    pub(super) fn ends(&self) -> u64 {
        1 + u64::from(self.is_local())
    }

    /// The routes, or one to an unnamed target. Datagram routes that share their ports are merged.
    pub(super) fn routes_or_one(&self) -> Vec<Route> {
        if self.routes.is_empty() {
            return vec![Route { address: None, share: 1.0, is_datagram: false }];
        }
        let mut routes: Vec<Route> = Vec::new();
        for route in &self.routes {
            let known = |it: &&mut Route| it.is_datagram && it.is_like(route);
            match routes.iter_mut().find(known).filter(|_| route.is_datagram) {
                Some(known) => known.share = (known.share + route.share).min(1.0),
                None => routes.push(route.clone()),
            }
        }
        routes
    }

    /// The connections of all users.
    pub(super) fn connections(&self) -> u64 {
        (self.users as f64 * self.connections_per_user.max(1.0)).ceil() as u64
    }

    /// The number of users for this many connections.
    pub(super) fn users_of(&self, connections: u64) -> u64 {
        match self.connections_per_user > 1.0 {
            true => (connections as f64 / self.connections_per_user) as u64,
            false => connections,
        }
    }

    /// The number of TCP connections; at least one if there are any.
    pub(super) fn of_tcp(&self) -> u64 {
        (self.connections() as f64 * self.tcp_share()).ceil() as u64
    }

    /// Their share of all; a remainder from rounding counts as none.
    fn tcp_share(&self) -> f64 {
        let part = 1.0 - self.datagrams - self.unix_sockets;
        if part > 1e-9 { part } else { 0.0 }
    }

    pub(super) fn of_datagrams(&self) -> u64 {
        (self.connections() as f64 * self.datagrams).ceil() as u64
    }

    pub(super) fn has_tcp(&self) -> bool {
        self.tcp_share() > 0.0
    }

    pub(super) fn has_datagrams(&self) -> bool {
        self.datagrams > 0.0
    }

    pub(super) fn is_target(&self) -> bool {
        self.role == Role::Target
    }

    /// The severity of a shortage: a run is not stopped if its number of connections is unknown.
    pub(super) fn bad(&self) -> super::Severity {
        if self.holds { super::Severity::Unfit } else { super::Severity::Warn }
    }
}
