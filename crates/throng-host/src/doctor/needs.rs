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
    /// Every user holds a connection all the time. False where nobody knows beforehand how many
    /// connections there are at once.
    pub holds: bool,
    /// Connections that are opened per second at most; None where nobody said.
    pub opened_per_second: Option<f64>,
    /// Connections per second that users end and open again, while others stay.
    pub reopened_per_second: f64,
    /// Where connections go; empty where no target was named.
    pub routes: Vec<Route>,
    /// Where they come from; empty leaves the address to the system.
    pub sources: Vec<Block>,
    /// Other source ports than those of the system.
    pub ports: Option<(u16, u16)>,
    /// The source addresses are borrowed: the host does not have them.
    pub transparent: bool,
    pub tls: bool,
}

/// An address and port that connections go to.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// None where it is not known.
    pub address: Option<IpAddr>,
    /// The part of the users who go there, more than 0, at most 1.
    pub share: f64,
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

    /// Target and generator are this one host: each connection has both ends here.
    pub fn is_local(&self) -> bool {
        let is_local = |route: &Route| route.address.is_some_and(|it| it.is_loopback());
        !self.routes.is_empty() && self.routes.iter().all(is_local)
    }

    /// How many ends of a connection are on this host.
    pub(super) fn ends(&self) -> u64 {
        1 + u64::from(self.is_local())
    }

    /// The routes, or the one to a target that nobody has named.
    pub(super) fn routes_or_one(&self) -> Vec<Route> {
        match self.routes.is_empty() {
            true => vec![Route { address: None, share: 1.0 }],
            false => self.routes.clone(),
        }
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
