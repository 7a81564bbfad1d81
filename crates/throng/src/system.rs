//! Functions that need Linux. On other systems, `elsewhere` replaces this module and rejects the
//! commands that need them.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

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

/// Interrupts the started program, as Ctrl-C does, when the thread that started it ends; also if
/// this process is killed.
pub(crate) fn end_with_parent(command: &mut Command) {
    let (signal, unused): (libc::c_ulong, libc::c_ulong) = (libc::SIGINT as libc::c_ulong, 0);
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

/// False if this process was started with a closed standard output (`>&-`). This must be checked
/// before Rust's runtime starts, because that opens `/dev/null` instead.
static HAS_OUTPUT: AtomicBool = AtomicBool::new(true);

extern "C" fn look_at_output() {
    // SAFETY: the call only returns the flags of a descriptor.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    HAS_OUTPUT.store(flags >= 0, Ordering::Relaxed);
}

// SAFETY: functions in this section are called before `main`, with arguments that a function
// without parameters ignores. This one needs no initialization.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_AT_OUTPUT: extern "C" fn() = look_at_output;

/// Whether this process was started with a standard output.
pub(crate) fn has_output() -> bool {
    // The linker removes the function unless it is used.
    std::hint::black_box(&LOOK_AT_OUTPUT);
    HAS_OUTPUT.load(Ordering::Relaxed)
}

/// The settings of the terminal before [`take_terminal`] changed them, until they are restored.
static BEFORE: Mutex<Option<libc::termios>> = Mutex::new(None);

/// Whether the terminal is ours to read: a read from the background would stop the process.
pub(crate) fn is_in_front() -> bool {
    // SAFETY: both calls only return numbers.
    unsafe { libc::tcgetpgrp(io::stdin().as_raw_fd()) == libc::getpgrp() }
}

/// Whether this process still has a terminal and may get it back.
pub(crate) fn has_terminal() -> bool {
    // SAFETY: the call only returns a number.
    unsafe { libc::tcgetpgrp(io::stdin().as_raw_fd()) != -1 }
}

/// Whether the terminal delivers keys one by one, as set by [`take_terminal`].
pub(crate) fn has_taken_terminal() -> bool {
    let mut now = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: `now` is read only if the call has written it.
    unsafe {
        libc::tcgetattr(io::stdin().as_raw_fd(), now.as_mut_ptr()) != 0
            || now.assume_init().c_lflag & libc::ICANON == 0
    }
}

/// Makes the terminal deliver keys one by one, without echo. With a full screen, no key suspends
/// the process. False if that fails.
pub(crate) fn take_terminal(full_screen: bool) -> bool {
    let terminal = io::stdin().as_raw_fd();
    let mut before = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: `before` is read only if the call has written it.
    let before = unsafe {
        if libc::tcgetattr(terminal, before.as_mut_ptr()) != 0 {
            return false;
        }
        before.assume_init()
    };
    let mut raw = before;
    raw.c_lflag &= !(libc::ICANON | libc::ECHO);
    raw.c_cc[libc::VMIN] = 1;
    raw.c_cc[libc::VTIME] = 0;
    if full_screen {
        raw.c_cc[libc::VSUSP] = libc::_POSIX_VDISABLE;
    }
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(before);
    // SAFETY: the calls install no handler. A run in the background then gets errors from the
    // terminal and is not stopped.
    unsafe {
        libc::signal(libc::SIGTTIN, libc::SIG_IGN);
        libc::signal(libc::SIGTTOU, libc::SIG_IGN);
    }
    // SAFETY: `raw` is initialized, and the call only reads it.
    unsafe { libc::tcsetattr(terminal, libc::TCSANOW, &raw const raw) == 0 }
}

/// Restores the settings of the terminal; also after a panic.
pub(crate) fn give_terminal_back() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        // SAFETY: as in `take_terminal`.
        unsafe { libc::tcsetattr(io::stdin().as_raw_fd(), libc::TCSANOW, &raw const before) };
    }
}
