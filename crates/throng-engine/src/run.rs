//! A run, seen from outside: starts threads, returns intervals, waits for the threads to end.

pub(crate) mod bridge;
pub(crate) mod spread;

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::task::{Context, Poll, ready};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_base::{Clock, Said, Share, Time};
use throng_data::{DataError, Reader, Source, Table};
use throng_load::{Forecast, comers};
use throng_metrics::{Interval, Stage};
use throng_program::{Delivery, Load, Program};
use tokio::runtime::LocalRuntime;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender};
use tokio::sync::mpsc::{channel, unbounded_channel};

use crate::connector::allowed::AllowList;
use crate::connector::resolve;
use crate::control::{Control, Gate, Stopped};
use crate::driver::drive;
use crate::ledger::{self, Exchange, Rules, SHARD_BYTES_MAX, ShardLedger};
use crate::network::lookups::{Lookups, NameNews};
use crate::network::sources;
use crate::network::tls;
use crate::network::vanished::Vanished;
use crate::network::{Connector, Network, Wired};
use crate::prepared::Prepared;
use crate::recorder::Example;
use crate::recorder::logs::Line;
use crate::recorder::presence::Presences;
use crate::rendezvous::{self, Places};
use crate::shard::alarm::Alarm;
use crate::shard::budget::Budget;
use crate::shard::kept::Kept;
use crate::shard::{Mark, Oddity, Parts, Report, Shard};
use crate::start_error::StartError;
use crate::system;
use crate::trace::{TRACES_WAITING_MAX, Trace, Tracer};
use bridge::Bridge;
use spread::{Spare, Spread, users_max};

/// How many seconds a slow shard may be behind before the results of the others are passed on.
const BEHIND_SECONDS_MAX: u64 = 3;
/// Enough for the deepest call of a driver or a user; users are on the heap.
const STACK_BYTES: usize = 1024 * 1024;
/// Memory for the messages of all rows of deliveries, on all shards.
const LEDGER_BYTES_MAX: usize = 1 << 30;

#[derive(Clone, Debug)]
pub struct Options {
    /// `None`: one per processor, more if the users need more file descriptors.
    pub shards: Option<usize>,
    /// Asks the allocator to return unused memory of a shard; called on the shard's thread, at most
    /// once a second, after connections were opened or users left.
    pub give_back: Option<fn()>,
    /// Memory that all users together may use for bodies, messages and unsent bytes; beyond it,
    /// they fail with [`throng_metrics::Cause::MemoryLimit`]. `None`: no limit.
    pub kept_bytes_max: Option<u64>,
    /// Reports every step of every user as [`Update::Trace`]; meant for a few users.
    pub trace: bool,
    /// Users wait here before every step.
    pub step_gate: Option<Arc<Gate>>,
    /// Receives the saved values of a user when its iteration ends; meant for one user.
    pub keep: Option<Kept>,
    /// Each list must allow every address of every target; without lists, all are allowed.
    pub allowed: Vec<AllowList>,
    /// The part of the load that this process generates.
    pub share: Share,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            shards: None,
            give_back: None,
            kept_bytes_max: None,
            trace: false,
            step_gate: None,
            keep: None,
            allowed: Vec::new(),
            share: Share::WHOLE,
        }
    }
}

/// Events of a run in progress.
// Nearly all are intervals: a box would save nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Update {
    /// Of all shards together.
    Interval(Interval),
    /// The first error of its kind.
    Example(Example),
    /// The first of its kind on a shard.
    Oddity(Oddity),
    /// The phase began when it began on the first shard.
    PhaseBegun { phase: u16, at: Time },
    /// The phase ended when it ended on the last shard.
    PhaseEnded { phase: u16, at: Time },
    /// The scenario ended the run early; reported once.
    Stopped(Stopped),
    /// A name was looked up again, with other addresses or none.
    Name(NameNews),
    /// A line of the verb `log`.
    Log(Line),
    /// A step of a user, with [`Options::trace`].
    Trace(Trace),
}

/// A run in progress.
pub struct Run {
    pub control: Control,
    /// Zero is the start of the run.
    pub clock: Clock,
    pub shards: usize,
    /// How many users beyond the plan the run can have at a time.
    pub users_spare: Spare,
    /// The addresses that every target has.
    pub addresses: Vec<Vec<SocketAddr>>,
    /// Connects the ledgers and rendezvous places to the other machines of the run, if there are
    /// any.
    pub bridge: Option<Bridge>,
    /// Which users are online, for audits.
    pub presences: Option<Presences>,
    reports: UnboundedReceiver<Report>,
    names: UnboundedReceiver<NameNews>,
    traces: Receiver<Trace>,
    merger: Merger,
    threads: Vec<JoinHandle<()>>,
}

/// A run whose shards are ready and wait for their clock.
pub struct Ready {
    /// Its clock is not yet the one of the run.
    pub run: Run,
    starters: Vec<blocking::Sender<Clock>>,
}

/// Resolves names, starts all shards, and starts the load when the last one is ready.
pub fn start(program: &Arc<Program>, options: &Options) -> Result<Run, StartError> {
    Ok(prepare(program, options)?.begin(Clock::start()))
}

/// Resolves names and starts all shards; sends nothing before [`Ready::begin`].
pub fn prepare(program: &Arc<Program>, options: &Options) -> Result<Ready, StartError> {
    let timer = Clock::start();
    let mut addresses = resolve::all(program)?;
    resolve::check_allowed(program, &addresses, &options.allowed)?;
    let resolving = timer.now() - Time::ZERO;
    let tls = tls_of(program)?;
    let tables = open_tables(program, options.share)?;
    let users = (users_max(program) as f64 * options.share.fraction()).ceil() as u64;
    let spread = spread_of(program, users, options).map_err(StartError::Host)?;
    let shards = spread.shards;
    let rows = tables.iter().filter_map(|table| table.users_max()).min();
    let users_spare = spread::users_spare(program, &spread, system::raise_descriptor_limit(), rows);
    let ways = Ways::new(program, (users, options.share), &mut addresses)?;
    let prepared = prepared(program, &addresses, options);
    let control = Control::default();
    let (sender, reports) = unbounded_channel();
    let (tracer, traces) = channel(TRACES_WAITING_MAX);
    let (ready, answers) = blocking::channel();
    let mut threads = Vec::with_capacity(shards);
    let mut starters = Vec::with_capacity(shards);
    let (mut ledgers, places, bridge) = shared(program, shards, options.share);
    let budget = Budget::new(options.kept_bytes_max, shards);
    let (lookups, names) = look_up_again(program, &addresses, options, &ways, &mut starters)?;
    let presences = Presences::of(&prepared, options.share, shards);
    for index in 0..shards {
        let (starter, started) = blocking::channel();
        starters.push(starter);
        let parts = Parts {
            share: options.share.thread(index as u64, shards as u64),
            prepared: Arc::clone(&prepared),
            lookups: lookups.clone(),
            control: control.clone(),
            places: places.clone(),
            ledgers: ledgers.pop().unwrap_or_default(),
            presence: presences.as_ref().and_then(|all| all.shard(index)),
            budget: Arc::clone(&budget),
            tracer: options.trace.then(|| Tracer::new(tracer.clone())),
            gate: options.step_gate.clone(),
            keep: options.keep.clone(),
            give_back: options.give_back,
        };
        let thread = Thread {
            parts,
            addresses: addresses.clone(),
            ways: ways.clone(),
            users,
            spread,
            tls: tls.clone(),
            tables: tables.clone(),
            reports: sender.clone(),
        };
        let ready = ready.clone();
        threads.push(spawn(index, shards, move || thread.run(&ready, &started))?);
    }
    drop(ready);
    all_ready(&answers, shards).map_err(StartError::Host)?;
    let run = Run {
        control,
        clock: timer,
        shards,
        users_spare,
        bridge,
        presences,
        reports,
        names,
        traces,
        merger: merger(program, shards, resolving, &addresses),
        addresses,
        threads,
    };
    Ok(Ready { run, starters })
}

fn spawn<T: Send + 'static>(
    shard: usize,
    shards: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, StartError> {
    let builder = std::thread::Builder::new().name(format!("shard-{shard}"));
    builder.stack_size(STACK_BYTES).spawn(work).map_err(|error| {
        StartError::Host(say!(
            "cannot create the thread of shard {shard} of {shards}: {error}; raise `ulimit -u` \
             and the cgroup pids limit, or raise `ulimit -n` to reduce the number of shards"
        ))
    })
}

fn tls_of(program: &Program) -> Result<Option<rustls::ClientConfig>, StartError> {
    program.may_be_secure().then(|| tls::config(&program.tls)).transpose().map_err(StartError::Tls)
}

fn merger(
    program: &Program,
    shards: usize,
    resolving: Duration,
    addresses: &[Vec<SocketAddr>],
) -> Merger {
    let resolved = addresses.iter().filter(|addresses| !addresses.is_empty()).count();
    Merger::new(&program.first_phases(), shards, resolving, resolved)
}

/// The sources of connections.
#[derive(Clone)]
struct Ways {
    sources: Arc<sources::Plan>,
    /// For users with their own network.
    wired: Option<Arc<Wired>>,
}

impl Ways {
    /// For this many users, this process's share of all.
    fn new(
        program: &Program,
        (users, share): (u64, Share),
        addresses: &mut [Vec<SocketAddr>],
    ) -> Result<Ways, StartError> {
        let wired = Wired::new(program, (users, share), addresses).map_err(StartError::Sources)?;
        let sources = sources::Plan::new(program, users, addresses).map_err(StartError::Sources)?;
        Ok(Ways { sources: Arc::new(sources), wired })
    }
}

/// Renders what all shards share.
fn prepared(
    program: &Arc<Program>,
    addresses: &[Vec<SocketAddr>],
    options: &Options,
) -> Arc<Prepared> {
    let mut prepared = Prepared::new(Arc::clone(program), addresses);
    if options.trace {
        prepared.keep_bodies();
    }
    Arc::new(prepared)
}

/// Starts a thread for each name that is looked up again; it waits for its clock like the shards.
/// The threads are not joined at the end: a name server may be slow.
fn look_up_again(
    program: &Arc<Program>,
    addresses: &[Vec<SocketAddr>],
    options: &Options,
    ways: &Ways,
    starters: &mut Vec<blocking::Sender<Clock>>,
) -> Result<(Option<Arc<Lookups>>, UnboundedReceiver<NameNews>), StartError> {
    let (news, names) = unbounded_channel();
    let Some((lookups, watches)) = Lookups::new(program, addresses) else {
        return Ok((None, names));
    };
    for (index, watch) in watches.into_iter().enumerate() {
        let (starter, started) = blocking::channel::<Clock>();
        starters.push(starter);
        let (program, sources) = (Arc::clone(program), Arc::clone(&ways.sources));
        // Not a reference to the wire itself, which must end with the last shard.
        let v4_only = ways.wired.is_some();
        let (allowed, news) = (options.allowed.clone(), news.clone());
        let work = move || {
            let Ok(clock) = started.recv() else { return };
            clock.wait_for_zero();
            let look_up = |host: &str, port| {
                let mut found = resolve::again(&program, (host, port), &allowed)?;
                found.retain(|it| sources.fits(it.ip()) && (it.is_ipv4() || !v4_only));
                match found.is_empty() {
                    true => Err(say!(
                        "its addresses have a different address family than the source addresses"
                    )),
                    false => Ok(found),
                }
            };
            watch.work(&clock, look_up, &news);
        };
        let builder = std::thread::Builder::new().name(format!("name-{index}"));
        builder.spawn(work).map_err(|error| {
            StartError::Host(say!(
                "cannot create the thread for name lookups: {error}; raise `ulimit -u` and the \
                 cgroup pids limit"
            ))
        })?;
    }
    Ok((Some(lookups), names))
}

/// Waits until all shards are ready to start.
fn all_ready(answers: &blocking::Receiver<Result<(), Said>>, shards: usize) -> Result<(), Said> {
    for _ in 0..shards {
        answers.recv().unwrap_or_else(|_| Err(say!("a shard exited during startup")))?;
    }
    Ok(())
}

impl Ready {
    /// Starts the load at time zero of this clock, which may be in the future.
    pub fn begin(self, clock: Clock) -> Run {
        // A shard that is gone by now has reported why.
        self.starters.iter().for_each(|starter| drop(starter.send(clock.clone())));
        Run { clock, ..self.run }
    }
}

impl Run {
    /// The next event; `None` when the run is over.
    pub async fn next(&mut self) -> Option<Update> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Update>> {
        loop {
            if let Some(update) = self.merger.updates.pop_front() {
                return Poll::Ready(Some(update));
            }
            // Traces go before the results that they explain.
            if let Poll::Ready(Some(trace)) = self.traces.poll_recv(cx) {
                return Poll::Ready(Some(Update::Trace(trace)));
            }
            if let Poll::Ready(Some(news)) = self.names.poll_recv(cx) {
                return Poll::Ready(Some(Update::Name(news)));
            }
            match ready!(self.reports.poll_recv(cx)) {
                Some(report) => {
                    self.merger.add(report);
                    self.merger.tell_stop(&self.control);
                }
                None if self.merger.is_empty() => return Poll::Ready(None),
                None => self.merger.flush_all(),
            }
        }
    }

    /// Joins the threads; false if one of them panicked.
    pub fn join(self) -> bool {
        drop(self.reports);
        self.threads.into_iter().map(JoinHandle::join).filter(Result::is_err).count() == 0
    }
}

/// The input of a shard's thread.
struct Thread {
    parts: Parts,
    addresses: Vec<Vec<SocketAddr>>,
    ways: Ways,
    /// The maximum number of users at a time, on all shards.
    users: u64,
    spread: Spread,
    tls: Option<rustls::ClientConfig>,
    tables: Vec<Arc<Table>>,
    reports: UnboundedSender<Report>,
}

impl Thread {
    fn run(self, ready: &blocking::Sender<Result<(), Said>>, started: &blocking::Receiver<Clock>) {
        let (runtime, alarm, readers) = match self.open() {
            Ok(opened) => opened,
            Err(error) => return drop(ready.send(Err(error))),
        };
        let connector = self.connector();
        let _ = ready.send(Ok(()));
        // From here on the clock runs: everything is ready.
        let Ok(clock) = started.recv() else { return };
        clock.wait_for_zero();
        let shard = Shard::new(self.parts, clock, readers, connector, alarm);
        system::sleep_exactly();
        // As a task like its users: it takes turns with them, and is woken without a system call.
        runtime.block_on(async {
            let driving = tokio::task::spawn_local(drive(shard, self.reports));
            if let Err(error) = driving.await
                && let Ok(panic) = error.try_into_panic()
            {
                std::panic::resume_unwind(panic);
            }
        });
    }

    fn open(&self) -> Result<(LocalRuntime, Alarm, Vec<Reader>), Said> {
        // If a sandbox forbids it, the shards share one table.
        if let Err(error) = system::own_descriptor_table()
            && self.spread.needs_own_tables
        {
            return Err(say!(
                "one descriptor table is too small for all users, and shards cannot create their \
                 own: {error}; raise `ulimit -n`, or allow unshare(2) in the sandbox"
            ));
        }
        let options = tokio::runtime::LocalOptions::default();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_io().build_local(options).map_err(|error| {
            say!("cannot create the event loop of a shard: {error}", error = Said::of_error(&error))
        })?;
        let entered = runtime.enter();
        let alarm = Alarm::timer().map_err(|error| {
            say!("cannot create the timer of a shard: {error}", error = Said::of_error(&error))
        })?;
        drop(entered);
        // Opened here because files must be in the shard's own descriptor table.
        let readers: Result<_, _> = self.tables.iter().map(Reader::open).collect();
        Ok((runtime, alarm, readers.map_err(|error: DataError| error.said())?))
    }

    fn connector(&self) -> Connector {
        let tls = self.tls.clone().map(Arc::new);
        let pools = self.ways.sources.pools(self.users, &self.addresses, self.parts.share);
        let vanished = Vanished::new(self.spread.kept_max);
        let ways = (pools, self.ways.wired.clone());
        let network = Network::new(tls.as_ref(), &self.parts.prepared, ways, vanished);
        Connector::Network(Box::new(network))
    }
}

/// How long a shard that has ended waits for the messages of others on its machine.
const LEDGER_PATIENCE: Duration = Duration::from_millis(500);

/// State that the shards share, and its connection to other machines.
fn shared(
    program: &Program,
    shards: usize,
    share: Share,
) -> (Vec<Vec<ShardLedger>>, Places, Option<Bridge>) {
    let (ledgers, sent) = ledgers(program, shards, share);
    let (places, waiting) = places(program, share);
    (ledgers, places, Bridge::new(share, sent, waiting))
}

/// The ledgers by shard and row of deliveries, and their connection to other machines. The memory
/// of a row is divided among the shards.
fn ledgers(
    program: &Program,
    shards: usize,
    share: Share,
) -> (Vec<Vec<ShardLedger>>, Option<ledger::Bridge>) {
    let mut ledgers: Vec<Vec<ShardLedger>> = (0..shards).map(|_| Vec::new()).collect();
    let rows = program.deliveries.len().max(1);
    let bytes_max = (LEDGER_BYTES_MAX / shards / rows).min(SHARD_BYTES_MAX);
    let is_bridged = share.fraction() < 1.0 && !program.deliveries.is_empty();
    let patience = if is_bridged { ledger::Bridge::patience(share) } else { LEDGER_PATIENCE };
    let mut ways = Vec::new();
    for (row, delivery) in program.deliveries.iter().enumerate() {
        let others = program.deliveries.iter().enumerate().filter(|(other, _)| *other != row);
        let shares = others.map(|(_, other)| other).any(|other| are_alike(delivery, other));
        let rules = Rules {
            step: delivery.step.0,
            without_sender: delivery.without_sender,
            shares,
            late_after: delivery.late_after,
            lost_after: delivery.lost_after,
            bytes_max,
            patience,
        };
        let mut ports = Exchange::ports(shards + usize::from(is_bridged));
        if is_bridged {
            ways.extend(ports.pop().map(|port| (delivery.step, port)));
        }
        for (all, port) in ledgers.iter_mut().zip(ports) {
            all.push(ShardLedger::new(rules, port));
        }
    }
    (ledgers, is_bridged.then(|| ledger::Bridge::new(share, ways.into_iter())))
}

/// The rendezvous places, and their connection to other machines.
fn places(program: &Program, share: Share) -> (Places, Option<rendezvous::Bridge>) {
    if program.rendezvous == 0 || share.fraction() >= 1.0 {
        return (Places::new(program.rendezvous), None);
    }
    let places = Places::bridged(program.rendezvous);
    let bridge = rendezvous::Bridge::new(share, places.clone());
    (places, Some(bridge))
}

/// Whether a received message may belong to either row.
fn are_alike(one: &Delivery, other: &Delivery) -> bool {
    let (mine, theirs) = (&one.received.messages, &other.received.messages);
    let kinds =
        mine.is_empty() || theirs.is_empty() || mine.iter().any(|kind| theirs.contains(kind));
    one.protocol == other.protocol && kinds
}

/// Opens the data sources once for all shards; rows taken in turn are those of this process.
fn open_tables(program: &Program, share: Share) -> Result<Vec<Arc<Table>>, StartError> {
    let open = |(number, source): (u16, &Source)| {
        let table = Table::open(source, program.seed, share)?;
        table.suffices(last_user_with(program, number))?;
        Ok(table)
    };
    let tables: Result<_, DataError> = (0..).zip(&program.data).map(open).collect();
    tables.map_err(|error| StartError::Data(Box::new(error)))
}

/// The highest number of a staying user that takes rows of this source.
pub fn last_user_with(program: &Program, source: u16) -> u64 {
    let of = |first: &mut u64, (number, load): (usize, &Load)| {
        let last = program.last_user_with(number, source, load.staying_max());
        let before = std::mem::replace(first, first.saturating_add(comers(load)));
        Some(if last > 0 { before.saturating_add(last) } else { 0 })
    };
    program.loads.iter().enumerate().scan(0, of).max().unwrap_or(0)
}

fn spread_of(program: &Program, users: u64, options: &Options) -> Result<Spread, Said> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = options.shards.unwrap_or(processors);
    let descriptors = system::raise_descriptor_limit();
    let forecast = Forecast::new(program);
    let each = forecast.connections_per_user();
    let room = (program.users_room as f64 * options.share.fraction()).ceil() as u64;
    spread::spread(users.max(room), each, forecast.leaves_behind(), descriptors, wanted)
}

/// Marks a shard that is over.
const OVER: (u64, u16) = (u64::MAX, u16::MAX);

/// Merges the shards' intervals into one per second and phase.
struct Merger {
    pending: BTreeMap<(u64, u16), Interval>,
    /// Each shard has handed over all intervals up to this one; [`OVER`] after its last report.
    latest: Vec<Option<(u64, u16)>>,
    /// The minimum of `latest`, and how many shards are there: with thousands of shards, a search
    /// for every report would be too slow.
    slowest: (Option<(u64, u16)>, usize),
    /// The latest second of all shards.
    newest: u64,
    updates: VecDeque<Update>,
    /// The time to resolve names, and their number; reported with the first interval.
    resolved: Option<(Duration, usize)>,
    phases: AllPhases,
    /// The reason of the stop was reported.
    stop_told: bool,
}

impl Merger {
    /// `firsts` are the numbers of the first phases of all loads.
    fn new(firsts: &[u16], shards: usize, resolving: Duration, names: usize) -> Merger {
        Merger {
            pending: BTreeMap::new(),
            latest: vec![None; shards],
            slowest: (None, shards),
            newest: 0,
            updates: VecDeque::new(),
            resolved: Some((resolving, names)),
            phases: AllPhases::new(firsts, shards),
            stop_told: false,
        }
    }

    /// Reports once why the run was stopped, if there is a reason.
    fn tell_stop(&mut self, control: &Control) {
        if !self.stop_told
            && let Some(stopped) = control.stopped()
        {
            self.stop_told = true;
            self.updates.push_back(Update::Stopped(stopped.clone()));
        }
    }

    fn add(&mut self, report: Report) {
        let shard = report.shard.index();
        let mut interval = report.interval;
        if let Some((time, names)) = self.resolved.take().filter(|(_, names)| *names > 0) {
            let stage = interval.stage_mut(Stage::Resolve);
            stage.began += names as u64;
            stage.ok += names as u64;
            let each = time.as_nanos() as u64 / names as u64;
            stage.latency.record_times(each, names as u64);
        }
        let marked = report.last || !report.marks.is_empty();
        report.marks.into_iter().for_each(|mark| self.phases.note(shard, mark));
        let key = (interval.second, interval.phase);
        let reached = if report.last { Some(OVER) } else { report.reached };
        match self.pending.get_mut(&key) {
            Some(pending) => pending.merge_shard(&interval),
            None => drop(self.pending.insert(key, interval)),
        }
        self.newest = self.newest.max(key.0);
        self.came_to(shard, reached);
        if report.last {
            self.phases.over(shard);
        }
        self.updates.extend(report.examples.into_iter().map(Update::Example));
        self.updates.extend(report.oddities.into_iter().map(Update::Oddity));
        self.updates.extend(report.logs.into_iter().map(Update::Log));
        // The end of a phase may have waited for the results just passed on.
        if self.flush() || marked {
            self.phases.tell(&mut self.updates);
        }
    }

    fn came_to(&mut self, shard: usize, reached: Option<(u64, u16)>) {
        let before = std::mem::replace(&mut self.latest[shard], reached);
        let (slowest, count) = &mut self.slowest;
        if before == *slowest {
            *count -= 1;
            if *count == 0 {
                let least = self.latest.iter().min().copied().flatten();
                let there = self.latest.iter().filter(|latest| **latest == least);
                self.slowest = (least, there.count());
            }
        }
    }

    /// Passes on what all shards have handed over, and whatever slow shards are too late for. True
    /// if there was any.
    fn flush(&mut self) -> bool {
        let all = self.slowest.0;
        let mut flushed = false;
        while let Some((key, _)) = self.pending.first_key_value() {
            let late = key.0 + BEHIND_SECONDS_MAX < self.newest;
            if all.is_none_or(|all| *key > all) && !late {
                break;
            }
            flushed = true;
            // Results of a phase are reported after its start and, if possible, before its end.
            self.phases.tell_before(key.1, &mut self.updates);
            self.updates.extend(self.pending.pop_first().map(|(_, one)| Update::Interval(one)));
        }
        flushed
    }

    fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.updates.is_empty() && self.phases.all_told()
    }

    /// No more reports will arrive, whether the shards ended or broke off.
    fn flush_all(&mut self) {
        self.latest.fill(Some(OVER));
        self.slowest = (Some(OVER), self.latest.len());
        (0..self.latest.len()).for_each(|shard| self.phases.over(shard));
        self.flush();
        self.phases.tell(&mut self.updates);
    }
}

/// When the phases of all loads start and end.
#[derive(Debug)]
struct AllPhases {
    /// The phases of each load, with the number of the first.
    loads: Vec<(u16, Phases)>,
}

impl AllPhases {
    fn new(firsts: &[u16], shards: usize) -> AllPhases {
        let phases = || Phases { shards: vec![(0, 0); shards], ..Phases::default() };
        AllPhases { loads: firsts.iter().map(|first| (*first, phases())).collect() }
    }

    /// The load of a phase.
    fn of(&mut self, phase: u16) -> &mut (u16, Phases) {
        let behind = self.loads.partition_point(|(first, _)| *first <= phase);
        &mut self.loads[behind.saturating_sub(1)]
    }

    fn note(&mut self, shard: usize, mark: Mark) {
        let (first, phases) = self.of(mark.phase);
        let phase = mark.phase - *first;
        phases.note(shard, Mark { phase, ..mark });
    }

    /// See [`Phases::over`].
    fn over(&mut self, shard: usize) {
        self.loads.iter_mut().for_each(|(_, phases)| phases.over(shard));
    }

    /// Passes on what all shards have reported.
    fn tell(&mut self, updates: &mut VecDeque<Update>) {
        for (first, phases) in &mut self.loads {
            phases.tell(*first, 0, usize::MAX, updates);
        }
    }

    /// Passes on what must be known before results of this phase.
    fn tell_before(&mut self, phase: u16, updates: &mut VecDeque<Update>) {
        let (first, phases) = self.of(phase);
        let index = usize::from(phase - *first);
        phases.tell(*first, index + 1, index, updates);
    }

    fn all_told(&self) -> bool {
        self.loads.iter().all(|(_, phases)| phases.all_told())
    }
}

/// When the phases of a load start and end: with the first shard, and with the last. Counted from
/// the load's first.
#[derive(Debug, Default)]
struct Phases {
    /// By shard: how many phases it has started and ended; irrelevant once it is over.
    shards: Vec<(usize, usize)>,
    /// By phase: the first start and the last end that a shard reported, if any.
    moments: Vec<(Option<Time>, Option<Time>)>,
    /// How many starts and ends were passed on.
    begun: usize,
    ended: usize,
}

impl Phases {
    fn note(&mut self, shard: usize, Mark { phase, at, begins }: Mark) {
        let index = usize::from(phase);
        if self.moments.len() <= index {
            self.moments.resize(index + 1, (None, None));
        }
        let (begun, ended) = &mut self.shards[shard];
        let (first, last) = &mut self.moments[index];
        if begins {
            *begun = (*begun).max(index + 1);
            *first = Some(first.map_or(at, |first| first.min(at)));
        } else {
            *ended = (*ended).max(index + 1);
            *last = (*last).max(Some(at));
        }
    }

    /// Stops waiting for this shard.
    fn over(&mut self, shard: usize) {
        self.shards[shard] = (usize::MAX, usize::MAX);
    }

    /// Passes on the starts and ends that all shards have reported: at least the starts of the
    /// first `at_least` phases, at most the ends of the first `at_most`.
    fn tell(
        &mut self,
        first: u16,
        at_least: usize,
        at_most: usize,
        updates: &mut VecDeque<Update>,
    ) {
        let begun = self.shards.iter().map(|(begun, _)| *begun).min().unwrap_or_default();
        let ended = self.shards.iter().map(|(_, ended)| *ended).min().unwrap_or_default();
        let begun = begun.max(at_least).min(self.moments.len());
        loop {
            if self.ended < ended.min(at_most).min(self.begun) {
                let (begin, end) = self.moments[self.ended];
                let phase = first + self.ended as u16;
                // A run that was stopped before it started also ends phases that never started.
                let end = begin.and(end).map(|at| Update::PhaseEnded { phase, at });
                updates.extend(end);
                self.ended += 1;
            } else if self.begun < begun {
                let (begin, _) = self.moments[self.begun];
                let phase = first + self.begun as u16;
                updates.extend(begin.map(|at| Update::PhaseBegun { phase, at }));
                self.begun += 1;
            } else {
                return;
            }
        }
    }

    fn all_told(&self) -> bool {
        self.ended == self.moments.len()
    }
}

#[cfg(test)]
pub(crate) mod tests;
