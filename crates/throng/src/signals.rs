//! Who asks a process to stop: Ctrl-C, SIGTERM, a terminal that is closed, and every other signal
//! that would end it without a word.

use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ready when somebody asks the process to stop: Ctrl-C, SIGTERM, or a terminal that is closed.
pub(crate) async fn told_to_stop() {
    match Signals::new() {
        Ok(mut signals) => signals.next().await,
        Err(_) => std::future::pending().await,
    }
}

/// Signals of which each is one request to stop, however often it comes: the kernel and a shell
/// both tell of a terminal that is closed, and the time of `ulimit -t` is told of every second.
const ONCE: [libc::c_int; 6] =
    [libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM, libc::SIGVTALRM, libc::SIGXCPU];

/// Ctrl-C, SIGTERM and the others, from the moment on in which this was made.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Without those that whoever started us wants ignored (`nohup`), and those that have come.
    once: Vec<Signal>,
}

impl Signals {
    pub(crate) fn new() -> std::io::Result<Signals> {
        let heard = ONCE.into_iter().filter(|number| !crate::ignores(*number));
        let once = heard.map(|number| signal(SignalKind::from_raw(number)));
        let once = once.collect::<std::io::Result<Vec<Signal>>>()?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Signals { interrupt, terminate: signal(SignalKind::terminate())?, once })
    }

    pub(crate) async fn next(&mut self) {
        let once = &mut self.once;
        let first = std::future::poll_fn(|cx| {
            let came = once.iter_mut().position(|signal| signal.poll_recv(cx).is_ready());
            came.map_or(Poll::Pending, Poll::Ready)
        });
        let came = tokio::select! {
            _ = self.interrupt.recv() => None,
            _ = self.terminate.recv() => None,
            came = first => Some(came),
        };
        if let Some(came) = came {
            drop(self.once.remove(came));
        }
    }
}
