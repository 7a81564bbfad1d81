//! One server whose clients time out and retry while the server still works on the abandoned
//! requests. Once the queue is longer than the timeout, all work is wasted, and retries add more
//! (metastable failures; Bronson et al., HotOS 2021).

use std::collections::VecDeque;

use throng_base::random::Random;

use super::counts::Counts;

/// Length of the queue in timeouts.
const QUEUE_TIMES: f64 = 10.0;

pub(super) struct Retry {
    free_s: f64,
    service_s: f64,
    timeout_s: f64,
    retries: u32,
    /// Pending retries: their time, the due time of the first try, and the remaining retries.
    due: VecDeque<(f64, f64, u32)>,
    is_collapsed: bool,
    /// Number of collapses.
    pub(super) collapses: u32,
}

impl Retry {
    pub(super) fn new(service_s: f64, timeout_s: f64, retries: u32) -> Retry {
        let (free_s, due) = (0.0, VecDeque::new());
        Retry { free_s, service_s, timeout_s, retries, due, is_collapsed: false, collapses: 0 }
    }

    pub(super) fn arrive(&mut self, at_s: f64, counts: &mut Counts, random: &mut Random) {
        self.advance(at_s, counts, random);
        counts.begin();
        self.attempt((at_s, at_s, self.retries), counts, random);
    }

    /// Executes the retries up to this time.
    pub(super) fn advance(&mut self, until_s: f64, counts: &mut Counts, random: &mut Random) {
        while let Some(due) = self.due.front().copied().filter(|due| due.0 <= until_s) {
            self.due.pop_front();
            self.attempt(due, counts, random);
        }
    }

    fn attempt(
        &mut self,
        (at_s, first_s, left): (f64, f64, u32),
        counts: &mut Counts,
        random: &mut Random,
    ) {
        // A full queue drops new requests, and their clients time out.
        if self.free_s - at_s < QUEUE_TIMES * self.timeout_s {
            self.free_s = self.free_s.max(at_s) + random.exponential(self.service_s);
        }
        let takes_s = self.free_s - at_s;
        if takes_s > 2.0 * self.timeout_s && !self.is_collapsed {
            (self.is_collapsed, self.collapses) = (true, self.collapses + 1);
        }
        self.is_collapsed &= takes_s > self.timeout_s / 4.0;
        let gives_up_s = at_s + self.timeout_s;
        match left {
            _ if takes_s <= self.timeout_s => counts.end(self.free_s, self.free_s - first_s, true),
            0 => counts.end(gives_up_s, gives_up_s - first_s, false),
            // All wait equally long, so the order stays sorted.
            left => self.due.push_back((gives_up_s, first_s, left - 1)),
        }
    }
}
