//! Programs that a bench starts: optionally pinned to a core, limited in time, measured when they
//! end, and killed if the bench ends before them.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use throng_base::{Clock, Time};

/// A started program. It is killed on drop.
pub(super) struct Running {
    pid: i32,
    /// Becomes readable when the program ends (`pidfd_open(2)`).
    end: OwnedFd,
    is_reaped: bool,
    output: PathBuf,
    errors: PathBuf,
}

/// The output and the cost of a program that ended.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// User and system time of all its threads.
    pub(super) cpu: Duration,
    pub(super) output: String,
    pub(super) errors: String,
}

/// Starts `command` on `core`, or on all of them; its output goes to files named `name` in
/// `folder`.
pub(super) fn start(
    mut command: Command,
    core: Option<usize>,
    folder: &Path,
    name: &str,
) -> Result<Running, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error: io::Error| format!("{program}: {error}");
    let (output, errors) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.err")));
    command.stdin(Stdio::null());
    command.stdout(File::create(&output).map_err(failed)?);
    command.stderr(File::create(&errors).map_err(failed)?);
    // Its own group, so that a kill reaches the processes that it has started.
    command.process_group(0);
    // SAFETY: between fork and exec, only system calls are made, on memory of the child's own.
    unsafe { command.pre_exec(move || pin_and_tie(core)) };
    let child = command.spawn().map_err(failed)?;
    let pid = i32::try_from(child.id()).map_err(|error| format!("{program}: {error}"))?;
    // SAFETY: the call takes numbers, and returns a descriptor that no other code owns, or -1.
    let end = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if end < 0 {
        return Err(failed(io::Error::last_os_error()));
    }
    // SAFETY: as above.
    let end = unsafe { OwnedFd::from_raw_fd(end as i32) };
    Ok(Running { pid, end, is_reaped: false, output, errors })
}

/// In the child: ends it with its parent, and pins it to the core if there is one.
fn pin_and_tie(core: Option<usize>) -> io::Result<()> {
    // SAFETY: prctl takes only numbers here.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let Some(core) = core else { return Ok(()) };
    // SAFETY: a zeroed cpu_set_t is an empty set, and the core is below its size.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core % libc::CPU_SETSIZE as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Running {
    /// Waits for the end; past `limit`, the program is killed and that is an error.
    pub(super) fn wait(self, limit: Duration) -> Result<Ended, String> {
        self.watch(limit, limit, |_| ())
    }

    /// Waits for the end and calls `look` with its process ID at the start of every `tick`; past
    /// `limit`, the program is killed and that is an error.
    pub(super) fn watch(
        mut self,
        tick: Duration,
        limit: Duration,
        mut look: impl FnMut(i32),
    ) -> Result<Ended, String> {
        let clock = Clock::start();
        loop {
            look(self.pid);
            let passed = clock.now() - Time::ZERO;
            // If a reading took long, ticks are skipped.
            let in_tick = passed.as_nanos() % tick.as_nanos().max(1);
            let next = tick.saturating_sub(Duration::from_nanos(in_tick as u64));
            if self.ends_within(next.min(limit.saturating_sub(passed))) {
                break;
            }
            if clock.now() - Time::ZERO >= limit {
                let seconds = limit.as_secs_f64();
                return Err(format!("was not done after {seconds:.0} s and was killed"));
            }
        }
        let (status, cpu) = self.reap();
        let read =
            |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        Ok(Ended { status, cpu, output: read(&self.output), errors: read(&self.errors) })
    }

    /// Lets the program run for `time`; an error if it ends sooner.
    pub(super) fn stay(&self, time: Duration) -> Result<(), String> {
        match self.ends_within(time) {
            true => Err(format!("ended too soon: {}", self.errors().trim())),
            false => Ok(()),
        }
    }

    fn ends_within(&self, time: Duration) -> bool {
        let mut end = libc::pollfd { fd: self.end.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let ms = i32::try_from(time.as_millis()).unwrap_or(i32::MAX).saturating_add(1);
        // SAFETY: the structure outlives the call, which is told that there is one.
        unsafe { libc::poll(&mut end, 1, ms) == 1 }
    }

    fn reap(&mut self) -> (ExitStatus, Duration) {
        // SAFETY: both values are plain numbers, for which zeroes are valid, and they outlive the
        // call; no other code waits for the child.
        let (status, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            let mut status = 0;
            libc::wait4(self.pid, &mut status, 0, &mut usage);
            (status, usage)
        };
        self.is_reaped = true;
        let time = |value: libc::timeval| {
            Duration::from_secs(value.tv_sec.unsigned_abs())
                + Duration::from_micros(value.tv_usec.unsigned_abs())
        };
        (ExitStatus::from_raw(status), time(usage.ru_utime) + time(usage.ru_stime))
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Its error output so far.
    pub(super) fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_reaped {
            // SAFETY: the process has not been reaped, so the ID is its own, and so is the group
            // that it leads.
            unsafe { libc::kill(-self.pid, libc::SIGKILL) };
            self.reap();
        }
    }
}

/// Repeats until `condition` is true or the time is over; returns which.
pub(super) fn holds_within(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let clock = Clock::start();
    while !condition() {
        if clock.now() - Time::ZERO > patience {
            return false;
        }
        thread::park_timeout(Duration::from_millis(20));
    }
    true
}

impl Ended {
    /// The status and the last lines of its output, for a message.
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
        start(command, Some(0), &folder, name).unwrap()
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
        let pid = running.pid();
        assert!(running.stay(Duration::from_millis(50)).is_ok());
        assert!(running.wait(Duration::from_millis(50)).is_err());
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
