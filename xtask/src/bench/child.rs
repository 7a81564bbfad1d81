//! Programs that a bench starts: optionally pinned to a core, limited in time, measured when they
//! end, and killed by process ID however the bench ends.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use throng_base::{Clock, Time};

/// The maximum number of concurrent children.
const CHILDREN_MAX: usize = 48;

/// A free slot, and one that is taken by a child without an ID so far.
const FREE: i32 = 0;
const TAKEN: i32 = -1;

/// The process IDs of running children, for the signal handler.
static LIVING: [AtomicI32; CHILDREN_MAX] = [const { AtomicI32::new(FREE) }; CHILDREN_MAX];

/// A started program. It is killed on drop.
pub(super) struct Running {
    pid: i32,
    seat: usize,
    output: PathBuf,
    errors: PathBuf,
    ended: Receiver<(ExitStatus, Duration)>,
}

/// The output and the cost of a program that ended.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// User and system time of all its threads.
    pub(super) cpu: Duration,
    pub(super) output: String,
    pub(super) errors: String,
}

/// Makes Ctrl-C and SIGTERM end the children, too.
pub(super) fn end_children_on_signals() {
    let handler = end_all as extern "C" fn(i32);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only loads atomics and calls kill and _exit, all of which are
        // allowed in a signal handler.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

extern "C" fn end_all(signal: i32) {
    for seat in &LIVING {
        let pid = seat.load(Ordering::SeqCst);
        if pid > 0 {
            // SAFETY: the slot is emptied before its process is reaped, so the ID is ours, and so
            // is the group that it leads.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
        }
    }
    // SAFETY: _exit never returns and may be called anywhere.
    unsafe { libc::_exit(128 + signal) }
}

/// Starts `command` on `core`, or on all of them; what it prints goes to files named `name` in
/// `folder`.
pub(super) fn start(
    mut command: Command,
    core: impl Into<Option<usize>>,
    folder: &Path,
    name: &str,
) -> Result<Running, String> {
    let said = command.get_program().to_string_lossy().into_owned();
    let told = |error: std::io::Error| format!("{said}: {error}");
    let (output, errors) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.err")));
    command.stdin(std::process::Stdio::null());
    command.stdout(File::create(&output).map_err(told)?);
    command.stderr(File::create(&errors).map_err(told)?);
    // Its own group: the terminal's Ctrl-C goes to the bench, which ends it.
    command.process_group(0);
    let core = core.into();
    // SAFETY: between fork and exec only system calls are made, on memory of the child's own.
    unsafe { command.pre_exec(move || pin_and_tie(core)) };
    let seat = take_seat().ok_or_else(|| format!("{said}: more than {CHILDREN_MAX} at once"))?;
    let child = command.spawn().map_err(|error| {
        LIVING[seat].store(FREE, Ordering::SeqCst);
        told(error)
    })?;
    let pid = i32::try_from(child.id()).map_err(|error| format!("{said}: {error}"))?;
    LIVING[seat].store(pid, Ordering::SeqCst);
    let (sender, ended) = channel();
    thread::spawn(move || sender.send(reap(pid, seat)));
    Ok(Running { pid, seat, output, errors, ended })
}

fn take_seat() -> Option<usize> {
    LIVING.iter().position(|seat| {
        seat.compare_exchange(FREE, TAKEN, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    })
}

/// In the child: ends it with its parent, and pins it to the core if there is one.
fn pin_and_tie(core: Option<usize>) -> std::io::Result<()> {
    // SAFETY: prctl takes numbers only here.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let Some(core) = core else { return Ok(()) };
    // SAFETY: a zeroed cpu_set_t is an empty set, and the core is below its size.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core % libc::CPU_SETSIZE as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Waits for the end, frees the seat while the id is still taken, then reaps and measures.
fn reap(pid: i32, seat: usize) -> (ExitStatus, Duration) {
    // SAFETY: both structures are plain numbers, for which zeroes are valid, and they outlive
    // the calls; the child is ours and nobody else waits for it.
    let (status, usage) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let mut usage: libc::rusage = std::mem::zeroed();
        let mut status = 0;
        let options = libc::WEXITED | libc::WNOWAIT;
        while libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, options) == -1
            && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
        {}
        LIVING[seat].store(FREE, Ordering::SeqCst);
        libc::wait4(pid, &mut status, 0, &mut usage);
        (status, usage)
    };
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec.unsigned_abs())
            + Duration::from_micros(value.tv_usec.unsigned_abs())
    };
    (ExitStatus::from_raw(status), time(usage.ru_utime) + time(usage.ru_stime))
}

impl Running {
    /// Waits for the end; past `limit` the program is killed and that is an error.
    pub(super) fn wait(self, limit: Duration) -> Result<Ended, String> {
        self.watch(limit, limit, |_| ())
    }

    /// Waits for the end and calls `look` with its process id at the start of every `tick`; past
    /// `limit` the program is killed and that is an error.
    pub(super) fn watch(
        self,
        tick: Duration,
        limit: Duration,
        mut look: impl FnMut(i32),
    ) -> Result<Ended, String> {
        let clock = Clock::start();
        let (status, cpu) = loop {
            look(self.pid);
            let passed = clock.now() - Time::ZERO;
            // If a reading took long, ticks are skipped.
            let in_tick = passed.as_nanos() % tick.as_nanos().max(1);
            let next = tick.saturating_sub(Duration::from_nanos(in_tick as u64));
            let next = next.min(limit.saturating_sub(passed));
            match self.ended.recv_timeout(next) {
                Ok(ended) => break ended,
                Err(RecvTimeoutError::Timeout) if clock.now() - Time::ZERO < limit => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!(
                        "was not done after {:.0} s and was killed",
                        limit.as_secs_f64()
                    ));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("nobody waited for it".to_string());
                }
            }
        };
        let read =
            |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let output = read(&self.output).unwrap_or_default();
        let errors = read(&self.errors).unwrap_or_default();
        Ok(Ended { status, cpu, output, errors })
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets the program run for `time`; an error if it ends sooner.
    pub(super) fn stay(&self, time: Duration) -> Result<(), String> {
        match self.ended.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            _ => Err(format!("ended too soon: {}", self.errors().trim())),
        }
    }

    /// Its error output so far.
    pub(super) fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }

    /// Its resident memory now, in bytes.
    pub(super) fn resident_bytes(&self) -> Result<u64, String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))
            .map_err(|error| format!("its memory cannot be read: {error}"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kibibytes.map(|count| count * 1024).ok_or_else(|| "it has no memory any more".to_string())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if LIVING[self.seat].load(Ordering::SeqCst) == self.pid {
            // SAFETY: the slot is emptied before the process is reaped, so the ID is ours, and so
            // is the group that it leads.
            unsafe { libc::kill(-self.pid, libc::SIGKILL) };
            // The next server may need its port: the process must have ended.
            let _ = self.ended.recv_timeout(Duration::from_secs(5));
        }
    }
}

/// Repeats until `condition` is true or the time is over; returns which.
pub(super) fn holds_within(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let clock = Clock::start();
    while !condition() {
        if clock.now().as_secs_f64() > patience.as_secs_f64() {
            return false;
        }
        thread::park_timeout(Duration::from_millis(20));
    }
    true
}

impl Ended {
    /// The last lines of its output, for a message.
    pub(super) fn complaint(&self) -> String {
        let said = if self.errors.trim().is_empty() { &self.output } else { &self.errors };
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(2)..].join(" / ");
        format!("{}: {}", self.status, last.chars().take(300).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, name: &str) -> Running {
        let folder = std::env::temp_dir().join(format!("xtask-child-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        start(command, 0, &folder, name).unwrap()
    }

    #[test]
    fn a_child_is_measured() {
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo out; echo err >&2";
        let ended = shell(script, "busy").wait(Duration::from_secs(20)).unwrap();
        assert!(ended.status.success() && ended.cpu > Duration::from_micros(500));
        assert_eq!((ended.output.as_str(), ended.errors.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn a_child_is_watched_until_it_ends() {
        let mut looks = 0;
        let running = shell("sleep 0.2", "watched");
        let look = |pid: i32| looks += i32::from(pid > 0);
        let tick = Duration::from_millis(20);
        assert!(running.watch(tick, Duration::from_secs(20), look).unwrap().status.success());
        assert!(looks >= 3, "{looks}");
    }

    #[test]
    fn a_child_that_hangs_is_killed() {
        let running = shell("exec sleep 60", "hangs");
        let pid = running.pid;
        assert!(running.stay(Duration::from_millis(50)).is_ok());
        assert!(running.resident_bytes().unwrap() > 0);
        assert!(running.wait(Duration::from_millis(50)).is_err());
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
