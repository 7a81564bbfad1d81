//! The protocol of a connection: state machines that turn bytes into responses, without sockets or
//! a clock.

mod chat;
mod mqtt;
mod push;

use throng_base::Time;

use crate::address::Address;
use crate::http::Tail;
use crate::http::{
    self, Body, Fields, HEAD_BYTES_MAX, Head, KEPT_BODY_BYTES_MAX, Plan, Refusal, Reply,
};
use crate::im::{self, Command, Outcome};
use crate::output::Finish;
use crate::setup::Setup;
use crate::turn::{Fault, Turn};
use crate::websocket::{self, Code, Event, Opcode};
use chat::Chat;
use mqtt::Mqtt;
use push::Push;

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Http,
    Echo,
    Im,
    Chat,
    Push,
    Mqtt,
    Admin,
}

impl Role {
    /// Whether messages of other connections are sent on its connections.
    pub(crate) fn has_others(self) -> bool {
        matches!(self, Role::Im | Role::Chat | Role::Push | Role::Mqtt)
    }

    /// Where the kind of a packet is, of roles that deliver.
    pub(crate) fn kind_at(self) -> usize {
        match self {
            Role::Push => crate::push::KIND_AT,
            Role::Mqtt => crate::mqtt::KIND_AT,
            _ => crate::chat::KIND_AT,
        }
    }
}

/// The protocol state of one connection, small while it is idle.
#[derive(Debug)]
pub(crate) enum Session {
    Http(Http),
    /// Echoes bytes.
    Raw,
    WebSocket(WebSocket),
    Chat(Chat),
    Push(Push),
    Mqtt(Mqtt),
    /// HTTP/2 from here on: another task continues the connection.
    Http2,
}

/// Waits for a request, or for the rest of one.
#[derive(Debug)]
pub(crate) struct Http {
    role: Role,
    /// Bytes of an incomplete head that were searched already.
    scanned: u32,
    reading: Option<Box<Reading>>,
}

/// A request whose body is incomplete.
#[derive(Debug)]
struct Reading {
    plan: Plan,
    reply: Reply,
    body: Body,
    kept: Vec<u8>,
    received: u64,
}

#[derive(Debug)]
pub(crate) struct WebSocket {
    role: Role,
    reader: websocket::FrameReader,
    /// The key of the logged-in user.
    user: Option<u64>,
}

impl Session {
    pub(crate) fn new(role: Role, now: Time) -> Session {
        match role {
            Role::Chat => Session::Chat(Chat::default()),
            Role::Push => Session::Push(Push::new(now)),
            Role::Mqtt => Session::Mqtt(Mqtt::new(now)),
            _ => Session::Http(Http { role, scanned: 0, reading: None }),
        }
    }

    /// True if a user is logged in.
    pub(crate) fn is_logged_in(&self) -> bool {
        match self {
            Session::WebSocket(websocket) => websocket.user.is_some(),
            Session::Chat(chat) => chat.is_logged_in(),
            Session::Push(push) => push.is_bound(),
            Session::Mqtt(mqtt) => mqtt.is_connected(),
            Session::Http(_) | Session::Raw | Session::Http2 => false,
        }
    }

    /// Whether its client was silent for too long.
    pub(crate) fn is_overdue(&mut self, now: Time) -> bool {
        match self {
            Session::Mqtt(mqtt) => mqtt.is_overdue(now),
            _ => false,
        }
    }

    /// What its client is told before it is sent away, if there is a message for that.
    pub(crate) fn farewell(&self) -> Option<Vec<u8>> {
        match self {
            Session::Mqtt(mqtt) => Some(mqtt.farewell()),
            _ => None,
        }
    }

    /// The connection ends: its user is logged out. May be called more than once.
    pub(crate) fn end(&mut self, setup: &Setup, address: Address) {
        match self {
            Session::WebSocket(websocket) => {
                websocket
                    .user
                    .take()
                    .into_iter()
                    .for_each(|user| setup.worker_stats.people.leave(user));
            }
            Session::Chat(chat) => chat.end(setup, address),
            Session::Push(push) => push.end(setup, address),
            Session::Mqtt(mqtt) => mqtt.end(setup, address),
            Session::Http(_) | Session::Raw | Session::Http2 => {}
        }
    }

    /// Parses complete requests of `input` and returns their length. The rest must be passed again,
    /// followed by newer bytes.
    pub(crate) fn receive(&mut self, input: &mut [u8], turn: &mut Turn<'_>) -> usize {
        let mut used = 0;
        while used < input.len() && !turn.is_over() {
            let rest = &mut input[used..];
            let (n, next) = match self {
                Session::Http(http) => http.receive(rest, turn),
                Session::Raw => (raw(rest, turn), None),
                Session::WebSocket(websocket) => (websocket.receive(rest, turn), None),
                Session::Chat(chat) => (chat.receive(rest, turn), None),
                Session::Push(push) => (push.receive(rest, turn), None),
                Session::Mqtt(mqtt) => (mqtt.receive(rest, turn), None),
                Session::Http2 => break,
            };
            used += n;
            match next {
                Some(next) => *self = next,
                None if n == 0 => break,
                None => {}
            }
        }
        used
    }
}

/// Echoes one piece of bytes.
fn raw(input: &[u8], turn: &mut Turn<'_>) -> usize {
    turn.counts.messages += 1;
    if turn.draws_reset() {
        turn.reset();
    } else {
        turn.reply(|out| out.extend_from_slice(input));
    }
    input.len()
}

type Step = (usize, Option<Session>);

impl Http {
    /// Handles at most one request.
    fn receive(&mut self, input: &[u8], turn: &mut Turn<'_>) -> Step {
        if let Some(reading) = self.reading.take() {
            return (self.go_on(*reading, input, turn), None);
        }
        // RFC 9112, section 2.2: empty lines before a request are skipped.
        if self.role != Role::Echo && input.starts_with(b"\r\n") {
            return (2, None);
        }
        if self.role == Role::Echo && !begins_get(input) {
            return (0, Some(Session::Raw));
        }
        if self.role == Role::Http && http::begins_http2(input) {
            let whole = input.len() >= http::PREFACE.len();
            return (0, whole.then_some(Session::Http2));
        }
        let Some(end) = http::find_end(input, self.scanned as usize) else {
            return self.incomplete(input, turn);
        };
        self.scanned = 0;
        if end > HEAD_BYTES_MAX {
            return self.incomplete(&input[..end], turn);
        }
        match http::parse(&input[..end]) {
            Ok(head) => self.request(&head, input, end, turn),
            Err(_) if self.role == Role::Echo => (0, Some(Session::Raw)),
            Err(refusal) => (end, refuse(refusal, false, turn)),
        }
    }

    fn incomplete(&mut self, input: &[u8], turn: &mut Turn<'_>) -> Step {
        if input.len() <= HEAD_BYTES_MAX {
            self.scanned = input.len() as u32;
            return (0, None);
        }
        if self.role == Role::Echo {
            return (0, Some(Session::Raw));
        }
        (input.len(), refuse(Refusal::new(431, "the head is too long"), false, turn))
    }

    fn request(&mut self, head: &Head<'_>, input: &[u8], end: usize, turn: &mut Turn<'_>) -> Step {
        let upgrades = head.asks_for_websocket();
        match self.role {
            Role::Echo if !upgrades => return (0, Some(Session::Raw)),
            Role::Im if !upgrades => {
                let refusal = Refusal::new(426, "this server speaks WebSocket");
                return (end, refuse(refusal, head.method == "HEAD", turn));
            }
            Role::Echo | Role::Im => return (end, upgrade(self.role, head, turn)),
            Role::Http | Role::Admin | Role::Chat | Role::Push | Role::Mqtt => {}
        }
        match self.start(head, turn) {
            Ok(reading) => (end + self.go_on(reading, &input[end..], turn), None),
            Err(refusal) => (end, refuse(refusal, head.method == "HEAD", turn)),
        }
    }

    fn start(&self, head: &Head<'_>, turn: &mut Turn<'_>) -> Result<Reading, Refusal> {
        let plan = http::plan(head, self.role == Role::Admin)?;
        let reply = Reply::new(head)?;
        let body_max = if plan.keeps_body() {
            KEPT_BODY_BYTES_MAX as u64
        } else {
            http::DRAINED_BODY_BYTES_MAX
        };
        if head.length.is_some_and(|length| length > body_max) {
            return Err(Refusal::new(413, "the body is too long"));
        }
        let body = match head.length {
            _ if head.chunked => Body::Chunked(Default::default()),
            length => Body::Length(length.unwrap_or(0)),
        };
        if head.expects_continue && !body.is_complete() {
            turn.say(b"HTTP/1.1 100 Continue\r\n\r\n", None);
        }
        Ok(Reading { plan, reply, body, kept: Vec::new(), received: 0 })
    }

    /// Reads the part of the body that is in `input`, and responds if the body is complete.
    fn go_on(&mut self, mut reading: Reading, input: &[u8], turn: &mut Turn<'_>) -> usize {
        match reading.read(input) {
            Err(refusal) => {
                refuse(refusal, false, turn);
                input.len()
            }
            Ok(used) if reading.body.is_complete() => {
                answer(reading, turn);
                used
            }
            Ok(used) => {
                self.reading = Some(Box::new(reading));
                used
            }
        }
    }
}

impl Reading {
    fn read(&mut self, input: &[u8]) -> Result<usize, Refusal> {
        let keeps = self.plan.keeps_body();
        let (kept, received) = (&mut self.kept, &mut self.received);
        let used = self.body.read(input, |piece| {
            *received += piece.len() as u64;
            if keeps {
                kept.extend_from_slice(piece);
            }
        })?;
        let too_long = *received > http::DRAINED_BODY_BYTES_MAX || kept.len() > KEPT_BODY_BYTES_MAX;
        if too_long { Err(Refusal::new(413, "the body is too long")) } else { Ok(used) }
    }
}

/// True if this is, or may become, the start of a GET.
fn begins_get(input: &[u8]) -> bool {
    let start = b"GET ";
    let common = input.len().min(start.len());
    input[..common] == start[..common]
}

fn refuse(refusal: Refusal, head_only: bool, turn: &mut Turn<'_>) -> Option<Session> {
    turn.counts.refused += 1;
    let mut bytes = Vec::new();
    http::refuse(&mut bytes, refusal, head_only);
    turn.say(&bytes, Some(Finish::Linger));
    None
}

/// Responds to a complete request.
fn answer(reading: Reading, turn: &mut Turn<'_>) {
    let Reading { plan, reply, kept, .. } = reading;
    let (setup, finish) = (turn.setup, reply.finish());
    if let Plan::Admin(admin) = plan {
        // Without latency and uncounted: admin requests are not part of the load.
        let text = admin.perform(turn.setup, &kept);
        let mut bytes = Vec::new();
        let reply = Reply { slow: None, ..reply };
        http::render(&text, &[], reply, setup, turn.random, &mut bytes);
        return turn.say(&bytes, finish);
    }
    turn.counts.requests += 1;
    if let Err(refused) = turn.enter() {
        let plan = Plan::refused(refused);
        let reply = Reply { slow: None, ..reply };
        return turn.answer_at_once(finish, |out, random| {
            http::render(&plan, &[], reply, setup, random, out)
        });
    }
    let plan = match turn.fault() {
        Fault::None => plan,
        Fault::Error => Plan::Status(500),
        Fault::Reset => return turn.reset(),
    };
    if let Plan::Events(events) = &plan {
        turn.counts.event_streams += 1;
        turn.counts.event_streams_resumed += u64::from(events.resumed);
        let reply = Reply { slow: None, ..reply };
        return turn
            .stream(finish, |out, random| http::render(&plan, &[], reply, setup, random, out));
    }
    turn.answer(finish, |out, random| http::render(&plan, &kept, reply, setup, random, out));
}

/// Responds to a WebSocket upgrade (RFC 6455, section 4.2).
fn upgrade(role: Role, head: &Head<'_>, turn: &mut Turn<'_>) -> Option<Session> {
    let key = head.fields.get("sec-websocket-key").and_then(websocket::accept_key);
    let refusal = match key {
        _ if head.method != "GET" || head.minor == 0 => {
            Refusal::bad("a WebSocket upgrade must be an HTTP/1.1 GET")
        }
        _ if head.chunked || head.length.is_some_and(|length| length > 0) => {
            Refusal::bad("an upgrade request must not have a body")
        }
        _ if head.fields.get("sec-websocket-version") != Some("13") => {
            Refusal::new(426, "this server supports WebSocket version 13")
        }
        None => Refusal::bad("Sec-WebSocket-Key is not 16 bytes in Base64"),
        Some(accept) => {
            turn.counts.requests += 1;
            let answer = http::switching_protocols(&accept, first_protocol(head.fields));
            turn.say(&answer, None);
            let reader = websocket::FrameReader::default();
            return Some(Session::WebSocket(WebSocket { role, reader, user: None }));
        }
    };
    refuse(refusal, false, turn)
}

/// The first subprotocol that the client offers; this server accepts any.
fn first_protocol(fields: Fields<'_>) -> Option<&str> {
    let offered = fields.get("sec-websocket-protocol")?.split(',').next()?.trim();
    (!offered.is_empty()).then_some(offered)
}

impl WebSocket {
    /// Handles at most one frame.
    fn receive(&mut self, input: &mut [u8], turn: &mut Turn<'_>) -> usize {
        let (role, user) = (self.role, &mut self.user);
        let result = self.reader.read(input, |event| match event {
            Event::Message { opcode, data } => {
                turn.counts.messages += 1;
                match role {
                    Role::Im => message(data, user, turn),
                    _ => echo(opcode, data, turn),
                }
            }
            Event::Ping(data) => {
                let mut pong = Vec::new();
                websocket::write_frame(&mut pong, Opcode::Pong, data);
                turn.say(&pong, None);
            }
            Event::Pong => {}
            Event::Close(code) => {
                turn.say(&websocket::close_frame(code), Some(Finish::Linger));
            }
        });
        match result {
            Ok(used) => used,
            Err(code) => {
                turn.counts.refused += 1;
                turn.say(&websocket::close_frame(Some(code)), Some(Finish::Linger));
                input.len()
            }
        }
    }
}

fn echo(opcode: Opcode, data: &[u8], turn: &mut Turn<'_>) {
    match turn.fault() {
        Fault::Reset => turn.reset(),
        Fault::Error => {
            let frame = websocket::close_frame(Some(Code::INTERNAL_ERROR));
            turn.answer(Some(Finish::Linger), |out, _| {
                out.extend_from_slice(&frame);
                Tail::None
            });
        }
        Fault::None => turn.reply(|out| websocket::write_frame(out, opcode, data)),
    }
}

/// Replies to a message to the messenger.
fn message(text: &[u8], user: &mut Option<u64>, turn: &mut Turn<'_>) {
    let fault = match turn.fault() {
        Fault::Reset => return turn.reset(),
        fault => fault,
    };
    let message = im::Message::read(text);
    let outcome = match fault {
        Fault::Error => Outcome::Error,
        _ => obey(&message.command(), user, turn),
    };
    turn.reply(|out| websocket::frame(out, Opcode::Text, |out| message.answer(outcome, out)));
}

/// Executes a command.
fn obey(command: &Command<'_>, user: &mut Option<u64>, turn: &mut Turn<'_>) -> Outcome {
    match command {
        Command::Malformed => return Outcome::Malformed,
        Command::Unknown => return Outcome::Unknown,
        Command::Heartbeat if user.is_none() => return Outcome::NotLoggedIn,
        Command::Heartbeat => turn.counts.heartbeats += 1,
        Command::Ping => {}
        Command::Login(name) => {
            turn.counts.logins += 1;
            // A second login on a connection replaces the first.
            if let Some(earlier) = user.take() {
                turn.worker_stats.people.leave(earlier);
            }
            let (key, twice) = turn.worker_stats.people.enter(name);
            turn.counts.double_logins += u64::from(twice);
            *user = Some(key);
        }
    }
    Outcome::Success
}
