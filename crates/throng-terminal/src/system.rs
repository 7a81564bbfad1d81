//! What only Linux does at a terminal. On other systems, `elsewhere` replaces this module.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

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
