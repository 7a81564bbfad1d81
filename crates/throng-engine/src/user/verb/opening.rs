//! How a connection of a user opens, or fails to.

use std::borrow::Cow;
use std::time::Duration;

use throng_base::{Said, Time};
use throng_expression::EvaluationError;
use throng_metrics::{Cause, Stage};
use throng_program::{Body, Connect, ConnectOptions, Scheme, Statement};
use throng_protocol::events::Resume;
use throng_protocol::framed::PacketReader;
use throng_protocol::http1::ResponseReader;
use throng_protocol::http2;
use throng_protocol::machine::Machine;
use throng_protocol::stream::StreamReader;
use throng_protocol::websocket::Key;

use crate::connector;
use crate::connector::protocol::{Upgrade, machine_of};
use crate::connector::{Ask, Handshake, Opened};
use crate::failure::{Ended, Failure, Finding};
use crate::prepared::code::Instruction;
use crate::prepared::template::{finish_cookies, write_own_cookies};
use crate::prepared::{Plan, is_websocket, upgrade_headers};
use crate::recorder::spent::OpeningTimes;
use crate::recorder::{Attempt, RETRY_AFTER_MAX_S};
use crate::scope::{UserScope, scope};
use crate::shard::Lane;
use crate::user::connection::{Connection, Later};
use crate::user::flow::Session;
use crate::user::outcome::Onward;
use crate::user::redirect::is_plain_path;
use crate::user::send::greeting;
use crate::user::task::{Active, Doing, Opening};
use crate::user::verb::ask_for_call;
use crate::user::verb::asking::open;
use crate::user::verb::http::{resolve, unix_seconds};
use crate::user::{State, jar, redirect, watched};

/// The verb `connect`: with the upgrade for a WebSocket target, with its request for an event
/// stream.
pub(super) fn connect(active: &mut Active<'_>, connect: &Connect, plan: &Plan) {
    let line = active.user.line_of(connect.link);
    active.task.line = line;
    active.user.drop_connection(line, Ended::ByUs);
    active.flight_begins(connect.step);
    active.user.life(line).begins();
    let mut connecting = Connecting { shard: active.shard, user: active.user, line, connect };
    match connecting.handshake(plan) {
        Ok((target, handshake)) => open(active, target, handshake, connect.timeout),
        Err(finding) => {
            let onward = Onward::Anew { refused: true };
            active.step_failed(connect.step, &Attempt::default(), finding, onward);
        }
    }
}

/// What a user asks for as it connects.
struct Connecting<'a> {
    shard: &'a Lane,
    user: &'a mut State,
    line: u8,
    connect: &'a Connect,
}

impl Connecting<'_> {
    /// The request to send before the connection is open, and its target.
    fn handshake(&mut self, plan: &Plan) -> Result<(u16, Option<Handshake>), Finding> {
        let (shard, connect) = (self.shard, self.connect);
        let own = self.user.lines.get(self.line).target;
        let options = connect.options.as_deref();
        let opened = options.and_then(ConnectOptions::call);
        if let (Some(opened), Plan::Connect { call: Some(head), .. }) = (opened, plan) {
            return Ok((
                own,
                Some(Handshake::Call(ask_for_call(shard, self.user, (opened, head), own)?)),
            ));
        }
        let links = &shard.prepared.program.sessions[usize::from(self.user.session)].links;
        let events = links.get(usize::from(connect.link)).is_some_and(|link| link.events);
        let scheme = shard.prepared.targets[usize::from(own)].target.scheme;
        let (mut target, mut upgrade) = (own, None);
        if events || is_websocket(scheme) {
            let mut scope = scope!(self.user, shard);
            let asked = ask_of(connect, &mut scope)
                .and_then(|asked| Ok((asked, protocols_of(connect, &mut scope)?)));
            let ((ask, had_fragment), protocols) = asked.map_err(|error| scope.finding(error))?;
            let (led, mut ask) = self.lead(ask, had_fragment, events)?;
            self.add_cookies(led, &mut ask);
            if events {
                ask.resume = self.resume();
                return Ok((led, Some(Handshake::Events(ask))));
            }
            let key = Key::random(&mut self.user.random);
            (target, upgrade) = (led, Some(Upgrade { ask, protocols, key }));
        }
        let place = &shard.prepared.targets[usize::from(target)].target;
        if let Some(login) = connector::login_to(place, &mut self.user.random) {
            return Ok((target, Some(login)));
        }
        let line = self.line;
        let kept = self.user.memory.as_mut().and_then(|memory| memory.take_machine(line));
        Ok((target, greeting(options, upgrade, kept, &mut scope!(self.user, shard))?))
    }

    /// As for a request: a path that starts with a value may be a URL.
    fn lead(&self, ask: Ask, had_fragment: bool, events: bool) -> Result<(u16, Ask), Finding> {
        let goes_as_it_is = ask.path.is_empty() || is_plain_path(&ask.path);
        if self.connect.path.begins_with().is_none() || goes_as_it_is && !had_fragment {
            return Ok((self.user.lines.get(self.line).target, ask));
        }
        let reference = match events {
            true => Cow::Borrowed(&*ask.path),
            false => redirect::websocket_url(&ask.path),
        };
        let (target, path) = resolve(self.user, self.line, &self.connect.path, &reference)?;
        let targets = &self.shard.prepared.program.targets;
        let is_http =
            || matches!(targets[usize::from(target)].scheme, Scheme::Http | Scheme::Https);
        let found = match events {
            true => is_http().then_some(target),
            false => redirect::as_websocket(target, targets),
        };
        match found {
            Some(target) => Ok((target, Ask { path, ..ask })),
            None if events => Err((Cause::ScenarioFailed, no_event_stream(&ask.path))),
            None => Err((Cause::ScenarioFailed, no_web_socket(&ask.path))),
        }
    }

    /// Adds the user's cookies for the handshake request to those of the scenario.
    fn add_cookies(&self, target: u16, ask: &mut Ask) {
        let target = &self.shard.prepared.targets[usize::from(target)];
        let place = target.jar_place(unix_seconds(self.shard, self.user.now));
        let mut header = std::mem::take(&mut ask.cookies);
        let place = place.named(ask.own_host().map(str::as_bytes));
        let jar = self.user.jar.as_deref().zip(Some(place));
        finish_cookies(jar, ask.path.as_bytes(), 0, &mut header);
        ask.cookies = header;
    }

    /// Where a lost event stream resumes.
    fn resume(&self) -> Resume {
        let resume = self.user.memory.as_ref().and_then(|memory| memory.resume(self.line));
        resume.cloned().unwrap_or_default()
    }
}

/// A connection opened, or failed to.
pub(in crate::user) fn opened(active: &mut Active<'_>, result: Result<Opened, Failure>) {
    let doing = std::mem::replace(&mut active.task.doing, Doing::Step);
    let Doing::Opening(opening) = doing else { return };
    active.task.deadline = Time::NEVER;
    settles(active, &opening);
    keep_cookies(active, &opening);
    let opened = match result {
        Ok(opened) => opened,
        Err(failure) => {
            opening.failed(active.shard, Some(failure.cause));
            return failed(active, &failure);
        }
    };
    let waited = opening.begun - active.task.due;
    let resumed = opened.transport.resumes_tls();
    let times = OpeningTimes::new(waited, &opening.progress.times.get(), resumed);
    active.shard.opening.set(Some((active.user.id, times)));
    let attempt = Attempt {
        latency: Some(active.user.now - active.task.due),
        waited,
        opening: Some(times),
        code: opened.status,
        bytes_in: opened.pulled.bytes_in,
        bytes_out: opened.pulled.bytes_out,
        ..Attempt::default()
    };
    attach(active, &opening, opened);
    let line = active.task.line;
    if let (Instruction::Do(Statement::Connect(connect)), plan) = active.at_pc() {
        if let Some(connection) = active.user.lines.connection_mut(line) {
            connection.is_opened(connect.step, active.task.due);
        }
        let has_login = matches!(plan, Plan::Connect { has_login: true, .. });
        active.user.life(line).connected(has_login);
        active.step_ok(connect.step, &attempt);
        active.next_step();
    }
}

/// It did not open in time.
pub(super) fn timed_out(active: &mut Active<'_>, opening: &Opening) {
    settles(active, opening);
    let stage = opening.progress.stage.get();
    let waited = active.user.now - active.task.due;
    let (target, stages) = (opening.target, (stage, opening.missing));
    let failure = connector::no_answer(active.shard, target, stages, waited);
    if stage == Stage::Connect {
        active.shard.routes.failed(target);
    }
    active.shard.recorder.borrow_mut().stage_failed(stage, failure.cause);
    opening.failed(active.shard, Some(failure.cause));
    failed(active, &failure);
}

/// The address it went to is known, past those that refused it.
fn settles(active: &mut Active<'_>, opening: &Opening) {
    active.shard.recorder.borrow_mut().interval.gauges.connections_opening -= 1;
    let line = active.task.line;
    active.user.lines.get_mut(line).place = opening.progress.place();
    // It did not open.
    if let Some(mut machine) = opening.progress.machine.take()
        && machine.lost()
    {
        active.user.memory().keep_machine(line, machine);
    }
}

/// Stores the cookies of a handshake response.
fn keep_cookies(active: &mut Active<'_>, opening: &Opening) {
    let Some(set) = opening.progress.set_cookies.take() else { return };
    let Active { shard, user, .. } = &mut *active;
    let target = &shard.prepared.targets[usize::from(opening.target)];
    let place = target.jar_place(unix_seconds(shard, user.now));
    let place = place.named(set.host.as_deref().map(str::as_bytes));
    let (who, now) = (user.who(), user.now);
    let own = user.jar.get_or_insert_default();
    let values = set.values.iter().map(|value| &**value);
    jar::keep(own, (place, &set.path), values, shard, (who, now));
}

fn attach(active: &mut Active<'_>, opening: &Opening, opened: Opened) {
    let Active { shard, user, task, .. } = &mut *active;
    let (target, line) = (opening.target, task.line);
    let scheme = shard.prepared.targets[usize::from(target)].target.scheme;
    let mut recorder = shard.recorder.borrow_mut();
    recorder.interval.connections.counts.opened += 1;
    if let Some(row) = recorder.targets.of(user.lines.get(line).place) {
        row.connections_opened += 1;
    }
    recorder.interval.connections.counts.http2 += u64::from(opened.multiplexes);
    match opened.transport.resumes_tls() {
        Some(true) => recorder.interval.connections.counts.tls_resumed += 1,
        Some(false) => recorder.interval.connections.counts.tls_full += 1,
        None => {}
    }
    recorder.interval.gauges.connections_open += 1;
    recorder.interval.traffic.bytes_in += opened.pulled.bytes_in;
    recorder.interval.traffic.bytes_out += opened.pulled.bytes_out;
    drop(recorder);
    let own = opened.machine.or_else(|| machine_of(scheme));
    let machine = own.unwrap_or_else(|| match scheme {
        _ if opened.multiplexes => {
            Machine::Http2(Box::new(http2::Client::new(&shard.prepared.limits.http2)))
        }
        Scheme::Http | Scheme::Https => Machine::Http1(ResponseReader::new()),
        _ if user.link(line).has_records() => Machine::Declared(PacketReader::new()),
        _ => Machine::Bytes(StreamReader::new()),
    });
    let times = (opening.progress.established.get().min(user.now), user.now);
    let mut connection = Connection::new(opened.transport, machine, target, times);
    if !opened.pulled.surplus.is_empty() {
        connection.keep_again(Later::Surplus(opened.pulled.surplus));
    }
    user.lines.get_mut(line).take_loss(shard);
    user.arm(connection.machine.due());
    user.lines.get_mut(line).connection = Some(connection);
    if let Some(memory) = &mut user.memory {
        // The machine owns it now.
        memory.keep_resume(line, None);
    }
    user.tell(|| watched::connected(shard, target, &opening.progress.times.get()));
}

/// It did not open.
fn failed(active: &mut Active<'_>, failure: &Failure) {
    let place = active.user.lines.get(active.task.line).place;
    if let Some(row) = active.shard.recorder.borrow_mut().targets.of(place) {
        row.connections_failed += 1;
    }
    let retry_after_s = u64::from(failure.retry_after_s);
    let attempt = Attempt { code: failure.status, retry_after_s, ..Attempt::default() };
    let finding = failure.finding();
    let instruction = active.instruction();
    match (instruction, instruction.step()) {
        (Instruction::Do(Statement::Connect(connect)), _) => {
            let onward = Onward::Anew { refused: true };
            active.step_failed(connect.step, &attempt, finding, onward);
            hold_as_told(active, retry_after_s);
        }
        (Instruction::Do(one), Some(step)) if one.opens_itself() => {
            active.task.withdraw_again(active.shard, active.user.now);
            active.task.detour = None;
            active.step_failed(step, &attempt, finding, Onward::HoldBack);
        }
        // Only these open connections.
        _ => {
            active.interrupt();
            Session::new(active).restart(true);
        }
    }
}
/// A user that waits before a retry waits at least as long as the target has asked for.
fn hold_as_told(active: &mut Active<'_>, retry_after_s: u64) {
    let until = active.user.now + Duration::from_secs(retry_after_s.min(RETRY_AFTER_MAX_S));
    if matches!(active.task.doing, Doing::Holding) && until > active.task.deadline {
        active.wait_for(Doing::Holding, until);
    }
}

fn no_web_socket(url: &str) -> Said {
    say!("`{url}` is not the URL of a WebSocket target of this scenario")
}

fn no_event_stream(url: &str) -> Said {
    say!("`{url}` is not an event stream URL")
}

/// The sub-protocols that one user offers, without empty ones.
fn protocols_of(
    connect: &Connect,
    scope: &mut UserScope<'_>,
) -> Result<Vec<String>, EvaluationError> {
    let mut all = Vec::with_capacity(connect.protocols.len());
    for text in &connect.protocols {
        let mut name = Vec::new();
        text.render(&mut name, scope)?;
        if !name.is_empty() {
            all.push(String::from_utf8_lossy(&name).into_owned());
        }
    }
    Ok(all)
}

/// The handshake request of one user, and whether its path was a URL with a fragment.
fn ask_of(connect: &Connect, scope: &mut UserScope<'_>) -> Result<(Ask, bool), EvaluationError> {
    let mut path = Vec::new();
    let had_fragment = connect.path.render_reference(&mut path, scope)?;
    let path = String::from_utf8_lossy(&path).into_owned();
    let (headers, mut cookies) = (upgrade_headers(connect, scope)?, Vec::new());
    write_own_cookies(&connect.headers, &connect.cookies, &mut cookies, scope)?;
    let (mut method, mut body) = (String::new(), Vec::new());
    if let Some(request) = &connect.request {
        method.clone_from(&request.method);
        if let Body::Text(text) = &request.body {
            text.render(&mut body, scope)?;
        }
    }
    let resume = Resume::default();
    Ok((Ask { path, headers, cookies, method, body, resume }, had_fragment))
}
