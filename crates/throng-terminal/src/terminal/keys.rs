//! Keys that are pressed during a run, read one by one from the terminal.

use std::io::{IsTerminal as _, Read as _};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::system::{
    give_terminal_back, has_taken_terminal, has_terminal, is_in_front, take_terminal,
};

/// How often a process in the background checks whether it has the terminal again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// As long as it exists, keys are delivered one by one without echo. Ctrl-C still sends its signal.
pub(super) struct Keys {
    is_read: bool,
    full_screen: bool,
}

impl Keys {
    /// Reads no keys if no output shows their effect, or if the process is in the background. With
    /// a full screen, no key suspends the process, because the screen would stay on the terminal.
    pub(super) fn read(
        is_watched: bool,
        full_screen: bool,
    ) -> (Keys, Option<UnboundedReceiver<u8>>) {
        let is_terminal = is_watched && std::io::stdin().is_terminal();
        if !is_terminal || !is_in_front() || !take_terminal(full_screen) {
            return (Keys { is_read: false, full_screen }, None);
        }
        let (sender, pressed) = unbounded_channel();
        let spawned = std::thread::Builder::new().name("keys".into()).spawn(move || {
            let mut key = [0];
            loop {
                let read = std::io::stdin().lock().read(&mut key);
                let goes_on = match read {
                    Ok(1) => sender.send(key[0]).is_ok(),
                    // After `bg`, the shell reads the keys until `fg`.
                    Err(error) if error.raw_os_error() == Some(libc::EIO) => {
                        std::thread::park_timeout(LOOK_AGAIN);
                        has_terminal()
                    }
                    _ => false,
                };
                if !goes_on {
                    return;
                }
            }
        });
        if spawned.is_err() {
            give_terminal_back();
            return (Keys { is_read: false, full_screen }, None);
        }
        (Keys { is_read: true, full_screen }, Some(pressed))
    }

    /// Sets the terminal again after the process was stopped and continued: the shell has changed
    /// it. True if it had.
    pub(super) fn keep(&self) -> bool {
        let is_lost = self.is_read && is_in_front() && !has_taken_terminal();
        is_lost && take_terminal(self.full_screen)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        give_terminal_back();
    }
}
