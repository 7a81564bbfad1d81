//! What is wanted of a host: how many users, where they go and where they come from.

use std::net::IpAddr;

/// Who the host is in the test.
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
    /// At the same time.
    pub users: u64,
    /// On average, at the same time; less than one counts as one.
    pub connections_per_user: f64,
    /// Every user holds a connection all the time. False where nobody knows beforehand how many
    /// connections there are at once.
    pub holds: bool,
    /// Connections that are opened per second at most; None where nobody said.
    pub opened_per_second: Option<f64>,
    /// Connections per second that users end and open again, while others stay.
    pub reopened_per_second: f64,
    /// Connections that users leave without a word, as many as there are within the two minutes for
    /// which each is kept, if nothing else bounds them.
    pub vanished: u64,
    /// Each table of descriptors has a place for connections that were left behind.
    pub leaves_behind: bool,
    /// Where connections go; empty where no target was named.
    pub routes: Vec<Route>,
    /// Where they come from; empty leaves the address to the system.
    pub sources: Vec<Block>,
    /// Other source ports than those of the system.
    pub ports: Option<(u16, u16)>,
    /// The source addresses are borrowed: the host does not have them.
    pub transparent: bool,
    pub tls: bool,
    /// The part of the connections that are sockets of datagrams (UDP), from 0 to 1; the others
    /// are of TCP, or unix sockets.
    pub datagrams: f64,
    /// The part of the connections that are unix sockets, which have no ports.
    pub unix_sockets: f64,
    /// The part of the users who have a network of their own, each with an address.
    pub wired: f64,
}

/// An address and port that connections go to.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// None where it is not known.
    pub address: Option<IpAddr>,
    /// The part of the connections that go there, more than 0, at most 1.
    pub share: f64,
    /// They send datagrams: a port serves only once, wherever they go.
    pub is_datagram: bool,
}

impl Route {
    /// Whether connections to both come from the same addresses.
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
    /// Both ends are in it, and of one family.
    Range {
        first: IpAddr,
        last: IpAddr,
    },
    Interface(String),
}

impl Needs {
    /// Users alone, of whom nothing else is known.
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

    /// Target and generator are this one host: each connection has both ends here.
    pub fn is_local(&self) -> bool {
        let is_local = |route: &Route| route.address.is_some_and(|it| it.is_loopback());
        let has_any = !self.routes.is_empty() || self.unix_sockets > 0.0;
        has_any && self.routes.iter().all(is_local)
    }

    /// The part of all connections that take their ports from the same, where it is the largest: an
    /// address and port of the target, or all sockets of UDP together.
    pub fn fullest_share(&self) -> f64 {
        if !self.has_ports() {
            return 0.0;
        }
        self.routes_or_one().iter().map(|route| route.share).fold(0.0, f64::max)
    }

    /// Whether any connection has a source address and port.
    pub(super) fn has_ports(&self) -> bool {
        self.unix_sockets < 1.0 && self.wired < 1.0
    }

    /// How many ends of a connection are on this host.
    pub(super) fn ends(&self) -> u64 {
        1 + u64::from(self.is_local())
    }

    /// The routes, or the one to a target that nobody has named. Those of datagrams that share
    /// their ports are one.
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

    /// Those of all users together.
    pub(super) fn connections(&self) -> u64 {
        (self.users as f64 * self.connections_per_user.max(1.0)).ceil() as u64
    }

    /// The users that so many connections are enough for.
    pub(super) fn users_of(&self, connections: u64) -> u64 {
        match self.connections_per_user > 1.0 {
            true => (connections as f64 / self.connections_per_user) as u64,
            false => connections,
        }
    }

    /// How many connections are of TCP; at least one where anybody has one.
    pub(super) fn of_tcp(&self) -> u64 {
        (self.connections() as f64 * self.tcp_share()).ceil() as u64
    }

    /// Their part of all; what is left of a sum of parts is none.
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

    /// What is bad when it is too little: nobody is stopped where it is not known how many
    /// connections there will be.
    pub(super) fn bad(&self) -> super::Severity {
        if self.holds { super::Severity::Unfit } else { super::Severity::Warn }
    }
}
