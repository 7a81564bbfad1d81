//! System calls without a safe wrapper. All unsafe code of this crate is here.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

pub(crate) use libc::EBUSY;

/// Of the wire's thread; users and targets have 0.
const NICE: libc::c_int = -10;

/// Creates a TUN device with this name (networking/tuntap in the kernel's documentation), in the
/// network namespace of the calling thread. Closing the descriptor removes the device.
pub(crate) fn tun(name: &str) -> io::Result<File> {
    let path = "/dev/net/tun";
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    // SAFETY: zeros are a valid request, which is a plain C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open, and `request` lives through the call, which reads it and
    // writes the name back.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    if done == 0 { Ok(file) } else { Err(io::Error::last_os_error()) }
}

/// Moves the calling thread into a new network namespace (unshare(2), CLONE_NEWNET).
pub(crate) fn new_namespace() -> io::Result<()> {
    // SAFETY: the call takes no pointers; it changes only what the calling thread sees.
    match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Moves the calling thread into a network namespace (setns(2)).
pub(crate) fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: the call takes no pointers; it changes only what the calling thread sees.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The index of a device in the network namespace of the calling thread.
pub(crate) fn device_number(name: &str) -> io::Result<u32> {
    let name = CString::new(name)?;
    // SAFETY: the name ends with a zero and lives through the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        number => Ok(number),
    }
}

/// Waits until one of the devices has a packet, or until the timeout.
pub(crate) fn wait(devices: [&File; 2], time: Duration) {
    let mut asked = devices.map(|device| libc::pollfd {
        fd: device.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    let time = libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(time.subsec_nanos() as i32),
    };
    // SAFETY: `asked` is an array of two entries that outlives the call. After an error, the wait
    // was only shorter.
    unsafe { libc::ppoll(asked.as_mut_ptr(), 2, &raw const time, std::ptr::null()) };
}

/// Gives the calling thread priority over others where that is allowed (setpriority(2)): a wire
/// that waits for a processor delays packets by more than its users ask for.
pub(crate) fn go_first() {
    // SAFETY: the call takes plain numbers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}

/// Sets the minimum timer slack for the calling thread (prctl(2), PR_SET_TIMERSLACK).
pub(crate) fn wait_exactly() {
    // SAFETY: the call takes no pointers; it changes the calling thread alone. It does not fail.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}
