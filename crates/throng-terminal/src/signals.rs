//! Requests to stop the process: Ctrl-C, SIGTERM, a closed terminal, and every other signal that
//! would end it before it can report. `unix` and `windows` list the signals.

use throng_run::StopRequests;
use tokio::sync::mpsc::unbounded_channel;

#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod windows;

#[cfg(unix)]
pub use unix::{Signals, Stops, fail_writes_of_large_files};
#[cfg(not(unix))]
pub use windows::{Signals, Stops, fail_writes_of_large_files};

/// Requests to stop a run; called inside a runtime.
///
/// # Errors The system does not deliver signals.
pub fn stop_requests() -> std::io::Result<StopRequests> {
    let mut signals = Signals::new()?;
    let (tell, requests) = unbounded_channel();
    tokio::spawn(async move {
        loop {
            signals.next().await;
            if tell.send(()).is_err() {
                return;
            }
        }
    });
    Ok(StopRequests::new(requests))
}

/// Waits for a request to stop: Ctrl-C, SIGTERM, or a closed terminal.
pub async fn stop_requested() {
    match Signals::new() {
        Ok(mut signals) => signals.next().await,
        Err(_) => std::future::pending().await,
    }
}
