//! The addresses of each target, and the report row of each. They change if names are looked up
//! again during the run.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use throng_metrics::Place;

use crate::network::lookups::Lookups;
use crate::prepared::Prepared;

/// Most rows of a report. A name that keeps getting new addresses for days has no more; connections
/// to further addresses are in no row.
const PLACES_MAX: usize = 1_000;
/// The row of an address without one.
const NO_PLACE: u16 = u16::MAX;

/// The rows of addresses, which all recorders of a shard share.
pub(crate) type Places = Rc<RefCell<Vec<Place>>>;

/// The addresses of a target. An opening connection keeps its route, whatever changes meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Route {
    /// Empty for a unix socket.
    pub(crate) addresses: Box<[SocketAddr]>,
    /// The row of each address, or of the unix socket.
    places: Box<[u16]>,
}

impl Route {
    /// The index of the address for the turn of a connection.
    pub(crate) fn nth(&self, turn: u64) -> usize {
        (turn % self.addresses.len().max(1) as u64) as usize
    }

    /// The row of the address for this turn.
    pub(crate) fn place(&self, turn: u64) -> u16 {
        self.places.get(self.nth(turn)).copied().unwrap_or(NO_PLACE)
    }
}

/// The routes of all targets on a shard.
pub(crate) struct Routes {
    targets: RefCell<Vec<Rc<Route>>>,
    places: Places,
    lookups: Option<Arc<Lookups>>,
    /// The change of the lookups that these routes reflect.
    change: Cell<u64>,
}

impl Routes {
    pub(crate) fn new(prepared: &Prepared, lookups: Option<Arc<Lookups>>) -> Routes {
        let target = |(number, target): (u16, &crate::prepared::PreparedTarget)| {
            let count = target.addresses.len().max(1) as u16;
            let first = target.first_place;
            let places = (first..first.saturating_add(count)).collect();
            debug_assert!(usize::from(number) < prepared.targets.len());
            Rc::new(Route { addresses: target.addresses.as_slice().into(), places })
        };
        let targets = (0..).zip(&prepared.targets).map(target).collect();
        Routes {
            targets: RefCell::new(targets),
            places: Rc::new(RefCell::new(prepared.places.to_vec())),
            lookups,
            change: Cell::new(0),
        }
    }

    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// The route of a connection that opens now.
    pub(crate) fn to(&self, target: u16) -> Rc<Route> {
        if let Some(lookups) = &self.lookups
            && let Some(change) = lookups.change_after(self.change.get())
        {
            self.change.set(change);
            self.follow(lookups);
        }
        self.targets.borrow().get(usize::from(target)).map(Rc::clone).unwrap_or_default()
    }

    /// A connection to the target failed: its name may have new addresses.
    pub(crate) fn failed(&self, target: u16) {
        if let Some(lookups) = &self.lookups {
            lookups.failed(target);
        }
    }

    fn follow(&self, lookups: &Lookups) {
        for (number, route) in (0..).zip(self.targets.borrow_mut().iter_mut()) {
            let Some(addresses) = lookups.addresses(number) else { continue };
            if *addresses != *route.addresses {
                let places = addresses.iter().map(|address| self.place_of(number, *address));
                *route = Rc::new(Route { places: places.collect(), addresses: addresses.into() });
            }
        }
    }

    /// The row that an address had before, or a new one.
    fn place_of(&self, target: u16, address: SocketAddr) -> u16 {
        let mut places = self.places.borrow_mut();
        let place = Place { target, address: Some(address) };
        let known = places.iter().position(|known| *known == place);
        match known {
            Some(index) => index as u16,
            None if places.len() >= PLACES_MAX => NO_PLACE,
            None => {
                places.push(place);
                (places.len() - 1) as u16
            }
        }
    }
}
