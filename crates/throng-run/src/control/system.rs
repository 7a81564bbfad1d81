//! Functions that need Linux. On other systems, `elsewhere` replaces this module.

use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use throng_base::system::LocalStream;

/// The path of a socket has at most 107 bytes (unix(7)), so the directory is passed as a
/// descriptor.
pub(crate) fn in_directory<T>(
    directory: &Path,
    name: &str,
    work: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let opened = std::fs::File::open(directory)?;
    work(&PathBuf::from(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd())))
}

/// Whether the peer runs as the same user as this process, or as root.
pub(crate) fn is_owner(stream: &LocalStream) -> bool {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `peer`, which is that large.
    let status = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    // SAFETY: the call only returns a number.
    let own = unsafe { libc::geteuid() };
    status == 0 && (peer.uid == own || peer.uid == 0)
}
