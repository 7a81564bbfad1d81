//! Who asks a process to stop: Ctrl-C, SIGTERM, a terminal that is closed, and every other signal
//! that would end it without a word. `unix` and `windows` know which there are.

#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{Signals, Stops, fail_writes_of_large_files};
#[cfg(not(unix))]
pub(crate) use windows::{Signals, Stops, fail_writes_of_large_files};

/// Ready when somebody asks the process to stop: Ctrl-C, SIGTERM, or a terminal that is closed.
pub(crate) async fn told_to_stop() {
    match Signals::new() {
        Ok(mut signals) => signals.next().await,
        Err(_) => std::future::pending().await,
    }
}
