//! The driver of a shard: starts the users of all loads, wakes them, and hands over results.

mod standstill;
pub(crate) mod window;

use std::rc::Rc;
use std::time::Duration;

use throng_base::{Clock, Time};
use throng_load::{Action, Pace};
use throng_program::Phase;
use tokio::sync::mpsc::UnboundedSender;

use crate::control::{ABORT, GROWTH_AHEAD, STOP};
use crate::shard::{Lane, PROBE, Report, Shard, WAITED};
use crate::user::User;
use standstill::Standstill;
use window::Window;

const PROBE_QUIET: Duration = Duration::from_millis(100);
/// Maximum of [`PROBE_QUIET`] with very many shards: every shard learns of a stop within this time,
/// and of paused growth before it takes effect.
const PROBE_MAX: Duration = Duration::from_millis(200);
const _: () = assert!(PROBE_MAX.as_millis() < GROWTH_AHEAD.as_millis());
/// With many more shards than processors, each shard wakes less often just to probe, so that
/// probing does not become the load: this is the total per processor and second. A busy processor
/// is still detected immediately, because other shards on it wake.
const PROBES_PER_PROCESSOR_MAX: u64 = 1000;
/// Shards hand over in groups, one after another, and stay offset from then on: a thousand threads
/// that wake at the same time would delay each other. A processor finishes one group before the
/// next; the interval of a shard is off by less than a tenth of a second.
const GROUP_SHARDS: u64 = 16;
const GROUPS_APART: Duration = Duration::from_micros(800);
const GROUPS: u64 = 125;
/// Starts per turn after which the clock is read again, so that the last of many simultaneous
/// starts gets its true delay.
const STARTS_PER_READING: u32 = 64;

/// Starts that have waited at most this long when a run is stopped do not count as dropped.
const WAITING_AT_THE_STOP: Duration = Duration::from_secs(1);

/// Runs a shard to the end of all its loads: starts users, wakes them, hands over intervals.
pub(crate) async fn drive(shard: Rc<Shard>, reports: UnboundedSender<Report>) {
    let mut driver = Driver::new(Rc::clone(&shard), reports);
    while let Some(mut next) = driver.turn() {
        if driver.window.is_open() {
            // Sends what is due, and reads what has arrived.
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
    lanes: Vec<Driven>,
    /// When this turn should have started, and when it did.
    woken: Time,
    turned: Time,
    window: Window,
    /// When the next turn is a probe, and when the driver wakes for it; and the time between probes
    /// while users are active.
    probe_from: Time,
    probe: Time,
    probe_every: Duration,
    /// Activity of the recorders at the last probe.
    activity: u64,
    /// The version of growth that the shard knows.
    growth: u64,
    /// How many amendments the shard knows.
    amended: usize,
    /// All remaining users were cut off.
    aborted: bool,
    /// When the last user was gone.
    gone: Time,
}

/// A lane and its current interval.
struct Driven {
    lane: Rc<Lane>,
    /// Second and phase of the interval, and its end. Phases are counted from the load's first.
    second: u64,
    phase: u16,
    begin: Time,
    end: Time,
    /// When the load's remaining users are cut off; set once its phases are over.
    deadline: Time,
    standstill: Standstill,
}

impl Driven {
    fn new(lane: Rc<Lane>, now: Time) -> Driven {
        let mut driven = Driven {
            lane,
            second: now.second(),
            phase: 0,
            begin: now,
            end: now,
            deadline: Time::NEVER,
            standstill: Standstill::default(),
        };
        driven.begin_interval(now);
        driven
    }

    fn begin_interval(&mut self, now: Time) {
        self.begin = now;
        self.second = now.second();
        self.phase = self.lane.schedule().phase();
        self.bound_interval(now);
    }

    /// The interval ends with its second or its phase, if the end of the phase is known.
    fn bound_interval(&mut self, now: Time) {
        let schedule = self.lane.schedule();
        // What ends after the last phase counts toward that phase.
        let phase_end =
            Some(schedule.phase_end()).filter(|end| *end > now && !schedule.is_last_phase());
        let second_end = Time::from_secs(self.second + 1) + turn_of(self.lane.share.place().0);
        self.end = second_end.min(phase_end.unwrap_or(Time::NEVER));
    }

    /// The number of the phase through all loads.
    fn phase_of_run(&self) -> u16 {
        self.lane.plan().first_phase + self.phase
    }

    /// The earliest time at which something is due.
    fn next(&self, turned: Time) -> Time {
        let next = self.end.min(self.deadline).min(self.lane.due.borrow().next());
        let next = next.min(self.next_drop(turned));
        // Overdue starts were offered to all waiting users; the next user that becomes free takes
        // the oldest. Until then they wake no user.
        let schedule = self.lane.schedule();
        match schedule.next_iteration().filter(|due| *due > turned) {
            Some(due) if self.lane.slots.borrow_mut().has_idle() => next.min(due),
            // From then on it is certain that no user is free for it.
            Some(due) if schedule.iterations().is_some_and(|it| it.drops) => next.min(due),
            _ => next,
        }
    }

    /// Gives due iterations to waiting users, except to those about to be told to leave.
    ///
    /// If the load drops starts, those that were offered to all users in a turn `before` are
    /// dropped.
    fn begin_iterations(&self, now: Time, before: Time) {
        let mut schedule = self.lane.schedule_mut();
        if !schedule.is_settled(now) {
            return;
        }
        // Users that waited in a phase with scheduled iterations continue freely in any other.
        if schedule.pace() == Pace::Free {
            while self.lane.slots.borrow_mut().begin(now) {
                self.lane.iteration_begins();
            }
            return;
        }
        while let Some(due) = schedule.next_iteration().filter(|due| *due <= now) {
            let paced = schedule.iterations().is_some_and(|it| it.rate.is_some());
            if !self.lane.slots.borrow_mut().begin(if paced { due } else { now }) {
                break;
            }
            schedule.starts.take();
            self.lane.iteration_begins();
            if paced {
                self.lane.start_begins();
            }
        }
        if schedule.next_to_drop().is_some_and(|due| due <= before && due + WAITED <= now) {
            schedule.drop_iterations(before.min(Time(now.0 - WAITED.as_nanos() as u64)));
        }
        self.lane.finish_phase_if_done(&mut schedule, now);
    }

    /// When untaken starts are dropped: all that are due by now together.
    fn next_drop(&self, turned: Time) -> Time {
        let due = self.lane.schedule().next_to_drop().filter(|due| *due <= turned);
        due.map_or(Time::NEVER, |_| turned + WAITED)
    }

    /// Whether starts wait for the next user that becomes free.
    fn has_waiting_starts(&self, now: Time) -> bool {
        let is_due = self.lane.schedule().next_iteration().is_some_and(|due| due <= now);
        is_due && !self.lane.slots.borrow_mut().has_idle()
    }

    /// The phases of the load are over, or are skipped.
    fn stop(&mut self, now: Time) {
        self.lane.mark(self.phase, now, false);
        self.lane.stopping.set(true);
        self.lane.recorder.borrow_mut().load_ends();
        self.deadline = now + self.lane.prepared.program.graceful_stop;
        self.lane.slots.borrow_mut().leave_all();
    }

    fn abort(&mut self) {
        self.deadline = Time::NEVER;
        self.lane.slots.borrow_mut().abort_all();
    }

    /// Wakes users whose group is released, at the time of release.
    fn release(&self) {
        if !self.lane.meeting.is_empty() {
            let mut due = self.lane.due.borrow_mut();
            self.lane.meeting.release(&self.lane.places, |slot, moment| due.arm(slot, moment));
        }
    }

    fn wake_due(&self, now: Time) {
        let mut due = self.lane.due.borrow_mut();
        let mut slots = self.lane.slots.borrow_mut();
        while let Some((_, slot)) = due.pop(now) {
            slots.fire(slot);
        }
    }
}

impl Driver {
    fn new(shard: Rc<Shard>, reports: UnboundedSender<Report>) -> Driver {
        let now = shard.clock.now();
        let probe_every = probe_every(shard.share.place().1);
        let window = Window::new(shard.prepared.program.precision, now);
        let loads = 0..shard.prepared.program.loads.len();
        let lanes = loads.map(|load| Driven::new(Lane::new(&shard, load), now)).collect();
        let mut driver = Driver {
            shard,
            window,
            reports,
            lanes,
            woken: now,
            turned: now,
            probe_from: now + PROBE,
            probe: now + probe_every,
            probe_every,
            activity: 0,
            growth: 0,
            amended: 0,
            aborted: false,
            gone: Time::NEVER,
        };
        driver.set_window();
        driver
    }

    /// Does what is due, and returns when something is due again; `None` when all is over.
    fn turn(&mut self) -> Option<Time> {
        let now = self.shard.clock.now();
        let before = std::mem::replace(&mut self.turned, now);
        for driven in &self.lanes {
            driven.lane.recorder.borrow_mut().waking_over();
        }
        if now >= self.probe_from {
            self.probe(now);
        }
        self.obey(now);
        for index in 0..self.lanes.len() {
            if now >= self.lanes[index].end {
                self.hand_over(index, now);
            }
        }
        self.take_actions(now, before);
        for driven in &self.lanes {
            driven.release();
            driven.wake_due(now);
        }
        if self.is_over() {
            if !self.ledgers_are_complete(now) {
                return Some(now + PROBE);
            }
            self.hand_over_last();
            return None;
        }
        Some(self.next(now))
    }

    /// All loads are over and all their users are gone.
    fn is_over(&self) -> bool {
        let mut lanes = self.lanes.iter().map(|driven| &driven.lane);
        lanes.all(|lane| lane.stopping.get() && lane.slots.borrow().taken() == 0)
    }

    /// All users are gone: whether everything that all shards sent before is known.
    fn ledgers_are_complete(&mut self, now: Time) -> bool {
        if self.gone == Time::NEVER {
            self.gone = now;
        }
        let ledgers = &self.shard.ledgers;
        let complete = ledgers.borrow().iter().all(|ledger| ledger.is_complete(self.gone, now));
        complete || {
            self.lead().work_off_ledgers(now, false);
            false
        }
    }

    /// The load that owns results of no single load: how late the shard is, and deliveries. A
    /// running load, measured if possible.
    fn leading(&self) -> usize {
        let rank = |driven: &Driven| {
            let schedule = driven.lane.schedule();
            let goes_on = schedule.has_begun() && !schedule.is_over();
            (goes_on && schedule.is_measured(), goes_on, schedule.has_begun())
        };
        // The first of equals.
        let lanes = self.lanes.iter().enumerate().rev();
        lanes.max_by_key(|(_, driven)| rank(driven)).map_or(0, |(index, _)| index)
    }

    fn lead(&self) -> &Rc<Lane> {
        &self.lanes[self.leading()].lane
    }

    /// Records how late the driver is.
    fn probe(&mut self, now: Time) {
        self.lead().recorder.borrow_mut().woken(self.woken, now);
        let recorders = self.lanes.iter().map(|driven| driven.lane.recorder.borrow().activity());
        let activity = recorders.fold(0, u64::wrapping_add);
        let quiet = std::mem::replace(&mut self.activity, activity) == activity;
        for driven in &self.lanes {
            driven.lane.left.borrow_mut().look(now, &driven.lane.recorder);
        }
        self.lead().work_off_ledgers(now, false);
        self.probe_from = now + PROBE;
        self.probe = now + if quiet { PROBE_QUIET.max(self.probe_every) } else { self.probe_every };
    }

    /// Hands over the interval of a lane, and starts the next.
    fn hand_over(&mut self, index: usize, now: Time) {
        let leads = index == self.leading();
        let driven = &mut self.lanes[index];
        // Before its load starts, there is nothing to report.
        let is_told = driven.lane.schedule().has_begun() || driven.lane.stopping.get();
        let (interval, until) = ((driven.second, driven.phase_of_run()), driven.end.min(now));
        driven.begin_interval(now);
        driven.standstill.look(&driven.lane, now);
        self.set_window();
        if leads {
            self.shard.tidy_up(now);
        }
        if is_told {
            let driven = &self.lanes[index];
            let report = driven.lane.report(interval, until, leads, false);
            if driven.phase_of_run() != interval.1 {
                driven.lane.recorder.borrow_mut().phase_begins();
            }
            let reached = self.reached();
            // The receiver is gone only if the run is being torn down.
            let _ = self.reports.send(Report { reached, ..report });
        }
    }

    /// Hands over the last intervals of the shard, and marks the final one.
    fn hand_over_last(&mut self) {
        let now = self.shard.clock.now();
        let leading = self.leading();
        for (index, driven) in self.lanes.iter().enumerate() {
            let interval = (driven.second, driven.phase_of_run());
            let report = driven.lane.report(interval, now, index == leading, true);
            let last = index + 1 == self.lanes.len();
            let _ = self.reports.send(Report { last, ..report });
        }
    }

    /// Everything before this second and phase is complete: it precedes all intervals that are
    /// being filled.
    fn reached(&self) -> Option<(u64, u16)> {
        let open = self.lanes.iter().map(|driven| (driven.second, driven.phase_of_run())).min();
        match open? {
            (0, 0) => None,
            (second, 0) => Some((second - 1, u16::MAX)),
            (second, phase) => Some((second, phase - 1)),
        }
    }

    /// Scheduled starts are as late as the precision allows; everything else may be later.
    fn set_window(&mut self) {
        let program = &self.shard.prepared.program;
        let is_paced = |driven: &Driven| {
            let phase = program.loads[driven.lane.load()].phases.get(usize::from(driven.phase));
            phase.is_some_and(|phase: &Phase| phase.drive.is_paced())
        };
        self.window.has(match self.lanes.iter().any(is_paced) {
            true => program.precision,
            false => program.idle_precision(),
        });
    }

    /// The earliest time at which something is due.
    fn next(&self, now: Time) -> Time {
        let lanes = self.lanes.iter().map(|driven| driven.next(self.turned));
        let lanes = lanes.min().unwrap_or(Time::NEVER);
        let next = self.probe.min(lanes).min(self.shard.schedules.borrow().next());
        match self.lanes.iter().all(|driven| driven.lane.meeting.is_empty()) {
            true => next,
            false => next.min(now + PROBE),
        }
    }

    /// How long the shard sleeps, whatever arrives; `None` while users wait to continue without
    /// delay, or starts wait for the next free user.
    fn sleeps_until(&mut self, now: Time) -> Option<Time> {
        let until = self.window.sleeps_until(now, self.shard.polls.get());
        let waits = self.shard.hasty.get() > 0
            || self.lanes.iter().any(|driven| driven.has_waiting_starts(now));
        until.filter(|_| !waits)
    }

    /// Checks whether the run is to stop early, or has to end now.
    fn obey(&mut self, now: Time) {
        let word = self.shard.control.word();
        if word >= STOP && self.lanes.iter().any(|driven| !driven.lane.stopping.get()) {
            // A start that became due just now would have happened: it does not count as dropped.
            let waited = Time(now.0.saturating_sub(WAITING_AT_THE_STOP.as_nanos() as u64));
            self.shard.schedules.borrow_mut().cancel(waited, now);
            for driven in &mut self.lanes {
                driven.lane.cut_short.set(true);
                if !driven.lane.stopping.get() {
                    driven.stop(now);
                }
            }
        }
        if word >= ABORT && !self.aborted {
            self.aborted = true;
            self.lanes.iter_mut().for_each(Driven::abort);
        }
        for driven in self.lanes.iter_mut().filter(|driven| now >= driven.deadline) {
            driven.abort();
        }
        let amendments = self.shard.control.amendments(self.amended);
        self.amended += amendments.len();
        for (load, amendment) in amendments {
            let mut schedules = self.shard.schedules.borrow_mut();
            schedules.get_mut(usize::from(load)).amend(amendment);
        }
        if let Some(news) = self.shard.control.growth_news(self.growth) {
            self.growth = news.version;
            let mut schedules = self.shard.schedules.borrow_mut();
            schedules.hold(news.held);
            if news.given_up {
                schedules.give_up_growth(now);
            }
            drop(schedules);
            // A phase whose end has moved is still a single interval.
            self.lanes.iter_mut().for_each(|driven| driven.bound_interval(now));
        }
    }

    fn take_actions(&mut self, now: Time, before: Time) {
        let mut watch = Watch { clock: self.shard.clock.clone(), now, starts: 0 };
        loop {
            self.lanes.iter().for_each(|driven| driven.begin_iterations(now, before));
            let action = self.shard.schedules.borrow_mut().pop(now);
            for driven in &self.lanes {
                let mut schedule = driven.lane.schedule_mut();
                let population = &mut driven.lane.recorder.borrow_mut().interval.population;
                population.unmet += std::mem::take(&mut schedule.starts.unmet);
                population.dropped += std::mem::take(&mut schedule.starts.dropped);
            }
            let Some((load, action)) = action else { return };
            let lane = &self.lanes[load].lane;
            match action {
                Action::Phase(phase) => self.begin_phase(load, phase, now),
                Action::Come { due } => {
                    lane.recorder.borrow_mut().moved(watch.now() - due);
                    spawn(lane, due, true);
                }
                // The start measures its own delay.
                Action::Arrive { due } => arrive(lane, due),
                Action::Part { how, due } => {
                    lane.recorder.borrow_mut().moved(watch.now() - due);
                    // Without connections, there is none to drop.
                    lane.slots.borrow_mut().part_one(how);
                }
                Action::Leave => lane.slots.borrow_mut().leave_one(),
                Action::End => self.lanes[load].stop(now),
            }
        }
    }

    fn begin_phase(&mut self, load: usize, phase: u16, now: Time) {
        let driven = &mut self.lanes[load];
        if phase > 0 {
            driven.lane.mark(phase - 1, now, false);
        }
        driven.lane.mark(phase, now, true);
        if phase != driven.phase {
            match driven.begin < now {
                true => self.hand_over(load, now),
                false => driven.begin_interval(now),
            }
        }
        self.set_window();
    }
}

/// Starts an arriving user, unless the maximum is reached.
fn arrive(lane: &Rc<Lane>, due: Time) {
    match lane.is_full() {
        true => lane.schedule_mut().starts.dropped += 1,
        false => {
            lane.start_begins();
            spawn(lane, due, false);
        }
    }
}

fn spawn(lane: &Rc<Lane>, due: Time, stays: bool) {
    let (slot, id, random) = lane.admit(stays);
    let user = User::new(Rc::clone(lane), slot, id, random, due, !stays);
    tokio::task::spawn_local(user);
}

/// Offset of a shard's second from that of the others.
fn turn_of(shard: u64) -> Duration {
    GROUPS_APART * (shard / GROUP_SHARDS % GROUPS) as u32
}

/// How long the driver of one of this many shards sleeps before it wakes only to probe.
fn probe_every(shards: u64) -> Duration {
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let probes_max = processors * PROBES_PER_PROCESSOR_MAX;
    Duration::from_secs(shards).div_f64(probes_max as f64).clamp(PROBE, PROBE_MAX)
}

/// The clock during a turn with many starts.
struct Watch {
    clock: Clock,
    now: Time,
    /// Since the clock was last read.
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
