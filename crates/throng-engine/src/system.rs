//! The system calls that have no safe wrapper elsewhere. All of the engine's unsafe code is here.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[cfg(test)]
pub(crate) use counting::allocations;

/// Gives the calling thread a file descriptor table of its own, a copy of the process's.
///
/// The limit on descriptors holds per table, so threads with their own table get past it
/// together; see unshare(2), CLONE_FILES.
pub(crate) fn own_descriptor_table() -> io::Result<()> {
    // SAFETY: the call takes no pointers; it changes only the calling thread's table.
    match unsafe { libc::unshare(libc::CLONE_FILES) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Raises the soft limit on descriptors to the hard one, which every process may do, and
/// returns it.
pub(crate) fn raise_descriptor_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit for the time of both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return 1024;
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        match libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) {
            0 => limit.rlim_max,
            _ => limit.rlim_cur,
        }
    }
}

/// Leaves the choice of the source port to connect(2); see ip(7), IP_BIND_ADDRESS_NO_PORT.
pub(crate) fn bind_address_no_port(socket: &impl AsRawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: `on` lives through the call and its size is told.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A timer that is ready to read when its time has come (timerfd_create(2)), precise to
/// microseconds where the runtime's own timers are to milliseconds.
pub(crate) struct TimerFd(OwnedFd);

impl TimerFd {
    pub(crate) fn new() -> io::Result<TimerFd> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else owns it.
        Ok(TimerFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Registers the timer with the runtime of the calling thread.
    pub(crate) fn register(self) -> io::Result<AsyncFd<TimerFd>> {
        // SAFETY: the descriptor is owned by the timer, which the registration owns; it is open,
        // and the same, for as long as the registration lives.
        Ok(unsafe { AsyncFd::register_with_interest(self, Interest::READABLE) }?)
    }

    /// Sets the timer to go off once after `wait`; at once when it is zero.
    pub(crate) fn set(&self, wait: Duration) -> io::Result<()> {
        // A value of zero would disarm the timer.
        let wait = wait.clamp(Duration::from_nanos(1), Duration::from_secs(1 << 30));
        let value = libc::timespec {
            tv_sec: wait.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(wait.subsec_nanos() as i32),
        };
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let spec = libc::itimerspec { it_interval: zero, it_value: value };
        // SAFETY: `spec` lives through the call; the old value is not asked for.
        let done = unsafe {
            libc::timerfd_settime(self.0.as_raw_fd(), 0, &raw const spec, std::ptr::null_mut())
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Takes note that the timer went off; an error of kind `WouldBlock` when it did not.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let mut count = [0u8; 8];
        // SAFETY: `count` is writable for its eight bytes.
        let read = unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), 8) };
        if read == 8 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for TimerFd {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}

/// Counts what a test's thread allocates.
#[cfg(test)]
mod counting {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;

    struct Counting;

    thread_local! {
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }

    #[global_allocator]
    static COUNTING: Counting = Counting;

    // SAFETY: everything is handed to the system's allocator as it comes.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // A thread that ends has no count any more.
            let _ = COUNT.try_with(|count| count.set(count.get() + 1));
            // SAFETY: the caller keeps to the contract of this very function.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            // SAFETY: as above.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    pub(crate) fn allocations() -> u64 {
        COUNT.with(Cell::get)
    }
}
