//! What goes on besides the session: the bodies of handlers, and what is done every so often. Each
//! is a task of its own.
//!
//! A body runs once at a time: what comes for it meanwhile waits in order, and what is due
//! meanwhile is skipped. So its loops and values are its own.

use std::task::{Context, Poll};
use std::time::Duration;

use throng_base::{Said, StepId, Time};
use throng_metrics::Cause;
use throng_program::Every;

use super::beat::first_time;
use super::connection::backlog::{Backlog, WAITING_BYTES_MAX, WAITING_MESSAGES_MAX, Waits};
use super::exchange::Awaits;
use super::outcome::Onward;
use super::task::{Active, Doing, GONE, Task, Which};
use super::{State, User};
use crate::failure::Ended;
use crate::prepared::StayPlan;
use crate::recorder::{Attempt, Iteration};
use crate::shard::Lane;

/// What a body does before the others have their turn.
const TURNS_MAX: u32 = 1000;
/// When a body goes on that has done so much.
const SOON: Duration = Duration::from_millis(1);

/// What goes on besides.
#[derive(Default)]
pub(super) struct Agenda {
    /// What is done every so often.
    every: Vec<Recurring>,
    /// Tasks that wait for something.
    tasks: Vec<Task>,
    /// Messages for bodies of handlers that run.
    pub(super) waiting: Backlog<Waiting>,
    /// What branches have to tell the session: the first step that failed, and that the iteration
    /// is to be left.
    failed: Option<(StepId, Cause)>,
    leaves: bool,
    /// What waits is given out; who does it goes on until nothing is left.
    pub(super) is_serving: bool,
    /// The same of tasks that wait for a connection.
    pub(super) serves_queue: bool,
}

/// Something that is done every so often: of a link while the user is online on it, or of a `stay`.
struct Recurring {
    due: Time,
    time: Duration,
    body: u32,
    of: u8,
    of_stay: bool,
}

/// A message for the body of a handler, which runs.
pub(super) struct Waiting {
    pub(super) line: u8,
    pub(super) body: u32,
    pub(super) payload: Vec<u8>,
}

impl Waits for Waiting {
    fn bytes(&self) -> usize {
        self.payload.len()
    }
}

impl Agenda {
    pub(super) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    pub(super) fn tasks_mut(&mut self) -> &mut Vec<Task> {
        &mut self.tasks
    }

    /// How many iterations are done at once.
    pub(super) fn passes(&self) -> usize {
        self.tasks.iter().filter(|task| task.is_pass()).count()
    }

    /// Messages that came and are not done with: those that wait, and those whose body pauses.
    fn owed(&self) -> u64 {
        let paused = self.tasks.iter().filter(|task| task.answers && !task.in_flight);
        (self.waiting.len() + paused.count()) as u64
    }

    /// Whether a user that has to leave does something first: a try at a step is on its way, or
    /// an iteration, or a message is owed an answer.
    pub(super) fn holds_back(&self) -> bool {
        self.tasks.iter().any(|task| task.in_flight || task.is_pass()) || self.owed() > 0
    }

    pub(super) fn alarm(&self) -> Time {
        let tasks = self.tasks.iter().map(|task| task.deadline);
        self.every.iter().map(|one| one.due).chain(tasks).min().unwrap_or(Time::NEVER)
    }

    /// When the target has no time any more to answer one of the tasks.
    pub(super) fn waits_until(&self) -> Time {
        self.tasks.iter().map(|task| task.deadline).min().unwrap_or(Time::NEVER)
    }
}

impl State {
    /// The user is online on this line: what its link does every so often begins.
    pub(super) fn begin_every(&mut self, line: u8) {
        let shard = std::rc::Rc::clone(&self.shard);
        let links = &shard.prepared.program.sessions[usize::from(self.session)].links;
        if let Some(link) = links.get(usize::from(self.lines.get(line).link)) {
            let plan = shard.prepared.link(self.session, self.lines.get(line).link);
            self.schedule(line, (&link.every, &plan.hears), false);
        }
    }

    pub(super) fn schedule(
        &mut self,
        line: u8,
        (every, plan): (&[Every], &StayPlan),
        of_stay: bool,
    ) {
        if every.is_empty() {
            return;
        }
        let (id, now, share) = (self.id, self.now, self.shard.share);
        let agenda = self.agenda.get_or_insert_default();
        agenda.every.extend(every.iter().zip(&plan.every).map(|(one, body)| {
            let due = first_time(id, one.time, now, share);
            Recurring { due, time: one.time, body: *body, of: line, of_stay }
        }));
        self.arm(agenda_alarm(&self.agenda));
    }

    /// The user does not stay any more.
    pub(super) fn end_every_of_stay(&mut self) {
        if let Some(agenda) = &mut self.agenda {
            agenda.every.retain(|one| !one.of_stay);
        }
    }

    pub(super) fn is_running(&self, body: u32) -> bool {
        let mut tasks = self.agenda.iter().flat_map(|agenda| &agenda.tasks);
        tasks.any(|task| task.begins() == Some(body))
    }

    pub(super) fn holds_back(&self) -> bool {
        self.agenda.as_ref().is_some_and(|agenda| agenda.holds_back())
    }

    pub(super) fn told_to_leave(&self) {
        self.shard.seats.borrow_mut().leave(self.slot);
    }

    /// The connection has ended, for this cause if it was not us: nothing of what it is about is
    /// done besides.
    pub(super) fn end_bodies(&mut self, line: u8, cause: Option<Cause>) {
        let Some(agenda) = &mut self.agenda else { return };
        agenda.every.retain(|one| one.of != line);
        let over: Vec<Task> = agenda.tasks.extract_if(.., |task| task.of == line).collect();
        let mut skipped = over.iter().filter(|task| task.answers && !task.in_flight).count();
        while agenda.waiting.take_first(|one| one.line == line).is_some() {
            skipped += 1;
        }
        self.forget_agenda();
        self.shard.recorder.borrow_mut().messages.skipped += skipped as u64;
        for task in over {
            self.end_body(task, line, cause);
        }
    }

    /// An agenda with nothing on it is none. A task that is at work is not on it, and may end a
    /// connection: what branches have to tell is kept until the session has heard it.
    fn forget_agenda(&mut self) {
        let is_empty = |agenda: &Agenda| {
            let is_told = agenda.failed.is_none() && !agenda.leaves;
            let has_none = agenda.every.is_empty() && agenda.tasks.is_empty();
            is_told && has_none && agenda.waiting.is_empty()
        };
        self.agenda.take_if(|agenda| is_empty(agenda) && !agenda.is_serving);
    }

    /// What branches have told the session, which hears it now. Where there is no agenda, its last
    /// task has ended well.
    fn told_by_branches(&mut self) -> (Option<(StepId, Cause)>, bool) {
        match &mut self.agenda {
            Some(agenda) => (agenda.failed.take(), std::mem::take(&mut agenda.leaves)),
            None => (None, false),
        }
    }

    fn end_body(&mut self, mut task: Task, line: u8, cause: Option<Cause>) {
        let elsewhere = task.line != line;
        let shard = std::rc::Rc::clone(&self.shard);
        let mut active = Active { shard: &shard, user: self, task: &mut task, session: None };
        if elsewhere && matches!(active.task.doing, Doing::Exchange(_)) {
            // What it has asked for there would be taken for the answer of somebody else.
            active.user.drop_connection(active.task.line, Ended::CutOff);
        }
        active.withdraw_exchange();
        active.give_up();
        if active.task.is_pass() {
            shard.iteration_ends(active.user.session, Iteration::Interrupted);
        }
        let Some((step, place)) = active.take_begun() else { return };
        let mut recorder = shard.recorder.borrow_mut();
        recorder.gauges.in_flight -= u64::from(task.in_flight);
        match cause {
            Some(cause) => {
                let detail = || say!("the connection ended before the reply arrived");
                recorder.failed(step, &Attempt::default(), cause, self.now, detail);
                if let Some(place) = place {
                    recorder.targets.ended(place, &Attempt::default(), false);
                }
                if task.retries > 0 {
                    recorder.given_up(step);
                }
            }
            None => {
                recorder.interrupted(step);
                recorder.targets.interrupted(place);
                recorder.population.interrupted += 1;
            }
        }
    }
}

impl User {
    /// Runs a task of the agenda until it waits for something or is over. First it does `begin`.
    pub(super) fn resume(
        &mut self,
        shard: &Lane,
        mut task: Task,
        cx: &mut Context<'_>,
        begin: impl FnOnce(&mut Active<'_>),
    ) {
        let session = Some(&self.session);
        let begun = self.state.iterations;
        self.state.iterations = task.iteration(begun);
        let mut active = Active { shard, user: &mut self.state, task: &mut task, session };
        begin(&mut active);
        let mut turns = 0;
        while matches!(active.task.doing, Doing::Step) && !active.is_over() {
            if turns == TURNS_MAX {
                active.wait_for(Doing::Holding, active.user.now + SOON);
                break;
            }
            active.instruct(cx);
            turns += 1;
        }
        let is_over = matches!(active.task.doing, Doing::Step) && active.is_over();
        self.state.iterations = begun;
        let served = task.begins().filter(|_| task.answers && is_over);
        let (is_branch, is_pass) = (task.is_branch(), task.is_pass());
        if !is_over {
            match self.state.connection(task.of) {
                _ if is_branch => self.state.agenda.get_or_insert_default().tasks.push(task),
                Some(_) => self.state.agenda.get_or_insert_default().tasks.push(task),
                // What it is about was lost while it did something else.
                None => {
                    let loss = self.state.lines.get(task.of).loss.as_ref();
                    let (of, cause) = (task.of, loss.map(|loss| loss.cause()));
                    self.state.end_body(task, of, cause);
                }
            }
        }
        self.settle(shard, cx);
        if let Some(body) = served {
            self.serve_waiting(shard, body, cx);
        }
        match is_over && is_branch {
            true if is_pass => self.pass_over(shard),
            true => self.join(shard),
            false => {}
        }
    }

    /// The session has left its branches in the agenda.
    pub(super) fn begin_branches(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        let begins = |task: &Task| task.is_branch() && matches!(task.doing, Doing::Step);
        while let Some(agenda) = &self.state.agenda
            && let Some(place) = agenda.tasks.iter().rposition(begins)
        {
            self.with(Which::Other(place), shard, cx, |_| {});
        }
    }

    /// A branch is over: with the last one the session goes on.
    fn join(&mut self, shard: &Lane) {
        let mut others = self.state.agenda.iter().flat_map(|agenda| &agenda.tasks);
        if others.any(Task::is_branch) || !matches!(self.session.doing, Doing::Join) {
            return;
        }
        let (failed, leaves) = self.state.told_by_branches();
        self.state.forget_agenda();
        let mut session = self.session(shard);
        session.task.doing = Doing::Step;
        if let Some((step, cause)) = failed {
            session.transactions_fail(step, cause);
        }
        match leaves {
            true => session.leave_iteration(Onward::NextStep),
            false => session.next_step(),
        }
    }

    /// A pass through the steps is over, and its iteration with it: the session may begin another.
    fn pass_over(&mut self, shard: &Lane) {
        let (_, leaves) = self.state.told_by_branches();
        let how = match leaves {
            true => Iteration::Failed,
            // When it began is known of the last one alone.
            false => Iteration::Finished(None),
        };
        shard.iteration_ends(self.state.session, how);
        match self.session.doing {
            Doing::Join => {
                (self.session.doing, self.session.due) = (Doing::Step, self.state.now);
            }
            // It asked for one when there was none, and does not ask again.
            _ => shard.may_be_done(),
        }
    }

    /// Connections that tasks of the agenda open.
    pub(super) fn openings(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        let mut place = 0;
        while let Some(agenda) = &mut self.state.agenda
            && let Some(task) = agenda.tasks.get_mut(place)
        {
            let Doing::Opening(opening) = &mut task.doing else {
                place += 1;
                continue;
            };
            let Poll::Ready(opened) = opening.poll(cx) else {
                place += 1;
                continue;
            };
            self.state.now = shard.clock.now();
            self.with(Which::Other(place), shard, cx, |active| active.opened(opened));
        }
    }

    /// The socket has taken everything: bodies that have sent something go on.
    pub(super) fn bodies_sent(&mut self, shard: &Lane, line: u8, cx: &mut Context<'_>) {
        let sends = |task: &Task| {
            task.exchange_on(line).is_some_and(|exchange| exchange.awaits == Awaits::Room)
        };
        while self.state.is_taken(line)
            && let Some(agenda) = &self.state.agenda
            && let Some(place) = agenda.tasks.iter().position(sends)
        {
            self.state.now = shard.clock.now();
            self.with(Which::Other(place), shard, cx, |active| active.sent());
        }
    }

    /// A moment has come for which something besides waits.
    pub(super) fn agenda_woken(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        let count = self.state.agenda.as_ref().map_or(0, |agenda| agenda.every.len());
        for index in 0..count {
            let now = self.state.now;
            let Some(agenda) = &mut self.state.agenda else { return };
            let Some(one) = agenda.every.get_mut(index) else { break };
            // What is due when a `stay` is over is not due any more, however late we are.
            if one.due > now || (one.of_stay && one.due >= self.session.deadline) {
                continue;
            }
            let (begun, of, body) = (one.due, one.of, one.body);
            let mut skipped = 0;
            one.due = one.due + one.time;
            while one.due <= now {
                one.due = one.due + one.time;
                skipped += 1;
            }
            let runs = self.state.is_running(body);
            let from = shard.recurs_late(begun, now);
            shard.recorder.borrow_mut().messages.overdue += skipped + u64::from(runs);
            // Who is to leave begins nothing more.
            if !runs && !shard.seats.borrow().must_leave(self.state.slot) {
                self.resume(shard, Task::body(body, of, from, false), cx, |_| {});
            }
        }
        // Each has its turn once: what is due again at once waits for the next waking.
        let due = |task: &Task, now: Time| task.deadline <= now;
        let now = self.state.now;
        let tasks = self.state.agenda.iter().flat_map(|agenda| &agenda.tasks);
        let mut left = tasks.filter(|task| due(task, now)).count();
        while left > 0
            && let Some(agenda) = &self.state.agenda
            && let Some(place) = agenda.tasks.iter().position(|one| due(one, self.state.now))
        {
            left -= 1;
            self.with(Which::Other(place), shard, cx, |active| active.deadline_passed());
        }
    }
}

impl Active<'_> {
    /// The verb `parallel`: the user begins the branches as soon as this task waits for them.
    pub(super) fn parallel(&mut self, branches: &[u32]) {
        let (session, now) = (&*self.task, self.user.now);
        let agenda = self.user.agenda.get_or_insert_default();
        agenda.tasks.extend(branches.iter().map(|begins| Task::branch(*begins, session, now)));
        match branches {
            [] => self.next_step(),
            _ => self.wait_for(Doing::Join, Time::NEVER),
        }
    }

    /// Whether this task has nothing more to do.
    fn is_over(&self) -> bool {
        self.task.pc == GONE || self.task.is_pass() && self.task.pc == self.of_session().end
    }

    /// A step of a branch failed: the transactions that the session is in have failed with it.
    pub(super) fn branch_fails(&mut self, step: StepId, cause: Cause) {
        if self.task.is_branch() {
            let agenda = self.user.agenda.get_or_insert_default();
            agenda.failed.get_or_insert((step, cause));
        }
    }

    /// The iteration is left when all branches are over.
    pub(super) fn branch_leaves(&mut self) {
        if self.task.is_branch() {
            self.user.agenda.get_or_insert_default().leaves = true;
        }
    }

    /// The instruction `return`: the body is over.
    pub(super) fn return_from_body(&mut self) {
        self.task.pc = GONE;
        self.task.deadline = Time::NEVER;
        self.task.doing = Doing::Step;
    }

    /// The verb `leave` in a body: the user leaves as soon as it can.
    pub(super) fn leave_from_body(&mut self) {
        self.user.told_to_leave();
        self.return_from_body();
    }
}

fn agenda_alarm(agenda: &Option<Box<Agenda>>) -> Time {
    agenda.as_ref().map_or(Time::NEVER, |agenda| agenda.alarm())
}

/// The bytes of messages that wait for handlers.
pub(super) fn waiting_bytes(agenda: &Option<Box<Agenda>>) -> usize {
    agenda.as_ref().map_or(0, |agenda| agenda.waiting.bytes())
}

/// Why a message was dropped.
#[allow(clippy::needless_pass_by_value)] // A sentence is handed over to what holds it.
pub(super) fn no_room(reason: Said) -> Said {
    let most = throng_base::units::format_count(WAITING_MESSAGES_MAX as u64);
    let mebibytes = WAITING_BYTES_MAX >> 20;
    say!("more than {most} messages or {mebibytes} MiB were queued for one user: {reason}")
}
