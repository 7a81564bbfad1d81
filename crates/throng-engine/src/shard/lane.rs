//! A load on a shard: its users, its schedule, and its measurements. Also gives access to what all
//! loads of a shard share.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::ops::Deref;
use std::rc::Rc;
use std::time::Duration;

use throng_base::{Random, Time, UserId};
use throng_load::{Pace, Schedule};
use throng_metrics::{CellCounter, DeliveryCounter, UserState};
use throng_program::{Arrivals, Drive};

use super::{LEDGER_EVENTS_MAX, Mark, Oddity, PROBE, Report, Shard};
use crate::ledger::Fresh;
use crate::prepared::LoadPlan;
use crate::recorder::spent::OpeningTimes;
use crate::recorder::{Attempt, Iteration, Recorder};
use crate::rendezvous::{Meeting, Waiting};
use crate::shard::due::DueQueue;
use crate::shard::left::Left;
use crate::shard::slots::Slots;

/// A start counts as one that waited for a free user from this delay on, or is dropped then.
pub(crate) const WAITED: Duration = Duration::from_millis(1);

/// State that all users of a load on a shard share.
pub(crate) struct Lane {
    shard: Rc<Shard>,
    load: usize,
    pub(crate) recorder: RefCell<Recorder>,
    /// By slot, the start of a user's iteration: only if sessions are counted separately.
    iterations: RefCell<Vec<Time>>,
    /// Connections that the target is to close.
    pub(crate) left: RefCell<Left>,
    pub(crate) slots: RefCell<Slots>,
    pub(crate) due: RefCell<DueQueue>,
    /// The connection that was opened last, for the request that follows immediately.
    pub(crate) opening: Cell<Option<(UserId, OpeningTimes)>>,
    /// Users that wait for others.
    pub(crate) meeting: Meeting,
    users_made: Cell<u64>,
    /// A stuck user is to report what it waits for.
    pub(crate) asks: Cell<bool>,
    /// Iterations that have started and not ended.
    running: Cell<u64>,
    /// Its phases are over, or are skipped.
    pub(crate) stopping: Cell<bool>,
    /// The run is stopping early.
    pub(crate) cut_short: Cell<bool>,
    /// Users or connections came or went in the previous interval.
    pub(crate) changed: Cell<bool>,
}

impl Deref for Lane {
    type Target = Shard;

    #[inline]
    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl Lane {
    pub(crate) fn new(shard: &Rc<Shard>, load: usize) -> Rc<Lane> {
        let program = &shard.prepared.program;
        let churns = program.loads[load].phases.iter().any(|phase| phase.churn.is_some());
        let mut recorder = Recorder::new(program.steps.len(), shard.routes.places());
        recorder.cells = CellCounter::new(shard.prepared.users_per_cell);
        Rc::new(Lane {
            shard: Rc::clone(shard),
            load,
            recorder: RefCell::new(recorder.with_sessions(program.sessions.len())),
            iterations: RefCell::default(),
            left: RefCell::default(),
            slots: RefCell::new(Slots::new(churns)),
            due: RefCell::default(),
            opening: Cell::default(),
            meeting: Meeting::default(),
            users_made: Cell::new(0),
            asks: Cell::new(false),
            running: Cell::new(0),
            stopping: Cell::new(false),
            cut_short: Cell::new(false),
            changed: Cell::new(false),
        })
    }

    pub(crate) fn load(&self) -> usize {
        self.load
    }

    /// The prepared data of its load.
    pub(crate) fn plan(&self) -> &LoadPlan {
        &self.shard.prepared.loads[self.load]
    }

    pub(crate) fn schedule(&self) -> Ref<'_, Schedule> {
        Ref::map(self.schedules.borrow(), |all| all.get(self.load))
    }

    pub(crate) fn schedule_mut(&self) -> RefMut<'_, Schedule> {
        RefMut::map(self.schedules.borrow_mut(), |all| all.get_mut(self.load))
    }

    /// Wakes the user at `time`, or earlier.
    #[inline]
    pub(crate) fn arm(&self, slot: u32, time: Time) {
        self.due.borrow_mut().arm(slot, time);
        self.alarm.set_at_most(time, &self.clock);
    }

    /// As [`Lane::arm`], for a time so much later that waking the user at the old one would be
    /// useless.
    #[inline]
    pub(crate) fn rearm(&self, slot: u32, time: Time) {
        self.due.borrow_mut().remove(slot);
        self.arm(slot, time);
    }

    /// The user waits for others: it is woken when they are released.
    pub(crate) fn await_release(&self, slot: u32, waiting: Waiting, now: Time) {
        self.meeting.come(slot, waiting);
        self.alarm.set_at_most(now + PROBE, &self.clock);
    }

    /// Returns when the next iteration of a user that has been free since `free` was due. With
    /// `None` the user waits, and is told when its iteration begins.
    pub(crate) fn next_iteration(&self, slot: u32, free: Time, now: Time) -> Option<Time> {
        let mut schedule = self.schedule_mut();
        if schedule.pace() == Pace::Free {
            self.iteration_begins();
            return Some(now);
        }
        match schedule.next_iteration() {
            Some(due) if due <= now => {
                schedule.starts.take();
                self.iteration_begins();
                // Without a rate every iteration is "due" since the phase began.
                if schedule.iterations().is_none_or(|it| it.rate.is_none()) {
                    return Some(now);
                }
                self.start_begins();
                if free - due >= WAITED {
                    self.recorder.borrow_mut().interval.population.waited += 1;
                }
                Some(due)
            }
            due => {
                self.slots.borrow_mut().idle(slot);
                match due {
                    Some(due) => self.alarm.set_at_most(due, &self.clock),
                    None => self.finish_phase_if_done(&mut schedule, now),
                }
                None
            }
        }
    }

    /// A user starts at `now` what was due at `due` and possible from `able` on. Returns the time
    /// from which its response time is measured: a delay within the precision is left out, because
    /// it comes from shared wake-ups and not from the target; any longer delay counts.
    pub(crate) fn begins_late(&self, due: Time, able: Time, now: Time) -> Time {
        let late = now - able.max(due);
        self.recorder.borrow_mut().late(late);
        due + late.min(self.prepared.program.precision)
    }

    /// The same for recurring actions.
    pub(crate) fn recurs_late(&self, due: Time, now: Time) -> Time {
        let late = now - due;
        self.recorder.borrow_mut().late(late);
        due + late.min(self.prepared.program.idle_precision())
    }

    /// Whether iterations start at a rate, and not when the one before has ended.
    pub(crate) fn paces_iterations(&self) -> bool {
        self.schedule().iterations().is_some_and(|it| it.rate.is_some())
    }

    pub(crate) fn iteration_begins(&self) {
        self.running.set(self.running.get() + 1);
        self.recorder.borrow_mut().interval.population.iterations_started += 1;
    }

    /// A start that the schedule has set starts.
    pub(crate) fn start_begins(&self) {
        self.recorder.borrow_mut().interval.population.begun += 1;
    }

    /// A user runs an iteration of its session, measured from `since`.
    pub(crate) fn iteration_is_done(&self, session: u16, slot: u32, since: Time) {
        if self.prepared.sessions.len() < 2 {
            return;
        }
        self.recorder.borrow_mut().sessions.begins(session);
        let (mut iterations, slot) = (self.iterations.borrow_mut(), slot as usize);
        if iterations.len() <= slot {
            iterations.resize(slot + 1, Time::ZERO);
        }
        iterations[slot] = since;
    }

    /// Duration of a user's iteration, if it is recorded.
    pub(crate) fn iteration_took(&self, slot: u32, now: Time) -> Option<Duration> {
        self.iterations.borrow().get(slot as usize).map(|since| now - *since)
    }

    /// An iteration is over, complete or not.
    pub(crate) fn iteration_ends(&self, session: u16, how: Iteration) {
        self.running.set(self.running.get() - 1);
        let mut recorder = self.recorder.borrow_mut();
        let finished = matches!(how, Iteration::Finished(_));
        recorder.interval.population.iterations_finished += u64::from(finished);
        recorder.sessions.ends(session, how);
    }

    /// All iterations of the phase are done: the driver need not wait for its time.
    pub(crate) fn finish_phase_if_done(&self, schedule: &mut Schedule, now: Time) {
        let ended = schedule.phase_end() <= now;
        let counts = schedule.iterations().is_some_and(|it| it.total.is_some());
        // Users may leave on their own, and none may be left for the rest. If growth is paused,
        // none may have started yet.
        let nobody = || self.slots.borrow().taken() == 0 && !schedule.population.awaits_users();
        let none_left = || schedule.next_iteration().is_none() || nobody();
        if counts && !ended && self.running.get() == 0 && none_left() {
            schedule.finish_phase(now);
            self.alarm.set_at_most(schedule.phase_end(), &self.clock);
        }
    }

    /// Whether users that are told to leave finish their transaction; not if the run is stopping
    /// early.
    pub(crate) fn finishes_transactions(&self) -> bool {
        !self.cut_short.get()
    }

    /// The user enters a state, as the population map shows it.
    pub(crate) fn comes_to(&self, slot: u32, user: UserId, state: UserState) {
        let before = self.slots.borrow_mut().comes_to(slot, Some(state));
        self.recorder.borrow_mut().cells.moves(user.0, before, Some(state));
    }

    /// The user enters a state on its way online: a user that is online or away keeps that state,
    /// whatever else it does.
    pub(crate) fn strives(&self, slot: u32, user: UserId, state: UserState) {
        let now = self.slots.borrow().state(slot);
        if !matches!(now, Some(UserState::Online | UserState::Away)) {
            self.comes_to(slot, user, state);
        }
    }

    /// A user is gone for good.
    pub(crate) fn user_gone(&self, slot: u32, user: UserId) {
        let before = self.slots.borrow_mut().comes_to(slot, None);
        self.recorder.borrow_mut().cells.moves(user.0, before, None);
        self.due.borrow_mut().remove(slot);
        self.slots.borrow_mut().release(slot);
        let mut recorder = self.recorder.borrow_mut();
        recorder.interval.population.finished += 1;
        recorder.interval.gauges.users_present -= 1;
        drop(recorder);
        self.may_be_done();
    }

    /// A counted phase may have waited only for what is over now.
    pub(crate) fn may_be_done(&self) {
        if self.running.get() == 0
            && self.schedule().iterations().is_some_and(|it| it.total.is_some())
        {
            self.alarm.set_at_most(self.clock.now(), &self.clock);
        }
    }

    /// Whether the maximum of arriving users is reached.
    pub(crate) fn is_full(&self) -> bool {
        match self.schedule().drive() {
            Some(Drive::Arrivals(Arrivals { max: Some(max), .. })) => {
                self.slots.borrow().arrived() >= self.share.part(*max)
            }
            _ => false,
        }
    }

    /// Admits a user: its slot, number and random state.
    pub(crate) fn admit(&self, stays: bool) -> (u32, UserId, Random) {
        let made = self.users_made.get();
        self.users_made.set(made + 1);
        let id = self.plan().user(self.share.user(made));
        let slot = self.slots.borrow_mut().take(stays);
        let mut recorder = self.recorder.borrow_mut();
        recorder.interval.population.started += 1;
        recorder.interval.gauges.users_present += 1;
        (slot, id, Random::for_owner(self.prepared.program.seed, id.0))
    }

    /// A phase of the load, counted from its first, starts or ends.
    pub(crate) fn mark(&self, phase: u16, at: Time, begins: bool) {
        let phase = self.plan().first_phase + phase;
        self.marks.borrow_mut().push(Mark { phase, at, begins });
    }

    /// Processes deliveries. Latencies and losses go to the row of the step.
    pub(crate) fn work_off_ledgers(&self, now: Time, last: bool) {
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

    /// The results of this interval, which ended at `until`, with its second and phase of the run.
    /// The lane that `leads` includes deliveries. After `end`, this lane reports nothing.
    pub(crate) fn report(
        &self,
        interval: (u64, u16),
        until: Time,
        leads: bool,
        end: bool,
    ) -> Report {
        let now = self.clock.now();
        if end {
            self.left.borrow_mut().end(now, &self.recorder);
        }
        if leads {
            self.work_off_ledgers(now, end);
        }
        let oddities = if leads { self.take_oddities(now) } else { Vec::new() };
        let mut recorder = self.recorder.borrow_mut();
        recorder.interval.gauges.users_wanted = match self.stopping.get() {
            true => 0,
            false => self.schedule().population.staying(),
        };
        let asked = self.schedule_mut().asked(until, WAITED + self.prepared.program.precision);
        recorder.interval.population.wanted += asked.wanted;
        recorder.interval.population.withdrawn += asked.withdrawn;
        recorder.interval.gauges.backlog = asked.backlog;
        debug_assert!(!end || recorder.is_complete(), "an attempt was begun and has no end");
        if end {
            recorder.cells.ends();
        }
        let (second, phase) = interval;
        let (mut interval, examples) = recorder.take(second, phase);
        interval.traffic.packets = self.connector.take_packets();
        let connections = &interval.connections.counts;
        let changed = connections.attempted + connections.opened + interval.population.finished > 0;
        // Once more when all is quiet again, for memory that was freed last.
        if self.changed.replace(changed) || changed {
            self.give_back.iter().for_each(|give_back| give_back());
        }
        let marks = self.marks.take();
        let logs = match end {
            true => self.logs.borrow_mut().take_last(now),
            false => self.logs.borrow_mut().take(now),
        };
        let (shard, reached) = (self.id, None);
        Report { shard, interval, reached, examples, oddities, marks, logs, last: false }
    }

    /// Records the deliveries. Losses are reported as failures; returns the other errors.
    fn take_oddities(&self, at: Time) -> Vec<Oddity> {
        let mut oddities = Vec::new();
        for ledger in self.ledgers.borrow_mut().iter_mut() {
            let (step, mut recorder) = (ledger.step(), self.recorder.borrow_mut());
            recorder.delivered(ledger.interval());
            for (counter, detail) in ledger.remarks() {
                match counter {
                    DeliveryCounter::Lost => recorder.lost_one(step, detail, at),
                    counter => oddities.push(Oddity { at, step, counter, detail }),
                }
            }
        }
        oddities
    }
}
