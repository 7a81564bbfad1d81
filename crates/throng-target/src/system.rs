//! System calls that std and tokio do not offer: timerfd, eventfd, descriptor tables and receive
//! timestamps. The only file of this crate with unsafe code.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use socket2::Socket;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;

/// A kernel timer, accurate to some microseconds; a timer wheel is accurate to one millisecond.
pub(crate) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// Must be called inside the runtime that waits for it.
    pub(crate) fn new() -> io::Result<Timer> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: timerfd_create takes no pointers.
        let fd = checked(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        // SAFETY: the kernel has just returned this descriptor; it has no other owner.
        watch(unsafe { OwnedFd::from_raw_fd(fd) }).map(Timer)
    }

    /// Expires once after `delay`; discards an earlier setting and its expiry.
    pub(crate) fn arm(&self, delay: Duration) -> io::Result<()> {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::timespec {
            tv_sec: delay.as_secs() as libc::time_t,
            // A value of zero would disarm the timer.
            tv_nsec: libc::c_long::from(delay.subsec_nanos()).max(1),
        };
        let setting = libc::itimerspec { it_interval: zero, it_value: value };
        let fd = self.0.get_ref().as_raw_fd();
        // SAFETY: `setting` outlives the call, and the old setting is not requested.
        let result = unsafe { libc::timerfd_settime(fd, 0, &setting, std::ptr::null_mut()) };
        checked(result).map(drop)
    }

    /// Waits until it expires.
    pub(crate) async fn expired(&self) -> io::Result<()> {
        self.0.readable().await.map(|mut guard| guard.clear_ready())
    }
}

/// Wakes a worker from another thread. A runtime's own waker cannot: it writes to a descriptor
/// number, which refers to a different file in the table of another thread. A bell that was created
/// before the tables were separated has the same number in all of them.
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> io::Result<Bell> {
        // SAFETY: eventfd takes no pointers.
        let fd = checked(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })?;
        // SAFETY: the kernel has just returned this descriptor; it has no other owner.
        Ok(Bell(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The same bell for the worker that it wakes: a second handle, in the descriptor table of the
    /// calling thread and registered with its runtime.
    pub(crate) fn hung(&self) -> io::Result<HungBell> {
        watch(self.0.try_clone()?).map(HungBell)
    }

    pub(crate) fn ring(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are read from a value of eight bytes. A full counter is not a
        // failure: the bell is already ringing.
        let _ = unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

/// See [`Bell::hung`].
pub(crate) struct HungBell(AsyncFd<OwnedFd>);

impl HungBell {
    /// Waits until it rings, and clears the rings so far.
    pub(crate) async fn rung(&self) -> io::Result<()> {
        self.0.readable().await?.clear_ready();
        let mut rings = 0u64;
        let fd = self.0.get_ref().as_raw_fd();
        // SAFETY: at most eight bytes are written to a value of eight bytes.
        let _ = unsafe { libc::read(fd, (&raw mut rings).cast(), 8) };
        Ok(())
    }
}

/// Registers the descriptor with the current runtime for reading.
fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned by the returned value, and does not change until the end.
    Ok(unsafe { AsyncFd::register(fd) }?)
}

/// Enables receive timestamps (socket(7), `SO_TIMESTAMPNS`); the sockets that a listener accepts
/// inherit it.
pub(crate) fn stamp_arrivals(listener: &Socket) -> io::Result<()> {
    let on: libc::c_int = 1;
    let length = size_of_val(&on) as libc::socklen_t;
    let (fd, value) = (listener.as_raw_fd(), (&raw const on).cast());
    // SAFETY: the value outlives the call, and the length is its own.
    checked(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, value, length) })
        .map(drop)
}

/// The result of one read of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) bytes: usize,
    /// The arrival of the last byte, in nanoseconds since the Unix epoch, if the kernel reported
    /// it.
    pub(crate) stamp: Option<u64>,
}

/// Room for one stamp, aligned as the head of a control message.
const CONTROL_WORDS: usize = 4;
const _: () = {
    // SAFETY: a calculation.
    let space = unsafe { libc::CMSG_SPACE(size_of::<libc::timespec>() as u32) };
    assert!(space as usize <= CONTROL_WORDS * size_of::<u64>());
};

/// Reads the available bytes, with the timestamp of the last one.
pub(crate) fn receive(socket: &TcpStream, buffer: &mut [u8]) -> io::Result<Received> {
    let mut control = [0u64; CONTROL_WORDS];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all its fields are integers and pointers, for which zero is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the message and the buffers it points to outlive the call, with their own lengths.
    let bytes = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let bytes = usize::try_from(bytes).map_err(|_| io::Error::last_os_error())?;
    Ok(Received { bytes, stamp: stamp(&message) })
}

/// The timestamp in the control messages; there is at most one.
fn stamp(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel has filled the control messages of the buffer that `message` points to.
    let head = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    if (head.cmsg_level, head.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return None;
    }
    // SAFETY: a control message of this kind is a timespec; it may not be aligned as one.
    let time = unsafe { libc::CMSG_DATA(head).cast::<libc::timespec>().read_unaligned() };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(seconds.checked_mul(1_000_000_000)?.saturating_add(time.tv_nsec as u64))
}

/// Gives the calling thread its own descriptor table. Inherited internet sockets are closed in it:
/// a copy would keep alive connections that their owners close. Other descriptors stay, because
/// tokio's signal pipe, if that feature is on, must keep its number.
pub(crate) fn own_descriptor_table() -> io::Result<()> {
    part_descriptor_table()?;
    let entries = std::fs::read_dir("/proc/thread-self/fd")?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    for fd in numbers.collect::<Vec<RawFd>>() {
        if is_internet_socket(fd) {
            // SAFETY: the table belongs to this thread alone, and this thread owns no socket yet;
            // the owners of the descriptors have theirs in the copied table.
            unsafe { libc::close(fd) };
        }
    }
    Ok(())
}

/// Gives the calling thread a copy of the descriptor table, unless a sandbox forbids it.
pub(crate) fn part_descriptor_table() -> io::Result<()> {
    // SAFETY: unshare takes no pointers; this thread then has a copy of the table.
    checked(unsafe { libc::unshare(libc::CLONE_FILES) }).map(drop)
}

fn is_internet_socket(fd: RawFd) -> bool {
    let mut domain: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: both pointers are to values that outlive the call; the length is the first's.
    let result = unsafe {
        let value = (&raw mut domain).cast();
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_DOMAIN, value, &raw mut length)
    };
    result == 0 && (domain == libc::AF_INET || domain == libc::AF_INET6)
}

/// Sets whether other listeners may bind the same address (socket(7), `SO_REUSEPORT`).
pub(crate) fn share_port(listener: &Socket, shared: bool) -> io::Result<()> {
    listener.set_reuse_port(shared)
}

/// Distributes the connections of a group of listeners on one address (`SO_REUSEPORT`) by source:
/// those of one source address are accepted by one listener, those of the next address by the next
/// (socket(7), `SO_ATTACH_REUSEPORT_CBPF`). To be called once, on the first of the group.
pub(crate) fn spread_by_source(listener: &Socket, v6: bool, listeners: u32) -> io::Result<()> {
    // Offsets into a packet's network header start here (linux/filter.h, SKF_NET_OFF).
    const NETWORK_HEADER: u32 = (-0x10_0000_i32) as u32;
    // The last four bytes of the source address (RFC 791 section 3.1, RFC 8200 section 3).
    let source = NETWORK_HEADER + if v6 { 8 + 12 } else { 12 };
    let mut program = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, source),
        instruction(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, listeners),
        // A number without a listener leaves the choice to the kernel's hash.
        instruction(libc::BPF_RET | BPF_A, 0),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let length = size_of_val(&filter) as libc::socklen_t;
    // SAFETY: filter and program outlive the call, and the length is that of the program; the
    // kernel checks the program and copies it.
    checked(unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const filter).cast(),
            length,
        )
    })
    .map(drop)
}

/// The accumulator is the result (`BPF_A` in linux/bpf_common.h).
const BPF_A: u32 = 0x10;

fn instruction(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// The size of a descriptor table, after raising the limit to its maximum.
pub(crate) fn raise_descriptor_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a value that outlives the call.
    checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    if limit.rlim_cur < limit.rlim_max {
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        // SAFETY: the pointer is to a value that outlives the call.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            return Ok(raised.rlim_cur);
        }
    }
    Ok(limit.rlim_cur)
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
