//! Executes the command of an event in its own process group, without input and with a timeout.
//! Keeps the start and the end of the output. A command that writes without end is throttled. Its
//! background processes continue to run.

use std::collections::VecDeque;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use throng_base::system::{in_own_group, signal_of};
use throng_base::units::write_duration;
use throng_base::{Clock, Said};
use throng_host::{SIGKILL, SIGTERM, signal_group};
use throng_results::ActionStatus;

use super::Outcome;

/// Bytes kept from the start and from the end of the output.
const KEPT_BYTES: usize = 1024;
/// Output beyond this size is read slowly, so that it costs the generator almost nothing.
const FAST_BYTES: u64 = 1 << 20;
const SLOW_BY: Duration = Duration::from_millis(20);
/// Time to read the output that was written before the exit.
const REST: Duration = Duration::from_millis(200);
/// Time between SIGTERM and SIGKILL.
const MERCY: Duration = Duration::from_millis(500);

/// A message to the thread that waits for a command.
pub(super) enum Signal {
    /// The process exited.
    Exited(std::io::Result<ExitStatus>),
    /// One of the outputs was read to its end.
    Read,
    /// The run has ended.
    Stop,
}

/// Standard output and standard error, in the order in which they were read.
#[derive(Debug, Default)]
struct Kept {
    first: Vec<u8>,
    last: VecDeque<u8>,
    total: u64,
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(KEPT_BYTES - self.first.len()));
        self.first.extend(first);
        let rest = &rest[rest.len().saturating_sub(KEPT_BYTES)..];
        self.last.extend(rest);
        let excess = self.last.len().saturating_sub(KEPT_BYTES);
        self.last.drain(..excess);
    }

    fn text(&self) -> String {
        let last: Vec<u8> = self.last.iter().copied().collect();
        let left_out = self.total - (self.first.len() + last.len()) as u64;
        let text = match left_out {
            0 => String::from_utf8_lossy(&[self.first.as_slice(), &last].concat()).into_owned(),
            _ => format!(
                "{}\n[… {left_out} bytes …]\n{}",
                String::from_utf8_lossy(&self.first),
                String::from_utf8_lossy(&last)
            ),
        };
        text.trim_end().to_string()
    }
}

/// Shortens a complete text in the same way.
pub(super) fn kept(text: &str) -> String {
    let mut kept = Kept::default();
    kept.add(text.as_bytes());
    kept.text()
}

/// Blocks until the command has exited or was killed.
pub(super) fn execute(
    (command, timeout): (&[String], Duration),
    variables: &[(&str, &str)],
    clock: &Clock,
    (signal, heard): (Sender<Signal>, &Receiver<Signal>),
) -> Outcome {
    let Some((program, arguments)) = command.split_first() else { return Outcome::default() };
    let mut own = Command::new(program);
    own.args(arguments).envs(variables.iter().copied());
    in_own_group(&mut own).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match own.spawn() {
        Ok(child) => child,
        Err(error) => {
            let error = Said::of_error(&error);
            let detail = say!("cannot execute `{program}`: {error}");
            return Outcome { status: ActionStatus::Failed, detail, output: String::new() };
        }
    };
    let output = Arc::new(Mutex::new(Kept::default()));
    let group = child.id();
    read(child.stdout.take(), &output, &signal);
    read(child.stderr.take(), &output, &signal);
    wait_for(child, signal);
    let until = clock.now() + timeout;
    let mut unread = 2;
    let exited = loop {
        match heard.recv_timeout(until.since(clock.now())) {
            Ok(Signal::Exited(status)) => break exit(&status),
            Ok(Signal::Read) => unread -= 1,
            Ok(Signal::Stop) => {
                end(group, heard);
                break (ActionStatus::Stopped, say!("the run ended"));
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                end(group, heard);
                let timeout = write_duration(timeout);
                break (ActionStatus::TimedOut, say!("killed after {timeout}"));
            }
        }
    };
    let rest = clock.now() + REST;
    while unread > 0 {
        match heard.recv_timeout(rest.since(clock.now())) {
            Ok(Signal::Read) => unread -= 1,
            Ok(Signal::Exited(_) | Signal::Stop) => {}
            Err(_) => break,
        }
    }
    let output = output.lock().unwrap_or_else(PoisonError::into_inner).text();
    Outcome { status: exited.0, detail: exited.1, output }
}

fn exit(status: &std::io::Result<ExitStatus>) -> (ActionStatus, Said) {
    match status {
        Ok(status) if status.success() => (ActionStatus::Done, say!("exit code 0")),
        Ok(status) => {
            let detail = match (status.code(), signal_of(*status)) {
                (Some(code), _) => say!("exit code {code}"),
                (None, signal) => say!("ended by signal {}", signal.unwrap_or_default()),
            };
            (ActionStatus::Failed, detail)
        }
        Err(error) => (ActionStatus::Failed, Said::of_error(error)),
    }
}

/// Asks all processes of the group to end, and kills those that do not.
fn end(group: u32, heard: &Receiver<Signal>) {
    signal_group(group, SIGTERM);
    loop {
        match heard.recv_timeout(MERCY) {
            Ok(Signal::Exited(_)) | Err(_) => break,
            Ok(Signal::Read | Signal::Stop) => {}
        }
    }
    signal_group(group, SIGKILL);
}

fn wait_for(mut child: Child, signal: Sender<Signal>) {
    thread("event-wait", move || {
        let status = child.wait();
        let _ = signal.send(Signal::Exited(status));
    });
}

/// Reads until the last process that has the pipe open exits.
fn read(
    from: Option<impl Read + Send + 'static>,
    kept: &Arc<Mutex<Kept>>,
    signal: &Sender<Signal>,
) {
    let (kept, signal) = (Arc::clone(kept), signal.clone());
    thread("event-output", move || {
        let mut buffer = [0; 16 * 1024];
        if let Some(mut from) = from {
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.add(&buffer[..count]);
                let is_much = kept.total > FAST_BYTES;
                drop(kept);
                if is_much {
                    std::thread::park_timeout(SLOW_BY);
                }
            }
        }
        let _ = signal.send(Signal::Read);
    });
}

/// Starts a detached thread. If that fails, the command ends by its timeout.
fn thread(name: &str, work: impl FnOnce() + Send + 'static) {
    let _ = std::thread::Builder::new().name(name.into()).spawn(work);
}

/// The two ends of a command's channel.
pub(super) fn line() -> (Sender<Signal>, Receiver<Signal>) {
    channel()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_and_the_end_of_an_output_are_kept() {
        let mut kept = Kept::default();
        kept.add(b"all of it\n");
        assert_eq!(kept.text(), "all of it");
        let mut kept = Kept::default();
        (0..10_000).for_each(|number| kept.add(format!("{number:05}\n").as_bytes()));
        let text = kept.text();
        assert!(text.starts_with("00000\n00001\n"), "{text}");
        assert!(text.ends_with("09998\n09999"), "{text}");
        let told = format!("[… {} bytes …]", 60_000 - 2 * KEPT_BYTES);
        assert!(text.contains(&told), "{text}");
    }

    fn run(command: &str, timeout: Duration) -> Outcome {
        let command: Vec<String> =
            ["/bin/sh", "-c", command].iter().map(|it| (*it).to_string()).collect();
        let (signal, heard) = line();
        execute((&command, timeout), &[("THRONG_EVENT", "x")], &Clock::start(), (signal, &heard))
    }

    #[test]
    fn the_exit_status_of_a_command_is_reported() {
        let second = Duration::from_secs(20);
        let done = run("echo $THRONG_EVENT; echo y >&2", second);
        assert_eq!(
            (done.status, done.detail.english().as_str()),
            (ActionStatus::Done, "exit code 0")
        );
        let mut lines: Vec<&str> = done.output.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["x", "y"]);
        let failed = run("exit 7", second);
        assert_eq!(failed.status, ActionStatus::Failed);
        assert_eq!(failed.detail, "exit code 7");
        let killed = run("kill -9 $$", second);
        assert_eq!(killed.detail, "ended by signal 9");
        let left = run("sleep 30 & echo there", second);
        assert_eq!((left.status, left.output.as_str()), (ActionStatus::Done, "there"));
    }

    #[test]
    fn a_command_that_hangs_or_floods_is_killed_with_all_its_processes() {
        let hanging = run("trap '' TERM; sleep 60; sleep 60", Duration::from_millis(300));
        assert_eq!(hanging.status, ActionStatus::TimedOut);
        assert_eq!(hanging.detail, "killed after 300ms");
        let flooding = run("yes", Duration::from_millis(400));
        assert_eq!(flooding.status, ActionStatus::TimedOut);
        assert!(flooding.output.len() < 2 * KEPT_BYTES + 100 && flooding.output.contains("bytes"));
    }

    #[test]
    fn a_missing_command_is_reported() {
        let (signal, heard) = line();
        let command = ["/no/such/program".to_string()];
        let clock = Clock::start();
        let outcome = execute((&command, Duration::ZERO), &[], &clock, (signal, &heard));
        assert_eq!(outcome.status, ActionStatus::Failed);
        assert!(outcome.detail.english().contains("/no/such/program"));
    }
}
