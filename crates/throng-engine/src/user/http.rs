//! HTTP requests and their answers.

use std::task::Context;
use std::time::Duration;

use throng_base::Time;
use throng_metrics::Cause;
use throng_program::{Http, Instruction, Text};
use throng_protocol::http1::{ContentDecoder, ContentError, CookieLimits, Event, Head, Jar};

use super::flow::at_pc;
use super::link::{Connection, Ended, Peer};
use super::redirect::{self, Redirect};
use super::{Doing, User};
use crate::connector::{Failure, http_failure};
use crate::prepared::{HttpPlan, Parts, Plan, Prepared};
use crate::recorder::Attempt;
use crate::verify::{Finding, shown, verify, verify_headers};

/// An answer that is awaited, as far as it has come.
#[derive(Default)]
pub(super) struct Answer {
    first_byte: Time,
    bytes_in: u64,
    bytes_out: u64,
    /// What only some answers need.
    rare: Option<Box<Rare>>,
    status: u16,
    keep_alive: bool,
    /// It was asked for over a connection that had been quiet for a while.
    after_quiet: bool,
}

/// From this time without a request on, a target may have closed a kept connection just when the
/// next request was sent.
const QUIET: Duration = Duration::from_millis(1);

#[derive(Default)]
struct Rare {
    /// The body, when somebody looks at it, after its content coding.
    body: Vec<u8>,
    decoder: Option<ContentDecoder>,
    /// The first thing that was wrong.
    finding: Option<Finding>,
    location: Option<String>,
}

impl Answer {
    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn found(&mut self, finding: Finding) {
        self.rare().finding.get_or_insert(finding);
    }

    fn attempt(&self, now: Time, due: Time) -> Attempt {
        Attempt {
            latency: Some(now - due),
            first_byte: (self.first_byte > Time::ZERO).then(|| self.first_byte - due),
            code: self.status,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
        }
    }
}

/// What the sink of the response machine needs to know.
struct Listening<'a> {
    http: &'a Http,
    plan: &'a HttpPlan,
    prepared: &'a Prepared,
    target: u16,
    path: &'a str,
    unix_seconds: u64,
}

impl User {
    /// The verb `http`: sends the request, on a new connection if there is none.
    pub(super) fn http(&mut self, http: &Http, plan: &HttpPlan, cx: &mut Context<'_>) {
        let target = self.redirect.as_ref().map_or(self.target, |redirect| redirect.target);
        let fits = self.connection.as_ref().map(|connection| connection.target == target);
        if fits == Some(false) {
            self.drop_connection(Ended::ByUs);
        }
        if fits != Some(true) {
            self.flight_begins();
            let connect = self.shard.prepared.program.connection.connect_timeout;
            return self.open(target, None, connect.min(http.timeout));
        }
        self.flight_begins();
        let sent = self.send_request(http, plan, target, cx);
        if let Some(Connection { peer: Peer::Http(reader), .. }) = &mut self.connection {
            reader.expect(plan.kind);
        }
        let used = self.connection.as_ref().map_or(Time::ZERO, |connection| connection.used);
        let answer = Answer {
            bytes_out: sent.as_ref().map_or(0, |n| *n),
            after_quiet: used > Time::ZERO && self.now - used >= QUIET,
            ..Answer::default()
        };
        self.wait_for(Doing::Answer(answer), self.now + http.timeout);
        if let Err(error) = sent {
            self.broken(&error);
        }
    }

    /// Sends the request and returns how many bytes it has.
    fn send_request(
        &mut self,
        http: &Http,
        plan: &HttpPlan,
        target: u16,
        cx: &mut Context<'_>,
    ) -> std::io::Result<u64> {
        let shard = std::rc::Rc::clone(&self.shard);
        let place = &shard.prepared.targets[usize::from(target)];
        let fixed = match self.redirect {
            None => plan.fixed[usize::from(target)].as_ref(),
            Some(_) => None,
        };
        let has_cookies = self.jar.as_ref().is_some_and(|jar| !jar.is_empty());
        if let (Some(fixed), false) = (fixed, has_cookies) {
            self.send(&fixed.bytes, cx)?;
            return Ok(fixed.bytes.len() as u64);
        }
        let mut buffer = shard.write_buffer.borrow_mut();
        buffer.clear();
        let path;
        let head_end = match fixed {
            Some(fixed) => {
                path = self.path(http);
                buffer.extend_from_slice(&fixed.bytes);
                fixed.head_end
            }
            None => {
                path = self.path(http);
                self.render(http, place, &path, &mut buffer)
            }
        };
        if let Some(jar) = &self.jar {
            let secure = place.target.scheme.is_secure();
            let mut cookies = Vec::new();
            jar.write_header(&mut cookies, &place.target.host, &path, secure, self.unix_seconds());
            buffer.splice(head_end..head_end, cookies);
        }
        self.send(&buffer, cx)?;
        Ok(buffer.len() as u64)
    }

    fn render(
        &self,
        http: &Http,
        target: &crate::prepared::PreparedTarget,
        path: &str,
        out: &mut Vec<u8>,
    ) -> usize {
        let (id, iteration) = (self.id, self.iterations);
        let keep_alive = self.shard.prepared.program.connection.keep_alive;
        let redirected = self.redirect.as_ref().map(|redirect| {
            let mut http = http.clone();
            http.path = Text::literal(path);
            if redirect.as_get {
                http.method = "GET".into();
                http.body = throng_program::Body::None;
                http.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
            }
            http
        });
        let parts = Parts { http: redirected.as_ref().unwrap_or(http), target, keep_alive };
        parts.write(out, |text, out| text.render(out, id, iteration))
    }

    /// Path and query of the running request.
    fn path(&self, http: &Http) -> String {
        match &self.redirect {
            Some(redirect) => redirect.path.clone(),
            None => {
                let mut path = Vec::new();
                http.path.render(&mut path, self.id, self.iterations);
                String::from_utf8_lossy(&path).into_owned()
            }
        }
    }

    fn unix_seconds(&self) -> u64 {
        self.shard.epoch_seconds + self.now.second()
    }

    /// Bytes of an answer came.
    pub(super) fn http_received(&mut self, bytes: &[u8]) {
        at_pc!(self, shard, instruction, plan);
        let unix_seconds = self.unix_seconds();
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
        let path = self.redirect.as_ref().map_or("", |redirect| &redirect.path);
        let prepared = &shard.prepared;
        let target = *target;
        let listening = Listening { http, plan, prepared, target, path, unix_seconds };
        let limits = match plan.needs_body {
            true => &prepared.http_limits,
            false => &prepared.http_limits_unkept,
        };
        let (jar, user) = (&mut self.jar, (self.id, self.iterations));
        let mut sink = |event: Event<'_>| match event {
            Event::Head(head) => listening.head(&head, answer, jar, user),
            Event::Body(bytes) if plan.needs_body => listening.body(bytes, answer),
            Event::Body(_) | Event::Informational(_) | Event::Trailers(_) => {}
        };
        match reader.receive(bytes, limits, &mut sink) {
            Ok(progress) if progress.complete => {
                let surplus = progress.consumed < bytes.len();
                self.answered(!surplus);
            }
            Ok(_) => {}
            Err(error) => {
                let failure = http_failure(&error);
                self.lost(&failure, Ended::ByUs);
            }
        }
    }

    /// Bytes came that answer nothing: the connection cannot be trusted any more.
    fn unasked(&mut self) {
        match self.doing {
            Doing::Closing => {}
            _ => self.drop_connection(Ended::ByUs),
        }
    }

    /// The answer is complete.
    pub(super) fn answered(&mut self, reusable: bool) {
        at_pc!(self, shard, instruction, _plan);
        let Doing::Answer(mut answer) = std::mem::replace(&mut self.doing, Doing::Step) else {
            return;
        };
        let Instruction::Http(http) = instruction else { return };
        let keeps = reusable && answer.keep_alive && shard.prepared.program.connection.keep_alive;
        if let Some(connection) = &mut self.connection {
            connection.used = self.now;
        }
        if let Some(location) = answer.rare.as_mut().and_then(|rare| rare.location.take()) {
            match self.follow(http, &answer, &location) {
                Ok(()) => {
                    if !keeps {
                        self.drop_connection(Ended::ByUs);
                    }
                    return;
                }
                Err(detail) => answer.found((Cause::RedirectFailed, detail)),
            }
        }
        self.flight_ends();
        self.refusals = 0;
        self.judge(http, answer);
        self.redirect = None;
        self.next_step();
        if !keeps && self.connection.is_some() {
            // The side that closes first keeps the port for a minute: leave that to the target,
            // which has been asked to close or has said that it will.
            match reusable {
                true => self.await_end(),
                false => self.drop_connection(Ended::ByUs),
            }
        }
    }

    /// Records the answer as good or bad.
    fn judge(&mut self, http: &Http, mut answer: Answer) {
        let mut attempt = answer.attempt(self.now, self.due);
        if let Some(redirect) = &self.redirect {
            attempt.bytes_in += redirect.bytes.0;
            attempt.bytes_out += redirect.bytes.1;
        }
        let elapsed = self.now - self.due;
        let rare = answer.rare.take();
        let body = rare.as_ref().map_or(&[][..], |rare| &rare.body);
        let unfinished = rare.as_ref().and_then(|rare| rare.decoder.as_ref()?.finish().err());
        let finding = match rare.as_ref().and_then(|rare| rare.finding.clone()) {
            Some(finding) => Err(finding),
            None => match unfinished {
                Some(error) => Err((Cause::CodingFailed, error.to_string())),
                None => verify(&http.checks, Some(answer.status), body, elapsed),
            },
        };
        let mut recorder = self.shard.recorder.borrow_mut();
        match finding {
            Ok(()) => recorder.ok(http.step, &attempt),
            Err((cause, detail)) => {
                recorder.failed(http.step, &attempt, cause, self.now, || detail);
            }
        }
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
            return Err(format!("more than {max} redirects"));
        }
        let here = self.redirect.as_ref().map_or(self.target, |redirect| redirect.target);
        let path = self.path(http);
        let targets = &self.shard.prepared.program.targets;
        let (target, path) = redirect::resolve(location, here, &path, targets)
            .map_err(|reason| format!("redirect {count} not followed: {reason}"))?;
        let as_get = as_get || redirect::becomes_get(answer.status, &http.method);
        self.redirect = Some(Box::new(Redirect { target, path, as_get, count, bytes }));
        Ok(())
    }

    /// No complete answer in time. The connection is of no more use.
    pub(super) fn answer_timed_out(&mut self, answer: &Answer) {
        self.drop_connection(Ended::TimedOut);
        let waited = throng_base::units::format_duration(self.now - self.due);
        let detail = match (answer.bytes_in, answer.status) {
            (0, _) => format!("no byte of an answer after {waited}"),
            (bytes, 0) => format!("{bytes} bytes of a head after {waited}"),
            (bytes, status) => format!("status {status} and {bytes} bytes after {waited}"),
        };
        self.answer_failed(answer, Cause::Timeout, &detail, true);
    }

    /// The connection is gone before the answer was complete.
    pub(super) fn answer_lost(&mut self, answer: &Answer, failure: &Failure) {
        at_pc!(self, _shard, _instruction, plan);
        let idempotent = matches!(plan, Plan::Http(plan) if plan.idempotent);
        let closed = matches!(failure.cause, Cause::ClosedEarly | Cause::Reset);
        if answer.after_quiet && idempotent && closed && answer.bytes_in == 0 {
            // The target closed a kept connection just as we used it again: nobody's fault. The
            // request is sent once more, over a new connection, and its time goes on.
            self.doing = Doing::Step;
            return;
        }
        self.answer_failed(answer, failure.cause, &failure.detail, false);
    }

    fn answer_failed(&mut self, answer: &Answer, cause: Cause, detail: &str, timed: bool) {
        at_pc!(self, _shard, instruction, _plan);
        self.flight_ends();
        if let Instruction::Http(http) = instruction {
            let mut attempt = answer.attempt(self.now, self.due);
            if !timed {
                attempt.latency = None;
            }
            self.failed(http.step, &attempt, cause, detail);
        }
        self.redirect = None;
        self.next_step();
    }
}

impl Listening<'_> {
    fn head(
        &self,
        head: &Head<'_>,
        answer: &mut Answer,
        jar: &mut Option<Box<Jar>>,
        (user, iteration): (throng_base::UserId, u64),
    ) {
        answer.status = head.status;
        answer.keep_alive = head.keep_alive && !head.upgrade;
        if self.plan.has_header_check
            && let Err(finding) = verify_headers(&self.http.checks, head.headers)
        {
            answer.found(finding);
        }
        if self.plan.needs_body {
            let limit = self.prepared.program.limits.body_bytes_max;
            match ContentDecoder::for_head(head, limit) {
                Ok(decoder) => answer.rare().decoder = decoder,
                Err(error) => answer.found(coding_failed(&error)),
            }
        }
        if self.http.follow_redirects && redirect::is_redirect(head.status) {
            let location = head.headers.get("location").map(String::from_utf8_lossy);
            answer.rare().location = location.map(std::borrow::Cow::into_owned);
        }
        if head.has_set_cookie && self.prepared.program.connection.cookies {
            let target = &self.prepared.targets[usize::from(self.target)].target;
            let mut own = Vec::new();
            let path = match self.path.is_empty() {
                false => self.path.into(),
                true => {
                    self.http.path.render(&mut own, user, iteration);
                    String::from_utf8_lossy(&own)
                }
            };
            let (jar, limits) = (jar.get_or_insert_default(), CookieLimits::default());
            let secure = target.scheme.is_secure();
            for value in head.headers.get_all("set-cookie") {
                jar.store(value, &target.host, &path, secure, self.unix_seconds, &limits);
            }
        }
    }

    fn body(&self, bytes: &[u8], answer: &mut Answer) {
        let rare = answer.rare();
        let Some(decoder) = &mut rare.decoder else {
            rare.body.extend_from_slice(bytes);
            return;
        };
        if let Err(error) = decoder.write(bytes, &mut rare.body) {
            rare.decoder = None;
            answer.found(coding_failed(&error));
        }
    }
}

fn coding_failed(error: &ContentError) -> Finding {
    (Cause::CodingFailed, shown(error.to_string().as_bytes()))
}
