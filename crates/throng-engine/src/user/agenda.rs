//! Background tasks: the bodies of handlers, and recurring actions.
//!
//! Each body runs once at a time, so its loops and values are its own: messages that arrive
//! meanwhile wait in order, and recurring actions that become due are skipped.

use std::time::Duration;

use throng_base::{Said, StepId, Time};
use throng_metrics::Cause;
use throng_program::Every;

use super::State;
use super::connection::backlog::{Backlog, WAITING_BYTES_MAX, WAITING_MESSAGES_MAX, Waits};
use super::grid::first_time;
use super::task::{Active, GONE, Task};
use crate::prepared::StayPlan;

/// Background tasks of a user.
#[derive(Default)]
pub(super) struct Agenda {
    every: Vec<Recurring>,
    /// Background tasks that have started and wait for something.
    pub(super) tasks: Vec<Task>,
    /// Messages for handlers whose bodies are running.
    pub(super) waiting: Backlog<Waiting>,
    /// Results of branches for the session: the first step that failed, and whether to leave the
    /// iteration.
    failed: Option<(StepId, Cause)>,
    leaves: bool,
    /// The queue of messages is being served; the serving call continues until it is empty.
    pub(super) is_serving: bool,
    /// The queue of tasks that wait for a connection is being served.
    pub(super) serves_queue: bool,
}

/// A recurring action: of a link while the user is online on it, or of a `stay`.
struct Recurring {
    due: Time,
    time: Duration,
    body: u32,
    of: u8,
    of_stay: bool,
}

/// A recurring action that is due, and how often it was skipped since.
pub(super) struct Due {
    pub(super) from: Time,
    pub(super) skipped: u64,
    pub(super) of: u8,
    pub(super) body: u32,
}

/// A message for a handler whose body is running.
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
    /// Number of recurring actions.
    pub(super) fn recurring(&self) -> usize {
        self.every.len()
    }

    /// Takes the recurring action at this place if it is due, and schedules it again.
    pub(super) fn take_due(&mut self, place: usize, now: Time, stays_until: Time) -> Option<Due> {
        let one = self.every.get_mut(place)?;
        // An action that is due when its `stay` is over is dropped, however late the generator is.
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

    /// Drops everything that belongs to a connection: returns its tasks, and how many messages
    /// waited for one.
    pub(super) fn end_of(&mut self, line: u8) -> (Vec<Task>, u64) {
        self.every.retain(|one| one.of != line);
        let over: Vec<Task> = self.tasks.extract_if(.., |task| task.of == line).collect();
        let mut skipped = over.iter().filter(|task| task.answers && !task.in_flight).count();
        while self.waiting.take_first(|one| one.line == line).is_some() {
            skipped += 1;
        }
        (over, skipped as u64)
    }

    /// Number of iterations that the user runs in parallel.
    pub(super) fn passes(&self) -> usize {
        self.tasks.iter().filter(|task| task.is_pass()).count()
    }

    /// Messages that are not handled completely: those that wait, and those whose body pauses.
    fn owed(&self) -> u64 {
        let paused = self.tasks.iter().filter(|task| task.answers && !task.in_flight);
        (self.waiting.len() + paused.count()) as u64
    }

    /// Whether a user that has to leave must first finish something: an attempt in flight, an
    /// iteration, or the handling of a message.
    pub(super) fn holds_back(&self) -> bool {
        self.tasks.iter().any(|task| task.in_flight || task.is_pass()) || self.owed() > 0
    }

    pub(super) fn alarm(&self) -> Time {
        let tasks = self.tasks.iter().map(|task| task.deadline);
        self.every.iter().map(|one| one.due).chain(tasks).min().unwrap_or(Time::NEVER)
    }

    /// The latest time at which the target may reply to any of the tasks.
    pub(super) fn waits_until(&self) -> Time {
        self.tasks.iter().map(|task| task.deadline).min().unwrap_or(Time::NEVER)
    }
}

impl State {
    /// The user is online on this line: the recurring actions of its link start.
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

    /// Ends the recurring actions of a `stay`.
    pub(super) fn end_every_of_stay(&mut self) {
        if let Some(agenda) = &mut self.agenda {
            agenda.every.retain(|one| !one.of_stay);
        }
    }

    pub(super) fn is_running(&self, body: u32) -> bool {
        self.tasks().any(|task| task.begins() == Some(body))
    }

    /// Background tasks that have started and wait for something.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.agenda.iter().flat_map(|agenda| &agenda.tasks)
    }

    pub(super) fn holds_back(&self) -> bool {
        self.agenda.as_ref().is_some_and(|agenda| agenda.holds_back())
    }

    /// Drops an empty agenda. A running task is not in it, and may end a connection: the results of
    /// branches are kept until the session has taken them.
    pub(super) fn forget_agenda(&mut self) {
        let is_empty = |agenda: &Agenda| {
            let is_told = agenda.failed.is_none() && !agenda.leaves;
            let has_none = agenda.every.is_empty() && agenda.tasks.is_empty();
            is_told && has_none && agenda.waiting.is_empty()
        };
        self.agenda.take_if(|agenda| is_empty(agenda) && !agenda.is_serving);
    }

    /// Takes the results of branches for the session. Without an agenda, the last branch has ended
    /// without a failure.
    pub(super) fn told_by_branches(&mut self) -> (Option<(StepId, Cause)>, bool) {
        match &mut self.agenda {
            Some(agenda) => (agenda.failed.take(), std::mem::take(&mut agenda.leaves)),
            None => (None, false),
        }
    }
}

impl Active<'_> {
    pub(super) fn is_over(&self) -> bool {
        self.task.pc == GONE || self.task.is_pass() && self.task.pc == self.of_session().end
    }

    /// A step of a branch failed, and so the transactions that the session is in.
    pub(super) fn branch_fails(&mut self, step: StepId, cause: Cause) {
        if self.task.is_branch() {
            let agenda = self.user.agenda.get_or_insert_default();
            agenda.failed.get_or_insert((step, cause));
        }
    }

    /// The session leaves the iteration when all branches have ended.
    pub(super) fn branch_leaves(&mut self) {
        if self.task.is_branch() {
            self.user.agenda.get_or_insert_default().leaves = true;
        }
    }

    /// The verb `leave` in a body: the user leaves as soon as possible.
    pub(super) fn leave_from_body(&mut self) {
        self.shard.slots.borrow_mut().leave(self.user.slot);
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
#[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
pub(super) fn no_room(reason: Said) -> Said {
    let most = throng_base::units::format_count(WAITING_MESSAGES_MAX as u64);
    let mebibytes = WAITING_BYTES_MAX >> 20;
    say!("more than {most} messages or {mebibytes} MiB were queued for one user: {reason}")
}
