//! gRPC calls from their first message to their status: each is an HTTP/2 stream.

use std::io;
use std::task::Context;
use std::time::Duration;

use throng_base::{Random, Said};
use throng_metrics::Cause;
use throng_program::{Call, Opened, Statement};
use throng_protocol::grpc;
use throng_protocol::grpc::{Code, Response, Status};
use throng_protocol::http1::{Head, Headers, RequestKind};
use throng_protocol::http2::Body;
use throng_protocol::protobuf::{MessageType, Schema, Wrong};

use crate::connector::protocol::grpc::CallAsk;
use crate::failure::{Failure, Finding};
use crate::looked::Looked;
use crate::prepared::code::Instruction;
use crate::prepared::{CallHead, CallPlan, Plan};
use crate::recorder::evidence;
use crate::recorder::evidence::EVIDENCE_BYTES_MAX;
use crate::scope::{UserScope, scope};
use crate::shard::Lane;
use crate::shard::scratch::Scratch;
use crate::trace::{Shown, What};
use crate::user::State;
use crate::user::exchange::Exchange;
use crate::user::send::encode_proto;
use crate::user::streams::Asked;
use crate::user::task::{Active, Task};
use crate::user::verb::asking::{Asking, asked, judged};
use crate::verify::look_at_headers;

/// State needed to read the responses of a call.
#[derive(Clone, Copy)]
pub(in crate::user) struct Listened<'a> {
    pub(in crate::user) shard: &'a Lane,
    pub(in crate::user) call: &'a Call,
    pub(in crate::user) plan: &'a CallPlan,
    pub(in crate::user) due: throng_base::Time,
}

/// A running call: the task that makes it, and its step.
struct Calling<'a> {
    shard: &'a Lane,
    user: &'a mut State,
    task: &'a mut Task,
    call: &'a Call,
    plan: &'a CallPlan,
}

/// The verb `grpc`: makes the call, on a new connection if none is open.
pub(in crate::user) fn ask(
    active: &mut Active<'_>,
    call: &Call,
    plan: &CallPlan,
    cx: &mut Context<'_>,
) {
    let Call { link, step, timeout, .. } = *call;
    let started = Asking { active, link, step, timeout }.starts(cx);
    let Some((mut exchange, until)) = started else { return };
    let target = active.user.lines.get(active.task.line).target;
    let sent = Calling::of(active, call, plan).send(target, &mut exchange, cx);
    asked(active, step, (exchange, until), sent);
}

/// The request of a call that stays open.
pub(in crate::user) fn ask_for_call(
    shard: &Lane,
    user: &mut State,
    (opened, head): (&Opened, &CallHead),
    target: u16,
) -> Result<CallAsk, Finding> {
    let (mut block, mut messages) = (Vec::new(), Vec::new());
    let mut scope = scope!(user, shard);
    let written = head.write(opened, target, &mut scope, &mut block);
    written.map_err(|fault| scope.finding(fault))?;
    let Some(schema) = shard.prepared.program.schema.as_deref() else {
        return Err((Cause::GeneratorFailed, Said::of_others("the program has no schema")));
    };
    write_messages(schema, opened, &mut scope, &mut messages)?;
    let goes_on = schema.method(opened.method).kind.streams_requests();
    Ok(CallAsk { block, messages, encoding: goes_on.then_some(opened.encoding) })
}

/// The stream has ended normally: handles the result of the call.
pub(in crate::user) fn call_complete(active: &mut Active<'_>) {
    let (shard, line) = (active.shard, active.task.line);
    let (Instruction::Do(Statement::Call(call)), Plan::Call(plan)) = active.at_pc() else {
        return;
    };
    let Some(mut exchange) = active.task.take_exchange() else { return };
    let (now, due) = (active.user.now, active.task.due);
    if let Some(connection) = active.user.lines.connection_mut(line) {
        connection.used = now;
    }
    let response = exchange.scratch(shard).call.take();
    let ended = response.map(|mut response| (response.replies(), response.end(plan.is_single)));
    let listened = Listened { shard, call, plan, due };
    let mut scope = scope!(active.user, shard);
    let verdict = match ended {
        Some((replies, Ok(status))) => {
            exchange.status = status.code.status();
            if shard.is_traced() {
                trace_status(&listened, &exchange, &status, &scope);
            }
            listened.judge(replies, &status, &mut exchange, &mut scope)
        }
        Some((_, Err(violation))) => Err(violated(&violation)),
        None => Ok(()),
    };
    let attempt = exchange.attempt(now, due);
    if let Err((cause, _)) = &verdict {
        Calling::of(active, call, plan).witness(*cause, &mut exchange);
    }
    judged(active, exchange, &attempt, verdict);
}

impl Listened<'_> {
    pub(in crate::user) fn head(
        &self,
        head: &Head<'_>,
        exchange: &mut Exchange,
    ) -> Result<(), Failure> {
        let fields = head.headers.iter();
        self.fields(head.headers, exchange, |response| response.head(head.status, fields))
    }

    pub(in crate::user) fn trailers(
        &self,
        trailers: Headers<'_>,
        exchange: &mut Exchange,
    ) -> Result<(), Failure> {
        self.fields(trailers, exchange, |response| response.trailers(trailers.iter()))
    }

    /// Headers or trailers arrived. They are checked when all have arrived.
    fn fields(
        &self,
        headers: Headers<'_>,
        exchange: &mut Exchange,
        read: impl FnOnce(&mut Response) -> Result<(), grpc::Violation>,
    ) -> Result<(), Failure> {
        let Scratch { call, metadata, .. } = exchange.scratch(self.shard);
        if let Some(response) = call {
            read(response).map_err(|violation| Failure::from(violated(&violation)))?;
        }
        if self.plan.looks_at_headers {
            metadata.extend_from_slice(headers.as_bytes());
        }
        Ok(())
    }

    /// Bytes of replies arrived.
    pub(in crate::user) fn data(
        &self,
        bytes: &[u8],
        exchange: &mut Exchange,
        scope: &mut UserScope<'_>,
    ) -> Result<(), Failure> {
        let bytes_max = self.shard.prepared.program.limits.message_bytes_max;
        let Some(mut response) = exchange.scratch(self.shard).call.take() else { return Ok(()) };
        let keeps = self.plan.needs_replies || self.shard.is_traced();
        let (mut rest, mut room) = (bytes, Vec::new());
        // After a gRPC violation, the rest is ignored.
        while let Some(message) =
            response.next(&mut rest, bytes_max).map_err(|it| Failure::from(violated(&it)))?
        {
            let number = response.replies() - 1;
            let message =
                message.unpack(bytes_max, &mut room).map_err(|it| Failure::from(violated(&it)))?;
            self.check_reply(number, message, exchange);
            if keeps {
                self.reply(number, message, exchange, scope);
            }
        }
        exchange.scratch(self.shard).call = Some(response);
        Ok(())
    }

    /// A reply that is not of the method's return type is a failure, even if no check reads it.
    fn check_reply(&self, number: u32, message: &[u8], exchange: &mut Exchange) {
        let Some(schema) = self.shard.prepared.program.schema.as_deref() else { return };
        if let Err(Wrong { position, reason }) = schema.check(self.plan.reply, message) {
            let (number, name) = (number + 1, schema.message_name(self.plan.reply));
            let detail =
                say!("reply {number} is not a valid `{name}` at byte {position}: {reason}");
            exchange.found((Cause::Malformed, detail), self.shard);
        }
    }

    /// A reply arrived: the one before it was not the last.
    fn reply(
        &self,
        number: u32,
        message: &[u8],
        exchange: &mut Exchange,
        scope: &mut UserScope<'_>,
    ) {
        if number > 0 {
            let scratch = exchange.scratch(self.shard);
            let looked = self.looked(number, scratch, 0, scope);
            let (checks, look) = &self.plan.of_each;
            let found = look.judge(checks, &[], &looked, scope);
            if let Err(finding) = found {
                exchange.found(finding, self.shard);
            }
            if self.shard.is_traced() {
                let text = text_of(self.shard, self.plan.reply, &exchange.scratch(self.shard).body);
                tell(&text, scope);
            }
            exchange.scratch(self.shard).body.clear();
        }
        exchange.body(message, None, None, self.shard);
    }

    /// The last reply, prepared for checks and expressions, if any has arrived.
    fn looked<'a>(
        &'a self,
        replies: u32,
        scratch: &'a Scratch,
        code: u16,
        scope: &UserScope<'_>,
    ) -> Looked<'a> {
        let mut looked = Looked::new(Some(code), &scratch.body, scope.now - self.due);
        looked.kept = Some(&scratch.kept);
        looked.proto = (replies > 0).then(|| self.shard.prepared.proto(self.plan.reply)).flatten();
        looked
    }

    /// Whether the call succeeded. Saves values of a successful one.
    fn judge(
        &self,
        replies: u32,
        status: &Status,
        exchange: &mut Exchange,
        scope: &mut UserScope<'_>,
    ) -> Result<(), Finding> {
        let code = exchange.status;
        if !CallPlan::wants(&self.call.checks, code) {
            // The deadline is ours, whichever side is the first to report that it has passed.
            let cause = match status.code {
                Code::DeadlineExceeded => Cause::Timeout,
                _ => Cause::GrpcStatus,
            };
            return Err((cause, status.said()));
        }
        let scratch = exchange.scratch(self.shard);
        if let Some(finding) = scratch.finding.take() {
            return Err(finding);
        }
        if self.plan.looks_at_headers {
            let checks = (&*self.call.checks, &*self.call.saves);
            let metadata = Headers::of_lines(&scratch.metadata);
            look_at_headers(
                &self.plan.check_plan,
                checks,
                (code, metadata),
                scope,
                &mut scratch.kept,
            );
        }
        let looked = self.looked(replies, scratch, code, scope);
        self.plan.check_plan.judge(&self.call.checks, &self.call.saves, &looked, scope)
    }
}

impl<'a> Calling<'a> {
    fn of(active: &'a mut Active<'_>, call: &'a Call, plan: &'a CallPlan) -> Calling<'a> {
        Calling { shard: active.shard, user: active.user, task: active.task, call, plan }
    }

    fn send(
        &mut self,
        target: u16,
        exchange: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Result<io::Result<()>, Finding> {
        let (call, plan) = (self.call, self.plan);
        let (shard, line) = (self.shard, self.task.line);
        let again = self.task.take_again();
        let is_fixed = plan.head.is_fixed() && plan.body.is_some();
        let before = match &again {
            Some(again) => again.before.clone(),
            None => (!is_fixed).then(|| (self.user.random.clone(), self.user.now)),
        };
        if let Some(again) = &again {
            exchange.goes_again(again.bytes_out, again.resends, shard);
            shard.recorder.borrow_mut().resent(call.step);
        }
        let mut replayed = again.as_ref().and(before.clone()).map(|(random, _)| random);
        let scratch = exchange.scratch(shard);
        (scratch.before, scratch.call) = (before, Some(Response::new()));
        let (mut block, mut messages) =
            (shard.block_buffer.borrow_mut(), shard.write_buffer.borrow_mut());
        block.clear();
        messages.clear();
        self.write(target, replayed.as_mut(), (&mut block, &mut messages))?;
        exchange.bytes_out += (block.len() + body_of(plan, &messages).len()) as u64;
        let text = || text_of_call(shard, call, body_of(plan, &messages));
        self.user.tell(|| What::Sent(Shown::of(&text())));
        self.enter(again.and_then(|again| again.sent), &messages, exchange);
        let body = match &plan.body {
            Some(body) => Body::Shared(body),
            None => Body::Bytes(&messages),
        };
        let kind = RequestKind::Normal;
        let request = Asked { kind, block: &block, body, body_bytes_max: u64::MAX };
        Ok(self.user.outbound(line).ask(&request, cx).map(|stream| exchange.number = stream))
    }

    /// Writes the header block, and the messages if they differ per user; from the random state of
    /// an earlier try, if there was one.
    fn write(
        &mut self,
        target: u16,
        replayed: Option<&mut Random>,
        (block, messages): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Result<(), Finding> {
        let (call, plan) = (self.call, self.plan);
        let user = &mut *self.user;
        let random = match replayed {
            Some(random) => random,
            None => &mut user.random,
        };
        let mut scope = scope!(user, self.shard, random);
        let written = plan.head.write(&call.opened, target, &mut scope, block);
        written.map_err(|fault| scope.finding(fault))?;
        if plan.body.is_some() {
            return Ok(());
        }
        let Some(schema) = self.shard.prepared.program.schema.as_deref() else { return Ok(()) };
        write_messages(schema, &call.opened, &mut scope, messages)
    }

    /// Enters the delivery of a call into the ledger: its first message.
    fn enter(&mut self, again: Option<(u16, u64)>, messages: &[u8], exchange: &mut Exchange) {
        let (call, plan) = (self.call, self.plan);
        let shard = self.shard;
        let Some(row) = shard.prepared.delivery_of(call.step) else { return };
        let sent = again.or_else(|| {
            let message = call.opened.messages.first()?.template.message();
            let first = messages_in(body_of(plan, messages)).next()?;
            let mut looked = Looked::new(None, first, Duration::ZERO);
            looked.proto = shard.prepared.proto(message);
            self.user.audiences.sent(row, &looked, &mut scope!(self.user, shard))
        });
        exchange.is_delivered(sent, shard);
    }

    /// Keeps what was sent and received, if this is the first failure of its kind.
    fn witness(&mut self, cause: Cause, exchange: &mut Exchange) {
        let (call, plan) = (self.call, self.plan);
        let shard = self.shard;
        if !shard.recorder.borrow().is_new(call.step, cause, exchange.status) {
            return;
        }
        let scratch = exchange.scratch(shard);
        let mut random = scratch.before.take().map(|(random, _)| random);
        let (mut block, mut messages) = (Vec::new(), Vec::new());
        let target = self.user.lines.get(self.task.line).target;
        let room = (&mut block, &mut messages);
        let written = self.write(target, random.as_mut(), room);
        let sent = written.ok().map(|()| {
            let text = text_of_call(shard, call, body_of(plan, &messages));
            Shown::first(&text, EVIDENCE_BYTES_MAX)
        });
        let reply = text_of(shard, plan.reply, &exchange.scratch(shard).body);
        let received = (!reply.is_empty()).then(|| Shown::first(&reply, EVIDENCE_BYTES_MAX));
        shard.recorder.borrow_mut().exchange = evidence::Exchange { sent, received };
    }
}

/// Writes the request messages, each with its prefix.
fn write_messages(
    schema: &Schema,
    opened: &Opened,
    scope: &mut UserScope<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Finding> {
    opened.messages.iter().try_for_each(|message| {
        grpc::write_message(opened.encoding, out, |out| encode_proto(schema, message, scope, out))
    })
}

/// A gRPC violation in a response: the target is at fault.
fn violated(violation: &grpc::Violation) -> Finding {
    let cause = match violation {
        grpc::Violation::TooLarge { .. } => Cause::TooLarge,
        grpc::Violation::Content(_) | grpc::Violation::Encoding(_) => Cause::CodingFailed,
        grpc::Violation::CutOff => Cause::ClosedEarly,
        _ => Cause::Malformed,
    };
    (cause, violation.said())
}

fn body_of<'a>(plan: &'a CallPlan, messages: &'a [u8]) -> &'a [u8] {
    plan.body.as_deref().unwrap_or(messages)
}

/// The messages in a request body, if they are not compressed.
fn messages_in(mut body: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (prefix, rest) = body.split_first_chunk::<{ grpc::PREFIX_BYTES }>()?;
        let [0, length @ ..] = prefix else { return None };
        let (message, behind) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        body = behind;
        Some(message)
    })
}

/// A message in readable form: JSON.
#[cold]
fn text_of(shard: &Lane, message: MessageType, bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    if let Some(schema) = shard.prepared.program.schema.as_deref()
        && !bytes.is_empty()
        && let Ok(value) = schema.message_value(message, bytes)
    {
        value.write_json(&mut text);
    }
    text
}

/// A call in readable form: its method, and its messages as JSON.
#[cold]
fn text_of_call(shard: &Lane, call: &Call, body: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let Some(schema) = shard.prepared.program.schema.as_deref() else { return text };
    let method = schema.method(call.opened.method);
    text.extend_from_slice(method.path.trim_start_matches('/').as_bytes());
    for message in messages_in(body) {
        text.push(b'\n');
        match text_of(shard, method.input, message) {
            empty if empty.is_empty() => text.extend_from_slice(b"{}"),
            written => text.extend_from_slice(&written),
        }
    }
    text
}

#[cold]
fn trace_status(
    listened: &Listened<'_>,
    exchange: &Exchange,
    status: &Status,
    scope: &UserScope<'_>,
) {
    let body = exchange.scratch.as_ref().map_or(&[][..], |scratch| &scratch.body);
    let reply = text_of(listened.shard, listened.plan.reply, body);
    if !reply.is_empty() {
        tell(&reply, scope);
    }
    tell(status.said().english().as_bytes(), scope);
}

#[cold]
fn tell(text: &[u8], scope: &UserScope<'_>) {
    scope.shard.tell(scope.who(), scope.now, || What::Received(Shown::of(text)));
}
