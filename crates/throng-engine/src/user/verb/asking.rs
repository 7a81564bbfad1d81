//! How a request gets its connection: a free one of its link, or a new one.

use std::io;
use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use throng_base::{StepId, Time};
use throng_load::Schedule;
use throng_metrics::Cause;
use throng_protocol::machine::Machine;

use crate::connector;
use crate::connector::{Handshake, Order, Progress};
use crate::failure::{Ended, Finding, lost_failure};
use crate::recorder::Attempt;
use crate::system::Received;
use crate::user::State;
use crate::user::connection::Connection;
use crate::user::exchange::{Awaits, Exchange};
use crate::user::line::ended_by;
use crate::user::outcome::Onward;
use crate::user::task::{Active, Doing, Opening, Task, at};

impl State {
    /// A line of a link that no task uses, preferably an open one: neither a background task nor
    /// the session, if that is another task.
    pub(in crate::user) fn free_line(&self, link: u8, session: Option<&Task>) -> Option<u8> {
        let plan = self.shard.prepared.link(self.session, link);
        if self.agenda.is_none() && session.is_none() {
            return Some(plan.first);
        }
        let others = || {
            let others = self.tasks();
            session.into_iter().chain(others)
        };
        let is_free = |line: &u8| match self.lines.get(*line).multiplexes() {
            true => self.lines.get(*line).is_shared(),
            false => !others().any(|task| task.uses(*line)),
        };
        let lines = || plan.first..plan.first + plan.width;
        // Until a connection is open, it is not known whether it can be shared.
        let opens = |line: u8| {
            let opens = |task: &Task| task.line == line && matches!(task.doing, Doing::Opening(_));
            others().any(opens)
        };
        // If all iterations of a user share one connection, another is opened only if the target is
        // leaving it; a request waits for the settings of a new one.
        let shares = plan.multiplexes && self.shard.prepared.program.connection.streams > 1;
        let awaits = |line: u8| shares && self.lines.get(line).awaits_settings();
        if plan.multiplexes && lines().any(|line| opens(line) || awaits(line)) {
            return None;
        }
        let open = || lines().filter(|line| self.lines.connection(*line).is_some());
        let has_one = || shares && open().any(|line| !self.lines.get(line).is_going());
        let closed = || lines().filter(|line| !has_one() && self.lines.connection(*line).is_none());
        open().find(is_free).or_else(|| closed().find(is_free))
    }
}

/// A request that is about to be sent, and what its step says about the connection.
pub(in crate::user) struct Asking<'v, 'a> {
    pub(in crate::user) active: &'v mut Active<'a>,
    pub(in crate::user) link: u8,
    pub(in crate::user) step: StepId,
    pub(in crate::user) timeout: Duration,
}

impl Asking<'_, '_> {
    /// Starts a try of the request to the target of its line, with its deadline. `None` if the task
    /// has to wait for a connection first.
    pub(in crate::user) fn starts(&mut self, cx: &mut Context<'_>) -> Option<(Exchange, Time)> {
        if !self.takes_line() {
            return None;
        }
        let target = self.active.user.lines.get(self.active.task.line).target;
        let exchange = self.begins(target, cx)?;
        Some((exchange, self.until()))
    }

    /// Takes a line of the link for a request. False if all are in use: then the task waits.
    pub(in crate::user) fn takes_line(&mut self) -> bool {
        let own = self.active.task.line;
        let goes_on = self.active.task.in_flight
            && self.active.user.lines.get(own).link == self.link
            && (!self.active.user.lines.get(own).multiplexes()
                || self.active.user.lines.get(own).is_shared());
        let free = || match self.is_behind_others() {
            true => None,
            false => self.active.user.free_line(self.link, self.active.session),
        };
        match Some(own).filter(|_| goes_on).or_else(free) {
            Some(line) => {
                self.active.task.line = line;
                true
            }
            None => {
                self.active.task.flight_ends(self.active.shard);
                let queued = Doing::Queued { since: self.active.user.now };
                self.active.wait_for(queued, self.until());
                false
            }
        }
    }

    /// Whether an earlier request waits for a connection of the link: first come, first served.
    fn is_behind_others(&self) -> bool {
        let others = self.active.user.tasks();
        self.active.session.into_iter().chain(others).any(|task| {
            let waits =
                matches!(task.doing, Doing::Queued { .. }) && task.due < self.active.task.due;
            waits
                && at(self.active.shard, self.active.user.session, task.pc).0.link()
                    == Some(self.link)
        })
    }

    /// Starts a try of the request if the connection to its target is open; `None` if it must be
    /// opened first.
    pub(in crate::user) fn begins(
        &mut self,
        target: u16,
        cx: &mut Context<'_>,
    ) -> Option<Exchange> {
        let active = &mut *self.active;
        let (line, now) = (active.task.line, active.user.now);
        let schedule = active.shard.schedule();
        let fits = active.user.lines.connection(line).map(|connection| {
            connection.target == target && !is_of_before(connection, &schedule, now)
        });
        drop(schedule);
        if fits == Some(false) {
            active.user.drop_connection(line, Ended::ByUs);
        }
        active.flight_begins(self.step);
        if fits != Some(true) {
            self.opens(target);
            return None;
        }
        // The connection is checked before the request is sent: the target may have closed it since
        // the last response.
        let reused = active.user.lines.connection(line).is_some_and(|one| one.used > Time::ZERO);
        let is_good = !reused
            || active.user.lines.get(line).multiplexes()
            || is_still_good(active.user, line, cx);
        if !is_good {
            return None;
        }
        active.goes_out();
        let mut exchange = Exchange::new(Awaits::Answer { reused }, active.user.now);
        if !reused && let Some((user, times)) = active.shard.opening.take() {
            // It was just opened for this request.
            exchange.is_first(Some(times).filter(|_| user == active.user.id), active.shard);
        }
        Some(exchange)
    }

    fn opens(&mut self, target: u16) {
        let left = self.until() - self.active.user.now;
        if left.is_zero() {
            return self.out_of_time();
        }
        let shard = self.active.shard;
        let connect = shard.prepared.program.connection.connect_timeout;
        let place = &shard.prepared.targets[usize::from(target)].target;
        let handshake = connector::login_to(place, &mut self.active.user.random);
        open(self.active, target, handshake, connect.min(left));
    }

    /// The request was to be resent on a new connection, and timed out.
    fn out_of_time(&mut self) {
        let Active { shard, user, task, .. } = &mut *self.active;
        task.withdraw_again(shard, user.now);
        task.detour = None;
        let detail = say!("no time was left to send the request again over a new connection");
        let finding = (Cause::Timeout, detail);
        self.active.step_failed(self.step, &Attempt::default(), finding, Onward::NextStep);
    }

    /// Deadline of a request that is sent now; a resent one keeps its first deadline.
    pub(in crate::user) fn until(&self) -> Time {
        let again = self.active.task.detour.as_ref().and_then(|detour| detour.again.as_ref());
        let again = again.filter(|again| again.is_of(self.active.task.pc, self.active.task.due));
        (self.active.user.now + self.timeout).min(again.map_or(Time::NEVER, |again| again.until))
    }
}

/// Waits for the response to a request, unless that could not be written. If it could not be sent,
/// the response of the target is read first.
#[inline]
pub(in crate::user) fn asked(
    active: &mut Active<'_>,
    step: StepId,
    (mut exchange, until): (Exchange, Time),
    sent: Result<io::Result<()>, Finding>,
) {
    match sent {
        Err(finding) => {
            active.task.detour = None;
            exchange.forget(active.shard);
            return active.step_failed(step, &Attempt::default(), finding, Onward::NextStep);
        }
        Ok(Err(error)) => {
            exchange.scratch(active.shard).unsendable = Some(error);
            if let Some(connection) = active.user.lines.connection_mut(active.task.line) {
                connection.forget_unsent();
            }
        }
        Ok(Ok(())) => {}
    }
    active.wait_for(Doing::Exchange(exchange), until);
}

/// The response to a request is judged: its step ends.
#[inline]
pub(in crate::user) fn judged(
    active: &mut Active<'_>,
    exchange: Exchange,
    attempt: &Attempt,
    verdict: Result<(), Finding>,
) {
    let instruction = active.instruction();
    let Some(step) = instruction.step() else { return };
    match verdict {
        Ok(()) => {
            // A login that gets a response is not enough if the connection it is for is then
            // refused.
            if active.user.is_online() || !active.user.connects() {
                active.user.refusals = 0;
            }
            active.saved(instruction.saves());
            active.step_ok(step, attempt);
            active.next_step();
        }
        Err((cause, detail)) => {
            exchange.withdraw(active.shard, active.user.now);
            let finding = (cause, exchange.traced(detail));
            active.step_failed(step, attempt, finding, Onward::NextStep);
        }
    }
    exchange.forget(active.shard);
}

/// All connections were in use until the request timed out.
pub(super) fn queued_in_vain(active: &mut Active<'_>, since: Time) {
    let instruction = active.instruction();
    let (Some(step), Some(link)) = (instruction.step(), instruction.link()) else { return };
    let plan = active.shard.prepared.link(active.user.session, link);
    active.begin(step);
    active.task.withdraw_again(active.shard, active.user.now);
    active.task.detour = None;
    let waited = throng_base::units::format_duration(active.user.now - since);
    let is_over_one = active.task.is_pass() || active.user.lines.get(plan.first).multiplexes();
    let mut lines = plan.first..plan.first + plan.width;
    let (max, width) =
        (lines.clone().find_map(|line| active.user.lines.get(line).streams_max()), plan.width);
    let detail = match (is_over_one, max) {
        (true, Some(max)) => {
            say!(
                "no stream was free within {waited}: the target allows {max} concurrent \
                 streams"
            )
        }
        (true, None) if lines.all(|line| active.user.lines.get(line).is_going()) => say!(
            "no connection was available for {waited}: the target announced that it would \
             close all {width} connections, and did not answer the requests on them"
        ),
        (true, None) => say!("no connection was ready for the request within {waited}"),
        (false, _) => say!("all {width} connections to the target were in use for {waited}"),
    };
    let finding = (Cause::Timeout, detail);
    active.step_failed(step, &Attempt::default(), finding, Onward::NextStep);
}

/// Opens a connection to a target; `opened` continues from there.
pub(in crate::user) fn open(
    active: &mut Active<'_>,
    target: u16,
    handshake: Option<Handshake>,
    timeout: Duration,
) {
    let user = &mut *active.user;
    let turn = user.id.0.wrapping_add(u64::from(user.turn));
    user.turn = user.turn.wrapping_add(1);
    let route = user.shard.routes.to(target);
    let progress = Rc::new(Progress::new(route, turn));
    progress.machine.set(handshake.as_ref().and_then(Handshake::take_machine));
    let missing = handshake.as_ref().map(Handshake::missing);
    let place = progress.place();
    let slow = user.link(active.task.line).slow;
    let who = user.who();
    let order = Order { target, handshake, who, slow, progress: Rc::clone(&progress) };
    let work = connector::open(Rc::clone(&user.shard), order);
    active.user.lines.get_mut(active.task.line).place = place;
    active.goes_out();
    let mut recorder = active.shard.recorder.borrow_mut();
    if let Some(row) = recorder.targets.of(place) {
        row.connections_attempted += 1;
    }
    recorder.interval.connections.counts.attempted += 1;
    recorder.interval.gauges.connections_opening += 1;
    drop(recorder);
    let (work, begun) = (Box::pin(work), active.user.now);
    let opening = Opening { work, progress, begun, target, missing };
    active.wait_for(Doing::Opening(Box::new(opening)), active.user.now + timeout);
}

/// Whether a connection belongs to an earlier slice of a duel, and no other request uses
/// it.
fn is_of_before(connection: &Connection, schedule: &Schedule, now: Time) -> bool {
    let machine = &connection.machine;
    let is_in_use = matches!(machine, Machine::Http2(client) if client.open_streams() > 0);
    schedule.renews(connection.established, now) && !is_in_use
}

/// Checks whether an idle connection is still usable: the target has neither closed it nor sent
/// unsolicited bytes.
fn is_still_good(user: &mut State, line: u8, cx: &mut Context<'_>) -> bool {
    let now = user.now;
    let Some(connection) = user.lines.connection_mut(line) else { return false };
    if connection.transport.is_silent() {
        return true;
    }
    let mut buffer = [0; 64];
    let Some(most) = connection.may_read(now, buffer.len()) else { return true };
    let std::task::Poll::Ready(read) = connection.transport.poll_read(cx, &mut buffer[..most])
    else {
        return true;
    };
    user.now = user.shard.clock.now();
    match read {
        Ok(Received { bytes: 0, .. }) => user.drop_connection(line, Ended::ByTarget),
        Ok(Received { bytes, .. }) => {
            user.shard.recorder.borrow_mut().interval.traffic.bytes_in += bytes as u64;
            user.unasked(line);
        }
        Err(error) => {
            let failure = lost_failure(&error);
            user.drop_connection(line, ended_by(failure.cause));
        }
    }
    false
}
