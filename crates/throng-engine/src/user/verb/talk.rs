//! What a task says over a connection that lasts, and what it makes of the answer: `send`,
//! `request`, `expect`. Whose a message is that comes is found out in [`crate::user::listen`].

mod joined;

use std::io;
use std::task::Context;
use std::time::Duration;

use joined::{joined_taken, sends_joined};
use throng_base::StepId;
use throng_metrics::Cause;
use throng_program::{Check, Content, Expect, Message, Pick, Request, Save, Send, Statement};
use throng_protocol::framed::{MessageId, Packet};
use throng_protocol::stream::Answer;

use crate::code::Instruction;
use crate::evidence;
use crate::evidence::EVIDENCE_BYTES_MAX;
use crate::failure::{Finding, lost_failure};
use crate::look::Look;
use crate::looked::Looked;
use crate::prepared::{AnswerPlan, LinkPlan, Plan};
use crate::recorder::Attempt;
use crate::scope::{UserScope, scope};
use crate::shard::Lane;
use crate::trace::{Shown, What};
use crate::user::connection::{Later, NOTHING_ASKED};
use crate::user::exchange::{Awaits, Exchange};
use crate::user::line::ended_by;
use crate::user::outcome::Onward;
use crate::user::send::Sent;
use crate::user::task::{Active, Doing};

impl Active<'_> {
    /// The verb `send`: done when the message is on its way.
    pub(in crate::user) fn send_only(&mut self, send: &Send, cx: &mut Context<'_>) {
        if sends_joined(self, send.link, cx) {
            return;
        }
        let line = self.user.line_of(send.link);
        let said = (line, send.step, &send.message);
        if self.say(said, Awaits::Room, send.timeout, cx) && self.user.lines.get(line).is_taken() {
            self.sent();
        }
    }

    /// The verb `request`: sends and waits, timed as one.
    pub(in crate::user) fn request(&mut self, request: &Request, cx: &mut Context<'_>) {
        let line = self.user.line_of(request.link);
        let is_acknowledged = request.message.content.verb().is_some();
        if self.user.protocol(line).is_none() && !is_acknowledged && !self.task.is_body() {
            self.forget_kept(line);
        }
        let said = (line, request.step, &request.message);
        self.say(said, Awaits::Message, request.timeout, cx);
    }

    /// The verb `expect`: waits for the next message that is meant.
    pub(in crate::user) fn expect(&mut self, expect: &Expect) {
        let line = self.user.line_of(expect.link);
        self.task.line = line;
        let takes_left = !self.task.is_body() && self.user.lines.get(line).keeps_something();
        if self.user.lines.connection(line).is_none() && !takes_left {
            return self.without_connection(expect.step);
        }
        self.flight_begins(expect.step);
        self.goes_out();
        let exchange = Exchange::new(Awaits::Message, self.task.due);
        self.wait_for(Doing::Exchange(exchange), self.user.now + expect.timeout);
    }

    /// Sends the message of a step and waits for what it awaits; whether it does.
    fn say(
        &mut self,
        (line, step, message): (u8, StepId, &Message),
        awaits: Awaits,
        patience: Duration,
        cx: &mut Context<'_>,
    ) -> bool {
        self.task.line = line;
        if self.user.lines.connection(line).is_none() {
            self.without_connection(step);
            return false;
        }
        self.flight_begins(step);
        self.goes_out();
        let sent = match send_step(self, line, step, message, cx) {
            Ok(sent) => sent,
            // Nothing was sent.
            Err(finding) => {
                self.step_failed(step, &Attempt::default(), finding, Onward::NextStep);
                return false;
            }
        };
        wait_on(self, awaits, *sent.as_ref().unwrap_or(&Sent::default()), patience);
        match sent {
            Ok(_) => true,
            Err(error) => {
                self.unsent(&error);
                false
            }
        }
    }

    /// Writing failed. Whoever waits for this connection hears of it, this task first.
    fn unsent(&mut self, error: &io::Error) {
        let mut failure = lost_failure(error);
        if failure.cause == Cause::ClosedEarly {
            failure.detail = NOTHING_ASKED;
        }
        let Some(exchange) = self.take_exchange() else { return };
        let finding = (failure.cause, failure.detail.clone());
        let ended = ended_by(failure.cause);
        self.lose(failure, ended);
        self.exchange_failed(exchange, finding, false, Onward::Anew { refused: false });
    }

    /// The socket has taken the message.
    pub(in crate::user) fn sent(&mut self) {
        let Some(mut exchange) = self.take_exchange() else { return };
        let bytes_out = exchange.bytes_out;
        let behind = exchange.rare.as_mut().map(|rare| std::mem::take(&mut rare.behind));
        exchange.forget(self.shard);
        if let Instruction::Do(Statement::Send(send)) = self.instruction() {
            self.step_ok(send.step, &Attempt { bytes_out, ..Attempt::default() });
        }
        self.next_step();
        joined_taken(self, &behind.unwrap_or_default());
    }

    /// What came before a request cannot be its answer.
    fn forget_kept(&mut self, line: u8) {
        let mut later = self.user.lines.get_mut(line).take_kept();
        while let Some(one) = later.pop() {
            debug_assert!(!matches!(one, Later::Surplus(_)), "it is read before any step");
            self.shard.recorder.borrow_mut().messages.pushes += 1;
        }
    }

    /// Bytes came of the answer on a raw stream, perhaps all of it.
    pub(in crate::user) fn stream_came(&mut self, bytes: &[u8], answer: Option<&[u8]>) {
        self.user.tell(|| What::Received(self.user.shown(self.task.line, bytes)));
        if let Doing::Exchange(exchange) = &mut self.task.doing {
            exchange.came(bytes.len() as u64, self.user.now);
        }
        let Some(answer) = answer else { return };
        let (instruction, plan) = self.at_pc();
        let looked = Looked::new(None, answer, self.user.now - self.task.due);
        let mut scope = scope!(self.user, self.shard);
        let verdict =
            looking(instruction, plan).map_or(Ok(()), |looking| looking.judge(&looked, &mut scope));
        self.shard.recorder.borrow_mut().messages.received += 1;
        self.message_came(verdict);
    }

    /// The message that the task waits for is here.
    pub(in crate::user) fn answer_came(&mut self, looked: Looked<'_>, packet: Option<Packet>) {
        let (shard, line) = (self.shard, self.task.line);
        let (instruction, plan) = self.at_pc();
        let bytes = self.user.wire_bytes(line, looked.document.bytes());
        let link = self.user.link_in(shard, line);
        let mut wrong = looked.refusal.cloned().or_else(|| wrong_reply(link, instruction, packet));
        let mut parts = None;
        if let Doing::Exchange(exchange) = &mut self.task.doing {
            exchange.came(bytes, self.user.now);
            exchange.status = looked.status.unwrap_or_default();
            let asks = matches!(instruction, Instruction::Do(Statement::Request(_)));
            if let Some(packet) = packet.filter(|packet| packet.goes_on && asks)
                && wrong.is_none()
            {
                let packet = (packet.message, looked.document.bytes());
                return exchange.part_came(packet, instruction, shard);
            }
            if let Some(rare) = exchange.rare.as_deref_mut() {
                wrong = wrong.or(rare.finding.take());
                parts = Some(std::mem::take(&mut rare.parts)).filter(|_| asks);
            }
        }
        let mut looked = looked;
        looked.parts = parts.as_ref().or(looked.parts);
        let mut scope = scope!(self.user, shard);
        let verdict = match wrong {
            Some(finding) => Err(finding),
            None => looking(instruction, plan)
                .map_or(Ok(()), |looking| looking.judge(&looked, &mut scope)),
        };
        if let (Err((cause, _)), Some(step)) = (&verdict, instruction.step()) {
            let mut recorder = shard.recorder.borrow_mut();
            if recorder.is_new(step, *cause, 0) {
                let received = Shown::first(looked.document.bytes(), EVIDENCE_BYTES_MAX);
                recorder.exchange = evidence::Exchange { sent: None, received: Some(received) };
            }
        }
        self.message_came(verdict);
    }

    /// What the task waits for came, good or bad.
    pub(in crate::user) fn message_came(&mut self, verdict: Result<(), Finding>) {
        let Some(exchange) = self.take_exchange() else { return };
        let (instruction, plan) = self.at_pc();
        if let Err(finding) = verdict {
            return self.exchange_failed(exchange, finding, true, Onward::NextStep);
        }
        let line = self.task.line;
        // That a login was answered is not enough: who is sent away behind each of them waits
        // longer and longer.
        if self.user.is_online() {
            self.user.refusals = 0;
        }
        if matches!(plan, Plan::Answer(AnswerPlan { logs_in: true, .. })) {
            self.user.logged_in(line);
        }
        self.saved(instruction.saves());
        if let Some(step) = instruction.step() {
            self.step_ok(step, &exchange.attempt(self.user.now, self.task.due));
        }
        exchange.forget(self.shard);
        self.next_step();
    }
}

/// Waits for what a message awaits that is on its way.
fn wait_on(active: &mut Active<'_>, awaits: Awaits, sent: Sent, patience: Duration) {
    let Sent { bytes, number, delivery } = sent;
    let mut exchange = Exchange { number, ..Exchange::new(awaits, active.user.now) };
    exchange.bytes_out = bytes;
    exchange.is_delivered(delivery, active.shard);
    active.wait_for(Doing::Exchange(exchange), active.user.now + patience);
}

/// A message is on its way, which may have to be delivered to others. It lies in the shard's
/// buffer still, unless it is the same for all users.
fn delivers(active: &mut Active<'_>, step: StepId, message: &Message) -> Option<(u16, u64)> {
    let row = active.shard.prepared.delivery_of(step)?;
    // What is cut on purpose reaches nobody.
    if message.cut.is_some() {
        return None;
    }
    let link = active.user.link_in(active.shard, active.task.line);
    let mut scope = scope!(active.user, active.shard);
    active.user.audiences.sent_message(row, (message, link), &mut scope)
}

/// Sends the message of a step, which may have to be delivered to others.
fn send_step(
    active: &mut Active<'_>,
    line: u8,
    step: StepId,
    message: &Message,
    cx: &mut Context<'_>,
) -> Result<io::Result<Sent>, Finding> {
    let sent = active.user.send_message(line, message, cx)?;
    Ok(sent.map(|sent| Sent { delivery: delivers(active, step, message), ..sent }))
}

impl Exchange {
    /// A packet of the reply, which goes on. It is kept if a check or a save looks at its fields.
    fn part_came(
        &mut self,
        (message, packet): (MessageId, &[u8]),
        instruction: &Instruction,
        shard: &Lane,
    ) {
        let is_its = |pick: &Pick| match pick {
            Pick::Field(paths) => paths.iter().any(|path| path.message == message),
            _ => false,
        };
        let rare = self.rare(shard);
        if !rare.parts.add(message) {
            return;
        }
        let checked = instruction.checks().iter().map(|check| &check.pick);
        let mut picks = checked.chain(instruction.saves().iter().map(|save| &save.pick));
        if !picks.any(is_its) {
            return;
        }
        match rare.held.resize(rare.held.bytes() + packet.len(), &shard.purse) {
            true => rare.parts.keep(packet),
            false => self.found(shard.purse.refusal(), shard),
        }
    }
}

/// A reply that carries the number of the request, but is of a kind that answers something else.
fn wrong_reply(
    link: &LinkPlan,
    instruction: &Instruction,
    packet: Option<Packet>,
) -> Option<Finding> {
    let (Some(packet), Some(protocol), Instruction::Do(Statement::Request(request))) =
        (packet, &link.protocol, instruction)
    else {
        return None;
    };
    let Content::Declared(declared) = &request.message.content else { return None };
    if link.answers(packet.message, declared.template.message) {
        return None;
    }
    let came = &protocol.info(packet.message).name;
    let sent = &protocol.info(declared.template.message).name;
    let detail = say!("received `{came}`, which is not a reply to `{sent}`");
    Some((Cause::Malformed, detail))
}

/// What is looked at in the awaited message.
struct Looking<'a> {
    checks: &'a [Check],
    saves: &'a [Save],
    look: &'a Look,
}

fn looking<'a>(instruction: &'a Instruction, plan: &'a Plan) -> Option<Looking<'a>> {
    let Plan::Answer(AnswerPlan { look, .. }) = plan else { return None };
    Some(Looking { checks: instruction.checks(), saves: instruction.saves(), look })
}

/// The answer on a raw stream that a step waits for.
pub(in crate::user) fn awaited<'a>(
    instruction: &Instruction,
    plan: &'a Plan,
    bytes_max: usize,
) -> Option<Answer<'a>> {
    let Plan::Answer(AnswerPlan { until, .. }) = plan else { return None };
    let is_kept = !instruction.checks().is_empty() || !instruction.saves().is_empty();
    Some(Answer { until, bytes_max, is_kept })
}

impl Looking<'_> {
    fn judge(&self, looked: &Looked<'_>, scope: &mut UserScope<'_>) -> Result<(), Finding> {
        self.look.judge(self.checks, self.saves, looked, scope)
    }
}
