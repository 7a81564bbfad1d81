//! Simulated runs: thousands of users against servers that refuse, reset, stop responding and send
//! garbage. A seed replays its run exactly.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Random, Share, StepId, Time};
use throng_data::{Reader, Source, Table};
use throng_expression::{Expression, Name, Names, UnknownName};
use throng_metrics::{Cause, Interval, Stage, StepInterval};
use throng_program::{
    Arrivals, Block, Body, Check, CloseMode, Coming, Connect, ConnectionOptions, Drive, Escape,
    Extractor, Failing, Heartbeat, Http, Iterations, Limits, Link, Load, Matcher, Message,
    MessageKind, Pause, Phase, Program, Request, Scheme, Segment, Session, Statement, StatusSet,
    Stay, StepInfo, StepKind, Target, Text, Tls, Until, Users, Which,
};
use throng_protocol::websocket::{Inflater, Key, Opcode, Role, write_frame};
use tokio::sync::mpsc::{channel, unbounded_channel};

use super::*;
use crate::control::{Control, Gate, Stopped};
use crate::driver::drive;
use crate::network::Connector;
use crate::network::lookups::Lookups;
use crate::prepared::Prepared;
use crate::recorder::Example;
use crate::recorder::logs::Line;
use crate::rendezvous::Places;
use crate::shard::alarm::Alarm;
use crate::shard::budget::Budget;
use crate::shard::{Parts, Shard};
use crate::trace::{Trace, Tracer};
use crate::world::{Deed, Hand, Server, World};

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

fn program(scheme: Scheme, sessions: Vec<Session>, steps: &[StepKind], phase: Phase) -> Program {
    let step = |kind: &StepKind| StepInfo::new(kind.word(), *kind);
    let all = steps.iter().chain(&[StepKind::Expression]);
    Program {
        name: "world".into(),
        labels: Default::default(),
        targets: vec![Target::new(scheme, "127.0.0.1", 1)],
        steps: all.map(step).collect(),
        sessions,
        broken: None,
        expressions: Some(StepId(steps.len() as u16)),
        protocols: Vec::new(),
        schema: None,
        deliveries: Vec::new(),
        setup: None,
        teardown: None,
        setup_values: Default::default(),
        loads: vec![Load::alone(vec![phase])],
        graceful_stop: 5 * S,
        precision: Duration::ZERO,
        thresholds: Vec::new(),
        abort_when: Vec::new(),
        hold_when: Vec::new(),
        events: Vec::new(),
        tls: Tls::default(),
        connection: ConnectionOptions { connect_timeout: S, ..ConnectionOptions::default() },
        limits: Limits::default(),
        data: Vec::new(),
        rendezvous: 0,
        trace: None,
        monitors: Vec::new(),
        audits: Vec::new(),
        outputs: Vec::new(),
        seed: 1,
        run_id: "r1".into(),
        users_room: 0,
        secrets: throng_base::Secrets::default(),
        changes: Vec::new(),
    }
}

fn phase(drive: Drive, time: Option<Duration>) -> Phase {
    Phase { name: "p".into(), drive, time, churn: None, measured: true }
}

/// Runs the first steps once, and the steps from `begin` on in each iteration.
fn session(mut before: Block, begin: usize) -> Session {
    let steps = before.split_off(begin);
    let slots = ["list", "item", "a", "b"].map(String::from).into();
    Session {
        name: "s".into(),
        weight: 1,
        before,
        steps,
        links: [Link::default()].into(),
        slots,
        ..Session::default()
    }
}

/// Stays with a heartbeat, if there is one.
fn stay(step: u16, heartbeat: Option<Heartbeat>) -> Statement {
    Statement::Stay(Arc::new(Stay {
        step: StepId(step),
        link: 0,
        time: None,
        ends: None,
        awaits_end: false,
        heartbeat,
        handlers: Vec::new(),
        every: Vec::new(),
        failing: Failing::default(),
    }))
}

fn get(checks: Vec<Check>) -> Statement {
    crate::world::get(200 * MS, checks)
}

fn with_timeout(mut request: Statement, timeout: Duration) -> Statement {
    if let Statement::Http(http) = &mut request {
        Arc::make_mut(http).timeout = timeout;
    }
    request
}

/// An HTTP server that answers every request after `delay` with the result of `answer`.
fn http_server(answer: impl Fn(&mut Random) -> Vec<(Duration, Deed)> + 'static) -> Server {
    Box::new(move |asked, random| {
        let mut deeds = Vec::new();
        while let Some(end) = asked.windows(4).position(|four| four == b"\r\n\r\n") {
            asked.drain(..end + 4);
            deeds.extend(answer(random));
        }
        deeds
    })
}

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn say(bytes: &[u8]) -> Deed {
    Deed::Say(bytes.to_vec())
}

/// The results of a simulated run.
struct Outcome {
    intervals: Vec<Interval>,
    sum: Interval,
    examples: Vec<Example>,
    logs: Vec<Line>,
    traces: Vec<Trace>,
    stopped: Option<Stopped>,
    world: Rc<World>,
    open: i64,
    most_open: i64,
    end: Time,
    /// Counts of the simulated network: requests that crossed a close, and the bytes of all
    /// sockets.
    unheard: u64,
    late: u64,
    read: u64,
    written: u64,
}

impl Outcome {
    fn new(world: &Rc<World>, end: Time, control: &Control) -> Outcome {
        Outcome {
            intervals: Vec::new(),
            sum: Interval::default(),
            examples: Vec::new(),
            logs: Vec::new(),
            traces: Vec::new(),
            stopped: control.stopped().cloned(),
            world: Rc::clone(world),
            open: world.open.get(),
            most_open: world.most_open.get(),
            end,
            unheard: world.unheard.get(),
            late: world.late.get(),
            read: world.read.get(),
            written: world.written.get(),
        }
    }

    fn errors(&self, cause: Cause) -> u64 {
        let total = self.sum.total();
        total.errors.iter().find(|(known, _)| *known == cause).map_or(0, |(_, count)| *count)
    }

    /// Invariants of every run, whatever happened in it.
    fn is_sound(&self, seed: u64) {
        let Outcome { sum, .. } = self;
        let total = sum.total();
        let failed: u64 = total.errors.iter().map(|(_, count)| count).sum();
        assert_eq!(total.count, total.ok + failed, "seed {seed}: every attempt ended once");
        assert_eq!(sum.gauges, throng_metrics::Gauges::default(), "seed {seed}: all is left");
        let c = &sum.connections.counts;
        let ended = c.closed_by_us + c.closed_by_target + c.reset + c.timed_out;
        let ended = ended + c.reset_by_us + c.vanished;
        let connects = sum.connections.stages.iter().find(|row| row.stage == Stage::Connect);
        let connected = connects.map_or(0, |row| row.ok);
        let accepted = self.world.accepted_at_all();
        assert_eq!((connected, ended), (accepted, accepted), "seed {seed}: {c:?}");
        assert!(c.opened <= accepted && accepted <= c.attempted, "seed {seed}: {c:?}");
        self.goes_on(seed);
        self.has_residences(seed);
        self.has_targets(seed);
        self.has_sessions(seed);
        self.has_picture(seed);
        assert!(sum.population.is_balanced(), "seed {seed}: {:?}", sum.population);
        let lives = &sum.lifecycle;
        assert!(lives.complete + lives.broken <= lives.begun, "seed {seed}: {lives:?}");
        for row in &sum.steps {
            assert!(row.is_balanced(), "seed {seed}: {row:?}");
        }
        let beats = &sum.heartbeats;
        assert!(beats.is_balanced(), "seed {seed}: {beats:?}");
        for stage in &sum.connections.stages {
            assert!(stage.ok + stage.failed <= stage.began, "seed {seed}: {stage:?}");
            let failed: u64 = stage.errors.iter().map(|(_, count)| count).sum();
            assert_eq!(stage.failed, failed, "seed {seed}: {stage:?}");
        }
        assert_eq!(sum.population.started, sum.population.finished, "seed {seed}");
        assert_eq!(self.open, 0, "seed {seed}: no connection is left open");
    }
}

fn run(program: Program, seed: u64, world: impl FnOnce(World) -> World, server: Server) -> Outcome {
    Play::new(program, seed).run(world, server)
}

fn run_with(
    program: Program,
    seed: u64,
    shape: impl FnOnce(World) -> World,
    server: Server,
    control: &Control,
    stop_at: Option<Time>,
) -> Outcome {
    let play = Play::new(program, seed);
    Play { control: control.clone(), stop_at, ..play }.run(shape, server)
}

/// A program that is about to run in a simulated world.
struct Play {
    program: Program,
    seed: u64,
    control: Control,
    stop_at: Option<Time>,
    shards: u64,
    traced: bool,
    gate: Option<Arc<Gate>>,
    kept_bytes_max: Option<u64>,
    /// The addresses of the targets; `None`: a single one for all.
    addresses: Option<Vec<Vec<SocketAddr>>>,
    /// The addresses of a name from some time on, by its number.
    moves: Vec<(Time, usize, Vec<SocketAddr>)>,
}

impl Play {
    fn new(program: Program, seed: u64) -> Play {
        Play {
            program,
            seed,
            control: Control::default(),
            stop_at: None,
            shards: 1,
            traced: false,
            gate: None,
            kept_bytes_max: None,
            addresses: None,
            moves: Vec::new(),
        }
    }

    fn run(self, shape: impl FnOnce(World) -> World, server: Server) -> Outcome {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build_local(tokio::runtime::LocalOptions::default())
            .unwrap();
        let hand = Hand::new();
        let world = Rc::new(shape(World::new(Rc::clone(&hand), self.seed, server)));
        if let Some(time) = self.stop_at {
            let control = self.control.clone();
            hand.at(time, move || control.stop());
        }
        let (reports, mut received) = unbounded_channel();
        let (tracer, mut traced) = channel(1_000_000);
        let places = Places::new(self.program.rendezvous);
        let program = Arc::new(self.program);
        let budget = Budget::new(self.kept_bytes_max, self.shards as usize);
        let names = self.addresses.as_ref().and_then(|all| Lookups::new(&program, all));
        let lookups = names.as_ref().map(|(lookups, _)| Arc::clone(lookups));
        for (at, name, found) in self.moves {
            let lookups = lookups.clone();
            hand.at(at, move || drop(lookups.and_then(|lookups| lookups.found(name, &found))));
        }
        runtime.block_on(async {
            let left = Rc::new(Cell::new(self.shards));
            let done = Rc::new(Cell::new(false));
            for index in 0..self.shards {
                let tracer = self.traced.then(|| Tracer::new(tracer.clone()));
                let mut parts = parts(&program, Share::WHOLE.thread(index, self.shards));
                parts.budget = Arc::clone(&budget);
                parts.lookups = lookups.clone();
                if let Some(addresses) = &self.addresses {
                    parts.prepared = Prepared::new(Arc::clone(&program), addresses).into();
                }
                if self.traced {
                    Arc::get_mut(&mut parts.prepared).unwrap().keep_bodies();
                }
                let readers = program.data.iter().map(|source| reader(source, program.seed));
                parts.control = self.control.clone();
                parts.places = places.clone();
                parts.tracer = tracer;
                parts.gate = self.gate.clone();
                let shard = simulated(parts, readers.collect(), (&hand, &world));
                let (driven, left) = (Rc::clone(&done), Rc::clone(&left));
                let reports = reports.clone();
                tokio::task::spawn_local(async move {
                    drive(shard, reports).await;
                    left.set(left.get() - 1);
                    driven.set(left.get() == 0);
                });
            }
            hand.run(&done).await;
        });
        drop(runtime);
        assert!(budget.is_whole(), "what was kept is given back");
        let end = hand.clock.now();
        // Messages in flight arrive: the server's counts are complete.
        while hand.advance() {}
        let mut outcome = Outcome::new(&world, end, &self.control);
        while let Ok(trace) = traced.try_recv() {
            outcome.traces.push(trace);
        }
        while let Ok(report) = received.try_recv() {
            outcome.intervals.push(report.interval);
            outcome.examples.extend(report.examples);
            outcome.logs.extend(report.logs);
        }
        outcome.intervals.iter().for_each(|interval| outcome.sum.merge_later(interval));
        outcome
    }
}

/// A shard in a simulated world.
fn simulated(
    parts: Parts,
    readers: Vec<Reader>,
    (hand, world): (&Rc<Hand>, &Rc<World>),
) -> Rc<Shard> {
    let connector = Connector::World(Rc::clone(world));
    let alarm = Alarm::simulated(Rc::clone(hand));
    Shard::new(parts, hand.clock.clone(), readers, connector, alarm)
}

fn parts(program: &Arc<Program>, share: Share) -> Parts {
    let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let targets = program.targets.len();
    Parts {
        share,
        ledgers: Vec::new(),
        presence: None,
        budget: Budget::new(None, 1),
        prepared: Prepared::new(Arc::clone(program), &vec![vec![address]; targets]).into(),
        lookups: None,
        control: Control::default(),
        places: Places::default(),
        tracer: None,
        gate: None,
        keep: None,
        give_back: None,
    }
}

fn reader(source: &Source, seed: u64) -> Reader {
    let table = Table::open(source, seed, Share::WHOLE).unwrap();
    Reader::open(&table).unwrap()
}

/// Two intervals of one second and phase would be added like those of two shards, including their
/// gauges.
#[test]
fn a_load_that_ends_within_a_second_has_one_interval_for_it() {
    let drive = Drive::Users(Users { to: 10, coming: Coming::AtOnce });
    let sessions = vec![session(vec![get(Vec::new())], 0)];
    let program = program(Scheme::Http, sessions, &[StepKind::Http], phase(drive, Some(2500 * MS)));
    let server = http_server(|_| vec![(700 * MS, say(HELLO))]);
    let outcome = run(program, 1, |world| world, server);
    let places: Vec<(u64, u16)> =
        outcome.intervals.iter().map(|one| (one.second, one.phase)).collect();
    assert!(places.windows(2).all(|pair| pair[0] != pair[1]), "{places:?}");
    assert!(outcome.intervals.iter().all(|one| one.gauges.users_online <= 10));
}

#[test]
fn arrivals_keep_their_rate_whatever_the_server_does() {
    let drive = Drive::Arrivals(Arrivals::ramp(500.0, 500.0));
    for delay in [MS, 150 * MS] {
        let program = program(
            Scheme::Http,
            vec![session(vec![get(Vec::new())], 0)],
            &[StepKind::Http],
            phase(drive.clone(), Some(4 * S)),
        );
        let server = http_server(move |_| vec![(delay, say(HELLO))]);
        let outcome = run(program, 2, |world| world, server);
        outcome.is_sound(2);
        assert_eq!(outcome.sum.total().ok, 2000);
        assert_eq!(outcome.sum.connections.counts.opened, 2000);
        assert!(outcome.sum.generator.lateness.max() < 1000, "simulated drivers are never late");
    }
}

#[test]
fn a_frozen_server_shows_in_the_response_times_of_an_open_model() {
    // 200 starts per second on 10 users; the server freezes for one second in the middle.
    let drive = Drive::Iterations(Iterations::new(10, Some(200.0), None));
    let one = program(
        Scheme::Http,
        vec![session(vec![with_timeout(get(Vec::new()), 10 * S)], 0)],
        &[StepKind::Http],
        phase(drive, Some(5 * S)),
    );
    let served = Cell::new(0);
    let server = http_server(move |_| {
        served.set(served.get() + 1);
        let delay = if (400..410).contains(&served.get()) { S } else { MS };
        vec![(delay, say(HELLO))]
    });
    let outcome = run(one, 3, |world| world, server);
    outcome.is_sound(3);
    let total = outcome.sum.total();
    assert_eq!(total.ok, 1000);
    assert!(outcome.sum.population.waited > 100, "{:?}", outcome.sum.population);
    // A fifth of all starts fell into the frozen second: they waited half of it on average.
    let p90 = total.latency.value_at(0.9);
    assert!(p90 > 300_000_000, "the wait is in the latency: {p90}");
    // Ten requests were in the server for a second, and no other took longer than usual.
    let service = total.service();
    assert_eq!((service.count(), service.max() / 1_000_000), (1000, 1000));
    let p98 = service.value_at(0.98);
    assert!(p98 < 3_000_000, "the wait is not in the service time: {p98}");
}

#[test]
fn failures_are_counted_by_cause_and_users_continue() {
    for seed in 1..20 {
        let drive = Drive::Users(Users { to: 300, coming: Coming::AtOnce });
        let program = program(
            Scheme::Http,
            vec![session(vec![get(vec![status(200)])], 0)],
            &[StepKind::Http],
            phase(drive, Some(3 * S)),
        );
        let server = http_server(|random| match random.below(12) {
            0 => vec![(MS, Deed::Reset)],
            1 => vec![(MS, Deed::Close)],
            2 => vec![(MS, say(b"SSH-2.0-OpenSSH_9.2\r\n"))],
            3 => vec![(MS, say(&HELLO[..30])), (MS, Deed::Close)],
            4 => vec![(MS, say(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))],
            5 => vec![(MS, say(&HELLO[..20]))],
            6 => vec![(MS, say(b"HTTP/1.1 200 OK\r\n\r\nuntil close")), (MS, Deed::Close)],
            7 => vec![(MS, say(&HELLO[..7])), (MS, say(&HELLO[7..]))],
            _ => vec![(MS, say(HELLO))],
        });
        let outcome = run(program, seed, |world| world.refuse(0.02).clog(0.1), server);
        outcome.is_sound(seed);
        for cause in [
            Cause::Reset,
            Cause::ClosedEarly,
            Cause::Malformed,
            Cause::StatusUnexpected,
            Cause::Timeout,
            Cause::ConnectRefused,
        ] {
            assert!(outcome.errors(cause) > 0, "seed {seed}: no {cause:?}");
        }
        assert!(outcome.sum.total().ok > 1000, "seed {seed}: {}", outcome.sum.total().ok);
    }
}

fn status(code: u16) -> Check {
    let set = StatusSet { ranges: vec![(code, code)] };
    Check { extractor: Extractor::Status, matcher: Matcher::Statuses(set) }
}

fn body(content: &str) -> Check {
    Check { extractor: Extractor::Body, matcher: Matcher::Equals(Text::literal(content)) }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let world = |seed| {
        let drive = Drive::Users(Users { to: 200, coming: Coming::Rate(400.0) });
        let program = program(
            Scheme::Http,
            vec![session(vec![get(Vec::new()), think()], 0)],
            &[StepKind::Http],
            phase(drive, Some(2 * S)),
        );
        let server = http_server(|random| match random.below(10) {
            0 => vec![(MS, Deed::Reset)],
            _ => vec![(Duration::from_micros(random.below(5000)), say(HELLO))],
        });
        run(program, seed, |world| world.refuse(0.1).clog(0.2), server).intervals
    };
    assert_eq!(world(7), world(7));
    assert_ne!(world(7), world(8));
}

fn think() -> Statement {
    Statement::Think(Pause::Uniform { low: MS, high: 20 * MS })
}

#[test]
fn a_stop_lets_steps_finish_but_cuts_off_unanswered_ones() {
    let drive = Drive::Users(Users { to: 100, coming: Coming::AtOnce });
    let one = program(
        Scheme::Http,
        vec![session(vec![with_timeout(get(Vec::new()), 3600 * S)], 0)],
        &[StepKind::Http],
        phase(drive, Some(3600 * S)),
    );
    let server = http_server(|random| match random.chance(0.001) {
        true => Vec::new(),
        false => vec![(10 * MS, say(HELLO))],
    });
    let control = Control::default();
    let stop = Some(Time::from_secs(2));
    let outcome = run_with(one, 5, |world| world, server, &control, stop);
    outcome.is_sound(5);
    let population = &outcome.sum.population;
    assert!(population.interrupted > 0 && population.interrupted < 100, "{population:?}");
    let last = outcome.intervals.last().map(|interval| interval.second);
    assert_eq!(last, Some(7), "the graceful stop takes five seconds");
}

#[test]
fn a_closed_target_gets_few_connection_attempts() {
    let drive = Drive::Users(Users { to: 10, coming: Coming::AtOnce });
    let program = program(
        Scheme::Http,
        vec![session(vec![get(Vec::new())], 0)],
        &[StepKind::Http],
        phase(drive, Some(10 * S)),
    );
    let outcome = run(program, 6, |world| world.refuse(1.0), http_server(|_| Vec::new()));
    outcome.is_sound(6);
    let refused = outcome.errors(Cause::ConnectRefused);
    assert!((50..400).contains(&refused), "{refused}");
}

#[test]
fn occasional_refusals_cause_only_short_backoff() {
    let drive = Drive::Users(Users { to: 10, coming: Coming::AtOnce });
    let code = vec![get(Vec::new())];
    let phase = phase(drive, Some(20 * S));
    let mut one = program(Scheme::Http, vec![session(code, 0)], &[StepKind::Http], phase);
    one.connection.keep_alive = false;
    let server = http_server(|_| vec![(MS, say(HELLO))]);
    let outcome = run(one, 1, |world| world.refuse(0.2), server);
    outcome.is_sound(1);
    // One in five is refused, which costs some 10 ms each time and not a second.
    assert!(outcome.sum.total().ok > 20_000, "{}", outcome.sum.total().ok);
}

fn connect() -> Statement {
    Statement::Connect(Arc::new(Connect {
        step: StepId(0),
        link: 0,
        path: Text::literal("/chat"),
        headers: Vec::new(),
        cookies: Vec::new(),
        request: None,
        protocols: Vec::new(),
        options: None,
        timeout: S,
        failing: Failing::default(),
        reconnect: None,
    }))
}

fn ask(content: &str, until: Until) -> Statement {
    Statement::Request(Arc::new(Request {
        step: StepId(1),
        link: 0,
        message: Message::plain(MessageKind::Text, Text::literal(content)),
        answer: Which::default(),
        until,
        checks: Vec::new(),
        saves: Vec::new(),
        timeout: 500 * MS,
        failing: Failing::default(),
    }))
}

#[test]
fn thousands_of_users_exchange_messages_over_websockets_and_answer_pings() {
    for (seed, faults) in [(11, 0), (12, 1)] {
        let drive = Drive::Users(Users { to: 2000, coming: Coming::Rate(4000.0) });
        let code = vec![connect(), ask("hello", Until::Any), think()];
        let program = program(
            Scheme::Ws,
            vec![session(code, 1)],
            &[StepKind::Connect, StepKind::Request],
            phase(drive, Some(2 * S)),
        );
        let outcome = run(program, seed, |world| world.clog(0.05), chat_server(faults));
        outcome.is_sound(seed);
        let total = outcome.sum.total();
        assert!(outcome.sum.traffic.messages.pings > 1000, "{:?}", outcome.sum.traffic.messages);
        assert!(total.ok > 50_000, "{}", total.ok);
        if faults == 0 {
            assert_eq!(total.errors, [], "seed {seed}");
            assert_eq!(outcome.sum.connections.counts.opened, 2000);
        } else {
            assert!(outcome.errors(Cause::Malformed) > 0 && outcome.errors(Cause::Reset) > 0);
            assert!(outcome.sum.connections.counts.opened > 2000, "users come back");
        }
    }
}

#[test]
fn users_in_a_stay_notice_a_lost_connection() {
    let drive = Drive::Users(Users { to: 100, coming: Coming::AtOnce });
    let code = vec![connect(), stay(1, None)];
    let program = program(
        Scheme::Ws,
        vec![session(code, 1)],
        &[StepKind::Connect, StepKind::Stay],
        phase(drive, Some(5 * S)),
    );
    let inner = chat_server(0);
    let server: Server = Box::new(move |asked, random| {
        let mut deeds = inner(asked, random);
        if random.chance(0.3) {
            deeds.push((S, Deed::Close));
        }
        deeds
    });
    let outcome = run(program, 13, |world| world, server);
    outcome.is_sound(13);
    assert!(outcome.errors(Cause::Lost) >= 20, "{}", outcome.errors(Cause::Lost));
    let online = outcome.intervals.iter().map(|one| one.gauges.users_online).max();
    assert_eq!(online, Some(100));
}

#[test]
fn replies_on_raw_streams_end_at_the_declared_delimiter() {
    let line = |text: &[u8]| Until::Delimiter(text.to_vec().into());
    let drive = Drive::Iterations(Iterations::new(20, None, Some(1000)));
    let code = vec![
        connect(),
        ask("two\r\n", line(b"\r\n")),
        Statement::Expect(Arc::new(throng_program::Expect {
            step: StepId(1),
            link: 0,
            message: Which::default(),
            until: line(b"\r\n"),
            checks: vec![body("second\r\n")],
            saves: Vec::new(),
            timeout: 100 * MS,
            failing: Failing::default(),
        })),
    ];
    let program = program(
        Scheme::Tcp,
        vec![session(code, 1)],
        &[StepKind::Connect, StepKind::Request],
        phase(drive, None),
    );
    let server: Server = Box::new(|asked, random| {
        let mut deeds = Vec::new();
        while let Some(end) = asked.iter().position(|byte| *byte == b'\n') {
            asked.drain(..=end);
            let answer = b"first\r\nsecond\r\n";
            let cut = random.below(answer.len() as u64) as usize;
            deeds.push((MS, say(&answer[..cut])));
            deeds.push((MS, say(&answer[cut..])));
        }
        deeds
    });
    let outcome = run(program, 14, |world| world.clog(0.2), server);
    outcome.is_sound(14);
    let total = outcome.sum.total();
    assert_eq!((total.errors.as_slice(), total.ok), (&[][..], 2020));
}

fn expect(content: &str) -> Statement {
    Statement::Expect(Arc::new(throng_program::Expect {
        step: StepId(1),
        link: 0,
        message: Which::default(),
        until: Until::Any,
        checks: vec![body(content)],
        saves: Vec::new(),
        timeout: 100 * MS,
        failing: Failing::default(),
    }))
}

/// Wraps a server: it sends `greeting` right after the upgrade.
fn greeting_server(greeting: Vec<u8>, then: Option<Deed>) -> Server {
    let inner = chat_server(0);
    Box::new(move |asked, random| {
        let upgrade = asked.starts_with(b"GET ");
        let mut deeds = inner(asked, random);
        if upgrade && let Some((_, Deed::Say(bytes))) = deeds.first_mut() {
            bytes.extend_from_slice(&greeting);
            deeds.extend(then.clone().map(|deed| (10 * MS, deed)));
        }
        deeds
    })
}

#[test]
fn messages_in_one_read_are_handled_one_after_another() {
    let mut greeting = Vec::new();
    write_frame(&mut greeting, Opcode::Text, true, false, None, b"one");
    write_frame(&mut greeting, Opcode::Text, true, false, None, b"two");
    for code in
        [vec![connect(), expect("one"), expect("two")], vec![connect(), ask("hello", Until::Any)]]
    {
        let drive = Drive::Arrivals(Arrivals::ramp(100.0, 100.0));
        let program = program(
            Scheme::Ws,
            vec![session(code, 1)],
            &[StepKind::Connect, StepKind::Request],
            phase(drive, Some(S)),
        );
        let server = greeting_server(greeting.clone(), None);
        let outcome = run(program, 15, |world| world, server);
        outcome.is_sound(15);
        assert_eq!(outcome.sum.total().errors, []);
    }
}

#[test]
fn a_connection_lost_during_think_time_is_the_targets_fault() {
    let long = Statement::Think(Pause::Uniform { low: 100 * MS, high: 100 * MS });
    let drive = Drive::Users(Users { to: 10, coming: Coming::AtOnce });
    let program = program(
        Scheme::Ws,
        vec![session(vec![connect(), long, ask("hello", Until::Any)], 1)],
        &[StepKind::Connect, StepKind::Request],
        phase(drive, Some(2 * S)),
    );
    let server = greeting_server(Vec::new(), Some(Deed::Close));
    let outcome = run(program, 16, |world| world, server);
    outcome.is_sound(16);
    assert!(outcome.errors(Cause::Lost) >= 10);
    assert_eq!(outcome.errors(Cause::ScenarioFailed), 0);
}

#[test]
fn a_session_that_only_sends_ends_with_its_load() {
    let say = Statement::Send(Arc::new(throng_program::Send {
        timeout: 30 * S,
        step: StepId(1),
        link: 0,
        message: Message::plain(MessageKind::Binary, Text::literal("x")),
        failing: Failing::default(),
    }));
    let drive = Drive::Users(Users { to: 3, coming: Coming::AtOnce });
    let program = program(
        Scheme::Tcp,
        vec![session(vec![connect(), say], 1)],
        &[StepKind::Connect, StepKind::Send],
        phase(drive, Some(5 * MS)),
    );
    let server: Server = Box::new(|asked, _| {
        asked.clear();
        Vec::new()
    });
    // Messages of one byte wait whenever the socket is full, so that time passes.
    let outcome = run(program, 17, |world| world.clog(0.5), server);
    outcome.is_sound(17);
    assert!(outcome.sum.total().ok > 50, "{}", outcome.sum.total().ok);
}

#[test]
fn an_overloaded_user_continues_and_its_latency_includes_the_wait() {
    // Ten times as many starts as one user can run.
    let drive = Drive::Iterations(Iterations::new(1, Some(100.0), None));
    let program = program(
        Scheme::Http,
        vec![session(vec![get(Vec::new())], 0)],
        &[StepKind::Http],
        phase(drive, Some(3 * S)),
    );
    let server = http_server(|_| vec![(100 * MS, say(HELLO))]);
    let outcome = run(program, 18, |world| world, server);
    outcome.is_sound(18);
    let total = outcome.sum.total();
    assert_eq!(total.errors, []);
    assert!((28..=31).contains(&total.ok), "{}", total.ok);
    assert!(total.latency.max() > 2_500_000_000);
    assert!(outcome.sum.population.unmet > 250, "{:?}", outcome.sum.population);
}

mod addresses;
mod agreement;
mod books;
mod branches;
mod bursts;
mod carriers;
mod chat;
mod declared;
mod events;
mod failing;
mod flow;
mod forecast;
mod joined;
mod left;
mod meeting;
mod native;
mod precision;
mod requests;
mod residence;
mod sizes;
mod standstill;
mod staying;
mod transactions;
mod values;
mod watching;

use chat::chat_server;

/// Names as in compiled scenarios: the slots of [`session`].
struct Known;

impl Names for Known {
    fn resolve(&mut self, path: &[&str]) -> Result<(Name, usize), UnknownName> {
        Ok(match path {
            ["list", ..] => (Name::Slot(0), 1),
            ["item", ..] => (Name::Slot(1), 1),
            ["a", ..] => (Name::Slot(2), 1),
            ["b", ..] => (Name::Slot(3), 1),
            ["iteration", ..] => (Name::Iteration, 1),
            ["user", "id", ..] => (Name::UserId, 2),
            _ => return Err(UnknownName::default()),
        })
    }
}

fn expression(text: &str) -> Expression {
    Expression::compile(text, &mut Known).expect("the expression is right")
}

/// A text that consists of one expression.
fn valued(text: &str) -> Text {
    let value = expression(text);
    Text { segments: vec![Segment::Value { value, escape: Escape::None }] }
}

fn set(slot: u16, text: &str) -> Statement {
    Statement::Set { slot, value: Arc::new(valued(text)) }
}

fn log(text: &str) -> Statement {
    Statement::Log(Arc::new(valued(text)))
}

fn repeat(times: u32, steps: Block) -> Statement {
    Statement::Repeat { low: times, high: times, steps }
}

fn transaction(step: u16, steps: Block) -> Statement {
    Statement::Transaction { step: StepId(step), steps }
}

fn pause(time: Duration) -> Statement {
    Statement::Think(Pause::Uniform { low: time, high: time })
}

/// A request of this step.
fn step(index: u16, failing: Failing) -> Statement {
    let mut request = get(vec![status(200)]);
    if let Statement::Http(http) = &mut request {
        let http = Arc::make_mut(http);
        (http.step, http.failing) = (StepId(index), failing);
    }
    request
}

fn iterations(users: u64, total: u64) -> Phase {
    phase(Drive::Iterations(Iterations::new(users, None, Some(total))), None)
}

const HTTP: &[StepKind] = &[StepKind::Http; 4];
/// The row after them: for expressions outside of steps.
const EXPRESSIONS: u16 = 4;

/// One user of an HTTP session runs this many iterations.
fn one(code: Block, times: u64) -> Program {
    program(Scheme::Http, vec![session(code, 0)], HTTP, iterations(1, times))
}

fn ok_server() -> Server {
    http_server(|_| vec![(MS, say(HELLO))])
}

impl Outcome {
    fn lines(&self) -> Vec<&str> {
        self.logs.iter().map(|line| line.text.as_str()).collect()
    }

    fn step(&self, index: u16) -> StepInterval {
        self.sum.step(StepId(index)).cloned().unwrap_or_default()
    }

    /// Of a step: attempts started, tries that were retried, attempts that failed after retries.
    fn tried(&self, index: u16) -> (u64, Vec<(Cause, u64)>, u64) {
        let step = self.step(index);
        (step.begun, step.retried, step.given_up)
    }

    fn ended(&self, index: u16) -> (u64, Vec<(Cause, u64)>) {
        let step = self.step(index);
        (step.ok, step.errors)
    }
}
