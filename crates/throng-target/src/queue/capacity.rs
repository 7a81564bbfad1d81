//! The gate of a server, shared by its workers.

use std::sync::Mutex;

use throng_base::{Random, Time};

use super::gate::{Entry, Gate, Refused};
use super::law::{Law, Model, Question};
use super::machine::{Machine, Ticket};
use super::options::CapacityOptions;
use crate::stats::QueueStats;
use crate::sums::lock;

/// The number of a served request, and its departure time.
pub(crate) type Departed = (u64, Time);

/// What a worker must do after it used the gate.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// Check the gate at this time.
    pub(crate) look_at: Option<Time>,
    /// Wake these workers, because requests of theirs have departed.
    pub(crate) wake: Vec<u16>,
}

impl Orders {
    pub(crate) fn add(&mut self, other: Orders) {
        self.look_at = [self.look_at, other.look_at].into_iter().flatten().min();
        self.wake.extend(other.wake);
    }
}

/// Random stream of the service times; those of workers start at zero.
const SERVICE_STREAM: u64 = 1 << 32;

pub(crate) struct Capacity {
    pub(crate) work_on: bool,
    state: Mutex<QueueState>,
    /// Laws that were computed, by question.
    laws: Mutex<Vec<(Question, Law)>>,
}

/// Maximum number of stored laws.
const LAWS_MAX: usize = 1_000;

struct QueueState {
    gate: Gate,
    /// The earliest time at which a worker's timer checks the gate.
    looked_at: Time,
    /// By worker: departures that it has not processed.
    departed: Vec<Vec<Departed>>,
    counts: QueueStats,
}

impl Capacity {
    pub(crate) fn new(options: &CapacityOptions, seed: u64, workers: usize) -> Capacity {
        let state = QueueState {
            gate: Gate::new(options, Random::for_owner(seed, SERVICE_STREAM)),
            looked_at: Time::NEVER,
            departed: vec![Vec::new(); workers],
            counts: QueueStats::default(),
        };
        let laws = Mutex::default();
        Capacity { work_on: options.work_on, state: Mutex::new(state), laws }
    }

    /// A request of this worker arrives.
    pub(crate) fn enter(&self, worker: u16, arrived: Time) -> (Entry, Orders) {
        lock(&self.state).touch(worker, |gate, counts, departed| {
            let entry = gate.enter(arrived, worker, departed);
            match entry {
                Entry::Through => {}
                Entry::Queued(_) => counts.admitted += 1,
                Entry::Refused(Refused::Full) => counts.queue_full += 1,
                Entry::Refused(Refused::Limited(_)) => counts.rate_limited += 1,
            }
            let waiting = gate.queue().map_or(0, Machine::waiting);
            counts.waiting_max = counts.waiting_max.max(waiting);
            entry
        })
    }

    /// The client of a request disconnected; the request may still be in the queue.
    pub(crate) fn leave(&self, worker: u16, number: u64, now: Time) -> Orders {
        let work_on = self.work_on;
        let ((), orders) = lock(&self.state).touch(worker, |gate, counts, departed| {
            if work_on {
                gate.advance(now, departed);
                counts.unwanted += 1;
            } else {
                counts.dropped += u64::from(gate.leave(number, now, departed));
            }
        });
        orders
    }

    /// The departures of this worker.
    pub(crate) fn look(&self, worker: u16, now: Time) -> (Vec<Departed>, Orders) {
        let mut state = lock(&self.state);
        if state.looked_at <= now {
            state.looked_at = Time::NEVER;
        }
        let ((), _, wake) = state.act(worker, |gate, _, departed| gate.advance(now, departed));
        let departed = std::mem::take(&mut state.departed[usize::from(worker)]);
        let orders = Orders { look_at: state.next_look(), wake };
        (departed, orders)
    }

    /// The law of a server with these options; each is computed once.
    pub(crate) fn law(
        &self,
        question: Question,
        options: &CapacityOptions,
        failing: f64,
    ) -> Option<Law> {
        let mut known = lock(&self.laws);
        if let Some((_, law)) = known.iter().find(|(asked, _)| *asked == question) {
            return Some(law.clone());
        }
        let law = Model { options: options.clone(), failing }.law(question)?;
        if known.len() < LAWS_MAX {
            known.push((question, law.clone()));
        }
        Some(law)
    }

    pub(crate) fn stats(&self) -> QueueStats {
        let state = lock(&self.state);
        let (waiting, in_service) = state.present();
        QueueStats { waiting, in_service, ..state.counts.clone() }
    }

    /// Resets all counts; requests in the queue stay and count as admitted.
    pub(crate) fn reset(&self) {
        let mut state = lock(&self.state);
        let (waiting, in_service) = state.present();
        let admitted = waiting + in_service;
        state.counts = QueueStats { admitted, waiting_max: waiting, ..QueueStats::default() };
    }
}

impl QueueState {
    /// Performs an action after which requests of the same worker may depart. The worker checks for
    /// them once it has finished with the current connection.
    fn touch<T>(
        &mut self,
        worker: u16,
        action: impl FnOnce(&mut Gate, &mut QueueStats, &mut dyn FnMut(Ticket, Time)) -> T,
    ) -> (T, Orders) {
        let (result, own, wake) = self.act(worker, action);
        let look_at = if own { Some(Time::ZERO) } else { self.next_look() };
        (result, Orders { look_at, wake })
    }

    /// Performs an action, and records departures: whether some belong to this worker, and which
    /// other workers must be woken.
    fn act<T>(
        &mut self,
        worker: u16,
        action: impl FnOnce(&mut Gate, &mut QueueStats, &mut dyn FnMut(Ticket, Time)) -> T,
    ) -> (T, bool, Vec<u16>) {
        let (mut served, mut own, mut wake) = (0, false, Vec::new());
        let departed = &mut self.departed;
        let mut depart = |ticket: Ticket, at: Time| {
            served += 1;
            let waits = &mut departed[usize::from(ticket.worker)];
            match waits.is_empty() {
                true if ticket.worker == worker => own = true,
                true => wake.push(ticket.worker),
                false => {}
            }
            waits.push((ticket.number, at));
        };
        let result = action(&mut self.gate, &mut self.counts, &mut depart);
        self.counts.served += served;
        (result, own, wake)
    }

    /// When a worker must check for the next departure, unless another does.
    fn next_look(&mut self) -> Option<Time> {
        let next = self.gate.next_departure();
        (next < self.looked_at).then(|| {
            self.looked_at = next;
            next
        })
    }

    /// The numbers of waiting requests and of requests in service.
    fn present(&self) -> (u64, u64) {
        self.gate.queue().map_or((0, 0), |queue| (queue.waiting(), queue.in_service()))
    }
}
