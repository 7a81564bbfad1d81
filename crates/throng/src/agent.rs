//! `throng agent`: a machine that takes part in the runs of a fleet. It dials out to the bus, says
//! what it is, and waits; the load of a run is made by a child process within the limits that the
//! owner of the machine has set here, whatever a run asks for.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use throng_base::units::format_count;
use throng_base::{Diagnostic, Exit, Said, clock::wall_now, plain};
use throng_bus::Link;
use throng_bus::keys::{Token, is_signed};
use throng_bus::nats::Nats;
use throng_fleet::agent::{About, Agent, Happened};
use throng_fleet::orphan::Patience;
use throng_fleet::presence::Incarnation;
use throng_fleet::wire::{Ceiling, Raw, Registered, WIRE};
use throng_plan::machine::Machine;
use throng_program::Sources;
use throng_run::agent::Supervisor;
use throng_run::files::private_directory;
use throng_run::fleet::bus::build_name;
use throng_terminal::Screen;
use throng_terminal::signals::stop_requested;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::LocalSet;

use crate::Ended;
use crate::arguments::{AgentArguments, LimitArguments};

/// What was sent wholly is kept for so long, for those who lost the disk of the bus.
const KEPT_TIME: Duration = Duration::from_hours(7 * 24);
/// Of a file with a token.
const TOKEN_BYTES_MAX: usize = 1 << 16;
/// Threads of an engine have tables of descriptors of their own.
const TABLES_MAX: u64 = 64;

/// The fleet does not take the agent any more.
fn cut_off(name: &str, why: &Said) -> Diagnostic {
    let message = say!("agent `{name}` cannot continue: {why}");
    let help = say!("ask the fleet's operator what has changed, or request a new token");
    Diagnostic::error("fleet-unfit", message).help(help)
}

pub(crate) fn agent(arguments: &AgentArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    let token = token(&arguments.join).map_err(|told| errors.refused(&told))?;
    let (directory, lock) = match own_directory(&arguments.directory, &token.identity.name) {
        Ok(own) => own,
        Err(why) => {
            let message = say!("{}: {why}", arguments.directory.display());
            let help = say!("set --dir to a writable directory");
            errors.diagnostic(&Diagnostic::error("fleet-unfit", message).help(help));
            return Err(Exit::HostUnfit);
        }
    };
    let bus = Nats::connect(token.identity.clone());
    let bus = bus.map_err(|why| errors.refused(&Diagnostic::error("fleet-keys", why)))?;
    let ceiling = Ceiling { users: arguments.users_max, rate: arguments.rate_max };
    let flags = flags(&arguments.limits);
    let host = Raw::new(&throng_host::facts(env!("CARGO_PKG_VERSION")));
    let supervisor = Supervisor { directory, flags, ceiling, host: host.clone() };
    supervisor.tidy(KEPT_TIME);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Err(Exit::HostUnfit) };
    let address = token.identity.address;
    let about = about(arguments, token, (ceiling, host));
    let name = about.name.clone();
    errors.say(say!("agent `{name}`: connecting to {address}"));
    let (tell, happened) = unbounded_channel();
    let agent = Agent::new(bus, supervisor, about, tell);
    let exit = LocalSet::new().block_on(&runtime, async {
        let mut heard = tokio::task::spawn_local(listen(happened, errors, arguments.once));
        let leave = async {
            stop_requested().await;
            errors.say(say!(
                "agent `{name}` leaves: its users finish their step first; interrupt again \
                     to leave now"
            ));
        };
        let leave_now = async {
            stop_requested().await;
            stop_requested().await;
        };
        tokio::select! {
            ended = agent.work(leave) => match ended {
                Ok(()) => {
                    // What it said last is still to be printed.
                    let _ = heard.await;
                    Exit::Success
                }
                Err(why) => {
                    errors.diagnostic(&cut_off(&name, &why));
                    Exit::HostUnfit
                }
            },
            () = leave_now => Exit::Success,
            _ = &mut heard => Exit::Success,
        }
    });
    drop(lock);
    Ok(exit)
}

/// What this agent has on the disk. No other may send what lies there, so it is locked for as long
/// as it runs.
fn own_directory(directory: &Path, name: &str) -> Result<(PathBuf, File), Said> {
    let own = directory.join(name);
    let made = private_directory(&own);
    let own = made.and_then(|()| own.canonicalize()).map_err(|error| Said::of_error(&error))?;
    let lock = File::create(own.join("lock")).map_err(|error| Said::of_error(&error))?;
    match lock.try_lock() {
        Ok(()) => Ok((own, lock)),
        Err(_) => Err(say!("agent `{name}` is already running here")),
    }
}

/// From a file, from the standard input, or as it was pasted; then it is taken out of the list of
/// processes, which everybody on this machine may read.
pub(crate) fn token(join: &str) -> Result<Token, Box<Diagnostic>> {
    let is_pasted = join.starts_with("throng-join-");
    if is_pasted {
        crate::system::hide_argument(join);
    }
    let path = if join == "-" { "/dev/stdin" } else { join };
    let text = match is_pasted {
        true => join.to_string(),
        false => plain::read_given_text(Path::new(path), TOKEN_BYTES_MAX).map_err(|error| {
            let error = Said::of_error(&error);
            let message =
                say!("`{join}` is not a token, and throng cannot read it as a token file: {error}");
            let help = say!("paste the whole line that `throng fleet token NAME` prints");
            Box::new(Diagnostic::error("fleet-keys", message).help(help))
        })?,
    };
    let token = Token::parse(&text).and_then(|token| {
        token.check(wall_now())?;
        Ok(token)
    });
    token.map_err(|why| Box::new(Diagnostic::error("fleet-keys", why)))
}

/// What this machine is, and what its owner allows.
fn about(arguments: &AgentArguments, token: Token, (ceiling, host): (Ceiling, Raw)) -> About {
    let machine = Machine::this_host(&Sources::default(), 1);
    let descriptors = machine.descriptors.saturating_mul(TABLES_MAX).min(machine.files);
    let life = u64::try_from(wall_now().as_millis()).unwrap_or(u64::MAX);
    About {
        name: token.identity.name.clone(),
        registered: Registered {
            wire: WIRE,
            life: Incarnation(life),
            version: build_name(&crate::version::build()),
            cores: machine.cores,
            memory_bytes: arguments.limits.max_memory.unwrap_or(machine.memory_bytes),
            descriptors,
            ports: machine.ports.saturating_mul(machine.addresses),
            labels: arguments.labels.iter().cloned().collect(),
            ceiling,
            host,
        },
        patience: Patience::default(),
        verify: Rc::new(move |plan, signature| {
            is_signed(&token.operator, plan.as_bytes(), signature)
        }),
    }
}

/// Limits as a child is told them.
fn flags(limits: &LimitArguments) -> Vec<String> {
    let LimitArguments { max_cpu, max_memory, max_bandwidth, max_packets, back_off, nice, force } =
        limits;
    let flags = [
        max_cpu.map(|share| format!("--max-cpu={}%", share * 100.0)),
        max_memory.map(|bytes| format!("--max-memory={bytes}B")),
        max_bandwidth.map(|bits| format!("--max-bandwidth={}kbit/s", bits / 1e3)),
        max_packets.map(|rate| format!("--max-packets={rate}/s")),
        back_off.map(|share| format!("--back-off={}%", share * 100.0)),
        nice.map(|nice| format!("--nice={nice}")),
        force.then(|| "--force".to_string()),
    ];
    flags.into_iter().flatten().collect()
}

/// Says what happens; ends behind the first run, where that is wanted.
async fn listen(mut happened: UnboundedReceiver<Happened>, errors: Screen, once: bool) {
    let mut was_up = false;
    while let Some(happened) = happened.recv().await {
        match happened {
            Happened::Link(Link::Up) if was_up => errors.say(say!("the bus is available again")),
            Happened::Link(Link::Up) => {
                was_up = true;
                errors.say(say!("joined; waiting for a run"));
            }
            Happened::Link(Link::Cut) => errors.say(say!("the bus does not respond: retrying")),
            Happened::Link(Link::Begun | Link::Refused(_)) | Happened::Registered => {}
            Happened::Preparing { run } => errors.say(say!("run {run}: preparing")),
            Happened::Refused { run, why } => {
                errors.say(say!("run {run}: this agent does not take part: {why}", why = &why));
            }
            Happened::Started { run } => errors.say(say!("run {run}: generating load")),
            Happened::Forged { run } => errors
                .say(say!("run {run}: ignored a command that the fleet's operator did not sign")),
            Happened::Declined { run } => errors.say(say!(
                "run {run}: ignored a request for more load than the owner of this machine allows"
            )),
            Happened::Alone { run } => errors.say(say!(
                "run {run}: no contact with the bus or the controller for too long, so its load \
                 ends"
            )),
            Happened::Sent { run, lines } => {
                let lines = format_count(lines);
                errors
                    .say(say!("run {run}: ended; all {lines} lines of this agent are in the log"));
                if once {
                    return;
                }
            }
        }
    }
}
