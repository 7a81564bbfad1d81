//! What goes on besides the session: the bodies of handlers, and what is done every so often. Each
//! is a task of its own.
//!
//! A body runs once at a time: what comes for it meanwhile waits in order, and what is due
//! meanwhile is skipped. So its loops and values are its own.

use std::time::Duration;

use throng_base::{Said, StepId, Time};
use throng_metrics::Cause;
use throng_program::Every;

use super::State;
use super::connection::backlog::{Backlog, WAITING_BYTES_MAX, WAITING_MESSAGES_MAX, Waits};
use super::grid::first_time;
use super::task::{Active, GONE, Task};
use crate::prepared::StayPlan;

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

/// Something that is due, and how often it was skipped since.
pub(super) struct Due {
    pub(super) from: Time,
    pub(super) skipped: u64,
    pub(super) of: u8,
    pub(super) body: u32,
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

    /// How much is done every so often.
    pub(super) fn recurring(&self) -> usize {
        self.every.len()
    }

    /// What is done every so often at this place, if it is due: it is due again later.
    pub(super) fn take_due(&mut self, place: usize, now: Time, stays_until: Time) -> Option<Due> {
        let one = self.every.get_mut(place)?;
        // What is due when a `stay` is over is not due any more, however late we are.
        if one.due > now || (one.of_stay && one.due >= stays_until) {
            return None;
        }
        let (from, mut skipped) = (one.due, 0);
        one.due = one.due + one.time;
        while one.due <= now {
            one.due = one.due + one.time;
            skipped += 1;
        }
        Some(Due { from, skipped, of: one.of, body: one.body })
    }

    /// Nothing of what a connection is about is done any more: its tasks, and how many messages
    /// still waited for one.
    pub(super) fn end_of(&mut self, line: u8) -> (Vec<Task>, u64) {
        self.every.retain(|one| one.of != line);
        let over: Vec<Task> = self.tasks.extract_if(.., |task| task.of == line).collect();
        let mut skipped = over.iter().filter(|task| task.answers && !task.in_flight).count();
        while self.waiting.take_first(|one| one.line == line).is_some() {
            skipped += 1;
        }
        (over, skipped as u64)
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

    /// An agenda with nothing on it is none. A task that is at work is not on it, and may end a
    /// connection: what branches have to tell is kept until the session has heard it.
    pub(super) fn forget_agenda(&mut self) {
        let is_empty = |agenda: &Agenda| {
            let is_told = agenda.failed.is_none() && !agenda.leaves;
            let has_none = agenda.every.is_empty() && agenda.tasks.is_empty();
            is_told && has_none && agenda.waiting.is_empty()
        };
        self.agenda.take_if(|agenda| is_empty(agenda) && !agenda.is_serving);
    }

    /// What branches have told the session, which hears it now. Where there is no agenda, its last
    /// task has ended well.
    pub(super) fn told_by_branches(&mut self) -> (Option<(StepId, Cause)>, bool) {
        match &mut self.agenda {
            Some(agenda) => (agenda.failed.take(), std::mem::take(&mut agenda.leaves)),
            None => (None, false),
        }
    }
}

impl Active<'_> {
    /// Whether this task has nothing more to do.
    pub(super) fn is_over(&self) -> bool {
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

    /// The verb `leave` in a body: the user leaves as soon as it can.
    pub(super) fn leave_from_body(&mut self) {
        self.shard.seats.borrow_mut().leave(self.user.slot);
        self.task.return_from_body();
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
