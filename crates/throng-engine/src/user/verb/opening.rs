//! How a connection of a user comes to be, or does not.

use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;

use throng_base::{Said, Time};
use throng_expression::Fault;
use throng_metrics::{Cause, Stage};
use throng_program::{Body, Connect, Link, Scheme, Statement};
use throng_protocol::events::Resume;
use throng_protocol::framed::PacketReader;
use throng_protocol::http1::ResponseReader;
use throng_protocol::http2;
use throng_protocol::machine::Machine;
use throng_protocol::stream::StreamReader;
use throng_protocol::websocket::Key;

use crate::code::Instruction;
use crate::connector;
use crate::connector::{Ask, Handshake, Opened, Upgrade};
use crate::failure::{Ended, Failure, Finding};
use crate::prepared::{Plan, is_websocket, upgrade_headers};
use crate::recorder::{Attempt, RETRY_AFTER_MAX_S};
use crate::scope::{UserScope, scope};
use crate::spent::OpeningTimes;
use crate::template::{finish_cookies, write_own_cookies};
use crate::user::connection::{Connection, Later};
use crate::user::flow::Session;
use crate::user::outcome::Onward;
use crate::user::redirect::is_plain_path;
use crate::user::send::mqtt;
use crate::user::task::{Active, Doing, Opening};
use crate::user::verb::http::{resolve, unix_seconds};
use crate::user::{State, jar, redirect, watched};

impl State {
    /// A link as the scenario has it.
    fn of_link(&self, link: u8) -> Option<&Link> {
        let links = &self.shard.prepared.program.sessions[usize::from(self.session)].links;
        links.get(usize::from(link))
    }

    /// Adds to the cookies of the scenario what the user has for the request of a handshake.
    fn add_cookies(&self, target: u16, ask: &mut Ask) {
        let target = &self.shard.prepared.targets[usize::from(target)];
        let place = target.jar_place(unix_seconds(&self.shard, self.now));
        let mut header = std::mem::take(&mut ask.cookies);
        let place = place.named(ask.own_host().map(str::as_bytes));
        let jar = self.jar.as_deref().zip(Some(place));
        finish_cookies(jar, ask.path.as_bytes(), 0, &mut header);
        ask.cookies = header;
    }

    /// Keeps the cookies that the answer to a handshake sets.
    fn keep_cookies(&mut self, opening: &Opening) {
        let Some(set) = opening.progress.set_cookies.take() else { return };
        let shard = Rc::clone(&self.shard);
        let target = &shard.prepared.targets[usize::from(opening.target)];
        let place = target.jar_place(unix_seconds(&shard, self.now));
        let place = place.named(set.host.as_deref().map(str::as_bytes));
        let (who, now) = (self.who(), self.now);
        let own = self.jar.get_or_insert_default();
        let values = set.values.iter().map(|value| &**value);
        jar::keep(own, (place, &set.path), values, &shard, (who, now));
    }

    /// It is known which address the connection of a line went to, past those that refused it.
    fn settles(&mut self, line: u8, opening: &Opening) {
        self.lines.get_mut(line).place = opening.progress.place();
        // It did not open.
        if let Some(mut machine) = opening.progress.machine.take()
            && machine.lost()
        {
            self.memory().keep_machine(line, machine);
        }
    }

    /// What a stream of events that was lost is asked to go on with.
    fn resume(&self, line: u8) -> Resume {
        let resume = self.memory.as_ref().and_then(|memory| memory.resume(line));
        resume.cloned().unwrap_or_default()
    }

    fn attach(&mut self, line: u8, opened: Opened, opening: &Opening) {
        let target = opening.target;
        let shard = Rc::clone(&self.shard);
        let scheme = shard.prepared.targets[usize::from(target)].target.scheme;
        let mut recorder = shard.recorder.borrow_mut();
        recorder.connections.opened += 1;
        if let Some(row) = recorder.targets.of(self.lines.get(line).place) {
            row.connections_opened += 1;
        }
        recorder.connections.http2 += u64::from(opened.multiplexes);
        match opened.transport.resumes_tls() {
            Some(true) => recorder.connections.tls_resumed += 1,
            Some(false) => recorder.connections.tls_full += 1,
            None => {}
        }
        recorder.gauges.connections_open += 1;
        recorder.bytes_in += opened.bytes_in;
        recorder.bytes_out += opened.bytes_out;
        drop(recorder);
        let machine = opened.machine.unwrap_or_else(|| match scheme {
            scheme if scheme.is_redis() => Machine::Redis(Box::default()),
            _ if opened.multiplexes => {
                Machine::Http2(Box::new(http2::Client::new(&shard.prepared.limits.http2)))
            }
            Scheme::Http | Scheme::Https => Machine::Http1(ResponseReader::new()),
            _ if self.link(line).has_records() => Machine::Declared(PacketReader::new()),
            _ => Machine::Bytes(StreamReader::new()),
        });
        let times = (opening.progress.established.get().min(self.now), self.now);
        let mut connection = Connection::new(opened.transport, machine, target, times);
        if !opened.surplus.is_empty() {
            connection.keep_again(Later::Surplus(opened.surplus));
        }
        self.lines.get_mut(line).take_loss(&shard);
        self.arm(connection.machine.due());
        self.lines.get_mut(line).connection = Some(connection);
        if let Some(memory) = &mut self.memory {
            // The machine has it now.
            memory.keep_resume(line, None);
        }
        self.tell(|| watched::connected(&shard, target, &opened.times));
    }
}

impl Active<'_> {
    /// The verb `connect`: on a WebSocket target with the upgrade, to an event stream with its
    /// request.
    pub(in crate::user) fn connect(&mut self, connect: &Connect, plan: &Plan) {
        let line = self.user.line_of(connect.link);
        self.task.line = line;
        self.user.drop_connection(line, Ended::ByUs);
        self.flight_begins(connect.step);
        self.user.life(line).begins();
        match self.handshake(connect, plan) {
            Ok((target, handshake)) => self.open(target, handshake, connect.timeout),
            Err(finding) => {
                let onward = Onward::Anew { refused: true };
                self.step_failed(connect.step, &Attempt::default(), finding, onward);
            }
        }
    }

    /// What is asked for before the connection is open, and of which target.
    fn handshake(
        &mut self,
        connect: &Connect,
        plan: &Plan,
    ) -> Result<(u16, Option<Handshake>), Finding> {
        let shard = self.shard;
        let own = self.user.lines.get(self.task.line).target;
        if let (Some(opened), Plan::Connect { call: Some(head), .. }) = (&connect.call, plan) {
            return Ok((own, Some(Handshake::Call(self.ask_for_call(opened, head, own)?))));
        }
        let events = self.user.of_link(connect.link).is_some_and(|link| link.events);
        let scheme = shard.prepared.targets[usize::from(own)].target.scheme;
        let (mut target, mut upgrade) = (own, None);
        if events || is_websocket(scheme) {
            let mut scope = scope!(self.user, shard);
            let asked = ask_of(connect, &mut scope)
                .and_then(|asked| Ok((asked, protocols_of(connect, &mut scope)?)));
            let ((ask, had_fragment), protocols) = asked.map_err(|fault| scope.finding(fault))?;
            let (led, mut ask) = self.lead_handshake(connect, ask, had_fragment, events)?;
            self.user.add_cookies(led, &mut ask);
            if events {
                ask.resume = self.user.resume(self.task.line);
                return Ok((led, Some(Handshake::Events(ask))));
            }
            let key = Key::random(&mut self.user.random);
            (target, upgrade) = (led, Some(Upgrade { ask, protocols, key }));
        }
        let place = &shard.prepared.targets[usize::from(target)].target;
        if let Some(login) = connector::login_to(place, &mut self.user.random) {
            return Ok((target, Some(login)));
        }
        let Some(client) = &connect.mqtt else {
            return Ok((target, upgrade.map(Handshake::WebSocket)));
        };
        let line = self.task.line;
        let kept = self.user.memory.as_mut().and_then(|memory| memory.take_machine(line));
        let mut scope = scope!(self.user, shard);
        let greeting = mqtt::greeting(client, upgrade, kept, &mut scope)?;
        Ok((target, Some(Handshake::Mqtt(greeting))))
    }

    /// As with a request: a path that begins with a value may be a URL.
    fn lead_handshake(
        &self,
        connect: &Connect,
        ask: Ask,
        had_fragment: bool,
        events: bool,
    ) -> Result<(u16, Ask), Finding> {
        let goes_as_it_is = ask.path.is_empty() || is_plain_path(&ask.path);
        if connect.path.begins_with().is_none() || goes_as_it_is && !had_fragment {
            return Ok((self.user.lines.get(self.task.line).target, ask));
        }
        let reference = match events {
            true => Cow::Borrowed(&*ask.path),
            false => redirect::websocket_url(&ask.path),
        };
        let (target, path) = resolve(self.user, self.task.line, &connect.path, &reference)?;
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

    /// A connection is open, or it is known why not.
    pub(in crate::user) fn opened(&mut self, result: Result<Opened, Failure>) {
        let Doing::Opening(opening) = std::mem::replace(&mut self.task.doing, Doing::Step) else {
            return;
        };
        self.task.deadline = Time::NEVER;
        self.shard.recorder.borrow_mut().gauges.connections_opening -= 1;
        self.user.settles(self.task.line, &opening);
        self.user.keep_cookies(&opening);
        let opened = match result {
            Ok(opened) => opened,
            Err(failure) => {
                opening.failed(self.shard, Some(failure.cause));
                return self.not_opened(&failure);
            }
        };
        let waited = opening.begun - self.task.due;
        let resumed = opened.transport.resumes_tls();
        let times = OpeningTimes::new(waited, &opened.times, resumed);
        self.shard.opening.set(Some((self.user.id, times)));
        let attempt = Attempt {
            latency: Some(self.user.now - self.task.due),
            waited,
            opening: Some(times),
            code: opened.status,
            bytes_in: opened.bytes_in,
            bytes_out: opened.bytes_out,
            ..Attempt::default()
        };
        self.user.attach(self.task.line, opened, &opening);
        let (instruction, plan) = self.at_pc();
        if let Instruction::Do(Statement::Connect(connect)) = instruction {
            if let Some(connection) = self.user.lines.connection_mut(self.task.line) {
                connection.is_opened(connect.step, self.task.due);
            }
            let has_login = matches!(plan, Plan::Connect { has_login: true, .. });
            self.user.life(self.task.line).connected(has_login);
            self.step_ok(connect.step, &attempt);
            self.next_step();
        }
    }

    /// Whoever waits before another try waits at least as long as the target has asked for.
    fn hold_as_told(&mut self, retry_after_s: u64) {
        let until = self.user.now + Duration::from_secs(retry_after_s.min(RETRY_AFTER_MAX_S));
        if matches!(self.task.doing, Doing::Holding) && until > self.task.deadline {
            self.wait_for(Doing::Holding, until);
        }
    }

    fn not_opened(&mut self, failure: &Failure) {
        let place = self.user.lines.get(self.task.line).place;
        if let Some(row) = self.shard.recorder.borrow_mut().targets.of(place) {
            row.connections_failed += 1;
        }
        let retry_after_s = u64::from(failure.retry_after_s);
        let attempt = Attempt { code: failure.status, retry_after_s, ..Attempt::default() };
        let finding = (failure.cause, failure.detail.clone());
        let instruction = self.instruction();
        match (instruction, instruction.step()) {
            (Instruction::Do(Statement::Connect(connect)), _) => {
                let onward = Onward::Anew { refused: true };
                self.step_failed(connect.step, &attempt, finding, onward);
                self.hold_as_told(retry_after_s);
            }
            (Instruction::Do(one), Some(step)) if one.opens_itself() => {
                self.withdraw_again();
                self.task.detour = None;
                self.step_failed(step, &attempt, finding, Onward::HoldBack);
            }
            // Only these open connections.
            _ => {
                self.interrupt();
                Session::new(self).restart(true);
            }
        }
    }

    pub(in crate::user) fn opening_timed_out(&mut self, opening: &Opening) {
        self.user.settles(self.task.line, opening);
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.gauges.connections_opening -= 1;
        let stage = opening.progress.stage.get();
        let waited = self.user.now - self.task.due;
        let (target, stages) = (opening.target, (stage, opening.missing));
        let failure = connector::no_answer(self.shard, target, stages, waited);
        if stage == Stage::Connect {
            self.shard.routes.failed(opening.target);
        }
        recorder.stage_failed(stage, failure.cause);
        drop(recorder);
        opening.failed(self.shard, Some(failure.cause));
        self.not_opened(&failure);
    }
}

fn no_web_socket(url: &str) -> Said {
    say!("`{url}` is not the URL of a WebSocket target of this scenario")
}

fn no_event_stream(url: &str) -> Said {
    say!("`{url}` is not an event stream URL")
}

/// The sub-protocols that one user offers; an empty one is none.
fn protocols_of(connect: &Connect, scope: &mut UserScope<'_>) -> Result<Vec<String>, Fault> {
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

/// The request of a handshake as one user sends it, and whether its path was a URL with a fragment.
fn ask_of(connect: &Connect, scope: &mut UserScope<'_>) -> Result<(Ask, bool), Fault> {
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
