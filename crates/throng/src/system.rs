//! Functions that need Linux. On other systems, `elsewhere` replaces this module and rejects the
//! commands that need them.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use throng_base::Diagnostic;

use crate::arguments;

/// On Linux, every command is available.
pub(crate) fn refusal(_: &arguments::Command) -> Option<Diagnostic> {
    None
}

/// One small object keeps a whole huge page in memory.
pub(crate) fn use_no_huge_pages() {
    let (on, unused): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: the call sets a flag of this process and takes no pointer. Kernels without the flag
    // change nothing.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, on, unused, unused, unused) };
}

/// With a limit on the address space (`ulimit -v`), the allocators must not reserve memory that
/// they do not use: mimalloc reserves 1 GiB at its first allocation, and glibc 64 MiB for each
/// thread. They read these settings when a process starts, so this function restarts the process.
pub(crate) fn reserve_no_address_space() {
    const SETTINGS: [(&str, &str); 2] =
        [("MIMALLOC_ARENA_RESERVE", "0"), ("MALLOC_ARENA_MAX", "1")];
    let is_set = SETTINGS.iter().all(|(name, _)| std::env::var_os(name).is_some());
    if is_set || throng_host::address_space_limit().is_none() {
        return;
    }
    let mut words = std::env::args_os();
    if let (Ok(program), Some(name)) = (std::env::current_exe(), words.next()) {
        // `exec` returns only if it fails; the process then continues with the reserved memory.
        let _ = Command::new(program).arg0(name).args(words).envs(SETTINGS).exec();
    }
}

/// Overwrites an argument of the command line in the memory of this process. All users of the host
/// can read that memory (`ps`, `/proc/PID/cmdline`).
pub(crate) fn hide_argument(argument: &str) {
    // proc_pid_stat(5): the name in brackets can contain any character; field 3 follows it, and
    // `arg_start` and `arg_end` are fields 48 and 49.
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return };
    let Some((_, fields)) = stat.rsplit_once(')') else { return };
    let mut fields = fields.split_whitespace().skip(45).map(str::parse::<usize>);
    let (Some(Ok(start)), Some(Ok(end))) = (fields.next(), fields.next()) else { return };
    if argument.is_empty() || start == 0 || end <= start {
        return;
    }
    // SAFETY: the kernel reports that the arguments of this process are at these addresses. No
    // other code has a reference to them: no other thread runs yet, and Rust returns copies of
    // them.
    let arguments = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, end - start) };
    let length = argument.len();
    for at in 0..arguments.len().saturating_sub(length - 1) {
        if arguments[at..at + length] == *argument.as_bytes() {
            arguments[at..at + length].fill(b'*');
        }
    }
}
