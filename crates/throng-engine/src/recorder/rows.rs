//! The rows of an interval: one for each active step.

use throng_base::StepId;
use throng_metrics::{Histogram, StepInterval};

/// The rows of the steps or addresses that were active in this interval: in a large run most shards
/// are inactive in most steps, and a row takes a quarter of a kilobyte.
pub(super) struct Rows<T> {
    /// By step: the index of its row, or [`NO_ROW`].
    pub(super) places: Vec<u32>,
    pub(super) rows: Vec<T>,
}

const NO_ROW: u32 = u32::MAX;

impl<T> Rows<T> {
    pub(super) fn new(steps: usize) -> Rows<T> {
        Rows { places: vec![NO_ROW; steps], rows: Vec::new() }
    }

    #[inline]
    pub(super) fn at(&mut self, index: usize, new: impl FnOnce() -> T) -> &mut T {
        let place = &mut self.places[index];
        if *place == NO_ROW {
            *place = self.rows.len() as u32;
            self.rows.push(new());
        }
        &mut self.rows[*place as usize]
    }

    /// Makes room for this index, if there were fewer at the start.
    pub(super) fn reach(&mut self, index: usize) {
        if index >= self.places.len() {
            self.places.resize(index + 1, NO_ROW);
        }
    }

    /// Hands over the rows, in order.
    pub(super) fn take(&mut self) -> Vec<T>
    where
        T: Default,
    {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let mut taken = Vec::with_capacity(self.rows.len());
        for place in self.places.iter_mut().filter(|place| **place != NO_ROW) {
            let place = std::mem::replace(place, NO_ROW);
            taken.push(std::mem::take(&mut self.rows[place as usize]));
        }
        self.rows.clear();
        // The next interval needs about as many, not the maximum of one busy second.
        self.rows.shrink_to(taken.len());
        taken
    }

    pub(super) fn own_bytes(&self) -> usize {
        size_of_val(&*self.places) + self.rows.capacity() * size_of::<T>()
    }
}

impl Rows<StepInterval> {
    #[inline]
    pub(super) fn of(&mut self, step: StepId) -> &mut StepInterval {
        self.at(step.index(), || StepInterval { step: step.0, ..StepInterval::default() })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let histograms = |row: &StepInterval| {
            [&row.latency, &row.with_pauses, &row.first_byte].map(Histogram::heap_bytes)
        };
        let service =
            self.rows.iter().filter_map(|row| row.service.as_ref()).map(Histogram::heap_bytes);
        let filled = self.rows.iter().flat_map(histograms).chain(service).sum::<usize>();
        self.own_bytes() + filled
    }
}
