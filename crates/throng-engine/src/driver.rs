//! What drives a shard: it brings the users of all loads, wakes them, and hands over what happened.

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

/// Starts that have waited no longer than this when a run is stopped are not counted as starts
/// that never happened.
const WAITING_AT_THE_STOP: Duration = Duration::from_secs(1);

/// Runs a shard to the end of all its loads: brings users, wakes them, hands over intervals.
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
    lanes: Vec<Driven>,
    /// When this turn should have begun, and when it did.
    woken: Time,
    turned: Time,
    window: Window,
    /// From when on the next turn is a probe, and when the driver wakes for it on purpose; and how
    /// long that is after the one before while users do something.
    probe_from: Time,
    probe: Time,
    probe_every: Duration,
    /// What the recorders told at the last probe.
    activity: u64,
    /// The version of what was heard last of growth being held.
    growth: u64,
    /// How many amendments were heard.
    amended: usize,
    /// All who were there were sent away.
    aborted: bool,
    /// When the last of all users was gone.
    gone: Time,
}

/// A lane with the interval of it that is being filled.
struct Driven {
    lane: Rc<Lane>,
    /// Second and phase of the interval, and when it ends. The phase is counted from the load's
    /// first.
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

    /// The interval ends with its second, or with its phase as far as its end is known.
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

    /// The earliest of all that is to come.
    fn next(&self, turned: Time) -> Time {
        let next = self.end.min(self.deadline).min(self.lane.due.borrow().next());
        let next = next.min(self.next_drop(turned));
        // What is overdue has been given to everybody who waited; the next user to become free
        // takes the oldest of it. Until then it wakes nothing.
        let schedule = self.lane.schedule();
        match schedule.next_iteration().filter(|due| *due > turned) {
            Some(due) if self.lane.seats.borrow_mut().has_idle() => next.min(due),
            // From then on it is known that no user is free for it.
            Some(due) if schedule.iterations().is_some_and(|it| it.drops) => next.min(due),
            _ => next,
        }
    }

    /// Gives iterations that are due to users who wait for one; but never to one who is about to
    /// be told to leave.
    ///
    /// What was offered to all of them in a turn `before` is dropped, where the load has it so.
    fn begin_iterations(&self, now: Time, before: Time) {
        let mut schedule = self.lane.schedule_mut();
        if !schedule.is_settled(now) {
            return;
        }
        // Users who waited in a phase of scheduled iterations go on freely in any other.
        if schedule.pace() == Pace::Free {
            while self.lane.seats.borrow_mut().begin(now) {
                self.lane.iteration_begins();
            }
            return;
        }
        while let Some(due) = schedule.next_iteration().filter(|due| *due <= now) {
            let paced = schedule.iterations().is_some_and(|it| it.rate.is_some());
            if !self.lane.seats.borrow_mut().begin(if paced { due } else { now }) {
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

    /// When starts are dropped that no user takes until then: all that are due by now together.
    fn next_drop(&self, turned: Time) -> Time {
        let due = self.lane.schedule().next_to_drop().filter(|due| *due <= turned);
        due.map_or(Time::NEVER, |_| turned + WAITED)
    }

    /// Starts are due that wait for whoever is free next.
    fn has_waiting_starts(&self, now: Time) -> bool {
        let is_due = self.lane.schedule().next_iteration().is_some_and(|due| due <= now);
        is_due && !self.lane.seats.borrow_mut().has_idle()
    }

    /// The phases of the load are over, or will be done no more.
    fn stop(&mut self, now: Time) {
        self.lane.mark(self.phase, now, false);
        self.lane.stopping.set(true);
        self.lane.recorder.borrow_mut().load_ends();
        self.deadline = now + self.lane.prepared.program.graceful_stop;
        self.lane.seats.borrow_mut().leave_all();
    }

    fn abort(&mut self) {
        self.deadline = Time::NEVER;
        self.lane.seats.borrow_mut().abort_all();
    }

    /// Users whose group goes on are woken at its moment.
    fn release(&self) {
        if !self.lane.meeting.is_empty() {
            let mut due = self.lane.due.borrow_mut();
            self.lane.meeting.release(&self.lane.places, |slot, moment| due.arm(slot, moment));
        }
    }

    fn wake_due(&self, now: Time) {
        let mut due = self.lane.due.borrow_mut();
        let mut seats = self.lane.seats.borrow_mut();
        while let Some((_, slot)) = due.pop(now) {
            seats.fire(slot);
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

    /// Does what is due and says when something is due again; None when all is over.
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
        lanes.all(|lane| lane.stopping.get() && lane.seats.borrow().taken() == 0)
    }

    /// The users are gone: whether it is known what all shards have sent while they were there.
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

    /// Which load has what is of no load alone: how late the shard is, and what was delivered. One
    /// that goes on, and is measured if there is such a one.
    fn leading(&self) -> usize {
        let rank = |driven: &Driven| {
            let schedule = driven.lane.schedule();
            let goes_on = schedule.has_begun() && !schedule.is_over();
            (goes_on && schedule.is_measured(), goes_on, schedule.has_begun())
        };
        // The first of those that are alike.
        let lanes = self.lanes.iter().enumerate().rev();
        lanes.max_by_key(|(_, driven)| rank(driven)).map_or(0, |(index, _)| index)
    }

    fn lead(&self) -> &Rc<Lane> {
        &self.lanes[self.leading()].lane
    }

    /// Writes down how late the driver is.
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

    /// Hands over the interval of a lane, and begins its next.
    fn hand_over(&mut self, index: usize, now: Time) {
        let leads = index == self.leading();
        let driven = &mut self.lanes[index];
        // Before its load begins there is nothing to say.
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
            // Nobody listens any more only when the run is being torn down.
            let _ = self.reports.send(Report { reached, ..report });
        }
    }

    /// The last of the shard: of each lane, and at the end that it was the last.
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

    /// Up to where nothing is to come any more: what comes before all that is being filled.
    fn reached(&self) -> Option<(u64, u16)> {
        let open = self.lanes.iter().map(|driven| (driven.second, driven.phase_of_run())).min();
        match open? {
            (0, 0) => None,
            (second, 0) => Some((second - 1, u16::MAX)),
            (second, phase) => Some((second, phase - 1)),
        }
    }

    /// What begins at a rate is as late as the precision says; all else may be later.
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

    /// The earliest of all that is to come.
    fn next(&self, now: Time) -> Time {
        let lanes = self.lanes.iter().map(|driven| driven.next(self.turned));
        let lanes = lanes.min().unwrap_or(Time::NEVER);
        let next = self.probe.min(lanes).min(self.shard.schedules.borrow().next());
        match self.lanes.iter().all(|driven| driven.lane.meeting.is_empty()) {
            true => next,
            false => next.min(now + PROBE),
        }
    }

    /// Until when the shard sleeps on, whatever comes. Not while users wait for something to go on
    /// at once, nor while starts are due that wait for whoever is free next.
    fn sleeps_until(&mut self, now: Time) -> Option<Time> {
        let until = self.window.sleeps_until(now, self.shard.polls.get());
        let waits = self.shard.hasty.get() > 0
            || self.lanes.iter().any(|driven| driven.has_waiting_starts(now));
        until.filter(|_| !waits)
    }

    /// Looks whether the run is to end before its time, or has to end now.
    fn obey(&mut self, now: Time) {
        let word = self.shard.control.word();
        if word >= STOP && self.lanes.iter().any(|driven| !driven.lane.stopping.get()) {
            // What was due a moment ago would have begun: it does not count as unmet.
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
            // A phase that ends at another time than it was thought to is one interval all the
            // same.
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
                let population = &mut driven.lane.recorder.borrow_mut().population;
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
                // How late it is, it says itself.
                Action::Arrive { due } => arrive(lane, due),
                Action::Part { how, due } => {
                    lane.recorder.borrow_mut().moved(watch.now() - due);
                    // Without connections there is none to lose.
                    lane.seats.borrow_mut().part_one(how);
                }
                Action::Leave => lane.seats.borrow_mut().leave_one(),
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

/// Who arrives comes, unless there are as many as may be.
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
