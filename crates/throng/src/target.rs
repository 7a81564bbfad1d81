//! `throng target`: a reference server that runs until it is told to stop; `throng demo`: one that
//! is loaded right away.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::Parser as _;
use throng_base::{Diagnostic, Exit, Said};
use throng_target::{CapacityOptions, FaultOptions, Kind, Options, PushOptions, start};

use crate::arguments::{
    Arguments, Command, DeliveryArguments, DemoArguments, PushArguments, QueueArguments,
    TargetArguments, TargetKind,
};
use crate::screen::Screen;

pub(crate) fn target(arguments: &TargetArguments) -> Exit {
    let screen = Screen::output(false);
    let kind = match arguments.kind {
        TargetKind::Http => Kind::Http,
        TargetKind::Echo => Kind::Echo,
        TargetKind::Im => Kind::Im { broadcast_every: arguments.broadcast_every },
        TargetKind::Chat => Kind::Chat,
        TargetKind::Push => Kind::Push(push(&arguments.push)),
        TargetKind::Mqtt => Kind::Mqtt,
    };
    let told = |text: &str| Screen::errors(false).say(say!("target: {text}"));
    let deliveries = &arguments.deliveries;
    let options = Options {
        listen: arguments.listen,
        tls: arguments.tls,
        admin: arguments.admin,
        workers: arguments.workers,
        by_source: arguments.by_source,
        connections: arguments.connections,
        latency: arguments.latency,
        errors: arguments.errors,
        resets: arguments.resets,
        refuse_streams: arguments.refuse_streams,
        goaway_after: arguments.goaway_after,
        streams_max: arguments.streams,
        close_after: arguments.close_after,
        slow_accept: arguments.slow_accept,
        connections_max: arguments.connections_max,
        accept_per_s: arguments.accept_rate,
        capacity: capacity(&arguments.capacity),
        batch: deliveries.batch.unwrap_or_default(),
        faults: faults(deliveries),
        body: arguments.body,
        seed: arguments.seed,
        told: Some(Arc::new(told)),
    };
    // Before any server thread has a descriptor table of its own.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return cannot(say!("cannot start an event loop: {}", Said::of_error(&error)));
        }
    };
    let running = match start(kind, options) {
        Ok(running) => running,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            return contradicted(&Said::of_error(&error));
        }
        Err(error) => return not_started(&error, arguments.listen),
    };
    screen.say(say!("listening on {} with {} workers", running.listen, running.workers()));
    if let Some(admin) = running.admin {
        screen.say(say!("statistics on http://{admin}/throng/stats"));
    }
    runtime.block_on(crate::signals::stop_requested());
    let stats = running.stop();
    if let Ok(json) = serde_json::to_string(&stats) {
        screen.line(&json);
    }
    Exit::Success
}

fn capacity(arguments: &QueueArguments) -> CapacityOptions {
    CapacityOptions {
        service: arguments.service,
        servers: arguments.servers.map(|servers| u32::try_from(servers).unwrap_or(u32::MAX)),
        queue_max: arguments.queue_max,
        usl: arguments.usl,
        rate_limit: arguments.rate_limit,
        work_on: arguments.work_on,
        warm_up: arguments.warm_up,
        slow_spells: arguments.slow_spells,
    }
}

fn push(arguments: &PushArguments) -> PushOptions {
    PushOptions {
        redis: arguments.redis.clone(),
        redis_wait: arguments.redis_wait,
        skip_clear: arguments.skip_clear,
        redis_timeout: arguments.redis_timeout,
        idle_timeout: arguments.idle_timeout,
        push_every: arguments.push_every,
    }
}

fn faults(arguments: &DeliveryArguments) -> FaultOptions {
    FaultOptions {
        lose_every: arguments.lose_every,
        garbage_every: arguments.garbage_every,
        twice_every: arguments.twice_every,
        late_every: arguments.late_every,
        late_by: arguments.late_by,
        swap_every: arguments.swap_every,
        forget_every: arguments.forget_every,
    }
}

/// Users of the demonstration.
const DEMO_USERS: &str = "100";
const THRESHOLD: &str = "http p99 < 50ms";

/// Loads a reference target of this process, with the answers of a service that is quick and now
/// and then is not.
pub(crate) fn demo(arguments: DemoArguments) -> Exit {
    let mean = std::time::Duration::from_millis(2);
    let latency = throng_target::Latency::Exponential(mean);
    let running = match start(Kind::Http, Options { latency, ..Options::default() }) {
        Ok(running) => running,
        Err(error) => {
            return cannot(say!("cannot start the reference target: {}", Said::of_error(&error)));
        }
    };
    let url = format!("http://{}/", running.listen);
    let words = ["throng", "bench", &url, "-c", DEMO_USERS, "--threshold", THRESHOLD];
    let mut bench = match Arguments::parse_from(words).command {
        Command::Bench(bench) => bench,
        // The words are ours, and they begin with `bench`.
        _ => return Exit::Bug,
    };
    bench.duration = Some(arguments.duration);
    bench.output = arguments.output;
    let screen = if bench.output.json { Screen::errors(true) } else { Screen::output(true) };
    let seconds = arguments.duration.as_secs_f64();
    screen.line(&format!("$ throng target http --latency '{latency}' &"));
    screen.line(&format!(
        "$ throng bench {url} -c {DEMO_USERS} -d {seconds}s --threshold '{THRESHOLD}'"
    ));
    screen.say(say!(
        "(throng and its target share one process here, so CPU and memory include both)"
    ));
    screen.line("");
    let exit = crate::bench::bench(&bench).unwrap_or_else(|exit| exit);
    running.stop();
    exit
}

/// The options cannot be as they are.
fn contradicted(fault: &Said) -> Exit {
    let diagnostic =
        Diagnostic::error("target-failed", say!("these options are not valid: {fault}"))
            .help(say!("change the options; `throng target --help` lists them"));
    Screen::errors(false).diagnostic(&diagnostic);
    Exit::Usage
}

/// The address cannot be had, or something else that the server needs.
fn not_started(error: &io::Error, listen: SocketAddr) -> Exit {
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    let reason = Said::of_error(error);
    match error.kind() {
        AddrInUse | AddrNotAvailable | PermissionDenied => refused(
            say!("cannot listen on {listen}: {reason}"),
            say!("choose another address or port with --listen, or stop the program that uses it"),
        ),
        _ => cannot(say!("cannot start the reference target: {reason}")),
    }
}

fn cannot(message: Said) -> Exit {
    refused(message, say!("raise the limit named above, or lower --connections"))
}

fn refused(message: Said, help: Said) -> Exit {
    let diagnostic = Diagnostic::error("target-failed", message).help(help);
    Screen::errors(false).diagnostic(&diagnostic);
    Exit::HostUnfit
}
