//! Signals of Unix. `windows.rs` has the same functions.

use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

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
        let heard = ONCE.into_iter().filter(|number| !ignores(*number));
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

/// Whether whoever started this process wants a signal ignored: `nohup` does.
fn ignores(signal: libc::c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: nothing is changed where the new action is null; the present one is written to
    // `action`, which is read only when the call has done so.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// SIGTSTP while a full screen is shown: no key sends it, but `kill -TSTP` does. Elsewhere it stops
/// the process without a word of ours.
pub(crate) struct Stops(Option<Signal>);

impl Stops {
    pub(crate) fn heard(full_screen: bool) -> Stops {
        let told = full_screen.then(|| signal(SignalKind::from_raw(libc::SIGTSTP)).ok());
        Stops(told.flatten())
    }

    pub(crate) async fn next(&mut self) {
        match &mut self.0 {
            Some(told) => drop(told.recv().await),
            None => std::future::pending().await,
        }
    }

    /// Stops this process, all threads of it: returns when it goes on.
    pub(crate) fn stop(&self) {
        // SAFETY: the call takes a number; the signal has no handler.
        unsafe { libc::raise(libc::SIGSTOP) };
    }
}

impl Drop for Stops {
    fn drop(&mut self) {
        if self.0.is_some() {
            // SAFETY: the action of a signal is what it is by default.
            unsafe { libc::signal(libc::SIGTSTP, libc::SIG_DFL) };
        }
    }
}

/// A file may not grow beyond `ulimit -f`: the write that would make it fails with an error, as on
/// a full disk, in place of a signal that ends the process in the middle of a run.
pub(crate) fn fail_writes_of_large_files() {
    // SAFETY: the call replaces the action of one signal; no handler of ours is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
