//! Computes what a scenario needs before anything is sent: pure functions of a program, a host and
//! the record of an earlier run. Independent of the terminal and the command line.
//!
//! - [`plan`]: how many machines a load needs. `measured`: the cost of a user, from a record.
//!   [`reckon`]: the arithmetic. [`agents`]: the same for a fleet. [`machine`]: the resources of
//!   one machine.
//! - [`needs`]: what a scenario requires of a host. [`preflight`]: whether this host meets it.
//! - [`check`]: what a scenario will do. [`report`]: a plan as it is printed. [`mod@doctor`]: what
//!   is missing on a host, as it is printed.
//! - [`budget`]: limits on users, starts per second and time, whatever the scenario requests.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

pub mod agents;
pub mod budget;
pub mod check;
pub mod doctor;
pub mod machine;
mod measured;
pub mod needs;
mod preflight;
pub mod reckon;
pub mod report;

use std::net::IpAddr;
use std::path::PathBuf;

use throng_base::{Diagnostic, Said, Source};
use throng_engine::{SizeKind, Sizes, sizes, source_count};
use throng_host::Root;
use throng_host::costs::{CONNECT_CPU_NS, HANDSHAKE_CPU_NS, REQUEST_CPU_NS, TARGET_BYTES};
use throng_host::costs::{SocketPart, socket_bytes, socket_parts};
use throng_load::{Assumed, Forecast, connects};
use throng_program::{CloseMode, Program, Scheme};
use throng_results::Run;
use throng_scenario::{CompileOptions, compile};

use agents::Agents;
use machine::{Described, Machine};
pub use measured::{Measured, USERS_MIN};
use needs::{needs, share_to};
pub use preflight::preflight;
use reckon::{Cost, Peak, Reckoned, Wish, reckon};

/// Overhead of the allocator and of growing lists on the sizes of a user: measured are 876 B, where
/// the sizes add up to 824 B.
const SLACK: f64 = 1.15;
/// The assumed response time if there is no record.
const ANSWER_SECONDS: f64 = 0.1;
/// Minimum number of concurrent users of a rate: one slow response must not stop it.
const ASKING_MIN: f64 = 10.0;
/// The time in which all users start, if neither the scenario nor a flag sets it.
const COMING_SECONDS: f64 = 60.0;
/// More users than this are a typing error.
const USERS_MAX: u64 = 1_000_000_000_000;

/// The names of [`users_without_scenario`]: users that stay, and users that send requests.
pub const NAMES: [Said; 2] = [say!("idle WebSocket users"), say!("keep-alive HTTP users")];

/// Users that stay on a WebSocket, and users that repeat an HTTP request.
const IDLE: &str = "name: idle\ntarget: ws://192.0.2.1\nsessions:\n  user:\n    \
                    steps:\n      - connect: /\n      - stay: forever\nload: [{users: 1, for: 1s}]\n";
const ASKING: &str = "name: asking\ntarget: http://192.0.2.1\nsessions:\n  user:\n    \
                      steps:\n      - http: GET /\nload: [{users: 1, for: 1s}]\n";

/// The input of a plan.
pub struct Asked {
    pub program: Program,
    /// The program comes from a scenario file, not from [`users_without_scenario`].
    pub is_scenario: bool,
    /// Concurrent users; by default those of the scenario.
    pub users: Option<u64>,
    /// Requests per second.
    pub rate: Option<f64>,
    /// The page views of a day from which the rate was computed.
    pub peak: Option<Peak>,
    /// A run that shows the cost of a user.
    pub run: Option<Run>,
    /// By default, this host.
    pub machine: Option<Described>,
    /// The agents of a fleet generate the load, each on a machine like that of the run.
    pub by_fleet: bool,
}

/// See the crate's description.
pub struct Plan {
    pub program: Program,
    pub given: Given,
    pub wish: Wish,
    pub cost: Cost,
    /// Sizes of a user and its parts, in this build.
    pub sizes: Sizes,
    /// Kernel memory for one end of a connection, and whether this kernel reported it.
    pub socket: ([SocketPart; 5], bool),
    pub measured: Option<Measured>,
    pub machine: Machine,
    pub peak: Option<Peak>,
    pub reckoned: Reckoned,
    pub agents: Option<Agents>,
}

fn bad(message: Said, help: Said) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("bad-plan", message).help(help))
}

/// Computes how many machines the load needs. Sends nothing, but may resolve target names.
///
/// # Errors
/// The record of the run cannot be read, a fleet is requested without a run, or the number of users
/// is not plausible.
pub fn plan(asked: Asked) -> Result<Plan, Box<Diagnostic>> {
    let Asked { program, is_scenario, users, rate, peak, run, machine: described, by_fleet } =
        asked;
    let measured = run.as_ref().map(measured::measured).transpose()?;
    if by_fleet && measured.is_none() {
        return Err(bad(
            say!("no run shows how much load one machine can generate"),
            say!("run the scenario on one machine first, or name a run: `--from DIR`"),
        ));
    }
    let given = Given { is_scenario, users, rate };
    let wish = wish(&program, &given, measured.as_ref());
    // Agents are not on the target's machine: they neither share its processors nor have all
    // addresses of its loopback interface.
    let was_local = wish.is_local;
    let wish = Wish { is_local: wish.is_local && !by_fleet, ..wish };
    if wish.users > USERS_MAX {
        return Err(bad(
            say!("{} users are too many for a plan", wish.users),
            say!("give a smaller value for --users, --rate or --pv"),
        ));
    }
    let sizes = sizes(&program);
    let datagrams = share_to(&program, |scheme| scheme == Scheme::Udp);
    let socket = socket_parts(&Root::default(), datagrams > 0.5);
    let cost = cost(&program, &sizes, datagrams, measured.as_ref());
    let machine = match (&run, described) {
        (Some(run), None) if by_fleet => {
            let addresses = if was_local { 1 } else { machine(&program, None).addresses };
            Machine::of_record(&run.info.generator.host, addresses)
        }
        _ => machine(&program, described),
    };
    let agents = measured.as_ref().filter(|_| by_fleet);
    let agents = agents.map(|measured| agents::agents((&wish, &cost, &machine), measured));
    let reckoned = reckon(&wish, &cost, &machine);
    Ok(Plan {
        program,
        given,
        wish,
        cost,
        sizes,
        socket,
        measured,
        machine,
        peak,
        reckoned,
        agents,
    })
}

/// A program whose users repeat an HTTP request, or stay on a WebSocket.
///
/// # Errors
/// The built-in scenario does not compile, which is a defect of throng.
pub fn users_without_scenario(send_requests: bool) -> Result<Program, Vec<Diagnostic>> {
    let [idle, asking] = NAMES;
    let (name, text) = if send_requests { (asking, ASKING) } else { (idle, IDLE) };
    let source = Source::new("plan.yaml", text);
    let options = CompileOptions::of_process(Vec::new(), PathBuf::new());
    let (program, _) = compile(&source, &options)?;
    Ok(Program { name: name.english(), ..program })
}

/// The newest finished run of a scenario in `throng-runs`.
pub fn newest(name: &str) -> Option<Run> {
    Run::newest(|run| run.info.name == name && run.info.time.ended.is_some())
}

/// The load as the user set it.
pub struct Given {
    is_scenario: bool,
    users: Option<u64>,
    rate: Option<f64>,
}

impl Given {
    /// The load of the scenario itself.
    pub fn of_scenario(&self) -> Given {
        Given { is_scenario: self.is_scenario, users: None, rate: None }
    }
}

/// The load in figures.
pub fn wish(program: &Program, given: &Given, measured: Option<&Measured>) -> Wish {
    let needs = needs(program);
    let forecast = Forecast::new(program);
    // Only a run shows how long arriving users stay.
    let arriving = measured.filter(|_| arrives_only(program)).map_or(0, |it| it.users);
    let base = needs.users.max(arriving).max(1) as f64;
    // The estimate includes heartbeats of users that stay.
    let counted = forecast.beats_per_user() * program.staying_max() as f64;
    let heartbeats = forecast.beats_per_user() * base;
    let estimate = forecast.course(Assumed::mean(ANSWER_SECONDS)).requests_peak();
    // Without a scenario, the request rate of a user is not known.
    let asked = match given.is_scenario && estimate.is_finite() {
        true => (estimate - counted).max(0.0),
        false => 0.0,
    };
    let answer = measured.and_then(|it| it.answer_seconds).unwrap_or(ANSWER_SECONDS);
    let users = match (given.users, given.rate) {
        (Some(users), _) => users as f64,
        // Little's law gives the number of concurrent requests.
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
            let churned = forecast.falling_out(&CloseMode::ALL);
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

/// No user stays: users start, run their session, and stop.
pub fn arrives_only(program: &Program) -> bool {
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

/// Memory of a user by the sizes of its parts. That of TLS is measured and includes overhead.
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

impl Plan {
    /// Users mostly send HTTP requests.
    pub fn asks_over_http(&self) -> bool {
        share_to(&self.program, |scheme| matches!(scheme, Scheme::Http | Scheme::Https)) > 0.5
    }

    /// Successful responses per second of the service in the run.
    pub fn sustained(&self) -> Option<f64> {
        let measured = self.measured.as_ref()?;
        (measured.sustained_per_s > 0).then_some(measured.sustained_per_s as f64)
    }
}

#[cfg(test)]
mod tests;
