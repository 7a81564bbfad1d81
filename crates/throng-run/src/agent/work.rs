//! `throng agent`: connects to the bus, registers this machine, and takes part in runs until it is
//! stopped. A child process generates the load of a run, within the limits of the machine's owner.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use throng_base::flags::{count, label, rate};
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
use throng_results::BuildInfo;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::LocalSet;

use super::Supervisor;
use crate::files::private_directory;
use crate::fleet::bus::build_name;
use crate::{HostLimits, Operator, StopRequests};

/// How long results are kept after they were sent, in case the bus loses its disk.
const KEPT_TIME: Duration = Duration::from_hours(7 * 24);

/// Options of `throng agent`, set by the owner of a machine.
#[derive(Args, Debug)]
pub struct AgentOptions {
    /// File with the token of this machine, from `throng fleet token NAME`; `-` reads it from
    /// standard input; the token itself is also accepted
    #[arg(long, value_name = "TOKEN")]
    pub join: String,
    /// Directory for run inputs and unsent results
    #[arg(long = "dir", value_name = "DIR", default_value = "throng-agent")]
    pub directory: PathBuf,
    /// Label of this machine, by which runs can select it: `region=east`; may be given more than
    /// once
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Maximum number of users on this agent
    #[arg(long, value_name = "N", value_parser = count)]
    pub users_max: Option<u64>,
    /// Maximum number of starts per second on this agent
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate_max: Option<f64>,
    /// Leave after the first run
    #[arg(long)]
    pub once: bool,
    /// Do not use colors; the environment variable NO_COLOR does the same
    #[arg(long)]
    pub no_color: bool,
    #[command(flatten)]
    pub limits: HostLimits,
}

/// Maximum size of a token file.
const TOKEN_BYTES_MAX: usize = 1 << 16;
/// Each thread of the engine has a separate descriptor table.
const TABLES_MAX: u64 = 64;

/// The fleet no longer accepts the agent.
fn cut_off(name: &str, why: &Said) -> Diagnostic {
    let message = say!("agent `{name}` cannot continue: {why}");
    let help = say!("ask the fleet's operator what has changed, or request a new token");
    Diagnostic::error("fleet-unfit", message).help(help)
}

/// Takes part in runs until the operator stops the agent, or the fleet refuses it.
pub fn agent(
    options: &AgentOptions,
    token: Token,
    build: &BuildInfo,
    errors: &dyn Operator,
) -> Exit {
    let (directory, lock) = match own_directory(&options.directory, &token.identity.name) {
        Ok(own) => own,
        Err(why) => {
            let message = say!("{}: {why}", options.directory.display());
            let help = say!("set --dir to a writable directory");
            let told = Diagnostic::error("fleet-unfit", message).help(help);
            return errors.fail(&told, Exit::HostUnfit);
        }
    };
    let bus = match Nats::connect(token.identity.clone()) {
        Ok(bus) => bus,
        Err(why) => return errors.fail(&Diagnostic::error("fleet-keys", why), Exit::Usage),
    };
    let ceiling = Ceiling { users: options.users_max, rate: options.rate_max };
    let flags = options.limits.flags();
    let host = Raw::new(&throng_host::facts(env!("CARGO_PKG_VERSION")));
    let supervisor = Supervisor { directory, flags, ceiling, host: host.clone() };
    supervisor.tidy(KEPT_TIME);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Exit::HostUnfit };
    let address = token.identity.address;
    let about = about(options, token, (ceiling, host), build);
    let name = about.name.clone();
    errors.say(say!("agent `{name}`: connecting to {address}"));
    let (tell, happened) = unbounded_channel();
    let agent = Agent::new(bus, supervisor, about, tell);
    let exit = LocalSet::new().block_on(&runtime, async {
        let mut heard = pin!(listen(happened, errors, options.once));
        let leave = async {
            errors.stop_requested().await;
            errors.say(say!(
                "agent `{name}` leaves: its users finish their step first; interrupt again \
                 to leave now"
            ));
        };
        let leave_now = async {
            let mut requests = errors.stop_requests().unwrap_or_else(|_| StopRequests::none());
            requests.next().await;
            requests.next().await;
        };
        tokio::select! {
            ended = agent.work(leave) => match ended {
                Ok(()) => {
                    // Let the listener print the last messages.
                    heard.await;
                    Exit::Success
                }
                Err(why) => errors.fail(&cut_off(&name, &why), Exit::HostUnfit),
            },
            () = leave_now => Exit::Success,
            () = &mut heard => Exit::Success,
        }
    });
    drop(lock);
    exit
}

/// The agent's directory, locked until it exits so that no other agent sends its results.
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

/// Whether the argument is the token itself, which the process list would expose to other users.
pub fn is_token(join: &str) -> bool {
    join.starts_with("throng-join-")
}

/// The token, read from a file or standard input, or given directly.
///
/// # Errors
/// The token cannot be read or has expired.
pub fn token(join: &str) -> Result<Token, Box<Diagnostic>> {
    let path = if join == "-" { "/dev/stdin" } else { join };
    let text = match is_token(join) {
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

/// Describes this machine and its owner's limits.
fn about(
    options: &AgentOptions,
    token: Token,
    (ceiling, host): (Ceiling, Raw),
    build: &BuildInfo,
) -> About {
    let machine = Machine::this_host(&Sources::default(), 1);
    let descriptors = machine.descriptors.saturating_mul(TABLES_MAX).min(machine.files);
    let life = u64::try_from(wall_now().as_millis()).unwrap_or(u64::MAX);
    About {
        name: token.identity.name.clone(),
        registered: Registered {
            wire: WIRE,
            life: Incarnation(life),
            version: build_name(build),
            cores: machine.cores,
            memory_bytes: options.limits.max_memory.unwrap_or(machine.memory_bytes),
            descriptors,
            ports: machine.ports.saturating_mul(machine.addresses),
            labels: options.labels.iter().cloned().collect(),
            ceiling,
            host,
        },
        patience: Patience::default(),
        verify: Rc::new(move |plan, signature| {
            is_signed(&token.operator, plan.as_bytes(), signature)
        }),
    }
}

/// Prints events; with `once`, returns after the first run.
async fn listen(mut happened: UnboundedReceiver<Happened>, errors: &dyn Operator, once: bool) {
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
