//! One shard: a thread with its own runtime, its own users, its own figures. Shards share nothing
//! mutable; once a second each hands over what happened. On each shard every load of the run has a
//! lane.

pub(crate) mod alarm;
pub(crate) mod budget;
pub(crate) mod due;
pub(crate) mod kept;
mod lane;
pub(crate) mod left;
pub(crate) mod rare;
pub(crate) mod seats;
pub(crate) mod wall;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Clock, Said, ShardId, Share, StepId, Time, UserId};
use throng_data::Reader;
use throng_expression::Value;
use throng_load::Schedules;
use throng_metrics::{DeliveryCounter, Interval};
use throng_protocol::framed::Decoded;
use throng_protocol::machine::Lent;
use throng_protocol::websocket::Deflater;

use crate::control::{Control, Gate, Stopped, StoppedBy};
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
use rare::{Joined, Rare};
use wall::Wall;

pub(crate) use lane::{Lane, WAITED};

/// Reads of all users of a shard go here, one after another.
pub(crate) const READ_BUFFER_BYTES: usize = 64 * 1024;
/// What the write buffer may keep after an exceptional message.
const WRITE_BUFFER_KEPT_BYTES_MAX: usize = 256 * 1024;
/// How many [`Rare`] wait for the next exchange.
const RARES_MAX: usize = 64;
/// What the body in one of them may leave behind.
const BODY_KEPT_BYTES_MAX: usize = 64 * 1024;
/// Of a ledger, what is looked at at one probe: half a millisecond.
const LEDGER_EVENTS_MAX: usize = 20_000;
/// How often the driver looks how late it is: while users do something, and at least while all
/// are quiet. Any turn will do for it; the driver wakes on purpose only when there was none.
pub(crate) const PROBE: Duration = Duration::from_millis(10);

/// What a shard hands over.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) shard: ShardId,
    pub(crate) interval: Interval,
    /// All intervals of the shard up to this second and phase have been handed over; None while
    /// there is nothing that could be said of.
    pub(crate) reached: Option<(u64, u16)>,
    pub(crate) examples: Vec<Example>,
    pub(crate) oddities: Vec<Oddity>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) logs: Vec<Line>,
    /// The shard is over: this was its last word.
    pub(crate) last: bool,
}

/// Something odd about a delivery, the first of its kind on its shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oddity {
    pub at: Time,
    /// The row of the ledger.
    pub step: StepId,
    /// Among what it is counted.
    pub counter: DeliveryCounter,
    pub detail: Said,
}

/// A phase began or ended on a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) phase: u16,
    pub(crate) at: Time,
    pub(crate) begins: bool,
}

/// What all users of a shard share, whatever their load.
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
    /// Frames of HTTP/2, and the header block in them.
    pub(crate) frame_buffer: RefCell<Vec<u8>>,
    pub(crate) block_buffer: RefCell<Vec<u8>>,
    /// For what is read, from the first byte to what becomes of it.
    pub(crate) lent: RefCell<Lent>,
    /// The messages of several steps that are written together.
    pub(crate) joined: RefCell<Vec<Joined>>,
    /// What is put into a frame.
    pub(crate) content_buffer: RefCell<Vec<u8>>,
    /// What answers leave behind for the next ones.
    #[allow(clippy::vec_box)]
    rares: RefCell<Vec<Box<Rare>>>,
    /// Fields of the answer that is being looked at.
    pub(crate) found: RefCell<Vec<Option<Value>>>,
    /// Where the fields of the message lie that is looked at.
    pub(crate) decoded: Cell<Option<Box<Decoded>>>,
    pub(crate) decoded_sent: RefCell<Decoded>,
    /// By row of deliveries.
    pub(crate) ledgers: RefCell<Vec<ShardLedger>>,
    /// Where audits ask who is online.
    pub(crate) presence: Option<Presence>,
    /// What its users may keep of what comes, and of what waits to be sent.
    pub(crate) purse: Rc<Purse>,
    pub(crate) deflater: RefCell<Deflater>,
    pub(crate) control: Control,
    /// Where users of all shards wait for each other.
    pub(crate) places: Places,
    logs: RefCell<Logs>,
    /// Who listens to every step.
    pub(crate) tracer: Option<Tracer>,
    /// Where users wait before every step.
    pub(crate) gate: Option<Arc<Gate>>,
    /// Where users leave what they have saved.
    pub(crate) keep: Option<Kept>,
    /// A source of data has ended the run.
    data_over: Cell<bool>,
    pub(crate) alarm: Alarm,
    pub(crate) schedules: RefCell<Schedules>,
    pub(crate) share: Share,
    /// Of phases, since the last report.
    marks: RefCell<Vec<Mark>>,
    give_back: Option<fn()>,
    /// How often a user went on.
    pub(crate) polls: Cell<u64>,
    /// Users who go on at once as soon as what they wait for comes: a shard that sleeps on would
    /// hold them up.
    pub(crate) hasty: Cell<u32>,
}

/// What a shard is made of.
pub(crate) struct Parts {
    pub(crate) id: ShardId,
    pub(crate) share: Share,
    pub(crate) clock: Clock,
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) readers: Vec<Reader>,
    pub(crate) connector: Connector,
    /// Names that are looked up again.
    pub(crate) lookups: Option<Arc<Lookups>>,
    pub(crate) alarm: Alarm,
    pub(crate) control: Control,
    pub(crate) places: Places,
    pub(crate) ledgers: Vec<ShardLedger>,
    pub(crate) presence: Option<Presence>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) tracer: Option<Tracer>,
    pub(crate) gate: Option<Arc<Gate>>,
    pub(crate) keep: Option<Kept>,
    /// When the first phase begins.
    pub(crate) start: Time,
    pub(crate) give_back: Option<fn()>,
}

impl Shard {
    pub(crate) fn new(parts: Parts) -> Rc<Shard> {
        let program = &parts.prepared.program;
        let schedules = Schedules::new(&program.loads, parts.share, parts.start, program.seed);
        Rc::new(Shard {
            id: parts.id,
            wall: Wall::new(&parts.clock),
            clock: parts.clock,
            readers: RefCell::new(parts.readers),
            routes: Routes::new(&parts.prepared, parts.lookups),
            lent: RefCell::new(Lent::new(parts.prepared.limits)),
            prepared: parts.prepared,
            connector: parts.connector,
            read_buffer: RefCell::new(vec![0; READ_BUFFER_BYTES].into()),
            write_buffer: RefCell::default(),
            frame_buffer: RefCell::default(),
            block_buffer: RefCell::default(),
            joined: RefCell::default(),
            content_buffer: RefCell::default(),
            rares: RefCell::default(),
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
            alarm: parts.alarm,
            schedules: RefCell::new(schedules),
            share: parts.share,
            marks: RefCell::default(),
            give_back: parts.give_back,
            polls: Cell::new(0),
            hasty: Cell::new(0),
        })
    }

    /// What an exchange before has left behind for the next one, if any.
    pub(crate) fn rare(&self) -> Box<Rare> {
        self.rares.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes it back for another exchange.
    pub(crate) fn take_back(&self, mut rare: Box<Rare>) {
        let mut rares = self.rares.borrow_mut();
        if rares.len() < RARES_MAX && rare.body.capacity() <= BODY_KEPT_BYTES_MAX {
            rare.clear(&self.purse);
            rares.push(rare);
        }
    }

    /// A moment in nanoseconds since the epoch.
    pub(crate) fn unix_nanos(&self, at: Time) -> u64 {
        self.wall.unix_nanos(at)
    }

    /// When something came that was read at `read` and that the kernel has stamped.
    #[inline]
    pub(crate) fn arrived(&self, read: Time, stamp: u64) -> Time {
        self.wall.moment(&self.clock, read, stamp)
    }

    /// Whether every step is told.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.tracer.is_some()
    }

    /// Tells what somebody did, where anybody listens.
    #[inline]
    pub(crate) fn tell(&self, who: Who, at: Time, what: impl FnOnce() -> What) {
        if let Some(tracer) = &self.tracer {
            let Who { user, session, iteration } = who;
            tracer.tell(Trace { at, user, session, iteration, what: what() });
        }
    }

    /// Whether a user's session that begins again came further than before, where anybody listens:
    /// a look at a session that does not is over.
    #[cold]
    pub(crate) fn gets_on(&self, user: UserId) -> bool {
        self.tracer.as_ref().is_none_or(|tracer| tracer.gets_on(user))
    }

    /// Whether somebody wants to hear of every step, or to permit it.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.tracer.is_some() || self.gate.is_some()
    }

    /// Ends the whole run in order. The first reason of all shards is the reason.
    pub(crate) fn stop_because(&self, at: Time, reason: Said, by: StoppedBy) {
        self.control.stop_because(|| Stopped { at, reason, by });
        // The driver need not wait for its probe to hear of it.
        self.alarm.set_at_most(at, &self.clock);
    }

    /// A source of data has no row left, and the run ends with it.
    pub(crate) fn stop_run(&self, reason: Said, by: StoppedBy) {
        self.data_over.set(true);
        self.stop_because(self.clock.now(), reason, by);
    }

    pub(crate) fn data_is_over(&self) -> bool {
        self.data_over.get()
    }

    pub(crate) fn log(&self, at: Time, user: UserId, text: &[u8]) {
        self.logs.borrow_mut().write(at, user, text);
    }

    /// What has to be done every now and then.
    pub(crate) fn tidy_up(&self, now: Time) {
        self.wall.look(&self.clock);
        self.trim_write_buffer();
        self.connector.forget_vanished(now);
    }

    /// Gives back the memory of exceptional messages.
    pub(crate) fn trim_write_buffer(&self) {
        for buffer in [&self.write_buffer, &self.content_buffer] {
            let mut buffer = buffer.borrow_mut();
            if buffer.capacity() > WRITE_BUFFER_KEPT_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
    }
}
