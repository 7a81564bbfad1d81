//! The functions of `unix.rs` on Windows, where throng does not generate load: those for a run in
//! progress fail.

use std::fs::{DirBuilder, File, FileType, OpenOptions};
use std::io;
use std::os::windows::fs::FileExt as _;
use std::os::windows::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::said::{Said, Told};

// Never opened: see `listen` and `connect`.
pub use std::net::{TcpListener as LocalListener, TcpStream as LocalStream};

/// `ERROR_INVALID_HANDLE`, `ERROR_FILE_EXISTS` and `ERROR_DIRECTORY` of winerror.h.
pub const EBADF: i32 = 6;
pub const EEXIST: i32 = 80;
pub const EISDIR: i32 = 267;

/// `CREATE_NEW_PROCESS_GROUP` of winbase.h.
const NEW_PROCESS_GROUP: u32 = 0x200;

/// A new file inherits the access list of its directory: see [`Private`](crate::private::Private).
pub(crate) fn private_file(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

pub(crate) fn private_folder(builder: &mut DirBuilder) -> &mut DirBuilder {
    builder
}

pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

pub(crate) fn unreadable(_: FileType) -> Said {
    say!("it is a device, not a file")
}

/// The only path of this kind is `/dev/stdin`.
pub(crate) fn handed_over(_: &Path) -> io::Result<Option<io::Stdin>> {
    Ok(Some(io::stdin()))
}

pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buffer, offset)
}

pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        match file.seek_write(&bytes[written..], offset + written as u64)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => written += count,
        }
    }
    Ok(())
}

fn without_sockets<T>() -> io::Result<T> {
    let told = say!("Unix sockets need Linux or macOS");
    Err(io::Error::new(io::ErrorKind::Unsupported, Told(told)))
}

pub fn listen(_: &Path) -> io::Result<LocalListener> {
    without_sockets()
}

pub fn connect(_: &Path) -> io::Result<LocalStream> {
    without_sockets()
}

pub fn to_child() -> io::Result<(LocalStream, Stdio)> {
    without_sockets()
}

pub fn to_parent() -> io::Result<LocalStream> {
    without_sockets()
}

pub fn in_own_group(command: &mut Command) -> &mut Command {
    command.creation_flags(NEW_PROCESS_GROUP)
}

pub fn signal_of(_: ExitStatus) -> Option<i32> {
    None
}
