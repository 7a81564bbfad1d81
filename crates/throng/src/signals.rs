//! Who asks a process to stop: Ctrl-C, SIGTERM, or a terminal that is closed.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ready when somebody asks the process to stop: Ctrl-C, SIGTERM, or a terminal that is closed.
pub(crate) async fn told_to_stop() {
    match Signals::new() {
        Ok(mut signals) => signals.next().await,
        Err(_) => std::future::pending().await,
    }
}

/// Ctrl-C, SIGTERM and SIGHUP, from the moment on in which this was made.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None where whoever started us wants it ignored (`nohup`), and once it has come: the kernel
    /// and a shell both tell of a terminal that is closed, which is one request to stop.
    hang_up: Option<Signal>,
}

impl Signals {
    pub(crate) fn new() -> std::io::Result<Signals> {
        let hang_up = match crate::ignores_hang_up() {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Signals { interrupt, terminate: signal(SignalKind::terminate())?, hang_up })
    }

    pub(crate) async fn next(&mut self) {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        let hung_up = tokio::select! {
            _ = self.interrupt.recv() => false,
            _ = self.terminate.recv() => false,
            () = hang_up => true,
        };
        if hung_up {
            self.hang_up = None;
        }
    }
}
