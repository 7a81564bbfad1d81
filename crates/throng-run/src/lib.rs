//! Conducts a run: generates the load of a compiled program, records it and evaluates the result.
//! It does not depend on the terminal or the command line: the program that starts a run is its
//! [`Operator`] and receives each [`Line`].
//!
//! - [`run()`]: a run in its own thread, as a stream of lines; for programs that embed throng.
//!   [`Conduct`]: the same in this thread, with all options of the command line.
//! - `generator`: generates the load, on every machine of a run, within limits. `controller`:
//!   merges, records and steers it; there is one per run. [`wire`]: the protocol between them.
//!   `running`: the current phases.
//! - [`fleet`]: the agents of a fleet as generators. `processes`: several processes of this machine
//!   as generators, and such a process. [`agent`]: the machine of an agent, which starts one.
//! - [`attempt`]: a scenario with one user, told step by step.
//! - `once`: setup and teardown; `ending`: the end of a run.
//! - [`control`]: commands to a run, and the socket that receives them. [`live`]: the page of a
//!   current run, its link and its downloads.
//! - [`capacity`]: a search sets the load. [`duel`]: two targets under the same load in turn.
//! - [`monitor`]: this host, for runs on other hosts. [`reflect`]: the services of a gRPC server.
//! - [`guard`]: the targets that may be loaded, and the commands that may be executed.
//! - [`bundle`]: the sources of a run, in its directory. [`files`]: other files of a run.

#[macro_use]
extern crate throng_base;

pub mod agent;
pub mod attempt;
pub mod bundle;
pub mod capacity;
pub mod control;
mod controller;
pub mod duel;
mod ending;
pub mod files;
pub mod fleet;
mod generator;
pub mod guard;
mod here;
mod lines;
pub mod live;
pub mod monitor;
mod once;
mod operator;
mod options;
mod processes;
pub mod reflect;
mod running;
pub mod wire;

use std::path::Path;
use std::sync::Arc;

use throng_base::{Clock, Diagnostic, Exit, LoadPart, Said, Secrets, Share, Side, clock::wall_now};
use throng_engine::{Options, Run, StartError, prepare};
use throng_export::Opened;
use throng_metrics::capacity::LoadUnit;
use throng_plan::budget::Searched;
use throng_plan::preflight;
use throng_program::{Coming, Drive, OncePart, Program, Session, Users};
use throng_results::compare::Plan;
use throng_results::directory::{BundleInfo, RECORDS};
use throng_results::{
    GeneratorInfo, MachineInfo, ModeInfo, NetworkInfo, OnceRun, PhaseInfo, Recorder, RunInfo,
    SourcesInfo, Stairs, TablesInfo, TargetsInfo, ThresholdInfo, create_directory, timestamp,
};
use throng_scenario::Recorded;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::unbounded_channel;

use controller::monitors;
pub use controller::pilot::Wanted as Search;
use controller::{Controller, Orders, Outlets, Posts, audits};
use fleet::{Before, Fleet, Wanted};
use generator::{Generator, limits};
use guard::Guard;
use guard::permit::permit;
pub use lines::{Lines, run};
use live::Live;
use once::{do_once, not_begun, tear_down};
pub use operator::{Line, Operator, StopRequests};
pub use options::{FLEET, HostLimits, SearchOptions, Settings};
pub use processes::child::{assignment, generate};

/// `throng resume`: takes over a fleet run whose controller is lost, up to its end.
pub fn resume(asked: &fleet::Resume, operator: &dyn Operator) -> Exit {
    with_files(&asked.settings, operator, fleet::resume(asked, operator))
}

/// `throng collect`: merges the results on the disks of agents into one run.
pub fn collect(asked: &fleet::Collect, operator: &dyn Operator) -> Exit {
    with_files(&asked.settings, operator, fleet::collect(asked, operator))
}

/// Reports unwritable files before anything is sent.
fn with_files(
    settings: &Settings,
    errors: &dyn Operator,
    work: impl Future<Output = Exit>,
) -> Exit {
    let tried = files::tried(settings).map_err(|told| errors.fail(&told, Exit::Usage));
    let runtime = tried.and_then(|()| runtime(errors));
    runtime.map_or_else(|exit| exit, |runtime| runtime.block_on(work))
}

/// Records the start of the load, and its number of shards.
fn begins(info: &mut RunInfo, shards: u64) {
    info.generator.shards = shards;
    info.generator.machines.iter_mut().for_each(|machine| machine.shards = shards);
    info.time.zero_unix_ns = u64::try_from(wall_now().as_nanos()).unwrap_or(u64::MAX);
}

/// A run that has not started.
pub struct Conduct<'a> {
    pub program: Arc<Program>,
    /// Sets the load level by level instead of the scenario.
    pub search: Option<Search>,
    /// The other side of a duel. The program of this run is side A.
    pub duel: Option<Opponent>,
    /// The scenario as executed.
    pub recorded: Recorded,
    /// The ID of the run that is rerun.
    pub rerun_of: Option<String>,
    /// The command line for the run directory, where its passwords are masked.
    pub command: Vec<String>,
    pub settings: Settings,
    pub limits: HostLimits,
    pub operator: &'a dyn Operator,
}

/// Side B of a duel, and the settings of the duel.
#[derive(Clone)]
pub struct Opponent {
    pub program: Arc<Program>,
    pub plan: Plan,
}

impl<'a> Conduct<'a> {
    /// A run of this program, with defaults for everything else.
    pub fn new(
        program: Arc<Program>,
        recorded: Recorded,
        operator: &'a dyn Operator,
    ) -> Conduct<'a> {
        Conduct {
            program,
            search: None,
            duel: None,
            recorded,
            rerun_of: None,
            command: Vec::new(),
            settings: Settings::default(),
            limits: HostLimits::default(),
            operator,
        }
    }

    /// Conducts the run in this thread, up to its end.
    pub fn run(self) -> Exit {
        self.permitted().unwrap_or_else(|exit| exit)
    }

    /// Conducts the run if this host and its owner allow it.
    fn permitted(self) -> Result<Exit, Exit> {
        let errors = self.operator;
        let unfit = |told: Box<Diagnostic>| errors.refuse(&told, Exit::HostUnfit);
        let refused = |told: Box<Diagnostic>| errors.refuse(&told, Exit::Usage);
        be_nice(&self.limits).map_err(unfit)?;
        files::tried(&self.settings).map_err(refused)?;
        // Agents check their own host.
        if self.settings.fleet.is_none() {
            self.preflight(errors)?;
        }
        let guard = Guard::read(errors)?;
        guard.budget.permit(&self.program, self.searched().as_ref()).map_err(refused)?;
        permit(&self.program, self.settings.allow_commands, &guard.lists).map_err(refused)?;
        runtime(errors)?.block_on(self.conduct(&guard, errors))
    }

    /// Checks that this host meets the requirements of the run, and reports what is missing.
    fn preflight(&self, errors: &dyn Operator) -> Result<(), Exit> {
        let stops = preflight(&self.program, self.limits.force);
        stops.iter().for_each(|diagnostic| errors.diagnostic(diagnostic));
        if stops.is_empty() || self.limits.force {
            return Ok(());
        }
        errors.say(say!(
            "nothing was sent; `throng doctor` shows all limits, and --force starts the run anyway"
        ));
        Err(Exit::HostUnfit)
    }

    /// The highest level of the search, if there is one.
    fn searched(&self) -> Option<Searched> {
        self.search.as_ref().map(|wanted| Searched {
            varies_users: wanted.settings.unit == LoadUnit::Users,
            max: wanted.settings.max,
            time: wanted.options.budget,
        })
    }

    async fn conduct(mut self, guard: &Guard, errors: &dyn Operator) -> Result<Exit, Exit> {
        let refused = |told: Box<Diagnostic>| errors.refuse(&told, Exit::Usage);
        let processes = self.settings.processes.unwrap_or(1);
        let is_shared = processes > 1 || self.settings.fleet.is_some();
        let is_apart = !is_shared && self.settings.part.is_some();
        let unbridged = (is_shared || is_apart).then(|| processes::unbridged(&self, is_shared));
        unbridged.flatten().map_or(Ok(()), |told| Err(refused(told)))?;
        // Signals are caught before anything is written, and handled once the run exists.
        let mut signals = hear(errors)?;
        let fleet = self.fleet(&mut signals, errors).await?;
        let mut info = self.describe();
        let mut conditions = self.duel.iter().flat_map(|duel| &duel.plan.conditions);
        conditions.try_for_each(|one| one.check(&info)).map_err(refused)?;
        if let Some(fleet) = &fleet {
            info.generator.machines = fleet.machines();
        }
        let (exports, live) = self.open(&info, errors).map_err(refused)?;
        let recorder = self.record(&mut info).map_err(|it| errors.fail(&it, Exit::Usage))?;
        let options = self.options(guard, self.programs().count() as u64);
        let setup = match do_once(&self, OncePart::Setup, &options, &mut signals).await {
            Ok(setup) => setup,
            Err(error) => return Err(unbegun(&error, recorder, errors)),
        };
        let mut told = None;
        if let Some(setup) = setup {
            let program = Program { setup_values: setup.values, ..(*self.program).clone() };
            self.program = Arc::new(program);
            if !setup.told.is_done() {
                let ends = (recorder, live);
                return Ok(not_begun(&self, setup.told, info, ends, (&options, signals)).await);
            }
            told = Some(setup.told);
            // The clock of the load starts now.
            info.time.started = timestamp(wall_now());
        }
        let bus = fleet.as_ref().map(Fleet::bus);
        let hosts = monitors::reach(&self.program.monitors, bus, errors).await;
        let before = audits::books_before(&self.program.audits);
        let outlets = Outlets { recorder, exports, live, hosts, before };
        let beside = (&options, signals);
        Ok(match is_shared {
            true => self.elsewhere(told, (fleet, info), outlets, beside).await,
            false => self.here(told, info, outlets, (guard, beside)).await,
        })
    }

    /// Generates the load in this process.
    async fn here(
        &self,
        setup: Option<OnceRun>,
        mut info: RunInfo,
        outlets: Outlets,
        (guard, (options, mut signals)): (&Guard, (&Options, StopRequests)),
    ) -> Exit {
        let errors = self.operator;
        let runs = match self.start(options) {
            Ok(runs) => runs,
            Err(error) => {
                tear_down(self, options, &mut signals).await;
                return unbegun(&error, outlets.recorder, errors);
            }
        };
        begins(&mut info, runs.iter().map(|run| run.shards as u64).sum());
        let (lines, told) = unbounded_channel();
        let (mut orders, mut generators) = (Vec::new(), Vec::new());
        let clock = runs[0].clock.clone();
        let users_spare: Vec<_> = runs.iter().map(|run| run.users_spare).collect();
        for (number, (program, run)) in (0..).zip(self.programs().zip(runs)) {
            info.targets.same_host |= here::is_same_host(program, &run.addresses);
            guard.warn(program, &run, errors);
            let (order, obeyed) = unbounded_channel();
            orders.push(order);
            let generator = Generator::new(program, run, &self.limits, (number, lines.clone()));
            generators.push(generator.work(obeyed));
        }
        drop(lines);
        self.program.changes.iter().for_each(|change| errors.say(change.clone()));
        let of_posts = Posts::new(clock, Orders::Here(orders), told, users_spare.into_iter());
        let controller = Controller::new(self, of_posts, info, outlets);
        let mut generators = generators.into_iter();
        let (first, second) = (generators.next(), generators.next());
        let (first, second) = (wait(first), wait(second));
        tokio::join!(first, second, controller.work(setup, options, signals)).2
    }

    /// The programs that run here: two in a duel, otherwise one.
    fn programs(&self) -> impl Iterator<Item = &Arc<Program>> {
        std::iter::once(&self.program).chain(self.duel.iter().map(|duel| &duel.program))
    }

    /// Starts all programs at the same moment.
    fn start(&self, options: &Options) -> Result<Vec<Run>, StartError> {
        let ready = self.programs().map(|program| prepare(program, options));
        let ready = ready.collect::<Result<Vec<_>, _>>()?;
        let clock = Clock::start();
        Ok(ready.into_iter().map(|one| one.begin(clock.clone())).collect())
    }

    /// Opens the exports, the live page and the socket: takes ports and creates files.
    fn open(
        &self,
        info: &RunInfo,
        errors: &dyn Operator,
    ) -> Result<(Opened, Option<Live>), Box<Diagnostic>> {
        let wanted = self.program.outputs.iter().chain(&self.settings.exports);
        let exports = Opened::open(wanted, info)?;
        let has_setup = self.program.once(OncePart::Setup).is_some();
        let about = (info.generator.machines.len(), has_setup);
        Ok((exports, Live::open(self.settings.live.as_deref(), about, errors)?))
    }

    /// Generates the load on the agents of a fleet, or in several processes.
    async fn elsewhere(
        &self,
        setup: Option<OnceRun>,
        (fleet, mut info): (Option<Fleet>, RunInfo),
        outlets: Outlets,
        (options, mut signals): (&Options, StopRequests),
    ) -> Exit {
        let errors = self.operator;
        let generators = match fleet {
            Some(fleet) => {
                let before = Before { setup: setup.as_ref(), books: &outlets.before };
                fleet.start(self, &mut info, before, (&mut signals, errors)).await
            }
            None => processes::start(self, &mut info, errors),
        };
        match generators {
            Ok(generators) => {
                self.program.changes.iter().for_each(|change| errors.say(change.clone()));
                Controller::new(self, generators, info, outlets).work(setup, options, signals).await
            }
            Err(exit) => {
                tear_down(self, options, &mut signals).await;
                forget(outlets.recorder);
                exit
            }
        }
    }

    /// The fleet that generates the load, if any.
    async fn fleet(
        &self,
        signals: &mut StopRequests,
        errors: &dyn Operator,
    ) -> Result<Option<Fleet>, Exit> {
        let Some(directory) = &self.settings.fleet else { return Ok(None) };
        let count = self.settings.agents.and_then(|count| usize::try_from(count).ok());
        let build = fleet::bus::build_name(&self.settings.build);
        let wanted = Wanted { build, count, labels: self.settings.agent_labels.clone() };
        Fleet::gather(self, directory, &wanted, (signals, errors)).await.map(Some)
    }

    /// Options of one of several processes.
    fn options(&self, guard: &Guard, processes: u64) -> Options {
        let room = throng_host::room(&throng_host::Root::default()).map(|room| room / processes);
        Options {
            shards: self.settings.shards,
            give_back: self.settings.give_back,
            allowed: guard.lists.clone(),
            share: self.share(),
            kept_bytes_max: limits::kept_bytes_max(&self.limits, room),
            ..Options::default()
        }
    }

    /// This process's share of the load; other processes or machines have the rest.
    fn share(&self) -> Share {
        let part = self.settings.part;
        part.map_or(Share::WHOLE, LoadPart::share)
    }

    /// The machines that generate the load, unless it is only this process.
    fn machines(&self) -> Vec<MachineInfo> {
        if let Some(part) = self.settings.part {
            let host = throng_host::facts(env!("CARGO_PKG_VERSION"));
            let name = host.hostname.clone().unwrap_or_default();
            let name = format!("{name} {}/{}", part.first + 1, part.of);
            return vec![MachineInfo { name, host, part, ..MachineInfo::default() }];
        }
        if self.duel.is_some() {
            return sides();
        }
        self.settings.processes.filter(|it| *it > 1).map_or_else(Vec::new, processes::machines)
    }

    /// Describes the run before its start.
    fn describe(&self) -> RunInfo {
        let (program, share) = (&self.program, self.share());
        RunInfo {
            build: self.settings.build.clone(),
            generator: GeneratorInfo {
                machines: self.machines(),
                host: throng_host::facts(env!("CARGO_PKG_VERSION")),
                ..GeneratorInfo::default()
            },
            command: masked_command(&program.secrets, &self.command),
            seed: program.seed,
            id: program.run_id.clone(),
            labels: program.labels.clone(),
            changes: program.changes.clone(),
            mode: ModeInfo {
                soak: self.recorded.load.soak.is_some(),
                duel: self.duel.is_some(),
                no_keep_alive: !self.program.connection.keep_alive,
            },
            targets: TargetsInfo {
                urls: self.targets(),
                services: program.services(),
                ..TargetsInfo::default()
            },
            tables: self.tables(),
            sources: SourcesInfo {
                rerun_of: self.rerun_of.clone(),
                bundle: self.search.as_ref().map(|wanted| BundleInfo {
                    search: serde_json::to_value(&wanted.options).ok(),
                    ..BundleInfo::default()
                }),
                ..SourcesInfo::default()
            },
            users_planned: share.part(program.staying_max()) * self.programs().count() as u64,
            precision_ns: program.precision.as_nanos() as u64,
            service_times: true,
            ..RunInfo::new(program.name.clone(), wall_now())
        }
    }

    fn tables(&self) -> TablesInfo {
        let program = &self.program;
        TablesInfo {
            steps: program.steps.clone(),
            loads: match program.loads.as_slice() {
                [_] => Vec::new(),
                loads => loads.iter().map(|load| load.name.clone()).collect(),
            },
            sessions: match program.sessions.as_slice() {
                [_] => Vec::new(),
                sessions => sessions.iter().map(|session| session.name.clone()).collect(),
            },
            networks: networks(&program.sessions),
            phases: self.phases(),
            audits: audits::infos(&program.audits),
            monitors: monitors::infos(&program.monitors, |text| {
                program.secrets.mask(text).into_owned()
            }),
            thresholds: program.thresholds.iter().map(ThresholdInfo::from).collect(),
        }
    }

    fn phases(&self) -> Vec<PhaseInfo> {
        let (program, share) = (&self.program, self.share());
        let (mut users_planned, mut users_before) = (None, 0);
        let programs = self.programs().count() as u64;
        let loads = program.loads.iter().enumerate();
        let phases = loads.flat_map(|(load, one)| one.phases.iter().map(move |it| (load, it)));
        let mut before = 0;
        let phase = |(load, phase): (usize, &throng_program::Phase)| {
            if std::mem::replace(&mut before, load) != load {
                (users_planned, users_before) = (None, 0);
            }
            let stairs = stairs(&phase.drive, users_before, &share);
            users_planned = match &phase.drive {
                Drive::Users(users) => Some(users.to),
                Drive::Iterations(iterations) => Some(iterations.users),
                Drive::Arrivals(_) => None,
                Drive::Hold => users_planned,
            };
            users_before = users_planned.unwrap_or(users_before);
            PhaseInfo {
                load: load as u16,
                name: phase.name.clone(),
                measured: phase.measured,
                planned_ns: phase.time.map(|time| time.as_nanos() as u64),
                users_planned: users_planned.map(|users| share.part(users) * programs),
                stairs,
            }
        };
        phases.map(phase).collect()
    }

    /// The targets as reports name them, without duplicates.
    fn targets(&self) -> Vec<String> {
        let mut targets = Vec::new();
        for target in self.programs().flat_map(|program| &program.targets) {
            let written = target.written();
            if self.duel.is_none() || !targets.contains(&written) {
                targets.push(written);
            }
        }
        targets
    }

    fn record(&self, info: &mut RunInfo) -> Result<Option<Recorder>, Box<Diagnostic>> {
        if self.settings.no_record {
            return Ok(None);
        }
        let directory = match &self.settings.out {
            Some(directory) => {
                let mut there = std::fs::read_dir(directory).ok();
                if there.as_mut().is_some_and(|entries| entries.next().is_some()) {
                    let message = say!("{} is not empty", directory.display());
                    let help = say!("name a new directory with --out");
                    let diagnostic = Diagnostic::error("record-impossible", message);
                    return Err(Box::new(diagnostic.help(help)));
                }
                directory.clone()
            }
            None => {
                create_directory(Path::new(RECORDS), wall_now(), &info.name).map_err(|error| {
                    let message = say!(
                        "cannot create a directory in ./{RECORDS}: {error}",
                        error = Said::of_error(&error)
                    );
                    let help = say!(
                        "change to a writable directory, choose another one with --out, or \
                         record nothing with --no-record"
                    );
                    Box::new(Diagnostic::error("record-impossible", message).help(help))
                })?
            }
        };
        let made_of = (&self.recorded, Some(&*self.program));
        let copy_max = self.settings.copy_max.unwrap_or(bundle::COPIED_BYTES_MAX);
        let text = bundle::write(&directory, made_of, copy_max, info);
        match text.and_then(|text| Recorder::create(&directory, info, &text)) {
            Ok(recorder) => Ok(Some(recorder)),
            Err(error) => Err(Box::new(error.diagnostic().help(say!(
                "name a new directory with --out, or record nothing with --no-record"
            )))),
        }
    }
}

/// The sides of a duel, for the run directory.
fn sides() -> Vec<MachineInfo> {
    let machine = |(number, side): (u64, Side)| MachineInfo {
        name: side.name().into(),
        part: LoadPart { first: number, width: 1, of: Side::BOTH.len() as u64 },
        ..MachineInfo::default()
    };
    (0..).zip(Side::BOTH).map(machine).collect()
}

/// Returns immediately if there is no work.
async fn wait(work: Option<impl Future<Output = ()>>) {
    if let Some(work) = work {
        work.await;
    }
}

/// Sets the niceness of this process. Must be called before another thread starts, because threads
/// inherit it.
fn be_nice(limits: &HostLimits) -> Result<(), Box<Diagnostic>> {
    let Some(nice) = limits.nice else { return Ok(()) };
    throng_host::set_nice(nice).map_err(|error| {
        let message = say!(
            "this host does not allow `--nice {nice}`: {error}",
            error = Said::of_error(&error)
        );
        let help = say!("only root can set a value below the current one: use 0 to 19");
        Box::new(Diagnostic::error("host-unfit", message).help(help))
    })
}

/// The runtime for everything that a process waits for.
///
/// It must be built before any shard has its own descriptor table: shards wake this runtime through
/// a descriptor that must also exist in their tables.
fn runtime(errors: &dyn Operator) -> Result<Runtime, Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| {
        let message = say!("cannot start an event loop: {error}", error = Said::of_error(&error));
        let help =
            say!("raise the limit named above, for example with `ulimit -n 1024` for descriptors");
        errors.fail(&Diagnostic::error("host-unfit", message).help(help), Exit::HostUnfit)
    })
}

fn hear(errors: &dyn Operator) -> Result<StopRequests, Exit> {
    errors.stop_requests().map_err(|error| {
        let message = say!("cannot listen for signals: {error}", error = Said::of_error(&error));
        errors.fail(&Diagnostic::error("host-unfit", message), Exit::HostUnfit)
    })
}

/// Reports why the run did not start and nothing was sent.
pub fn not_started(error: &StartError, errors: &dyn Operator) -> Exit {
    let (exit, diagnostic) = start_failed(error);
    errors.refuse(&diagnostic, exit)
}

fn networks(sessions: &[Session]) -> Vec<NetworkInfo> {
    let of = |session: &Session| {
        let network = session.network?.to_string();
        Some(NetworkInfo { session: session.name.clone(), network })
    };
    sessions.iter().filter_map(of).collect()
}

/// The same, for a run that already has a directory.
fn unbegun(error: &StartError, recorder: Option<Recorder>, errors: &dyn Operator) -> Exit {
    forget(recorder);
    not_started(error, errors)
}

/// Removes an empty run directory.
fn forget(recorder: Option<Recorder>) {
    if let Some(recorder) = recorder {
        let _ = std::fs::remove_dir_all(recorder.directory());
    }
}

/// The exit code and the reason of a failed start.
fn start_failed(error: &StartError) -> (Exit, Diagnostic) {
    match error {
        StartError::Resolve { host, reason } => (
            Exit::TargetUnreachable,
            Diagnostic::error("resolve-failed", say!("cannot resolve `{host}`: {reason}"))
                .help(say!("check the name, the network, and -4 or -6")),
        ),
        StartError::NotAllowed { host, address, list } => {
            (Exit::Usage, not_allowed(host, &address.to_string(), list))
        }
        StartError::NotAllowedSocket { socket, list } => {
            (Exit::Usage, not_allowed(socket, socket, list).note(OF_THIS_HOST))
        }
        StartError::Tls(reason) => (
            Exit::Usage,
            Diagnostic::error("tls-impossible", reason.clone())
                .help(say!("check --cacert, --cert and --key, or `tls` in the scenario")),
        ),
        StartError::Data(error) => (Exit::Usage, error.diagnostic()),
        StartError::Host(reason) => (
            Exit::HostUnfit,
            Diagnostic::error("host-unfit", reason.clone())
                .help(say!("raise the limit named above, or use fewer --shards")),
        ),
        StartError::Sources(reason) => {
            (Exit::HostUnfit, Diagnostic::error("host-unfit", reason.clone()))
        }
    }
}

/// Options whose value is `user:password`, or may be `file:password`.
const OF_USERS: [&str; 5] = ["--auth", "-a", "-u", "--user", "--proxy-user"];
const OF_CERTIFICATES: [&str; 2] = ["--cert", "-E"];

/// The steps in which users start on this machine.
fn stairs(drive: &Drive, from: u64, share: &Share) -> Option<Stairs> {
    let Drive::Users(Users { to, coming: Coming::Steps { size, every } }) = drive else {
        return None;
    };
    let (from, size) = (share.part(from), share.part(*size));
    (*to > from).then_some(Stairs { from, size, every_ns: every.as_nanos() as u64 })
}

/// The command line without secrets. The position after an option identifies a password, even if it
/// looks like an ordinary word.
fn masked_command(secrets: &Secrets, words: &[String]) -> Vec<String> {
    let mut before = "";
    let masked = words.iter().map(|word| {
        let option = std::mem::replace(&mut before, word.as_str());
        masked_password(option, word).unwrap_or_else(|| masked_word(secrets, word))
    });
    masked.collect()
}

/// Masks the password of an option, either in this word or in the word after it.
fn masked_password(before: &str, word: &str) -> Option<String> {
    let options = || OF_USERS.iter().chain(&OF_CERTIFICATES).copied();
    let own = || {
        let option = options().find(|option| match option.starts_with("--") {
            true => word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')),
            false => word.len() > option.len() && word.starts_with(option),
        })?;
        Some((option, word.len() - word[option.len()..].trim_start_matches('=').len()))
    };
    let given = options().find(|option| *option == before).map(|option| (option, 0));
    let (option, start) = given.or_else(own)?;
    let value = &word[start..];
    // The value of `-u` can be a URL, which is masked as such.
    let colon = match OF_USERS.contains(&option) {
        true if value.contains("://") => None,
        true => value.find(':'),
        false => value.rfind(':'),
    }?;
    let kept = &word[..=start + colon];
    (kept.len() < word.len()).then(|| format!("{kept}{}", throng_base::secret::MASK))
}

/// Masks a word of the command line; `--set name=value` sets variables.
fn masked_word(secrets: &Secrets, word: &str) -> String {
    let given = word.strip_prefix("--set=").unwrap_or(word);
    match given.split_once('=') {
        Some((name, value)) if secrets.is_variable(name) => {
            let start = &word[..word.len() - value.len()];
            format!("{start}{}", secrets.mask_variable(name, value))
        }
        _ => secrets.mask(word).into_owned(),
    }
}

const OF_THIS_HOST: Said = say!("a Unix socket is allowed if `localhost` or 127.0.0.1 is allowed");

fn not_allowed(host: &str, address: &str, list: &str) -> Diagnostic {
    let is_unknown = address == std::net::Ipv4Addr::UNSPECIFIED.to_string();
    let message = match host == address || is_unknown {
        true => say!("`{host}` is not in the list of targets allowed on this host"),
        false => {
            say!("`{host}` ({address}) is not in the list of targets allowed on this host")
        }
    };
    Diagnostic::error("target-not-allowed", message)
        .note(say!("the list of allowed targets: {list}"))
        .help(say!("if you own the service, add its name, address or network to the list"))
}

#[cfg(test)]
mod tests;
