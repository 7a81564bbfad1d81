//! Runs tasks: the one that an event belongs to, and background tasks, until each waits again.

use std::task::{Context, Poll};
use std::time::Duration;

use throng_base::Time;

use crate::looked::{Looked, PartsOfReply};
use crate::recorder::Iteration;
use crate::scope::scope;
use crate::shard::Lane;
use crate::user::User;
use crate::user::agenda::{Agenda, Due, Waiting};
use crate::user::exchange::Awaits;
use crate::user::flow::Session;
use crate::user::outcome::Onward;
use crate::user::task::{Active, Doing, Task, Which, at};
use crate::user::verb::messages;
use crate::user::verb::opening::opened;
use crate::user::verb::stay;

/// Turns of a body before it yields.
const TURNS_MAX: u32 = 1000;

/// Delay before a body that yielded continues.
const SOON: Duration = Duration::from_millis(1);

/// A set of links of a session.
#[derive(Clone, Copy, Default)]
struct Links([u64; 4]);

impl Links {
    fn add(&mut self, link: u8) {
        self.0[usize::from(link / 64)] |= 1 << (link % 64);
    }

    fn has(self, link: u8) -> bool {
        self.0[usize::from(link / 64)] & 1 << (link % 64) != 0
    }
}

impl User {
    /// Runs a background task, with `begin` first, until it waits or ends.
    pub(in crate::user) fn resume(
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
            match self.state.lines.connection(task.of) {
                _ if is_branch => self.state.agenda.get_or_insert_default().tasks.push(task),
                Some(_) => self.state.agenda.get_or_insert_default().tasks.push(task),
                // Its connection was lost while it did something else.
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

    /// Starts the branches that the session has left in the agenda.
    pub(in crate::user) fn begin_branches(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        let begins = |task: &Task| task.is_branch() && matches!(task.doing, Doing::Step);
        while let Some(agenda) = &self.state.agenda
            && let Some(place) = agenda.tasks.iter().rposition(begins)
        {
            self.with(Which::Other(place), shard, cx, |_| {});
        }
    }

    /// A branch is over; after the last one, the session continues.
    pub(in crate::user) fn join(&mut self, shard: &Lane) {
        if self.state.tasks().any(Task::is_branch) || !matches!(self.session.doing, Doing::Join) {
            return;
        }
        let (failed, leaves) = self.state.told_by_branches();
        self.state.forget_agenda();
        let mut session = self.session(shard);
        session.task.doing = Doing::Step;
        if let Some((step, cause)) = failed {
            session.task.transactions_fail(step, cause);
        }
        match leaves {
            true => Session::new(&mut session).leave_iteration(Onward::NextStep),
            false => session.next_step(),
        }
    }

    /// A pass through the steps is over, and so is its iteration: the session may start another.
    fn pass_over(&mut self, shard: &Lane) {
        let (_, leaves) = self.state.told_by_branches();
        let how = match leaves {
            true => Iteration::Failed,
            // The start time is known only for the last one.
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

    /// Polls the connections that background tasks open.
    pub(in crate::user) fn openings(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        let mut place = 0;
        while let Some(agenda) = &mut self.state.agenda
            && let Some(task) = agenda.tasks.get_mut(place)
        {
            let Doing::Opening(opening) = &mut task.doing else {
                place += 1;
                continue;
            };
            let Poll::Ready(result) = opening.poll(cx) else {
                place += 1;
                continue;
            };
            self.state.now = shard.clock.now();
            self.with(Which::Other(place), shard, cx, |active| opened(active, result));
        }
    }

    /// The socket has taken everything: bodies that sent something continue.
    pub(in crate::user) fn bodies_sent(&mut self, shard: &Lane, line: u8, cx: &mut Context<'_>) {
        let sends = |task: &Task| task.awaits(line, Awaits::Room);
        while self.state.lines.get(line).is_taken()
            && let Some(agenda) = &self.state.agenda
            && let Some(place) = agenda.tasks.iter().position(sends)
        {
            self.state.now = shard.clock.now();
            self.with(Which::Other(place), shard, cx, messages::sent);
        }
    }

    /// The time has come for a background task or a recurring action.
    pub(in crate::user) fn agenda_woken(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        let count = self.state.agenda.as_ref().map_or(0, |agenda| agenda.recurring());
        for place in 0..count {
            let (now, until) = (self.state.now, self.session.deadline);
            let Some(agenda) = &mut self.state.agenda else { return };
            let Some(Due { from, skipped, of, body }) = agenda.take_due(place, now, until) else {
                continue;
            };
            let runs = self.state.is_running(body);
            let from = shard.recurs_late(from, now);
            shard.recorder.borrow_mut().interval.traffic.messages.overdue +=
                skipped + u64::from(runs);
            // A user that has to leave starts nothing new.
            if !runs && !shard.slots.borrow().must_leave(self.state.slot) {
                self.resume(shard, Task::body(body, of, from, false), cx, |_| {});
            }
        }
        // Each runs once per wake-up: if it is immediately due again, it waits for the next.
        let due = |task: &Task, now: Time| task.deadline <= now;
        let now = self.state.now;
        let tasks = self.state.tasks();
        let mut left = tasks.filter(|task| due(task, now)).count();
        while left > 0
            && let Some(agenda) = &self.state.agenda
            && let Some(place) = agenda.tasks.iter().position(|one| due(one, self.state.now))
        {
            left -= 1;
            self.with(Which::Other(place), shard, cx, |active| active.deadline_passed());
        }
    }

    /// Gives one of the tasks something to do.
    pub(in crate::user) fn with(
        &mut self,
        which: Which,
        shard: &Lane,
        cx: &mut Context<'_>,
        work: impl FnOnce(&mut Active<'_>),
    ) {
        match which {
            Which::Session => {
                work(&mut self.session(shard));
                self.settle(shard, cx);
            }
            Which::Other(place) => {
                let Some(agenda) = &mut self.state.agenda else { return };
                let task = agenda.tasks.swap_remove(place);
                self.resume(shard, task, cx, work);
            }
        }
    }

    /// Notifies tasks that wait for a lost connection.
    pub(in crate::user) fn settle(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        if std::mem::take(&mut self.state.has_loss) {
            self.tell_losses(shard, cx);
        }
        let is_served = |agenda: &Agenda| agenda.serves_queue;
        if self.state.agenda.as_deref().is_some_and(is_served) {
            return;
        }
        if self.state.agenda.is_some() || matches!(self.session.doing, Doing::Queued { .. }) {
            self.serve_queued(shard, cx);
        }
    }

    /// Continues tasks that wait for a busy connection when one becomes free, in the order in which
    /// they were due.
    fn serve_queued(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        // The session continues with the user's next step: its line is reserved until then.
        let mut kept = Links::default();
        while let Some((which, link)) = self.next_queued(shard, kept) {
            if which == Which::Session {
                self.session.doing = Doing::Step;
                kept.add(link);
                continue;
            }
            // Tasks that continue here must not start others out of order.
            if let Some(agenda) = &mut self.state.agenda {
                agenda.serves_queue = true;
            }
            self.with(which, shard, cx, |active| active.task.doing = Doing::Step);
            if let Some(agenda) = &mut self.state.agenda {
                agenda.serves_queue = false;
            }
        }
    }

    /// The first task that waits for a connection and can have a free one, and the link.
    fn next_queued(&self, shard: &Lane, mut full: Links) -> Option<(Which, u8)> {
        let link_of = |task: &Task| match task.doing {
            Doing::Queued { .. } => at(shard, self.state.session, task.pc).0.link(),
            _ => None,
        };
        loop {
            let others = self.state.tasks().enumerate();
            let others = others.map(|(place, task)| (Which::Other(place), task));
            let all = std::iter::once((Which::Session, &self.session)).chain(others);
            let waiting = all.filter_map(|(which, task)| {
                let link = link_of(task).filter(|link| !full.has(*link))?;
                Some((task.due, which, link))
            });
            let (_, which, link) = waiting.min_by_key(|(due, ..)| *due)?;
            let session = Some(&self.session).filter(|_| which != Which::Session);
            if self.state.free_line(link, session).is_some() {
                return Some((which, link));
            }
            full.add(link);
        }
    }

    fn tell_losses(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        for line in 0..self.state.lines.count() {
            if self.state.lines.connection(line).is_some()
                || self.state.lines.get(line).loss.is_none()
            {
                continue;
            }
            while let Some(place) = self.state.agenda.as_ref().and_then(|agenda| {
                agenda.tasks.iter().position(|task| task.exchange_on(line).is_some())
            }) {
                self.with(Which::Other(place), shard, cx, |active| active.exchange_lost(line));
            }
            match self.session.doing {
                // It takes the messages from before the loss first.
                Doing::Exchange(_) if self.state.lines.get(line).keeps_something() => {}
                Doing::Exchange(_) if self.session.line == line => {
                    self.session(shard).exchange_lost(line);
                }
                Doing::Stay if self.state.link(line).lasts => {
                    stay::lost(&mut self.session(shard), line);
                }
                // HTTP users reconnect with their next request; others find out at their next step.
                _ => {}
            }
        }
    }

    /// The body is free: handles the next message that waits for it.
    fn serve_waiting(&mut self, shard: &Lane, body: u32, cx: &mut Context<'_>) {
        // A body that ends immediately returns here: the outer call continues.
        match &mut self.state.agenda {
            Some(agenda) if !agenda.is_serving => agenda.is_serving = true,
            _ => return,
        }
        while !self.state.is_running(body)
            && let Some(agenda) = &mut self.state.agenda
            && let Some(one) = agenda.waiting.take_first(|one| one.body == body)
        {
            self.handle_waited(shard, &one, cx);
        }
        if let Some(agenda) = &mut self.state.agenda {
            agenda.is_serving = false;
        }
    }

    /// Handles a message that waited for the body, and was counted when it arrived.
    fn handle_waited(&mut self, shard: &Lane, one: &Waiting, cx: &mut Context<'_>) {
        let Waiting { line, body, payload } = one;
        let found = shard.prepared.handler_with(self.state.session, *body);
        let Some((handler, plan)) = found else { return };
        let protocol = &self.state.link_in(shard, *line).protocol;
        let mut decoded = shard.decoded.take().unwrap_or_default();
        let apart = protocol.as_ref().map(|protocol| protocol.apart(payload));
        let (first, behind) = apart.unwrap_or((payload, Vec::new()));
        let packet = protocol.as_ref().map(|protocol| protocol.decode(first, &mut decoded));
        let others;
        let parts = self.state.lines.get(*line).parts(first);
        let mut looked = Looked::message(first, parts, self.state.now - self.session.due);
        if let (Some(protocol), Some(Ok(packet))) = (protocol, packet) {
            looked.declared = Some((protocol, &decoded, packet.message));
            others = PartsOfReply::of_push(protocol, &behind);
            looked.parts = Some(&others);
        }
        looked.proto = self.state.link_in(shard, *line).reply(&shard.prepared);
        let mut scope = scope!(self.state, shard);
        let verdict = plan.check_plan.judge(&handler.checks, &handler.saves, &looked, &mut scope);
        shard.decoded.set(Some(decoded));
        self.state.follow_audiences();
        match verdict {
            Ok(()) => self.answer(shard, *line, *body, cx),
            // It was valid on arrival, and is counted as such; a value that the body needs is
            // missing.
            Err(_) => shard.recorder.borrow_mut().interval.traffic.messages.skipped += 1,
        }
    }

    /// Starts the body of a handler. Its message arrived a while ago, by the kernel's time; what
    /// the body sends is timed from now.
    pub(in crate::user) fn answer(
        &mut self,
        shard: &Lane,
        line: u8,
        body: u32,
        cx: &mut Context<'_>,
    ) {
        let came = self.state.now;
        self.state.now = shard.clock.now();
        let task = Task::body(body, line, self.state.now, true);
        self.resume(shard, task, cx, |_| {});
        self.state.now = came;
    }
}
