//! The responses of a session to one read: immediate, or later if the latency law delays them.

use throng_base::{Random, Time};

use crate::address::Address;
use crate::arrival::Arrival;
use crate::http::Tail;
use crate::latency::Latency;
use crate::options::Options;
use crate::output::Finish;
use crate::queue::{Entry, Orders, Refused};
use crate::setup::Setup;
use crate::stats::{ChatStats, Stats, WorkerStats};

/// A response that is not written immediately.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) due: Time,
    pub(crate) bytes: Vec<u8>,
    pub(crate) tail: Tail,
    /// The arrival of its request's last byte; `None` for output that is not a response.
    pub(crate) arrived: Option<Time>,
    pub(crate) finish: Option<Finish>,
    /// The number of its request in the server's queue; until it departs, `due` is unknown.
    pub(crate) queued: Option<u64>,
}

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Error,
    Reset,
}

impl Fault {
    /// Draws the fault of one request and counts it.
    pub(crate) fn draw(options: &Options, random: &mut Random, counts: &mut Stats) -> Fault {
        let (errors, resets) = (options.errors, options.resets);
        if errors + resets <= 0.0 {
            return Fault::None;
        }
        let drawn = random.unit();
        if drawn < resets {
            counts.resets_sent += 1;
            Fault::Reset
        } else if drawn < resets + errors {
            counts.errors_sent += 1;
            Fault::Error
        } else {
            Fault::None
        }
    }
}

/// The maximum number of waiting responses per connection; beyond it, the connection is not read.
pub(crate) const WAITING_ANSWERS_MAX: usize = 1024;
/// While this much output is pending, no further requests are handled.
const OUT_BYTES_MAX: usize = 256 * 1024;

/// One read of one connection, while a session handles it.
pub(crate) struct Turn<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) worker_stats: &'a WorkerStats,
    /// The address of the connection, if it receives deliveries.
    pub(crate) address: Address,
    pub(crate) random: &'a mut Random,
    /// When the bytes arrived and were read; for a response that waited for something else, when
    /// its request arrived and when it became ready.
    pub(crate) arrival: Arrival,
    /// The immediate output.
    pub(crate) out: Vec<u8>,
    /// The arrivals of the requests whose responses are in `out`.
    pub(crate) served: Vec<Time>,
    pub(crate) later: Vec<Item>,
    /// The worker's index.
    pub(crate) worker: u16,
    /// The number of waiting responses of the connection, including `later`.
    pub(crate) waiting: usize,
    pub(crate) last_due: Time,
    /// The number of the current request in the server's queue.
    pub(crate) ticket: Option<u64>,
    /// Actions for the server's queue after the turn.
    pub(crate) orders: Orders,
    pub(crate) counts: Stats,
    /// The connection ends after `out`; it is not read again.
    pub(crate) finish: Option<Finish>,
    /// A response in `later` ends the connection; no more input is handled.
    pub(crate) deaf: bool,
    /// The new room of the connection.
    pub(crate) room: Option<Option<u64>>,
}

impl Turn<'_> {
    /// True if the session must stop: the connection ends, or too much output is pending.
    pub(crate) fn is_over(&self) -> bool {
        self.finish.is_some() || self.deaf || self.is_full()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting >= WAITING_ANSWERS_MAX || self.out.len() >= OUT_BYTES_MAX
    }

    /// The counts of a chat.
    pub(crate) fn chat(&mut self) -> &mut ChatStats {
        self.counts.chat.get_or_insert_default()
    }

    /// Draws the fault of one request and counts it.
    pub(crate) fn fault(&mut self) -> Fault {
        Fault::draw(&self.setup.options, self.random, &mut self.counts)
    }

    /// Draws whether a request that cannot fail is reset, and counts that.
    pub(crate) fn draws_reset(&mut self) -> bool {
        let resets = self.setup.options.resets;
        let drawn = resets > 0.0 && self.random.chance(resets);
        self.counts.resets_sent += u64::from(drawn);
        drawn
    }

    /// Applies the server's limits to a complete request. If it has to wait in the queue, the next
    /// response waits until it departs.
    pub(crate) fn enter(&mut self) -> Result<(), Refused> {
        let Some(capacity) = &self.setup.capacity else { return Ok(()) };
        let (entry, orders) = capacity.enter(self.worker, self.arrival.at);
        self.orders.add(orders);
        match entry {
            Entry::Through => Ok(()),
            Entry::Refused(refused) => Err(refused),
            Entry::Queued(ticket) => {
                self.ticket = Some(ticket.number);
                Ok(())
            }
        }
    }

    /// Responds to a complete request when the latency law allows it, and not before the responses
    /// to earlier requests. `render` writes the response and returns what follows it.
    pub(crate) fn answer(
        &mut self,
        finish: Option<Finish>,
        render: impl FnOnce(&mut Vec<u8>, &mut Random) -> Tail,
    ) {
        let due = self.latency().due(self.arrival, self.random);
        self.place(due, Some(self.arrival.at), finish, render);
    }

    /// The same with bytes that nothing follows.
    pub(crate) fn reply(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.answer(None, |out, _| {
            write(out);
            Tail::None
        });
    }

    /// Responds with a stream: like [`Turn::answer`], but its duration is not counted as service
    /// time.
    pub(crate) fn stream(
        &mut self,
        finish: Option<Finish>,
        render: impl FnOnce(&mut Vec<u8>, &mut Random) -> Tail,
    ) {
        let due = self.latency().due(self.arrival, self.random);
        self.place(due, None, finish, render);
    }

    /// Responds without latency, in order with the other responses.
    pub(crate) fn answer_at_once(
        &mut self,
        finish: Option<Finish>,
        render: impl FnOnce(&mut Vec<u8>, &mut Random) -> Tail,
    ) {
        self.place(self.arrival.read, Some(self.arrival.at), finish, render);
    }

    /// Sends output that is not a response: without latency, in order with the responses.
    pub(crate) fn say(&mut self, bytes: &[u8], finish: Option<Finish>) {
        self.place(self.arrival.read, None, finish, |out, _| {
            out.extend_from_slice(bytes);
            Tail::None
        });
    }

    /// Resets the connection when a response would be due.
    pub(crate) fn reset(&mut self) {
        let due = self.latency().due(self.arrival, self.random);
        self.place(due, None, Some(Finish::Reset), |_, _| Tail::None);
    }

    fn place(
        &mut self,
        due: Time,
        arrived: Option<Time>,
        finish: Option<Finish>,
        render: impl FnOnce(&mut Vec<u8>, &mut Random) -> Tail,
    ) {
        let start = self.out.len();
        let ticket = self.ticket.take();
        if due <= self.arrival.read && self.waiting == 0 && ticket.is_none() {
            let tail = render(&mut self.out, self.random);
            if tail == Tail::None {
                self.served.extend(arrived);
                self.finish = finish;
                return;
            }
            let bytes = self.out.split_off(start);
            let item = Item { due, bytes, tail, arrived, finish, queued: None };
            return self.queue(item);
        }
        let mut bytes = Vec::new();
        let tail = render(&mut bytes, self.random);
        self.queue(Item { due, bytes, tail, arrived, finish, queued: ticket });
    }

    fn queue(&mut self, mut item: Item) {
        if item.queued.is_none() {
            let first = match &item.tail {
                Tail::Pieces(pieces) => self.latency().release(item.due + pieces.sleep),
                _ => item.due,
            };
            self.last_due = self.last_due.max(first);
            item.due = self.last_due;
        }
        self.waiting += 1;
        self.deaf |= item.finish.is_some();
        self.later.push(item);
    }

    fn latency(&self) -> Latency {
        self.setup.options.latency
    }
}
