//! A run with a capacity search.

use crate::Summary;
use crate::event::Event;
use throng_metrics::Capacity;
pub(crate) use throng_metrics::capacity::sample::capacity;

/// A run with this result, and without other thresholds.
pub(crate) fn searched(capacity: Capacity) -> Summary {
    let mut info = super::info();
    info.tables.thresholds.clear();
    let mut events = super::events();
    let found = Event::Capacity { at_ns: 11 * super::SECOND_NS, capacity: Box::new(capacity) };
    events.insert(5, found);
    super::summary_of(info, &super::intervals(), &events)
}
