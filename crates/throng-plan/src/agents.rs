//! Computes how many agents of a fleet a load needs, if each runs on a machine like the measured
//! one: the resource that limits a machine, and the uncertainty of the result.

use crate::machine::Machine;
use crate::measured::Measured;
use crate::reckon::{Cost, Resource, Row, Wish, reckon};

/// The agents that a load needs; see the module's description.
#[derive(Clone, Debug, PartialEq)]
pub struct Agents {
    /// [`u64::MAX`] if no number is enough.
    pub count: u64,
    /// The number if requests cost as much as in the cheapest and in the most expensive seconds.
    pub range: Option<(u64, u64)>,
    /// The cost of a request in those seconds.
    pub request_ns: Option<(f64, f64)>,
    pub rows: Vec<Load>,
    /// Bytes per second that each agent receives and sends.
    pub network: Option<(f64, f64)>,
    /// The load of each agent, as a multiple of the run's users or requests.
    pub times: f64,
}

/// The use of a resource on each agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    pub resource: Resource,
    pub taken: f64,
    /// The usable amount.
    pub given: f64,
}

impl Load {
    /// Needed divided by usable; above 1 if there is not enough.
    pub fn share(&self) -> f64 {
        self.taken / self.given.max(f64::MIN_POSITIVE)
    }
}

/// Divides the load over agents, with the costs in `measured`.
pub fn agents((wish, cost, machine): (&Wish, &Cost, &Machine), measured: &Measured) -> Agents {
    let reckoned = reckon(wish, cost, machine);
    let with = |request_ns: f64| {
        // If a request costs more, a connection does, too.
        let times = request_ns / cost.request_ns.max(f64::MIN_POSITIVE);
        let cost = Cost { request_ns, connect_ns: cost.connect_ns * times, ..*cost };
        reckon(wish, &cost, machine).machines
    };
    let count = reckoned.machines;
    let part = count as f64;
    let load =
        |row: &Row| Load { resource: row.resource, taken: row.needed / part, given: row.given };
    let per_agent = |bytes: f64| bytes * wish.requests_per_s / part;
    Agents {
        count,
        range: measured.request_range_ns.map(|(low, high)| (with(low), with(high))),
        request_ns: measured.request_range_ns,
        rows: reckoned.rows.iter().map(load).collect(),
        network: measured
            .request_bytes
            .map(|(input, output)| (per_agent(input), per_agent(output))),
        times: match measured.requests_per_s > 0.0 && wish.requests_per_s > 0.0 {
            true => wish.requests_per_s / part / measured.requests_per_s,
            false => wish.users as f64 / part / measured.users.max(1) as f64,
        },
    }
}

impl Agents {
    /// The scarcest resource on each agent.
    pub fn limit(&self) -> Option<&Load> {
        self.rows.iter().max_by(|one, other| one.share().total_cmp(&other.share()))
    }
}
