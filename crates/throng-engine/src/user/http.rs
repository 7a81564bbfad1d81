//! HTTP requests and their answers.

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use throng_base::{Random, Time};
use throng_expression::Fault;
use throng_metrics::Cause;
use throng_program::{Check, Http, Instruction, Save, Text, Trace};
use throng_protocol::http1::{ContentDecoder, CookieLimits, Event, Head, Jar, retry_after};

use super::answer::{Answer, coding_failed};
use super::flow::at_pc;
use super::link::{Connection, Ended, Peer};
use super::outcome::Onward;
use super::redirect::{self, Redirect};
use super::{Doing, User};
use crate::connector::{Failure, http_failure};
use crate::evidence::{EVIDENCE_BYTES_MAX, Exchange};
use crate::memory::Origin;
use crate::prepared::{HttpPlan, Plan, PreparedTarget, Written};
use crate::recorder::Attempt;
use crate::scope::{UserScope, scope};
use crate::shard::Shard;
use crate::template::{Detour, Extras, Parts, Place, Template};
use crate::trace::{Shown, What, Who};
use crate::verify::{Finding, Looked, look_at_headers};

/// A request that is sent once more, as the target had closed the connection before it came.
pub(super) struct Again {
    /// As long as it was written to the connection that was closed.
    bytes_out: u64,
    /// Chance and time as they were when it was written; None where neither is in it.
    before: Option<(Random, Time)>,
    /// What of it is in the ledger.
    sent: Option<(u16, u64)>,
    /// Which step it was, and which doing of it.
    pc: u32,
    due: Time,
}

/// What follows such an answer is another protocol (RFC 9110, 15.2.2).
const SWITCHING_PROTOCOLS: u16 = 101;
/// The words for a close that met a request on its way.
// sentences
const CLOSED_WHILE_IDLE: &str =
    "the target closed the idle connection just when the request was sent";

/// Why a request was not sent.
enum Unsent {
    /// It could not be written.
    Fault(Finding),
    Broken(io::Error),
}

/// What the sink of the response machine needs to know.
struct Listening<'a> {
    shard: &'a Shard,
    http: &'a Http,
    plan: &'a HttpPlan,
    redirect: Option<&'a Redirect>,
    target: u16,
    unix_seconds: u64,
}

impl User {
    /// The verb `http`: sends the request, on a new connection if there is none.
    pub(super) fn http(&mut self, http: &Http, plan: &HttpPlan, cx: &mut Context<'_>) {
        if plan.leads
            && self.redirect.is_none()
            && let Err(finding) = self.lead(http)
        {
            self.flight_begins(http.step);
            self.withdraw_again();
            let nothing = Attempt::default();
            return self.step_failed(http.step, &nothing, finding, Onward::NextStep);
        }
        let target = self.redirect.as_ref().map_or(self.target, |redirect| redirect.target);
        let fits = self.connection.as_ref().map(|connection| connection.target == target);
        if fits == Some(false) {
            self.drop_connection(Ended::ByUs);
        }
        if fits != Some(true) {
            self.flight_begins(http.step);
            let connect = self.shard.prepared.program.connection.connect_timeout;
            return self.open(target, None, connect.min(http.timeout));
        }
        self.flight_begins(http.step);
        // What has come of its end since its last answer is no matter of this request.
        let reused = self.connection.as_ref().is_some_and(|one| one.used > Time::ZERO);
        if reused {
            self.listen(cx);
            if self.connection.is_none() {
                return;
            }
        }
        let mut answer = Answer { reused, ..Answer::default() };
        let sent = self.send_request(http, plan, target, &mut answer, cx);
        if let Err(Unsent::Fault(finding)) = sent {
            self.redirect = None;
            self.forget(answer);
            let nothing = Attempt::default();
            return self.step_failed(http.step, &nothing, finding, Onward::NextStep);
        }
        if let Some(Connection { peer: Peer::Http(reader), .. }) = &mut self.connection {
            reader.expect(plan.kind);
        }
        self.wait_for(Doing::Answer(answer), self.now + http.timeout);
        if let Err(Unsent::Broken(error)) = sent {
            self.unsendable(error);
        }
    }

    /// A path that begins with a value may be a URL that an answer has given, or a part of one: it
    /// leads to the target that it names, and counts from the request it came from.
    fn lead(&mut self, http: &Http) -> Result<(), Finding> {
        let shard = Rc::clone(&self.shard);
        // What is drawn here is drawn again when the request is written.
        let mut random = self.random.clone();
        let mut rendered = shard.content_buffer.borrow_mut();
        rendered.clear();
        let mut scope = scope!(self, &shard, &mut random);
        let done = http.path.render_reference(&mut rendered, &mut scope);
        done.map_err(|fault| scope.finding(fault))?;
        let reference = String::from_utf8_lossy(&rendered);
        let is_path = reference.starts_with('/') && !reference.starts_with("//");
        if is_path || reference.is_empty() {
            return Ok(());
        }
        let (target, path) = self.resolve(&http.path, &reference)?;
        let redirect =
            Redirect { target, path, as_get: false, count: 0, bytes: (0, 0), before: None };
        self.redirect = Some(Box::new(redirect));
        Ok(())
    }

    /// The target and the path that a reference means (RFC 3986, 5.2), seen from the request that
    /// the value came from with which it begins; one that came from none counts from `/`.
    pub(super) fn resolve(&self, text: &Text, reference: &str) -> Result<(u16, String), Finding> {
        let slots = text.begins_with().map(|value| value.slots().needed).unwrap_or_default();
        let origin = self.memory.as_ref().and_then(|memory| memory.origin(*slots.first()?));
        let (here, path) = origin.map_or((self.target, "/"), |one| (one.target, &*one.path));
        let targets = &self.shard.prepared.program.targets;
        redirect::resolve(reference, here, path, targets)
            .map_err(|reason| (Cause::ScenarioFailed, reason))
    }

    /// Notes which request those saved values came from that paths begin with.
    fn note_origins(&mut self, http: &Http, plan: &HttpPlan, answer: &Answer) {
        if plan.links.is_empty() {
            return;
        }
        let target = self.redirect.as_ref().map_or(self.target, |redirect| redirect.target);
        let path: Box<str> = path_of(http, self.redirect.as_deref(), answer).into();
        for slot in &plan.links {
            self.memory().came_from(*slot, Origin { target, path: path.clone() });
        }
    }

    /// Sends the request by one write. One that is the same for all users lies there already, and
    /// so does a long body that is.
    fn send_request(
        &mut self,
        http: &Http,
        plan: &HttpPlan,
        target: u16,
        answer: &mut Answer,
        cx: &mut Context<'_>,
    ) -> Result<(), Unsent> {
        let shard = Rc::clone(&self.shard);
        let again = self.again.take().filter(|again| (again.pc, again.due) == (self.pc, self.due));
        let fixed = match (&self.redirect, &plan.written) {
            (None, Written::Fixed(fixed)) => fixed.get(usize::from(target)),
            _ => None,
        };
        let plain = again.is_none() && shard.prepared.program.trace.is_none();
        let has_cookies = self.jar.as_ref().is_some_and(|jar| !jar.is_empty());
        let broken = Unsent::Broken;
        let body = plan.body.as_ref().filter(|_| !self.goes_as_get());
        if let (Some(fixed), true, false) = (fixed, plain, has_cookies) {
            answer.request_bytes = (fixed.bytes.len() + length(body)) as u64;
            answer.bytes_out = answer.request_bytes;
            if shard.is_traced() {
                self.trace_sent(&whole(&fixed.bytes, body));
            }
            self.enter_request(http, (&fixed.bytes, body), None, answer);
            return self.send_with(&fixed.bytes, body, cx).map_err(broken);
        }
        let mut buffer = shard.write_buffer.borrow_mut();
        buffer.clear();
        let again = again.as_deref();
        if let Some(again) = again {
            answer.bytes_out = again.bytes_out;
            shard.recorder.borrow_mut().resent(http.step);
        }
        let written = self.write_request(http, plan, target, again, answer, &mut buffer);
        written.map_err(Unsent::Fault)?;
        answer.request_bytes = (buffer.len() + length(body)) as u64;
        answer.bytes_out += answer.request_bytes;
        if shard.is_traced() {
            self.trace_sent(&whole(&buffer, body));
        }
        self.enter_request(http, (&buffer, body), again, answer);
        self.send_with(&buffer, body, cx).map_err(broken)
    }

    /// Whether a redirect has taken the body away.
    fn goes_as_get(&self) -> bool {
        self.redirect.as_ref().is_some_and(|redirect| redirect.as_get)
    }

    /// Enters into the ledger what a request asks to be delivered to others.
    fn enter_request(
        &mut self,
        http: &Http,
        (written, body): (&[u8], Option<&Arc<[u8]>>),
        again: Option<&Again>,
        answer: &mut Answer,
    ) {
        let shard = Rc::clone(&self.shard);
        let Some(row) = shard.prepared.delivery_of(http.step) else { return };
        // What is sent once more, or sent elsewhere, is the same message.
        let followed = self.redirect.as_ref().filter(|redirect| redirect.is_followed());
        let sent = match (again, followed) {
            (Some(again), _) => again.sent,
            (None, Some(_)) => return,
            (None, None) => {
                let head_end = || memchr::memmem::find(written, b"\r\n\r\n");
                let behind = || head_end().map_or(&[][..], |end| &written[end + 4..]);
                let body = body.map_or_else(behind, |body| &body[..]);
                self.enter_sent(row, &Looked::new(None, body, Duration::ZERO))
            }
        };
        if sent.is_some() {
            answer.rare(&shard).sent = sent;
        }
    }

    /// A request that was to be sent once more is not.
    pub(super) fn withdraw_again(&mut self) {
        if let Some((row, id)) = self.again.take().and_then(|again| again.sent) {
            self.withdraw_sent(row, id);
        }
    }

    /// The request has failed: what it asked to be delivered is not expected anywhere.
    fn withdraw_request(&self, answer: &Answer) {
        if let Some((row, id)) = answer.rare.as_ref().and_then(|rare| rare.sent) {
            self.withdraw_sent(row, id);
        }
    }

    /// Writes a request that differs from user to user, or from time to time; without a body that
    /// lies elsewhere.
    ///
    /// All chance in it follows from what it was before, so that the same request can be written
    /// once more: for a connection that was closed, and for a redirect.
    fn write_request(
        &mut self,
        http: &Http,
        plan: &HttpPlan,
        target: u16,
        again: Option<&Again>,
        answer: &mut Answer,
        out: &mut Vec<u8>,
    ) -> Result<(), Finding> {
        let shard = Rc::clone(&self.shard);
        let redirect = self.redirect.as_deref();
        let earlier = match (redirect.filter(|redirect| redirect.is_followed()), again) {
            (Some(redirect), _) => Some(redirect.before.clone()),
            (None, Some(again)) => Some(again.before.clone()),
            (None, None) => None,
        };
        let before = earlier.clone().unwrap_or_else(|| Some((self.random.clone(), self.now)));
        let (mut replayed, now) = before.clone().unwrap_or((Random::new(0), self.now));
        let random = match earlier {
            Some(_) => &mut replayed,
            None => &mut self.random,
        };
        let trace = shard.prepared.program.trace.as_ref().filter(|_| before.is_some());
        let drawn = trace.and_then(|trace| draw_trace(trace, random));
        let rare = answer.rare(&shard);
        rare.before = before;
        rare.trace = drawn.as_ref().map(|(id, _)| *id);
        let place = &shard.prepared.targets[usize::from(target)];
        let extras = Extras {
            authority: &place.authority,
            jar: self.jar.as_deref().map(|jar| (jar, place_of(place, &shard, self.now))),
            trace: trace.zip(drawn.as_ref()).map(|(trace, drawn)| (&*trace.header, &drawn.1[..])),
        };
        let mut scope = scope!(self, &shard, random);
        scope.now = now;
        let path = &mut rare.path;
        let written = match (redirect, &plan.written) {
            (Some(redirect), _) => {
                write_redirected(http, redirect, &extras, &mut scope, path, out).map(drop)
            }
            (None, Written::Fixed(fixed)) => {
                let path = http.path.as_literal().unwrap_or_default();
                fixed[usize::from(target)].write(path, &extras, out);
                Ok(())
            }
            (None, Written::Varies(template)) => {
                template.render(http, &extras, &mut scope, path, out).map(drop)
            }
        };
        written.map_err(|fault| scope.finding(fault))
    }

    /// What an answer needed goes back to the shard.
    fn forget(&self, answer: Answer) {
        if let Some(rare) = answer.rare {
            rare.give_back(&self.shard);
        }
    }

    /// Bytes of an answer came.
    pub(super) fn http_received(&mut self, bytes: &[u8]) {
        at_pc!(self, shard, instruction, plan);
        let unix_seconds = unix_seconds(&shard, self.now);
        let (Doing::Answer(answer), Instruction::Http(http), Plan::Http(plan)) =
            (&mut self.doing, instruction, plan)
        else {
            return self.unasked();
        };
        let Some(Connection { peer: Peer::Http(reader), target, .. }) = &mut self.connection else {
            return;
        };
        if answer.bytes_in == 0 {
            answer.first_byte = self.now;
        }
        answer.bytes_in += bytes.len() as u64;
        let (redirect, target) = (self.redirect.as_deref(), *target);
        let listening = Listening { shard: &shard, http, plan, redirect, target, unix_seconds };
        let prepared = &shard.prepared;
        let limits = match plan.needs_body {
            true => &prepared.http_limits,
            false => &prepared.http_limits_unkept,
        };
        let jar = &mut self.jar;
        let mut scope = scope!(self, &shard);
        // Where the body is in `bytes`, as long as it is there and nowhere else.
        let mut whole: Option<Range<usize>> = None;
        let mut sink = |event: Event<'_>| match event {
            Event::Head(head) => listening.head(&head, answer, jar, &mut scope),
            Event::Body(piece) if plan.needs_body => {
                answer.body(piece, bytes, &mut whole, plan.streamed.as_deref(), &shard);
            }
            Event::Body(piece) => answer.witness_body(piece),
            Event::Informational(_) | Event::Trailers(_) => {}
        };
        match reader.receive(bytes, limits, &mut sink) {
            Ok(progress) if progress.complete => {
                let surplus = bytes.len() - progress.consumed;
                if surplus > 0 && answer.status != SWITCHING_PROTOCOLS {
                    answer.found((Cause::Malformed, beyond_the_end(surplus)), &shard);
                }
                self.answer_complete(surplus == 0, whole.and_then(|range| bytes.get(range)));
            }
            Ok(_) => {
                answer.keep_body(bytes, &mut whole, plan.streamed.as_deref(), &shard);
                if answer.status == 0 && shard.is_traced() {
                    self.trace_received(bytes);
                }
            }
            Err(error) => {
                if shard.is_traced() {
                    self.trace_received(bytes);
                }
                let failure = http_failure(&error);
                self.lost(&failure, Ended::ByUs);
            }
        }
    }

    /// Bytes came that answer nothing: the connection cannot be trusted any more.
    fn unasked(&mut self) {
        self.shard.recorder.borrow_mut().messages.unasked += 1;
        self.drop_connection(Ended::ByUs);
    }

    /// The answer is complete, by the end of its connection.
    pub(super) fn answered(&mut self, reusable: bool) {
        self.answer_complete(reusable, None);
    }

    /// The answer is complete; its body is in `whole`, or was kept.
    fn answer_complete(&mut self, reusable: bool, whole: Option<&[u8]>) {
        at_pc!(self, shard, instruction, plan);
        let Doing::Answer(mut answer) = std::mem::replace(&mut self.doing, Doing::Step) else {
            return;
        };
        let (Instruction::Http(http), Plan::Http(plan)) = (instruction, plan) else { return };
        // Where the answer came before all of the request was sent, the rest of it is not wanted.
        let reusable = reusable && self.is_sent() && !answer.is_cut_off();
        let keeps = reusable && answer.keep_alive && shard.prepared.program.connection.keep_alive;
        if let Some(connection) = &mut self.connection {
            connection.used = self.now;
        }
        if let Some(location) = answer.rare.as_mut().and_then(|rare| rare.location.take()) {
            match self.follow(http, &answer, &location) {
                Ok(()) => {
                    self.forget(answer);
                    return self.keep_connection(keeps, reusable);
                }
                Err(detail) => answer.found((Cause::RedirectFailed, detail), &shard),
            }
        }
        let (attempt, verdict) = self.judge(http, plan, &mut answer, whole);
        match &verdict {
            Ok(()) => self.note_origins(http, plan, &answer),
            Err((cause, _)) => self.witness(*cause, &answer, whole),
        }
        self.redirect = None;
        match verdict {
            Ok(()) => {
                self.refusals = 0;
                self.trace_saves(&http.saves);
                self.step_ok(http.step, &attempt);
                self.next_step();
            }
            Err((cause, detail)) => {
                self.withdraw_request(&answer);
                let finding = (cause, answer.traced(detail));
                self.step_failed(http.step, &attempt, finding, Onward::NextStep);
            }
        }
        self.forget(answer);
        self.keep_connection(keeps, reusable);
    }

    /// What becomes of the connection of an answer. The side that closes first keeps the port for
    /// a minute: that is left to the target, which was asked to close or has said that it will.
    fn keep_connection(&mut self, keeps: bool, reusable: bool) {
        match (keeps, reusable) {
            (true, _) => {}
            (false, true) => self.leave_to_target(),
            (false, false) => self.drop_connection(Ended::ByUs),
        }
    }

    /// Tells what was kept of an answer.
    pub(super) fn trace_saves(&mut self, saves: &[Save]) {
        if !self.shard.is_traced() {
            return;
        }
        for save in saves {
            let value = self.memory().values.get(usize::from(save.slot)).cloned();
            self.trace_saved(save.slot, &value.unwrap_or_default());
        }
    }

    /// Whether the answer is good or bad. What is to be kept of a good one is kept.
    fn judge(
        &mut self,
        http: &Http,
        plan: &HttpPlan,
        answer: &mut Answer,
        whole: Option<&[u8]>,
    ) -> (Attempt, Result<(), Finding>) {
        let mut attempt = answer.attempt(self.now, self.due);
        if let Some(redirect) = &self.redirect {
            attempt.bytes_in += redirect.bytes.0;
            attempt.bytes_out += redirect.bytes.1;
        }
        if self.shard.is_traced() {
            self.trace_body(answer, whole);
        }
        let finding = answer.rare.as_mut().and_then(|rare| {
            let unfinished = || rare.decoder.as_ref()?.finish().err();
            rare.finding.take().or_else(|| unfinished().map(|error| coding_failed(&error)))
        });
        if let Some(finding) = finding {
            return (attempt, Err(finding));
        }
        let rare = answer.rare.as_deref();
        let body = whole.or(rare.map(|rare| &rare.body[..])).unwrap_or_default();
        let mut looked = Looked::new(Some(answer.status), body, self.now - self.due);
        looked.kept = rare.map(|rare| &rare.kept);
        looked.tally = rare.and_then(|rare| rare.tally.as_ref());
        let shard = Rc::clone(&self.shard);
        let mut scope = scope!(self, &shard);
        let verdict = plan.look.judge(&http.checks, &http.saves, &looked, &mut scope);
        (attempt, verdict)
    }

    /// Prepares the request that answers a redirect; the same instruction is done again.
    fn follow(&mut self, http: &Http, answer: &Answer, location: &str) -> Result<(), String> {
        let max = self.shard.prepared.program.limits.redirects_max;
        let (count, as_get, bytes) = match &self.redirect {
            Some(before) => (before.count + 1, before.as_get, before.bytes),
            None => (1, false, (0, 0)),
        };
        let bytes = (bytes.0 + answer.bytes_in, bytes.1 + answer.bytes_out);
        if count > max {
            let detail = format!("more than {max} redirects");
            return Err(detail);
        }
        let here = self.redirect.as_ref().map_or(self.target, |redirect| redirect.target);
        let path = path_of(http, self.redirect.as_deref(), answer);
        let targets = &self.shard.prepared.program.targets;
        // sentences
        let (target, path) = redirect::resolve(location, here, &path, targets)
            .map_err(|reason| format!("redirect {count} not followed: {reason}"))?;
        let as_get = as_get || redirect::becomes_get(answer.status, &http.method);
        let before = match &self.redirect {
            Some(redirect) if redirect.is_followed() => redirect.before.clone(),
            _ => answer.rare.as_ref().and_then(|rare| rare.before.clone()),
        };
        self.redirect = Some(Box::new(Redirect { target, path, as_get, count, bytes, before }));
        Ok(())
    }

    /// No complete answer in time. The connection is of no more use.
    pub(super) fn answer_timed_out(&mut self, answer: Answer) {
        self.drop_connection(Ended::TimedOut);
        let waited = throng_base::units::format_duration(self.now - self.due);
        let detail = match (answer.bytes_in, answer.status) {
            (0, _) => format!("no byte of an answer after {waited}"),
            (bytes, 0) => format!("{bytes} bytes of a head after {waited}"),
            (bytes, status) => format!("status {status} and {bytes} bytes after {waited}"),
        };
        self.answer_failed(answer, Cause::Timeout, detail, true);
    }

    /// Whether the target closed an idle connection just as we used it again: it ended in order
    /// (RFC 9112, 9.3.1), without a byte of an answer, and the target's host acknowledges nothing
    /// of the request. One that it had taken before it closed was dropped by the target.
    pub(super) fn is_unheard(&self, ended: Ended) -> bool {
        let Doing::Answer(answer) = &self.doing else { return false };
        let Some(connection) = &self.connection else { return false };
        let idle = answer.reused && answer.bytes_in == 0 && ended == Ended::ByTarget;
        idle && connection.took_nothing(answer.request_bytes)
    }

    /// The connection is gone before the answer was complete.
    pub(super) fn answer_lost(&mut self, answer: Answer, failure: &Failure, unheard: bool) {
        at_pc!(self, shard, _instruction, plan);
        let idempotent = matches!(plan, Plan::Http(plan) if plan.idempotent);
        if unheard && idempotent && shard.prepared.program.connection.resend {
            // The request is sent once more, over a new connection, and its time goes on.
            let before = answer.rare.as_ref().and_then(|rare| rare.before.clone());
            let sent = answer.rare.as_ref().and_then(|rare| rare.sent);
            let (bytes_out, pc, due) = (answer.bytes_out, self.pc, self.due);
            self.again = Some(Box::new(Again { bytes_out, before, sent, pc, due }));
            self.forget(answer);
            self.doing = Doing::Step;
            return;
        }
        let detail = if unheard { CLOSED_WHILE_IDLE } else { &failure.detail };
        self.answer_failed(answer, failure.cause, detail.to_string(), false);
    }

    /// The rest of a request, or all of it, could not be sent. A target that refuses a body before
    /// it has read it says so and closes (RFC 9112, 9.6): what it has said is read first.
    pub(super) fn unsendable(&mut self, error: io::Error) {
        let shard = Rc::clone(&self.shard);
        let Doing::Answer(answer) = &mut self.doing else { return self.broken(&error) };
        answer.rare(&shard).unsendable = Some(error);
        if let Some(connection) = &mut self.connection {
            connection.forget_unsent();
        }
    }

    /// Why the request was not sent to its end, once nothing more is to be read.
    pub(super) fn take_unsendable(&mut self) -> Option<io::Error> {
        let Doing::Answer(answer) = &mut self.doing else { return None };
        answer.rare.as_mut()?.unsendable.take()
    }

    /// The same while nothing is to be read, if nothing more can come. Where writing tells of a
    /// reset before the runtime does, what the target said before is read when it does.
    pub(super) fn take_unsendable_for_good(&mut self) -> Option<io::Error> {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        let Doing::Answer(answer) = &mut self.doing else { return None };
        let unsendable = &mut answer.rare.as_mut()?.unsendable;
        unsendable.take_if(|error| !matches!(error.kind(), BrokenPipe | ConnectionReset))
    }

    /// Keeps what was sent and what came, if this is the first failure of its kind.
    fn witness(&mut self, cause: Cause, answer: &Answer, whole: Option<&[u8]>) {
        at_pc!(self, shard, instruction, plan);
        let (Instruction::Http(http), Plan::Http(plan)) = (instruction, plan) else { return };
        if !shard.recorder.borrow().is_new(http.step, cause, answer.status) {
            return;
        }
        let sent = self.written_again(http, plan, answer);
        let rare = answer.rare.as_deref();
        let mut received = rare.map(|rare| rare.witnessed.clone()).unwrap_or_default();
        let body = whole.or(rare.map(|rare| &rare.body[..])).unwrap_or_default();
        let room = EVIDENCE_BYTES_MAX.saturating_sub(received.len());
        received.extend_from_slice(&body[..body.len().min(room)]);
        let length = answer.bytes_in.max(received.len() as u64);
        let received = (!received.is_empty()).then_some(Shown { bytes: received, length });
        shard.recorder.borrow_mut().exchange = Exchange { sent, received };
    }

    /// The request as it was sent. Cookies may be those of the answer already.
    fn written_again(&mut self, http: &Http, plan: &HttpPlan, answer: &Answer) -> Option<Shown> {
        let before = answer.rare.as_ref().and_then(|rare| rare.before.clone());
        let target = self.redirect.as_ref().map_or(self.target, |redirect| redirect.target);
        if before.is_none() && self.redirect.is_none() {
            let Written::Fixed(fixed) = &plan.written else { return None };
            let request = fixed.get(usize::from(target))?;
            let request = whole(&request.bytes, plan.body.as_ref());
            return Some(Shown::first(&request, EVIDENCE_BYTES_MAX));
        }
        let again = Again { bytes_out: 0, before, sent: None, pc: self.pc, due: self.due };
        let (mut other, mut out) = (Answer::default(), Vec::new());
        let written = self.write_request(http, plan, target, Some(&again), &mut other, &mut out);
        self.forget(other);
        let body = plan.body.as_ref().filter(|_| !self.goes_as_get());
        written.ok().map(|()| Shown::first(&whole(&out, body), EVIDENCE_BYTES_MAX))
    }

    fn answer_failed(&mut self, answer: Answer, cause: Cause, detail: String, timed: bool) {
        at_pc!(self, _shard, instruction, _plan);
        self.witness(cause, &answer, None);
        self.redirect = None;
        let mut attempt = answer.attempt(self.now, self.due);
        if !timed {
            attempt.latency = None;
        }
        self.withdraw_request(&answer);
        let finding = (cause, answer.traced(detail));
        self.forget(answer);
        if let Instruction::Http(http) = instruction {
            self.step_failed(http.step, &attempt, finding, Onward::NextStep);
        }
    }
}

impl Listening<'_> {
    fn head(
        &self,
        head: &Head<'_>,
        answer: &mut Answer,
        jar: &mut Option<Box<Jar>>,
        scope: &mut UserScope<'_>,
    ) {
        let Listening { shard, http, plan, .. } = self;
        answer.status = head.status;
        answer.keep_alive = head.keep_alive && !head.upgrade;
        if shard.is_traced() {
            trace_head(head, scope);
        }
        if is_failure(head.status, http) {
            let recorder = shard.recorder.borrow();
            if recorder.is_new(http.step, Cause::StatusUnexpected, head.status) {
                let rare = answer.rare(shard);
                rare.witnessed = text_of_head(head);
                rare.witnessed.extend_from_slice(b"\r\n");
            }
        }
        if plan.looks_at_headers {
            let (checks, kept) = ((&*http.checks, &*http.saves), &mut answer.rare(shard).kept);
            look_at_headers(&plan.look, checks, (head.status, head.headers), scope, kept);
        }
        if plan.needs_body {
            let limit = shard.prepared.program.limits.body_bytes_max;
            match ContentDecoder::for_head(head, limit) {
                Ok(None) => {}
                Ok(decoder) => answer.rare(shard).decoder = decoder,
                Err(error) => answer.found(coding_failed(&error), shard),
            }
        }
        if http.failing.retry.is_some()
            && head.status >= 300
            && let Some(value) = head.headers.get("retry-after")
            && let Some(seconds) = retry_after(value, self.unix_seconds)
        {
            answer.rare(shard).retry_after_s = seconds;
        }
        if http.follow_redirects && redirect::is_redirect(head.status) {
            let location = head.headers.get("location").map(String::from_utf8_lossy);
            answer.rare(shard).location = location.map(Cow::into_owned);
        }
        if head.has_set_cookie && shard.prepared.program.connection.cookies {
            let target = &shard.prepared.targets[usize::from(self.target)].target;
            let path = path_of(http, self.redirect, answer);
            let (jar, limits) = (jar.get_or_insert_default(), CookieLimits::default());
            let secure = target.scheme.is_secure();
            for value in head.headers.get_all("set-cookie") {
                jar.store(value, &target.host, &path, secure, self.unix_seconds, &limits);
            }
        }
    }
}

/// How long a body is that lies elsewhere.
fn length(body: Option<&Arc<[u8]>>) -> usize {
    body.map_or(0, |body| body.len())
}

/// A request with the body that lies elsewhere, for who looks at it.
#[cold]
fn whole<'a>(written: &'a [u8], body: Option<&Arc<[u8]>>) -> Cow<'a, [u8]> {
    match body {
        Some(body) => [written, body].concat().into(),
        None => written.into(),
    }
}

// sentences
fn beyond_the_end(bytes: usize) -> String {
    format!("bytes came beyond the end of the answer, at least {bytes} of them")
}

/// Whether the status alone makes a step fail.
fn is_failure(status: u16, http: &Http) -> bool {
    let mut wanted = http.checks.iter().filter_map(Check::status).peekable();
    match wanted.peek() {
        None => status >= 400,
        Some(_) => wanted.any(|set| !set.contains(status)),
    }
}

#[cold]
fn text_of_head(head: &Head<'_>) -> Vec<u8> {
    let reason = String::from_utf8_lossy(head.reason);
    let mut text = format!("HTTP/1.{} {} {reason}", head.version_minor, head.status);
    text.truncate(text.trim_end().len());
    text.push_str("\r\n");
    let mut text = text.into_bytes();
    text.extend_from_slice(head.headers.as_bytes());
    text
}

/// Tells the head of an answer.
#[cold]
fn trace_head(head: &Head<'_>, scope: &UserScope<'_>) {
    let text = text_of_head(head);
    let who = Who { user: scope.id, session: scope.session, iteration: scope.iterations };
    scope.shard.tell(who, scope.now, || What::Received(Shown::of(&text)));
}

/// Path and query as they were sent.
fn path_of<'a>(http: &'a Http, redirect: Option<&'a Redirect>, answer: &'a Answer) -> Cow<'a, str> {
    let written = || answer.rare.as_ref().map_or(&[][..], |rare| &rare.path);
    match (redirect, http.path.as_literal()) {
        (Some(redirect), _) => Cow::Borrowed(&redirect.path),
        (None, Some(literal)) => String::from_utf8_lossy(literal),
        (None, None) => String::from_utf8_lossy(written()),
    }
}

/// The request that answers a redirect.
fn write_redirected(
    http: &Http,
    redirect: &Redirect,
    extras: &Extras<'_>,
    scope: &mut UserScope<'_>,
    path: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Parts, Fault> {
    let keep_alive = scope.shard.prepared.program.connection.keep_alive;
    let detour = Detour { path: Some(&redirect.path), as_get: redirect.as_get };
    let template = Template::new(http, keep_alive, detour);
    // The chance that was in the first path is not for what follows it.
    http.path.render(path, scope)?;
    path.clear();
    path.extend_from_slice(redirect.path.as_bytes());
    template.render(http, extras, scope, path, out)
}

/// For whom a jar is opened.
fn place_of<'a>(target: &'a PreparedTarget, shard: &Shard, now: Time) -> Place<'a> {
    let secure = target.target.scheme.is_secure();
    Place { host: &target.target.host, secure, unix_seconds: unix_seconds(shard, now) }
}

fn unix_seconds(shard: &Shard, now: Time) -> u64 {
    shard.unix_nanos(now) / 1_000_000_000
}

/// The trace id of a request, if it has one, and the header's value (W3C Trace Context, 3.2).
fn draw_trace(trace: &Trace, random: &mut Random) -> Option<(u128, [u8; 55])> {
    if !random.chance(trace.share) {
        return None;
    }
    // Neither of the ids may be all zeros.
    let id = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64()) | 1;
    let parent = random.next_u64() | 1;
    let mut value = [0; 55];
    // It is as long as its value.
    let _ = write!(&mut value[..], "00-{id:032x}-{parent:016x}-01");
    Some((id, value))
}
