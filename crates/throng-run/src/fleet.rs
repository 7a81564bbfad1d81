//! Runs a load on the agents of a fleet: finds the agents, sends each its part and the files of the
//! run, starts all at the same time, and passes their messages to the controller like those of
//! local generators.

mod begun;
mod bridge;
pub mod bus;
mod collect;
pub mod manage;
mod parcel;
mod takeover;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use throng_base::units::format_count;
use throng_base::{Clock, Diagnostic, Exit, LoadPart, Said, clock::wall_now};
use throng_bus::Bus as _;
use throng_bus::nats::Nats;
use throng_engine::{addresses, sizes, source_count, source_ports};
use throng_fleet::assign::{Capacity, Need, Scarce, Shortage, assign};
use throng_fleet::controller::{Input, Output};
use throng_fleet::wire::{Assigned, FileRef, Plan, Raw, Registered, WIRE};
use throng_load::Forecast;
use throng_program::{Program, SourceBlock, Target};
use throng_results::{MachineInfo, OnceRun, RunInfo};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, sleep_until};

use crate::controller::audits::BooksBefore;
use crate::controller::{Orders, Posts};
use crate::wire::{Inputs, Message, PlanDetails, Ready};
use crate::{Conduct, Operator, Settings, StopRequests};
use bridge::Bridge;
use bus::Access;
pub(crate) use collect::collect;
pub use collect::{BUNDLE, Kept, LINES_FILE, PART_FILE};
pub(crate) use takeover::resume;

/// How long to wait for the requested number of agents.
const GATHER_TIME: Duration = Duration::from_secs(60);
/// How long to wait for agents if no number is given.
const HEARD_TIME: Duration = Duration::from_millis(2_500);
const COMMAND_TIME: Duration = Duration::from_secs(15);
/// Maximum number of agents that a message names.
const NAMES_MAX: usize = 20;
const READY_TIME: Duration = Duration::from_secs(120);
/// Delay between the readiness of the last agent and the start of the load.
const AHEAD: Duration = Duration::from_secs(2);
/// How long a plan is valid.
const VALID_TIME: Duration = Duration::from_mins(10);
/// Assumed maximum difference of clocks that were not compared.
const VALID_BEFORE: Duration = Duration::from_mins(5);

/// Options of `throng resume`.
pub struct Resume {
    /// By default, the newest run that has not ended.
    pub run: Option<String>,
    /// Wait until the current controller fails.
    pub standby: bool,
    pub settings: Settings,
}

/// Options for collecting a run from its agents' directories.
pub struct Collect {
    pub directories: Vec<PathBuf>,
    /// Required if the directories contain several runs.
    pub run: Option<String>,
    pub settings: Settings,
}

/// A fleet whose agents wait for a plan.
pub(crate) struct Fleet {
    access: Access,
    members: Vec<Member>,
    need: Need,
}

#[derive(Clone)]
struct Member {
    name: String,
    registered: Registered,
    part: LoadPart,
}

/// Selects the agents of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wanted {
    /// Required build, as named by [`bus::build_name`].
    pub(crate) build: String,
    pub(crate) count: Option<usize>,
    pub(crate) labels: Vec<(String, String)>,
}

fn unfit(message: Said, help: Said) -> Diagnostic {
    Diagnostic::error("fleet-unfit", message).help(help)
}

/// Results and readings from before the load.
#[derive(Clone, Copy)]
pub(crate) struct Before<'a> {
    pub(crate) setup: Option<&'a OnceRun>,
    pub(crate) books: &'a BooksBefore,
}

impl Fleet {
    /// Finds the agents for the load, or reports what is missing.
    pub(crate) async fn gather(
        conduct: &Conduct<'_>,
        directory: &Path,
        wanted: &Wanted,
        (signals, errors): (&mut StopRequests, &dyn Operator),
    ) -> Result<Fleet, Exit> {
        let refused = |told: Box<Diagnostic>| errors.refuse(&told, bus::exit_of(&told));
        let sendable = parcel::has_no_key(&conduct.recorded);
        sendable.map_err(|told| errors.refuse(&told, Exit::Usage))?;
        let access = Access::open(directory).await.map_err(refused)?;
        let mut fleet = Fleet { access, members: Vec::new(), need: need(conduct) };
        let gathered = tokio::select! {
            gathered = fleet.gathered(wanted, errors) => gathered,
            () = signals.next() => return Err(Exit::Interrupted),
        };
        let agents = gathered.map_err(refused)?;
        fleet.members = members(agents, &fleet.need).map_err(refused)?;
        let names: Vec<&str> = fleet.members.iter().map(|it| it.name.as_str()).collect();
        errors.say(say!("{} agents generate the load: {}", names.len(), listed(&names, ", ")));
        Ok(fleet)
    }

    async fn gathered(
        &mut self,
        wanted: &Wanted,
        errors: &dyn Operator,
    ) -> Result<BTreeMap<String, Registered>, Box<Diagnostic>> {
        let until = Instant::now() + if wanted.count.is_some() { GATHER_TIME } else { HEARD_TIME };
        let commands_until = Instant::now() + COMMAND_TIME;
        let (mut agents, mut others) = (BTreeMap::new(), BTreeMap::new());
        let mut commands = false;
        loop {
            let is_enough = wanted.count.is_some_and(|count| agents.len() >= count);
            let is_late = Instant::now() >= until;
            if commands && (is_enough || is_late) {
                break;
            }
            let next = if commands { until } else { commands_until };
            tokio::select! {
                output = self.access.next() => match output? {
                    Output::Commands => commands = true,
                    Output::Agent { name, registered } => {
                        let is_wanted = wanted.labels.iter().all(|(label, value)| {
                            registered.labels.get(label) == Some(value)
                        });
                        match why_not(&registered, &wanted.build) {
                            Some(why) => {
                                errors.say(say!("agent `{name}` does not take part: {why}", why = &why));
                                others.insert(name, why);
                            }
                            None if is_wanted => drop(agents.insert(name, *registered)),
                            None => drop(others.insert(name, other_labels(&registered.labels))),
                        }
                    }
                    _ => {}
                },
                () = sleep_until(next) => if !commands {
                    let message = say!("another controller is using this fleet");
                    let help = say!("wait until its run has ended, or end it: `throng fleet stop`");
                    return Err(Box::new(unfit(message, help)));
                },
            }
        }
        let count = wanted.count.unwrap_or_else(|| agents.len().max(1));
        if agents.len() >= count {
            return Ok(agents.into_iter().take(count).collect());
        }
        let message = match wanted.count {
            Some(count) => say!("{} of {count} agents are online", agents.len()),
            None => say!("no suitable agent is online"),
        };
        let help = say!("start more: `throng agent --join TOKEN`; see `throng fleet agents`");
        let others = others.iter().map(|(name, why)| format!("{name}: {}", why.spoken()));
        let others: Vec<String> = others.collect();
        let diagnostic = unfit(message, help);
        Err(Box::new(match others.is_empty() {
            true => diagnostic,
            false => diagnostic.note(say!("others: {}", listed(&others, "; "))),
        }))
    }

    pub(crate) fn bus(&self) -> Nats {
        self.access.bus.clone()
    }

    /// The machines of the run, for the run directory.
    pub(crate) fn machines(&self) -> Vec<MachineInfo> {
        let machine = |member: &Member| MachineInfo {
            name: member.name.clone(),
            host: member.registered.host.read().unwrap_or_default(),
            part: member.part,
            labels: member.registered.labels.clone(),
            ..MachineInfo::default()
        };
        self.members.iter().map(machine).collect()
    }

    /// Distributes the parts, waits until all agents are ready, and starts them. If one is not
    /// ready, none starts, and nothing is sent.
    pub(crate) async fn start(
        mut self,
        conduct: &Conduct<'_>,
        info: &mut RunInfo,
        before: Before<'_>,
        (signals, errors): (&mut StopRequests, &dyn Operator),
    ) -> Result<Posts, Exit> {
        let begun = tokio::select! {
            begun = self.begin(conduct, info, before) => {
                begun.map_err(|told| errors.refuse(&told, Exit::HostUnfit))
            }
            () = signals.next() => Err(Exit::Interrupted),
        };
        let ready = match begun {
            Ok(ready) => ready,
            Err(exit) => {
                self.access.call_off().await;
                return Err(exit);
            }
        };
        let unix_ns = u64::try_from((wall_now() + AHEAD).as_nanos()).unwrap_or(u64::MAX);
        let clock = Clock::start_in(AHEAD);
        let _ = self.access.inputs.send(Input::Start { unix_ns });
        for (machine, ready) in info.generator.machines.iter_mut().zip(&ready) {
            machine.shards = ready.shards;
        }
        info.generator.shards = info.generator.machines.iter().map(|machine| machine.shards).sum();
        info.time.zero_unix_ns = unix_ns;
        let names = self.members.iter().map(|member| member.name.clone()).collect();
        let controller = (self.access, Vec::new());
        Ok(generators(names, controller, clock, (&ready, conduct.settings.redistribute)))
    }

    async fn begin(
        &mut self,
        conduct: &Conduct<'_>,
        info: &RunInfo,
        before: Before<'_>,
    ) -> Result<Vec<Ready>, Box<Diagnostic>> {
        let mut files = Vec::new();
        for (path, bytes) in parcel::pack(conduct, info)? {
            let length = bytes.len() as u64;
            let stored = self.access.bus.store(bytes.into()).await;
            let sha256 = stored.map_err(|error| self.access.failed(&error))?;
            files.push(FileRef { path, sha256, bytes: length });
        }
        let plan = self.plan(conduct, files, before);
        let signed = self.access.signed(&plan)?;
        let _ = self.access.inputs.send(Input::Begin { plan: Box::new(plan), signed });
        self.ready().await
    }

    fn plan(&self, conduct: &Conduct<'_>, files: Vec<FileRef>, before: Before<'_>) -> Plan {
        let program = &conduct.program;
        let now = wall_now();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let variables = conduct.recorded.environment.iter();
        let environment = variables
            .filter_map(|it| Some((it.name.clone(), std::env::var(&it.name).ok()?)))
            .collect();
        let shards = conduct.settings.shards.map(|shards| format!("--shards={shards}"));
        let told = PlanDetails {
            inputs: Inputs::of(program),
            setup: before.setup.cloned(),
            books: before.books.iter().map(|it| it.clone()?.ok()).collect(),
            flags: shards.into_iter().collect(),
            environment,
            names: self.members.iter().map(|member| member.name.clone()).collect(),
            labels: self.members.iter().map(|it| it.registered.labels.clone()).collect(),
            redistribute: conduct.settings.redistribute,
        };
        let assigned = |member: &Member| Assigned {
            agent: member.name.clone(),
            life: member.registered.life,
            part: member.part,
        };
        Plan {
            wire: WIRE,
            run: program.run_id.clone(),
            version: bus::build_name(&conduct.settings.build),
            valid_from_ms: millis(now.saturating_sub(VALID_BEFORE)),
            valid_until_ms: millis(now + VALID_TIME),
            users_max: self.need.users,
            rate_max: self.need.rate,
            parts: self.members.iter().map(assigned).collect(),
            files,
            told: Raw::new(&told),
        }
    }

    /// Receives the message of each agent that is ready.
    async fn ready(&mut self) -> Result<Vec<Ready>, Box<Diagnostic>> {
        let mut ready: Vec<Option<Ready>> = self.members.iter().map(|_| None).collect();
        let mut refusals = Vec::new();
        let until = Instant::now() + READY_TIME;
        while ready.iter().filter(|it| it.is_none()).count() > refusals.len() {
            let output = tokio::select! {
                output = self.access.next() => output?,
                () = sleep_until(until) => break,
            };
            match output {
                Output::Lines { agent, lines } => {
                    if let Some(it) = lines.split(|byte| *byte == b'\n').find_map(ready_of) {
                        ready[agent] = Some(it);
                    }
                }
                Output::Ended { agent, end } => {
                    let why = end.cut_short.unwrap_or_default().spoken();
                    refusals.push(format!("{}: {why}", self.members[agent].name));
                    ready[agent] = None;
                }
                _ => {}
            }
        }
        if !refusals.is_empty() {
            let message = say!("{} of {} agents refuse to start", refusals.len(), ready.len());
            let diagnostic = unfit(
                message,
                say!("fix the problems they report, or use fewer agents with --agents"),
            );
            let more = refusals.len().saturating_sub(NAMES_MAX);
            let first = refusals.into_iter().take(NAMES_MAX);
            let rest = (more > 0).then(|| format!("… (+{more})"));
            let noted = first.chain(rest).map(Said::of_others);
            return Err(Box::new(noted.fold(diagnostic, Diagnostic::note)));
        }
        let silent = self.members.iter().zip(&ready).filter(|(_, ready)| ready.is_none());
        let silent: Vec<&str> = silent.map(|(member, _)| member.name.as_str()).collect();
        if !silent.is_empty() {
            let message =
                say!("not ready after {} s: {}", READY_TIME.as_secs(), listed(&silent, ", "));
            let help = say!("check the output of these agents");
            return Err(Box::new(unfit(message, help)));
        }
        Ok(ready.into_iter().flatten().collect())
    }
}

/// The first names, and the number of the others.
fn listed(names: &[impl AsRef<str>], between: &str) -> String {
    let mut told: Vec<&str> = names.iter().take(NAMES_MAX).map(AsRef::as_ref).collect();
    let more = names.len() - told.len();
    let rest = format!("… (+{more})");
    told.extend((more > 0).then_some(rest.as_str()));
    told.join(between)
}

/// Connects the controller of a run to its controller, including the lines received earlier.
fn generators(
    names: Vec<String>,
    (access, early): (Access, Vec<Output>),
    clock: Clock,
    (ready, redistributes): (&[Ready], bool),
) -> Posts {
    let (lines, told) = unbounded_channel();
    let (orders, ordered) = unbounded_channel();
    let orders = Orders::Fleet(names.len(), orders);
    let Access { inputs, outputs, .. } = access;
    let mut bridge = Bridge::new(names, inputs, lines, clock.clone());
    early.into_iter().for_each(|output| bridge.heard(output));
    let closing = Some(tokio::spawn(bridge.work(outputs, ordered)));
    let spare = ready.iter().map(Ready::spare);
    Posts { redistributes, closing, ..Posts::new(clock, orders, told, spare) }
}

fn ready_of(line: &[u8]) -> Option<Ready> {
    match serde_json::from_slice(line) {
        Ok(Message::Ready(ready)) => Some(ready),
        _ => None,
    }
}

/// The reason for an agent whose labels do not match.
fn other_labels(labels: &BTreeMap<String, String>) -> Said {
    let labels = labels.iter().map(|(label, value)| format!("{label}={value}"));
    let labels: Vec<String> = labels.collect();
    match labels.is_empty() {
        true => say!("it has no labels"),
        false => say!("it has the labels {}", labels.join(", ")),
    }
}

/// Why an agent cannot take part in a run of this build.
fn why_not(registered: &Registered, own: &str) -> Option<Said> {
    (registered.wire != WIRE || registered.version != own).then(|| {
        say!(
            "it runs throng {}, but this is throng {own}: all machines of a fleet must use the \
             same version",
            registered.version
        )
    })
}

/// What the run needs from all agents together.
fn need(conduct: &Conduct<'_>) -> Need {
    let program = &conduct.program;
    let forecast = Forecast::new(program);
    Need {
        users: throng_plan::needs::users_at_once(program).max(1),
        user_bytes: sizes(program).user_bytes().max(1),
        user_connections: forecast.connections_per_user().ceil().max(1.0) as u64,
        addresses: program.targets.len().max(1) as u64,
        ports: own_ports(program).unwrap_or(0),
        rate: forecast.arrivals_per_second(),
    }
}

/// Source ports per target address that every agent has according to the scenario: from a list of
/// addresses, or on loopback.
fn own_ports(program: &Program) -> Option<u64> {
    let sources = &program.connection.sources;
    let is_range = |block: &SourceBlock| matches!(block, SourceBlock::Range { .. });
    let listed = !sources.blocks.is_empty() && sources.blocks.iter().all(is_range);
    let of = |target: &Target| {
        let (host, _) = program.connection.routing.next_hop(target);
        let address: IpAddr = match listed {
            true => addresses(program, target).ok()?.first()?.ip(),
            false => host.parse().ok().filter(IpAddr::is_loopback)?,
        };
        Some(source_count(program, address).ok()?.saturating_mul(source_ports(sources)))
    };
    let all: Option<Vec<u64>> = program.targets.iter().map(of).collect();
    all?.into_iter().min()
}

fn members(
    agents: BTreeMap<String, Registered>,
    need: &Need,
) -> Result<Vec<Member>, Box<Diagnostic>> {
    let capacity = |(name, agent): (&String, &Registered)| Capacity {
        name: name.clone(),
        cores: agent.cores,
        memory_bytes: agent.memory_bytes,
        descriptors: agent.descriptors,
        ports: agent.ports,
        rate_max: agent.ceiling.rate,
    };
    let capacities: Vec<Capacity> = agents.iter().map(capacity).collect();
    let parts =
        assign(&capacities, need).map_err(|shortage| short(&capacities, need, &shortage))?;
    let members = agents.into_iter().zip(parts);
    let member = |((name, registered), part): ((String, Registered), Option<LoadPart>)| {
        Some(Member { name, registered, part: part? })
    };
    Ok(members.filter_map(member).collect())
}

fn short(agents: &[Capacity], need: &Need, shortage: &Shortage) -> Box<Diagnostic> {
    let message = say!(
        "the {} agents can run only {} of the {} users",
        agents.len(),
        format_count(shortage.users),
        format_count(need.users)
    );
    let diagnostic =
        unfit(message, say!("start more agents, or reduce the number of users with --users"));
    let notes = agents.iter().zip(&shortage.scarce).map(|(agent, scarce)| {
        let name = &agent.name;
        match scarce {
            Scarce::Memory => say!("`{name}` has too little memory"),
            Scarce::Descriptors => say!("`{name}` has too few file descriptors"),
            Scarce::Ports => say!("`{name}` has too few source ports"),
            Scarce::Rate => say!("the owner of `{name}` does not allow a higher rate"),
        }
    });
    Box::new(notes.fold(diagnostic, Diagnostic::note))
}
