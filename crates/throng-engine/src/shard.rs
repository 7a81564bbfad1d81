//! A shard: a thread with its own runtime, users and measurements. Shards share no mutable state;
//! once a second each hands over its results. Every load of the run has a lane on each shard.

pub(crate) mod alarm;
pub(crate) mod budget;
pub(crate) mod due;
pub(crate) mod kept;
mod lane;
pub(crate) mod left;
pub(crate) mod scratch;
pub(crate) mod slots;
pub(crate) mod wall;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Clock, Said, ShardId, Share, StepId, Time, UserId};
use throng_data::Reader;
use throng_expression::Value;
use throng_load::Schedules;
use throng_metrics::{DeliveryCounter, Interval, StopBy};
use throng_protocol::framed::Decoded;
use throng_protocol::machine::Lent;
use throng_protocol::websocket::Deflater;

use crate::control::{Control, Gate, Stopped};
use crate::ledger::ShardLedger;
use crate::network::Connector;
use crate::network::lookups::Lookups;
use crate::network::routes::Routes;
use crate::prepared::Prepared;
use crate::recorder::Example;
use crate::recorder::logs::{Line, Logs};
use crate::recorder::presence::Presence;
use crate::rendezvous::Places;
use crate::trace::{Trace, Tracer, What, Who};
use alarm::Alarm;
use budget::{Budget, Purse};
use kept::Kept;
use scratch::{Joined, Scratch};
use wall::Wall;

pub(crate) use lane::{Lane, WAITED};

/// The read buffer that all users of a shard share.
pub(crate) const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Capacity that the write buffer keeps after an exceptionally large message.
const WRITE_BUFFER_KEPT_BYTES_MAX: usize = 256 * 1024;
/// How many unused [`Scratch`] are kept.
const FREE_SCRATCH_MAX: usize = 64;
/// Capacity of the body buffer that an unused one keeps.
const BODY_KEPT_BYTES_MAX: usize = 64 * 1024;
/// Ledger events processed per probe: half a millisecond.
const LEDGER_EVENTS_MAX: usize = 20_000;
/// How often the driver measures its delay: while users are active; less often if all are quiet.
/// Any turn serves as a probe; the driver only wakes for one if there was no turn.
pub(crate) const PROBE: Duration = Duration::from_millis(10);

/// What a shard hands over.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) shard: ShardId,
    pub(crate) interval: Interval,
    /// All intervals of the shard up to this second and phase have been handed over; `None` if
    /// there is none yet.
    pub(crate) reached: Option<(u64, u16)>,
    pub(crate) examples: Vec<Example>,
    pub(crate) oddities: Vec<Oddity>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) logs: Vec<Line>,
    /// The last report of the shard.
    pub(crate) last: bool,
}

/// A delivery error, the first of its kind on its shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oddity {
    pub at: Time,
    /// The row of the ledger.
    pub step: StepId,
    /// The counter that includes it.
    pub counter: DeliveryCounter,
    pub detail: Said,
}

/// A phase started or ended on a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) phase: u16,
    pub(crate) at: Time,
    pub(crate) begins: bool,
}

/// State that all users of a shard share, whatever their load.
pub(crate) struct Shard {
    pub(crate) id: ShardId,
    pub(crate) clock: Clock,
    pub(crate) wall: Wall,
    pub(crate) prepared: Arc<Prepared>,
    /// The readers of the program's data, by source.
    pub(crate) readers: RefCell<Vec<Reader>>,
    pub(crate) connector: Connector,
    pub(crate) routes: Routes,
    pub(crate) read_buffer: RefCell<Box<[u8]>>,
    pub(crate) write_buffer: RefCell<Vec<u8>>,
    /// HTTP/2 frames, and the header block in them.
    pub(crate) frame_buffer: RefCell<Vec<u8>>,
    pub(crate) block_buffer: RefCell<Vec<u8>>,
    /// Buffers for reading.
    pub(crate) lent: RefCell<Lent>,
    /// Messages of several steps that are written together.
    pub(crate) joined: RefCell<Vec<Joined>>,
    /// The content of a frame.
    pub(crate) content_buffer: RefCell<Vec<u8>>,
    /// Buffers that exchanges have returned.
    #[allow(clippy::vec_box)]
    free_scratch: RefCell<Vec<Box<Scratch>>>,
    /// Fields of the current response.
    pub(crate) found: RefCell<Vec<Option<Value>>>,
    /// Positions of the fields of the current message.
    pub(crate) decoded: Cell<Option<Box<Decoded>>>,
    pub(crate) decoded_sent: RefCell<Decoded>,
    /// By row of deliveries.
    pub(crate) ledgers: RefCell<Vec<ShardLedger>>,
    /// Which users are online, for audits.
    pub(crate) presence: Option<Presence>,
    /// Memory budget for received and unsent data of its users.
    pub(crate) purse: Rc<Purse>,
    pub(crate) deflater: RefCell<Deflater>,
    pub(crate) control: Control,
    /// Where users of all shards wait for each other.
    pub(crate) places: Places,
    logs: RefCell<Logs>,
    /// The observer of every step.
    pub(crate) tracer: Option<Tracer>,
    /// Where users wait before every step.
    pub(crate) gate: Option<Arc<Gate>>,
    /// Where users leave their saved values.
    pub(crate) keep: Option<Kept>,
    /// A data source has ended the run.
    data_over: Cell<bool>,
    pub(crate) alarm: Alarm,
    pub(crate) schedules: RefCell<Schedules>,
    pub(crate) share: Share,
    /// Phase marks since the last report.
    marks: RefCell<Vec<Mark>>,
    give_back: Option<fn()>,
    /// How often users were polled.
    pub(crate) polls: Cell<u64>,
    /// Users that continue without delay when what they wait for arrives: a longer sleep of the
    /// shard would delay them.
    pub(crate) hasty: Cell<u32>,
}

/// The parts of a shard that exist before its thread.
pub(crate) struct Parts {
    pub(crate) share: Share,
    pub(crate) prepared: Arc<Prepared>,
    /// Names that are looked up again.
    pub(crate) lookups: Option<Arc<Lookups>>,
    pub(crate) control: Control,
    pub(crate) places: Places,
    pub(crate) ledgers: Vec<ShardLedger>,
    pub(crate) presence: Option<Presence>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) tracer: Option<Tracer>,
    pub(crate) gate: Option<Arc<Gate>>,
    pub(crate) keep: Option<Kept>,
    pub(crate) give_back: Option<fn()>,
}

impl Shard {
    pub(crate) fn new(
        parts: Parts,
        clock: Clock,
        readers: Vec<Reader>,
        connector: Connector,
        alarm: Alarm,
    ) -> Rc<Shard> {
        let program = &parts.prepared.program;
        let schedules = Schedules::new(&program.loads, parts.share, Time::ZERO, program.seed);
        Rc::new(Shard {
            id: ShardId(parts.share.place().0 as u16),
            wall: Wall::new(&clock),
            clock,
            readers: RefCell::new(readers),
            routes: Routes::new(&parts.prepared, parts.lookups),
            lent: RefCell::new(Lent::new(parts.prepared.limits)),
            prepared: parts.prepared,
            connector,
            read_buffer: RefCell::new(vec![0; READ_BUFFER_BYTES].into()),
            write_buffer: RefCell::default(),
            frame_buffer: RefCell::default(),
            block_buffer: RefCell::default(),
            joined: RefCell::default(),
            content_buffer: RefCell::default(),
            free_scratch: RefCell::default(),
            found: RefCell::default(),
            decoded: Cell::default(),
            decoded_sent: RefCell::default(),
            ledgers: RefCell::new(parts.ledgers),
            presence: parts.presence,
            purse: Purse::new(parts.budget),
            deflater: RefCell::default(),
            control: parts.control,
            places: parts.places,
            logs: RefCell::default(),
            tracer: parts.tracer,
            gate: parts.gate,
            keep: parts.keep,
            data_over: Cell::new(false),
            alarm,
            schedules: RefCell::new(schedules),
            share: parts.share,
            marks: RefCell::default(),
            give_back: parts.give_back,
            polls: Cell::new(0),
            hasty: Cell::new(0),
        })
    }

    /// Buffers that an earlier exchange returned, or new ones.
    pub(crate) fn scratch(&self) -> Box<Scratch> {
        self.free_scratch.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes them back for another exchange.
    pub(crate) fn take_back(&self, mut scratch: Box<Scratch>) {
        let mut free_scratch = self.free_scratch.borrow_mut();
        if free_scratch.len() < FREE_SCRATCH_MAX && scratch.body.capacity() <= BODY_KEPT_BYTES_MAX {
            scratch.clear(&self.purse);
            free_scratch.push(scratch);
        }
    }

    /// A time in nanoseconds since the epoch.
    pub(crate) fn unix_nanos(&self, at: Time) -> u64 {
        self.wall.unix_nanos(at)
    }

    /// Arrival time of data that was read at `read`, with the kernel's timestamp.
    #[inline]
    pub(crate) fn arrived(&self, read: Time, stamp: u64) -> Time {
        self.wall.moment(&self.clock, read, stamp)
    }

    /// Whether every step is traced.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.tracer.is_some()
    }

    /// Traces an event, if the run is observed.
    #[inline]
    pub(crate) fn tell(&self, who: Who, at: Time, what: impl FnOnce() -> What) {
        if let Some(tracer) = &self.tracer {
            let Who { user, session, iteration } = who;
            tracer.tell(Trace { at, user, session, iteration, what: what() });
        }
    }

    /// Whether a user's restarted session got further than before, if the run is observed: a trial
    /// run ends if it does not.
    #[cold]
    pub(crate) fn gets_on(&self, user: UserId) -> bool {
        self.tracer.as_ref().is_none_or(|tracer| tracer.gets_on(user))
    }

    /// Whether an observer traces every step, or permits it.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.tracer.is_some() || self.gate.is_some()
    }

    /// Stops the whole run gracefully. Only the first reason of all shards counts.
    pub(crate) fn stop_because(&self, at: Time, reason: Said, by: StopBy) {
        self.control.stop_because(|| Stopped { at, reason, by });
        // The driver learns of it before its next probe.
        self.alarm.set_at_most(at, &self.clock);
    }

    /// A data source has no rows left, which ends the run.
    pub(crate) fn stop_run(&self, reason: Said, by: StopBy) {
        self.data_over.set(true);
        self.stop_because(self.clock.now(), reason, by);
    }

    pub(crate) fn data_is_over(&self) -> bool {
        self.data_over.get()
    }

    pub(crate) fn log(&self, at: Time, user: UserId, text: &[u8]) {
        self.logs.borrow_mut().write(at, user, text);
    }

    /// Periodic cleanup.
    pub(crate) fn tidy_up(&self, now: Time) {
        self.wall.look(&self.clock);
        self.trim_write_buffer();
        self.connector.forget_vanished(now);
    }

    /// Releases the memory of exceptionally large messages.
    pub(crate) fn trim_write_buffer(&self) {
        for buffer in [&self.write_buffer, &self.content_buffer] {
            let mut buffer = buffer.borrow_mut();
            if buffer.capacity() > WRITE_BUFFER_KEPT_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
    }
}
