//! The system calls that have no safe wrapper elsewhere. All of the engine's unsafe code is here.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd};
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) bytes: usize,
    /// When the last of them arrived at this host, by the kernel: nanoseconds of the wall clock, 0
    /// if unknown.
    pub(crate) stamp: u64,
}

pub(crate) use libc::{EHOSTDOWN, MSG_NOSIGNAL};
pub(crate) use tokio::net::UnixStream;

#[cfg(test)]
pub(crate) use counting::allocations;

/// Options that have no name in the library (linux/in.h, linux/tcp.h).
const IP_LOCAL_PORT_RANGE: libc::c_int = 51;
const TCP_REPAIR: libc::c_int = 19;

/// A non-blocking socket.
pub(crate) fn socket(domain: Domain, kind: Type, protocol: Option<Protocol>) -> io::Result<Socket> {
    Socket::new(domain, kind.nonblocking(), protocol)
}

/// Lets a socket use addresses that are not this host's; see ip(7), IP_TRANSPARENT.
pub(crate) fn set_transparent(socket: &Socket, target: SocketAddr) -> io::Result<()> {
    match target {
        SocketAddr::V4(_) => socket.set_ip_transparent_v4(true),
        SocketAddr::V6(_) => socket.set_ip_transparent_v6(true),
    }
}

/// Drops all packets to the socket: the filter returns how many bytes to keep.
pub(crate) fn hear_nothing(socket: &Socket) -> io::Result<()> {
    const DROP: SockFilter = SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0);
    socket.attach_filter(&[DROP])
}

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
    set_option(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &on)
}

/// Limits the source ports that connect(2) may choose from (ip(7), IP_LOCAL_PORT_RANGE, Linux 6.3):
/// the first in the lower half, the last in the upper. Fails with `ENOPROTOOPT` if the kernel does
/// not support it.
pub(crate) fn set_local_port_range(socket: &impl AsRawFd, range: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range)
}

/// Starts or ends the repair mode of a connection: closing one in repair mode sends nothing. Needs
/// CAP_NET_ADMIN; see tcp_repair in the kernel's net/ipv4/tcp.c.
pub(crate) fn set_tcp_repair(socket: &impl AsRawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    set_option(socket, libc::IPPROTO_TCP, TCP_REPAIR, &on)
}

fn set_option<T: Copy>(
    socket: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` lives through the call, and its size is passed.
    let done = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const *value).cast(), size)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kernel's state of a TCP connection: the smoothed round-trip time in microseconds,
/// retransmitted segments, and segments that arrived out of order (0 before Linux 5.4).
pub(crate) fn tcp_state(socket: &impl AsRawFd) -> io::Result<(u32, u32, u32)> {
    /// The start of `struct tcp_info` (linux/tcp.h), which only ever grows at its end.
    #[repr(C)]
    struct Head {
        bytes: [u8; 8],
        words: [u32; 55],
    }
    /// `tcpi_rtt`, `tcpi_total_retrans` and `tcpi_rcv_ooopack`.
    const ROUND_TRIP: usize = 15;
    const RETRANSMITS: usize = 23;
    const OUT_OF_ORDER: usize = 54;
    /// Every kernel returns at least the fields up to `tcpi_total_retrans`.
    const BYTES_MIN: usize = 8 + 4 * (RETRANSMITS + 1);
    let mut head = Head { bytes: [0; 8], words: [0; 55] };
    let mut size = size_of::<Head>() as libc::socklen_t;
    // SAFETY: `head` is writable for the size that is passed, and any bytes are a valid value.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut head).cast(),
            &raw mut size,
        )
    };
    match done {
        0 if size as usize >= BYTES_MIN => {
            Ok((head.words[ROUND_TRIP], head.words[RETRANSMITS], head.words[OUT_OF_ORDER]))
        }
        0 => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// From now on the kernel timestamps what arrives on the socket, and [`receive`] returns the
/// timestamp (socket(7), SO_TIMESTAMP and related; the kernel's networking/timestamping document).
pub(crate) fn stamp_arrivals(socket: &impl AsRawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
}

/// Reads what has arrived into `buffer` (recvmsg(2)), with its timestamp.
#[inline]
pub(crate) fn receive(socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<Received> {
    /// One control message that carries a `timespec` (cmsg(3)).
    #[repr(C)]
    struct Control {
        head: libc::cmsghdr,
        stamp: libc::timespec,
    }
    let mut control = MaybeUninit::<Control>::uninit();
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a header of zeros is valid, and requests nothing.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Control>();
    // SAFETY: the header, its one buffer and its space for control messages live through the call
    // and have the sizes that the header states.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut received = Received { bytes: count as usize, stamp: 0 };
    if message.msg_controllen >= size_of::<Control>() {
        // SAFETY: the kernel has written this many bytes of it.
        let Control { head, stamp } = unsafe { control.assume_init() };
        if (head.cmsg_level, head.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            received.stamp = stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64;
        }
    }
    Ok(received)
}

/// Lets the calling thread sleep as exactly as the kernel can: without timer slack (prctl(2),
/// PR_SET_TIMERSLACK; 50 µs by default).
pub(crate) fn sleep_exactly() {
    // SAFETY: the call takes no pointers; it changes only the calling thread. It does not fail.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Lets the calling thread sleep.
#[allow(clippy::disallowed_methods)]
pub(crate) fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// Bytes that were written to a connection and are not acknowledged (tcp(7), SIOCOUTQ).
pub(crate) fn unacknowledged(socket: &impl AsRawFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request writes one int (SIOCOUTQ is TIOCOUTQ), and `bytes` is one.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    match done {
        0 => Ok(u64::try_from(bytes).unwrap_or(0)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Copies what has arrived and leaves it in the socket; does not block.
pub(crate) fn peek(socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<usize> {
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    // SAFETY: `buffer` is writable for the length that is passed, and lives through the call.
    let count =
        unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Which of these connections were closed by both sides, or were reset; nothing is read from them
/// (poll(2), POLLHUP).
pub(crate) fn are_over<'a, S: AsRawFd + 'a>(sockets: impl Iterator<Item = &'a S>) -> Vec<bool> {
    let asked = |socket: &S| libc::pollfd { fd: socket.as_raw_fd(), events: 0, revents: 0 };
    let mut asked: Vec<libc::pollfd> = sockets.map(asked).collect();
    // SAFETY: `asked` is a table of the length that is passed, and lives through the call, which
    // does not block.
    let done = unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, 0) };
    // A failed poll finds no connection closed.
    let over = libc::POLLHUP | libc::POLLERR;
    asked.iter().map(|one| done > 0 && one.revents & over != 0).collect()
}

/// The addresses of a network interface, without link-local ones; `None` if there is no such
/// interface.
pub(crate) fn interface_addresses(name: &str) -> io::Result<Option<Vec<IpAddr>>> {
    let mut list = std::ptr::null_mut();
    // SAFETY: the call allocates a list and stores its address in `list`.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = None;
    let mut next = list;
    while !next.is_null() {
        // SAFETY: `next` is an entry of the list, which is not freed before the end of the loop.
        let entry = unsafe { &*next };
        next = entry.ifa_next;
        // SAFETY: the name of an entry is a zero-terminated string.
        let its_name = unsafe { CStr::from_ptr(entry.ifa_name) };
        if its_name.to_bytes() == name.as_bytes() {
            let found: &mut Vec<IpAddr> = found.get_or_insert_default();
            // SAFETY: the address of an entry is null or as long as its family requires.
            found.extend(unsafe { ip_of(entry.ifa_addr) });
        }
    }
    // SAFETY: the list came from getifaddrs and is not used afterwards.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// # Safety
/// `address` is null, or an address that is as long as its family requires.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: every address starts with its family, and is as long as that requires.
    unsafe {
        match libc::c_int::from((*address).sa_family) {
            libc::AF_INET => {
                let address = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from_bits(u32::from_be(address.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let address = address.cast::<libc::sockaddr_in6>().read_unaligned();
                let address = Ipv6Addr::from(address.sin6_addr.s6_addr);
                (!address.is_unicast_link_local()).then_some(address.into())
            }
            _ => None,
        }
    }
}

/// A timer that becomes readable when it expires (timerfd_create(2)); precise to microseconds,
/// unlike the runtime's own timers, which are precise to milliseconds.
pub(crate) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// A timer of the runtime of the calling thread.
    pub(crate) fn new() -> io::Result<Timer> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nothing else owns it.
        let owned = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: the registration owns the descriptor, which stays open and unchanged for as long
        // as the registration lives.
        let watched = unsafe { AsyncFd::register_with_interest(owned, Interest::READABLE) };
        Ok(Timer(watched?))
    }

    /// Sets the timer to expire once after `wait`, or immediately if it is zero.
    pub(crate) fn set(&self, wait: Duration) -> io::Result<()> {
        // A value of zero would disarm the timer.
        let wait = wait.clamp(Duration::from_nanos(1), Duration::from_secs(1 << 30));
        let value = libc::timespec {
            tv_sec: wait.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(wait.subsec_nanos() as i32),
        };
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let spec = libc::itimerspec { it_interval: zero, it_value: value };
        // SAFETY: `spec` lives through the call; the old value is not requested.
        let done = unsafe {
            let fd = self.0.get_ref().as_raw_fd();
            libc::timerfd_settime(fd, 0, &raw const spec, std::ptr::null_mut())
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Ready when the timer has expired; clears it.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.0.poll_read_ready(cx) {
                Poll::Pending => return Poll::Pending,
                // The runtime is shutting down; no task waits anymore.
                Poll::Ready(Err(_)) => return Poll::Pending,
                Poll::Ready(Ok(mut ready)) => {
                    if ready.try_io(|timer| clear(timer.get_ref())).is_ok() {
                        return Poll::Ready(());
                    }
                }
            }
        }
    }
}

/// Clears an expired timer; an error of kind `WouldBlock` if it has not expired.
fn clear(timer: &OwnedFd) -> io::Result<()> {
    let mut count = [0u8; 8];
    // SAFETY: `count` is writable for its eight bytes.
    let read = unsafe { libc::read(timer.as_raw_fd(), count.as_mut_ptr().cast(), 8) };
    if read == 8 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Counts the allocations of a test's thread.
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

    // SAFETY: every call is forwarded unchanged to the system's allocator.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // A thread that is ending has no counter anymore.
            let _ = COUNT.try_with(|count| count.set(count.get() + 1));
            // SAFETY: the caller meets the contract of this very function.
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
