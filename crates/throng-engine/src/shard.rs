//! One shard: a thread with its own runtime, its own users, its own figures. Shards share nothing
//! mutable; once a second each hands over what happened.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Clock, Random, Said, ShardId, StepId, Time, UserId};
use throng_data::Reader;
use throng_expression::Value;
use throng_load::{Action, Pace, Schedule, Share};
use throng_metrics::{DeliveryCounter, Interval};
use throng_program::Phase;
use throng_protocol::framed::Decoded;
use throng_protocol::http2;
use throng_protocol::websocket::{Deflater, Inflater};
use tokio::sync::mpsc::UnboundedSender;

use crate::alarm::Alarm;
use crate::budget::{Budget, Purse};
use crate::connector::Connector;
use crate::control::{ABORT, Control, GROWTH_AHEAD, Gate, STOP, Stopped, StoppedBy};
use crate::due::DueQueue;
use crate::kept::Kept;
use crate::ledger::{Fresh, ShardLedger};
use crate::left::Left;
use crate::logs::{Line, Logs};
use crate::prepared::Prepared;
use crate::recorder::{Attempt, Example, Recorder};
use crate::rendezvous::{Meeting, Places, Waiting};
use crate::seats::Seats;
use crate::trace::{Trace, Tracer, What, Who};
use crate::user::{Rare, User};
use crate::wall::Wall;
use crate::window::Window;

/// Reads of all users of a shard go here, one after another.
pub(crate) const READ_BUFFER_BYTES: usize = 64 * 1024;
/// What the write buffer may keep after an exceptional message.
const WRITE_BUFFER_KEPT_BYTES_MAX: usize = 256 * 1024;
/// Of a ledger, what is looked at at one probe: half a millisecond.
const LEDGER_EVENTS_MAX: usize = 20_000;
/// How long a shard at its end waits for what others have sent.
const LEDGER_PATIENCE: Duration = Duration::from_millis(500);
/// How often the driver looks how late it is: while users do something, and at least while all
/// are quiet. Any turn will do for it; the driver wakes on purpose only when there was none.
const PROBE: Duration = Duration::from_millis(10);
const PROBE_QUIET: Duration = Duration::from_millis(100);
/// As [`PROBE_QUIET`], where there are very many shards: no shard hears later than this of a stop,
/// and of growth that is held before it is so.
const PROBE_MAX: Duration = Duration::from_millis(200);
const _: () = assert!(PROBE_MAX.as_millis() < GROWTH_AHEAD.as_millis());
/// Where there are many more shards than processors, each of them wakes on purpose less often, so
/// that watching does not become the work: all together so often a second for each processor.
/// Whatever holds a processor up is still seen at once, as other shards on it wake.
const PROBES_PER_PROCESSOR_MAX: u64 = 1000;
/// Shards hand over in groups, one after another, and what they do in turn from then on is apart
/// too: a thousand threads that wake at the same moment would be late because of each other. One
/// group is what a processor is done with before the next; what a shard says of a second is off
/// by less than a tenth of it.
const GROUP_SHARDS: u64 = 16;
const GROUPS_APART: Duration = Duration::from_micros(800);
const GROUPS: u64 = 125;
/// Starts of one turn after which the clock is read again, so that the last of many that were
/// due together is as late as it is.
const STARTS_PER_READING: u32 = 64;
/// A start counts as one that waited for a free user from this delay on.
const WAITED: Duration = Duration::from_millis(1);

/// Starts that have waited no longer than this when a run is stopped are not counted as starts
/// that never happened.
const WAITING_AT_THE_STOP: Duration = Duration::from_secs(1);

/// What a shard hands over.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) shard: ShardId,
    pub(crate) interval: Interval,
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

/// What all users of a shard share.
pub(crate) struct Shard {
    pub(crate) id: ShardId,
    pub(crate) clock: Clock,
    pub(crate) wall: Wall,
    pub(crate) prepared: Arc<Prepared>,
    /// The readers of the program's data, by source.
    pub(crate) readers: RefCell<Vec<Reader>>,
    pub(crate) connector: Connector,
    pub(crate) recorder: RefCell<Recorder>,
    /// Connections whose end is left to the target.
    pub(crate) left: RefCell<Left>,
    pub(crate) read_buffer: RefCell<Box<[u8]>>,
    pub(crate) write_buffer: RefCell<Vec<u8>>,
    /// Frames of HTTP/2, and the header block in them.
    pub(crate) frame_buffer: RefCell<Vec<u8>>,
    pub(crate) block_buffer: RefCell<Vec<u8>>,
    pub(crate) workspace: RefCell<http2::Workspace>,
    /// What is put into a frame.
    pub(crate) content_buffer: RefCell<Vec<u8>>,
    /// What answers leave behind for the next ones.
    #[allow(clippy::vec_box)]
    pub(crate) rares: RefCell<Vec<Box<Rare>>>,
    /// Fields of the answer that is being looked at.
    pub(crate) found: RefCell<Vec<Option<Value>>>,
    /// Where the fields of the message lie that is looked at.
    pub(crate) decoded: RefCell<Decoded>,
    pub(crate) decoded_sent: RefCell<Decoded>,
    /// By row of deliveries.
    pub(crate) ledgers: RefCell<Vec<ShardLedger>>,
    /// What its users may keep of what comes, and of what waits to be sent.
    pub(crate) purse: Rc<Purse>,
    pub(crate) inflater: RefCell<Inflater>,
    pub(crate) deflater: RefCell<Deflater>,
    pub(crate) seats: RefCell<Seats>,
    control: Control,
    /// Where users of all shards wait for each other, and who of this shard does.
    pub(crate) places: Places,
    pub(crate) meeting: Meeting,
    logs: RefCell<Logs>,
    /// Who listens to every step.
    pub(crate) tracer: Option<Tracer>,
    /// Where users wait before every step.
    pub(crate) gate: Option<Arc<Gate>>,
    /// Where users leave what they have saved.
    pub(crate) keep: Option<Kept>,
    /// A source of data has ended the run.
    data_over: Cell<bool>,
    due: RefCell<DueQueue>,
    alarm: Alarm,
    schedule: RefCell<Schedule>,
    pub(crate) share: Share,
    users_made: Cell<u64>,
    /// Iterations that were begun and are not over.
    running: Cell<u64>,
    stopping: Cell<bool>,
    /// The run is stopping before its time.
    cut_short: Cell<bool>,
    /// Of phases, since the last report.
    marks: RefCell<Vec<Mark>>,
    give_back: Option<fn()>,
    /// Users or connections came or went in the interval before.
    changed: Cell<bool>,
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
    pub(crate) alarm: Alarm,
    pub(crate) control: Control,
    pub(crate) places: Places,
    pub(crate) ledgers: Vec<ShardLedger>,
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
        let steps = program.steps.len();
        let churns = program.load.phases.iter().any(|phase| phase.churn.is_some());
        let schedule = Schedule::new(&program.load, parts.share, parts.start);
        Rc::new(Shard {
            id: parts.id,
            wall: Wall::new(&parts.clock),
            clock: parts.clock,
            readers: RefCell::new(parts.readers),
            prepared: parts.prepared,
            connector: parts.connector,
            recorder: RefCell::new(Recorder::new(steps)),
            left: RefCell::default(),
            read_buffer: RefCell::new(vec![0; READ_BUFFER_BYTES].into()),
            write_buffer: RefCell::default(),
            frame_buffer: RefCell::default(),
            block_buffer: RefCell::default(),
            workspace: RefCell::default(),
            content_buffer: RefCell::default(),
            rares: RefCell::default(),
            found: RefCell::default(),
            decoded: RefCell::default(),
            decoded_sent: RefCell::default(),
            ledgers: RefCell::new(parts.ledgers),
            purse: Purse::new(parts.budget),
            inflater: RefCell::new(Inflater::new()),
            deflater: RefCell::default(),
            seats: RefCell::new(Seats::new(churns)),
            control: parts.control,
            places: parts.places,
            meeting: Meeting::default(),
            logs: RefCell::default(),
            tracer: parts.tracer,
            gate: parts.gate,
            keep: parts.keep,
            data_over: Cell::new(false),
            due: RefCell::default(),
            alarm: parts.alarm,
            schedule: RefCell::new(schedule),
            share: parts.share,
            users_made: Cell::new(0),
            running: Cell::new(0),
            stopping: Cell::new(false),
            cut_short: Cell::new(false),
            marks: RefCell::default(),
            give_back: parts.give_back,
            changed: Cell::new(false),
            polls: Cell::new(0),
            hasty: Cell::new(0),
        })
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

    /// Wakes the user at `time`, or earlier.
    #[inline]
    pub(crate) fn arm(&self, slot: u32, time: Time) {
        self.due.borrow_mut().arm(slot, time);
        self.alarm.set_at_most(time, &self.clock);
    }

    /// As [`Shard::arm`], for a moment that has moved on so far that waking the user at the one
    /// before would be for nothing.
    #[inline]
    pub(crate) fn rearm(&self, slot: u32, time: Time) {
        self.due.borrow_mut().remove(slot);
        self.arm(slot, time);
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

    /// A source of data has no row left, and the scenario says that the run ends with it.
    pub(crate) fn stop_run(&self, reason: Said) {
        self.data_over.set(true);
        self.stop_because(self.clock.now(), reason, StoppedBy::Data);
    }

    pub(crate) fn data_is_over(&self) -> bool {
        self.data_over.get()
    }

    pub(crate) fn log(&self, at: Time, user: UserId, text: &[u8]) {
        self.logs.borrow_mut().write(at, user, text);
    }

    /// The user waits for others: it is woken at the moment they go on.
    pub(crate) fn await_release(&self, slot: u32, waiting: Waiting, now: Time) {
        self.meeting.come(slot, waiting);
        self.alarm.set_at_most(now + PROBE, &self.clock);
    }

    /// Returns when the next iteration of a user who has been free since `free` was due. With
    /// `None` the user waits, and is told when its iteration begins.
    pub(crate) fn next_iteration(&self, slot: u32, free: Time, now: Time) -> Option<Time> {
        let mut schedule = self.schedule.borrow_mut();
        if schedule.pace() == Pace::Free {
            self.iteration_begins();
            return Some(now);
        }
        match schedule.next_iteration() {
            Some(due) if due <= now => {
                schedule.begin_iteration();
                self.iteration_begins();
                // Without a rate every iteration is "due" since the phase began.
                if !schedule.paces_iterations() {
                    return Some(now);
                }
                if free - due >= WAITED {
                    self.recorder.borrow_mut().population.waited += 1;
                }
                Some(due)
            }
            due => {
                self.seats.borrow_mut().idle(slot);
                match due {
                    Some(due) => self.alarm.set_at_most(due, &self.clock),
                    None => self.finish_phase_if_done(&mut schedule, now),
                }
                None
            }
        }
    }

    /// A user does at `now` what was due at `due` and possible from `able` on. Returns the moment
    /// from which its response time counts: a delay within the precision is left out, as it comes
    /// from sharing wakings and not from the target; any further delay counts.
    pub(crate) fn begins_late(&self, due: Time, able: Time, now: Time) -> Time {
        let late = now - able.max(due);
        self.recorder.borrow_mut().late(late);
        due + late.min(self.prepared.program.load.precision)
    }

    /// The same of what a user does again and again beside all else.
    pub(crate) fn recurs_late(&self, due: Time, now: Time) -> Time {
        let late = now - due;
        self.recorder.borrow_mut().late(late);
        due + late.min(self.prepared.program.load.idle_precision())
    }

    /// Whether iterations begin at a rate, and not when the one before has ended.
    pub(crate) fn paces_iterations(&self) -> bool {
        self.schedule.borrow().paces_iterations()
    }

    pub(crate) fn iteration_begins(&self) {
        self.running.set(self.running.get() + 1);
        self.recorder.borrow_mut().population.iterations_started += 1;
    }

    /// An iteration is over, whatever came of it.
    pub(crate) fn iteration_ends(&self, finished: bool) {
        self.running.set(self.running.get() - 1);
        self.recorder.borrow_mut().population.iterations_finished += u64::from(finished);
    }

    /// All iterations of the phase are done: the driver need not wait for its time.
    fn finish_phase_if_done(&self, schedule: &mut Schedule, now: Time) {
        let ended = schedule.phase_end() <= now;
        let counts = schedule.counts_iterations();
        // Users may leave on their own; then nobody is left who could do the rest.
        // Nobody is left either where nobody has come yet, as growth is held.
        let nobody = || self.seats.borrow().taken() == 0 && !schedule.awaits_users();
        let none_left = || schedule.next_iteration().is_none() || nobody();
        if counts && !ended && self.running.get() == 0 && none_left() {
            schedule.finish_phase(now);
            self.alarm.set_at_most(schedule.phase_end(), &self.clock);
        }
    }

    /// Whether users who are told to leave finish the transaction they are in; not when somebody
    /// waits for the run to stop.
    pub(crate) fn finishes_transactions(&self) -> bool {
        !self.cut_short.get()
    }

    /// A user is gone for good.
    pub(crate) fn user_gone(&self, slot: u32) {
        self.due.borrow_mut().remove(slot);
        self.seats.borrow_mut().release(slot);
        let mut recorder = self.recorder.borrow_mut();
        recorder.population.finished += 1;
        recorder.gauges.users_present -= 1;
        drop(recorder);
        self.may_be_done();
    }

    /// Perhaps a counted phase waited for nothing but what is over now.
    pub(crate) fn may_be_done(&self) {
        if self.running.get() == 0 && self.schedule.borrow().counts_iterations() {
            self.alarm.set_at_most(self.clock.now(), &self.clock);
        }
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

    fn spawn(self: &Rc<Self>, due: Time, stays: bool) {
        let made = self.users_made.get();
        self.users_made.set(made + 1);
        let id: UserId = self.share.user(made);
        let slot = self.seats.borrow_mut().take(stays);
        let random = Random::for_owner(self.prepared.program.seed, id.0);
        let mut recorder = self.recorder.borrow_mut();
        recorder.population.started += 1;
        recorder.gauges.users_present += 1;
        drop(recorder);
        let user = User::new(Rc::clone(self), slot, id, random, due, !stays);
        tokio::task::spawn_local(user);
    }

    fn mark(&self, phase: u16, at: Time, begins: bool) {
        self.marks.borrow_mut().push(Mark { phase, at, begins });
    }

    /// Looks at what was delivered. Latencies and losses go to the row of the step.
    fn work_off_ledgers(&self, now: Time, last: bool) {
        let mut recorder = self.recorder.borrow_mut();
        for ledger in self.ledgers.borrow_mut().iter_mut() {
            let step = ledger.step();
            let mut fresh = |fresh: Fresh| {
                let attempt = Attempt { latency: fresh.latency, ..Attempt::default() };
                recorder.came(step, &attempt);
            };
            match last {
                true => ledger.finish(now, &mut fresh),
                false => {
                    ledger.trade(now);
                    ledger.work(LEDGER_EVENTS_MAX, &mut fresh);
                }
            }
        }
    }

    fn hand_over(&self, second: u64, phase: u16, last: bool, reports: &UnboundedSender<Report>) {
        self.work_off_ledgers(self.clock.now(), last);
        self.wall.look(&self.clock);
        self.trim_write_buffer();
        self.connector.forget_vanished(self.clock.now());
        if last {
            self.left.borrow_mut().end(&self.recorder);
        }
        let mut recorder = self.recorder.borrow_mut();
        recorder.gauges.users_wanted = match self.schedule.borrow().pace() {
            _ if self.stopping.get() => 0,
            _ => self.schedule.borrow().staying(),
        };
        let mut oddities = Vec::new();
        for ledger in self.ledgers.borrow_mut().iter_mut() {
            let (at, step, remarks) = (self.clock.now(), ledger.step(), ledger.remarks());
            recorder.delivered(ledger.interval(), &remarks, at);
            oddities.extend(remarks.iter().map(|remark| Oddity {
                at,
                step,
                counter: remark.counter(),
                detail: remark.said(),
            }));
        }
        debug_assert!(!last || recorder.is_complete(), "an attempt was begun and has no end");
        // What was lost is told as a failure.
        oddities.retain(|oddity| oddity.counter != DeliveryCounter::Lost);
        let (interval, examples) = recorder.take(second, phase);
        let connections = &interval.connections;
        let changed = connections.attempted + connections.opened + interval.population.finished > 0;
        // Once more when all is quiet again, for what was freed last.
        if self.changed.replace(changed) || changed {
            self.give_back.iter().for_each(|give_back| give_back());
        }
        // Nobody listens any more only when the run is being torn down.
        let marks = self.marks.take();
        let now = self.clock.now();
        let logs = match last {
            true => self.logs.borrow_mut().take_last(now),
            false => self.logs.borrow_mut().take(now),
        };
        let _ = reports.send(Report {
            shard: self.id,
            interval,
            examples,
            oddities,
            marks,
            logs,
            last,
        });
    }
}

/// Runs a shard to the end of its load: brings users, wakes them, hands over intervals.
pub(crate) async fn drive(shard: Rc<Shard>, reports: UnboundedSender<Report>) {
    let mut driver = Driver::new(Rc::clone(&shard), reports);
    while let Some(mut next) = driver.turn() {
        if driver.window.is_open() {
            // What is due is sent, and what has come is heard.
            tokio::task::yield_now().await;
            let now = shard.clock.now();
            if let Some(until) = driver.sleeps_until(now) {
                shard.alarm.nap(until, &shard.clock).await;
                driver.woken = until;
                continue;
            }
            next = driver.next(now);
        }
        driver.woken = shard.alarm.wait(next, &shard.clock).await;
        driver.window.woke(shard.clock.now());
    }
}

struct Driver {
    shard: Rc<Shard>,
    reports: UnboundedSender<Report>,
    /// Second and phase of the interval that is being filled, and when it ends.
    second: u64,
    phase: u16,
    interval_begin: Time,
    interval_end: Time,
    /// When this turn should have begun, and when it did.
    woken: Time,
    turned: Time,
    window: Window,
    /// From when on the next turn is a probe, and when the driver wakes for it on purpose; and how
    /// long that is after the one before while users do something.
    probe_from: Time,
    probe: Time,
    probe_every: Duration,
    /// What the recorder told at the last probe.
    activity: u64,
    /// The version of what was heard last of growth being held.
    growth: u64,
    /// When users who are still there are sent away; set once the run is stopping.
    deadline: Time,
    /// They were sent away.
    aborted: bool,
    /// When the last of them was gone.
    gone: Time,
}

impl Driver {
    fn new(shard: Rc<Shard>, reports: UnboundedSender<Report>) -> Driver {
        let now = shard.clock.now();
        let probe_every = probe_every(shard.share.of);
        let window = Window::new(shard.prepared.program.load.precision, now);
        let mut driver = Driver {
            shard,
            window,
            reports,
            second: now.second(),
            phase: 0,
            interval_begin: now,
            interval_end: now,
            woken: now,
            turned: now,
            probe_from: now + PROBE,
            probe: now + probe_every,
            probe_every,
            activity: 0,
            growth: 0,
            deadline: Time::NEVER,
            aborted: false,
            gone: Time::NEVER,
        };
        driver.begin_interval(now);
        driver
    }

    /// Does what is due and says when something is due again; None when all is over.
    fn turn(&mut self) -> Option<Time> {
        let now = self.shard.clock.now();
        self.turned = now;
        self.shard.recorder.borrow_mut().waking_over();
        if now >= self.probe_from {
            self.probe(now);
        }
        self.obey(now);
        if now >= self.interval_end {
            self.hand_over(now, false);
        }
        self.take_actions(now);
        self.release();
        self.wake_due(now);
        if self.shard.stopping.get() && self.shard.seats.borrow().taken() == 0 {
            if !self.ledgers_are_complete(now) {
                return Some(now + PROBE);
            }
            self.hand_over(now, true);
            return None;
        }
        Some(self.next(now))
    }

    /// The users are gone: whether it is known what all shards have sent while they were there.
    fn ledgers_are_complete(&mut self, now: Time) -> bool {
        if self.gone == Time::NEVER {
            self.gone = now;
        }
        let ledgers = &self.shard.ledgers;
        let complete = ledgers.borrow().iter().all(|ledger| ledger.is_complete(self.gone));
        complete || now - self.gone >= LEDGER_PATIENCE || {
            self.shard.work_off_ledgers(now, false);
            false
        }
    }

    /// Users whose group goes on are woken at its moment.
    fn release(&self) {
        if !self.shard.meeting.is_empty() {
            let mut due = self.shard.due.borrow_mut();
            self.shard.meeting.release(&self.shard.places, |slot, moment| due.arm(slot, moment));
        }
    }

    /// Writes down how late the driver is.
    fn probe(&mut self, now: Time) {
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.woken(self.woken, now);
        let activity = recorder.activity();
        let quiet = std::mem::replace(&mut self.activity, activity) == activity;
        drop(recorder);
        self.shard.left.borrow_mut().look(now, &self.shard.recorder);
        self.shard.work_off_ledgers(now, false);
        self.probe_from = now + PROBE;
        self.probe = now + if quiet { PROBE_QUIET.max(self.probe_every) } else { self.probe_every };
    }

    fn hand_over(&mut self, now: Time, last: bool) {
        self.shard.hand_over(self.second, self.phase, last, &self.reports);
        self.begin_interval(now);
    }

    fn begin_interval(&mut self, now: Time) {
        self.interval_begin = now;
        self.second = now.second();
        self.phase = self.shard.schedule.borrow().phase();
        self.window.has(self.window_length());
        self.bound_interval(now);
    }

    /// What begins at a rate is as late as the precision says; all else may be later.
    fn window_length(&self) -> Duration {
        let load = &self.shard.prepared.program.load;
        let is_paced = |phase: &Phase| phase.drive.is_paced();
        match load.phases.get(usize::from(self.phase)).is_some_and(is_paced) {
            true => load.precision,
            false => load.idle_precision(),
        }
    }

    /// The interval ends with its second, or with its phase as far as its end is known.
    fn bound_interval(&mut self, now: Time) {
        let schedule = self.shard.schedule.borrow();
        // What ends behind the last phase counts to it: there is no border.
        let phase_end =
            Some(schedule.phase_end()).filter(|end| *end > now && !schedule.is_last_phase());
        let second_end = Time::from_secs(self.second + 1) + turn_of(self.shard.share.index);
        self.interval_end = second_end.min(phase_end.unwrap_or(Time::NEVER));
    }

    /// The earliest of all that is to come.
    fn next(&self, now: Time) -> Time {
        let schedule = self.shard.schedule.borrow();
        let mut next = self.probe.min(self.interval_end).min(self.deadline);
        next = next.min(schedule.next()).min(self.shard.due.borrow().next());
        // What is overdue has been given to everybody who waited; the next user to become free
        // takes the oldest of it. Until then it wakes nothing.
        if self.shard.seats.borrow_mut().has_idle()
            && let Some(iteration) = schedule.next_iteration().filter(|due| *due > self.turned)
        {
            next = next.min(iteration);
        }
        if !self.shard.meeting.is_empty() {
            next = next.min(now + PROBE);
        }
        next
    }

    /// Until when the shard sleeps on, whatever comes. Not while users wait for something to go on
    /// at once, nor while starts are due that wait for whoever is free next.
    fn sleeps_until(&mut self, now: Time) -> Option<Time> {
        let until = self.window.sleeps_until(now, self.shard.polls.get());
        let shard = &self.shard;
        let is_due = || shard.schedule.borrow().next_iteration().is_some_and(|due| due <= now);
        let waits = shard.hasty.get() > 0 || is_due() && !shard.seats.borrow_mut().has_idle();
        until.filter(|_| !waits)
    }

    /// Looks whether the run is to end before its time, or has to end now.
    fn obey(&mut self, now: Time) {
        let word = self.shard.control.word();
        if word >= STOP && !self.shard.stopping.get() {
            // What was due a moment ago would have been begun: nobody says that it never was.
            let waited = Time(now.0.saturating_sub(WAITING_AT_THE_STOP.as_nanos() as u64));
            self.shard.schedule.borrow_mut().cancel(waited);
            self.shard.cut_short.set(true);
            self.stop(now);
        }
        if self.shard.stopping.get() && !self.aborted && (word >= ABORT || now >= self.deadline) {
            self.aborted = true;
            self.deadline = Time::NEVER;
            self.shard.seats.borrow_mut().abort_all();
        }
        if let Some(news) = self.shard.control.growth_news(self.growth) {
            self.growth = news.version;
            let mut schedule = self.shard.schedule.borrow_mut();
            schedule.hold(news.held);
            if news.given_up {
                schedule.give_up_growth(now);
            }
            drop(schedule);
            // A phase that ends at another time than it was thought to is one interval all the
            // same.
            self.bound_interval(now);
        }
    }

    fn stop(&mut self, now: Time) {
        self.shard.mark(self.phase, now, false);
        self.shard.stopping.set(true);
        self.shard.recorder.borrow_mut().load_ends();
        self.deadline = now + self.shard.prepared.program.load.graceful_stop;
        self.shard.seats.borrow_mut().leave_all();
    }

    fn take_actions(&mut self, now: Time) {
        let mut watch = Watch { clock: self.shard.clock.clone(), now, starts: 0 };
        loop {
            self.begin_iterations(now);
            let action = self.shard.schedule.borrow_mut().pop(now);
            let unmet = self.shard.schedule.borrow_mut().take_unmet();
            self.shard.recorder.borrow_mut().population.unmet += unmet;
            match action {
                None => return,
                Some(Action::Phase(_)) => self.begin_phase(now),
                Some(Action::Come { due }) => {
                    self.shard.recorder.borrow_mut().moved(watch.now() - due);
                    self.shard.spawn(due, true);
                }
                // How late it is, it says itself.
                Some(Action::Arrive { due }) => self.shard.spawn(due, false),
                Some(Action::Part { how, due }) => {
                    self.shard.recorder.borrow_mut().moved(watch.now() - due);
                    // Where nobody has a connection, nobody loses one.
                    self.shard.seats.borrow_mut().part_one(how);
                }
                Some(Action::Leave) => self.shard.seats.borrow_mut().leave_one(),
                Some(Action::End) => self.stop(now),
            }
        }
    }

    /// Gives iterations that are due to users who wait for one; but never to one who is about to
    /// be told to leave.
    fn begin_iterations(&self, now: Time) {
        let mut schedule = self.shard.schedule.borrow_mut();
        if !schedule.is_settled(now) {
            return;
        }
        // Users who waited in a phase of scheduled iterations go on freely in any other.
        if schedule.pace() == Pace::Free {
            while self.shard.seats.borrow_mut().begin(now) {
                self.shard.iteration_begins();
            }
            return;
        }
        while let Some(due) = schedule.next_iteration().filter(|due| *due <= now) {
            let paced = schedule.paces_iterations();
            if !self.shard.seats.borrow_mut().begin(if paced { due } else { now }) {
                break;
            }
            schedule.begin_iteration();
            self.shard.iteration_begins();
        }
        self.shard.finish_phase_if_done(&mut schedule, now);
    }

    fn begin_phase(&mut self, now: Time) {
        let phase = self.shard.schedule.borrow().phase();
        if phase > 0 {
            self.shard.mark(phase - 1, now, false);
        }
        self.shard.mark(phase, now, true);
        if phase != self.phase {
            match self.interval_begin < now {
                true => self.hand_over(now, false),
                false => self.begin_interval(now),
            }
        }
    }

    fn wake_due(&self, now: Time) {
        let mut due = self.shard.due.borrow_mut();
        let mut seats = self.shard.seats.borrow_mut();
        while let Some((_, slot)) = due.pop(now) {
            seats.fire(slot);
        }
    }
}

/// How long after the others' a shard's second ends.
fn turn_of(shard: u64) -> Duration {
    GROUPS_APART * (shard / GROUP_SHARDS % GROUPS) as u32
}

/// How long the driver of one of so many shards waits before it wakes for nothing but a probe.
fn probe_every(shards: u64) -> Duration {
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let probes_max = processors * PROBES_PER_PROCESSOR_MAX;
    Duration::from_secs(shards).div_f64(probes_max as f64).clamp(PROBE, PROBE_MAX)
}

/// The time while much is begun in one turn.
struct Watch {
    clock: Clock,
    now: Time,
    /// Since the clock was read.
    starts: u32,
}

impl Watch {
    fn now(&mut self) -> Time {
        self.starts += 1;
        if self.starts > STARTS_PER_READING {
            self.starts = 0;
            self.now = self.clock.now();
        }
        self.now
    }
}

#[cfg(test)]
mod tests;
