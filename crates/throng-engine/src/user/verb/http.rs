//! HTTP requests and their responses.

mod digest;
mod follow;

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::io::Write as _;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use digest::insert_authorization;
use throng_base::{Random, Said, Time};
use throng_expression::EvaluationError;
use throng_metrics::Cause;
use throng_program::{Check, Http, Statement, Text, Trace};
use throng_protocol::http1::digest::Challenge;
use throng_protocol::http1::{ContentDecoder, Head, Headers, Jar, retry_after};
use throng_protocol::http2;
use throng_protocol::http2::Body;
use throng_protocol::machine::Machine;

use crate::failure::{Ended, Finding};
use crate::looked::Looked;
use crate::prepared::code::Instruction;
use crate::prepared::cookies::{CookiePlace, SeenFrom};
use crate::prepared::template::{Detour as Way, Extras, Parts, SentTo, Template, own_host};
use crate::prepared::{HttpPlan, Plan, Written};
use crate::recorder::Attempt;
use crate::recorder::evidence;
use crate::recorder::evidence::EVIDENCE_BYTES_MAX;
use crate::scope::memory::Origin;
use crate::scope::{UserScope, scope};
use crate::shard::Lane;
use crate::shard::scratch::Sample;
use crate::trace::{Shown, What, text_of_head};
use crate::user::connection::Connection;
use crate::user::exchange::Exchange;
use crate::user::exchange::answer::coding_failed;
use crate::user::outcome::Onward;
use crate::user::redirect::{Again, Redirect, path_of};
use crate::user::streams::Asked;
use crate::user::task::{Active, Task};
use crate::user::verb::asking::{Asking, asked, judged};
use crate::user::{State, jar, redirect, watched};
use crate::verify::look_at_headers;

/// After this status, the connection speaks another protocol (RFC 9110, 15.2.2).
const SWITCHING_PROTOCOLS: u16 = 101;
const UNAUTHORIZED: u16 = 401;

/// A running request: the task that sends it, and its step. The request is written and its response
/// judged here; the task decides how the step ends.
struct Request<'a> {
    shard: &'a Lane,
    user: &'a mut State,
    task: &'a mut Task,
    http: &'a Http,
    plan: &'a HttpPlan,
}

/// State needed to read the response of a request.
pub(in crate::user) struct Listening<'a> {
    pub(in crate::user) shard: &'a Lane,
    pub(in crate::user) http: &'a Http,
    pub(in crate::user) plan: &'a HttpPlan,
    pub(in crate::user) redirect: Option<&'a Redirect>,
    pub(in crate::user) target: u16,
}

/// The verb `http`: sends the request, on a new connection if none is open.
pub(in crate::user) fn ask(
    active: &mut Active<'_>,
    http: &Http,
    plan: &HttpPlan,
    cx: &mut Context<'_>,
) {
    let Http { link, step, timeout, .. } = *http;
    if !(Asking { active, link, step, timeout }).takes_line() {
        return;
    }
    let line = active.task.line;
    if plan.leads
        && active.task.redirect().is_none()
        && let Err(finding) = Request::of(active, http, plan).lead()
    {
        active.flight_begins(http.step);
        active.task.withdraw_again(active.shard, active.user.now);
        let nothing = Attempt::default();
        return active.step_failed(http.step, &nothing, finding, Onward::NextStep);
    }
    let target = Request::of(active, http, plan).goes_to();
    let mut asking = Asking { active, link, step, timeout };
    let Some(mut exchange) = asking.begins(target, cx) else { return };
    let until = asking.until();
    // If this request follows a response, the try started with the first.
    if let Some(redirect) = active.task.redirect() {
        exchange.sent = redirect.sent.min(exchange.sent);
    }
    let sent = Request::of(active, http, plan).send_request(target, &mut exchange, cx);
    if sent.is_ok()
        && let Some(Connection { machine: Machine::Http1(reader), .. }) =
            active.user.lines.connection_mut(line)
    {
        reader.expect(plan.kind);
        if !plan.needs_body {
            reader.expect_any_size();
        }
    }
    asked(active, step, (exchange, until), sent);
}

/// The response is complete; its body is in `whole`, or was kept.
pub(in crate::user) fn answer_complete(
    active: &mut Active<'_>,
    reusable: bool,
    whole: Option<&[u8]>,
) {
    let (shard, line) = (active.shard, active.task.line);
    let (instruction, plan) = active.at_pc();
    let (Instruction::Do(Statement::Http(http)), Plan::Http(plan)) = (instruction, plan) else {
        return;
    };
    let Some(mut exchange) = active.task.take_exchange() else { return };
    // If the response arrived before the whole request was sent, the rest of the request is
    // dropped.
    let reusable = reusable && active.user.lines.get(line).is_sent() && !exchange.is_unsendable();
    let keeps = reusable && exchange.keep_alive && shard.prepared.program.connection.keep_alive;
    let now = active.user.now;
    if let Some(connection) = active.user.lines.connection_mut(line) {
        connection.used = now;
    }
    if let Some(challenge) = exchange.scratch.as_mut().and_then(|scratch| scratch.challenge.take())
    {
        match Request::of(active, http, plan).answer_challenge(&exchange, challenge) {
            Ok(true) => {
                exchange.forget(shard);
                return keep_connection(active.user, line, keeps, reusable);
            }
            Ok(false) => {}
            Err(finding) => exchange.found(finding, shard),
        }
    }
    if let Some(location) = exchange.scratch.as_mut().and_then(|scratch| scratch.location.take()) {
        match Request::of(active, http, plan).follow(&exchange, &location) {
            Ok(()) => {
                exchange.forget(shard);
                return keep_connection(active.user, line, keeps, reusable);
            }
            Err(detail) => exchange.found((Cause::RedirectFailed, detail), shard),
        }
    }
    let mut asking = Request::of(active, http, plan);
    let (attempt, verdict) = asking.judge(&mut exchange, whole);
    asking.follow_response(&exchange);
    if let Some(row) = exchange.scratch.as_ref().and_then(|scratch| scratch.instance) {
        let ok = verdict.is_ok();
        shard.recorder.borrow_mut().instances.said(row, attempt.latency, ok);
    }
    match &verdict {
        Ok(()) => asking.note_origins(&exchange),
        Err((cause, _)) => asking.witness(*cause, &exchange, whole),
    }
    active.task.detour = None;
    if verdict.is_ok()
        && let Some(sample) = exchange.scratch.as_mut().and_then(|scratch| scratch.sample.take())
    {
        let digest = sample.digest.finish();
        shard.recorder.borrow_mut().samples.sampled(http.step, digest, sample.cached);
    }
    judged(active, exchange, &attempt, verdict);
    keep_connection(active.user, line, keeps, reusable);
}

/// Keeps what was sent and received, if this is the first failure of its kind.
pub(in crate::user) fn witness(
    active: &mut Active<'_>,
    cause: Cause,
    exchange: &Exchange,
    whole: Option<&[u8]>,
) {
    if let (Instruction::Do(Statement::Http(http)), Plan::Http(plan)) = active.at_pc() {
        Request::of(active, http, plan).witness(cause, exchange, whole);
    }
}

/// Decides what happens to the connection after a response. The side that closes first keeps the
/// port in TIME_WAIT for a minute: if the target was asked to close or has announced it, the close
/// is left to the target.
fn keep_connection(user: &mut State, line: u8, keeps: bool, reusable: bool) {
    match (keeps, reusable) {
        _ if user.lines.get(line).multiplexes() => {}
        (true, _) => {}
        (false, true) => user.leave_to_target(line),
        (false, false) => user.drop_connection(line, Ended::ByUs),
    }
}

impl Exchange {
    /// Bytes followed the response. After a switch of protocols, they belong to the other protocol.
    pub(in crate::user) fn has_surplus(&mut self, bytes: usize, shard: &Lane) {
        if self.status != SWITCHING_PROTOCOLS {
            let detail = say!("at least {bytes} bytes were received after the end of the response");
            self.found((Cause::Malformed, detail), shard);
        }
    }
}

impl Listening<'_> {
    pub(in crate::user) fn head(
        &self,
        head: &Head<'_>,
        exchange: &mut Exchange,
        jar: &mut Option<Box<Jar>>,
        scope: &mut UserScope<'_>,
    ) {
        let Listening { shard, http, plan, .. } = self;
        exchange.status = head.status;
        exchange.keep_alive = head.keep_alive && !head.upgrade;
        trace_head(head, scope);
        if is_failure(head.status, http) {
            let recorder = shard.recorder.borrow();
            if recorder.is_new(http.step, Cause::StatusUnexpected, head.status) {
                let scratch = exchange.scratch(shard);
                scratch.witnessed = text_of_head(head);
                scratch.witnessed.extend_from_slice(b"\r\n");
            }
        }
        if matches!(plan.written, Written::Varies(_))
            && head.status < 400
            && shard.recorder.borrow_mut().samples.wants(http.step)
        {
            let (digest, cached) = (DefaultHasher::new(), is_cached(&head.headers));
            exchange.scratch(shard).sample = Some(Sample { digest, cached });
        }
        let own = &shard.prepared.targets[usize::from(self.target)].target;
        if let Some(name) = own.instance.as_deref().and_then(|name| head.headers.get(name)) {
            let row = shard.recorder.borrow_mut().instances.row(self.target, name);
            exchange.scratch(shard).instance = Some(row);
        }
        if plan.looks_at_headers {
            let (checks, kept) = ((&*http.checks, &*http.saves), &mut exchange.scratch(shard).kept);
            look_at_headers(&plan.check_plan, checks, (head.status, head.headers), scope, kept);
        }
        if plan.needs_body {
            let limit = shard.prepared.program.limits.body_bytes_max;
            match ContentDecoder::for_head(head, limit) {
                Ok(None) => {}
                Ok(decoder) => exchange.scratch(shard).decoder = decoder,
                Err(error) => exchange.found(coding_failed(&error), shard),
            }
        }
        if http.failing.retry.is_some()
            && head.status >= 300
            && let Some(value) = head.headers.get("retry-after")
            && let Some(seconds) = retry_after(value, unix_seconds(shard, scope.now))
        {
            exchange.scratch(shard).retry_after_s = seconds;
        }
        if http.follow_redirects && redirect::is_redirect(head.status) {
            exchange.scratch(shard).location = head.headers.get("location").map(Box::from);
        }
        if http.digest.is_some() && head.status == UNAUTHORIZED {
            let asked = head.headers.get_all("www-authenticate");
            exchange.scratch(shard).challenge = Challenge::choose(asked);
        }
        if head.has_set_cookie && shard.prepared.program.connection.cookies {
            let (place, path) = self.sent_to(exchange, scope.now);
            let values = head.headers.get_all("set-cookie");
            let own = jar.get_or_insert_default();
            jar::keep(own, (place, &path), values, shard, (scope.who(), scope.now));
        }
    }

    /// Where the request went, for the cookies of its response.
    fn sent_to<'s>(&'s self, exchange: &'s Exchange, now: Time) -> (CookiePlace<'s>, Cow<'s, str>) {
        let Listening { shard, http, redirect, .. } = *self;
        let target = &shard.prepared.targets[usize::from(self.target)];
        let sent_to = exchange.scratch.as_ref().map(|scratch| &scratch.sent_to);
        let is_first = redirect.is_none_or(|redirect| !redirect.elsewhere);
        let host = own_host(http, sent_to).filter(|_| is_first);
        let place = target.jar_place(unix_seconds(shard, now)).named(host);
        (place, path_of(http, redirect, exchange))
    }
}

impl<'a> Request<'a> {
    fn of(active: &'a mut Active<'_>, http: &'a Http, plan: &'a HttpPlan) -> Request<'a> {
        Request { shard: active.shard, user: active.user, task: active.task, http, plan }
    }

    /// Target of the request, with or without a redirect.
    fn goes_to(&self) -> u16 {
        let own = self.user.lines.get(self.task.line).target;
        self.task.redirect().map_or(own, |redirect| redirect.target)
    }

    /// A path that starts with a value may be a URL from a response, or a part of one: it selects
    /// the target that it names, relative to the request it came from.
    fn lead(&mut self) -> Result<(), Finding> {
        let http = self.http;
        // Random values are drawn here again when the request is written.
        let mut random = self.user.random.clone();
        let mut rendered = self.shard.content_buffer.borrow_mut();
        rendered.clear();
        let mut scope = scope!(self.user, self.shard, &mut random);
        let done = http.path.render_reference(&mut rendered, &mut scope);
        let had_fragment = done.map_err(|error| scope.finding(error))?;
        let reference = String::from_utf8_lossy(&rendered);
        if !had_fragment && (reference.is_empty() || redirect::is_plain_path(&reference)) {
            return Ok(());
        }
        let (target, path) = resolve(self.user, self.task.line, &http.path, &reference)?;
        self.task.detour.get_or_insert_default().redirect = Some(Redirect::to(target, path));
        Ok(())
    }

    /// Records the request that produced the saved values which paths start with.
    fn note_origins(&mut self, exchange: &Exchange) {
        let (http, plan) = (self.http, self.plan);
        if plan.links.is_empty() {
            return;
        }
        let target = self.goes_to();
        let path: Box<str> = path_of(http, self.task.redirect(), exchange).into();
        for slot in &plan.links {
            self.user.memory().came_from(*slot, Origin { target, path: path.clone() });
        }
    }

    /// Sends the request in one write. A request that all users share is written already, and so is
    /// a long shared body.
    fn send_request(
        &mut self,
        target: u16,
        exchange: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Result<io::Result<()>, Finding> {
        let (http, plan) = (self.http, self.plan);
        let (shard, line) = (self.shard, self.task.line);
        let again = self.task.take_again();
        let fixed = match (self.task.redirect(), &plan.written) {
            (None, Written::Fixed(fixed)) => fixed.get(usize::from(target)),
            _ => None,
        };
        let is_same = again.is_none() && http.digest.is_none();
        let plain = is_same && shard.prepared.program.trace.is_none();
        let has_cookies = self.user.jar.as_ref().is_some_and(|jar| !jar.is_empty());
        let body = plan.body.as_ref().filter(|_| !self.goes_as_get());
        if let (Some(fixed), true, false) = (fixed, plain, has_cookies) {
            exchange.bytes_out = (fixed.bytes.len() + length(body)) as u64;
            let request = || whole(&fixed.bytes, body);
            self.user.tell(|| What::Sent(self.user.shown(line, &request())));
            self.enter_request((&fixed.bytes, body), None, exchange);
            if self.user.lines.get(line).multiplexes() {
                let (bytes, block) = (&fixed.bytes[fixed.parts.head_end + 2..], &*fixed.block);
                return Ok(self.send_block(block, (bytes, body), exchange, cx));
            }
            return Ok(self.user.outbound(line).send_with(&fixed.bytes, body, cx));
        }
        let mut buffer = shard.write_buffer.borrow_mut();
        buffer.clear();
        let again = again.as_ref();
        if let Some(again) = again {
            exchange.goes_again(again.bytes_out, again.resends, shard);
            shard.recorder.borrow_mut().resent(http.step);
        }
        self.write_request(target, again, exchange, &mut buffer)?;
        if let Some(digest) = http.digest.as_deref() {
            self.authorize(digest, target, exchange, &mut buffer)?;
        }
        exchange.bytes_out += (buffer.len() + length(body)) as u64;
        self.user.tell(|| What::Sent(self.user.shown(line, &whole(&buffer, body))));
        self.enter_request((&buffer, body), again, exchange);
        self.follow_request((&buffer, body), again.is_some(), exchange);
        if self.user.lines.get(line).multiplexes() {
            let scheme = shard.prepared.targets[usize::from(target)].target.scheme.word();
            let end = memchr::memmem::find(&buffer, b"\r\n\r\n").unwrap_or(buffer.len());
            let mut block = shard.block_buffer.borrow_mut();
            block.clear();
            http2::write_block(&mut block, scheme, &buffer[..end]);
            let bytes = buffer.get(end + 4..).unwrap_or_default();
            return Ok(self.send_block(&block, (bytes, body), exchange, cx));
        }
        Ok(self.user.outbound(line).send_with(&buffer, body, cx))
    }

    /// Sends it as an HTTP/2 stream.
    fn send_block(
        &mut self,
        block: &[u8],
        (own, shared): (&[u8], Option<&Arc<[u8]>>),
        exchange: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        let plan = self.plan;
        let body = match (own, shared) {
            (_, Some(shared)) => Body::Shared(shared),
            ([], None) => Body::None,
            (own, None) => Body::Bytes(own),
        };
        let body_bytes_max = match plan.needs_body {
            true => self.shard.prepared.program.limits.body_bytes_max,
            false => u64::MAX,
        };
        let request = Asked { kind: plan.kind, block, body, body_bytes_max };
        exchange.number = self.user.outbound(self.task.line).ask(&request, cx)?;
        Ok(())
    }

    /// Whether a redirect has removed the body.
    fn goes_as_get(&self) -> bool {
        self.task.redirect().is_some_and(|redirect| redirect.as_get)
    }

    /// Enters the delivery of a request into the ledger.
    fn enter_request(
        &mut self,
        (written, body): (&[u8], Option<&Arc<[u8]>>),
        again: Option<&Again>,
        exchange: &mut Exchange,
    ) {
        let http = self.http;
        let Some(row) = self.shard.prepared.delivery_of(http.step) else { return };
        // A resent or redirected request is the same message.
        let followed = self.task.redirect().filter(|redirect| redirect.is_followed());
        let sent = match (again, followed) {
            (Some(again), _) => again.sent,
            (None, Some(_)) => return,
            (None, None) => {
                let head_end = || memchr::memmem::find(written, b"\r\n\r\n");
                let behind = || head_end().map_or(&[][..], |end| &written[end + 4..]);
                let body = body.map_or_else(behind, |body| &body[..]);
                let looked = Looked::new(None, body, Duration::ZERO);
                let mut scope = scope!(self.user, self.shard);
                self.user.audiences.sent(row, &looked, &mut scope)
            }
        };
        exchange.is_delivered(sent, self.shard);
    }

    /// Writes a request that differs per user or over time, without a shared body.
    ///
    /// All random values in it derive from the random state before it, so that the same request can
    /// be written again: for a connection that was closed, and for a redirect.
    fn write_request(
        &mut self,
        target: u16,
        again: Option<&Again>,
        exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Result<(), Finding> {
        let (http, plan) = (self.http, self.plan);
        let shard = self.shard;
        let redirect = self.task.detour.as_ref().and_then(|detour| detour.redirect.as_ref());
        let earlier = match (redirect.filter(|redirect| redirect.is_followed()), again) {
            (Some(redirect), _) => Some(redirect.before.clone()),
            (None, Some(again)) => Some(again.before.clone()),
            (None, None) => None,
        };
        let user = &mut *self.user;
        let before = earlier.clone().unwrap_or_else(|| Some((user.random.clone(), user.now)));
        let (mut replayed, now) = before.clone().unwrap_or((Random::new(0), user.now));
        let random = match earlier {
            Some(_) => &mut replayed,
            None => &mut user.random,
        };
        let trace = shard.prepared.program.trace.as_ref().filter(|_| before.is_some());
        let drawn = trace.and_then(|trace| draw_trace(trace, random));
        let scratch = exchange.scratch(shard);
        scratch.before = before;
        scratch.trace = drawn.as_ref().map(|(id, _)| *id);
        let place = &shard.prepared.targets[usize::from(target)];
        let extras = Extras {
            authority: &place.authority,
            jar: user
                .jar
                .as_deref()
                .map(|jar| (jar, place.jar_place(unix_seconds(shard, user.now)))),
            trace: trace.zip(drawn.as_ref()).map(|(trace, drawn)| (&*trace.header, &drawn.1[..])),
        };
        let mut scope = scope!(user, shard, random);
        scope.now = now;
        let sent_to = &mut scratch.sent_to;
        let written = match (redirect, &plan.written) {
            (Some(redirect), _) => {
                write_redirected(http, redirect, &extras, &mut scope, sent_to, out).map(drop)
            }
            (None, Written::Fixed(fixed)) => {
                fixed[usize::from(target)].write(http, &extras, out);
                Ok(())
            }
            (None, Written::Varies(template)) => {
                template.render(http, &extras, &mut scope, sent_to, out).map(drop)
            }
        };
        written.map_err(|error| scope.finding(error))
    }

    /// Whether the response is good. Saves values of a good one.
    fn judge(
        &mut self,
        exchange: &mut Exchange,
        whole: Option<&[u8]>,
    ) -> (Attempt, Result<(), Finding>) {
        let (http, plan) = (self.http, self.plan);
        let mut attempt = exchange.attempt(self.user.now, self.task.due);
        if let Some(redirect) = self.task.redirect() {
            attempt.bytes_in += redirect.bytes.0;
            attempt.bytes_out += redirect.bytes.1;
        }
        if self.shard.is_traced() {
            watched::trace_body(self.user, exchange, whole);
        }
        let finding = exchange.scratch.as_mut().and_then(|scratch| {
            let unfinished = || scratch.decoder.as_ref()?.finish().err();
            scratch.finding.take().or_else(|| unfinished().map(|error| coding_failed(&error)))
        });
        if let Some(finding) = finding {
            return (attempt, Err(finding));
        }
        let (shard, target) = (self.shard, self.goes_to());
        let redirect = self.task.detour.as_ref().and_then(|detour| detour.redirect.as_ref());
        let listening = Listening { shard, http, plan, redirect, target };
        let scratch = exchange.scratch.as_deref();
        let body = whole.or(scratch.map(|scratch| &scratch.body[..])).unwrap_or_default();
        let elapsed = self.user.now - self.task.due;
        let mut looked = Looked::new(Some(exchange.status), body, elapsed);
        looked.kept = scratch.map(|scratch| &scratch.kept);
        looked.tally = scratch.and_then(|scratch| scratch.tally.as_ref());
        looked.cookies =
            self.user.jar.as_deref().filter(|_| plan.check_plan.reads_cookies).map(|jar| {
                let (place, path) = listening.sent_to(exchange, self.user.now);
                SeenFrom { jar, place, path }
            });
        let mut scope = scope!(self.user, shard);
        let verdict = plan.check_plan.judge(&http.checks, &http.saves, &looked, &mut scope);
        (attempt, verdict)
    }

    /// Prepares the request that follows a redirect; the same instruction runs again.
    fn follow(&mut self, exchange: &Exchange, location: &[u8]) -> Result<(), Said> {
        let http = self.http;
        let max = self.shard.prepared.program.limits.redirects_max;
        let (count, as_get, bytes) = match self.task.redirect() {
            Some(before) => (before.count + 1, before.as_get, before.bytes),
            None => (1, false, (0, 0)),
        };
        let bytes = (bytes.0 + exchange.bytes_in, bytes.1 + exchange.bytes_out);
        if count > max {
            let detail = say!("more than {max} redirects");
            return Err(detail);
        }
        let here = self.goes_to();
        let path = path_of(http, self.task.redirect(), exchange);
        let targets = &self.shard.prepared.program.targets;
        let (target, path) = redirect::resolve(location, here, &path, targets)
            .map_err(|reason| say!("redirect {count} was not followed: {reason}"))?;
        let as_get = as_get || redirect::becomes_get(exchange.status, &http.method);
        let before = match self.task.redirect() {
            Some(redirect) if redirect.is_followed() => redirect.before.clone(),
            _ => exchange.scratch.as_ref().and_then(|scratch| scratch.before.clone()),
        };
        let first = self.task.redirect().map_or(here, |redirect| redirect.first);
        let elsewhere = !redirect::is_same_origin(first, target, targets);
        let sent = exchange.sent;
        let redirect = Redirect::to(target, path);
        let redirect =
            Redirect { first, elsewhere, as_get, count, bytes, before, sent, ..redirect };
        self.task.detour.get_or_insert_default().redirect = Some(redirect);
        Ok(())
    }

    /// Keeps what was sent and received, if this is the first failure of its kind.
    fn witness(&mut self, cause: Cause, exchange: &Exchange, whole: Option<&[u8]>) {
        let shard = self.shard;
        if !shard.recorder.borrow().is_new(self.http.step, cause, exchange.status) {
            return;
        }
        let sent = self.written_again(exchange);
        let scratch = exchange.scratch.as_deref();
        let mut received = scratch.map(|scratch| scratch.witnessed.clone()).unwrap_or_default();
        let body = whole.or(scratch.map(|scratch| &scratch.body[..])).unwrap_or_default();
        let room = EVIDENCE_BYTES_MAX.saturating_sub(received.len());
        received.extend_from_slice(&body[..body.len().min(room)]);
        let length = exchange.bytes_in.max(received.len() as u64);
        let received = (!received.is_empty()).then_some(Shown { bytes: received, length });
        shard.recorder.borrow_mut().exchange = evidence::Exchange { sent, received };
    }

    /// The request as it was sent, except that its cookies may already be those of the response.
    fn written_again(&mut self, exchange: &Exchange) -> Option<Shown> {
        let plan = self.plan;
        let before = exchange.scratch.as_ref().and_then(|scratch| scratch.before.clone());
        let target = self.goes_to();
        if before.is_none() && self.task.redirect().is_none() {
            let Written::Fixed(fixed) = &plan.written else { return None };
            let request = fixed.get(usize::from(target))?;
            let request = whole(&request.bytes, plan.body.as_ref());
            return Some(Shown::first(&request, EVIDENCE_BYTES_MAX));
        }
        let (pc, due) = (self.task.pc, self.task.due);
        let (bytes_out, resends, until, sent) = (0, 0, Time::NEVER, None);
        let again = Again { bytes_out, resends, until, before, sent, pc, due };
        let (mut other, mut out) = (Exchange::new(exchange.awaits, exchange.sent), Vec::new());
        let written = self.write_request(target, Some(&again), &mut other, &mut out);
        other.forget(self.shard);
        if let Some(scratch) =
            exchange.scratch.as_ref().filter(|scratch| !scratch.authorization.is_empty())
        {
            insert_authorization(&mut out, &scratch.authorization);
        }
        let body = plan.body.as_ref().filter(|_| !self.goes_as_get());
        written.ok().map(|()| Shown::first(&whole(&out, body), EVIDENCE_BYTES_MAX))
    }
}

/// Whether a response shows that a cache answered instead of the service (RFC 9111, 5.1, and the
/// usual headers of caches).
fn is_cached(headers: &Headers<'_>) -> bool {
    let aged = headers.get("age").is_some_and(|age| age != b"0");
    let hits = |name| headers.get(name).is_some_and(contains_hit);
    aged || hits("x-cache") || hits("cf-cache-status")
}

fn contains_hit(value: &[u8]) -> bool {
    value.windows(3).any(|three| three.eq_ignore_ascii_case(b"hit"))
}

/// Length of a shared body.
fn length(body: Option<&Arc<[u8]>>) -> usize {
    body.map_or(0, |body| body.len())
}

/// A request with its shared body, for display.
#[cold]
fn whole<'a>(written: &'a [u8], body: Option<&Arc<[u8]>>) -> Cow<'a, [u8]> {
    match body {
        Some(body) => [written, body].concat().into(),
        None => written.into(),
    }
}

/// Whether the status alone makes a step fail.
fn is_failure(status: u16, http: &Http) -> bool {
    let mut wanted = http.checks.iter().filter_map(Check::status).peekable();
    match wanted.peek() {
        None => status >= 400,
        Some(_) => wanted.any(|set| !set.contains(status)),
    }
}

/// Traces the head of a response.
pub(in crate::user) fn trace_head(head: &Head<'_>, scope: &UserScope<'_>) {
    let received = || What::Received(Shown::of(&text_of_head(head)));
    scope.shard.tell(scope.who(), scope.now, received);
}

/// The request that follows a redirect.
fn write_redirected(
    http: &Http,
    redirect: &Redirect,
    extras: &Extras<'_>,
    scope: &mut UserScope<'_>,
    sent_to: &mut SentTo,
    out: &mut Vec<u8>,
) -> Result<Parts, EvaluationError> {
    let keep_alive = scope.shard.prepared.program.connection.keep_alive;
    let Redirect { path, as_get, elsewhere, .. } = redirect;
    let detour = Way { path: Some(path), as_get: *as_get, elsewhere: *elsewhere };
    let template = Template::new(http, keep_alive, detour);
    // Random values in the first path must not affect what follows it.
    http.path.render(&mut sent_to.path, scope)?;
    sent_to.path.clear();
    sent_to.path.extend_from_slice(redirect.path.as_bytes());
    template.render(http, extras, scope, sent_to, out)
}

pub(in crate::user) fn unix_seconds(shard: &Lane, now: Time) -> u64 {
    shard.unix_nanos(now) / 1_000_000_000
}

/// The trace ID of a request, if it has one, and the header's value (W3C Trace Context, 3.2).
fn draw_trace(trace: &Trace, random: &mut Random) -> Option<(u128, [u8; 55])> {
    if !random.chance(trace.share) {
        return None;
    }
    // Neither of the IDs may be all zeros.
    let id = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64()) | 1;
    let parent = random.next_u64() | 1;
    let mut value = [0; 55];
    // The buffer has the exact length of the value.
    let _ = write!(&mut value[..], "00-{id:032x}-{parent:016x}-01");
    Some((id, value))
}

/// The target and path of a reference (RFC 3986, 5.2), relative to the request that produced the
/// value it starts with, or to `/` without one. A complete path always refers to the step's own
/// target.
pub(in crate::user) fn resolve(
    user: &State,
    line: u8,
    text: &Text,
    reference: &str,
) -> Result<(u16, String), Finding> {
    let slots = text.begins_with().map(|value| value.slots().needed).unwrap_or_default();
    let memory = user.memory.as_ref();
    let origin = slots.first().and_then(|slot| memory?.origin(*slot));
    let own = user.lines.get(line).target;
    let is_whole = reference.starts_with('/') && !reference.starts_with("//");
    let origin = origin.filter(|_| !is_whole);
    let (here, path) = origin.map_or((own, "/"), |one| (one.target, &*one.path));
    let targets = &user.shard.prepared.program.targets;
    redirect::resolve(reference.as_bytes(), here, path, targets)
        .map_err(|reason| (Cause::ScenarioFailed, reason))
}
