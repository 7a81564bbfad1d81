//! The functions of `unix.rs` on Windows, where Ctrl-C is the only request to stop.

use tokio::signal::windows::{CtrlC, ctrl_c};

pub struct Signals(CtrlC);

impl Signals {
    pub fn new() -> std::io::Result<Signals> {
        ctrl_c().map(Signals)
    }

    pub async fn next(&mut self) {
        match self.0.recv().await {
            Some(()) => {}
            None => std::future::pending().await,
        }
    }
}

/// Windows does not stop and continue processes.
pub struct Stops;

impl Stops {
    pub fn new(_: bool) -> Stops {
        Stops
    }

    pub async fn next(&mut self) {
        std::future::pending().await
    }

    pub fn stop(&self) {}
}

pub fn fail_writes_of_large_files() {}
