//! The functions of `unix.rs` on Windows, where Ctrl-C is the only request to stop.

use tokio::signal::windows::{CtrlC, ctrl_c};

pub(crate) struct Signals(CtrlC);

impl Signals {
    pub(crate) fn new() -> std::io::Result<Signals> {
        ctrl_c().map(Signals)
    }

    pub(crate) async fn next(&mut self) {
        match self.0.recv().await {
            Some(()) => {}
            None => std::future::pending().await,
        }
    }
}

/// Windows does not stop and continue processes.
pub(crate) struct Stops;

impl Stops {
    pub(crate) fn new(_: bool) -> Stops {
        Stops
    }

    pub(crate) async fn next(&mut self) {
        std::future::pending().await
    }

    pub(crate) fn stop(&self) {}
}

pub(crate) fn fail_writes_of_large_files() {}
