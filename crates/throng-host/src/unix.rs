//! System calls of Unix. `windows.rs` has the same functions. All unsafe code of this crate is
//! here.

use std::io;
use std::process::Command;

pub use libc::{SIGINT, SIGKILL, SIGTERM};

/// User and system time of this process, in nanoseconds.
pub(crate) fn cpu_time() -> (u64, u64) {
    // SAFETY: an all-zero rusage is a valid value of that plain C structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live rusage that is ours alone.
    let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    if result != 0 {
        return (0, 0);
    }
    let nanos = |time: libc::timeval| {
        let (seconds, micros) = (time.tv_sec.max(0) as u64, time.tv_usec.max(0) as u64);
        seconds * 1_000_000_000 + micros * 1_000
    };
    (nanos(usage.ru_utime), nanos(usage.ru_stime))
}

/// The size of a memory page: the unit of many kernel counters.
pub(crate) fn page_bytes() -> u64 {
    // SAFETY: the call takes a plain number and touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).ok().filter(|bytes| *bytes > 0).unwrap_or(4096)
}

/// The number of ticks per second in kernel times of processes and processors.
pub(crate) fn ticks_per_second() -> f64 {
    // SAFETY: the call takes a plain number and touches no memory of ours.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as f64 } else { 100.0 }
}

/// Sets the nice value, -20 to 19, of this thread and of all threads that it starts from now on.
/// Only root may lower it.
pub fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: the call takes plain numbers and touches no memory of ours; 0 is this thread, and
    // threads that it starts inherit the value.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends a signal to all processes of the group that a child leads, by the number of the child.
/// Does nothing if the group has ended.
pub fn signal_group(child: u32, signal: i32) {
    if let Ok(group @ 2..) = libc::pid_t::try_from(child) {
        // SAFETY: the call takes plain numbers; a negative one is a group.
        unsafe { libc::kill(-group, signal) };
    }
}

/// Interrupts the started program, like Ctrl-C, when the thread that started it ends, also if this
/// process is killed.
#[cfg(target_os = "linux")]
pub fn end_with_parent(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    let (signal, unused): (libc::c_ulong, libc::c_ulong) = (SIGINT as libc::c_ulong, 0);
    // SAFETY: between fork and exec, only one system call is made; it takes no pointer.
    unsafe {
        command.pre_exec(move || {
            match libc::prctl(libc::PR_SET_PDEATHSIG, signal, unused, unused, unused) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
}

/// Only Linux notifies a process that its parent has ended.
#[cfg(not(target_os = "linux"))]
pub fn end_with_parent(_: &mut Command) {}
