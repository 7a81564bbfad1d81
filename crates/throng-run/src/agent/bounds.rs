//! Enforces the load limits that the owner of a machine sets.

use throng_fleet::wire::Ceiling;
use throng_program::Change;
use throng_results::MachineInfo;

use crate::wire::Order;

pub(super) struct Bounds {
    ceiling: Ceiling,
    /// The share of the run that this machine generates.
    part: f64,
    /// Maximum starts per second of the whole run, by the plan and all orders so far.
    rate: f64,
    /// Factor by which this machine's part is scaled.
    times: f64,
}

impl Bounds {
    pub(super) fn new(ceiling: Ceiling, machine: &MachineInfo, rate_max: Option<f64>) -> Bounds {
        let part = machine.part.width as f64 / machine.part.of.max(1) as f64;
        Bounds { ceiling, part, rate: rate_max.unwrap_or(0.0), times: 1.0 }
    }

    /// Returns whether the order is within the limits. Only allowed orders affect later decisions.
    pub(super) fn allow(&mut self, order: &Order) -> bool {
        let (users, rate, times) = match *order {
            Order::Amend { change, users_max, .. } => {
                let rate = match change {
                    Change::Rate(rate) => self.rate.max(rate),
                    Change::Times(times) => self.rate * times.max(1.0),
                    Change::Users(_) | Change::EndPhase => self.rate,
                };
                (users_max, rate, self.times)
            }
            Order::Take { users_max, times, .. } => (users_max, self.rate, times),
            Order::Stop | Order::Abort | Order::Pause | Order::GoOn => return true,
            Order::Mark { .. }
            | Order::Record { .. }
            | Order::Presence { .. }
            | Order::Audit { .. }
            | Order::Decline => return true,
        };
        let is_within =
            |whole: f64, max: Option<f64>| max.is_none_or(|max| whole * self.part <= max);
        let allows = is_within(users as f64, self.ceiling.users.map(|users| users as f64))
            && is_within(rate * times, self.ceiling.rate);
        if allows {
            (self.rate, self.times) = (rate, times);
        }
        allows
    }
}

#[cfg(test)]
mod tests {
    use throng_base::LoadPart;

    use super::*;

    fn amend(change: Change, users_max: u64) -> Order {
        Order::Amend { load: 0, at_ns: 0, change, users_max }
    }

    #[test]
    fn no_order_exceeds_the_owners_limits() {
        let machine =
            MachineInfo { part: LoadPart { first: 0, width: 1, of: 4 }, ..MachineInfo::default() };
        let ceiling = Ceiling { users: Some(100), rate: Some(50.0) };
        let mut bounds = Bounds::new(ceiling, &machine, Some(100.0));
        assert!(bounds.allow(&amend(Change::Users(400), 400)));
        assert!(!bounds.allow(&amend(Change::Users(401), 401)));
        assert!(bounds.allow(&amend(Change::Times(2.0), 0)), "50 a second here");
        assert!(!bounds.allow(&amend(Change::Times(1.1), 0)));
        assert!(!bounds.allow(&amend(Change::Rate(201.0), 0)));
        assert!(!bounds.allow(&Order::Take { at_ns: 0, times: 1.5, users_max: 0 }));
        assert!(bounds.allow(&Order::Pause) && bounds.allow(&Order::Stop));
        let mut free = Bounds::new(Ceiling::default(), &machine, None);
        assert!(free.allow(&amend(Change::Rate(1e9), u64::MAX)));
    }
}
