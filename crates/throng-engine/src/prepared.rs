//! A program prepared for sending: everything that is the same for all users is rendered once, so
//! that a typical request is one write of bytes that already exist.

pub(crate) mod check_plan;
pub(crate) mod code;
pub(crate) mod cookies;
pub(crate) mod expected;
mod grpc;
pub(crate) mod haste;
pub(crate) mod template;

use std::net::SocketAddr;
use std::sync::Arc;

use throng_base::{Random, StepId, UserId};
use throng_expression::{EvaluationError, Nowhere, Scope};
use throng_extract::Digest;
use throng_load::comers;
use throng_metrics::Place;
use throng_program::sessions;
use throng_program::{
    Audience, Check, Connect, ConnectOptions, Delivery, Every, Handler, Heartbeat, Http, Link,
    Load, Lookup, Phase, Program, Retry, Save, Scheme, Session, Slow, Statement, Target, Until,
    Which,
};
use throng_protocol::framed::{MessageId, Protocol, Records};
use throng_protocol::http1::{self, RequestKind};
use throng_protocol::machine::Limits;
use throng_protocol::protobuf::{MessageType, Schema};
use throng_protocol::{http2, stream, websocket};

use crate::transport::pace::slowest;
use check_plan::CheckPlan;
use code::{Code, Instruction};
use expected::Expected;
pub(crate) use grpc::{CallHead, CallPlan, CallResponse};
use haste::After;
use template::{
    Detour, Extras, Parts, SentTo, Template, finish_cookies, is_cookie, is_same_for_all, own_host,
    shared_body,
};

/// A program with the data that shards need to run it. Immutable and shared by all: with a thousand
/// steps it takes a megabyte, and there may be a thousand shards.
pub(crate) struct Prepared {
    pub(crate) program: Arc<Program>,
    pub(crate) sessions: Vec<SessionPlan>,
    pub(crate) targets: Vec<PreparedTarget>,
    /// All addresses of all targets at the start of the run, if there are several or they may
    /// change; those beyond the maximum are not distinguished.
    pub(crate) places: Box<[Place]>,
    pub(crate) loads: Vec<LoadPlan>,
    /// Resolution of the population map; zero if no user has a long-lived connection.
    pub(crate) users_per_cell: u64,
    /// By row of the ledger: how to recognize its messages.
    pub(crate) deliveries: Box<[CheckPlan]>,
    /// Saved values that audiences depend on: the first slots of every session.
    pub(crate) audience_slots: u16,
    /// By step: the row of the ledger for what it sends.
    senders: Box<[Option<u16>]>,
    pub(crate) limits: Limits,
}

pub(crate) struct PreparedTarget {
    pub(crate) target: Target,
    pub(crate) authority: String,
    /// Those at the start of the run.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Secure cookies may be sent there.
    pub(crate) secure_cookies: bool,
    /// Index of the first one among those of all targets.
    pub(crate) first_place: u16,
}

impl PreparedTarget {
    /// The place for which a user's cookie jar is read.
    pub(crate) fn jar_place(&self, unix_seconds: u64) -> cookies::CookiePlace<'_> {
        let (host, secure) = (self.target.host_alone(), self.secure_cookies);
        cookies::CookiePlace { host, secure, unix_seconds }
    }
}

/// The prepared data of an instruction.
pub(crate) enum Plan {
    Nothing,
    Connect {
        /// Login messages follow; the user is not online before they are answered.
        has_login: bool,
        /// The header block of a call that stays open.
        call: Option<Box<CallHead>>,
    },
    Http(HttpPlan),
    Call(Box<CallPlan>),
    Sql {
        check_plan: CheckPlan,
        /// The first row is read by a check, save or expression.
        keeps: bool,
    },
    /// For an `expect` or `request`.
    Answer(AnswerPlan),
    Stay(StayPlan),
}

/// How unsolicited messages are handled.
#[derive(Default)]
pub(crate) struct StayPlan {
    pub(crate) handlers: Box<[HandlerPlan]>,
    /// How the reply to its heartbeat is checked.
    pub(crate) answer: CheckPlan,
    /// Where the bodies of recurring actions start.
    pub(crate) every: Box<[u32]>,
}

pub(crate) struct HandlerPlan {
    /// Whether a message matches.
    pub(crate) which: CheckPlan,
    pub(crate) check_plan: CheckPlan,
    /// Where its body starts.
    pub(crate) body: Option<u32>,
}

impl StayPlan {
    fn new(
        handlers: &[Handler],
        every: &[Every],
        heartbeat: Option<&Heartbeat>,
        code: &Code,
    ) -> StayPlan {
        let plan = |handler: &Handler| HandlerPlan {
            which: CheckPlan::new(&handler.message.checks, &[]),
            check_plan: CheckPlan::new(&handler.checks, &handler.saves),
            body: handler.body.as_ref().map(|body| code.begin_of(body)),
        };
        StayPlan {
            handlers: handlers.iter().map(plan).collect(),
            answer: CheckPlan::new(heartbeat.map_or(&[], |beat| &beat.answer.checks), &[]),
            every: every.iter().map(|every| code.begin_of(&every.body)).collect(),
        }
    }
}

/// The prepared data of a session.
pub(crate) struct SessionPlan {
    /// Its users open a long-lived connection, and are online while they have one.
    pub(crate) connects: bool,
    pub(crate) code: Code,
    /// By instruction.
    pub(crate) plans: Vec<Plan>,
    /// By instruction: what a user does after the reply.
    pub(crate) after: Box<[After]>,
    /// As [`Session::links`]; at least one.
    pub(crate) links: Box<[LinkPlan]>,
}

/// Lines of a link whose connection many requests share: one for the current connection, and others
/// for earlier ones that the target is leaving while responses are in flight. A target that limits
/// the age of its connections leaves one every few seconds, and each stays open until its longest
/// stream has ended.
const SHARED_WIDTH: u8 = 8;

/// The prepared data of a link of a session.
pub(crate) struct LinkPlan {
    /// Its lines are `width` of a user's, starting with this one.
    pub(crate) first: u8,
    pub(crate) width: u8,
    /// Its connections may be able to carry several requests at a time.
    pub(crate) multiplexes: bool,
    /// Its connection is opened by a `connect`, and stays open.
    pub(crate) lasts: bool,
    /// What its users do when their connection is lost.
    pub(crate) reconnect: Option<Retry>,
    /// How slow its connections are on purpose, at any time.
    pub(crate) slow: Slow,
    /// The protocol of its connections.
    pub(crate) protocol: Option<Arc<Protocol>>,
    /// Its protocol has messages.
    has_messages: bool,
    /// Without a protocol: the end of each received message.
    delimiter: Option<Box<[u8]>>,
    /// The type of received messages, if its connections are calls.
    reply: Option<MessageType>,
    /// The link's own handlers and heartbeat.
    pub(crate) hears: StayPlan,
    /// By row of the ledger: whether its messages belong to the protocol of the link.
    pub(crate) speaks: Box<[bool]>,
    /// By row of the ledger: whether its users are in the audience.
    pub(crate) receives: Box<[bool]>,
    /// Messages that some `expect` waits for: they are kept until it takes them.
    pub(crate) expected: Expected,
    /// The indexes of its targets.
    pub(crate) targets: Box<[u16]>,
    /// The sum of their weights.
    pub(crate) target_weight: u64,
    /// Distance between the positions of consecutive users in the sum of weights: coprime to the
    /// sum, so that all positions are taken in turn, and a target's are spread out.
    pub(crate) target_stride: u64,
}

pub(crate) struct AnswerPlan {
    /// Where the reply ends on a raw stream.
    pub(crate) until: stream::Until,
    /// Whether a message is the one that is waited for.
    pub(crate) which: CheckPlan,
    pub(crate) check_plan: CheckPlan,
    /// The login is complete with this reply: it is the last of the messages right after a
    /// `connect`.
    pub(crate) logs_in: bool,
}

pub(crate) struct HttpPlan {
    pub(crate) kind: RequestKind,
    pub(crate) needs_body: bool,
    /// The body is not kept: checks only need its size and these digests.
    pub(crate) streamed: Option<Box<[Digest]>>,
    /// The request may be resent if a kept connection turns out to be closed (RFC 9110, 9.2.2).
    pub(crate) idempotent: bool,
    pub(crate) looks_at_headers: bool,
    pub(crate) check_plan: CheckPlan,
    /// The path starts with a value, which may be a URL.
    pub(crate) leads: bool,
    /// Slots it saves that some path of the session starts with.
    pub(crate) links: Box<[u16]>,
    pub(crate) written: Written,
    /// A long body that all users share; it is sent from here, after the head.
    pub(crate) body: Option<Arc<[u8]>>,
}

/// A request, rendered as far as possible.
pub(crate) enum Written {
    /// The complete request except for a shared body, per target: no part differs per user.
    Fixed(Vec<Fixed>),
    Varies(Template),
}

pub(crate) struct Fixed {
    pub(crate) bytes: Box<[u8]>,
    /// The head for HTTP/2, if that may be negotiated.
    pub(crate) block: Box<[u8]>,
    pub(crate) parts: Parts,
}

impl Fixed {
    /// Writes the request with its extra headers.
    pub(crate) fn write(&self, http: &Http, extras: &Extras<'_>, out: &mut Vec<u8>) {
        let Parts { cookies, head_end } = &self.parts;
        out.extend_from_slice(&self.bytes[..cookies.start]);
        let begin = out.len();
        let own = &self.bytes[cookies.clone()];
        out.extend_from_slice(own.strip_suffix(b"\r\n").unwrap_or(own));
        let path = http.path.as_literal().unwrap_or_default();
        finish_cookies(extras.jar_of(own_host(http, None)), path, begin, out);
        out.extend_from_slice(&self.bytes[cookies.end..*head_end]);
        if let Some((name, value)) = extras.trace {
            http1::write_header(out, name, value);
        }
        out.extend_from_slice(&self.bytes[*head_end..]);
    }
}

/// The index of a random item, by weight.
pub(crate) fn weighted(weights: impl Iterator<Item = u32>, sum: u64, random: &mut Random) -> usize {
    at_weight(weights, random.below(sum))
}

/// The index of the item whose share of the sum of weights contains this position.
fn at_weight(weights: impl Iterator<Item = u32>, mut left: u64) -> usize {
    for (index, weight) in weights.enumerate() {
        if left < u64::from(weight) {
            return index;
        }
        left -= u64::from(weight);
    }
    0
}

/// Spreads the order of sessions across blocks of users (the golden ratio of 2^64).
const ROW: u64 = 0x9e37_79b9_7f4a_7c15;

/// More users than any load has.
const BEYOND_BITS: u32 = 44;

/// The prepared data of a load.
pub(crate) struct LoadPlan {
    /// The number of its first phase among those of all loads.
    pub(crate) first_phase: u16,
    /// How many users of the run precede its own.
    pub(crate) first_user: u64,
    /// How many numbers it owns.
    users: u64,
    /// Base of the numbers for users that an amendment of the load adds; no other load uses them.
    beyond: u64,
    /// By session of the run; 0 for a counted one, or one of another load.
    weights: Box<[u32]>,
    weight: u64,
    /// Distance between consecutive users, as for the targets of a link.
    stride: u64,
    seed: u64,
    /// For counted sessions: the last user of each, and the session.
    pub(crate) counted: Box<[(u64, usize)]>,
    /// The session of users beyond the counted ones, if there is no other.
    pub(crate) last: usize,
}

impl LoadPlan {
    /// The users of a load have consecutive numbers, after those of earlier loads.
    fn all(program: &Program) -> Vec<LoadPlan> {
        let mut first_user: u64 = 0;
        let firsts = program.first_phases();
        let loads = firsts.into_iter().zip(&program.loads).enumerate();
        let plan = |(number, (first_phase, load)): (usize, (u16, &Load))| {
            let sessions = || program.sessions_of(number);
            let mut weights = vec![0; program.sessions.len()];
            for (index, session) in sessions() {
                weights[index] = if session.count.is_some() { 0 } else { session.weight };
            }
            let mut last = 0;
            let counted = sessions().filter_map(|(index, session)| Some((session.count?, index)));
            let counted = counted.map(|(count, index)| {
                last += count;
                (last, index)
            });
            let counted = counted.collect();
            let common = weights.iter().copied().map(u64::from).fold(0, common).max(1);
            weights.iter_mut().for_each(|weight| *weight = (u64::from(*weight) / common) as u32);
            let weight = weights.iter().copied().map(u64::from).sum();
            let last = sessions().last().map_or(0, |(index, _)| index);
            let before = first_user;
            let users = comers(load);
            first_user = before.saturating_add(users);
            let is_last = number + 1 == program.loads.len();
            let beyond = if is_last { 0 } else { (number as u64 + 1) << BEYOND_BITS };
            LoadPlan {
                first_phase,
                first_user: before,
                users,
                beyond,
                weights: weights.into(),
                weight,
                stride: stride(weight),
                seed: program.seed,
                counted,
                last,
            }
        };
        loads.map(plan).collect()
    }

    /// The session of a new user, by its number in the load from 1: a counted one, or by weight. Of
    /// each block of users as long as the sum of weights, every session gets exactly its share; the
    /// blocks start with different sessions, so that sessions do not align with shards or phases.
    pub(crate) fn session_of(&self, number: u64) -> usize {
        if let Some((_, session)) = self.counted.iter().find(|(last, _)| number <= *last) {
            return *session;
        }
        if self.weight == 0 {
            return self.last;
        }
        let counted = self.counted.last().map_or(0, |(last, _)| *last);
        let index = (number - counted).saturating_sub(1);
        let (row, index) = (index / self.weight, index % self.weight);
        let begin = Random::new(self.seed ^ row.wrapping_mul(ROW)).below(self.weight);
        let place = u128::from(index) * u128::from(self.stride) + u128::from(begin);
        let place = (place % u128::from(self.weight)) as u64;
        at_weight(self.weights.iter().copied(), place)
    }

    /// The identity in the run of a user of this load.
    pub(crate) fn user(&self, own: UserId) -> UserId {
        let beyond = if own.0 > self.users { self.beyond } else { 0 };
        UserId(self.first_user + own.0 + beyond)
    }

    /// The number in this load of the user with this identity; the inverse of [`LoadPlan::user`].
    pub(crate) fn own(&self, user: UserId) -> UserId {
        let own = user.0.saturating_sub(self.first_user);
        UserId(if own > self.users { own.saturating_sub(self.beyond) } else { own })
    }
}

/// How many users share a cell of the population map.
fn users_per_cell(sessions: &[SessionPlan], loads: &[LoadPlan]) -> u64 {
    let planned = loads.last().map_or(0, |last| last.first_user.saturating_add(last.users));
    match sessions.iter().any(|session| session.connects) {
        true => throng_metrics::cells::users_per_cell(planned),
        false => 0,
    }
}

/// The number in its load of the user with this identity. Every identity has exactly one, even if
/// no user has it.
pub(crate) fn own_number(loads: &[LoadPlan], user: UserId) -> UserId {
    // Numbers beyond the plan of a load are ambiguous: the smallest is meant.
    let own = loads.iter().map(|plan| (plan, plan.own(user)));
    let is_so = |(plan, own): &(&LoadPlan, UserId)| own.0 > 0 && plan.user(*own) == user;
    let own = own.filter(is_so).map(|(_, own)| own);
    own.min_by_key(|own| own.0).unwrap_or(user)
}

/// Every target has a place, also without an address.
fn first_places(addresses: &[Vec<SocketAddr>]) -> impl Iterator<Item = u16> {
    addresses.iter().scan(0_u16, |next, of_target| {
        let first = *next;
        *next = next.saturating_add(of_target.len().max(1) as u16);
        Some(first)
    })
}

fn places(addresses: &[Vec<SocketAddr>], may_change: bool) -> Box<[Place]> {
    let mut places = Vec::new();
    for (target, of_target) in (0_u16..).zip(addresses) {
        places.extend(of_target.iter().map(|address| Place { target, address: Some(*address) }));
        if of_target.is_empty() {
            places.push(Place { target, address: None });
        }
    }
    if places.len() < 2 && !may_change || places.len() >= usize::from(u16::MAX) {
        places.clear();
    }
    places.into()
}

impl Prepared {
    /// The prepared data of a link of a session.
    #[inline]
    pub(crate) fn link(&self, session: u16, link: u8) -> &LinkPlan {
        let links = &self.sessions[usize::from(session)].links;
        &links[usize::from(link).min(links.len() - 1)]
    }

    /// The type of a protobuf message, for checks.
    pub(crate) fn proto(&self, message: MessageType) -> Option<(&Schema, MessageType)> {
        self.program.schema.as_deref().map(|schema| (schema, message))
    }

    /// The row of the ledger for what the step sends.
    #[inline]
    pub(crate) fn delivery_of(&self, step: StepId) -> Option<u16> {
        self.senders[step.index()]
    }

    /// The handler of a session that has this body: one of the session, or of a `stay` in it.
    pub(crate) fn handler_with(&self, session: u16, body: u32) -> Option<(&Handler, &HandlerPlan)> {
        let session = usize::from(session);
        let own = &self.program.sessions[session];
        let links = own.links.iter().zip(&self.sessions[session].links);
        let of_links =
            links.flat_map(|(link, plan)| link.handlers.iter().zip(&plan.hears.handlers));
        let plans = &self.sessions[session];
        let stays = plans.code.all.iter().zip(&plans.plans);
        let of_stays = stays.filter_map(|both| match both {
            (Instruction::Do(Statement::Stay(stay)), Plan::Stay(plan)) => {
                Some(stay.handlers.iter().zip(&plan.handlers))
            }
            _ => None,
        });
        of_links.chain(of_stays.flatten()).find(|(_, plan)| plan.body == Some(body))
    }

    /// Keeps the bodies of all responses, whether the scenario uses them or not.
    pub(crate) fn keep_bodies(&mut self) {
        for plan in self.sessions.iter_mut().flat_map(|session| &mut session.plans) {
            if let Plan::Http(plan) = plan {
                plan.needs_body = true;
                plan.streamed = None;
            }
        }
    }

    pub(crate) fn new(program: Arc<Program>, addresses: &[Vec<SocketAddr>]) -> Prepared {
        let targets: Vec<PreparedTarget> = program
            .targets
            .iter()
            .zip(addresses)
            .zip(first_places(addresses))
            .map(|((target, addresses), first_place)| PreparedTarget {
                target: target.clone(),
                authority: target.authority(),
                addresses: addresses.clone(),
                secure_cookies: cookies::is_secure(target),
                first_place,
            })
            .collect();
        let may_change = program.targets.iter().any(|target| target.lookup != Lookup::Once);
        let limits = &program.limits;
        let loads = LoadPlan::all(&program);
        let plan = |session| SessionPlan::new(session, &program, &targets);
        let sessions: Vec<SessionPlan> = program.sessions.iter().map(plan).collect();
        Prepared {
            places: places(addresses, may_change),
            deliveries: program
                .deliveries
                .iter()
                .map(|delivery| CheckPlan::new(&delivery.received.checks, &[]))
                .collect(),
            audience_slots: audience_slots(&program),
            senders: senders(&program),
            users_per_cell: users_per_cell(&sessions, &loads),
            sessions,
            loads,
            limits: Limits {
                http1: http1::Limits {
                    head_bytes_max: limits.head_bytes_max,
                    body_bytes_max: limits.body_bytes_max,
                    ..http1::Limits::default()
                },
                http2: http2::Limits {
                    head_bytes_max: limits.head_bytes_max,
                    ..http2::Limits::default()
                },
                websocket: websocket::Limits {
                    message_bytes_max: limits.message_bytes_max,
                    frame_bytes_max: limits.message_bytes_max as u64,
                },
            },
            targets,
            program,
        }
    }
}

/// Saved values that audiences depend on have the first slots of every session.
fn audience_slots(program: &Program) -> u16 {
    let looks = program.deliveries.iter().filter_map(|delivery| match &delivery.audience {
        Audience::Everyone => None,
        Audience::Same(is) | Audience::To { is, .. } => Some(is.slots()),
    });
    let slots = looks.flat_map(|slots| slots.needed.into_iter().chain(slots.tested));
    slots.max().map_or(0, |last| last + 1)
}

/// A request of this size fits into one segment on any network.
const ONE_SEGMENT_BYTES: usize = 500;

impl Prepared {
    /// Whether the kernel is to timestamp what arrives. Not in a closed model without pauses: a
    /// shard never sleeps there although something has arrived, and timestamps cost 3 % per packet.
    pub(crate) fn stamps(&self) -> bool {
        let is_paced = |phase: &Phase| phase.drive.is_paced();
        let waits = |session: &SessionPlan| session.after.contains(&After::Waits);
        self.program.phases().any(is_paced) || self.sessions.iter().any(waits)
    }

    /// Whether a connection may have more than one small segment in flight. A user that sends one
    /// short HTTP request at a time never has.
    pub(crate) fn sends_in_pieces(&self) -> bool {
        let short = |written: &Written| match written {
            Written::Fixed(all) => all.iter().all(|one| one.bytes.len() <= ONE_SEGMENT_BYTES),
            Written::Varies(_) => false,
        };
        !self.sessions.iter().flat_map(|session| &session.plans).all(|plan| match plan {
            Plan::Http(plan) => plan.body.is_none() && short(&plan.written),
            Plan::Answer(_) | Plan::Call(_) | Plan::Connect { .. } | Plan::Stay(_) => false,
            // One statement at a time is one write.
            Plan::Nothing | Plan::Sql { .. } => true,
        })
    }
}

/// The prepared data of each instruction of a session.
fn plans(
    code: &Code,
    session: &Session,
    program: &Program,
    targets: &[PreparedTarget],
) -> Vec<Plan> {
    let of = |one: &Instruction| plan(one, code, session, program, targets);
    let mut plans: Vec<Plan> = code.all.iter().map(of).collect();
    for connect in 0..code.own().len() {
        if let Some(last) = end_of_login(code, connect)
            && let Plan::Answer(answer) = &mut plans[last]
        {
            answer.logs_in = true;
            if let Plan::Connect { has_login, .. } = &mut plans[connect] {
                *has_login = true;
            }
        }
    }
    plans
}

fn plan(
    instruction: &Instruction,
    code: &Code,
    session: &Session,
    program: &Program,
    targets: &[PreparedTarget],
) -> Plan {
    let Instruction::Do(statement) = instruction else { return Plan::Nothing };
    match statement {
        Statement::Http(http) => Plan::Http(http_plan(http, session, program, targets)),
        Statement::Call(call) => match CallPlan::new(call, program, targets) {
            Some(plan) => Plan::Call(Box::new(plan)),
            None => Plan::Nothing,
        },
        Statement::Sql(sql) => {
            let check_plan = CheckPlan::new(&sql.checks, &sql.saves);
            Plan::Sql { check_plan, keeps: sql.looks_at_rows() }
        }
        Statement::Connect(connect) => {
            let schema = program.schema.as_deref();
            let options = connect.options.as_deref();
            let opened = options.and_then(ConnectOptions::call).zip(schema);
            let head = |(opened, schema)| CallHead::new(opened, None, schema, targets);
            Plan::Connect { has_login: false, call: opened.map(head).map(Box::new) }
        }
        Statement::Expect(expect) => {
            answer_plan(&expect.until, &expect.message, &expect.checks, &expect.saves)
        }
        Statement::Request(request) => {
            answer_plan(&request.until, &request.answer, &request.checks, &request.saves)
        }
        Statement::Stay(stay) => {
            Plan::Stay(StayPlan::new(&stay.handlers, &stay.every, stay.heartbeat.as_ref(), code))
        }
        _ => Plan::Nothing,
    }
}

/// By step: the row of the ledger for what it sends.
fn senders(program: &Program) -> Box<[Option<u16>]> {
    let mut senders = vec![None; program.steps.len()];
    for (row, delivery) in program.deliveries.iter().enumerate() {
        for step in delivery.senders() {
            senders[step.index()] = Some(row as u16);
        }
    }
    senders.into()
}

/// The steps that open a link of the session.
pub(crate) fn connects(session: &Session, link: u8) -> impl Iterator<Item = &Connect> {
    session.all().filter_map(move |statement| match statement {
        Statement::Connect(connect) if connect.link == link => Some(&**connect),
        _ => None,
    })
}

/// The greatest common divisor.
pub(crate) fn common(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A number coprime to `sum`, near its golden section.
pub(crate) fn stride(sum: u64) -> u64 {
    let begin = ((sum as f64 * 0.618) as u64).max(1);
    (begin..=begin + sum).find(|stride| common(*stride, sum) == 1).unwrap_or(1)
}

impl SessionPlan {
    fn new(session: &Session, program: &Program, targets: &[PreparedTarget]) -> SessionPlan {
        let code = Code::new(session);
        let opens = |statement: &Statement| matches!(statement, Statement::Connect(_));
        // A session whose steps need no connection still has a target.
        let none = [Link::default()];
        let links = match &*session.links {
            [] => &none,
            links => links,
        };
        let mut first = 0;
        let plan = |(number, link)| {
            let mut plan = LinkPlan::new(session, &code, number as u8, link, program);
            plan.first = first;
            first += plan.width;
            plan
        };
        SessionPlan {
            connects: session.all().any(opens),
            after: haste::of(&code),
            links: links.iter().enumerate().map(plan).collect(),
            plans: plans(&code, session, program, targets),
            code,
        }
    }
}

impl LinkPlan {
    fn new(session: &Session, code: &Code, number: u8, link: &Link, program: &Program) -> LinkPlan {
        let protocol = link.protocol.and_then(|one| program.protocols.get(usize::from(one)));
        let expects = session.own().filter_map(|statement| match statement {
            Statement::Expect(expect) if expect.link == number => Some(&expect.message),
            _ => None,
        });
        let targets: Box<[u16]> = match link.targets.is_empty() {
            true => (0..program.targets.len() as u16).collect(),
            false => link.targets.clone(),
        };
        // Members of an audience have a long-lived connection whose protocol contains the message.
        let lasts = connects(session, number).next().is_some();
        let speaks = |delivery: &Delivery| lasts && delivery.protocol == link.protocol;
        let speaks: Box<[bool]> = program.deliveries.iter().map(speaks).collect();
        let weight = |target: &u16| u64::from(program.targets[usize::from(*target)].weight);
        let target_weight = targets.iter().map(weight).sum::<u64>().max(1);
        let schemes = || {
            let target = |number: &u16| program.targets.get(usize::from(*number));
            targets.iter().filter_map(target).map(|target| target.scheme)
        };
        let is_secure = schemes().any(Scheme::is_secure);
        let options = || connects(session, number).filter_map(|one| one.options.as_deref());
        let keeps_session = options().any(ConnectOptions::keeps_session);
        let subscribes = keeps_session || schemes().any(Scheme::subscribes);
        let can_receive = !subscribes || session.can_receive(number);
        // Background tasks use connections of their own if they have to.
        let background = code.background().iter();
        let asks = |one: &Instruction| {
            let opens = matches!(one, Instruction::Do(statement) if statement.opens_itself());
            opens && one.link() == Some(number)
        };
        let multiplexes = program.connection.http_version.may_multiplex(is_secure)
            || schemes().any(Scheme::needs_http2);
        let shares = multiplexes && !lasts && program.connection.streams > 1;
        LinkPlan {
            first: 0,
            multiplexes,
            width: match background.filter(|one| asks(one)).count() {
                0 if shares => SHARED_WIDTH,
                0 => 1,
                _ => link.width.unwrap_or(sessions::HTTP_WIDTH).max(1),
            },
            lasts,
            reconnect: connects(session, number).find_map(|connect| connect.reconnect),
            slow: slowest(session.all(), number),
            protocol: protocol.cloned(),
            has_messages: keeps_session,
            delimiter: link.delimiter.clone(),
            reply: options().find_map(|options| {
                Some(program.schema.as_deref()?.method(options.call()?.method).output)
            }),
            hears: StayPlan::new(&link.handlers, &link.every, link.heartbeat.as_ref(), code),
            receives: speaks.iter().map(|speaks| *speaks && can_receive).collect(),
            speaks,
            expected: Expected::new(expects),
            targets,
            target_weight,
            target_stride: stride(target_weight),
        }
    }
}

impl LinkPlan {
    /// The target of a user. All users of the run are assigned in turn: exactly by weight, so that
    /// every source port can be used with every target.
    pub(crate) fn target_of(&self, id: UserId, prepared: &Prepared) -> u16 {
        let weight = |target: &u16| prepared.targets[usize::from(*target)].target.weight;
        let turn = u128::from(id.0) * u128::from(self.target_stride);
        let place = (turn % u128::from(self.target_weight)) as u64;
        let chosen = at_weight(self.targets.iter().map(weight), place);
        self.targets.get(chosen).copied().unwrap_or_default()
    }

    /// How received messages are separated, if the transport does not do it. Messages that end with
    /// a delimiter have at most `bytes_max` bytes.
    pub(crate) fn records(&self, bytes_max: usize) -> Option<Records<'_>> {
        match (&self.protocol, &self.delimiter) {
            (Some(protocol), _) => Some(Records::Declared(protocol)),
            (None, Some(delimiter)) => Some(Records::Delimited { delimiter, bytes_max }),
            (None, None) => None,
        }
    }

    pub(crate) fn has_records(&self) -> bool {
        self.protocol.is_some() || self.delimiter.is_some() || self.has_messages
    }

    /// The type of its messages, if its connections are calls.
    pub(crate) fn reply<'a>(&self, prepared: &'a Prepared) -> Option<(&'a Schema, MessageType)> {
        prepared.proto(self.reply?)
    }

    /// Whether one kind of message may be the reply to the other.
    pub(crate) fn answers(&self, reply: MessageId, request: MessageId) -> bool {
        let protocol = self.protocol.as_deref();
        protocol.is_some_and(|protocol| protocol.info(reply).answers.contains(&request))
    }

    pub(crate) fn is_reply(&self, message: MessageId) -> bool {
        let protocol = self.protocol.as_deref();
        let info = protocol.map(|protocol| protocol.info(message));
        info.is_some_and(|info| !info.push && !info.answers.is_empty())
    }

    pub(crate) fn comes_unasked(&self, message: MessageId) -> bool {
        self.protocol.as_deref().is_some_and(|protocol| protocol.comes_unasked(message))
    }
}

/// Where the login that starts with this `connect` ends: at the last reply to the messages right
/// after it, over its link, in the same part of the session. Steps of the iterations do not belong
/// to a login in `before`. `None` without a login: the user is online as soon as it is connected.
fn end_of_login(code: &Code, connect: usize) -> Option<usize> {
    let opens = code.all.get(connect)?;
    let Instruction::Do(Statement::Connect(opens)) = opens else { return None };
    let parts = [code.begin, code.end, code.last].map(|end| end as usize);
    let end = parts.into_iter().find(|end| connect < *end)?;
    let is_login = |instruction: &Instruction| {
        use Statement::{Expect, Request, Secure, Send};
        let says = |one: &Statement| matches!(one, Send(_) | Secure(_) | Request(_) | Expect(_));
        instruction.is_instant() || matches!(instruction, Instruction::Do(one) if says(one))
    };
    let run = code.all[connect + 1..end].iter().take_while(|instruction| is_login(instruction));
    let answered = |one: &Instruction| match one {
        Instruction::Do(Statement::Request(request)) => request.link == opens.link,
        Instruction::Do(Statement::Expect(expect)) => expect.link == opens.link,
        _ => false,
    };
    let last = run.enumerate().filter(|(_, one)| answered(one)).last();
    last.map(|(index, _)| connect + 1 + index)
}

fn answer_plan(until: &Until, which: &Which, checks: &[Check], saves: &[Save]) -> Plan {
    let check_plan = CheckPlan::new(checks, saves);
    let which = CheckPlan::new(&which.checks, &[]);
    let until = match until {
        Until::Any => stream::Until::Any,
        Until::Length(length) => stream::Until::Length(*length),
        // The language rejects an empty delimiter.
        Until::Delimiter(bytes) => stream::Until::delimiter(bytes).unwrap_or(stream::Until::Any),
        Until::Pattern(pattern) => stream::Until::Pattern(pattern.clone()),
    };
    Plan::Answer(AnswerPlan { until, which, check_plan, logs_in: false })
}

fn http_plan(
    http: &Http,
    session: &Session,
    program: &Program,
    targets: &[PreparedTarget],
) -> HttpPlan {
    let keep_alive = program.connection.keep_alive;
    let template = Template::new(http, keep_alive, Detour::default());
    let fixed = |target: &PreparedTarget| {
        let mut bytes = Vec::new();
        let extras = Extras { authority: &target.authority, jar: None, trace: None };
        let mut nobody = Nowhere::default();
        let parts = template.render(http, &extras, &mut nobody, &mut SentTo::default(), &mut bytes);
        let mut block = Vec::new();
        let scheme = target.target.scheme;
        if program.connection.http_version.may_multiplex(scheme.is_secure()) {
            http2::write_block(&mut block, scheme.word(), &bytes);
        }
        parts.ok().map(|parts| Fixed { bytes: bytes.into(), block: block.into(), parts })
    };
    // A literal that cannot be sent, such as a header that contains a line end, fails at its step.
    let fixed: Option<Vec<Fixed>> = match is_same_for_all(http) {
        true => targets.iter().map(fixed).collect(),
        false => None,
    };
    let written = fixed.map_or(Written::Varies(template), Written::Fixed);
    let kind = match http.method.as_str() {
        "HEAD" => RequestKind::Head,
        "CONNECT" => RequestKind::Connect,
        _ if http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("upgrade")) => {
            RequestKind::Upgrade
        }
        _ => RequestKind::Normal,
    };
    let method = http.method.as_str();
    HttpPlan {
        kind,
        needs_body: http.needs_body(),
        streamed: http.streamed().map(Vec::into),
        idempotent: matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE"),
        looks_at_headers: http.needs_headers(),
        check_plan: CheckPlan::new(&http.checks, &http.saves),
        leads: http.path.begins_with().is_some(),
        links: links(http, session),
        written,
        body: shared_body(http).map(Arc::from),
    }
}

/// The slots that a step saves and that some path of the session starts with.
fn links(http: &Http, session: &Session) -> Box<[u16]> {
    let paths = session.all().filter_map(|statement| match statement {
        Statement::Http(http) => http.path.begins_with(),
        Statement::Connect(connect) => connect.path.begins_with(),
        _ => None,
    });
    let wanted: Vec<u16> = paths.flat_map(|value| value.slots().needed).collect();
    let saved = http.saves.iter().map(|save| save.slot);
    saved.filter(|slot| wanted.contains(slot)).collect()
}

/// The headers of one user's WebSocket upgrade, without its cookies.
pub(crate) fn upgrade_headers(
    connect: &Connect,
    scope: &mut dyn Scope,
) -> Result<Vec<(String, String)>, EvaluationError> {
    let mut headers = Vec::with_capacity(connect.headers.len());
    for (name, text) in connect.headers.iter().filter(|(name, _)| !is_cookie(name)) {
        if !text.is_given(scope) {
            continue;
        }
        let mut value = Vec::new();
        text.render(&mut value, scope)?;
        headers.push((name.clone(), String::from_utf8_lossy(&value).into_owned()));
    }
    Ok(headers)
}

/// Whether messages on this target are WebSocket messages.
pub(crate) fn is_websocket(scheme: Scheme) -> bool {
    matches!(scheme, Scheme::Ws | Scheme::Wss)
}

#[cfg(test)]
mod tests {
    use throng_base::Share;

    use super::*;

    fn plan(weights: &[u32], counted: &[(u64, usize)], seed: u64) -> LoadPlan {
        let weight = weights.iter().copied().map(u64::from).sum();
        LoadPlan {
            first_phase: 0,
            first_user: 0,
            users: 1_000_000,
            beyond: 0,
            weights: weights.into(),
            weight,
            stride: stride(weight),
            seed,
            counted: counted.into(),
            last: 0,
        }
    }

    #[test]
    fn consecutive_users_are_shared_exactly_by_weight() {
        for seed in 0..50 {
            for (weights, users, want) in [
                (&[1, 1][..], 6, &[3, 3][..]),
                (&[1, 2], 6, &[2, 4]),
                (&[7, 0, 3], 20, &[14, 0, 6]),
                (&[1], 5, &[5]),
            ] {
                let plan = plan(weights, &[], seed);
                let mut got = vec![0; weights.len()];
                (1..=users).for_each(|number| got[plan.session_of(number)] += 1);
                assert_eq!(got, want, "{weights:?} {seed}");
            }
            // After the counted ones.
            let plan = plan(&[0, 1, 1], &[(3, 0)], seed);
            let got: Vec<usize> = (1..=7).map(|number| plan.session_of(number)).collect();
            assert_eq!(got[..3], [0, 0, 0]);
            assert_eq!(got[3..].iter().filter(|one| **one == 1).count(), 2, "{got:?}");
        }
    }

    #[test]
    fn each_user_number_belongs_to_one_machine() {
        let of = |first_user, users, beyond| LoadPlan {
            first_user,
            users,
            beyond,
            ..plan(&[1], &[], 1)
        };
        let loads = [of(0, 10, 1 << 40), of(10, 20, 2 << 40), of(30, 5, 0)];
        let shares = [Share::of_machine(0, 1, 4), Share::of_machine(1, 3, 4)];
        let owners = |user: UserId| {
            let own = own_number(&loads, user).0.saturating_sub(1);
            let owners = shares.iter().filter(|share| share.local(own).is_some());
            owners.copied().collect::<Vec<_>>()
        };
        for user in (0..60).chain([(1 << 40) + 11, (2 << 40) + 77, u64::MAX]) {
            assert_eq!(owners(UserId(user)).len(), 1, "{user}");
        }
        for share in shares {
            // Some users of each load are beyond its plan.
            for (plan, local) in loads.iter().flat_map(|plan| (0..30).map(move |at| (plan, at))) {
                assert_eq!(owners(plan.user(share.user(local))), [share]);
            }
        }
    }

    #[test]
    fn each_shard_runs_all_sessions() {
        let plan = plan(&[1, 1], &[], 7);
        let even = (1..=1000).map(|number| plan.session_of(2 * number)).filter(|one| *one == 0);
        let count = even.count();
        assert!((400..600).contains(&count), "{count}");
    }
}
