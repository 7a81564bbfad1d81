//! The limits that a request passes before its response: the rate limit, then the queue. A pure
//! state machine, used by both the server and the simulation of its law.

use std::time::Duration;

use throng_base::{Random, Time};

use super::bucket::Bucket;
use super::machine::{Full, Machine, Ticket};
use super::options::CapacityOptions;
use crate::latency::Latency;

/// The fate of an arriving request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// No limit applies.
    Through,
    /// It is in the queue, and departs later.
    Queued(Ticket),
    Refused(Refused),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The queue is full.
    Full,
    /// The rate limit is exceeded; a token is available after this time.
    Limited(Duration),
}

#[derive(Debug)]
pub(crate) struct Gate {
    bucket: Option<Bucket>,
    service: Latency,
    /// For a server with a service time.
    queue: Option<Machine>,
    random: Random,
}

impl Gate {
    pub(crate) fn new(options: &CapacityOptions, random: Random) -> Gate {
        Gate {
            bucket: options.rate_limit.map(Bucket::new),
            service: options.service.unwrap_or_default(),
            queue: options.service.map(|_| Machine::new(options.shape())),
            random,
        }
    }

    pub(crate) fn queue(&self) -> Option<&Machine> {
        self.queue.as_ref()
    }

    /// A request arrives; `departed` receives earlier departures.
    pub(crate) fn enter(
        &mut self,
        arrived: Time,
        worker: u16,
        departed: impl FnMut(Ticket, Time),
    ) -> Entry {
        // Drawn for rejected requests, too, so that the n-th request is the same at any rate.
        let service_ns = self.service.draw(&mut self.random);
        if let Some(Err(wait)) = self.bucket.as_mut().map(|bucket| bucket.take(arrived)) {
            return Entry::Refused(Refused::Limited(wait));
        }
        let Some(queue) = &mut self.queue else { return Entry::Through };
        match queue.enter(arrived, worker, service_ns, departed) {
            Ok(ticket) => Entry::Queued(ticket),
            Err(Full) => Entry::Refused(Refused::Full),
        }
    }

    /// Advances the time; `departed` receives the departures until then.
    pub(crate) fn advance(&mut self, to: Time, departed: impl FnMut(Ticket, Time)) {
        if let Some(queue) = &mut self.queue {
            queue.advance(to, departed);
        }
    }

    /// Removes a request from the queue. Returns whether it was there.
    pub(crate) fn leave(
        &mut self,
        number: u64,
        at: Time,
        departed: impl FnMut(Ticket, Time),
    ) -> bool {
        self.queue.as_mut().is_some_and(|queue| queue.leave(number, at, departed))
    }

    /// When the next request departs if none arrives or leaves before.
    pub(crate) fn next_departure(&self) -> Time {
        self.queue.as_ref().map_or(Time::NEVER, Machine::next_departure)
    }
}
