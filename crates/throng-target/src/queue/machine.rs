//! The queue of a server as a pure state machine: times and service times in, departures out.
//!
//! First come, first served: at most `servers` requests are in service, and the others wait. All
//! requests in service proceed at the same speed, so a single sum of the work since the start is
//! enough: a request departs when the sum has grown by its service time. Without the universal
//! scalability law, the speed does not depend on their number.

use std::collections::{BTreeMap, VecDeque};

use throng_base::Time;

use super::speed::Speed;

/// The universal scalability law (Gunther, 1993): with n requests in service, their total speed is
/// n / (1 + contention (n - 1) + crosstalk n (n - 1)) times the speed of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usl {
    pub contention: f64,
    pub crosstalk: f64,
}

impl Usl {
    /// The speed of each of `n` requests; 1 for a single one.
    pub(crate) fn speed_of_each(self, n: f64) -> f64 {
        1.0 / (1.0 + self.contention * (n - 1.0) + self.crosstalk * n * (n - 1.0))
    }
}

/// The parameters of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    /// Maximum number of requests in service; unlimited if `None`.
    pub(crate) servers: Option<u32>,
    /// Maximum number of waiting requests; unlimited if `None`.
    pub(crate) waiting_max: Option<u64>,
    pub(crate) usl: Option<Usl>,
    pub(crate) speed: Speed,
}

/// A request in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Counts from 0 in the order of arrival.
    pub(crate) number: u64,
    /// The worker of the request.
    pub(crate) worker: u16,
    pub(crate) arrived: Time,
}

#[derive(Debug)]
pub(crate) struct Machine {
    shape: Shape,
    now: Time,
    entered: u64,
    /// Work that a request would have received if it had always been in service, in nanoseconds at
    /// full speed.
    done_ns: f64,
    /// In service, by the bits of the sum at which each departs, and by number: sums are never
    /// negative, so their bits have their order.
    running: BTreeMap<(u64, u64), Ticket>,
    /// In order; requests that left have no service time.
    waiting: VecDeque<(Ticket, Option<f64>)>,
    /// Number of waiting requests.
    waiting_count: u64,
    /// The next departure.
    next: Time,
}

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Machine {
    pub(crate) fn new(shape: Shape) -> Machine {
        Machine {
            shape,
            now: Time::ZERO,
            entered: 0,
            done_ns: 0.0,
            running: BTreeMap::new(),
            waiting: VecDeque::new(),
            waiting_count: 0,
            next: Time::NEVER,
        }
    }

    pub(crate) fn in_service(&self) -> u64 {
        self.running.len() as u64
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.waiting_count
    }

    /// When the next request departs if none arrives or leaves before; `Time::NEVER` without
    /// requests.
    pub(crate) fn next_departure(&self) -> Time {
        self.next
    }

    /// Processes departures until `to`; `departed` receives each with its time. The current time is
    /// that of the last event: a request that arrived earlier, but is processed only now, can still
    /// use a server that became free since then.
    pub(crate) fn advance(&mut self, to: Time, mut departed: impl FnMut(Ticket, Time)) {
        while self.next <= to {
            let at = self.next;
            let Some(((end_ns, _), ticket)) = self.running.pop_first() else { break };
            // Use the exact sum of the request, so that errors do not accumulate.
            (self.now, self.done_ns) = (at, f64::from_bits(end_ns));
            departed(ticket, at);
            self.fill();
            self.foresee();
        }
    }

    /// A request arrives with a service time in nanoseconds. If it arrived before the current time
    /// (the last event), it counts as arriving now.
    pub(crate) fn enter(
        &mut self,
        arrived: Time,
        worker: u16,
        service_ns: f64,
        departed: impl FnMut(Ticket, Time),
    ) -> Result<Ticket, Full> {
        self.advance(arrived, departed);
        self.go_on(arrived);
        let serves = self.is_free();
        if !serves && self.shape.waiting_max.is_some_and(|max| self.waiting_count >= max) {
            return Err(Full);
        }
        let ticket = Ticket { number: self.entered, worker, arrived };
        self.entered += 1;
        if serves {
            self.serve(ticket, service_ns);
            self.foresee();
        } else {
            self.waiting.push_back((ticket, Some(service_ns)));
            self.waiting_count += 1;
        }
        Ok(ticket)
    }

    /// A request leaves before it is served. Returns whether it was there.
    pub(crate) fn leave(
        &mut self,
        number: u64,
        at: Time,
        departed: impl FnMut(Ticket, Time),
    ) -> bool {
        self.advance(at, departed);
        let found = self.waiting.binary_search_by_key(&number, |(ticket, _)| ticket.number);
        if let Ok(index) = found {
            let waited = self.waiting[index].1.take().is_some();
            self.waiting_count -= u64::from(waited);
            return waited;
        }
        self.go_on(at);
        let before = self.running.len();
        self.running.retain(|_, ticket| ticket.number != number);
        let was_served = self.running.len() < before;
        self.fill();
        self.foresee();
        was_served
    }

    fn is_free(&self) -> bool {
        self.shape.servers.is_none_or(|servers| self.running.len() < servers as usize)
    }

    fn serve(&mut self, ticket: Ticket, service_ns: f64) {
        let end_ns = self.done_ns + service_ns;
        self.running.insert((end_ns.to_bits(), ticket.number), ticket);
    }

    /// Assigns free servers to waiting requests in order.
    fn fill(&mut self) {
        while self.is_free()
            && let Some((ticket, service_ns)) = self.waiting.pop_front()
        {
            if let Some(service_ns) = service_ns {
                self.waiting_count -= 1;
                self.serve(ticket, service_ns);
            }
        }
    }

    /// The speed of each request in service, without warm-up and spells.
    fn speed_of_each(&self) -> f64 {
        self.shape.usl.map_or(1.0, |usl| usl.speed_of_each(self.running.len() as f64))
    }

    fn foresee(&mut self) {
        self.next = self.running.keys().next().map_or(Time::NEVER, |(end_ns, _)| {
            let left_ns = (f64::from_bits(*end_ns) - self.done_ns) / self.speed_of_each();
            self.shape.speed.when_done(self.now, left_ns)
        });
    }

    /// Advances to a time before the next departure.
    fn go_on(&mut self, to: Time) {
        if to <= self.now {
            return;
        }
        if !self.running.is_empty() {
            self.done_ns += self.shape.speed.work_ns(self.now, to) * self.speed_of_each();
        }
        self.now = to;
    }
}

#[cfg(test)]
mod tests;
