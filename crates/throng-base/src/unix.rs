//! Files, sockets and processes for which std has separate functions on Unix. `windows.rs` has the
//! same functions, so that no other module depends on the system.

use std::fs::{DirBuilder, File, FileType, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::Said;

pub use std::os::unix::net::{UnixListener as LocalListener, UnixStream as LocalStream};

/// Error codes: a closed file, an existing file, a directory instead of a file.
pub use libc::{EBADF, EEXIST, EISDIR};

pub(crate) fn private_file(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

pub(crate) fn private_folder(builder: &mut DirBuilder) -> &mut DirBuilder {
    builder.mode(0o700)
}

/// Opening a pipe does not block.
pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(libc::O_NONBLOCK)
}

/// Why something that is neither a file nor a directory is not read.
pub(crate) fn unreadable(kind: FileType) -> Said {
    match () {
        () if kind.is_fifo() => say!("it is a pipe, not a file"),
        () if kind.is_socket() => say!("it is a socket, not a file"),
        () => say!("it is a device, not a file"),
    }
}

/// Opens what a shell passes by a path, unless it is a regular file.
pub(crate) fn handed_over(path: &Path) -> io::Result<Option<File>> {
    match std::fs::metadata(path)?.is_file() {
        true => Ok(None),
        false => File::open(path).map(Some),
    }
}

/// Reads once at `offset`. On Windows, this moves the position of the file.
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}

/// Writes all bytes at `offset`. On Windows, this moves the position of the file.
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// Creates a Unix socket at `path` that only its owner can access.
pub fn listen(path: &Path) -> io::Result<LocalListener> {
    let listener = LocalListener::bind(path)?;
    // If this fails, the account of each client is still checked.
    let _ = std::fs::set_permissions(path, Permissions::from_mode(0o600));
    Ok(listener)
}

/// Connects to the Unix socket at `path`.
pub fn connect(path: &Path) -> io::Result<LocalStream> {
    LocalStream::connect(path)
}

/// A connection to a child that has not started yet, and the child's standard input.
pub fn to_child() -> io::Result<(LocalStream, Stdio)> {
    let (ours, theirs) = LocalStream::pair()?;
    Ok((ours, OwnedFd::from(theirs).into()))
}

/// The child's end of [`to_child`].
pub fn to_parent() -> io::Result<LocalStream> {
    io::stdin().as_fd().try_clone_to_owned().map(LocalStream::from)
}

/// Starts the process in a separate process group, so that Ctrl-C does not interrupt it.
pub fn in_own_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// The signal that ended a process, if one did.
pub fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}
