//! Counts by target address.

use std::rc::Rc;

use throng_metrics::TargetInterval;

use super::Attempt;
use super::rows::Rows;
use crate::network::routes::Places;
use crate::recorder::spent::nanos;

/// Counts by target address, if there are several; otherwise it costs nothing.
pub(crate) struct Targets {
    places: Places,
    pub(super) rows: Rows<TargetInterval>,
}

impl Targets {
    pub(super) fn new(places: &Places) -> Targets {
        Targets { places: Rc::clone(places), rows: Rows::new(places.borrow().len()) }
    }

    /// The row of an address, if there are several.
    #[inline]
    pub(crate) fn of(&mut self, address: u16) -> Option<&mut TargetInterval> {
        let index = usize::from(address);
        let place = *self.places.borrow().get(index)?;
        self.rows.reach(index);
        Some(self.rows.at(index, || TargetInterval::new(place)))
    }

    /// An attempt was cut off whose last try went to an address.
    pub(crate) fn interrupted(&mut self, place: Option<u16>) {
        if let Some(row) = place.and_then(|place| self.of(place)) {
            row.interrupted += 1;
        }
    }

    /// An attempt ended whose last try went to this address.
    #[inline]
    pub(crate) fn ended(&mut self, address: u16, attempt: &Attempt, ok: bool) {
        if let Some(row) = self.of(address) {
            row.count += 1;
            row.ok += u64::from(ok);
            if let Some(latency) = attempt.latency {
                row.latency.record(nanos(latency));
            }
            row.bytes_in += attempt.bytes_in;
            row.bytes_out += attempt.bytes_out;
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let filled = self.rows.rows.iter().map(|row| row.latency.heap_bytes()).sum::<usize>();
        self.rows.own_bytes() + filled
    }
}
