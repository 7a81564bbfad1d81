//! The keys of a person who watches a run: read one by one while it goes on, from the terminal.

use std::io::{IsTerminal as _, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// As the terminal was, while it is otherwise: whoever ends this process puts it back.
static BEFORE: Mutex<Option<libc::termios>> = Mutex::new(None);

/// While it is there, keys are told at once and not shown; signals of keys stay what they are.
pub(super) struct Keys {
    told: Option<UnboundedReceiver<u8>>,
}

impl Keys {
    /// None are read where nobody sees what comes of them, or of a process in the background.
    pub(super) fn read(is_watched: bool) -> Keys {
        let is_terminal = is_watched && std::io::stdin().is_terminal();
        if !is_terminal || !is_in_front() || !take() {
            return Keys { told: None };
        }
        let (sender, told) = unbounded_channel();
        let spawned = std::thread::Builder::new().name("keys".into()).spawn(move || {
            let mut key = [0];
            while let Ok(1) = std::io::stdin().lock().read(&mut key) {
                if sender.send(key[0]).is_err() {
                    return;
                }
            }
        });
        if spawned.is_err() {
            restore();
            return Keys { told: None };
        }
        Keys { told: Some(told) }
    }

    /// Who was stopped and goes on finds the terminal as the shell has it.
    pub(super) fn keep(&self) {
        if self.told.is_some() && is_in_front() && !is_taken() {
            take();
        }
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

/// Whether the terminal is ours to read: a read from the background would stop the process.
fn is_in_front() -> bool {
    // SAFETY: both only tell numbers.
    unsafe { libc::tcgetpgrp(std::io::stdin().as_raw_fd()) == libc::getpgrp() }
}

fn is_taken() -> bool {
    let mut now = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: `now` is written by the call, and read only when it has done so.
    unsafe {
        libc::tcgetattr(std::io::stdin().as_raw_fd(), now.as_mut_ptr()) != 0
            || now.assume_init().c_lflag & libc::ICANON == 0
    }
}

fn take() -> bool {
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
