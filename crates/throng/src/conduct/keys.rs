//! The keys of a person who watches a run: read one by one while it goes on, from the terminal.

use std::io::{IsTerminal as _, Read as _};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::system::{
    give_terminal_back, has_taken_terminal, has_terminal, is_in_front, take_terminal,
};

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
        if !is_terminal || !is_in_front() || !take_terminal(full_screen) {
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
            return Keys { told: None, full_screen };
        }
        Keys { told: Some(told), full_screen }
    }

    /// Who was stopped and goes on finds the terminal as the shell has it: whether that was so.
    pub(super) fn keep(&self) -> bool {
        let is_lost = self.told.is_some() && is_in_front() && !has_taken_terminal();
        is_lost && take_terminal(self.full_screen)
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
        give_terminal_back();
    }
}
