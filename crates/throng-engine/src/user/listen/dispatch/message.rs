//! Routes a message: to a task that waits for it, to a heartbeat, to a handler; anything else is a
//! push.

use throng_metrics::Cause;
use throng_program::{Content, Handler, OnError, Statement};
use throng_protocol::framed::Packet;

use crate::failure::Finding;
use crate::looked::Looked;
use crate::prepared::code::Instruction;
use crate::prepared::{AnswerPlan, HandlerPlan, Plan};
use crate::recorder::Attempt;
use crate::scope::scope;
use crate::shard::Lane;
use crate::user::agenda::{Waiting, no_room};
use crate::user::connection::Later;
use crate::user::exchange::{Awaits, Exchange};
use crate::user::flow::Session;
use crate::user::listen::Inbound;
use crate::user::send::wire_bytes;
use crate::user::task::{Doing, Which, at};
use crate::user::verb::messages;
use crate::user::{State, User};

pub(super) struct Message<'m, 'l, 'u, 'c> {
    pub(super) inbound: &'m mut Inbound<'u, 'c>,
    pub(super) looked: &'m mut Looked<'l>,
    pub(super) packet: Option<Packet>,
}

impl<'u> Message<'_, '_, 'u, '_> {
    /// Routes the message.
    pub(super) fn give(mut self) {
        let Inbound { user, shard, line, .. } = &mut *self.inbound;
        let (shard, line) = (*shard, *line);
        if user.session.is_closing(line) {
            // No task can take it anymore.
            shard.recorder.borrow_mut().interval.traffic.messages.pushes += 1;
            return;
        }
        // If messages do not say what they answer, handlers go before a task that takes any
        // message.
        let unsure = self.packet.is_none() && user.awaiting(line).next().is_some();
        let handled = unsure && self.handler().is_some();
        if let Some(which) = self.who_awaits(handled) {
            let Message { inbound: Inbound { user, cx, .. }, looked, packet } = self;
            return user
                .with(which, shard, cx, |active| messages::answer_came(active, looked, packet));
        }
        if self.packet.is_some() && self.answers_beat() {
            return;
        }
        if let Some((handler, plan)) = self.handler() {
            return self.handle(handler, plan);
        }
        if self.packet.is_none() && self.answers_beat() {
            return;
        }
        if !self.inbound.user.state.link_in(shard, line).has_records() {
            self.note_joined();
        }
        self.keep_or_pass();
    }

    /// Whether it is the reply to a heartbeat; if so, handles it.
    fn answers_beat(&mut self) -> bool {
        let Inbound { user, line, .. } = &mut *self.inbound;
        let mut beats = user.state.heartbeats(*line);
        if !beats.is_answer(user.session.pc, self.looked, self.packet) {
            return false;
        }
        let bytes = wire_bytes(user.state.protocol(*line), self.looked.whole());
        self.inbound.beat_answered(bytes);
        true
    }

    /// A message that no task takes may contain the expected one among other records.
    fn note_joined(&mut self) {
        let Inbound { user, shard, line, .. } = &mut *self.inbound;
        if user.awaiting(*line).next().is_none() || !self.looked.document.is_joined_json() {
            return;
        }
        let others = user.state.agenda.iter_mut().flat_map(|agenda| &mut agenda.tasks);
        for task in std::iter::once(&mut user.session).chain(others) {
            if task.awaits(*line, Awaits::Message)
                && let Doing::Exchange(exchange) = &mut task.doing
            {
                exchange.scratch(shard).joined += 1;
            }
        }
    }

    /// The task whose reply it is. If replies do not say what they answer, tasks are answered in
    /// the order in which they asked. A task that takes any message does not if a handler is
    /// `handled`.
    fn who_awaits(&mut self, handled: bool) -> Option<Which> {
        let Message { inbound, looked, packet } = self;
        let Inbound { user, shard, line, .. } = &mut **inbound;
        let state = &mut user.state;
        // The agenda is part of the state that the check borrows: take it out meanwhile.
        let agenda = state.agenda.take();
        let mut first: Option<(Which, throng_base::Time)> = None;
        let others = agenda.iter().flat_map(|agenda| &agenda.tasks).enumerate();
        let others = others.map(|(place, task)| (Which::Other(place), task));
        for (which, task) in std::iter::once((Which::Session, &user.session)).chain(others) {
            let Some(exchange) = task.exchange_on(*line) else { continue };
            let earlier = first.is_none_or(|(_, due)| task.due < due);
            if exchange.awaits != Awaits::Message || !earlier {
                continue;
            }
            if handled && takes_any(at(shard, state.session, task.pc).0) {
                continue;
            }
            looked.elapsed = state.now - task.due;
            if is_awaited((state, shard), (*line, task.pc), exchange, looked, *packet) {
                first = Some((which, task.due));
            }
        }
        state.agenda = agenda;
        let due = first.map_or(user.session.due, |(_, due)| due);
        looked.elapsed = state.now - due;
        first.map(|(which, _)| which)
    }

    /// The first handler that matches: of the `stay`, then of the link.
    fn handler(&mut self) -> Option<(&'u Handler, &'u HandlerPlan)> {
        let Inbound { user, shard, line, .. } = &mut *self.inbound;
        let (prepared, session) = (&shard.prepared, user.state.session);
        let link = user.state.lines.get(*line).link;
        let own = prepared.program.sessions[usize::from(session)].links.get(usize::from(link));
        let of_stay = match (&user.session.doing, at(shard, session, user.session.pc)) {
            (Doing::Stay, (Instruction::Do(Statement::Stay(stay)), Plan::Stay(plan)))
                if stay.link == link =>
            {
                (&*stay.handlers, &*plan.handlers)
            }
            _ => (&[][..], &[][..]),
        };
        let of_link = own.map_or(&[][..], |link| &link.handlers);
        let of_link = of_link.iter().zip(&prepared.link(session, *line).hears.handlers);
        let mut all = of_stay.0.iter().zip(of_stay.1).chain(of_link);
        let (packet, mut scope) = (self.packet, scope!(user.state, shard));
        all.find(|(handler, plan)| {
            plan.which.takes(&handler.message, self.looked, packet, &mut scope)
        })
    }

    /// Runs a handler on it.
    fn handle(self, handler: &Handler, plan: &HandlerPlan) {
        let Message { inbound: Inbound { user, shard, line, cx }, looked, .. } = self;
        let (shard, line, payload) = (*shard, *line, looked.whole());
        let state = &mut user.state;
        let busy = plan.body.filter(|body| state.is_running(*body));
        let mut scope = scope!(state, shard);
        // Values for a body are saved when the body starts.
        let saves = if busy.is_some() { &[][..] } else { &handler.saves };
        let mut verdict = plan.check_plan.judge(&handler.checks, saves, looked, &mut scope);
        shard.recorder.borrow_mut().interval.traffic.messages.pushes += 1;
        state.follow_audiences();
        state.life(line).first_message();
        if let (Some(body), Ok(())) = (busy, &verdict) {
            verdict = wait_for_body(state, line, body, payload);
        }
        let bytes_in = wire_bytes(state.protocol(line), payload);
        let attempt = Attempt { bytes_in, latency: looked.between, ..Attempt::default() };
        let Err(finding) = verdict else {
            shard.recorder.borrow_mut().came(handler.step, &attempt);
            state.tell_end(handler.step, &attempt, None);
            if let (Some(body), None) = (plan.body, busy) {
                user.answer(shard, line, body, cx);
            }
            return;
        };
        state.failed_apart(handler.step, &attempt, &finding);
        let mut session = user.session(shard);
        match handler.failing.then {
            OnError::Stop => session.stop_for(handler.step, finding.0, finding.1.clone()),
            then => Session::new(&mut session).answer_unasked(then),
        }
    }

    /// No step takes the message now.
    fn keep_or_pass(self) {
        let Message { inbound: Inbound { user, shard, line, .. }, looked, packet } = self;
        let (shard, line, session) = (*shard, *line, &user.session);
        let link = user.state.link_in(shard, line);
        let is_reply = packet.is_some_and(|packet| link.is_reply(packet.message));
        // A message right after a reply may be the next one, and so may one that arrives while the
        // user asks something elsewhere; replies to sent messages may arrive during think time.
        let (goes_on, asks) = match &session.doing {
            Doing::Step => (true, true),
            Doing::Exchange(_) if session.line != line => (link.expected.any, true),
            Doing::Exchange(_) => (is_any_next(user, shard), true),
            Doing::Opening(_) => (link.expected.any, true),
            _ => (false, false),
        };
        let keeps = match packet {
            Some(packet) => {
                let any = link.expected.any && goes_on;
                any || (asks || is_reply) && link.expected.has(packet.message)
            }
            None if goes_on => true,
            // The effect of a message may arrive before its acknowledgement.
            None => {
                asks && {
                    let mut scope = scope!(user.state, shard);
                    let mut patterns = link.expected.patterns.iter();
                    patterns.any(|(checks, check_plan)| check_plan.fits(checks, looked, &mut scope))
                }
            }
        };
        let place = user.state.lines.get_mut(line);
        let left = place.loss.as_mut().and_then(|loss| loss.left.as_mut());
        match (&mut place.connection, left) {
            (Some(connection), _) if keeps => {
                let dropped = connection.keep_message(looked.whole(), is_reply);
                shard.recorder.borrow_mut().interval.traffic.messages.dropped += dropped;
            }
            // The connection is gone: a later step may still take the message.
            (None, Some(left)) if keeps => {
                left.later.push(Later::Message { payload: looked.whole().to_vec(), is_reply });
            }
            _ if is_reply => shard.recorder.borrow_mut().interval.traffic.messages.unasked += 1,
            _ => {
                shard.recorder.borrow_mut().interval.traffic.messages.pushes += 1;
                user.state.life(line).first_message();
            }
        }
    }
}

/// Whether the session takes any message right after the reply that it waits for.
fn is_any_next(user: &User, shard: &Lane) -> bool {
    let (next, _) = at(shard, user.state.session, user.session.pc + 1);
    matches!(next, Instruction::Do(Statement::Expect(expect)) if expect.message.is_any())
        && next.link() == Some(user.state.lines.get(user.session.line).link)
}

/// Whether the step there waits for this message.
fn is_awaited(
    (state, shard): (&mut State, &Lane),
    (line, pc): (u8, u32),
    exchange: &Exchange,
    looked: &Looked<'_>,
    packet: Option<Packet>,
) -> bool {
    let (instruction, plan) = at(shard, state.session, pc);
    let link = state.link_in(shard, line);
    let mut scope = scope!(state, shard);
    let which = match plan {
        Plan::Answer(AnswerPlan { which, .. }) => Some(which),
        _ => None,
    };
    match (instruction, packet) {
        (Instruction::Do(Statement::Request(request)), _)
            if request.message.content.verb().is_some() =>
        {
            false
        }
        (Instruction::Do(Statement::Request(request)), None) => {
            which.is_none_or(|which| which.fits(&request.answer.checks, looked, &mut scope))
        }
        (Instruction::Do(Statement::Request(request)), Some(packet)) => {
            let unasked = link.comes_unasked(packet.message);
            match (&request.message.content, packet.correlation) {
                (Content::Declared(_), Some(carried)) => {
                    exchange.number > 0 && carried == u64::from(exchange.number) && !unasked
                }
                (Content::Declared(declared), None) => {
                    link.answers(packet.message, declared.template.message)
                }
                // The reply to raw bytes is any message that is not a push.
                _ => !unasked,
            }
        }
        (Instruction::Do(Statement::Expect(expect)), packet) => {
            which.is_some_and(|which| which.takes(&expect.message, looked, packet, &mut scope))
        }
        _ => false,
    }
}

/// Whether the next message is the reply, whatever it contains.
fn takes_any(instruction: &Instruction) -> bool {
    matches!(instruction, Instruction::Do(Statement::Request(request)) if request.answer.is_any())
}

/// Keeps a message until the body is free. A user that has to leave keeps none.
fn wait_for_body(state: &mut State, line: u8, body: u32, payload: &[u8]) -> Result<(), Finding> {
    if state.shard.slots.borrow().must_leave(state.slot) {
        state.shard.recorder.borrow_mut().interval.traffic.messages.skipped += 1;
        return Ok(());
    }
    let waiting = &mut state.agenda.get_or_insert_default().waiting;
    if waiting.has_room(payload.len()) {
        waiting.push(Waiting { line, body, payload: payload.to_vec() });
        return Ok(());
    }
    state.shard.recorder.borrow_mut().interval.traffic.messages.dropped += 1;
    Err((Cause::MessagesDropped, no_room(say!("the steps of this handler take too long"))))
}
