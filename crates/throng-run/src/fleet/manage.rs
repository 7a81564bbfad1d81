//! The commands of `throng fleet` for keys, the bus and agents. [`throng_bus`] contains the keys
//! and the server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use throng_base::clean::clean_json;
use throng_base::clock::wall_now;
use throng_base::units::{format_bytes, format_count};
use throng_base::{Diagnostic, Said};
use throng_bus::identity::Identity;
use throng_bus::keys::Keys;
use throng_bus::nats::{Nats, Room};
use throng_bus::server::{Program, Server, is_durable, not_durable};
use throng_bus::{Bus as _, BusError, Link};
use throng_fleet::wire::{Heartbeat, Registered, Stage, from_json, names};
use tokio::net::TcpStream;
use tokio::time::{Instant, interval, sleep, timeout, timeout_at};

use super::bus::{absolute, bus_failed, connected, opened, told, wrong_keys};
use crate::Operator;

/// Each agent sends a heartbeat within this time.
const HEARD_TIME: Duration = Duration::from_millis(2_200);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The server of a bus reads the key of a new token within this time.
const ADMIT_TIME: Duration = Duration::from_secs(5);
const REACH_TIME: Duration = Duration::from_millis(300);

/// Creates the keys of a new fleet.
///
/// # Errors
/// There are keys already, or they cannot be written.
pub fn init(
    directory: &Path,
    address: &[SocketAddr],
    screen: &dyn Operator,
) -> Result<(), Box<Diagnostic>> {
    let port = address.first().map_or(0, SocketAddr::port);
    if address.iter().any(|it| it.port() != port) {
        return Err(wrong_keys(say!("all addresses of a bus must have the same port")));
    }
    let addresses: Vec<_> = address.iter().map(SocketAddr::ip).collect();
    Keys::create(&absolute(directory), &addresses, port, wall_now()).map_err(wrong_keys)?;
    let directory = directory.display();
    screen.say(say!(
        "created the keys of a new fleet: {directory}; anyone with these keys controls the fleet"
    ));
    screen.say(say!(
        "next: run `throng fleet serve` here, and `throng fleet token NAME` for each machine"
    ));
    Ok(())
}

/// Creates and prints the token of a machine.
///
/// # Errors
/// The keys cannot be read or written, or the name is taken.
pub fn token(
    directory: &Path,
    (name, valid): (&str, Duration),
    screen: &dyn Operator,
) -> Result<(), Box<Diagnostic>> {
    let mut keys = opened(directory)?;
    let token = keys.admit(name, wall_now(), valid).map_err(wrong_keys)?;
    runtime()?.block_on(known(&token.identity));
    screen.line(&token.to_string());
    Ok(())
}

/// Waits until the bus accepts a new key. Returns immediately if there is no bus yet.
async fn known(identity: &Identity) {
    let until = Instant::now() + ADMIT_TIME;
    while Instant::now() < until {
        let reached = timeout(REACH_TIME, TcpStream::connect(identity.address)).await;
        let Ok(Ok(_)) = reached else { return };
        let Ok(bus) = Nats::connect(identity.clone()) else { return };
        let mut link = bus.link();
        let up = link.wait_for(|link| matches!(link, Link::Up | Link::Refused(_)));
        if let Ok(Ok(link)) = timeout_at(until, up).await
            && *link == Link::Up
        {
            return;
        }
        sleep(REACH_TIME).await;
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Box<Diagnostic>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| {
        let error = Said::of_error(&error);
        Box::new(Diagnostic::error("host-unfit", say!("cannot start an event loop: {error}")))
    })
}

/// Runs the bus until the operator stops it.
///
/// # Errors
/// The server does not start, or does not work.
pub fn serve(
    directory: &Path,
    given: Option<&Path>,
    errors: &dyn Operator,
) -> Result<(), Box<Diagnostic>> {
    let unfit = |why: Said| Box::new(Diagnostic::error("fleet-unfit", why));
    let mut keys = opened(directory)?;
    let program = Program::find(given).map_err(unfit)?;
    let runtime = runtime()?;
    let mut server = Server::start(program.clone(), &keys).map_err(unfit)?;
    if server.is_anothers() {
        errors.say(say!("the server of this bus was already running"));
    }
    runtime.block_on(async {
        let failed = |error: BusError| bus_failed(keys.address(), &told(&error));
        let bus = connected(&keys).await?;
        bus.furnish(Room::default()).await.map_err(failed)?;
        if !is_durable(&keys).await.map_err(failed)? {
            errors.diagnostic(&Diagnostic::warning("fleet-unfit", not_durable()));
        }
        let address = keys.address();
        errors.say(say!("the fleet's bus is running at {address}; press Ctrl-C to stop it"));
        let mut look = interval(LOOK_EVERY);
        let mut seen = keys.agents().to_vec();
        let stop = errors.stop_requested();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = look.tick() => {
                    if let Some(why) = server.ended() {
                        // Acknowledged messages are on its disk, so a restart loses nothing.
                        errors.say(say!("{why}; restarting it", why = &why));
                        server = Server::start(program.clone(), &keys).map_err(unfit)?;
                    }
                    if let Ok(changed) = opened(directory)
                        && changed.agents() != seen
                    {
                        server.reload().map_err(unfit)?;
                        seen = changed.agents().to_vec();
                        let names: Vec<&str> = seen.iter().map(|it| it.name.as_str()).collect();
                        errors.say(say!("agents that can join: {}", names.join(", ")));
                        keys = changed;
                    }
                }
            }
        }
        drop(bus);
        server.end().map_err(unfit)
    })
}

#[derive(Default)]
struct Known {
    registered: Option<Registered>,
    heartbeat: Option<Heartbeat>,
}

/// Lists the agents of a fleet.
///
/// # Errors
/// The bus does not respond.
pub fn agents(directory: &Path, json: bool, screen: &dyn Operator) -> Result<(), Box<Diagnostic>> {
    let keys = opened(directory)?;
    let known = runtime()?.block_on(async {
        let bus = connected(&keys).await?;
        let failed = |error: BusError| bus_failed(keys.address(), &told(&error));
        let mut known: BTreeMap<String, Known> = BTreeMap::new();
        for agent in keys.agents() {
            known.entry(agent.name.clone()).or_default();
        }
        let mut heartbeats = bus.subscribe(names::HEARTBEATS).await.map_err(failed)?;
        for key in bus.keys(names::AGENTS).await.map_err(failed)? {
            let entry = bus.read(&key).await.map_err(failed)?;
            let name = key.rsplit('.').next().unwrap_or_default().to_string();
            known.entry(name).or_default().registered = entry.and_then(|it| from_json(&it.value));
        }
        let until = Instant::now() + HEARD_TIME;
        while let Ok(Some(message)) = timeout_at(until, heartbeats.recv()).await {
            let name = message.subject.rsplit('.').next().unwrap_or_default().to_string();
            known.entry(name).or_default().heartbeat = from_json(&message.payload);
        }
        Ok::<_, Box<Diagnostic>>(known)
    })?;
    match json {
        true => screen.line(&clean_json(&as_json(&known).to_string())),
        false => known.iter().for_each(|(name, known)| screen.line(&row(name, known))),
    }
    Ok(())
}

fn as_json(known: &BTreeMap<String, Known>) -> serde_json::Value {
    let row = |(name, known): (&String, &Known)| {
        let agent = known.registered.as_ref();
        json!({
            "name": name,
            "there": known.heartbeat.is_some(),
            "stage": known.heartbeat.as_ref().map(|it| it.stage),
            "run": known.heartbeat.as_ref().and_then(|it| it.run.clone()),
            "version": agent.map(|it| it.version.clone()),
            "cores": agent.map(|it| it.cores),
            "memory_bytes": agent.map(|it| it.memory_bytes),
            "labels": agent.map(|it| it.labels.clone()),
        })
    };
    known.iter().map(row).collect()
}

fn row(name: &str, known: &Known) -> String {
    let state = match known.heartbeat.as_ref().map(|it| it.stage) {
        Some(Stage::Idle) => say!("ready for a run"),
        Some(Stage::Preparing) => say!("preparing a run"),
        Some(Stage::Ready) => say!("waiting for the start"),
        Some(Stage::Running) => say!("generating load"),
        Some(Stage::Sending) => say!("sending the last results"),
        None if known.registered.is_some() => say!("silent"),
        None => say!("never joined"),
    };
    let Some(agent) = &known.registered else { return format!("{name:<20} {}", state.spoken()) };
    let labels = agent.labels.iter().map(|(label, value)| format!(" {label}={value}"));
    let labels: String = labels.collect();
    let size = say!(
        "{} processors, {}",
        format_count(agent.cores.round() as u64),
        format_bytes(agent.memory_bytes as f64)
    );
    format!("{name:<20} {:<24} {}  throng {}{labels}", state.spoken(), size.spoken(), agent.version)
}

/// Asks the controller to end its run gracefully.
///
/// # Errors
/// No run is in progress.
pub fn stop(directory: &Path, screen: &dyn Operator) -> Result<(), Box<Diagnostic>> {
    let keys = opened(directory)?;
    runtime()?.block_on(async {
        let bus = connected(&keys).await?;
        let answer = bus.request(names::STOP, "".into(), Duration::from_secs(3)).await;
        let run = answer.map_err(|_| {
            let message = say!("no controller has a run in progress");
            let help = say!("agents end their load if no controller returns within ten minutes");
            Box::new(Diagnostic::error("fleet-unfit", message).help(help))
        })?;
        let run = String::from_utf8_lossy(&run).into_owned();
        screen.say(say!("run {run} ends: users finish their step and leave"));
        Ok(())
    })
}
