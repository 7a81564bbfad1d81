//! `throng target`: a reference server that runs until it is told to stop.

use std::sync::Arc;

use throng_base::{Diagnostic, Exit};
use throng_target::{Kind, Options, start};

use crate::arguments::{TargetArguments, TargetKind};
use crate::screen::Screen;

pub(crate) fn target(arguments: &TargetArguments) -> Exit {
    let screen = Screen::output(false);
    let kind = match arguments.kind {
        TargetKind::Http => Kind::Http,
        TargetKind::Echo => Kind::Echo,
        TargetKind::Im => Kind::Im { broadcast_every: arguments.broadcast_every },
    };
    let told = |text: &str| Screen::errors(false).line(&format!("target: {text}"));
    let options = Options {
        listen: arguments.listen,
        admin: arguments.admin,
        workers: arguments.workers,
        connections: arguments.connections,
        latency: arguments.latency,
        errors: arguments.errors,
        resets: arguments.resets,
        close_after: arguments.close_after,
        body: arguments.body,
        seed: arguments.seed,
        told: Some(Arc::new(told)),
    };
    // Before any server thread has a descriptor table of its own.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cannot("start an event loop", &error),
    };
    let running = match start(kind, options) {
        Ok(running) => running,
        Err(error) => return cannot(&format!("listen on {}", arguments.listen), &error),
    };
    screen.line(&format!("listening on {} with {} workers", running.listen, running.workers()));
    if let Some(admin) = running.admin {
        screen.line(&format!("statistics on http://{admin}/throng/stats"));
    }
    runtime.block_on(crate::conduct::told_to_stop());
    let stats = running.stop();
    if let Ok(json) = serde_json::to_string(&stats) {
        screen.line(&json);
    }
    Exit::GoalsMet
}

fn cannot(what: &str, error: &std::io::Error) -> Exit {
    let diagnostic = Diagnostic::error("target-failed", format!("cannot {what}: {error}"))
        .help("choose another address or port with --listen, or end what uses it");
    Screen::errors(false).diagnostic(&diagnostic);
    Exit::HostUnfit
}
