//! What only Linux does for us. On other systems `elsewhere` has its place, and refuses the
//! commands that need it.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use throng_base::Diagnostic;

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
pub(crate) fn is_owner(stream: &UnixStream) -> bool {
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
