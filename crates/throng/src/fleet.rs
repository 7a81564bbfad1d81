//! `throng fleet`: the keys of a fleet, its bus, who is there. The keys themselves, and the server,
//! are those of [`throng_bus`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use throng_base::clock::wall_now;
use throng_base::units::{format_bytes, format_count};
use throng_base::{Diagnostic, Exit, Said};
use throng_bus::identity::Identity;
use throng_bus::keys::Keys;
use throng_bus::nats::{Nats, Room};
use throng_bus::server::{Program, Server, is_durable, not_durable};
use throng_bus::{Bus as _, BusError, Link};
use throng_fleet::wire::{Heartbeat, Registered, Stage, from_json, names};
use throng_run::fleet::bus::{FLEET, absolute, bus_failed, connected, opened, told, wrong_keys};
use throng_run::fleet::{Collect, Resume};
use throng_terminal::Screen;
use throng_terminal::Terminal;
use throng_terminal::signals::stop_requested;
use tokio::net::TcpStream;
use tokio::time::{Instant, interval, sleep, timeout, timeout_at};

use crate::Ended;
use crate::arguments::{CollectArguments, FleetArguments, FleetWhat, ResumeArguments};

/// Each agent sends a heartbeat within this time.
const HEARD_TIME: Duration = Duration::from_millis(2_200);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The server of a bus reads a new token's key within this time.
const ADMIT_TIME: Duration = Duration::from_secs(5);
const REACH_TIME: Duration = Duration::from_millis(300);

pub(crate) fn fleet(arguments: &FleetArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    let screen = Screen::output(arguments.no_color);
    let directory = &arguments.fleet;
    let done = match &arguments.what {
        FleetWhat::Init { address } => init(directory, address, screen),
        FleetWhat::Token { name, valid } => token(directory, (name, *valid), screen),
        FleetWhat::Serve { nats_server } => serve(directory, nats_server.as_deref(), errors),
        FleetWhat::Agents { json } => agents(directory, *json, screen),
        FleetWhat::Stop => stop(directory, screen),
    };
    match done {
        Ok(()) => Ok(Exit::Success),
        Err(diagnostic) => {
            errors.diagnostic(&diagnostic);
            Err(if diagnostic.code == "fleet-keys" { Exit::Usage } else { Exit::HostUnfit })
        }
    }
}

/// `throng resume`.
pub(crate) fn resume(arguments: &ResumeArguments) -> Ended {
    let mut settings = arguments.output.settings();
    settings.fleet.get_or_insert_with(|| FLEET.into());
    let asked = Resume { run: arguments.run.clone(), standby: arguments.standby, settings };
    Ok(throng_run::resume(&asked, &Terminal::new(&arguments.output.shown())))
}

/// `throng collect`.
pub(crate) fn collect(arguments: &CollectArguments) -> Ended {
    let asked = Collect {
        directories: arguments.directories.clone(),
        run: arguments.run.clone(),
        settings: arguments.output.settings(),
    };
    Ok(throng_run::collect(&asked, &Terminal::new(&arguments.output.shown())))
}

fn init(directory: &Path, address: &[SocketAddr], screen: Screen) -> Result<(), Box<Diagnostic>> {
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

fn token(
    directory: &Path,
    (name, valid): (&str, Duration),
    screen: Screen,
) -> Result<(), Box<Diagnostic>> {
    let mut keys = opened(directory)?;
    let token = keys.admit(name, wall_now(), valid).map_err(wrong_keys)?;
    runtime()?.block_on(known(&token.identity));
    screen.line(&token.to_string());
    Ok(())
}

/// Waits until the bus knows who has a new key; not where there is no bus yet.
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

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Box<Diagnostic>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| {
        let error = Said::of_error(&error);
        Box::new(Diagnostic::error("host-unfit", say!("cannot start an event loop: {error}")))
    })
}

/// The bus, until it is told to stop.
fn serve(directory: &Path, given: Option<&Path>, errors: Screen) -> Result<(), Box<Diagnostic>> {
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
        let stop = stop_requested();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = look.tick() => {
                    if let Some(why) = server.ended() {
                        // What it acknowledged is on its disk: it begins again there.
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

/// What is known of an agent.
#[derive(Default)]
struct Known {
    registered: Option<Registered>,
    heartbeat: Option<Heartbeat>,
}

fn agents(directory: &Path, json: bool, screen: Screen) -> Result<(), Box<Diagnostic>> {
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
        true => screen.json(&as_json(&known)),
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

/// Tells the controller that goes on to end its run in order.
fn stop(directory: &Path, screen: Screen) -> Result<(), Box<Diagnostic>> {
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
