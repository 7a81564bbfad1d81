//! Ends the load of an isolated agent. There are two timeouts: without the bus a short one, because
//! the load could not be stopped; with the bus but without a controller a long one, because a
//! controller may return and nothing is lost meanwhile. The load ends gracefully: users leave,
//! lines are kept.

use std::time::Duration;

use throng_base::Time;

/// How long an isolated agent continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    pub bus: Duration,
    pub controller: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { bus: Duration::from_secs(30), controller: Duration::from_mins(10) }
    }
}

/// What was not heard for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    Bus,
    Controller,
}

/// An agent's dead-man switch. It fires permanently: a returning controller finds a load that ends,
/// not one that has restarted unnoticed.
#[derive(Clone, Debug)]
pub struct Orphan {
    patience: Patience,
    /// When the bus was lost.
    cut: Option<Time>,
    beacon: Time,
    fired: Option<Alone>,
}

impl Orphan {
    /// Starts with a load, when bus and controller are available.
    pub fn new(patience: Patience, now: Time) -> Orphan {
        Orphan { patience, cut: None, beacon: now, fired: None }
    }

    pub fn bus_is_lost(&mut self, now: Time) {
        self.cut.get_or_insert(now);
    }

    pub fn bus_is_back(&mut self) {
        self.cut = None;
    }

    /// Handles the controller's beacon, which also proves that the bus is available.
    pub fn beacon(&mut self, now: Time) {
        self.beacon = self.beacon.max(now);
        self.cut = None;
    }

    /// What was missed, if the load must end.
    pub fn alone(&mut self, now: Time) -> Option<Alone> {
        let bus = self.cut.filter(|&cut| now.since(cut) >= self.patience.bus);
        let controller = now.since(self.beacon) >= self.patience.controller;
        let why = bus.map(|_| Alone::Bus).or(controller.then_some(Alone::Controller));
        self.fired = self.fired.or(why);
        self.fired
    }

    /// When to check again at the latest.
    pub fn next(&self) -> Time {
        let bus = self.cut.map_or(Time::NEVER, |cut| cut + self.patience.bus);
        bus.min(self.beacon + self.patience.controller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    #[test]
    fn a_load_ends_soon_without_the_bus_and_late_without_a_controller() {
        let mut orphan = Orphan::new(Patience::default(), at(0));
        assert_eq!(orphan.next(), at(600));
        orphan.bus_is_lost(at(10));
        // Further notifications of the loss change nothing.
        orphan.bus_is_lost(at(20));
        assert_eq!(orphan.next(), at(40));
        assert_eq!(orphan.alone(at(39)), None);
        orphan.bus_is_back();
        assert_eq!(orphan.alone(at(599)), None);
        orphan.beacon(at(599));
        assert_eq!(orphan.alone(at(1_198)), None);
        assert_eq!(orphan.alone(at(1_199)), Some(Alone::Controller));
        orphan.beacon(at(1_200));
        assert_eq!(orphan.alone(at(1_200)), Some(Alone::Controller), "it stays so");
    }

    #[test]
    fn a_permanently_lost_bus_ends_the_load() {
        let mut orphan = Orphan::new(Patience::default(), at(0));
        orphan.bus_is_lost(at(5));
        assert_eq!(orphan.alone(orphan.next()), Some(Alone::Bus));
    }
}
