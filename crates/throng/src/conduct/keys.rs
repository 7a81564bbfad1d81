//! The keys of a person who watches a run: read one by one while it goes on, from the terminal.

use std::io::{IsTerminal as _, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// As the terminal was, while it is otherwise: whoever ends this process puts it back.
static BEFORE: Mutex<Option<libc::termios>> = Mutex::new(None);

/// From the background, so often is looked whether the terminal is ours again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// While it is there, keys are told at once and not shown; signals of keys stay what they are.
pub(super) struct Keys {
    told: Option<UnboundedReceiver<u8>>,
    full_screen: bool,
}

impl Keys {
    /// None are read where nobody sees what comes of them, or of a process in the background.
    /// Where they are for a full screen, none of them puts this process into the background: its
    /// screen would stay behind.
    pub(super) fn read(is_watched: bool, full_screen: bool) -> Keys {
        let is_terminal = is_watched && std::io::stdin().is_terminal();
        if !is_terminal || !is_in_front() || !take(full_screen) {
            return Keys { told: None, full_screen };
        }
        let (sender, told) = unbounded_channel();
        let spawned = std::thread::Builder::new().name("keys".into()).spawn(move || {
            let mut key = [0];
            loop {
                let read = std::io::stdin().lock().read(&mut key);
                let goes_on = match read {
                    Ok(1) => sender.send(key[0]).is_ok(),
                    // `bg`: they are the shell's, until `fg` says that they are ours again.
                    Err(error) if error.raw_os_error() == Some(libc::EIO) => waits_behind(),
                    _ => false,
                };
                if !goes_on {
                    return;
                }
            }
        });
        if spawned.is_err() {
            restore();
            return Keys { told: None, full_screen };
        }
        Keys { told: Some(told), full_screen }
    }

    /// Who was stopped and goes on finds the terminal as the shell has it: whether that was so.
    pub(super) fn keep(&self) -> bool {
        let is_lost = self.told.is_some() && is_in_front() && !is_taken();
        is_lost && take(self.full_screen)
    }

    /// The next key; never where none are read.
    pub(super) async fn next(&mut self) -> Option<u8> {
        match &mut self.told {
            // There are no more where the terminal is gone.
            Some(told) => match told.recv().await {
                Some(key) => Some(key),
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        restore();
    }
}

/// SIGTSTP while a full screen is shown: no key sends it, but `kill -TSTP` does. Elsewhere it stops
/// the process without a word of ours.
pub(super) struct Stops(Option<Signal>);

impl Stops {
    pub(super) fn heard(full_screen: bool) -> Stops {
        let told = full_screen.then(|| signal(SignalKind::from_raw(libc::SIGTSTP)).ok());
        Stops(told.flatten())
    }

    pub(super) async fn next(&mut self) {
        match &mut self.0 {
            Some(told) => drop(told.recv().await),
            None => std::future::pending().await,
        }
    }

    /// Stops this process, all threads of it: returns when it goes on.
    pub(super) fn stop(&self) {
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

/// Whether the terminal is ours to read: a read from the background would stop the process.
pub(super) fn is_in_front() -> bool {
    // SAFETY: both only tell numbers.
    unsafe { libc::tcgetpgrp(std::io::stdin().as_raw_fd()) == libc::getpgrp() }
}

/// Waits a moment; whether the terminal is there still, so that it may be ours once more.
fn waits_behind() -> bool {
    std::thread::park_timeout(LOOK_AGAIN);
    // SAFETY: the call only tells a number.
    unsafe { libc::tcgetpgrp(std::io::stdin().as_raw_fd()) != -1 }
}

fn is_taken() -> bool {
    let mut now = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: `now` is written by the call, and read only when it has done so.
    unsafe {
        libc::tcgetattr(std::io::stdin().as_raw_fd(), now.as_mut_ptr()) != 0
            || now.assume_init().c_lflag & libc::ICANON == 0
    }
}

fn take(full_screen: bool) -> bool {
    let terminal = std::io::stdin().as_raw_fd();
    let mut before = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: `before` is written by the call, and read only when it has done so.
    let before = unsafe {
        if libc::tcgetattr(terminal, before.as_mut_ptr()) != 0 {
            return false;
        }
        before.assume_init()
    };
    let mut raw = before;
    raw.c_lflag &= !(libc::ICANON | libc::ECHO);
    raw.c_cc[libc::VMIN] = 1;
    raw.c_cc[libc::VTIME] = 0;
    if full_screen {
        raw.c_cc[libc::VSUSP] = libc::_POSIX_VDISABLE;
    }
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(before);
    // SAFETY: a run that goes on in the background ends to hear keys, and is not stopped by it.
    unsafe {
        libc::signal(libc::SIGTTIN, libc::SIG_IGN);
        libc::signal(libc::SIGTTOU, libc::SIG_IGN);
    }
    // SAFETY: `raw` is whole; the terminal is only told.
    unsafe { libc::tcsetattr(terminal, libc::TCSANOW, &raw const raw) == 0 }
}

/// The terminal is as it was; also after a panic.
pub(crate) fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        // SAFETY: as in `take`.
        unsafe { libc::tcsetattr(std::io::stdin().as_raw_fd(), libc::TCSANOW, &raw const before) };
    }
}
