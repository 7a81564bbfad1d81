//! What only Linux does for us. On other systems `elsewhere` has its place, and refuses the
//! commands that need it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use throng_base::{Diagnostic, system::LocalStream};

use crate::arguments;

/// Linux refuses no command.
pub(crate) fn refusal(_: &arguments::Command) -> Option<Diagnostic> {
    None
}

/// A huge page would be held by the one small thing left in it.
pub(crate) fn use_no_huge_pages() {
    let (on, unused): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: the call sets a flag of this process and takes no pointer. Where the kernel does not
    // know the flag, nothing changes.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, on, unused, unused, unused) };
}

/// The program that a command starts is interrupted, as by Ctrl-C, when the thread that starts it
/// is gone; also if this process is killed.
pub(crate) fn end_with_parent(command: &mut Command) {
    let (signal, unused): (libc::c_ulong, libc::c_ulong) = (libc::SIGINT as libc::c_ulong, 0);
    // SAFETY: between fork and exec only one system call is made, which takes no pointer.
    unsafe {
        command.pre_exec(move || {
            match libc::prctl(libc::PR_SET_PDEATHSIG, signal, unused, unused, unused) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
}

/// Names of sockets have 107 bytes at most (unix(7)): the directory is named by a descriptor.
pub(crate) fn in_directory<T>(
    directory: &Path,
    name: &str,
    work: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let opened = std::fs::File::open(directory)?;
    work(&PathBuf::from(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd())))
}

/// Whether the other end is of the user who runs this process, or root.
pub(crate) fn is_owner(stream: &LocalStream) -> bool {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `peer`, which has as many.
    let told = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    // SAFETY: it only tells a number.
    let own = unsafe { libc::geteuid() };
    told == 0 && (peer.uid == own || peer.uid == 0)
}

/// Under a limit on the address space (`ulimit -v`) the allocators must not reserve what they do
/// not use: mimalloc reserves 1 GiB at its first allocation, and glibc 64 MiB for each thread. They
/// read these settings when a process starts, so it starts once more.
pub(crate) fn reserve_no_address_space() {
    const SETTINGS: [(&str, &str); 2] =
        [("MIMALLOC_ARENA_RESERVE", "0"), ("MALLOC_ARENA_MAX", "1")];
    let is_set = SETTINGS.iter().all(|(name, _)| std::env::var_os(name).is_some());
    if is_set || throng_host::address_space_limit().is_none() {
        return;
    }
    let mut words = std::env::args_os();
    if let (Ok(program), Some(name)) = (std::env::current_exe(), words.next()) {
        // It returns only where it fails; then all goes on as it is.
        let _ = Command::new(program).arg0(name).args(words).envs(SETTINGS).exec();
    }
}

/// Overwrites an argument of the command line, which the kernel shows to everybody (`ps`,
/// `/proc/PID/cmdline`) as it stands in the memory of this process.
pub(crate) fn hide_argument(argument: &str) {
    // proc_pid_stat(5): the name in brackets may hold anything; `arg_start` and `arg_end` are
    // fields 48 and 49, and field 3 is the first behind it.
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return };
    let Some((_, fields)) = stat.rsplit_once(')') else { return };
    let mut fields = fields.split_whitespace().skip(45).map(str::parse::<usize>);
    let (Some(Ok(start)), Some(Ok(end))) = (fields.next(), fields.next()) else { return };
    if argument.is_empty() || start == 0 || end <= start {
        return;
    }
    // SAFETY: the kernel says that the arguments of this process lie there. They are written to
    // by nobody else: this is done before any thread is started, and Rust copies them when asked.
    let arguments = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, end - start) };
    let length = argument.len();
    for at in 0..arguments.len().saturating_sub(length - 1) {
        if arguments[at..at + length] == *argument.as_bytes() {
            arguments[at..at + length].fill(b'*');
        }
    }
}

/// Whether whoever started this process has closed its standard output (`>&-`). It is asked before
/// Rust's own beginning, which opens `/dev/null` in its place.
static HAS_OUTPUT: AtomicBool = AtomicBool::new(true);

extern "C" fn look_at_output() {
    // SAFETY: the call only asks for the flags of a descriptor.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    HAS_OUTPUT.store(flags >= 0, Ordering::Relaxed);
}

// SAFETY: what stands in this section is called before `main`, with arguments that a function
// without any ignores; this one needs nothing that has to be set up before.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_AT_OUTPUT: extern "C" fn() = look_at_output;

/// Whether this process was started with a standard output.
pub(crate) fn has_output() -> bool {
    // What is used here is linked, and so is called before.
    std::hint::black_box(&LOOK_AT_OUTPUT);
    HAS_OUTPUT.load(Ordering::Relaxed)
}

/// As the terminal was, while it is otherwise: whoever ends this process puts it back.
static BEFORE: Mutex<Option<libc::termios>> = Mutex::new(None);

/// Whether the terminal is ours to read: a read from the background would stop the process.
pub(crate) fn is_in_front() -> bool {
    // SAFETY: both only tell numbers.
    unsafe { libc::tcgetpgrp(io::stdin().as_raw_fd()) == libc::getpgrp() }
}

/// Whether there is a terminal still, so that it may be ours once more.
pub(crate) fn has_terminal() -> bool {
    // SAFETY: the call only tells a number.
    unsafe { libc::tcgetpgrp(io::stdin().as_raw_fd()) != -1 }
}

/// Whether keys are told at once, as [`take_terminal`] wants it.
pub(crate) fn has_taken_terminal() -> bool {
    let mut now = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: `now` is written by the call, and read only when it has done so.
    unsafe {
        libc::tcgetattr(io::stdin().as_raw_fd(), now.as_mut_ptr()) != 0
            || now.assume_init().c_lflag & libc::ICANON == 0
    }
}

/// From now on keys are told at once and not shown; for a full screen, none of them puts this
/// process into the background. False where that cannot be.
pub(crate) fn take_terminal(full_screen: bool) -> bool {
    let terminal = io::stdin().as_raw_fd();
    let mut before = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: `before` is written by the call, and read only when it has done so.
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
    // SAFETY: a run that goes on in the background ends to hear keys, and is not stopped by it.
    unsafe {
        libc::signal(libc::SIGTTIN, libc::SIG_IGN);
        libc::signal(libc::SIGTTOU, libc::SIG_IGN);
    }
    // SAFETY: `raw` is whole; the terminal is only told.
    unsafe { libc::tcsetattr(terminal, libc::TCSANOW, &raw const raw) == 0 }
}

/// The terminal is as it was; also after a panic.
pub(crate) fn give_terminal_back() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        // SAFETY: as in `take_terminal`.
        unsafe { libc::tcsetattr(io::stdin().as_raw_fd(), libc::TCSANOW, &raw const before) };
    }
}
