//! When an agent that hears nobody ends its load. Two clocks: without the bus it soon does, as
//! nobody could stop it; with the bus but without a controller it goes on for long, as a controller
//! may come back and nothing is lost meanwhile. The load ends in order: users leave, lines are
//! kept.

use std::time::Duration;

use throng_base::Time;

/// How long an agent goes on alone.
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

/// Who was not heard for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    Bus,
    Controller,
}

/// An agent's dead-man switch. Once it has fired it stays so: whoever comes back finds a load that
/// ends, not one that began again behind their back.
#[derive(Clone, Debug)]
pub struct Orphan {
    patience: Patience,
    /// Since when there is no bus.
    cut: Option<Time>,
    beacon: Time,
    fired: Option<Alone>,
}

impl Orphan {
    /// Begins with a load, at whose start bus and controller were there.
    pub fn new(patience: Patience, now: Time) -> Orphan {
        Orphan { patience, cut: None, beacon: now, fired: None }
    }

    pub fn bus_is_lost(&mut self, now: Time) {
        self.cut.get_or_insert(now);
    }

    pub fn bus_is_back(&mut self) {
        self.cut = None;
    }

    /// The controller's beacon; it comes over the bus, so that is there too.
    pub fn beacon(&mut self, now: Time) {
        self.beacon = self.beacon.max(now);
        self.cut = None;
    }

    /// Whether the load has to end, and who was missed.
    pub fn alone(&mut self, now: Time) -> Option<Alone> {
        let bus = self.cut.filter(|&cut| now.since(cut) >= self.patience.bus);
        let controller = now.since(self.beacon) >= self.patience.controller;
        let why = bus.map(|_| Alone::Bus).or(controller.then_some(Alone::Controller));
        self.fired = self.fired.or(why);
        self.fired
    }

    /// When to ask again at the latest.
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
    fn a_load_without_the_bus_ends_soon_and_without_a_controller_late() {
        let mut orphan = Orphan::new(Patience::default(), at(0));
        assert_eq!(orphan.next(), at(600));
        orphan.bus_is_lost(at(10));
        // Lost is lost, however often it is noticed.
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
    fn a_bus_that_is_cut_for_good_ends_the_load() {
        let mut orphan = Orphan::new(Patience::default(), at(0));
        orphan.bus_is_lost(at(5));
        assert_eq!(orphan.alone(orphan.next()), Some(Alone::Bus));
    }
}
