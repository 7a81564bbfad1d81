//! Signals of Unix. `windows.rs` has the same functions.

use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that count as one request to stop, however often they are sent. If a terminal is closed,
/// both the kernel and the shell send SIGHUP; after the time of `ulimit -t`, the kernel sends
/// SIGXCPU every second.
const ONCE: [libc::c_int; 6] =
    [libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM, libc::SIGVTALRM, libc::SIGXCPU];

/// Ctrl-C, SIGTERM and the others, if sent after this was created.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Without ignored signals (`nohup`), and without those already received.
    once: Vec<Signal>,
}

impl Signals {
    pub fn new() -> std::io::Result<Signals> {
        let handled = ONCE.into_iter().filter(|number| !ignores(*number));
        let once = handled.map(|number| signal(SignalKind::from_raw(number)));
        let once = once.collect::<std::io::Result<Vec<Signal>>>()?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Signals { interrupt, terminate: signal(SignalKind::terminate())?, once })
    }

    pub async fn next(&mut self) {
        let once = &mut self.once;
        let first = std::future::poll_fn(|cx| {
            let received = once.iter_mut().position(|signal| signal.poll_recv(cx).is_ready());
            received.map_or(Poll::Pending, Poll::Ready)
        });
        let received = tokio::select! {
            _ = self.interrupt.recv() => None,
            _ = self.terminate.recv() => None,
            received = first => Some(received),
        };
        if let Some(received) = received {
            drop(self.once.remove(received));
        }
    }
}

/// Whether this process was started with a signal ignored, as by `nohup`.
fn ignores(signal: libc::c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with a null action, the call changes nothing. It writes the current action to
    // `action`, which is read only if the call succeeded.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// SIGTSTP while a full screen is shown: no key sends it, but `kill -TSTP` does. Without a full
/// screen, its default action stops the process.
pub struct Stops(Option<Signal>);

impl Stops {
    pub fn new(full_screen: bool) -> Stops {
        let signal = full_screen.then(|| signal(SignalKind::from_raw(libc::SIGTSTP)).ok());
        Stops(signal.flatten())
    }

    pub async fn next(&mut self) {
        match &mut self.0 {
            Some(signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    }

    /// Stops all threads of this process; returns after SIGCONT.
    pub fn stop(&self) {
        // SAFETY: the call takes a number; the signal has no handler.
        unsafe { libc::raise(libc::SIGSTOP) };
    }
}

impl Drop for Stops {
    fn drop(&mut self) {
        if self.0.is_some() {
            // SAFETY: the call restores the default action; it installs no handler.
            unsafe { libc::signal(libc::SIGTSTP, libc::SIG_DFL) };
        }
    }
}

/// With this, a write beyond the limit of `ulimit -f` fails with an error, as on a full disk.
/// Otherwise a signal ends the process in the middle of a run.
pub fn fail_writes_of_large_files() {
    // SAFETY: the call replaces the action of one signal; no handler of ours is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
