//! `throng plan`: how many machines so many users or requests need, by what a user of this scenario
//! has cost. Nothing is sent.
//!
//! - `measured`: what a record tells. `reckon`: the arithmetic.
//! - `fleet`: how many agents that is, and how they are started.
//! - `page`: what is printed, `commands` at its end. `explain`: where a user's bytes go.
//!   `json`: the same for programs.

mod commands;
mod explain;
mod fleet;
mod json;
mod measured;
mod page;
mod reckon;

use std::net::IpAddr;
use std::path::PathBuf;

use throng_base::{Diagnostic, Exit, Said, Source};
use throng_engine::{SizeKind, Sizes, sizes, source_count};
use throng_host::Root;
use throng_host::costs::{CONNECT_CPU_NS, HANDSHAKE_CPU_NS, REQUEST_CPU_NS, TARGET_BYTES};
use throng_host::costs::{SocketPart, socket_bytes, socket_parts};
use throng_load::{Assumed, Forecast, connects};
use throng_program::{Parting, Program, Scheme};
use throng_scenario::{CompileOptions, compile};

use crate::arguments::{PlanArguments, ScenarioArguments};
use crate::doctor::{needs, share_to};
use crate::machine::{Described, Machine};
use crate::scenario;
use crate::screen::Screen;
use fleet::Agents;
use measured::Measured;
use reckon::{Cost, Peak, Reckoned, Wish, reckon};

/// What the allocator and the lists that grow by doubling add to the sizes of a user: 876 B were
/// measured where the sizes say 824.
const SLACK: f64 = 1.15;
/// What an answer is taken to need where no record says it.
const ANSWER_SECONDS: f64 = 0.1;
/// One slow answer is not to stop all of a rate.
const ASKING_MIN: f64 = 10.0;
/// How long users are given to come where nobody said how fast.
const COMING_SECONDS: f64 = 60.0;
/// A wish beyond this is a slip of the finger, and no arithmetic.
const USERS_MAX: u64 = 1_000_000_000_000;

/// What the users below are called.
const NAMES: [Said; 2] = [say!("idle WebSocket users"), say!("keep-alive HTTP users")];

/// Users who stay on a WebSocket, and users who ask again and again over HTTP.
const IDLE: &str = "name: idle\ntarget: ws://192.0.2.1\nsessions:\n  user:\n    \
                    steps:\n      - connect: /\n      - stay: forever\nload: [{users: 1, for: 1s}]\n";
const ASKING: &str = "name: asking\ntarget: http://192.0.2.1\nsessions:\n  user:\n    \
                      steps:\n      - http: GET /\nload: [{users: 1, for: 1s}]\n";

/// All that is known before it is said.
pub(super) struct Planned {
    file: Option<PathBuf>,
    set: Vec<String>,
    program: Program,
    given: Given,
    wish: Wish,
    cost: Cost,
    sizes: Sizes,
    socket: ([SocketPart; 5], bool),
    measured: Option<Measured>,
    machine: Machine,
    peak: Option<Peak>,
    /// Requests per second that a machine of the service carries.
    per_machine: Option<f64>,
    reckoned: Reckoned,
    /// Where it is to be made by agents.
    agents: Option<Agents>,
}

pub(crate) fn plan(arguments: &PlanArguments) -> Exit {
    let errors = Screen::errors(arguments.no_color);
    let screen = Screen::output(arguments.no_color);
    let planned = match planned(arguments, errors) {
        Ok(planned) => planned,
        Err(exit) => return exit,
    };
    match arguments.json {
        true => screen.json(&json::json(&planned)),
        false => {
            screen.text(&page::page(&planned, &screen.style));
            if arguments.explain {
                screen.text(&explain::explain(&planned, &screen.style));
            }
            screen.text(&match &planned.agents {
                Some(agents) => fleet::page(&planned, agents, &screen.style),
                None => commands::commands(&planned, &screen.style),
            });
        }
    }
    Exit::Success
}

fn planned(arguments: &PlanArguments, errors: Screen) -> Result<Planned, Exit> {
    let peak = arguments.pv.map(|views| Peak {
        views,
        share: arguments.share.unwrap_or(0.8),
        of_day: arguments.of_day.unwrap_or(0.2),
    });
    let rate = arguments.rate.or(peak.map(|peak| peak.rate()));
    let program = program(arguments, rate.is_some(), errors)?;
    let told = |diagnostic: Box<Diagnostic>| {
        errors.diagnostic(&diagnostic);
        Exit::Usage
    };
    let run = match &arguments.from {
        Some(directory) => Some(measured::open(directory).map_err(told)?),
        None if arguments.file.is_some() => measured::newest(&program.name),
        None => None,
    };
    let measured = run.as_ref().map(measured::measured).transpose().map_err(told)?;
    if arguments.fleet && measured.is_none() {
        let message = say!("no run shows how much load one machine can generate");
        let help = say!("run the scenario on one machine first, or name a run: `--from DIR`");
        errors.diagnostic(&Diagnostic::error("bad-plan", message).help(help));
        return Err(Exit::Usage);
    }
    let given = Given { is_scenario: arguments.file.is_some(), users: arguments.users, rate };
    let wish = wish(&program, &given, measured.as_ref());
    // Agents are not where the target is: neither do they share a machine with it, nor have they
    // all addresses of the loopback interface.
    let was_local = wish.is_local;
    let wish = Wish { is_local: wish.is_local && !arguments.fleet, ..wish };
    if wish.users > USERS_MAX {
        let message = say!("{} users are too many for a plan", wish.users);
        let help = say!("give a smaller value for --users, --rate or --pv");
        errors.diagnostic(&Diagnostic::error("bad-plan", message).help(help));
        return Err(Exit::Usage);
    }
    let sizes = sizes(&program);
    let datagrams = share_to(&program, |scheme| scheme == Scheme::Udp);
    let socket = socket_parts(&Root::default(), datagrams > 0.5);
    let cost = cost(&program, &sizes, datagrams, measured.as_ref());
    let machine = match (&run, arguments.machine) {
        (Some(run), None) if arguments.fleet => {
            let addresses = if was_local { 1 } else { machine(&program, None).addresses };
            Machine::of_record(&run.info.generator.host, addresses)
        }
        _ => machine(&program, arguments.machine),
    };
    let agents = measured.as_ref().filter(|_| arguments.fleet);
    let agents = agents.map(|measured| fleet::agents((&wish, &cost, &machine), measured));
    Ok(Planned {
        file: arguments.file.clone(),
        set: arguments.set.clone(),
        reckoned: reckon(&wish, &cost, &machine),
        program,
        given,
        wish,
        cost,
        sizes,
        socket,
        machine,
        peak,
        per_machine: arguments.per_machine,
        measured,
        agents,
    })
}

/// That of the file; else a user that everybody has.
fn program(arguments: &PlanArguments, asks: bool, errors: Screen) -> Result<Program, Exit> {
    if let Some(file) = &arguments.file {
        let scenario =
            ScenarioArguments { file: file.clone(), set: arguments.set.clone(), seed: None };
        return Ok(scenario::load(&scenario, errors)?.program);
    }
    if !asks && arguments.users.is_none() {
        let message = say!("no load is given");
        let help =
            say!("give a scenario, --users N, --rate N/s or --pv N: `throng plan --users 1M`");
        errors.diagnostic(&Diagnostic::error("bad-plan", message).help(help));
        return Err(Exit::Usage);
    }
    let [idle, asking] = NAMES;
    let (name, text) = if asks { (asking, ASKING) } else { (idle, IDLE) };
    let source = Source::new("plan.yaml", text);
    match compile(&source, &CompileOptions::of_process(Vec::new(), PathBuf::new())) {
        Ok((program, _)) => Ok(Program { name: name.english(), ..program }),
        Err(mistakes) => {
            errors.diagnostics(&mistakes);
            Err(Exit::Bug)
        }
    }
}

/// What the command line says.
struct Given {
    is_scenario: bool,
    users: Option<u64>,
    rate: Option<f64>,
}

impl Given {
    /// The load that the scenario itself has.
    fn of_scenario(&self) -> Given {
        Given { is_scenario: self.is_scenario, users: None, rate: None }
    }
}

fn wish(program: &Program, given: &Given, measured: Option<&Measured>) -> Wish {
    let needs = needs(program);
    let forecast = Forecast::new(program);
    // How long those who arrive stay only a run tells.
    let arriving = measured.filter(|_| arrives_only(program)).map_or(0, |it| it.users);
    let base = needs.users.max(arriving).max(1) as f64;
    // The estimate counts the heartbeats of those who stay.
    let counted = forecast.beats_per_user() * program.staying_max() as f64;
    let heartbeats = forecast.beats_per_user() * base;
    let estimate = forecast.course(Assumed::mean(ANSWER_SECONDS)).requests_peak();
    // Of users of nobody's scenario it is not known how often they ask.
    let asked = match given.is_scenario && estimate.is_finite() {
        true => (estimate - counted).max(0.0),
        false => 0.0,
    };
    let answer = measured.and_then(|it| it.answer_seconds).unwrap_or(ANSWER_SECONDS);
    let users = match (given.users, given.rate) {
        (Some(users), _) => users as f64,
        // Little's law: so many are on their way at once.
        (None, Some(rate)) if asked <= 0.0 => (rate * answer).ceil().max(ASKING_MIN),
        (None, Some(rate)) => (base * rate / asked).ceil(),
        (None, None) => base,
    };
    let factor = users / base;
    let heartbeats_per_s = heartbeats * factor;
    let requests = given.rate.unwrap_or(asked * factor) + heartbeats_per_s;
    let per_request = !program.connection.keep_alive && !program.sessions.iter().any(connects);
    let (reopened, closing) = match per_request {
        true => (requests, requests),
        false => {
            let churned = forecast.falling_out(&Parting::ALL);
            (churned * factor, needs.reopened_per_second * factor)
        }
    };
    Wish {
        users: users.min(u64::MAX as f64) as u64,
        connections_per_user: needs.connections_per_user,
        requests_per_s: requests,
        heartbeats_per_s,
        opened_per_s: match given.is_scenario {
            true => forecast.users_per_second(),
            false => Some(users / COMING_SECONDS),
        },
        reopened_per_s: reopened,
        closing_per_s: closing,
        vanished: (needs.vanished as f64 * factor).ceil() as u64,
        leaves_behind: needs.leaves_behind,
        endpoints: needs.routes.len().max(1) as u64,
        fullest_share: needs.fullest_share(),
        is_local: needs.is_local(),
    }
}

/// Nobody stays: users come, do their session, and go.
fn arrives_only(program: &Program) -> bool {
    program.staying_max() == 0
}

fn cost(program: &Program, sizes: &Sizes, datagrams: f64, measured: Option<&Measured>) -> Cost {
    let secure = share_to(program, Scheme::is_secure);
    let each = Forecast::new(program).connections_per_user();
    let connect = (CONNECT_CPU_NS + HANDSHAKE_CPU_NS * secure) * each;
    let tls = throng_host::costs::TLS_BYTES_USUAL as f64 * secure;
    let of = |figure: fn(&Measured) -> Option<f64>| measured.and_then(figure);
    Cost {
        user_bytes: of(|it| it.user_bytes).unwrap_or_else(|| reckoned_bytes(sizes)),
        kernel_bytes: socket_bytes(&Root::default(), datagrams) as f64,
        target_bytes: TARGET_BYTES.1 as f64 + tls,
        connect_ns: of(|it| it.connect_ns).unwrap_or(connect),
        request_ns: of(|it| it.request_ns).unwrap_or(REQUEST_CPU_NS),
        process_bytes: measured::PROCESS_BYTES as f64,
        shard_bytes: sizes.recorder.shard_typical_bytes as f64,
    }
}

/// TLS was measured as it is, so that nothing has to be added.
fn reckoned_bytes(sizes: &Sizes) -> f64 {
    let tls = sizes.parts.iter().filter(|part| part.kind == SizeKind::Tls);
    let tls = tls.map(|part| part.bytes).sum::<u64>() as f64;
    (sizes.user_bytes() as f64 - tls) * SLACK + tls
}

fn machine(program: &Program, described: Option<Described>) -> Machine {
    let routing = &program.connection.routing;
    let address = program.targets.first().and_then(|target| {
        let (host, port) = routing.next_hop(target);
        match (routing.addresses(host, port), host) {
            (Some(given), _) => given.first().copied(),
            (None, "localhost") => Some(IpAddr::from([127, 0, 0, 1])),
            (None, host) => host.parse().ok(),
        }
    });
    let named = !program.connection.sources.blocks.is_empty();
    let address = address.or(named.then_some(IpAddr::from([192, 0, 2, 1])));
    let addresses = address.and_then(|it| source_count(program, it).ok()).unwrap_or(1).max(1);
    match described {
        Some(described) => Machine::described(described, addresses),
        None => Machine::this_host(&program.connection.sources, addresses),
    }
}

impl Planned {
    /// What users do most is to ask over HTTP.
    fn asks_over_http(&self) -> bool {
        share_to(&self.program, |scheme| matches!(scheme, Scheme::Http | Scheme::Https)) > 0.5
    }

    /// Good answers per second that the service has given in the run.
    fn sustained(&self) -> Option<f64> {
        let measured = self.measured.as_ref()?;
        (measured.sustained_per_s > 0).then_some(measured.sustained_per_s as f64)
    }
}

#[cfg(test)]
mod tests;
