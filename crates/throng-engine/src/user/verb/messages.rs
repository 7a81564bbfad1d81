//! What a task sends over a long-lived connection, and how it handles the reply: `send`, `request`,
//! `expect`. [`crate::user::listen`] decides which task a message is for.

mod joined;

use std::io;
use std::task::Context;
use std::time::Duration;

use joined::{joined_taken, sends_joined};
use throng_base::StepId;
use throng_metrics::Cause;
use throng_program::{Content, Expect, Extractor, Message, Request, Send, Statement};
use throng_protocol::framed::{MessageId, Packet};
use throng_protocol::machine::Fields;
use throng_protocol::stream::AwaitedReply;

use crate::failure::{Finding, lost_failure};
use crate::looked::Looked;
use crate::prepared::code::Instruction;
use crate::prepared::{AnswerPlan, LinkPlan, Plan};
use crate::recorder::Attempt;
use crate::recorder::evidence;
use crate::recorder::evidence::EVIDENCE_BYTES_MAX;
use crate::scope::scope;
use crate::shard::Lane;
use crate::trace::{Shown, What};
use crate::user::connection::{Later, NOTHING_ASKED};
use crate::user::exchange::{Awaits, Exchange};
use crate::user::line::ended_by;
use crate::user::outcome::Onward;
use crate::user::send::{Acknowledgement, Sent, wire_bytes};
use crate::user::task::{Active, Doing};
use crate::user::verb::unanswered::Unanswered;

/// The verb `send`: done when the message is sent.
pub(super) fn send(active: &mut Active<'_>, send: &Send, cx: &mut Context<'_>) {
    let Send { link, step, message, timeout, .. } = send;
    if sends_joined(active, *link, cx) {
        return;
    }
    active.task.line = active.user.line_of(*link);
    if say(active, (*step, message), (Awaits::Room, *timeout), cx)
        && active.user.lines.get(active.task.line).is_taken()
    {
        sent(active);
    }
}

/// The verb `request`: sends and waits, timed as one.
pub(super) fn request(active: &mut Active<'_>, request: &Request, cx: &mut Context<'_>) {
    let Request { link, step, message, timeout, .. } = request;
    let line = active.user.line_of(*link);
    let is_acknowledged = message.content.verb().is_some();
    if active.user.protocol(line).is_none() && !is_acknowledged && !active.task.is_body() {
        forget_kept(active, line);
    }
    active.task.line = line;
    say(active, (*step, message), (Awaits::Message, *timeout), cx);
}

/// The verb `expect`: waits for the next message that matches.
pub(super) fn expect(active: &mut Active<'_>, expect: &Expect) {
    let line = active.user.line_of(expect.link);
    active.task.line = line;
    let takes_left = !active.task.is_body() && active.user.lines.get(line).keeps_something();
    if active.user.lines.connection(line).is_none() && !takes_left {
        return active.without_connection(expect.step);
    }
    active.flight_begins(expect.step);
    active.goes_out();
    let exchange = Exchange::new(Awaits::Message, active.task.due);
    active.wait_for(Doing::Exchange(exchange), active.user.now + expect.timeout);
}

/// A message that arrived before a request cannot be its reply.
fn forget_kept(active: &mut Active<'_>, line: u8) {
    let mut later = active.user.lines.get_mut(line).take_kept();
    while let Some(one) = later.pop() {
        debug_assert!(!matches!(one, Later::Surplus(_)), "it is read before any step");
        active.shard.recorder.borrow_mut().interval.traffic.messages.pushes += 1;
    }
}

/// Sends the message of a step and starts the wait for what it awaits; true if it has to wait.
fn say(
    active: &mut Active<'_>,
    (step, message): (StepId, &Message),
    (awaits, patience): (Awaits, Duration),
    cx: &mut Context<'_>,
) -> bool {
    let line = active.task.line;
    if active.user.lines.connection(line).is_none() {
        active.without_connection(step);
        return false;
    }
    active.flight_begins(step);
    active.goes_out();
    let sent = match active.user.outbound(line).message(message, cx) {
        Ok(sent) => sent,
        // Nothing was sent.
        Err(finding) => {
            active.step_failed(step, &Attempt::default(), finding, Onward::NextStep);
            return false;
        }
    };
    match sent {
        Ok(sent) => {
            let delivery = delivers(active, step, message);
            wait_on(active, awaits, Sent { delivery, ..sent }, patience);
            true
        }
        Err(error) => {
            wait_on(active, awaits, Sent::default(), patience);
            unsent(active, &error);
            false
        }
    }
}

/// Starts the wait for what a sent message awaits.
fn wait_on(active: &mut Active<'_>, awaits: Awaits, sent: Sent, patience: Duration) {
    let Sent { bytes, number, delivery } = sent;
    let mut exchange = Exchange { number, ..Exchange::new(awaits, active.user.now) };
    exchange.bytes_out = bytes;
    exchange.is_delivered(delivery, active.shard);
    active.wait_for(Doing::Exchange(exchange), active.user.now + patience);
}

/// A message was sent that may be a delivery to other users. Its bytes are still in the shard's
/// buffer, unless all users send the same.
fn delivers(active: &mut Active<'_>, step: StepId, message: &Message) -> Option<(u16, u64)> {
    let row = active.shard.prepared.delivery_of(step)?;
    // A message that is truncated on purpose reaches no user.
    if message.cut.is_some() {
        return None;
    }
    let link = active.user.link_in(active.shard, active.task.line);
    let mut scope = scope!(active.user, active.shard);
    active.user.audiences.sent_message(row, (message, link), &mut scope)
}

/// Writing failed. Tasks that wait for this connection are notified, this task first.
fn unsent(active: &mut Active<'_>, error: &io::Error) {
    let mut failure = lost_failure(error);
    if failure.cause == Cause::ClosedEarly {
        failure.detail = NOTHING_ASKED;
    }
    let Some(exchange) = active.task.take_exchange() else { return };
    let finding = failure.finding();
    let ended = ended_by(failure.cause);
    active.lose(failure, ended);
    Unanswered::new(active, exchange).failed(finding, false, Onward::Anew { refused: false });
}

/// The socket has taken the message.
pub(in crate::user) fn sent(active: &mut Active<'_>) {
    let Some(mut exchange) = active.task.take_exchange() else { return };
    let bytes_out = exchange.bytes_out;
    let behind = exchange.scratch.as_mut().map(|scratch| std::mem::take(&mut scratch.behind));
    exchange.forget(active.shard);
    if let Instruction::Do(Statement::Send(send)) = active.instruction() {
        active.step_ok(send.step, &Attempt { bytes_out, ..Attempt::default() });
    }
    active.next_step();
    joined_taken(active, &behind.unwrap_or_default());
}

/// Bytes of the reply arrived on a raw stream, perhaps all of them.
pub(in crate::user) fn stream_came(active: &mut Active<'_>, bytes: &[u8], answer: Option<&[u8]>) {
    active.user.tell(|| What::Received(active.user.shown(active.task.line, bytes)));
    if let Doing::Exchange(exchange) = &mut active.task.doing {
        exchange.came(bytes.len() as u64, active.user.now);
    }
    let Some(answer) = answer else { return };
    let looked = Looked::new(None, answer, active.user.now - active.task.due);
    let verdict = judge(active, &looked);
    active.shard.recorder.borrow_mut().interval.traffic.messages.received += 1;
    message_came(active, verdict);
}

/// What this task sent is acknowledged.
pub(super) fn acknowledged(active: &mut Active<'_>, answer: &Acknowledgement<'_>) {
    let mut looked = Looked::new(answer.status, answer.content, active.user.now - active.task.due);
    if !matches!(answer.fields, Fields::None) {
        let line = active.task.line;
        active.user.tell(|| What::Received(active.user.shown(line, answer.content)));
        (looked.whole, looked.fields) = (Some(answer.content), answer.fields);
    }
    looked.refusal = answer.refusal.as_ref();
    answer_came(active, &looked, None);
}

/// The message that the task waits for has arrived.
pub(in crate::user) fn answer_came(
    active: &mut Active<'_>,
    looked: &Looked<'_>,
    packet: Option<Packet>,
) {
    let (shard, line) = (active.shard, active.task.line);
    let instruction = active.instruction();
    let bytes = wire_bytes(active.user.protocol(line), looked.document.bytes());
    let link = active.user.link_in(shard, line);
    let mut wrong = looked.refusal.cloned().or_else(|| wrong_reply(link, instruction, packet));
    let mut parts = None;
    if let Doing::Exchange(exchange) = &mut active.task.doing {
        exchange.came(bytes, active.user.now);
        exchange.status = looked.status.unwrap_or_default();
        let asks = matches!(instruction, Instruction::Do(Statement::Request(_)));
        if let Some(packet) = packet.filter(|packet| packet.goes_on && asks)
            && wrong.is_none()
        {
            let packet = (packet.message, looked.document.bytes());
            return exchange.part_came(packet, instruction, shard);
        }
        if let Some(scratch) = exchange.scratch.as_deref_mut() {
            wrong = wrong.or(scratch.finding.take());
            let came = std::mem::take(&mut scratch.parts);
            parts = Some(came).filter(|parts| asks && parts.count(None) > 0);
        }
    }
    let with_parts = parts.as_ref().map(|parts| looked.with_parts(parts));
    let looked = with_parts.as_ref().unwrap_or(looked);
    let verdict = wrong.map_or_else(|| judge(active, looked), Err);
    if let (Err((cause, _)), Some(step)) = (&verdict, instruction.step()) {
        let mut recorder = shard.recorder.borrow_mut();
        if recorder.is_new(step, *cause, 0) {
            let received = Shown::first(looked.document.bytes(), EVIDENCE_BYTES_MAX);
            recorder.exchange = evidence::Exchange { sent: None, received: Some(received) };
        }
    }
    message_came(active, verdict);
}

/// What the task waits for arrived, good or bad.
pub(in crate::user) fn message_came(active: &mut Active<'_>, verdict: Result<(), Finding>) {
    let Some(exchange) = active.task.take_exchange() else { return };
    let (instruction, plan) = active.at_pc();
    if let Err(finding) = verdict {
        return Unanswered::new(active, exchange).failed(finding, true, Onward::NextStep);
    }
    let line = active.task.line;
    // That a login was answered is not enough: a user that is rejected after each login backs off
    // longer and longer.
    if active.user.is_online() {
        active.user.refusals = 0;
    }
    if matches!(plan, Plan::Answer(AnswerPlan { logs_in: true, .. })) {
        active.user.life(line).logged_in();
    }
    active.saved(instruction.saves());
    if let Some(step) = instruction.step() {
        active.step_ok(step, &exchange.attempt(active.user.now, active.task.due));
    }
    exchange.forget(active.shard);
    active.next_step();
}

impl Exchange {
    /// A packet of a reply that continues. Kept if a check or a save reads its fields.
    fn part_came(
        &mut self,
        (message, packet): (MessageId, &[u8]),
        instruction: &Instruction,
        shard: &Lane,
    ) {
        let is_its = |extractor: &Extractor| match extractor {
            Extractor::Field(paths) => paths.iter().any(|path| path.message == message),
            _ => false,
        };
        let scratch = self.scratch(shard);
        if !scratch.parts.add(message) {
            return;
        }
        let checked = instruction.checks().iter().map(|check| &check.extractor);
        let mut extractors = checked.chain(instruction.saves().iter().map(|save| &save.extractor));
        if !extractors.any(is_its) {
            return;
        }
        match scratch.held.resize(scratch.held.bytes() + packet.len(), &shard.purse) {
            true => scratch.parts.keep(packet),
            false => self.found(shard.purse.refusal(), shard),
        }
    }
}

/// A reply with the correlation number of the request, but of a kind that answers something else.
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

/// Whether the awaited message is good. Saves values of a good one.
fn judge(active: &mut Active<'_>, looked: &Looked<'_>) -> Result<(), Finding> {
    let (instruction, plan) = active.at_pc();
    let Plan::Answer(AnswerPlan { check_plan, .. }) = plan else { return Ok(()) };
    let mut scope = scope!(active.user, active.shard);
    check_plan.judge(instruction.checks(), instruction.saves(), looked, &mut scope)
}

/// The reply on a raw stream that a step waits for.
pub(in crate::user) fn awaited<'a>(
    instruction: &Instruction,
    plan: &'a Plan,
    bytes_max: usize,
) -> Option<AwaitedReply<'a>> {
    let Plan::Answer(AnswerPlan { until, .. }) = plan else { return None };
    let is_kept = !instruction.checks().is_empty() || !instruction.saves().is_empty();
    Some(AwaitedReply { until, bytes_max, is_kept })
}
