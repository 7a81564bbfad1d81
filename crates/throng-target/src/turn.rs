//! What a session says in answer to one read: at once, or later when the latency law says so.

use throng_base::{Random, Time};

use crate::address::Address;
use crate::arrival::Arrival;
use crate::board::{Board, ChatStats, Stats};
use crate::http::Tail;
use crate::latency::Latency;
use crate::options::Options;
use crate::output::Finish;
use crate::queue::{Entry, Orders, Refused};
use crate::setup::Setup;

/// An answer that is not written at once.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) due: Time,
    pub(crate) bytes: Vec<u8>,
    pub(crate) tail: Tail,
    /// When the last byte of its request arrived; none for what is no answer.
    pub(crate) arrived: Option<Time>,
    pub(crate) finish: Option<Finish>,
    /// The number of its request in the server's queue, from which `due` is not known yet.
    pub(crate) queued: Option<u64>,
}

/// What the faults of the server make of a request.
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

/// More answers of one connection do not wait; then it is not read until some are written.
pub(crate) const WAITING_ANSWERS_MAX: usize = 1024;
/// When so much is to be written, no further request is answered before it is.
const OUT_BYTES_MAX: usize = 256 * 1024;

/// One read of one connection, while a session works on it.
pub(crate) struct Turn<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) board: &'a Board,
    /// Where the connection is; only of those that others may speak to.
    pub(crate) address: Address,
    pub(crate) random: &'a mut Random,
    /// When the bytes arrived and were read; of an answer that waited for something else, when
    /// its request arrived and it could be given.
    pub(crate) arrival: Arrival,
    /// What is written at once.
    pub(crate) out: Vec<u8>,
    /// The moments at which the requests answered in `out` had arrived.
    pub(crate) served: Vec<Time>,
    pub(crate) later: Vec<Item>,
    /// The worker's index.
    pub(crate) worker: u16,
    /// How many answers the connection has waiting, `later` included.
    pub(crate) waiting: usize,
    pub(crate) last_due: Time,
    /// Of the request that is being answered, its number in the server's queue.
    pub(crate) ticket: Option<u64>,
    /// What is to be done for the server's queue after the turn.
    pub(crate) orders: Orders,
    pub(crate) counts: Stats,
    /// The connection ends after `out`; nothing more is read.
    pub(crate) finish: Option<Finish>,
    /// An answer in `later` ends the connection; nothing more is understood.
    pub(crate) deaf: bool,
    /// The room that the connection is in from now on.
    pub(crate) room: Option<Option<u64>>,
}

impl Turn<'_> {
    /// Whether the session must stop: the connection ends, or too much is unwritten.
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

    /// Draws whether a request that cannot fail is answered by a reset, and counts that.
    pub(crate) fn draws_reset(&mut self) -> bool {
        let resets = self.setup.options.resets;
        let drawn = resets > 0.0 && self.random.chance(resets);
        self.counts.resets_sent += u64::from(drawn);
        drawn
    }

    /// Takes a request that is completely read to the limits of the server. If it has to wait in
    /// the queue, the answer that is given next waits until it departs.
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

    /// Answers a request that is completely read, when the latency law says so and not before the
    /// answers to earlier requests. `render` writes the answer and says what follows it.
    pub(crate) fn answer(
        &mut self,
        finish: Option<Finish>,
        render: impl FnOnce(&mut Vec<u8>, &mut Random) -> Tail,
    ) {
        let due = self.latency().due(self.arrival, self.random);
        self.place(due, Some(self.arrival.at), finish, render);
    }

    /// Answers with what does not end: as [`Turn::answer`], but its time is not that of an answer.
    pub(crate) fn stream(
        &mut self,
        finish: Option<Finish>,
        render: impl FnOnce(&mut Vec<u8>, &mut Random) -> Tail,
    ) {
        let due = self.latency().due(self.arrival, self.random);
        self.place(due, None, finish, render);
    }

    /// Answers without latency, in order with the other answers.
    pub(crate) fn answer_at_once(
        &mut self,
        finish: Option<Finish>,
        render: impl FnOnce(&mut Vec<u8>, &mut Random) -> Tail,
    ) {
        self.place(self.arrival.read, Some(self.arrival.at), finish, render);
    }

    /// Says something that is no answer: without latency, in order with the answers.
    pub(crate) fn say(&mut self, bytes: &[u8], finish: Option<Finish>) {
        self.place(self.arrival.read, None, finish, |out, _| {
            out.extend_from_slice(bytes);
            Tail::None
        });
    }

    /// Resets the connection when an answer would be due.
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
