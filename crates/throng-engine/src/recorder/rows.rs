//! The rows of an interval: one for each that did something.

use throng_base::StepId;
use throng_metrics::{Histogram, StepInterval};

/// The rows of those steps, or addresses, that did something in this interval: most shards of many
/// are quiet in most steps of many, and a row is a quarter of a kilobyte.
pub(super) struct Rows<T> {
    /// By step: where its row is, or [`NO_ROW`].
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

    /// There is a place for this index, though there were fewer at the beginning.
    pub(super) fn reach(&mut self, index: usize) {
        if index >= self.places.len() {
            self.places.resize(index + 1, NO_ROW);
        }
    }

    /// Hands the rows over, in their order.
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
        // As much will be needed again, and not what one busy second needed once.
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
        let histograms =
            |row: &StepInterval| [&row.latency, &row.with_pauses, &row.first_byte].map(of_heap);
        let service = self.rows.iter().filter_map(|row| row.service.as_ref()).map(of_heap);
        let filled = self.rows.iter().flat_map(histograms).chain(service).sum::<usize>();
        self.own_bytes() + filled
    }
}

pub(super) fn of_heap(histogram: &Histogram) -> usize {
    histogram.heap_bytes()
}
