//! `throng target`: runs a reference server until it is interrupted; `throng demo`: loads one
//! immediately.

use std::io;
use std::net::SocketAddr;

use clap::Parser as _;
use throng_base::{Diagnostic, Exit, Said};
use throng_target::{Options, TargetKind, start};
use throng_terminal::Screen;
use throng_terminal::signals::stop_requested;

use crate::arguments::{Arguments, Command, DemoArguments, TargetArguments};

pub(crate) fn target(arguments: &TargetArguments) -> Exit {
    let screen = Screen::output(false);
    let TargetArguments { kind, options } = arguments;
    let options = Options { told: Some(told), ..options.clone() };
    let listen = options.listen;
    // Must run before a server thread gets its own descriptor table.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return cannot(say!("cannot start an event loop: {}", Said::of_error(&error)));
        }
    };
    let running = match start(*kind, options) {
        Ok(running) => running,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            return contradicted(&Said::of_error(&error));
        }
        Err(error) => return not_started(&error, listen),
    };
    screen.say(say!("listening on {} with {} workers", running.listen, running.workers()));
    if let Some(admin) = running.admin {
        screen.say(say!("statistics on http://{admin}/throng/stats"));
    }
    runtime.block_on(stop_requested());
    let stats = running.stop();
    if let Ok(json) = serde_json::to_string(&stats) {
        screen.line(&json);
    }
    Exit::Success
}

fn told(text: &str) {
    Screen::errors(false).say(say!("target: {text}"));
}

/// Number of users of the demonstration.
const DEMO_USERS: &str = "100";
const THRESHOLD: &str = "http p99 < 50ms";

/// Loads a reference target in this process, with the response times of a service that is usually
/// fast and sometimes slow.
pub(crate) fn demo(arguments: DemoArguments) -> Exit {
    let mean = std::time::Duration::from_millis(2);
    let latency = throng_target::Latency::Exponential(mean);
    let running = match start(TargetKind::Http, Options { latency, ..Options::default() }) {
        Ok(running) => running,
        Err(error) => {
            return cannot(say!("cannot start the reference target: {}", Said::of_error(&error)));
        }
    };
    let url = format!("http://{}/", running.listen);
    let words = ["throng", "bench", &url, "-c", DEMO_USERS, "--threshold", THRESHOLD];
    let mut bench = match Arguments::parse_from(words).command {
        Command::Bench(bench) => bench,
        // The words are ours and start with `bench`.
        _ => return Exit::Bug,
    };
    bench.duration = Some(arguments.duration);
    bench.output = arguments.output;
    let screen = if bench.output.shown.json { Screen::errors(true) } else { Screen::output(true) };
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

/// The options contradict each other.
fn contradicted(fault: &Said) -> Exit {
    let diagnostic =
        Diagnostic::error("target-failed", say!("these options are not valid: {fault}"))
            .help(say!("change the options; `throng target --help` lists them"));
    Screen::errors(false).diagnostic(&diagnostic);
    Exit::Usage
}

/// The address is not available, or another requirement of the server failed.
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
